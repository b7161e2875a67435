"""The loops seen in the metric of the mass matrix: the correction of least kinetic energy, and the inverse mass that
the loops leave.

With M⁻¹ = R Rᵀ and W = J R: the correction is −R W⁺ e, which is −M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁺ e; the inverse mass of the closed
mechanism is R (1 − W⁺ W) Rᵀ. Driven freedoms have no share in either: they move as they are told.
"""

from __future__ import annotations

import numpy as np

from spanloop.loops.robot import Robot, values
from spanloop.loops.structure import RANK
from spanloop.model import Model

_LIGHT = 1e-13  # of the largest eigenvalue: a freedom without mass counts as having this


class Weighted:
    """For rows of states q (n, nq) with Jacobians (n, rows, nv)."""

    def __init__(self, robot: Robot, q: np.ndarray, jacobian: np.ndarray):
        self.root = _root(robot.model, values(robot, "mass_matrix", q))
        self.U, s, Vt = np.linalg.svd(jacobian @ self.root, full_matrices=False)
        self._counts = s > RANK * s.max(axis=1, initial=0.0, keepdims=True)
        self.over = np.where(self._counts, 1.0 / np.where(self._counts, s, 1.0), 0.0)
        self.V = np.swapaxes(Vt, 1, 2) * self._counts[:, None, :]

    def correction(self, error: np.ndarray) -> np.ndarray:
        """The step (n, nv) that removes errors (n, rows), to first order."""
        inner = np.einsum("nrk,nr->nk", self.U, error) * self.over
        return -np.einsum("nij,njk,nk->ni", self.root, self.V, inner, optimize=True)

    def inverse_mass(self) -> np.ndarray:
        """(n, nv, nv): accelerations that torques cause while the loops stay closed."""
        held = self.root @ self.V
        return self.root @ np.swapaxes(self.root, 1, 2) - held @ np.swapaxes(held, 1, 2)


def _root(model: Model, M: np.ndarray) -> np.ndarray:
    """R (n, nv, nv) with R Rᵀ = M⁻¹ among freedoms that are not driven, zero for the others."""
    free = np.flatnonzero([not j.driven for j in model.joints for _ in range(j.kind.nv)])
    R = np.zeros_like(M)
    if len(free):
        w, V = np.linalg.eigh(M[:, free[:, None], free])
        w = np.maximum(w, _LIGHT * w.max(axis=1, keepdims=True))
        R[:, free[:, None], free] = V / np.sqrt(w)[:, None, :]
    return R
