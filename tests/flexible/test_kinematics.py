"""Inverse kinematics, assembly and workspaces: joints move, and flexible bodies stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl

TUBE = sl.flexible.beam(0.5, E=7e10, density=2700.0, section=sl.flexible.tube(0.02, 0.018), modes=0)


def arm() -> sl.Model:
    b = sl.Builder("arm").body("base", 1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1)).revolute("yaw", "world", "base", "z")
    b = b.body("upper", flexible=TUBE).revolute("shoulder", "base", "upper", "y")
    b = b.body("fore", flexible=TUBE).revolute("elbow", "upper.tip", "fore", "y")
    return b.frame("tool", "fore.tip", (0.05, 0.0, 0.0)).build()


def delta() -> sl.Model:
    """Three motors, arms, soft rods and a platform: six of its rows could be closed by bending alone."""
    b = sl.Builder("delta").body("platform", 0.5, (0.0, 0.0, 0.0), (1e-3, 1e-3, 2e-3))
    rod = sl.flexible.beam(0.8, E=7e10, density=2700.0, section=sl.flexible.tube(0.008, 0.006), modes=0)
    for k, turn in enumerate(2.0 * np.pi * np.arange(3) / 3.0):
        c, s = np.cos(turn), np.sin(turn)
        b = b.body(f"arm{k}", 0.4, (0.15, 0.0, 0.0), (1e-4, 3e-3, 3e-3)).body(f"rod{k}", flexible=rod)
        b = b.revolute(f"motor{k}", "world", f"arm{k}", "y", (0.2 * c, 0.2 * s, 0.0), (0.0, 0.0, turn))
        b = b.universal(f"elbow{k}", f"arm{k}", f"rod{k}", "x", "y", (0.3, 0.0, 0.0), rotation=(0.0, 1.3, 0.0))
        b = b.frame(f"corner{k}", "platform", (0.05 * c, 0.05 * s, 0.0))
        b = b.loop(f"corner{k}", f"rod{k}.tip", "spherical", name=f"ball{k}")
    return b.free("float", "world", "platform", (0.0, 0.0, -0.7)).build()


def test_inverse_kinematics_moves_joints_and_keeps_bodies_bent_as_they_are():
    model = arm()
    robot, start = sl.Dynamics(model), np.zeros(model.nq)
    start[model.q_slice("upper.modes")] = 1e-3
    target = (0.4, 0.2, -0.5)
    found = robot.inverse_kinematics(sl.targets.Position("tool", target), start)
    assert found.converged
    assert np.abs(robot.pose(found.q, "tool")[:3, 3] - target).max() < 1e-9
    for joint in ("upper.modes", "fore.modes"):
        assert np.array_equal(found.q[model.q_slice(joint)], start[model.q_slice(joint)])


def test_a_workspace_is_that_of_the_joints():
    model = arm()
    space = sl.Dynamics(model).workspace("tool", samples=200)
    assert np.abs(space.q[:, model.q_slice("upper.modes")]).max() == 0.0
    assert np.linalg.norm(space.points, axis=1).max() < 1.05 + 1e-12


@pytest.mark.slow
def test_assembly_bends_nothing_that_joints_can_close():
    model = delta()
    robot = sl.Dynamics(model)
    q = robot.assemble(model.neutral())
    assert np.abs(robot.closure_error(q)).max() < 1e-12
    for joint in model.joints:
        if joint.kind.bends:
            assert np.abs(q[model.q_slice(joint.name)]).max() == 0.0
    rest = np.zeros(model.nv)
    one, other = (sl.compile(model, "forward_dynamics", method=m)(q, rest, rest) for m in ("elimination", "dense"))
    assert np.abs(one - other).max() < 1e-12 * np.abs(one).max()


def test_assembly_bends_bodies_where_joints_alone_close_nothing():
    """A bar between two walls that are too near: it closes by bending."""
    b = sl.Builder("buckled").body("bar", flexible=sl.flexible.beam(
        1.0, E=2e6, density=1000.0, section=sl.flexible.rectangle(0.02, 0.01), modes={"z": 1}))  # fmt: skip
    model = b.revolute("left", "world", "bar", "y").frame("wall", "world", (0.99, 0.0, 0.0)).build()
    model = model.with_loop("wall", "bar.tip", "spherical", name="right")
    start = np.zeros(model.nq)
    start[model.q_slice("bar.modes")] = 0.01
    robot = sl.Dynamics(model)
    q = robot.assemble(start)
    assert np.abs(robot.closure_error(q)).max() < 1e-12
    assert np.abs(q[model.q_slice("bar.modes")]).max() > 0.01


def four_bar(axis=(0.0, 1.0, 0.0)) -> sl.Model:
    """With a flexible coupler, whose last hinge may be askew."""
    coupler = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.rectangle(0.01, 0.02), modes=1)
    b = sl.Builder("four bar").body("coupler", flexible=coupler)
    for name, length in (("crank", 0.4), ("rocker", 0.8)):
        b = b.body(name, 1.0, (0.5 * length, 0.0, 0.0), (0.01, 0.1, 0.1))
    b = b.revolute("a", "world", "crank", "y").revolute("b", "crank", "coupler", "y", (0.4, 0.0, 0.0))
    b = b.revolute("c", "world", "rocker", "y", (0.9, 0.0, 0.0))
    return b.revolute("d", "rocker", "coupler.tip", axis, (0.8, 0.0, 0.0)).build()


@pytest.mark.slow
def test_rates_by_name_leave_modes_at_rest_where_joints_answer():
    model = four_bar()
    robot = sl.Dynamics(model)
    q = robot.assemble(model.neutral())
    v = robot.complete_velocity(q, {"a": 15.0})
    assert v[model.v_slice("a")] == 15.0
    assert np.abs(v[model.v_slice("coupler.modes")]).max() < 1e-9
    assert np.abs(robot.closure_jacobian(q) @ v).max() < 1e-9


@pytest.mark.slow
def test_rates_by_name_move_modes_where_joints_alone_do_not_answer():
    model = four_bar((0.0, 1.0, 0.1))
    robot = sl.Dynamics(model)
    q = robot.assemble(model.neutral())
    v = robot.complete_velocity(q, {"a": 1.0})
    assert np.abs(v[model.v_slice("coupler.modes")]).max() > 1e-4
    assert np.abs(robot.closure_jacobian(q) @ v).max() < 1e-9
