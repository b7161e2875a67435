"""A long tape cut into functions of bounded length: code generation is superlinear in a function's size.

Up to WHOLE operations one function runs faster (measured: 20-30 % at 4000 to 10 000 operations) and compiles as fast;
beyond, pieces compile faster and run alike. Values needed after a cut travel through a scratch array whose slots are
used again once their last reader has run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spanloop.compiler.lower import Plan
from spanloop.compiler.trace import CONDITIONS, CONSTANT, INPUT, Expression

WHOLE = 12000  # operations and outputs up to which a tape stays in one piece
STORE = 8  # operations that one output weighs: many stores in one function are slow to compile
LENGTH = 800  # of a piece otherwise


@dataclass(frozen=True)
class Segments:
    """The pieces, and the scratch slot of every value that crosses a cut."""

    pieces: tuple[tuple[Expression, ...], ...]
    slot: dict[int, int]
    n_slots: int
    leaves: dict[int, int]  # value -> last piece that reads it, where that is a later one
    home: dict[int, int]  # value -> piece that computes it


def cut(plan: Plan, whole: int = WHOLE, length: int = LENGTH) -> Segments:
    """One piece up to `whole` operations, else pieces of about equal length, none longer than `length`."""
    work = [n for n in plan.nodes if n.op not in (INPUT, CONSTANT)]
    if len(work) + STORE * len(plan.outputs) <= whole:
        length = whole
    return segmented(pieces_of(work, length), _slots)


def pieces_of(work: Sequence[Expression], length: int) -> list[tuple[Expression, ...]]:
    """Pieces of about equal length, none longer than `length`, and at least one."""
    count = max(1, -(-len(work) // length))
    size = -(-len(work) // count) if work else 1
    return [tuple(work[k : k + size]) for k in range(0, len(work), size)] or [()]


def segmented(pieces: Sequence[tuple[Expression, ...]], slots: Callable) -> Segments:
    """Pieces with what crosses between them; slots(pieces, leaves) -> (slot of each value that does, how many)."""
    pieces = _keep_conditions_home(pieces)
    home = {n.index: k for k, piece in enumerate(pieces) for n in piece}
    last: dict[int, int] = {}
    for k, piece in enumerate(pieces):
        for n in piece:
            for x in (n.a, n.b, n.c):
                if x is not None and x.index in home:
                    last[x.index] = max(k, last.get(x.index, 0))
    leaves = {i: k for i, k in last.items() if k > home[i]}
    slot, n_slots = slots(pieces, leaves)
    return Segments(tuple(pieces), slot, n_slots, leaves, home)


def _keep_conditions_home(pieces):
    """Conditions are recomputed in every piece that reads them, so that only numbers cross a cut."""
    out = []
    for piece in pieces:
        own = {n.index for n in piece}
        missing: dict[int, Expression] = {}

        def need(n, own=own, missing=missing):
            for x in (n.a, n.b, n.c):
                if x is not None and x.op in CONDITIONS and x.index not in own and x.index not in missing:
                    need(x)
                    missing[x.index] = x

        for n in piece:
            need(n)
        out.append(tuple(missing.values()) + piece)
    return out


def _slots(pieces, leaves) -> tuple[dict[int, int], int]:
    slot: dict[int, int] = {}
    free: list[int] = []
    release: dict[int, list[int]] = {}
    n = 0
    for k, piece in enumerate(pieces):
        free.extend(release.pop(k, ()))
        for node in piece:
            if node.index in leaves and node.index not in slot:
                if free:
                    s = free.pop()
                else:
                    s, n = n, n + 1
                slot[node.index] = s
                release.setdefault(leaves[node.index] + 1, []).append(s)
    return slot, n
