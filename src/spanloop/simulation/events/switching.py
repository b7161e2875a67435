"""What can change during a run: switches (loops, couplings, stops of joints), bodies that come and go, and watchers.

A watcher is a number that fires where it is no longer positive: a user's condition, a moment, the gap of a one-sided
constraint, its force, the margin of a grasp. The events of sl.simulate and the limits of joints become watchers here.
"""

from __future__ import annotations

import fnmatch
import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from spanloop.compiler.traced_arrays import TracedArray
from spanloop.errors import InputError, UnsupportedError, nearest
from spanloop.kernels.row_masks import row_masks, undetermined_rows
from spanloop.loops.closure_errors import mechanism_of, rows_of
from spanloop.math import quaternion, rotation_vector
from spanloop.math.scalar import where
from spanloop.model import Model
from spanloop.model.parts import Joint
from spanloop.simulation.controllers import Named
from spanloop.simulation.events.endings import Limit, Stop, limits_of
from spanloop.simulation.events.kinds import RESTING, Appear, Attach, End, Event, Grasp, OneSided, Release, Vanish
from spanloop.simulation.events.kinds import Stop as StopEvent
from spanloop.simulation.events.location import Rules
from spanloop.simulation.traced_kernels import arguments, noted
from spanloop.topology import Mechanism
from spanloop.topology.captured_frames import captured_width, own_placement

OPEN = 1e-6  # rad, or of the loop's length: what is open by more does not attach
MOST_IN_TABLE = 6  # switches, of which all sets are known
INSIDE = 1e-3  # rad, or of the loop's length: a body that appears further on the wrong side ends the run
_EVER = 1e9  # s before zero: a moment that is past at any start
STOP = "::stop"  # ends the name of the switch of a joint with limits


@dataclass(frozen=True)
class Switch:
    """Something that is on (closed) or off: a switchable loop or coupling, or the stops of a joint."""

    name: str
    rows: tuple[int, ...]  # of the mechanism
    places: tuple[int, ...]  # of these rows in the array `active`
    captures: bool = False
    one_sided: OneSided | None = None
    lower: Limit | None = None  # of a stop
    upper: Limit | None = None
    dof: int = -1  # of a stop
    stop: StopEvent | None = None  # how a stop bounces, if the user says so

    @property
    def restitution(self) -> float:
        """Of impacts along the watched row."""
        event = self.one_sided or self.stop
        return event.restitution if event else 0.0

    @property
    def resting(self) -> float:
        """The speed below which impacts do not bounce [m/s or rad/s]."""
        event = self.one_sided or self.stop
        return event.resting if event else RESTING

    @property
    def watched(self) -> int:
        """Number of the watched row, among its own."""
        return (self.one_sided.row or 0) if self.one_sided else 0

    @property
    def is_stop(self) -> bool:
        """Whether this is a stop at the limits of a joint."""
        return self.lower is not None or self.upper is not None

    @property
    def is_locked(self) -> bool:
        """Whether this is a stop at limits that leave no room."""
        return self.lower is not None and self.upper is not None and not self.lower.bound < self.upper.bound

    @property
    def label(self) -> str:
        """The name of the loop, coupling or joint."""
        return self.name.removesuffix(STOP)


@dataclass(frozen=True)
class Watcher:
    """A value that fires where it is no longer positive.

    kind: "attach", "release", "gap" and "pull" of one-sided switches, "grasp", "appear", "vanish", "end", "limit".
    """

    kind: str
    name: str  # of the loop, coupling, joint or body; or of the end
    switch: int = -1
    body: int = -1
    condition: Callable[..., Any] | None = None
    takes_forces: bool = False
    moment: int = -1  # place in the array `at`
    limit: Limit | None = None
    event: Event | None = None

    @property
    def rearms(self) -> str:
        """What must have passed before it fires again (location.Rules)."""
        if self.kind == "gap":
            return "step"
        return "whole step" if self.condition is not None else "positive"

    @property
    def needs_forces(self) -> bool:
        """Whether its value depends on constraint forces."""
        return self.takes_forces or self.kind in ("pull", "grasp")


