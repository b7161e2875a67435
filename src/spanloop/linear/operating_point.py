"""Operating points of linear models: a state, its torques and the acceleration there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.derivatives.closed_motion import no_tangent
from spanloop.errors import InputError
from spanloop.loops.arguments import external_forces
from spanloop.loops.batching import Computed, Robot, over_states, values
from spanloop.loops.closure_errors import mechanism_of
from spanloop.loops.constraint_rank import by_assembly
from spanloop.loops.independent_dofs import IndependentCoordinates, maps_of, structure_of
from spanloop.model import Model
from spanloop.model.user_input import number

_ROUNDING = 1e-14  # of accelerations
_NONE = 1e-9  # relative size of a singular value of torques that counts as 0


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


def checked_tolerance(function: str, tolerance: object) -> float:
    """The tolerance of `equilibrium_distances`, a number >= 0."""
    found = number(tolerance, f"{function}: tolerance")
    if not found >= 0.0:
        raise InputError(
            f"{function}: tolerance is {tolerance!r}; expected a distance >= 0 [rad, or of the mechanism's length]"
        )
    return found


def equilibrium_distances(
    model: Model, T: np.ndarray, M: np.ndarray, K: np.ndarray, left: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How far away the equilibrium is (m, nv) [rad, or of the mechanism's length], at m states at rest.

    It is stiffness⁻¹ · force, with a least stiffness for motions without. T (m, nv, n): velocity map. M, K (m, n, n):
    inertia and stiffness of the DoF. left (m, n): forces that are not balanced. Also the acceleration of the mass that
    these cause (m,) [m/s²], root mean square.
    """
    if not left.size:
        return np.zeros(T.shape[:2]), np.zeros(len(left))
    L = np.linalg.cholesky(M)
    push = np.linalg.solve(L, left[..., None])
    half = np.linalg.solve(L, _symmetric(K))
    squares, V = np.linalg.eigh(_symmetric(np.linalg.solve(L, np.swapaxes(half, 1, 2))))
    least = np.maximum(least_stiffness(model), 1e-6 * np.abs(squares).max(axis=1))[:, None]
    along = (np.swapaxes(V, 1, 2) @ push)[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(along == 0.0, 0.0, along / np.maximum(np.abs(squares), least))
        moved = np.linalg.solve(np.swapaxes(L, 1, 2), V @ steps[..., None])
        away = (T @ moved)[..., 0] / np.array(mechanism_of(model).dof_lengths)
    residual = np.linalg.norm(push[..., 0], axis=1) / np.sqrt(model.mass or 1.0)
    return np.nan_to_num(np.abs(away), nan=np.inf), residual


def without_rounding(a: np.ndarray, da_dtau: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Accelerations (..., nv), 0 at states where they are rounding beside those that the torques would make alone."""
    alone = np.einsum("...ij,...j->...i", np.abs(da_dtau), np.abs(tau)).max(axis=-1, initial=0.0)
    return np.where((np.abs(a).max(axis=-1, initial=0.0) <= _ROUNDING * alone)[..., None], 0.0, a)


def least_stiffness(model: Model) -> float:
    """That of a pendulum of the mechanism's length, in units of the inertia [1/s²]."""
    return float(np.linalg.norm(model.gravity)) / mechanism_of(model).length


def is_equilibrium(
    model: Model, v: np.ndarray, a: np.ndarray, dofs: Sequence[int], motion: tuple[np.ndarray, ...], tolerance: float
) -> np.ndarray:
    """Whether states rest (...): no velocity, driven joints do not accelerate, and an equilibrium is within tolerance.

    motion: T (..., nv, n), M (..., n, n) and ∂a/∂q (..., nv, n) of the independent DoF at the places dofs.
    """
    driven = np.array([j.driven for j in model.joints for _ in range(j.kind.nv)], dtype=bool)
    T, M, da_dq = (x.reshape(-1, *x.shape[-2:]) for x in motion)
    rates, a_rows = v.reshape(-1, model.nv), a.reshape(-1, model.nv)
    rests = ~rates.any(axis=1) & ~a_rows[:, driven].any(axis=1)
    rests &= np.isfinite(a_rows).all(axis=1) & np.isfinite(da_dq).all(axis=(1, 2))
    free = [i for i, k in enumerate(dofs) if not driven[k]]
    places, T, M = [dofs[i] for i in free], T[rests][:, :, free], M[rests][:, free][:, :, free]
    left = (M @ a_rows[rests][:, places, None])[..., 0]
    away, _ = equilibrium_distances(model, T, M, -M @ da_dq[rests][:, places][:, :, free], left)
    rests[rests] = away.max(axis=1, initial=0.0) <= tolerance
    return rests.reshape(v.shape[:-1])


def _symmetric(A: np.ndarray) -> np.ndarray:
    return 0.5 * (A + np.swapaxes(A, -1, -2))


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
        rows, J = structure_of(robot, q), values(robot, "closure_jacobian", q)
        T, _, refusals = maps_of(rows, J, chosen)
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
        return (tau,), refusals | no_tangent(robot, rows, J, q, still)

    sizes: dict[str, tuple[ArrayLike, int]] = {"q": (q, model.nq)}
    if bodies:
        sizes["forces"] = (loads, 6 * len(bodies))
    return over_states("linearize", robot, by_assembly(robot, compute), **sizes)[0]
