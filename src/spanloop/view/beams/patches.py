"""Patches of a surface that bends, for drawings of lines: each moves rigidly with the mean motion of its corners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.flexible.body import Stations
from spanloop.flexible.particles import skew
from spanloop.view.meshes.mesh import Mesh

MOST = 48  # patches of a body
FEW = 8  # triangles of a patch that is not divided


@dataclass(frozen=True, eq=False)
class Patches:
    """The patches of a surface: a mesh of each about its middle, the middles and how they move with the modes."""

    meshes: tuple[Mesh, ...]
    stations: Stations

    def poses(self, eta: np.ndarray) -> np.ndarray:
        """Poses (..., k, 4, 4) in the frame of the body at modal coordinates (..., n)."""
        places, turns = self.stations.placed(eta)
        out = np.zeros((*places.shape[:-1], 4, 4))
        out[..., :3, :3], out[..., :3, 3], out[..., 3, 3] = turns, places, 1.0
        return out


def patches(mesh: Mesh) -> Patches:
    """The patches of a mesh with movement."""
    assert mesh.movement is not None
    n = mesh.movement.shape[1]
    meshes, places, shifts, turns = [], [], [], []
    for part in _divided(mesh.vertices[mesh.faces].mean(axis=1)):
        own, faces = np.unique(mesh.faces[part], return_inverse=True)
        x = mesh.vertices[own]
        middle = x.mean(axis=0)
        R = np.concatenate([np.broadcast_to(np.eye(3), (len(own), 3, 3)), -skew(x - middle)], axis=-1).reshape(-1, 6)
        motion = np.linalg.pinv(R, rcond=1e-6) @ mesh.movement[own].transpose(0, 2, 1).reshape(-1, n)
        meshes.append(Mesh(x - middle, faces.reshape(-1, 3), mesh.colors[part]))
        places.append(middle)
        shifts.append(motion[:3].T)
        turns.append(motion[3:].T)
    second = np.zeros((len(meshes), n, n, 3))
    return Patches(tuple(meshes), Stations(np.array(places), np.array(shifts), np.array(turns), second, second))


def _divided(centers: np.ndarray) -> list[np.ndarray]:
    """Numbers of the triangles of each patch: halves of halves across the longest side."""
    parts = [np.arange(len(centers))]
    while len(parts) < MOST:
        k = int(np.argmax([np.ptp(centers[p], axis=0).max() if len(p) > FEW else 0.0 for p in parts]))
        own = parts[k]
        if len(own) <= FEW:
            break
        along = centers[own, int(np.argmax(np.ptp(centers[own], axis=0)))]
        below = along < np.median(along)
        if not below.any() or below.all():
            break
        parts[k : k + 1] = [own[below], own[~below]]
    return parts
