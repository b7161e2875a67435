"""Derivatives of the actuators' torques along closed motions: inverse to those of accelerations, or by differences."""

from __future__ import annotations

import numpy as np
import pytest
from closed_paths import ClosedPaths, moving
from closed_zoo import mechanism

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, Reason, StateError


def at_motion(case: str):
    """A robot, and a motion of it: q, v, a, and the independent DoF."""
    robot, q, v, _ = moving(*mechanism(case))
    dofs = robot.independent_coordinates(q)
    return robot, q, v, robot.complete_acceleration(q, v, np.linspace(-1.0, 1.0, len(dofs)), dofs), dofs


@pytest.mark.parametrize("case", ["four_bar", "five_bar", pytest.param("stewart", marks=pytest.mark.slow)])
def test_torques_and_accelerations_have_inverse_derivatives(case):
    """a(q, v, τ(q, v, a)) = a for independent accelerations: ∂a/∂τ ∂τ/∂a = 1, ∂a/∂τ ∂τ/∂q + ∂a/∂q = 0."""
    robot, q, v, a, dofs = at_motion(case)
    found = robot.inverse_dynamics_derivatives(q, v, a, dofs=dofs)
    there = robot.derivatives(q, v, robot.inverse_dynamics(q, v, a), dofs=dofs).independent
    np.testing.assert_allclose(there.da_dtau @ found.dtau_da, np.eye(len(dofs)), atol=1e-11)
    for by, change in ((found.dtau_dq, there.da_dq), (found.dtau_dv, there.da_dv)):
        np.testing.assert_allclose(there.da_dtau @ by, -change, rtol=1e-9, atol=1e-10 * np.abs(change).max())


def by_differences(robot: sl.Dynamics, paths: ClosedPaths, a, step: float, **options) -> np.ndarray:
    """(nv, 3 n) by central differences of fourth order of the call, along closed motions."""
    n = len(paths.chosen)

    def torques(x: np.ndarray) -> np.ndarray:
        q, v = paths.at(*np.split(x.astype(np.longdouble), 3)[:2])
        there = paths.accelerations(q, v, a[paths.chosen] + x[2 * n :])
        return robot.inverse_dynamics(*(y.astype(float) for y in (q, v, there)), **options)

    columns = []
    for unit in np.eye(3 * n):
        pairs = [torques(k * step * unit) - torques(-k * step * unit) for k in (1, 2)]
        columns.append((8.0 * pairs[0] - pairs[1]) / (12.0 * step))
    return np.array(columns).T


@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("four_bar", {"actuated": ["crank_hinge", "rocker_hinge"], "weights": {"rocker_hinge": 3.0}}),
        ("four_bar", {"forces": {"rocker": np.array((0.3, -4.0, 0.2, 5.0, 0.1, -3.0))}}),
        pytest.param("arms 2", {}, marks=pytest.mark.slow),
    ],
)
def test_torques_of_spare_actuators_and_under_loads(case, options):
    robot, q, v, a, dofs = at_motion(case)
    found = robot.inverse_dynamics_derivatives(q, v, a, dofs=dofs, **options)
    expected = by_differences(robot, ClosedPaths(robot, q, v, dofs), a, 1e-3, **options)
    np.testing.assert_allclose(found.dtau, expected, rtol=1e-7, atol=1e-8 * np.abs(expected).max())


def test_accelerations_by_name_and_batches():
    robot, q = sl.Dynamics(zoo.four_bar()), zoo.four_bar_start()
    v = robot.complete_velocity(q, {"crank_hinge": np.array((0.0, 1.0))})
    out = np.empty((2, 3, 3))
    found = robot.inverse_dynamics_derivatives(q, v, {"crank_hinge": 2.0}, out=out)
    assert np.shares_memory(found.dtau_da, out)
    one = robot.inverse_dynamics_derivatives(q, v[1], {"crank_hinge": 2.0})
    np.testing.assert_allclose(found.dtau[1], one.dtau, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(one.dtau[1:], 0.0)


def test_fewer_actuators_than_the_mobility_are_refused():
    robot, q = sl.Dynamics(zoo.five_bar()), zoo.five_bar_start()
    still = np.zeros(4)
    with pytest.raises(InputError, match=r"1 actuated DoF \(drive1\) drive a mechanism of 2 DoF"):
        robot.inverse_dynamics_derivatives(q, still, still, actuated=["drive1"])


def test_a_dead_centre_of_the_actuators_is_refused():
    """Where crank and coupler are in line the rocker cannot drive the crank."""
    model = zoo.four_bar()
    robot = sl.Dynamics(model)
    reach = 1.0 + 2.2  # crank and coupler stretched
    angle = np.arccos((reach**2 + 2.0**2 - 1.8**2) / (2.0 * reach * 2.0))
    rocker = np.arctan2(reach * np.sin(angle), reach * np.cos(angle) - 2.0)
    q, still = np.array((angle, 0.0, rocker)), np.zeros(3)
    for call in (robot.inverse_dynamics, robot.inverse_dynamics_derivatives):
        with pytest.raises(StateError, match="singular configuration: here no torque") as caught:
            call(q, still, {"crank_hinge": 0.0}, actuated=["rocker_hinge"])
        assert caught.value.reason is Reason.UNDERACTUATED


@pytest.mark.slow
def test_a_tree_with_all_joints_actuated_agrees_with_its_own_derivatives():
    robot = sl.Dynamics(zoo.puma())
    q, v = robot.model.random_state(seed=1)
    plain = robot.inverse_dynamics_derivatives(q, v, v)
    named = robot.inverse_dynamics_derivatives(q, v, v, actuated=[x.name for x in robot.model.joints])
    np.testing.assert_allclose(named.dtau, plain.dtau, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(plain.dtau_da, robot.mass_matrix(q), rtol=1e-10, atol=1e-12)
