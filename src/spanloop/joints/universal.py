"""Two hinges whose axes meet: the first fixed in the parent, the second in the child."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spanloop.errors import ModelError
from spanloop.joints.kind import EX, EY, EZ, JointKind, Sides, checked_axis
from spanloop.math.inertia import RigidInertia
from spanloop.math.rotation import Rotation, along_axes, toward
from spanloop.math.spatial import Force, Motion, Transform
from spanloop.math.vector3 import cross, dot, scale, subtract, times
from spanloop.types import Floats3


@dataclass(frozen=True)
class Universal(JointKind):
    """q: angle [rad] about the first axis, angle [rad] about the second; v their rates. The axes need not be square.

    With A, B the rotations that take z to the two axes, the child's rotation is A Rz(q₁) AᵀB Rz(q₂) Bᵀ.
    """

    axis: Floats3 = (1.0, 0.0, 0.0)
    second_axis: Floats3 = (0.0, 1.0, 0.0)
    offset: float = 0.0
    between: bool = False  # seen between the rotations A and B, for kernels

    name = "universal"
    symmetric_space = False
    constant_space = False
    units = ("rad", "rad")
    nq = 2

    def __post_init__(self):
        for name in ("axis", "second_axis"):
            object.__setattr__(self, name, checked_axis(getattr(self, name), "universal joint"))
        if abs(dot(self.axis, self.second_axis)) > 1.0 - 1e-9:
            raise ModelError(
                f"universal joint: both axes are along {self.axis}; expected two directions. "
                "For one axis use a revolute joint"
            )

    def sides(self) -> Sides:
        return Sides(toward(self.axis), replace(self, between=True), toward(self.second_axis))

    def closure_sides(self) -> Sides:
        return Sides(along_axes(self.axis), replace(self, between=True), along_axes(self.second_axis))

    def transform(self, q) -> Transform:
        a, b = toward(self.axis), toward(self.second_axis)
        inner = Rotation.about(2, q[0] + self.offset) @ (a.T @ b) @ Rotation.about(2, q[1])
        return Transform(inner if self.between else a @ inner @ b.T)

    def motion_space(self, q):
        a, b = toward(self.axis), toward(self.second_axis)
        first = Motion(((a.T @ b) @ Rotation.about(2, q[1])).T @ EZ)
        columns = (first, Motion(EZ))
        return columns if self.between else tuple(s.turned(b) for s in columns)

    def motion_space_rate(self, q, v):
        """The first axis turns against the child with the second rate: φ₁ × φ₂ q̇₁ q̇₂."""
        first, second = self.motion_space(q)
        return Motion(scale(v[0] * v[1], cross(first.angular, second.angular)))

    def motion_space_rates(self, q, v):
        first, second = self.motion_space(q)
        return (Motion(scale(v[1], cross(first.angular, second.angular))), Motion())

    def constraint_space(self, q):
        first, second = self.motion_space(q)
        normal = cross(first.angular, second.angular)
        return (Force(normal), Force(linear=EX), Force(linear=EY), Force(linear=EZ))

    def row_names(self):
        return {0: "moment square to both axes"}

    def closure_space(self, x):
        return (Force(cross(self._first(x), EZ)), Force(linear=EX), Force(linear=EY), Force(linear=EZ))

    def closure_space_rate(self, x, relative):
        turning = cross(cross(self._first(x), relative.angular), EZ)
        return (dot(turning, relative.angular), 0.0, 0.0, 0.0)

    def closure_motion(self, x):
        return (Motion(self._first(x)), Motion(EZ))

    def closure_motion_rate(self, x, relative):
        return (dot(cross(self._first(x), relative.angular), relative.angular), 0.0)

    def closure_error(self, x):
        """The angle between the axes, as its cosine, and the displacement."""
        return (self._squareness() - dot(self._first(x), EZ), *(x.rotation.T @ x.translation))

    def _first(self, x):
        """The first axis in the child's axes, seen between the sides, where the first axis of the parent is z."""
        return x.rotation.T @ EZ

    def _squareness(self) -> float:
        return dot(self.axis, self.second_axis)

    def led_by(self, angle):
        return replace(self, offset=self.offset + angle)

    def mirrored(self, s):
        first, second = (subtract((0.0, 0.0, 0.0), times(s, a)) for a in (self.axis, self.second_axis))
        return replace(self, axis=first, second_axis=second)

    def hidden(self, inertia):
        """A point mass where the axes meet."""
        return RigidInertia(inertia.mass)

    def describe(self):
        return {"axis": list(self.axis), "second_axis": list(self.second_axis)}
