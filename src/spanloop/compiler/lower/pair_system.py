"""A PairSystem: matrices whose entries are products of vectors of two items, of which one carries the other.

A plan computes the vectors, a row a component with one number for each item. Items form a forest. What follows is the
same for all sizes: its code is loops, and does not grow. The last of the matrices, M, is symmetric and positive
definite; where the system is solved, the answer is

    [−M⁻¹ A   −M⁻¹ B   M⁻¹]     instead of     [A   B   M]

Items whose own row of the solution is given ("fixed") are not eliminated: their rows are [0 0 1], and the column of a
fixed item is −M⁻¹ times its column of M.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.compiler.lower.plan import Operations, Plan, live
from spanloop.compiler.lower.rolled import Looped
from spanloop.compiler.trace import Expression

Entries = dict[tuple[int, int], Any]  # of a matrix, without those that are always 0
Terms = tuple[tuple[int, int], ...]  # Σ row[x][i] · row[y][j] for pairs (x, y)


@dataclass(frozen=True)
class PairMatrix:
    """Entries (i, j) for items i that j carries, and for i = j (below), and for items i that carry j (above)."""

    below: Terms
    above: Terms


@dataclass(frozen=True)
class Addition:
    """A number that is added to entry (i, j) of a matrix: `value`, or the front's number `at`."""

    matrix: int
    i: int
    j: int
    value: float = 0.0
    at: int | None = None