@dataclass(frozen=True)
class Switching:
    """The switches, bodies and watchers of a run. model: with the stops at limits of its joints as couplings."""

    model: Model
    switches: tuple[Switch, ...]
    watchers: tuple[Watcher, ...]
    bodies: tuple[str, ...] = ()  # that come and go
    moments: tuple[Any, ...] = ()  # of the watchers at given times [s]
    begins_on: tuple[bool, ...] = ()
    begins_present: tuple[bool, ...] = ()
    masks: np.ndarray | None = field(default=None, compare=False, repr=False)  # (sets, places) of the first loops
    undetermined: tuple[frozenset[int], ...] = ()  # by set: rows whose forces are not determined
    reads: tuple[frozenset[int], ...] = ()  # by watcher: rows whose forces its value depends on

    @cached_property
    def mechanism(self) -> Mechanism:
        """The model in numbers."""
        return mechanism_of(self.model)

    @property
    def captures(self) -> tuple[str, ...]:
        """Names of the loops and couplings that hold what they find."""
        return tuple(s.name for s in self.switches if s.captures)

    @property
    def needs_forces(self) -> bool:
        """Whether a watcher reads constraint forces."""
        return any(w.needs_forces for w in self.watchers)

    @property
    def begins_closed(self) -> tuple[str, ...]:
        """Names of the loops and couplings that are closed at the start."""
        return tuple(s.name for s, on in zip(self.switches, self.begins_on, strict=True) if on)

    def soft(self, stops: tuple[Stop, ...]) -> tuple[Stop, ...]:
        """Those of these springs at limits that no switch takes the place of."""
        own = {s.label for s in self.switches if s.is_stop}
        return tuple(x for x in stops if x.limit.joint not in own)

    def constants(self) -> dict[str, np.ndarray]:
        """Arrays (..., n) that are constant during a run: the moments of events [s]; that of the end is not missed."""
        if not self.moments:
            return {}
        times = [np.asarray(x, float) for x in self.moments]
        try:
            at = np.stack(np.broadcast_arrays(*times), axis=-1)
        except ValueError as e:
            shapes = ", ".join(str(x.shape) for x in times if x.shape)
            raise InputError(f"simulate: at= of events have the shapes {shapes}; expected one number a run") from e
        return {"at": at * (1.0 - 4.0 * np.finfo(float).eps)}

    @cached_property
    def rules(self) -> Rules:
        """Which watchers may fire, and when they may again."""
        enabled: list[tuple[int, float] | None] = []
        for w in self.watchers:
            if w.kind == "gap":
                enabled.append((w.switch, 0.0))
            elif w.kind == "pull" or (w.kind == "grasp" and w.switch >= 0):
                enabled.append((w.switch, 1.0))
            else:
                enabled.append(None)
        gaps = {k: [j for j, w in enumerate(self.watchers) if w.kind == "gap" and w.switch == k] for k in self._numbers}
        rearms = tuple(w.rearms for w in self.watchers)
        keeps = tuple(w.kind in ("gap", "pull", "grasp") for w in self.watchers)
        disarms = tuple(tuple(gaps[w.switch]) if w.kind == "pull" else () for w in self.watchers)
        waits = [w.kind == "gap" or (w.kind == "attach" and w.condition is not None) for w in self.watchers]
        needed = tuple(
            self.bodies_of(w.switch) if waiting else () for w, waiting in zip(self.watchers, waits, strict=True)
        )
        have_rates = tuple(w.kind == "gap" for w in self.watchers)
        pulls = tuple(w.kind == "pull" for w in self.watchers)
        return Rules(tuple(enabled), rearms, keeps, disarms, have_rates, pulls, bodies=needed)

    @property
    def _numbers(self) -> range:
        return range(len(self.switches))

    def with_masks(self, near: np.ndarray) -> Switching:
        """With the rows that are redundant in each set of closed loops; near: q (nq,) of the assembly."""
        names = [self.switches[k].name for k in self.table_switches]
        masks = row_masks(self.model, names, near=near, captures=self.captures) if names else None
        if not self.needs_forces:
            return replace(self, masks=masks)
        unknown = undetermined_rows(self.model, names, near=near, captures=self.captures)
        return replace(self, masks=masks, undetermined=unknown)

    def reads_undetermined(self, j: int, on: Sequence[Any]) -> Any:
        """Whether watcher j reads forces that are not determined with these switches on: a number, 1 or 0."""
        table, bad = self.table_switches, [bool(rows & self.reads[j]) for rows in self.undetermined]

        def chosen(bit: int, number: int) -> Any:
            if bit == len(table):
                return float(bad[number])
            no, yes = chosen(bit + 1, number), chosen(bit + 1, number | 1 << bit)
            return _chosen(on[table[bit]], yes, no)

        return chosen(0, 0) if any(bad) else 0.0

    def undetermined_words(self, j: int, on: Sequence[float]) -> str:
        """A sentence on a watcher that reads forces which are not determined with these switches on."""
        w = self.watchers[j]
        number = sum(1 << bit for bit, k in enumerate(self.table_switches) if on[k] > 0.5)
        every = rows_of(self.model)
        names = ", ".join(every[r].name for r in sorted(self.undetermined[number] & self.reads[j]))
        return (
            f"{w.kind} {w.name!r} depends on forces that are not determined ({names}): rows of the loops that are "
            "closed depend on each other there, and share the load in more than one way. Release one of them first, or "
            f"close it by a joint with more degrees of freedom{_NO_MOMENT if _bounds_moment(w) else ''}"
        )

    def refuse_undetermined(self) -> None:
        """Refuse watchers that read forces which are not determined at the start."""
        on = [float(x) for x in self.begins_on]
        for j in range(len(self.watchers)):
            if self.reads_undetermined(j, on) > 0.5:
                raise UnsupportedError(f"simulate: {self.undetermined_words(j, on)}")

    def active(self, on: Sequence[Any]) -> list[Any]:
        """The entries of `active` for switches that are on (1) or off (0): redundant rows differ by the set."""
        table = self.table_switches
        out: list[Any] = [0.0] * len(self.mechanism.switched_rows)

        def chosen(place: int, bit: int, number: int) -> Any:
            if bit == len(table):
                return float(self.masks[number, place])  # type: ignore[index]
            no, yes = chosen(place, bit + 1, number), chosen(place, bit + 1, number | 1 << bit)
            return _chosen(on[table[bit]], yes, no)

        for k, switch in enumerate(self.switches):
            for place in switch.places:
                by_set = self.masks is not None and k in table
                out[place] = chosen(place, 0, 0) if by_set else where(on[k] > 0.5, 1.0, 0.0)
        return out

    @cached_property
    def table_switches(self) -> tuple[int, ...]:
        """Numbers of the switches whose sets have masks of their own; where they are many, not those that push along
        one row: it is independent of closed rows when it closes, unless several close in one moment."""
        every = tuple(k for k, s in enumerate(self.switches) if not s.is_stop)
        if len(every) <= MOST_IN_TABLE:
            return every
        return tuple(k for k in every if not (self.switches[k].one_sided and len(self.switches[k].rows) == 1))

    def without_absent(self, v: np.ndarray) -> np.ndarray:
        """Initial velocities (n, nv): bodies that are not there do not move."""
        out = np.array(v)
        for body, present in zip(self.bodies, self.begins_present, strict=True):
            if not present:
                out[:, _dofs_of(self.model, body)] = 0.0
        return out

    def dofs_of(self, body: str) -> list[int]:
        """The degrees of freedom of a body that comes and goes, with all that it carries."""
        return _dofs_of(self.model, body)

    def switches_on(self, body: int) -> list[int]:
        """Numbers of the switches that hold a body that comes and goes, or what it carries."""
        carried = _carried(self.model, self.bodies[body])
        loops = {x.name for x in self.model.loops if {body_of(self.model, x.a), body_of(self.model, x.b)} & carried}
        return [k for k, s in enumerate(self.switches) if s.name in loops]

    def bodies_of(self, switch: int) -> tuple[int, ...]:
        """Numbers of the bodies that come and go which a switch holds."""
        return tuple(b for b in range(len(self.bodies)) if switch in self.switches_on(b))

    def must_be_closed(self, j: int) -> tuple[int, ...]:
        """The rows that must be closed where watcher j closes its switch; not the gap, and none if it captures."""
        w, switch = self.watchers[j], self.switches[self.watchers[j].switch]
        if switch.is_stop or (isinstance(w.event, Attach) and w.event.capture):
            return ()
        watched = switch.rows[switch.one_sided.row or 0] if w.kind == "gap" and switch.one_sided else -1
        return tuple(r for r in switch.rows if r in self.mechanism.position_rows and r != watched)

    def as_it_closes(self, j: int, x: Mapping[str, Sequence[Any]], m: Mechanism) -> dict[str, Sequence[Any]]:
        """The arrays x with the frame that the switch of watcher j has when that fires without capturing."""
        w, out = self.watchers[j], dict(x)
        if w.kind == "attach" and self.switches[w.switch].captures:
            at, own = self.captured_place(w.name), own_placement(m, w.name)
            out["captured"] = [*x["captured"][:at], *own, *x["captured"][at + len(own) :]]
        return out

    def placement_of(self, body: int, event: Appear | None) -> tuple[dict[int, float], dict[int, float]]:
        """Entries of q and v with which a body appears; without an event, with which it is absent: it does not move."""
        name = self.bodies[body]
        if event is None:
            return {}, dict.fromkeys(_dofs_of(self.model, name), 0.0)
        joint = next(j for j in self.model.joints if j.child == name)
        q, v = self.model.q_slice(joint.name).start, self.model.v_slice(joint.name).start
        at, rates = appearance(joint, event)
        return {q + k: x for k, x in enumerate(at)}, {v + k: x for k, x in enumerate(rates)}

    def captured_place(self, name: str) -> int:
        """Where the numbers that a switch holds begin in the array `captured`."""
        return captured_width(self.mechanism, self.captures[: self.captures.index(name)])

    def own_placement(self, name: str) -> list[Any]:
        """The numbers that a switch holds in the model."""
        return own_placement(self.mechanism, name)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Sizes of the arrays of the model that events change, and of the moments of events."""
        known = {"captured": captured_width(self.mechanism, self.captures) if self.captures else 0}
        known |= {"present": len(self.bodies), "at": len(self.moments)}
        return {name: size for name, size in known.items() if size}

    def key(self) -> str:
        """A hash of what is traced beside the watchers' values."""
        parts = (self.switches, [replace(w, condition=None, event=None) for w in self.watchers], self.bodies)
        settings = [(w.event and _settings(w.event)) for w in self.watchers]
        masks = None if self.masks is None else self.masks.tobytes()
        unknown = [sorted(x) for x in self.undetermined]
        return hashlib.sha256(repr((parts, settings, masks, unknown)).encode()).hexdigest()


