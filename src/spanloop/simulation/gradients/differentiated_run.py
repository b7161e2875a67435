"""A run that is differentiated: the problem of sl.simulate with its grid of times, what has no derivative refused."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.compiler.lower import Schedule
from spanloop.compiler.runtime.gpu.rollout import AnyRollout, GpuRollout
from spanloop.compiler.runtime.rollout import Rollout
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, Reason, Refusal, UnsupportedError
from spanloop.kernels import of_model
from spanloop.model import Model
from spanloop.model.flexible_bodies.stiffening_limits import judge_spin
from spanloop.simulation.controllers import Callback
from spanloop.simulation.events.endings import Events
from spanloop.simulation.gradients.wanted import MOMENTS, PARAMETERS, Wanted
from spanloop.simulation.integrators.integrator import Integrator, gpu_rollout, rollout, schedule, schedule_key
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import Problem
from spanloop.simulation.simulate import integrated, robot_of, steps_taken, with_stiffness, with_target
from spanloop.simulation.time_loop import Grid, Progress, TimeLoop, grid


@dataclass(frozen=True)
class DifferentiatedRun:
    """Runs with steps of one length, each of which is a differentiable function of the state before it."""

    function: str  # that is called, for messages
    problem: Problem
    grid: Grid
    integrator: Integrator
    wanted: Wanted
    has_step_axis: bool  # the inputs are given with an axis of steps

    @staticmethod
    def of(
        function: str,
        model: Model | Dynamics,
        q: Any,
        v: Any,
        *,
        wrt: Any,
        duration: float,
        step: float | None,
        sample: float | None,
        integrator: str | Integrator,
        parameters: Any,
        by_samples: bool = False,
        **others: Any,
    ) -> DifferentiatedRun:
        """The run of sl.simulate's arguments; by_samples: all samples are differentiated; others: of Problem.of."""
        if not isinstance(model, Model | Dynamics):
            raise InputError(f"{function}: model is a {type(model).__name__}; expected a Model or a Dynamics")
        robot = robot_of(model)
        chosen = integrator if isinstance(integrator, Integrator) else Integrator(integrator)
        chosen = with_target(chosen, model, None)
        _refuse_what_has_no_derivative(function, robot.model, chosen, others)
        wanted = Wanted.of(function, robot.model, wrt, others["controller"], others["inputs"])
        if PARAMETERS in wanted.names and parameters is None:
            parameters = robot.model.parameters()
        method = robot.method if others["method"] is None else others["method"]
        problem = Problem.of(robot, q, v, step=step, parameters=parameters, **{**others, "method": method})
        live = problem.system.live_parameters(problem.constants)
        judge_spin(function, robot, problem.q, problem.v, "at the start", live)
        if not wanted.sizes(problem).get(MOMENTS, 1):
            raise InputError(f"{function}: wrt holds 'at', but no event has a time; give events at=, a time in seconds")
        width = len(problem) * (robot.model.nq + robot.model.nv)
        times = grid(duration, step, sample, width * (1 + wanted.columns(problem) if by_samples else 1))
        problem, chosen = with_stiffness(problem, chosen, times.h)
        given = others["tau"] if others["inputs"] is None and others["controller"] is None else others["inputs"]
        shaped = not isinstance(given, Mapping) and given is not None and np.ndim(given) > 1
        steps = problem.inputs.values is not None and problem.inputs.values.shape[-2] > 1
        return DifferentiatedRun(function, problem, times, chosen, wanted, shaped or steps)

    # ---- events

    @cached_property
    def taken(self) -> tuple[TimeLoop, Progress, StateLayout]:
        """The time loop, the runs after all steps, and the layout of their state."""
        return steps_taken(self.problem, self.grid, self.integrator)

    @cached_property
    def meets_events(self) -> bool:
        """Whether events change the mechanism, or a condition ends a run."""
        conditions = bool(self.problem.events.conditions)
        return self.problem.system.switching is not None or (conditions and bool(self.taken[1].why.any()))

    # ---- the arrays of a step

    @cached_property
    def layout(self) -> StateLayout:
        """What a run carries from step to step."""
        return StateLayout.of(self.problem.system, self.problem.events, self.integrator.dtype)

    @property
    def velocity(self) -> str:
        """The array that samples show as v."""
        return "v.closed" if self.problem.system.keeps_closed else "v"

    @cached_property
    def inputs(self) -> np.ndarray:
        """Rows (n or 1, steps or 1, width) of the inputs."""
        self.problem.inputs.refuse_two_readings(self.grid.steps, self.problem.applied.controller.inputs)
        rows = self.problem.inputs.rows(self.problem.batch, self.grid.steps, lambda state: [])
        assert isinstance(rows, np.ndarray)
        return rows

    @cached_property
    def constants(self) -> np.ndarray:
        """Rows (n or 1, width) of what is constant in a run."""
        return np.ascontiguousarray(self.problem.constants, self.integrator.dtype)

    @property
    def inputs_are_constant(self) -> bool:
        """Whether one row of inputs acts in all steps."""
        return self.inputs.shape[1] == 1

    def step_inputs(self, first: int, count: int) -> np.ndarray:
        """Rows (n or 1, count or 1, width) of the inputs of some steps."""
        rows = self.inputs if self.inputs_are_constant else self.inputs[:, first : first + count]
        return np.ascontiguousarray(rows, self.integrator.dtype)

    def times(self, first: int, count: int) -> np.ndarray:
        """Times (count,) at which steps start [s], as a rollout counts them."""
        found: np.ndarray = self.problem.start + np.arange(first, first + count) * self.grid.h
        return found

    # ---- its schedules, compiled

    def schedule(self) -> Schedule:
        """The step without conditions that end a run: a run that is differentiated has met none."""
        taken = self.problem.system, _none(self.problem.events), self.integrator.name, self.integrator.dtype
        return schedule(*taken, unrolled=True)

    def compiled(self, kind: str, make: Callable[[], Schedule], ends: bool = False) -> AnyRollout:
        """The rollout of a schedule that is derived from the step; kind: names it; ends: conditions end a run."""
        events = self.problem.events if ends else _none(self.problem.events)
        own = schedule_key(self.problem.system, events, self.integrator.name, self.integrator.dtype)
        key = hashlib.sha256(f"{own}|{kind}".encode()).hexdigest()
        threads = self.integrator.threads if self.integrator.target == "cpu" else self.integrator.target
        place = key, self.integrator.dtype, threads
        found = _rollouts.pop(place, None)
        if found is None:
            label = f"{kind.split('|')[0]} {of_model(self.problem.model)}"
            if self.integrator.target == "cpu":
                found = Rollout(key, make, self.integrator.dtype, self.integrator.threads, label)
            else:
                found = GpuRollout(key, make, self.integrator.dtype, label)
        for oldest in tuple(_rollouts)[: 1 - _MOST]:
            _rollouts.pop(oldest, None)  # another thread may have done so
        _rollouts[place] = found
        return found

    @cached_property
    def recorded(self) -> dict[str, slice]:
        """Where each array is in a recorded sample: what a run shows, then the rest of its state but for events."""
        own = {name: size for name, size in self.layout.sizes.items() if name != "g"}
        sizes = {"q": self.problem.model.nq, self.velocity: self.problem.model.nv} | own
        ends = np.cumsum(list(sizes.values()))
        return {n: slice(int(e) - k, int(e)) for (n, k), e in zip(sizes.items(), ends, strict=True)}

    @cached_property
    def recorder(self) -> AnyRollout:
        """The time loop of sl.simulate, with all of the state recorded at the start of every step.

        Where a run shows its whole state, as those of trees in float64, it is that very loop.
        """
        taken = self.problem.system, self.problem.events, self.integrator.name, self.integrator.dtype
        if set(self.recorded) <= {"q", "v", "z"}:
            on_cpu = self.integrator.target == "cpu"
            return rollout(*taken, self.integrator.threads) if on_cpu else gpu_rollout(*taken)

        def make() -> Schedule:
            return replace(schedule(*taken), record=tuple(self.recorded))

        return self.compiled("recorded", make, ends=True)

    # ---- runs that end early

    def met_at_start(self, state: np.ndarray) -> np.ndarray:
        """The runs (n,) in which a condition is met at the start; state: rows of it."""
        events = self.problem.events
        if not events.conditions:
            return np.zeros(len(state), bool)
        values = state[:, self.layout.places["g"]][:, len(events.limits) :]
        return np.asarray(~(values > 0.0).all(axis=1))

    @cached_property
    def _outcomes(self) -> tuple[Any, ...]:
        return tuple(integrated(self.problem, self.grid, self.integrator).outcomes)

    def ended(self, run: int) -> Refusal:
        """Why a run that did not last its duration has no gradient."""
        outcome = self._outcomes[run]
        why = outcome.sentence if not outcome.finished else "a step was taken in parts, near a singular configuration"
        words = f"the run ended before its duration of {self.grid.duration:g} s, and has no derivative there: {why}"
        return Refusal(Reason.OTHER, words)


