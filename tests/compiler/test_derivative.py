"""Directional derivatives of traced functions, beside differences in extended precision."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from spanloop.compiler.derivative import directional
from spanloop.compiler.lower import unrolled
from spanloop.kernels import machine_kernel
from spanloop.math.scalar import sincos, sqrt, where
from spanloop.simulation.traced_kernels import TracedFunction


def function(x, y):
    """Numbers with every operation: the first branch of the choice is taken where x < y."""
    s, c = sincos(x * y)
    return [s / (2.0 + c), sqrt(x * x + y * y), where(x < y, x * x * y, -y), 3.0]


def exact(x, y):
    x, y = mpmath.mpf(x), mpmath.mpf(y)
    s, c = mpmath.sin(x * y), mpmath.cos(x * y)
    return [s / (2 + c), mpmath.sqrt(x * x + y * y), x * x * y if x < y else -y, mpmath.mpf(3)]


@pytest.mark.parametrize("at", [(0.3, 0.7), (1.2, 0.4)])
def test_derivatives_of_every_operation(at):
    def compute(z):
        return directional(function(*z["q"]), z["q"], z["v"]), ()

    found = machine_kernel(TracedFunction("derivative", f"test {at}", (("q", 2), ("v", 2)), 4, compute))
    with mpmath.workdps(40):
        h, v = mpmath.mpf(10) ** -15, (0.9, -1.3)
        sides = [exact(at[0] + k * h * v[0], at[1] + k * h * v[1]) for k in (1, -1)]
        expected = [float((a - b) / (2 * h)) for a, b in zip(*sides, strict=True)]
    assert found(np.array(at), np.array(v)) == pytest.approx(expected, rel=1e-14, abs=1e-15)


def test_what_does_not_move_has_no_derivative():
    def compute(z):
        return directional([z["q"][0] * z["q"][1], 2.0], z["q"][:1], [1.0]), (), ()

    plan = unrolled("derivative", (("q", 2),), (2,), compute)
    assert plan.outputs[0] is plan.arguments[1]
    assert plan.outputs[1] == 0.0
