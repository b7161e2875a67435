"""A run with events as steps in which nothing happens: whole steps, and the parts of those that events cut.

What events change is constant in a part and given with it, as its time and its length are:

| control | numbers | meaning |
|---|---|---|
| u | | inputs of the step that the part belongs to |
| t.part, h.part | 1 | time at the part's start, its length [s] |
| active, captured, present | | what events change (simulation/system.py) |

A part that an event ends leads from x to x⁻; the event makes x⁺ of it, from which the next part starts. An event at
the end of a step is followed by a part of no length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from spanloop.compiler.lower import Call, For, Schedule
from spanloop.compiler.lower.schedule import STEP, TIME, Item, Place, Repeat, When
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.errors import SpanloopError
from spanloop.kernels import of_model
from spanloop.simulation.events.endings import Events
from spanloop.simulation.events.event_log import moments
from spanloop.simulation.events.location import RESOLVED
from spanloop.simulation.integrators import integrator as integrators
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import End, Problem
from spanloop.simulation.system import System
from spanloop.simulation.termination import Termination
from spanloop.simulation.time_loop import Progress, TimeLoop

PART_TIME, PART_LENGTH = "t.part", "h.part"
REPEATED = 1e-7  # rad, m, or of the speed: a part that ends further from where the run was is not the same
_OWN = {TIME: PART_TIME, STEP: PART_LENGTH}

Row = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Moment:
    """An event, or several that follow from it at once.

    part: number of the part that ends there; rows: of the log, in order; on: switches before; ends: whether the run
    ends there.
    """

    part: int
    time: float
    rows: tuple[Row, ...]
    on: np.ndarray
    ends: bool


@dataclass(frozen=True)
class Parts:
    """The parts of one run, one after the other.

    step (n,): number of the step that each belongs to; time, length (n,) [s]; controls (n, width) in the order of the
    schedule; before, after (n, width): rows of state at the start and at the end of each, events not yet applied; shown
    (n + 1, nv): the velocity that a sample at the start of each part shows, and at the end of the run.
    """

    system: System
    rollout: Rollout
    constants: Mapping[str, np.ndarray]
    step: np.ndarray
    time: np.ndarray
    length: np.ndarray
    controls: np.ndarray
    before: np.ndarray
    after: np.ndarray
    shown: np.ndarray
    moments: tuple[Moment, ...]
    end: End  # of the run
    h: float  # length of a whole step [s]
    stop: float  # the time at which the duration is over [s]

    @property
    def constant_row(self) -> np.ndarray:
        """The constants (1, width) of the run, in the order of the schedule."""
        rows = [self.constants[n] for n in self.rollout.places("constants", 1)]
        return np.concatenate([*rows, np.zeros(0)])[None] if rows else np.zeros((1, 1))

    @cached_property
    def places(self) -> dict[str, slice]:
        """Where each array is in a row of state."""
        return self.rollout.places("state", 1)

    @cached_property
    def control_places(self) -> dict[str, slice]:
        """Where each array is in a row of controls."""
        return self.rollout.places("controls", 1)

    @property
    def ended(self) -> bool:
        """Whether an event ends the run."""
        return bool(self.moments) and self.moments[-1].ends

    def state(self, part: int, at_end: bool = False) -> dict[str, np.ndarray]:
        """The arrays of the state at the start of a part, or at its end."""
        row = (self.after if at_end else self.before)[part]
        return {n: row[s] for n, s in self.places.items()}

    def given(self, part: int) -> dict[str, np.ndarray]:
        """The controls of a part and the constants of the run, by name."""
        return dict(self.constants) | {n: self.controls[part, s] for n, s in self.control_places.items()}

    def jumps(self, moment: Moment) -> list[dict[str, np.ndarray]]:
        """What each row of the log of an event begins with: the arrays of EventMaps.jump."""
        now = {**self.given(moment.part), **self.state(moment.part, at_end=True), "on": moment.on}
        now["h.grid"] = np.array([self.h])
        out = []
        for row in moment.rows:
            out.append({**now, "fired": row["fired"]})
            now |= {n: row[n] for n in ("q", "v", "on", "active", "captured", "present") if n in row}
        return out

    def watched(self, moment: Moment) -> dict[str, np.ndarray]:
        """The arrays of EventMaps.watched where an event happens."""
        now = {**self.given(moment.part), **self.state(moment.part, at_end=True), "t": np.array([moment.time])}
        return {"z": np.zeros(0), "u": np.zeros(0), **now}

    def pieces(self) -> list[range]:
        """The parts between events, in order."""
        ends = [m.part + 1 for m in self.moments]
        edges = sorted({0, *ends, len(self.time)})
        return [range(a, b) for a, b in pairwise(edges)]


def width_of(places: Mapping[str, slice]) -> int:
    """How many numbers a row of arrays has."""
    return max((s.stop for s in places.values()), default=0)


# ---- the schedule of a part


def part_schedule(system: System, name: str, dtype: str) -> Schedule:
    """The schedule of a step in which no event happens: its time, its length and what events change are controls."""
    frozen = replace(system, frozen=True) if system.switching else system
    found = integrators.schedule(frozen, Events(system.model), name, dtype)
    changed = [n for n in ("active", "captured", "present") if system.switching and n in found.constants]
    return replace(
        found,
        name="part",
        sizes={**found.sizes, PART_TIME: 1, PART_LENGTH: 1},
        constants=tuple(n for n in found.constants if n not in changed),
        controls=(*found.controls, PART_TIME, PART_LENGTH, *changed),
        record=(*found.state, "v.closed") if system.keeps_closed else found.state,
        begin=tuple(_call(x) for x in found.begin),
        advance=tuple(_with_own_time(x) for x in found.advance),
    )


def part_rollout(system: System, name: str, dtype: str) -> Rollout:
    """The compiled steps of part_schedule."""
    frozen = replace(system, frozen=True) if system.switching else system
    key = integrators.schedule_key(frozen, Events(system.model), name, dtype) + "|parts"
    return kept_rollout(key, lambda: part_schedule(system, name, dtype), of_model(system.model))


def kept_rollout(key: str, make: Callable[[], Schedule], label: str) -> Rollout:
    """The compiled steps of a schedule; a recent one is used again."""
    found = _rollouts.pop(key, None) or Rollout(key, make, "float64", 1, label)
    for oldest in tuple(_rollouts)[: 1 - _MOST]:
        _rollouts.pop(oldest, None)  # another thread may have done so
    _rollouts[key] = found
    return found


_rollouts: dict[str, Rollout] = {}  # by key, the oldest first
_MOST = 32


def _with_own_time(x: Item) -> Item:
    """A part of a schedule that reads time and length from the controls."""
    if isinstance(x, Call):
        return _call(x)
    if isinstance(x, Repeat):
        between = tuple(_with_own_time(y) for y in x.between)
        return replace(x, calls=tuple(_with_own_time(y) for y in x.calls), between=between)
    assert isinstance(x, For | When)
    return replace(x, calls=tuple(_with_own_time(y) for y in x.calls))


def _call(x: Call) -> Call:
    def own(place: Place) -> Place:
        return _OWN.get(place, place) if isinstance(place, str) else place

    return replace(x, reads=tuple(own(n) for n in x.reads))


# ---- the parts of a run


def parts_of(problem: Problem, loop: TimeLoop, p: Progress, layout: StateLayout, name: str, run: int) -> Parts:
    """The parts of one run, which simulate.steps_taken has taken; name: of the integrator."""
    end = Termination(loop, problem, layout, name).of(p, run) if p.why[run] else End(loop.outcome(p))
    rollout = part_rollout(problem.system, name, str(loop.rollout.dtype))
    cut = _cut(problem, loop, p, end, run)
    constants = {n: x[run if len(x) > 1 else 0] for n, x in problem.constant_rows().items()}
    controls = _controls(problem, loop, rollout, cut, run)
    empty = np.zeros((len(cut.time), width_of(rollout.places("state", 1))))
    made = Parts(
        problem.system, rollout, constants, cut.step, cut.time, cut.length, controls,
        empty, empty.copy(), np.zeros((len(empty) + 1, problem.model.nv)), cut.moments, end, loop.grid.h,
        loop.start + loop.grid.steps * loop.grid.h,
    )  # fmt: skip
    _repeat(made, problem, run)
    return made


@dataclass(frozen=True)
class _Cut:
    step: np.ndarray
    time: np.ndarray
    length: np.ndarray
    moments: tuple[Moment, ...]


def _cut(problem: Problem, loop: TimeLoop, p: Progress, end: End, run: int) -> _Cut:
    """The steps of a run, cut where events happen."""
    h, count, ended = loop.grid.h, int(p.counts[run]), bool(p.why[run])
    together = _together(_logged(problem, p, run), 2.0 * RESOLVED[str(loop.rollout.dtype)] * h)
    if ended and not problem.system.switching:
        together.append((end.outcome.time, ()))
    rows: list[tuple[int, float, float]] = []
    found: list[Moment] = []
    at, step = loop.start, 0
    on = problem.switched_start.get("on", np.zeros((1, 0)))[0] if problem.system.switching else np.zeros(0)
    for k, (time, events) in enumerate(together):
        last = ended and k == len(together) - 1
        target = count if last else min(int((time - loop.start) / h * (1.0 + 1e-14)), count - (not ended))
        while step < target:
            stop = loop.start + (step + 1) * h
            rows.append((step, at, stop - at))
            at, step = stop, step + 1
        rows.append((step, at, max(0.0, time - at)))
        found.append(Moment(len(rows) - 1, time, events, on, last))
        on = events[-1].get("on", on) if events else on
        at = max(at, time)
    while step < count:
        stop = loop.start + (step + 1) * h
        rows.append((step, at, stop - at))
        at, step = stop, step + 1
    steps, times, lengths = (np.array(x) for x in zip(*rows, strict=True))
    return _Cut(steps, times, lengths, tuple(found))


def _logged(problem: Problem, p: Progress, run: int) -> list[Row]:
    """The rows of a run's log."""
    if not problem.system.switching:
        return []
    found = moments(problem, p.log)
    return [{n: x[k] for n, x in found.items()} for k in np.flatnonzero(found["run"][:, 0] == run)]


