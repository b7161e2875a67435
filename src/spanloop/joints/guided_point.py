"""A point that is guided, on a line or in a plane, everything else free. Only close loops: two rows, one row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from spanloop.joints.kind import EX, EY, EZ, ClosureKind, Sides, checked_axis
from spanloop.math.rotation import along_axes
from spanloop.math.spatial import Force, Transform
from spanloop.math.vector3 import cross, dot, times
from spanloop.types import Floats3, Vector3


@dataclass(frozen=True)
class GuidedPoint(ClosureKind):
    """The child's origin does not move along some directions of the parent frame; written for an axis z."""

    axis: Floats3 = (0.0, 0.0, 1.0)

    constant_space = False
    held: ClassVar[tuple[Vector3, ...]] = ()  # directions of the parent frame, where the axis is z

    def __post_init__(self):
        object.__setattr__(self, "axis", checked_axis(self.axis, f"{self.name} joint"))

    def closure_sides(self) -> Sides:
        r = along_axes(self.axis)
        return Sides(r, replace(self, axis=EZ), r)

    def captured_pose(self, x):
        """On the guide, nearest to x."""
        p, q, r = (0.0 if any(e[k] for e in self.held) else y for k, y in enumerate(x.translation))
        return Transform(x.rotation, (p, q, r))

    def closure_space(self, x):
        """Forces along the directions, which the parent carries."""
        return tuple(Force(linear=x.rotation.T @ e) for e in self.held)

    def closure_space_rate(self, x, relative):
        """With a direction e of the parent in the child's axes: de/dt · u = −u·(ω×e)."""
        u, w = relative.linear, relative.angular
        return tuple(-dot(u, cross(w, x.rotation.T @ e)) for e in self.held)

    def closure_error(self, x):
        """The displacement along the directions."""
        return tuple(dot(e, x.translation) for e in self.held)

    def mirrored(self, s):
        """The axis is the mirror image of the axis: what was above the plane still is."""
        return replace(self, axis=times(s, self.axis))

    def describe(self) -> dict[str, Any]:
        return {"axis": list(self.axis)}


@dataclass(frozen=True)
class PointOnLine(GuidedPoint):
    """The child's origin stays on the parent's axis; the child turns freely and slides along it.

    axis: the line through the parent's origin, in the parent frame. In a plane mechanism it is the pin: a revolute
    closure has five rows there, three of them redundant; these are the other two.
    """

    name = "point_on_line"
    held = (EX, EY)

    def row_names(self):
        return {0: "first force across the line", 1: "second force across the line"}


@dataclass(frozen=True)
class PointOnPlane(GuidedPoint):
    """The child's origin stays in the plane through the parent's origin; the child turns freely and slides in it.

    axis: the plane's normal, in the parent frame. The error is the child's height above the plane along it, and the
    force acts on the child along it.
    """

    name = "point_on_plane"
    held = (EZ,)

    def row_names(self):
        return {0: "force along the normal"}
