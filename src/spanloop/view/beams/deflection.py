"""Deflection of flexible bodies: where their nodes are, relative to their undeformed places, in the root's frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spanloop.flexible.body import Stations
from spanloop.model import Model
from spanloop.model.flexible_bodies.flexible_parts import END
from spanloop.model.parts import Joint
from spanloop.trajectory.topologies import has_same_joints

if TYPE_CHECKING:
    from spanloop.trajectory import Trajectory


def nodes(model: Model) -> list[str]:
    """Names of the nodes of flexible bodies, without the places at which the pieces of a beam join."""
    return [j.name for j in model.joints if j.kind.rides and not j.name.endswith(f".{END}")]


def deflection(model: Model, node: str, q: np.ndarray) -> np.ndarray:
    """Displacement (..., 3) [m] of a node from its undeformed place, in the axes of its beam's root; q (..., nq)."""
    chain = list(_chain(model, node))
    return _end(_links(model, chain, q)) - _end(_links(model, chain, np.zeros(model.nq)))


def curves(run: Trajectory, names: Sequence[str]) -> list[tuple[str, np.ndarray]]:
    """Displacements (..., n) [m] of nodes over a run, as "boom.tip.z", without directions in which none of them moves.

    NaN where a segment has no such node.
    """
    found = [(f"{name}.{axis}", _over(run, name)[..., k]) for name in names for k, axis in enumerate("xyz")]
    return [(name, values) for name, values in found if np.nan_to_num(values).any()] or found


def _over(run: Trajectory, node: str) -> np.ndarray:
    if has_same_joints(run):
        return deflection(run.model, node, run.q)
    parts = [
        _over(piece, node) if node in nodes(piece.model) else np.full((*run.batch, len(piece), 3), np.nan)
        for piece in run.pieces
    ]
    return np.concatenate(parts, axis=-2)


def _chain(model: Model, node: str) -> Iterator[Joint]:
    """The node and those that carry its piece of the beam, from the root of the beam."""
    joint = model.joint(node)
    modes = next(j for j in model.joints if j.child == joint.parent)
    if getattr(getattr(modes.kind, "source", None), "number", 0):
        yield from _chain(model, next(j for j in model.joints if j.child == modes.parent).parent)
    yield joint


def _links(model: Model, chain: list[Joint], q: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Position (..., 3) and rotation (..., 3, 3) of each node of a chain in the frame before it."""
    for joint in chain:
        modes = next(j for j in model.joints if j.child == joint.parent)
        shape = joint.kind.shape  # type: ignore[attr-defined]
        parts = (shape.translations, shape.rotations, shape.bent_translations, shape.bent_rotations)
        place = Stations(np.array([joint.placement.position]), *(np.array([x]) for x in parts))
        positions, rotations = place.placed(q[..., model.q_slice(modes.name)])
        yield positions[..., 0, :], rotations[..., 0, :, :]


def _end(links: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The position (..., 3) of the last node."""
    position, rotation = np.zeros(3), np.eye(3)
    for x, turn in links:
        position = position + np.einsum("...ij,...j->...i", rotation, x)
        rotation = rotation @ turn
    return position
