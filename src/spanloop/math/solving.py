"""Systems of linear equations with a symmetric, positive definite matrix, a few rows on any scalar."""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.math.small import total
from spanloop.types import Scalar


def solved(matrix: Sequence[Sequence[Scalar]], right: Sequence[Scalar]) -> list[Scalar]:
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
