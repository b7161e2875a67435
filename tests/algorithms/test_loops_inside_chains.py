"""Method simple_closed_chain with loops inside its chains, against a dense solution of the equations in 50 digits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from closed_answers import AGREE, accelerations, answer_of, case_of, difference
from counting import generic_arms, operations, plan_of
from dense_closures import ClosedReference
from dense_driven import consistent, exact
from random_inside import SORTS, random_inside
from random_loops import Case
from singular_cases import outcome

import spanloop as sl
from spanloop import zoo
from spanloop.algorithms.papers.lilly_orin.chains import rows_of, simple_chains
from spanloop.errors import StateError, UnsupportedError
from spanloop.joints import Fixed
from spanloop.joints.soft_finger import SoftFinger
from spanloop.model.builder import Builder
from spanloop.model.parts import Loop, Placement
from spanloop.model.solid_inertia import box
from spanloop.topology import mechanism

METHOD = "simple_closed_chain"
FAST = (4, 14, 40, 52)


def _inner_rows(model) -> int:
    m = mechanism(model)
    return sum(rows_of(m, t.edge) for t in simple_chains(m).tips if t.inner)


def _agrees(case: Case, **options) -> bool:
    a = accelerations(case, method=METHOD, target="python", **options)
    return difference(a, exact(case.model, case.q, case.v, case.tau)) < AGREE


# ---- random ones


@pytest.mark.campaign(34)
@pytest.mark.parametrize(
    "seed", [pytest.param(s, marks=[] if s in FAST else [pytest.mark.slow]) for s in range(100)]
)  # fmt: skip
def test_random_loops_inside_chains_agree_with_fifty_digits(seed):
    assert _agrees(random_inside(seed))


@pytest.mark.slow
def test_the_random_loops_are_inside():
    """Few of them can be undone by another choice of the reference member; pins have redundant rows."""
    models = [random_inside(seed).model for seed in range(10)]
    assert sum(_inner_rows(m) > 0 for m in models) >= 8
    assert any(x.name.startswith("pin") for m in models for x in m.loops)
    assert {any("world" in (x.a, x.b) for x in m.loops if x.name.startswith("grasp")) for m in models} == {True, False}


@pytest.mark.parametrize(
    ("inside", "sort"),
    [pytest.param(x, k, marks=[pytest.mark.slow] if n % 2 == k else []) for n, x in enumerate(SORTS) for k in (0, 1)],
)
def test_every_place_of_a_loop(inside, sort):
    """On arms and on legs: in a chain, around two, from a chain to the support, on what only the object carries."""
    case = random_inside(40 + sort, sort, inside)
    expected, _ = ClosedReference(case.model, case.q, case.v).forward_dynamics(case.tau)
    assert difference(accelerations(case, method=METHOD, target="python"), expected) < 1e-9  # both on floats


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, pytest.param(17, marks=[pytest.mark.slow])])
def test_rows_may_meet_in_any_order(seed):
    """Doubled closures beside loops inside; the second one changes nothing."""
    a = accelerations(case_of(f"doubled {seed}"), method=METHOD, target="python")
    assert difference(a, answer_of(f"random {seed}")) < AGREE


@pytest.mark.parametrize("seed", [72, 85])
@pytest.mark.slow
def test_all_loops_may_hang_on_a_reference_member_that_does_not_float(seed):
    """Its inertia is not regrouped: of what its own joint cannot feel, forces at that joint's rows make use."""
    a = accelerations(case_of(f"random {seed}"), method=METHOD, target="python")
    assert difference(a, answer_of(f"random {seed}")) < AGREE


@pytest.mark.parametrize("seed", [pytest.param(s, marks=[pytest.mark.slow] if s > 1 else []) for s in range(12)])
def test_loops_in_a_plane_with_redundant_rows(seed):
    a = accelerations(case_of(f"plane {seed}"), method=METHOD, target="python")
    assert difference(a, answer_of(f"plane {seed}")) < AGREE


# ---- the zoo's


def test_which_loops_of_the_zoo_are_inside():
    """The arms' parallelograms; the four-bar that they hold is opened by the reference member."""
    chains = simple_chains(mechanism(zoo.arms_with_linkage()))
    inner = [t for t in chains.tips if t.inner]
    assert len(inner) == 2
    assert len({t.group for t in inner}) == 2
    assert _inner_rows(zoo.hexapod()) == _inner_rows(zoo.andrews()) == _inner_rows(zoo.arms_with_object(3)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["n_four_bar 8", "arms with linkage"])
def test_machine_code_agrees_with_fifty_digits_alone_and_in_a_batch(name):
    case, expected = case_of(name), answer_of(name)
    kernel = sl.compile(case.model, "forward_dynamics", method=METHOD)
    assert difference(kernel(case.q, case.v, case.tau), expected) < AGREE
    many = kernel(np.stack([case.q] * 9), case.v, case.tau)
    assert difference(many, np.stack([expected] * 9)) < AGREE


@pytest.mark.slow
def test_forces_from_outside():
    case = case_of("arms with linkage")
    rng = np.random.default_rng(11)
    forces = {name: rng.normal(size=6) for name in ("arm1_rod", "arm2_forearm", "crank_bar")}
    robot = sl.Dynamics(case.model, method=METHOD, target="python")
    a = robot.forward_dynamics(case.q, case.v, case.tau, forces=forces)
    assert difference(a, exact(case.model, case.q, case.v, case.tau, forces)) < AGREE


@pytest.mark.slow
def test_driven_joints_inside_a_loop():
    case = case_of("arms with linkage")
    model = case.model.drive("arm1_lever_motor", "arm2_turn")
    assert _agrees(replace(case, model=model))


