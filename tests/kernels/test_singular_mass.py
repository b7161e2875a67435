"""A tree whose mass matrix is singular is refused by joint and body, by every method and in every kind of call."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import Reason, StateError, StateWarning
from spanloop.model import Body
from spanloop.sweeps.tested_pivots import IN_MATRIX, PivotTest
from spanloop.topology import mechanism

BODY = {"mass": 1.0, "center": (0.1, 0.05, 0.02), "inertia": (0.1, 0.12, 0.13)}
METHODS = ("articulated_body", "articulated_body_textbook", "composite_body", "decoupled_complement", "unit_vector")


def twin_hinges(axis=(1, 2, 2), **options) -> sl.Model:
    b = sl.Builder("twin hinges").body("a").body("c", **BODY)
    return b.revolute("j1", "world", "a", axis, **options).revolute("j2", "a", "c", axis).build()


def three_hinges() -> sl.Model:
    b = sl.Builder("three hinges").body("a").body("b").body("c", **BODY)
    b.revolute("j1", "world", "a", "z").revolute("j2", "a", "b", "y").revolute("j3", "b", "c", "x")
    return b.build()


def bare_tip() -> sl.Model:
    b = sl.Builder("bare tip").body("a", **BODY).body("b")
    return b.revolute("j0", "world", "a", (1, 2, 2)).revolute("j1", "a", "b", (3, 1, 1), (0.3, 0.1, 0.2)).build()


def twin_slides() -> sl.Model:
    b = sl.Builder("twin slides").body("a").body("c", **BODY)
    return b.prismatic("j1", "world", "a", (1, 2, 3)).prismatic("j2", "a", "c", (1, 2, 3)).build()


def thin_rod() -> sl.Model:
    """A line of mass on a hinge along it, its moments as six numbers in oblique axes."""
    u = np.array((1.0, 2.0, 2.0)) / 3.0
    full = 0.1 * (np.eye(3) - np.outer(u, u))
    b = sl.Builder("thin rod").body("a", mass=1.0, inertia=full)
    return b.revolute("j1", "world", "a", tuple(u)).build()


SINGULAR = {
    "twin hinges": (twin_hinges(), [0.1, 0.2]),
    "twin hinges about z": (twin_hinges("z"), [0.1, 0.2]),
    "twin slides": (twin_slides(), [0.1, 0.2]),
    "gimbal lock": (three_hinges(), [0.3, np.pi / 2, 0.2]),
    "bare tip": (bare_tip(), [0.1, 0.2]),
}


def refused(call, joint="j1") -> None:
    with pytest.raises(StateError, match=f"joint '{joint}' .*mass matrix is singular") as found:
        call()
    assert found.value.reason is Reason.SINGULAR_MASS


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SINGULAR)
def test_forward_dynamics_names_joint_and_body(name, method):
    model, q = SINGULAR[name]
    one = np.ones(model.nv)
    refused(lambda: sl.compile(model, "forward_dynamics", method=method, target="python")(q, one, one))


@pytest.mark.parametrize("name", SINGULAR)
def test_inverses_are_refused(name):
    model, q = SINGULAR[name]
    refused(lambda: sl.compile(model, "mass_matrix_inverse", target="python")(q))
    frames = {"frames": model.bodies[-1].name}
    refused(lambda: sl.compile(model, "operational_inverse_inertia", target="python", **frames)(q))
    refused(lambda: sl.compile(model, "force_response", target="python", **frames)(q))
    refused(lambda: sl.Dynamics(model).operational_inertia(q, "a"))


def test_compiled_kernels_batches_and_runs_refuse():
    model, q = SINGULAR["gimbal lock"]
    robot, one = sl.Dynamics(model), np.ones(3)
    refused(lambda: robot.forward_dynamics(q, one, one))
    with pytest.warns(StateWarning, match="1 of 2 states has no answer.*joint 'j1' .*singular") as warned:
        a = robot.forward_dynamics([q, [0.3, 0.2, 0.1]], one, one)
    assert [w.message.refusal.reason for w in warned] == [Reason.SINGULAR_MASS]
    assert np.isnan(a).tolist() == [[True] * 3, [False] * 3]


def test_a_run_ends_beside_the_lock_and_says_so():
    model = three_hinges()
    run = sl.simulate(model, [0.3, 0.5 * np.pi - 0.01, 0.2], [0.0, 1.0, 0.0], duration=0.05, integrator="rk4")
    assert not run.outcome.finished
    assert "joint 'j1' (body 'a'): the mass matrix is singular" in str(run.outcome)


def test_operators_are_refused():
    model, q = SINGULAR["gimbal lock"]
    operators = sl.operators(model, q)
    refused(lambda: operators.D @ np.ones(3))


def test_live_parameters_are_tested_too():
    model = twin_hinges()
    kernel = sl.compile(model, "forward_dynamics", parameters="live", target="python")
    two, own = np.ones(2), model.parameters()
    refused(lambda: kernel(two, two, two, own.values))
    heavy = own.changed({"a.mass": 1.0, "a.inertia.xx": 0.1, "a.inertia.yy": 0.1, "a.inertia.zz": 0.1})
    assert np.isfinite(kernel(two, two, two, heavy.values)).all()


def test_armature_makes_the_matrix_regular():
    model = twin_hinges(armature=0.01)
    a = sl.Dynamics(model).forward_dynamics([0.1, 0.2], [0.0, 0.0], [1.0, 0.0])
    assert np.isclose(a[0] * 0.01, 1.0, rtol=1e-6)


def test_a_body_without_inertia_about_its_hinge_is_refused():
    refused(lambda: sl.Dynamics(thin_rod()).forward_dynamics([0.1], [0.0], [1.0]))


@pytest.mark.slow
def test_ordinary_trees_are_not_tested():
    for model in (sl.zoo.puma(), sl.zoo.quadruped(), sl.zoo.chain(16), sl.zoo.chain(64), sl.zoo.chain(1000)):
        assert not PivotTest(mechanism(model), IN_MATRIX).noise


@pytest.mark.slow
def test_a_massless_link_in_a_loop_is_refused_with_the_mode_that_needs_no_inertia_there():
    q, z = sl.zoo.four_bar_start(), np.zeros(3)
    whole = sl.zoo.four_bar()
    bare = replace(whole, bodies=tuple(Body(b.name) if b.name == "coupler" else b for b in whole.bodies))
    with pytest.raises(StateError, match="closures='minimal'") as found:
        sl.Dynamics(bare).forward_dynamics(q, z, z)
    assert found.value.reason is Reason.SINGULAR_MASS
    assert sl.simulate(bare, q, duration=0.01, closures="minimal").outcome.finished


def test_a_number_beyond_single_precision_is_said_to_be():
    model = bare_tip()
    with pytest.raises(StateError, match=r"tau\[0\] \(joint 'j0'\) is inf; .* at most 3.4e38, the largest of float32"):
        sl.Dynamics(model, dtype="float32").forward_dynamics([0.0, 0.0], [0.0, 0.0], [1e39, 0.0])


def test_of_a_chain_without_any_mass_the_tip_is_named_and_no_pivot_is_nan():
    b = sl.Builder("bare chain").body("a").body("b").body("c")
    b.revolute("j1", "world", "a", "z").revolute("j2", "a", "b", "y", (0.3, 0, 0))
    model = b.revolute("j3", "b", "c", (1, 2, 2), (0.3, 0, 0)).build()
    with pytest.raises(
        StateError, match=r"joint 'j3' .*its pivot is 0;.*2 more joints cannot be solved for.*'\*', armature"
    ):
        sl.Dynamics(model).forward_dynamics([0.1, 0.2, 0.3], np.zeros(3), np.zeros(3))


def test_the_joint_that_is_named_can_be_given_armature():
    tip = sl.Builder("tip").body("arm", 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1)).body("tip")
    model = tip.revolute("hinge", "world", "arm", "y").revolute("wrist", "arm", "tip", "x", (0.3, 0, 0)).build()
    with pytest.raises(StateError, match=r"joint 'wrist' \(body 'tip'\).*model.with_joint\('wrist', armature=...\)"):
        sl.Dynamics(model, target="python").forward_dynamics([0.1, 0.2], [0, 0], [0, 1])
    a = sl.Dynamics(model.with_joint("wrist", armature=0.5), target="python").forward_dynamics(
        [0.1, 0.2], [0, 0], [0, 1]
    )
    np.testing.assert_allclose(a[1], 2.0, rtol=1e-12)
