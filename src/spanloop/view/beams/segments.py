"""Segments of flexible bodies: a beam is drawn as a row of short rigid shapes that follow its bent axis.

Stations divide the axis of a body. A segment reaches from one station to the next: its origin is in their middle, its x
axis along the chord, and it turns with the sections. Segments are bodies of the scene like others, after those of the
model, so that a renderer needs to know nothing of bending. A body from finite elements has one segment in their stead:
its surface, in the frame of the body, whose mesh moves with the modes (surfaces.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from spanloop.flexible.beam import BeamPiece
from spanloop.flexible.body import Stations
from spanloop.flexible.finite_element_body import FiniteElementBody
from spanloop.model import Model
from spanloop.view.beams import surfaces
from spanloop.view.beams.patches import patches
from spanloop.view.body_shapes import Shape, rod

MOST, LEAST = 16, 4  # segments of a beam, and of each of its pieces
THINNEST = 0.005  # least width that is drawn, in sizes of the mechanism
OVERLAP = (0.05, 0.1)  # of boxes, of their length and width: the outer sides of a bend stay closed


@dataclass(frozen=True)
class BentBody:
    """A flexible body of a model: its number and that of its root among the bodies (0 is the world), where its modal
    coordinates are in q, and what its modes were computed from."""

    body: int
    root: int
    q: slice
    source: BeamPiece | FiniteElementBody


def _is_drawn(source: object) -> bool:
    return isinstance(source, BeamPiece) or (isinstance(source, FiniteElementBody) and bool(len(source.triangles)))


def bent_bodies(model: Model) -> list[BentBody]:
    """The flexible bodies of a model that are drawn bending, in its order; a beam in pieces has several."""
    number = model.body_number
    return [
        BentBody(number[j.child], number[j.parent], model.q_slice(j.name), j.kind.source)  # type: ignore[attr-defined]
        for j in model.joints
        if j.kind.bends and _is_drawn(getattr(j.kind, "source", None))
    ]


def massless_parts(model: Model) -> set[str]:
    """Names of roots and nodes of flexible bodies, which have no extent of their own."""
    nodes = {j.child for j in model.joints if j.kind.rides}
    return nodes | {j.parent for j in model.joints if j.kind.bends}


def section_turns(model: Model) -> np.ndarray:
    """For each DoF (nv,) that is a mode, how far its unit turns a section of the flexible body [rad]; 0 for others."""
    out = np.zeros(model.nv)
    for j in model.joints:
        if j.kind.bends and getattr(j.kind, "source", None) is not None:
            source = j.kind.source  # type: ignore[attr-defined]
            turns = np.linalg.norm(_places(source).rotations, axis=-1)
            out[model.v_slice(j.name)] = turns.max(axis=0)
    return out


def _places(source: BeamPiece | FiniteElementBody) -> Stations:
    """Places all over a flexible body, or its nodes where it is not drawn."""
    if isinstance(source, BeamPiece):
        return stations(source)
    mesh = surfaces.surface_shape(source).mesh if _is_drawn(source) else None
    return patches(mesh).stations if mesh is not None else source.stations()


def segment_count(model: Model) -> int:
    """How many segments the flexible bodies of a model have."""
    return sum(shape_count(bent.source) for bent in bent_bodies(model))


def surface_modes(model: Model) -> int:
    """How many modes the surfaces of a model have."""
    return sum(b.source.n for b in bent_bodies(model) if isinstance(b.source, FiniteElementBody))


def shape_count(source: BeamPiece | FiniteElementBody) -> int:
    """How many segments of a beam are drawn; one surface of finite elements."""
    return len(stations(source).positions) - 1 if isinstance(source, BeamPiece) else 1


@lru_cache(maxsize=64)
def stations(source: BeamPiece) -> Stations:
    """The stations between which the segments of a beam lie; segments are no shorter than they are thick."""
    beam = source.beam
    length = beam.length / beam.pieces
    thickness = max(max(s.outline) for s in beam.sections)
    most = max(MOST // beam.pieces, LEAST)
    return source.stations(int(np.clip(2.0 * length / thickness, LEAST, most)) if thickness else most)


def stiffness_of(source: BeamPiece | FiniteElementBody) -> tuple[float, ...]:
    """The stiffness of the modes with which a surface bends; nothing of a beam, whose segments are rigid."""
    return () if isinstance(source, BeamPiece) else tuple(source.stiffness.tolist())


def widths(source: BeamPiece | FiniteElementBody, size: float) -> tuple[np.ndarray, bool]:
    """Widths (k, 2) [m] along y and z of the segments of a flexible body, and whether they are round."""
    if isinstance(source, FiniteElementBody):
        return np.full((2, 2), THINNEST * size), True
    x = stations(source).positions[:, 0]
    found = source.sections_at(0.5 * (x[1:] + x[:-1]))
    return np.maximum([(b, h) for b, h, _ in found], THINNEST * size), found[0][2]


def segment_shapes(source: BeamPiece | FiniteElementBody, size: float) -> list[Shape]:
    """The shape of each segment in its frame; size [m]: of the mechanism.

    Round segments between others end in balls, which fill the bend; boxes overlap.
    """
    if isinstance(source, FiniteElementBody):
        return [surfaces.surface_shape(source)]
    sizes, is_round = widths(source, size)
    lengths = np.linalg.norm(np.diff(stations(source).positions, axis=0), axis=1)
    out = []
    for k, ((b, h), length) in enumerate(zip(sizes.tolist(), lengths.tolist(), strict=True)):
        if is_round:
            kind = "cylinder" if k in (0, len(lengths) - 1) and len(lengths) > 2 else "capsule"
            out.append(rod((-0.5 * length, 0.0, 0.0), (0.5 * length, 0.0, 0.0), 0.5 * b, kind))
        else:
            along = length * (1.0 + OVERLAP[0]) + OVERLAP[1] * max(b, h)
            out.append(Shape("box", (along, b, h), derived=True))
    return out


def segment_poses(model: Model, at: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Poses (..., k, 4, 4) of all segments; at (..., n_bodies + 1, 4, 4): those of the bodies at q (..., nq)."""
    found = [at[..., bent.body, None, :, :] @ _local_poses(bent.source, q[..., bent.q]) for bent in bent_bodies(model)]
    return np.concatenate(found, axis=-3) if found else np.zeros((*at.shape[:-3], 0, 4, 4))


