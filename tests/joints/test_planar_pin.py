"""The pin of a plane mechanism: two rows, in the plane those of a revolute closure, in space a point on a line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import spanloop as sl
from spanloop import zoo
from spanloop.joints import PlanarPin

H = 1e-5  # of differences: their errors are about H² and 1e-16/H


def pinned() -> tuple[sl.Model, sl.Model]:
    """The four-bar with its hinge, and with a pin in its place."""
    model = zoo.four_bar()
    pins = tuple(replace(x, kind=PlanarPin(x.kind.axis)) for x in model.loops)
    return model, replace(model, loops=pins)


def on_a_line() -> tuple[sl.Dynamics, np.ndarray, np.ndarray]:
    """An arm whose tool stays on an oblique line, at a closed state with velocities that keep it there."""
    model = zoo.puma().with_frame("line", "world", (0.4, 0.1, 0.3), (0.3, -0.4, 0.2))
    robot = sl.Dynamics(model.with_loop("line", "tool", PlanarPin((1.0, 2.0, 3.0)), name="rail"))
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


def test_in_space_its_rows_are_the_derivatives_of_its_errors():
    robot, q, v = on_a_line()
    assert robot.mobility(q) == 4
    for w in (v, np.random.default_rng(4).normal(size=6)):
        ahead, behind = robot.integrate(q, H * w), robot.integrate(q, -H * w)
        rates = (robot.closure_error(ahead) - robot.closure_error(behind)) / (2.0 * H)
        np.testing.assert_allclose(robot.closure_jacobian(q) @ w, rates, atol=1e-9)
        bias = (robot.closure_jacobian(ahead) - robot.closure_jacobian(behind)) @ w / (2.0 * H)
        np.testing.assert_allclose(robot.closure_bias(q, w), bias, atol=1e-9)


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


@pytest.mark.parametrize("file", ["pin.toml", "pin.urdf"])
def test_files_hold_it(tmp_path, file):
    _, model = pinned()
    model.save(tmp_path / file, force=True)
    assert sl.load(tmp_path / file).loops[0].kind == model.loops[0].kind
