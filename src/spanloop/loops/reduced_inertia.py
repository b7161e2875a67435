"""Inertia of a closed mechanism in its independent DoF and at frames on its bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spanloop.compiler.runtime.arrays import written
from spanloop.errors import Reason, Refusal, listed
from spanloop.kernels.spec import KernelSpec
from spanloop.loops.arguments import dof_names
from spanloop.loops.batching import Computed, Robot, over_states, values
from spanloop.loops.closure_errors import mechanism_of
from spanloop.loops.constraint_rank import RANK, by_assembly
from spanloop.loops.independent_dofs import Dofs, maps, resolved, structure_of
from spanloop.loops.motion_refusals import open_loops
from spanloop.model import Model

_MASSLESS = 1e-14  # of the largest inertia: a motion with less moves nothing
_CUT = 1e-10  # of the largest eigenvalue of the inverse inertia: what is smaller counts as no motion


@dataclass(frozen=True, eq=False)
class OperationalInertia:
    """Inertia that forces at frames meet, [angular; linear] in world axes, six rows and columns a frame in turn."""

    frames: tuple[str, ...]
    inverse: np.ndarray  # (..., 6k, 6k): accelerations of the frames due to forces at them
    matrix: np.ndarray  # (..., 6k, 6k): its inverse; its pseudo-inverse where it has none
    regular: np.ndarray  # (...,) True where it has an inverse: the frames can be accelerated in every direction


def independent_mass_matrix(robot: Robot, q: ArrayLike, dofs: Dofs = None, out: np.ndarray | None = None) -> np.ndarray:
    """Tᵀ M T (..., n, n): the mass matrix in independent DoF, v = T v_i."""
    chosen = resolved(robot, q, dofs, "mass_matrix")

    def compute(q: np.ndarray) -> Computed:
        T, _, refusals = maps(robot, q, chosen)
        return (np.swapaxes(T, 1, 2) @ values(robot, "mass_matrix", q) @ T,), refusals | open_loops(robot, q)

    M = over_states("mass_matrix", robot, by_assembly(robot, compute), q=(q, robot.model.nq))[0]
    return M if out is None else written("mass_matrix", out, M)


def operational_inertia(robot: Robot, q: ArrayLike, frames: str | Sequence[str]) -> OperationalInertia:
    """The inertia of the closed mechanism at one frame or several.

    Λ⁻¹ = J_f Y J_fᵀ, where Y is the inverse mass that the loops leave. Driven joints do not yield.
    """
    names = (frames,) if isinstance(frames, str) else tuple(frames)
    found = {name: robot.model.frame(name) for name in names}

    def compute(q: np.ndarray) -> Computed:
        J = structure_of(robot, q).unit_rows(values(robot, "closure_jacobian", q))
        Y = Weighted(robot, q, J).inverse_mass()
        parts = [values(robot, "jacobian", q, frame=name, expressed_in="world") for name in found]
        Jf = np.concatenate(parts, axis=1)
        inverse = Jf @ Y @ np.swapaxes(Jf, 1, 2)
        matrix, regular = _inverted(inverse)
        return (inverse, matrix, regular.astype(int)), _singular_states(robot, q, J) | open_loops(robot, q)

    inverse, matrix, regular = over_states(
        "operational_inertia", robot, by_assembly(robot, compute), q=(q, robot.model.nq)
    )
    return OperationalInertia(names, inverse, matrix, regular == 1)


def _singular_states(robot: Robot, q: np.ndarray, J: np.ndarray) -> dict[int, Refusal]:
    """Why the inertia has no inverse, for the states (n, nq) at which it has none; J (n, rows, nv): of the loops."""
    if robot.model.loops or robot.model.couplings:
        return _massless_motions(robot, q, J)
    inverse = KernelSpec.of(robot.model, "mass_matrix_inverse")
    if inverse.program[1].demands is None:
        return {}
    return {k: inverse.explain(x) for k, x in enumerate(q) if inverse.reference(x) is None}


def _massless_motions(robot: Robot, q: np.ndarray, J: np.ndarray) -> dict[int, Refusal]:
    """States at which a motion that the loops allow moves no inertia."""
    lengths, names = np.array(mechanism_of(robot.model).dof_lengths), dof_names(robot.model)
    free = np.flatnonzero([not j.driven for j in robot.model.joints for _ in range(j.kind.nv)])
    out: dict[int, Refusal] = {}
    for k, M in enumerate(values(robot, "mass_matrix", q)):
        _, s, Vt = np.linalg.svd((J[k] * lengths)[:, free])
        N = lengths[free, None] * Vt[int(np.sum(s > RANK * s.max(initial=0.0))) :].T
        w, V = np.linalg.eigh(N.T @ M[np.ix_(free, free)] @ N)
        if len(w) and not w[0] > _MASSLESS * w[-1]:
            motion = np.abs(N @ V[:, 0]) / lengths[free]
            moving = [names[free[i]] for i in np.argsort(-motion, kind="stable") if motion[i] > 0.1 * motion.max()]
            out[k] = Refusal(
                Reason.SINGULAR_MASS,
                f"a motion of {listed(moving, 4)} that the loops allow moves no inertia. Give their bodies mass and "
                "inertia, give a joint armature, or lock it: model.lock(...)",
            )
    return out


def _inverted(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverse or pseudo-inverse of symmetric matrices (n, m, m), and where it is the inverse."""
    w, V = np.linalg.eigh(0.5 * (A + np.swapaxes(A, 1, 2)))
    counts = w > _CUT * w.max(axis=1, initial=0.0, keepdims=True)
    inverse = np.where(counts, 1.0 / np.where(counts, w, 1.0), 0.0)
    return np.einsum("nij,nj,nkj->nik", V, inverse, V, optimize=True), counts.all(axis=1)


