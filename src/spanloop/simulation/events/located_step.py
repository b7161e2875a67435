"""A step with events: its calls in one repetition, trial after trial (location.py), and what happens between trials.

After a trial at whose end something fires, and before the rest of the step:

    switch      switches and bodies change, frames are captured, what cannot close is found
    impact      velocities jump as the closed rows demand; impulses, and energy given up, row by row
    let_go      one-sided switches that the impact would pull open, and the impact happens without them
    settle      what bounced opens again
    project     velocity and acceleration with the rows that are closed now
    forces      of all rows, where a watcher reads them
    watch       the watchers' values here

| name | numbers | meaning |
|---|---|---|
| on | switches | 1 or 0 |
| restitution | switched rows | of this impact |
| v.hit | nv | velocity before the impact |
| q.was, v.was | nq, nv | the state before bodies come or go, where some do |
| impulse, lost | rows | impulses [N m s, N s], energy given up [J] |
| struck | rows | rates before the impact [rad/s, m/s] |
| f | rows | forces [N m, N] |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spanloop.compiler.lower import Call, Log, Repeat, When
from spanloop.compiler.lower.schedule import following
from spanloop.math.scalar import absolute, where
from spanloop.math.vector3 import total
from spanloop.simulation.events import location
from spanloop.simulation.events.kinds import Appear, Attach
from spanloop.simulation.events.switching import INSIDE, OPEN, Switching
from spanloop.simulation.events.watched_values import gap_rates, push, values_and_rates, weight
from spanloop.topology.captured_frames import captured_placement, own_placement

if TYPE_CHECKING:
    from spanloop.simulation.integrators.step_schedule import ScheduleBuilder
    from spanloop.simulation.system import System

PULLED = 1e-6  # of the weight over a step: a one-sided switch with a larger impulse the wrong way lets go
BEYOND = 1e-9  # rad or m: a joint that is further beyond its limit is held where it is
SLOW = 20.0  # m/s² or rad/s²: times the step, the speed of what does not bounce in a restless step
IN_PLACE = ("on", "active", "captured", "present", "armed", "ending", "share", "third", "third.at")

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
    known |= {name: system.sizes.get(name, 0) for name in ("active", "captured", "present", "u", "z")}
    return {name: size for name, size in known.items() if size}


class LocatedStep:
    """Makes the calls of a step with events from those of an integrator's step."""

    def __init__(self, builder: ScheduleBuilder, switching: Switching):
        self.s, self.switching, self.system = builder, switching, builder.system
        self.n, self.rows = len(switching.watchers), switching.mechanism.n_rows
        self.moves = [n for n in ("q", "v", "loops", "q.rest", "v.rest") if n in builder.layout]  # what parts change
        self.sizes = state_sizes(switching, self.system.sizes)

    def calls(self, body: list[Any], waits: Sequence[str]) -> tuple[Any, ...]:
        """The whole step; body: the calls of one trial. waits: arrays that are positive if one does not converge."""
        begin = self._begin()
        turn = [self._holds(), *body, *self._sparingly(self.after_trial()), self._check(waits)]
        log = Log("event", tuple(logged_sizes(self.system)))
        always = self.s.begin if self.s.linearize else ()  # the length of the trial is in them
        between = (self._decide(), *always, When(tuple(self.between()), "event"))
        return begin, Repeat(tuple(turn), "trying", location.MOST, between, log), self._halt()

    def after_trial(self) -> list[Call]:
        """The watchers' values at the end of a trial."""
        return [*self._forces("t.end", following("q"), following("v"), "f.next"), self._watch_at_end()]

    def between(self) -> list[Call]:
        """What happens between trials, where something fired."""
        s, calls = self.s, [self._switch()]
        if self.switching.switches:
            calls += [*self._impacts(), self._settle()]
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
        s, names = self.s, ("t", "q", "v", "u", "z", *self.system.parameters)
        plan = s.shared("forces", names, {n: self.system.sizes[n] for n in names}, self._row_forces)
        s.sizes[f] = self.rows
        return [Call(plan, (t, q, v, "u", "z", *self.system.parameters), (f,))]

    def _row_forces(self, x) -> tuple[tuple, Sequence]:
        f, _ = self.system.row_forces(x)  # the demands are those of the acceleration
        return (f,), ()

    def _watch_at_end(self) -> Call:
        names = {"t": "t.end", "q": following("q"), "v": following("v"), "f": "f.next"}
        return self._watch(names, following("g"), following("r"))

    def _watch_at_start(self) -> list[Call]:
        """The watchers' values after an event; where there is none they stay as they are."""

        def compute(x):
            return tuple(
                [where(x["event"][0] > 0.5, a, b) for a, b in zip(x[f"{n}.here"], x[n], strict=True)] for n in "gr"
            ), ()

        watch = self._watch({"t": "t", "q": "q", "v": self.s.velocity, "f": "f"}, "g.here", "r.here")
        take = self.s.traced_call("take", ("event", "g.here", "r.here", "g", "r"), {"g": self.n, "r": self.n}, compute)
        return [watch, take]

    def _watch(self, names: Mapping[str, str], g: str, r: str) -> Call:
        def compute(x):
            return values_and_rates(self.system, x), ()

        known = {"t": 1, "q": self.s.nq, "v": self.s.nv, "f": self.rows if self.switching.needs_forces else 0}
        sizes = {name: size for name, size in known.items() if size}
        sizes |= {name: self.system.sizes[name] for name in self.system.parameters}
        plan = self.s.shared("watch", tuple(sizes), sizes, compute)
        self.s.sizes.update({g: self.n, r: self.n})
        return Call(plan, tuple(names.get(name, name) for name in sizes), (g, r))

    @property
    def _rules(self) -> location.Rules:
        dtype = self.s.dtype
        return replace(self.switching.rules, resolved=location.RESOLVED[dtype], slack=location.SLACK[dtype])

    def _check(self, waits: Sequence[str]) -> Call:
        sizes, rules = location.checked(self.n), self._rules

        def compute(x):
            found = location.check(x, rules, self.moves, waits)
            return tuple(found[name] for name in sizes), ()

        more = ("g", "r", following("g"), "ending", "tries", "turns", "to", "h.grid", *map(following, self.moves))
        reads = (*(n for n in sizes if n != "failed"), *more, *self._on, *waits)
        return self.s.traced_call("check", reads, sizes, compute)

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

        def compute(x):
            found = self._switched(x)
            return tuple(found[name] for name in writes), ()

        constants = [n for n in self.system.constants if n not in writes]
        reads = ("fired", "event", "turns", "h.grid", "q", "v", "ending", *names, *constants)
        return self.s.traced_call("switch", reads, writes, compute)

    def _switched(self, x: Arrays) -> dict[str, list[Any]]:
        """Switches, bodies and frames after what fired: what appears is there first, what vanishes goes last."""
        switching, was = self.switching, (list(x["q"]), list(x["v"]))
        out: dict[str, list[Any]] = {n: list(x[n]) for n in ("q", "v", "ending", "on", "captured", "present") if n in x}
        on = out.get("on", [])
        restitution = [0.0] * len(switching.mechanism.switched_rows)
        fired = [(j, w, x["fired"][j] > 0.5) for j, w in enumerate(switching.watchers)]
        for j, w, fires in fired:
            if w.kind == "appear":
                self._come_or_go(out, j, fires & ~(x["present"][w.body] > 0.5))
        x = {**x, **{n: list(out[n]) for n in ("q", "v", "present") if n in out}}
        bounces = [self._bounce(x, j, fires) for j, _, fires in fired]
        waiting = self._waiting(x, bounces)
        for j, w, fires in fired:
            if w.kind in ("end", "limit") or (w.kind == "grasp" and w.event.on_break == "end"):  # type: ignore[union-attr]
                out["ending"] = [where(fires, float(j + 1), out["ending"][0])]
            elif w.kind in ("attach", "gap"):
                fires = fires & _not(waiting[j])
                refused = fires & self._refused(x, j)
                out["ending"] = [where(refused, float(j + 1), out["ending"][0])]
                fires = fires & _not(refused)
                on[w.switch] = where(fires, 1.0, on[w.switch])
                self._capture(x, out, j, fires)
                if bounces[j] is not None:
                    place = switching.switches[w.switch].places[switching.switches[w.switch].watched]
                    restitution[place] = where(fires, bounces[j], restitution[place])
            elif w.kind in ("release", "pull", "grasp"):
                on[w.switch] = where(fires, 0.0, on[w.switch])
        for j, w, fires in fired:
            if w.kind == "vanish":
                self._come_or_go(out, j, fires)
        out["fired"] = [
            where(late, 0.0, y) if late is not False else y for late, y in zip(waiting, x["fired"], strict=True)
        ]
        if "on" in out:
            self._leave_out(x, out)
            on = out["on"]
            out["active"] = switching.active(on)
            out["restitution"] = restitution
            for j in range(len(switching.watchers)):
                unknown = switching.reads_undetermined(j, on) > 0.5
                out["ending"] = [where(unknown & (x["event"][0] > 0.5), float(j + 1), out["ending"][0])]
        return {**out, "v.hit": out["v"], "q.was": was[0], "v.was": was[1]}

    def _leave_out(self, x: Arrays, out: dict[str, list[Any]]) -> None:
        """Where the run ends, nothing else opens or closes at that moment."""
        ends = (x["event"][0] > 0.5) & (absolute(out["ending"][0]) > 0.5)
        for j, w in enumerate(self.switching.watchers):
            if w.switch >= 0:
                other = ends & (absolute(out["ending"][0] - float(j + 1)) > 0.5)
                out["fired"][j] = where(other, 0.0, out["fired"][j])
        for name in ("on", "captured"):
            if name in out:
                out[name] = [where(ends, a, b) for a, b in zip(x[name], out[name], strict=True)]

    def _refused(self, x: Arrays, j: int) -> Any:
        """Whether a loop that attaches is open, or closes too fast, or the body that it holds is not there."""
        w = self.switching.watchers[j]
        event, switch = w.event, self.switching.switches[w.switch]
        already = x["on"][w.switch] > 0.5
        refused: Any = False
        for body in self.switching.bodies_of(w.switch):
            refused = refused | ~(x["present"][body] > 0.5)
        x = self.switching.as_it_closes(j, x, self.system.mechanism_at(x))
        errors, lengths = self.system.row_errors(x), self.switching.mechanism.row_lengths
        for r in self.switching.must_be_closed(j):
            refused = refused | (absolute(errors[r]) > OPEN * lengths[r])
        if w.kind == "gap" and switch.one_sided and self.switching.bodies_of(w.switch):
            r = switch.rows[switch.watched]
            refused = refused | (switch.one_sided.sign * errors[r] < -INSIDE * lengths[r])
        if isinstance(event, Attach) and event.speed is not None:
            rates = self.system.row_rates(x)
            for r in switch.rows:
                refused = refused | (absolute(rates[r]) > event.speed)
        return refused & ~already if refused is not False else False

    def _capture(self, x: Arrays, out: dict[str, list[Any]], j: int, fires: Any) -> None:
        """What a switch holds from now on."""
        w = self.switching.watchers[j]
        switch = self.switching.switches[w.switch]
        if not switch.captures:
            return
        at = self.switching.captured_place(switch.name)
        if w.limit is not None:
            q = x["q"][w.limit.place]
            new = [where(w.limit.value(x["q"]) < -BEYOND, q, w.limit.bound)]
        elif isinstance(w.event, Attach) and not w.event.capture:
            new = own_placement(self.system.mechanism_at(x), switch.name)
        else:
            new = captured_placement(self.system.mechanism_at(x), x["q"], switch.name)
        fires = fires & ~(x["on"][w.switch] > 0.5)
        for k, y in enumerate(new):
            out["captured"][at + k] = where(fires, y, out["captured"][at + k])

    def _bounce(self, x: Arrays, j: int, fires: Any) -> Any:
        """The restitution of a gap that closes, where the impact is fast enough; None where there is none."""
        w = self.switching.watchers[j]
        if w.kind != "gap" or self.switching.switches[w.switch].restitution == 0.0:
            return None
        switch = self.switching.switches[w.switch]
        rate = gap_rates(self.system, x)[j]
        fast = (rate < -switch.resting) & ((x["turns"][0] < location.RESTLESS) | (rate < -SLOW * x["h.grid"][0]))
        return where(fires & fast, switch.restitution, 0.0)

    def _waiting(self, x: Arrays, bounces: Sequence[Any]) -> list[Any]:
        """Whether each waits for others that close at this moment with less restitution; then it fires at once.

        An impact along rows of one restitution never gains energy, one along rows of several may.
        """
        least: Any = 1.0
        for j, w in enumerate(self.switching.watchers):
            if w.kind in ("attach", "gap"):
                closes = (x["fired"][j] > 0.5) & ~(x["on"][w.switch] > 0.5)
                e = 0.0 if bounces[j] is None else bounces[j]
                least = where(closes & (least > e), e, least)
        return [False if e is None else e > least for e in bounces]

    def _come_or_go(self, out: dict[str, list[Any]], j: int, fires: Any) -> None:
        """A body appears with its pose and velocity, or vanishes; its loops open first."""
        w, switching = self.switching.watchers[j], self.switching
        event = w.event if isinstance(w.event, Appear) else None
        out["present"][w.body] = where(fires, 1.0 if event else 0.0, out["present"][w.body])
        q, v = switching.placement_of(w.body, event)
        for i, y in q.items():
            out["q"][i] = where(fires, y, out["q"][i])
        for i, y in v.items():
            out["v"][i] = where(fires, y, out["v"][i])
        for k in switching.switches_on(w.body):
            out["on"][k] = where(fires, 0.0, out["on"][k])

    def _impacts(self) -> list[Call]:
        """The impact; where it pulls at another one-sided switch that was closed, the impact without that one."""
        impact, kinds = self._impact(), [w.kind for w in self.switching.watchers]
        several = "pull" in kinds and (kinds.count("pull") > 1 or "attach" in kinds)
        return [impact, self._let_go(), impact] if several else [impact]

    def _let_go(self) -> Call:
        switching, share = self.switching, PULLED * weight(self.switching.model)

        def compute(x):
            on, fired, armed = list(x["on"]), list(x["fired"]), list(x["armed"])
            least = share * x["h.grid"][0] + PULLED * total(absolute(y) for y in x["impulse"])
            fast = self._is_fast(x)
            for j, w in enumerate(switching.watchers):
                if w.kind == "pull":
                    pulled = push(self.system, switching.switches[w.switch], x, x["impulse"]) < -least
                    pulled = pulled & fast & (on[w.switch] > 0.5)
                    on[w.switch], fired[j] = where(pulled, 0.0, on[w.switch]), where(pulled, 1.0, fired[j])
                    for gap in switching.rules.disarms[j]:
                        armed[gap] = where(pulled, 0.0, armed[gap])
            return (on, fired, armed, switching.active(on), list(x["v.hit"])), ()

        writes = {"on": self.sizes["on"], "fired": self.n, "armed": self.n}
        writes |= {"active": self.sizes["active"], "v": self.s.nv}
        reads = ("on", "fired", "armed", "impulse", "struck", "v.hit", "h.grid")
        captured = [name for name in ("captured",) if name in self.sizes]
        return self.s.traced_call("let_go", (*reads, *captured), writes, compute)

    def _is_fast(self, x: Arrays) -> Any:
        """Whether a one-sided switch closes with more than its resting speed: slower impacts open no other one.

        What attaches does.
        """
        fast: Any = False
        for j, w in enumerate(self.switching.watchers):
            if w.kind == "attach":
                fast = fast | (x["fired"][j] > 0.5)
            if w.kind == "gap":
                switch = self.switching.switches[w.switch]
                struck = absolute(x["struck"][switch.rows[switch.watched]])
                fast = fast | ((x["fired"][j] > 0.5) & (struck > switch.resting))
        return fast

    def _impact(self) -> Call:
        def compute(x):
            delta, impulse, rates, pairs = self.system.impact(x)
            happens = (x["event"][0] > 0.5) & ~(absolute(x["ending"][0]) > 0.5)
            ok = total(absolute(y) for y in (*delta, *impulse)) < location.LARGEST  # not so where one is no number
            for a, b in pairs:
                ok = ok & (a < b)
            ending = where(happens & _not(ok), location.FAILED, x["ending"][0])
            happens = happens & ok
            v = [where(happens, a + b, a) for a, b in zip(x["v"], delta, strict=True)]
            e = dict(zip(self.switching.mechanism.switched_rows, x["restitution"], strict=True))
            lost = [-0.5 * (p * (1.0 - e.get(r, 0.0)) * u) for r, (p, u) in enumerate(zip(impulse, rates, strict=True))]
            impulse, lost = ([where(happens, y, 0.0) for y in row] for row in (impulse, lost))
            return (v, impulse, lost, rates, [ending]), ()

        reads = ("q", "v", "event", "ending", "restitution", *self.system.parameters)
        writes = {"v": self.s.nv, "impulse": self.rows, "lost": self.rows, "struck": self.rows, "ending": 1}
        return self.s.traced_call("impact", reads, writes, compute)

    def _settle(self) -> Call:
        """Switches that bounced open again; those that let go and close nevertheless are watched again."""
        switching = self.switching
        gaps = [(j, w) for j, w in enumerate(switching.watchers) if w.kind == "gap"]

        def compute(x):
            on, armed = list(x["on"]), list(x["armed"])
            rates = gap_rates(self.system, x)
            for j, w in gaps:
                switch = switching.switches[w.switch]
                if switch.restitution > 0.0:
                    bounced = x["restitution"][switch.places[switch.watched]] > 0.0
                    on[w.switch] = where(bounced, 0.0, on[w.switch])
                closes = (x["event"][0] > 0.5) & ~(on[w.switch] > 0.5) & (rates[j] < -location.CLOSING)
                armed[j] = where(closes, 1.0, armed[j])
            return (on, switching.active(on), armed), ()

        sizes = {"on": self.sizes["on"], "active": self.sizes["active"], "armed": self.n}
        more = ("restitution", "event", "q", "v", *self.system.parameters)
        return self.s.traced_call("settle", ("on", "armed", *more), sizes, compute)


def _not(condition: Any) -> Any:
    return not condition if isinstance(condition, bool) else ~condition
