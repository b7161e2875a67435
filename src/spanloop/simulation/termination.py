"""Termination of runs: which event ended one, at what time, and why a step failed.

A run that ended is at the start of the step that failed or met an event. Its end is located by repeating that step with
parts of its length.
"""

from __future__ import annotations

import numpy as np

from spanloop.compiler.render.rollout import HALTED, NOT_CONVERGED
from spanloop.compiler.runtime.rollout import Steps
from spanloop.errors import Reason, Refusal
from spanloop.simulation.events import Events
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import End, Problem
from spanloop.simulation.system import SINGULAR
from spanloop.simulation.time_loop import Progress, TimeLoop
from spanloop.trajectory import EndReason, Outcome

RESOLVED = 1e-9  # of a step: how exactly an event is located
BEYOND = 4.0  # steps in which a singular configuration is sought
TRIALS = 5000  # parts of a step on the way to a singular configuration
CLOSE = 1e-4  # a margin that counts as near a singular configuration
ENDS = {Reason.SINGULAR_CLOSURE: EndReason.SINGULAR, Reason.OPEN_LOOP: EndReason.OPEN}


def end_reason(refusal: Refusal | None) -> EndReason:
    """The reason of a run's end at a state that is refused."""
    return ENDS.get(refusal.reason, EndReason.NOT_FINITE) if refusal else EndReason.NOT_FINITE


def event_met(events: Events, j: int, t: float) -> Outcome:
    """The outcome of a run in which event j was met at time t."""
    if j < len(events.limits):
        limit = events.limits[j]
        words = (
            f"joint {limit.joint!r} reached its {limit.word} limit, {limit.bound:g}, at t = {t:.9g} s. "
            "limits='ignore' does not check limits"
        )
        return Outcome(EndReason.LIMIT, words, t)
    return Outcome(EndReason.EVENT, f"condition {events.name(j)!r} was met at t = {t:.9g} s", t)


def met_at_start(events: Events, values: np.ndarray, t: float = 0.0) -> Outcome | None:
    """The outcome of a run in which a condition is not positive at its start; values (events,) there.

    Limits are left out: a joint that starts beyond one may come inside (initial_state.warn_of_limits).
    """
    for j in range(len(events.limits), len(events)):
        if not values[j] > 0.0:
            words = (
                f"condition {events.name(j)!r} was met at t = {t:.9g} s: it is {values[j]:g} at the start, "
                "and a run goes on only while it is positive"
            )
            return Outcome(EndReason.EVENT, words, t)
    return None


def end_at_start(problem: Problem, layout: StateLayout, p: Progress) -> None:
    """End the runs in which a condition is not positive at the start; their only sample is the start."""
    if not problem.events.conditions:
        return
    values = p.state[:, layout.places["g"]][:, len(problem.events.limits) :]
    met = ~(values > 0.0).all(axis=1)
    kept = [layout.places[name] for name in ("q", "v", "z") if name in layout]
    p.why[met] = HALTED
    p.record[met, 0] = np.concatenate([p.state[met, place] for place in kept], axis=1)


