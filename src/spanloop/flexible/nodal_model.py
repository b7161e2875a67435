"""A beam as a finite-element model of nodes: six numbers a node, matrices of the body that nothing holds.

    [m]  T = ½ ẇᵀ m ẇ,    [K]  U = ½ wᵀ K w,    w = (rotation, displacement) of node 1, of node 2, ...

Nodes are the ends of elements, and their middles, which only twist and stretch: the rows of m and K of their bending
are zero. Nodes count from the tip to the root.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.errors import InputError
from spanloop.flexible.beam import Beam, BeamPiece
from spanloop.flexible.finite_elements import FiniteElements
from spanloop.flexible.rod import DIRECTIONS, Rod

# entries of a node's six numbers, [rotation; displacement], that a direction has, with their signs: in bending a
# deflection and a slope, and a positive slope in z turns about −y
_ENTRIES = {"y": ((4, 1.0), (2, 1.0)), "z": ((5, 1.0), (1, -1.0)), "torsion": ((0, 1.0),), "extension": ((3, 1.0),)}


@dataclass(frozen=True, eq=False)
class NodalModel:
    """n nodes at positions (n, 3) [m] in the body's frame, the root last; mass and stiffness (6n, 6n).

    freedoms: which of the 6n numbers may differ from rigid motion: of the directions that deform, without the root.
    modes (len(freedoms), n_modes): their values for unit modal coordinates.
    """

    positions: np.ndarray
    mass: np.ndarray
    stiffness: np.ndarray
    freedoms: tuple[int, ...]
    modes: np.ndarray


def nodal_model(piece: BeamPiece) -> NodalModel:
    """The nodes of a piece of a beam, whatever basis it is reduced to."""
    rod, bases = piece.shapes
    n = 2 * len(rod.lengths) + 1
    x = np.empty(n)
    x[::2], x[1::2] = rod.edges, 0.5 * (rod.edges[1:] + rod.edges[:-1])
    mass, stiffness = np.zeros((6 * n, 6 * n)), np.zeros((6 * n, 6 * n))
    for direction in DIRECTIONS:
        places, signs = _places(rod, direction)
        K, M = rod.free_matrices(direction)
        stiffness[np.ix_(places, places)] = signs[:, None] * K * signs
        mass[np.ix_(places, places)] = signs[:, None] * M * signs
    columns: list[np.ndarray] = []
    used: list[int] = []
    for direction, basis in bases:
        places, signs = _places(rod, direction)
        at_root = len(places) - len(basis)
        used += places[at_root:].tolist()
        whole = np.zeros((6 * n, basis.shape[1]))
        whole[places[at_root:]] = signs[at_root:, None] * basis
        columns.append(whole)
    freedoms = sorted(used)
    modes = np.hstack(columns)[freedoms] if columns else np.zeros((0, 0))
    positions = np.stack([x, 0.0 * x, 0.0 * x], axis=1)[::-1]
    return NodalModel(positions, mass, stiffness, tuple(freedoms), modes)


def _places(rod: Rod, direction: str) -> tuple[np.ndarray, np.ndarray]:
    """Where the degrees of freedom of a direction are among the 6n numbers, the root's first; and their signs."""
    last = 2 * len(rod.lengths)
    nodes = range(0, last + 1, 2) if direction in "yz" else range(last + 1)  # from the root
    found = [(6 * (last - k) + entry, sign) for k in nodes for entry, sign in _ENTRIES[direction]]
    return np.array([place for place, _ in found]), np.array([sign for _, sign in found])


def to_matrices(beam: Beam) -> FiniteElements:
    """Return mass, stiffness and nodes of a beam of one piece, which nothing holds, for other programs.

    Node 0 is the root, the last one the tip, every other one the end of an element; those between them only twist and
    stretch.

    >>> boom = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), elements=4)
    >>> sl.flexible.to_matrices(boom).mass.shape
    (38, 38)
    """
    if not isinstance(beam, Beam):
        raise InputError(f"to_matrices: {beam!r:.60} is no beam; expected one, as sl.flexible.beam(...)")
    if beam.pieces > 1:
        raise InputError(f"to_matrices: the beam has {beam.pieces} pieces; expected one, with more elements=")
    model = nodal_model(BeamPiece(beam))
    count = len(model.positions)
    rows = np.arange(6 * count).reshape(count, 2, 3)[::-1, ::-1].ravel()  # from the root; displacement, rotation
    used = rows[(np.abs(model.mass) + np.abs(model.stiffness)).sum(axis=1)[rows] > 0.0]
    dofs = np.stack([count - 1 - used // 6, (used % 6 + 3) % 6], axis=1)
    own = np.ix_(used, used)
    return FiniteElements(model.mass[own], model.stiffness[own], model.positions[::-1].copy(), dofs, None, "a beam")