def _chosen(on: Any, yes: Any, no: Any) -> Any:
    """One of two entries of a table, by a switch."""
    are_equal = yes is no or (isinstance(yes, float) and isinstance(no, float) and yes == no)
    return yes if are_equal else where(on > 0.5, yes, no)


def _settings(event: Event) -> list[str]:
    """What an event says beside its condition and its moment."""
    return [f"{k}={v!r}" for k, v in vars(event).items() if k not in ("when", "at")]


def switching_of(
    model: Model, events: Any, limits: str, active_loops: Iterable[str] | None, closures: str
) -> tuple[Switching | None, Any]:
    """What changes during a run, None if nothing does; and the events that only end it, as `events_of` takes them.

    active_loops: names of the switches that are on at the start, if the user says so. closures: how loops are closed.
    """
    listed = _listed(events)
    stops = _stops(model, listed, limits)
    ends = {x.name: x.when for x in listed if isinstance(x, End)}
    if len(ends) == len(listed) and not stops and not any(_takes_forces(*x) for x in ends.items()):
        return None, (ends or None) if isinstance(events, list | tuple) else events
    if not isinstance(events, list | tuple) and events is not None:
        named = events if isinstance(events, Mapping) else {getattr(events, "__name__", "event"): events}
        listed = [End(name, when) for name, when in named.items()]
    if closures != "project":
        what = "limits='stop' needs" if stops and not listed else "events that change the mechanism need"
        raise UnsupportedError(f"simulate: {what} closures='project'; closures is {closures!r}")
    return _Maker(model, listed, stops, limits, active_loops).made(), None


