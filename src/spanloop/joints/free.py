"""No constraint: a body that floats."""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.joints.kind import EX, EY, EZ, JointKind
from spanloop.math import pose, quaternion
from spanloop.math.spatial import Force, Motion, Transform


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

    def minus(self, q, start):
        return tuple(pose.twist_between(start, q))

    def unit_parts(self, q):
        return (tuple(q[:4]),)
