"""Rollouts for GPUs: the text of one thread a run, compiled for this processor, against the batch rollout."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import spanloop as sl
from spanloop.compiler.lower import Schedule
from spanloop.compiler.render.gpu.rollout import NAME, gpu_rollout, host_rollout
from spanloop.compiler.render.rollout import distant
from spanloop.compiler.runtime import arrays, machine
from spanloop.compiler.runtime.gpu.assembly import ptx
from spanloop.compiler.runtime.kernel import REAL
from spanloop.compiler.runtime.rollout import KINDS, Rollout, Steps, _Parts
from spanloop.simulation.integrators.integrator import Integrator, schedule
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import Problem
from spanloop.simulation.simulate import robot_of, with_stiffness

RUNS, STEPS, H = 5, 20, 1e-3
CASES = {
    "tree": lambda: (sl.zoo.puma(), None, "rk4", {}),
    "free base": lambda: (sl.zoo.quadruped(), None, "rk4", {"contacts": "ignore"}),
    "loop": lambda: (sl.zoo.four_bar(), sl.zoo.four_bar_start(), "rk4", {}),
    "midpoint": lambda: (sl.zoo.four_bar(), sl.zoo.four_bar_start(), "midpoint", {}),
    "implicit": lambda: (sl.zoo.puma(), None, "implicit", {}),
    "platform": lambda: (sl.zoo.stewart(), sl.zoo.stewart_start(), "rk4", {}),
    "end": lambda: (sl.zoo.pendulum(), np.array([0.02]), "rk4", {"events": lambda t, q, v: q[0] - 0.019}),
}


def _case(name: str, dtype: str) -> tuple[Problem, Schedule]:
    model, q, integrator, given = CASES[name]()
    problem = Problem.of(robot_of(model), q, None, step=H, **given)
    problem, _ = with_stiffness(problem, Integrator(integrator), H)
    return problem, schedule(problem.system, problem.events, integrator, dtype)


def _states(problem: Problem, s: Schedule, dtype: str) -> np.ndarray:
    layout = StateLayout.of(problem.system, problem.events, dtype)
    state = np.repeat(problem.state(layout), RUNS, axis=0).astype(dtype)
    if not problem.system.has_loops:
        state[:, layout.places["v"]] = np.random.default_rng(7).normal(size=(RUNS, layout.sizes["v"])) / 10
    return np.ascontiguousarray(state)


def _by_threads(s: Schedule, dtype: str, parts: _Parts) -> None:
    code = machine.Code(machine.object_code(host_rollout(s, REAL[dtype])), NAME)
    memory = arrays.aligned(RUNS * distant(s, REAL[dtype], 1)[1])
    function = ctypes.CFUNCTYPE(None, *KINDS[:-1])(code.address(NAME))
    function(*parts.arguments(0, STEPS), arrays.address(memory), RUNS)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_one_thread_a_run_takes_the_steps_of_the_batch(name, dtype):
    problem, s = _case(name, dtype)
    state = _states(problem, s, dtype)
    constants = np.ascontiguousarray(np.broadcast_to(problem.constants, problem.constants.shape), dtype)
    controls = np.zeros((1, 1, s.width(s.controls)), dtype)
    found = []
    for by_threads in (False, True):
        own = Rollout(f"test {name}", lambda s=s: s, dtype)
        x, why, counts = state.copy(), np.zeros(RUNS, np.uint8), np.zeros(RUNS, np.int64)
        record = np.zeros((RUNS, STEPS + 1, s.width(s.record)), dtype)
        steps = Steps(0.0, H, 0, STEPS)
        if by_threads:
            _by_threads(s, dtype, _Parts(own, x, constants, controls, why, counts, steps, record, None, None))
        else:
            counts = own._function(machine.lanes(REAL[dtype])) and own.run(x, constants, controls, why, steps, record)
        found.append((x, why, counts, record))
    batch, threads = found
    np.testing.assert_array_equal(threads[1], batch[1])
    np.testing.assert_array_equal(threads[2], batch[2])
    # vectors and single numbers contract multiply-add in different places: rounding, which 20 steps amplify little
    bound = 1e-11 if dtype == "float64" else 2e-3
    np.testing.assert_allclose(threads[0], batch[0], rtol=bound, atol=bound)
    for k, count in enumerate(batch[2]):  # samples after a run's end mean nothing
        np.testing.assert_allclose(threads[3][k, : count + 1], batch[3][k, : count + 1], rtol=bound, atol=bound)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_the_rollout_is_ptx_that_assembles(name, dtype, tmp_path):
    _, s = _case(name, dtype)
    text = ptx(gpu_rollout(s, REAL[dtype]))
    assert f".entry {NAME}(" in text
    if shutil.which("ptxas") is None:
        pytest.skip("the assembler of NVIDIA's toolkit is not installed")
    (tmp_path / "x.ptx").write_text(text)
    done = subprocess.run(
        ["ptxas", "-arch=sm_90", tmp_path / "x.ptx", "-o", "/dev/null"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
