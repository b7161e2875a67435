"""The step of fourth order."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from motions import integrated
from spanloop.simulation.runge_kutta import step


def end_of_flight(model, h):
    run = integrated(model, *model.random_state(3), 0.32, h)
    return np.concatenate([run.q[-1], run.v[-1]])


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
