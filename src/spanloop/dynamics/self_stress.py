"""Closure forces that balance each other, Jᵀ λ = 0: redundant constraints carry them, and no motion shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.dynamics.grasp_forces import in_child_axes
from spanloop.loops.dynamics_solution import REDUNDANT, times, wrench_map
from spanloop.loops.redundant_directions import direction_names, null_directions
from spanloop.topology import mechanism


@dataclass(frozen=True, eq=False)
class SelfStress:
    """One such force, in words and by loop: [torque; force] (6) on body b at its child frame in that frame's axes [N m,
    N]; of couplings one number. Loops and couplings without a part in it are left out."""

    name: str
    wrenches: dict[str, Any]


def self_stresses(robot: Any, q: np.ndarray) -> list[SelfStress]:
    """The independent ones at a closed state q (nq,); `robot` is a Dynamics. Driven joints take any force."""
    model, m = robot.model, mechanism(robot.model)
    if not m.n_rows:
        return []
    lengths = np.array(m.row_lengths)
    J = np.asarray(robot.closure_jacobian(q), dtype=float)
    J[:, [k for j in model.joints if j.driven for k in range(model.nv)[model.v_slice(j.name)]]] = 0.0
    J = J / lengths[:, None] * np.array(m.dof_lengths)
    found = null_directions(model, J, REDUNDANT * float(np.linalg.norm(J, 2)))
    names = direction_names(model, found, lengths)
    return [SelfStress(name, _wrenches(robot, q, x / lengths)) for name, x in zip(names, found, strict=True)]


def _wrenches(robot: Any, q: np.ndarray, lam: np.ndarray) -> dict[str, Any]:
    m = mechanism(robot.model)
    least = 1e-9 * np.abs(lam).max()
    out: dict[str, Any] = {}
    for c in m.closures:
        if np.abs(lam[list(c.rows)]).max(initial=0.0) > least:
            out[c.name] = in_child_axes(robot, c.name, q, times(wrench_map(robot, c, q), lam[list(c.rows)]))
    return out | {g.name: float(lam[g.row]) for g in m.gears if abs(lam[g.row]) > least}
