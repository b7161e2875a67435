"""A rod of fixed length between two points, its own mass neglected. Only closes loops: one row."""

from __future__ import annotations

import math
from dataclasses import dataclass

from spanloop.errors import ModelError
from spanloop.joints.kind import ClosureKind
from spanloop.math.scalar import sqrt, where
from spanloop.math.spatial import Force, Transform
from spanloop.math.vector3 import add, cross, dot, scale
from spanloop.types import Scalar, Vector3

_NONE = 1e-9  # of the length: a smaller distance has no direction


@dataclass(frozen=True)
class Distance(ClosureKind):
    """The origins of the two frames keep the distance `length` [m]; everything else is free."""

    length: float = 1.0

    name = "distance"
    constant_space = False

    def __post_init__(self):
        if not (math.isfinite(self.length) and self.length > 0.0):
            raise ModelError(
                f"distance joint: length is {self.length}; must be > 0. For length 0 use a spherical joint"
            )

    def row_names(self):
        return {0: "force along the rod"}

    def closing_pose(self) -> Transform:
        return Transform(translation=(self.length, 0.0, 0.0))

    def captured_pose(self, x):
        """At the rod's length from the parent, in the direction of x."""
        square = dot(x.translation, x.translation)
        stretch = where(square > 0.0, self.length / sqrt(where(square > 0.0, square, 1.0)), 0.0)
        along = where(square > 0.0, 0.0, self.length)  # no direction: along x of the parent
        return Transform(x.rotation, add(scale(stretch, x.translation), (along, 0.0, 0.0)))

    def closure_space(self, x):
        return (Force(linear=self._direction(x)),)

    def closure_space_rate(self, x, relative):
        """With the rod's direction e in the child's axes: de/dt · u = (u² − (e·u)²)/length − u·(ω×e)."""
        u, e = relative.linear, self._direction(x)
        along = dot(e, u)
        stretch = self._stretch(x.translation)
        return ((dot(u, u) - along * along) / stretch - dot(u, cross(relative.angular, e)),)

    def closure_error(self, x):
        return (sqrt(dot(x.translation, x.translation)) - self.length,)

    def _direction(self, x: Transform):
        p = x.rotation.T @ x.translation
        return scale(1.0 / self._stretch(p), p)

    def _stretch(self, p: Vector3) -> Scalar:
        """The distance; a number never 0, so that a rod without a direction is found open."""
        far = sqrt(dot(p, p))
        return max(far, _NONE * self.length) if isinstance(far, float) else far

    def switched(self):
        return String(self.length)

    def scaled(self, length):
        return Distance(length * self.length)

    def describe(self):
        return {"length": self.length}


@dataclass(frozen=True)
class String(Distance):
    """A rod that can be open, at any distance: where the two origins meet it has no direction, and finite rows."""

    def _stretch(self, p):
        square, least = dot(p, p), (_NONE * self.length) ** 2
        return sqrt(where(square > least, square, least))
