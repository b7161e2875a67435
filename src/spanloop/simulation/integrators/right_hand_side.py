"""The compiled right-hand side of one run, for adaptive integrators, and its projection to the closed loops.

In minimal coordinates an integrator's positions of unactuated joints are where Newton's method begins, and let it
estimate its error there; no rate depends on them. An evaluation across a singular configuration from the last
accepted step is NaN, which shortens the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.simulation.integrators.step_schedule import OPEN
from spanloop.simulation.problem import Problem
from spanloop.simulation.system import SINGULAR
from spanloop.simulation.traced_kernels import kernel

SMALL = 1e-6  # rad or m, and their rates: a difference for derivatives of the right-hand side
ROUNDS = 4  # Newton steps in minimal coordinates: an integrator's steps may be long


@dataclass(frozen=True)
class RightHandSide:
    """Functions of rows y = (q, v).

    rates(t, y): dy/dt, NaN where there is none. project(y): the row with loops closed and quaternions of unit length,
    the closure error left (that of y where loops are not kept closed), and by how much y was off, as integrators
    measure errors (`_drift`). inputs: of the run.
    jacobian(t, y): of rates, where an integrator should not estimate it by itself.
    """

    rates: Callable[[float, np.ndarray], np.ndarray]
    project: Callable[[np.ndarray], tuple[np.ndarray, float, float]]
    inputs: np.ndarray
    jacobian: Callable[[float, np.ndarray], np.ndarray] | None = None


def right_hand_side(problem: Problem, k: int, switched: Mapping[str, np.ndarray] | None = None) -> RightHandSide:
    """The right-hand side of run k; switched: arrays that events change, as they are when it is called."""
    system, nq, nv = problem.system, problem.model.nq, problem.model.nv
    inputs, sizes, fixed = inputs_of_run(problem, k), _sizes(problem), list(problem.constants_of(k).values())

    def constants() -> list[np.ndarray]:
        return fixed if switched is None else [*fixed, *(switched[n] for n in system.switched)]

    def right(x):
        a, pairs = system.accelerations({**x, "z": ()})
        return [*system.rates(x["q"], x["v"]), *a], pairs

    def closed(x):
        if not system.projects:
            return [*system.moved(x["q"], [0.0] * nv), *x["v"], system.openness(x)], ()
        q, left = system.closed_position(x)
        return [*q, *system.closed_velocity({**x, "q": q}), left], ()

    derivative = kernel("rates", sizes, nq + nv, right, system.key())
    kept = {n: size for n, size in sizes.items() if n not in ("t", "u")}
    manifold = kernel("closed", kept, nq + nv + 1, closed, system.key())

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        q, v = np.ascontiguousarray(y[:nq]), np.ascontiguousarray(y[nq:])
        found = np.full(nq + nv, np.nan)
        if np.isfinite(y).all():
            derivative.attempt((np.array([t]), q, v, inputs(t, q, v), *constants()), found)
        return found

    def project(y: np.ndarray) -> tuple[np.ndarray, float, float]:
        found = manifold(np.ascontiguousarray(y[:nq]), np.ascontiguousarray(y[nq:]), *constants())
        return found[:-1], float(found[-1]), _drift(found[:-1], y)

    return RightHandSide(rates, project, _fixed_inputs(problem, k))


def minimal_right_hand_side(problem: Problem, k: int) -> RightHandSide:
    """The right-hand side of run k in minimal coordinates."""
    system, nq, nv = problem.system, problem.model.nq, problem.model.nv
    inputs, constants = inputs_of_run(problem, k), list(problem.constants_of(k).values())
    sizes = {"near": nq, **_sizes(problem)}
    near, own = problem.q[k].copy(), _actuated(problem)

    def completed(x) -> tuple[list, list, Any, list]:
        q, v, left = system.completed(x, ROUNDS)
        T, pairs = system.actuated_rates({**x, "q": q})
        before, _ = system.actuated_rates({**x, "q": x["near"]})
        pairs = [*pairs, (left, OPEN), (0.0, system.completion.likeness(before, T))]
        return q, v, left, [*pairs, (SINGULAR, system.completion.margin(T))]

    def right(x):
        q, v, _, pairs = completed(x)
        a, more = system.accelerations({**x, "q": q, "v": v, "z": ()})
        return [*system.rates(q, v), *a], [*pairs, *more]

    def closed(x):
        q, v, left, pairs = completed(x)
        return [*q, *v, left], pairs

    derivative = kernel("rates", sizes, nq + nv, right, system.key())
    kept = {n: size for n, size in sizes.items() if n not in ("t", "u")}
    manifold = kernel("closed", kept, nq + nv + 1, closed, system.key())

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        q, v = np.ascontiguousarray(y[:nq]), np.ascontiguousarray(y[nq:])
        found = np.full(nq + nv, np.nan)
        if not np.isfinite(y).all() or not derivative.attempt(
            (near, np.array([t]), q, v, inputs(t, q, v), *constants), found
        ):
            found[:] = np.nan
        return found

    def project(y: np.ndarray) -> tuple[np.ndarray, float, float]:
        found = np.full(nq + nv + 1, np.nan)
        if manifold.attempt((near, np.ascontiguousarray(y[:nq]), np.ascontiguousarray(y[nq:]), *constants), found):
            near[:] = found[:nq]
            return found[:-1], float(found[-1]), _drift(found[own], y[own])
        return y, 0.0, 0.0

    def jacobian(t: float, y: np.ndarray) -> np.ndarray:
        """By differences; no rate depends on unactuated joints, which an integrator would move far to find out."""
        J = np.zeros((nq + nv, nq + nv))
        for i in own:
            h = np.zeros(nq + nv)
            h[i] = SMALL * max(1.0, abs(y[i]))
            J[:, i] = np.nan_to_num((rates(t, y + h) - rates(t, y - h)) / (2.0 * h[i]))
        return J

    return RightHandSide(rates, project, _fixed_inputs(problem, k), jacobian)


def _drift(closed: np.ndarray, y: np.ndarray) -> float:
    """The largest change of any number, relative to 1 + |y|: an integrator's tolerance is absolute and relative."""
    return float((np.abs(closed - y) / (1.0 + np.abs(y))).max(initial=0.0))


def _sizes(problem: Problem) -> dict[str, int]:
    """The arrays that the right-hand side reads."""
    system, model = problem.system, problem.model
    own = {"t": 1, "q": model.nq, "v": model.nv, "u": problem.applied.inputs}
    return own | {n: system.sizes[n] for n in system.parameters}


def _fixed_inputs(problem: Problem, k: int) -> np.ndarray:
    """The inputs of run k; zeros where a callback returns them."""
    if problem.inputs.callback:
        return np.zeros(problem.applied.inputs)
    rows = problem.inputs.at(problem.batch, np.zeros((len(problem), 1), int))
    return np.ascontiguousarray(rows[k if len(rows) > 1 else 0, 0])


def inputs_of_run(problem: Problem, k: int) -> Callable[[float, np.ndarray, np.ndarray], np.ndarray]:
    """The inputs of run k at t, q, v."""
    fixed = _fixed_inputs(problem, k)
    return lambda t, q, v: fixed if problem.inputs.callback is None else problem.inputs.called(t, q, v)


def _actuated(problem: Problem) -> list[int]:
    """Places of the actuated joints in a row (q, v)."""
    model, dofs = problem.model, problem.system.completion.actuated
    joints = [j for j in model.joints if model.v_slice(j.name).start in dofs]
    places = [i for j in joints for i in range(model.nq)[model.q_slice(j.name)]]
    return places + [model.nq + f for f in dofs]
