"""Kinematics of closed loops: assembled, projected, completed from independent DoF, diagnosed."""

from __future__ import annotations

import functools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from closed_zoo import CASES, mechanism
from dense_closures import ClosedReference
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, Reason, SpanloopWarning, StateError, UnsupportedError
from spanloop.model.solid_inertia import rod

SMALL = ("four_bar", "slider_crank", "five_bar", "bricard", "andrews", "linkage_leg", "stewart", "arms 2 slide")


@functools.cache
def robot_of(case):
    model, q = mechanism(case)
    return sl.Dynamics(model), q


def near(robot, q, size, count=None, seed=0):
    """States that differ from q by random motions of this size [rad or m]."""
    shape = (robot.model.nv,) if count is None else (count, robot.model.nv)
    return robot.integrate(q, size * np.random.default_rng(seed).uniform(-1.0, 1.0, shape))


def moving(case, seed=0):
    robot, q = robot_of(case)
    rates = np.random.default_rng(seed).normal(size=len(robot.independent_coordinates(q)))
    return robot, q, robot.complete_velocity(q, rates, robot.independent_coordinates(q))


def bar_builder(name="linkage"):
    """A builder, and a function that adds a bar of 1 kg along x to it."""
    b = sl.Builder(name)

    def bar(body, length):
        b.body(body, 1.0, (0.5 * length, 0.0, 0.0), rod(1.0, length))
        b.frame(f"{body}_tip", body, (length, 0.0, 0.0))

    return b, bar


def structure():
    """A triangle of two bars and the ground: nothing moves."""
    b, bar = bar_builder("triangle")
    bar("left", 1.0)
    bar("right", 1.2)
    b.revolute("left_hinge", "world", "left", "y")
    b.revolute("right_hinge", "world", "right", "y", (1.5, 0.0, 0.0))
    return b.loop("left_tip", "right_tip", sl.joints.Revolute((0.0, 1.0, 0.0)), name="apex").build()


def welded_twice(gap=0.0):
    """A pendulum with a plate that is welded to it twice."""
    b, bar = bar_builder("doubled")
    bar("arm", 1.0)
    b.body("plate", 1.0, inertia=(0.1, 0.1, 0.1))
    b.revolute("hinge", "world", "arm", "y")
    b.fixed("weld", "arm", "plate", (0.5, 0.0, 0.0))
    b.frame("socket", "arm", (0.5 + gap, 0.0, 0.0))
    return b.loop("socket", "plate", "fixed", name="second_weld").build()


def two_parts():
    """Two triangles, of a crank and a telescope each, that stand side by side."""
    b, bar = bar_builder("two")
    for k, x in (("a", 0.0), ("b", 5.0)):
        bar(f"crank_{k}", 0.5)
        b.body(f"rail_{k}", 1.0, inertia=(0.1, 0.1, 0.1))
        b.body(f"block_{k}", 1.0, inertia=(0.1, 0.1, 0.1))
        b.revolute(f"turn_{k}", "world", f"crank_{k}", "y", (x, 0.0, 0.0))
        b.revolute(f"tilt_{k}", "world", f"rail_{k}", "y", (x + 1.0, 0.0, 0.0), actuated=False)
        b.prismatic(f"slide_{k}", f"rail_{k}", f"block_{k}", "x", actuated=False)
        b.loop(f"crank_{k}_tip", f"block_{k}", sl.joints.Revolute((0.0, 1.0, 0.0)), name=f"pin_{k}")
    return b.build()


def gripper(ratio=-1.0):
    b, bar = bar_builder("gripper")
    bar("left", 0.2)
    bar("right", 0.2)
    b.revolute("left_hinge", "world", "left", "y")
    b.revolute("right_hinge", "world", "right", "y", (0.1, 0.0, 0.0))
    return b.coupling("mirror", "right_hinge", "left_hinge", ratio, 0.3).build()


# ---- assembling


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_mechanism_is_assembled_from_a_guess_nearby(case):
    robot, q = robot_of(case)
    for size in (0.1, 0.3):
        found = robot.assemble(near(robot, q, size, 5))
        for state in found:
            assert np.abs(ClosedReference(robot.model, state).closure_error()).max() < 1e-12


