"""A step with events: its calls in one repetition, trial after trial (location.py), and what happens between trials.

After a trial at whose end something fires, and before the rest of the step:

    switch      switches and bodies change, frames are captured, what cannot close is found
    impact      velocities jump as the closed rows demand; impulses, and energy given up, row by row
    let_go      one-sided switches that the impact would pull open, and the impact happens without them
    settle      what bounced opens again
    contacts    points that touch take their impulses (contacts/contact_step.py)
    project     velocity and acceleration with the rows that are closed now
    forces      of all rows, where a watcher reads them
    watch       the watchers' values here

The first four are the functions of changes.py, which has their arrays; f are the forces of rows [N m, N].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spanloop.compiler.lower import Call, Log, Repeat, When
from spanloop.compiler.lower.schedule import Item, following
from spanloop.contacts.contact_arrays import FORCES, TORQUES
from spanloop.math.scalar import absolute, where
from spanloop.math.vector3 import total
from spanloop.simulation.events import location
from spanloop.simulation.events.changes import Changes
from spanloop.simulation.events.switches import Switching
from spanloop.simulation.events.watched_values import values_and_rates

if TYPE_CHECKING:
    from spanloop.simulation.integrators.step_schedule import ScheduleBuilder
    from spanloop.simulation.system import System

IN_PLACE = ("on", "active", "captured", "present", "armed", "ending", "share", "third", "third.at")
MOVES = ("q", "v", "loops", "q.rest", "v.rest", "contact.f", "contact.gap", "contact.left",
         "contact.force", "contact.tau")  # fmt: skip

Arrays = Mapping[str, Sequence[Any]]


def state_sizes(switching: Switching, system_sizes: Mapping[str, int]) -> dict[str, int]:
    """What a run with events carries from step to step beside q and v."""
    n = len(switching.watchers)
    known = {
        "on": len(switching.switches),
        "armed": n,
        "ending": 1,
        "share": 1,
        "g": n,
        "r": n,
        "third": n,
        "third.at": 1,
    }
    known |= {name: system_sizes.get(name, 0) for name in ("active", "captured", "present")}
    return {name: size for name, size in known.items() if size}


def logged_sizes(system: System) -> dict[str, int]:
    """The arrays of a row of the log, and their sizes."""
    switching, model = system.switching, system.model
    assert switching is not None
    rows = switching.mechanism.n_rows if switching.switches else 0
    known = {"t": 1, "fired": len(switching.watchers), "q": model.nq, "v.hit": model.nv, "v": model.nv}
    known |= {"q.was": model.nq, "v.was": model.nv} if switching.bodies else {}
    known |= {"impulse": rows, "lost": rows, "on": len(switching.switches)}
    if system.contacts:
        size = system.contacts.n * system.contacts.B
        known |= {"contact.p": size, "contact.f": size, "contact.lost": system.contacts.n}
    known |= {name: system.sizes.get(name, 0) for name in ("active", "captured", "present", "u", "z")}
    return {name: size for name, size in known.items() if size}


class LocatedStep:
    """Makes the calls of a step with events from those of an integrator's step."""

    def __init__(self, builder: ScheduleBuilder, switching: Switching):
        self.s, self.switching, self.system = builder, switching, builder.system
        self.n, self.rows = len(switching.watchers), switching.mechanism.n_rows
        self.moves = [n for n in MOVES if n in builder.layout]  # what parts change
        self.sizes = state_sizes(switching, self.system.sizes)
        self.changes = Changes(self.system, switching)

    def calls(self, body: list[Any], waits: Sequence[str]) -> tuple[Any, ...]:
        """The whole step; body: the calls of one trial. waits: arrays that are positive if one does not converge."""
        begin = self._begin()
        turn = [self._holds(), *body, *self._sparingly(self.after_trial()), self._check(waits)]
        log = Log("event", tuple(logged_sizes(self.system)))
        always = self.s.begin if self.s.linearize else ()  # the length of the trial is in them
        between = (self._decide(), *always, When(tuple(self.between()), "event"))
        return begin, Repeat(tuple(turn), "trying", location.MOST, between, log), self._end(), self._halt()

    def after_trial(self) -> list[Call]:
        """The watchers' values at the end of a trial."""
        return [*self._forces("t.end", following("q"), following("v"), "f.next"), self._watch_at_end()]

    def between(self) -> list[Item]:
        """What happens between trials, where something fired."""
        s = self.s
        calls: list[Item] = [self._switch()]
        if self.switching.switches:
            calls += [*self._impacts(), self._settle()]
        if s.contacts is not None:
            calls += s.contacts.impact("q", "v", "event")
        return calls + [*s.begin, *self._forces("t", "q", s.velocity, "f"), *self._watch_at_start()]

    # ---- trials

    def _holds(self) -> Call:
        """`held` is positive where a switch is on."""

        def compute(x):
            return ([total(x["on"]) - 0.5 if self.switching.switches else -1.0],), ()

        return self.s.traced_call("holds", ("on",) if self.switching.switches else (), {"held": 1}, compute)

    def _sparingly(self, calls: list[Call]) -> list[Call | When]:
        """The calls with that for forces skipped where no switch is on, if only watchers of switches read them."""
        reads_always = [w for w in self.switching.watchers if w.needs_forces and (w.takes_forces or w.switch < 0)]
        if not self.switching.needs_forces or reads_always:
            return list(calls)

        def none(x):
            return ([0.0] * self.rows,), ()

        def keep(x):
            return ([where(x["held"][0] > 0.0, f, 0.0) for f in x["f.next"]],), ()

        forces, *others = calls
        empty = self.s.traced_call("no_forces", (), {"f.next": self.rows}, none)
        masked = self.s.traced_call("of_held", ("held", "f.next"), {"f.next": self.rows}, keep)
        return [empty, When((forces, masked), "held"), *others]

    def _begin(self) -> Call:
        def compute(x):
            found = location.begin(x, self.n)
            return tuple(found[name] for name in location.BEGUN), ()

        return self.s.traced_call("part", ("t", "h", "share"), dict.fromkeys(location.BEGUN, 1), compute)

    def _forces(self, t: str, q: str, v: str, f: str) -> list[Call]:
        """Forces of all rows, if watchers read them."""
        if not self.switching.needs_forces:
            return []
        s, expected = self.s, (TORQUES,) if self.system.contacts else ()
        names = ("t", "q", "v", "u", "z", *self.system.parameters, *expected)
        sizes = self.system.sizes | dict.fromkeys(expected, s.nv)
        plan = s.shared("forces", names, {n: sizes[n] for n in names}, self._row_forces)
        s.sizes[f] = self.rows
        acting = tuple(following(n) if t == "t.end" else n for n in expected)  # of contacts: those of the last step
        return [Call(plan, (t, q, v, "u", "z", *self.system.parameters, *acting), (f,))]

    def _row_forces(self, x) -> tuple[tuple, Sequence]:
        f, _ = self.system.row_forces(x)  # the demands are those of the acceleration
        return (f,), ()

    def _watch_at_end(self) -> Call:
        names = {"t": "t.end", "q": following("q"), "v": following("v"), "f": "f.next", "gaps": "contact.free"}
        return self._watch(names, following("g"), following("r"))

    def _watch_at_start(self) -> list[Call]:
        """The watchers' values after an event; where there is none they stay as they are."""

        def compute(x):
            return tuple(
                [where(x["event"][0] > 0.5, a, b) for a, b in zip(x[f"{n}.here"], x[n], strict=True)] for n in "gr"
            ), ()

        names = {"t": "t", "q": "q", "v": self.s.velocity, "f": "f", "gaps": "contact.gap"}
        watch = self._watch(names, "g.here", "r.here")
        take = self.s.traced_call("take", ("event", "g.here", "r.here", "g", "r"), {"g": self.n, "r": self.n}, compute)
        return [watch, take]

    def _watch(self, names: Mapping[str, str], g: str, r: str) -> Call:
        def compute(x):
            return values_and_rates(self.system, x), ()

        known = {"t": 1, "q": self.s.nq, "v": self.s.nv, "f": self.rows if self.switching.needs_forces else 0}
        known["gaps"] = self.system.contacts.n if self.system.contacts and self._locates else 0
        sizes = {name: size for name, size in known.items() if size}
        sizes |= {name: self.system.sizes[name] for name in self.system.parameters}
        plan = self.s.shared("watch", tuple(sizes), sizes, compute)
        self.s.sizes.update({g: self.n, r: self.n})
        return Call(plan, tuple(names.get(name, name) for name in sizes), (g, r))

    @property
    def _locates(self) -> bool:
        """Whether impacts of contacts are located."""
        return self.switching.touches != slice(0, 0)

    @property
    def _rules(self) -> location.Rules:
        dtype = self.s.dtype
        return replace(self.switching.rules, resolved=location.RESOLVED[dtype], slack=location.SLACK[dtype])

    def _check(self, waits: Sequence[str]) -> Call:
        sizes, rules = location.checked(self.n), self._rules
        moves = [n for n in self.moves if n not in FORCES]  # forces of contacts may have any size

        def compute(x):
            found = location.check(x, rules, moves, waits)
            return tuple(found[name] for name in sizes), ()

        more = ("share", "armed", "g", "r", following("g"), "ending", "tries", "turns", "to", "h.grid")
        reads = (*(n for n in sizes if n != "failed"), *more, *map(following, moves), *self._on, *waits)
        return self.s.traced_call("check", reads, sizes, compute)

    def _end(self) -> Call:
        sizes, rules = location.ended(self.n), self._rules

        def compute(x):
            found = location.end(x, rules)
            return tuple(found[name] for name in sizes), ()

        return self.s.traced_call("end", (*sizes, "done", "g", following("g")), sizes, compute)

    @property
    def _on(self) -> tuple[str, ...]:
        return tuple(name for name in ("on", "present") if name in self.sizes)

    def _decide(self) -> Call:
        sizes, rules = location.decided(self.n) | {name: self.s.sizes[name] for name in self.moves}, self._rules

        def compute(x):
            found = location.decide(x, rules, self.moves)
            return tuple(found[name] for name in sizes), ()

        more = ("failed", "t.grid", "h.grid", "g", "r", following("g"), *map(following, self.moves))
        return self.s.traced_call("decide", (*sizes, *more, *self._on), sizes, compute)

    def _halt(self) -> Call:
        def compute(x):
            return ([where(absolute(x["ending"][0]) > 0.5, -1.0, 1.0)],), ()

        return self.s.traced_call("halt", ("ending",), {"halt": 1}, compute)

    # ---- what happens between trials

    def _switch(self) -> Call:
        names = [n for n in ("on", "active", "captured", "present") if n in self.sizes]
        writes = {n: self.sizes[n] for n in names} | {"q": self.s.nq, "v": self.s.nv, "v.hit": self.s.nv, "ending": 1}
        writes["fired"] = self.n
        if self.switching.bodies:
            writes |= {"q.was": self.s.nq, "v.was": self.s.nv}
        if self.switching.switches:
            writes["restitution"] = len(self.switching.mechanism.switched_rows)
        constants = [n for n in self.system.constants if n not in writes]
        reads = ("fired", "event", "turns", "h.grid", "q", "v", "ending", *names, *constants)
        return self._change("switch", reads, writes, self.changes.switched)

    def _impacts(self) -> list[Call]:
        """The impact; where it pulls at another one-sided switch that was closed, the impact without that one."""
        reads = ("q", "v", "event", "ending", "restitution", *self.system.parameters)
        writes = {"v": self.s.nv, "impulse": self.rows, "lost": self.rows, "struck": self.rows, "ending": 1}
        impact = self._change("impact", reads, writes, self.changes.impact)
        return [impact, self._let_go(), impact] if self.changes.lets_go else [impact]

    def _let_go(self) -> Call:
        writes = {"on": self.sizes["on"], "fired": self.n, "armed": self.n}
        writes |= {"active": self.sizes["active"], "v": self.s.nv}
        reads = ("on", "fired", "armed", "impulse", "struck", "v.hit", "h.grid")
        captured = [name for name in ("captured",) if name in self.sizes]
        return self._change("let_go", (*reads, *captured), writes, self.changes.let_go)

    def _settle(self) -> Call:
        writes = {"on": self.sizes["on"], "active": self.sizes["active"], "armed": self.n}
        reads = ("on", "armed", "restitution", "event", "q", "v", *self.system.parameters)
        return self._change("settle", reads, writes, self.changes.settle)

    def _change(self, name: str, reads: Sequence[str], writes: Mapping[str, int], compute: Callable) -> Call:
        """A call of one of the functions of `Changes`."""

        def chosen(x):
            found = compute(x)
            return tuple(found[n] for n in writes), ()

        return self.s.traced_call(name, reads, writes, chosen)
