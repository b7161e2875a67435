"""Glocker's woodpecker toy beside the motion that Siconos publishes for it (examples/mechanics/Woodpecker)."""

from __future__ import annotations

import contact_stories as known
import numpy as np
import pytest

import spanloop as sl

PERIOD, DESCENT = 0.14606, 0.019477  # s, m: of Siconos' Woodpecker.ref, between two impacts of the beak
RATES = 16.93, -8.46  # rad/s of the bird before and after


@pytest.mark.slow
def test_the_woodpecker_climbs_down_as_siconos_has_it():
    """Its equations are linear in the angles: ours are so for a thousandth of the angles."""
    story = known.Woodpecker(angles=1e-3)
    q, v = story.start()
    run = sl.simulate(story.model(), q, v, duration=1.0, step=2e-5)
    periods, descents = known.cycles(run.times, run.q, run.v)
    assert len(periods) == 6
    np.testing.assert_allclose(periods.mean(), PERIOD, rtol=5e-3)  # cycles differ by what steps decide
    np.testing.assert_allclose(descents.mean(), DESCENT * 1e-3, rtol=5e-3)
    turning = (run.v[:, 1] + run.v[:, 2]) / 1e-3
    hit = np.flatnonzero((turning[:-1] > 8.0) & (turning[1:] < 0.0))[0]
    np.testing.assert_allclose(turning[[hit, hit + 1]], RATES, rtol=5e-3)
