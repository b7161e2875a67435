"""Sparse symmetric systems of named unknowns, factored as LDLᵀ in a chosen order; zeros are never touched.

Such a system is small and, once traced, straight-line code, so its entries live in a table by pairs of names. Names are
numbers of degrees of freedom (mass matrices of trees, last one first: no fill), or rows of closures and accelerations
of free bodies (the root system of `elimination`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spanloop.math.scalar import reciprocal
from spanloop.math.vector3 import is_zero, total
from spanloop.types import Scalar

Name = Any  # hashable


class System:
    """A x = b with a symmetric A: entries by pairs of names, right side by name."""

    def __init__(self) -> None:
        self.matrix: dict[frozenset, Scalar] = {}
        self.right: dict[Name, Scalar] = {}

    @staticmethod
    def of(rows: Sequence[Sequence[Scalar]]) -> System:
        """From the lower half of a matrix; unknowns are named by their numbers."""
        system = System()
        for i, row in enumerate(rows):
            for j in range(i + 1):
                system.add(i, j, row[j])
        return system

    def add(self, x: Name, y: Name, value: Scalar) -> None:
        """Add a value to the entry of x and y, and to its mirror image."""
        if not is_zero(value):
            key = frozenset((x, y))
            self.matrix[key] = self.matrix[key] + value if key in self.matrix else value

    def times(self, x: Mapping[Name, Scalar]) -> dict[Name, Scalar]:
        """A x."""
        terms: dict[Name, list[Scalar]] = {}
        for key, value in self.matrix.items():
            i, j = tuple(key) if len(key) == 2 else tuple(key) * 2
            terms.setdefault(i, []).append(value * x[j])
            if len(key) == 2:
                terms.setdefault(j, []).append(value * x[i])
        return {n: total(t) for n, t in terms.items()}


class SparseLDL:
    """LDLᵀ of a System in a given order, without pivoting.

    order: all unknowns; inverse_pivot(name, pivot): what serves as 1/pivot, the reciprocal if it is not given.
    changes(x, y, value): called with what the elimination of x adds to the diagonal entry of y.
    """

    def __init__(
        self,
        system: System,
        order: Sequence[Name],
        inverse_pivot: Callable[[Name, Scalar], Scalar] = lambda name, pivot: reciprocal(pivot),
        changes: Callable[[Name, Name, Scalar], None] = lambda x, y, value: None,
    ):
        matrix = dict(system.matrix)
        left = list(order)
        self.pivots: dict[Name, Scalar] = {}
        self.steps: list[tuple[Name, Scalar, list[tuple[Name, Scalar]]]] = []
        for x in order:
            left.remove(x)
            self.pivots[x] = matrix.get(frozenset((x,)), 0.0)
            inverse = inverse_pivot(x, self.pivots[x])
            column = [(y, matrix[frozenset((x, y))]) for y in left if frozenset((x, y)) in matrix]
            gains = [(y, t * inverse) for y, t in column]
            for i, (y, t) in enumerate(column):
                for w, g in gains[: i + 1]:
                    key = frozenset((y, w))
                    matrix[key] = matrix[key] - t * g if key in matrix else -(t * g)
                changes(x, y, -(t * gains[i][1]))
            self.steps.append((x, inverse, gains))

    def solve(self, right: Mapping[Name, Scalar]) -> dict[Name, Scalar]:
        """x by name with A x = right; names without an entry have the right side 0."""
        y = dict(right)
        for x, _, gains in self.steps:
            t = y.get(x, 0.0)
            if not is_zero(t):
                for w, g in gains:
                    y[w] = y.get(w, 0.0) - g * t
        for x, inverse, gains in reversed(self.steps):
            y[x] = total([y.get(x, 0.0) * inverse, *(-(g * y[w]) for w, g in gains)])
        return y


def block_order(
    blocks: Mapping[Name, Sequence[Name]], system: System, last: Callable[[Name], bool]
) -> tuple[list[Name], list[Name]]:
    """Unknowns, and blocks, in an order of little fill: the block that costs least now is eliminated next.

    last(block): must this block wait until its neighbours that need not wait are gone?
    """
    owner = {x: k for k, xs in blocks.items() for x in xs}
    near: dict[Name, set[Name]] = {k: set() for k in blocks}
    for key in system.matrix:
        ends = {owner[x] for x in key}
        if len(ends) == 2:
            i, j = ends
            near[i].add(j)
            near[j].add(i)
    order: list[Name] = []
    names: list[Name] = []
    left = list(blocks)
    while left:
        free = [k for k in left if not (last(k) and any(not last(j) for j in near[k]))] or left
        best = min(free, key=lambda k: (_cost(len(blocks[k]), sum(len(blocks[j]) for j in near[k])), left.index(k)))
        left.remove(best)
        around = near.pop(best)
        for j in around:
            near[j] = (near[j] | around) - {best, j}
        order += blocks[best]
        names.append(best)
    return order, names


def _cost(n: int, d: int) -> float:
    """Operations to eliminate n unknowns with d neighbours."""
    return n * (n * n / 6 + n * d / 2 + d * d / 2)
