"""Quantities of a state: momentum, frames, manipulability, static torques, workspace; of trees and of loops."""

from __future__ import annotations

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, Reason, SpanloopWarning, StateError

QUADRUPED = sl.zoo.quadruped()


def closed(name: str) -> tuple[sl.Dynamics, np.ndarray]:
    return sl.Dynamics(getattr(sl.zoo, name)()), getattr(sl.zoo, f"{name}_start")()


# ---- momentum and frames


@pytest.mark.parametrize("name", ["five_bar", "hexapod"])
def test_momentum_of_a_closed_mechanism_is_its_matrix_times_its_rates(name):
    robot, q = closed(name)
    v = np.random.default_rng(1).normal(size=robot.model.nv)
    np.testing.assert_allclose(robot.centroidal_momentum_matrix(q) @ v, robot.momentum(q, v), atol=1e-12)


def test_the_rate_of_momentum_is_that_of_a_motion():
    robot = sl.Dynamics(QUADRUPED)
    q, v = QUADRUPED.random_state(seed=3)
    h, a = 1e-5, np.random.default_rng(4).normal(size=QUADRUPED.nv)

    def momentum(t):
        return robot.momentum(robot.integrate(q, t * v + 0.5 * t * t * a), v + t * a)

    rate = (momentum(h) - momentum(-h)) / (2.0 * h)
    found = robot.centroidal_momentum_matrix(q) @ a + robot.centroidal_momentum_bias(q, v)
    np.testing.assert_allclose(found, rate, atol=1e-7 * np.abs(rate).max())


@pytest.mark.parametrize("axes", ["world", "fl_foot", "trunk"])
def test_velocity_and_acceleration_of_a_frame_are_those_of_its_jacobian(axes):
    robot, frame = sl.Dynamics(QUADRUPED), "fl_foot"
    q, v = QUADRUPED.random_state(seed=5)
    a = v[::-1].copy()
    J = robot.jacobian(q, frame, expressed_in=axes)
    velocity = robot.frame_velocity(q, v, frame, expressed_in=axes)
    np.testing.assert_allclose(velocity, J @ v, atol=1e-13)
    classical = robot.frame_acceleration(q, v, a, frame, expressed_in=axes)
    np.testing.assert_allclose(classical, J @ a + robot.jacobian_bias(q, v, frame, expressed_in=axes), atol=1e-12)
    spatial = robot.frame_acceleration(q, v, a, frame, expressed_in=axes, spatial=True)
    np.testing.assert_allclose(classical[3:] - spatial[3:], np.cross(velocity[:3], velocity[3:]), atol=1e-12)


CALLS = {
    "center_of_mass_jacobian": lambda robot, q, v, **o: robot.center_of_mass_jacobian(q, **o),
    "centroidal_momentum_matrix": lambda robot, q, v, **o: robot.centroidal_momentum_matrix(q, **o),
    "centroidal_momentum_bias": lambda robot, q, v, **o: robot.centroidal_momentum_bias(q, v, **o),
    "frame_velocity": lambda robot, q, v, **o: robot.frame_velocity(q, v, "tool", **o),
    "frame_acceleration": lambda robot, q, v, **o: robot.frame_acceleration(q, v, 2.0 * v, "tool", **o),
    "spatial": lambda robot, q, v, **o: robot.frame_acceleration(q, v, 2.0 * v, "tool", spatial=True, **o),
    "static_torques": lambda robot, q, v, **o: robot.static_torques(q, {"tool": np.ones(6)}, **o),
}


@pytest.mark.parametrize("name", CALLS)
def test_batches_are_their_states_and_bad_states_are_nan_rows(name):
    robot, call = sl.Dynamics(sl.zoo.puma()), CALLS[name]
    q, v = np.random.default_rng(6).uniform(-1.0, 1.0, (2, 3, 5, 6))
    expected = np.array([[call(robot, x, y) for x, y in zip(*rows, strict=True)] for rows in zip(q, v, strict=True)])
    np.testing.assert_allclose(call(robot, q, v), expected, atol=1e-13)
    out = np.empty_like(expected)
    assert call(robot, q, v, out=out) is out
    np.testing.assert_allclose(out, expected, atol=1e-13)
    single = call(sl.Dynamics(sl.zoo.puma(), dtype="float32"), q.astype(np.float32), v.astype(np.float32))
    np.testing.assert_allclose(single, expected, atol=2e-4 * np.abs(expected).max())
    q[1, 2, 0] = np.nan
    with pytest.raises(StateError) as error:
        call(robot, q[1, 2], v[1, 2])
    assert error.value.reason is Reason.NOT_FINITE
    with pytest.warns(sl.SpanloopWarning):
        found = call(robot, q, v)
    assert np.isnan(found[1, 2]).all()
    np.testing.assert_allclose(found[0], expected[0], atol=1e-13)


