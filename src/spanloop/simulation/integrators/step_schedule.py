"""The schedule of one step: an integrator's calls on named arrays, with closures, memory and events.

A step reads q and v (with closed loops the projected velocity, v.closed) and writes the next ones. What follows is the
same for every integrator: positions are projected to the closed loops, memory is updated, events are evaluated. A run
carries one row of numbers from step to step:

| name | numbers | meaning |
|---|---|---|
| q, v | nq, nv | state |
| loops | 2 or 1 | largest closure error after any step; smallest margin to a singular position, if loops are closed |
| z | | memory of controllers and actuators |
| g | | values of the events after the last step |
| q.rest, v.rest | nq, nv | what sums lost (float32) |
| tracked, tracked.rest | | statistics of quantities so far (simulation/tracking); what their sums lost (float32) |
| others | | of events that change the mechanism (events/located_step.py) |
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spanloop.compiler.lower import (
    Block,
    Call,
    LoopedCalls,
    Plan,
    Repeat,
    Schedule,
    Stage,
    When,
    unrolled,
    with_demands_in_output,
)
from spanloop.compiler.lower.schedule import Item, following
from spanloop.contacts import contact_arrays
from spanloop.contacts.contact_arrays import TORQUES
from spanloop.contacts.contact_step import ContactStep
from spanloop.joints import JointKind
from spanloop.math.scalar import where
from spanloop.simulation.controllers import traced
from spanloop.simulation.events.endings import Events
from spanloop.simulation.events.located_step import IN_PLACE, LocatedStep, state_sizes
from spanloop.simulation.minimal import step as minimal
from spanloop.simulation.system import ROUNDS, System

OPEN = 1e-6  # rad, or of the loop's length: a step after which a loop is open by more fails
ACTING, ROW_FORCES = "tau.acting", "row.forces"  # torques at joints (nv), forces of closure rows (n_rows)
LOOSE = 1e-3  # the same of redundant rows, which the model's own numbers may leave open


@dataclass(frozen=True)
class StateLayout:
    """Names and sizes of the arrays of one run's row of state, in order."""

    sizes: Mapping[str, int]

    @staticmethod
    def of(system: System, events: Events, dtype: str) -> StateLayout:
        """The layout of a simulation."""
        nq, nv = system.model.nq, system.model.nv
        sizes = {"q": nq, "v": nv}
        if system.has_loops:
            sizes["loops"] = 2 if system.keeps_closed else 1
        if system.applied.memory:
            sizes["z"] = system.applied.memory
        if len(events):
            sizes["g"] = len(events)
        if system.contacts:
            sizes |= contact_arrays.state_sizes(system.contacts, nv) | {contact_arrays.WHY: 2}
        if system.switching and system.locates:
            sizes |= state_sizes(system.switching, system.sizes)
        if system.tracked:
            sizes["tracked"] = system.tracked.width
        if dtype == "float32":
            sizes |= {"q.rest": nq, "v.rest": nv}
            if system.tracked and system.tracked.integrals:
                sizes["tracked.rest"] = len(system.tracked.integrals)
        return StateLayout(sizes)

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return sum(self.sizes.values())

    @cached_property
    def places(self) -> dict[str, slice]:
        """Where each array is in a row."""
        out, at = {}, 0
        for name, size in self.sizes.items():
            out[name] = slice(at, at + size)
            at += size
        return out

    def __contains__(self, name: str) -> bool:
        return name in self.sizes


