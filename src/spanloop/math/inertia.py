"""Inertias of a rigid body (ten numbers) and of an articulated one (21 numbers), and a rigid body's inverse inertia.

A rigid body is kept as mass m, first moment h = ∫ r dm and second moment J = ∫ r rᵀ dm about the frame's origin;
the usual inertia is trace(J) 1 − J. The force that gives it the acceleration field a + W r is
[h × a + vex(WJ − (WJ)ᵀ); m a + W h].

An articulated inertia is the symmetric 6x6 ((A, H), (Hᵀ, M)) of force = I motion.
"""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.math.rotation import Rotation
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Field, Force, Motion, Transform
from spanloop.math.symmetric import inverse
from spanloop.math.vector3 import (
    ZERO3,
    add,
    add_matrices,
    cross,
    dot,
    negate,
    outer,
    scale,
    scale_matrix,
    skew,
    subtract,
    times,
    total,
    transpose,
)
from spanloop.types import Matrix3, Scalar, Vector3

__all__ = ["ArticulatedInertia", "RigidInertia", "outer", "scale_matrix", "total"]

ZERO33: Matrix3 = (ZERO3, ZERO3, ZERO3)


class RigidInertia:
    """Mass, first moment and second moment about the frame's origin."""

    __slots__ = ("first", "mass", "second")

    def __init__(self, mass: Scalar = 0.0, first: Vector3 = ZERO3, second: Matrix3 = ZERO33):
        self.mass, self.first, self.second = mass, first, second

    @staticmethod
    def at_center(mass: Scalar, center: Vector3, inertia: Matrix3) -> RigidInertia:
        """From mass [kg], centre of mass [m] and inertia about it [kg m²], in the frame's axes."""
        own = _second_moments(inertia[0][0], inertia[1][1], inertia[2][2])
        second = tuple(
            tuple((own[i] if i == j else -inertia[i][j]) + mass * (center[i] * center[j]) for j in range(3))
            for i in range(3)
        )
        return RigidInertia(mass, scale(mass, center), second)  # type: ignore[arg-type]

    def __add__(self, other: RigidInertia) -> RigidInertia:
        return RigidInertia(
            self.mass + other.mass, add(self.first, other.first), add_matrices(self.second, other.second)
        )

    def inertia(self) -> Matrix3:
        """The usual inertia about the origin: trace(J) 1 − J."""
        j = self.second
        return (
            (j[1][1] + j[2][2], -j[0][1], -j[0][2]),
            (-j[1][0], j[0][0] + j[2][2], -j[1][2]),
            (-j[2][0], -j[2][1], j[0][0] + j[1][1]),
        )

    def __matmul__(self, m: Motion) -> Force:
        """Momentum of a velocity, or force of an acceleration at rest."""
        angular = tuple(dot(r, m.angular) for r in self.inertia())
        return Force(
            add(angular, cross(self.first, m.linear)),
            add(scale(self.mass, m.linear), cross(m.angular, self.first)),
        )

    def force(self, field: Field) -> Force:
        """The force at the origin that gives the body this acceleration field."""
        w, j, d = field.gradient, self.second, field.differences
        moment = []
        for x, y, z in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):  # row of vex(WJ − (WJ)ᵀ)
            plane = w[z][y] * j[y][y] - w[y][z] * j[z][z]
            moment.append(w[z][x] * j[x][y] - w[y][x] * j[x][z] + j[y][z] * d[x] + plane)
        a = field.origin
        return Force(
            add(tuple(moment), cross(self.first, a)),
            add(scale(self.mass, a), times(w, self.first)),
        )

    def carried(self, x: Transform) -> RigidInertia:
        """The same body seen from frame A: φ M φ*; on a node of a flexible body with what the modes feel of it."""
        at_parent = self.turned(x.rotation).moved(x.translation)
        return x.with_modes(self, at_parent)

    def at(self, eta: Sequence[Scalar]) -> RigidInertia:
        """The same: it does not depend on coordinates."""
        return self

    def turned(self, r: Rotation) -> RigidInertia:
        """The same body in the axes that r leads to."""
        return RigidInertia(self.mass, r @ self.first, r.turn_symmetric(self.second))

    def moved(self, p: Vector3) -> RigidInertia:
        """The same body about an origin from which its old origin is at p."""
        h, j = self.first, self.second
        to = add(h, scale(self.mass, p))
        second = [[0.0] * 3 for _ in range(3)]
        for a in range(3):
            second[a][a] = j[a][a] + p[a] * (h[a] + to[a])
            for b in range(a):
                second[a][b] = second[b][a] = j[a][b] + (h[a] * p[b] + p[a] * to[b])
        return RigidInertia(self.mass, to, tuple(map(tuple, second)))  # type: ignore[arg-type]

    def articulated(self) -> ArticulatedInertia:
        """The same as a 6x6."""
        m = self.mass
        return ArticulatedInertia(self.inertia(), skew(self.first), ((m, 0.0, 0.0), (0.0, m, 0.0), (0.0, 0.0, m)))


