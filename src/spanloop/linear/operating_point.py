"""Operating points of linear models: a state, its torques and the acceleration there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.loops.arguments import external_forces
from spanloop.loops.batching import Computed, Robot, over_states, values
from spanloop.loops.constraint_rank import by_assembly
from spanloop.loops.independent_dofs import IndependentCoordinates, maps
from spanloop.loops.motion_refusals import open_loops
from spanloop.model import Model

_NONE = 1e-9  # relative size of a singular value of torques that counts as 0
_REST = 1e-8  # of the accelerations that torques and loads would make alone: an acceleration that counts as none


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """A state with its torques: q (..., nq), v, tau, a (..., nv), and whether it is an equilibrium at rest (...).

    a: the acceleration there, what is missing to an equilibrium. dofs: places in v of the independent DoF. torque_dofs:
    by input the place in v at which it is a torque, −1 for an input of another kind.
    """

    model: Model
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    a: np.ndarray
    is_equilibrium: np.ndarray
    dofs: tuple[int, ...]
    torque_dofs: tuple[int, ...]

    def __getitem__(self, which: Any) -> OperatingPoint:
        parts: dict[str, Any] = {x: getattr(self, x)[which] for x in ("q", "v", "tau", "a", "is_equilibrium")}
        return replace(self, **parts)


def is_equilibrium(v: np.ndarray, tau: np.ndarray, a: np.ndarray, da_dtau: np.ndarray, resolution: float) -> np.ndarray:
    """Whether states rest (...): no velocity, and no acceleration beyond rounding (resolution: of the kernels)."""
    by_torques = np.einsum("...ij,...j->...i", np.abs(da_dtau), np.abs(tau))
    single = np.maximum(by_torques, np.abs(a - np.einsum("...ij,...j->...i", da_dtau, tau)))
    return ~v.any(axis=-1) & (
        np.abs(a).max(axis=-1, initial=0.0) <= max(_REST, 1e3 * resolution) * single.max(axis=-1, initial=0.0) + 1e-12
    )


def holding_torques(
    robot: Robot,
    q: ArrayLike,
    chosen: IndependentCoordinates,
    places: Sequence[int],
    forces: Mapping[str, ArrayLike] | None = None,
) -> np.ndarray:
    """tau (..., nv) at the DoF `places` that holds the mechanism at rest, or leaves the least acceleration.

    With the loads f = Tᵀ h of the independent DoF and the torques Tᵀ S u, u minimises ‖L⁻¹ (Tᵀ S u − f)‖,
    M = L Lᵀ: the kinetic energy of the acceleration (Gauss); where several do, the shortest u. Driven DoF take every
    load.
    """
    model = robot.model
    driven = [j.driven for j in model.joints for _ in range(j.kind.nv)]
    free = [k for k, dof in enumerate(chosen.dofs) if not driven[dof]]
    pushing = [k for k in places if not driven[k]]
    bodies, loads = external_forces(model, "linearize", forces or {})

    def compute(q: np.ndarray, *loads: np.ndarray) -> Computed:
        T, _, refusals = maps(robot, q, chosen)
        T = T[:, :, free]
        still = np.zeros((len(q), model.nv))
        bias = values(robot, "bias", q, still, *loads, **({"forces": bodies} if bodies else {}))
        mass = np.einsum("nvi,nvw,nwj->nij", T, values(robot, "mass_matrix", q), T)
        tau = np.zeros((len(q), model.nv))
        if pushing and free and len(q):
            inverse = np.linalg.inv(np.linalg.cholesky(mass))
            pushed = inverse @ np.swapaxes(T[:, pushing], 1, 2)
            load = inverse @ np.einsum("nvi,nv->ni", T, bias)[..., None]
            tau[:, pushing] = (np.linalg.pinv(pushed, rcond=_NONE) @ load)[..., 0]
        return (tau,), refusals | open_loops(robot, q)

    sizes: dict[str, tuple[ArrayLike, int]] = {"q": (q, model.nq)}
    if bodies:
        sizes["forces"] = (loads, 6 * len(bodies))
    return over_states("linearize", robot, by_assembly(robot, compute), **sizes)[0]
