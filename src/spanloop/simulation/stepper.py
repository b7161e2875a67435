"""A motion without a fixed duration: a few compiled steps at a time, for the live viewer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from spanloop.compiler.runtime.rollout import Rollout
from spanloop.dynamics import Dynamics
from spanloop.simulation.integrators.integrator import AUTO, Integrator, rollout
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import End, Problem
from spanloop.simulation.simulate import with_stiffness
from spanloop.simulation.termination import Termination
from spanloop.simulation.time_loop import Grid, TimeLoop, expect_forces
from spanloop.trajectory import Outcome


@dataclass
class Moment:
    """The state of a motion: time [s], q (nq,), v (nv,), and the largest closure error after any step so far.

    contact_forces: of the last step, as a Segment has them; None without contacts, or before any step.
    """

    time: float
    q: np.ndarray
    v: np.ndarray
    residual: float = 0.0
    contact_forces: np.ndarray | None = None


@dataclass(frozen=True)
class Stepper:
    """One run from step to step, with loops projected; all that it carries is in a Moment.

    start (nq,): a closed state, from which the loops' usual rank is taken. controller(t, q, v, u): torques, traced
    into the steps; u (width,) may change from stretch to stretch. Limits of joints are not checked.
    """

    robot: Dynamics
    start: np.ndarray
    controller: Callable
    width: int
    step: float = 1e-3
    integrator: str = AUTO

    def advanced(self, now: Moment, count: int, u) -> tuple[Moment, Outcome]:
        """The moment after `count` steps, or where they ended, and the outcome."""
        start = replace(self._problem, q=np.array(now.q, float)[None], v=np.array(now.v, float)[None])
        controls = np.array(u, float).reshape(1, 1, self.width)
        grid = Grid(count * self.step, count, count)
        loop = TimeLoop(self._rollout, grid, np.ascontiguousarray(start.constants), controls, self.width, now.time)
        recorded = ("q", "v", *self._problem.system.contact_arrays)
        p = loop.begin(start.state(self._layout), sum(self._layout.sizes[name] for name in recorded))
        if self._problem.system.contacts:
            expect_forces(loop, p, self._layout)
        loop.advance(p, count)
        (end,) = Termination(loop, start, self._layout, self._chosen[1].name).ends(p, End(loop.outcome(p)))
        row, places = p.state[0], self._layout.places
        residual = max(now.residual, float(row[places["loops"]][0])) if "loops" in self._layout else 0.0
        forces = row[places["contact.f"]] / self.step if "contact.f" in self._layout else None
        later = Moment(end.outcome.time, row[places["q"]].copy(), row[places["v"]].copy(), residual, forces)
        return later, end.outcome

    @property
    def _problem(self) -> Problem:
        """All but the state, with which each stretch begins."""
        return self._chosen[0]

    @cached_property
    def _chosen(self) -> tuple[Problem, Integrator]:
        """The problem, and the integrator that suits it."""
        blank = np.zeros(self.width)
        problem = Problem.of(self.robot, self.start, None, controller=self.controller, inputs=blank, limits="ignore")
        return with_stiffness(problem, Integrator(self.integrator), self.step)

    @cached_property
    def _layout(self) -> StateLayout:
        return StateLayout.of(self._problem.system, self._problem.events, "float64")

    @cached_property
    def _rollout(self) -> Rollout:
        return rollout(self._problem.system, self._problem.events, self._chosen[1].name)
