"""Motions of exported C files against sl.simulate, and what a failed step leaves."""

from __future__ import annotations

import numpy as np
import pytest
from c_code import Exported, Motion, needs_compiler
from contact_stories import sphere

import spanloop as sl
from spanloop import zoo

pytestmark = needs_compiler
STEPS = 500  # of 1 ms


class Integral(sl.control.Controller):
    """An integral law with memory."""

    inputs, memory = 0, 2

    def torques(self, t, q, v, u, z):
        return 5.0 * (0.3 - q) + 9.0 * z - v

    def update(self, t, h, q, v, u, z):
        return z + h * (0.3 - q)


def spring(t, q, v, u):
    return -20.0 * (q - u) - 3.0 * v + 0.1 * np.sin(5.0 * t)


MOTIONS = {
    "pendulum": (lambda: zoo.pendulum(2), {"q": [0.4, -0.2], "integrator": "rk4"}),
    "puma": (zoo.puma, {"v": [0.5] * 6, "integrator": "rk4", "limits": "ignore"}),
    "four_bar": (zoo.four_bar, {"q": zoo.four_bar_start(), "integrator": "rk4"}),
    "implicit": (lambda: zoo.pendulum(2).with_joint("*", damping=2.0), {"q": [0.4, -0.2], "integrator": "implicit"}),
    "midpoint": (lambda: zoo.pendulum(2), {"q": [0.4, -0.2], "integrator": "midpoint"}),
    "euler": (lambda: zoo.pendulum(2), {"q": [0.4, -0.2], "integrator": "euler"}),
    "law with inputs": (lambda: zoo.pendulum(2), {"controller": spring, "inputs": [0.3, 0.1], "integrator": "rk4"}),
    "law with memory": (lambda: zoo.pendulum(2), {"controller": Integral(), "integrator": "rk4"}),
}


