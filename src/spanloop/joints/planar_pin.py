"""A pin of a plane mechanism: a point on a line. Only closes loops: two rows, none of them redundant in the plane."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from spanloop.joints.kind import EX, EY, EZ, ClosureKind, Sides, checked_axis
from spanloop.math.rotation import along_axes
from spanloop.math.spatial import Force, Transform
from spanloop.math.vector3 import cross, dot, subtract, times
from spanloop.types import Floats3


@dataclass(frozen=True)
class PlanarPin(ClosureKind):
    """The child's origin stays on the parent's axis; the child turns freely and slides along it.

    axis: normal of the plane, in the parent frame. A revolute closure of a plane mechanism has five rows, three of
    them redundant; these are the other two.
    """

    axis: Floats3 = (0.0, 0.0, 1.0)

    name = "planar_pin"
    constant_space = False

    def __post_init__(self):
        object.__setattr__(self, "axis", checked_axis(self.axis, f"{self.name} joint"))

    def closure_sides(self) -> Sides:
        r = along_axes(self.axis)
        return Sides(r, replace(self, axis=EZ), r)

    def row_names(self):
        return {0: "first force across the axis", 1: "second force across the axis"}

    def captured_pose(self, x):
        """On the axis, where x is along it."""
        return Transform(x.rotation, (0.0, 0.0, x.translation[2]))

    def closure_space(self, x):
        """Forces along x and y of the parent."""
        return tuple(Force(linear=x.rotation.T @ e) for e in (EX, EY))

    def closure_space_rate(self, x, relative):
        """With a direction e of the parent in the child's axes: de/dt · u = −u·(ω×e)."""
        u, w = relative.linear, relative.angular
        return tuple(-dot(u, cross(w, x.rotation.T @ e)) for e in (EX, EY))

    def closure_error(self, x):
        """The displacement across the axis, in the parent's axes."""
        return x.translation[0], x.translation[1]

    def mirrored(self, s):
        return replace(self, axis=subtract((0.0, 0.0, 0.0), times(s, self.axis)))

    def describe(self) -> dict[str, Any]:
        return {"axis": list(self.axis)}
