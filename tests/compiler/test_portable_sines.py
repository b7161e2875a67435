"""The sine and cosine of portable code: C and WebAssembly alike, within two units in the last place, NaN beyond."""

from __future__ import annotations

import ctypes
import math
from functools import cache

import mpmath
import numpy as np
import pytest
from portable_code import Wasm, compiled, needs_gcc, same_bits

from spanloop.compiler.portable import wasm_binary as w
from spanloop.compiler.portable.c_plan import sincos_function
from spanloop.compiler.portable.sines import LIMIT
from spanloop.compiler.portable.wasm_plan import add_sincos

KINDS = {"double": np.float64, "float": np.float32}
ULPS = 2.0


def angles(real: str, count: int) -> np.ndarray:
    """Angles of all sizes up to the limit, many of them next to multiples of π/2."""
    rng, limit, kind = np.random.default_rng(3), LIMIT[real], KINDS[real]
    turns = np.concatenate([np.arange(1, 60), rng.integers(60, int(limit * 2 / math.pi), count)])
    near = (turns * (math.pi / 2)).astype(kind)
    for steps in (1, -1, 2, -3):
        near = np.concatenate([near, near[:count] + steps * np.spacing(near[:count])])
    plain = np.concatenate([rng.uniform(-4, 4, count), rng.uniform(-limit, limit, count)]).astype(kind)
    small = (rng.choice([-1.0, 1.0], 200) * 10.0 ** rng.uniform(-30, 0, 200)).astype(kind)
    special = np.array([0.0, -0.0, limit, -limit, np.nextafter(kind(limit), kind(0))], kind)
    found = np.concatenate([near, plain, small, special]).astype(kind)
    return np.ascontiguousarray(found[np.abs(found) <= limit])


@cache
def c_library(real: str) -> ctypes.CDLL:
    head = f"void run({real} *x, {real} *s, {real} *c, long n)"
    loop = f"{head};\n{head} {{ long k; for (k = 0; k < n; k++) spanloop_sincos(x[k], s + k, c + k); }}\n"
    return compiled(sincos_function(real) + loop, "-O2")


def by_c(x: np.ndarray, real: str) -> np.ndarray:
    out = np.empty((2, len(x)), x.dtype)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, out[0], out[1])]
    c_library(real).run(*pointers, ctypes.c_long(len(x)))
    return out


def by_wasm(x: np.ndarray) -> np.ndarray:
    """A loop over x: three arrays, one after the other."""
    module, n = w.Module(), len(x)
    sincos, j = add_sincos(module), 0
    s, c = 1, 2
    body = w.get(j) + w.load(0) + w.call(sincos) + w.put(c) + w.put(s)
    body += w.get(j) + w.get(s) + w.store(n) + w.get(j) + w.get(c) + w.store(2 * n)
    more = w.get(j) + w.i32(8) + w.I32_ADD + w.tee(j) + w.i32(8 * n) + w.I32_LT + w.branch_if(0)
    code = w.LOOP + body + more + w.END
    run = module.add([], [], [(1, w.I32), (2, w.F64)], code)
    ran = Wasm(module.binary({"run": run}, 24 * n))
    ran.memory[:n] = x
    ran.call("run")
    return ran.memory[n : 3 * n].reshape(2, n).copy()


def errors(x: np.ndarray, found: np.ndarray) -> float:
    """The largest error in units in the last place of the exact value."""
    worst = 0.0
    with mpmath.workprec(150):
        for angle, *pair in zip(x, *found, strict=True):
            exact = mpmath.mpf(float(angle))
            for value, true in zip(pair, (mpmath.sin(exact), mpmath.cos(exact)), strict=True):
                unit = float(np.spacing(abs(x.dtype.type(true)))) if true else 5e-324
                worst = max(worst, float(abs(mpmath.mpf(float(value)) - true)) / unit)
    return worst


@needs_gcc
def test_c_and_wasm_give_the_same_bits():
    x = np.concatenate([angles("double", 2000), [math.nan, math.inf, -math.inf, 1.1e6, -1e300]])
    assert same_bits(by_c(x, "double"), by_wasm(x))


@pytest.mark.slow
@needs_gcc
@pytest.mark.parametrize("real", KINDS)
def test_the_error_is_at_most_two_units_in_the_last_place_up_to_the_limit(real):
    x = angles(real, 700)
    assert errors(x, by_c(x, real)) <= ULPS


@needs_gcc
@pytest.mark.parametrize("real", KINDS)
def test_beyond_the_limit_both_are_nan(real):
    kind = KINDS[real]
    beyond = np.nextafter(kind(LIMIT[real]), kind(np.inf))
    x = np.array([beyond, -beyond, 1e30, np.inf, -np.inf, np.nan], kind)
    assert np.isnan(by_c(x, real)).all()
    if real == "double":
        assert np.isnan(by_wasm(x)).all()


def test_at_zero_the_sine_is_zero_and_the_cosine_one():
    assert by_wasm(np.array([0.0, -0.0])).tolist() == [[0.0, 0.0], [1.0, 1.0]]
