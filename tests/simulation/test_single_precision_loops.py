"""Loops in single precision near a singular position: right, or ended with the reason."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.trajectory.segment import EndReason


def parallelogram() -> sl.Model:
    """A four-bar that comes to a change point where its bars are in line."""
    b = sl.Builder("parallelogram")
    for name, length in (("a", 0.3), ("b", 0.8), ("c", 0.3)):
        b.body(name, mass=1.0, center=(length / 2, 0, 0), inertia=(0.001, 0.01, 0.01))
    b.revolute("A", "world", "a", "y", damping=0.01).revolute("B", "a", "b", "y", (0.3, 0, 0))
    b.revolute("C", "world", "c", "y", (0.8, 0, 0))
    b.revolute("D", "c", "b", "y", (0.3, 0, 0), child_position=(0.8, 0, 0))
    return b.build().with_gravity((0, 0, 0))


@pytest.mark.slow
def test_crossings_of_a_change_point_end_before_rounding_decides_the_motion():
    rng, n, model = np.random.default_rng(3), 200, parallelogram()
    angle = rng.uniform(0.05, 0.3, n) * rng.choice([-1, 1], n)
    rate = -np.sign(angle) * rng.uniform(0.5, 8.0, n)
    q, v = (np.stack([x, -x, x], axis=1) for x in (angle, rate))
    how = {"duration": 0.4, "step": 1e-3, "integrator": sl.Integrator("rk4", dtype="float32")}
    run = sl.simulate(model, q, v, **how)
    energy = run.energy.sum(axis=-1)
    ended = [o.reason for o in run.outcomes if o.reason is not EndReason.FINISHED]
    assert ended  # many: double precision passes
    assert set(ended) == {EndReason.SINGULAR}
    lost = energy / energy[:, :1] - 1.0  # damping takes some; nothing adds any
    assert np.nanmax(lost) < 1e-4
    assert np.nanmin(lost) > -0.2
