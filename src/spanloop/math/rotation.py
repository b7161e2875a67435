"""Rotations as products of factors that are cheap to apply.

A factor is a rotation about a coordinate axis (4 multiplications a vector, none for a right angle) or a full
matrix. R_AB takes the components of a vector in frame B to those in frame A; R_AC = R_AB @ R_BC.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from spanloop.math.scalar import sincos
from spanloop.math.vector3 import cross, dot, product, times, transpose
from spanloop.types import Matrix3, Scalar, Vector3

_NEXT = ((1, 2), (2, 0), (0, 1))


class Planar:
    """Rotation about coordinate axis 0, 1 or 2 with the given cosine and sine."""

    __slots__ = ("axis", "cosine", "sine")

    def __init__(self, axis: int, cosine: Scalar, sine: Scalar):
        self.axis, self.cosine, self.sine = axis, cosine, sine

    @property
    def T(self) -> Planar:
        """The inverse."""
        return Planar(self.axis, self.cosine, -self.sine)

    def is_identity(self) -> bool:
        """Does it turn nothing, as a matter of numbers?"""
        numbers = isinstance(self.cosine, float) and isinstance(self.sine, float)
        return numbers and self.cosine == 1.0 and self.sine == 0.0

    def turn(self, v: Vector3) -> Vector3:
        """R v."""
        i, j = _NEXT[self.axis]
        c, s = self.cosine, self.sine
        r = list(v)
        r[i], r[j] = c * v[i] - s * v[j], s * v[i] + c * v[j]
        return tuple(r)

    def turn_symmetric(self, m: Matrix3) -> Matrix3:
        """R m Rᵀ of a symmetric m: 4 multiplications for the plane (3 by a constant angle), 4 for the axis' column."""
        k = self.axis
        i, j = _NEXT[k]
        c, s = self.cosine, self.sine
        a, d, b = m[i][i], m[j][j], m[i][j]
        if isinstance(c, float) and c == 0.0:  # s = ±1
            a, d, b = d, a, -b
        else:
            y, z = self._turn_plane(a - d, 2.0, b)
            a, d, b = a - y, d + y, z - b
        r = [[m[0][0]] * 3 for _ in range(3)]
        r[i][i], r[j][j], r[k][k] = a, d, m[k][k]
        r[i][j] = r[j][i] = b
        r[i][k] = r[k][i] = c * m[i][k] - s * m[j][k]
        r[j][k] = r[k][j] = s * m[i][k] + c * m[j][k]
        return (tuple(r[0]), tuple(r[1]), tuple(r[2]))

    def turn_matrix(self, m: Matrix3) -> Matrix3:
        """R m Rᵀ of any m."""
        k = self.axis
        i, j = _NEXT[k]
        c, s = self.cosine, self.sine
        a, b, f, d = m[i][i], m[i][j], m[j][i], m[j][j]
        if isinstance(c, float) and c == 0.0:
            a, b, f, d = d, -f, -b, a
        else:
            y, z = self._turn_plane(a - d, 1.0, b + f)
            a, d, b, f = a - y, d + y, z - f, z - b
        r = [[m[0][0]] * 3 for _ in range(3)]
        r[i][i], r[i][j], r[j][i], r[j][j], r[k][k] = a, b, f, d, m[k][k]
        r[i][k], r[j][k] = c * m[i][k] - s * m[j][k], s * m[i][k] + c * m[j][k]
        r[k][i], r[k][j] = c * m[k][i] - s * m[k][j], s * m[k][i] + c * m[k][j]
        return (tuple(r[0]), tuple(r[1]), tuple(r[2]))

    def _turn_plane(self, u: Scalar, k: float, w: Scalar) -> tuple[Scalar, Scalar]:
        """s x and c x of x = s u + k c w; of two numbers s and c the smaller over the larger saves a multiplication."""
        c, s = self.cosine, self.sine
        kc = c + c if k == 2.0 else c
        if not (isinstance(c, float) and isinstance(s, float)):
            x = s * u + kc * w
            return s * x, c * x
        if abs(s) < abs(c):
            x = (s / kc) * u + w
            return (s * kc) * x, (c * kc) * x
        x = u + (kc / s) * w
        return (s * s) * x, (s * c) * x


class Full:
    """Rotation by its nine entries."""

    __slots__ = ("entries",)

    def __init__(self, entries: Matrix3):
        self.entries = entries

    @property
    def T(self) -> Full:
        """The inverse."""
        return Full(transpose(self.entries))

    def is_identity(self) -> bool:
        """Never: entries are not compared."""
        return False

    def turn(self, v: Vector3) -> Vector3:
        """R v."""
        return tuple(dot(r, v) for r in self.entries)

    def turn_matrix(self, m: Matrix3) -> Matrix3:
        """R m Rᵀ of any m."""
        return product(product(self.entries, m), transpose(self.entries))

    def turn_symmetric(self, m: Matrix3) -> Matrix3:
        """R m Rᵀ of a symmetric m."""
        half = product(self.entries, m)
        r = [[m[0][0]] * 3 for _ in range(3)]
        for i in range(3):
            for j in range(i + 1):
                r[i][j] = r[j][i] = dot(half[i], self.entries[j])
        return (tuple(r[0]), tuple(r[1]), tuple(r[2]))