@pytest.mark.parametrize("case", CASES)
def test_every_mechanism_is_assembled_from_neutral(case):
    """Where the bars lie in a line and no small step shortens the gap."""
    robot, _ = robot_of(case)
    found = robot.assemble(robot.model.neutral())
    assert np.abs(ClosedReference(robot.model, found).closure_error()).max() < 1e-12


@pytest.mark.parametrize("case", SMALL)
def test_a_closed_state_is_left_as_it_is(case):
    robot, q = robot_of(case)
    np.testing.assert_array_equal(robot.assemble(q), q)


@pytest.mark.parametrize("wrong", [{"tolerance": -1}, {"tolerance": np.nan}, {"tolerance": "x"}, {"max_steps": 0}])
def test_a_tolerance_that_is_not_positive_is_refused(wrong):
    ((name, value),) = wrong.items()
    with says(InputError, f"assemble: {name} is {value!r}; must be a positive"):
        sl.Dynamics(sl.zoo.four_bar()).assemble([0.3, 0.3, 0.3], **wrong)


def test_a_batch_is_assembled_as_its_states_are():
    robot, q = robot_of("five_bar")
    guesses = near(robot, q, 1.0, 12).reshape(3, 4, 4)
    found = robot.assemble(guesses)
    assert found.shape == (3, 4, 4)
    for index in np.ndindex(3, 4):
        np.testing.assert_allclose(found[index], robot.assemble(guesses[index]), atol=1e-12)
    assert robot.assemble(np.zeros((0, 4))).shape == (0, 4)


def test_fixed_joints_do_not_move():
    robot, q = robot_of("five_bar")
    guess = near(robot, q, 0.2)
    found = robot.assemble(guess, fixed=("drive1", "drive2"))
    np.testing.assert_array_equal(found[[0, 2]], guess[[0, 2]])
    assert np.abs(robot.closure_error(found)).max() < 1e-12
    with says(InputError, "has no joint 'drive3'; did you mean"):
        robot.assemble(guess, fixed=("drive3",))


def limited(lower, upper):
    b, bar = bar_builder("limited")
    bar("crank", 1.0)
    bar("coupler", 2.2)
    bar("rocker", 1.8)
    b.revolute("crank_hinge", "world", "crank", (0.0, -1.0, 0.0))
    b.revolute("coupler_hinge", "crank", "coupler", (0.0, -1.0, 0.0), (1.0, 0.0, 0.0), lower=lower, upper=upper)
    b.revolute("rocker_hinge", "world", "rocker", (0.0, -1.0, 0.0), (2.0, 0.0, 0.0))
    return b.loop("coupler_tip", "rocker_tip", sl.joints.Revolute((0.0, -1.0, 0.0)), name="closing").build()


def test_limits_are_kept():
    free = robot_of("four_bar")[0]
    guess = zoo.four_bar_start(angle=1.0)
    assert free.assemble(guess)[1] < -0.3
    robot = sl.Dynamics(limited(-0.25, 3.0))
    found = robot.assemble(near(robot, guess, 0.3, 10))
    assert np.abs(robot.closure_error(found)).max() < 2e-12  # 1e-12 of the loop's length, 1.8 m
    assert (found[:, 1] >= -0.25).all()
    assert (found[:, 1] <= 3.0).all()


def test_limits_that_forbid_closing_are_named():
    robot = sl.Dynamics(limited(3.0, 3.05))
    with pytest.raises(StateError) as found:
        robot.assemble(np.array((1.0, 3.0, 1.5)), fixed=("crank_hinge",))
    text = str(found.value)
    assert text.startswith("assemble: loop 'closing', between 'coupler' and 'rocker', stays open by ")
    assert "Fix fewer joints ('crank_hinge'), widen the limits of 'coupler_hinge', try another guess, or" in text


def test_links_that_cannot_meet_are_named_with_the_gap_that_is_left():
    """Ground 5 m; crank, coupler and rocker together 3 m: 2 m are missing."""
    robot = sl.Dynamics(zoo.four_bar(ground=5.0, crank=1.0, coupler=1.2, rocker=0.8))
    with says(StateError, "assemble: loop 'closing', between 'coupler' and 'rocker', stays open by 2 m at"):
        robot.assemble(np.array((0.3, 0.2, -0.1)))


