"""A run forward and back: states are recorded segment by segment, and cotangents pulled back through their steps.

A short run is recorded whole. Of a long one the states at the starts of segments are kept, and each segment is taken
once more when its turn comes: about 2 √steps states are in memory, for one more forward run. The numbers are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from spanloop.compiler.lower import Schedule
from spanloop.compiler.lower.adjoint import CLOCK, adjoint, adjoint_of_sample
from spanloop.compiler.runtime.gpu.rollout import AnyRollout
from spanloop.compiler.runtime.rollout import Steps
from spanloop.errors import Reason, Refusal
from spanloop.simulation.gradients.differentiated_run import DifferentiatedRun
from spanloop.simulation.gradients.objective import Objective
from spanloop.simulation.time_loop import ProgressBar

WHOLE = 4_000_000  # numbers of a run that is recorded whole


@dataclass
class AdjointRun:
    """The derivatives of an objective by the carried state at the start, the inputs and the constants.

    most: numbers of a run that is recorded whole.
    """

    run: DifferentiatedRun
    objective: Objective
    most: int = WHOLE
    ended: dict[int, Refusal] = field(default_factory=dict)  # runs that did not last their duration
    lost: dict[int, Refusal] = field(default_factory=dict)  # runs whose cotangents are not finite

    @property
    def refused(self) -> dict[int, Refusal]:
        """Why runs have no gradient."""
        return {**self.lost, **self.objective.refused, **self.ended}

    def cotangents(self) -> dict[str, np.ndarray]:
        """Derivatives (n, size) by arrays q, v, p, u of a step, those that are wanted; u of steps (n, steps, width)."""
        steps = self.run.grid.steps
        bar = ProgressBar(2 * steps, 0.5 * self.run.grid.h, len(self.run.problem), self.run.integrator.progress)
        try:
            return self._there_and_back(bar)
        finally:
            bar.erase()

    def _there_and_back(self, bar: ProgressBar) -> dict[str, np.ndarray]:
        steps, n = self.run.grid.steps, len(self.run.problem)
        starts, record = self._forward(bar)
        lam = self._at_the_end(record)
        by_step = "u" in self._wrt and not self.run.inputs_are_constant
        kept = np.zeros((n, steps, self.run.inputs.shape[2] if by_step else 0), lam.dtype)
        last = self._named(self._adjoint, lam)["u"].copy() if by_step else 0.0  # a sample may show the inputs
        for number in range(len(starts) - 1, -1, -1):
            first, count = self._segment(number)
            if number < len(starts) - 1:
                record = self._recorded(starts[number].copy(), first, count)[0]
            lam = self._back(lam, record, first, count, kept)
            bar.draw(steps + steps - first)
        found = self._named(self._adjoint, lam)
        if by_step:
            kept[:, -1] += last
            found["u"] = kept
        return found

    # ---- forward

    @property
    def _length(self) -> int:
        """Steps of a segment."""
        width = sum(s.stop - s.start for s in self.run.recorded.values())
        numbers = 3 * width * len(self.run.problem) * self.run.grid.steps
        return self.run.grid.steps if numbers <= self.most else math.isqrt(self.run.grid.steps - 1) + 1

    def _segment(self, number: int) -> tuple[int, int]:
        """The first step of a segment, and how many it has."""
        first = number * self._length
        return first, min(self._length, self.run.grid.steps - first)

    def _forward(self, bar: ProgressBar) -> tuple[list[np.ndarray], np.ndarray]:
        """States at the starts of the segments, and the record of the last one."""
        state = np.ascontiguousarray(self.run.problem.state(self.run.layout), self.run.integrator.dtype)
        starts, first, ended = list[np.ndarray](), 0, self.run.met_at_start(state)
        while first < self.run.grid.steps:
            first, count = self._segment(len(starts))
            starts.append(state.copy())
            record, why = self._recorded(state, first, count)
            ended |= why != 0
            first += count
            bar.draw(first)
        self.ended |= {int(k): self.run.ended(int(k)) for k in np.flatnonzero(ended)}
        return starts, record

    def _recorded(self, state: np.ndarray, first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Take steps from a state, in place: the record (n, count + 1, width), and why runs ended, 0 for the others."""
        width = sum(s.stop - s.start for s in self.run.recorded.values())
        record = np.empty((len(state), count + 1, width), state.dtype)
        why = np.zeros(len(state), np.uint8)
        steps = Steps(self.run.problem.start, self.run.grid.h, first, count)
        controls = self.run.step_inputs(first, count)
        self.run.recorder.run(state, self.run.constants, controls, why, steps, record)
        record[why != 0] = record[why != 0, :1]  # of a run that ended nothing more is asked
        return record, why

    # ---- back

    @property
    def _wrt(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.run.wanted.arrays, "q", "v")))

    @cached_property
    def _adjoint(self) -> AnyRollout:
        return self._compiled("adjoint", adjoint)

    @cached_property
    def _adjoint_of_samples(self) -> AnyRollout:
        return self._compiled("adjoint of a sample", adjoint_of_sample)

    def _compiled(self, kind: str, derive: Callable[..., Schedule]) -> AnyRollout:
        constant = ("u",) if self.run.inputs_are_constant and "u" in self._wrt else ()
        of = ("q", self.run.velocity)

        def derived() -> Schedule:
            return derive(self.run.schedule(), self._wrt, of, constant, self.run.integrator.dtype)

        return self.run.compiled(f"{kind}|{self._wrt}|{constant}", derived)

    def _at_the_end(self, record: np.ndarray) -> np.ndarray:
        """Rows of cotangents after the last sample."""
        steps, n = self.run.grid.steps, len(record)
        places = self._adjoint.places("state", n)
        lam = np.zeros((n, _width(places)), record.dtype)
        if self.run.velocity == "v":
            found = {name.removeprefix("g."): rows[:, 0] for name, rows in self._sources(record[:, -1:], steps).items()}
        else:
            rollout = self._adjoint_of_samples
            own = np.zeros((n, _width(rollout.places("state", n))), record.dtype)
            inputs = min(steps - 1, self.run.inputs.shape[1] - 1)
            self._take(rollout, own, self._controls(rollout, record[:, -1:], steps, 1, inputs), 1)
            found = self._named(rollout, own)
        for name, rows in found.items():
            if f"lam.{name}" in places:
                lam[:, places[f"lam.{name}"]] = rows
        return lam

    def _back(self, lam: np.ndarray, record: np.ndarray, first: int, count: int, kept: np.ndarray) -> np.ndarray:
        """Cotangents at the start of a segment from those at its end; kept gets those of the inputs of its steps."""
        controls = self._controls(self._adjoint, record[:, :count], first, count, first)
        out = np.empty((len(lam), count + 1, kept.shape[2]), lam.dtype) if kept.shape[2] else None
        self._take(self._adjoint, lam, controls, count, out)
        if out is not None:
            kept[:, first : first + count] = out[:, :0:-1]
        return lam

    def _take(self, rollout: AnyRollout, lam: np.ndarray, controls: np.ndarray, count: int, out=None) -> None:
        """Take `count` steps of an adjoint, in place."""
        why = np.zeros(len(lam), np.uint8)
        rollout.run(lam, self.run.constants, controls, why, Steps(0.0, self.run.grid.h, 0, count), out)
        for k in np.flatnonzero(why):
            words = "the derivatives of its steps are not finite, or do not converge"
            self.lost.setdefault(int(k), Refusal(Reason.NOT_FINITE, words))

    def _controls(self, rollout: AnyRollout, record: np.ndarray, first: int, count: int, inputs: int) -> np.ndarray:
        """Rows (n, count, width) of an adjoint's controls, the last step first; inputs: number of the first inputs."""
        n, places = len(record), rollout.places("controls", len(record))
        known = {name: record[..., place] for name, place in self.run.recorded.items()} | self._sources(record, first)
        known |= {"u": self.run.step_inputs(inputs, count), CLOCK: self.run.times(first, count)[None, :, None]}
        out = np.empty((n, count, _width(places)), record.dtype)
        for name, place in places.items():
            out[..., place] = known[name][:, ::-1]
        return out

    def _sources(self, record: np.ndarray, first: int) -> dict[str, np.ndarray]:
        """What the objective adds to cotangents at samples from number `first` on."""
        v = self.run.velocity
        of_q, of_v = self.objective.at(first, record[..., self.run.recorded["q"]], record[..., self.run.recorded[v]])
        return {"g.q": of_q, f"g.{v}": of_v}

    def _named(self, rollout: AnyRollout, lam: np.ndarray) -> dict[str, np.ndarray]:
        """Cotangents (n, size) by the name of their array."""
        return {n.removeprefix("lam."): lam[:, s] for n, s in rollout.places("state", len(lam)).items()}


def _width(places: dict[str, slice]) -> int:
    return max((s.stop for s in places.values()), default=0)
