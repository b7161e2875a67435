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
    assert np.abs(v[model.v_slice("coupler.modes")]).max() > 1e-5  # of joints alone 1e-9
    assert np.abs(robot.closure_jacobian(q) @ v).max() < 1e-9


def misfit(gap: float) -> sl.Model:
    """A planar four-bar with a flexible rocker whose foot is beside the plane."""
    rocker = sl.flexible.beam(
        0.8, E=7e10, density=2700.0, section=sl.flexible.rectangle(0.02, 0.03), modes=2, elements=8
    )
    b = sl.Builder("misfit").body("crank", 0.3, (0.03, 0, 0), (1e-5, 1e-4, 1e-4)).body("rocker", flexible=rocker)
    b = b.body("coupler", 0.25, (0.25, 0, 0), (1e-5, 2e-3, 2e-3)).revolute("motor", "world", "crank")
    b = b.revolute("elbow", "crank", "coupler", position=(0.06, 0, 0)).frame("end", "coupler", (0.5, 0, 0))
    b = b.revolute("foot", "world", "rocker", position=(0.45, -0.7, gap)).frame("bore", "rocker.tip")
    return b.loop("end", "bore", "spherical", name="pin").build()


GUESS = {"motor": 0.3, "elbow": 0.0, "foot": 1.5}


@pytest.mark.slow
def test_assembly_closes_a_misfit_with_the_strain_energy_that_it_takes():
    """½ k gap²: k of the rocker's tip across the plane, with the section's two inertias from closed forms."""
    stiffness = 3.0 * 7e10 * (0.03 * 0.02**3 / 12.0, 0.02 * 0.03**3 / 12.0)[1] / 0.8**3
    robot = sl.Dynamics(misfit(0.0))
    flat = robot.assemble(GUESS)
    assert robot.strain_energy(flat)["rocker"] == 0.0
    for gap in (1e-9, 1e-6, 1e-4):
        robot = sl.Dynamics(misfit(gap))
        q = robot.assemble(GUESS)
        assert np.abs(robot.closure_error(q)).max() < 1e-12
        assert robot.strain_energy(q)["rocker"] == pytest.approx(0.5 * stiffness * gap**2, rel=1e-2)
        assert np.abs(q[:3] - flat[:3]).max() < gap


@pytest.mark.slow
def test_a_misfit_that_is_large_is_closed_with_a_warning_that_says_how_much_it_strains():
    robot = sl.Dynamics(misfit(0.01))
    with pytest.warns(
        sl.errors.SpanloopWarning, match=r"joints alone leave loop 'pin'.* open by 0\.01.*'rocker' with 0\.9"
    ):
        q = robot.assemble(GUESS)
    still = robot.static_deflection(q, held=["motor", "elbow", "foot"])
    assert robot.strain_energy(q)["rocker"] == pytest.approx(robot.strain_energy(still)["rocker"], rel=0.02)


@pytest.mark.slow
def test_a_run_from_joints_that_contradict_one_another_warns_of_the_strain_that_it_begins_with():
    with pytest.warns(sl.errors.SpanloopWarning, match=r"joints alone leave loop 'pin'.*'rocker' with"):
        sl.simulate(misfit(0.0), {"motor": 0.3, "foot": 1.5}, duration=1e-4, step=1e-5)
