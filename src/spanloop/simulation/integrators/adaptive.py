"""Adaptive steps: SciPy's integrators on the compiled right-hand side, projected to the closed loops between steps.

The integrator's state is (q, v), with dq/dt from the joints' rates. When quaternions have left unit length or loops
have opened by more than a part of the tolerance, the state is projected and the integrator continues from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from spanloop.errors import InputError, UnsupportedError
from spanloop.simulation.events.outcomes import undefined
from spanloop.simulation.inputs import CallbackError
from spanloop.simulation.integrators.adaptive_events import Happened, HostEvents, Step, TrialError
from spanloop.simulation.integrators.integrator import Integrator
from spanloop.simulation.integrators.right_hand_side import RightHandSide, minimal_right_hand_side, right_hand_side
from spanloop.simulation.problem import End, Problem, Samples
from spanloop.simulation.system import SINGULAR
from spanloop.simulation.termination import CLOSE, RESOLVED, end_reason, event_met, met_at_start, singular_end
from spanloop.simulation.time_loop import ProgressBar, grid, positive
from spanloop.trajectory import EndReason, Outcome, Trajectory

ACCURACY = 1e-9
_SAMPLES = 1000  # if no time between samples is given
_EXPLICIT = ("DOP853", "RK45", "RK23")
_DRIFT = 0.1  # of the tolerance: how far a state may leave the manifold
_LONG_DRIFT = 100.0  # the same for methods that restart with short steps after each correction
_MOST = 10_000_000  # steps


def integrate(
    problem: Problem, integrator: Integrator, duration: float, step: float | None, sample: float | None
) -> Trajectory:
    """The motion with steps as the tolerance allows; step: the longest [s]."""
    name, tolerance = integrator.name, ACCURACY if integrator.accuracy is None else integrator.accuracy
    if problem.applied.memory:
        raise InputError(f"integrator {name!r} has no steps for delays and memory to count; use 'rk4' or 'midpoint'")
    if problem.inputs.values is not None and problem.inputs.values.shape[-2] > 1:
        raise InputError(f"integrator {name!r} has no steps to give inputs for; give one row, or a controller")
    longest = np.inf if step is None else positive(step, "step")
    gap = positive(duration, "duration") / _SAMPLES if sample is None else sample
    times = grid(duration, gap, None, 1, "sample")
    t = problem.start + times.h * np.arange(times.steps + 1)
    bar = ProgressBar(len(problem) * times.steps, times.h, 1, integrator.progress)
    runs = []
    for k in range(len(problem)):
        one = _Run(problem, k, t, tolerance, name, longest)
        one.go(partial(_draw, bar, k * times.steps))
        runs.append(one)
    bar.erase()
    rows = np.array([r.rows for r in runs])
    last = max(r.count for r in runs)
    nq = problem.model.nq
    u = np.array([r.u for r in runs])[:, None]
    switched = {n: np.array([r.switched[n] for r in runs])[:, :last] for n in problem.system.switched}
    memory, active = np.empty((len(problem), last, 0)), switched.get("active")
    samples = Samples(t[:last], rows[:, :last, :nq], rows[:, :last, nq:], memory, u, active=active)
    settings = {"integrator": name, "accuracy": tolerance, "steps": sum(r.steps for r in runs)}
    settings["dtype"] = integrator.dtype
    residual = np.array([r.residual for r in runs]) if problem.system.has_loops else None
    if switched and problem.system.has_loops:
        settings["margin"] = problem.margin(samples.q, switched)
    log = [row for r in runs if r.events is not None for row in r.events.log]
    return problem.trajectory(samples, [r.end for r in runs], u[:, 0], settings, residual, log)


def _draw(bar: ProgressBar, before: int, done: int) -> None:
    bar.draw(before + done)


class _Run:
    """One run of an adaptive integrator."""

    def __init__(self, problem: Problem, k: int, t: np.ndarray, tolerance: float, method: str, longest: float):
        self.problem, self.k, self.t, self.tolerance = problem, k, t, tolerance
        self.method, self.longest = method, longest
        self.nq = problem.model.nq
        switches = problem.system.switching is not None
        self.events = HostEvents(problem, k, tolerance) if switches else None
        self.functions = self._right_hand_side()
        self.rows = np.full((len(t), self.nq + problem.model.nv), np.nan)
        sizes = {n: problem.system.sizes[n] for n in problem.system.switched}
        self.switched = {n: np.full((len(t), size), np.nan) for n, size in sizes.items()}
        self.count, self.steps, self.residual = 0, 0, 0.0
        self.u = self.functions.inputs
        self.end = End(Outcome(EndReason.FINISHED, f"finished after {t[-1]:.6g} s", float(t[-1])))

    def go(self, report: Callable[[int], None]) -> None:
        """Integrate to the end; report(samples so far) is called after every step."""
        y = np.concatenate([self.problem.q[self.k], self.problem.v[self.k]])
        self._keep(0, y)
        values: np.ndarray | None = self._event_values(self.t[0], y)
        assert values is not None
        at_once = met_at_start(self.problem.events, values, float(self.t[0]))
        if at_once is not None:
            self.end = End(at_once)
            return
        solver = self._solver(self.t[0], y)
        try:
            while solver.status == "running":
                message = _stepped(solver)
                self.steps += 1
                if solver.status == "failed" or not np.isfinite(solver.y).all() or self.steps > _MOST:
                    self._fail(solver, message)
                    return
                dense, before, now = solver.dense_output(), solver.t_old, solver.t
                happened = self._happened(dense, before, now)
                if happened is not None:
                    if self._ended(happened):
                        return
                    solver = self._solver(happened.time, happened.y)
                    continue
                values = self._ends(dense, before, now, values)
                if values is None:
                    return
                self._sample(dense, now, solver.y)
                solver = self._closed(solver)
                report(self.count)
        except TrialError as error:
            self._refuse(error.t, error.y, None)
        except CallbackError as error:
            self.end = End(Outcome(EndReason.CONTROLLER, f"{error}. The run ended before", float(solver.t)))
        except KeyboardInterrupt:
            t = float(solver.t)
            self.end = End(Outcome(EndReason.INTERRUPTED, f"interrupted at t = {t:.6g} s", t))

    def _right_hand_side(self) -> RightHandSide:
        if self.problem.system.minimal:
            return minimal_right_hand_side(self.problem, self.k)
        return right_hand_side(self.problem, self.k, None if self.events is None else self.events.switched)

    def _happened(self, dense: Any, before: float, now: float) -> Happened | None:
        """The first event in a step, if there is one."""
        if self.events is None or not now > before:
            return None

        def at(t: float) -> np.ndarray:
            return self.functions.project(dense(t))[0]

        def arrive(t: float) -> None:
            self._sample(dense, np.nextafter(t, -np.inf), dense(t))

        return self.events.first(self._divided(before, now), dense, Step(at, arrive))

    def _divided(self, before: float, now: float) -> np.ndarray:
        """Times from one to another, no farther apart than samples: what is not positive that long is not missed."""
        gap = self.t[1] - self.t[0]
        return np.linspace(before, now, 1 + max(1, math.ceil((now - before) / gap * (1.0 - 1e-9))))

    def _ended(self, event: Happened) -> bool:
        """Whether the run ends with an event, or at its time."""
        outcome = event.outcome or self._singular(event)
        if outcome is not None:
            self.end = End(outcome, event.y[: self.nq], event.y[self.nq :], np.empty(0))
            return True
        if event.time < self.t[-1]:
            return False
        self._sample(lambda t: event.y, self.t[-1], event.y)
        return True

    def _singular(self, event: Happened) -> Outcome | None:
        """The outcome of a run whose loops lose rank as they close, where that is refused."""
        system = self.problem.system
        if self.events is None or not (system.strict and system.projects):
            return None
        margin = self.problem.margin_of(event.y[: self.nq], self.k, self.events.switched)
        return singular_end(self.problem, event.time, margin, self.events.x.get("on")) if margin < SINGULAR else None

    def _solver(self, t: float, y: np.ndarray) -> Any:
        options: dict[str, Any] = {"rtol": self.tolerance, "atol": self.tolerance, "max_step": self.longest}
        if self.method not in _EXPLICIT and self.functions.jacobian is not None:
            options["jac"] = self.functions.jacobian
        return getattr(_scipy(), self.method)(self.functions.rates, t, y, self.t[-1], **options)

    def _closed(self, solver: Any) -> Any:
        """The integrator, with its state projected if it has drifted."""
        explicit = self.method in _EXPLICIT
        y, left, drift = self.functions.project(solver.y)
        self.residual = max(self.residual, left)
        if drift <= (_DRIFT if explicit else _LONG_DRIFT) * self.tolerance or solver.status != "running":
            return solver
        if explicit:  # keeps no other state
            solver.y = y
            solver.f = self.functions.rates(solver.t, y)
            return solver
        return self._solver(solver.t, y)

    def _sample(self, dense: Any, now: float, y: np.ndarray) -> None:
        while self.count < len(self.t) and self.t[self.count] <= now * (1.0 + 1e-15):
            t = self.t[self.count]
            self._keep(self.count, y if t == now else dense(t))

    def _keep(self, number: int, y: np.ndarray) -> None:
        self.rows[number], left, _ = self.functions.project(y)
        for name, kept in self.switched.items():
            assert self.events is not None
            kept[number] = self.events.switched[name]
        self.residual = max(self.residual, left)
        self.count = number + 1

    def _event_values(self, t: float, y: np.ndarray) -> np.ndarray:
        if not len(self.problem.events):
            return np.empty(0)
        q, v = y[: self.nq], y[self.nq :]
        return self.problem.event_values(np.array([[t]]), q[None], v[None])[0]

    def _ends(self, dense: Any, before: float, now: float, values: np.ndarray) -> np.ndarray | None:
        """Values of the events that end a run after a step; None if one has ended it. values: those before it."""
        if not len(self.problem.events) or not now > before:
            return values
        times = self._divided(before, now)
        rows = np.ascontiguousarray(dense(times[1:]).T)
        found = self.problem.event_values(times[1:, None], rows[:, : self.nq], rows[:, self.nq :])
        every = np.concatenate([values[None], found])
        met = (every[:-1] > 0.0) & ~(every[1:] > 0.0)
        if not met.any():
            return found[-1]
        k = int(np.argmax(met.any(axis=1)))
        self._end_at_event(dense, times[k], times[k + 1], np.flatnonzero(met[k]).tolist())
        return None

    def _end_at_event(self, dense: Any, before: float, now: float, met: list[int]) -> None:
        found = []
        for j in met:
            low, high = before, now
            while high - low > RESOLVED * (now - before):
                middle = 0.5 * (low + high)
                if self._event_values(middle, dense(middle))[j] > 0.0:
                    low = middle
                else:
                    high = middle
            found.append((high, j))
        t, j = min(found)
        self._sample(dense, np.nextafter(t, 0.0), dense(t))
        y, _, _ = self.functions.project(dense(t))
        q, v = y[: self.nq], y[self.nq :]
        outcome = undefined(self.problem, float(t), q, v) or event_met(self.problem.events, j, float(t))
        self.end = End(outcome, q, v, np.empty(0))

    def _fail(self, solver: Any, message: str | None) -> None:
        t = float(solver.t_old if solver.t_old is not None else solver.t)
        y = self.rows[self.count - 1] if not np.isfinite(solver.y).all() else solver.y
        self._refuse(t, y, message)

    def _refuse(self, t: float, y: np.ndarray, message: str | None) -> None:
        """End the run at time t, state y, from which there is no step."""
        q, v = y[: self.nq], y[self.nq :]
        switched = self.events.switched if self.events is not None else {}
        refusal = self.problem.refusal(t, q, v, [], self.functions.inputs, self.k, 0.0, switched)
        margin = self.problem.margin_of(q, self.k, switched) if self.problem.system.projects else 1.0
        if end_reason(refusal) not in (EndReason.SINGULAR, EndReason.OPEN) and margin < CLOSE:
            on = None if self.events is None else self.events.x.get("on")
            self.end = End(singular_end(self.problem, t, margin, on))
            return
        delta = (self.t[1] - self.t[0]) * v
        further = np.array(self.problem.system.moved(q.tolist(), delta.tolist()), float)
        lost = undefined(self.problem, t, q, v) or undefined(self.problem, t, further, v) if refusal is None else None
        if lost is not None:
            self.end = End(lost)
            return
        text = refusal or message or "the motion was lost: numbers grew beyond bounds"
        self.end = End(Outcome(end_reason(refusal), f"at t = {t:.6g} s {text}", t))


def _stepped(solver: Any) -> str | None:
    """Take one step; why there is none, if it is known."""
    try:
        return solver.step()
    except CallbackError:
        raise
    except (ValueError, np.linalg.LinAlgError) as error:  # rates that are NaN, in a matrix
        if hasattr(error, "__notes__"):  # of a user's function
            raise
        solver.status = "failed"
        return None


def _scipy():
    try:
        import scipy.integrate as found
    except ImportError:
        raise UnsupportedError(
            "adaptive steps need SciPy: pip install scipy. Fixed steps (integrator='rk4') do not"
        ) from None
    return found
