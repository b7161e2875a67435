"""How runs ended: which condition stopped one, when exactly, and why a step had no answer.

A run that stopped is at the start of the step that did not end well. Its last moment is found by repeating that step
with parts of its length.
"""

from __future__ import annotations

import numpy as np

from spanloop.compiler.render.rollout import HALTED, NOT_CONVERGED
from spanloop.compiler.runtime.rollout import Steps
from spanloop.simulation.events import Watch
from spanloop.simulation.problem import Task
from spanloop.simulation.samples import End, State
from spanloop.simulation.state_layout import Layout
from spanloop.simulation.system import SINGULAR
from spanloop.simulation.time_loop import Job, Progress
from spanloop.trajectory import Outcome

RESOLVED = 1e-9  # of a step: how exactly an event is located
BEYOND = 4.0  # steps that a singular position is looked for
TRIALS = 5000  # parts of a step that are tried on the way to a singular position
CLOSE = 1e-4  # a margin that is called near a singular position


def condition_met(watch: Watch, j: int, t: float) -> Outcome:
    """The outcome of a run in which watched value j came to its end at time t."""
    if j < len(watch.limits):
        limit = watch.limits[j]
        words = (
            f"joint {limit.joint!r} reached its {limit.word} limit, {limit.bound:g}, at t = {t:.9g} s. "
            "limits='ignore' goes on as if there were none"
        )
        return Outcome("limit", words, t)
    name = watch.conditions[j - len(watch.limits)][0]
    return Outcome("event", f"condition {name!r} was met at t = {t:.9g} s", t)


