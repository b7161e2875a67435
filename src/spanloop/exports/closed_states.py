"""States at which exported code is compared with Python's: positions near a start, with the loops closed."""

from __future__ import annotations

from typing import Any

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import SpanloopError
from spanloop.model import Model
from spanloop.model.poses import default_position


def closed_states(model: Model, start: Any, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """`count` states q (nq,), v (nv,), the first at the start; fewer where loops do not close around others."""
    robot, rng = Dynamics(model), np.random.default_rng(3)
    closed = bool(model.loops or model.couplings)
    q = default_position(model) if start is None else np.array(start, float)
    if closed and start is None:
        q = robot.assemble(q)
    size, out = _sizes(model), []
    for k in range(count):
        at: np.ndarray = np.asarray(
            robot.integrate(q, (0.0 if k == 0 else 0.3) * size * rng.standard_normal(model.nv)), float
        )
        v: np.ndarray = 0.5 * size * rng.standard_normal(model.nv)
        try:
            if closed:
                at, v = robot.project(robot.assemble(at) if k else at, v)
        except SpanloopError:  # this far from the start the loops have no position
            continue
        out.append((np.asarray(at, float), np.asarray(v, float)))
    return out


def _sizes(model: Model) -> np.ndarray:
    """Displacements (nv,): 1 rad or m, of the modes of flexible bodies a thousandth."""
    return np.array([1e-3 if j.kind.bends else 1.0 for j in model.joints for _ in range(j.kind.nv)])
