"""The step of fourth order, and what a free flight keeps."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.simulation.free_flight import fly
from spanloop.simulation.runge_kutta import step


def end_of_flight(model, h):
    robot = sl.Dynamics(model)
    q, v = model.random_state(3)
    flight = fly(robot, q, v, 0.32, h)
    return np.concatenate([flight.q[-1], flight.v[-1]])


@pytest.mark.parametrize(
    "model",
    [
        sl.zoo.quadruped().without_losses(),
        sl.zoo.star(3).without_losses(),  # free and spherical joints
        sl.zoo.chain(2, "planar"),
        sl.zoo.chain(2, "general"),
    ],
    ids=lambda m: m.name,
)
def test_halving_the_step_divides_the_error_by_sixteen(model):
    """Differences of successive halvings shrink by 2⁴; half an order of slack for the next term."""
    coarse, middle, fine = (end_of_flight(model, h) for h in (8e-3, 4e-3, 2e-3))
    ratio = np.abs(coarse - middle).max() / np.abs(middle - fine).max()
    assert 3.5 < np.log2(ratio) < 4.6


def test_a_step_without_acceleration_follows_a_constant_velocity():
    model = sl.zoo.star(1)
    robot = sl.Dynamics(model)
    q, v = model.random_state(1)
    q1, v1 = step(lambda q, v: np.zeros_like(v), robot.integrate, q, v, 0.1)
    np.testing.assert_allclose(q1, robot.integrate(q, 0.1 * v), atol=1e-15)
    np.testing.assert_array_equal(v1, v)


def test_a_flight_keeps_energy_and_momentum():
    """Drift at 1 ms is about 1e-9 of what is at stake; a wrong term would be beyond 1e-6."""
    model = sl.zoo.quadruped().without_losses()
    q, v = model.random_state(5)
    flight = fly(sl.Dynamics(model), q, v, 0.5, 1e-3)
    assert flight.energy_drift < 1e-7 * flight.tumbling_energy
    assert flight.angular_drift < 1e-7 * np.linalg.norm(flight.momentum[0, :3])
    assert flight.linear_drift < 1e-7 * np.linalg.norm(flight.momentum[0, 3:])


def test_tumbling_energy_does_not_depend_on_the_throw():
    model = sl.zoo.star(2)
    robot = sl.Dynamics(model)
    q, v = model.random_state(2)
    faster = v.copy()
    faster[3:6] += (3.0, -1.0, 2.0)
    slow, fast = (fly(robot, q, x, 1e-3, 1e-3).tumbling_energy for x in (v, faster))
    assert fast == pytest.approx(slow, rel=1e-12)


def test_a_duration_must_be_positive():
    model = sl.zoo.star(1)
    q, v = model.random_state(0)
    with pytest.raises(sl.SpanloopError, match=r"duration is -1 s; must be > 0"):
        fly(sl.Dynamics(model), q, v, -1.0, 1e-3)
