"""The tables of two runs as one, with the moment between them: loops that close there, and what their impact took.

Rows of the table are in the coordinates of their own models: those of the model with fewer end with NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spanloop.model import Model
from spanloop.simulation.continuation.closing_impact import Impact
from spanloop.trajectory import Trajectory
from spanloop.trajectory.events import EventTable, impulse_rows

KIND = "continued"
_STATES = ("q", "v_before", "v_after", "tau_before", "tau_after")
_LOSS = 1e-14  # of the kinetic energy: a loop that takes less has not closed


def joined_events(first: Trajectory, later: Trajectory, goes_on: np.ndarray, hit: Impact) -> EventTable:
    """All events of both runs, and those of the moment between them."""
    old = first.segments[-1].model or first.model
    tables = [_table(first, old), _moment(old, later, goes_on, hit), _table(later, later.model)]
    keep = np.isin(tables[2].run, np.flatnonzero(goes_on))
    tables[2] = tables[2].kept(keep, ~keep)
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


def _moment(old: Model, later: Trajectory, goes_on: np.ndarray, hit: Impact) -> EventTable:
    """Events of the moment at which the run goes on: "continued", loops that are gone, and loops that close."""
    segment = later.segments[0]
    model = segment.model or later.model
    rows = impulse_rows(model)
    before, after = _always_closed(old), _always_closed(model)
    numbers = np.flatnonzero(goes_on)
    tau = segment.tau.reshape(len(goes_on), -1, model.nv)[:, 0]
    names: list[tuple[int, str, str, float]] = []
    for k in range(len(numbers)):
        names.append((k, KIND, model.name, 0.0))
        names += [(k, "release", name, 0.0) for name in sorted(before - after)]
        names += [(k, "attach", *x) for x in _closing(hit, k, rows, before)]
    which = [k for k, *_ in names]
    table = _table(later, model)
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
        impulse=hit.impulse[which] if hit.impulse.shape[1] == len(rows) else np.zeros((len(names), len(rows))),
        energy_lost=np.array([lost for *_, lost in names]),
        on=on[numbers[which]],
        captured=captured[numbers[which]],
        begin_on=on,
        begin_captured=captured,
        switches=later.events.switches,
        rows=rows,
    )


def _closing(hit: Impact, k: int, rows: Sequence[Any], before: set[str]) -> list[tuple[str, float]]:
    """Loops and couplings that close in run k, each with the energy that its rows took."""
    if not hit.impulse.shape[1]:
        return []
    every, out = float(hit.energy_lost(slice(None))[k]), []
    for name in dict.fromkeys(row.owner for row in rows):
        own = [r for r, row in enumerate(rows) if row.owner == name]
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
    for name in (*_STATES, "captured"):
        columns[name] = _widened([getattr(t, name) for t in tables])[order]
    columns["impulse"] = np.concatenate([_placed(t.impulse, t.rows, rows, 0.0) for t in tables])[order]
    closed = [_always_closed(m) for m in models]
    columns["on"] = np.concatenate(
        [_placed(t.on, t.switches, switches, [s in c for s in switches]) for t, c in zip(tables, closed, strict=True)]
    )[order]
    first = tables[0]
    return EventTable(
        **columns,
        begin_on=_placed(first.begin_on, first.switches, switches, [s in closed[0] for s in switches]),
        begin_captured=_widened([first.begin_captured, columns["captured"][:0]])[: len(first.begin_captured)],
        switches=switches,
        rows=rows,
        bodies=tuple(dict.fromkeys(b for t in tables for b in t.bodies)),
    )


def _widened(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays (k, width) one after the other, NaN where one has fewer columns."""
    width = max(x.shape[-1] for x in arrays)
    return np.concatenate([np.concatenate([x, np.full((len(x), width - x.shape[-1]), np.nan)], axis=1) for x in arrays])


def _placed(x: np.ndarray, own: Sequence[Any], every: Sequence[Any], fill: Any) -> np.ndarray:
    """Columns (k, own) among all columns (k, every)."""
    out = np.full((len(x), len(every)), fill)
    out[:, [every.index(name) for name in own]] = x
    return out
