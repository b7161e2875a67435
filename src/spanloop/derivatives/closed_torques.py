"""Derivatives of the actuator torques of closed mechanisms by independent positions, rates and accelerations.

Inverse dynamics solves B u = r with B = (Sᵀ T)ᵀ, r = Tᵀ needed and needed = M a + h, for the least Σ w u² where there
are more actuators than the mobility: u = W⁻¹ Bᵀ μ. Along a closed motion
(motion_changes.py)

    B du = Tᵀ dneeded + dTᵀ (needed − S u),                                               (4)

of which du is the solution of least Σ w u² that keeps u = W⁻¹ Bᵀ μ true:

    du = P (right side of (4)) + (1 − P B) W⁻¹ dBᵀ μ,    P = W⁻¹ Bᵀ (B W⁻¹ Bᵀ)⁻¹.           (5)

| symbol | shape | meaning |
|---|---|---|
| T | (nv, n) | velocity map, as in closed_motion.py |
| S | (nv, m) | columns of the actuated DoF |
| W | (m, m) | weights w of the squares of the torques |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop import loops
from spanloop.derivatives.batched_directions import along_directions
from spanloop.derivatives.closed_motion import refuse_rolling
from spanloop.derivatives.motion_changes import MotionChanges
from spanloop.errors import InputError, listed
from spanloop.loops.arguments import Actuators, actuators, external_forces
from spanloop.loops.batching import Computed, Refusals, over_states, values
from spanloop.loops.closed_inverse import largest_drive
from spanloop.loops.constraint_rank import RANK, by_assembly
from spanloop.loops.independent_dofs import Dofs, IndependentCoordinates, resolved
from spanloop.loops.motion_refusals import missing_actuators


@dataclass(frozen=True, eq=False)
class ClosedTorqueDerivatives:
    """Derivatives of the torques of closed mechanisms, by n independent positions, rates and accelerations.

    Each is (..., nv, n); the rows of joints that are not actuated are 0.
    """

    dofs: IndependentCoordinates  # the n independent DoF: names, and places in v
    dtau: np.ndarray  # (..., nv, 3 n): dtau_dq, dtau_dv and dtau_da side by side

    @property
    def dtau_dq(self) -> np.ndarray:
        """(..., nv, n): by independent positions, with the independent rates and accelerations held."""
        return self.dtau[..., : len(self.dofs)]

    @property
    def dtau_dv(self) -> np.ndarray:
        """(..., nv, n): by independent rates, with the independent accelerations held."""
        return self.dtau[..., len(self.dofs) : 2 * len(self.dofs)]

    @property
    def dtau_da(self) -> np.ndarray:
        """(..., nv, n): by independent accelerations."""
        return self.dtau[..., 2 * len(self.dofs) :]


def torques_along_closed_motions(
    robot: Any,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike | Mapping[str, ArrayLike],
    *,
    actuated: Sequence[str] | None = None,
    weights: ArrayLike | Mapping[str, float] | None = None,
    forces: Mapping[str, ArrayLike] | None = None,
    loop_accelerations: Mapping[str, ArrayLike] | None = None,
    dofs: Dofs = None,
    name: str = "inverse_dynamics_derivatives",
) -> ClosedTorqueDerivatives:
    """Return the derivatives of robot.inverse_dynamics(q, v, a) along closed motions; robot is a Dynamics.

    Arguments as of inverse_dynamics; a (..., nv), the independent accelerations, or {"joint": acceleration}. There must
    be as many actuators as the mobility or more, and none of the motions that they drive may be lost at a state.
    """
    model = robot.model
    refuse_rolling(model, name)
    chosen, by = resolved(robot, q, dofs, name), actuators(model, actuated, weights, name)
    if len(by) < len(chosen):
        raise InputError(
            f"{name}: {len(by)} actuated DoF ({listed(by.names, 6)}) drive a mechanism of {len(chosen)} DoF, so that "
            "torques exist for special motions alone and have no derivatives. Name more of them: actuated=[...]"
        )
    options = {"forces": forces, "loop_accelerations": loop_accelerations}
    found = loops.solve_inverse(robot, q, v, a, actuated=actuated, weights=weights, **options)
    bodies, loads = external_forces(model, name, forces or {})
    loaded = {"forces": bodies} if bodies else {}

    def compute(q: np.ndarray, v: np.ndarray, a: np.ndarray, tau: np.ndarray, *loads: np.ndarray) -> Computed:
        motion = MotionChanges.of(robot, q, v, a, chosen)
        dneeded, unanswered = along_directions(
            robot, "tree_inverse_dynamics", (q, v, a, *loads), motion.tangents, **loaded
        )
        needed = values(robot, "tree_inverse_dynamics", q, v, a, *loads, **loaded)
        du, undriven = _torque_changes(robot, motion, by, needed, tau[:, list(by.dofs)], dneeded)
        dtau = np.zeros((len(q), model.nv, du.shape[2]))
        dtau[:, list(by.dofs)] = du
        return (dtau,), unanswered | undriven | motion.refusals

    sizes: dict[str, tuple[ArrayLike, int]] = {"q": (q, model.nq), "v": (v, model.nv)}
    sizes |= {"a": (found.a, model.nv), "tau": (found.tau, model.nv)}
    if bodies:
        sizes["forces"] = (loads, 6 * len(bodies))
    return ClosedTorqueDerivatives(chosen, over_states(name, robot, by_assembly(robot, compute), **sizes)[0])


def _torque_changes(
    robot: Any, motion: MotionChanges, by: Actuators, needed: np.ndarray, u: np.ndarray, dneeded: np.ndarray
) -> tuple[np.ndarray, Refusals]:
    """du (m, actuators, 3 n) along the directions, and the states at which a motion is not driven."""
    places = list(by.dofs)
    root = np.sqrt(by.weights / by.weights.min())  # of W; torques are measured as root · u
    B = np.swapaxes(motion.T[:, places], 1, 2) / root  # (m, n, actuators)
    dB = np.swapaxes(motion.dT[:, :, places], 2, 3) / root
    U, s, Vt = np.linalg.svd(B, full_matrices=False)
    least = RANK * largest_drive(motion.T, s, 1.0 / root)
    weak = s.min(axis=1, initial=np.inf) <= least
    inverse = np.einsum("mri,mr,mnr->min", Vt, 1.0 / np.where(weak[:, None], np.inf, s), U, optimize=True)  # B⁺
    left = needed.copy()
    left[:, places] -= u
    right = dneeded @ motion.T + np.einsum("mkvn,mv->mkn", motion.dT, left)  # (4)
    mu = np.einsum("min,mi->mn", inverse, root * u)
    spare = np.einsum("mkni,mn->mki", dB, mu)
    spare -= np.einsum("min,mnj,mkj->mki", inverse, B, spare, optimize=True)
    du = (np.einsum("min,mkn->mki", inverse, right) + spare) / root  # (5)
    refusals = {
        int(k): missing_actuators(robot, by, motion.T[k], U[k, :, -1], int(np.sum(s[k] > least[k])))
        for k in np.flatnonzero(weak)
    }
    return np.swapaxes(du, 1, 2), refusals