class Ending:
    """Finds the ends of runs."""

    def __init__(self, job: Job, task: Task, layout: Layout):
        self.job, self.task, self.watch, self.layout = job, task, task.watch, layout

    def all(self, p: Progress) -> list[End]:
        """How every run ended."""
        still = self._still(p)
        return [self.of(p, k) if bits else still for k, bits in enumerate(p.why.tolist())]

    def _still(self, p: Progress) -> End:
        """The end of all runs that nothing stopped."""
        t = self.job.start + p.done * self.job.grid.h
        if p.refused:
            return End(Outcome("controller", f"{p.refused}. The run ended there", t))
        if p.interrupted and p.done < self.job.grid.steps:
            return End(Outcome("interrupted", f"interrupted at t = {t:.6g} s", t))
        return End(Outcome("finished", f"finished after {t:.6g} s", t))

    def of(self, p: Progress, k: int) -> End:
        """How run k, which something stopped, ended."""
        g = self.job.grid
        t = self.job.start + int(p.counts[k]) * g.h
        bits = int(p.why[k])
        step = _Step(self, p, k, t)
        if bits & NOT_CONVERGED and not self._explain(t, step.begin, step):
            advice = f"Take a shorter step than {g.h:g} s, or integrator='rk4'"
            words = f"the implicit step at t = {t:.6g} s did not converge. {advice}"
            return End(Outcome("not_converged", words, t), self._state(step.begin))
        return self._halted(step) if bits & HALTED else self._lost(step)

    def _state(self, row: np.ndarray) -> State:
        z = row[self.layout.places["z"]] if "z" in self.layout else row[:0]
        return State(row[self.layout.places["q"]], row[self.layout.places["v"]], z)

    def _explain(self, t: float, row: np.ndarray, step: _Step) -> str:
        x = self._state(row)
        return self.task.explain(t, x.q, x.v, x.z, step.controls, step.k)

    # ---- conditions

    def _halted(self, step: _Step) -> End:
        """The first of the conditions that were met in this step."""
        where = self.layout.places["g"]
        before = step.begin[where]
        after = step.whole()
        met = [j for j in range(len(self.watch)) if before[j] > 0.0 and not after[where][j] > 0.0]
        found = [(self._located(step, j), j) for j in met]
        (share, state), j = min(found, key=lambda x: x[0][0])
        return End(condition_met(self.watch, j, step.t + share * self.job.grid.h), self._state(state))

    def _located(self, step: _Step, j: int) -> tuple[float, np.ndarray]:
        """The share of the step at which watched value j is no longer positive, and the state there.

        The Illinois method; the end that has met the condition is kept.
        """
        at = self.layout.places["g"].start + j
        low, high = 0.0, 1.0
        f_low, state = float(step.begin[at]), step.whole()
        f_high = float(state[at])
        weight_low, weight_high, side = f_low, f_high, 0
        for _ in range(100):
            if high - low <= RESOLVED:
                break
            middle = high - (high - low) * weight_high / (weight_high - weight_low)
            inside = low + 0.5 * RESOLVED < middle < high - 0.5 * RESOLVED
            middle = middle if inside else 0.5 * (low + high)
            trial = step.part(middle)
            f = float(trial[at]) if trial is not None else f_low
            if trial is None or f > 0.0:
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
        share, state = self._approached(step) if self.task.system.minimal else self._reached(step)
        t = step.t + share * self.job.grid.h
        return End(Outcome(*self._why(step, state, t), t), self._state(state))

    def _reached(self, step: _Step) -> tuple[float, np.ndarray]:
        """The longest part of the step that has an answer, and the state there."""
        share, state = 0.0, step.begin
        part = 0.5
        while part > 1e-6:
            trial = step.part(share + part)
            if trial is not None:
                share, state = share + part, trial
            part *= 0.5
        return share, state

    def _approached(self, step: _Step) -> tuple[float, np.ndarray]:
        """As far as parts of the step lead, one after the other: coordinates that fail somewhere fail near it too.

        They may lead beyond the end of the step, if it is known what acts there.
        """
        share, state = 0.0, step.begin
        part, far = 0.5, min(BEYOND, self.job.grid.steps - step.number) if step.foreseen else 1.0
        for _ in range(TRIALS):
            trial = step.part(part, state, share) if share + part < far else None
            if trial is not None:
                share, state = share + part, trial
            else:
                part *= 0.5
            if part < RESOLVED:
                break
        return (share, state) if share + 1e-3 < far or far == 1.0 else self._reached(step)

    def _why(self, step: _Step, state: np.ndarray, t: float) -> tuple[str, str]:
        beyond = step.nudged(state)
        words = self._explain(t, state, step) or self._explain(t, beyond, step)
        if "singular position" in words:
            return "singular", f"at t = {t:.6g} s {words}"
        if words.startswith("loop "):
            return "open", f"at t = {t:.6g} s {words}"
        margin = float(state[self.layout.places["loops"]][1]) if self.task.system.projects else 1.0
        if margin < max(CLOSE, SINGULAR):
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
        if callable(job.controls):  # what it answered for this step
            found = ending.task.inputs.at(ending.task.batch, np.full((len(p.state), 1), self.number))
        else:
            found = job.controls
        row = found[k : k + 1] if len(found) > 1 else found
        at = self.number if row.shape[1] > 1 else 0
        self.controls = np.ascontiguousarray(row[:, at : at + 1], job.rollout.dtype)

    @property
    def foreseen(self) -> bool:
        """Is it known what acts in later steps?"""
        return not callable(self.ending.job.controls) and "z" not in self.ending.layout

    def _given(self, at: float) -> np.ndarray:
        """The inputs at this share of the step, which may belong to a later one."""
        later, given = int(at), self.ending.job.controls
        if not later or callable(given) or given.shape[1] == 1:
            return self.controls
        row = given[self.k : self.k + 1] if len(given) > 1 else given
        return np.ascontiguousarray(row[:, self.number + later : self.number + later + 1], self.controls.dtype)

    def part(self, share: float, start: np.ndarray | None = None, at: float = 0.0) -> np.ndarray | None:
        """The state after this share of the step, conditions ignored; None if it has none.

        start: a state at another share of the step, from which this part is taken; memory is that of the step.
        """
        state = (self.begin if start is None else start)[None].copy()
        if "z" in self.ending.layout:
            state[:, self.ending.layout.places["z"]] = self.begin[self.ending.layout.places["z"]]
        if "g" in self.ending.layout:
            state[:, self.ending.layout.places["g"]] = -1.0  # no longer positive: cannot cross
        why = np.zeros(1, np.uint8)
        h = share * self.ending.job.grid.h
        t = self.t + at * self.ending.job.grid.h
        self.ending.job.rollout.run(state, self.constants, self._given(at), why, Steps(t, h, 0, 1), None)
        return None if why[0] else state[0]

    def whole(self) -> np.ndarray:
        """The state after the step, which met a condition but had an answer."""
        found = self.part(1.0)
        assert found is not None
        return found

    def nudged(self, state: np.ndarray) -> np.ndarray:
        """The state a little further along its velocity."""
        system, places = self.ending.task.system, self.ending.layout.places
        out = state.copy()
        delta = 1e-6 * self.ending.job.grid.h * state[places["v"]].astype(float)
        out[places["q"]] = system.moved(state[places["q"]].astype(float).tolist(), delta.tolist())
        return out