@dataclass(frozen=True)
class PairSystem:
    """front: computes the rows of all items, and the numbers of additions after them. below, above: by item, the items
    j of its entries of each kind."""

    name: str
    front: Plan | Looped
    shape: tuple[int, ...]
    matrices: tuple[PairMatrix, PairMatrix, PairMatrix]
    below: tuple[tuple[int, ...], ...]
    above: tuple[tuple[int, ...], ...]
    additions: tuple[Addition, ...] = ()
    is_solved: bool = False
    fixed: frozenset[int] = frozenset()

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """Names and sizes of the inputs."""
        return self.front.inputs

    @property
    def n(self) -> int:
        """How many items there are."""
        return len(self.below)

    @property
    def width(self) -> int:
        """Numbers that the front computes."""
        return len(self.front.answer) if isinstance(self.front, Looped) else len(self.front.outputs)

    @cached_property
    def carriers(self) -> tuple[tuple[int, ...], ...]:
        """Of each item that is eliminated, those before it that couple with it, eliminated after it."""
        return tuple(
            tuple(j for j in sorted(row) if j < i and j not in self.fixed) if i not in self.fixed else ()
            for i, row in enumerate(self.below)
        )

    @cached_property
    def carried(self) -> tuple[tuple[int, ...], ...]:
        """Of each item those of whose carriers it is one."""
        return tuple(tuple(k for k in range(self.n) if i in self.carriers[k]) for i in range(self.n))

    @property
    def operations(self) -> Operations:
        """Of the front and of the products, of the factors and of the solution for all columns."""
        products = sum(
            len(row) * sum(len(getattr(m, kind)) for m in self.matrices)
            for kind, rows in (("below", self.below), ("above", self.above))
            for row in rows
        )
        if self.is_solved:
            pairs = sum(map(len, self.carriers))
            products += 2 * pairs * 3 * self.n + sum(len(row) * (len(row) + 1) // 2 for row in self.carriers)
        own = self.front.operations
        divisions = own.divisions + (self.n if self.is_solved else 0)
        return replace(
            own,
            multiplications=own.multiplications + products,
            additions=own.additions + products,
            divisions=divisions,
        )

    def evaluate(self, numbers: Sequence[float] | np.ndarray) -> np.ndarray:
        """The answer (n, 3 n) for what the front computes, in double precision."""
        x = np.asarray(numbers, float)
        n = self.n
        rows = x[: len(x) // n * n].reshape(-1, n)
        below, above = np.zeros((n, n), bool), np.zeros((n, n), bool)
        for i in range(n):
            below[i, list(self.below[i])] = True
            above[i, list(self.above[i])] = True
        found = []
        for m in self.matrices:
            parts = [sum(np.outer(rows[a], rows[b]) for a, b in terms) for terms in (m.below, m.above)]
            found.append(np.where(below, parts[0], 0.0) + np.where(above, parts[1], 0.0))
        for add in self.additions:
            found[add.matrix][add.i, add.j] += add.value if add.at is None else x[add.at]
        return self._solved(*found) if self.is_solved else np.concatenate(found, axis=1)

    def written_out(self) -> Plan:
        """The same as one plan without loops: for few items it is faster."""
        assert isinstance(self.front, Plan)
        x, n = self.front.outputs, self.n
        entries: list[dict[tuple[int, int], Any]] = []
        for m in self.matrices:
            own = {}
            for terms, rows in ((m.below, self.below), (m.above, self.above)):
                for i, row in enumerate(rows):
                    own |= {(i, j): _total(x[a * n + i] * x[b * n + j] for a, b in terms) for j in row}
            entries.append(own)
        for add in self.additions:
            own = entries[add.matrix]
            own[add.i, add.j] = own.get((add.i, add.j), 0.0) + (add.value if add.at is None else x[add.at])
        if self.is_solved:
            answer = self._eliminated(*entries)
        else:
            answer = [[own.get((i, j), 0.0) for own in entries for j in range(n)] for i in range(n)]
        outputs = tuple(y if isinstance(y, Expression) else float(y) for row in answer for y in row)
        nodes = live([y for y in outputs + self.front.demand_flags if isinstance(y, Expression)])
        return replace(self.front, nodes=tuple(nodes), outputs=outputs, shape=self.shape)

    def _eliminated(self, A: Entries, B: Entries, M: Entries) -> list[list[Any]]:
        """Rows of the solution: M = LᵀDL from the last item to the first, which keeps the zeros of the forest."""
        n, L = self.n, dict(M)
        right = [{j: -A[i, j] for j in range(n) if (i, j) in A} for i in range(n)]
        for i, row in enumerate(right):
            row |= {n + j: -B[i, j] for j in range(n) if (i, j) in B}
            if i in self.fixed:
                row.clear()
            row[2 * n + i] = 1.0
            row |= {2 * n + j: -M[i, j] for j in self.fixed - {i} if (i, j) in M and i not in self.fixed}
        inverse = [1.0] * n
        for k in reversed(range(n)):
            if k in self.fixed:
                continue
            inverse[k] = 1.0 / L[k, k]
            for i in self.carriers[k]:
                factor = L[k, i] * inverse[k]
                for j in self.carriers[k]:
                    if j <= i:
                        L[i, j] = L[i, j] - factor * L[k, j]
                for c, y in right[k].items():
                    right[i][c] = right[i].get(c, 0.0) - factor * y
            for i in self.carriers[k]:
                L[k, i] = L[k, i] * inverse[k]
        for k in range(n):
            row = {c: y * inverse[k] for c, y in right[k].items()}
            for i in self.carriers[k]:
                for c, y in right[i].items():
                    row[c] = row.get(c, 0.0) - L[k, i] * y
            right[k] = row
        return [[row.get(c, 0.0) for c in range(3 * n)] for row in right]

    def _solved(self, A: np.ndarray, B: np.ndarray, M: np.ndarray) -> np.ndarray:
        n = self.n
        free = [i for i in range(n) if i not in self.fixed]
        fixed = sorted(self.fixed)
        tau = np.eye(n)
        tau[np.ix_(free, fixed)] = -M[np.ix_(free, fixed)]
        right = np.concatenate([-A, -B, tau], axis=1)
        right[fixed, : 2 * n] = 0.0
        right[free] = np.linalg.solve(M[np.ix_(free, free)], right[free])
        return right


def _total(terms: Iterable[Any]) -> Any:
    total: Any = 0.0
    for x in terms:
        total = total + x
    return total
