"""A looped walk as calls of a Schedule: passes are loops over links, records of links are one array of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from spanloop.compiler.lower.plan import Plan, copied, unrolled
from spanloop.compiler.lower.rolled.ir import Looped, Step
from spanloop.compiler.lower.schedule import Block, Call, For, Item, OneOf, Place
from spanloop.compiler.lower.stage import Stage
from spanloop.compiler.trace import INPUT, Graph

LINK, ENTRY = "link", "entry"  # counters: of links in the order of a pass, of the answer's entries
SOME = 500  # numbers that one function writes: LLVM takes long over long functions


@dataclass(frozen=True)
class LoopedCalls:
    """The calls that compute a looped plan on named arrays.

    Its own arrays, `link.numbers` and `link.records`, and the plan of each class of links serve all evaluations of a
    step. Conditions on the inputs (`fault`) are not computed: calls of a Schedule have none.
    """

    plan: Looped
    stage: Stage

    @cached_property
    def numbers(self) -> tuple[Call, ...]:
        """The calls that fill the numbers of all links; none where links do not differ."""
        if not any(kind == "number" for row in self.plan.steps for s in row for kind, _ in s.inputs):
            return ()
        numbers = [float(x) for x in self.plan.numbers]
        array = self.stage.array("link.numbers", len(numbers))
        calls = []
        for at in range(0, len(numbers), SOME):
            part = numbers[at : at + SOME]
            block = Block(array, len(part), (), at)
            calls.append(self.stage.call(f"link.numbers.{at}", (), (block,), lambda part=part: (part,)))
        return tuple(calls)

    def items(self, given: Mapping[str, str], answer: str) -> tuple[Item, ...]:
        """The calls; given: {input: array that holds it}, answer: the array that is filled."""
        plan, stage = self.plan, self.stage
        records = stage.array("link.records", plan.size)
        out: list[Item] = []
        for k, inward in enumerate(plan.directions):
            world = [float(x) for x in plan.world[k]]
            if world and not inward:
                out.append(stage.call(f"world{k}", (), (Block(records, len(world)),), lambda w=world: (w,)))
            out.append(self._pass(k, given, _Tables.of(plan, inward)))
        entry = Block(records, 1, ((ENTRY, tuple(plan.answer.tolist())),))
        place = Block(stage.array(answer, len(plan.answer)), 1, ((ENTRY, 1),))
        copy = stage.call("take", (entry,), (place,), lambda x: (x,))
        return (*out, For(ENTRY, 0, len(plan.answer), (copy,)))

    def _pass(self, k: int, given: Mapping[str, str], tables: _Tables) -> For:
        """The loop over all links, each with the call of its class."""
        calls = tuple(self._call(k, kind, given, tables) for kind in range(len(self._steps[k])))
        chosen: Item = calls[0] if len(calls) == 1 else OneOf(LINK, tables.kinds, calls)
        return For(LINK, 0, len(tables.kinds), (chosen,))

    def _call(self, k: int, kind: int, given: Mapping[str, str], tables: _Tables) -> Call:
        """The call of a step for the link that the counter names."""
        plan, reads, writes = self._steps[k][kind]

        def place(name: str, first: int, end: int) -> Place:
            array = {"number": "link.numbers", "own": "link.records", "other": "link.records"}.get(name) or given[name]
            return Block(array, end - first, ((LINK, tables.places[name]),), first)

        return Call(plan, tuple(place(*x) for x in reads), tuple(place(*x) for x in writes))

    @cached_property
    def _steps(self) -> list[list[tuple[Plan, list[_Part], list[_Part]]]]:
        """For each pass and class the plan, the parts that it reads and those that it writes."""
        return [[_on_parts(s) for s in row] for row in self.plan.steps]


_Part = tuple[str, int, int]  # of what: "number", "own", "other" or an input; from this entry to before that one


@dataclass(frozen=True)
class _Tables:
    """For each link, in the order of a pass, its class and where its parts begin."""

    kinds: tuple[int, ...]
    places: Mapping[str, tuple[int, ...]]

    @staticmethod
    def of(plan: Looped, inward: bool) -> _Tables:
        columns = [tuple(x) for x in (plan.meta[::-1] if inward else plan.meta).T.tolist()]
        names = ("number", "own", "other", *plan.names)
        return _Tables(columns[0], dict(zip(names, columns[1:], strict=True)))


def _on_parts(step: Step) -> tuple[Plan, list[_Part], list[_Part]]:
    """A step's plan on whole parts of a link's data, and which parts it reads and writes."""
    ends: dict[str, int] = {}
    for kind, j in step.inputs:
        ends[kind] = max(j + 1, ends.get(kind, 0))
    rows = [(place, x) for place, x in zip(step.outputs, step.plan.outputs, strict=True) if place[0] != "fault"]
    rows.sort(key=lambda row: row[0])

    def compute(x: Mapping[str, Sequence[Any]]) -> tuple[Sequence[Any], tuple, tuple]:
        known = {}
        for n in step.plan.nodes:
            if n.op == INPUT:
                kind, j = step.inputs[int(n.value)]
                known[n.index] = x[kind][j]
        graph = next((given[0].graph for given in x.values()), Graph())
        return copied([value for _, value in rows], graph, known), (), ()

    plan = unrolled(f"link.{step.plan.name}", tuple(ends.items()), (len(rows),), compute)
    return plan, [(kind, 0, end) for kind, end in ends.items()], list(_runs([place for place, _ in rows]))


def _runs(places: Sequence[tuple[str, int]]) -> Iterator[_Part]:
    """Entries that follow each other as one part."""
    cuts = [k + 1 for k, (a, b) in enumerate(pairwise(places)) if b != (a[0], a[1] + 1)]
    for first, end in pairwise([0, *cuts, len(places)]) if places else ():
        yield places[first][0], places[first][1], places[end - 1][1] + 1
