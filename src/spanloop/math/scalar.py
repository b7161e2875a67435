"""Functions of one scalar that work alike on floats and on traced scalars.

A traced scalar brings `sincos()`, `sqrt()` and comparisons whose result brings `select(a, b)`; nothing here
imports the compiler.
"""

from __future__ import annotations

import math

import numpy as np

from spanloop.types import Scalar

_REAL = (float, int)


def sincos(x: Scalar) -> tuple[Scalar, Scalar]:
    """Sine and cosine of an angle [rad]."""
    if isinstance(x, _REAL):
        return math.sin(x), math.cos(x)
    return x.sincos()


def sqrt(x: Scalar) -> Scalar:
    """Square root of a number that is not negative."""
    if isinstance(x, _REAL):
        return math.sqrt(x)
    return x.sqrt()


def reciprocal(x: Scalar) -> Scalar:
    """1/x; infinite for the number 0, so that an answer that needs it is not finite and is reported."""
    if isinstance(x, _REAL) and x == 0.0:
        return math.inf
    return 1.0 / x


def where(condition, yes: Scalar, no: Scalar) -> Scalar:
    """`yes` where the condition holds, `no` elsewhere; both are evaluated.

    >>> def push(t, q, v):  # a controller with a choice
    ...     return [sl.where(q[0] > 0.5, -2.0, 0.0)]
    >>> run = sl.simulate(sl.zoo.pendulum(), [1.0], duration=0.1, controller=push)
    >>> float(run.tau[0, 0]), sl.where(1.0 > 2.0, "yes", "no")
    (-2.0, 'no')
    """
    if hasattr(condition, "select"):
        return condition.select(yes, no)
    if getattr(condition, "shape", ()):
        return np.where(condition, yes, no)
    return yes if condition else no


def absolute(x: Scalar) -> Scalar:
    """|x|."""
    return where(x < 0.0, -x, x)


def arctan2(y: Scalar, x: Scalar) -> Scalar:
    """Angle of the point (x, y) in (-pi, pi]; as plain arithmetic when traced.

    Traced: the smaller of |x|, |y| over the larger is reduced to |t| <= tan(pi/8), then a rational
    approximation (Moshier's, of the Cephes library: the coefficients are data, quoted from there).
    """
    if isinstance(x, _REAL) and isinstance(y, _REAL):
        return math.atan2(y, x)
    ax, ay = absolute(x), absolute(y)
    swap = ax < ay
    large, small = where(swap, ay, ax), where(swap, ax, ay)
    both_zero = large < 5e-324
    ratio = small / where(both_zero, 1.0, large)
    upper = ratio > 0.4142135623730950
    t = where(upper, (ratio - 1.0) / (ratio + 1.0), ratio)
    z = t * t
    p = -8.750608600031904122785e-1
    for c in (
        -1.615753718733365076637e1,
        -7.500855792314704667340e1,
        -1.228866684490136173410e2,
        -6.485021904942025371773e1,
    ):
        p = p * z + c
    r = z + 2.485846490142306297962e1
    for c in (
        1.650270098316988542046e2,
        4.328810604912902668951e2,
        4.853903996359136964868e2,
        1.945506571482613964425e2,
    ):
        r = r * z + c
    angle = t + t * (z * (p / r))
    angle = where(upper, angle + 0.25 * math.pi, angle)
    angle = where(swap, 0.5 * math.pi - angle, angle)
    angle = where(x < 0.0, math.pi - angle, angle)
    return where(y < 0.0, -angle, angle)
