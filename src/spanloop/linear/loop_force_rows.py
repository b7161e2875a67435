"""How the forces of loops change with states and inputs of a linear model.

| symbol | shape | meaning |
|---|---|---|
| λ | (rows,) | forces along the rows of all loops: M a + h = tau + Jᵀ λ |
| W | (6, rows of a loop) | W λ is its [torque; force] on body b at its child frame in world axes |

Differentiated along closed motions, Jᵀ dλ = d(M a + h) − dtau − dJᵀ λ, and W turns with body b:
d(W λ) = W dλ + dθ × W λ, where the loop's constrained directions are constant in its child frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from spanloop.derivatives.closed_motion import closure_jacobian_changes
from spanloop.errors import InputError, UnsupportedError
from spanloop.loops.dynamics_solution import REDUNDANT, wrench_map
from spanloop.topology import mechanism

if TYPE_CHECKING:
    from spanloop.linear.output_rows import Changes


def loop_force_changes(changes: Changes, loop: str, wanted: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Changes of a loop's [torque; force] by states (n, 6, k) and by inputs (n, 6, m).

    wanted: rows of the six that are asked for; those that redundant constraints leave undetermined are refused.
    """
    robot, m = changes.robot, mechanism(changes.model)
    closure = next(c for c in m.closures if c.name == loop)
    if not closure.kind.constant_space:
        raise UnsupportedError(
            f"linearize: the force of loop {loop!r} ({closure.kind.name}) acts along directions that move in its child "
            "frame; forces of such loops are no outputs. Differences of robot.solve(...).loop_forces give them"
        )
    free = np.array([not j.driven for j in changes.model.joints for _ in range(j.kind.nv)])
    J = np.asarray(robot.closure_jacobian(changes.q), dtype=float) * free
    solution = robot.solve(changes.q, changes.v, changes.tau, forces=changes.forces or None)
    back, null = _inverses(np.swapaxes(J, 1, 2), np.array(m.row_lengths))
    W, rows = wrench_map(robot, closure, changes.q), list(closure.rows)
    _refuse_undetermined(W @ null[:, rows], loop, wanted)
    needed, made = _needed(changes, solution.rows)
    wrench = np.einsum("nir,nr->ni", W, solution.rows[:, rows])
    turn = np.asarray(robot.jacobian(changes.q, changes.model.loops[closure.number].b), dtype=float)[:, :3] @ changes.dq
    turned = [np.cross(turn, wrench[:, s, None], axis=1) for s in (slice(0, 3), slice(3, 6))]
    by_states = W @ (back @ (free[:, None] * needed))[:, rows] + np.concatenate(turned, axis=1)
    return by_states, W @ (back @ (free[:, None] * made))[:, rows]


def _needed(changes: Changes, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """d(M a + h) − dtau − dJᵀ λ by states (n, nv, k) and by inputs (n, nv, m)."""
    options = {"forces": tuple(changes.forces)} if changes.forces else {}
    needed = changes.along("tree_inverse_dynamics", 3, **options)
    turned = np.einsum("nkrv,nr->nvk", closure_jacobian_changes(changes.robot, changes.q, changes.dq), lam)
    M = np.asarray(changes.robot.mass_matrix(changes.q), dtype=float)
    return needed - turned, M @ changes.da_du - changes.torques


def _inverses(Jt: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shortest answers (n, rows, nv) to Jᵀ λ = right, and a projector (n, rows, rows) on what stays open."""
    scaled = Jt / lengths
    back = np.linalg.pinv(scaled, rcond=REDUNDANT)
    null = np.eye(Jt.shape[-1]) - back @ scaled
    return back / lengths[:, None], null / lengths[:, None]


def _refuse_undetermined(freedom: np.ndarray, loop: str, wanted: Sequence[int]) -> None:
    """freedom (n, 6, rows): how much of each component redundant constraints leave open."""
    size = np.abs(freedom).max(axis=(0, 2), initial=0.0)
    names = [f"{kind}.{x}" for kind in ("torque", "force") for x in "xyz"]
    lost = [names[k] for k in wanted if size[k] > 1e-7]
    if lost:
        raise InputError(
            f"linearize: {lost[0]} of loop {loop!r} is not unique, since constraints are redundant; robot.diagnose(q) "
            f"lists them. Determined: {', '.join(x for x, s in zip(names, size, strict=True) if s <= 1e-7) or 'none'}"
        )
