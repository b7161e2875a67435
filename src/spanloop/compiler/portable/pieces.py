"""A Plan in pieces for languages with nested expressions: which values have names, and what is written where.

A value that is used once is written where it is used; others, and the sines, have names. Targets that walk the same
pieces in the same way compute the same numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from spanloop.compiler.lower.plan import Output, Plan
from spanloop.compiler.render.segments import Segments, cut
from spanloop.compiler.trace import CONSTANT, COSINE, INPUT, SINE, Expression

DEEP = 40  # operations of one nested expression, at most
SCRATCH = -1  # the number of the array that values between pieces are in


@dataclass(frozen=True)
class Store:
    """A value that a piece writes to entry `place` of an array: an argument's number, or SCRATCH."""

    value: Output
    array: int
    place: int


@dataclass(frozen=True)
class Piece:
    """Operations of one function; own: their numbers; named: those with names."""

    nodes: tuple[Expression, ...]
    own: frozenset[int]
    named: frozenset[int]
    stores: tuple[Store, ...]


@dataclass(frozen=True)
class PortablePlan:
    """A plan whose outputs fill arrays of these sizes; `whole` and `length` as in render/segments.py."""

    plan: Plan
    sizes: tuple[int, ...]
    whole: int
    length: int

    def __post_init__(self) -> None:
        assert sum(self.sizes) == len(self.plan.outputs), (self.plan.name, self.sizes)

    @property
    def n_arrays(self) -> int:
        """Arrays that the function takes: inputs, then outputs."""
        return len(self.plan.inputs) + len(self.sizes)

    @cached_property
    def segments(self) -> Segments:
        """The plan in pieces, and the scratch slots of what crosses between them."""
        return cut(self.plan, self.whole, self.length)

    @cached_property
    def inputs(self) -> list[tuple[int, int]]:
        """For every input scalar its array, and where."""
        return [(k, j) for k, (_, size) in enumerate(self.plan.inputs) for j in range(size)]

    @cached_property
    def pieces(self) -> list[Piece]:
        """All pieces, in order."""
        return [self._piece(k) for k in range(len(self.segments.pieces))]

    def source_of(self, x: Expression) -> tuple[int, int]:
        """The array and place that an input, or a value of another piece, is read from."""
        return self.inputs[int(x.value)] if x.op == INPUT else (SCRATCH, self.segments.slot[x.index])

    def used_arrays(self, piece: Piece) -> set[int]:
        """Numbers of the arrays that a piece reads or writes."""
        operands = [x for n in piece.nodes for x in (n.a, n.b, n.c) if x is not None]
        operands += [s.value for s in piece.stores if isinstance(s.value, Expression)]
        read = {
            self.source_of(x)[0] for x in operands if x.op == INPUT or (x.op != CONSTANT and x.index not in piece.own)
        }
        return read | {s.array for s in piece.stores}

    def _piece(self, k: int) -> Piece:
        nodes = tuple(n for n in self.segments.pieces[k] if n.op not in (INPUT, CONSTANT))
        stores = tuple(self._stores(k, nodes))
        nodes = _needed(nodes, stores)
        uses = Counter(x.index for n in nodes for x in (n.a, n.b, n.c) if x is not None)
        uses.update(s.value.index for s in stores if isinstance(s.value, Expression))
        depth: dict[int, int] = {}
        named = set()
        for n in nodes:
            below = 1 + max((depth.get(x.index, 0) for x in (n.a, n.b, n.c) if x is not None), default=0)
            if uses[n.index] > 1 or n.op in (SINE, COSINE) or below > DEEP:
                named.add(n.index)
                below = 0
            depth[n.index] = below
        return Piece(nodes, frozenset(n.index for n in nodes), frozenset(named), stores)

    def _stores(self, k: int, nodes: tuple[Expression, ...]) -> Iterator[Store]:
        s = self.segments
        for n in nodes:
            if n.index in s.leaves and s.home[n.index] == k:
                yield Store(n, SCRATCH, s.slot[n.index])
        places = [(len(self.plan.inputs) + a, j) for a, size in enumerate(self.sizes) for j in range(size)]
        for x, (array, place) in zip(self.plan.outputs, places, strict=True):
            if (s.home.get(x.index, 0) if isinstance(x, Expression) else 0) == k:
                yield Store(x, array, place)


def _needed(nodes: tuple[Expression, ...], stores: tuple[Store, ...]) -> tuple[Expression, ...]:
    """Those that the stores need: conditions are computed where they are read, not where they were first."""
    wanted = {s.value.index for s in stores if isinstance(s.value, Expression)}
    found = []
    for n in reversed(nodes):
        if n.index in wanted:
            found.append(n)
            wanted.update(x.index for x in (n.a, n.b, n.c) if x is not None)
    return tuple(reversed(found))