def _stops(model: Model, events: list[Event], limits: str) -> list[tuple[Limit, int]]:
    """Limits of joints that are stops, with their DoF."""
    every = list(limits_of(model))
    if limits == "stop":
        wanted = {x.joint for x, _ in every}
    else:
        wanted = set().union(*(stopped_joints(model, x) for x in events if isinstance(x, StopEvent)))
    for event in events:
        if isinstance(event, StopEvent):
            stopped_joints(model, event)
    return [(x, dof) for x, dof in every if x.joint in wanted]


def stopped_joints(model: Model, event: StopEvent) -> set[str]:
    """Names of the joints that a Stop is for."""
    known = dict.fromkeys(x.joint for x, _ in limits_of(model) if _single(model, x.joint))
    found = {name for name in known if fnmatch.fnmatchcase(name, event.joint)}
    if found:
        return found
    kind = next((j.kind for j in model.joints if j.name == event.joint), None)
    if kind is not None:
        why = "it has no limits" if kind.nv == 1 else f"it has {kind.nv} degrees of freedom; expected one"
        raise InputError(
            f"Stop({event.joint!r}): no stop can be at this joint: {why}. model.with_joint(..., lower=, upper=)"
        )
    raise InputError(
        f"Stop({event.joint!r}): there is no joint with limits of this name; {nearest(event.joint, list(known))}"
    )


