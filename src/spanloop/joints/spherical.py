"""A ball joint: any rotation about one point."""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.joints.kind import EX, EY, EZ, JointKind
from spanloop.math import pose, quaternion
from spanloop.math.inertia import RigidInertia
from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Force, Motion, Transform
from spanloop.math.vector3 import cross, subtract, times


@dataclass(frozen=True)
class Spherical(JointKind):
    """q: unit quaternion (w, x, y, z); v: angular velocity [rad/s] in the child's axes."""

    name = "spherical"
    units = ("rad", "rad", "rad")
    nq = 4

    def neutral(self):
        return quaternion.IDENTITY

    def transform(self, q) -> Transform:
        return Transform(Rotation.full(quaternion.matrix(tuple(q))))

    def motion_space(self, q):
        return (Motion(EX), Motion(EY), Motion(EZ))

    def constraint_space(self, q):
        return (Force(linear=EX), Force(linear=EY), Force(linear=EZ))

    def rates(self, q, v):
        return quaternion.rate(tuple(q), tuple(v))

    def plus(self, q, delta):
        return quaternion.normalized(quaternion.multiply(tuple(q), quaternion.exponential(tuple(delta))))

    def turned(self, q, v, to):
        """It keeps its direction in the parent."""
        return tuple(self.transform(to).rotation.T @ (self.transform(q).rotation @ tuple(v)))

    def bracket(self, v, delta):
        return cross(tuple(v), tuple(delta))

    def minus(self, q, start):
        return quaternion.logarithm(quaternion.multiply(quaternion.conjugate(tuple(start)), tuple(q)))

    def spring(self, q, rest, stiffness):
        """Stiffness about the child's axes, in the rotation vector from rest."""
        return pose.rotation_spring(tuple(q), tuple(rest), tuple(stiffness))

    def unit_parts(self, q):
        return (tuple(q),)

    def mirrored_q(self, s, q):
        return quaternion.mirrored(s, tuple(q))

    def mirrored_v(self, s, v):
        return subtract((0.0, 0.0, 0.0), times(s, tuple(v)))

    def lengths(self):
        return (0, 0, 0, 0)

    def hidden(self, inertia):
        """A point mass at the centre."""
        return RigidInertia(inertia.mass)
