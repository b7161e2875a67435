"""The compiled right-hand side of one run, for integrators that choose their own steps, and the way back to loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spanloop.simulation.problem import Task
from spanloop.simulation.traced_kernels import kernel


@dataclass(frozen=True)
class Slopes:
    """Of rows y = (q, v).

    rates(t, y): dy/dt, NaN where there is none. back(y): the row with loops closed and quaternions of unit length, the
    closure error left, and by how much y was off. inputs: what the run is given. jacobian(t, y): of rates, where
    an integrator should not look for it by itself.
    """

    rates: Callable[[float, np.ndarray], np.ndarray]
    back: Callable[[np.ndarray], tuple[np.ndarray, float, float]]
    inputs: np.ndarray
    jacobian: Callable[[float, np.ndarray], np.ndarray] | None = None


def slopes(task: Task, k: int) -> Slopes:
    """Those of run k."""
    system, nq, nv = task.system, task.model.nq, task.model.nv
    given, sizes, parts = told(task, k), sizes_of(task), constants(task, k)

    def right(x):
        a, pairs = system.accelerations({**x, "z": ()})
        return [*system.rates(x["q"], x["v"]), *a], pairs

    def closed(x):
        if not system.projects:
            return [*system.moved(x["q"], [0.0] * nv), *x["v"], 0.0], ()
        q, left = system.closed_position(x)
        return [*q, *system.closed_velocity({**x, "q": q}), left], ()

    derivative = kernel("rates", sizes, nq + nv, right, system.key())
    kept = {n: size for n, size in sizes.items() if n not in ("t", "u")}
    manifold = kernel("closed", kept, nq + nv + 1, closed, system.key())

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        q, v = np.ascontiguousarray(y[:nq]), np.ascontiguousarray(y[nq:])
        found = np.full(nq + nv, np.nan)
        if np.isfinite(y).all():
            derivative.attempt((np.array([t]), q, v, given(t, q, v), *parts), found)
        return found

    def back(y: np.ndarray) -> tuple[np.ndarray, float, float]:
        found = manifold(np.ascontiguousarray(y[:nq]), np.ascontiguousarray(y[nq:]), *parts)
        return found[:-1], float(found[-1]), float(np.abs(found[:-1] - y).max(initial=0.0))

    return Slopes(rates, back, fixed_inputs(task, k))


def sizes_of(task: Task) -> dict[str, int]:
    """What the right-hand side reads."""
    system, model = task.system, task.model
    own = {"t": 1, "q": model.nq, "v": model.nv, "u": task.drive.inputs}
    return own | {n: system.sizes[n] for n in system.constants}


def constants(task: Task, k: int) -> list[np.ndarray]:
    """The constants of run k, in the system's order."""
    row, parts, at = task.constants[k if len(task.constants) > 1 else 0], [], 0
    for n in task.system.constants:
        parts.append(np.ascontiguousarray(row[at : at + task.system.sizes[n]]))
        at += task.system.sizes[n]
    return parts


def fixed_inputs(task: Task, k: int) -> np.ndarray:
    """The inputs of run k; zeros where a callback tells them."""
    if task.inputs.callback:
        return np.zeros(task.drive.inputs)
    rows = task.inputs.at(task.batch, np.zeros((len(task), 1), int))
    return np.ascontiguousarray(rows[k if len(rows) > 1 else 0, 0])


def told(task: Task, k: int) -> Callable[[float, np.ndarray, np.ndarray], np.ndarray]:
    """The inputs of run k at t, q, v."""
    fixed = fixed_inputs(task, k)
    return lambda t, q, v: fixed if task.inputs.callback is None else task.inputs.asked(t, q, v)
