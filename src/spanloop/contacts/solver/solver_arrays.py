"""Arrays of the impulse solve, and calls on them; their names have the prefix "solve." but for those that are given.

| name | numbers | meaning |
|---|---|---|
| W, b | n² · block², n · block | blocks of W row by row at i n + j; velocities without impulses [m/s, rad/s] |
| on, soft | n, n | 1 for points that take part; what is added to W_nn |
| coefficients, toward | n · 3, n · 2 | of friction; direction of a slip that is given, or zeros |
| f | n · block | impulses; before: a guess |
| residual | 1 | the largest entry of Φ/ρ [m/s]; moments count by the length √(W_nn/W_mm) |
| trial, d, phi | n · block | f + α d, Newton's step, Φ at the trial |
| base | n · block | where the last sweeps ended |
| M, A, inverse | | derivative of P by point, A in blocks, inverses of its pivots |
| presses | n | 1 where f_n − ρ u_n > 0: other rows of A are those of 1 |
| w, root.w | n · groups | scales 1/ρ of a point's impulses, and their roots |
| u | block | velocity of the point at hand |
| newton, sweep, left, fresh, ... | 1 | what a run does next |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spanloop.algorithms.contact.friction_cone import derivative_size, groups
from spanloop.compiler.lower import Block, Stage
from spanloop.compiler.lower.schedule import Call

PREFIX = "solve."


@dataclass(frozen=True)
class SolverArrays:
    """n points with blocks of 3 or 6 impulses; names: of the arrays that are given."""

    stage: Stage
    n: int
    block: int
    names: Mapping[str, str]

    def declare(self, singles: Iterable[str]) -> None:
        """All arrays of the solve; singles: those of one number."""
        for name, count in (self._own | dict.fromkeys(singles, 1)).items():
            self.stage.array(PREFIX + name, count)

    @cached_property
    def _own(self) -> dict[str, int]:
        n, size = self.n, self.n * self.block
        scales = n * (max(groups(self.block)) + 1)
        out = dict.fromkeys(("trial", "d", "phi", "base"), size) | {"A": size * size, "inverse": size * self.block}
        return out | {
            "u": self.block,
            "M": n * derivative_size(self.block),
            "presses": n,
            "w": scales,
            "root.w": scales,
        }

    @cached_property
    def _sizes(self) -> dict[str, int]:
        n, size = self.n, self.n * self.block
        return self._own | {"on": n, "soft": n, "coefficients": 3 * n, "toward": 2 * n, "f": size, "b": size}

    def of(self, name: str, counter: str) -> Block:
        """The numbers of one point; counter -i: of the i-th point from the last."""
        size, array = self._sizes[name] // self.n, self.names.get(name, PREFIX + name)
        if counter.startswith("-"):
            return Block(array, size, ((counter[1:], -size),), (self.n - 1) * size)
        return Block(array, size, ((counter, size),))

    def each(self, counter: str, *names: str) -> tuple[Block, ...]:
        """The numbers of one point, of several arrays."""
        return tuple(self.of(x, counter) for x in names)

    def pair(self, name: str, row: str, column: str) -> Block:
        """The block of two points."""
        size, n, at, offset = self.block**2, self.n, list[tuple[str, int | tuple[int, ...]]](), 0
        for counter, stride in ((row, n * size), (column, size)):
            backward = counter.startswith("-")
            at.append((counter.removeprefix("-"), -stride if backward else stride))
            offset += (n - 1) * stride if backward else 0
        return Block(self.names.get(name, PREFIX + name), size, tuple(at), offset)

    def single(self, name: str) -> Block:
        """An array of one number that is given."""
        return Block(self.names[name], 1)

    def call(self, name: str, reads: Sequence[Any], writes: Sequence[Any], page: Callable) -> Call:
        """The call of a page on blocks and arrays; plain names are those of the solve's own arrays."""
        read, written = ([PREFIX + x if isinstance(x, str) else x for x in y] for y in (reads, writes))
        return self.stage.call(f"contact_{name}", read, written, page)