# ---- manipulability


def test_manipulability_of_an_arm_is_yoshikawas():
    """Two links of length 1: |sin(elbow)|; singular when stretched."""
    robot = sl.Dynamics(sl.zoo.pendulum(2))
    angles = np.array([0.3, 1.0, 2.0])
    q = np.stack([np.full(3, 0.7), angles], axis=-1)
    found = robot.manipulability(q, "tip", axes="xz")
    np.testing.assert_allclose(found.measure, np.abs(np.sin(angles)), atol=1e-14)
    J = robot.jacobian(q, "tip")[:, [3, 5]]
    rebuilt = found.directions * found.lengths[:, None, :]
    np.testing.assert_allclose(rebuilt @ np.swapaxes(rebuilt, 1, 2), J @ np.swapaxes(J, 1, 2), atol=1e-13)
    np.testing.assert_allclose(found.force_lengths * found.lengths, 1.0)
    assert robot.manipulability([0.7, 0.0], "tip", axes="xz").condition > 1e12
    assert robot.manipulability([0.7, 1.0], "tip").measure == 0.0  # a planar arm is singular in space


def test_manipulability_of_a_closed_mechanism_is_that_of_its_actuated_joints():
    robot, q = closed("delta")
    found = robot.manipulability(q, "platform")
    columns = []
    for name in robot.model.actuated:
        rates = {n: float(n == name) for n in robot.model.actuated}
        columns.append(robot.frame_velocity(q, robot.complete_velocity(q, rates), "platform")[3:])
    expected = np.linalg.svd(np.array(columns), compute_uv=False)
    np.testing.assert_allclose(found.lengths, expected, atol=1e-12)


def test_more_actuators_than_the_mobility_make_the_frame_slower():
    """Rates of length 1 over four joints instead of two; the ellipsoid by sampling."""
    robot, q = closed("five_bar")
    every = [j.name for j in robot.model.joints]
    found = robot.manipulability(q, "tip1", axes="xy", actuated=every)
    T, J = robot.velocity_map(q), robot.jacobian(q, "tip1")[3:5]
    turns = np.linspace(0.0, 2.0 * np.pi, 20001)
    v = (T @ np.array([np.cos(turns), np.sin(turns)])).T
    speeds = np.linalg.norm((v / np.linalg.norm(v, axis=1, keepdims=True)) @ J.T, axis=1)
    np.testing.assert_allclose([speeds.max(), speeds.min()], found.lengths, rtol=1e-6)
    assert (found.lengths < robot.manipulability(q, "tip1", axes="xy").lengths).all()


def test_a_frame_that_moves_while_the_actuators_stand_still_has_no_manipulability():
    robot, q = closed("five_bar")
    with pytest.raises(StateError) as error:
        robot.manipulability(q, "tip1", axes="xy", actuated=["drive1"])
    assert error.value.reason is Reason.UNDERACTUATED
    assert "'tip1' moves while all actuated joints stand still" in str(error.value)
    with says(StateError, "manipulability"):
        robot.manipulability(q + 0.1, "tip1")
    with says(InputError, "manipulability: part is 'liner'; did you mean 'linear'?"):
        robot.manipulability(q, "tip1", "liner")
    with says(InputError, "manipulability: axes is 'xw'; expected some of 'xyz'"):
        robot.manipulability(q, "tip1", axes="xw")


# ---- static torques


@pytest.mark.slow
def test_static_torques_hold_a_closed_mechanism_under_its_load():
    robot, q = closed("stewart")
    load = {"platform": [1.0, 2.0, -3.0, 10.0, -20.0, -300.0]}
    tau = robot.static_torques(q, load)
    still = np.zeros(robot.model.nv)
    assert np.abs(robot.forward_dynamics(q, still, tau, forces=load)).max() < 1e-10
    alone = robot.static_torques(q, load, gravity=False)
    T = robot.velocity_map(q, list(robot.model.actuated))
    expected = -(robot.jacobian(q, "platform") @ T).T @ np.array(load["platform"])
    np.testing.assert_allclose(alone[np.abs(alone) > 0.0], expected, atol=1e-9)
    np.testing.assert_allclose(tau - alone, robot.static_torques(q), atol=1e-9)


