"""Small symmetric positive definite matrices on any scalar: no pivots, no branches."""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.math.scalar import reciprocal
from spanloop.math.small import dot, total
from spanloop.types import Scalar

Rows = tuple[tuple[Scalar, ...], ...]


def inverse(m: Sequence[Sequence[Scalar]]) -> Rows:
    """m⁻¹ by m = L D Lᵀ: with W = L⁻¹ it is Wᵀ D⁻¹ W."""
    n = len(m)
    L: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    over: list[Scalar] = []
    scaled: list[list[Scalar]] = [[0.0] * n for _ in range(n)]  # L D
    for i in range(n):
        for j in range(i):
            scaled[i][j] = m[i][j] - total(scaled[i][k] * L[j][k] for k in range(j))
            L[i][j] = scaled[i][j] * over[j]
        over.append(reciprocal(m[i][i] - total(scaled[i][k] * L[i][k] for k in range(i))))
    W = _unit_lower_inverse(L)
    weighted = [[over[i] * W[i][j] for j in range(n)] for i in range(n)]
    upper = {(i, j): total(W[k][i] * weighted[k][j] for k in range(j, n)) for i in range(n) for j in range(i, n)}
    return tuple(tuple(upper[min(i, j), max(i, j)] for j in range(n)) for i in range(n))


def _unit_lower_inverse(L: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
    """Inverse of the lower triangle L with ones on its diagonal, which are not stored."""
    n = len(L)
    W: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    for i in range(n):
        W[i][i] = 1.0
        for j in range(i):
            W[i][j] = -(L[i][j] + total(L[i][k] * W[k][j] for k in range(j + 1, i)))
    return W


def times(m: Rows, x: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Matrix times vector."""
    return tuple(dot(row, x) for row in m)