def _takes_forces(name: str, condition: Callable[..., Any]) -> bool:
    return arguments(condition, f"the event {name!r}", (3, 4), "tqvf") == 4


def _listed(events: Any) -> list[Event]:
    """The events of a list, each checked to be one."""
    if not isinstance(events, list | tuple):
        if isinstance(events, Event):
            raise InputError(
                f"events is a {type(events).__name__}; expected a list: events=[sl.events.{type(events).__name__}(...)]"
            )
        return []
    for k, x in enumerate(events):
        if not isinstance(x, Event):
            raise InputError(
                f"events[{k}] is a {type(x).__name__}; expected one of sl.events: Attach, Release, OneSided, "
                "Stop, Grasp, Appear, Vanish, End"
            )
    return list(events)


class _Maker:
    """Collects switches and watchers."""

    def __init__(self, model: Model, events: list[Event], stops: list, limits: str, active_loops: Any):
        self.model, self.events, self.limits = model, events, limits
        self.stops = [(limit, dof) for limit, dof in stops if _single(model, limit.joint)]
        for joint in dict.fromkeys(limit.joint for limit, _ in self.stops):
            self.model = self.model.with_coupling(joint, None, offset=0.0, switchable=True, name=joint + STOP)
        self.active_loops = None if active_loops is None else set(active_loops)
        self.mechanism = mechanism_of(self.model)
        self.rows = {c.name: c.rows for c in self.mechanism.closures}
        self.rows |= {g.name: (g.row,) for g in self.mechanism.gears}
        self.names = list(self.model.switches)
        self.watchers: list[Watcher] = []
        self.moments: list[Any] = []
        self.bodies: list[str] = []

    def made(self) -> Switching:
        one_sided = self._one_sided()
        capturing = {x.loop for x in self.events if isinstance(x, Attach) and x.capture}
        switches = [self._switch(name, one_sided.get(name), name in capturing) for name in self.names]
        for event in self.events:
            self._add(event, switches)
        for k, switch in enumerate(switches):
            self._add_stop(k, switch)
        if self.limits == "end":
            stopped = {s.label for s in switches if s.is_stop}
            ends = [x for x, _ in limits_of(self.model) if x.joint not in stopped]
            self.watchers += [Watcher("limit", x.joint, limit=x) for x in ends]
        opens = {x.loop for x in self.events if isinstance(x, Attach | OneSided)}
        present = [not any(isinstance(x, Appear) and x.body == b for x in self.events) for b in self.bodies]
        made = Switching(
            self.model, tuple(switches), tuple(self.watchers), tuple(self.bodies), tuple(self.moments),
            begins_present=tuple(present),
        )  # fmt: skip
        return replace(made, begins_on=tuple(self._begins_on(made, k, opens) for k in range(len(switches))))

    def _begins_on(self, made: Switching, k: int, opens: set[str]) -> bool:
        switch, absent = made.switches[k], [made.bodies[b] for b in made.bodies_of(k) if not made.begins_present[b]]
        if switch.is_stop:
            return False
        if self.active_loops is None:
            return switch.name not in opens and not absent
        if switch.name in self.active_loops and absent:
            raise InputError(
                f"active_loops names {switch.name!r}, which holds {absent[0]!r}, a body that is not there before it "
                f"appears; leave it out, and let Attach({switch.name!r}, ...) close it"
            )
        return switch.name in self.active_loops

    def _one_sided(self) -> dict[str, OneSided]:
        found: dict[str, OneSided] = {}
        for x in self.events:
            if isinstance(x, OneSided):
                self._number(x.loop, "OneSided")
                if x.loop in found:
                    raise InputError(f"OneSided({x.loop!r}) is given twice; a loop has one watched row")
                found[x.loop] = x
        return found

    def _switch(self, name: str, one_sided: OneSided | None, captures: bool) -> Switch:
        rows, order = self.rows[name], self.mechanism.switched_rows
        places = tuple(order.index(r) for r in rows)
        if not name.endswith(STOP):
            if one_sided is not None:
                one_sided = replace(one_sided, row=_row(one_sided, len(rows)))
            return Switch(name, rows, places, captures, one_sided)
        joint = name.removesuffix(STOP)
        bounds = [(limit, dof) for limit, dof in self.stops if limit.joint == joint]
        lower = next((x for x, _ in bounds if x.sign > 0), None)
        upper = next((x for x, _ in bounds if x.sign < 0), None)
        events = [x for x in self.events if isinstance(x, StopEvent) and joint in stopped_joints(self.model, x)]
        return Switch(name, rows, places, True, None, lower, upper, bounds[0][1], events[-1] if events else None)

    def _number(self, name: str, kind: str) -> int:
        """The number of a switch by the name of its loop or coupling."""
        if name in self.names and not name.endswith(STOP):
            return self.names.index(name)
        every = [*(x.name for x in self.model.loops), *(x.name for x in self.model.couplings)]
        if name in every:
            raise InputError(f"{kind}({name!r}): this loop is not switchable; close it with switchable=True")
        known = [x for x in self.names if not x.endswith(STOP)]
        raise InputError(
            f"{kind}({name!r}): model {self.model.name!r} has no switchable loop or coupling {name!r}; "
            + (nearest(name, known) if known else "it has none: close one with switchable=True")
        )

    def _add(self, event: Event, switches: list[Switch]) -> None:
        kind = type(event).__name__
        if isinstance(event, Attach | Release):
            number = self._number(event.loop, kind)
            self._watch(event, Watcher(kind.lower(), event.loop, number, event=event))
        elif isinstance(event, OneSided):
            number = self._number(event.loop, kind)
            self.watchers.append(Watcher("gap", event.loop, number, event=event))
            self.watchers.append(Watcher("pull", event.loop, number, event=event))
        elif isinstance(event, StopEvent):
            return  # the watchers of stops are added with their switches
        elif isinstance(event, Grasp):
            self._add_grasp(event)
        elif isinstance(event, Appear | Vanish):
            self._watch(event, Watcher(kind.lower(), event.body, body=self._body(event), event=event))
        else:
            self._watch(event, Watcher("end", event.name, event=event))

    def _add_grasp(self, event: Grasp) -> None:
        loop = next((x for x in self.model.loops if x.name == event.loop), None)
        if loop is None:
            raise InputError(
                f"Grasp({event.loop!r}): model {self.model.name!r} has no loop {event.loop!r}; "
                + nearest(event.loop, [x.name for x in self.model.loops])
            )
        if event.on_break == "release" and not loop.switchable:
            raise InputError(
                f"Grasp({event.loop!r}): on_break is 'release', and this loop is not switchable; close it with "
                "switchable=True"
            )
        number = self.names.index(event.loop) if loop.switchable else -1
        self.watchers.append(Watcher("grasp", event.loop, number, event=event))

    def _body(self, event: Appear | Vanish) -> int:
        """The number of a body that comes and goes; it is on a free joint, and its loops are switchable."""
        kind, name = type(event).__name__, event.body
        joint = next((j for j in self.model.joints if j.child == name), None)
        if joint is None:
            raise InputError(
                f"{kind}({name!r}): model {self.model.name!r} has no body {name!r}; "
                + nearest(name, [j.child for j in self.model.joints])
            )
        if joint.kind.name != "free":
            raise InputError(f"{kind}({name!r}): this body is on a {joint.kind.name} joint; expected a free one")
        carried = _carried(self.model, name)
        for loop in self.model.loops:
            ends = [body_of(self.model, x) in carried for x in (loop.a, loop.b)]
            if any(ends) and not all(ends) and not loop.switchable:
                raise InputError(
                    f"{kind}({name!r}): loop {loop.name!r} holds this body and is not switchable; close it with "
                    "switchable=True"
                )
        if name not in self.bodies:
            self.bodies.append(name)
        return self.bodies.index(name)

    def _watch(self, event: Any, watcher: Watcher) -> None:
        """Add the watcher of a condition or of a moment."""
        if event.when is None:
            self.moments.append(event.at)
            self.watchers.append(replace(watcher, moment=len(self.moments) - 1))
            return
        what = f"the condition of {type(event).__name__}({watcher.name!r})"
        count = arguments(event.when, what, (3, 4), "tqvf")
        self.watchers.append(replace(watcher, condition=event.when, takes_forces=count == 4))

    def _add_stop(self, k: int, switch: Switch) -> None:
        """Watch the gaps and the force of a stop; one without room is closed at the start and never opens."""
        if switch.is_locked:
            self.moments.append(-_EVER)
            event = Attach(switch.name, at=0.0, capture=True)
            self.watchers.append(Watcher("attach", switch.name, k, moment=len(self.moments) - 1, event=event))
        elif switch.is_stop:
            self.watchers += [Watcher("gap", switch.label, k, limit=x) for x in (switch.lower, switch.upper) if x]
            self.watchers.append(Watcher("pull", switch.label, k))


