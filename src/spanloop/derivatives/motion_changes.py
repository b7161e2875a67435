"""How a motion of a closed mechanism changes with its independent positions, rates and accelerations, to first order.

With the directions of closed_motion.py, and J T = 0 and J a + γ = 0 along them,

    dT = −R (∂J/∂q dq) T,    da = T da_i − R ((∂J/∂q dq) a + dγ).                          (3)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.derivatives.batched_directions import along_directions
from spanloop.derivatives.closed_motion import closure_jacobian_changes, lost_digits, no_tangent
from spanloop.loops.batching import Refusals, Robot, values
from spanloop.loops.independent_dofs import IndependentCoordinates, maps_of, structure_of


@dataclass(frozen=True, eq=False)
class MotionChanges:
    """Changes along 3 n directions, of independent positions, then rates, then accelerations, at m states."""

    T: np.ndarray  # (m, nv, n): velocity map
    dT: np.ndarray  # (m, 3 n, nv, n); 0 unless positions change
    tangents: dict[str, np.ndarray]  # of q, v, a: (m, 3 n, nv) each
    refusals: Refusals

    @staticmethod
    def of(robot: Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray, chosen: IndependentCoordinates) -> MotionChanges:
        """At states q (m, nq), v (m, nv), a (m, nv) of one assembly."""
        rows, J = structure_of(robot, q), values(robot, "closure_jacobian", q)
        T, R, refusals = maps_of(rows, J, chosen)
        (m, nv, n), along = T.shape, np.swapaxes(T, 1, 2)

        def answered(error: np.ndarray) -> np.ndarray:
            """What the dependent DoF do about changes (m, k, rows) of the rows: (m, k, nv)."""
            return -np.einsum("mvr,mkr->mkv", R, rows.scaled_errors(error))

        dJ = closure_jacobian_changes(robot, q, T)
        dq, dv, da = (np.zeros((m, 3 * n, nv)) for _ in range(3))
        dq[:, :n], dv[:, n : 2 * n], da[:, 2 * n :] = along, along, along
        dv[:, :n] = answered(np.einsum("mkrv,mv->mkr", dJ, v))
        bias = along_directions(robot, "closure_bias", (q, v), {"q": dq[:, : 2 * n], "v": dv[:, : 2 * n]})[0]
        bias[:, :n] += np.einsum("mkrv,mv->mkr", dJ, a)
        da[:, : 2 * n] = answered(bias)  # (3)
        dT = np.zeros((m, 3 * n, nv, n))
        turned = rows.scaled_errors(np.swapaxes(dJ @ T[:, None], 2, 3))  # (m, k, n, rows)
        dT[:, :n] = -np.einsum("mvr,mkjr->mkvj", R, turned)
        refusals = refusals | lost_digits(robot, rows, J, v, a) | no_tangent(robot, rows, J, q, v)
        return MotionChanges(T, dT, {"q": dq, "v": dv, "a": da}, refusals)
