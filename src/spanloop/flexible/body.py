"""A flexible body as data: rigid inertia, modes with their moments, nodes; and shapes of its axis to draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.flexible.modes import Modal
from spanloop.flexible.particles import skew
from spanloop.math.flexible_nodes import NodeShape
from spanloop.types import Floats3


@dataclass(frozen=True)
class FlexibleNode:
    """A node that can carry something: its name, position in the undeformed body [m], and motion with the modes."""

    name: str
    position: Floats3
    shape: NodeShape


@dataclass(frozen=True)
class FlexibleBody:
    """A flexible body on its root frame, in which every mode vanishes.

    mass [kg], center [m], moments (xx, xy, xz, yy, yz, zz) about it [kg m²] of the undeformed body; stiffness, damping:
    of each mode; frequencies: of each mode with the root held [rad/s].
    """

    mass: float
    center: Floats3
    moments: tuple[float, ...]
    modal: Modal
    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    nodes: tuple[FlexibleNode, ...]
    frequencies: tuple[float, ...]


@dataclass(frozen=True)
class Stations:
    """Places along a body, to be drawn: positions (k, 3), and how each moves with the modes, as NodeShape has it.

    translations, rotations (k, n, 3), bent_translations, bent_rotations (k, n, n, 3).
    """

    positions: np.ndarray
    translations: np.ndarray
    rotations: np.ndarray
    bent_translations: np.ndarray
    bent_rotations: np.ndarray

    def placed(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions (..., k, 3) and rotations (..., k, 3, 3) in the body's frame at modal coordinates (..., n)."""
        eta = np.asarray(eta, dtype=float)
        moved = np.einsum("kna,...n->...ka", self.translations, eta)
        moved = moved + 0.5 * np.einsum("knma,...n,...m->...ka", self.bent_translations, eta, eta, optimize=True)
        psi = np.einsum("kna,...n->...ka", self.rotations, eta)
        psi = psi + 0.5 * np.einsum("knma,...n,...m->...ka", self.bent_rotations, eta, eta, optimize=True)
        return self.positions + moved, cayley(psi * (1.0 + (psi**2).sum(axis=-1, keepdims=True) / 12.0))


def cayley(psi: np.ndarray) -> np.ndarray:
    """Rotations (..., 3, 3) with the Cayley vectors psi (..., 3): 1 + ([ψ] + ½ [ψ]²)/(1 + ψ²/4)."""
    turn = skew(psi)
    share = 1.0 / (1.0 + 0.25 * (psi**2).sum(axis=-1))
    return np.asarray(np.eye(3) + share[..., None, None] * (turn + 0.5 * turn @ turn))
