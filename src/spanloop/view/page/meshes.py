"""Meshes for the page: each once, with few enough triangles, coordinates as 16-bit numbers within its box."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np

from spanloop.view.body_shapes import Shape
from spanloop.view.meshes.decimation import decimated
from spanloop.view.meshes.mesh import Mesh
from spanloop.view.scene import Scene

TRIANGLES = 160_000  # of all meshes of a page: about 2 MB


def packed_meshes(
    seen: Scene, others: Iterable[Shape] = ()
) -> tuple[list[dict[str, Any]], dict[tuple[str, tuple[float, ...]], int]]:
    """The meshes of a scene's bodies and of others as data of the page, and the number of each by file and scale."""
    shapes = [*(s for b in seen.bodies for s in b.shapes), *others]
    found = {key(s): s.mesh for s in shapes if s.mesh is not None}
    most = limit((len(m.faces) for m in found.values()), TRIANGLES)
    return [packed_mesh(decimated(m, most)) for m in found.values()], {k: i for i, k in enumerate(found)}


def key(shape: Shape) -> tuple[str, tuple[float, ...]]:
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
