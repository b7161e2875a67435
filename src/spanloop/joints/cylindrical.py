"""Rotation about an axis and translation along it, independently."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spanloop.joints.kind import EX, EY, EZ, AxisJoint, axial, level, tilt
from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Force, Motion, Transform


@dataclass(frozen=True)
class Cylindrical(AxisJoint):
    """q: angle [rad] about the axis, displacement [m] along it."""

    offset: float = 0.0

    name = "cylindrical"
    units = ("rad", "m")
    nq = 2

    def z_transform(self, q) -> Transform:
        return Transform(Rotation.about(2, q[0] + self.offset), (0.0, 0.0, q[1]))

    def z_motion_space(self, q):
        return (Motion(EZ), Motion(linear=EZ))

    def z_constraint_space(self, q):
        return (Force(EX), Force(EY), Force(linear=EX), Force(linear=EY))

    def led_by(self, angle):
        return replace(self, offset=self.offset + angle)

    def misfit(self, x):
        return level(tilt(x))

    def mirrored_q(self, s, q):
        """The axis points against the mirror image of the old one."""
        return (q[0], 0.0 - q[1])

    def mirrored_v(self, s, v):
        return (v[0], 0.0 - v[1])

    def hidden(self, inertia):
        return axial(inertia)