def test_a_load_at_a_frame_is_moved_to_its_body():
    model = sl.zoo.puma().with_frame("corner", "link3", (0.1, -0.2, 0.3), (0.2, 0.1, 0.4))
    robot, q = sl.Dynamics(model), model.random_state(seed=7)[0]
    six = np.arange(1.0, 7.0)
    tau = robot.static_torques(q, {"corner": six, "link3": six, "tool": six}, gravity=False)
    expected = -sum(robot.jacobian(q, frame).T @ six for frame in ("corner", "link3", "tool"))
    np.testing.assert_allclose(tau, expected, atol=1e-12)
    with says(InputError, "static_torques: the force at 'tool' is [1.0]; expected [torque; force] (..., 6)"):
        robot.static_torques(q, {"tool": [1.0]})
    with says(InputError, "has no frame or body 'tol'; did you mean 'tool'?"):
        robot.static_torques(q, {"tol": six})
    with says(InputError, "static_torques: 'world' is fixed to the world, which takes every load"):
        robot.static_torques(q, {"world": six})
    with says(InputError, "static_torques: forces is a list; expected {'frame or body': six numbers}"):
        robot.static_torques(q, [six])


# ---- workspace


def test_a_workspace_is_inside_the_limits_and_repeats():
    model = sl.zoo.pendulum(2).with_joint("hinge1", "hinge2", limits=(-0.5, 1.0))
    robot = sl.Dynamics(model)
    found = robot.workspace("tip", 200, seed=3)
    assert len(found) == found.tried == 200
    assert (found.q >= -0.5).all()
    assert (found.q <= 1.0).all()
    np.testing.assert_allclose(found.points, robot.pose(found.q, "tip")[:, :3, 3])
    np.testing.assert_array_equal(found.points, robot.workspace("tip", 200, seed=3).points)
    low, high = found.bounds
    assert (low <= found.points).all()
    assert (found.points <= high).all()
    held = robot.workspace("tip", 20, fixed="hinge1", start=[0.4, 0.0])
    np.testing.assert_array_equal(held.q[:, 0], 0.4)
    assert str(found) == "Workspace('tip', 200 points of 200 states)"


def test_a_workspace_of_a_closed_mechanism_keeps_its_loops_closed_and_its_assembly():
    robot, q = closed("five_bar")
    found = robot.workspace("tip1", 150, start=q)
    assert 50 < len(found) < 150
    assert np.abs(robot.closure_error(found.q)).max() < 1e-11
    closing, free = robot.closure_jacobian(np.vstack([q, found.q])), list(robot.independent_coordinates(q).dofs)
    rows = [k for k in range(closing.shape[1]) if np.abs(closing[:, k]).max() > 1e-9]
    signs = np.sign(np.linalg.det(np.delete(closing[:, rows], free, axis=2)))
    assert (signs == signs[0]).all()


def test_a_workspace_that_cannot_be_found_is_said():
    robot = sl.Dynamics(sl.zoo.puma())
    with says(InputError, "workspace: samples is 0; expected a whole number from 1 to 1000000"):
        robot.workspace("tool", 0)
    with says(InputError, "workspace: start has shape (2,); expected (6,)"):
        robot.workspace("tool", start=[0.0, 0.0])
    with says(InputError, "has no frame or body 'tol'; did you mean 'tool'?"):
        robot.workspace("tol")


def test_a_workspace_of_which_little_is_found_says_why():
    robot, q = closed("five_bar")
    with pytest.warns(SpanloopWarning, match="workspace: 0 of 30 states remain: the loops of 30 do not close"):
        robot.workspace("tip1", 30, start=q, fixed=["elbow1", "elbow2"])


def test_refusals_of_static_torques_are_its_own():
    robot, q = closed("five_bar")
    with says(InputError, "static_torques: weights is [1, 2, 3]; expected positive numbers"):
        robot.static_torques(q, weights=[1, 2, 3])
    with says(StateError, "static_torques: the actuators (drive1) cannot produce this motion, or hold this load"):
        robot.static_torques(q, actuated=["drive1"])
