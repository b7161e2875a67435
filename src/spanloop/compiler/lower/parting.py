"""A Plan in phases, so that parts of it can be computed beside each other.

A part is a set of inputs and outputs that belong together. An operation that needs inputs of one part alone has its
home in that part; one that needs several is joint. A joint result that all parts have entered is news to all of them
alike: what combines it with values of one part alone has its home there again, and so has what one part alone reads.
Phases alternate,

    joint, parts beside each other, joint, parts beside each other, joint, ...

and a value crosses from one home to another only between phases. Any choice of homes is correct; this one leaves little
joint. Nothing is computed twice but conditions, which cross no border.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spanloop.compiler.lower.plan import Plan
from spanloop.compiler.trace import Expression
from spanloop.compiler.trace.operations import CONSTANT, INPUT

Nodes = tuple[Expression, ...]
JOINT = -1  # the home of what belongs to no part
WORTH = 2000  # operations that a phase must take off one of two threads: to wait for each other costs as much


@dataclass(frozen=True)
class Part:
    """Inputs, numbered through all arguments, and outputs that belong together."""

    inputs: frozenset[int]
    outputs: frozenset[int]


@dataclass(frozen=True)
class Phase:
    """Operations that follow one another in each home; homes do not wait for each other. Joint, or one a part."""

    homes: tuple[Nodes, ...]

    @property
    def together(self) -> int:
        """How many operations it has."""
        return sum(map(len, self.homes))

    @property
    def spared(self) -> int:
        """How many of them a second thread can take."""
        return min(self.together // 2, self.together - max(map(len, self.homes), default=0))


@dataclass(frozen=True)
class Parted:
    """The operations of a plan in phases, one after the other: joint first, then parts and joint by turns."""

    plan: Plan
    phases: tuple[Phase, ...]

    @property
    def weights(self) -> list[int]:
        """How many operations each part has in all phases."""
        return [sum(map(len, homes)) for homes in zip(*(x.homes for x in self.phases[1::2]), strict=True)]

    def __str__(self) -> str:
        lines = [f"{self.plan.name} in {len(self.phases)} phases"]
        for k, phase in enumerate(self.phases):
            counts = ", ".join(str(len(x)) for x in phase.homes)
            lines.append(f"  {'parts' if k % 2 else 'joint'}: {counts} operations")
        return "\n".join(lines)


def parted(plan: Plan, parts: Sequence[Part], worth: int = WORTH) -> Parted:
    """The plan in phases; one of parts that spares less than `worth` operations is joint instead."""
    work = [n for n in plan.nodes if n.op not in (INPUT, CONSTANT)]
    home = _homes(plan, parts)
    _draw_in(work, home, _readers(plan, parts))
    while True:
        phase = _phased(work, home)
        phases = _phases(work, home, phase, len(parts))
        poor = [k for k in range(1, len(phases), 2) if phases[k].spared < worth]
        if not poor:
            return Parted(plan, tuple(phases))
        least = min(poor, key=lambda k: phases[k].spared)
        for nodes in phases[least].homes:
            home.update((n.index, JOINT) for n in nodes)


def _operands(n: Expression) -> list[Expression]:
    return [x for x in (n.a, n.b, n.c) if x is not None and x.op != CONSTANT]


def _homes(plan: Plan, parts: Sequence[Part]) -> dict[int, int]:
    """Of every operation its home.

    A value has a round and the parts that have entered it in this round, a bit each. When all have entered, it begins
    the next round with none.
    """
    owner = {i: 1 << k for k, part in enumerate(parts) for i in part.inputs}
    everyone = (1 << len(parts)) - 1
    number = {1 << k: k for k in range(len(parts))}
    found: dict[int, tuple[int, int]] = {}
    home: dict[int, int] = {}
    for n in plan.nodes:
        if n.op in (INPUT, CONSTANT):
            found[n.index] = (0, owner.get(int(n.value), 0) if n.op == INPUT else 0)
            continue
        near = [found[x.index] for x in (n.a, n.b, n.c) if x is not None]
        turn, entered = max(r for r, _ in near), 0
        for _, e in near:
            entered |= e
        if entered == everyone:
            turn, entered = turn + 1, 0
        found[n.index] = (turn, entered)
        home[n.index] = number.get(entered, JOINT)
    return home


def _readers(plan: Plan, parts: Sequence[Part]) -> dict[int, set[int]]:
    """Of the operations that are outputs of a part, that part."""
    out: dict[int, set[int]] = {}
    for k, part in enumerate(parts):
        for x in (plan.outputs[i] for i in part.outputs):
            if isinstance(x, Expression):
                out.setdefault(x.index, set()).add(k)
    return out


def _draw_in(work: Sequence[Expression], home: dict[int, int], readers: dict[int, set[int]]) -> None:
    """What is joint and read by one part alone moves there."""
    for n in reversed(work):
        own = readers.get(n.index, set())
        if home[n.index] == JOINT and len(own) == 1:
            home[n.index] = next(iter(own))
        for x in _operands(n):
            readers.setdefault(x.index, set()).add(home[n.index])


def _phased(work: Sequence[Expression], home: dict[int, int]) -> dict[int, int]:
    """The earliest phase of every operation: even if joint, odd in a part."""
    phase: dict[int, int] = {}
    for n in work:
        own = home[n.index]
        earliest = 0
        for x in _operands(n):
            if x.index in phase:
                earliest = max(earliest, phase[x.index] + (home[x.index] != own))
        phase[n.index] = earliest + (earliest % 2 != (own != JOINT))
    return phase


def _phases(work, home: dict[int, int], phase: dict[int, int], n_parts: int) -> list[Phase]:
    count = 1 + max(phase.values(), default=0)
    nodes: list[list[list[Expression]]] = [[[] for _ in range(n_parts if k % 2 else 1)] for k in range(count)]
    for n in work:
        nodes[phase[n.index]][max(home[n.index], 0)].append(n)
    return [Phase(tuple(map(tuple, homes))) for homes in nodes]
