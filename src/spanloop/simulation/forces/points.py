"""The origin of a frame as forces see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spanloop.compiling import on_scalars
from spanloop.errors import InputError
from spanloop.math.small import add, cross, dot, subtract
from spanloop.model import Model
from spanloop.model.given import number
from spanloop.model.parts import WORLD
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
