"""A plan in phases as the work of several workers that exchange values through memory, with a barrier between stages.

A worker has the operations of its shares; joint phases belong to the worker that has the least to do otherwise. What
another worker reads has a slot, from the stage in which it is computed to the last stage in which it is read; then the
slot serves another value. Conditions are not exchanged: every worker that reads one computes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spanloop.compiler.lower.phases import Division, Nodes, Part, PhasedPlan
from spanloop.compiler.lower.plan import Output, Plan
from spanloop.compiler.trace import CONDITIONS, CONSTANT, INPUT, Expression

BARRIER = 40  # operations that a barrier takes as long as, and that a phase must spare to be divided


@dataclass(frozen=True)
class Exchange:
    """stages[w][k]: what worker w does in stage k; home: the worker of each operation; slot: of values that cross."""

    plan: Plan
    stages: tuple[tuple[Nodes, ...], ...]
    home: dict[int, int]
    slot: dict[int, int]
    n_slots: int

    @property
    def workers(self) -> int:
        """How many there are."""
        return len(self.stages)

    @property
    def length(self) -> int:
        """Operations one after the other, and barriers in their measure, until the last worker is done."""
        stages = list(zip(*self.stages, strict=True))
        return sum(max(map(len, homes)) for homes in stages) + BARRIER * len(stages)

    def work(self, worker: int) -> Nodes:
        """All operations of a worker, in order."""
        return tuple(n for nodes in self.stages[worker] for n in nodes)

    def home_of(self, x: Output) -> int:
        """The worker that has a value: numbers and inputs are at hand everywhere, and belong to the last."""
        found = self.home.get(x.index) if isinstance(x, Expression) else None
        return self.workers - 1 if found is None else found


def exchange(plan: Plan, parts: Sequence[Part], workers: int) -> Exchange | None:
    """The plan divided among so many workers; None where its parts are too few."""
    division = Division.among(workers, parts, BARRIER, BARRIER)
    if len(division.shares) < workers:
        return None
    phased = division.phases_of(plan)
    return of_phases(phased, workers) if len(phased.phases) > 1 else None


def of_phases(phased: PhasedPlan, workers: int) -> Exchange:
    """The work of each of the workers; the phases have as many shares."""
    shares = [phase.homes for phase in phased.phases if len(phase.homes) > 1]
    own = [sum(len(homes[w]) for homes in shares) for w in range(workers)]
    least = own.index(min(own))
    stages: list[list[Nodes]] = [[] for _ in range(workers)]
    home: dict[int, int] = {}
    for phase in phased.phases:
        if not phase.total:
            continue
        for w in range(workers):
            alone = len(phase.homes) == 1
            nodes = () if alone and w != least else phase.homes[0 if alone else w]
            home.update((n.index, w) for n in nodes)
            stages[w].append(nodes)
    _fill(stages, home)
    whole = tuple(tuple(_with_conditions(own_stages)) for own_stages in stages)
    slot, n_slots = _slots(whole, home)
    return Exchange(phased.plan, whole, home, slot, n_slots)


def _fill(stages: list[list[Nodes]], home: dict[int, int]) -> None:
    """While a worker would wait for others it does what it can of its next stage."""
    made = {n.index: k for own in stages for k, nodes in enumerate(own) for n in nodes}
    for k in range(len(stages[0]) - 1):
        longest = max(len(own[k]) for own in stages)
        for w, own in enumerate(stages):
            early: list[Expression] = []
            for n in own[k + 1]:
                if len(own[k]) + len(early) >= longest:
                    break
                if all(_is_at_hand(x, w, k, made, home) for x in (n.a, n.b, n.c) if x is not None):
                    made[n.index] = k
                    early.append(n)
            own[k] += tuple(early)
            own[k + 1] = tuple(n for n in own[k + 1] if made[n.index] > k)


def _is_at_hand(x: Expression, w: int, k: int, made: dict[int, int], home: dict[int, int]) -> bool:
    """Whether worker w can read x in stage k; conditions of others would take their operands with them."""
    if x.op in (INPUT, CONSTANT):
        return True
    if home[x.index] == w:
        return made[x.index] <= k
    return made[x.index] < k and x.op not in CONDITIONS


def _with_conditions(stages: Sequence[Nodes]) -> Iterator[Nodes]:
    """The operations of one worker with all conditions that they read, each before it is first read."""
    known: set[int] = set()

    def added(n: Expression, out: list[Expression]) -> None:
        if n.index in known:
            return
        for x in (n.a, n.b, n.c):
            if x is not None and x.op in CONDITIONS:
                added(x, out)
        known.add(n.index)
        out.append(n)

    for nodes in stages:
        found: list[Expression] = []
        for n in nodes:
            added(n, found)
        yield tuple(found)


def _slots(stages: Sequence[Sequence[Nodes]], home: dict[int, int]) -> tuple[dict[int, int], int]:
    """Of every value that another worker reads its slot, and how many slots there are."""
    last: dict[int, int] = {}
    crossing: set[int] = set()
    made: list[list[int]] = [[] for _ in stages[0]]
    for w, own in enumerate(stages):
        for k, nodes in enumerate(own):
            for n in nodes:
                if home[n.index] == w and n.op not in CONDITIONS:
                    made[k].append(n.index)
                for x in (n.a, n.b, n.c):
                    if x is None or x.op in (INPUT, CONSTANT) or x.op in CONDITIONS:
                        continue
                    last[x.index] = max(k, last.get(x.index, 0))
                    if home[x.index] != w:
                        crossing.add(x.index)
    slot: dict[int, int] = {}
    free: list[int] = []
    release: dict[int, list[int]] = {}
    n_slots = 0
    for k, indices in enumerate(made):
        free += release.pop(k - 1, [])
        for i in indices:
            if i not in crossing:
                continue
            slot[i] = free.pop() if free else n_slots
            n_slots = max(n_slots, slot[i] + 1)
            release.setdefault(last[i], []).append(slot[i])
    return slot, n_slots
