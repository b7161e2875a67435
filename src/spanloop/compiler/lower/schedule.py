"""A Schedule: plans called one after the other, step after step, on arrays that stay where they are.

A rollout is made of it. All arrays belong to one run and have names; a plan reads some and fills others. The state is
carried from step to step: a step reads `name` and fills `following(name)`, which replaces the state only if the step
succeeds. A run whose step fails stays where that step began, but for arrays that its calls change in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spanloop.compiler.lower.plan import Plan

TIME, STEP = "t", "h"  # arrays of one number, filled anew for every step: time at its start, its length


def following(name: str) -> str:
    """The array that holds the next value of an array of the state."""
    return f"{name}.next"


@dataclass(frozen=True)
class Block:
    """`size` numbers of an array, from a place that follows the counters of the loops around a call.

    The place is offset + the sum over `at` of counter × stride, or, where a tuple stands for the stride, of
    tuple[counter].
    """

    array: str
    size: int
    at: tuple[tuple[str, int | tuple[int, ...]], ...] = ()
    offset: int = 0

    def __str__(self) -> str:
        terms = [f"{c}·{x}" if isinstance(x, int) else f"table[{c}]" for c, x in self.at]
        return f"{self.array}[{' + '.join([*terms, str(self.offset)])}]"


Place = str | Block


@dataclass(frozen=True)
class Call:
    """A plan applied to arrays or blocks of them; its outputs fill those that it writes, one after the other."""

    plan: Plan
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]


@dataclass(frozen=True)
class For:
    """Calls for each value of a counter from `first` to `end` − 1.

    A bound is a whole number, or the counter of a loop around this one and what is added to it. Sizes are data here:
    the code does not grow with them. Repetitions inside count as done, however they ended.
    """

    counter: str
    first: Bound
    end: Bound
    calls: tuple[Item, ...]


@dataclass(frozen=True)
class OneOf:
    """Of several calls the one whose number stands in `table` at a counter of a loop around this."""

    counter: str
    table: tuple[int, ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Log:
    """A row of a run's log, the numbers of `arrays`, where the only number of array `flag` is positive."""

    flag: str
    arrays: tuple[str, ...]


@dataclass(frozen=True)
class When:
    """Calls that are made only where the only number of `flag` is positive in some run that goes on.

    They must leave the others as they are. Repetitions inside count as done, however they ended.
    """

    calls: tuple[Item, ...]
    flag: Place


@dataclass(frozen=True)
class Repeat:
    """Calls in a loop as long as the only number of array `left` is positive, `most` times at most.

    If it is positive after that, the step failed. All calls must leave a finished run as it is; repetitions among them
    count as they ended in the last turn. between: calls from one turn to the next, after which runs that go on write to
    the log; there are none after the last turn. usual: how many turns a step takes as a rule, 0 where it is not known;
    time is divided among calls from Python by it. is_fixed_point: what a turn carries to the next one solves an
    equation, x = turn(x), when the loop ends: so it is differentiated.
    """

    calls: tuple[Item, ...]
    left: str
    most: int
    between: tuple[Item, ...] = ()
    log: Log | None = None
    usual: int = 0
    is_fixed_point: bool = False

    @property
    def turns(self) -> int:
        """How many turns count: the usual number; one where calls come between, else all of them."""
        return self.usual or (1 if self.between else self.most)

    @property
    def operations(self) -> int:
        """Operations of the turns that count."""
        return _operations(self)


Bound = int | tuple[str, int]
Item = Call | For | OneOf | Repeat | When