@pytest.mark.slow
def test_loops_inside_that_are_switched():
    """A rod that lets go of the forearm; and of a pin in a plane only the rows that matter act."""
    case = case_of("arms with linkage")
    pins = ("arm1_rod_pin", "arm2_rod_pin")
    loops = tuple(replace(x, switchable=x.name in pins) for x in case.model.loops)
    robot = sl.Dynamics(replace(case.model, loops=loops), method=METHOD, target="python")
    for active in (["arm2_rod_pin"], list(pins)):
        left = replace(case.model, loops=tuple(x for x in case.model.loops if x.name not in pins or x.name in active))
        v = consistent(left, case.q, case.v)
        a = robot.forward_dynamics(case.q, v, case.tau, active_loops=active)
        assert difference(a, exact(left, case.q, v, case.tau)) < AGREE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["loop_accelerations", "loop_forces"])
def test_loops_inside_with_given_accelerations_and_forces(name):
    """A relative acceleration along the DoF of a rod's pin, or a torque about it, against elimination."""
    case = case_of("arms with linkage")
    is_driven = name == "loop_accelerations"
    loops = tuple(replace(x, driven=is_driven and x.name == "arm1_rod_pin") for x in case.model.loops)
    given = {name: {"arm1_rod_pin": [0.7]}}
    found = [
        sl.Dynamics(replace(case.model, loops=loops), method=m, target="python").forward_dynamics(
            case.q, case.v, case.tau, **given
        )
        for m in (METHOD, "elimination")
    ]
    assert difference(*found) < AGREE


def test_legs_on_contacts_that_carry_no_chain():
    """Soft fingers as feet have no motion space of their own: legs hang on the body, and hold it. Against `dense`."""
    case = case_of("hexapod")
    model = replace(case.model, loops=tuple(replace(x, kind=SoftFinger()) for x in case.model.loops))
    robots = [sl.Dynamics(model, method=m, target="python") for m in (METHOD, "dense")]
    J = robots[1].closure_jacobian(case.q)
    v = case.v - np.linalg.pinv(J) @ (J @ case.v)
    assert difference(*(r.forward_dynamics(case.q, v, case.tau) for r in robots)) < AGREE


def test_a_loop_on_one_body_is_refused():
    """Two bodies on a fixed joint move as one, which a loop between them would not hold."""
    b = Builder("welded")
    for name in ("arm", "tool"):
        b.body(name, 1.0, (0.1, 0.0, 0.0), box(1.0, 0.2, 0.1, 0.1))
    b.revolute("hinge", "world", "arm", "z").joint("weld", Fixed(), "arm", "tool")
    model = b.frame("left", "arm").frame("right", "tool").loop("left", "right", "spherical", name="twice").build()
    with pytest.raises(UnsupportedError, match=r"'twice' joins two frames of one\. Use 'elimination'"):
        sl.compile(model, "forward_dynamics", method=METHOD)


# ---- singular configurations


def folded_in_series(number: int, distance: float) -> Case:
    """Five parallelograms one on the other, one of them turned by δ from the line in which all its links lie."""
    model = zoo.n_four_bar(5, ground=0.25, crank=0.3, coupler=0.25, rocker=0.3)
    angles = [distance if k == number else 0.8 + 0.1 * k for k in range(5)]
    q = np.array([x for angle in angles for x in (angle, angle, -angle)])
    rates = [x for k in range(5) for x in (0.3 + 0.1 * k, 0.3 + 0.1 * k, -0.3 - 0.1 * k)]
    return Case(model, q, np.array(rates), np.linspace(-0.5, 0.5, 15))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(5))
def test_a_loop_that_loses_rank_is_refused_and_never_silently_wrong(number):
    """Inside a chain, on the reference member, and on what it carries. Beside it an answer may have lost eps/δ²."""
    for distance in (1e-2, 1e-4, 1e-6, 1e-8, 0.0):
        what, error = outcome(folded_in_series(number, distance), METHOD)
        assert what == "refused" or error < 1e-10 + 10 * 2.2e-16 / distance**2, distance
    assert what == "refused"
    assert outcome(folded_in_series(number, 0.0))[0] == "refused"  # by elimination, too


@pytest.mark.slow
def test_a_singular_loop_harms_no_other_state_of_a_batch():
    """Machine code, alone and in a batch."""
    good, bad = folded_in_series(3, 0.5), folded_in_series(3, 0.0)
    kernel = sl.compile(good.model, "forward_dynamics", method=METHOD)
    with pytest.warns(UserWarning, match="singular"):
        a = kernel(np.stack((good.q, bad.q, good.q)), good.v, good.tau)
    assert np.isnan(a[1]).all()
    assert difference(a[[0, 2]], np.stack([exact(good.model, good.q, good.v, good.tau)] * 2)) < AGREE
    with pytest.raises(StateError, match="singular"):
        kernel(bad.q, bad.v, bad.tau)


# ---- growth


def _arms_with_loops(m: int):
    """Generic arms of eight joints, in each of which a ball joint closes a loop; for counting."""
    model = generic_arms(m, 8)
    links = [[b.name for b in model.bodies if b.name.startswith(f"arm{k}_")] for k in range(1, m + 1)]
    place = Placement(position=(0.1, 0.2, 0.3))
    ball = model.loops[0].kind
    inner = tuple(Loop(f"inner{k}", ball, own[1], own[5], place, place) for k, own in enumerate(links))
    return replace(model, loops=(*model.loops, *inner))


@pytest.mark.slow
def test_operations_grow_linearly_with_the_number_of_chains():
    counts = [operations(plan_of(_arms_with_loops(m), METHOD)) for m in (1, 2, 4, 8)]
    each = np.diff(counts) / (1, 2, 4)
    np.testing.assert_allclose(each, each[0], rtol=1e-3)
