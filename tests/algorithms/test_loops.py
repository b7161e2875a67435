"""Forward dynamics with closed loops against a dense solution of the equations in 50 digits, and against Pinocchio.

Accelerations are compared relative to the largest one. Where nothing else is said, 1e-10: states are well conditioned
(the ratio of the rows' singular values is below 100 in the metric of the mass matrix, which costs about 100² eps =
2e-12), and mass matrices of random trees cost another decade or two.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from closed_answers import AGREE, accelerations, answer_of, case_of, difference
from closed_zoo import CASES as ZOO
from closed_zoo import mechanism
from dense_closures import ClosedReference
from dense_driven import consistent, exact
from mechanisms import EPS
from pinocchio_closures import ClosedPeer
from random_loops import CLOSING, random_loops

import spanloop as sl
from spanloop import zoo
from spanloop.errors import SpanloopError

DAILY = range(24)
MORE = range(24, 200)
PINOCCHIO_JOINTS = ("revolute", "prismatic", "helical", "cylindrical", "spherical", "free", "fixed")


# ---- against a dense solution in 50 digits


@pytest.mark.slow
@pytest.mark.parametrize("method", ["elimination", "dense"])
@pytest.mark.parametrize("name", ZOO)
def test_zoo_agrees_with_fifty_digits(name, method):
    assert difference(accelerations(case_of(name), method=method), answer_of(name)) < AGREE


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_the_python_target_agrees_with_fifty_digits(name):
    assert difference(accelerations(case_of(name), target="python"), answer_of(name)) < AGREE


@pytest.mark.slow
@pytest.mark.parametrize("seed", DAILY)
def test_random_loops_agree_with_fifty_digits(seed):
    case, expected = case_of(f"random {seed}"), answer_of(f"random {seed}")
    for options in ({}, {"target": "python"}, {"method": "dense"}):
        assert difference(accelerations(case, **options), expected) < AGREE, options


@pytest.mark.slow
@pytest.mark.campaign(44)
@pytest.mark.parametrize("seed", MORE)
def test_more_random_loops_agree_with_fifty_digits(seed):
    assert difference(accelerations(case_of(f"random {seed}")), answer_of(f"random {seed}")) < AGREE


@pytest.mark.slow
@pytest.mark.parametrize("seed", [44, 80, 173, 196])
def test_closures_that_are_deficient_together_without_the_free_body(seed):
    """Each closure alone could be eliminated before the free body that it touches, all of them together could not."""
    assert difference(accelerations(case_of(f"random {seed}")), answer_of(f"random {seed}")) < AGREE


@pytest.mark.slow
@pytest.mark.parametrize("closing", CLOSING)
@pytest.mark.parametrize("seed", range(4))
def test_every_kind_of_joint_can_close_a_loop(closing, seed):
    """Steps on floats against the dense reference on floats, both with errors of condition² eps."""
    case = random_loops(1000 + seed, n_loops=2, closing=closing)
    assert case.model.loops[0].kind.name == closing
    expected, _ = ClosedReference(case.model, case.q, case.v).forward_dynamics(case.tau)
    assert difference(accelerations(case, target="python"), expected) < 1e-9


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "stewart", "delta", "arms 2", "bricard"])
def test_float32_agrees_to_its_own_precision(name):
    """Rounding of 6e-8, times the condition of the rows: up to some 1e3 (delta)."""
    case = case_of(name)
    kernel = sl.compile(case.model, "forward_dynamics", dtype="float32")
    a = kernel(*(x.astype(np.float32) for x in (case.q, case.v, case.tau)))
    assert difference(a, answer_of(name)) < 2e-4


# ---- redundant everywhere: loops in a plane, doubled closures


@pytest.mark.parametrize("seed", range(12))
def test_plane_loops_closed_by_a_hinge_agree_with_fifty_digits(seed):
    """Three of five rows are redundant, in a plane that lies askew."""
    case, expected = case_of(f"plane {seed}"), answer_of(f"plane {seed}")
    for options in ({}, {"target": "python"}, {"method": "dense"}):
        assert difference(accelerations(case, **options), expected) < AGREE, options


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_a_doubled_closure_changes_nothing(seed):
    assert difference(accelerations(case_of(f"doubled {seed}")), answer_of(f"random {seed}")) < AGREE


# ---- options


FEW = ("four_bar", "five_bar", "stewart", "arms 2 cardan", "n_four_bar 8", "hexapod", "random 0", "random 5", "plane 1")


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_regrouped_inertias_give_the_same(name):
    case = case_of(name)
    assert difference(accelerations(case, regroup=False), answer_of(name)) < AGREE


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("method", ["elimination", "dense"])
def test_external_forces_agree_with_fifty_digits(name, method):
    case = case_of(name)
    rng = np.random.default_rng(11)
    bodies = [case.model.bodies[i].name for i in (0, len(case.model.bodies) // 2, -1)]
    forces = {body: rng.normal(size=6) for body in dict.fromkeys(bodies)}
    a = sl.Dynamics(case.model, method=method).forward_dynamics(case.q, case.v, case.tau, forces=forces)
    assert difference(a, exact(case.model, case.q, case.v, case.tau, forces)) < AGREE


@pytest.mark.slow
@pytest.mark.parametrize("method", ["elimination", "dense"])
@pytest.mark.parametrize(
    ("name", "driven"),
    [
        ("four_bar", ["crank_hinge"]),
        ("five_bar", ["drive1"]),
        ("five_bar", ["drive1", "drive2"]),
        ("slider_crank", ["crank_hinge"]),
        ("n_four_bar 8", ["crank_hinge3", "crank_hinge6"]),
        ("stewart", ["slide2"]),
        ("stewart", [f"slide{i}" for i in range(1, 7)]),
        ("arms 2", ["arm1_turn", "arm2_elbow"]),
        ("hexapod", ["floating"]),
    ],
)
def test_driven_joints_have_their_given_accelerations(name, driven, method):
    case = case_of(name)
    model = case.model.drive(*driven)
    a = sl.compile(model, "forward_dynamics", method=method)(case.q, case.v, case.tau)
    for joint in driven:
        np.testing.assert_array_equal(a[model.v_slice(joint)], case.tau[model.v_slice(joint)])
    assert difference(a, exact(model, case.q, case.v, case.tau)) < AGREE


@pytest.mark.slow
@pytest.mark.parametrize("method", ["elimination", "dense"])
@pytest.mark.parametrize("name", ["four_bar", "five_bar", "arms 2", "n_four_bar 8", "stewart", "random 4"])
def test_live_parameters_give_the_model_with_those_masses(name, method):
    """The same kernel with other masses and inertias: a change of these leaves the loops closed."""
    case = case_of(name)
    rng = np.random.default_rng(12)
    factor = {b.name: float(rng.uniform(0.5, 2.0)) for b in case.model.bodies}
    other = replace(case.model, bodies=tuple(_scaled(b, factor[b.name]) for b in case.model.bodies))
    kernel = sl.compile(case.model, "forward_dynamics", method=method, parameters="live")
    for model in (case.model, other):
        a = kernel(case.q, case.v, case.tau, model.parameters().values)
        assert difference(a, exact(model, case.q, case.v, case.tau)) < AGREE


def _scaled(body, factor):
    i = body.inertia
    return replace(body, inertia=replace(i, mass=factor * i.mass, moments=tuple(factor * x for x in i.moments)))


@pytest.mark.parametrize("name", ["four_bar", "stewart", "arms 2", "n_four_bar 8", "bricard", "hexapod", "random 8"])
@pytest.mark.slow
def test_a_row_of_a_batch_is_a_single_call(name):
    """Odd sizes, so that the last group of lanes is not full; rows differ in v and tau.

    The two codes fuse multiplications alike but differ in the sine: a few eps times the condition.
    """
    case = case_of(name)
    rng = np.random.default_rng(13)
    n = 37
    rest = ClosedReference(case.model, case.q)
    v = np.array([rest.consistent(rng.normal(size=case.model.nv)) for _ in range(n)])
    tau = rng.normal(size=(n, case.model.nv))
    robot = sl.Dynamics(case.model)
    a = robot.forward_dynamics(case.q, v, tau)
    one = np.array([robot.forward_dynamics(case.q, v[i], tau[i]) for i in range(n)])
    assert difference(a, one) < 1e4 * EPS
    grid = robot.forward_dynamics(np.tile(case.q, (4, 9, 1)), v[:36].reshape(4, 9, -1), tau[:36].reshape(4, 9, -1))
    np.testing.assert_array_equal(grid.reshape(36, -1), a[:36])


# ---- gears


def _geared(name: str) -> tuple[sl.Model, np.ndarray]:
    """Models with couplings and coordinates that satisfy them."""
    rng = np.random.default_rng(14)
    if name == "two joints in a row":
        model = zoo.chain(5, seed=3)
        couplings = [("joint4", "joint2", -1.5)]
    elif name == "joints that meet at the world":
        model = zoo.star(3, "revolute")
        couplings = [("joint1", "joint2", 2.0), ("joint3", "joint2", -0.5)]
    elif name == "a slide that follows a hinge":
        model = zoo.stanford()
        couplings = [("joint3", "joint1", 0.2)]
    elif name == "a train of gears":
        model = zoo.chain(6, seed=5)
        couplings = [("joint2", "joint1", 0.5), ("joint4", "joint2", -2.0), ("joint6", "joint4", 1.5)]
    elif name == "neighbours":
        model = zoo.pendulum(4)
        couplings = [("hinge2", "hinge1", 1.0), ("hinge4", "hinge3", -1.0)]
    else:
        raise KeyError(name)
    q, _ = model.random_state(rng)
    parts = []
    for k, (joint, source, ratio) in enumerate(couplings):
        offset = 0.1 * (k + 1)
        parts.append(sl.model.parts.Coupling(f"gear{k}", joint, source, ratio, offset))
        q[model.q_slice(joint)] = ratio * q[model.q_slice(source)] + offset
    return replace(model, couplings=tuple(parts)), q


GEARED = (
    "two joints in a row",
    "joints that meet at the world",
    "a slide that follows a hinge",
    "a train of gears",
    "neighbours",
)


@pytest.mark.parametrize("options", [{}, {"target": "python"}, {"method": "dense"}], ids=str)
@pytest.mark.parametrize("name", GEARED)
def test_gears_agree_with_fifty_digits(name, options):
    model, q = _geared(name)
    rng = np.random.default_rng(15)
    v, tau = consistent(model, q, rng.normal(size=model.nv)), rng.normal(size=model.nv)
    a = sl.compile(model, "forward_dynamics", **options)(q, v, tau)
    for c in model.couplings:
        follows, leads = a[model.v_slice(c.joint)], a[model.v_slice(c.source)]
        np.testing.assert_allclose(follows, c.ratio * leads, atol=1e-11 * np.abs(a).max())
    assert difference(a, exact(model, q, v, tau)) < AGREE


@pytest.mark.parametrize("options", [{}, {"target": "python"}, {"method": "dense"}], ids=str)
@pytest.mark.parametrize("driven", ["joint2", "joint4"])
def test_a_driven_joint_leads_its_gear(driven, options):
    """The source or the follower has its given acceleration; the other one goes with it."""
    model, q = _geared("two joints in a row")
    model = model.drive(driven)
    rng = np.random.default_rng(17)
    v, tau = consistent(model, q, rng.normal(size=model.nv)), rng.normal(size=model.nv)
    a = sl.compile(model, "forward_dynamics", **options)(q, v, tau)
    assert difference(a, exact(model, q, v, tau)) < AGREE


@pytest.mark.parametrize("options", [{}, {"method": "dense"}], ids=str)
def test_gears_and_loops_together_agree_with_fifty_digits(options):
    """The drives of a five-bar geared to each other; one hinge of a neighbouring four-bar that follows another."""
    model = zoo.five_bar()
    q = zoo.five_bar_start()
    gear = sl.model.parts.Coupling("gear", "drive2", "drive1", -1.0, q[2] + q[0])
    model = replace(model, couplings=(gear,))
    rng = np.random.default_rng(16)
    v, tau = consistent(model, q, rng.normal(size=4)), rng.normal(size=4)
    a = sl.compile(model, "forward_dynamics", **options)(q, v, tau)
    assert difference(a, exact(model, q, v, tau)) < AGREE


# ---- against Pinocchio


@pytest.mark.parametrize("name", [n for n in ZOO if ClosedPeer.knows(mechanism(n)[0])])
def test_zoo_agrees_with_pinocchio(name):
    """Its proximal solver stops at 1e-10 of the rows' residual."""
    case = case_of(name)
    peer = ClosedPeer(case.model).closed_forward_dynamics(case.q, case.v, case.tau)
    np.testing.assert_allclose(accelerations(case), peer, atol=1e-9 * max(1.0, np.abs(peer).max()))