@dataclass(frozen=True)
class Schedule:
    """One step with its inputs and outputs.

    begin: calls at the start of a step, before it is recorded; advance: calls that fill following(x) for every x of the
    state that is not in_place. halt: an array; if an entry is negative after a step, the step failed. in_place: arrays
    of the state that the calls of `advance` change themselves; what they wrote stays if the step fails. unbounded:
    arrays of the state whose numbers may have any size, if they are finite.
    """

    name: str
    sizes: Mapping[str, int]
    state: tuple[str, ...]
    constants: tuple[str, ...]  # given once a run
    controls: tuple[str, ...]  # given for every step
    record: tuple[str, ...]
    begin: tuple[Call, ...]
    advance: tuple[Item, ...]
    halt: str | None = None
    in_place: tuple[str, ...] = ()
    unbounded: tuple[str, ...] = ()

    def width(self, names: tuple[str, ...]) -> int:
        """How many numbers these arrays hold together."""
        return sum(self.sizes[n] for n in names)

    def items(self) -> Iterator[Item]:
        """All parts in order, loops and conditions before what is in them."""
        for x in (*self.begin, *self.advance):
            yield from _items_of(x)

    def calls(self) -> Iterator[Call]:
        """All calls in order, those of loops once."""
        yield from (x for x in self.items() if isinstance(x, Call))

    def plans(self) -> list[Plan]:
        """Every plan once, in the order of first use."""
        out: list[Plan] = []
        for c in self.calls():
            if not any(p is c.plan for p in out):
                out.append(c.plan)
        return out

    @property
    def committed(self) -> tuple[str, ...]:
        """Arrays of the state that the next ones replace."""
        return tuple(n for n in self.state if n not in self.in_place)

    @property
    def changed(self) -> tuple[str, ...]:
        """Arrays of the state that calls change themselves, those in place and others."""
        written = {array_of(n) for x in self.advance for c in calls_of(x) for n in c.writes}
        return tuple(n for n in self.state if n in written)

    @property
    def log(self) -> Log | None:
        """What is logged; a schedule has one log at most."""
        found = [log for x in self.advance for log in _logs(x)]
        assert len(found) <= 1, found
        return found[0] if found else None

    @property
    def operations(self) -> int:
        """How many operations a step takes at most (Operations.total); see Repeat.operations."""
        return sum(_operations(x) for x in (*self.begin, *self.advance))

    def __str__(self) -> str:
        lines = [f"{self.name}: state {', '.join(f'{n}[{self.sizes[n]}]' for n in self.state)}"]
        for title, part in (("begin", self.begin), ("advance", self.advance)):
            lines += [f"  {title:8s}{line}" for x in part for line in _lines(x)]
        return "\n".join(lines)


def array_of(place: Place) -> str:
    """The array that a call reads or writes, whole or in part."""
    return place.array if isinstance(place, Block) else place


def _inner(x: Item) -> tuple[Item, ...]:
    if isinstance(x, Call):
        return ()
    return (*x.calls, *x.between) if isinstance(x, Repeat) else x.calls


def _items_of(x: Item) -> Iterator[Item]:
    yield x
    for inner in _inner(x):
        yield from _items_of(inner)


def calls_of(x: Item) -> Iterator[Call]:
    """All calls of a part of a step in order, those of loops once."""
    yield from (y for y in _items_of(x) if isinstance(y, Call))


def _logs(x: Item) -> Iterator[Log]:
    yield from (log for inner in _inner(x) for log in _logs(inner))
    if isinstance(x, Repeat) and x.log is not None:
        yield x.log


def _operations(x: Item, counters: Mapping[str, float] | None = None) -> int:
    """Operations of a part of a step; bounds that follow a counter are taken at its mean."""
    counters = counters or {}
    if isinstance(x, Call):
        return x.plan.operations.total
    if isinstance(x, For):
        first, end = (b if isinstance(b, int) else counters[b[0]] + b[1] for b in (x.first, x.end))
        inner = {**counters, x.counter: (first + end - 1) / 2}
        return round(max(0.0, end - first) * sum(_operations(c, inner) for c in x.calls))
    if isinstance(x, OneOf):
        each = [_operations(c, counters) for c in x.calls]
        return round(sum(each[k] for k in x.table) / len(x.table))
    once = sum(_operations(c, counters) for c in x.calls)
    return x.turns * once if isinstance(x, Repeat) else once


def _lines(x: Item) -> Iterator[str]:
    """One line a call, with the loops around it."""
    if isinstance(x, Call):
        yield f"{', '.join(map(str, x.writes))} = {x.plan.name}({', '.join(map(str, x.reads))})"
        return
    for inner in x.calls:
        yield from (f"{line}  ({_loop(x)})" for line in _lines(inner))
    if not isinstance(x, Repeat):
        return
    for c in x.between:
        yield from (f"{line}  (between turns while {x.left} > 0)" for line in _lines(c))
    if x.log is not None:
        yield f"log {', '.join(x.log.arrays)} where {x.log.flag} > 0"


def _loop(x: For | OneOf | Repeat | When) -> str:
    if isinstance(x, OneOf):
        return f"where table[{x.counter}] names it"
    if isinstance(x, When):
        return f"when {x.flag} > 0"
    if isinstance(x, Repeat):
        return f"repeat while {x.left} > 0"
    first, end = (str(b) if isinstance(b, int) else f"{b[0]} + {b[1]}" for b in (x.first, x.end))
    return f"for {x.counter} from {first} to {end}"
