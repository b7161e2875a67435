"""Events of runs as studies keep them: which names count, how often they happened in a run, and when first.

Two sources: the table of events, of runs that change their mechanism; and the ends of other runs, at a condition or a
limit. An end has the kind "end" and that of its outcome, "event" or "limit".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.simulation.events.event_log import event_table
from spanloop.simulation.events.switches import Watcher
from spanloop.simulation.problem import End, Problem
from spanloop.studies.kept import EventCount, FirstEvent, Item
from spanloop.trajectory import EndReason
from spanloop.trajectory.events import NO_EFFECT, STOP

_ENDS = {EndReason.EVENT: "event", EndReason.LIMIT: "limit"}
_KINDS = {  # of events that watchers cause
    "attach": ("attach", "refused", NO_EFFECT),
    "release": ("release", NO_EFFECT),
    "gap": ("attach", "impact", "refused"),
    "pull": ("release",),
    "grasp": ("break",),
    "appear": ("appear", NO_EFFECT),
    "vanish": ("vanish", NO_EFFECT),
    "touch": ("impact",),
    "end": ("end", "event"),
    "limit": ("end", "limit"),
}


class Happened(NamedTuple):
    """An event of a run: its number, its time [s], and the words by which it counts."""

    run: int
    time: float
    words: frozenset[str]


def refuse_unknown(items: Sequence[Item], problem: Problem) -> None:
    """Raise InputError if what is kept counts events that cannot happen in these runs."""
    known = _words(problem)
    for item in items:
        if not isinstance(item.given, EventCount | FirstEvent):
            continue
        place, wanted = f"study: keep[{item.name!r}]", item.given.event
        if not known:
            contacts = ". Contacts count with contacts='events'" if problem.model.contacts else ""
            raise InputError(
                f"{place}: no events can happen in these runs; give events=, or joints with limits{contacts}"
            )
        if not isinstance(wanted, str) or (wanted and wanted not in known):
            near = nearest(wanted, known) if isinstance(wanted, str) else ""
            raise InputError(
                f"{place}: in these runs there is no event of the kind or name {wanted!r}; {near or 'expected a text'}"
            )


def _words(problem: Problem) -> list[str]:
    """Kinds and names of all events that can happen in the runs of a problem."""
    switching, ends = problem.system.switching, problem.events
    if switching is None:
        limits = [*_KINDS["limit"], *(x.joint for x in ends.limits)] if ends.limits else []
        conditions = [*_KINDS["end"], *(name for name, _ in ends.conditions)] if ends.conditions else []
        return list(dict.fromkeys([*limits, *conditions]))
    found = [word for w in switching.watchers for word in (*_KINDS[w.kind], *_names(problem, w))]
    return list(dict.fromkeys(found))


def _names(problem: Problem, watcher: Watcher) -> tuple[str, ...]:
    """The names of a watcher's events: that of a joint's stop is "JOINT::stop", or "JOINT"."""
    switching = problem.system.switching
    assert switching is not None
    name = switching.switches[watcher.switch].name if watcher.switch >= 0 else watcher.name
    return tuple(dict.fromkeys((name, name.removesuffix(STOP))))


def counted(items: Sequence[Item], problem: Problem, happened: Sequence[Happened]) -> Iterator[tuple[str, np.ndarray]]:
    """(name, numbers (n,)) of what is kept of events: how often they happened, or when first."""
    for item in items:
        if not isinstance(item.given, EventCount | FirstEvent):
            continue
        counting, wanted = isinstance(item.given, EventCount), item.given.event
        found = np.zeros(len(problem)) if counting else np.full(len(problem), np.nan)
        for run, time, words in happened:
            if not wanted or wanted in words:
                found[run] = found[run] + 1.0 if counting else np.fmin(found[run], time)
        yield item.name, found


def happened(
    problem: Problem, ends: Sequence[End], log: Sequence[np.ndarray], step: float, dtype: str
) -> list[Happened]:
    """All events of runs; ends: of each; log: of the rollout."""
    if problem.system.switching is None:
        return [_end(problem, k, end) for k, end in enumerate(ends) if end.outcome.reason in _ENDS]
    table, out = event_table(problem, log, step, dtype), list[Happened]()
    for run, time, kind, name in zip(table.run, table.time, table.kind, table.name, strict=True):
        words = {str(kind), str(name), str(name).removesuffix(STOP)}
        if kind == "end":
            words.add(_ENDS.get(ends[run].outcome.reason, "end"))
        out.append(Happened(int(run), float(time), frozenset(words)))
    return out


def _end(problem: Problem, run: int, end: End) -> Happened:
    """The end of a run at a condition or a limit."""
    ends, j = problem.events, end.event
    if j < 0:  # it starts where a condition is not positive
        values = problem.event_values(
            np.full((1, 1), problem.start), *(x[run : run + 1] for x in (problem.q, problem.v))
        )
        j = next(i for i in range(len(ends.limits), len(ends)) if not values[0, i] > 0.0)
    name = ends.limits[j].joint if j < len(ends.limits) else ends.name(j)
    return Happened(run, end.outcome.time, frozenset(("end", _ENDS[EndReason(end.outcome.reason)], name)))
