"""Wrenches and drag at a frame."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spanloop.compiling import on_scalars
from spanloop.errors import InputError
from spanloop.math.scalar import sqrt
from spanloop.math.small import dot, scale, times
from spanloop.model import Model
from spanloop.model.parts import WORLD
from spanloop.simulation.forces.points import Acting, Force, Point, not_negative


def wrench(model: Model, frame: str, six, axes: str = "world") -> Force:
    """[torque; force] at a frame's origin: six numbers or a function (t) of them, in world axes or those of a frame."""
    point = Point(model, frame)
    point.moves("wrench")
    turn = None if axes == WORLD else on_scalars(model, "pose", frame=model.frame(axes).name)
    of = six if callable(six) else _constant(six, "wrench")
    _six(of(0.0), "wrench")

    def acting(t, q, v) -> Acting:
        given = tuple(of(t))
        torque, force = given[:3], given[3:]
        if turn is not None:
            r = _turn(turn(q))
            torque, force = times(r, torque), times(r, force)
        return point.load(q, force, torque)

    return acting


def drag(model: Model, frame: str, linear: float = 0.0, quadratic: float = 0.0, angular: float = 0.0) -> Force:
    """Resistance of a medium at a frame: force −(linear + quadratic |u|) u against the velocity u of its origin, torque
    −angular ω. linear [N s/m], quadratic [N s²/m²], angular [N m s/rad]."""
    point = Point(model, frame)
    point.moves("drag")
    first, second, turning = (
        not_negative(x, f"drag: {n}") for x, n in ((linear, "linear"), (quadratic, "quadratic"), (angular, "angular"))
    )

    def acting(t, q, v) -> Acting:
        u, omega = point.velocity(q, v), point.omega(q, v)
        strength = first + (second * sqrt(dot(u, u)) if second else 0.0)
        return point.load(q, scale(-strength, u), scale(-turning, omega) if turning else (0.0,) * 3)

    return acting


def _turn(pose):
    return tuple(tuple(row[:3]) for row in pose[:3])


def _constant(six, who: str) -> Callable:
    values = _six(six, who)
    return lambda t: values


def _six(values, who: str) -> tuple[float, ...]:
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.shape != (6,) or not np.isfinite(array).all():
        raise InputError(f"{who}: {values!r} is given; expected six finite numbers, [torque; force]")
    return tuple(float(x) for x in array)
