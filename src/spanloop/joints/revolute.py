"""A hinge: rotation about one axis fixed in both bodies."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spanloop.joints.kind import EX, EY, EZ, AxisJoint, tilt
from spanloop.math.inertia import RigidInertia
from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Force, Motion, Transform


@dataclass(frozen=True)
class Revolute(AxisJoint):
    """q: the angle [rad], counter-clockwise about the axis."""

    offset: float = 0.0  # constant angle in front of q, for kernels

    name = "revolute"
    units = ("rad",)
    nq = 1

    def z_transform(self, q) -> Transform:
        return Transform(Rotation.about(2, q[0] + self.offset))

    def z_motion_space(self, q):
        return (Motion(EZ),)

    def z_constraint_space(self, q):
        return (Force(EX), Force(EY), Force(linear=EX), Force(linear=EY), Force(linear=EZ))

    def led_by(self, angle):
        return replace(self, offset=self.offset + angle)

    def misfit(self, x):
        return tilt(x)

    def hidden(self, inertia):
        """Whatever lies on the axis."""
        zz = inertia.second[2][2]
        on_axis = ((0.0,) * 3, (0.0,) * 3, (0.0, 0.0, zz))
        return RigidInertia(inertia.mass, (0.0, 0.0, inertia.first[2]), on_axis)
