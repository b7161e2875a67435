"""The flow of a step: its calls on arrays that are each filled once, and which array depends on which.

Derivatives of a step are taken of its flow. An array that several calls fill has a name for each of them, and a
repetition that finds a fixed point becomes an equation. Conditions carry no derivative: an array that only decides
(a margin, how much is left to do) depends on nothing, and nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from spanloop.compiler.lower.glue_plans import copies
from spanloop.compiler.lower.plan import Plan
from spanloop.compiler.lower.schedule import Call, Item, Place, Repeat, Schedule, following
from spanloop.compiler.trace import CONDITIONS, SELECT, Expression
from spanloop.errors import UnsupportedError

Names = tuple[str, ...]


@dataclass(frozen=True)
class FixedPoint:
    """A repetition that ended where a turn changes nothing.

    loop: the repetition, which changes the keys of `solved` in place; turn: the calls of one more turn from there, on
    arrays of their own; solved: {array of the loop: the array that the turn fills with its next value}, which hold the
    same numbers but for the loop's tolerance.
    """

    loop: Repeat
    turn: tuple[Call, ...]
    solved: Mapping[str, str]


Part = Call | FixedPoint


@dataclass(frozen=True)
class Flow:
    """Calls of a step in order, each on arrays that no other call fills.

    begin: of them those of the schedule's `begin`; names: {array of the schedule: its name at the step's end}.
    """

    sizes: Mapping[str, int]
    begin: tuple[Call, ...]
    advance: tuple[Part, ...]
    names: Mapping[str, str]
    state: Names
    _sources: dict[tuple[int, tuple[int, ...]], list[frozenset[int]]] = field(default_factory=dict)

    @staticmethod
    def of(schedule: Schedule, renamed: Mapping[str, str] | None = None) -> Flow:
        """The flow of a schedule; renamed: {array that it is given: another name}.

        Raises:
            UnsupportedError: a step has parts that have no derivative.
        """
        if schedule.in_place:
            raise _unsupported(f"its calls change {', '.join(schedule.in_place)} where they stand")
        naming = _Naming(schedule, dict(renamed or {}))
        begin = tuple(naming.call(c) for c in schedule.begin)
        advance = tuple(part for x in schedule.advance for part in naming.parts(x))
        return Flow(naming.sizes, begin, advance, naming.names, schedule.state)

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts in order."""
        return (*self.begin, *self.advance)

    def name_of(self, array: str) -> str:
        """The name that an array of the schedule has at the step's end."""
        return self.names.get(array, array)

    def end_of(self, array: str) -> str:
        """The name of the array that holds the next value of an array of the state."""
        return self.name_of(following(array))

    def sources(self, c: Call) -> Iterator[tuple[str, list[int]]]:
        """Each array that a call fills, with the places of those that it reads whose derivative reaches it."""
        sizes = tuple(self.sizes[n] for n in names(c.writes))
        key = id(c.plan), sizes
        if key not in self._sources:
            self._sources[key] = _sources(c.plan, sizes)
        yield from ((n, sorted(found)) for n, found in zip(names(c.writes), self._sources[key], strict=True))

    def moving(self, wanted: Iterable[str]) -> set[str]:
        """All arrays that change with those wanted, in this step or a later one."""
        found = set(wanted)

        def step() -> None:
            for part in self.parts:
                for c in _calls(part):
                    found.update(n for n, places in self.sources(c) if any(c.reads[k] in found for k in places))
                if isinstance(part, FixedPoint):
                    found.update(n for n, end in part.solved.items() if end in found)
            found.update(x for x in self.state if self.end_of(x) in found)

        return _until_it_stays(found, step)

    def useful(self, of: Iterable[str]) -> set[str]:
        """All arrays that change those of the schedule that are given, in this step or a later one."""
        found = {self.name_of(x) for x in of}

        def step() -> None:
            found.update(self.end_of(x) for x in self.state if x in found)
            for part in reversed(self.parts):
                if isinstance(part, FixedPoint):
                    found.update(end for n, end in part.solved.items() if n in found)
                for c in reversed(_calls(part)):
                    found.update(names(c.reads)[k] for n, places in self.sources(c) if n in found for k in places)

        return _until_it_stays(found, step)


def names(places: Sequence[Place]) -> Names:
    """Names of whole arrays."""
    whole = tuple(x for x in places if isinstance(x, str))
    if len(whole) < len(places):
        raise _unsupported("its calls take parts of arrays")
    return whole


