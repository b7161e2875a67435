"""Runs that stay on a device, with the driver's double: numbers of other libraries in and out, in place."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest
from driver_double import doubled_driver

import spanloop as sl
from spanloop.compiler.runtime import arrays
from spanloop.compiler.runtime.device_arrays import DeviceArray
from spanloop.compiler.runtime.dlpack import CUDA
from spanloop.compiler.runtime.gpu.device_runs import DeviceRuns
from spanloop.compiler.runtime.gpu.driver import Device, Memory
from spanloop.compiler.runtime.gpu.rollout import GpuRollout
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.errors import InputError
from spanloop.simulation.integrators.integrator import Integrator, schedule
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import Problem
from spanloop.simulation.simulate import robot_of, with_stiffness

N, H = 7, 1e-3


@pytest.fixture(scope="module")
def motion():
    model = sl.zoo.puma()
    problem, _ = with_stiffness(Problem.of(robot_of(model), np.full((N, 6), 0.2), None, step=H), Integrator("rk4"), H)
    made = schedule(problem.system, problem.events, "rk4", "float64")
    state = problem.state(StateLayout.of(problem.system, problem.events, "float64"))
    return made, np.ascontiguousarray(state), np.ascontiguousarray(problem.constants)


def on_cpu(motion, controls, count, state=None):
    made, start, constants = motion
    x, why = (start if state is None else state).copy(), np.zeros(N, np.uint8)
    Rollout("test of device runs", lambda: made).run(x, constants, controls, why, Steps(0.0, H, 0, count))
    return x


def device_array(x: np.ndarray, **more) -> DeviceArray:
    memory = Memory(Device.of(), x.nbytes)
    memory.write(arrays.address(x), x.nbytes)
    return DeviceArray.of_rows(memory.pointer, x.shape, x.dtype, device_type=CUDA, owner=memory, **more)


def test_controls_on_the_device_are_read_in_place(motion, monkeypatch):
    made, state, constants = motion
    controls = np.random.default_rng(2).normal(size=(N, 5, 6))
    with doubled_driver(monkeypatch) as double:
        runs = DeviceRuns(GpuRollout("test of device runs", lambda: made))
        runs.place(state, constants, np.zeros(N, np.uint8))
        lent = device_array(controls)
        before = double.story.count("write")
        runs.advance(lent, Steps(0.0, H, 0, 5))
        assert double.story.count("write") == before
        found, why, counts = runs.fetched(5)
        del runs, lent
        assert double.used == 0
    np.testing.assert_allclose(found, on_cpu(motion, controls, 5), rtol=1e-12, atol=1e-13)
    assert not why.any()
    assert (counts == 5).all()


def test_what_another_library_writes_the_next_stretch_begins_with(motion, monkeypatch):
    made, state, constants = motion
    controls, other = np.zeros((1, 1, 6)), state + 0.01
    with doubled_driver(monkeypatch):
        runs = DeviceRuns(GpuRollout("test of device runs", lambda: made))
        runs.place(state, constants, np.zeros(N, np.uint8))
        runs.advance(controls, Steps(0.0, H, 0, 3))
        lent = runs.lent("state")
        assert lent.shape == state.shape
        assert lent.__dlpack_device__() == (CUDA, 0)
        ctypes.memmove(lent.pointer, arrays.address(other), other.nbytes)
        runs.advance(controls, Steps(0.0, H, 3, 4))
        found = runs.fetched(7)[0]
        assert runs.lent("why").dtype == np.uint8
        del runs, lent
    np.testing.assert_allclose(found, on_cpu(motion, controls, 4, other), rtol=1e-12, atol=1e-13)


def test_controls_that_do_not_fit_are_refused(motion, monkeypatch):
    made, state, constants = motion
    with doubled_driver(monkeypatch):
        runs = DeviceRuns(GpuRollout("test of device runs", lambda: made))
        runs.place(state, constants, np.zeros(N, np.uint8))
        with pytest.raises(InputError, match="controls holds float32; expected float64"):
            runs.advance(device_array(np.zeros((N, 1, 6), np.float32)), Steps(0.0, H, 0, 1))
        wide = device_array(np.zeros((N, 2, 6)))
        with pytest.raises(InputError, match="gaps between their rows"):
            runs.advance(replace(wide, shape=(N, 1, 6)), Steps(0.0, H, 0, 1))
        del runs, wide


def test_run_advances_numpy_arrays_as_a_rollout_does(motion, monkeypatch):
    made, start, constants = motion
    controls = np.random.default_rng(4).normal(size=(N, 11, 6))
    found = []
    with doubled_driver(monkeypatch):
        for rollout in (Rollout("test of device runs", lambda: made), GpuRollout("test of device runs", lambda: made)):
            state, why, record = start.copy(), np.zeros(N, np.uint8), np.full((N, 6, 12), np.nan)
            counts = rollout.run(state, constants, controls, why, Steps(0.3, H, 2, 11, 2), record)
            found.append((state, why, record, counts, rollout.places("state", N)))
    for a, b in zip(*found, strict=True):
        if isinstance(a, dict):
            assert a == b
        else:
            np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-13)
