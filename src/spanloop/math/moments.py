"""Moments of vectors at the points of a body: of velocities, and of forces that keep their directions.

With vectors w at points r:  P = Σ w,  W = Σ w rᵀ,  and a couple T of its own. If the body turns by a small α and the
vectors are to turn with it, what they gain is α × w at r:

    moment  Σ r × (α × w) + α × T = trace(W) α − W α + α × T,    force  Σ α × w = α × P
"""

from __future__ import annotations

from spanloop.math.inertia import ZERO33, RigidInertia
from spanloop.math.spatial import Force, Motion
from spanloop.math.vector3 import (
    ZERO3,
    add,
    add_matrices,
    cross,
    outer,
    scale,
    subtract,
    times,
    trace,
    transpose,
)
from spanloop.types import Matrix3, Vector3


class Moments:
    """Σ w (3,), Σ w rᵀ (3, 3) and a couple (3,)."""

    __slots__ = ("couple", "moment", "sum")

    def __init__(self, sum: Vector3 = ZERO3, moment: Matrix3 = ZERO33, couple: Vector3 = ZERO3):
        self.sum, self.moment, self.couple = sum, moment, couple

    @staticmethod
    def of_velocities(inertia: RigidInertia, v: Motion) -> Moments:
        """Of the velocities ω × r + v of a body's masses: its momentum, and W = ω× J + v hᵀ."""
        rows = transpose(inertia.second)  # its columns
        turning = transpose((cross(v.angular, rows[0]), cross(v.angular, rows[1]), cross(v.angular, rows[2])))
        momentum = add(scale(inertia.mass, v.linear), cross(v.angular, inertia.first))
        return Moments(momentum, add_matrices(turning, outer(v.linear, inertia.first)))

    @staticmethod
    def of_force(f: Force, r: Vector3) -> Moments:
        """Of a moment and a force at r."""
        return Moments(f.linear, outer(f.linear, r), f.angular)

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            add(self.sum, other.sum), add_matrices(self.moment, other.moment), add(self.couple, other.couple)
        )

    def axial(self) -> Vector3:
        """Σ r × w: of velocities the angular momentum."""
        w = self.moment
        return (w[2][1] - w[1][2], w[0][2] - w[2][0], w[1][0] - w[0][1])

    def turned_by(self, alpha: Vector3) -> Force:
        """What the vectors gain if they turn by α."""
        w = subtract(scale(trace(self.moment), alpha), times(self.moment, alpha))
        return Force(add(w, cross(alpha, self.couple)), cross(alpha, self.sum))

    def felt_along(self, s: Motion) -> Vector3:
        """x with x·α = sᵀ turned_by(α)."""
        w = subtract(scale(trace(self.moment), s.angular), times(transpose(self.moment), s.angular))
        return add(add(w, cross(self.couple, s.angular)), cross(self.sum, s.linear))
