"""Operating points of linear models: a state, its torques and the acceleration there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.linear.system import System
from spanloop.model import Model

REST = 1e-8  # of the accelerations that single torques and weights make: less than this is rounding


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """A state with its torques: q (..., nq), v, tau, a (..., nv), and whether it is an equilibrium (...).

    a: the acceleration there, the residual of an equilibrium. dofs: places in v of the independent DoF. torque_dofs:
    by input the DoF at which it is a torque, −1 for an input of another kind.
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
        parts = (x[which] for x in (self.q, self.v, self.tau, self.a, self.is_equilibrium))
        return OperatingPoint(self.model, *parts, self.dofs, self.torque_dofs)


def holding_torques(system: System, places: Sequence[int]) -> np.ndarray:
    """tau (n, nv) at the DoF `places` that holds the mechanism at rest, or leaves the least acceleration.

    With the load f = −Tᵀ h of the independent DoF and torques Tᵀ S u, u minimises ‖M^(-1/2) (Tᵀ S u + f)‖, the
    kinetic energy of the acceleration (Gauss), and its own length where several u do.
    """
    n, nv = len(system.T), system.T.shape[1]
    tau = np.zeros((n, nv))
    if not places:
        return tau
    inverse = np.linalg.inv(np.linalg.cholesky(_safe(system.mass)))
    pushed = inverse @ np.swapaxes(system.T[:, list(places)], 1, 2)
    load = np.einsum("nij,nvj,nv->ni", inverse, system.T, system.bias)
    u = np.linalg.pinv(pushed, rcond=1e-11) @ load[..., None]
    tau[:, list(places)] = u[..., 0]
    return tau


def _safe(mass: np.ndarray) -> np.ndarray:
    """Inertias, 1 for operating points that have none."""
    bad = ~np.isfinite(mass).all(axis=(1, 2))
    return np.where(bad[:, None, None], np.eye(mass.shape[-1]), mass)
