"""L D Lᵀ of small symmetric matrices, with pivots that may be held up or switched off."""

from __future__ import annotations

from spanloop.math.scalar import reciprocal, where
from spanloop.math.vector3 import is_zero, total

SMALLEST_PIVOT = 1e-12


class Factors:
    """A = (1 + N) D (1 + N)ᵀ.

    least: by row, below which no pivot goes; zero: below which a pivot counts as zero and its row is left out (of the
    first rows only where there are fewer than rows); masks: 0 for rows that are to be left out.
    """

    def __init__(self, matrix, least=None, zero=None, masks=None):
        n = len(matrix)
        A = [list(r) for r in matrix]
        self.pivots: list = []
        self.over: list = []
        self.gains: list[list] = [[0.0] * n for _ in range(n)]
        for k in range(n):
            if zero and k < len(zero):
                over = _guarded(A[k][k], zero[k])
            else:
                over = _clamped(A[k][k], least[k]) if least else reciprocal(A[k][k])
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


def _clamped(pivot, least):
    if is_zero(pivot):
        return reciprocal(least)
    return 1.0 / where(pivot > least, pivot, least)


def _guarded(pivot, bound):
    if is_zero(pivot):
        return 0.0
    ok = pivot > bound
    return where(ok, 1.0, 0.0) / where(ok, pivot, 1.0)


def zero_bounds(m, numbers, matrix) -> list:
    """Below which a pivot of an admittance of the closures' rows of these numbers counts as zero.

    SMALLEST_PIVOT of all rows of its closure and sort (moments, forces) together.
    """
    group = {r: (c.number, c.sort(k)) for c in m.closures for k, r in enumerate(c.rows)}
    scale: dict = {}
    for k, r in enumerate(numbers):
        scale[group[r]] = scale.get(group[r], 0.0) + matrix[k][k]
    return [SMALLEST_PIVOT * scale[group[r]] for r in numbers]


def thin_pivots(bounds, factors: Factors, masks) -> list:
    """Pairs of which the first must be less, for the first rows; a row that is switched off asks for nothing."""
    return [(y * x - (1.0 - y), pivot) for x, y, pivot in zip(bounds, masks, factors.pivots, strict=False)]
