"""Derivatives of the accelerations of closed mechanisms: along closed motions, or of the function as it is computed.

| function | columns | meaning |
|---|---|---|
| along_closed_motions | n positions, n rates, nv torques | changes of a along closed motions; every method agrees |
| as_computed | nv positions, nv rates, nv torques | of forward_dynamics; off the loops it depends on the method |

As computed, each column is a direction of the JVP kernel of forward dynamics. Along closed motions the equations of
motion themselves are differentiated, at the accelerations a of forward dynamics: with needed = M a + h, the driven
DoF d and their torques μ, Tᵀ (needed − τ) = T_dᵀ μ and a_d = τ_d. By motion_changes.py

    [Tᵀ M T  −T_dᵀ] [da_i]   [−Tᵀ dneeded − dTᵀ (needed − τ) + Tᵀ dτ]
    [T_d       0  ] [ dμ ] = [dτ_d − da_d                           ]                                      (6)

with dneeded and da_d at da_i = 0, and μ in τ for driven DoF. This needs no derivative of the method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from spanloop.derivatives.batched_directions import along_directions, answers
from spanloop.derivatives.closed_motion import lost_digits, refuse_rolling
from spanloop.derivatives.motion_changes import MotionChanges
from spanloop.loops.arguments import dofs_called, external_forces
from spanloop.loops.batching import Computed, Robot, over_states, values
from spanloop.loops.constraint_rank import by_assembly
from spanloop.loops.independent_dofs import Dofs, IndependentCoordinates, resolved, structure_of

_CHANGING = ("q", "v", "tau")


@dataclass(frozen=True, eq=False)
class ClosedDerivatives:
    """Derivatives of accelerations along closed motions, by n independent positions and rates, and by all torques.

    Each has a row for every DoF (nv); `independent` has those of the independent DoF alone.
    """

    dofs: IndependentCoordinates  # the n independent DoF: names, and places in v
    da: np.ndarray  # (..., nv, 2 n + nv): da_dq, da_dv and da_dtau side by side
    dq: np.ndarray  # (..., nv, n): how all joints move with the independent ones, in joint rates
    dv: np.ndarray  # (..., nv, n): how v changes with the independent positions, their rates held

    @property
    def da_dq(self) -> np.ndarray:
        """(..., nv, n): by independent positions, with the independent rates and all torques held."""
        return self.da[..., : len(self.dofs)]

    @property
    def da_dv(self) -> np.ndarray:
        """(..., nv, n): by independent rates."""
        return self.da[..., len(self.dofs) : 2 * len(self.dofs)]

    @property
    def da_dtau(self) -> np.ndarray:
        """(..., nv, nv): by the torques of all joints; of a driven joint by its acceleration."""
        return self.da[..., 2 * len(self.dofs) :]

    @property
    def independent(self) -> ClosedDerivatives:
        """The same with the rows of the independent DoF alone: da_dq, da_dv (..., n, n), da_dtau (..., n, nv)."""
        return replace(self, da=self.da[..., list(self.dofs.dofs), :])


def along_closed_motions(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: Mapping[str, ArrayLike] | None = None,
    loop_inputs: tuple[np.ndarray, ...] = (),
    dofs: Dofs = None,
    name: str = "derivatives",
    *,
    is_balanced: bool = False,
) -> ClosedDerivatives:
    """Return the derivatives of a (..., nv) along closed motions, at states q (..., nq), v and tau (..., nv).

    forces: {"body": (..., 6)}, held in world axes. loop_inputs: the kernel's, for switchable and for driven loops.
    dofs: independent DoF; robot.independent_coordinates() by default. name: of the calling function. is_balanced: the
    states rest and tau balances them, so that a is 0 and need not be solved for.
    """
    refuse_rolling(robot.model, name)
    chosen = resolved(robot, q, dofs, name)
    n = len(chosen)
    loaded, sizes = _inputs(robot, q, v, tau, forces, loop_inputs, name)

    def compute(*inputs: np.ndarray) -> Computed:
        q, v, tau = inputs[:3]
        loads = inputs[3:4] if loaded else ()
        a, unanswered = (0.0 * v, {}) if is_balanced else answers(robot, "forward_dynamics", inputs, **loaded)
        a[list(unanswered)] = 0.0
        changes = MotionChanges.of(robot, q, v, a, chosen)
        tangents = {x: y[:, : 2 * n] for x, y in changes.tangents.items()}
        needed = values(robot, "tree_inverse_dynamics", q, v, a, *loads, **loaded)
        dneeded = along_directions(robot, "tree_inverse_dynamics", (q, v, a, *loads), tangents, **loaded)[0]
        da = _solved(robot, changes, values(robot, "mass_matrix", q), needed - tau, dneeded)
        dv = np.swapaxes(tangents["v"][:, :n], 1, 2)
        return (da, changes.T, dv), unanswered | changes.refusals

    return ClosedDerivatives(chosen, *over_states(name, robot, by_assembly(robot, compute), **sizes))


def _solved(robot: Robot, changes: MotionChanges, M: np.ndarray, left: np.ndarray, dneeded: np.ndarray) -> np.ndarray:
    """da (m, nv, 2 n + nv) by independent positions, rates and all torques, from (6). left (m, nv): needed − τ."""
    T, (m, nv, n) = changes.T, changes.T.shape
    driven = [k for j in robot.model.joints if j.driven for k in dofs_called(robot.model, j.name)]
    free, Td = [k for k in range(nv) if k not in driven], T[:, driven]
    left = left.copy()
    left[:, driven] = 0.0
    left[:, driven] = -np.einsum("mdn,mn->md", np.linalg.pinv(np.swapaxes(Td, 1, 2)), np.einsum("mvn,mv->mn", T, left))
    still = np.concatenate([np.swapaxes(changes.tangents["a"][:, : 2 * n], 1, 2), np.zeros((m, nv, nv))], axis=2)
    right = np.zeros((m, n + len(driven), 2 * n + nv))
    right[:, :n, : 2 * n] = -np.einsum("mvn,mkv->mnk", T, dneeded)
    right[:, :n, : 2 * n] -= np.einsum("mkvn,mv->mnk", changes.dT[:, : 2 * n], left)
    right[:, :n, [2 * n + k for k in free]] = np.swapaxes(T[:, free], 1, 2)
    right[:, n:] = np.eye(2 * n + nv)[[2 * n + k for k in driven]] - still[:, driven]
    K = np.zeros((m, n + len(driven), n + len(driven)))
    K[:, :n, :n] = np.swapaxes(T, 1, 2) @ M @ T
    K[:, :n, n:], K[:, n:, :n] = -np.swapaxes(Td, 1, 2), Td
    K[list(changes.refusals)] = np.eye(n + len(driven))
    found: np.ndarray = still + T @ np.linalg.solve(K, right)[:, :n]
    return found


def as_computed(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: Mapping[str, ArrayLike] | None = None,
    loop_inputs: tuple[np.ndarray, ...] = (),
    name: str = "derivatives",
) -> np.ndarray:
    """Return the derivatives (..., nv, 3 nv) of forward_dynamics by all positions, rates and torques.

    They mean something in combinations along closed motions only. Arguments as of along_closed_motions.
    """
    nv = robot.model.nv
    loaded, sizes = _inputs(robot, q, v, tau, forces, loop_inputs, name)
    unit = np.eye(3 * nv).reshape(3 * nv, 3, nv)

    def compute(*inputs: np.ndarray) -> Computed:
        tangents = {x: np.broadcast_to(unit[:, k], (len(inputs[0]), 3 * nv, nv)) for k, x in enumerate(_CHANGING)}
        da, unanswered = along_directions(robot, "forward_dynamics", inputs, tangents, **loaded)
        rows, J = structure_of(robot, inputs[0]), values(robot, "closure_jacobian", inputs[0])
        a = np.nan_to_num(answers(robot, "forward_dynamics", inputs, **loaded)[0])
        return (np.swapaxes(da, 1, 2),), lost_digits(robot, rows, J, inputs[1], a) | unanswered

    return over_states(name, robot, by_assembly(robot, compute), **sizes)[0]


def _inputs(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: Mapping[str, ArrayLike] | None,
    loop_inputs: tuple[np.ndarray, ...],
    name: str,
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[ArrayLike, int]]]:
    """Options of the kernel of forward dynamics, and its inputs with their sizes, in order."""
    model = robot.model
    bodies, rows = external_forces(model, name, forces or {})
    sizes: dict[str, tuple[ArrayLike, int]] = {"q": (q, model.nq), "v": (v, model.nv), "tau": (tau, model.nv)}
    if bodies:
        sizes["forces"] = (rows, 6 * len(bodies))
    for k, x in enumerate(loop_inputs):
        sizes["loop_accelerations" if k == len(loop_inputs) - 1 else "active_loops"] = (x, x.shape[-1])
    return ({"forces": bodies} if bodies else {}), sizes
