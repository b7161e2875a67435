"""Paths: position, velocity and acceleration as functions of time, in plain arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError
from spanloop.math.scalar import sincos, where
from spanloop.math.vector3 import add, cross, scale, transpose
from spanloop.model.user_input import number, rotation, three

Three = tuple[list[Any], list[Any], list[Any]]  # position, velocity, acceleration


@dataclass(frozen=True)
class Path:
    """A path x(t) with its rates: path(t, u) returns x, dx/dt and d²x/dt², a list of `size` numbers each.

    Attributes:
        size: how many numbers x has.
        motion: the function (t, u) -> x, dx/dt, d²x/dt².
        inputs: how many numbers u of a step it reads.
        constant: x does not change.
    """

    size: int
    motion: Callable[[Any, Sequence[Any]], Three]
    inputs: int = 0
    constant: bool = False

    def __call__(self, t: Any, u: Sequence[Any] = ()) -> Three:
        return self.motion(t, u)


def hold(values: ArrayLike) -> Path:
    """A path that stays at given values.

    Args:
        values: one number or several [rad or m].

    Returns:
        A constant Path.

    Raises:
        InputError: a value is not a finite number.

    Example:
        >>> sl.control.hold([0.3, -0.2])(1.0)
        ([0.3, -0.2], [0.0, 0.0], [0.0, 0.0])
    """
    x = _numbers(values, "hold: values")
    return Path(len(x), lambda t, u: (list(x), [0.0] * len(x), [0.0] * len(x)), constant=True)


def path(function: Callable[[Any], Any]) -> Path:
    """A path from a function of your own, in plain arithmetic.

    Args:
        function: (t) -> (x, dx/dt, d²x/dt²), each a sequence of n numbers, or all three single numbers.

    Returns:
        A Path of n numbers.

    Raises:
        InputError: the function does not return three sequences of one length.

    Example:
        >>> sl.control.path(lambda t: ([0.1 * t, 0.0], [0.1, 0.0], [0.0, 0.0]))(2.0)
        ([0.2, 0.0], [0.1, 0.0], [0.0, 0.0])
    """
    found = _three_lists(function(0.0))
    sizes = {len(part) for part in found}
    if len(sizes) != 1:
        raise InputError(f"a path's position, velocity and acceleration have {[len(p) for p in found]} numbers")
    return Path(sizes.pop(), lambda t, u: _three_lists(function(t)))


def given(size: int, rates: bool = False) -> Path:
    """A path whose values are the inputs u of each step.

    Args:
        size: how many numbers x has.
        rates: u has x, dx/dt and d²x/dt², 3·size numbers; otherwise it has x, which is constant during the step.

    Returns:
        A Path that reads inputs.

    Example:
        >>> arm = sl.zoo.pendulum(2)
        >>> follow = sl.control.pd(arm, 50.0, 5.0, sl.control.given(2))
        >>> wave = 0.3 * np.sin(np.linspace(0.0, 6.0, 100))  # a row for each step
        >>> run = sl.simulate(arm, duration=0.1, controller=follow, inputs=np.column_stack([wave, -wave]))
    """

    def motion(t: Any, u: Any) -> Three:
        if rates:
            return list(u[:size]), list(u[size : 2 * size]), list(u[2 * size :])
        return list(u), [0.0] * size, [0.0] * size

    return Path(size, motion, 3 * size if rates else size)


def cycloidal(start: ArrayLike, end: ArrayLike, duration: float, begin: float = 0.0) -> Path:
    """A path from rest to rest along a cycloid: acceleration is a sine and zero at both ends.

    Args:
        start, end: one number or as many each [rad or m].
        duration: of the way [s].
        begin: time of its start [s]; the path rests before and after.

    Returns:
        A Path.

    Raises:
        InputError: start and end differ in size, or duration is not positive.

    Example:
        >>> x, dx, ddx = sl.control.cycloidal([0.0, 0.0], [0.5, -0.3], duration=2.0)(2.0)
        >>> x
        [0.5, -0.3]
    """

    def shape(s: Any) -> tuple[Any, Any, Any]:
        sine, cosine = sincos(2.0 * math.pi * s)
        return s - sine / (2.0 * math.pi), 1.0 - cosine, 2.0 * math.pi * sine

    return _between(start, end, duration, begin, shape, "cycloidal")


def quintic(start: ArrayLike, end: ArrayLike, duration: float, begin: float = 0.0) -> Path:
    """A path from rest to rest along 10 s³ − 15 s⁴ + 6 s⁵: velocity and acceleration are zero at both ends.

    Args:
        start, end: one number or as many each [rad or m].
        duration: of the way [s].
        begin: time of its start [s]; the path rests before and after.

    Returns:
        A Path.

    Raises:
        InputError: start and end differ in size, or duration is not positive.

    Example:
        >>> x, dx, ddx = sl.control.quintic([0.0, 0.0], [0.5, -0.3], duration=1.0)(1.0)
        >>> x
        [0.5, -0.3]
    """

    def shape(s: Any) -> tuple[Any, Any, Any]:
        return (
            s * s * s * (10.0 + s * (6.0 * s - 15.0)),
            30.0 * s * s * (1.0 + s * (s - 2.0)),
            60.0 * s * (1.0 + s * (2.0 * s - 3.0)),
        )

    return _between(start, end, duration, begin, shape, "quintic")


def sine(center: ArrayLike, amplitude: ArrayLike, frequency: float, phase: float = 0.0) -> Path:
    """A path center + amplitude · sin(2π frequency t + phase).

    Args:
        center, amplitude: one number or as many each [rad or m].
        frequency: [Hz].
        phase: [rad].

    Returns:
        A Path.

    Raises:
        InputError: center and amplitude differ in size, or a number is not finite.

    Example:
        >>> x, dx, ddx = sl.control.sine(0.0, 0.3, frequency=0.5)(0.5)
        >>> x
        [0.3]
    """
    c, a = _pair(center, amplitude, "sine", "center", "amplitude")
    w, phase = 2.0 * math.pi * number(frequency, "sine: frequency"), number(phase, "sine: phase")

    def motion(t: Any, u: Any) -> Three:
        s, k = sincos(w * t + phase)
        return (
            [x + y * s for x, y in zip(c, a, strict=True)],
            [(w * y) * k for y in a],
            [-((w * w * y) * s) for y in a],
        )

    return Path(len(c), motion)


def turning(start: ArrayLike, axis: ArrayLike, angle: Path) -> Callable[[Any], tuple[Any, Any, Any]]:
    """Orientations: a rotation turned about an axis of the world by the angle of a path.

    Args:
        start: a rotation (3, 3), or roll, pitch, yaw [rad].
        axis: direction (3) in world axes.
        angle: a Path of one number [rad] that reads no inputs.

    Returns:
        A function (t) -> rotation matrix, angular velocity, angular acceleration, for operational_space.

    Raises:
        InputError: the axis has length 0, or the path does not fit.

    Example:
        >>> turn = sl.control.turning((0.0, 0.0, 0.0), (0, 0, 1), sl.control.quintic(0.0, 1.0, duration=2.0))
        >>> rotation, omega, alpha = turn(1.0)
    """
    r0 = rotation(start, "turning: start")
    length = math.hypot(*three(axis, "turning: axis"))
    if length < 1e-12:
        raise InputError("turning: axis has length 0; expected a direction")
    x, y, z = (c / length for c in three(axis, "turning: axis"))
    if angle.size != 1:
        raise InputError(f"turning: the angle's path has {angle.size} numbers; expected one")
    if angle.inputs:
        raise InputError("turning: the angle's path reads inputs; expected a function of time")
    columns = transpose(r0)

    def motion(t: Any) -> tuple[Any, Any, Any]:
        (q,), (v,), (a,) = angle(t)
        s, c = sincos(q)

        def turned(r: Any) -> Any:  # Rodrigues' formula
            along = (1.0 - c) * (x * r[0] + y * r[1] + z * r[2])
            return add(add(scale(c, r), scale(s, cross((x, y, z), r))), scale(along, (x, y, z)))

        return transpose(tuple(turned(r) for r in columns)), (x * v, y * v, z * v), (x * a, y * a, z * a)

    return motion


def _between(
    start: Any, end: Any, duration: float, begin: float, shape: Callable[[Any], tuple[Any, Any, Any]], who: str
) -> Path:
    """From start to end by shape(s) -> (share, rate, its rate), s from 0 to 1 in `duration` from `begin` on."""
    a, b = _pair(start, end, who, "start", "end")
    duration, begin = number(duration, f"{who}: duration"), number(begin, f"{who}: begin")
    if duration <= 0.0:
        raise InputError(f"{who}: duration is {duration:g} s; must be > 0")

    def motion(t: Any, u: Any) -> Three:
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


def _pair(first: Any, second: Any, who: str, one: str, other: str) -> tuple[list[float], list[float]]:
    a, b = _numbers(first, f"{who}: {one}"), _numbers(second, f"{who}: {other}")
    if len(a) != len(b):
        raise InputError(f"{who}: {one} has {len(a)} numbers and {other} {len(b)}; expected as many")
    return a, b


def _numbers(values: Any, owner: str) -> list[float]:
    array = np.atleast_1d(np.asarray(values))
    if array.dtype.kind not in "fiu" or array.ndim != 1 or not np.isfinite(array).all():
        raise InputError(f"{owner} is {values!r}; expected finite numbers")
    return [float(x) for x in array]


def _three_lists(found: Any) -> Three:
    try:
        x, v, a = found
    except (TypeError, ValueError):
        raise InputError(
            f"a path returned {type(found).__name__}; expected position, velocity and acceleration"
        ) from None
    lists = [list(part) if hasattr(part, "__len__") else [part] for part in (x, v, a)]
    return lists[0], lists[1], lists[2]
