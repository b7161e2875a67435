"""A closed topology in columns: two systems and their closures, each step a kernel of its own. Against 50 digits.

[Rodriguez, Jain & Kreutz, sections 2.3 and 3]. What is compiled is told by the kernels themselves (`is`) and by the
files that appear in the cache of kernels, never by time.
"""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from closed_answers import AGREE, difference
from dense_driven import consistent, exact
from random_chains import random_chains
from random_loops import CLOSING, fitted, moving
from random_pairs import random_pair
from singular_cases import CASES as SINGULAR

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, StateError, StateWarning, UnsupportedError
from spanloop.joints import Spherical
from spanloop.joints.distance import Distance
from spanloop.joints.soft_finger import SoftFinger
from spanloop.model.parts import Loop, Placement

DAILY = (2, 3, 5)
ALL = [pytest.param(s, marks=[] if s in DAILY else [pytest.mark.slow]) for s in range(100)]


def split(model, names, name: str):
    """The part of a model with these bodies, and its own loops."""
    return replace(
        model,
        name=name,
        bodies=tuple(b for b in model.bodies if b.name in names),
        joints=tuple(j for j in model.joints if j.child in names),
        frames=tuple(f for f in model.frames if f.body in names),
        loops=tuple(x for x in model.loops if x.a in names and x.b in names),
    )


def arms_and_object(m: int = 2, grasp="fixed", **options):
    """The arms, the object, closures between frames, and q with the arms' coordinates first."""
    model = zoo.arms_with_object(m, grasp=grasp, **options)
    arms = split(model, [b.name for b in model.bodies if b.name != "object"], "arms")
    held = split(model, ["object"], "object")
    q = zoo.arms_with_object_start(m, grasp=grasp, **options)
    closures = [(f"arm{i}_tool", f"grasp{i}", grasp, f"holding{i}") for i in range(1, m + 1)]
    return arms, held, closures, np.concatenate((q[7:], q[:7]))


def agrees(pair, q, seed: int = 3, bound: float = AGREE):
    case = moving(pair.model, q, np.random.default_rng(seed))
    a = pair.forward_dynamics(case.q, case.v, case.tau)
    assert difference(a, exact(pair.model, case.q, case.v, case.tau)) < bound


# ---- against a dense solution in 50 digits


@pytest.mark.parametrize("seed", ALL)
def test_random_pairs_agree_with_fifty_digits(seed):
    """Primary systems with loops of their own, secondary ones with and without, closures of all kinds."""
    c = random_pair(seed)
    pair = sl.ClosedTopology(c.primary, c.secondary, c.closures, target="python")
    a = pair.forward_dynamics(c.q, c.v, c.tau)
    assert difference(a, exact(c.whole, c.q, c.v, c.tau)) < AGREE


@pytest.mark.slow
def test_the_random_pairs_are_as_they_should_be():
    cases = [random_pair(seed) for seed in range(40)]
    assert {len(c.primary.loops) for c in cases} == {1, 2}
    assert {len(c.secondary.loops) for c in cases} == {0, 1}
    assert {len(c.closures) for c in cases} == {1, 2, 3}
    assert {x.kind.name for c in cases for x in c.whole.loops} == set(CLOSING)


BOTH = [("fixed", "python"), ("spherical", "cpu")]
BOTH += [pytest.param(g, "cpu", marks=[pytest.mark.slow]) for g in ("fixed", "revolute")]


@pytest.mark.slow
@pytest.mark.parametrize(("grasp", "target"), BOTH)
def test_arms_and_object_by_both_forms_of_step_d(grasp, target):
    """The cheap form, six equations of the object, and A Λ A* as a whole."""
    arms, held, closures, q = arms_and_object(2, grasp)
    pair = sl.ClosedTopology(arms, held, closures, target=target)
    assert pair.step_d.cheap
    agrees(pair, q)
    pair.step_d = replace(pair.step_d, cheap=False)
    agrees(pair, q)