def _bounds_moment(w: Watcher) -> bool:
    """Whether a watcher is a grasp that bounds the moment about its normal."""
    return isinstance(w.event, Grasp) and w.event.torsion is not None and not math.isinf(w.event.torsion)


_NO_MOMENT = "; torsion=math.inf leaves moments about the normal out"


class Noted(dict[str, Any]):
    """Wrenches by name, as conditions read them: arrays of six numbers, one number of a coupling; it notes which."""

    def __init__(self, values: Mapping[str, Sequence[Any]]):
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise InputError(f"f[{name!r}]: there is no loop or coupling of this name; {nearest(name, list(self))}")
        self.read.add(name)
        numbers = super().__getitem__(name)
        return TracedArray.of(numbers) if len(numbers) > 1 else numbers[0]


def wrenches_read(w: Watcher, model: Model) -> frozenset[str]:
    """Names of the loops and couplings whose forces a condition reads."""
    from spanloop.compiler.lower import traced_inputs

    parts = {loop.name: 6 for loop in model.loops} | {coupling.name: 1 for coupling in model.couplings}
    x = traced_inputs((("t", 1), ("q", model.nq), ("v", model.nv), *parts.items()))
    wrenches = Noted({name: x[name] for name in parts})
    condition_value(w, model, x, wrenches)
    return frozenset(wrenches.read)


