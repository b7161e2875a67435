"""The inverse of a rigid body's inertia: what acceleration a force gives it."""

from __future__ import annotations

from spanloop.math.inertia import ZERO33, RigidInertia
from spanloop.math.scalar import reciprocal
from spanloop.math.small import ZERO3, add, cross, dot, negate, scale, subtract
from spanloop.math.spatial import Force, Motion
from spanloop.math.symmetric import inverse
from spanloop.types import Matrix3, Scalar, Vector3


class Mobility:
    """Through the mass centre c: a force [n; f] at the origin turns with Ic⁻¹(n − c × f) and moves c with f/m."""

    __slots__ = ("center", "linear", "turning")

    def __init__(self, linear: Scalar = 0.0, center: Vector3 = ZERO3, turning: Matrix3 = ZERO33):
        self.linear, self.center, self.turning = linear, center, turning  # 1/m, c, Ic⁻¹

    @staticmethod
    def of(body: RigidInertia) -> Mobility:
        """For a body with mass and with inertia about every axis through its mass centre."""
        over = reciprocal(body.mass)
        center = scale(over, body.first)
        about = body.moved(negate(center))
        return Mobility(over, center, inverse(about.inertia()))  # type: ignore[arg-type]

    def __matmul__(self, f: Force) -> Motion:
        moment = subtract(f.angular, cross(self.center, f.linear))
        alpha = tuple(dot(r, moment) for r in self.turning)
        return Motion(alpha, add(scale(self.linear, f.linear), cross(self.center, alpha)))
