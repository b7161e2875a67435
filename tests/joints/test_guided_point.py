"""A point on a line, the pin of a plane mechanism, and a point in a plane."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import spanloop as sl
from spanloop import zoo
from spanloop.joints import Distance, PointOnLine, PointOnPlane

H = 1e-5  # of differences: their errors are about H² and 1e-16/H


def pinned() -> tuple[sl.Model, sl.Model]:
    """The four-bar with its hinge, and with a pin in its place."""
    model = zoo.four_bar()
    pins = tuple(replace(x, kind=PointOnLine(x.kind.axis)) for x in model.loops)
    return model, replace(model, loops=pins)


def on_a_line() -> tuple[sl.Dynamics, np.ndarray, np.ndarray]:
    """An arm whose tool stays on an oblique line, at a closed state with velocities that keep it there."""
    model = zoo.puma().with_frame("line", "world", (0.4, 0.1, 0.3), (0.3, -0.4, 0.2))
    robot = sl.Dynamics(model.with_loop("line", "tool", PointOnLine((1.0, 2.0, 3.0)), name="rail"))
    rng = np.random.default_rng(3)
    q = robot.assemble(rng.uniform(-0.5, 0.5, 6))
    return robot, q, robot.project(q, rng.normal(size=6))[1]


@pytest.mark.slow
@pytest.mark.parametrize("method", [None, "dense", "simple_closed_chain", "closed_topology"])
def test_in_the_plane_it_is_a_hinge_without_redundant_rows(method):
    (model, pins), q, tau = pinned(), zoo.four_bar_start(), np.array([1.0, 2.0, 3.0])
    hinge, pin = sl.Dynamics(model), sl.Dynamics(pins, method=method)
    v = hinge.complete_velocity(q, [2.0])
    np.testing.assert_allclose(pin.forward_dynamics(q, v, tau), hinge.forward_dynamics(q, v, tau), atol=1e-13)
    forces = [robot.solve(q, v, tau).loop_forces["closing"] for robot in (pin, hinge)]
    np.testing.assert_allclose(*forces, atol=1e-13)
    found = pin.diagnose(q)
    assert (found.n_rows, found.rank, found.redundant, found.mobility) == (2, 2, (), 1)


KINDS = {
    "line": PointOnLine((1.0, 2.0, 3.0)),
    "pole": PointOnLine(),
    "plane": PointOnPlane((-2.0, 1.0, 0.5)),
    "floor": PointOnPlane(),
    "rod": Distance(0.7),
}


def between_arms(kind) -> tuple[sl.Dynamics, np.ndarray]:
    """Two arms of which the one carries the line or plane and the other the point, closed; and a state."""
    arm = zoo.puma().with_frame("beside", "world", (0.6, 0.0, 0.0))
    model = arm.attach(zoo.puma(), "beside", prefix="other_")
    model = model.with_frame("guide", "link6", (0.1, 0.0, 0.1), (0.3, -0.4, 0.2))
    robot = sl.Dynamics(model.with_loop("guide", "other_tool", kind, name="guided"))
    return robot, robot.assemble(np.random.default_rng(3).uniform(-0.5, 0.5, 12))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_the_derivatives_of_errors(kind):
    robot, q = between_arms(KINDS[kind])
    w = np.random.default_rng(4).normal(size=12)
    ahead, behind = robot.integrate(q, H * w), robot.integrate(q, -H * w)
    rates = (robot.closure_error(ahead) - robot.closure_error(behind)) / (2.0 * H)
    np.testing.assert_allclose(robot.closure_jacobian(q) @ w, rates, atol=1e-8)
    bias = (robot.closure_jacobian(ahead) - robot.closure_jacobian(behind)) @ w / (2.0 * H)
    np.testing.assert_allclose(robot.closure_bias(q, w), bias, atol=1e-8)
    assert robot.mobility(q) == 12 - len(rates)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["line", "plane"])
def test_all_methods_agree(kind):
    robot, q = between_arms(KINDS[kind])
    rng = np.random.default_rng(5)
    v, tau = robot.project(q, rng.normal(size=12))[1], rng.normal(size=12)
    a = robot.forward_dynamics(q, v, tau)
    for method in ("dense", "closed_topology"):
        other = sl.Dynamics(robot.model, method=method).forward_dynamics(q, v, tau)
        np.testing.assert_allclose(other, a, atol=1e-11 * np.abs(a).max())
    np.testing.assert_allclose(robot.closure_jacobian(q) @ a + robot.closure_bias(q, v), 0.0, atol=1e-11)
    torques = robot.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(robot.forward_dynamics(q, v, torques), a, atol=1e-10 * np.abs(a).max())


def test_the_error_of_a_plane_is_the_height_above_it():
    b = sl.Builder("bead").body("bead", mass=1.0).frame("slope", "world", (0.0, 0.0, 1.0), (0.0, 0.3, 0.0))
    for k, axis in enumerate("xyz"):
        b.body(f"part{k}") if k < 2 else b
        b.prismatic(axis, f"part{k - 1}" if k else "world", f"part{k}" if k < 2 else "bead", axis)
    model = b.build().with_loop("slope", "bead", "point_on_plane", name="contact")
    normal = np.array([np.sin(0.3), 0.0, np.cos(0.3)])
    robot, q = sl.Dynamics(model), np.array([0.2, 0.3, 1.5])
    assert robot.closure_error(q)[0] == pytest.approx(normal @ (q - [0.0, 0.0, 1.0]))
    mirrored = sl.Dynamics(model.mirror("z"))
    assert mirrored.closure_error(q) == pytest.approx(robot.closure_error(q))
    q = robot.assemble(q)
    found = robot.solve(q, np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(found.a, 9.81 * np.cos(0.3) * normal - [0.0, 0.0, 9.81], atol=1e-13)
    assert found.rows[0] == pytest.approx(9.81 * np.cos(0.3))  # it pushes the bead
    assert robot.diagnose(q).rows == ("contact: force along the normal",)


@pytest.mark.slow
def test_a_point_stays_on_its_line():
    robot, q, v = on_a_line()
    dense = sl.Dynamics(robot.model, method="dense")
    tau = np.linspace(-1.0, 1.0, 6)
    np.testing.assert_allclose(robot.forward_dynamics(q, v, tau), dense.forward_dynamics(q, v, tau), atol=1e-11)
    run = sl.simulate(robot.model, q, v, duration=0.05, limits="ignore")
    assert run.closure_residual.max() < 1e-12
    start, axis = robot.pose(q, "line"), np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)
    for pose in robot.pose(run.q, "tool"):
        miss = start[:3, :3].T @ (pose[:3, 3] - start[:3, 3])
        np.testing.assert_allclose(miss, axis * (miss @ axis), atol=1e-12)


@pytest.mark.parametrize("kind", [PointOnLine("y"), PointOnPlane((0.6, 0.0, 0.8)), PointOnPlane()])
@pytest.mark.parametrize("file", ["pin.toml", "pin.urdf"])
def test_files_hold_them(tmp_path, file, kind):
    model = zoo.four_bar()
    model = replace(model, loops=(replace(model.loops[0], kind=kind),))
    model.save(tmp_path / file, force=True)
    assert sl.load(tmp_path / file).loops[0].kind == kind