def _together(rows: list[Row], near: float) -> list[tuple[float, tuple[Row, ...]]]:
    """Rows of the log by moment."""
    out: list[tuple[float, tuple[Row, ...]]] = []
    for row in rows:
        t = float(row["t"][0])
        if out and t <= out[-1][0] + near:
            out[-1] = (out[-1][0], (*out[-1][1], row))
        else:
            out.append((t, (row,)))
    return [(t, _without_chatter(same)) for t, same in out]


def _without_chatter(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The first row alone, if those that follow it at once leave all as it is: what lets go may touch once more."""
    first, last = rows[0], rows[-1]
    same = all(np.array_equal(first[n], last[n]) for n in ("on", "captured", "present") if n in first)
    bound = 0.5 * REPEATED * (1.0 + np.abs(first["v"]).max(initial=0.0))
    return ({**first, "v": last["v"]},) if same and np.abs(last["v"] - first["v"]).max(initial=0.0) < bound else rows


def _controls(problem: Problem, loop: TimeLoop, rollout: Rollout, cut: _Cut, run: int) -> np.ndarray:
    """The controls (n, width) of all parts."""
    at = rollout.places("controls", 1)
    out = np.zeros((len(cut.time), width_of(at)))
    if "u" in at:
        u = loop.controls
        assert isinstance(u, np.ndarray)
        rows = u[run if len(u) > 1 else 0]
        out[:, at["u"]] = rows[cut.step if len(rows) > 1 else np.zeros(len(cut.step), int)]
    out[:, at[PART_TIME].start], out[:, at[PART_LENGTH].start] = cut.time, cut.length
    start = problem.switched_start if problem.system.switching else {}
    for n in ("active", "captured", "present"):
        if n in at:
            out[:, at[n]] = start[n][run if len(start[n]) > 1 else 0]
            for m in cut.moments:
                out[m.part + 1 :, at[n]] = m.rows[-1][n]
    return out


def _repeat(parts: Parts, problem: Problem, run: int) -> None:
    """Fill the states of all parts, and check that events meet the run where it was."""
    state = np.zeros((1, parts.before.shape[1]))
    state[:, parts.places["q"]], state[:, parts.places["v"]] = problem.q[run], problem.v[run]
    if "loops" in parts.places:
        place = parts.places["loops"]
        state[:, place] = (0.0, 1.0)[: place.stop - place.start]
    events = {m.part: m for m in parts.moments}
    for piece in parts.pieces():
        record = np.zeros((1, len(piece) + 1, width_of(parts.rollout.places("record", 1))))
        why = np.zeros(1, np.uint8)
        controls = np.ascontiguousarray(parts.controls[None, piece.start : piece.stop])
        parts.rollout.run(state, parts.constant_row, controls, why, Steps(0.0, 0.0, 0, len(piece)), record)
        width, nv = state.shape[1], parts.shown.shape[1]
        parts.before[piece.start : piece.stop] = record[0, :-1, :width]
        parts.after[piece.start : piece.stop] = record[0, 1:, :width]
        closed = slice(width, width + nv) if parts.system.keeps_closed else parts.places["v"]
        parts.shown[piece.start : piece.stop + 1] = record[0, :, closed]
        moment = events.get(piece.stop - 1)
        q, v = state[0, parts.places["q"]], state[0, parts.places["v"]]
        if why[0] or (moment and not _meets(_met(moment, parts.end), q, v)):
            at = parts.time[piece.stop - 1]
            raise SpanloopError(f"the steps of the run at t = {at:.6g} s gave another state when they were repeated")
        if moment and moment.ends:
            parts.shown[-1] = v  # the end of a run shows what the last part leads to
        if moment and moment.rows:
            state[:, parts.places["q"]], state[:, parts.places["v"]] = moment.rows[-1]["q"], moment.rows[-1]["v"]


def _met(moment: Moment, end: End) -> Row:
    """The state at which an event happened; nothing where it is the start, without any step."""
    if moment.rows:
        return moment.rows[0]
    return {} if end.q is None or end.v is None else {"q": end.q, "v.hit": end.v}


def _meets(row: Row, q: np.ndarray, v: np.ndarray) -> bool:
    """Whether an event of the log begins at this state."""
    was_q, was_v = row.get("q.was", row.get("q", q)), row.get("v.was", row.get("v.hit", v))
    speed = 1.0 + np.abs(v).max(initial=0.0)
    return bool(np.abs(q - was_q).max(initial=0.0) < REPEATED and np.abs(v - was_v).max(initial=0.0) < REPEATED * speed)
