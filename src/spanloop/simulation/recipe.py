"""How a run was made: the arguments of sl.simulate, in memory only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.simulation.integrators.integrator import Integrator
from spanloop.simulation.problem import Problem


@dataclass(frozen=True, eq=False)
class Recipe:
    """The mechanism, the start q (nq,), v (nv,) with closed loops, and the other arguments of sl.simulate."""

    robot: Dynamics
    q: np.ndarray
    v: np.ndarray
    integrator: Integrator
    arguments: Mapping[str, Any]

    @staticmethod
    def of(problem: Problem, arguments: Mapping[str, Any], integrator: Integrator) -> Recipe | None:
        """That of a single run; None of a batch. Arrays are those of the problem, which no caller changes."""
        if problem.batch:
            return None
        own = {n: problem.inputs.values for n in ("tau", "inputs") if arguments[n] is not None}
        return Recipe(problem.robot, problem.q[0], problem.v[0], integrator, {**arguments, **own})
