"""A soft finger: a point contact that also resists spin about the contact normal. Only closes loops.

Three rows hold the point, a fourth holds the spin as a velocity alone: it can roll, and the angle that it has
turned about the normal depends on the way. [Kreutz & Rodriguez, appendix B]
"""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.joints.kind import EX, EY, EZ, ClosureKind
from spanloop.math.spatial import Force


@dataclass(frozen=True)
class SoftFinger(ClosureKind):
    """The two origins coincide; no spin about z of the child frame, which is the object's normal."""

    name = "soft_finger"

    def closure_space(self, x):
        return (Force(linear=EX), Force(linear=EY), Force(linear=EZ), Force(EZ))

    def closure_error(self, x):
        return (*(x.rotation.T @ x.translation), None)
