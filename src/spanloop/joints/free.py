"""No constraint: a body that floats."""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.joints.kind import EX, EY, EZ, JointKind
from spanloop.math import pose, quaternion
from spanloop.math.spatial import Force, Motion, Transform
from spanloop.math.vector3 import cross, dot, negate, subtract, times


@dataclass(frozen=True)
class Free(JointKind):
    """q: unit quaternion (w, x, y, z) and position [m]; v: angular velocity, then velocity of the origin, in the
    child's axes."""

    name = "free"
    units = ("rad", "rad", "rad", "m", "m", "m")
    nq = 7

    def neutral(self):
        return (*quaternion.IDENTITY, 0.0, 0.0, 0.0)

    def transform(self, q) -> Transform:
        return pose.transform(q)

    def motion_space(self, q):
        return (
            Motion(EX),
            Motion(EY),
            Motion(EZ),
            Motion(linear=EX),
            Motion(linear=EY),
            Motion(linear=EZ),
        )

    def constraint_space(self, q) -> tuple[Force, ...]:
        return ()

    def rates(self, q, v):
        return pose.rates(q, Motion.of(v))

    def plus(self, q, delta):
        return pose.moved(q, Motion.of(delta))

    def turned(self, q, v, to):
        """Both parts keep their directions in the parent."""
        here, there = self.transform(q).rotation, self.transform(to).rotation
        return (*(there.T @ (here @ tuple(v[:3]))), *(there.T @ (here @ tuple(v[3:]))))

    def bracket(self, v, delta):
        """Of twists: [ω × θ; ω × d − θ × u]."""
        w, u, turn, shift = tuple(v[:3]), tuple(v[3:]), tuple(delta[:3]), tuple(delta[3:])
        return (*cross(w, turn), *subtract(cross(w, shift), cross(turn, u)))

    def minus(self, q, start):
        return tuple(pose.twist_between(start, q))

    def spring(self, q, rest, stiffness):
        """Three stiffnesses in the rotation vector from rest, three along the parent's axes in the displacement."""
        torque, turning = pose.rotation_spring(tuple(q[:4]), tuple(rest[:4]), tuple(stiffness[:3]))
        stretch = subtract(tuple(q[4:]), tuple(rest[4:]))
        pull = tuple(k * x for k, x in zip(stiffness[3:], stretch, strict=True))
        force = negate(self.transform(q).rotation.T @ pull)
        return (*torque, *force), turning + 0.5 * dot(pull, stretch)

    def unit_parts(self, q):
        return (tuple(q[:4]),)

    def mirrored_q(self, s, q):
        return (*quaternion.mirrored(s, tuple(q[:4])), *times(s, tuple(q[4:])))

    def mirrored_v(self, s, v):
        return (*subtract((0.0, 0.0, 0.0), times(s, tuple(v[:3]))), *times(s, tuple(v[3:])))

    def lengths(self):
        return (0, 0, 0, 0, 1, 1, 1)
