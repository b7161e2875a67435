"""Lifetimes of the arrays of a step: those that are never needed at once may share memory.

Moments are counted call by call: call p reads at 2 p and writes at 2 p + 1. An array lives from the call that fills it
to the last one that reads it; all step long if what it held before counts: the state, what a run is given, and arrays
that are read, or filled in part or under a condition, before they are filled.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from spanloop.compiler.lower.schedule import STEP, TIME, Call, Item, Repeat, Schedule, When, array_of, following

Lifetime = tuple[int, int]  # the first moment and the last


@dataclass(frozen=True)
class _Touch:
    """An array is read or filled between two moments; is_filled: all of it, whatever happens."""

    array: str
    first: int
    last: int
    is_filled: bool = False


def lifetimes(schedule: Schedule, in_pieces: Container[int]) -> dict[str, Lifetime]:
    """The lifetime of each array; in_pieces: identities of plans that may read after they have written."""
    touches = list(_touches(schedule, in_pieces))
    end = max((x.last for x in touches), default=0)
    given = {TIME, STEP, *schedule.state, *schedule.constants, *schedule.controls}
    first: dict[str, _Touch] = {}
    last: dict[str, int] = {}
    for x in touches:
        first.setdefault(x.array, x)
        last[x.array] = max(last.get(x.array, 0), x.last)
    whole = {n for n in schedule.sizes if n in given or (n in first and not first[n].is_filled)}
    return {n: (0, end) if n in whole or n not in first else (first[n].first, last[n]) for n in schedule.sizes}


def shared_places(schedule: Schedule, in_pieces: Container[int], apart: Container[str]) -> tuple[dict[str, int], int]:
    """Where each array begins in memory that they share, in numbers, and how many numbers it has; `apart` is not there.

    The longest arrays are placed first, each at the lowest place that is free as long as it lives.
    """
    lives = lifetimes(schedule, in_pieces)
    places: dict[str, int] = {}
    for n in sorted((n for n in schedule.sizes if n not in apart), key=lambda n: -schedule.sizes[n]):
        at, size = 0, schedule.sizes[n]
        taken = sorted((at, at + schedule.sizes[x]) for x, at in places.items() if _meet(lives[x], lives[n]))
        for begin, end in taken:
            if at + size <= begin:
                break
            at = max(at, end)
        places[n] = at
    return places, max((at + schedule.sizes[n] for n, at in places.items()), default=0)


def _meet(a: Lifetime, b: Lifetime) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def _touches(schedule: Schedule, in_pieces: Container[int]) -> Iterator[_Touch]:
    """In the order of the step: calls at its start, what is recorded, the other calls, what replaces the state."""
    at = 0
    for item in schedule.begin:
        yield from _of_call(item, at, at + 1, id(item.plan) in in_pieces)
        at += 2
    yield from (_Touch(n, at, at) for n in schedule.record)
    at += 2
    for x in schedule.advance:
        if isinstance(x, Call):
            yield from _of_call(x, at, at + 1, id(x.plan) in in_pieces)
            at += 2
        else:
            yield from (_Touch(n, at, at) for n in dict.fromkeys(_inside(x)))
            at += 2
    after = [following(n) for n in schedule.committed] + ([schedule.halt] if schedule.halt else [])
    yield from (_Touch(n, at, at) for n in after)


def _of_call(c: Call, reads: int, writes: int, is_in_pieces: bool) -> Iterator[_Touch]:
    yield from (_Touch(array_of(n), reads, writes if is_in_pieces else reads) for n in c.reads)
    yield from (_Touch(array_of(n), writes, writes, is_filled=isinstance(n, str)) for n in c.writes)


def _inside(x: Item) -> Iterator[str]:
    """Arrays that a loop or a condition concerns; all of them live as long as it lasts."""
    if isinstance(x, Call):
        yield from (array_of(n) for n in (*x.reads, *x.writes))
        return
    inner: tuple[Item, ...] = x.calls
    if isinstance(x, Repeat):
        yield x.left
        inner = (*x.calls, *x.between)
        if x.log is not None:
            yield from (x.log.flag, *x.log.arrays)
    if isinstance(x, When):
        yield array_of(x.flag)
    for y in inner:
        yield from _inside(y)
