"""Small symmetric matrices of scalars, as rows: LDLᵀ, inverse, Cholesky root, and when a pivot counts as zero.

Nothing is pivoted: on traced scalars the order of elimination cannot depend on values. Sparse matrices, and orders of
elimination other than the first row first, are in `sparse_ldl`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from spanloop.math.scalar import reciprocal, sqrt, where
from spanloop.math.vector3 import dot, is_zero, total
from spanloop.types import Scalar

Rows = tuple[tuple[Scalar, ...], ...]
InversePivot = Callable[[int, Scalar], Scalar]  # row, its pivot: what serves as 1/pivot

PIVOT_TOLERANCE = 1e-12  # relative to the scale of its row: a pivot that is not larger counts as zero
SINGLE_PIVOT_TOLERANCE = 1e-5  # in single precision: what is left of such a row has two correct digits


class LDL:
    """m = L D Lᵀ, L unit lower triangular, from the first row to the last. n³/6 multiplications, n divisions.

    lower (n, n): L without its diagonal; pivots (n,): D; inverse_pivots (n,): D⁻¹, or what inverse_pivot gives instead.
    Only the lower half of m is read.
    """

    __slots__ = ("inverse_pivots", "lower", "pivots")

    def __init__(self, m: Sequence[Sequence[Scalar]], inverse_pivot: InversePivot | None = None):
        n = len(m)
        rows = [list(r) for r in m]
        self.lower: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        self.inverse_pivots: list[Scalar] = []
        for k in range(n):
            inverse = inverse_pivot(k, rows[k][k]) if inverse_pivot else reciprocal(rows[k][k])
            self.inverse_pivots.append(inverse)
            for i in range(k + 1, n):
                if is_zero(rows[i][k]):
                    continue
                gain = self.lower[i][k] = rows[i][k] * inverse
                for j in range(k + 1, i + 1):
                    rows[i][j] = rows[i][j] - gain * rows[j][k]
        self.pivots: list[Scalar] = [row[k] for k, row in enumerate(rows)]

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """x (n,) with m x = b."""
        return self.backward(self.forward(b))

    def forward(self, b: Sequence[Scalar]) -> list[Scalar]:
        """L⁻¹ b."""
        y: list[Scalar] = []
        for k, row in enumerate(self.lower):
            y.append(total([b[k], *(-(row[j] * y[j]) for j in range(k))]))
        return y

    def backward(self, y: Sequence[Scalar]) -> list[Scalar]:
        """L⁻ᵀ D⁻¹ y."""
        n = len(y)
        x: list[Scalar] = [0.0] * n
        for k in reversed(range(n)):
            later = (-(self.lower[i][k] * x[i]) for i in range(k + 1, n))
            x[k] = total([self.inverse_pivots[k] * y[k], *later])
        return x

    def inverse(self) -> Rows:
        """m⁻¹ = L⁻ᵀ D⁻¹ L⁻¹; with the factors n³/2 multiplications."""
        n = len(self.pivots)
        unit = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]  # becomes L⁻¹
        for i in range(n):
            for j in range(i):
                unit[i][j] = total(-(self.lower[i][k] * unit[k][j]) for k in range(j, i))
        scaled = [[d * x for x in row] for d, row in zip(self.inverse_pivots, unit, strict=True)]
        out: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        for i in range(n):
            for j in range(i + 1):
                out[i][j] = out[j][i] = total(unit[k][i] * scaled[k][j] for k in range(i, n))
        return tuple(map(tuple, out))


def solve(m: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """x with m x = b."""
    return tuple(LDL(m).solve(b))


def inverse(m: Sequence[Sequence[Scalar]]) -> Rows:
    """m⁻¹."""
    return LDL(m).inverse()


# ---- when a pivot counts as zero


def guarded_inverse(pivot: Scalar, bound: Scalar) -> Scalar:
    """1/pivot, or 0 where the pivot is not above the bound: its row is then left out."""
    if is_zero(pivot):
        return 0.0
    regular = pivot > bound
    return where(regular, 1.0, 0.0) / where(regular, pivot, 1.0)


def clamped_inverse(pivot: Scalar, least: Scalar) -> Scalar:
    """1/pivot, the pivot raised to `least` where it is below."""
    if is_zero(pivot):
        return reciprocal(least)
    return 1.0 / where(pivot > least, pivot, least)


def pivot_bounds(
    diagonal: Sequence[Scalar], groups: Sequence[Hashable], tolerance: float = PIVOT_TOLERANCE
) -> list[Scalar]:
    """Below which the pivot of each row counts as zero: a share of the diagonal entries of its group together.

    diagonal (n,): of the matrix before elimination; groups (n,): rows of equal units that belong together share a key.
    """
    scale: dict[Hashable, Scalar] = {}
    for x, group in zip(diagonal, groups, strict=True):
        scale[group] = scale[group] + x if group in scale else x
    return [tolerance * scale[group] for group in groups]


# ---- products, Cholesky root, triangular systems


def apply(m: Sequence[Sequence[Scalar]], x: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """m x for a matrix of any shape."""
    return tuple(dot(row, x) for row in m)


def mirrored(n: int, parts: Iterable[Mapping[tuple[int, int], Scalar]]) -> list[list[Scalar]]:
    """The symmetric n×n matrix of which parts hold one half, by (row, column); zeros elsewhere."""
    m: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    for entries in parts:
        for (i, j), x in entries.items():
            m[i][j] = m[j][i] = x
    return m


def root(m: Sequence[Sequence[Scalar]]) -> Rows:
    """The lower triangular C with C Cᵀ = m, for m positive definite. [Cholesky]"""
    rows: list[tuple[Any, ...]] = []
    for i, row in enumerate(m):
        found: list[Any] = []
        for j in range(i):
            found.append((row[j] - dot(found, rows[j][:j])) / rows[j][j])
        rows.append((*found, sqrt(row[i] - dot(found, found)), *(0.0,) * (len(m) - i - 1)))
    return tuple(rows)


def solve_lower(c: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """x with c x = b, for c lower triangular."""
    x: list[Any] = []
    for i, row in enumerate(c):
        x.append((b[i] - dot(row[:i], x)) / row[i])
    return tuple(x)


def solve_upper(c: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """x with cᵀ x = b, for c lower triangular."""
    turned = [row[::-1] for row in zip(*c, strict=True)]
    return solve_lower(turned[::-1], tuple(b)[::-1])[::-1]
