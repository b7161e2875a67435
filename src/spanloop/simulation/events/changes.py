"""What an event changes, on any scalar: switches, captured frames, bodies, and velocities by an impact.

`switched` applies what fired. `impact` changes velocities as the closed rows demand; `let_go` opens one-sided switches
that it would pull, and the impact happens without them; `settle` opens what bounced.

| name | numbers | meaning |
|---|---|---|
| fired | watchers | 1 for those that fire now; `event` is 1 if one does |
| on | switches | 1 or 0 |
| restitution | switched rows | of this impact |
| v.hit | nv | velocity before the impact |
| q.was, v.was | nq, nv | the state before bodies come or go, where some do |
| impulse, lost | rows | impulses [N m s, N s], energy given up [J] |
| struck | rows | rates before the impact [rad/s, m/s] |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spanloop.math.scalar import absolute, where
from spanloop.math.vector3 import total
from spanloop.simulation.events import location
from spanloop.simulation.events.kinds import Appear, Attach
from spanloop.simulation.events.switches import INSIDE, OPEN, Switching
from spanloop.simulation.events.watched_values import gap_rates, push, weight
from spanloop.topology.captured_frames import captured_placement, own_placement

if TYPE_CHECKING:
    from spanloop.simulation.system import System

PULLED = 1e-6  # of all impulses, and of the weight over a step: what is pulled with more lets go
BEYOND = 1e-9  # rad or m: a joint that is further beyond its limit is held where it is
SLOW = 20.0  # m/s² or rad/s²: times the step, the speed of what does not bounce in a restless step

Arrays = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Changes:
    """What events change in a system."""

    system: System
    switching: Switching

    @property
    def lets_go(self) -> bool:
        """Whether an impact may pull at one-sided switches other than the one that closes."""
        kinds = [w.kind for w in self.switching.watchers]
        return "pull" in kinds and (kinds.count("pull") > 1 or "attach" in kinds)

    # ---- what fired

    def switched(self, x: Arrays) -> dict[str, list[Any]]:
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
        for j, w, fires in fired:
            if w.kind == "appear" and (inside := self.system.overlaps(x, w.body)) is not False:
                out["ending"] = [where(fires & inside, float(j + 1), out["ending"][0])]
        rates = gap_rates(self.system, x)
        bounces = [self._bounce(x, j, fires, rates[j]) for j, _, fires in fired]
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

    def _bounce(self, x: Arrays, j: int, fires: Any, rate: Any) -> Any:
        """The restitution of a gap that closes, where the impact is fast enough; None where there is none."""
        w = self.switching.watchers[j]
        if w.kind != "gap" or self.switching.switches[w.switch].restitution == 0.0:
            return None
        switch = self.switching.switches[w.switch]
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

    # ---- impacts

    def impact(self, x: Arrays) -> dict[str, list[Any]]:
        """Velocities after the rows have closed that are on, impulses, energy given up and rates before, row by row.

        Where the impact has no answer, the run ends there.
        """
        delta, impulse, rates, pairs = self.system.impact(x)
        happens = (x["event"][0] > 0.5) & ~(absolute(x["ending"][0]) > 0.5)
        ok = total(absolute(y) for y in (*delta, *impulse)) < location.LARGEST  # not so where one is no number
        for a, b in pairs:
            ok = ok & (a < b)
        ending = where(happens & _not(ok), location.FAILED, x["ending"][0])
        happens = happens & ok
        e = dict(zip(self.switching.mechanism.switched_rows, x["restitution"], strict=True))
        lost = [-0.5 * (p * (1.0 - e.get(r, 0.0)) * u) for r, (p, u) in enumerate(zip(impulse, rates, strict=True))]
        return {
            "v": [where(happens, a + b, a) for a, b in zip(x["v"], delta, strict=True)],
            "impulse": [where(happens, y, 0.0) for y in impulse],
            "lost": [where(happens, y, 0.0) for y in lost],
            "struck": rates,
            "ending": [ending],
        }

    def let_go(self, x: Arrays) -> dict[str, list[Any]]:
        """Open the one-sided switches that an impact would pull, with the velocities before it; they stay off."""
        switching = self.switching
        on, fired, armed = list(x["on"]), list(x["fired"]), list(x["armed"])
        least = PULLED * (weight(switching.model) * x["h.grid"][0] + total(absolute(y) for y in x["impulse"]))
        fast = self._is_fast(x)
        for j, w in enumerate(switching.watchers):
            if w.kind == "pull":
                pulled = push(self.system, switching.switches[w.switch], x, x["impulse"]) < -least
                pulled = pulled & fast & (on[w.switch] > 0.5)
                on[w.switch], fired[j] = where(pulled, 0.0, on[w.switch]), where(pulled, 1.0, fired[j])
                for gap in switching.rules.disarms[j]:
                    armed[gap] = where(pulled, 0.0, armed[gap])
        return {"on": on, "fired": fired, "armed": armed, "active": switching.active(on), "v": list(x["v.hit"])}

    def settle(self, x: Arrays) -> dict[str, list[Any]]:
        """Switches that bounced open again; those that let go and close nevertheless are watched again."""
        switching, rates = self.switching, gap_rates(self.system, x)
        on, armed = list(x["on"]), list(x["armed"])
        for j, w in enumerate(switching.watchers):
            if w.kind != "gap":
                continue
            switch = switching.switches[w.switch]
            if switch.restitution > 0.0:
                bounced = x["restitution"][switch.places[switch.watched]] > 0.0
                on[w.switch] = where(bounced, 0.0, on[w.switch])
            closes = (x["event"][0] > 0.5) & ~(on[w.switch] > 0.5) & (rates[j] < -location.CLOSING)
            armed[j] = where(closes, 1.0, armed[j])
        return {"on": on, "active": switching.active(on), "armed": armed}

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


def _not(condition: Any) -> Any:
    return not condition if isinstance(condition, bool) else ~condition
