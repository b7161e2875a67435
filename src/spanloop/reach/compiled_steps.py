"""Steps towards targets as machine code: a schedule of one call, repeated over rows of states until targets are met."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass

import numpy as np

from spanloop.algorithms.closed.reaching_step import Reaching, reaching_step
from spanloop.compiler.lower import Call, Schedule, unrolled
from spanloop.compiler.lower.schedule import following
from spanloop.compiler.render.rollout import HALTED
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.kernels.spec import content, source_hash
from spanloop.model import Model
from spanloop.sweeps import walk
from spanloop.topology import mechanism

_CONSTANTS = ("target", "weight", "tolerance")
_NOTHING = 1e8  # the merit of no state: any other is better
_NO_CONTROLS = np.zeros((1, 1, 0))


@dataclass(frozen=True, eq=False)
class CompiledSteps:
    """Steps of one model towards one set of targets."""

    model: Model
    task: Reaching

    @functools.cached_property
    def sizes(self) -> dict[str, int]:
        """Arrays of a row of state, in order."""
        own = {n: k for n, k in self.task.sizes.items() if n not in _CONSTANTS}
        return {"q": self.model.nq, "start": self.model.nq, "delta": self.model.nv, **own}

    def begun(self, q: np.ndarray, factor: float = 1.0) -> np.ndarray:
        """Rows of state (n, width) for states q (n, nq) that are tried first; factor: of the damping."""
        nq, sizes = q.shape[1], self.sizes
        rows = np.ones((len(q), sum(sizes.values())))
        rows[:, :nq] = rows[:, nq : 2 * nq] = q
        rows[:, 2 * nq : 2 * nq + sizes["delta"]] = 0.0
        rows[:, -5:-2] = _NOTHING
        rows[:, -2] = factor
        return rows

    def part(self, rows: np.ndarray, name: str) -> np.ndarray:
        """The array of this name in rows of state."""
        return rows[:, self._places[name]]

    @functools.cached_property
    def _places(self) -> dict[str, slice]:
        ends = np.cumsum(list(self.sizes.values())).tolist()
        return {n: slice(end - size, end) for (n, size), end in zip(self.sizes.items(), ends, strict=True)}

    def advance(self, rows: np.ndarray, constants: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Advance rows (n, width) in place by at most `count` steps; which have reached their targets, steps taken.

        A row that has reached its targets stays: its q is the state that reaches them.
        """
        why = np.zeros(len(rows), np.uint8)
        taken = self._rollout.run(rows, constants, _NO_CONTROLS, why, Steps(0.0, 1.0, 0, count))
        return (why & HALTED) > 0, taken

    @functools.cached_property
    def _rollout(self) -> Rollout:
        text = f"{content(self.model)}|{self.task}|{source_hash()}"
        return Rollout(hashlib.sha256(text.encode()).hexdigest(), self.schedule)

    def schedule(self) -> Schedule:
        """One step as a schedule."""
        m = mechanism(self.model)
        program, state = reaching_step(m, self.task), self.sizes
        constants = {n: self.task.sizes[n] for n in _CONSTANTS}
        inputs = [(n, ({**state, **constants})[n]) for n in program.inputs]
        plan = unrolled("reaching_step", inputs, program.shape, lambda x: (walk(program, m, x), (), ()))
        writes = tuple(map(following, state))
        return Schedule(
            "reaching",
            {**state, **constants, **{following(n): k for n, k in state.items()}, "missed": 1},
            tuple(state),
            _CONSTANTS,
            (),
            (),
            (),
            (Call(plan, program.inputs, (*writes, "missed")),),
            halt="missed",
        )