CHAINS = [pytest.param(s, marks=[pytest.mark.slow] if s >= 2 else []) for s in range(30)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", CHAINS)
def test_random_arms_on_an_object_agree_with_fifty_digits(seed):
    """Arms of all kinds of joints, some on a driven support, some with fewer joints than their grasp has rows."""
    case = random_chains(seed, sort=0)
    model = case.model
    arms = split(model, [b.name for b in model.bodies if b.name != "object"], "arms")
    pair = sl.ClosedTopology(arms, split(model, ["object"], "object"), model.loops, target="python")
    q, v, tau = (
        np.concatenate([x[getattr(model, slices)(j.name)] for j in pair.model.joints])
        for x, slices in ((case.q, "q_slice"), (case.v, "v_slice"), (case.tau, "v_slice"))
    )
    a = pair.forward_dynamics(q, v, tau)
    assert difference(a, exact(pair.model, q, v, tau)) < AGREE


@pytest.mark.parametrize("closing", CLOSING)
def test_every_kind_of_joint_joins_the_systems(closing):
    c = random_pair(2)
    one, other = c.primary.bodies[-1].name, c.secondary.bodies[-1].name
    rng = np.random.default_rng(5)
    tree = replace(c.whole, loops=())
    closure = fitted(tree, c.q, "joining", closing, one, other, rng)
    pair = sl.ClosedTopology(replace(c.primary, loops=()), replace(c.secondary, loops=()), [closure], target="python")
    agrees(pair, c.q, bound=1e-9)  # whatever the condition of one closure is


@pytest.mark.parametrize("kind", [SoftFinger(), Distance(0.3)], ids=["soft finger", "rod"])
def test_closures_that_are_no_joints(kind):
    """A rod joins points that stand apart; a soft finger's fourth row holds a velocity alone."""
    arms, held, closures, q = arms_and_object(2, "spherical")
    if isinstance(kind, Distance):  # an end of each rod lies aside of the tool, by its length
        arms = arms.with_frame("end1", "arm1_spin_link", (0.1, 0.3, 0.0)).with_frame(
            "end2", "arm2_spin_link", (0.1, 0.0, 0.3)
        )
        closures = [("end1", "grasp1", kind), ("end2", "grasp2", kind)]
    else:
        closures = [(a, b, kind) for a, b, *_ in closures]
    pair = sl.ClosedTopology(arms, held, closures, target="python")
    rng = np.random.default_rng(3)
    v, tau = consistent_by_rows(pair.model, q, rng.normal(size=pair.model.nv)), rng.normal(size=pair.model.nv)
    expected = sl.compile(pair.model, "forward_dynamics", method="dense", target="python")(q, v, tau)
    assert difference(pair.forward_dynamics(q, v, tau), expected) < AGREE


def consistent_by_rows(model, q, v):
    """The velocity nearest to v along which no row of a closure opens."""
    J = sl.Dynamics(model, target="python").closure_jacobian(q)
    return v - np.linalg.pinv(J, rcond=1e-9) @ (J @ v)


def linkage():
    """Two arms with parallelograms, and a four-bar that floats: planar loops in both systems, with redundant rows."""
    model, q = zoo.arms_with_linkage(), zoo.arms_with_linkage_start()
    names = [b.name for b in model.bodies if b.name.endswith("_bar")]
    arms, held = (
        split(model, [b.name for b in model.bodies if b.name not in names], "arms"),
        split(model, names, "four_bar"),
    )
    between = tuple(x for x in model.loops if x.name.startswith("holding"))
    n = held.nq
    return arms, held, between, np.concatenate((q[n:], q[:n]))


@pytest.mark.slow
def test_loops_inside_both_systems_with_redundant_rows():
    arms, held, between, q = linkage()
    pair = sl.ClosedTopology(arms, held, between, target="python")
    assert [x.name for x in pair.model.loops] == [*(x.name for x in (*arms.loops, *held.loops)), "holding1", "holding2"]
    assert len(pair.step_d.redundancy.dropped) == 9  # three of each of the planar loops
    assert not pair.step_d.cheap
    agrees(pair, q)


@pytest.mark.slow
def test_systems_that_no_closure_joins():
    """Free of each other; the arms' own loops are closed, or there are none at all."""
    arms, held, _, q = linkage()
    agrees(sl.ClosedTopology(arms, replace(held, loops=()), target="python"), q)
    open_arms = replace(arms, loops=())
    pair = sl.ClosedTopology(open_arms, replace(held, loops=()), target="python")
    rng = np.random.default_rng(0)
    v, tau = rng.normal(size=(2, pair.model.nv))
    a_P, a_S = pair.split(pair.forward_dynamics(q, v, tau))
    n, k = open_arms.nv, open_arms.nq
    np.testing.assert_allclose(
        a_P, sl.Dynamics(open_arms).forward_dynamics(q[:k], v[:n], tau[:n]), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(
        a_S, sl.Dynamics(replace(held, loops=())).forward_dynamics(q[k:], v[n:], tau[n:]), rtol=1e-9, atol=1e-9
    )


def test_a_closure_that_is_there_twice_changes_nothing():
    """The rows of the second one are redundant wherever the first is closed."""
    arms, held, closures, q = arms_and_object(2, "spherical")
    twice = sl.ClosedTopology(arms, held, [*closures, (*closures[0][:3], "again")], target="python")
    assert len(twice.step_d.redundancy.dropped) == 3
    agrees(twice, q)


@pytest.mark.parametrize("where", ["table", "frame of the arms' world", "world itself", "exchanged"])
def test_points_that_do_not_move(where):
    """A secondary system without DoF, closures to the ground; and the object as the primary system."""
    arms, held, closures, q = arms_and_object(2, "spherical")
    pose = sl.Dynamics(arms, target="python").pose(q[:12], "arm1_tool")
    at, turn = pose[:3, 3], pose[:3, :3]
    if where == "table":
        b = sl.Builder("table").body("top", 1.0, inertia=(1.0, 1.0, 1.0)).fixed("legs", "world", "top")
        held, q = b.build().with_frame("spot", "top", at, turn), q[:12]
        closures = [("arm1_tool", "spot", "spherical")]
    elif where == "world itself":
        place = Placement(tuple(map(tuple, turn.tolist())), tuple(at.tolist()))
        closures = [Loop("pin", Spherical(), "world", "arm1_tool", place), closures[1]]
    elif where == "exchanged":
        arms, held, q = held, arms, np.concatenate((q[12:], q[:12]))
    else:
        arms = arms.with_frame("spot", "world", at, turn)
        closures = [("arm1_tool", "spot", "spherical"), closures[1]]
    pair = sl.ClosedTopology(arms, held, closures, target="python")
    assert not pair.step_d.cheap
    agrees(pair, q)


@pytest.mark.slow
def test_the_cheap_step_d_costs_the_same_for_every_arm():
    """The whole form factors a matrix of all rows."""

    def operations(step) -> int:
        n = step.plan.operations
        return n.multiplications + n.additions

    steps = [sl.ClosedTopology(*arms_and_object(m, "spherical")[:3], target="python").step_d for m in (2, 3, 4)]
    cheap = [operations(step) for step in steps]
    whole = [operations(replace(step, cheap=False)) for step in steps]
    assert cheap[2] - cheap[1] <= 1.02 * (cheap[1] - cheap[0])
    assert whole[2] - whole[1] > 1.3 * (whole[1] - whole[0])


# ---- what is compiled


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of kernels of its own; how many pieces of code are in it."""
    monkeypatch.setenv("SPANLOOP_CACHE", str(tmp_path))
    return lambda: sorted(p.name.partition("-")[0] for p in Path(tmp_path).rglob("*") if p.is_file())


def state(pair, q):
    return moving(pair.model, q, np.random.default_rng(1))


@pytest.mark.slow
def test_a_new_object_compiles_its_own_column_only(cache):
    arms, held, closures, q = arms_and_object(2, "spherical")
    pair = sl.ClosedTopology(arms, held, closures)
    c = state(pair, q)
    pair.forward_dynamics(c.q, c.v, c.tau)
    before = cache()
    assert before == ["forced_response"] * 2 + ["forward_dynamics"] + ["free_response"] * 2
    heavy = held.with_inertia("object", mass=9.0)
    other = pair.with_secondary(heavy)
    a = other.forward_dynamics(c.q, c.v, c.tau)
    assert difference(a, exact(other.model, c.q, c.v, c.tau)) < AGREE
    assert other.primary is pair.primary
    assert other.step_d.kernel is pair.step_d.kernel
    assert other.secondary is not pair.secondary
    assert cache() == sorted([*before, "forced_response", "free_response"])


@pytest.mark.slow
def test_new_closures_between_the_same_points_compile_step_d_only(cache):
    arms, held, closures, q = arms_and_object(2, "spherical")
    pair = sl.ClosedTopology(arms, held, closures)
    c = state(pair, q)
    pair.forward_dynamics(c.q, c.v, c.tau)
    before = cache()
    for loose in ([("arm1_tool", "grasp1", "revolute"), ("arm2_tool", "grasp2", "spherical")], closures[:1]):
        other = pair.with_closures(loose)
        agrees(other, q)
        assert other.primary is pair.primary
        assert other.secondary is pair.secondary
        assert other.step_d.kernel is not pair.step_d.kernel
    assert cache() == sorted([*before, *["forward_dynamics"] * 2])
    assert pair.with_closures(closures).step_d.kernel is pair.step_d.kernel


@pytest.mark.slow
def test_released_and_taken_again_compiles_nothing(cache):
    """No closures at all: steps A to C are the dynamics. Points that are named beforehand are there when needed."""
    arms, held, closures, q = arms_and_object(2, "spherical")
    free = sl.ClosedTopology(arms, held, points=["arm1_tool", "arm2_tool", "grasp1", "grasp2"])
    c = moving(free.model, q, np.random.default_rng(1))
    free.forward_dynamics(c.q, c.v, c.tau)
    assert cache() == ["free_response"] * 2
    agrees(free.with_closures(closures), q)
    before = cache()
    again = free.with_closures(closures)
    assert again.primary is free.primary
    agrees(again, q)
    agrees(again.with_closures([]).with_closures(closures), q)
    assert cache() == before


@pytest.mark.slow
def test_step_d_asks_nothing_of_the_joints():
    """Its inputs are poses, velocities, accelerations and Λ of points: arms of other lengths have the same kernel."""
    arms, held, closures, _ = arms_and_object(2, "spherical")
    pair = sl.ClosedTopology(arms, held, closures)
    assert pair.step_d.kernel.inputs == (("primary", 2 * 24 + 144), ("secondary", 2 * 24 + 144))
    longer = arms_and_object(2, "spherical", arm=zoo.chain(8), posture=np.linspace(0.3, 1.0, 8))
    other = sl.ClosedTopology(longer[0], longer[1], longer[2])
    assert other.model.nv == pair.model.nv + 4
    assert other.step_d.key == pair.step_d.key
    agrees(other, longer[3])


def test_a_new_point_compiles_its_column():
    arms, held, closures, _ = arms_and_object(2, "spherical")
    pair = sl.ClosedTopology(arms, held, closures[:1], points=["grasp2"], target="python")
    other = pair.with_closures(closures)
    assert other.secondary is pair.secondary
    assert other.primary is not pair.primary
    assert pair.primary.points == ("arm1_tool",)
    assert other.primary.points == ("arm1_tool", "arm2_tool")


# ---- batches, states without an answer


@pytest.mark.slow
def test_a_batch_is_state_by_state():
    arms, held, closures, q = arms_and_object(2, "spherical")
    pair = sl.ClosedTopology(arms, held, closures)
    cases = [moving(pair.model, q, np.random.default_rng(s)) for s in range(6)]
    Q, V, T = (np.array([getattr(c, n) for c in cases]).reshape(2, 3, -1) for n in ("q", "v", "tau"))
    a = pair.forward_dynamics(Q, V, T)
    assert a.shape == (2, 3, pair.model.nv)
    for k, c in enumerate(cases):
        one = pair.forward_dynamics(c.q, c.v, c.tau)
        np.testing.assert_allclose(a[k // 3, k % 3], one, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_states_without_an_answer_are_nan_and_harm_no_other():
    arms, held, closures, q = arms_and_object(2, "spherical")
    pair = sl.ClosedTopology(arms, held, closures)
    c = moving(pair.model, q, np.random.default_rng(0))
    Q = np.stack([c.q] * 5)
    Q[1, 0] = np.nan  # of the primary
    Q[2, 12:16] *= 2.0  # a quaternion of the secondary
    Q[3, 16] += 0.1  # both closures are open
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        a = pair.forward_dynamics(Q, c.v, c.tau)
    assert [x.category for x in said] == [StateWarning] * 3
    assert "state 3: loop 'holding" in str(said[-1].message)
    assert np.isnan(a[1:4]).all()
    np.testing.assert_allclose(a[[0, 4]], np.stack([pair.forward_dynamics(c.q, c.v, c.tau)] * 2), rtol=1e-9, atol=1e-9)
    with pytest.warns(StateWarning):
        assert np.isnan(pair.forward_dynamics(np.full_like(Q, np.nan), c.v, c.tau)).all()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "python"])
def test_an_open_loop_is_refused_with_its_name(target):
    arms, held, closures, q = arms_and_object(2, "spherical")
    pair = sl.ClosedTopology(arms, held, closures, target=target)
    q[16] += 0.1
    with pytest.raises(StateError, match=r"loop 'holding2', between 'arm2_tool' and 'grasp2', is open by 0\.0937 "):
        pair.forward_dynamics(q, np.zeros(pair.model.nv), np.zeros(pair.model.nv))


def folded(distance: float):
    """The four-bar of singular_cases cut in two: crank and coupler, and the rocker."""
    case = next(x for x in SINGULAR if x.name == "folded four-bar").at(distance)
    model = case.model
    rocker = model.joints[2].child
    crank = split(model, [b.name for b in model.bodies if b.name != rocker], "crank")
    return crank, split(model, [rocker], "rocker"), model.loops, case


def test_lost_rank_is_refused_or_answered_on_demand():
    crank, rocker, loops, case = folded(0.0)
    pair = sl.ClosedTopology(crank, rocker, loops)
    with pytest.raises(StateError, match="the loops are in a singular configuration"):
        pair.forward_dynamics(case.q, case.v, case.tau)
    a = sl.ClosedTopology(crank, rocker, loops, on_singular="minimum_norm").forward_dynamics(case.q, case.v, case.tau)
    assert np.isfinite(a).all()
    crank, rocker, loops, case = folded(0.3)
    found = sl.ClosedTopology(crank, rocker, loops).forward_dynamics(case.q, case.v, case.tau)
    assert difference(found, exact(case.model, case.q, case.v, case.tau)) < AGREE


@pytest.mark.slow
@pytest.mark.parametrize("which", ["one wrist", pytest.param("both wrists", marks=[pytest.mark.slow])])
def test_an_arm_in_a_singular_position_is_no_obstacle(which):
    for distance in (1e-6, 0.0):
        case = next(x for x in SINGULAR if x.name == which).at(distance)
        arms = split(case.model, [b.name for b in case.model.bodies if b.name != "object"], "arms")
        held = split(case.model, ["object"], "object")
        pair = sl.ClosedTopology(arms, held, case.model.loops, target="python")
        assert pair.step_d.cheap
        q, v, tau = (np.concatenate((x[n:], x[:n])) for x, n in ((case.q, 7), (case.v, 6), (case.tau, 6)))
        found = pair.forward_dynamics(q, v, tau)
        assert difference(found, exact(pair.model, q, v, tau)) < AGREE


# ---- all that acts on them


@pytest.mark.slow
def test_forces_from_outside():
    arms, held, closures, q = arms_and_object(2, "spherical")
    pair = sl.ClosedTopology(arms, held, closures, target="python")
    c = moving(pair.model, q, np.random.default_rng(2))
    rng = np.random.default_rng(11)
    for names in (["object"], ["arm1_elbow_link"], ["object", "arm2_spin_link", "arm1_elbow_link"]):
        forces = {name: rng.normal(size=6) for name in names}
        found = pair.forward_dynamics(c.q, c.v, c.tau, forces=forces)
        assert difference(found, exact(pair.model, c.q, c.v, c.tau, forces)) < AGREE
    with pytest.raises(InputError, match="forces names 'objekt', which is not a body; did you mean 'object'"):
        pair.forward_dynamics(c.q, c.v, c.tau, forces={"objekt": np.zeros(6)})


def test_driven_joints_have_their_given_accelerations():
    arms, held, closures, q = arms_and_object(2, "spherical")
    pair = sl.ClosedTopology(arms.drive("arm1_turn", "arm2_elbow"), held, closures, target="python")
    c = moving(pair.model, q, np.random.default_rng(2))
    found = pair.forward_dynamics(c.q, c.v, c.tau)
    np.testing.assert_array_equal(found[[0, 8]], c.tau[[0, 8]])
    assert difference(found, exact(pair.model, c.q, c.v, c.tau)) < AGREE


@pytest.mark.slow
def test_switchable_and_driven_closures():
    """Against the method of elimination for the two systems as one model."""
    arms, held, closures, q = arms_and_object(3, "revolute")
    loops = [Loop(name, sl.joints.Revolute((0.0, 0.0, 1.0)), a, b) for a, b, _, name in closures]
    loops = [replace(loops[0], driven=True), *(replace(x, switchable=True) for x in loops[1:])]
    pair = sl.ClosedTopology(arms, held, loops, target="python")
    whole = sl.Dynamics(pair.model, target="python")
    for active in ([], ["holding3"], None):
        idle = [n for n in ("holding2", "holding3") if active is not None and n not in active]
        left = pair.model.remove(idle)
        v = consistent(left, q, np.random.default_rng(4).normal(size=pair.model.nv))
        tau = np.random.default_rng(5).normal(size=pair.model.nv)
        inputs = {"active_loops": active, "loop_accelerations": {"holding1": [0.7]}}
        found = pair.forward_dynamics(q, v, tau, **inputs)
        assert difference(found, whole.forward_dynamics(q, v, tau, **inputs)) < AGREE
    with pytest.raises(InputError, match="active_loops names 'holding1', which is not a switchable loop"):
        pair.forward_dynamics(q, v, tau, active_loops=["holding1"])
    with pytest.raises(InputError, match=r"the acceleration of loop 'holding1' has shape \(\); expected \(\.\.\., 1\)"):
        pair.forward_dynamics(q, v, tau, loop_accelerations={"holding1": 0.7})


# ---- what is refused


def test_what_does_not_fit_is_refused_in_a_sentence():
    arms, held, closures, _ = arms_and_object(2, "spherical")
    with pytest.raises(InputError, match=r"neither 'arms' nor 'object' has a frame or body 'arm1_toll'; did you mean"):
        sl.ClosedTopology(arms, held, [("arm1_toll", "grasp1", "fixed")])
    with pytest.raises(InputError, match=r"a closure is \('arm1_tool', 'grasp1'\); expected \(frame, frame, joint\)"):
        sl.ClosedTopology(arms, held, [("arm1_tool", "grasp1")])
    with pytest.raises(InputError, match="closures is a str; expected a list"):
        sl.ClosedTopology(arms, held, "fixed")
    with pytest.raises(InputError, match="'arms' and 'arms' both have a part 'arm1_turn_link'; rename one"):
        sl.ClosedTopology(arms, arms)
    with pytest.raises(InputError, match=r"gravity is .* in 'arms' and \(0.0, 0.0, 0.0\) in 'object'"):
        sl.ClosedTopology(arms, held.with_gravity((0.0, 0.0, 0.0)))
    with pytest.raises(InputError, match="'grasp1' and 'grasp2' are both on body 'object'"):
        sl.ClosedTopology(arms, held, [("grasp1", "grasp2", "fixed")])
    with pytest.raises(InputError, match="closure 'again': something else has this name"):
        sl.ClosedTopology(
            arms, held, [("arm1_tool", "grasp1", "fixed", "again"), ("arm2_tool", "grasp2", "fixed", "again")]
        )
    with pytest.raises(InputError, match="on_singular is 'ignore'; expected 'raise' or 'minimum_norm'"):
        sl.ClosedTopology(arms, held, closures, on_singular="ignore")
    with pytest.raises(InputError, match="target is 'gpu'"):
        sl.ClosedTopology(arms, held, closures, target="gpu")
    pair = sl.ClosedTopology(arms, held, closures, target="python")
    with pytest.raises(InputError, match=r"forward_dynamics: q has shape \(3,\); expected \(..., 19\)"):
        pair.forward_dynamics(np.zeros(3), np.zeros(18), np.zeros(18))


def test_couplings_are_refused():
    b = sl.Builder("geared")
    for name in ("one", "two"):
        b.body(name, 1.0, inertia=(0.1, 0.1, 0.1)).revolute(f"{name}_hinge", "world", name, "z")
    geared = b.coupling("gears", "two_hinge", "one_hinge", 2.0).build()
    _, held, _, _ = arms_and_object(2)
    with pytest.raises(UnsupportedError, match="a closed topology has no couplings between joints"):
        sl.ClosedTopology(geared, held)


def test_a_pair_is_pickled_without_its_kernels():
    arms, held, closures, q = arms_and_object(2, "spherical")
    pair = sl.ClosedTopology(arms, held, closures, target="python")
    c = moving(pair.model, q, np.random.default_rng(2))
    again = pickle.loads(pickle.dumps(pair))
    np.testing.assert_array_equal(again.forward_dynamics(c.q, c.v, c.tau), pair.forward_dynamics(c.q, c.v, c.tau))
    assert repr(again) == "ClosedTopology('arms', 'object', 2 closures, nv=18)"
