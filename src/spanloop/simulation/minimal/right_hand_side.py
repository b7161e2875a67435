"""The right-hand side in minimal coordinates, for integrators that choose their own steps.

What an integrator carries of unactuated joints says where Newton's method begins, and lets it see its error there; no
slope depends on it. An evaluation across a singular position from the last accepted step has no answer, which shortens
the step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spanloop.simulation.integrators.right_hand_side import Slopes, constants, fixed_inputs, sizes_of, told
from spanloop.simulation.integrators.step_schedule import OPEN
from spanloop.simulation.problem import Task
from spanloop.simulation.system import SINGULAR
from spanloop.simulation.traced_kernels import kernel

SMALL = 1e-6  # rad or m, and their rates: a difference from which slopes' derivatives are taken
ROUNDS = 4  # Newton steps: those of integrators may be long


def slopes(task: Task, k: int) -> Slopes:
    """Those of run k."""
    system, nq, nv = task.system, task.model.nq, task.model.nv
    given, sizes, parts = told(task, k), {"near": nq, **sizes_of(task)}, constants(task, k)
    near, own = task.q[k].copy(), _actuated(task)

    def whole(x) -> tuple[list, list, Any, list]:
        q, v, left = system.completed(x, ROUNDS)
        T, pairs = system.actuated_rates({**x, "q": q})
        before, _ = system.actuated_rates({**x, "q": x["near"]})
        pairs = [*pairs, (left, OPEN), (0.0, system.completion.likeness(before, T))]
        return q, v, left, [*pairs, (SINGULAR, system.completion.margin(T))]

    def right(x):
        q, v, _, pairs = whole(x)
        a, more = system.accelerations({**x, "q": q, "v": v, "z": ()})
        return [*system.rates(q, v), *a], [*pairs, *more]

    def closed(x):
        q, v, left, pairs = whole(x)
        return [*q, *v, left], pairs

    derivative = kernel("rates", sizes, nq + nv, right, system.key())
    kept = {n: size for n, size in sizes.items() if n not in ("t", "u")}
    completed = kernel("closed", kept, nq + nv + 1, closed, system.key())

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        q, v = np.ascontiguousarray(y[:nq]), np.ascontiguousarray(y[nq:])
        found = np.full(nq + nv, np.nan)
        if not np.isfinite(y).all() or not derivative.attempt(
            (near, np.array([t]), q, v, given(t, q, v), *parts), found
        ):
            found[:] = np.nan
        return found

    def back(y: np.ndarray) -> tuple[np.ndarray, float, float]:
        found = np.full(nq + nv + 1, np.nan)
        if completed.attempt((near, np.ascontiguousarray(y[:nq]), np.ascontiguousarray(y[nq:]), *parts), found):
            near[:] = found[:nq]
            return found[:-1], float(found[-1]), float(np.abs(found[own] - y[own]).max(initial=0.0))
        return y, 0.0, 0.0

    def jacobian(t: float, y: np.ndarray) -> np.ndarray:
        """By differences; no slope depends on unactuated joints, which an integrator would move far to find out."""
        J = np.zeros((nq + nv, nq + nv))
        for i in own:
            h = np.zeros(nq + nv)
            h[i] = SMALL * max(1.0, abs(y[i]))
            J[:, i] = np.nan_to_num((rates(t, y + h) - rates(t, y - h)) / (2.0 * h[i]))
        return J

    return Slopes(rates, back, fixed_inputs(task, k), jacobian)


def _actuated(task: Task) -> list[int]:
    """Places of the actuated joints in a row (q, v)."""
    model, freedoms = task.model, task.system.completion.actuated
    joints = [j for j in model.joints if model.v_slice(j.name).start in freedoms]
    places = [i for j in joints for i in range(model.nq)[model.q_slice(j.name)]]
    return places + [model.nq + f for f in freedoms]
