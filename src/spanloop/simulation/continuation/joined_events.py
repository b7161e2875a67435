"""The tables of two runs as one, with the moment between them: loops that close there, and what their impact took.

Rows of the table are in the coordinates of their own models: those of the model with fewer end with NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spanloop.model import Model
from spanloop.simulation.continuation.closing_impact import Impact
from spanloop.topology.captured_frames import FRAME, OFFSET
from spanloop.trajectory import Trajectory
from spanloop.trajectory.events import STOP, EventTable, impulse_rows

KIND = "continued"
_STATES = ("q", "v_before", "v_after", "tau_before", "tau_after")
_LOSS = 1e-14  # of the kinetic energy: a loop that takes less has not closed


def joined_events(
    first: Trajectory, closed: Sequence[frozenset[str]], later: Trajectory, goes_on: np.ndarray, hit: Impact
) -> EventTable:
    """All events of both runs, and those of the moment between them.

    closed: names of the loops and couplings that are closed at the end of each run that goes on.
    """
    old = first.segments[-1].model or first.model
    tables = [_table(first, old), _moment(closed, later, goes_on, hit), _table(later, later.model)]
    keep = np.isin(tables[2].run, np.flatnonzero(goes_on))
    tables[2] = tables[2].kept(keep, np.zeros(len(keep), bool))
    own = later.segments[0].model or later.model
    return _together(tables, [old, own, own])


def _table(run: Trajectory, model: Model) -> EventTable:
    """A run's own table, or an empty one of its width."""
    if not _is_empty(run.events):
        return run.events
    nothing: dict[str, Any] = {name: np.zeros((0, model.nq if name == "q" else model.nv)) for name in _STATES}
    rows = impulse_rows(model)
    return EventTable(**nothing, impulse=np.zeros((0, len(rows))), rows=rows, begin_on=np.zeros((len(run.outcomes), 0)))


def _is_empty(table: EventTable) -> bool:
    """Whether nothing can happen in the runs of a table."""
    return not (len(table) or table.switches or table.bodies)


def _moment(closed: Sequence[frozenset[str]], later: Trajectory, goes_on: np.ndarray, hit: Impact) -> EventTable:
    """Events of the moment at which the run goes on: "continued", loops that are gone, and loops that close."""
    segment = later.segments[0]
    model = segment.model or later.model
    table = _table(later, model)
    after = [_closed_at_start(table, model, int(k)) for k in np.flatnonzero(goes_on)]
    numbers = np.flatnonzero(goes_on)
    tau = segment.tau.reshape(len(goes_on), -1, model.nv)[:, 0]
    names: list[tuple[int, str, str, float]] = []
    for k in range(len(numbers)):
        names.append((k, KIND, model.name, 0.0))
        names += [(k, "release", name, 0.0) for name in sorted(closed[k] - after[k])]
        names += [(k, "attach", *x) for x in _closing(hit, k, closed[k])]
    which = [k for k, *_ in names]
    on, captured = table.begin_on, table.begin_captured
    return EventTable(
        run=numbers[which],
        time=np.full(len(names), segment.times[0]),
        kind=np.array([kind for _, kind, _, _ in names]),
        name=np.array([name for _, _, name, _ in names]),
        q=hit.q[which],
        v_before=hit.v_before[which],
        v_after=hit.v_after[which],
        tau_before=tau[numbers[which]],
        tau_after=tau[numbers[which]],
        impulse=hit.impulse[which],
        energy_lost=np.array([lost for *_, lost in names]),
        on=on[numbers[which]],
        captured=captured[numbers[which]],
        begin_on=on,
        begin_captured=captured,
        switches=table.switches,
        captures=table.captures,
        rows=hit.rows,
        bodies=table.bodies,
        begin_present=table.begin_present,
    )


def _closed_at_start(table: EventTable, model: Model, k: int) -> set[str]:
    """Names of the loops and couplings that are closed at the start of run k."""
    opened = {name for name, on in zip(table.switches, table.begin_on[k], strict=True) if not on}
    return _always_closed(model) - opened


def _closing(hit: Impact, k: int, before: frozenset[str]) -> list[tuple[str, float]]:
    """Loops and couplings that close in run k, each with the energy that its rows took."""
    every, out = float(hit.energy_lost(slice(None))[k]), []
    for name in dict.fromkeys(row.owner for row in hit.rows):
        own = [r for r, row in enumerate(hit.rows) if row.owner == name]
        lost = float(hit.energy_lost(own)[k])
        if name not in before or abs(lost) > max(1e-9 * abs(every), _LOSS):
            out.append((name, lost))
    return out


