"""Three-vectors and 3x3 matrices as tuples of scalars; sums shaped as trees.

Tuples rather than arrays: the entries may be traced scalars, exact zeros must stay exact, and a tuple costs a
tenth of an object array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spanloop.types import Matrix3, Scalar, Vector3

ZERO3: Vector3 = (0.0, 0.0, 0.0)
IDENTITY3: Matrix3 = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def is_zero(x: Scalar) -> bool:
    """Is x the number 0 (and not a traced scalar)?"""
    return isinstance(x, float) and x == 0.0


def total(terms: Iterable[Scalar]) -> Scalar:
    """Sum shaped as a balanced tree: short chains of dependent additions."""
    left = [t for t in terms if not is_zero(t)]
    if not left:
        return 0.0
    while len(left) > 1:
        left = [left[k] + left[k + 1] if k + 1 < len(left) else left[k] for k in range(0, len(left), 2)]
    return left[0]


def add(a: Vector3, b: Vector3) -> Vector3:
    """a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def subtract(a: Vector3, b: Vector3) -> Vector3:
    """a − b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def negate(a: Vector3) -> Vector3:
    """−a."""
    return (-a[0], -a[1], -a[2])


def scale(k: Scalar, a: Vector3) -> Vector3:
    """k a."""
    return (k * a[0], k * a[1], k * a[2])


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """aᵀ b, for any length."""
    return total(x * y for x, y in zip(a, b, strict=True))


def cross(a: Vector3, b: Vector3) -> Vector3:
    """a × b."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def skew(a: Vector3) -> Matrix3:
    """The matrix whose product with b is a x b."""
    return ((0.0, -a[2], a[1]), (a[2], 0.0, -a[0]), (-a[1], a[0], 0.0))


def times(m: Matrix3, a: Vector3) -> Vector3:
    """Matrix times vector."""
    return tuple(r[0] * a[0] + r[1] * a[1] + r[2] * a[2] for r in m)


def transpose(m: Matrix3) -> Matrix3:
    """mᵀ."""
    return tuple(zip(*m, strict=True))  # type: ignore[return-value]


def product(m: Matrix3, n: Matrix3) -> Matrix3:
    """Matrix times matrix."""
    columns = transpose(n)
    return tuple(tuple(dot(r, c) for c in columns) for r in m)  # type: ignore[return-value]


def add_matrices(m: Matrix3, n: Matrix3) -> Matrix3:
    """m + n."""
    return tuple(add(a, b) for a, b in zip(m, n, strict=True))  # type: ignore[return-value]


def scale_matrix(k: Scalar, m: Matrix3) -> Matrix3:
    """k m."""
    return tuple(scale(k, r) for r in m)  # type: ignore[return-value]


def outer(a: Vector3, b: Vector3) -> Matrix3:
    """a bᵀ."""
    return tuple(scale(x, b) for x in a)  # type: ignore[return-value]


def symmetric(xx: Scalar, xy: Scalar, xz: Scalar, yy: Scalar, yz: Scalar, zz: Scalar) -> Matrix3:
    """The symmetric matrix with these six entries."""
    return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))


def trace(m: Matrix3) -> Scalar:
    """The sum of the diagonal."""
    return total((m[0][0], m[1][1], m[2][2]))
