"""Admittance of a body: what acceleration a force on it gives, as a symmetric 6×6.

An inertia takes motions to forces and is carried inward, an admittance takes forces to motions and is carried outward.
With its halves exchanged the one transforms as the other, under the inverse transform.
"""

from __future__ import annotations

from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.spatial import Force, Motion, Transform, power
from spanloop.types import Scalar


class Admittance:
    """Λ with [a; α] = twin [F; n]."""

    __slots__ = ("twin",)

    def __init__(self, twin: ArticulatedInertia | None = None):
        self.twin = twin or ArticulatedInertia()

    def __matmul__(self, f: Force) -> Motion:
        m = self.twin @ Motion(f.linear, f.angular)
        return Motion(m.linear, m.angular)

    def carried(self, x: Transform) -> Admittance:
        """φ* Λ φ: seen from the frame at pose x."""
        return Admittance(self.twin.carried(x.inverse()))

    def freed(self, s: Motion, G: Force, over: Scalar) -> Admittance:
        """(1 − H*G*) Λ (1 − G H) + H* D⁻¹ H for one freedom.                        (6.10b), [RJK A.3]"""
        u = self @ G
        d = power(u, G) + over
        rows = [list(r) for r in self.twin.rows()]
        t, w = (*s.linear, *s.angular), (*u.linear, *u.angular)
        for x in range(6):
            for y in range(x + 1):
                rows[x][y] = rows[y][x] = rows[x][y] - t[x] * w[y] - w[x] * t[y] + d * (t[x] * t[y])
        return Admittance(ArticulatedInertia.of_rows(rows))