class ScheduleBuilder:
    """Collects the calls of a step.

    linearize: of implicit steps: their arrays (implicit.linearized) from the state at the start.
    compact: corrections of positions and of velocities are calls of one plan, and accelerations of another, at the
    start of a step too: half the code, and a fifth more operations in a step. `begin` then also fills ACTING and, with
    loops, ROW_FORCES. Of explicit steps, of trees and of loops that are projected.
    unrolled: calls on whole arrays alone, also where accelerations of long trees would be loops over links.
    """

    def __init__(
        self,
        system: System,
        events: Events,
        dtype: str,
        linearize: Callable | None = None,
        compact: bool = False,
        unrolled: bool = False,
    ):
        self.compact = compact and linearize is None and (system.projects or not system.has_loops)
        self.system, self.events, self.dtype, self.linearize = system, events, dtype, linearize
        self.layout = StateLayout.of(system, events, dtype)
        self.nq, self.nv = system.model.nq, system.model.nv
        self.velocity = "v.closed" if system.keeps_closed else "v"
        self.landed = "q.after" if system.keeps_closed else following("q")  # what loops are closed from
        self.moved = "q.free" if system.contacts else self.landed  # what the integrator writes
        self.sped = "v.free" if system.contacts else "v.after" if system.minimal else following("v")
        self.compensated = "q.rest" in self.layout.sizes
        self.sizes: dict[str, int] = {**system.sizes, **self.layout.sizes}
        self.begin: list[Call] = []
        self._calls: list[Any] = []
        self._accelerate: Plan | None = None
        self._looped: LoopedCalls | None = None
        self._shared: dict[str, Plan] = {}
        self._waits: list[str] = []  # arrays of repetitions that are positive if one does not converge
        if self.compact:
            self._begin_compact()
        elif system.keeps_closed:
            self._begin()
        elif not unrolled and linearize is None and system.looped_forward:
            self._looped = LoopedCalls(system.looped_forward, Stage(self.sizes))
            self.begin += self._looped.numbers

    @cached_property
    def contacts(self) -> ContactStep | None:
        """The calls of contacts, if there are any."""
        system, armed = self.system, None
        if not system.contacts:
            return None
        if system.switching:
            places = system.switching.touches
            armed = Block("armed", places.stop - places.start, (), places.start) if places.stop else None
        stage = Stage(self.sizes, "contact.")
        ways = system.moved, system.turned, system.between
        return ContactStep(stage, system.contact_mechanics, *ways, armed, system.bodies_of_points, system.ends_at_jams)

    def call(self, name: str, reads: Sequence[str], writes: Mapping[str, int], compute: Callable) -> None:
        """Add compute({array: scalars}), which returns the scalars of every array that is written."""
        self._calls.append(self.traced_call(name, reads, writes, lambda x: (compute(x), ())))

    def accelerate(self, t: str, q: str, v: str, a: str, *stage: str) -> None:
        """Add a = acceleration at time t in state q, v; stage: toward, before, push of an implicit step."""
        if self._looped:
            self._calls += self._loops_over_links(self._looped, t, q, v, a)
            return
        if a == "a1" and self.begin:
            return  # computed with the velocity at the start of the step
        self._calls.append(self._acceleration(t, q, v, a, *stage))
        if self.system.minimal:
            solved = ("q.solved", "v.solved", "left")
            self.call("take", (*solved, "worst"), {q: self.nq, v: self.nv, "worst": 1}, minimal.take)

    def _loops_over_links(self, looped: LoopedCalls, t: str, q: str, v: str, a: str) -> list[Item]:
        """The same for a long tree: the torques, then forward dynamics link by link."""
        expected = (TORQUES,) if self.system.contacts else ()
        names = ("t", "q", "v", "u", "z", *self.system.parameters, *expected)
        sizes = self.system.sizes | dict.fromkeys(expected, self.nv)
        plan = self.shared("load", names, {n: sizes[n] for n in names}, lambda x: ((self.system.loading(x),), ()))
        self.sizes.update({"tau": self.nv, a: self.nv})
        call = Call(plan, (t, q, v, "u", "z", *self.system.parameters, *expected), ("tau",))
        return [call, *looped.items({"q": q, "v": v, "tau": "tau"}, a)]

    def _acceleration(self, t: str, q: str, v: str, a: str, *stage: str) -> Call:
        """The call of the plan of accelerations."""
        expected = (TORQUES,) if self.system.contacts else ()
        constants: tuple[str, ...] = (*self.system.parameters, *expected)
        more: tuple[str, ...] = ("pull", "extra", *("toward", "before", "push")[: len(stage)]) if stage else ()
        if stage:
            constants = (*constants, "pull", "extra", *stage)
        if self._accelerate is None:
            names = ("t", "q", "v", "u", "z", *self.system.parameters, *expected, *more)
            sizes = self.system.sizes | dict.fromkeys((*expected, *more), self.nv)
            self._accelerate = self._plan("accelerate", names, {n: sizes[n] for n in names}, self._answer)
        solved = {"q.solved": self.nq, "v.solved": self.nv, "left": 1} if self.system.minimal else {}
        if self.compact:
            solved = {ACTING: self.nv} | ({ROW_FORCES: self.system.n_rows} if self.system.finds_row_forces else {})
        self.sizes.update({a: self.nv, **solved})
        return Call(self._accelerate, (t, q, v, "u", "z", *constants), (a, *solved))

    def _answer(self, x) -> tuple[tuple, Sequence]:
        """The acceleration of a stage, and in minimal coordinates the state of all joints."""
        if self.system.minimal:
            return minimal.accelerate(self.system, x, OPEN)
        if self.compact:
            parts, pairs = self.system.observed(x)
            return tuple(parts), pairs
        a, pairs = self.system.accelerations(x)
        return (a,), pairs

    def advance(self, name: str, reads: Sequence[str], compute: Callable) -> None:
        """Add the end of the step: compute returns two displacements (nv), taken in turn, and a change of v (nv)."""
        v, after = self.velocity, {self.moved: self.nq, self.sped: self.nv}
        if self.compensated:
            self._advance_with_rests(name, reads, compute, after)
            return

        def whole(x):
            first, second, change = compute(x)
            return self._moved(x["q"], first, second), [a + b for a, b in zip(x[v], change, strict=True)]

        self.call(name, _once(*reads, "q", v), after, whole)

    @contextlib.contextmanager
    def repeat(self, left: str, most: int) -> Iterator[None]:
        """Repeat the calls made inside while array `left` is positive: what they carry ends at a fixed point."""
        before, self._calls = self._calls, []
        yield
        self._calls = [*before, Repeat(tuple(self._calls), left, most, is_fixed_point=True)]
        self._waits.append(left)

    def _begin(self) -> None:
        """Velocity and acceleration at the start of the step, loops closed."""

        def project(x):
            v, a, margin, pairs = self.system.projected_accelerations(x)
            return (a, v, [margin]), pairs

        def compute(x):
            more = linearize(self.system, x) if linearize else {}
            parts, pairs = project({**x, **more})
            return (*parts, *more.values()), pairs

        name, linearize = "project", self.linearize
        reads = ("t", "q", "v", "u", "z", *self.system.parameters, *((TORQUES,) if self.system.contacts else ()))
        writes = {"a1": self.nv, "v.closed": self.nv, "margin": 1}
        if self.system.minimal:
            writes |= {"T": self.nv * len(self.system.completion.actuated), "worst": 1}
            name, project = "begin", functools.partial(minimal.begin, self.system)
        if linearize:
            reads, writes = ("h", *reads), writes | dict.fromkeys(self.system.linear_arrays, self.nv)
        self.begin.append(self.traced_call(name, reads, writes, compute))

    def _begin_compact(self) -> None:
        """The same in calls of the plans of corrections and of accelerations."""
        system = self.system

        def rates(x):
            return (system.row_rates_that_close(x),), ()

        def close(x):
            pairs = [(system.least_margin, x["margin"][0])] if system.strict else []
            return ([a + b for a, b in zip(x["v"], x["change"], strict=True)],), pairs

        if not system.projects:
            self.begin.append(self._acceleration("t", "q", "v", "a1"))
            return
        rows = {"rates": system.n_rows}
        self.begin.append(self.traced_call("rates", ("q", "v", *system.parameters), rows, rates))
        self.begin.append(self._correction("q", "rates", "margin"))
        self.begin.append(self.traced_call("project", ("v", "change", "margin"), {"v.closed": self.nv}, close))
        self.begin.append(self._acceleration("t", "q", "v.closed", "a1"))

    def _correction(self, q: str, error: str, margin: str) -> Call:
        """change (nv) = what takes errors of the rows away at q, and the margin there."""
        system, names = self.system, ("q", "error", *self.system.parameters)
        sizes = {"q": self.nq, "error": system.n_rows} | {n: system.sizes[n] for n in system.parameters}

        def compute(x):
            delta, margin = system.correction(x)
            return (delta, [margin]), ()

        self.sizes.update({"change": self.nv, margin: 1})
        return Call(self.shared("correct", names, sizes, compute), (q, error, *system.parameters), ("change", margin))

    def _close_compact(self) -> list[Call]:
        """Positions projected to the closed loops by ROUNDS calls of the plan of corrections."""
        system, rows, calls = self.system, self.system.n_rows, list[Call]()
        sizes = {"q": self.nq} | {n: system.sizes[n] for n in system.parameters}
        errors = self.shared("errors", tuple(sizes), sizes, lambda x: ((system.errors_that_close(x),), ()))
        self.sizes.update({"error": rows, "q.closer": self.nq})
        moves = self.shared(
            "move",
            ("q", "change"),
            {"q": self.nq, "change": self.nv},
            lambda x: ((system.moved(x["q"], x["change"]),), ()),
        )
        q = self.landed
        for _ in range(ROUNDS):
            calls.append(Call(errors, (q, *system.parameters), ("error",)))
            calls.append(self._correction(q, "error", "margin.end"))
            calls.append(Call(moves, (q, "change"), ("q.closer",)))
            q = "q.closer"
        return [*calls, Call(errors, (q, *system.parameters), ("error",))]

    def _complete(self) -> None:
        """Positions and velocities of all joints from the actuated ones."""
        reads = ("q.after", "v.after", "T", "worst", "loops", "margin", *self.system.parameters)
        writes = {following("q"): self.nq, following("v"): self.nv, following("loops"): 2}
        self._calls.append(self.traced_call("end", reads, writes, lambda x: minimal.end(self.system, x, OPEN)))

    def _close(self) -> None:
        """Project positions to the closed loops; skipped where all can be open and are (located_step.py: `held`)."""
        skips = self.system.locates and self.system.all_switchable

        def loops(x, left):
            error, margin = x["loops"]
            return [where(error < left, left, error), where(x["margin"][0] < margin, x["margin"][0], margin)]

        def compute(x):
            if self.compact:
                q = list(x["q.closer"])
                left, kept = (self.system.openness_of(x["error"], kept=only) for only in (False, True))
            else:
                q, left = self.system.closed_position({**x, "q": x[self.landed]})
                kept = self.system.openness({**x, "q": q}, kept=True)
            if skips:
                held = x["held"][0] > 0.0
                q = [where(held, a, b) for a, b in zip(q, x[self.landed], strict=True)]
                left, kept = where(held, left, 0.0), where(held, kept, 0.0)
            return (q, loops(x, left)), [(kept, OPEN), (left, LOOSE)]

        stage = ("extra",) if self.linearize else ()
        reads: tuple[str, ...] = (self.landed, "loops", "margin", *stage, *self.system.parameters)
        before = self._close_compact() if self.compact else []
        if self.compact:
            reads = (*((self.landed,) if skips else ()), "q.closer", "error", "loops", "margin")
        writes = {following("q"): self.nq, following("loops"): 2}
        if not skips:
            self._calls += [*before, self.traced_call("close", reads, writes, compute)]
            return
        self.sizes["held"] = 1
        self.call("open", (self.landed, "loops", "margin"), writes, lambda x: (list(x[self.landed]), loops(x, 0.0)))
        self._calls.append(When((*before, self.traced_call("close", ("held", *reads), writes, compute)), "held"))

    def _measure(self) -> None:
        """Measure how far loops have opened that nothing brings back."""

        def compute(x):
            error, left = x["loops"][0], self.system.openness({**x, "q": x[self.landed]})
            return ([where(error < left, left, error)],)

        self.call("measure", (self.landed, "loops", *self.system.parameters), {following("loops"): 1}, compute)

    def _update_memory(self) -> None:
        """Update the memory of controllers and actuators."""

        t, h, q, v = self._whole_step

        def compute(x):
            at = {"t": [x[t][0] + x[h][0]], "h": x[h], "q": x["q.next"], "v": x["v.next"]}
            before = {"t": x[t], "q": x[q], "v": x[v]}
            return (self.system.applied.update({**at, "u": x["u"], "z": x["z"]}, before),)

        reads = (t, h, "q.next", "v.next", "u", "z", q, v)
        self.call("memory", reads, {following("z"): self.sizes["z"]}, compute)

    @property
    def _whole_step(self) -> tuple[str, str, str, str]:
        """Arrays of time, length, q and v at the start of the whole step."""
        if self.system.locates:
            return "t.grid", "h.grid", "q.grid", "v.grid"
        return "t", "h", "q", self.velocity

    def _keep_start(self) -> None:
        """Keep q and v at the start of a step, whose parts change them."""
        names = {"q.grid": self.nq, "v.grid": self.nv}
        self.call("keep", ("q", self.velocity), names, lambda x: (list(x["q"]), list(x[self.velocity])))

    def _evaluate_events(self) -> None:
        """Evaluate the events, and halt where one is no longer positive."""

        def compute(x):
            at = {"t": [x["t"][0] + x["h"][0]], "q": x["q.next"], "v": x["v.next"], "u": x["u"], "z": x["z"]}
            now = self.events.values(at)
            return now, [_halt(a, b) for a, b in zip(x["g"], now, strict=True)]

        n = len(self.events)
        reads = ("t", "h", "q.next", "v.next", "u", "z", "g")
        self.call("events", reads, {following("g"): n, "halt": n}, compute)

    def _track(self) -> None:
        """Add the state at the start of the step to the statistics: the first calls, before parts of it change that."""
        tracked, after, width = self.system.tracked, following("tracked"), self.sizes["tracked"]

        def state(x):
            return self.system, {**x, "v": x[self.velocity]}

        def terms(x):
            return (tracked.with_rests(tracked.terms(*state(x)), x["tracked.rest"]),), ()

        def lost(x):
            return (tracked.rests(x["tracked"], x["tracked.terms"], x[after]),), ()

        reads = ("t", "h", "q", self.velocity, "u", "z", *self.system.parameters, "tracked")
        if "tracked.rest" not in self.layout:
            calls = [self.traced_call("track", reads, {after: width}, lambda x: ((tracked.next(*state(x)),), ()))]
        else:  # three calls, as in _advance_with_rests
            sums, rests = ("tracked", "tracked.terms"), {following("tracked.rest"): len(tracked.integrals)}
            calls = [
                self.traced_call("track", (*reads, "tracked.rest"), {"tracked.terms": width}, terms),
                self.traced_call(
                    "track.add", sums, {after: width}, lambda x: ((tracked.summed(*(x[n] for n in sums)),), ())
                ),
                self.traced_call("track.lost", (*sums, after), rests, lost),
            ]
        self._calls[:0] = calls

    def schedule(self) -> Schedule:
        """The schedule of the whole step."""
        system = self.system
        if self.contacts is not None:
            self._calls += self.contacts.calls(self.moved, self.sped, self.velocity, self.landed, following("v"))
        if system.minimal:
            self._complete()
        elif system.projects:
            self._close()
        elif system.has_loops:
            self._measure()
        halts = bool(len(self.events) or system.locates)
        if system.switching and system.locates:
            body, self._calls = self._calls, []
            if system.sizes["z"]:
                self._keep_start()
            self._calls += LocatedStep(self, system.switching).calls(body, self._waits)
        if system.sizes["z"]:
            self._update_memory()
        if len(self.events):
            self._evaluate_events()
        if system.tracked:
            self._track()
        return Schedule(
            "rollout",
            self.sizes,
            tuple(self.layout.sizes),
            system.constants,
            ("u",) if system.sizes["u"] else (),
            ("q", self.velocity, *(("z",) if system.sizes["z"] else ()), *system.switched, *system.contact_arrays),
            tuple(self.begin),
            tuple(self._calls),
            "halt" if halts else None,
            tuple(n for n in (*IN_PLACE, contact_arrays.WHY) if n in self.layout),
            tuple(n for n in (*contact_arrays.FORCES, "tracked", "tracked.rest") if n in self.layout),
        )

    def _advance_with_rests(self, name: str, reads: Sequence[str], compute: Callable, after: Mapping[str, int]) -> None:
        """Compensated sums of many small changes [Kahan 1965].

        Three calls: in one, the tracer would see that nothing is lost in exact arithmetic.
        """
        v = self.velocity

        def changes(x):
            first, second, change = compute(x)
            dq = self._sums(first, second)
            dq = [None if d is None else d + r for d, r in zip(dq, x["q.rest"], strict=True)]
            turned = self._moved(x["q"], first, second)
            turned = [y if d is None else 0.0 for d, y in zip(dq, turned, strict=True)]
            return (
                [0.0 if d is None else d for d in dq],
                turned,
                [a + b for a, b in zip(change, x["v.rest"], strict=True)],
            )

        def add(x):
            added = self._sums([0.0] * self.nv, [0.0] * self.nv)
            q = [
                y if s is None else a + d
                for s, a, d, y in zip(added, x["q"], x["q.change"], x["q.turned"], strict=True)
            ]
            return q, [a + b for a, b in zip(x[v], x["v.change"], strict=True)]

        def lost(x):
            added = self._sums([0.0] * self.nv, [0.0] * self.nv)
            rows = zip(added, x["q"], x["q.change"], x[self.moved], strict=True)
            q = [0.0 if s is None else d - (b - a) for s, a, d, b in rows]
            return q, [d - (b - a) for a, d, b in zip(x[v], x["v.change"], x[self.sped], strict=True)]

        sizes = {"q.change": self.nq, "q.turned": self.nq, "v.change": self.nv}
        self.call(name, _once(*reads, "q", v, "q.rest", "v.rest"), sizes, changes)
        self.call("add", ("q", v, "q.change", "q.turned", "v.change"), after, add)
        rests = {following("q.rest"): self.nq, following("v.rest"): self.nv}
        self.call("lost", ("q", v, "q.change", "v.change", self.moved, self.sped), rests, lost)

    def _moved(self, q, first, second) -> list:
        """q ⊕ first ⊕ second; where that is a sum, the sum is taken first."""
        model, out = self.system.model, []
        for joint, sums in self._joints(first, second):
            at, s = tuple(q[model.q_slice(joint.name)]), model.v_slice(joint.name)
            if sums is not None:
                out += joint.kind.plus(at, sums)
            else:
                out += joint.kind.plus(joint.kind.plus(at, tuple(first[s])), tuple(second[s]))
        return out

    def _sums(self, first, second) -> list:
        """first + second for every coordinate (nq) that moves by a sum, None for the others."""
        return [
            x
            for joint, sums in self._joints(first, second)
            for x in (sums if sums is not None else [None] * joint.kind.nq)
        ]

    def _joints(self, first, second):
        """Joints that move, each with first + second where its coordinates are moved by a sum."""
        for joint in self.system.model.joints:
            if joint.kind.nv:
                s = self.system.model.v_slice(joint.name)
                sums = tuple(a + b for a, b in zip(first[s], second[s], strict=True)) if adds(joint.kind) else None
                yield joint, sums

    def traced_call(self, name: str, reads: Sequence[str], writes: Mapping[str, int], compute: Callable) -> Call:
        self.sizes.update(writes)
        return Call(self._plan(name, reads, {n: self.sizes[n] for n in reads}, compute), tuple(reads), tuple(writes))

    def shared(self, name: str, reads: Sequence[str], sizes: Mapping[str, int], compute: Callable) -> Plan:
        """The plan of compute, made once for all calls of this name."""
        if name not in self._shared:
            self._shared[name] = self._plan(name, reads, sizes, compute)
        return self._shared[name]

    def _plan(self, name: str, reads: Sequence[str], sizes: Mapping[str, int], compute: Callable) -> Plan:
        def flat(x):
            parts, pairs = compute(x)
            return [y for part in parts for y in part], (), [a < b for a, b in pairs]

        inputs = tuple((n, sizes[n]) for n in reads)
        return with_demands_in_output(traced("what acts on the mechanism", lambda: unrolled(name, inputs, (0,), flat)))


def _halt(before: Any, now: Any) -> Any:
    """−1 where an event is no longer positive, 1 elsewhere; `now` is a plain number where the event is a constant."""
    if isinstance(now, int | float):
        return 1.0 if now > 0.0 else where(before > 0.0, -1.0, 1.0)
    return where((before > 0.0) & ~(now > 0.0), -1.0, 1.0)


def _once(*names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def adds(kind: JointKind) -> bool:
    """Whether a displacement is added to the joint's coordinates."""
    return type(kind).plus is JointKind.plus
