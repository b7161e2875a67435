"""Rank of the closure rows of a mechanism: which rows are redundant, their lengths, rank and distance to singularity.

Rows have units (m, rad) and lengths of their own; they are compared after division by the length that each has in
general. Singular values below RANK of the largest count as zero.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from spanloop.algorithms.closed import closure_kinematics, redundancy
from spanloop.loops.batching import Robot, values
from spanloop.loops.closure_errors import mechanism_of
from spanloop.model import Model
from spanloop.sweeps import walk

RANK = 1e-8


@dataclass(frozen=True, eq=False)
class Structure:
    """The closure rows of a mechanism, in general or at one state."""

    redundant: tuple[int, ...]  # rows that depend on the others wherever the loops are closed
    kept: np.ndarray  # numbers of the other rows
    lengths: np.ndarray  # (n_rows,) of the rows in general; 1 for rows that are zero
    rank: int
    distance: float  # smallest singular value that counts, divided by the largest
    general: bool  # from several closed states, not from one alone
    jacobian: np.ndarray  # (kept, nv), scaled, at a closed state
    jacobians: tuple[np.ndarray, ...]  # (n_rows, nv) of all rows, at the closed states

    def scaled(self, jacobian: np.ndarray) -> np.ndarray:
        """The kept rows (..., kept, nv) of a Jacobian (..., n_rows, nv), of about unit length."""
        return jacobian[..., self.kept, :] / self.lengths[self.kept, None]

    def scaled_errors(self, e: np.ndarray) -> np.ndarray:
        return e[..., self.kept] / self.lengths[self.kept]


def structure(robot: Robot, q: np.ndarray) -> Structure:
    """The rows in general; at the state q (nq,) alone if no closed state was found."""
    found = in_general(robot.model)
    return found if found is not None else _of(robot.model, [values(robot, "closure_jacobian", q)], general=False)


@functools.lru_cache(maxsize=64)
def in_general(model: Model) -> Structure | None:
    """The rows at a few closed states; None if no closed state was found."""
    m = mechanism_of(model)
    jacobians = [
        np.reshape(walk(closure_kinematics.closure_jacobian(m), m, {"q": q.tolist()}), (m.n_rows, m.nv)).astype(float)
        for q in redundancy.assembled_states(m)
    ]
    return _of(model, jacobians, general=True) if jacobians else None


def _of(model: Model, jacobians: list[np.ndarray], general: bool) -> Structure:
    n_rows = len(jacobians[0])
    jacobians = [redundancy.without_traces(mechanism_of(model), J) for J in jacobians]
    redundant = redundancy.redundant_rows(jacobians) if n_rows else frozenset()
    kept = np.array([r for r in range(n_rows) if r not in redundant], dtype=int)
    lengths = np.max([np.linalg.norm(J, axis=1) for J in jacobians], axis=0)
    lengths = np.where(lengths > 1e-12 * lengths.max(initial=0.0), lengths, 1.0)
    scaled = [J[kept] / lengths[kept, None] for J in jacobians]
    spectra = [singular_values(J) for J in scaled]
    best = max(range(len(spectra)), key=lambda k: (rank(spectra[k]), distance(spectra[k], rank(spectra[k]))))
    r = rank(spectra[best])
    distances = distance(spectra[best], r)
    return Structure(
        tuple(sorted(redundant)), kept, lengths, r, distances, general, scaled[best], jacobians=tuple(jacobians)
    )


def singular_values(jacobian: np.ndarray) -> np.ndarray:
    return np.linalg.svd(jacobian, compute_uv=False)


def distance(s: np.ndarray, r: int) -> float:
    """The r-th singular value divided by the largest: how far a rank of r is from being lost; 1 without rows."""
    return float(s[r - 1] / s[0]) if r and s[0] > 0.0 else float(r == 0)


def rank(s: np.ndarray) -> int:
    """Number of singular values (k,) that count."""
    return int(np.sum(s > RANK * s.max(initial=0.0)))
