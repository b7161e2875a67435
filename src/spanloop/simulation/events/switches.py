"""What can change during a run: switches (loops, couplings, stops of joints), bodies that come and go, and watchers.

A watcher is a number that fires where it is no longer positive: a user's condition, a moment, the gap of a one-sided
constraint, its force, the margin of a grasp. declared_events.py makes them of the events that users write.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.errors import UnsupportedError
from spanloop.kernels.row_masks import row_masks, undetermined_rows
from spanloop.loops.closure_errors import mechanism_of, rows_of
from spanloop.math.scalar import where
from spanloop.model import Model
from spanloop.simulation.events.coming_bodies import appearance, body_of, carried_by, dofs_of
from spanloop.simulation.events.endings import Limit, Stop
from spanloop.simulation.events.kinds import RESTING, Appear, Attach, Event, Grasp, OneSided
from spanloop.simulation.events.kinds import Stop as StopEvent
from spanloop.simulation.events.location import Rules
from spanloop.topology import Mechanism
from spanloop.topology.captured_frames import captured_width, own_placement

OPEN = 1e-6  # rad, or of the loop's length: what is open by more does not attach
MOST_IN_TABLE = 6  # switches, of which all sets are known
INSIDE = 1e-3  # rad, or of the loop's length: a body that appears further on the wrong side ends the run
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

    kind: "attach", "release", "gap" and "pull" of one-sided switches, "grasp", "appear", "vanish", "end", "limit",
    "touch" of a contact point whose gap closes.
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
    point: int = -1  # of contacts

    @property
    def rearms(self) -> str:
        """What must have passed before it fires again (location.Rules)."""
        if self.kind in ("gap", "touch"):
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

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the moments of events, by what a user calls them."""
        out: dict[str, tuple[int, ...]] = {}
        for w in self.watchers:
            name = f"at of {type(w.event).__name__}({w.name!r})"
            while w.moment >= 0 and name in out:
                name += " again"
            out |= {name: np.shape(self.moments[w.moment])} if w.moment >= 0 else {}
        return out

    def constants(self) -> dict[str, np.ndarray]:
        """Arrays (..., n) that are constant during a run: the moments of events [s]; that of the end is not missed."""
        if not self.moments:
            return {}
        at = np.stack(np.broadcast_arrays(*(np.asarray(x, float) for x in self.moments)), axis=-1)
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
        sides = [(c.a.at, c.b.at) for c in self.model.contacts for _ in range(c.n_points)]
        needed = tuple(
            self.bodies_at(sides[w.point]) if w.kind == "touch" else self.bodies_of(w.switch) if waiting else ()
            for w, waiting in zip(self.watchers, waits, strict=True)
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
        out[:, self.absent_dofs] = 0.0
        return out

    @property
    def absent_dofs(self) -> list[int]:
        """The degrees of freedom of the bodies that are not there at the start, with all that they carry."""
        return sorted({i for body in self.begins_absent for i in dofs_of(self.model, body)})

    @property
    def begins_absent(self) -> list[str]:
        """Names of the bodies that are not there at the start."""
        return [body for body, present in zip(self.bodies, self.begins_present, strict=True) if not present]

    def dofs_of(self, body: str) -> list[int]:
        """The degrees of freedom of a body that comes and goes, with all that it carries."""
        return dofs_of(self.model, body)

    def switches_on(self, body: int) -> list[int]:
        """Numbers of the switches that hold a body that comes and goes, or what it carries."""
        carried = carried_by(self.model, self.bodies[body])
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
            return {}, dict.fromkeys(dofs_of(self.model, name), 0.0)
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

    @property
    def touches(self) -> slice:
        """The watchers of contact points, one after the other; none where impacts are not located."""
        places = [j for j, w in enumerate(self.watchers) if w.kind == "touch"]
        return slice(places[0], places[-1] + 1) if places else slice(0, 0)

    def bodies_at(self, frames: Sequence[str]) -> tuple[int, ...]:
        """Numbers of the bodies that come and go which carry one of these frames."""
        carried = [carried_by(self.model, body) for body in self.bodies]
        owners = {body_of(self.model, name) for name in frames}
        return tuple(b for b, names in enumerate(carried) if names & owners)

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


def _bounds_moment(w: Watcher) -> bool:
    """Whether a watcher is a grasp that bounds the moment about its normal."""
    return isinstance(w.event, Grasp) and w.event.torsion is not None and not math.isinf(w.event.torsion)


_NO_MOMENT = "; torsion=math.inf leaves moments about the normal out"


def word_of(model: Model, name: str) -> str:
    """What something that closes is called: "loop" or "coupling"."""
    return "coupling" if any(c.name == name for c in model.couplings) else "loop"