class _Naming:
    """Gives every array that a call fills a name of its own."""

    def __init__(self, schedule: Schedule, renamed: dict[str, str]):
        self.names = renamed  # {array of the schedule: its name now}
        self.sizes = {renamed.get(n, n): size for n, size in schedule.sizes.items()}
        given = (*schedule.state, *schedule.constants, *schedule.controls)
        self.taken = {*given, *renamed, *renamed.values()}

    def call(self, c: Call) -> Call:
        reads = tuple(self.names.get(n, n) for n in names(c.reads))
        return Call(c.plan, reads, tuple(self.new(n) for n in names(c.writes)))

    def new(self, array: str) -> str:
        """A name for the next value of an array."""
        found, k = array, 1
        while found in self.taken:
            found, k = f"{array}#{k}", k + 1
        self.sizes[found] = self.sizes[self.names.get(array, array)]
        self.taken.add(found)
        self.names[array] = found
        return found

    def parts(self, x: Item) -> Iterator[Part]:
        if isinstance(x, Call):
            yield self.call(x)
        elif isinstance(x, Repeat) and x.is_fixed_point:
            yield from self.fixed_point(x)
        else:
            raise _unsupported(f"it contains a {type(x).__name__} that is no fixed point")

    def fixed_point(self, x: Repeat) -> Iterator[Part]:
        """The calls of a loop on arrays of its own, and one more turn in which everything is still to be done."""
        calls = [c for c in x.calls if isinstance(c, Call)]
        if x.between or x.log is not None or len(calls) < len(x.calls):
            raise _unsupported("a repetition is more than calls in turn")
        carried = _carried(calls)
        before = {n: self.names.get(n, n) for n in carried}
        own = {n: self.new(n) for n in carried}
        yield Call(copies([self.sizes[n] for n in own.values()]), tuple(before.values()), tuple(own.values()))
        written = dict.fromkeys(n for c in calls for n in names(c.writes) if n not in own)
        inside = {**self.names, **{n: self.new(n) for n in written}}
        loop = Repeat(tuple(_on(c, inside) for c in calls), inside[x.left], x.most, usual=x.usual)
        self.names |= {n: name for n, name in before.items() if n == x.left}
        turn = tuple(self.call(c) for c in calls)
        solved = {own[n]: self.names[n] for n in carried}
        self.names |= own
        yield FixedPoint(loop, turn, solved)


def _calls(part: Part) -> tuple[Call, ...]:
    """The calls through which derivatives pass."""
    return (part,) if isinstance(part, Call) else part.turn


def _carried(calls: Sequence[Call]) -> list[str]:
    """Arrays that a turn reads before it fills them."""
    filled: set[str] = set()
    early: set[str] = set()
    for c in calls:
        early |= {n for n in names(c.reads) if n not in filled}
        filled |= set(names(c.writes))
    return sorted(filled & early)


def _on(c: Call, named: Mapping[str, str]) -> Call:
    """The call on arrays by other names."""
    reads, writes = (tuple(named.get(n, n) for n in names(x)) for x in (c.reads, c.writes))
    return Call(c.plan, reads, writes)


def _sources(plan: Plan, sizes: Sequence[int]) -> list[frozenset[int]]:
    """For each array of these sizes that a plan fills the places of inputs on whose numbers it depends."""
    reached, at = dict[int, frozenset[int]](), 0
    nothing = frozenset[int]()
    for k, (_, size) in enumerate(plan.inputs):
        reached |= {x.index: frozenset((k,)) for x in plan.arguments[at : at + size]}
        at += size
    for n in plan.nodes:
        if n.index not in reached and n.op not in CONDITIONS:
            operands = (n.b, n.c) if n.op == SELECT else (n.a, n.b, n.c)
            found = {reached.get(x.index, nothing) for x in operands if x is not None}
            reached[n.index] = nothing.union(*found) if len(found) > 1 else next(iter(found), nothing)
    out, at = list[frozenset[int]](), 0
    for size in sizes:
        part = [x for x in plan.outputs[at : at + size] if isinstance(x, Expression)]
        out.append(nothing.union(*(reached[x.index] for x in part)))
        at += size
    return out


def _until_it_stays(found: set[str], grow: Callable[[], None]) -> set[str]:
    """The set after it has been grown until it stays as it is."""
    size = -1
    while size < len(found):
        size = len(found)
        grow()
    return found


def _unsupported(why: str) -> UnsupportedError:
    return UnsupportedError(
        f"a step of this run has no derivative: {why}. Steps of fixed length have one, without contacts and without "
        "events that change the mechanism"
    )
