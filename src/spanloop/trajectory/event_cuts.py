"""A single run cut at its events: segments end and begin there, each with its closed loops and its model."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.trajectory.events import EventTable, coincidence
from spanloop.trajectory.segment import Segment
from spanloop.trajectory.segment_models import with_closed

Forces = dict[str, np.ndarray] | None


class _Moment(NamedTuple):
    """The events of one moment: rows of the table."""

    time: float
    first: int
    last: int


def cut_at_events(
    model: Model, segments: tuple[Segment, ...], forces: Forces, events: EventTable
) -> tuple[tuple[Segment, ...], Forces]:
    """The segments of one run, cut at each moment of its table, and its forces at their samples.

    A segment ends with the state before the moment and the next begins with the state after it. Segments that know
    their closed loops are cut already.
    """
    between = {a.times[-1] for a, b in pairwise(segments) if a.times[-1] == b.times[0]}
    moments = [_Moment(float(events.time[r[0]]), r[0], r[-1]) for r in events.moments() if _changes(events, r)]
    out: list[Segment] = []
    pieces: dict[str, list[np.ndarray]] = {name: [] for name in forces or ()}
    begin, state = 0, _Topology.at_start(events)
    inner = [m for m in moments if m.time not in between]
    known = {m.time: m for m in moments if m.time in between}
    for s in segments:
        mine = {name: six[begin : begin + len(s)] for name, six in (forces or {}).items()}
        begin += len(s)
        m = known.get(s.times[0])
        state = state if m is None else state.after(events, m)
        if s.closed is not None:
            cut, cut_forces = [s], mine
        else:
            own = model if s.model is None else s.model
            cut, cut_forces, state = _cut(own, s, mine, events, inner, state)
            cut = [replace(x, model=model) if x.model == model else x for x in cut]
        out += cut
        for name, six in cut_forces.items():
            pieces[name].append(six)
    return tuple(out), {name: np.concatenate(six) for name, six in pieces.items()} or None


def _changes(events: EventTable, rows: range) -> bool:
    return any(events.kind[k] != "end" for k in rows)


class _Topology(NamedTuple):
    """What is closed and what is there: flags of switches, captured frames, flags of bodies."""

    on: np.ndarray
    captured: np.ndarray
    present: np.ndarray

    @staticmethod
    def at_start(events: EventTable) -> _Topology:
        assert events.begin_present is not None
        return _Topology(events.begin_on[0], events.begin_captured[0], events.begin_present[0])

    def after(self, events: EventTable, moment: _Moment) -> _Topology:
        present = self.present.copy()
        for k in range(moment.first, moment.last + 1):
            events.update_present(present, k)
        return _Topology(events.on[moment.last], events.captured[moment.last], present)


def _cut(
    model: Model,
    s: Segment,
    forces: dict[str, np.ndarray],
    events: EventTable,
    moments: list[_Moment],
    start: _Topology,
) -> tuple[list[Segment], dict[str, np.ndarray], _Topology]:
    """One segment in pieces, the forces at their samples, and what is closed after it."""
    near = coincidence(events, float(np.diff(s.times).min(initial=np.inf)) if len(s) > 1 else 0.0)
    inside = [m for m in moments if s.times[0] - near <= m.time <= s.times[-1] + near]
    times = _clear_of(s.times, [m.time for m in inside], near)
    edges = np.searchsorted(s.times, [m.time for m in inside])
    bounds = [0, *edges.tolist(), len(s)]
    out, rows, state = [], [], start
    for k in range(len(inside) + 1):
        if k:
            state = state.after(events, inside[k - 1])
        kept = np.arange(bounds[k], bounds[k + 1])
        kept = kept[times[kept]]
        parts = _Parts(s, forces, events, inside[k - 1] if k else None, kept, inside[k] if k < len(inside) else None)
        closed, absent = events.closed_names(state.on), events.absent_names(state.present)
        piece = parts.segment(near)
        own = with_closed(model, events, closed, state.captured, piece.q[0])
        out.append(replace(piece, model=own, closed=closed, absent=absent))
        rows.append(parts.forces_at_samples())
    return out, {name: np.concatenate([r[name] for r in rows]) for name in forces}, state


def _clear_of(times: np.ndarray, moments: list[float], near: float) -> np.ndarray:
    """Which samples (n,) are not at a moment."""
    if not moments:
        return np.ones(len(times), bool)
    at = np.array(moments)
    after = np.searchsorted(at, times).clip(1, len(at)) - 1
    nearest = np.minimum(np.abs(times - at[after]), np.abs(times - at[np.minimum(after + 1, len(at) - 1)]))
    clear: np.ndarray = nearest > near
    return clear


class _Parts(NamedTuple):
    """A piece of a segment: after one moment, the samples kept, up to another moment."""

    whole: Segment
    forces: dict[str, np.ndarray]
    events: EventTable
    after: _Moment | None
    kept: np.ndarray
    before: _Moment | None

    def segment(self, near: float) -> Segment:
        """The samples, with those of the table at both ends; samples nearer to a moment than this are at it."""
        e, s = self.events, self.whole
        earlier = e.q if e.q_before is None else e.q_before
        arrays: dict[str, Any] = {
            "q": self._joined(s.q, e.q, earlier),
            "v": self._joined(s.v, e.v_after, e.v_before),
            "tau": self._joined(s.tau, e.tau_after, e.tau_before),
        }
        if s.held and self.after is not None:  # what a sample at the moment holds, it holds from there on
            at = np.flatnonzero(np.abs(s.times - self.after.time) <= near)
            arrays["tau"][0] = s.tau[at[-1]] if len(at) else arrays["tau"][0]
        if s.memory is not None:
            arrays["memory"] = self._joined(s.memory, *([self._memory(s.memory)] * 2))
        if s.contact_forces is not None:  # what follows an event is not recorded there
            unknown = np.full((len(e), s.contact_forces.shape[-1]), np.nan)
            known = unknown if e.contact_forces is None else e.contact_forces
            arrays["contact_forces"] = self._joined(s.contact_forces, unknown, known)
        if s.contact_checks is not None:
            arrays["contact_checks"] = self._joined(s.contact_checks, *([s.contact_checks[self._next_samples()]] * 2))
        ends = [[] if m is None else [m.time] for m in (self.after, self.before)]
        return replace(s, times=np.concatenate([ends[0], s.times[self.kept], ends[1]]), **arrays)

    def forces_at_samples(self) -> dict[str, np.ndarray]:
        """Forces (n, 6) by body."""
        if not self.forces:
            return {}
        after, before = self.events.forces_after or {}, self.events.forces_before or {}
        lacking = [name for name in self.forces if name not in after or name not in before]
        if lacking and len(self.events):
            raise InputError(f"events: forces act on {lacking[0]!r}; expected forces_before and forces_after of it")
        none = np.zeros((len(self.events), 6))
        return {b: self._joined(six, after.get(b, none), before.get(b, none)) for b, six in self.forces.items()}

    def _joined(self, samples: np.ndarray, after: np.ndarray, before: np.ndarray) -> np.ndarray:
        first = after[:0] if self.after is None else after[self.after.last : self.after.last + 1]
        last = before[:0] if self.before is None else before[self.before.first : self.before.first + 1]
        width = samples.shape[-1]  # rows of a table of several models are as wide as the widest
        ends = [x[:, :width].reshape(-1, width) for x in (first, last)]
        return np.concatenate([ends[0], samples[self.kept], ends[1]])

    def _next_samples(self) -> np.ndarray:
        """Numbers (events,) of the samples at or after each event."""
        return np.searchsorted(self.whole.times, self.events.time).clip(0, len(self.whole) - 1)

    def _memory(self, samples: np.ndarray) -> np.ndarray:
        """Memory (events, nz): the table's, or that of the last sample before each event."""
        if self.events.memory is not None:
            return self.events.memory
        last = np.searchsorted(self.whole.times, self.events.time, "right") - 1
        return samples[np.clip(last, 0, len(samples) - 1)]
