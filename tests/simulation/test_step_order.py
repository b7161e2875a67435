"""The order of the steps, on joints whose coordinates are no vector space."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl

MODELS = [
    sl.zoo.quadruped().without_losses(),
    sl.zoo.star(3).without_losses(),  # free and spherical joints
    sl.zoo.chain(2, "planar"),
    sl.zoo.chain(2, "general"),
]


def end_of_flight(model, method, h):
    q, v = model.random_state(3)
    run = sl.simulate(model, q, v, duration=0.32, step=h, integrator=method, limits="ignore")
    return np.concatenate([run.q[-1], run.v[-1]])


@pytest.mark.parametrize(
    ("method", "order", "h"), [("rk4", 4, 8e-3), ("midpoint", 2, 2e-3), ("implicit", 2, 1e-3), ("euler", 1, 1e-3)]
)
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_halving_the_step_divides_the_error_as_the_order_says(model, method, order, h):
    """Differences of successive halvings shrink by 2 to the order; half an order of slack for the next term."""
    coarse, middle, fine = (end_of_flight(model, method, k * h) for k in (1.0, 0.5, 0.25))
    ratio = np.abs(coarse - middle).max() / np.abs(middle - fine).max()
    assert order - 0.5 < np.log2(ratio) < order + 0.6
