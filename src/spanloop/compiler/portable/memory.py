"""Where the arrays of a Schedule are in one memory of numbers, and the tables of its blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from spanloop.compiler.lower.schedule import (
    STEP,
    TIME,
    Block,
    Call,
    OneOf,
    Place,
    Schedule,
    When,
    array_of,
)
from spanloop.compiler.portable.pieces import PortablePlan

LOG, LOGGED = "log", "logged"  # rows that a step logs; how many there are, those beyond the capacity too


@dataclass
class Memory:
    """Names of arrays, where they begin and their sizes, one after the other."""

    places: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    size: int = 0  # numbers

    def add(self, name: str, size: int) -> None:
        """An array, unless it is there."""
        if name in self.places:
            assert self.sizes[name] == size, (name, self.sizes[name], size)
            return
        self.places[name], self.sizes[name] = self.size, size
        self.size += size

    def add_all(self, sizes: Mapping[str, int]) -> None:
        for name, size in sizes.items():
            self.add(name, size)


def add_schedule(memory: Memory, schedule: Schedule, capacity: int) -> None:
    """All arrays of a schedule, with time, step and a log of `capacity` rows."""
    memory.add_all({TIME: 1, STEP: 1, **schedule.sizes})
    if schedule.log is not None:
        memory.add_all({LOGGED: 1, LOG: capacity * schedule.width(schedule.log.arrays)})


def portable_plans(schedule: Schedule, whole: int, length: int) -> dict[int, PortablePlan]:
    """The plans of a schedule by identity, with the sizes of the arrays that they fill."""
    sizes = {id(c.plan): tuple(_size(schedule, n) for n in c.writes) for c in schedule.calls()}
    return {id(p): PortablePlan(p, sizes[id(p)], whole, length) for p in schedule.plans()}


def copied(c: Call, p: PortablePlan) -> list[str]:
    """Arrays that a call reads and writes, whole or in blocks, where its plan may read after it has written.

    Plans of one piece read everything first.
    """
    if len(p.pieces) == 1:
        return []
    written = {array_of(n) for n in c.writes}
    return list(dict.fromkeys(array_of(n) for n in c.reads if array_of(n) in written))


def copy_of(name: str) -> str:
    """The array that an array is copied to before a call that writes it."""
    return f"{name}.copy"


def read_places(c: Call, both: Collection[str]) -> list[Place]:
    """What a call reads, in the copies of arrays `both`."""
    return [_moved(n, copy_of(array_of(n))) if array_of(n) in both else n for n in c.reads]


def _moved(place: Place, array: str) -> Place:
    return replace(place, array=array) if isinstance(place, Block) else array


def tables(schedule: Schedule) -> list[tuple[int, ...]]:
    """Tables of the blocks that calls read and write, and of choices between calls, each once."""
    found = dict.fromkeys(
        stride for place in _places(schedule) if isinstance(place, Block) for _, stride in place.at
        if isinstance(stride, tuple)
    )  # fmt: skip
    return list(found | dict.fromkeys(x.table for x in schedule.items() if isinstance(x, OneOf)))


def _places(schedule: Schedule) -> Iterator[Place]:
    """All places that calls read and write, and the flags of conditional ones."""
    for x in schedule.items():
        if isinstance(x, Call):
            yield from (*x.reads, *x.writes)
        elif isinstance(x, When):
            yield x.flag


def _size(schedule: Schedule, place: Place) -> int:
    return place.size if isinstance(place, Block) else schedule.sizes[place]
