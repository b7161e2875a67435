"""How the places of a finite-element body turn with its shapes: the measure of how far it bends.

Nodes with three rotations turn by them. Where nodes only have displacements, those around node i fit a rotation,

    ω = J⁻¹ Σ_j r × (u_j − u_i)/r²,    J = Σ_j (r² 1 − r rᵀ)/r²,    r = x_j − x_i,

over the nodes j that K couples with it. About a node whose neighbours are in a line, rotation about that line is 0.
"""

from __future__ import annotations

import numpy as np

from spanloop.flexible.finite_elements import FiniteElements

_MOST_NODES = 4000  # whose rotations are computed
_MIXES = 200  # of shapes, whose places of largest rotation are kept
_FLAT = 1e-9  # of the largest: an axis about which neighbours have no arm


def turning(fe: FiniteElements, shapes: np.ndarray, stiffness: np.ndarray) -> np.ndarray:
    """Rotations (k, n, 3) [rad] by unit shapes (N, n) of the places that turn most; (0, n, 3) where none is known.

    Places: those that turn most with one shape or with one of many mixes, in which the shapes have like energies.
    """
    every = np.concatenate([_rotations(fe, shapes), _fitted(fe, shapes)])
    n = shapes.shape[1]
    every = every[np.abs(every).max(axis=(1, 2), initial=0.0) > 1e-12]  # nodes of the root do not turn
    if not len(every):
        return np.zeros((0, n, 3))
    mixes = np.concatenate([np.eye(n), np.random.default_rng(0).standard_normal((_MIXES, n))]) / np.sqrt(stiffness)
    sizes = [np.linalg.norm(np.einsum("kna,n->ka", every, mix), axis=1) for mix in mixes]
    return np.asarray(every[np.unique([int(np.argmax(x)) for x in sizes])])


def _some(nodes: np.ndarray) -> np.ndarray:
    return nodes[:: max(1, -(-len(nodes) // _MOST_NODES))]


def _rotations(fe: FiniteElements, shapes: np.ndarray) -> np.ndarray:
    rows = fe.rows[:, 3:]
    some = rows[_some(np.flatnonzero((rows >= 0).all(axis=1)))]
    return np.asarray(shapes[some].transpose(0, 2, 1))


def _fitted(fe: FiniteElements, shapes: np.ndarray) -> np.ndarray:
    rows = fe.rows
    moves = np.asarray((rows[:, :3] >= 0).all(axis=1))
    some = _some(np.flatnonzero(moves & ~(rows[:, 3:] >= 0).all(axis=1)))
    found = [_around(fe, shapes, rows, moves, int(i)) for i in some]
    return np.array([x for x in found if x is not None]).reshape(-1, shapes.shape[1], 3)


def _around(fe: FiniteElements, shapes: np.ndarray, rows: np.ndarray, moves: np.ndarray, i: int) -> np.ndarray | None:
    """The rotation (n, 3) that fits the displacements around node i; None without neighbours."""
    K = fe.stiffness
    coupled = np.concatenate([K.indices[K.indptr[r] : K.indptr[r + 1]] for r in rows[i, :3]])
    others = np.unique(fe.dofs[coupled, 0])
    others = others[(others >= 0) & (others != i)]
    others = others[moves[others]]
    r = fe.positions[others] - fe.positions[i]
    far = np.linalg.norm(r, axis=1)
    others, r = others[far > 0.0], r[far > 0.0] / far[far > 0.0, None]
    if not len(others):
        return None
    u = (shapes[rows[others, :3]] - shapes[rows[i, :3]]) / far[far > 0.0, None, None]  # (j, 3, n)
    J = len(others) * np.eye(3) - r.T @ r
    moment = np.cross(r[:, :, None], u, axis=1).sum(axis=0)
    return np.asarray((np.linalg.pinv(J, rcond=_FLAT, hermitian=True) @ moment).T)