# ---- the loops in the metric of the mass matrix
#
# With M⁻¹ = R Rᵀ and W = J R: the correction is −R W⁺ e, which is −M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁺ e; the inverse mass of the closed
# mechanism is R (1 − W⁺ W) Rᵀ. Driven DoF have no part in either: their motion is prescribed.


_LIGHT = 1e-13  # of the largest eigenvalue: a DoF without mass counts as having this


class Weighted:
    """For rows of states q (n, nq) with Jacobians (n, rows, nv)."""

    def __init__(self, robot: Robot, q: np.ndarray, jacobian: np.ndarray):
        self.root = _root(robot.model, values(robot, "mass_matrix", q))
        self.U, s, Vt = np.linalg.svd(jacobian @ self.root, full_matrices=False)
        self._counts = s > RANK * s.max(axis=1, initial=0.0, keepdims=True)
        self.inverse_s = np.where(self._counts, 1.0 / np.where(self._counts, s, 1.0), 0.0)
        self.V = np.swapaxes(Vt, 1, 2) * self._counts[:, None, :]

    def correction(self, error: np.ndarray) -> np.ndarray:
        """The step (n, nv) that removes errors (n, rows), to first order."""
        inner = np.einsum("nrk,nr->nk", self.U, error) * self.inverse_s
        return -np.einsum("nij,njk,nk->ni", self.root, self.V, inner, optimize=True)

    def impulses(self, error: np.ndarray) -> np.ndarray:
        """λ (n, rows) with M · correction(error) = Jᵀ λ; the least where rows are redundant."""
        return -np.einsum("nrk,nk->nr", self.U, np.einsum("nrk,nr->nk", self.U, error) * self.inverse_s**2)

    def inverse_mass(self) -> np.ndarray:
        """(n, nv, nv): accelerations that torques cause while the loops stay closed."""
        constrained = self.root @ self.V
        return self.root @ np.swapaxes(self.root, 1, 2) - constrained @ np.swapaxes(constrained, 1, 2)


def _root(model: Model, M: np.ndarray) -> np.ndarray:
    """R (n, nv, nv) with R Rᵀ = M⁻¹ among DoF that are not driven, zero for the others."""
    free = np.flatnonzero([not j.driven for j in model.joints for _ in range(j.kind.nv)])
    R = np.zeros_like(M)
    if len(free):
        w, V = np.linalg.eigh(M[:, free[:, None], free])
        largest = w.max(axis=1, keepdims=True)
        w = np.maximum(w, np.where(largest > 0.0, _LIGHT * largest, 1.0))  # without any mass all DoF count alike
        R[:, free[:, None], free] = V / np.sqrt(w)[:, None, :]
    return R
