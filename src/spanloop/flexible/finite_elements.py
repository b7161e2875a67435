"""Finite-element models as matrices: what a file or a user's own code brings before it is reduced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class FiniteElements:
    """Mass and stiffness of a body in finite elements, and where its degrees of freedom are.

    mass, stiffness: (N, N), symmetric, SciPy sparse or NumPy
    positions: (n_nodes, 3) [m]
    dofs: (N, 2) integers, node index and component of each row: 0, 1, 2 displacement along x, y, z; 3, 4, 5 rotation
    labels: (n_nodes,) numbers of the nodes in the file, or None
    source: where it comes from, for messages
    """

    mass: Any
    stiffness: Any
    positions: np.ndarray
    dofs: np.ndarray
    labels: np.ndarray | None = None
    source: str = "matrices"

    @property
    def rows(self) -> np.ndarray:
        """(n_nodes, 6): the row of each component of each node; −1 where there is none."""
        out = np.full((len(self.positions), 6), -1)
        placed = np.flatnonzero(self.dofs[:, 0] >= 0)
        out[self.dofs[placed, 0], self.dofs[placed, 1]] = placed
        return out
