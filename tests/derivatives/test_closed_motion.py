"""Directions of closed motions: they agree with closed states in extended precision, or are refused."""

from __future__ import annotations

import numpy as np
import pytest
from closed_paths import ClosedPaths, moving
from closed_zoo import mechanism
from extended import central, evaluate
from singular_cases import folded_four_bar

import spanloop as sl
from spanloop import zoo
from spanloop.derivatives.closed_motion import closed_directions
from spanloop.errors import Reason, StateError, UnsupportedError

CASES = ("four_bar", "five_bar ball", "stewart", "delta", "bricard", "governor", "arms 2", "arms 2 cardan", "hexapod")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_directions_are_those_of_closed_states_in_extended_precision(case):
    robot, q, v, _ = moving(*mechanism(case))
    found = closed_directions(robot, q, v, robot.independent_coordinates(q))
    paths, there = ClosedPaths(robot, q, v, found.dofs), robot.kernel("difference").plan
    for k, unit in enumerate(np.eye(len(found.dofs), dtype=np.longdouble)):
        dq = central(lambda s, x=unit: evaluate(there, paths.q, paths.at(s * x)[0]), 1e-4)
        dv = central(lambda s, x=unit: paths.at(s * x)[1], 1e-4)
        np.testing.assert_allclose(found.dq[:, k], dq.astype(float), rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(found.dv[:, k], dv.astype(float), rtol=1e-9, atol=1e-10)


def test_a_change_of_rates_alone_is_the_velocity_map():
    robot, q, v, _ = moving(zoo.five_bar(), zoo.five_bar_start())
    found = closed_directions(robot, q, v, ("drive1", "drive2"))
    np.testing.assert_array_equal(found.dq, robot.velocity_map(q, ("drive1", "drive2")))
    assert found.dofs.names == ("drive1", "drive2")
    np.testing.assert_array_equal(found.dv[list(found.dofs.dofs)], 0.0)


def test_at_rest_rates_do_not_change_with_positions():
    robot, q = sl.Dynamics(zoo.five_bar()), zoo.five_bar_start()
    np.testing.assert_array_equal(closed_directions(robot, q, np.zeros(4)).dv, 0.0)


def test_a_singular_position_is_refused_and_other_rows_are_not():
    robot, good, flat = sl.Dynamics(folded_four_bar(0.5).model), folded_four_bar(0.5), folded_four_bar(0.0)
    with pytest.raises(StateError, match="singular configuration") as caught:
        closed_directions(robot, flat.q, flat.v)
    assert caught.value.reason is Reason.SINGULAR_CLOSURE
    with pytest.warns(sl.SpanloopWarning, match="1 of 2 states") as seen:
        found = closed_directions(robot, np.stack([good.q, flat.q]), good.v)
    assert len(seen) == 1
    assert np.isnan(found.dq[1]).all()
    assert np.isnan(found.dv[1]).all()
    np.testing.assert_array_equal(found.dv[0], closed_directions(robot, good.q, good.v).dv)


def test_open_loops_and_opening_velocities_are_refused():
    robot, q, v, _ = moving(zoo.four_bar(), zoo.four_bar_start())
    with pytest.raises(StateError) as caught:
        closed_directions(robot, q + (0.1, 0.0, 0.0), v)
    assert caught.value.reason is Reason.OPEN_LOOP
    with pytest.raises(StateError) as caught:
        closed_directions(robot, q, v + (0.1, 0.0, 0.0))
    assert caught.value.reason is Reason.OPENING_VELOCITY


def test_loops_that_constrain_velocities_alone_are_refused():
    model, q = mechanism("arms 2 general")
    with pytest.raises(UnsupportedError, match="positions move in more ways than rates"):
        closed_directions(sl.Dynamics(model), q, np.zeros(model.nv))