def condition_value(w: Watcher, model: Model, x: Mapping[str, Sequence[Any]], wrenches: Mapping[str, Any]) -> Any:
    """The value of a user's condition, checked to be one number; wrenches: lists of numbers, or such as are noted."""
    f = wrenches if isinstance(wrenches, Noted) else Noted(wrenches)
    q, v = Named.by_joint(x["q"], model, False), Named.by_joint(x["v"], model, True)
    assert w.condition is not None
    with noted(f"the condition of {w.kind} {w.name!r}"):
        value = w.condition(x["t"][0], q, v, f) if w.takes_forces else w.condition(x["t"][0], q, v)
    if isinstance(value, (bool, np.bool_, str)) or hasattr(value, "select") or hasattr(value, "__len__"):
        raise InputError(
            f"the condition of {w.kind} {w.name!r} returned a {type(value).__name__}; expected one number that is "
            "positive until it happens"
        )
    if isinstance(value, Real) and not math.isfinite(value):
        raise InputError(f"the condition of {w.kind} {w.name!r} returned {value}; expected a finite number")
    return float(value) if isinstance(value, Real) else value


def _single(model: Model, joint: str) -> bool:
    """Whether a joint has one degree of freedom: couplings join such joints."""
    return next(j for j in model.joints if j.name == joint).kind.nv == 1


