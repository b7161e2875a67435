"""`EventTable`: what happened during a run or a batch of runs, one row an event."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, overload

import numpy as np

from spanloop.errors import InputError, in_one_line, nearest, printable
from spanloop.loops.closure_errors import rows_of
from spanloop.model import Model

NO_EFFECT = "no effect"  # the attach of what is closed, the release of what is open
KINDS = ("attach", "refused", "release", "impact", "break", "appear", "vanish", "continued", "end", NO_EFFECT)
STOP = "::stop"  # follows the name of a joint in the name of its stop

_SHOWN = 40  # rows that are printed
_COINCIDES = 1e-6  # of the time between samples: this near to an event a sample is at it


class ImpulseRow(NamedTuple):
    """A closure row: its name, the loop, coupling or stop that it belongs to, and the unit of its impulse."""

    name: str
    owner: str
    unit: str


def impulse_rows(model: Model) -> tuple[ImpulseRow, ...]:
    """The closure rows of a model: of its loops, then of its couplings."""
    owners = [*(x.name for x in model.loops), *(c.name for c in model.couplings)]
    return tuple(ImpulseRow(r.name, owners[r.owner], _UNITS.get(r.unit, "")) for r in rows_of(model))


_UNITS = {"m": "N s", "rad": "N m s"}


@dataclass(frozen=True, eq=False)
class Event:
    """One event: a row of an EventTable, with the names of the switches that are closed after it.

    impulse: by closure row of its own loop, coupling or stop, child axes [N m s, N s].
    """

    run: int
    time: float
    kind: str
    name: str
    q: np.ndarray
    v_before: np.ndarray
    v_after: np.ndarray
    impulse: np.ndarray
    energy_lost: float
    closed: tuple[str, ...]


def _column() -> np.ndarray:
    return np.zeros(0)


def _table() -> np.ndarray:
    return np.zeros((0, 0))


def _one_row() -> np.ndarray:
    return np.zeros((1, 0))


@dataclass(frozen=True, eq=False, repr=False)
class EventTable:
    """Events of one run or of a batch of runs, ordered by run and time; print it.

    >>> import spanloop as sl
    >>> run = sl.simulate(sl.zoo.pendulum(), [1.0], duration=0.1)
    >>> len(run.events)
    0

    run (n,): number of the run, in C order of the batch. time (n,) [s]. kind (n,): "attach", "release", "impact" (a
    bounce), "break" (of a grasp), "appear", "vanish", "continued" (with another model), "end"; "refused" (an attach
    that ends the run), "no effect" (the attach of what is closed, the release of what is open). name (n,): of the loop,
    coupling, body or condition; of a joint's stop, "JOINT::stop".
    q (n, nq); v_before, v_after (n, nv): the state; of events of one moment v_before is that of the first, v_after that
    of the last. q_before (n, nq): where an event moves coordinates, as a body does that appears. tau_before, tau_after
    (n, nv): the torques that acted; forces_before, forces_after: {"body": (n, 6)}, where forces act on bodies; memory
    (n, nz): of controllers, where they have one.
    impulse (n, n_rows): along all closure rows, in the axes of the loops' child frames [N m s, N s]; rows: what they
    are. energy_lost (n,) [J]: along the rows of this event; events of one moment add up to what that moment took.
    switches: names of the loops, couplings and stops that open and close; on (n, n_switches): which are closed after
    the event, begin_on (runs, n_switches): at the start. captured (n, width), begin_captured (runs, width): frames and
    offsets at which the switches of `captures` hold, one after the other (topology/captured_frames.py). bodies: names
    of those that come and go, begin_present (runs, n_bodies). one_sided: switches that push and never pull: name,
    number of the row that is watched, and the sign that its error keeps.
    points: names of contact points; contact_impulse (n, points × 3 or 6): what they gave in the event, along the axes
    of each [N s, N m s]; contact_forces (n, points × 3 or 6): their mean forces in the part of a step that ends there
    [N, N m], NaN where it is too short.
    """

    run: np.ndarray = field(default_factory=_column)
    time: np.ndarray = field(default_factory=_column)
    kind: np.ndarray = field(default_factory=_column)
    name: np.ndarray = field(default_factory=_column)
    q: np.ndarray = field(default_factory=_table)
    v_before: np.ndarray = field(default_factory=_table)
    v_after: np.ndarray = field(default_factory=_table)
    tau_before: np.ndarray = field(default_factory=_table)
    tau_after: np.ndarray = field(default_factory=_table)
    impulse: np.ndarray = field(default_factory=_table)
    energy_lost: np.ndarray = field(default_factory=_column)
    on: np.ndarray = field(default_factory=_table)
    captured: np.ndarray = field(default_factory=_table)
    begin_on: np.ndarray = field(default_factory=_one_row)
    begin_captured: np.ndarray = field(default_factory=_one_row)
    switches: tuple[str, ...] = ()
    rows: tuple[ImpulseRow, ...] = ()
    bodies: tuple[str, ...] = ()
    begin_present: np.ndarray | None = None
    captures: tuple[str, ...] = ()
    one_sided: tuple[tuple[str, int, int], ...] = ()
    forces_before: Mapping[str, np.ndarray] | None = None
    forces_after: Mapping[str, np.ndarray] | None = None
    memory: np.ndarray | None = None
    q_before: np.ndarray | None = None
    points: tuple[str, ...] = ()
    contact_impulse: np.ndarray | None = None
    contact_forces: np.ndarray | None = None

    def __post_init__(self) -> None:
        n = len(self.time)
        values: dict[str, Any] = {name: _frozen(getattr(self, name), kind) for name, kind in _TYPES.items()}
        runs = max(len(values["begin_on"]), len(values["begin_captured"]))
        if values["begin_captured"].shape[-1] == 0 or len(values["begin_captured"]) != runs:
            values["begin_captured"] = _rows(values["begin_captured"], runs)
        if len(values["begin_on"]) != runs:
            values["begin_on"] = _rows(values["begin_on"], runs)
        if n and not values["captured"].size:
            values["captured"] = np.zeros((n, 0))
        values |= {name: tuple(map(str, getattr(self, name))) for name in ("switches", "captures", "points")}
        values["rows"] = tuple(ImpulseRow(*r) for r in self.rows)
        values["one_sided"] = tuple((str(name), int(row), int(sign)) for name, row, sign in self.one_sided)
        comings = values["name"][np.isin(values["kind"], ("appear", "vanish"))]
        values["bodies"] = tuple(self.bodies) or tuple(dict.fromkeys(comings.tolist()))
        for name in ("forces_before", "forces_after"):
            given = getattr(self, name)
            values[name] = {b: _frozen(x, float) for b, x in given.items()} if given else None
        for name in _OPTIONAL:
            values[name] = None if getattr(self, name) is None else _frozen(getattr(self, name), float)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        present = self._first_present() if self.begin_present is None else self.begin_present
        object.__setattr__(self, "begin_present", _frozen(present, bool))
        _check(self)

    def __reduce__(self) -> Any:
        """The table without events is one object, also where runs are pickled."""
        return "NO_EVENTS" if self is NO_EVENTS else (_remade, (dict(vars(self)),))

    # ---- rows

    def __len__(self) -> int:
        """Number of events."""
        return len(self.time)

    @overload
    def __getitem__(self, number: int) -> Event: ...

    @overload
    def __getitem__(self, number: slice) -> EventTable: ...

    def __getitem__(self, number: int | slice) -> Event | EventTable:
        """One event by its number; some by a slice, as a table."""
        if isinstance(number, slice):
            return self._sliced(number)
        try:
            k = range(len(self))[operator.index(number)]
        except TypeError:
            raise InputError(
                f"events[{number!r}]: expected the number of an event or a slice. Columns are attributes: events.time"
            ) from None
        except IndexError:
            raise InputError(f"events[{number}]: there are {len(self)} events") from None
        own = self.impulse[k, self.own_rows(k)]
        closed = self.closed_names(self.on[k])
        columns = {name: getattr(self, name)[k] for name in ("q", "v_before", "v_after")}
        kind, name, lost = str(self.kind[k]), str(self.name[k]), float(self.energy_lost[k])
        return Event(int(self.run[k]), float(self.time[k]), kind, name, **columns, impulse=own, energy_lost=lost,
                     closed=closed)  # fmt: skip

    def _sliced(self, which: slice) -> EventTable:
        if which.step is not None and which.step < 0:
            raise InputError(f"events[{which}]: expected a slice forward in time")
        rows = np.zeros(len(self), bool)
        rows[which] = True
        first = int(np.argmax(rows)) if rows.any() else len(self)
        return self.kept(rows, np.arange(len(self)) < first)

    def __iter__(self) -> Iterator[Event]:
        return (self[k] for k in range(len(self)))

    def own_rows(self, number: int) -> list[int]:
        """Numbers of the closure rows of an event's own loop, coupling or stop."""
        return self.rows_named(str(self.name[number]))

    def rows_named(self, owner: str) -> list[int]:
        """Numbers of the closure rows of a loop, coupling or stop."""
        return [k for k, row in enumerate(self.rows) if row.owner == owner]

    def closed_names(self, on: np.ndarray) -> tuple[str, ...]:
        """The switches that are closed by flags (n_switches,)."""
        return tuple(name for name, x in zip(self.switches, on, strict=True) if x)

    def absent_names(self, present: np.ndarray) -> tuple[str, ...]:
        """The bodies that are not there by flags (n_bodies,)."""
        return tuple(name for name, x in zip(self.bodies, present, strict=True) if not x)

    def update_present(self, present: np.ndarray, number: int) -> None:
        """Change flags (..., n_bodies) of bodies that are there as an event does."""
        if self.kind[number] in ("appear", "vanish"):
            present[..., self.bodies.index(str(self.name[number]))] = self.kind[number] == "appear"

    def moments(self) -> Iterator[range]:
        """The events of each moment of each run: ranges of rows."""
        changes = np.flatnonzero((np.diff(self.run) != 0) | (np.diff(self.time) != 0.0)) + 1
        edges = [0, *changes.tolist(), len(self)] if len(self) else [0]
        return (range(a, b) for a, b in pairwise(edges))

    def impulse_in(self, moment: range) -> np.ndarray:
        """The impulses (n_rows,) of a moment; those of impacts that follow each other at once add up."""
        columns = self.v_before, self.v_after, self.impulse
        same = [all(np.array_equal(x[k], x[k - 1], equal_nan=True) for x in columns) for k in moment[1:]]
        firsts = [k for k, known in zip(moment, [False, *same], strict=True) if not known]
        total: np.ndarray = self.impulse[firsts].sum(axis=0)
        return total

    def closed_at(self, times: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Which switches are closed (runs, n, n_switches) at samples: times (n,), v (runs, n, nv).

        A sample that coincides with an event is before or after it as its rates are.
        """
        on = np.repeat(self.begin_on[:, None], len(times), axis=1)
        for k, first in self._first_samples(times, v):
            on[self.run[k], first:] = self.on[k]
        return on

    def present_at(self, times: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Which of the bodies that come and go are there (runs, n, n_bodies) at samples."""
        assert self.begin_present is not None
        present = np.repeat(self.begin_present[:, None], len(times), axis=1)
        for k, first in self._first_samples(times, v):
            self.update_present(present[self.run[k], first:], k)
        return present

    def captured_at(self, times: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Captured frames (runs, n, width) at samples."""
        captured = np.repeat(self.begin_captured[:, None], len(times), axis=1)
        for k, first in self._first_samples(times, v):
            captured[self.run[k], first:] = self.captured[k]
        return captured

    def _first_samples(self, times: np.ndarray, v: np.ndarray) -> Iterator[tuple[int, int]]:
        """For each event its number and that of the first sample after it."""
        near = coincidence(self, float(np.diff(times).min(initial=np.inf)) if len(times) > 1 else 0.0)
        firsts = np.searchsorted(times, self.time - near)
        for rows in self.moments():
            first, k = int(firsts[rows[0]]), rows[0]
            is_at = first < len(times) and times[first] <= self.time[k] + near
            if is_at and "continued" in self.kind[rows[0] : rows[-1] + 1]:  # between two segments
                first = len(times) if first else 0
            elif is_at:
                sample = v[self.run[k], first]
                states = self.v_after[rows[-1], : len(sample)], self.v_before[k, : len(sample)]
                after, before = (np.abs(sample - x).max(initial=0.0) for x in states)
                first += before < after
            yield from ((row, first) for row in rows)

    # ---- selection

    @property
    def runs(self) -> int:
        """Number of runs that the table covers."""
        return len(self.begin_on)

    def of(self, number: int) -> EventTable:
        """The events of one run of a batch, by its number in C order."""
        if not -self.runs <= number < self.runs:
            raise InputError(f"events.of({number}): the table covers {self.runs} runs")
        return self.picked([range(self.runs)[number]])

    def picked(self, numbers: Sequence[int] | np.ndarray) -> EventTable:
        """The events of some runs, which are numbered anew in this order."""
        numbers = np.ravel(np.asarray(numbers, int))
        where = [np.flatnonzero(self.run == k) for k in numbers]
        rows = np.concatenate([np.zeros(0, int), *where])
        anew = np.repeat(np.arange(len(numbers)), [len(x) for x in where])
        assert self.begin_present is not None
        begin = {name: getattr(self, name)[numbers] for name in _BEGIN}
        return replace(self._with_rows(rows), run=anew, **begin)

    def between(self, start: float, stop: float) -> EventTable:
        """The events from time start to time stop [s], both included."""
        return self.kept((self.time >= start) & (self.time <= stop), self.time < start)

    def kept(self, kept: np.ndarray, before: np.ndarray) -> EventTable:
        """The events kept (n,); of those before (n,) remains what they have changed."""
        begin: dict[str, Any] = {name: np.array(getattr(self, name)) for name in _BEGIN}
        for k in np.flatnonzero(before).tolist():
            begin["begin_on"][self.run[k]] = self.on[k]
            begin["begin_captured"][self.run[k]] = self.captured[k]
            self.update_present(begin["begin_present"][self.run[k]], k)
        return replace(self._with_rows(np.flatnonzero(kept)), **begin)

    def _with_rows(self, rows: np.ndarray) -> EventTable:
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in _COLUMNS}
        for name in ("forces_before", "forces_after"):
            given = getattr(self, name)
            columns[name] = {b: x[rows] for b, x in given.items()} if given else None
        for name in _OPTIONAL:
            columns[name] = None if getattr(self, name) is None else getattr(self, name)[rows]
        return replace(self, **columns)

    # ---- text

    def __repr__(self) -> str:
        return f"EventTable({counted(self)})"

    def __str__(self) -> str:
        if not len(self):
            return "no events"
        heads = ["time [s]", "kind", "name", "impulse", "energy lost [J]"]
        lines = [heads, *(self._line(k) for k in range(min(len(self), _SHOWN)))]
        if self.runs > 1:
            lines = [["run"] + lines[0], *([str(self.run[k]), *line] for k, line in enumerate(lines[1:]))]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(f"{x:<{w}}" for x, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        more = [f"and {len(self) - _SHOWN} more"] if len(self) > _SHOWN else []
        return printable("\n".join([*text, *more]))

    def _line(self, k: int) -> list[str]:
        lost = self.energy_lost[k]
        last = f"{lost:.6g}" if lost or self.own_rows(k) else ""
        return [f"{self.time[k]:.9g}", str(self.kind[k]), in_one_line(str(self.name[k])), self.size_text(k), last]

    def size_text(self, number: int) -> str:
        """The size of an event's own impulse in words: "0.5 N s, 0.01 N m s"; "" if it has none."""
        own = self.own_rows(number)
        sizes = {u: float(np.linalg.norm([self.impulse[number, r] for r in own if self.rows[r].unit == u]))
                 for u in ("N s", "N m s")}  # fmt: skip
        if self.name[number] in self.points and self.contact_impulse is not None:
            point = self.contact_impulse[number].reshape(len(self.points), -1)[self.points.index(self.name[number])]
            sizes = {"N s": float(np.linalg.norm(point[:3])), "N m s": float(np.linalg.norm(point[3:]))}
        return ", ".join(f"{x:.4g} {u}" for u, x in sizes.items() if x > 0.0)

    def _first_present(self) -> np.ndarray:
        """Which bodies are there at the start: all but those whose first event is to appear."""
        present = np.ones((len(self.begin_on), len(self.bodies)), bool)
        for k in reversed(range(len(self.time))):
            if self.kind[k] in ("appear", "vanish"):
                present[int(self.run[k]), self.bodies.index(str(self.name[k]))] = self.kind[k] == "vanish"
        return present


_TYPES: dict[str, Any] = {
    "run": int, "time": float, "kind": str, "name": str, "q": float, "v_before": float, "v_after": float,
    "tau_before": float, "tau_after": float, "impulse": float, "energy_lost": float, "on": bool, "captured": float,
    "begin_on": bool, "begin_captured": float,
}  # fmt: skip
_OPTIONAL = ("memory", "q_before", "contact_impulse", "contact_forces")
_BEGIN = ("begin_on", "begin_captured", "begin_present")
_COLUMNS = tuple(name for name in _TYPES if name not in _BEGIN)


def counted(events: EventTable) -> str:
    """How many events there are of each kind, in words: "3 events: 2 impact, 1 release"."""
    kinds, counts = np.unique(events.kind, return_counts=True)
    parts = ", ".join(f"{n} {kind}" for kind, n in zip(kinds, counts, strict=True))
    return f"{len(events)} event{'' if len(events) == 1 else 's'}" + (f": {parts}" if parts else "")


def coincidence(events: EventTable, gap: float) -> float:
    """How near [s] a sample is that lies at an event, but for rounding; gap: time between samples [s]."""
    late = float(np.abs(events.time).max(initial=0.0))
    return max(_COINCIDES * gap, 8.0 * float(np.finfo(events.time.dtype).eps) * late)


def _frozen(values: Any, kind: type) -> np.ndarray:
    array = np.asarray(values)
    if kind is not float or array.dtype not in (np.float64, np.float32):
        array = array.astype(kind)
    view = array.view()
    view.flags.writeable = False
    return view


def _rows(values: np.ndarray, count: int) -> np.ndarray:
    """The one row of values (1, width), so many times."""
    return _frozen(np.repeat(values[:1], count, axis=0), values.dtype.type)


def _check(events: EventTable) -> None:
    """InputError unless all columns have one length, runs and times are in order, and kinds are known."""
    n, runs, ns = len(events), events.runs, len(events.switches)
    for name in _COLUMNS:
        x = getattr(events, name)
        if len(x) != n:
            raise InputError(f"events: {name} has {len(x)} rows; expected {n}, one an event")
    widths = {"on": ns, "impulse": len(events.rows), "v_after": events.v_before.shape[-1]}
    widths |= dict.fromkeys(("tau_before", "tau_after"), events.v_before.shape[-1])
    for name, width in widths.items():
        x = getattr(events, name)
        if n and x.shape != (n, width):
            raise InputError(f"events: {name} has shape {x.shape}; expected {(n, width)}")
    if events.captured.shape[-1] and not events.captures:
        raise InputError("events: captured has frames; expected captures, the names of the switches that hold at them")
    if events.begin_on.shape != (runs, ns):
        raise InputError(f"events: begin_on has shape {events.begin_on.shape}; expected {(runs, ns)}, a row a run")
    if n and (events.run.min() < 0 or events.run.max() >= runs):
        raise InputError(f"events: run has numbers from {events.run.min()} to {events.run.max()}; there are {runs}")
    later = (np.diff(events.run) > 0) | ((np.diff(events.run) == 0) & (np.diff(events.time) >= 0.0))
    if not (later.all() and np.isfinite(events.time).all()):
        raise InputError("events: rows must be in the order of runs and, in each, of finite times")
    for kind in set(events.kind.tolist()) - set(KINDS):
        raise InputError(f"events: kind is {kind!r}; {nearest(kind, KINDS)}")


def _remade(columns: dict[str, Any]) -> EventTable:
    return EventTable(**columns)


NO_EVENTS = EventTable()
