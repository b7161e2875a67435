"""The origin of a frame as forces see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spanloop.errors import InputError
from spanloop.kernels import on_scalars
from spanloop.math.scalar import sqrt, where
from spanloop.math.vector3 import add, cross, dot, negate, scale, subtract, times
from spanloop.model import Model
from spanloop.model.parts import WORLD
from spanloop.model.user_input import number
from spanloop.types import Vector3

Acting = dict[Any, Sequence[Any]]

Force = Callable[..., Acting]  # (t, q, v) -> what acts where


class Point:
    """The origin of a frame on scalars: where it is, how it moves, what a force there does to its body."""

    def __init__(self, model: Model, frame: str):
        found = model.frame(frame)
        self.name, self.body = found.name, found.body
        self._pose = on_scalars(model, "pose", frame=self.name)
        self._jacobian = on_scalars(model, "jacobian", frame=self.name)
        self._origin = on_scalars(model, "pose", frame=self.body)

    def moves(self, who: str) -> None:
        if self.body == WORLD:
            raise InputError(f"{who}: {self.name!r} is fixed in the world; name a frame that moves")

    def place(self, q) -> Vector3:
        return position(self._pose(q))

    def velocity(self, q, v) -> Vector3:
        rows = self._jacobian(q)
        return (dot(rows[3], v), dot(rows[4], v), dot(rows[5], v))

    def omega(self, q, v) -> Vector3:
        rows = self._jacobian(q)
        return (dot(rows[0], v), dot(rows[1], v), dot(rows[2], v))

    def load(self, q, force: Vector3, torque: Vector3 = (0.0, 0.0, 0.0)) -> Acting:
        """A force (and torque) at the point, as [torque; force] at the body's origin; nothing on the world."""
        if self.body == WORLD:
            return {}
        if self.name != self.body:
            lever = subtract(self.place(q), position(self._origin(q)))
            torque = add(torque, cross(lever, force))
        return {self.body: [*torque, *force]}


def position(pose) -> Vector3:
    return (pose[0][3], pose[1][3], pose[2][3])


def not_negative(value, what: str) -> float:
    x = number(value, what)
    if x < 0.0:
        raise InputError(f"{what} is {x:g}; must be >= 0")
    return x


# ---- Wrenches and drag at a frame.


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


# ---- Springs and dampers between two frames.


SHORT = 1e-12  # m: a line shorter than this has no direction


def spring(model: Model, a: str, b: str, stiffness: float, rest: float = 0.0, damping: float = 0.0) -> Force:
    """A spring and damper between the origins of two frames (bodies, the world): pulls with k (length − rest) + c rate.

    stiffness [N/m], rest [m], damping [N s/m].
    """
    k, c = not_negative(stiffness, "spring: stiffness"), not_negative(damping, "spring: damping")
    length = not_negative(rest, "spring: rest")
    first, second = Point(model, a), Point(model, b)
    if first.body == second.body:
        raise InputError(f"spring: {a!r} and {b!r} are both on {first.body!r}; nothing moves between them")

    def tension(q, v, line):
        """Tension over length."""
        square = dot(line, line)
        flat = square < SHORT * SHORT
        over = where(flat, 0.0, 1.0) / where(flat, 1.0, square)  # 1/length²
        pull = k - (k * length) * sqrt(over) if length else k
        if not c:
            return pull
        rate = dot(line, subtract(second.velocity(q, v), first.velocity(q, v)))
        return pull + (c * rate) * over

    def acting(t, q, v) -> Acting:
        line = subtract(second.place(q), first.place(q))
        pull = scale(tension(q, v, line), line)
        return first.load(q, pull) | second.load(q, negate(pull))

    return acting


def damper(model: Model, a: str, b: str, damping: float) -> Force:
    """A damper between the origins of two frames: pulls with c times the rate of their distance; damping [N s/m]."""
    return spring(model, a, b, 0.0, 0.0, damping)
