"""A motion without an end that is known beforehand: a few compiled steps at a time, for as long as someone looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from spanloop.compiler.runtime.rollout import Rollout
from spanloop.dynamics import Dynamics
from spanloop.simulation.problem import Task, task
from spanloop.simulation.rollout import rollout
from spanloop.simulation.state_layout import Layout
from spanloop.simulation.termination import Ending
from spanloop.simulation.time_grid import Grid
from spanloop.simulation.time_loop import Job
from spanloop.trajectory import Outcome


@dataclass
class Moment:
    """Where a motion is: time [s], q (nq,), v (nv,), and the largest closure error after any step so far."""

    time: float
    q: np.ndarray
    v: np.ndarray
    residual: float = 0.0


@dataclass(frozen=True)
class Stepper:
    """One run from step to step, with loops projected; all that it carries is in a Moment.

    start (nq,): a closed state, from which the loops' usual behaviour is taken. controller(t, q, v, u): torques, traced
    into the steps; u (width,) are given anew for every stretch. Limits of joints are not looked at.
    """

    robot: Dynamics
    start: np.ndarray
    controller: Callable
    width: int
    step: float = 1e-3
    method: str = "rk4"

    def advanced(self, now: Moment, count: int, u) -> tuple[Moment, Outcome]:
        """`count` steps later, or as far as they lead; the outcome says which."""
        start = replace(self._task, q=np.array(now.q, float)[None], v=np.array(now.v, float)[None])
        controls = np.array(u, float).reshape(1, 1, self.width)
        grid = Grid(count * self.step, count, count)
        job = Job(self._rollout, grid, np.ascontiguousarray(start.constants), controls, self.width, now.time)
        p = job.begin(start.state(self._layout), self.robot.model.nq + self.robot.model.nv)
        job.advance(p, count)
        (end,) = Ending(job, start, self._layout).all(p)
        row, places = p.state[0], self._layout.places
        residual = max(now.residual, float(row[places["loops"]][0])) if "loops" in self._layout else 0.0
        later = Moment(end.outcome.time, row[places["q"]].copy(), row[places["v"]].copy(), residual)
        return later, end.outcome

    @cached_property
    def _task(self) -> Task:
        """All but the state, which each stretch begins with anew."""
        blank = np.zeros(self.width)
        return task(self.robot, self.start, None, controller=self.controller, inputs=blank, limits="ignore")

    @cached_property
    def _layout(self) -> Layout:
        return Layout.of(self._task.system, self._task.watch, "float64")

    @cached_property
    def _rollout(self) -> Rollout:
        return rollout(self._task.system, self._task.watch, self.method, "float64", 1)
