"""Products and inverses of small square blocks on any scalar, row by row: the parts of an elimination in blocks."""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.math.scalar import reciprocal
from spanloop.math.vector3 import total
from spanloop.types import Scalar


def times(A: Sequence[Scalar], B: Sequence[Scalar], n: int) -> list[Scalar]:
    """A B."""
    return [total(A[i * n + k] * B[k * n + j] for k in range(n)) for i in range(n) for j in range(n)]


def less_product(C: Sequence[Scalar], A: Sequence[Scalar], B: Sequence[Scalar], n: int) -> list[Scalar]:
    """C − A B."""
    out = list(C)
    for i in range(n):
        for j in range(n):
            for k in range(n):
                out[i * n + j] = out[i * n + j] - A[i * n + k] * B[k * n + j]
    return out


def applied(A: Sequence[Scalar], x: Sequence[Scalar], n: int) -> list[Scalar]:
    """A x."""
    return [total(A[i * n + k] * x[k] for k in range(n)) for i in range(n)]


def more_applied(y: Sequence[Scalar], A: Sequence[Scalar], x: Sequence[Scalar], n: int) -> list[Scalar]:
    """y + A x."""
    out = list(y)
    for i in range(n):
        for k in range(n):
            out[i] = out[i] + A[i * n + k] * x[k]
    return out


def less_applied(y: Sequence[Scalar], A: Sequence[Scalar], x: Sequence[Scalar], n: int) -> list[Scalar]:
    """y − A x."""
    out = list(y)
    for i in range(n):
        for k in range(n):
            out[i] = out[i] - A[i * n + k] * x[k]
    return out


def inverse(A: Sequence[Scalar], n: int) -> list[Scalar]:
    """A⁻¹ of a block of 3 or 6; not finite where a pivot is 0."""
    if n == 3:
        return _inverse3(A)
    h = n // 2
    part = {(i, j): [A[(h * i + a) * n + h * j + b] for a in range(h) for b in range(h)]
            for i in range(2) for j in range(2)}  # fmt: skip
    P = inverse(part[0, 0], h)
    L = times(part[1, 0], P, h)
    Q = inverse(less_product(part[1, 1], L, part[0, 1], h), h)
    R = times(P, part[0, 1], h)
    upper, lower = [-x for x in times(R, Q, h)], [-x for x in times(Q, L, h)]
    first = less_product(P, upper, L, h)
    blocks = {(0, 0): first, (0, 1): upper, (1, 0): lower, (1, 1): Q}
    return [blocks[i // h, j // h][(i % h) * h + j % h] for i in range(n) for j in range(n)]


def _inverse3(A: Sequence[Scalar]) -> list[Scalar]:
    a, b, c, d, e, f, g, h, i = A
    x, y, z = e * i - f * h, f * g - d * i, d * h - e * g
    r = reciprocal(a * x + b * y + c * z)
    adjugate = (x, c * h - b * i, b * f - c * e, y, a * i - c * g, c * d - a * f, z, b * g - a * h, a * e - b * d)
    return [r * p for p in adjugate]
