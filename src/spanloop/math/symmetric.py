"""Small symmetric matrices of scalars, as tuples of rows: products with vectors, LDLᵀ, inverse, root. No pivoting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spanloop.math.scalar import reciprocal, sqrt
from spanloop.math.vector3 import dot, is_zero, total
from spanloop.types import Scalar

Rows = tuple[tuple[Scalar, ...], ...]


def apply(m: Sequence[Sequence[Scalar]], x: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """m x for a matrix of any shape."""
    return tuple(dot(row, x) for row in m)


def solve(m: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """x with m x = b, by m = L D Lᵀ from the first row to the last."""
    return _eliminated(m, b, reciprocal)[0]


def solved(m: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    """x with m x = b, and the pivots D, to be looked at: where one is zero this x means nothing."""
    return _eliminated(m, b, lambda pivot: 0.0 if is_zero(pivot) else reciprocal(pivot))


def _eliminated(m, b, inverse_of) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    n = len(b)
    rows, b = [list(r) for r in m], list(b)
    over: list[Any] = []
    for k in range(n):
        over.append(inverse_of(rows[k][k]))
        for i in range(k + 1, n):
            if is_zero(rows[i][k]):
                continue
            gain = rows[i][k] * over[k]
            for j in range(k + 1, i + 1):
                rows[i][j] = rows[i][j] - gain * rows[j][k]
            b[i] = b[i] - gain * b[k]
    x: list[Any] = [0.0] * n
    for k in reversed(range(n)):
        x[k] = over[k] * total([b[k], *(-(rows[i][k] * x[i]) for i in range(k + 1, n))])
    return tuple(x), tuple(row[k] for k, row in enumerate(rows))


def inverse(m: Sequence[Sequence[Scalar]]) -> Rows:
    """m⁻¹, one row and column after the other swept out: n³/2 multiplications."""
    n = len(m)
    rows = [list(r) for r in m]
    for k in range(n):
        over = reciprocal(rows[k][k])
        gain = [rows[i][k] * over for i in range(n)]
        for i in range(n):
            for j in range(i + 1):
                if i != k and j != k:
                    rows[i][j] = rows[j][i] = rows[i][j] - gain[i] * rows[j][k]
        for i in range(n):
            rows[i][k] = rows[k][i] = gain[i]
        rows[k][k] = -over
    return tuple(tuple(-x for x in r) for r in rows)


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


# ---- Systems of linear equations with a symmetric, positive definite matrix, a few rows on any scalar.


def solved_ldl(matrix: Sequence[Sequence[Scalar]], right: Sequence[Scalar]) -> list[Scalar]:
    """x (n) with matrix x = right, by L D Lᵀ without pivoting. n³/6 multiplications, n divisions."""
    n = len(right)
    lower: list[list[Scalar]] = []
    over: list[Scalar] = []  # 1/D
    for i in range(n):
        row: list[Scalar] = []  # L D of this row
        for j in range(i):
            row.append(matrix[i][j] - total(row[k] * lower[j][k] for k in range(j)))
        unit = [x * over[j] for j, x in enumerate(row)]
        over.append(1.0 / (matrix[i][i] - total(x * y for x, y in zip(row, unit, strict=True))))
        lower.append(unit)
    y: list[Scalar] = []
    for i in range(n):
        y.append(right[i] - total(lower[i][k] * y[k] for k in range(i)))
    x = [a * b for a, b in zip(y, over, strict=True)]
    for i in reversed(range(n)):
        x[i] = x[i] - total(lower[k][i] * x[k] for k in range(i + 1, n))
    return x
