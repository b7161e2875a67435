"""The linkage walker turns its crank all the way round, with loops closed, and is the machine that it should be."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError

ANGLES = np.linspace(0.0, 2.0 * np.pi, 25)
RODS = [pytest.param({"massless_rods": False}, marks=pytest.mark.slow), {"massless_rods": True}]


def starts(**options):
    return np.array([zoo.linkage_walker_start(angle=x, **options) for x in ANGLES])


@pytest.mark.parametrize("rods", RODS)
def test_it_assembles_over_a_full_turn(rods):
    robot = sl.Dynamics(zoo.linkage_walker(**rods))
    assert max(np.abs(robot.closure_error(q)).max() for q in starts(**rods)) < 1e-15
    assert robot.mobility(starts(**rods)[3]) == 7


def test_no_row_is_redundant():
    robot = sl.Dynamics(zoo.linkage_walker())
    J = robot.closure_jacobian(starts()[5])
    assert len(J) == 51  # two a pin, one a coupling
    assert np.linalg.matrix_rank(J) == 51  # two a pin, one a coupling


@pytest.mark.parametrize("unit", [0.005, 0.02])
def test_a_foot_follows_jansens_curve(unit):
    """Flat below, within 0.5 of the 92 units of its height over two fifths of a turn."""
    robot = sl.Dynamics(zoo.linkage_walker(unit=unit))
    q = starts(unit=unit)
    place = robot.pose(q, "leg1_foot")[:, :3, 3] - q[:, 4:7]
    x, y, z = place.T / unit
    np.testing.assert_allclose(y, 0.2 / unit, rtol=1e-12)
    assert np.ptp(z) == pytest.approx(22.4, abs=0.3)
    assert np.ptp(x) == pytest.approx(67.9, abs=0.3)
    assert np.sum(z[:-1] - z.min() < 0.5) >= 0.4 * 24 - 1


@pytest.mark.slow
@pytest.mark.parametrize("rods", RODS)
def test_the_lowest_foot_is_on_the_ground(rods):
    robot = sl.Dynamics(zoo.linkage_walker(**rods))
    q = starts(clearance=0.01, **rods)
    heights = [robot.pose(q, f"leg{k}_foot")[:, 2, 3].min() for k in range(1, 9)]
    assert min(heights) == pytest.approx(0.01, abs=1e-15)


@pytest.mark.slow
def test_feet_that_stand_move_backward_as_the_crank_turns_forward():
    """So the machine walks forward; and one in front and one behind stand on opposite sides."""
    model = zoo.linkage_walker()
    robot = sl.Dynamics(model)
    still = np.zeros(6)
    for angle in (0.0, 0.5 * np.pi, np.pi, 1.5 * np.pi):
        q = zoo.linkage_walker_start(angle=angle)
        v = robot.complete_velocity(q, {"crank1": 1.0, "root": still})
        feet = {k: robot.pose(q, f"leg{k}_foot")[:3, 3] for k in range(1, 9)}
        standing = [k for k in feet if feet[k][2] < 1e-3]
        assert [k % 2 for k in sorted(standing, key=lambda k: -feet[k][0])] == [1, 0]
        assert sum(np.sign(feet[k][1]) for k in standing) == 0.0
        for k in standing:
            assert (robot.jacobian(q, f"leg{k}_foot") @ v)[3] < -0.1


def test_it_weighs_what_its_bars_do():
    bars = 41.5 + 40.1 + 55.8 + 36.7 + 65.7 + 49.0 + 39.3
    rods = 50.0 + 61.9 + 39.4
    assert zoo.linkage_walker().mass == pytest.approx(3.4 + 8 * 0.4 * 0.005 * (bars + rods))
    assert zoo.linkage_walker(massless_rods=True).mass == pytest.approx(3.4 + 8 * 0.4 * 0.005 * bars)


def test_a_unit_is_positive():
    with pytest.raises(InputError, match="linkage_walker: unit is 0 m; must be > 0"):
        zoo.linkage_walker(unit=0.0)


def test_the_quadruped_stands_with_its_feet_under_its_hips():
    robot = sl.Dynamics(zoo.quadruped())
    q = zoo.quadruped_start(height=0.33, foot=0.03)
    for leg, x, y in (("fl", 0.2, 0.18), ("hr", -0.2, -0.18)):
        np.testing.assert_allclose(robot.pose(q, f"{leg}_foot")[:3, 3], (x, y, 0.03), atol=1e-15)
    with pytest.raises(InputError, match=r"expected 0\.02 to 0\.46 m"):
        zoo.quadruped_start(height=0.6)