class ArticulatedInertia:
    """Symmetric 6x6 inertia in blocks: [n; f] = ((A, H), (Hᵀ, M)) [α; a]."""

    __slots__ = ("angular", "coupling", "linear")

    def __init__(self, angular: Matrix3 = ZERO33, coupling: Matrix3 = ZERO33, linear: Matrix3 = ZERO33):
        self.angular, self.coupling, self.linear = angular, coupling, linear

    def __add__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(
            add_matrices(self.angular, other.angular),
            add_matrices(self.coupling, other.coupling),
            add_matrices(self.linear, other.linear),
        )

    def rows(self) -> tuple:
        """The six rows."""
        upper = tuple((*a, *h) for a, h in zip(self.angular, self.coupling, strict=True))
        lower = tuple((*h, *m) for h, m in zip(transpose(self.coupling), self.linear, strict=True))
        return upper + lower

    @staticmethod
    def of_rows(rows) -> ArticulatedInertia:
        """From six rows, of which the lower left block is not read."""
        return ArticulatedInertia(
            tuple(tuple(r[:3]) for r in rows[:3]),  # type: ignore[arg-type]
            tuple(tuple(r[3:]) for r in rows[:3]),  # type: ignore[arg-type]
            tuple(tuple(r[3:]) for r in rows[3:]),  # type: ignore[arg-type]
        )

    def __matmul__(self, m: Motion) -> Force:
        six = tuple(m)
        return Force.of([dot(r, six) for r in self.rows()])

    def less(self, gain: Force, f: Force) -> ArticulatedInertia:
        """I − gain fᵀ, where gain is a multiple of f: what is left when one direction yields freely."""
        rows = [list(r) for r in self.rows()]
        g, u = tuple(gain), tuple(f)
        for x in range(6):
            for y in range(x + 1):
                rows[x][y] = rows[y][x] = _remainder(rows[x][y], u[x] * g[y])
        return ArticulatedInertia.of_rows(rows)

    def carried(self, x: Transform) -> ArticulatedInertia:
        """The same inertia seen from frame A: φ P φ*."""
        r, p = x.rotation, x.translation
        a = r.turn_symmetric(self.angular)
        h = r.turn_matrix(self.coupling)
        m = r.turn_symmetric(self.linear)
        h2 = add_matrices(h, transpose((cross(p, m[0]), cross(p, m[1]), cross(p, m[2]))))  # H + [p]× M
        s = [[0.0] * 3 for _ in range(3)]  # A + [p]× Hᵀ + H₂ [p]×ᵀ
        for i in range(3):
            s[i][i] = a[i][i] + _lever(i, p, add(h[i], h2[i]))
            for j in range(i):
                k = 3 - i - j
                lift = p[k] * (h2[i][i] - h[j][j]) + (p[j] * h[j][k] - p[i] * h2[i][k])
                s[i][j] = s[j][i] = a[i][j] + lift if (i, j) == (2, 0) else a[i][j] - lift
        at_parent = ArticulatedInertia(tuple(map(tuple, s)), h2, m)  # type: ignore[arg-type]
        return x.with_modes(self, at_parent)


def _second_moments(xx: Scalar, yy: Scalar, zz: Scalar) -> Vector3:
    """∫ x² dm, ∫ y² dm, ∫ z² dm from three moments of inertia; of numbers so that thin bodies lose no digits."""
    if all(isinstance(i, float) for i in (xx, yy, zz)):
        pairs = ((xx, yy, zz), (yy, zz, xx), (zz, xx, yy))
        return tuple(0.5 * ((max(j, k) - i) + min(j, k)) for i, j, k in pairs)
    half = 0.5 * total((xx, yy, zz))
    return (half - xx, half - yy, half - zz)


def _remainder(a: Scalar, b: Scalar) -> Scalar:
    """a − b; zero where both are numbers and equal but for rounding, so that constants lose their row as symbols do."""
    if isinstance(a, float) and isinstance(b, float) and abs(a - b) <= 1e-15 * abs(a):
        return 0.0
    return a - b


def _lever(k: int, p: Vector3, row: Vector3) -> Scalar:
    """Entry k of p × row."""
    i, j = (k + 1) % 3, (k + 2) % 3
    return p[i] * row[j] - p[j] * row[i]


class Mobility:
    """The inverse of a rigid body's inertia: the acceleration that a force gives it.

    Through the mass centre c: a force [n; f] at the origin turns with Ic⁻¹(n − c × f) and moves c with f/m.
    """

    __slots__ = ("center", "linear", "turning")

    def __init__(self, linear: Scalar = 0.0, center: Vector3 = ZERO3, turning: Matrix3 = ZERO33):
        self.linear, self.center, self.turning = linear, center, turning  # 1/m, c, Ic⁻¹

    @staticmethod
    def of(body: RigidInertia) -> Mobility:
        """For a body with mass and with inertia about every axis through its mass centre."""
        inverse_mass = reciprocal(body.mass)
        center = scale(inverse_mass, body.first)
        about = body.moved(negate(center))
        return Mobility(inverse_mass, center, inverse(about.inertia()))  # type: ignore[arg-type]

    def __matmul__(self, f: Force) -> Motion:
        moment = subtract(f.angular, cross(self.center, f.linear))
        alpha = tuple(dot(r, moment) for r in self.turning)
        return Motion(alpha, add(scale(self.linear, f.linear), cross(self.center, alpha)))
