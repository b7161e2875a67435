"""Steps without a known end: the same numbers as sl.simulate, however they are cut."""

from __future__ import annotations

import numpy as np

import spanloop as sl
from spanloop.simulation.stepper import Moment, Stepper


def passive(n):
    return lambda t, q, v, u: [0.0] * n


def test_stretches_give_what_one_simulation_gives():
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    robot = sl.Dynamics(model)
    v = robot.complete_velocity(q, {"crank_hinge": 2.0})
    stepper = Stepper(robot, q, passive(model.nv), 0)
    now = Moment(0.0, q, v)
    for count in (1, 7, 42, 50):
        now, outcome = stepper.advanced(now, count, [])
        assert outcome.finished
    run = sl.simulate(robot, q, v, duration=0.1, step=1e-3, controller=lambda t, q, v: [0.0] * model.nv)
    # the start is projected once by simulate, after which every step is the same one
    np.testing.assert_allclose(now.q, run.q[-1], rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(now.v, run.v[-1], rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(now.time, 0.1)
    assert now.residual <= 1e-12


def test_inputs_can_change_from_stretch_to_stretch():
    model = sl.zoo.pendulum()
    robot = sl.Dynamics(model)
    stepper = Stepper(robot, model.neutral(), lambda t, q, v, u: [u[0]] + [0.0] * (model.nv - 1), 1)
    rest = Moment(0.0, model.neutral(), np.zeros(model.nv))
    pushed, _ = stepper.advanced(rest, 10, [1.0])
    pulled, _ = stepper.advanced(rest, 10, [-1.0])
    assert pushed.v[0] - pulled.v[0] > 1e-3


def test_a_motion_that_is_lost_says_why():
    model = sl.zoo.pendulum()
    robot = sl.Dynamics(model)
    stepper = Stepper(robot, model.neutral(), lambda t, q, v, u: [u[0]] + [0.0] * (model.nv - 1), 1)
    _, outcome = stepper.advanced(Moment(0.0, model.neutral(), np.zeros(model.nv)), 5, [np.inf])
    assert not outcome.finished
    assert outcome.sentence
