"""L D Lᵀ of small symmetric matrices, with pivots that may be held up or switched off."""

from __future__ import annotations

from spanloop.math.scalar import reciprocal, where
from spanloop.math.small import is_zero, total


class Factors:
    """A = (1 + N) D (1 + N)ᵀ. least: by row, below which no pivot goes; masks: 0 for rows that are to be left out."""

    def __init__(self, matrix, least=None, masks=None):
        n = len(matrix)
        A = [list(r) for r in matrix]
        self.pivots: list = []
        self.over: list = []
        self.gains: list[list] = [[0.0] * n for _ in range(n)]
        for k in range(n):
            over = _reciprocal(A[k][k], least[k]) if least else reciprocal(A[k][k])
            over = over * masks[k] if masks else over
            for i in range(k + 1, n):
                gain = self.gains[i][k] = A[i][k] * over
                for j in range(k + 1, i + 1):
                    A[i][j] = A[i][j] - gain * A[j][k]
            self.pivots.append(A[k][k])
            self.over.append(over)

    def forward(self, b) -> list:
        """(1 + N)⁻¹ b."""
        y = list(b)
        for k in range(len(y)):
            y[k] = total([y[k], *(-(self.gains[k][j] * y[j]) for j in range(k))])
        return y

    def backward(self, y) -> list:
        """(1 + N)⁻ᵀ D⁻¹ y."""
        x: list = [0.0] * len(y)
        for k in reversed(range(len(y))):
            below = (-(self.gains[i][k] * x[i]) for i in range(k + 1, len(y)))
            x[k] = total([self.over[k] * y[k], *below])
        return x

    def solve(self, b) -> list:
        return self.backward(self.forward(b))


def _reciprocal(pivot, least):
    if is_zero(pivot):
        return reciprocal(least)
    return 1.0 / where(pivot > least, pivot, least)
