"""Meshes from files, and simple shapes for bodies whose meshes cannot be read."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.model import Model
from spanloop.view.scene import Scene, scene


def scene_with_meshes(model: Model, q=None, folder: str | Path | None = None) -> Scene:
    """The scene of a model, in which every mesh can be drawn; notes say which could not."""
    full = scene(model, q, folder)
    notes = {s.file: why for b in full.bodies for s in b.shapes if s.kind == "mesh" and (why := _fault(s.file))}
    if not notes:
        return full
    simple = scene(model, q).bodies
    bodies = [
        plain if any(s.file in notes for s in body.shapes) else body
        for body, plain in zip(full.bodies, simple, strict=True)
    ]
    return replace(full, bodies=tuple(bodies), notes=(*full.notes, *dict.fromkeys(notes.values())))


@functools.lru_cache(maxsize=256)
def mesh(file: str) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 3) and triangles (m, 3) of a file that trimesh can read."""
    import trimesh

    read: Any = trimesh.load(file, force="mesh")
    return np.asarray(read.vertices, np.float32), np.asarray(read.faces, np.uint32)


def _fault(file: str) -> str:
    """Why a mesh cannot be drawn; "" if it can."""
    name = Path(file).name
    try:
        empty = not len(mesh(file)[1])
    except ImportError as error:
        return f"mesh {name!r}: {error}; a simple shape stands in its place"
    except Exception as error:  # readers of many formats fail in many ways
        return f"mesh {name!r} cannot be read ({error}); a simple shape stands in its place"
    return f"mesh {name!r} is empty; a simple shape stands in its place" if empty else ""
