"""What only a GPU can show of runs: kernels, streams and pinned memory."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from run_kinds import CASES, assert_same, looped

import spanloop as sl
from spanloop.compiler.runtime.gpu import device_runs, driver

pytestmark = pytest.mark.skipif(not driver.is_available(), reason="needs an NVIDIA GPU")


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_run_is_that_of_the_cpu(name):
    make, options = CASES[name]
    model, q, v = make()
    expected = sl.simulate(model, q, v, duration=0.04, step=1e-3, **options)
    found = sl.simulate(model, q, v, duration=0.04, step=1e-3, target="cuda", **options)
    assert_same(expected, found, 1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_many_runs_and_small_stretches(dtype, monkeypatch):
    model, q, v = looped()
    many = [np.tile(x, (2001, 1)) for x in (q, v)]
    integrator = sl.Integrator("rk4", dtype=dtype)
    whole = sl.simulate(model, *many, duration=0.03, integrator=integrator, target="cuda")
    monkeypatch.setattr(device_runs, "BUFFER", 1)
    monkeypatch.setattr(device_runs, "LAUNCH", 1e-9)
    parts = sl.simulate(model, *many, duration=0.03, integrator=integrator, target="cuda")
    expected = sl.simulate(model, q, v, duration=0.03, integrator=integrator)
    np.testing.assert_array_equal(whole.q, parts.q)
    assert (whole.q.reshape(2001, *expected.q.shape) == whole.q[:5]).all()
    np.testing.assert_allclose(whole.q[:5], expected.q, atol=1e-12 if dtype == "float64" else 1e-5)


def test_derivatives_of_runs_are_those_of_the_cpu():
    model, q, v = looped()
    given = {"duration": 0.02, "step": 1e-3, "wrt": ("q", "v", "tau"), "tau": np.zeros(3)}

    def both(integrator):
        found = sl.gradient(model, lambda q, v: q[0] ** 2 + v[1], q, v, integrator=integrator, **given)
        return found, sl.sensitivities(model, q, v, integrator=integrator, **given)

    expected, found = both("rk4"), both(sl.Integrator("rk4", target="cuda"))
    np.testing.assert_allclose(found[0].tau, expected[0].tau, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found[1].dq, expected[1].dq, rtol=1e-9, atol=1e-11)


def _used() -> int:
    """Bytes of the device's memory pool that this process uses."""
    pool, size = ctypes.c_void_p(), ctypes.c_uint64()
    driver.call("cuDeviceGetDefaultMemPool", ctypes.byref(pool), ctypes.c_int(0))
    driver.call("cuMemPoolGetAttribute", pool, 7, ctypes.byref(size))
    return size.value


def test_memory_is_given_back():
    model, q, v = looped()
    device = driver.Device.of()
    many = [np.tile(x, (20_000, 1)) for x in (q, v)]
    used = []
    for _ in range(3):
        sl.simulate(model, *many, duration=0.01, target="cuda")
        device.synchronize()
        used.append(_used())
    assert used[2] == used[0]


def test_too_many_runs_are_refused_with_a_sentence(monkeypatch):
    model, q, v = looped()
    monkeypatch.setattr(driver.Device, "free_memory", lambda self: 1000)
    with pytest.raises(sl.errors.DeviceError, match=r"5 runs need .* GB more on"):
        sl.simulate(model, q, v, duration=0.01, target="cuda")
