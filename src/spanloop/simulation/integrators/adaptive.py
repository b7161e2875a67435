"""Adaptive steps: SciPy's integrators on the compiled right-hand side, brought back to the closed loops between steps.

The integrator's state is (q, v), with dq/dt from the joints' rates. When quaternions have left unit length or loops
have opened by more than a part of the tolerance, the state is brought back and the integrator goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from spanloop.errors import InputError, UnsupportedError
from spanloop.simulation.integrators.right_hand_side import slopes as general
from spanloop.simulation.minimal.right_hand_side import slopes as minimal
from spanloop.simulation.problem import Task
from spanloop.simulation.samples import End, Samples, State, gathered
from spanloop.simulation.termination import RESOLVED, condition_met
from spanloop.simulation.time_grid import grid
from spanloop.simulation.time_loop import Bar
from spanloop.trajectory import Outcome, Trajectory

ACCURACY = 1e-9
_SAMPLES = 1000  # if no time between samples is given
_EXPLICIT = ("DOP853", "RK45", "RK23")
_DRIFT = 0.1  # of the tolerance: how far a state may leave the manifold
_LONG_DRIFT = 100.0  # the same for methods that must start anew, with short steps, after each correction
_MOST = 10_000_000  # steps


def integrate(
    task: Task, duration: float, step: float | None, sample: float | None, method: str, accuracy, progress
) -> Trajectory:
    """The motion with steps as the tolerance allows; step: the longest that is taken [s]."""
    tolerance = ACCURACY if accuracy is None else accuracy
    if task.drive.memory:
        raise InputError(f"integrator {method!r} has no steps for delays and memory to count; use 'rk4' or 'midpoint'")
    if task.inputs.values is not None and task.inputs.values.shape[-2] > 1:
        raise InputError(f"integrator {method!r} has no steps to give inputs for; give one row, or a controller")
    times = grid(duration, sample if sample is not None else duration / _SAMPLES, None, 1)
    t = times.h * np.arange(times.steps + 1)
    longest = np.inf if step is None else grid(duration, step, None, 1).h
    bar = Bar(len(task) * times.steps, times.h, 1, progress)
    runs = []
    for k in range(len(task)):
        one = _Run(task, k, t, tolerance, method, longest)
        one.go(partial(_tell, bar, k * times.steps))
        runs.append(one)
    bar.end()
    rows = np.array([r.rows for r in runs])
    last = max(r.count for r in runs)
    nq = task.model.nq
    u = np.array([r.u for r in runs])[:, None]
    samples = Samples(t[:last], rows[:, :last, :nq], rows[:, :last, nq:], np.empty((len(task), last, 0)), u)
    settings = {"integrator": method, "accuracy": tolerance, "steps": sum(r.steps for r in runs)}
    residual = np.array([r.residual for r in runs]) if task.system.holds else None
    return gathered(task, samples, [r.end for r in runs], u[:, 0], settings, residual)


def _tell(bar: Bar, before: int, done: int) -> None:
    bar.tell(before + done)


class _Run:
    """One run."""

    def __init__(self, task: Task, k: int, t: np.ndarray, tolerance: float, method: str, longest: float):
        self.task, self.k, self.t, self.tolerance = task, k, t, tolerance
        self.method, self.longest = method, longest
        self.nq = task.model.nq
        self.functions = (minimal if task.system.minimal else general)(task, k)
        self.rows = np.full((len(t), self.nq + task.model.nv), np.nan)
        self.count, self.steps, self.residual = 0, 0, 0.0
        self.u = self.functions.inputs
        self.end = End(Outcome("finished", f"finished after {t[-1]:.6g} s", float(t[-1])))

    def go(self, tell: Callable[[int], None]) -> None:
        y = np.concatenate([self.task.q[self.k], self.task.v[self.k]])
        self._keep(0, y)
        watched = self._watched(0.0, y)
        solver = self._solver(0.0, y)
        try:
            while solver.status == "running":
                message = _stepped(solver)
                self.steps += 1
                if solver.status == "failed" or not np.isfinite(solver.y).all() or self.steps > _MOST:
                    self._lost(solver, message)
                    return
                dense, before, now = solver.dense_output(), solver.t_old, solver.t
                after = self._watched(now, solver.y)
                met = [j for j, (a, b) in enumerate(zip(watched, after, strict=True)) if a > 0.0 and not b > 0.0]
                if met:
                    self._halted(dense, before, now, met)
                    return
                self._sample(dense, now, solver.y)
                watched = after
                solver = self._closed(solver)
                tell(self.count)
        except KeyboardInterrupt:
            t = float(solver.t)
            self.end = End(Outcome("interrupted", f"interrupted at t = {t:.6g} s", t))

    # ---- steps

    def _solver(self, t: float, y: np.ndarray) -> Any:
        options: dict[str, Any] = {"rtol": max(self.tolerance, 3e-14), "atol": self.tolerance, "max_step": self.longest}
        if self.method not in _EXPLICIT and self.functions.jacobian is not None:
            options["jac"] = self.functions.jacobian
        return getattr(_scipy(), self.method)(self.functions.rates, t, y, self.t[-1], **options)

    def _closed(self, solver: Any) -> Any:
        """The integrator, after its state has been brought back if it has drifted."""
        explicit = self.method in _EXPLICIT
        y, left, drift = self.functions.back(solver.y)
        self.residual = max(self.residual, left)
        if drift <= (_DRIFT if explicit else _LONG_DRIFT) * self.tolerance or solver.status != "running":
            return solver
        if explicit:  # remembers nothing but this
            solver.y = y
            solver.f = self.functions.rates(solver.t, y)
            return solver
        return self._solver(solver.t, y)

    def _sample(self, dense: Any, now: float, y: np.ndarray) -> None:
        while self.count < len(self.t) and self.t[self.count] <= now * (1.0 + 1e-15):
            t = self.t[self.count]
            self._keep(self.count, y if t == now else dense(t))

    def _keep(self, number: int, y: np.ndarray) -> None:
        self.rows[number], left, _ = self.functions.back(y)
        self.residual = max(self.residual, left)
        self.count = number + 1

    # ---- ends

    def _watched(self, t: float, y: np.ndarray) -> np.ndarray:
        if not len(self.task.watch):
            return np.empty(0)
        q, v = y[: self.nq], y[self.nq :]
        return self.task.watched(np.array([[t]]), q[None], v[None])[0]

    def _halted(self, dense: Any, before: float, now: float, met: list[int]) -> None:
        found = []
        for j in met:
            low, high = before, now
            while high - low > RESOLVED * (now - before):
                middle = 0.5 * (low + high)
                if self._watched(middle, dense(middle))[j] > 0.0:
                    low = middle
                else:
                    high = middle
            found.append((high, j))
        t, j = min(found)
        self._sample(dense, np.nextafter(t, 0.0), dense(t))
        y, _, _ = self.functions.back(dense(t))
        self.end = End(condition_met(self.task.watch, j, float(t)), self._state(y))

    def _lost(self, solver: Any, message: str | None) -> None:
        t = float(solver.t_old if solver.t_old is not None else solver.t)
        y = self.rows[self.count - 1] if not np.isfinite(solver.y).all() else solver.y
        words = self.task.explain(t, y[: self.nq], y[self.nq :], [], self.functions.inputs, self.k)
        singular = "singular position" in words
        text = words or message or "the motion was lost: numbers grew beyond bounds"
        self.end = End(Outcome("singular" if singular else "not_finite", f"at t = {t:.6g} s {text}", t))

    def _state(self, y: np.ndarray) -> State:
        return State(y[: self.nq], y[self.nq :], np.empty(0))


def _stepped(solver: Any) -> str | None:
    """One step; why there is none, if it is known."""
    try:
        return solver.step()
    except (ValueError, np.linalg.LinAlgError):  # slopes that are NaN, in a matrix
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
