"""Which values of a tape move to a slower memory and when, so that at most `budget` of them are held at a time.

Belady's rule: of the values that are held, the one whose next use is farthest away moves. A value is stored once, and
read back where it is used again; its slot serves another value after its last use. Where all slots are taken, values
are held beyond the budget, and the assembler finds a place for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from spanloop.compiler.lower.plan import Output, Plan
from spanloop.compiler.trace import CONDITIONS, CONSTANT, INPUT, Expression


@dataclass(frozen=True)
class Moves:
    """What happens after an operation. stored: values to write into their slots; dropped: values held no longer."""

    stored: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True)
class Spills:
    """nodes: the operations in order; after: the moves after each of them; slot: of each value that is ever stored.

    peak: the largest number of values that would be held without any moves.
    """

    nodes: tuple[Expression, ...]
    after: tuple[Moves, ...]
    slot: dict[int, int]
    n_slots: int
    peak: int


def spills(plan: Plan, budget: int, most: int) -> Spills:
    """The moves of a plan's values into at most so many slots; inputs, constants and conditions are not moved."""
    nodes = tuple(n for n in plan.nodes if n.op not in (INPUT, CONSTANT))
    return spills_of(nodes, plan.outputs + plan.demand_flags, budget, most)


def spills_of(
    nodes: Sequence[Expression], outputs: Sequence[Output], budget: int, most: int, kept: AbstractSet[int] = frozenset()
) -> Spills:
    """The moves of operations whose outputs are read last.

    kept: values that are in the slower memory anyway, inputs and values of others among them; they need no slot.
    """
    uses = _uses(nodes, outputs)
    movable = {n.index for n in nodes if n.op not in CONDITIONS} | kept
    held: set[int] = set()  # in registers
    alive: set[int] = set()  # held or stored, to be used again
    slot: dict[int, int] = {}
    free: list[int] = []
    n_slots = peak = 0
    after: list[Moves] = []
    for k, n in enumerate(nodes):
        for i in {x.index for x in (n, n.a, n.b, n.c) if x is not None and x.index in movable}:
            while uses[i] and uses[i][-1] <= k:
                uses[i].pop()
            if uses[i]:
                held.add(i)
                alive.add(i)
            else:
                held.discard(i)
                if i in alive and i in slot:
                    free.append(slot[i])
                alive.discard(i)
        peak = max(peak, len(alive))
        stored, dropped = [], []
        while len(held) > budget:
            is_full = not free and n_slots == most
            movable_now = [i for i in held if i in slot or i in kept] if is_full else held
            if not movable_now:
                break
            i = max(movable_now, key=lambda i: (uses[i][-1], i))
            held.remove(i)
            dropped.append(i)
            if i not in slot and i not in kept:
                slot[i] = free.pop() if free else n_slots
                n_slots = max(n_slots, slot[i] + 1)
                stored.append(i)
        after.append(Moves(tuple(stored), tuple(dropped)))
    return Spills(tuple(nodes), tuple(after), slot, n_slots, peak)


def _uses(nodes: Sequence[Expression], outputs: Sequence[Output]) -> dict[int, list[int]]:
    """For each value the operations that read it, the last one first; outputs are read after all operations."""
    uses: dict[int, list[int]] = {n.index: [] for n in nodes}
    for x in outputs:
        if isinstance(x, Expression):
            uses.setdefault(x.index, []).append(len(nodes))
    for k in range(len(nodes) - 1, -1, -1):
        n = nodes[k]
        for x in (n.a, n.b, n.c):
            if x is not None:
                uses.setdefault(x.index, []).append(k)
    return uses