def test_a_batch_with_a_bad_state_has_a_nan_row_and_one_warning():
    robot, q = robot_of("four_bar")
    guesses = np.array((q, (np.nan, 0.0, 0.0), near(robot, q, 0.1)))
    with pytest.warns(SpanloopWarning) as caught:
        found = robot.assemble(guesses)
    assert len(caught) == 1
    assert "assemble: 1 of 3 states has no answer; its row is NaN. It is state 1: q[0]" in str(caught[0].message)
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[[0, 2]]).all()
    impossible = sl.Dynamics(zoo.four_bar(ground=5.0, crank=1.0, coupler=1.2, rocker=0.8))
    with pytest.warns(SpanloopWarning, match="2 of 2 states have no answer"):
        assert np.isnan(impossible.assemble(np.zeros((2, 3)))).all()


def test_frames_that_face_away_are_not_taken_for_closed():
    """The sine of their angle is zero: rows of a rigid closure vanish for a body upside down."""
    b = sl.Builder("upside_down")
    b.body("box", 1.0, inertia=(0.1, 0.1, 0.1))
    b.free("floating", "world", "box")
    robot = sl.Dynamics(b.loop("world", "box", "fixed", name="seat").build())
    flipped = np.array((0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    assert np.abs(robot.closure_error(flipped)).max() < 1e-15
    assert not robot.diagnose(flipped).closed
    assert "NOT CLOSED: loop 'seat', between 'world' and 'box', is open by 3.14 rad" in str(robot.diagnose(flipped))
    found = robot.assemble(near(robot, flipped, 0.5, 5))
    np.testing.assert_allclose(np.abs(found), np.tile((1.0, 0, 0, 0, 0, 0, 0), (5, 1)), atol=1e-12)
    np.testing.assert_allclose(np.abs(robot.assemble(flipped)), (1.0, 0, 0, 0, 0, 0, 0), atol=1e-12)


@pytest.mark.parametrize("case", [case for case in CASES if case != "arms 2 general"])
def test_the_jacobian_is_the_rate_of_the_error_wherever_the_loops_are_closed(case):
    """Also where closures have slid. Truncation h² and rounding eps/h are both about 1e-10."""
    robot, q = robot_of(case)
    q, h = robot.assemble(near(robot, q, 0.3)), 1e-5
    v = np.random.default_rng(1).normal(size=robot.model.nv)
    rate = (robot.closure_error(robot.integrate(q, h * v)) - robot.closure_error(robot.integrate(q, -h * v))) / (2 * h)
    np.testing.assert_allclose(rate, robot.closure_jacobian(q) @ v, atol=1e-8)


# ---- projecting


@pytest.mark.parametrize("case", CASES)
def test_projection_closes_and_is_done_once(case):
    robot, q = robot_of(case)
    drifted = near(robot, q, 1e-4)
    v = np.random.default_rng(1).normal(size=robot.model.nv)
    there, w = robot.project(drifted, v)
    assert np.abs(robot.closure_error(there)).max() < 1e-13
    assert np.abs(robot.closure_jacobian(there) @ w).max() < 1e-12 * (1.0 + np.abs(w).max())
    again, u = robot.project(there, w)
    np.testing.assert_allclose(again, there, atol=1e-12)
    np.testing.assert_allclose(u, w, atol=1e-11 * np.abs(w).max())
    np.testing.assert_allclose(robot.project(drifted), there, atol=1e-15)


@pytest.mark.parametrize("case", SMALL)
def test_projection_moves_by_forces_of_the_loops_alone(case):
    """M (w − v) = Jᵀ λ, for positions to first order in the drift: the change of least kinetic energy."""
    robot, q = robot_of(case)
    v = np.random.default_rng(1).normal(size=robot.model.nv)
    drifted = near(robot, q, 1e-5)
    there, w = robot.project(drifted, v)
    J, M = robot.closure_jacobian(there), robot.mass_matrix(there)
    inside = J.T @ np.linalg.pinv(J.T, rcond=1e-9)
    force = M @ (w - v)
    np.testing.assert_allclose(inside @ force, force, atol=1e-9 * np.abs(force).max())
    force = M @ robot.difference(drifted, there)
    np.testing.assert_allclose(inside @ force, force, atol=1e-3 * np.abs(force).max())


def test_projection_takes_batches_and_leaves_driven_joints_alone():
    model, q = mechanism("five_bar")
    robot = sl.Dynamics(model.drive("drive1"))
    drifted = near(robot, q, 1e-3, 6).reshape(2, 3, 4)
    v = np.ones(4)
    there, w = robot.project(drifted, v)
    assert there.shape == w.shape == (2, 3, 4)
    np.testing.assert_array_equal(there[..., 0], drifted[..., 0])
    np.testing.assert_array_equal(w[..., 0], 1.0)
    assert np.abs(robot.closure_error(there)).max() < 1e-13


@pytest.mark.slow
def test_a_state_too_far_for_projection_is_sent_to_assemble():
    robot = sl.Dynamics(zoo.four_bar(ground=5.0, crank=1.0, coupler=1.2, rocker=0.8))
    with says(StateError, "Projection closes small errors only; try robot.assemble(q)"):
        robot.project(np.array((0.3, 0.2, -0.1)))


# ---- independent DoF


@pytest.mark.parametrize("case", CASES)
def test_completed_velocities_and_accelerations_keep_the_loops_closed(case):
    robot, q = robot_of(case)
    chosen = robot.independent_coordinates(q)
    rates = np.random.default_rng(2).normal(size=len(chosen))
    v = robot.complete_velocity(q, rates, chosen)
    np.testing.assert_array_equal(v[list(chosen.dofs)], rates)
    J = robot.closure_jacobian(q)
    assert np.abs(J @ v).max() < 1e-12 * np.abs(J).max() * np.abs(v).max()
    a = robot.complete_acceleration(q, v, rates, chosen)
    np.testing.assert_array_equal(a[list(chosen.dofs)], rates)
    bias = robot.closure_bias(q, v)
    assert np.abs(J @ a + bias).max() < 1e-12 * (1.0 + np.abs(bias).max() + np.abs(J).max() * np.abs(a).max())
    np.testing.assert_allclose(robot.velocity_map(q, chosen) @ rates, v, atol=1e-12 * np.abs(v).max())


@pytest.mark.parametrize("case", CASES)
def test_mobility_is_what_the_mechanism_has(case):
    robot, q = robot_of(case)
    assert robot.mobility() == robot.mobility(q) == len(robot.independent_coordinates()) == CASES[case][3]


def test_actuated_joints_are_chosen_where_they_can_be():
    expected = {
        "four_bar": ("crank_hinge",),
        "five_bar": ("drive1", "drive2"),
        "stewart": tuple(f"slide{i}" for i in range(1, 7)),
        "delta": ("motor1", "motor2", "motor3"),
        "linkage_leg": ("knee", "left_motor", "right_motor"),
    }
    for case, names in expected.items():
        assert robot_of(case)[0].independent_coordinates().names == names


def test_joints_can_be_named():
    robot, q = robot_of("four_bar")
    assert robot.independent_coordinates(prefer=("rocker_hinge",)).names == ("rocker_hinge",)
    by_name = robot.complete_velocity(q, {"rocker_hinge": 2.0})
    np.testing.assert_allclose(by_name, robot.complete_velocity(q, [2.0], ["rocker_hinge"]))
    assert by_name[2] == 2.0
    many = robot.complete_velocity(q, {"rocker_hinge": np.ones(7)})
    np.testing.assert_allclose(many, np.tile(by_name / 2.0, (7, 1)))
    ankle, q = robot_of("linkage_leg")
    assert ankle.independent_coordinates(prefer=("ankle", "knee")).names == ("knee", "ankle[0]", "ankle[1]")
    v = ankle.complete_velocity(q, {"ankle": (0.1, -0.2), "knee": 1.0})
    np.testing.assert_allclose(v[:3], (1.0, 0.1, -0.2))


def test_what_cannot_be_independent_gets_its_sentence():
    robot, q = robot_of("four_bar")
    with says(InputError, "the loops leave 1 DoF, and it follows from the others"):
        robot.independent_coordinates(prefer=("crank_hinge", "rocker_hinge"))
    with says(InputError, "has no joint or DoF 'crank'; did you mean 'crank_hinge'?"):
        robot.independent_coordinates(prefer=("crank",))
    with says(
        InputError, "complete_velocity: 2 independent DoF are named (crank_hinge, rocker_hinge); the loops leave 1"
    ):
        robot.complete_velocity(q, [1.0, 2.0], ["crank_hinge", "rocker_hinge"])
    with says(InputError, "rates has shape (2,); expected (..., 1)"):
        robot.complete_velocity(q, [1.0, 2.0])


def test_dofs_that_do_not_determine_the_rest_are_reported():
    """At a dead centre of the slider-crank the slide does not tell which way the crank turns."""
    robot = robot_of("slider_crank")[0]
    dead = zoo.slider_crank_start(angle=0.0)
    with says(StateError, "complete_velocity: slide do not determine the other DoF at this state"):
        robot.complete_velocity(dead, {"slide": 1.0})
    assert robot.independent_coordinates(dead).names == ("crank_hinge",)
    with pytest.warns(SpanloopWarning, match="1 of 2 states has no answer"):
        v = robot.complete_velocity(np.stack((dead, zoo.slider_crank_start())), {"slide": 1.0})
    assert np.isnan(v[0]).all()
    assert np.isfinite(v[1]).all()


# ---- diagnosing


def test_redundant_rows_of_a_plane_loop_are_named():
    robot, q = robot_of("four_bar")
    found = robot.diagnose(q)
    assert found.redundant == ("closing: moment about x", "closing: moment about z", "closing: force along y")
    assert (found.n_rows, found.rank, found.mobility, found.general_mobility) == (5, 2, 1, 1)
    assert found.gap > 1e12
    assert found.closed
    assert not found.singular
    assert not found.near_singular
    assert str(found).splitlines()[2:5] == [
        "5 rows, 2 of them independent; the singular values show a gap of 1e15 or more.",
        "Redundant in this assembly: closing: moment about x, closing: moment about z, closing: force along y.",
        "Mobility 1 here and in general. Independent: crank_hinge.",
    ]


def test_a_diagnosis_is_of_one_state():
    robot, q = robot_of("four_bar")
    with says(InputError, "diagnose: q has shape (1, 3); expected one state (3,)"):
        robot.diagnose([q])
    with says(StateError, "diagnose: q[1] (joint 'coupler_hinge') is nan; every number must be finite"):
        robot.diagnose([0.0, np.nan, 0.0])


@pytest.mark.parametrize("case", CASES)
def test_a_start_is_closed_and_not_singular(case):
    robot, q = robot_of(case)
    found = robot.diagnose(q)
    assert found.closed
    assert not found.singular
    assert not found.near_singular
    assert (found.mobility, found.n_rows, found.rank) == CASES[case][3:]
    assert len(found.redundant) + len(found.redundant_here) == found.n_rows - found.rank
    assert "all of them independent" in str(found) or "Redundant" in str(found)


def test_a_folded_four_bar_is_singular_and_its_neighbours_are_near():
    lengths = {"ground": 2.0, "crank": 1.0, "coupler": 2.0, "rocker": 1.0}
    robot = sl.Dynamics(zoo.four_bar(**lengths))
    folded = robot.diagnose(np.zeros(3))
    assert folded.singular
    assert (folded.mobility, folded.general_mobility) == (2, 1)
    assert "SINGULAR: 1 independent row fewer than in general; " in str(folded)
    for angle in (1e-3, 1e-5, 1e-7):
        beside = robot.diagnose(zoo.four_bar_start(**lengths, angle=angle))
        assert beside.near_singular
        assert not beside.singular
        assert 0.1 * angle < beside.distance < 10.0 * angle
        assert "NEAR A SINGULARITY: the rows hardly resist a motion of rocker_hinge" in str(beside)
    assert not robot.diagnose(zoo.four_bar_start(**lengths, angle=1.0)).near_singular


def test_a_five_bar_flat_on_its_line_is_singular():
    """0.6 + 1.1 = 1.2 − 0.7 + 1.2: all links along x, where no joint moves the tips along x."""
    robot = robot_of("five_bar")[0]
    found = robot.diagnose(np.array((0.0, 0.0, np.pi, np.pi)))
    assert found.closed
    assert found.singular
    assert found.mobility == 3
    assert found.general_mobility == 2


def test_a_structure_has_mobility_zero():
    robot = sl.Dynamics(structure())
    q = robot.assemble(np.array((-1.0, -2.0)))
    assert robot.mobility() == robot.mobility(q) == 0
    assert "MOBILITY 0: the loops leave no motion; this is a structure." in str(robot.diagnose(q))
    assert robot.complete_velocity(q, np.zeros(0)).tolist() == [0.0, 0.0]
    assert robot.mass_matrix(q, coordinates="independent").shape == (0, 0)


def test_a_loop_of_fixed_joints_is_named():
    robot = sl.Dynamics(welded_twice())
    found = robot.diagnose([0.3])
    assert found.idle == ("second_weld",)
    assert found.mobility == 1
    assert "IDLE LOOP: no joint lies between the bodies of 'second_weld'; its rows constrain nothing." in str(found)
    np.testing.assert_array_equal(robot.assemble([0.3]), [0.3])
    with says(
        StateError,
        "assemble: loop 'second_weld', between 'arm' and 'plate', is open by 0.1 m, "
        "and no joint lies between its bodies. Move one of its frames",
    ):
        sl.Dynamics(welded_twice(0.1)).assemble([0.3])


def test_parts_that_only_the_world_joins_are_told_apart():
    robot = sl.Dynamics(two_parts())
    q = robot.assemble(np.zeros(6))
    found = robot.diagnose(q)
    assert [part.mobility for part in found.parts] == [1, 1]
    assert found.independent.names == ("turn_a", "turn_b")
    assert "2 PARTS that only the world joins: turn_a, tilt_a, slide_a (mobility 1); turn_b," in str(found)


def test_a_coupling_is_a_closure():
    robot = sl.Dynamics(gripper())
    q = robot.assemble([0.5, 0.0])
    assert q[1] == pytest.approx(0.3 - q[0], abs=1e-14)
    assert robot.assemble([0.5, 0.0], fixed=("left_hinge",)).tolist() == pytest.approx([0.5, -0.2])
    assert robot.mobility() == 1
    np.testing.assert_allclose(robot.complete_velocity(q, {"left_hinge": 2.0}), (2.0, -2.0))
    text = str(robot.diagnose([0.5, 0.0]))
    assert "gripper: 0 loops and 1 coupling on 2 DoF." in text
    assert "NOT CLOSED: coupling 'mirror', of joint 'right_hinge' to 'left_hinge', is open by 0.2 rad." in text
    with says(StateError, "coupling 'mirror', of joint 'right_hinge' to 'left_hinge', stays open by 0.2 rad"):
        robot.assemble([0.5, 0.0], fixed=("left_hinge", "right_hinge"))


def test_a_tree_has_sensible_answers():
    robot = sl.Dynamics(zoo.puma())
    q, v = zoo.puma().random_state(1)
    np.testing.assert_array_equal(robot.assemble(q), q)
    np.testing.assert_array_equal(robot.project(q, v)[1], v)
    np.testing.assert_array_equal(robot.complete_velocity(q, v), v)
    np.testing.assert_array_equal(robot.complete_acceleration(q, v, v), v)
    assert robot.mobility() == robot.mobility(q) == 6
    assert str(robot.diagnose(q)) == f"{robot.model.name}: no loops. Mobility 6: every DoF is independent."
    np.testing.assert_allclose(robot.mass_matrix(q, coordinates="independent"), robot.mass_matrix(q))


@pytest.mark.slow
def test_a_misaligned_axis_is_accepted_and_reported():
    """A closing hinge tilted by 1e-5 rad: its rows contradict each other by that much."""
    tilted = zoo.four_bar(closure=sl.joints.Revolute((1e-5, -1.0, 0.0)))
    robot, q = sl.Dynamics(tilted), zoo.four_bar_start()
    with pytest.warns(SpanloopWarning, match="'closing: moment about x' stays open by 0.0076 mrad"):
        robot.assemble(q)
    assert np.abs(robot.closure_error(robot.assemble(q, tolerance=1e-5))).max() < 1e-5
    found, aligned = robot.diagnose(q), robot_of("four_bar")[0]
    assert (found.mobility, len(found.redundant)) == (1, 3)
    v = robot.complete_velocity(q, {"crank_hinge": 1.0})
    np.testing.assert_allclose(v, aligned.complete_velocity(q, {"crank_hinge": 1.0}), atol=1e-4)
    np.testing.assert_allclose(robot.project(q), q, atol=1e-4)


def test_single_precision_and_the_python_target_agree_with_double():
    q = zoo.four_bar_start()
    guess = q + 0.1
    expected = robot_of("four_bar")[0].assemble(guess)
    single, floats = sl.Dynamics(zoo.four_bar(), dtype="float32"), sl.Dynamics(zoo.four_bar(), target="python")
    np.testing.assert_allclose(floats.assemble(guess), expected, atol=1e-10)
    np.testing.assert_allclose(single.assemble(guess), expected, atol=1e-4)
    assert single.diagnose(single.assemble(guess)).closed
    assert floats.diagnose(expected).closed


# ---- effective inertia


@pytest.mark.parametrize("case", CASES)
def test_energy_is_that_of_the_independent_mass_matrix(case):
    robot, q = robot_of(case)
    chosen = robot.independent_coordinates()
    rates = np.random.default_rng(3).normal(size=len(chosen))
    v = robot.complete_velocity(q, rates)
    M = robot.mass_matrix(q, coordinates="independent")
    energy = 0.5 * v @ robot.mass_matrix(q) @ v
    assert 0.5 * rates @ M @ rates == pytest.approx(energy, rel=1e-12)
    if not any(any(j.armature) for j in robot.model.joints):
        assert robot.energy(q, v)[0] == pytest.approx(energy, rel=1e-10)


def test_the_independent_mass_matrix_takes_batches_and_out():
    robot, q = robot_of("five_bar")
    states = robot.assemble(near(robot, q, 0.2, 6)).reshape(2, 3, 4)
    robot.mass_matrix(q)  # from here on the attribute is the compiled call
    many = robot.mass_matrix(states, coordinates="independent")
    assert many.shape == (2, 3, 2, 2)
    out = np.empty((2, 2))
    assert robot.mass_matrix(states[1, 2], coordinates="independent", out=out) is out
    np.testing.assert_allclose(out, many[1, 2], rtol=1e-12)
    with says(InputError, "mass_matrix: coordinates is 'independend'; did you mean 'independent'?"):
        robot.mass_matrix(q, coordinates="independend")


def dense_inverse_mass(model, q):
    """Accelerations due to torques, from the equations [M −Jᵀ; J 0] solved by least squares."""
    reference = ClosedReference(model, q)
    M, J = np.array(reference.mass_matrix(), dtype=float), np.array(reference.closure_jacobian(), dtype=float)
    n, m = len(M), len(J)
    K = np.block([[M, -J.T], [J, np.zeros((m, m))]])
    return np.linalg.lstsq(K, np.eye(n + m)[:, :n], rcond=1e-11)[0][:n]


@pytest.mark.parametrize(
    ("case", "frames"),
    [("stewart", ["platform"]), ("four_bar", ["coupler_tip"]), ("linkage_leg", ["sole", "shank"])],
)
def test_operational_inertia_agrees_with_dense_equations(case, frames):
    robot, q = robot_of(case)
    found = robot.operational_inertia(q, frames)
    J = np.concatenate([robot.jacobian(q, frame) for frame in frames])
    expected = J @ dense_inverse_mass(robot.model, q) @ J.T
    np.testing.assert_allclose(found.inverse, expected, atol=1e-10 * np.abs(expected).max())
    assert bool(found.regular) == (case == "stewart")
    if found.regular:
        np.testing.assert_allclose(found.matrix, np.linalg.inv(expected), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        found.inverse @ found.matrix @ found.inverse, found.inverse, atol=1e-9 * np.abs(expected).max()
    )


@pytest.mark.slow
def test_operational_inertia_takes_batches():
    robot, q = robot_of("stewart")
    states = robot.assemble(near(robot, q, 0.05, 4))
    many = robot.operational_inertia(states, "platform")
    assert many.matrix.shape == (4, 6, 6)
    assert many.regular.tolist() == [True] * 4
    np.testing.assert_allclose(many.matrix[2], robot.operational_inertia(states[2], "platform").matrix, rtol=1e-9)


def test_forces_meet_the_operational_inertia_of_the_closed_mechanism():
    """A force at the coupler's tip and the acceleration it adds there, through forward_dynamics."""
    robot, q = robot_of("five_bar")
    v, force = np.zeros(4), np.array((0.0, 0.0, 0.3, 1.0, -2.0, 0.0))
    without = robot.forward_dynamics(q, v, np.zeros(4))
    with_force = robot.forward_dynamics(q, v, np.zeros(4), forces={"far1": force})
    added = robot.jacobian(q, "far1") @ (with_force - without)
    np.testing.assert_allclose(robot.operational_inertia(q, "far1").inverse @ force, added, atol=1e-10)


def test_nothing_warns_on_good_states():
    robot, q = robot_of("bricard")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot.assemble(q)
        robot.project(q, np.ones(5))
        robot.diagnose(q)
        robot.operational_inertia(q, robot.model.bodies[-1].name)


# ---- loops that constrain velocities alone


def general_five_bar() -> sl.Model:
    """The five-bar whose hinge at the meeting point is a general joint: its rows constrain velocities."""
    model, hinge = zoo.five_bar(), sl.joints.General(((0.0, 0.0, 1.0, 0.0, 0.0, 0.0),))
    return replace(model, loops=tuple(replace(x, kind=hinge) for x in model.loops))


def test_a_motion_is_not_followed_through_a_loop_that_constrains_velocities_alone():
    """Positions did not follow while velocities did: the tips ended 0.24 m apart."""
    q, t = zoo.five_bar_start(), np.linspace(0.0, 0.3, 11)
    path = {name: (q[k] + t, np.ones(11), np.zeros(11)) for name, k in (("drive1", 0), ("drive2", 2))}
    finger = zoo.arms_with_object(2, grasp="soft_finger")
    with says(UnsupportedError, "follow: loop 'meeting' has rows that constrain velocities alone"):
        sl.Dynamics(general_five_bar()).follow(q, path)
    with says(UnsupportedError, "follow: loop 'holding1' has rows that constrain velocities alone"):
        sl.Dynamics(finger).follow(zoo.arms_with_object_start(2, grasp="soft_finger"), {})
    with says(UnsupportedError, "minimal_coordinates: loop 'meeting' has rows that constrain velocities alone"):
        sl.Dynamics(general_five_bar()).minimal_coordinates(q)


def test_a_loop_that_constrains_velocities_alone_is_not_called_closed():
    robot, q = sl.Dynamics(general_five_bar()), zoo.five_bar_start()
    text = str(robot.diagnose(q))
    assert "No position closes or opens 'meeting'" in text
    assert "closed exactly" not in text
    with pytest.warns(SpanloopWarning, match="assemble: 'meeting' constrains velocities alone"):
        np.testing.assert_array_equal(robot.assemble(q + 0.1), q + 0.1)


def test_velocities_and_accelerations_are_not_completed_at_an_open_state():
    robot, q = robot_of("four_bar")
    v = robot.complete_velocity(q, {"crank_hinge": 1.0})
    with says(StateError, "complete_velocity: loop 'closing'") as error:
        robot.complete_velocity(q + 0.1, {"crank_hinge": 1.0})
    assert error.value.reason is Reason.OPEN_LOOP
    with says(StateError, "complete_acceleration: loop 'closing'"):
        robot.complete_acceleration(q + 0.1, v, {"crank_hinge": 1.0})
    with pytest.warns(SpanloopWarning, match="1 of 2 states has no answer"):
        found = robot.complete_velocity(np.stack([q, q + 0.1]), {"crank_hinge": 1.0})
    assert np.isfinite(found).all(axis=1).tolist() == [True, False]
