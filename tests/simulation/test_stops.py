"""Stops at the limits of joints: rows that push and never pull."""

import numpy as np
import pytest

import spanloop as sl
from spanloop.simulation.problem import Problem
from spanloop.simulation.termination import singular_end


def rod(**limits):
    body = sl.Builder("rod").body("link", 1.0, (0.5, 0.0, 0.0), (0.1, 0.1, 0.1))
    return body.revolute("hinge", "world", "link", "y", **limits).build()


def test_a_joint_comes_to_rest_on_a_stop():
    """The rod falls on its upper limit, and stays there."""
    run = sl.simulate(rod(lower=-1.0, upper=0.3), duration=3.0, limits="stop")
    assert run.outcome.finished
    assert run.settings["limits"] == "stop"
    assert [(e.kind, e.name) for e in run.events] == [("attach", "hinge::stop")]
    free = sl.simulate(rod(), duration=3.0, events=lambda t, q, v: 0.3 - q[0])
    assert run.events.time[0] == pytest.approx(free.outcome.time, abs=1e-12)
    assert run.events.energy_lost[0] == pytest.approx(9.81 * 0.5 * np.sin(0.3), abs=1e-9)
    assert (run.q[-1, 0], run.v[-1, 0]) == (0.3, pytest.approx(0.0, abs=1e-30))


def test_a_motion_is_that_without_stops_before_it_touches_one():
    free = sl.simulate(rod(), duration=0.1)
    held = sl.simulate(rod(lower=-1.0, upper=0.3), duration=0.1, limits="stop")
    np.testing.assert_allclose(held.q, free.q, atol=1e-14)


def test_a_joint_that_starts_beyond_its_limit_is_held_where_it_is():
    run = sl.simulate(rod(lower=-1.0, upper=0.3), [0.5], duration=1.0, limits="stop")
    np.testing.assert_allclose(run.q[:, 0], 0.5)


def test_stops_leave_a_joint_that_is_pulled_away():
    """A torque lifts the rod from its stop, at the moment at which it carries the weight."""
    weight = 9.81 * 0.5 * np.cos(0.3)

    def lifted(t, q, v):
        return [-2.0 * weight * t]

    run = sl.simulate(rod(lower=-1.0, upper=0.3), [0.3], duration=1.0, limits="stop", controller=lifted)
    assert [e.kind for e in run.events] == ["attach", "release"]
    assert run.events.time[1] == pytest.approx(0.5, abs=1e-10)


@pytest.mark.slow
def test_coupled_joints_come_to_rest_on_their_stops():
    model = sl.zoo.pendulum(3)
    for j in model.joints:
        model = model.with_joint(j.name, lower=0.2, upper=0.6, damping=0.1)
    run = sl.simulate(model, [0.5, 0.5, 0.5], duration=5.0, step=5e-3, limits="stop")
    assert run.outcome.finished
    assert np.abs(run.v[-1]).max() < 1e-9
    np.testing.assert_allclose(run.q[-1], 0.2, atol=1e-12)


def test_a_joint_bounces_off_its_stop():
    """Each impact returns the rod with half of its speed, and a quarter of its energy."""
    run = sl.simulate(rod(lower=-1.0, upper=0.3), duration=2.0, events=[sl.events.Stop("hinge", restitution=0.5)])
    assert run.outcome.finished
    bounces = [e for e in run.events if e.kind == "impact"]
    for e in bounces:
        assert e.v_after[0] == pytest.approx(-0.5 * e.v_before[0], rel=1e-12)
    energy = 9.81 * 0.5 * np.sin(0.3)
    assert [e.energy_lost for e in bounces[:3]] == pytest.approx([0.75 * energy / 4**k for k in range(3)], rel=1e-8)
    assert run.events.kind[-1] == "attach"
    assert run.q[-1, 0] == 0.3


def test_stops_of_some_joints_leave_the_limits_of_others_as_they_are():
    model = sl.zoo.pendulum(2).with_joint("hinge1", lower=-0.2, upper=0.5).with_joint("hinge2", lower=-0.4, upper=0.4)
    run = sl.simulate(model, [0.4, 0.3], duration=3.0, events=[sl.events.Stop("hinge1", restitution=0.9)])
    assert (run.outcome.reason, run.events.kind[0], run.events.name[0]) == ("limit", "impact", "hinge1::stop")
    both = sl.simulate(model, [0.4, 0.3], duration=3.0, events=[sl.events.Stop("hinge*", restitution=0.9)])
    assert both.outcome.finished


@pytest.mark.parametrize(
    ("stop", "words"),
    [
        ("elbow", r"Stop\('elbow'\): there is no joint with limits of this name"),
        ("hinge2", r"Stop\('hinge2'\): no stop can be at this joint: it has no limits"),
    ],
)
def test_stops_of_joints_without_limits_are_refused(stop, words):
    model = sl.zoo.pendulum(2).with_joint("hinge1", lower=-0.2, upper=0.5)
    with pytest.raises(sl.errors.InputError, match=words):
        sl.simulate(model, duration=1.0, events=[sl.events.Stop(stop)])


@pytest.mark.parametrize("integrator", ["rk4", "DOP853"])
def test_stops_of_joints_of_several_degrees_of_freedom_alone_are_springs(integrator):
    """Without any joint whose stops are exact."""
    b = sl.Builder("swing").body("bob", 1.0, (0.0, 0.0, -0.5), (0.02, 0.03, 0.025))
    model = b.universal("hinge", "world", "bob", limits=([-0.3, -0.4], [0.3, 0.4])).build()
    run = sl.simulate(model, [0.2, 0.1], [3.0, 2.0], duration=0.5, limits="stop", integrator=integrator)
    assert run.outcome.reason == "finished"
    reached = np.abs(run.q).max(axis=0)
    assert (reached > [0.3, 0.4]).all()  # without stops 0.8 and 0.48
    assert (reached < [0.31, 0.41]).all()  # the springs yield by millirad


@pytest.mark.parametrize(
    ("touches", "there"), [(False, "see robot.diagnose(q) there"), (True, "joints on their stops: crank_hinge; ")]
)
def test_a_singular_end_names_stops_only_where_joints_touch_them(touches, there):
    model = sl.zoo.four_bar().with_joint("crank_hinge", limits=(-2.0, 2.0))
    problem = Problem.of(sl.Dynamics(model), sl.zoo.four_bar_start(), None, limits="stop")
    on = np.full(len(problem.system.switching.switches), float(touches))
    sentence = singular_end(problem, 0.1, 1e-9, on).sentence
    assert f"(margin 1.0e-09); {there}" in sentence
    assert "switchable" not in sentence  # the model has no such loop