class Rotation:
    """A product of factors, the leftmost first."""

    __slots__ = ("factors",)

    def __init__(self, factors: Sequence[Planar | Full] = ()):
        self.factors = tuple(f for f in factors if not f.is_identity())

    @staticmethod
    def about(axis: int, angle: Scalar) -> Rotation:
        """Rotation by `angle` [rad] about coordinate axis 0, 1 or 2."""
        s, c = sincos(angle)
        return Rotation((Planar(axis, c, s),))

    @staticmethod
    def full(entries: Matrix3) -> Rotation:
        """Rotation by its nine entries, which may be traced."""
        return Rotation((Full(entries),))

    @property
    def T(self) -> Rotation:
        """The inverse."""
        return Rotation(tuple(f.T for f in reversed(self.factors)))

    def __matmul__(self, other):
        """R_AB @ R_BC, or R_AB @ v_B."""
        if isinstance(other, Rotation):
            return Rotation(_merged(self.factors, other.factors))
        for f in reversed(self.factors):
            other = f.turn(other)
        return other

    def turn_symmetric(self, m: Matrix3) -> Matrix3:
        """R m Rᵀ for a symmetric m."""
        for f in reversed(self.factors):
            m = f.turn_symmetric(m)
        return m

    def turn_matrix(self, m: Matrix3) -> Matrix3:
        """R m Rᵀ."""
        for f in reversed(self.factors):
            m = f.turn_matrix(m)
        return m

    def matrix(self) -> Matrix3:
        """The nine entries."""
        columns = tuple(self @ e for e in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
        return transpose(columns)


def _merged(left, right):
    """Factors of a product; two neighbours about one axis become one where that costs nothing (right angles)."""
    if left and right and isinstance(left[-1], Planar) and isinstance(right[0], Planar):
        a, b = left[-1], right[0]
        if a.axis == b.axis and (_is_right_angle(a) or _is_right_angle(b)):
            c = a.cosine * b.cosine - a.sine * b.sine
            s = a.sine * b.cosine + a.cosine * b.sine
            return left[:-1] + (Planar(a.axis, c, s),) + right[1:]
    return left + right


def _is_right_angle(f: Planar) -> bool:
    return isinstance(f.cosine, float) and isinstance(f.sine, float) and f.cosine in (0.0, 1.0, -1.0)


def split(r: Matrix3) -> tuple[Planar, Planar, Planar]:
    """Factors z, x, z of a matrix of floats: r = Rz Rx Rz. Exact zeros stay exact."""
    up = math.hypot(r[0][2], r[1][2])
    if up == 0.0:
        first = Planar(2, 1.0, 0.0)
    else:
        first = Planar(2, -r[1][2] / up + 0.0, r[0][2] / up + 0.0)
    rest = tuple(first.T.turn(c) for c in transpose(r))  # columns of Rzᵀ r
    second = _unit(0, rest[2][2], -rest[2][1])
    rest = tuple(second.T.turn(c) for c in rest)
    third = _unit(2, rest[0][0], rest[0][1])
    return first, second, third


def _unit(axis: int, c: float, s: float) -> Planar:
    length = math.hypot(c, s)
    return Planar(axis, c / length + 0.0, s / length + 0.0)  # + 0.0 turns -0.0 into 0.0


def from_matrix(r: Matrix3) -> Rotation:
    """Rotation of a matrix of floats, as planar factors."""
    return Rotation(split(r))


def toward(axis: Vector3) -> Rotation:
    """The rotation Rz Rx that takes the z axis to a unit vector of floats."""
    up = math.hypot(axis[0], axis[1])
    if up == 0.0:
        return Rotation((Planar(0, axis[2], 0.0),)) if axis[2] < 0.0 else Rotation()
    return Rotation((Planar(2, -axis[1] / up + 0.0, axis[0] / up + 0.0), _unit(0, axis[2], up)))


def along_axes(axis: Vector3) -> Rotation:
    """The rotation that takes z to a unit vector of floats, and x and y to the coordinate axes nearest to square to it.

    An axis y takes (x, y, z) to (z, x, y), an axis −z to (y, x, −z): x and y always go to positive axes. Of an oblique
    axis, x goes where the next coordinate axis after its largest component has its image in the plane square to it.
    """
    largest = max(range(3), key=lambda k: (round(abs(axis[k]), 9), k))
    beside = (largest + (1 if axis[largest] > 0.0 else 2)) % 3
    across = tuple(float(k == beside) - axis[beside] * a for k, a in enumerate(axis))
    length = math.hypot(*across)
    x: Vector3 = tuple(a / length + 0.0 for a in across)
    y = tuple(a + 0.0 for a in cross(axis, x))
    return Rotation.full(transpose((x, y, axis)))


def turned(r: Rotation, m: Matrix3) -> Matrix3:
    """R m, column by column."""
    return transpose(tuple(r @ c for c in transpose(m)))


__all__ = ["Full", "Planar", "Rotation", "along_axes", "from_matrix", "split", "times", "toward", "turned"]
