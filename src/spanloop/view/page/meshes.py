"""Meshes for the page: each once, with few enough triangles, coordinates as 16-bit numbers within its box."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from spanloop.view.body_shapes import Shape
from spanloop.view.meshes.decimation import decimated
from spanloop.view.meshes.mesh import Mesh
from spanloop.view.scene import Scene

TRIANGLES = 160_000  # of all meshes of a page: about 2 MB
MOVEMENTS = 600_000  # numbers of the shapes of all surfaces that bend: 1.6 MB
STEPS = 32767  # of a movement, from 0 to the largest of its shape

Key = tuple[str, tuple[float, ...]]  # file and scale of a mesh


def packed_meshes(
    seen: Scene, others: Iterable[Shape] = (), mixes: Mapping[Key, np.ndarray] | None = None
) -> tuple[list[dict[str, Any]], dict[Key, int]]:
    """The meshes of a scene's bodies and of others as data of the page, and the number of each by file and scale.

    mixes: of surfaces with more modes than shapes, the matrix (shapes, modes) from modal coordinates to theirs.
    """
    shapes = [*(s for b in seen.bodies for s in b.shapes), *others]
    found = {key(s): s.mesh for s in shapes if s.mesh is not None}
    most = limit((len(m.faces) for m in found.values()), TRIANGLES)
    bending = [m.movement.shape[1] for m in found.values() if m.movement is not None]
    few = 2 * MOVEMENTS // (3 * sum(bending)) if bending else most  # a surface has twice as many triangles as corners
    packed = []
    for own, mesh in found.items():
        less = decimated(mesh, most if mesh.movement is None else min(most, max(few, 12)))
        packed.append({**packed_mesh(less), **packed_movement(less, (mixes or {}).get(own))})
    return packed, {k: i for i, k in enumerate(found)}


def key(shape: Shape) -> Key:
    """What identifies the mesh of a shape."""
    return shape.file, shape.size


def limit(counts: Iterable[int], budget: int) -> int:
    """The largest number that meshes may have each, so that all of them together stay within a budget."""
    left, ordered = budget, sorted(counts)
    for k, count in enumerate(ordered):
        share = left // (len(ordered) - k)
        if count > share:
            return max(share, 12)
        left -= count
    return max(ordered, default=0)


def packed_mesh(mesh: Mesh) -> dict[str, Any]:
    """A mesh as data of the page: its box, corners, triangles ordered by colour, and [how many, colour] of each."""
    used, faces = np.unique(mesh.faces, return_inverse=True)
    low, high = mesh.box
    span = np.where(high > low, high - low, 1.0)
    grid = np.round((mesh.vertices[used] - low) / span * 65535.0).astype("<u2")
    order = np.argsort(mesh.colors, kind="stable")
    colors, counts = np.unique(mesh.colors, return_counts=True)
    wide = "<u4" if len(used) > 65535 else "<u2"
    return {
        "low": low.tolist(),
        "high": (low + span).tolist(),
        "corners": base64.b64encode(grid.tobytes()).decode(),
        "faces": base64.b64encode(faces.reshape(-1, 3)[order].astype(wide).tobytes()).decode(),
        "wide": wide == "<u4",
        "colors": [[int(n), f"#{c:06x}" if c >= 0 else ""] for n, c in zip(counts, colors.tolist(), strict=True)],
    }


def packed_movement(mesh: Mesh, mix: np.ndarray | None = None) -> dict[str, Any]:
    """How the corners of a mesh move with its shapes: int16 for each corner, shape and axis, in steps of each shape."""
    if mesh.movement is None:
        return {}
    moved = mesh.movement[np.unique(mesh.faces)]
    steps = np.maximum(np.abs(moved).max(axis=(0, 2)), 1e-30) / STEPS
    grid = np.round(moved / steps[:, None]).astype("<i2")
    out = {"steps": steps.tolist(), "movement": base64.b64encode(grid.tobytes()).decode()}
    return out if mix is None else {**out, "mix": base64.b64encode(mix.astype("<f4").tobytes()).decode()}