@pytest.mark.slow
@pytest.mark.parametrize("closing", ["spherical", "fixed"])
@pytest.mark.parametrize("seed", range(6))
def test_random_loops_agree_with_pinocchio(seed, closing):
    """Trees of joints that it has, closed once by a joint that it has."""
    case = random_loops(5000 + seed, n_loops=1, closing=closing, kinds=PINOCCHIO_JOINTS)
    model = case.model.without_losses()
    peer = ClosedPeer(model).closed_forward_dynamics(case.q, case.v, case.tau)
    a = sl.compile(model, "forward_dynamics")(case.q, case.v, case.tau)
    np.testing.assert_allclose(a, peer, atol=1e-8 * max(1.0, np.abs(peer).max()))


# ---- growth and hard cases


def _operations(model) -> int:
    n = sl.compile(model, "forward_dynamics").operations
    return n.multiplications + n.additions + n.divisions


def _slope(sizes, counts) -> float:
    """Of log(count) over log(size), from the line of best fit."""
    return float(np.polyfit(np.log(sizes), np.log(counts), 1)[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "sizes"),
    [(zoo.arms_with_object, (2, 4, 8, 16)), (zoo.n_four_bar, (2, 8, 32))],
    ids=["arms", "four-bars"],
)
def test_operations_grow_linearly(family, sizes):
    """One arm or one four-bar more always costs the same.

    The first four-bar stands on the ground and is cheaper: over sizes this small that alone makes a slope of 1.09.
    """
    counts = [_operations(family(n)) for n in sizes]
    each = np.diff(counts) / np.diff(sizes)
    np.testing.assert_allclose(each, each[0], rtol=0.02)
    assert _slope(sizes[-2:], counts[-2:]) <= 1.05


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_two_five_joint_arms_hold_an_object_rigidly(seed):
    """Each arm's own admittance is deficient, the closures' rows together are not: right to 1e-9."""
    case = case_of("five-joint arms 2", seed)
    assert difference(accelerations(case), exact(case.model, case.q, case.v, case.tau)) < 1e-9


@pytest.mark.parametrize("driven", [("crank_hinge", "rocker_hinge"), ("crank_hinge", "coupler_hinge", "rocker_hinge")])
def test_given_accelerations_that_would_open_a_loop_are_refused(driven):
    """A four-bar has one freedom: two of its joints cannot have accelerations of their own."""
    model, q = mechanism("four_bar")
    model = model.drive(*driven)
    with pytest.raises(SpanloopError):
        sl.Dynamics(model).forward_dynamics(q, np.zeros(3), np.array((1.0, 0.5, -3.0)))


@pytest.mark.slow
def test_a_batch_with_bad_states_raises_nothing_and_harms_no_other():
    case = case_of("stewart")
    q = np.tile(case.q, (20, 1))
    v = np.tile(case.v, (20, 1))
    v[3, 2], q[11, 0] = np.nan, 3.0
    robot = sl.Dynamics(case.model)
    with pytest.warns(sl.SpanloopWarning, match="2 of 20 states have no answer"):
        a = robot.forward_dynamics(q, v, case.tau)
    assert np.isnan(a[[3, 11]]).all()
    good = np.delete(a, [3, 11], axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(good, robot.forward_dynamics(q[:18] * 0 + case.q, case.v, case.tau))