def _always_closed(model: Model) -> set[str]:
    """Names of what no switch opens; a name that a table has as a switch is overwritten."""
    return {x.name for x in model.loops} | {x.name for x in model.couplings}


def _together(tables: Sequence[EventTable], models: Sequence[Model]) -> EventTable:
    """The rows of tables of the same runs, ordered by run and time; models: of each table."""
    rows = tuple(dict.fromkeys(r for t in tables for r in t.rows))
    switches = tuple(dict.fromkeys(s for t in tables for s in t.switches))
    order = np.lexsort([np.concatenate([t.time for t in tables]), np.concatenate([t.run for t in tables])])
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(t, name) for t in tables])[order]
        for name in ("run", "time", "kind", "name", "energy_lost")
    }
    for name in _STATES:
        columns[name] = _widened([getattr(t, name) for t in tables])[order]
    captures = {name: width for t, m in zip(tables, models, strict=True) for name, width in _widths(t, m).items()}
    frames = [_frames(x, t, captures) for t in tables for x in (t.captured, t.begin_captured)]
    columns["captured"] = np.concatenate(frames[::2])[order]
    columns |= _forces(tables, order) | _contacts(tables, order)
    bodies = tuple(dict.fromkeys(b for t in tables for b in t.bodies))
    columns["impulse"] = np.concatenate([_placed(t.impulse, t.rows, rows, 0.0) for t in tables])[order]
    closed = [_always_closed(m) for m in models]
    columns["on"] = np.concatenate(
        [_placed(t.on, t.switches, switches, [s in c for s in switches]) for t, c in zip(tables, closed, strict=True)]
    )[order]
    first = tables[0]
    return EventTable(
        **columns,
        begin_on=_placed(first.begin_on, first.switches, switches, [s in closed[0] for s in switches]),
        begin_captured=frames[1],
        switches=switches,
        captures=tuple(captures),
        rows=rows,
        bodies=bodies,
        begin_present=_placed(np.asarray(first.begin_present), first.bodies, bodies, True),
    )


def _widths(table: EventTable, model: Model) -> dict[str, int]:
    """How many numbers each of a table's captures holds."""
    couplings = {c.name for c in model.couplings}
    return {name: OFFSET if name.endswith(STOP) or name in couplings else FRAME for name in table.captures}


def _frames(x: np.ndarray, table: EventTable, every: Mapping[str, int]) -> np.ndarray:
    """What a table's captures hold (k, width) among all captures, 0 where one is not among them."""
    places, ends = {}, np.cumsum([0, *every.values()])
    for name, end in zip(every, ends, strict=False):
        places[name] = range(end, end + every[name])
    out = np.zeros((len(x), int(ends[-1])))
    if x.shape[1]:
        out[:, [i for name in table.captures for i in places[name]]] = x
    return out


def _forces(tables: Sequence[EventTable], order: np.ndarray) -> dict[str, Any]:
    """Forces on bodies before and after all events, zero where a table has none."""
    out: dict[str, Any] = {}
    for column in ("forces_before", "forces_after"):
        given = [getattr(t, column) or {} for t in tables]
        names = dict.fromkeys(name for x in given for name in x)
        parts = {b: [x.get(b, np.zeros((len(t), 6))) for x, t in zip(given, tables, strict=True)] for b in names}
        out[column] = {b: np.concatenate(six)[order] for b, six in parts.items()} or None
    return out


def _contacts(tables: Sequence[EventTable], order: np.ndarray) -> dict[str, Any]:
    """What contacts did in events, NaN in tables without; their points are those of the table with most of them."""
    names = max((t.points for t in tables), key=len)
    out: dict[str, Any] = {"points": names}
    for column in ("contact_impulse", "contact_forces"):
        given = [getattr(t, column) for t in tables]
        none = [np.zeros((len(t), 0)) if x is None else x for x, t in zip(given, tables, strict=True)]
        out[column] = _widened(none)[order] if names else None
    return out


def _widened(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays (k, width) one after the other, NaN where one has fewer columns."""
    width = max(x.shape[-1] for x in arrays)
    return np.concatenate([np.concatenate([x, np.full((len(x), width - x.shape[-1]), np.nan)], axis=1) for x in arrays])


def _placed(x: np.ndarray, own: Sequence[Any], every: Sequence[Any], fill: Any) -> np.ndarray:
    """Columns (k, own) among all columns (k, every)."""
    out = np.full((len(x), len(every)), fill)
    out[:, [every.index(name) for name in own]] = x
    return out
