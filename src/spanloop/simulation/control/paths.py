"""Paths: position, velocity and acceleration as functions of time, in plain arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import InputError
from spanloop.math.scalar import sincos, where
from spanloop.math.vector3 import add, cross, scale, transpose
from spanloop.model.user_input import number, rotation, three

Three = tuple[list, list, list]  # position, velocity, acceleration


@dataclass(frozen=True)
class Path:
    """x(t), dx/dt, d²x/dt² of `size` numbers: path(t, u) -> three lists; u: `inputs` numbers of the step."""

    size: int
    motion: Callable[[Any, Sequence[Any]], Three]
    inputs: int = 0
    constant: bool = False

    def __call__(self, t, u: Sequence[Any] = ()) -> Three:
        return self.motion(t, u)


def hold(values) -> Path:
    """Stays where it is."""
    x = _numbers(values, "hold: values")
    return Path(len(x), lambda t, u: (list(x), [0.0] * len(x), [0.0] * len(x)), constant=True)


def path(function: Callable) -> Path:
    """A function (t) -> (x, dx/dt, d²x/dt²) of yours, each a sequence of n numbers or all three single numbers."""
    found = _three_lists(function(0.0))
    sizes = {len(part) for part in found}
    if len(sizes) != 1:
        raise InputError(f"a path's position, velocity and acceleration have {[len(p) for p in found]} numbers")
    return Path(sizes.pop(), lambda t, u: _three_lists(function(t)))


def given(size: int, rates: bool = False) -> Path:
    """The inputs u of each step: x, held during the step; with rates=True x, dx/dt, d²x/dt², 3·size numbers."""

    def motion(t, u):
        if rates:
            return list(u[:size]), list(u[size : 2 * size]), list(u[2 * size :])
        return list(u), [0.0] * size, [0.0] * size

    return Path(size, motion, 3 * size if rates else size)


def cycloidal(start, end, duration: float, begin: float = 0.0) -> Path:
    """From start to end along a cycloid: acceleration is a sine and zero at both ends. It rests before and after."""

    def shape(s):
        sine, cosine = sincos(2.0 * math.pi * s)
        return s - sine / (2.0 * math.pi), 1.0 - cosine, 2.0 * math.pi * sine

    return _between(start, end, duration, begin, shape, "cycloidal")


def quintic(start, end, duration: float, begin: float = 0.0) -> Path:
    """From start to end along 10 s³ − 15 s⁴ + 6 s⁵: velocity and acceleration are zero at both ends."""

    def shape(s):
        return (
            s * s * s * (10.0 + s * (6.0 * s - 15.0)),
            30.0 * s * s * (1.0 + s * (s - 2.0)),
            60.0 * s * (1.0 + s * (2.0 * s - 3.0)),
        )

    return _between(start, end, duration, begin, shape, "quintic")


def sine(center, amplitude, frequency: float, phase: float = 0.0) -> Path:
    """center + amplitude · sin(2π frequency t + phase); frequency [Hz]."""
    c, a = _pair(center, amplitude, "sine", "center", "amplitude")
    w, phase = 2.0 * math.pi * number(frequency, "sine: frequency"), number(phase, "sine: phase")

    def motion(t, u):
        s, k = sincos(w * t + phase)
        return (
            [x + y * s for x, y in zip(c, a, strict=True)],
            [(w * y) * k for y in a],
            [-((w * w * y) * s) for y in a],
        )

    return Path(len(c), motion)


def turning(start, axis, angle: Path) -> Callable:
    """Orientations: `start` (3×3, or roll pitch yaw [rad]) turned about an axis of the world by the angle of a path.

    Gives a function (t) -> rotation matrix, angular velocity, angular acceleration, for operational_space.
    """
    r0 = rotation(start, "turning: start")
    length = math.hypot(*three(axis, "turning: axis"))
    if length < 1e-12:
        raise InputError("turning: axis has length 0; expected a direction")
    x, y, z = (c / length for c in axis)
    if angle.size != 1:
        raise InputError(f"turning: the angle's path has {angle.size} numbers; expected one")
    if angle.inputs:
        raise InputError("turning: the angle's path reads inputs; expected a function of time")
    columns = transpose(r0)

    def motion(t):
        (q,), (v,), (a,) = angle(t)
        s, c = sincos(q)

        def turned(r):  # Rodrigues' formula
            along = (1.0 - c) * (x * r[0] + y * r[1] + z * r[2])
            return add(add(scale(c, r), scale(s, cross((x, y, z), r))), scale(along, (x, y, z)))

        return transpose(tuple(turned(r) for r in columns)), (x * v, y * v, z * v), (x * a, y * a, z * a)

    return motion


def _between(start, end, duration: float, begin: float, shape: Callable, who: str) -> Path:
    """From start to end as shape(s) -> (share, rate, its rate) tells, s from 0 to 1 in `duration` from `begin` on."""
    a, b = _pair(start, end, who, "start", "end")
    duration, begin = number(duration, f"{who}: duration"), number(begin, f"{who}: begin")
    if duration <= 0.0:
        raise InputError(f"{who}: duration is {duration:g} s; must be > 0")

    def motion(t, u):
        s = (t - begin) * (1.0 / duration)
        s = where(s < 0.0, 0.0, where(s > 1.0, 1.0, s))
        share, rate, bend = shape(s)
        way = [y - x for x, y in zip(a, b, strict=True)]
        return (
            [x + w * share for x, w in zip(a, way, strict=True)],
            [(w / duration) * rate for w in way],
            [(w / duration**2) * bend for w in way],
        )

    return Path(len(a), motion)


def _pair(first, second, who: str, one: str, other: str) -> tuple[list[float], list[float]]:
    a, b = _numbers(first, f"{who}: {one}"), _numbers(second, f"{who}: {other}")
    if len(a) != len(b):
        raise InputError(f"{who}: {one} has {len(a)} numbers and {other} {len(b)}; expected as many")
    return a, b


def _numbers(values, owner: str) -> list[float]:
    array = np.atleast_1d(np.asarray(values))
    if array.dtype.kind not in "fiu" or array.ndim != 1 or not np.isfinite(array).all():
        raise InputError(f"{owner} is {values!r}; expected finite numbers")
    return [float(x) for x in array]


def _three_lists(found) -> Three:
    try:
        x, v, a = found
    except (TypeError, ValueError):
        raise InputError(
            f"a path returned {type(found).__name__}; expected position, velocity and acceleration"
        ) from None
    lists = [list(part) if hasattr(part, "__len__") else [part] for part in (x, v, a)]
    return lists[0], lists[1], lists[2]
