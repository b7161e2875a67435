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
    """Square root of a number that is not negative, or of an array of them."""
    if isinstance(x, _REAL):
        return math.sqrt(x)
    if isinstance(x, np.ndarray):
        return np.sqrt(x)
    return x.sqrt()


def factor_of_armature(r: Scalar) -> Scalar:
    """√r, with a finite derivative at 0: by it a rotor is a row √r w with a compliance of 1, which acts as r w wᵀ.

    The derivative of the root, 1 / (2 √r), is multiplied by √r again; 1e-100 kg m² keep 0 / 0 out of that.
    """
    return sqrt(r + 1e-100)


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
    ratio = small / where(large > 0.0, large, 1.0)
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


_PERIODS = 32  # binary digits of the whole number of periods that are taken off when traced


def modulo(x: Scalar, m: float) -> Scalar:
    """x % m for a number m: in [0, m), as Python's; as plain arithmetic when traced, NaN beyond 2³² periods.

    Traced: |x| is reduced by m·2³¹, ..., 2 m, m, each where it fits: every difference is exact.
    """
    if isinstance(x, _REAL):
        return x % m
    if not isinstance(m, _REAL) or not 0.0 < abs(m) < math.inf:
        raise TypeError(f"a traced value modulo {m}; the second number is a constant that is not 0")
    if m < 0.0:
        return -modulo(-x, -m)
    y = absolute(x)
    near = y < m * 2.0**_PERIODS
    for k in reversed(range(_PERIODS)):
        y = y - where(y < m * 2.0**k, 0.0, m * 2.0**k)
    y = where(x < 0.0, where(y > 0.0, m - y, 0.0), y)
    return where(near, y, math.nan)


_LARGEST = 709.78  # exp of more is not finite
_ONE = 20.0  # tanh of more is 1
_LN2_HIGH, _LN2_LOW = 6.93145751953125e-1, 1.42860682030941723212e-6  # together ln 2; the first has few digits


def exp(x: Scalar) -> Scalar:
    """e to the power x; as plain arithmetic when traced, inf beyond 709.78 and 0 below −709.78 (±88.7 in float32).

    Traced: |x| is reduced by 512 ln 2, 256 ln 2, ..., ln 2, each where it fits, which loses no digit; then a rational
    approximation on half of ln 2 around 0 (Moshier's, of the Cephes library). Powers of two are squares of the one
    before: no constant is too large for float32.
    """
    if isinstance(x, _REAL):
        return math.exp(x)
    negative = x < 0.0
    base = where(negative, 0.5, 2.0)
    powers = [base]  # base to the power 1, 2, 4, ..., 512
    for _ in range(9):
        powers.append(powers[-1] * powers[-1])
    y, scale, low = absolute(x), 1.0, 0.0
    for k in reversed(range(10)):
        fits = y > 2.0**k * _LN2_HIGH
        y = y - where(fits, 2.0**k * _LN2_HIGH, 0.0)
        low = low + where(fits, 2.0**k * _LN2_LOW, 0.0)
        scale = scale * where(fits, powers[k], 1.0)
    above = y > 0.5 * _LN2_HIGH
    size = (y - where(above, _LN2_HIGH, 0.0)) - (low + where(above, _LN2_LOW, 0.0))
    r = where(negative, -size, size)
    z = r * r
    p = r * _polynomial(z, 1.26177193074810590878e-4, 3.02994407707441961300e-2, 9.99999999999999999910e-1)
    q = _polynomial(z, 3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1, 2.0)
    found = (1.0 + 2.0 * (p / (q - p))) * where(above, base, 1.0) * scale
    return where(absolute(x) > _LARGEST, where(negative, 0.0, math.inf), found)


def tanh(x: Scalar) -> Scalar:
    """The hyperbolic tangent; as plain arithmetic when traced (Moshier's, of the Cephes library)."""
    if isinstance(x, _REAL):
        return math.tanh(x)
    z, size = x * x, absolute(x)
    p = _polynomial(z, -9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3)
    q = _polynomial(z, 1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3)
    far = 1.0 - 2.0 / (exp(2.0 * where(size < _ONE, size, _ONE)) + 1.0)
    return where(size < 0.625, x + x * (z * (p / q)), where(x < 0.0, -far, far))


def _polynomial(z: Scalar, *coefficients: float) -> Scalar:
    """c₀ zⁿ + ... + cₙ."""
    out: Scalar = coefficients[0]
    for c in coefficients[1:]:
        out = out * z + c
    return out
