"""Shapes that stand for all motions of a finite-element model: static ones of its interfaces, and natural modes.

A basis is returned in coordinates in which its stiffness is diagonal. Its vectors are computed from the flexibility,
so that slow modes keep their digits beside fast ones.
"""

from __future__ import annotations

import numpy as np


def natural_modes(K: np.ndarray, M: np.ndarray, n: int) -> np.ndarray:
    """The n slowest modes (dofs, n) of K, M (dofs, dofs), with φᵀ K φ = 1."""
    if n == 0:
        return np.zeros((len(K), 0))
    L = np.linalg.cholesky(K)
    half = np.linalg.solve(L, np.linalg.solve(L, M).T)
    _, vectors = np.linalg.eigh(0.5 * (half + half.T))  # 1/ω², slowest last
    return np.asarray(np.linalg.solve(L.T, vectors[:, ::-1][:, :n]))


def craig_bampton(K: np.ndarray, M: np.ndarray, interface: list[int], n: int) -> np.ndarray:
    """Static shapes for unit displacements of the interface, and the n slowest modes with the interface held.

    [Craig & Bampton 1968]; recombined so that stiffness and mass are diagonal.
    """
    inner = [i for i in range(len(K)) if i not in interface]
    basis = np.zeros((len(K), len(interface) + n))
    basis[interface, range(len(interface))] = 1.0
    if inner:
        basis[np.ix_(inner, range(len(interface)))] = -np.linalg.solve(
            K[np.ix_(inner, inner)], K[np.ix_(inner, interface)]
        )
        basis[inner, len(interface) :] = natural_modes(K[np.ix_(inner, inner)], M[np.ix_(inner, inner)], n)
    return recombined(K, M, basis)


def recombined(K: np.ndarray, M: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """The same space, in coordinates in which stiffness and mass are diagonal, slowest first."""
    stiffness = basis.T @ K @ basis
    return np.asarray(basis @ natural_modes(0.5 * (stiffness + stiffness.T), basis.T @ M @ basis, basis.shape[1]))
