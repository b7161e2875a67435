"""Runs of one mechanism that begin and end each at their own time, advanced together by a compiled time loop.

All that a run carries is in its row of state. Nothing that acts here reads the time, so that runs of different age
share a call; the age of each is counted beside it. With closed loops a row carries the velocity before its projection,
with which the next step begins; what is read, as a sample of sl.simulate, is projected.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.compiler.render.rollout import HALTED
from spanloop.compiler.runtime.gpu.rollout import AnyRollout
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.contacts.contact_arrays import CLOSED
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, SpanloopWarning, StateError
from spanloop.simulation.integrators.integrator import Integrator, gpu_rollout, rollout
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import Problem
from spanloop.simulation.simulate import stiffest_of, with_stiffness
from spanloop.simulation.stiffness import EXPLICIT
from spanloop.simulation.termination import Termination, event_met
from spanloop.simulation.time_loop import Grid, Progress, TimeLoop, expect_forces, positive
from spanloop.trajectory import Outcome

_EXPLAINED = 16  # failures of a call that are explained: each takes milliseconds
FAILED = "failed"  # the reason of the others
_FAR = 1e-2  # of a velocity: where a run ends, a projection that changes more is of loops that lose rank
_ENDED = 1  # of `why`: any bit that is not 0 leaves a run where it is


@dataclass
class BatchMotion:
    """`count` runs of a problem, with rows of arrays for each; `begin` starts some of them, `advance` moves them."""

    problem: Problem  # a start, and all that acts
    integrator: Integrator
    step: float  # s
    count: int

    def __post_init__(self) -> None:
        p = self.problem
        self.layout = StateLayout.of(p.system, p.events, self.integrator.dtype)
        name, dtype = self.integrator.name, self.integrator.dtype
        self.rollout = rollout(p.system, p.events, name, dtype, self.integrator.threads)
        is_on_gpu = self.integrator.target == "cuda"  # the CPU's explains why runs end there, too
        self._moving: AnyRollout = gpu_rollout(p.system, p.events, name, dtype) if is_on_gpu else self.rollout
        self.constants = np.array(p.constants, self.rollout.dtype)
        self.state = np.zeros((self.count, self.layout.width), self.rollout.dtype)
        self.age = np.zeros(self.count, np.int64)  # steps since a run began
        self._is_new = np.zeros(self.count, bool)
        self._v = np.zeros((self.count, p.model.nv))  # as it is read
        self._controls = np.zeros((self.count, 1, p.applied.inputs), self.rollout.dtype)

    @staticmethod
    def of(
        robot: Dynamics,
        q: Any,
        *,
        count: int,
        step: float,
        integrator: Integrator,
        where: str,
        examples: np.ndarray | None = None,
        **options: Any,
    ) -> BatchMotion:
        """The motion of sl.simulate's arguments; options: those that determine what acts.

        examples: live parameters (n, p) that runs may have, by which stiffness is judged; those of the arguments by
        default. Its warnings are those of a simulation, in the name of `where`.
        """
        step = positive(step, "step")
        if integrator.adaptive or integrator.accuracy is not None or integrator.checkpoint is not None:
            raise InputError(
                f"environments take steps of one length, without accuracy and checkpoint; integrator is {integrator}. "
                "Use 'rk4', 'implicit', 'midpoint' or 'euler'"
            )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "simulate: ", SpanloopWarning)
            problem = Problem.of(robot, q, None, step=step, where=where, **options)
            problem, chosen = with_stiffness(problem, integrator, step, examples)
        for words in filter(None, (problem.note, *problem.notes_on_limits(problem.q), problem.advice)):
            warnings.warn(f"{where}: {words}", SpanloopWarning, stacklevel=3)
        if len(problem) not in (1, count):
            raise InputError(f"arguments have rows for {len(problem)} environments; num_envs is {count}")
        return BatchMotion(replace(problem, batch=(), constants=problem.constants.copy()), chosen, step, count)

    @property
    def q(self) -> np.ndarray:
        """Coordinates (count, nq)."""
        return self.state[:, self.layout.places["q"]].astype(float)

    @property
    def v(self) -> np.ndarray:
        """Velocities (count, nv), projected to the closed loops: those of the samples of sl.simulate."""
        return self._v.copy()

    @property
    def time(self) -> np.ndarray:
        """Time (count,) since each run began [s]."""
        found: np.ndarray = self.step * self.age
        return found

    @property
    def residual(self) -> np.ndarray:
        """The largest closure error (count,) of each run after any of its steps [rad, or of the loop's length]."""
        if "loops" not in self.layout:
            return np.zeros(self.count)
        return self.state[:, self.layout.places["loops"]][:, 0].astype(float)

    def constants_of(self, rows: Any) -> np.ndarray:
        """The constants of these runs in double precision: one row for all, or one for each."""
        every = self.problem.constants
        return every[rows] if len(every) > 1 else every

    def set_parameters(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Give these runs, before they begin, live parameters (n, p) of their own."""
        sizes, system = self.problem.system.sizes, self.problem.system
        before = sum(sizes[name] for name in system.constants[: system.constants.index("p")])
        for array in (self.problem.constants, self.constants):
            array[rows, before : before + sizes["p"]] = values

    def begin(self, rows: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Start the runs of these numbers at closed states q (n, nq), v (n, nv)."""
        start = replace(self.problem, q=q, v=v, batch=(len(q),), constants=self.constants_of(rows))
        self.state[rows] = start.state(self.layout)
        self.age[rows], self._is_new[rows] = 0, True
        self._v[rows] = self._sampled(rows)

    def advance(self, u: np.ndarray, steps: int, moves: np.ndarray) -> np.ndarray:
        """Take this many steps with inputs u (count, width) in the runs that move (count,); which of them ended.

        A run that ends stays at the last state that it reached.
        """
        controls = np.ascontiguousarray(u[:, None], self.rollout.dtype)
        if self.problem.system.contacts:
            self._expect_forces(controls, moves)
        why, state = np.where(moves, 0, _ENDED).astype(np.uint8), self.state.copy()
        record = np.empty((self.count, 2, self._recorded), self.rollout.dtype)  # at the start, and at the end
        counts = self._moving.run(state, self.constants, controls, why, Steps(0.0, self.step, 0, steps, steps), record)
        self.state, self.age = state, self.age + np.where(moves, counts, 0)  # an interrupted call changes nothing
        self._why, self._counts, self._controls = why, counts, controls
        if not why.any():
            self._v = self._closed(slice(None), record[:, 1])
            return why != 0
        ended, others = moves & (why != 0), np.flatnonzero(why == 0)
        self._v[others] = self._closed(others, record[others, 1])
        if ended.any():
            self._v[ended] = self._sampled(np.flatnonzero(ended), _FAR)
        return ended

    def outcomes(self, ended: np.ndarray) -> dict[int, tuple[str, str]]:
        """Why the runs (count,) ended in the last call of `advance`: reasons and sentences, by number."""
        found = self._at_limits(np.flatnonzero(ended))
        left = [int(k) for k in np.flatnonzero(ended) if int(k) not in found]
        found |= {k: self._outcome(k) for k in left[:_EXPLAINED]}
        out = {k: (str(x.reason), x.sentence) for k, x in found.items()}
        for k in left[_EXPLAINED:]:
            others = f"as those of {len(left) - 1} others, of which {_EXPLAINED} are explained"
            out[k] = FAILED, f"the step at t = {self.step * int(self.age[k]):.6g} s failed, {others}"
        return out

    @cached_property
    def _recorded(self) -> int:
        """Numbers in a sample: q, v and the others that sl.simulate keeps."""
        layout, system = self.layout, self.problem.system
        kept = "q", "v", "z", *system.switched, *system.contact_arrays
        return sum(layout.sizes[name] for name in kept if name in layout)

    def _sampled(self, rows: np.ndarray, far: float = np.inf) -> np.ndarray:
        """Velocities (n, nv) of these runs, as samples have them; no step is taken. far: as of `_closed`."""
        two = self._at_least_two(rows)
        record = np.empty((len(two), 1, self._recorded), self.rollout.dtype)
        constants = np.ascontiguousarray(self.constants_of(two), self.rollout.dtype)
        why = np.zeros(len(two), np.uint8)
        self._moving.run(self.state[two], constants, self._controls[two], why, Steps(0.0, self.step, 0, 0), record)
        return self._closed(rows, record[: len(rows), 0], far)

    def _closed(self, rows: np.ndarray | slice, samples: np.ndarray, far: float = np.inf) -> np.ndarray:
        """Velocities (n, nv) of samples (n, width). Where loops lose rank they may have none: the step's is kept.

        far: that is also kept where the sample's differs by more than this part of it.
        """
        place = self.layout.places["v"]
        found = samples[:, place].astype(float)
        if far == np.inf and np.isfinite(found).all():
            return found
        v = self.state[rows, place].astype(float)
        size = np.abs(v).max(axis=1, keepdims=True, initial=0.0)
        with np.errstate(invalid="ignore"):
            is_near = np.abs(found - v).max(axis=1, keepdims=True, initial=0.0) <= far * (1.0 + size)
        return np.where(np.isfinite(found).all(axis=1, keepdims=True) & is_near, found, v)

    def _at_least_two(self, rows: np.ndarray) -> np.ndarray:
        """Numbers of runs that move as a batch: another kernel, for one run alone, need not be compiled."""
        return rows if len(rows) > 1 or self.count == 1 else np.repeat(rows, 2)

    def _at_limits(self, rows: np.ndarray) -> dict[int, Outcome]:
        """The outcomes of those runs that a limit of a joint ended: their last step once more, where nothing ends it.

        Within the step the time is interpolated.
        """
        rows = rows[(self._why[rows] & HALTED) > 0]
        if not len(rows) or "g" not in self.layout or self.problem.system.switching:
            return {}
        place, two = self.layout.places["g"], self._at_least_two(rows)
        after, why = self.state[two], np.zeros(len(two), np.uint8)
        before = after[:, place].copy()
        after[:, place] = -1.0  # not positive: no event is met
        constants = np.ascontiguousarray(self.constants_of(two), self.rollout.dtype)
        self.rollout.run(after, constants, self._controls[two], why, Steps(0.0, self.step, 0, 1))
        out: dict[int, Outcome] = {}
        for k, g, h, bits in zip(rows.tolist(), before, after[:, place], why, strict=False):
            met = np.flatnonzero((g > 0.0) & ~(h > 0.0))
            if len(met) and not bits:
                shares = g[met] / (g[met] - h[met])
                t = self.step * (int(self.age[k]) + float(shares.min()))
                out[k] = event_met(self.problem.events, int(met[np.argmin(shares)]), t)
        return out

    def _outcome(self, k: int) -> Outcome:
        """Why run k ended: its last step is repeated in parts, and its equations are examined."""
        rows, places = slice(k, k + 1), self.layout.places
        row = self.state[rows].copy()
        own = replace(self.problem, constants=self.constants_of(rows), q=row[:, places["q"]].astype(float))
        own = replace(own, v=row[:, places["v"]].astype(float), advice=own.advice or self._advice(rows))
        number = int(self._counts[k])
        loop = self._loop(rows, self.step * (int(self.age[k]) - number))
        counts, record = np.array([number]), np.zeros((1, 1, 0))
        progress = Progress(row, self._why[rows].copy(), counts, record, number)
        return Termination(loop, own, self.layout, self.integrator.name).of(progress, 0).outcome

    def _advice(self, rows: slice) -> str:
        """Where steps are too long for a joint of this run, whose live parameters nobody knew before; else ""."""
        p, name = self.problem, self.integrator.name
        if not p.system.live or name == "implicit":
            return ""
        found = stiffest_of(replace(p, constants=self.constants_of(rows)))
        return found.advice(self.step, name) if found is not None and found.rate * self.step > EXPLICIT else ""

    def _loop(self, rows: Any, start: float = 0.0) -> TimeLoop:
        compiled: Any = self.rollout if self.count == 1 else _Batched(self.rollout)
        grid, width = Grid(self.step, 1, 1), self.problem.applied.inputs
        constants = np.ascontiguousarray(self.constants_of(rows), self.rollout.dtype)
        return TimeLoop(compiled, grid, constants, self._controls[rows], width, start)

    def _expect_forces(self, controls: np.ndarray, moves: np.ndarray) -> None:
        """Find the contact forces that new runs begin with, as sl.simulate does."""
        touching = (self.state[:, self.layout.places["contact.gap"]] <= CLOSED).any(axis=1)
        rows = np.flatnonzero(self._is_new & moves & touching)
        self._is_new &= ~moves
        if len(rows):
            self._controls = controls
            none = np.zeros((len(rows), 1, 0))
            p = Progress(self.state[rows], np.zeros(len(rows), np.uint8), np.zeros(len(rows), np.int64), none)
            expect_forces(self._loop(rows), p, self.layout)
            self.state[rows] = p.state


@dataclass(frozen=True)
class _Batched:
    """A rollout that moves one run as a batch of two: another kernel, for one run alone, need not be compiled."""

    rollout: Rollout

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.rollout.dtype

    def run(self, state: np.ndarray, constants: Any, controls: Any, why: np.ndarray, steps: Steps, *rest: Any) -> Any:
        if len(state) > 1:
            return self.rollout.run(state, constants, controls, why, steps, *rest)
        both, ends = np.repeat(state, 2, axis=0), np.repeat(why, 2)
        counts = self.rollout.run(both, constants, controls, ends, steps)
        state[:], why[:] = both[:1], ends[:1]
        return counts[:1]


@contextlib.contextmanager
def refused_by(where: str, hint: str = "") -> Iterator[None]:
    """Refusals of states by a simulation, as those of `where`; hint: a sentence that follows."""
    try:
        yield
    except StateError as error:
        if error.where != "simulate":
            raise
        words = ". ".join(filter(None, (str(error.refusal), hint)))
        raise StateError.of(where, replace(error.refusal, sentence=words)) from None
