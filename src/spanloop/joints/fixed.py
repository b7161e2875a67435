"""No degree of freedom: two bodies that move as one."""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.joints.kind import EX, EY, EZ, JointKind
from spanloop.math.spatial import Force, Motion, Transform


@dataclass(frozen=True)
class Fixed(JointKind):
    """No coordinates."""

    name = "fixed"
    units = ()
    nq = 0

    def transform(self, q) -> Transform:
        return Transform()

    def motion_space(self, q) -> tuple[Motion, ...]:
        return ()

    def constraint_space(self, q):
        return (Force(EX), Force(EY), Force(EZ), Force(linear=EX), Force(linear=EY), Force(linear=EZ))

    def hidden(self, inertia):
        return inertia
