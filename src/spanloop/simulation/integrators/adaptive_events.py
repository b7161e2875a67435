"""Events in adaptive steps: the calls of a step with events (events/located_step.py) on the host, one kernel each.

A trial of a step is the integrator's dense output at some time within it. Where an event happens is decided, and what
happens there is computed, by the same functions as inside compiled rollouts; then a new integrator begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spanloop.compiler.lower import Call
from spanloop.compiler.lower.schedule import array_of
from spanloop.compiler.runtime.kernel import Kernel
from spanloop.simulation.events import location
from spanloop.simulation.events.located_step import LocatedStep, logged_sizes, state_sizes
from spanloop.simulation.events.outcomes import outcome_of, too_many
from spanloop.simulation.events.switched_start import watch_key
from spanloop.simulation.integrators.right_hand_side import inputs_of_run
from spanloop.simulation.problem import Problem
from spanloop.simulation.time_loop import STEP
from spanloop.simulation.traced_kernels import kernel
from spanloop.trajectory import Outcome

RESOLVED = 1e-13  # of a step: how exactly an event is located
_RESTLESS = 40  # events within STEP seconds, after which what is slow does not bounce any more
_MOST = 200  # events within STEP seconds

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class HostPlan:
    """A kernel, and the sizes of the arrays that it fills, one after the other."""

    kernel: Kernel
    sizes: tuple[int, ...]

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """The arrays; None where there is no answer."""
        found = np.empty(sum(self.sizes))
        if not self.kernel.attempt([np.ascontiguousarray(x, float) for x in inputs], found):
            return None
        return [np.ascontiguousarray(x) for x in np.split(found, np.cumsum(self.sizes)[:-1])]


class HostSchedule:
    """What a step with events needs of a ScheduleBuilder, with kernels in place of the plans of a rollout."""

    begin: tuple[()] = ()  # an impact leaves velocities that fit the closed loops
    velocity = "v"
    dtype = "float64"
    layout = ("q", "v")
    contacts = None  # adaptive steps have none

    def __init__(self, problem: Problem):
        self.system = problem.system
        switching, self.nq, self.nv = self.system.switching, self.system.model.nq, self.system.model.nv
        assert switching is not None
        n, rows = len(switching.watchers), switching.mechanism.n_rows
        self.sizes = (
            (self.system.sizes | state_sizes(switching, self.system.sizes) | location.checked(n) | location.decided(n))
            | location.ended(n)
            | {"h.grid": 1}
        )
        self._counts = {"forces": (rows,), "watch": (n, n)}
        self._key, self._shared = watch_key(problem), dict[str, HostPlan]()

    def traced_call(self, name: str, reads: Sequence[str], writes: Mapping[str, int], compute: Callable) -> Call:
        """compute({array: scalars}) as a kernel that returns the scalars of every array that is written."""
        self.sizes.update(writes)
        plan: Any = self._plan(name, {n: self.sizes[n] for n in reads}, tuple(writes.values()), compute)
        return Call(plan, tuple(reads), tuple(writes))

    def shared(self, name: str, reads: Sequence[str], sizes: Mapping[str, int], compute: Callable) -> HostPlan:
        """The kernel of compute, made once for all calls of this name."""
        if name not in self._shared:
            self._shared[name] = self._plan(name, {n: sizes[n] for n in reads}, self._counts[name], compute)
        return self._shared[name]

    def _plan(self, name: str, sizes: Mapping[str, int], counts: tuple[int, ...], compute: Callable) -> HostPlan:
        def flat(x: Mapping[str, Sequence[Any]]) -> tuple[list[Any], Sequence[Any]]:
            parts, pairs = compute(x)
            return [y for part in parts for y in part], pairs

        return HostPlan(kernel(f"event_{name}", sizes, sum(counts), flat, self._key), counts)


@dataclass(frozen=True)
class Happened:
    """An event: its time [s], the state y = (q, v) after it, and the outcome if it ends the run."""

    time: float
    y: np.ndarray
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Step:
    """A step of the integrator: at(t) is its state at a time, on the closed loops; arrive(t) keeps samples before t."""

    at: Callable[[float], np.ndarray]
    arrive: Callable[[float], None]


class HostEvents:
    """The events of one run, step by step; `switched` has the arrays that they change and dynamics read.

    tolerance: of the integrator. A value that is positive by less than this share of its largest one does not arm its
    event again: rounding alone makes it positive.
    """

    def __init__(self, problem: Problem, k: int, tolerance: float):
        switching, schedule = problem.system.switching, HostSchedule(problem)
        assert switching is not None
        self.problem, self.k, self.inputs = problem, k, inputs_of_run(problem, k)
        self.count, self.rules = len(switching.watchers), replace(switching.rules, resolved=RESOLVED)
        step = LocatedStep(schedule, switching)  # type: ignore[arg-type]
        self.after_trial = step.after_trial()
        self.between = [c for c in step.between() if isinstance(c, Call)]  # all are: there are no contacts
        start = {n: x[k if len(x) > 1 else 0].astype(float) for n, x in problem.switched_start.items()}
        self.x: Arrays = {"z": np.zeros(0), **problem.constants_of(k), **start}
        self.switched = {n: self.x[n] for n in problem.system.switched}
        self.noise, self.largest = tolerance, np.abs(self.x["g"])
        self.log: list[np.ndarray] = []
        self.times: list[float] = []

    def first(self, times: np.ndarray, dense: Callable[[Any], np.ndarray], step: Step) -> Happened | None:
        """The first event between times (n,), which divide a step of the integrator; None if there is none."""
        g, r = self._watched(times[1:], dense(times[1:]).T)
        self.largest = np.fmax(self.largest, np.abs(g).max(axis=0))
        for t, end, values, rates in zip(times, times[1:], g, r, strict=False):
            quiet = bool((self.x["g"] > 0.0).all() and (values > 0.0).all() and self.x["armed"].all())
            if quiet:
                self.x["g"], self.x["r"] = values, rates
                continue
            found = self._located(float(t), float(end), step)
            if found is not None:
                return found
        return None

    def _watched(self, times: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and rates (n, watchers) at rows (n, nq + nv); NaN where there are none."""
        nq, n, x = self.problem.model.nq, len(times), dict(self.x)
        x |= {"t.end": times[:, None], "q.next": rows[:, :nq], "v.next": rows[:, nq:]}
        if any("u" in call.reads for call in self.after_trial):
            every = [self.inputs(float(t), y[:nq], y[nq:]) for t, y in zip(times, rows, strict=True)]
            x["u"] = np.array(every).reshape(n, -1)
        for call in self.after_trial:
            plan: Any = call.plan
            known = [x[array_of(place)] for place in call.reads]
            given = [np.ascontiguousarray(np.broadcast_to(y, (n, y.shape[-1]))) for y in known]
            found = np.split(plan.kernel.evaluate(*given), np.cumsum(plan.sizes)[:-1], axis=1)
            x |= dict(zip(map(array_of, call.writes), found, strict=True))
        return x["g.next"], x["r.next"]

    def _located(self, t: float, end: float, step: Step) -> Happened | None:
        """The first event from time t to time `end`, located; None if there is none."""
        x, nq = self.x, self.problem.model.nq
        y = step.at(t)
        x["q"], x["v"] = y[:nq], y[nq:]
        x |= _arrays(location.begin({"t": [t], "h": [end - t], "share": [0.0]}, self.count))
        x |= {"share": np.zeros(1), "third.at": np.zeros(1), "third": np.zeros(self.count)}  # nothing from before it
        for _ in range(location.MOST):
            self._try(step.at)
            x |= _arrays(location.check(_lists(x), self.rules, ("q", "v")))
            if not x["trying"][0] > 0.0:
                armed = x["armed"]
                x |= _arrays(location.end(_lists(x), self.rules))
                x["armed"] = np.where(x["g.next"] > self.noise * self.largest, x["armed"], armed)
                x["g"], x["r"] = x["g.next"], x["r.next"]
                return None
            x |= _arrays(location.decide(_lists(x), self.rules, ("q", "v")))
            if x["event"][0] > 0.5:
                step.arrive(float(x["t"][0]))
                return self._happened()
            if x["ending"][0] == location.FAILED:
                raise TrialError(float(x["t"][0]), np.concatenate([x["q"], x["v"]]))
        return Happened(float(x["t"][0]), y, too_many(float(x["t"][0]), end - t))

    def _try(self, at: Callable[[float], np.ndarray]) -> None:
        """The state at the end of a trial, and the watchers' values there; NaN where there are none."""
        x, nq, time = self.x, self.problem.model.nq, float(self.x["t.end"][0])
        y = at(time)
        x["q.next"], x["v.next"] = np.ascontiguousarray(y[:nq]), np.ascontiguousarray(y[nq:])
        x["u"] = self.inputs(time, x["q.next"], x["v.next"])
        if not self._call(self.after_trial):
            x["q.next"] = np.full(nq, np.nan)
            x["g.next"] = x["r.next"] = np.ones(self.count)

    def _call(self, calls: Sequence[Call]) -> bool:
        """Whether all calls have answers, which are then among the arrays."""
        for call in calls:
            plan: Any = call.plan
            found = plan([self.x[array_of(n)] for n in call.reads])
            if found is None:
                return False
            self.x |= dict(zip(map(array_of, call.writes), found, strict=True))
        return True

    def _happened(self) -> Happened:
        """What fired changes switches and velocities, and is logged."""
        x, t = self.x, float(self.x["t"][0])
        self.times = [s for s in self.times if t - s < STEP] + [t]
        x["turns"] = np.array([location.RESTLESS if len(self.times) > _RESTLESS else 0.0], float)
        x["u"], x["h.grid"] = self.inputs(t, x["q"], x["v"]), np.array([STEP])
        sizes = logged_sizes(self.problem.system)
        x |= {n: np.zeros(sizes[n]) for n in ("impulse", "lost") if n in sizes}
        goes_on = self._call(self.between)
        self.switched |= {n: x[n] for n in self.switched}
        self.log.append(np.concatenate([[float(self.k)], *(x[n] for n in sizes)])[None])
        y = np.concatenate([x["q"], x["v"]])
        if not goes_on:
            raise TrialError(t, y)
        return Happened(t, y, self._outcome(t))

    def _outcome(self, t: float) -> Outcome | None:
        number = round(float(self.x["ending"][0]))
        if number > 0:
            given = {n: self.x[n] for n in ("q", "v", "u", "z")}
            return outcome_of(self.problem, number - 1, t, given, self.switched, self.k)
        return too_many(t, STEP) if len(self.times) > _MOST else None


class TrialError(Exception):
    """No impact exists at time t, state y, or no state follows it."""

    def __init__(self, t: float, y: np.ndarray):
        super().__init__()
        self.t, self.y = t, y


def _lists(x: Arrays) -> dict[str, list[float]]:
    return {name: row.tolist() for name, row in x.items()}


def _arrays(x: Mapping[str, Sequence[Any]]) -> Arrays:
    return {name: np.array(row, float) for name, row in x.items()}