def surface_coordinates(model: Model, q: np.ndarray) -> dict[int, np.ndarray]:
    """The coordinates (..., n) of modes with which each surface is drawn at q (..., nq), by its number in the scene."""
    out, at = {}, model.n_bodies + 1
    for bent in bent_bodies(model):
        if isinstance(bent.source, FiniteElementBody):
            out[at] = surfaces.drawn_coordinates(bent.source, q[..., bent.q])
        at += shape_count(bent.source)
    return out


def _local_poses(source: BeamPiece | FiniteElementBody, eta: np.ndarray) -> np.ndarray:
    """Poses (..., k, 4, 4) of the segments of a flexible body in its frame, at modal coordinates (..., n)."""
    if isinstance(source, FiniteElementBody):
        return np.broadcast_to(np.eye(4), (*eta.shape[:-1], 1, 4, 4))
    places, turns = stations(source).placed(eta)
    x = _unit(np.diff(places, axis=-2))
    y = turns[..., 1:, :, 1] + turns[..., :-1, :, 1]
    y = _unit(y - (x * y).sum(axis=-1, keepdims=True) * x)
    out = np.zeros((*x.shape[:-1], 4, 4))
    out[..., :3, 0], out[..., :3, 1], out[..., :3, 2] = x, y, np.cross(x, y)
    out[..., :3, 3], out[..., 3, 3] = 0.5 * (places[..., 1:, :] + places[..., :-1, :]), 1.0
    return out


def _unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-300))