@pytest.mark.parametrize("name", MOTIONS)
def test_a_motion_is_that_of_simulate(name, tmp_path):
    make, options = MOTIONS[name]
    model = make()
    motion = Motion(Exported(model, [], tmp_path, step=1e-3, **options), model)
    run = sl.simulate(model, duration=1e-3 * STEPS, step=1e-3, **options)
    assert len(run) == STEPS + 1
    u = [options["inputs"]] if "inputs" in options else [] if "controller" in options else [np.zeros(model.nv)]
    for _ in range(STEPS):
        assert motion.step(*u) == 0
    q, v = motion.state()
    assert np.abs(q - run.q[-1]).max() < 1e-12
    assert np.abs(v - run.v[-1]).max() < 1e-11 * max(1.0, np.abs(run.v).max())
    assert motion.time == pytest.approx(0.5, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("impacts", ["steps", "events"])
def test_contacts_act_in_steps(impacts, tmp_path):
    """A ball falls, bounces and slides: 0.2 s with an impact."""
    model = sphere(0.4, radius=0.1, restitution=0.5)
    options = {"q": [1, 0, 0, 0, 0, 0, 0.15], "v": [0, 0, 3, 0.5, 0, 0], "contacts": impacts, "integrator": "rk4"}
    code = Exported(model, [], tmp_path, step=1e-3, **options)
    motion = Motion(code, model)
    run = sl.simulate(model, duration=0.2, step=1e-3, **options)
    assert run.v[:, 5].min() < -0.5 < 0.2 < run.v[:, 5].max()  # it bounced
    for _ in range(200):
        assert motion.step(np.zeros(6)) == 0
    q, v = motion.state()
    assert np.abs(q - run.q[-1]).max() < 1e-12
    assert np.abs(v - run.v[-1]).max() < 1e-11
    assert "there is no arm_set_state" in code.path.with_suffix(".h").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("impacts", ["steps", "events"])
def test_a_failed_step_leaves_contacts_as_they_were(impacts, tmp_path):
    """A run with a step that fails in between goes on as one without."""
    model = sphere(0.4, radius=0.1, restitution=0.5)
    options = {"q": [1, 0, 0, 0, 0, 0, 0.101], "v": [0, 0, 3, 0.5, 0, -0.5], "contacts": impacts, "integrator": "rk4"}
    code = Exported(model, [], tmp_path, step=1e-3, **options)
    once, twice = Motion(code, model), Motion(code, model)
    for _ in range(6):
        assert twice.step(np.full(6, 1e200)) & 16
        assert (once.step(np.zeros(6)), twice.step(np.zeros(6))) == (0, 0)
        assert all(np.array_equal(a, b) for a, b in zip(once.state(), twice.state(), strict=True))
    assert once.state()[1][5] > 0.0  # it bounced


def test_forces_on_bodies_are_inputs_after_the_torques(tmp_path):
    model, rng = zoo.pendulum(2), np.random.default_rng(5)
    tau, force = rng.standard_normal(2), rng.standard_normal(6)
    code = Exported(model, ["forward_dynamics"], tmp_path, step=1e-3, integrator="rk4", forces=["rod2"])
    motion = Motion(code, model)
    for _ in range(100):
        assert motion.step(np.concatenate([tau, force])) == 0
    run = sl.simulate(model, duration=0.1, step=1e-3, integrator="rk4", tau=tau, forces={"rod2": force})
    assert np.abs(motion.state()[0] - run.q[-1]).max() < 1e-12


def test_float_steps_with_compensated_sums(tmp_path):
    model = zoo.four_bar()
    options = {"q": zoo.four_bar_start(), "integrator": "rk4"}
    motion = Motion(Exported(model, [], tmp_path, step=1e-3, real="float", **options), model)
    run = sl.simulate(model, duration=0.5, step=1e-3, **options)
    for _ in range(STEPS):
        assert motion.step(np.zeros(3)) == 0
    assert np.abs(motion.state()[0] - run.q[-1]).max() < 2e-4


def test_a_failed_step_leaves_the_state_as_it_was(tmp_path):
    model = zoo.pendulum(1).with_joint("hinge1", limits=(-0.5, 0.5))
    code = Exported(model, [], tmp_path, step=1e-2, v=[2.0], integrator="rk4", limits="end")
    motion = Motion(code, model)
    status = 0
    for _ in range(200):
        before = motion.memory.copy()
        status = motion.step([0.0])
        if status:
            break
    assert status == 32
    assert "a joint reaches its limit" in code.text(status)
    place = code.path.with_suffix(".h").read_text()
    assert "ARM_Q_HINGE1 = 0" in place
    q, v = motion.state()
    motion.memory[:] = before
    assert (q, v) == motion.state()
    assert abs(q[0]) < 0.5
    assert motion.step([np.nan]) == 1
    assert motion.state() == (q, v)


def test_a_state_is_set_with_the_loops_closed(tmp_path):
    model = zoo.four_bar()
    code = Exported(model, [], tmp_path, step=1e-3, q=zoo.four_bar_start(), integrator="rk4")
    motion = Motion(code, model)
    q = np.array(zoo.four_bar_start(), float)
    assert motion.call("set_state", q + [1e-4, 0.0, 0.0], [1.0, 0.0, 0.0]) == 0
    robot = sl.Dynamics(model)
    now, v = motion.state()
    assert np.abs(robot.closure_error(now)).max() < 1e-14
    assert np.abs(robot.closure_jacobian(now) @ v).max() < 1e-12
    assert np.abs(now - q).max() > 1e-6
    assert motion.call("set_state", q + [1.0, 1.0, 1.0], np.zeros(3)) == 128  # loops are too far open
    assert np.array_equal(motion.state()[0], now)
    assert motion.call("set_state", [np.nan, 0.0, 0.0], np.zeros(3)) == 1


def test_live_parameters_change_a_motion(tmp_path):
    model = zoo.pendulum(1)
    code = Exported(model, [], tmp_path, step=1e-3, q=[0.5], integrator="rk4", parameters="live")
    motion, changed = Motion(code, model), model.parameters().changed({"gravity.z": -1.6, "gravity.y": 0.0})
    assert motion.call("set_parameters", changed.values) == 0
    for _ in range(100):
        assert motion.step([0.0]) == 0
    moon = model.with_parameters({"gravity.z": -1.6, "gravity.y": 0.0})
    run = sl.simulate(moon, [0.5], duration=0.1, step=1e-3, integrator="rk4")
    assert np.abs(motion.state()[0] - run.q[-1]).max() < 1e-13
    assert motion.call("set_parameters", -np.abs(changed.values)) == 2


def test_a_controller_is_a_function_of_its_own(tmp_path):
    model = zoo.pendulum(2)
    code = Exported(model, [], tmp_path, controller=spring, inputs=[0.0, 0.0])
    t, q, v, u = 0.7, np.array([0.2, 0.3]), np.array([-0.1, 0.4]), np.array([0.5, 0.6])
    status, tau = code.call("control", [t], q, v, u, size=2)
    assert status == 0
    assert tau == pytest.approx(spring(t, q, v, u), abs=1e-14)
    code = Exported(model, [], tmp_path, name="other", controller=Integral())
    z = np.array([0.1, -0.2])
    assert code.call("control", [t], q, v, z, size=2)[1] == pytest.approx(5.0 * (0.3 - q) + 9.0 * z - v, abs=1e-14)
    found = code.call("control_memory", [t], [1e-3], q, v, z, size=2)[1]
    assert found == pytest.approx(z + 1e-3 * (0.3 - q), abs=1e-15)
