"""Loops as files have them: rounded numbers leave redundant rows open, and limits keep loops open."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, SpanloopWarning, StateError
from spanloop.model.solid_inertia import rod

GUESS = [-0.9, 0.8, -1.6, 0.0]


def four_bar(offset=0.0, tilt=0.0, most=None):
    """A four-bar in the x-z plane and a pendulum at its limit; the rocker's hinge is a little out of the plane.

    offset [m] and tilt [rad] of that hinge, as rounding leaves them; most: the limits of its angle [rad].
    """
    b = sl.Builder("rounded")
    for name, length in (("crank", 0.4), ("coupler", 1.0), ("rocker", 0.8), ("pendulum", 0.5)):
        b.body(name, 1.0, (length / 2, 0, 0), rod(1.0, length))
    limits = {} if most is None else {"lower": -most, "upper": most}
    b.revolute("a", "world", "crank", "y").revolute("b", "crank", "coupler", "y", (0.4, 0, 0))
    b.revolute("c", "world", "rocker", (tilt, 1.0, 0.0), (0.9, offset, 0), **limits)
    b.revolute("other", "world", "pendulum", "y", (3.0, 0, 0), lower=0.0)
    b.frame("end", "coupler", (1.0, 0, 0)).frame("tip", "rocker", (0.8, 0, 0))
    return b.loop("tip", "end", sl.joints.Revolute((0.0, 1.0, 0.0)), name="d").build()


@pytest.mark.slow
@pytest.mark.parametrize(("offset", "tilt"), [(4.1e-9, 0.0), (2e-6, 0.0), (1e-7, 1e-7), (0.0, 3e-6)])
def test_a_loop_that_a_rounded_file_leaves_open_is_assembled_with_a_note(offset, tilt):
    robot = sl.Dynamics(four_bar(offset, tilt))
    with pytest.warns(SpanloopWarning, match=r"assemble: 'd: .* stays open by .* m(m|rad).*: redundant, no joint"):
        q = robot.assemble(GUESS)
    kept = [k for k, name in enumerate(robot.diagnose(q).rows) if name.endswith(("along x", "along z"))]
    e = robot.closure_error(q)
    assert np.abs(e[kept]).max() < 1e-12 < np.abs(e).max() < 3.0 * (offset + tilt)


@pytest.mark.slow
def test_the_audit_of_a_rounded_loop_is_well_and_states_the_error_of_the_model():
    model = four_bar(4.1e-7, 1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = sl.simulate(model, sl.Dynamics(model).assemble(GUESS), duration=0.1, limits="ignore")
    audit = run.audit()
    assert audit["closure"].verdict == audit["closure velocity"].verdict == "well"
    assert audit["closure"].value < 1e-12 < 4e-7 < run.residual
    assert "the model's own numbers" in audit["closure"].sentence


@pytest.mark.slow
def test_a_loop_that_opens_beyond_the_error_of_its_model_is_not_well():
    model = four_bar(4.1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q = sl.Dynamics(model).assemble(GUESS)
        v = sl.Dynamics(model).complete_velocity(q, {"a": 2.0, "other": 0.0})
        run = sl.simulate(model, q, v, duration=0.5, integrator="euler", closures="none", limits="ignore")
    assert run.audit()["closure"].verdict == "not well"


@pytest.mark.slow
@pytest.mark.parametrize("offset", [4e-6, 2e-5])
def test_a_loop_that_is_open_by_more_than_a_step_may_leave_moves_along_the_other_rows(offset):
    model = four_bar(offset)
    robot = sl.Dynamics(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q = robot.assemble(GUESS)
        run = sl.simulate(robot, q, duration=0.02, limits="ignore")
    assert run.outcome.reason == "finished"
    assert run.residual > 1e-6
    exact = sl.simulate(four_bar(), sl.Dynamics(four_bar()).assemble(GUESS), duration=0.02, limits="ignore")
    np.testing.assert_allclose(run.q[-1], exact.q[-1], atol=1e-9)
    found = robot.diagnose(q)
    assert found.closed
    assert "'d: force along y' stays open by" in str(found)


def test_a_start_that_is_closed_as_far_as_joints_can_gets_no_note():
    model = four_bar(1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q = sl.Dynamics(model).assemble(GUESS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "note" not in sl.simulate(model, q, duration=0.002, limits="ignore").settings


def test_advice_on_an_open_loop_names_joints_of_that_loop_only():
    with pytest.raises(StateError) as caught:
        sl.Dynamics(four_bar(most=0.3)).assemble(GUESS, fixed=["other"])
    text = str(caught.value)
    assert "loop 'd', between 'rocker' and 'coupler', stays open by" in text
    assert "Widen the limits of 'c', try another guess" in text
    assert "'other'" not in text


def test_a_loop_that_closes_beyond_limits_alone_says_where_and_can_be_allowed():
    robot = sl.Dynamics(four_bar(most=0.3))
    with says(StateError, "outside -0.3 to 0.3; limits='ignore' allows that"):
        robot.assemble(GUESS)
    q = robot.assemble(GUESS, limits="ignore")
    assert np.abs(robot.closure_error(q)).max() < 1e-12
    assert abs(q[2]) > 0.3
    with says(InputError, "assemble: limits is 'no'; expected 'keep' or 'ignore'"):
        robot.assemble(GUESS, limits="no")


def test_a_run_starts_beyond_limits_where_its_loops_close_nowhere_else():
    with pytest.warns(SpanloopWarning, match="joint 'c' starts at .* beyond its .* limit"):
        run = sl.simulate(four_bar(most=0.3), duration=0.002, limits="end")
    assert run.residual < 1e-12


def test_one_state_never_waits_for_a_kernel_of_batches():
    robot = sl.Dynamics(sl.zoo.five_bar())
    q = robot.assemble(sl.zoo.five_bar_start() + 0.05)
    robot.diagnose(q)
    robot.project(q[None], np.zeros((1, robot.model.nv)))
    robot.forward_dynamics(q[None], np.zeros((1, robot.model.nv)), np.zeros(robot.model.nv))
    made = [kernel.name for kernel in robot._kernels.values() if "_batch" in vars(kernel)]
    assert not made
    many = robot.forward_dynamics(np.tile(q, (9, 1)), np.zeros(robot.model.nv), np.zeros(robot.model.nv))
    one = robot.forward_dynamics(q[None], np.zeros(robot.model.nv), np.zeros(robot.model.nv))
    np.testing.assert_array_equal(many[:1], one)


def test_a_batch_of_one_state_without_an_answer_is_a_row_of_nan():
    robot = sl.Dynamics(sl.zoo.five_bar())
    with pytest.warns(SpanloopWarning, match="1 of 1 states has no answer"):
        found = robot.forward_dynamics(np.full((1, robot.model.nq), 0.3), np.zeros(robot.model.nv), np.zeros(4))
    assert np.isnan(found).all()
    assert found.shape == (1, robot.model.nv)


def test_a_massless_mechanism_with_a_coupling_is_projected_and_refused_by_name():
    b = sl.Builder("fingers")
    for name in ("left", "right"):
        b.body(name, 0.0)
        b.prismatic(f"{name}_slide", "world", name, "y")
    robot = sl.Dynamics(b.coupling("mimic", "right_slide", "left_slide", -1.0).build())
    q, v = robot.project([0.1, -0.1], [1.0, 0.0])
    np.testing.assert_allclose(v, [0.5, -0.5])
    assert robot.diagnose(q).mobility == 1
    with says(StateError, "operational_inertia: a motion of right_slide, left_slide that the loops allow moves no in"):
        robot.operational_inertia(q, "left")
    with says(StateError, "joint 'right_slide' (body 'right')"):
        robot.forward_dynamics(q, v, [0.0, 0.0])