def _row(event: OneSided, count: int) -> int:
    if event.row is None and count > 1:
        raise InputError(
            f"OneSided({event.loop!r}): this loop has {count} rows; name the one that is watched, row=0 ... {count - 1}"
        )
    row = 0 if event.row is None else int(event.row)
    if not 0 <= row < count:
        raise InputError(f"OneSided({event.loop!r}): row is {row}; expected 0 ... {count - 1}")
    return row


def _carried(model: Model, body: str) -> set[str]:
    """A body and all bodies that it carries, by name."""
    out = {body}
    for j in model.joints:  # parents first
        if j.parent in out:
            out.add(j.child)
    return out


def _dofs_of(model: Model, body: str) -> list[int]:
    """Degrees of freedom of the joint of a body and of all joints that it carries."""
    carried = _carried(model, body)
    slices = [model.v_slice(j.name) for j in model.joints if j.child in carried]
    return [i for s in slices for i in range(s.start, s.stop)]


def body_of(model: Model, name: str) -> str:
    """The body that a frame of this name is fixed to, or that has this name."""
    return next((f.body for f in model.frames if f.name == name), name)


def appearance(joint: Joint, event: Appear) -> tuple[list[float], list[float]]:
    """q (7) and v (6) of a free joint with which its body appears; q is empty if the event gives no pose."""
    if event.pose is None and event.velocity is None:
        return [], [0.0] * 6
    own = np.eye(4)
    own[:3, :3], own[:3, 3] = joint.placement.rotation, joint.placement.position
    pose = own if event.pose is None else np.asarray(event.pose, dtype=float)
    if (
        pose.shape != (4, 4)
        or not np.isfinite(pose).all()
        or abs(pose[:3, :3] @ pose[:3, :3].T - np.eye(3)).max() > 1e-6
    ):
        raise InputError(
            f"Appear({event.body!r}): pose is no pose; expected (4, 4), a rotation and a position in the world"
        )
    velocity = np.zeros(6) if event.velocity is None else np.asarray(event.velocity, dtype=float)
    if velocity.shape != (6,) or not np.isfinite(velocity).all():
        raise InputError(
            f"Appear({event.body!r}): velocity is {event.velocity!r}; expected six numbers, [angular; linear]"
        )
    if event.pose is None and velocity.any():
        raise InputError(f"Appear({event.body!r}): a velocity needs a pose; give both")
    inside = np.linalg.inv(own) @ pose
    q = [*quaternion.exponential(rotation_vector.of_matrix(inside[:3, :3].tolist())), *inside[:3, 3]]
    turn = pose[:3, :3].T
    return [float(x) for x in q], [float(x) for x in (*(turn @ velocity[:3]), *(turn @ velocity[3:]))]
