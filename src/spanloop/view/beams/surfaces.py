"""Surfaces of bodies from finite elements: patches of triangles that follow the shape, coloured by strain energy.

Each patch moves rigidly with the mean motion of its corners, so that every renderer draws it as it draws bodies. Small
gaps open between patches of a body that bends far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from spanloop.flexible.body import Stations
from spanloop.flexible.finite_element_body import FiniteElementBody
from spanloop.flexible.particles import skew
from spanloop.view.body_shapes import Shape
from spanloop.view.meshes.mesh import Mesh

if TYPE_CHECKING:
    from spanloop.trajectory import Trajectory

MOST = 48  # patches of a body
_SAMPLES = 200  # of a run, at which strain energy is looked at
_RAMP = np.array([[0x2B, 0x4C, 0x9B], [0x2E, 0xA0, 0xA8], [0xE9, 0xD3, 0x4F], [0xC8, 0x2F, 0x2A]], float)  # low to high


@dataclass(frozen=True, eq=False)
class Surface:
    """Patches of a body: the triangles of each, and where their middles are and how they move with the modes."""

    triangles: tuple[np.ndarray, ...]
    stations: Stations


@lru_cache(maxsize=64)
def surface(body: FiniteElementBody) -> Surface:
    """The patches of a body that has triangles."""
    parts = _divided(body.vertices[body.triangles].mean(axis=1))
    n = body.n
    places, shifts, turns = [], [], []
    for part in parts:
        own = np.unique(body.triangles[part])
        x = body.vertices[own]
        middle = x.mean(axis=0)
        R = np.concatenate([np.broadcast_to(np.eye(3), (len(own), 3, 3)), -skew(x - middle)], axis=-1).reshape(-1, 6)
        motion = np.linalg.pinv(R, rcond=1e-6) @ body.movement[own].transpose(0, 2, 1).reshape(-1, n)
        places.append(middle)
        shifts.append(motion[:3].T)
        turns.append(motion[3:].T)
    second = np.zeros((len(parts), n, n, 3))
    return Surface(tuple(parts), Stations(np.array(places), np.array(shifts), np.array(turns), second, second))


def _divided(centers: np.ndarray) -> list[np.ndarray]:
    """Numbers of the triangles of each patch: halves of halves across the longest side."""
    parts = [np.arange(len(centers))]
    while len(parts) < MOST:
        k = int(np.argmax([np.ptp(centers[p], axis=0).max() if len(p) > 8 else 0.0 for p in parts]))
        own = parts[k]
        if len(own) <= 8:
            break
        along = centers[own, int(np.argmax(np.ptp(centers[own], axis=0)))]
        below = along < np.median(along)
        if not below.any() or below.all():
            break
        parts[k : k + 1] = [own[below], own[~below]]
    return parts


def patch_shapes(body: FiniteElementBody, shares: np.ndarray | None = None) -> list[Shape]:
    """The mesh of each patch in its frame; shares (triangles,) from 0 to 1: how they are coloured."""
    found = surface(body)
    out = []
    for part, middle in zip(found.triangles, found.stations.positions, strict=True):
        nodes, faces = np.unique(body.triangles[part], return_inverse=True)
        colors = None if shares is None else ramp(shares[part])
        mesh = Mesh.of(body.vertices[nodes] - middle, faces.reshape(-1, 3), colors)
        out.append(Shape("mesh", (1.0, 1.0, 1.0), derived=True, mesh=mesh))
    return out


def ramp(shares: np.ndarray) -> np.ndarray:
    """Colours 0xrrggbb of shares from 0 to 1."""
    at = np.clip(shares, 0.0, 1.0) * (len(_RAMP) - 1)
    rgb = np.stack([np.interp(at, np.arange(len(_RAMP)), _RAMP[:, c]) for c in range(3)], axis=-1).round().astype(int)
    return (rgb[..., 0] << 16) + (rgb[..., 1] << 8) + rgb[..., 2]


def largest_energies(body: FiniteElementBody, eta: np.ndarray) -> np.ndarray:
    """The largest strain energy (triangles,) [J] of the element behind each triangle over states (..., n)."""
    rows = eta.reshape(-1, body.n)
    rows = rows[:: max(1, len(rows) // _SAMPLES)]
    rows = rows[np.isfinite(rows).all(axis=1)]
    found = 0.5 * np.einsum("tik,si,sk->st", body.energies, rows, rows, optimize=True)
    return np.asarray(found.max(axis=0, initial=0.0))


def coloured_shapes(body: FiniteElementBody, run: Trajectory, q: slice) -> list[Shape]:
    """The patches with the largest strain energy over a run as colours, from none to the most."""
    if not len(body.energies):
        return patch_shapes(body)
    found = largest_energies(body, run.q[..., q])
    most = float(found.max(initial=0.0))
    return patch_shapes(body, np.sqrt(found / most) if most else np.zeros(len(found)))


def with_strain_colors(seen, run: Trajectory, bent):
    """The scene of a run, with the surfaces of bodies from finite elements in the colours of their strain energy.

    bent: the flexible bodies of its model; patches come after the bodies of the model, in that order.
    """
    from spanloop.view.beams.segments import shape_count

    bodies, at = list(seen.bodies), run.model.n_bodies + 1
    for b in bent:
        count = shape_count(b.source)
        if isinstance(b.source, FiniteElementBody):
            for k, shape in enumerate(coloured_shapes(b.source, run, b.q)):
                bodies[at + k] = replace(bodies[at + k], shapes=(shape,))
        at += count
    return replace(seen, bodies=tuple(bodies))
