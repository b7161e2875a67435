"""How runs ended: which condition stopped one, when exactly, and why a step had no answer.

A run that stopped is at the start of the step that did not end well. Its last moment is found by repeating that step with
parts of its length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spanloop.compiler.render.rollout import HALTED, LOST, NOT_CONVERGED
from spanloop.compiler.runtime.rollout import Steps
from spanloop.results import Outcome
from spanloop.simulation.layout import Layout
from spanloop.simulation.running import Job, Progress
from spanloop.simulation.system import SINGULAR, System
from spanloop.simulation.watching import Watch

RESOLVED = 1e-9  # of a step: how exactly an event is located
_CLOSE = 1e-4  # a margin that is called near a singular position


@dataclass(frozen=True)
class End:
    """How one run ended: in words, and the state there (None where that is the last sample)."""

    outcome: Outcome
    state: np.ndarray | None = None


class Ending:
    """Finds the ends of runs."""

    def __init__(self, job: Job, system: System, watch: Watch, layout: Layout, explain: Callable):
        """explain(t, state, u): why forward dynamics has no answer there; "" if it has one."""
        self.job, self.system, self.watch, self.layout, self.explain = job, system, watch, layout, explain

    def of(self, p: Progress, k: int) -> End:
        """How run k ended."""
        g = self.job.grid
        t = self.job.start + int(p.counts[k]) * g.h
        bits = int(p.why[k])
        if not bits:
            if p.interrupted and p.done < g.steps:
                return End(Outcome("interrupted", f"interrupted at t = {t:.6g} s", t))
            return End(Outcome("finished", f"finished after {t:.6g} s", t))
        step = _Step(self, p, k, t)
        if bits & LOST:
            return self._lost(step)
        if bits & NOT_CONVERGED:
            words = f"the implicit step at t = {t:.6g} s did not converge. Take a shorter step than {g.h:g} s, or method='rk4'"
            return End(Outcome("not_converged", words, t), step.begin)
        return self._halted(step) if bits & HALTED else self._lost(step)

    # ---- conditions

    def _halted(self, step: _Step) -> End:
        """The first of the conditions that were met in this step."""
        where = self.layout.places["g"]
        before = step.begin[where]
        after = step.part(1.0)
        met = [j for j in range(len(self.watch)) if before[j] > 0.0 and not after[where][j] > 0.0]
        found = [(self._located(step, j), j) for j in met]
        (share, state), j = min(found, key=lambda x: x[0][0])
        t = step.t + share * self.job.grid.h
        if j < len(self.watch.limits):
            limit = self.watch.limits[j]
            words = (
                f"joint {limit.joint!r} reached its {limit.word} limit, {limit.bound:g}, at t = {t:.9g} s. "
                "limits='ignore' goes on as if there were none"
            )
            return End(Outcome("limit", words, t), state)
        name = self.watch.conditions[j - len(self.watch.limits)][0]
        return End(Outcome("event", f"condition {name!r} was met at t = {t:.9g} s", t), state)

    def _located(self, step: _Step, j: int) -> tuple[float, np.ndarray]:
        """The share of the step at which watched value j is no longer positive, and the state there.

        The Illinois method; the end that has met the condition is kept.
        """
        at = self.layout.places["g"].start + j
        low, high = 0.0, 1.0
        f_low, state = float(step.begin[at]), step.part(1.0)
        f_high = float(state[at])
        weight_low, weight_high, side = f_low, f_high, 0
        for _ in range(100):
            if high - low <= RESOLVED:
                break
            middle = high - (high - low) * weight_high / (weight_high - weight_low)
            inside = low + 0.5 * RESOLVED < middle < high - 0.5 * RESOLVED
            middle = middle if inside else 0.5 * (low + high)
            trial = step.part(middle)
            f = float(trial[at])
            if f > 0.0:
                low, weight_low = middle, f
                weight_high = 0.5 * weight_high if side == 1 else weight_high
                side = 1
            else:
                high, weight_high, state = middle, f, trial
                weight_low = 0.5 * weight_low if side == -1 else weight_low
                side = -1
        return high, state

    # ---- steps without an answer

    def _lost(self, step: _Step) -> End:
        """As far as shorter and shorter steps lead, then why no further."""
        share, state = 0.0, step.begin
        part = 0.5
        while part > 1e-6:
            trial = step.part(share + part)
            if trial is not None:
                share, state = share + part, trial
            part *= 0.5
        t = step.t + share * self.job.grid.h
        return End(Outcome(*self._why(step, state, t), t), state)

    def _why(self, step: _Step, state: np.ndarray, t: float) -> tuple[str, str]:
        beyond = step.nudged(state)
        words = self.explain(t, state, step.controls) or self.explain(t, beyond, step.controls)
        if "singular position" in words:
            return "singular", f"at t = {t:.6g} s {words}"
        if words.startswith("loop "):
            return "open", f"at t = {t:.6g} s {words}"
        margin = float(state[self.layout.places["loops"]][1]) if "loops" in self.layout else 1.0
        if margin < max(_CLOSE, SINGULAR):
            return "singular", (
                f"the loops came to a singular position at t = {t:.6g} s (margin {margin:.1e}); "
                "see robot.diagnose(q) there"
            )
        speed = np.abs(state[self.layout.places["v"]]).max()
        if words:
            return "not_finite", f"at t = {t:.6g} s {words}"
        return "not_finite", (
            f"the motion was lost at t = {t:.6g} s: numbers grew beyond bounds or loops could not be kept closed "
            f"(largest rate so far {speed:.3g}). Take a shorter step than {self.job.grid.h:g} s"
        )


class _Step:
    """The step that did not end well, to be repeated in parts."""

    def __init__(self, ending: Ending, p: Progress, k: int, t: float):
        job = ending.job
        self.ending, self.t, self.k = ending, t, k
        self.number = int(p.counts[k])
        self.begin = p.state[k].copy()
        self.constants = job.constants[k : k + 1] if len(job.constants) > 1 else job.constants
        if callable(job.controls):
            found = job.controls(t, p.state)
        else:
            found = job.controls
        row = found[k : k + 1] if len(found) > 1 else found
        at = self.number if row.shape[1] > 1 else 0
        self.controls = np.ascontiguousarray(row[:, at : at + 1], job.rollout.dtype)

    def part(self, share: float) -> np.ndarray | None:
        """The state after this share of the step, conditions ignored; None if it has none."""
        state = self.begin[None].copy()
        if "g" in self.ending.layout:
            state[:, self.ending.layout.places["g"]] = -1.0  # no longer positive: cannot cross
        why = np.zeros(1, np.uint8)
        h = share * self.ending.job.grid.h
        self.ending.job.rollout.run(state, self.constants, self.controls, why, Steps(self.t, h, 0, 1), None)
        return None if why[0] else state[0]

    def nudged(self, state: np.ndarray) -> np.ndarray:
        """The state a little further along its velocity."""
        system, places = self.ending.system, self.ending.layout.places
        out = state.copy()
        delta = 1e-6 * self.ending.job.grid.h * state[places["v"]].astype(float)
        out[places["q"]] = system.moved(state[places["q"]].astype(float).tolist(), delta.tolist())
        return out
