"""Free motions of M ẍ + C ẋ + K x = 0, x = φ exp(s t): poles s and shapes φ.

Without damping, and with a symmetric K, they are those of the symmetric problem K φ = ω² M φ; else of the first-order
system of twice the size. Both are solved in coordinates y = Lᵀ x in which the mass matrix M = L Lᵀ is 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SYMMETRIC = 1e-9  # asymmetry of the stiffness, and damping, that counts as rounding: of the largest stiffness
_ZERO = 1e-12  # of the largest stiffness: a square of a frequency that counts as zero
_SMALL = 1e-9  # of the largest rate: a pole that counts as zero, if it is the only slow one
_DOUBLE = 1e-6  # the same for several, which may be one multiple zero that rounding has split


class Eigenmodes(NamedTuple):
    """poles (k,) complex, imaginary part >= 0, of each pair one; shapes (n, k), φᴴ M φ = 1, complex only with damping.

    is_conservative: K is symmetric. Without damping, too, an unstable mode stands for the two poles ± s.
    resolution [1/s]: slower poles are zero to rounding, and are 0.
    """

    poles: np.ndarray
    shapes: np.ndarray
    is_conservative: bool
    resolution: float


def eigenmodes(M: np.ndarray, C: np.ndarray, K: np.ndarray, floor: float) -> Eigenmodes:
    """The free motions, the slowest first.

    M, C, K (n, n): symmetric positive definite, and any. floor [1/s²]: the scale of K in units of M below which its
    numbers are rounding, where K itself is zero.
    """
    L = np.linalg.cholesky(M)
    stiffness, damping = _normalised(L, K), _normalised(L, C)
    scale = max(float(np.linalg.norm(stiffness, 2)) if stiffness.size else 0.0, floor) or 1.0
    symmetric = bool(np.abs(stiffness - stiffness.T).max(initial=0.0) <= SYMMETRIC * scale)
    undamped = np.abs(damping).max(initial=0.0) <= SYMMETRIC * np.sqrt(scale)
    if symmetric and undamped:
        squares, y = np.linalg.eigh(0.5 * (stiffness + stiffness.T))
        squares = np.where(np.abs(squares) <= _ZERO * scale, 0.0, squares)
        resolution = float(np.sqrt(_ZERO * scale))
        poles = np.where(squares < 0.0, 1.0, 1.0j) * np.sqrt(np.abs(squares))
    else:
        poles, y, resolution = _first_order(stiffness, damping, scale, symmetric)
    order = np.argsort(np.abs(poles), kind="stable")
    return Eigenmodes(poles[order], np.linalg.solve(L.T, y[:, order]), symmetric, resolution)


def _normalised(L: np.ndarray, A: np.ndarray) -> np.ndarray:
    """L⁻¹ A L⁻ᵀ."""
    return np.linalg.solve(L, np.linalg.solve(L, A).T).T


def _first_order(K: np.ndarray, C: np.ndarray, scale: float, symmetric: bool) -> tuple[np.ndarray, np.ndarray, float]:
    """Poles (k,) and unit shapes (n, k) of ÿ + C ẏ + K y = 0, and their resolution [1/s].

    Motions without stiffness and damping have double zeros without a full set of vectors: where K is symmetric they
    are split off first.
    """
    n, fast = len(K), max(np.sqrt(scale), np.linalg.norm(C, 2))
    still, moving = np.zeros((n, 0)), np.eye(n)
    if symmetric:
        _, s, Vt = np.linalg.svd(np.vstack([K / scale, C / fast, C.T / fast]))
        loose = s <= _ZERO
        still, moving = Vt[loose].T, Vt[~loose].T
    k, c = moving.T @ K @ moving, moving.T @ C @ moving
    zero, one = np.zeros_like(k), np.eye(len(k))
    s, vectors = np.linalg.eig(np.block([[zero, fast * one], [-k / fast, -c]]))  # of (y, ẏ / fast)
    is_single = symmetric and np.count_nonzero(np.abs(s) <= _DOUBLE * fast) <= 1
    resolution = float((_SMALL if is_single and not still.size else _DOUBLE) * fast)
    s = np.where(np.abs(s) <= resolution, 0.0, s)
    kept = s.imag >= 0.0
    y = moving @ vectors[: len(k), kept]
    y = y / np.linalg.norm(y, axis=0)
    largest = y[np.argmax(np.abs(y), axis=0), np.arange(y.shape[1])] if y.size else np.ones(0)
    y = y * (np.abs(largest) / largest)
    return np.concatenate([np.zeros(still.shape[1]), s[kept]]), np.concatenate([still, y], axis=1), resolution
