"""A Plan divided into phases, so that several threads can compute parts of it in parallel.

A part is a set of inputs and outputs that belong together (a chain of the mechanism); the share of a thread is some of
the parts. An operation that needs inputs of one share only has its home there; one that needs several is joint. A joint
result that all parts have entered is common knowledge: what combines it with values of one share only has its home
there again, and so has what one share only reads. Phases alternate,

    joint, shares in parallel, joint, shares in parallel, joint, ...

and a value crosses from one home to another only between phases. Any choice of homes is correct; this one leaves little
joint work. Nothing is computed twice except conditions, which never cross.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from spanloop.compiler.lower.plan import Plan
from spanloop.compiler.trace import CONSTANT, INPUT, Expression

Nodes = tuple[Expression, ...]
JOINT = -1  # the home of what belongs to no share
MIN_PHASE = 300  # operations that a phase must take off one of two threads: a rendezvous costs as much
MIN_TOTAL = 15_000  # that all phases must take off together: handing over work costs some microseconds


@dataclass(frozen=True)
class Part:
    """Inputs, numbered through all arguments, and outputs that belong together."""

    inputs: frozenset[int]
    outputs: frozenset[int]


@dataclass(frozen=True)
class Phase:
    """Operations in order for each home (one if joint, else one per share); homes run in parallel."""

    homes: tuple[Nodes, ...]

    @property
    def total(self) -> int:
        """How many operations it has."""
        return sum(map(len, self.homes))

    @property
    def spared(self) -> int:
        """How many of them a second thread can take."""
        return min(self.total // 2, self.total - max(map(len, self.homes), default=0))


@dataclass(frozen=True)
class PhasedPlan:
    """The operations of a plan in phases: joint first, then shares and joint alternate."""

    plan: Plan
    phases: tuple[Phase, ...]

    def __str__(self) -> str:
        lines = [f"{self.plan.name} in {len(self.phases)} phases"]
        for k, phase in enumerate(self.phases):
            counts = ", ".join(str(len(x)) for x in phase.homes)
            lines.append(f"  {'shares' if k % 2 else 'joint'}: {counts} operations")
        return "\n".join(lines)


Share = Sequence[Part]  # parts that one thread has


@dataclass(frozen=True)
class Division:
    """How a plan is divided among threads.

    A phase of shares that spares less than `min_phase` operations is joint instead; the whole plan is, if all phases
    together spare less than `min_total`.
    """

    shares: tuple[Share, ...]
    min_phase: int = MIN_PHASE
    min_total: int = MIN_TOTAL

    @staticmethod
    def among(threads: int, parts: Share, min_phase: int = MIN_PHASE, min_total: int = MIN_TOTAL) -> Division:
        """Parts divided among at most `threads` threads."""
        return Division(tuple(shares(parts, threads)), min_phase, min_total)

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return sum(map(len, self.shares))

    def phases_of(self, plan: Any) -> PhasedPlan:
        """The plan in phases; a looped plan cannot be divided."""
        assert isinstance(plan, Plan)
        return in_phases(plan, self.shares, self.min_phase, self.min_total)

    def __str__(self) -> str:
        return f"threaded {len(self.shares)} {self.min_phase} {self.min_total}"


def shares(parts: Share, count: int) -> list[Share]:
    """Parts for at most `count` threads: consecutive ones for each, as even as possible in the number of inputs.

    Neighbours stay together because sums over parts begin with neighbours: what leaves a share is then one sum.
    """
    edges = list(accumulate((len(x.inputs) for x in parts), initial=0))
    goals = [edges[-1] * k / count for k in range(count + 1)]
    cuts = sorted({min((abs(edge - goal), i) for i, edge in enumerate(edges))[1] for goal in goals})
    return [parts[begin:end] for begin, end in pairwise(cuts)]


def in_phases(
    plan: Plan, shared: Sequence[Share], min_phase: int = MIN_PHASE, min_total: int = MIN_TOTAL
) -> PhasedPlan:
    """The plan in phases, with a home for each share; min_phase, min_total: see Division."""
    work = [n for n in plan.nodes if n.op not in (INPUT, CONSTANT)]
    home = _homes(plan, shared)
    _draw_in(work, home, _readers(plan, shared))
    while True:
        phase = _phased(work, home)
        phases = _phases(work, home, phase, len(shared))
        poor = [k for k in range(1, len(phases), 2) if phases[k].spared < min_phase]
        if not poor and sum(x.spared for x in phases[1::2]) < min_total:
            return PhasedPlan(plan, (Phase((tuple(work),)),))
        if not poor:
            return PhasedPlan(plan, tuple(phases))
        least = min(poor, key=lambda k: phases[k].spared)
        for nodes in phases[least].homes:
            home.update((n.index, JOINT) for n in nodes)


def _operands(n: Expression) -> list[Expression]:
    return [x for x in (n.a, n.b, n.c) if x is not None and x.op != CONSTANT]


def _homes(plan: Plan, shared: Sequence[Share]) -> dict[int, int]:
    """Of every operation its home.

    A value has a round and the parts that have entered it in this round, a bit each. When all have entered, it begins
    the next round with none.
    """
    parts = [(part, k) for k, share in enumerate(shared) for part in share]
    owner = {i: 1 << bit for bit, (part, _) in enumerate(parts) for i in part.inputs}
    everyone = (1 << len(parts)) - 1
    outside = [sum(1 << bit for bit, (_, k) in enumerate(parts) if k != share) for share in range(len(shared))]
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
        home[n.index] = next((k for k, other in enumerate(outside) if entered and not entered & other), JOINT)
    return home


def _readers(plan: Plan, shared: Sequence[Share]) -> dict[int, set[int]]:
    """Of the operations that are outputs of a part, its home."""
    out: dict[int, set[int]] = {}
    for k, share in enumerate(shared):
        for x in (plan.outputs[i] for part in share for i in part.outputs):
            if isinstance(x, Expression):
                out.setdefault(x.index, set()).add(k)
    return out


def _draw_in(work: Sequence[Expression], home: dict[int, int], readers: dict[int, set[int]]) -> None:
    """Move joint operations that only one share reads to that share."""
    for n in reversed(work):
        own = readers.get(n.index, set())
        if home[n.index] == JOINT and len(own) == 1:
            home[n.index] = next(iter(own))
        for x in _operands(n):
            readers.setdefault(x.index, set()).add(home[n.index])


def _phased(work: Sequence[Expression], home: dict[int, int]) -> dict[int, int]:
    """The earliest phase of every operation: even if joint, odd in a share."""
    phase: dict[int, int] = {}
    for n in work:
        own = home[n.index]
        earliest = 0
        for x in _operands(n):
            if x.index in phase:
                earliest = max(earliest, phase[x.index] + (home[x.index] != own))
        phase[n.index] = earliest + (earliest % 2 != (own != JOINT))
    return phase


def _phases(work, home: dict[int, int], phase: dict[int, int], count_of_shares: int) -> list[Phase]:
    count = 1 + max(phase.values(), default=0)
    nodes: list[list[list[Expression]]] = [[[] for _ in range(count_of_shares if k % 2 else 1)] for k in range(count)]
    for n in work:
        nodes[phase[n.index]][max(home[n.index], 0)].append(n)
    return [Phase(tuple(map(tuple, homes))) for homes in nodes]
