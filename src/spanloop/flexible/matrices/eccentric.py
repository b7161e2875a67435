"""Masses beside their nodes: a point mass with an offset, the offset of a beam or a shell.

Such a mass moves rigidly with its node: a function s of place has there the values s + ∇s · ρ, ρ from the node. What
integrals need of it are the first moment σ = ∫ ρ and the second J = ∫ ρ ρᵀ. In the mass matrix they are the couplings
of rotations with a unit displacement of all nodes, [σ]×, and those with a unit rotation of all, tr J 1 − J.

Elements, too, couple rotations and displacements, along their own directions. From the part of σ along the directions
to the neighbours of a node we subtract what the couplings with these neighbours explain, as for a prismatic beam.
docs/theory/flexible.md, section 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.flexible.finite_elements import FiniteElements
from spanloop.flexible.particles import skew

_ELEMENT = 35.0 / 13.0  # of a prismatic beam: all couplings of an end's rotation, over those with the other end
_ALONG = 0.05  # of mass times length of the elements: a smaller part along them is that of other elements
_ACROSS = 1e-6  # the same across them: rounding of printed digits
_DIRECTION = 1e-3  # singular values of directions to neighbours, of which elements have none below


@dataclass(frozen=True, eq=False)
class EccentricMasses:
    """Nodes (k,) with masses beside them, the rows (k, 6) of their degrees of freedom, σ (k, 3) and J (k, 3, 3)."""

    nodes: np.ndarray
    rows: np.ndarray
    first: np.ndarray
    second: np.ndarray

    def without(self, mass: Any) -> Any:
        """The mass matrix less the couplings and rotary inertia of these masses."""
        import scipy.sparse as sp

        i, j, taken = [], [], []
        for rows, sigma, J in zip(self.rows, self.first, self.second, strict=True):
            block = np.zeros((6, 6))
            block[3:, :3], block[:3, 3:] = skew(sigma), -skew(sigma)
            block[3:, 3:] = np.trace(J) * np.eye(3) - J
            i.append(np.repeat(rows, 6))
            j.append(np.tile(rows, 6))
            taken.append(block.ravel())
        if not taken:
            return mass
        own = sp.coo_matrix((np.concatenate(taken), (np.concatenate(i), np.concatenate(j))), shape=mass.shape)
        return (sp.csr_matrix(mass) - own.tocsr()).tocsr()

    def products(self, values: np.ndarray, gradients: np.ndarray) -> np.ndarray:
        """∫ s t − m s t at these nodes: values (k, f) of functions, and their gradients (k, f, 3)."""
        along = np.einsum("kfa,ka->kf", gradients, self.first)
        mixed = np.einsum("kf,kg->fg", values, along)
        return np.asarray(mixed + mixed.T + np.einsum("kfa,kab,kgb->fg", gradients, self.second, gradients))


def eccentric_masses(fe: FiniteElements) -> EccentricMasses:
    """The masses beside nodes that have all six degrees of freedom."""
    table, own = fe.rows, np.flatnonzero(fe.dofs[:, 0] >= 0)
    nodes = np.flatnonzero((table >= 0).all(axis=1))
    rows = table[nodes]
    nothing = EccentricMasses(nodes[:0], rows[:0], np.zeros((0, 3)), np.zeros((0, 3, 3)))
    if not len(nodes):
        return nothing
    unit = np.zeros((len(fe.dofs), 6))
    unit[own, fe.dofs[own, 1]] = 1.0
    moved = np.asarray(fe.mass @ unit)
    mass = np.einsum("kaa->k", moved[rows[:, :3], :3]) / 3.0
    whole = _axial(moved[rows[:, 3:], :3])
    here = _axial(np.array([_block(fe.mass, r[3:], r[:3]) for r in rows]))
    rotary = moved[rows[:, 3:], 3:]
    found = []
    for k in np.flatnonzero(np.abs(whole).max(axis=1) > 0.0):
        length, along = _elements(fe, table, int(nodes[k]))
        scale = mass[k] * length
        across = whole[k] - along @ whole[k]
        more = along @ (whole[k] - _ELEMENT * (whole[k] - here[k]))
        sigma = np.where(np.linalg.norm(across) > _ACROSS * scale, across, 0.0)
        sigma = sigma + np.where(np.linalg.norm(more) > _ALONG * scale, more, 0.0)
        if sigma.any():
            found.append((k, sigma, _second_moment(rotary[k])))
    if not found:
        return nothing
    some = np.array([k for k, _, _ in found])
    return EccentricMasses(
        nodes[some], rows[some], np.array([s for _, s, _ in found]), np.array([J for _, _, J in found])
    )


def _block(A: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    found = A[rows][:, columns]
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)


def _axial(blocks: np.ndarray) -> np.ndarray:
    """Vectors (k, 3) of the antisymmetric parts of (k, 3, 3)."""
    odd = 0.5 * (blocks - blocks.transpose(0, 2, 1))
    return np.stack([odd[:, 2, 1], odd[:, 0, 2], odd[:, 1, 0]], axis=1)


def _second_moment(rotary: np.ndarray) -> np.ndarray:
    """∫ ρ ρᵀ (3, 3) of a moment of inertia; without the negative parts that no mass has."""
    I = 0.5 * (rotary + rotary.T)
    w, V = np.linalg.eigh(0.5 * np.trace(I) * np.eye(3) - I)
    return np.asarray((V * np.maximum(w, 0.0)) @ V.T)


def _elements(fe: FiniteElements, table: np.ndarray, node: int) -> tuple[float, np.ndarray]:
    """The longest distance to a node that K couples with this one, and the projector (3, 3) on their directions."""
    K = fe.stiffness
    coupled = np.unique(np.concatenate([K.indices[K.indptr[r] : K.indptr[r + 1]] for r in table[node]]))
    others = np.unique(fe.dofs[coupled, 0])
    others = others[(others >= 0) & (others != node)]
    away = fe.positions[others] - fe.positions[node]
    far = np.linalg.norm(away, axis=1)
    away, far = away[far > 0.0], far[far > 0.0]
    if not len(far):
        return 0.0, np.zeros((3, 3))
    _, sizes, V = np.linalg.svd(away / far[:, None], full_matrices=False)
    V = V[sizes > _DIRECTION * sizes[0]]
    return float(far.max()), V.T @ V
