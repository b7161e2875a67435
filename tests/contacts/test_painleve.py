"""Painlevé's rod: the force of a sliding tip, and the jam where there is none."""

from __future__ import annotations

import contact_stories as known
import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import Reason, StateError

STEEP = float(np.arctan(2.0))  # rad: angle of the rod with the ground
HALF = 0.5  # m


def sliding(friction: float):
    """The contact solution of a rod of 1 kg that slides, tip first, without turning."""
    robot = sl.Dynamics(known.painleve_rod(friction, HALF))
    return robot.contact_solution([0.0, HALF * np.sin(STEEP), STEEP], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0])


@pytest.mark.parametrize("friction", [0.0, 0.6, 1.2, 1.3])
def test_the_tip_is_pressed_by_mg_over_1_6_less_1_2_mu(friction):
    """61.3125 N at µ = 1.2: friction turns the rod into the ground."""
    found = sliding(friction)
    expected = 9.81 / (1.6 - 1.2 * friction)
    np.testing.assert_allclose(found.force[0], [-friction * expected, 0.0, expected], rtol=1e-9, atol=1e-9)
    assert found.state.tolist() == ["slips"]
    assert not found.jams.any()


@pytest.mark.parametrize("friction", [4 / 3 + 1e-9, 1.5])
def test_from_four_thirds_on_the_rod_jams(friction):
    with pytest.raises(StateError, match="jams") as refused:
        sliding(friction)
    assert refused.value.reason is Reason.JAM
