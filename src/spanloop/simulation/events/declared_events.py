"""From the events that users write, and the limits of joints, to the switches and watchers of a run."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spanloop.errors import InputError, UnsupportedError, nearest
from spanloop.loops.closure_errors import mechanism_of
from spanloop.model import Model
from spanloop.simulation.events.coming_bodies import body_of, carried_by
from spanloop.simulation.events.endings import Limit, limits_of
from spanloop.simulation.events.kinds import Appear, Attach, End, Event, Grasp, OneSided, Release, Vanish
from spanloop.simulation.events.kinds import Stop as StopEvent
from spanloop.simulation.events.switches import STOP, Switch, Switching, Watcher, word_of
from spanloop.simulation.traced_kernels import arguments

_EVER = 1e9  # s before zero: a moment that is past at any start


def switching_of(
    model: Model,
    events: Any,
    limits: str,
    active_loops: Iterable[str] | None,
    closures: str,
    touches: Sequence[str] = (),
) -> tuple[Switching | None, Any]:
    """What changes during a run, None if nothing does; and the events that only end it, as `events_of` takes them.

    active_loops: names of the switches that are on at the start, if the user says so. closures: how loops are closed.
    touches: names of the contact points whose impacts are located.
    """
    listed = _listed(events)
    stops = _stops(model, listed, limits)
    ends = {x.name: x.when for x in listed if isinstance(x, End)}
    if len(ends) == len(listed) and not stops and not touches and not any(_takes_forces(*x) for x in ends.items()):
        return None, (ends or None) if isinstance(events, list | tuple) else events
    if not isinstance(events, list | tuple) and events is not None:
        named = events if isinstance(events, Mapping) else {getattr(events, "__name__", "event"): events}
        listed = [End(name, when) for name, when in named.items()]
    if closures != "project":
        what = "limits='stop' needs" if stops and not listed else "events that change the mechanism need"
        what = "contacts='events' needs" if touches and not listed and not stops else what
        raise UnsupportedError(f"simulate: {what} closures='project'; closures is {closures!r}")
    return _Maker(model, listed, stops, limits, active_loops, touches).made(), None


def _stops(model: Model, events: list[Event], limits: str) -> list[tuple[Limit, int]]:
    """Limits of joints that are stops, with their DoF; joints of several DoF have springs instead."""
    named = set().union(*(stopped_joints(model, x) for x in events if isinstance(x, StopEvent)))
    return [
        (x, dof) for x, dof in limits_of(model) if _single(model, x.joint) and (limits == "stop" or x.joint in named)
    ]


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

    def __init__(
        self, model: Model, events: list[Event], stops: list, limits: str, active_loops: Any, touches: Sequence[str]
    ):
        self.model, self.events, self.limits, self.touches = model, events, limits, touches
        self.stops = stops
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
        self.watchers += [Watcher("touch", name, point=k) for k, name in enumerate(self.touches)]
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
            what = word_of(self.model, name)
            raise InputError(f"{kind}({name!r}): this {what} is not switchable; declare it with switchable=True")
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
        carried = carried_by(self.model, name)
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
        raise InputError(f"OneSided({event.loop!r}): row is {row}; expected 0{f' ... {count - 1}' * (count > 1)}")
    return row
