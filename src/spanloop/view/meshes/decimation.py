"""Fewer triangles: corners in one cell of a grid become one, where the planes of their triangles meet best.

The corner of a cell minimises the squared distances to those planes, weighted by area (Lindstrom, Out-of-core
simplification of large polygonal models, 2000); directions that the planes leave open keep the mean of the corners.
Triangles that form no surface are not merged: an even choice of them remains.
"""

from __future__ import annotations

import numpy as np

from spanloop.view.meshes.mesh import Mesh

_ROUNDS = 9
_CROWDED = 8.0  # triangles for each cluster; a surface has about 2
_COVERED = 40.0  # area of all triangles that are chosen, in areas of the box around the mesh
_OPEN = 1e-3  # eigenvalues below this share of the largest are directions without a plane


def decimated(mesh: Mesh, most: int) -> Mesh:
    """The mesh with about `most` triangles or fewer; the same if it has no more than that."""
    if len(mesh.faces) <= most:
        return mesh
    low, high = mesh.box
    longest = float((high - low).max()) or 1.0
    fine, coarse = longest / 2048.0, longest
    cells = None
    cell = longest / max(4.0, np.sqrt(0.4 * most))
    for _ in range(_ROUNDS):
        number, faces, kept = _clustered(mesh, low, cell)
        if len(kept) > _CROWDED * max(int(number.max()) + 1, 64):
            return _chosen(mesh, most)
        if len(kept) <= most:
            cells, coarse = (number, faces, kept), cell
            if len(kept) > 0.85 * most:
                break
        else:
            fine = cell
        cell = float(np.sqrt(fine * coarse))
    if cells is None or not len(cells[2]):
        return mesh if cells is None else _box(low, high, mesh)
    number, faces, kept = cells
    vertices = _corners(mesh, number, coarse)
    return Mesh(vertices, faces, mesh.colors[kept], _movement(mesh, number))


def _chosen(mesh: Mesh, most: int) -> Mesh:
    """An even choice of `most` triangles, or of fewer if these cover each other many times; their corners only."""
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    area = 0.5 * float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum())
    x, y, z = mesh.box[1] - mesh.box[0]
    enough = _COVERED * 2.0 * (x * y + y * z + z * x) / max(area, 1e-300) * len(mesh.faces)
    which = np.linspace(0, len(mesh.faces) - 1, int(min(most, max(enough, 200.0)))).astype(np.int64)
    used, faces = np.unique(mesh.faces[which], return_inverse=True)
    movement = None if mesh.movement is None else mesh.movement[used]
    return Mesh(mesh.vertices[used], faces.reshape(-1, 3), mesh.colors[which], movement)


def _clustered(mesh: Mesh, low: np.ndarray, cell: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cluster (n,) of each corner, the distinct triangles (k, 3) between clusters, and their numbers (k,)."""
    grid = np.floor((mesh.vertices - low) / cell).astype(np.int64) + 1
    grid = np.clip(grid, 0, 2**20)  # corners that no triangle uses may lie anywhere
    _, number = np.unique((grid[:, 0] << 42) | (grid[:, 1] << 21) | grid[:, 2], return_inverse=True)
    faces = number[mesh.faces]
    a, b, c = faces.T
    alive = np.flatnonzero((a != b) & (b != c) & (c != a))
    ordered = np.sort(faces[alive], axis=1)
    _, first = np.unique(ordered[:, 0] * 2**42 + ordered[:, 1] * 2**21 + ordered[:, 2], return_index=True)
    kept = alive[np.sort(first)]
    return number, faces[kept], kept


def _corners(mesh: Mesh, number: np.ndarray, cell: float) -> np.ndarray:
    """The best corner (clusters, 3) of each cluster."""
    count = int(number.max()) + 1
    used = np.zeros(len(mesh.vertices), bool)
    used[mesh.faces] = True
    weight = np.maximum(np.bincount(number[used], minlength=count), 1)
    mean = (
        np.stack([np.bincount(number[used], mesh.vertices[used, k], count) for k in range(3)], axis=1) / weight[:, None]
    )
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    A, r = np.zeros((count, 3, 3)), np.zeros((count, 3))
    for k in range(3):  # each triangle counts in the cells of its three corners
        own = number[mesh.faces[:, k]]
        height = np.einsum("mi,mi->m", normal, a - mean[own])
        for i in range(3):
            r[:, i] += np.bincount(own, normal[:, i] * height, count)
            for j in range(i, 3):
                A[:, i, j] += np.bincount(own, normal[:, i] * normal[:, j], count)
    A = A + np.triu(A, 1).swapaxes(1, 2)
    values, axes = np.linalg.eigh(A)
    scale = np.where(values > _OPEN * values[:, -1:], 1.0 / np.maximum(values, 1e-300), 0.0)
    scale[values[:, -1] <= 0.0] = 0.0
    move = np.einsum("cij,cj,ckj,ck->ci", axes, scale, axes, r)
    return mean + np.clip(move, -0.5 * cell, 0.5 * cell)


def _movement(mesh: Mesh, number: np.ndarray) -> np.ndarray | None:
    """The mean movement (clusters, modes, 3) of the corners of each cluster; None for a rigid mesh."""
    if mesh.movement is None:
        return None
    used = np.unique(mesh.faces)
    total = np.zeros((int(number.max()) + 1, *mesh.movement.shape[1:]))
    np.add.at(total, number[used], mesh.movement[used])
    counts = np.bincount(number[used], minlength=len(total))
    return np.asarray(total / np.maximum(counts, 1)[:, None, None])


def _box(low: np.ndarray, high: np.ndarray, mesh: Mesh) -> Mesh:
    """The box around a mesh that no grid divides well."""
    corners = np.array([[(low, high)[k >> i & 1][i] for i in range(3)] for k in range(8)])
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = np.array([t for a, b, c, d in sides for t in ((a, b, c), (a, c, d))])
    mean = None if mesh.movement is None else np.broadcast_to(mesh.movement.mean(axis=0), (8, *mesh.movement.shape[1:]))
    return Mesh(corners, faces, np.full(12, mesh.colors[0]), mean)