class Termination:
    """Locates and explains the ends of runs."""

    def __init__(self, loop: TimeLoop, problem: Problem, layout: StateLayout):
        self.loop, self.problem, self.events, self.layout = loop, problem, problem.events, layout

    def ends(self, p: Progress, others: End) -> list[End]:
        """The end of every run; others: that of runs that nothing ended inside the rollout."""
        return [self.of(p, k) if bits else others for k, bits in enumerate(p.why.tolist())]

    def of(self, p: Progress, k: int) -> End:
        """The end of run k, which ended inside the rollout."""
        g = self.loop.grid
        t = self.loop.start + int(p.counts[k]) * g.h
        bits = int(p.why[k])
        if "g" in self.layout and not p.counts[k]:
            met = met_at_start(self.events, p.state[k, self.layout.places["g"]], t)
            if met is not None:
                return End(met)
        step = _Step(self, p, k, t)
        if bits & NOT_CONVERGED and self._refusal(t, step.begin, step) is None:
            advice = f"Take a shorter step than {g.h:g} s, or integrator='rk4'"
            words = f"the implicit step at t = {t:.6g} s did not converge. {advice}"
            return End(Outcome(EndReason.NOT_CONVERGED, words, t), *self._state(step.begin))
        return self._event(step) if bits & HALTED else self._failure(step)

    def _state(self, row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, z of a row."""
        z = row[self.layout.places["z"]] if "z" in self.layout else row[:0]
        return row[self.layout.places["q"]], row[self.layout.places["v"]], z

    def _refusal(self, t: float, row: np.ndarray, step: _Step) -> Refusal | None:
        return self.problem.refusal(t, *self._state(row), step.controls, step.k)

    def _event(self, step: _Step) -> End:
        """The first of the events that were met in this step."""
        where = self.layout.places["g"]
        before = step.begin[where]
        after = step.whole()
        met = [j for j in range(len(self.events)) if before[j] > 0.0 and not after[where][j] > 0.0]
        found = [(self._located(step, j), j) for j in met]
        (share, state), j = min(found, key=lambda x: x[0][0])
        return End(event_met(self.events, j, step.t + share * self.loop.grid.h), *self._state(state))

    def _located(self, step: _Step, j: int) -> tuple[float, np.ndarray]:
        """The share of the step at which event j is no longer positive, and the state there.

        The Illinois method; the end at which the event is met is kept.
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

    def _failure(self, step: _Step) -> End:
        """The end of shorter and shorter steps, and why there is no next one."""
        share, state = self._approached(step) if self.problem.system.minimal else self._reached(step)
        t = step.t + share * self.loop.grid.h
        return End(self._outcome(step, state, t), *self._state(state))

    def _reached(self, step: _Step) -> tuple[float, np.ndarray]:
        """The longest part of the step that does not fail, and the state there."""
        share, state = 0.0, step.begin
        part = 0.5
        while part > 1e-6:
            trial = step.part(share + part)
            if trial is not None:
                share, state = share + part, trial
            part *= 0.5
        return share, state

    def _approached(self, step: _Step) -> tuple[float, np.ndarray]:
        """The end of parts of the step, one after the other: coordinates that fail somewhere fail near it too.

        They may go beyond the end of the step, if the inputs there are known.
        """
        share, state = 0.0, step.begin
        part, far = 0.5, min(BEYOND, self.loop.grid.steps - step.number) if step.foreseen else 1.0
        for _ in range(TRIALS):
            trial = step.part(part, state, share) if share + part < far else None
            if trial is not None:
                share, state = share + part, trial
            else:
                part *= 0.5
            if part < RESOLVED:
                break
        return (share, state) if share + 1e-3 < far or far == 1.0 else self._reached(step)

    def _outcome(self, step: _Step, state: np.ndarray, t: float) -> Outcome:
        """Why there is no step from this state."""
        refusal = self._refusal(t, state, step) or self._refusal(t, step.nudged(state), step)
        reason = end_reason(refusal)
        if reason in (EndReason.SINGULAR, EndReason.OPEN):
            return Outcome(reason, f"at t = {t:.6g} s {refusal}", t)
        margin = float(state[self.layout.places["loops"]][1]) if self.problem.system.projects else 1.0
        if margin < max(CLOSE, SINGULAR):
            words = (
                f"the loops came to a singular configuration at t = {t:.6g} s (margin {margin:.1e}); "
                "see robot.diagnose(q) there"
            )
            return Outcome(EndReason.SINGULAR, words, t)
        if refusal is not None:
            return Outcome(reason, f"at t = {t:.6g} s {refusal}", t)
        speed = np.abs(state[self.layout.places["v"]]).max()
        words = (
            f"the motion was lost at t = {t:.6g} s: numbers grew beyond bounds or loops could not be kept closed "
            f"(largest rate so far {speed:.3g}). Take a shorter step than {self.loop.grid.h:g} s"
        )
        return Outcome(reason, words, t)


class _Step:
    """The last step of a run, to be repeated in parts."""

    def __init__(self, owner: Termination, p: Progress, k: int, t: float):
        loop = owner.loop
        self.owner, self.t, self.k = owner, t, k
        self.number = int(p.counts[k])
        self.begin = p.state[k].copy()
        self.constants = loop.constants[k : k + 1] if len(loop.constants) > 1 else loop.constants
        if callable(loop.controls):  # the callback's torques of this step
            found = owner.problem.inputs.at(owner.problem.batch, np.full((len(p.state), 1), self.number))
        else:
            found = loop.controls
        row = found[k : k + 1] if len(found) > 1 else found
        at = self.number if row.shape[1] > 1 else 0
        self.controls = np.ascontiguousarray(row[:, at : at + 1], loop.rollout.dtype)

    @property
    def foreseen(self) -> bool:
        """Whether the inputs of later steps are known."""
        return not callable(self.owner.loop.controls) and "z" not in self.owner.layout

    def _inputs(self, at: float) -> np.ndarray:
        """The inputs at this share of the step, which may belong to a later one."""
        later, given = int(at), self.owner.loop.controls
        if not later or callable(given) or given.shape[1] == 1:
            return self.controls
        row = given[self.k : self.k + 1] if len(given) > 1 else given
        return np.ascontiguousarray(row[:, self.number + later : self.number + later + 1], self.controls.dtype)

    def part(self, share: float, start: np.ndarray | None = None, at: float = 0.0) -> np.ndarray | None:
        """The state after this share of the step, events ignored; None if it fails.

        start: a state at another share of the step, from which this part is taken; memory is that of the step.
        """
        state = (self.begin if start is None else start)[None].copy()
        if "z" in self.owner.layout:
            state[:, self.owner.layout.places["z"]] = self.begin[self.owner.layout.places["z"]]
        if "g" in self.owner.layout:
            state[:, self.owner.layout.places["g"]] = -1.0  # no longer positive: cannot cross
        why = np.zeros(1, np.uint8)
        h = share * self.owner.loop.grid.h
        t = self.t + at * self.owner.loop.grid.h
        self.owner.loop.rollout.run(state, self.constants, self._inputs(at), why, Steps(t, h, 0, 1), None)
        return None if why[0] else state[0]

    def whole(self) -> np.ndarray:
        """The state after the step, which met an event but did not fail."""
        found = self.part(1.0)
        assert found is not None
        return found

    def nudged(self, state: np.ndarray) -> np.ndarray:
        """The state a little further along its velocity."""
        system, places = self.owner.problem.system, self.owner.layout.places
        out = state.copy()
        delta = 1e-6 * self.owner.loop.grid.h * state[places["v"]].astype(float)
        out[places["q"]] = system.moved(state[places["q"]].astype(float).tolist(), delta.tolist())
        return out
