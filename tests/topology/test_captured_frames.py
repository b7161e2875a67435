"""Loops that capture: closed by construction where they are captured, and the same mechanism as the model with these
placements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_loops import CLOSING

import spanloop as sl
from spanloop.algorithms.closed.closure_kinematics import closure_error
from spanloop.algorithms.closed.row_masks import row_mask
from spanloop.errors import InputError
from spanloop.kernels import KernelSpec, machine_kernel
from spanloop.kernels.spec import redundancy_of
from spanloop.model.parts import Placement
from spanloop.simulation import traced_kernels
from spanloop.sweeps import walk
from spanloop.topology import mechanism
from spanloop.topology.captured_frames import (
    captured_placement,
    captured_width,
    own_placement,
    with_captured_placements,
)
from spanloop.zoo.random_models import random_kind, random_position, random_rotation

CLOSURES = {
    "distance": sl.joints.Distance(0.7),
    "soft_finger": sl.joints.SoftFinger(),
    "point_on_line": sl.joints.PointOnLine(),
    "point_on_plane": sl.joints.PointOnPlane((0.6, 0.0, 0.8)),
}
KINDS = (*CLOSING, *CLOSURES)


def gripper(kind: str, seed: int) -> sl.Model:
    """An arm on a slide, with a hand on a fixed joint, a free body, and a loop of a kind between any frames of both."""
    rng = np.random.default_rng(seed)
    b = sl.Builder("gripper")
    names = ["upper", "lower", "wrist", "hand", "body"]
    for name in names:
        b.body(name, 1.0 + rng.random(), random_position(rng), (0.3, 0.4, 0.5))
    b.prismatic("slide", "world", "upper", (0.0, 0.6, 0.8)).revolute("elbow", "upper", "lower", "y", (0.5, 0.0, 0.1))
    b.spherical("ball", "lower", "wrist", (0.4, 0.1, 0.0)).fixed("flange", "wrist", "hand", (0.1, 0.2, 0.3))
    b.free("flies", "world", "body")
    model = b.build().with_loop(
        "hand", "body", CLOSURES.get(kind) or random_kind(kind, rng), name="grip", switchable=True
    )
    (loop,) = model.loops
    a, b = (
        Placement(tuple(map(tuple, random_rotation(rng).tolist())), tuple(random_position(rng).tolist())) for _ in "ab"
    )
    return replace(model, loops=(replace(loop, placement_a=a, placement_b=b),))


def state(model: sl.Model, seed: int):
    rng = np.random.default_rng(seed)
    q, v = model.random_state(rng)
    return q, v, rng.normal(size=model.nv)


@pytest.mark.parametrize("kind", KINDS)
def test_a_captured_loop_is_closed_where_it_was_captured(kind):
    model = gripper(kind, 1)
    m, (q, _, _) = mechanism(model), state(model, 2)
    numbers = captured_placement(m, q.tolist(), "grip")
    assert len(numbers) == captured_width(m, ["grip"]) == 12
    held = m.with_captured(numbers, ["grip"])
    np.testing.assert_allclose(walk(closure_error(held), held, {"q": q.tolist()}), 0.0, atol=2e-15)
    again = with_captured_placements(model, ["grip"], numbers)
    np.testing.assert_allclose(sl.Dynamics(again).closure_error(q), 0.0, atol=2e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_the_dynamics_are_those_of_the_model_with_these_placements(kind):
    model = gripper(kind, 3)
    q, v, tau = state(model, 4)
    m = mechanism(model)
    numbers = captured_placement(m, q.tolist(), "grip")
    again = with_captured_placements(model, ["grip"], numbers)
    n = mechanism(again)
    active = row_mask(n, frozenset(["grip"]))
    robot = sl.Dynamics(again, target="python")
    J = robot.closure_jacobian(q)
    closed = v - np.linalg.pinv(J) @ (J @ v)
    given = {"q": q, "v": closed, "tau": tau, "captured": numbers, "active": active, "restitution": 0 * active}
    given["error"] = np.random.default_rng(5).normal(size=m.n_rows) * 1e-3
    for function in ("forward_dynamics", "velocity_correction", "position_correction", "impact", "closure_error"):
        given["v"] = v if function in ("velocity_correction", "impact") else closed
        live = KernelSpec.of(model, function, captures=["grip"], coarse=True)
        baked = KernelSpec.of(again, function, coarse=True)
        found, expected = (
            np.array(s.compute({x: [float(y) for y in given[x]] for x, _ in s.signature()[0]})[0], float)
            for s in (live, baked)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max(initial=1.0))


def test_kernels_take_captured_frames():
    model = gripper("fixed", 6)
    q, v, tau = state(model, 7)
    m = mechanism(model)
    numbers = captured_placement(m, q.tolist(), "grip")
    J = sl.Dynamics(with_captured_placements(model, ["grip"], numbers), target="python").closure_jacobian(q)
    v = v - np.linalg.pinv(J) @ (J @ v)
    spec = KernelSpec.of(model, "forward_dynamics", captures=["grip"], coarse=True)
    arrays = (q, v, tau, np.ones(6), np.array(numbers))
    np.testing.assert_allclose(machine_kernel(spec)(*arrays), spec.reference(*arrays), rtol=1e-10, atol=1e-10)
    assert spec.key != KernelSpec.of(model, "forward_dynamics", coarse=True).key


def test_captured_numbers_on_traced_scalars_are_those_on_floats():
    model = gripper("distance", 8)
    m, (q, _, _) = mechanism(model), state(model, 9)
    kernel = traced_kernels.kernel(
        "captured", {"q": model.nq}, 12, lambda x: (captured_placement(m, x["q"], "grip"), []), "test"
    )
    np.testing.assert_allclose(kernel(q), captured_placement(m, q.tolist(), "grip"), rtol=1e-14, atol=1e-15)


def test_the_numbers_of_the_model_itself_change_nothing():
    model = gripper("revolute", 10)
    again = with_captured_placements(model, ["grip"], own_placement(mechanism(model), "grip"))
    for x, y in zip(again.loops, model.loops, strict=True):
        np.testing.assert_allclose(x.placement_b.rotation, y.placement_b.rotation, atol=1e-15)
        np.testing.assert_allclose(x.placement_b.position, y.placement_b.position, atol=1e-15)


def test_a_contact_that_captures_keeps_its_normal():
    model = gripper("soft_finger", 11)
    m, (q, _, _) = mechanism(model), state(model, 12)
    again = with_captured_placements(model, ["grip"], captured_placement(m, q.tolist(), "grip"))
    np.testing.assert_allclose(again.loops[0].placement_b.rotation, model.loops[0].placement_b.rotation, atol=1e-15)


def test_what_cannot_capture_is_refused():
    model = gripper("fixed", 13)
    with pytest.raises(InputError, match="captures names 'gripp', which is no loop or coupling; did you mean 'grip'"):
        KernelSpec.of(model, "forward_dynamics", captures=["gripp"])
    held = replace(model, loops=(replace(model.loops[0], switchable=False),))
    with pytest.raises(InputError, match="'grip', which is always closed; make it with switchable=True"):
        KernelSpec.of(held, "forward_dynamics", captures=["grip"])
    with pytest.raises(InputError, match="method 'arms_on_object' takes no captured frames; 'elimination' does"):
        KernelSpec.of(model, "forward_dynamics", method="arms_on_object", captures=["grip"])


def test_couplings_capture_their_offset():
    b = sl.Builder("shafts").body("one", 1.0, inertia=(0.1, 0.1, 0.2)).body("two", 1.0, inertia=(0.2, 0.2, 0.3))
    b.revolute("p", "world", "one", "z").revolute("r", "world", "two", "z")
    model = b.build().with_coupling("r", "p", ratio=-2.0, name="gear", switchable=True)
    model = model.with_coupling("p", name="brake", switchable=True)
    names, q, m = ["brake", "gear"], [0.3, 1.1], mechanism(model)
    numbers = [x for name in names for x in captured_placement(m, q, name)]
    np.testing.assert_array_equal(numbers, [0.3, 1.1 + 2.0 * 0.3])
    held = m.with_captured(numbers, names)
    assert walk(closure_error(held), held, {"q": q}) == [0.0, 0.0]
    again = with_captured_placements(model, names, numbers)
    assert {c.name: c.offset for c in again.couplings} == {"gear": 1.1 + 2.0 * 0.3, "brake": 0.3}
    spec = KernelSpec.of(model, "position_correction", captures=["gear"])
    assert dict(spec.signature()[0])["captured"] == 1


def test_a_mechanism_with_captured_frames_is_known_to_be_redundant_where_they_are():
    """A plate in the plane, caught rigidly where it is: three of six rows have no effect, whatever the pose."""
    b = sl.Builder("plate").body("plate", 1.0, inertia=(0.1, 0.1, 0.2)).planar("plane", "world", "plate", "z")
    model = b.build().with_loop("world", "plate", "fixed", name="catch", switchable=True)
    q = [0.7, 2.0, -1.5]
    found = redundancy_of(model, q, ("catch",))
    assert found.is_known
    assert found.idle == {0, 1, 5}


def test_frames_that_a_run_in_float32_captured_are_rotations_of_a_model():
    model = gripper("fixed", 3)
    exact = captured_placement(mechanism(model), model.random_state(5)[0].tolist(), "grip")
    rounded = np.array(exact, np.float32)
    placed = with_captured_placements(model, ["grip"], rounded).loops[0].placement_b
    turn = np.array(placed.rotation)
    np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-13)
    np.testing.assert_allclose(
        turn, with_captured_placements(model, ["grip"], exact).loops[0].placement_b.rotation, atol=1e-6
    )
