"""What forces at frames do, in O(n): against J M⁻¹ Jᵀ and M⁻¹ Jᵀ of dense matrices and of Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest
from dense_reference import Reference
from pinocchio_peer import KINDS as PEER_KINDS
from pinocchio_peer import Peer, with_known_kinds

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, UnsupportedError
from spanloop.joints import KINDS
from spanloop.kernels import KernelSpec

TREES = {
    **{f"random{seed}": (lambda seed=seed: zoo.random_model(seed)) for seed in range(8)},
    **{f"floating{seed}": (lambda seed=seed: zoo.random_model(seed, 9, free=True)) for seed in (100, 101)},
    **{f"chain_{k}": (lambda k=k: zoo.chain(3, k, seed=7)) for k in KINDS if k != "fixed"},
    "tree": lambda: zoo.tree(9, 3, seed=2),
    "star": lambda: zoo.star(4),
    "quadruped": zoo.quadruped,
}
BOUND = 1e-10


def state(model, seed=3):
    return model.random_state(np.random.default_rng(seed))[0]


def frames_of(model) -> tuple[str, ...]:
    """The tips, a body in the middle, and the world."""
    bodies = [b.name for b in model.bodies]
    return (bodies[-1], bodies[len(bodies) // 2], "world", bodies[0], *(f.name for f in model.frames[-1:]))


def dense(model, q, frames):
    """J (6k, nv) and M⁻¹."""
    reference = Reference(model, q)
    return np.vstack([reference.jacobian(f) for f in frames]), np.linalg.inv(reference.mass_matrix())


def near(found, expected, bound=BOUND):
    assert np.abs(found - expected).max(initial=0.0) <= bound * max(np.abs(expected).max(initial=0.0), 1e-3)


COMPILED = ("random2", "random3", "floating100", "chain_universal", "tree", "star")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "target"), [*((n, "python") for n in TREES), *((n, "cpu") for n in COMPILED)])
def test_it_is_what_dense_matrices_give(name, target):
    model = TREES[name]()
    q, frames = state(model), frames_of(model)
    J, inverse = dense(model, q, frames)
    robot = sl.Dynamics(model, target=target)
    near(robot.operational_inertia(q, frames).inverse, J @ inverse @ J.T)
    near(robot.force_response(q, frames), inverse @ J.T)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_pinocchio_gives(seed):
    model = with_known_kinds(zoo.random_model(seed, 7, kinds=PEER_KINDS)).without_losses()
    q, frames = state(model), frames_of(model)
    peer = Peer(model)
    J, inverse = np.vstack([peer.jacobian(q, f) for f in frames]), peer.mass_matrix_inverse(q)
    robot = sl.Dynamics(model)
    near(robot.operational_inertia(q, frames).inverse, J @ inverse @ J.T)
    near(robot.force_response(q, frames), inverse @ J.T)


@pytest.mark.slow
def test_a_driven_joint_does_not_give_way():
    """Its row of the mass matrix is left out."""
    model = zoo.tree(5, 2, seed=4)
    q, frames = state(model), ("body5", "body3")
    J, _ = dense(model, q, frames)
    free = np.arange(5) != model.v_slice("joint2").start
    inverse = np.zeros((5, 5))
    inverse[np.ix_(free, free)] = np.linalg.inv(Reference(model, q).mass_matrix()[np.ix_(free, free)])
    robot = sl.Dynamics(model.drive("joint2"))
    near(robot.operational_inertia(q, frames).inverse, J @ inverse @ J.T)
    near(robot.force_response(q, frames), inverse @ J.T)


def test_batches_one_frame_and_live_parameters():
    model = zoo.puma()
    robot = sl.Dynamics(model)
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (7, 6))
    many = robot.operational_inertia(q, "tool").inverse
    assert many.shape == (7, 6, 6)
    for k in range(7):
        near(many[k], robot.operational_inertia(q[k], ["tool"]).inverse, 1e-13)
    kernel = sl.compile(model, "force_response", frames="tool", parameters="live")
    near(kernel(q[0], model.parameters().values), robot.force_response(q[0], "tool"), 1e-12)


def test_closed_mechanisms_are_pointed_to_the_dense_way():
    with pytest.raises(UnsupportedError, match=r"Use robot.operational_inertia\(q, frames\).inverse"):
        sl.compile(zoo.four_bar(), "operational_inverse_inertia", frames="coupler")


def test_frames_are_asked_for_and_checked():
    with pytest.raises(InputError, match="force_response needs frames"):
        sl.compile(zoo.puma(), "force_response")
    with pytest.raises(InputError, match="mass_matrix takes no frames"):
        sl.compile(zoo.puma(), "mass_matrix", frames="tool")
    with pytest.raises(sl.SpanloopError, match="tol"):
        sl.Dynamics(zoo.puma()).force_response(np.zeros(6), "tol")


def counted(function, model, frames) -> int:
    n = KernelSpec.of(model, function, frames=frames).plan.operations
    return n.multiplications + n.additions + n.divisions


@pytest.mark.slow
@pytest.mark.parametrize("function", ["operational_inverse_inertia", "force_response"])
def test_operations_grow_linearly_with_the_chain(function):
    """Every doubling adds twice what the one before added; from 32 to 64 links the slope is at most 1.05."""
    sizes = (4, 8, 16, 32, 64)
    counts = [counted(function, zoo.chain(n, seed=1), ("tool", "link2")) for n in sizes]
    each = np.diff(counts) / np.diff(sizes)
    np.testing.assert_allclose(each, each[-1], rtol=0.05)
    assert np.log(counts[-1] / counts[-2]) / np.log(2.0) <= 1.05


@pytest.mark.slow
def test_branches_that_carry_no_frame_cost_their_articulated_inertia_only():
    """Of a star's legs the admittance of one is found, whatever their number; all of them respond."""
    sizes = (7, 9, 11)  # angles between the legs that are nothing special; equal ones share a tenth of the work
    one, all_of_them = (
        np.diff([counted(f, zoo.star(n), ("leg1",)) for n in sizes])
        for f in ("operational_inverse_inertia", "force_response")
    )
    np.testing.assert_allclose(one, one[-1], rtol=0.15)
    np.testing.assert_allclose(all_of_them, all_of_them[-1], rtol=0.15)
    assert one[0] < 0.6 * all_of_them[0]
