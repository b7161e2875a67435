"""Targets out of reach of closed mechanisms: the nearest closed state, by closed forms; what restarts may not do."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, StateError

FAR = (-1.8, -1.9, 0.0)


def five_bar() -> sl.Model:
    """Motors 0.3 m apart, links of 0.3 m and 0.4 m: the tool is from 0.1 m to 0.7 m away from both motors."""
    b = sl.Builder("five bar")
    for name, length in (("a1", 0.3), ("a2", 0.4), ("b1", 0.3), ("b2", 0.4)):
        b.body(name, mass=0.5, center=(length / 2, 0, 0), inertia=(1e-3, 5e-3, 5e-3))
    b.revolute("motor_a", "world", "a1", "z").revolute("elbow_a", "a1", "a2", "z", (0.3, 0, 0))
    b.revolute("motor_b", "world", "b1", "z", (0.3, 0, 0)).revolute("elbow_b", "b1", "b2", "z", (0.3, 0, 0))
    b.revolute("tip", "a2", "b2", "z", (0.4, 0, 0), child_position=(0.4, 0, 0))
    b.frame("tool", "a2", position=(0.4, 0, 0))
    return b.build()


def distance_to_annuli(p: np.ndarray) -> float:
    """From a point (2,) to where both motors reach: its feet on the four circles, and their corners."""
    motors, radii = np.array([[0.0, 0.0], [0.3, 0.0]]), (0.1, 0.7)
    found = [p] + [c + r * (p - c) / np.linalg.norm(p - c) for c in motors for r in radii]
    for r in radii:
        for s in radii:
            x = (r * r - s * s + 0.09) / 0.6
            if r * r > x * x:
                found += [np.array([x, sign * np.sqrt(r * r - x * x)]) for sign in (-1.0, 1.0)]
    away = np.linalg.norm(np.array(found)[:, None] - motors, axis=2)
    inside = ((away >= 0.1 - 1e-9) & (away <= 0.7 + 1e-9)).all(axis=1)
    return float(np.linalg.norm(np.array(found)[inside] - p, axis=1).min())


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [0, 5, 50])
def test_a_piston_stops_at_the_end_of_its_stroke(restarts):
    robot, start = sl.Dynamics(sl.zoo.slider_crank()), sl.zoo.slider_crank_start()
    found = robot.inverse_kinematics({"piston": (0.7, 0, 0)}, start, restarts=restarts)
    assert not found.converged
    assert found.residual["piston"].distance == pytest.approx(0.3, abs=1e-6)


@pytest.mark.slow
def test_the_tool_of_a_five_bar_stops_at_the_edge_of_its_annuli():
    robot = sl.Dynamics(five_bar())
    start = robot.assemble([2.2, -1.2, 0.9, 1.2])
    points = np.concatenate([np.random.default_rng(0).uniform(-1.0, 1.2, (60, 2)), np.zeros((60, 1))], axis=1)
    found = robot.inverse_kinematics({"tool": points}, start)
    expected = np.array([distance_to_annuli(p[:2]) for p in points])
    assert np.abs(found.residual["tool"].distance - expected).max() < 1e-8
    assert np.array_equal(found.converged, expected < 1e-9)
    assert np.abs(robot.closure_error(found.q)).max() < 1e-12


@pytest.mark.slow
def test_more_restarts_never_lead_farther_away():
    robot, start = sl.Dynamics(sl.zoo.five_bar()), sl.zoo.five_bar_start()
    left = [
        robot.inverse_kinematics({"tip1": FAR}, start, restarts=k).residual["tip1"].distance
        for k in (0, 1, 2, 5, 20, 100)
    ]
    assert np.all(np.diff(left) <= 1e-12)


@pytest.mark.slow
def test_the_answer_is_never_worse_than_the_start():
    robot = sl.Dynamics(sl.zoo.five_bar())
    start = robot.assemble([-3.05527514, 1.72593071, -2.49471304, -0.02617757])
    before = np.linalg.norm(robot.pose(start, "tip1")[:3, 3] - FAR)
    for restarts in (0, 50):
        found = robot.inverse_kinematics({"tip1": FAR}, start, restarts=restarts)
        assert found.residual["tip1"].distance <= before
        again = robot.inverse_kinematics({"tip1": FAR}, found.q, restarts=restarts)
        assert again.residual["tip1"].distance <= found.residual["tip1"].distance


@pytest.mark.slow
def test_a_row_of_a_batch_whose_start_is_closed_has_an_answer():
    robot, start = sl.Dynamics(sl.zoo.delta()), sl.zoo.delta_start()
    points = 2.0 * np.random.default_rng(0).normal(size=(200, 3))[88:92]
    found = robot.inverse_kinematics({"left_rod1_tip": points}, start, seed=2)
    assert np.isfinite(found.q).all()
    before = np.linalg.norm(robot.pose(start, "left_rod1_tip")[:3, 3] - points, axis=1)
    assert np.all(found.residual["left_rod1_tip"].distance <= before)


def test_joints_that_do_not_matter_keep_their_coordinates_through_restarts():
    b = sl.Builder("hand")
    for name in ("arm", "left", "right"):
        b.body(name, mass=1.0, center=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.revolute("shoulder", "world", "arm", "z", limits=(-1.0, 1.0))
    b.prismatic("finger1", "arm", "left", "y", (0.5, 0, 0), limits=(0.0, 0.1))
    b.prismatic("finger2", "arm", "right", "y", (0.5, 0, 0), limits=(0.0, 0.1))
    b.coupling("mimic", "finger2", "finger1")
    robot = sl.Dynamics(b.frame("wrist", "arm", position=(0.5, 0, 0)).build())
    start = np.array([0.2, 0.03, 0.03])
    found = robot.inverse_kinematics({"wrist": (-2.0, 0.3, 0)}, start)
    assert np.abs(found.q[1:] - start[1:]).max() < 1e-12
    assert found.q[0] == 1.0


def test_a_fixed_joint_beyond_its_limit_is_refused():
    robot = sl.Dynamics(sl.zoo.puma().with_joint("joint1", limits=(-1, 1)))
    start = [2.0, 0, 0, 0, 0, 0]
    there = robot.pose(start, "tool")
    for call, targets in ((robot.inverse_kinematics, there), (robot.inverse_kinematics_path, there[None])):
        with pytest.raises(StateError, match="'joint1' is at 2, outside -1 to 1"):
            call({"tool": targets}, start, fixed=["joint1"])


def test_a_tolerance_below_what_single_precision_resolves_is_refused():
    robot = sl.Dynamics(sl.zoo.puma(), dtype=np.float32)
    there = np.asarray(robot.pose([0.1, -0.5, 0.4, 0.3, 0.6, -0.2], "tool"), float)
    with pytest.raises(InputError, match=r"in float32 this robot's poses are known to 1\.\de-05"):
        robot.inverse_kinematics({"tool": there}, tolerance=1e-9)
    assert robot.inverse_kinematics({"tool": there}).converged


def test_results_name_what_they_do_not_hold():
    robot = sl.Dynamics(sl.zoo.puma())
    found = robot.inverse_kinematics({"tool": (0.5, 0.2, 0.1)})
    with pytest.raises(InputError, match="did you mean 'tool'"):
        found.residual["tol"]
    with pytest.raises(InputError, match="single target"):
        found.limits(5)
    with pytest.raises(InputError, match="axis is 'w'"):
        robot.inverse_kinematics([sl.targets.Direction("tool", (0, 0, 1), axis="w")])
    path = robot.inverse_kinematics_path({"tool": np.full((3, 3), 5.0)}, np.zeros(6))
    assert "Sample 0 is not reached: the nearest" in str(path)
    assert " rad" not in path.stopped


def test_one_dof_of_a_free_joint_cannot_be_fixed_alone():
    b = sl.Builder("block").body("block", mass=1.0, inertia=(0.1, 0.1, 0.1)).free("root", "world", "block")
    robot = sl.Dynamics(b.build())
    for dof in (robot.inverse_kinematics({"block": (0, 0, 1)}).dof_names[-1], "root.x"):
        with pytest.raises(InputError, match="the whole joint 'root', no single DoF"):
            robot.inverse_kinematics({"block": (0, 0, 1)}, fixed=[dof])


def test_a_start_may_be_given_by_name():
    robot = sl.Dynamics(sl.zoo.puma())
    point = robot.pose([0.0, 0, 0.4, 0, 0, 0], "tool")[:3, 3]
    found = robot.inverse_kinematics({"tool": point}, {"joint3": 0.4}, restarts=0)
    assert found.converged
    assert found.q[2] == 0.4
    assert robot.inverse_kinematics_path({"tool": point[None]}, {"joint3": 0.4}).converged.all()
    with pytest.raises(InputError, match="expected one state"):
        robot.inverse_kinematics_path({"tool": point[None]}, {"joint3": [[0.4], [0.5]]})
