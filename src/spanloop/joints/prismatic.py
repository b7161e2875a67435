"""A slider: translation along one axis."""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.joints.kind import EX, EY, EZ, AxisJoint, level
from spanloop.math.inertia import RigidInertia
from spanloop.math.spatial import Force, Motion, Transform
from spanloop.math.vector3 import times


@dataclass(frozen=True)
class Prismatic(AxisJoint):
    """q: the displacement [m] along the axis."""

    name = "prismatic"
    units = ("m",)
    nq = 1

    def z_transform(self, q) -> Transform:
        return Transform(translation=(0.0, 0.0, q[0]))

    def z_motion_space(self, q):
        return (Motion(linear=EZ),)

    def z_constraint_space(self, q):
        return (Force(EX), Force(EY), Force(EZ), Force(linear=EX), Force(linear=EY))

    def misfit(self, x):
        return level(super().misfit(x))

    def mirrored(self, s):
        """A displacement along u is in the mirror one along s u."""
        return Prismatic(times(s, self.axis))

    def hidden(self, inertia):
        """The second moment: the body never turns against its parent."""
        return RigidInertia(second=inertia.second)
