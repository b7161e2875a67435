"""A motion for portable targets: the schedule of one step, and the numbers that its arrays begin with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.compiler.lower import Schedule
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, UnsupportedError
from spanloop.kernels.lowering import parameter_conditions
from spanloop.model import Model
from spanloop.model.parameters import Parameters, Varied
from spanloop.simulation.controllers import Callback
from spanloop.simulation.integrators.integrator import AUTO, Integrator, schedule
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import Problem
from spanloop.simulation.simulate import with_stiffness
from spanloop.simulation.time_loop import positive
from spanloop.topology.mechanism import mechanism

STAGE = 1.0 / 16.0  # of a change of parameters that are lengths: the largest stage
LEAST_SHARE = 1.0 / 1024.0  # of a change: the smallest stage
MOST_TURN = 0.1  # rad, or of the shortest loop: the most that a coordinate changes in a stage
_LENGTH = re.compile(r"\.position\.[xyz]$")


@dataclass(frozen=True)
class PortableMotion:
    """One run in steps of a fixed length [s]; integrator: the name of its method."""

    problem: Problem
    integrator: str
    step: float
    dtype: str = "float64"  # "float32": sums are compensated
    compact: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of sl.simulate, but for step and integrator

    @staticmethod
    def of(
        robot: Dynamics | Model,
        q: Any = None,
        v: Any = None,
        *,
        step: float = 1e-3,
        integrator: str = AUTO,
        dtype: str = "float64",
        varied: Sequence[str] = (),
        compact: bool = False,
        decay: int | None = None,
        **options: Any,
    ) -> PortableMotion:
        """The motion of sl.simulate's arguments; options: those that say what acts (tau, controller, forces, ...).

        varied: names of parameters (model.parameters().names) that are the array "p" of every step. compact: shorter
        code that takes a little longer (step_schedule.py). decay: place in u of a rate at which all motion decays.
        """
        robot = robot if isinstance(robot, Dynamics) else Dynamics(robot)
        step = positive(step, "step")
        chosen = Integrator(integrator)
        if chosen.adaptive:
            raise InputError(f"integrator {integrator!r} chooses its own steps; portable code takes fixed ones: 'rk4'")
        if isinstance(options.get("controller"), Callback):
            raise UnsupportedError(
                "a callback runs in Python and has no portable form; give the function itself: controller=function"
            )
        problem = Problem.of(robot, q, v, step=step, **options)
        if len(problem) != 1:
            raise InputError(f"this is a batch of {len(problem)} runs; portable code moves one")
        problem, chosen = with_stiffness(problem, chosen, step)
        problem = with_varied(replace(problem, system=replace(problem.system, decay=decay)), tuple(varied))
        return PortableMotion(problem, chosen.name, step, dtype, compact, {"q": q, "v": v, **options})

    @cached_property
    def schedule(self) -> Schedule:
        """The calls of one step."""
        return schedule(self.problem.system, self.problem.events, self.integrator, self.dtype, self.compact)

    @cached_property
    def start(self) -> dict[str, np.ndarray]:
        """The numbers of the arrays of state, constants and controls before the first step, by name."""
        s, p = self.schedule, self.problem
        layout = StateLayout.of(p.system, p.events, self.dtype)
        row = p.state(layout)[0]
        found = {n: row[layout.places[n]] for n in s.state} | p.constants_of(0)
        if s.controls:
            found["u"] = np.asarray(p.inputs.at(p.batch, np.zeros((1, 1), int)), float)[0, 0]
        return {n: np.asarray(x, float) for n, x in found.items()}

    @property
    def length_places(self) -> list[int]:
        """Places in "p" of the lengths that open loops, which are followed in stages."""
        system = self.problem.system
        names = system.varied or (Parameters.of(system.model).names if system.live else ())
        return [k for k, n in enumerate(names) if _LENGTH.search(n)] if system.keeps_closed else []

    @property
    def most_changes(self) -> list[float]:
        """For each coordinate (nq) the most that it changes in one stage: more may lead to another assembly."""
        model = self.problem.model
        size = min((c.length for c in mechanism(model).closures), default=1.0)
        return [MOST_TURN * (size if x else 1.0) for j in model.joints if j.kind.nv for x in j.kind.lengths()]

    def parameter_guards(self, p: Sequence[Any]) -> list[Any]:
        """The conditions on the array "p", which may be traced."""
        system = self.problem.system
        every = Varied.of(system.model, system.varied, "export").expanded(p) if system.varied else p
        return list(parameter_conditions(self.problem.model, {"parameters": every}))


def with_varied(problem: Problem, names: tuple[str, ...]) -> Problem:
    """The problem with these parameters as inputs of every step, at the model's own values."""
    if not names:
        return problem
    if problem.system.live:
        raise InputError("parameters are given as numbers and vary, too; give a model with these parameters instead")
    start = Varied.of(problem.model, names, "varied").start
    system = replace(problem.system, varied=names)
    rows = {**problem.constant_rows(), "p": start[None]} if problem.system.constants else {"p": start[None]}
    return replace(problem, system=system, constants=np.concatenate([rows[n] for n in system.constants], axis=1))
