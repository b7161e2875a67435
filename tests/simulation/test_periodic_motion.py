"""Mechanisms led along a course: the course is followed, with the torques that were foreseen."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError
from spanloop.simulation.control.periodic_motion import Periodic, lead

PERIOD = 4.0


def test_harmonics_go_through_a_sum_of_harmonics_and_its_derivative():
    def course(t):
        w = 2.0 * pi / PERIOD * t
        return [0.3 + sin(w) - 0.2 * cos(3.0 * w), 2.0 * cos(2.0 * w)]

    def rate(t):
        w, k = 2.0 * pi / PERIOD * t, 2.0 * pi / PERIOD
        return [k * cos(w) + 0.6 * k * sin(3.0 * w), -4.0 * k * sin(2.0 * w)]

    found = Periodic.through(np.array([course(PERIOD * k / 16) for k in range(16)]), PERIOD, 4)
    for t in (0.0, 0.77, 3.1, 9.0):
        np.testing.assert_allclose(found(t), course(t), atol=1e-13)
        np.testing.assert_allclose(found.rate()(t), rate(t), atol=1e-13)


def rocking(t):
    """The crank of the four-bar to and fro [rad]."""
    return 1.2 + 0.4 * sin(2.0 * pi / PERIOD * t)


def four_bar():
    return sl.zoo.four_bar(), sl.zoo.four_bar_start(angle=1.2)


def test_a_led_linkage_needs_no_correction():
    """Foreseen torques alone, without springs and dampers, keep to the course for a period."""
    model, start = four_bar()
    name = model.joints[0].name
    robot = sl.Dynamics(model)
    led = lead(robot, start, lambda t: {name: [rocking(t)]}, PERIOD, stiffness=0.0, damping=0.0)
    run = sl.simulate(robot, led.q, led.v, duration=PERIOD, controller=led.control)
    np.testing.assert_allclose(run[name].q, [rocking(t) for t in run.times], atol=1e-6)
    assert run.closure_residual.max() < 1e-12


@pytest.mark.slow
def test_a_led_object_comes_back_and_its_loops_stay_closed():
    model, start = sl.zoo.three_pumas(), sl.zoo.three_pumas_start()

    def course(t):
        w = 2.0 * pi / PERIOD * t
        return {"floating": [1.0, 0.0, 0.0, 0.0, 0.1 * sin(w), 0.05 * sin(2.0 * w), 1.0 + 0.05 * (1.0 - cos(w))]}

    robot = sl.Dynamics(model)
    led = lead(robot, start, course, PERIOD)
    run = sl.simulate(robot, led.q, led.v, duration=PERIOD, sample=2e-3, controller=led.control)
    wanted = np.array([course(t)["floating"][4:] for t in run.times])
    np.testing.assert_allclose(run["object"].position, wanted, atol=1e-4)
    assert run.audit().well


@pytest.mark.slow
def test_torques_are_the_smallest_that_do_it():
    """Any other torques of the same power in every allowed motion are larger: they are in the range of the map."""
    model, start = sl.zoo.three_pumas(), sl.zoo.three_pumas_start()
    robot = sl.Dynamics(model)
    led = lead(robot, start, lambda t: {"floating": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]}, PERIOD)
    tau = np.zeros(model.nv)
    own = [model.v_slice(j).start for j in led.joints]
    tau[own] = led.torques(0.0)
    np.testing.assert_allclose(robot.forward_dynamics(start, np.zeros(model.nv), tau), 0.0, atol=1e-9)
    T = robot.velocity_map(start)[own]
    np.testing.assert_allclose(T @ np.linalg.lstsq(T, tau[own], rcond=None)[0], tau[own], atol=1e-9)


def test_what_cannot_be_led_says_so():
    model = sl.Builder("ball").body("a", 1.0, inertia=(1, 1, 1)).free("floating", "world", "a").build()
    with says(InputError, "lead: model 'ball' has no actuated hinges or slides"):
        lead(sl.Dynamics(model), model.neutral(), lambda t: {}, 1.0)


@pytest.mark.parametrize("t", [0.0, 1.3])
def test_control_is_by_joint_name(t):
    model, start = four_bar()
    robot = sl.Dynamics(model)
    led = lead(robot, start, lambda t: {model.joints[0].name: [rocking(t)]}, PERIOD)
    q = dict(zip(led.joints, led.angles(t), strict=True))
    v = dict(zip(led.joints, led.angles.rate()(t), strict=True))
    np.testing.assert_allclose([led.control(t, q, v)[j] for j in led.joints], led.torques(t), atol=1e-12)