_rollouts: dict[tuple[str, str, int | str], AnyRollout] = {}  # by key, dtype and threads, the oldest first
_MOST = 32


def _none(events: Events) -> Events:
    return replace(events, limits=(), conditions=())


def _refuse_what_has_no_derivative(function: str, model: Model, chosen: Integrator, others: dict[str, Any]) -> None:
    """Raise UnsupportedError for runs that have no derivative, or none that is computed."""
    if isinstance(others["controller"], Callback):
        raise UnsupportedError(
            f"{function}: a callback is called by Python and has no derivative. Write the controller in the arithmetic "
            "of NumPy, (t, q, v) -> torques"
        )
    if chosen.adaptive:
        raise UnsupportedError(
            f"{function}: integrator {chosen.name!r} chooses its steps; derivatives are those of steps of fixed "
            "length. Use integrator='rk4', 'euler', 'midpoint' or 'implicit'"
        )
    if chosen.accuracy is not None:
        raise UnsupportedError(
            f"{function}: with accuracy= the steps are halved until they fit, which has no derivative. Give step="
        )
    if chosen.checkpoint is not None:
        raise UnsupportedError(f"{function}: checkpoint is a file of sl.simulate; here states are kept in memory")
    if model.contacts and others["contacts"] != "ignore":
        raise UnsupportedError(
            f"{function}: model {model.name!r} has contacts, whose impacts and friction have no derivative here. "
            "contacts='ignore' leaves them out"
        )
