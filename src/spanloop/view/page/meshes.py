"""Triangles of a mesh file for the page: STL and OBJ, coordinates as 16-bit numbers within the mesh's box."""

from __future__ import annotations

import base64
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.model.files.file_io import LARGEST
from spanloop.view.body_shapes import Shape

MOST = 40_000  # triangles of one mesh
LARGEST_TEXT = 32 * 2**20  # bytes of a file that is text
_STL = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def packed_mesh(shape: Shape, notes: list[str]) -> dict[str, Any] | None:
    """The mesh as data of the page, its box if it is too large, or None; then a note gives the reason."""
    name = Path(shape.file).name
    try:
        corners = triangles(Path(shape.file))
    except (OSError, ValueError, IndexError) as error:
        notes.append(f"mesh {name!r} cannot be shown ({error}); a simple shape replaces it")
        return None
    corners = corners * np.array(shape.size)
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    if len(corners) > MOST:
        notes.append(f"mesh {name!r} has {len(corners)} triangles, more than {MOST}; its box replaces it")
        return {"kind": "hull", "low": low.tolist(), "high": high.tolist()}
    span = np.where(high > low, high - low, 1.0)
    grid = np.round((corners - low) / span * 65535.0).astype("<u2")
    return {
        "kind": "mesh",
        "low": low.tolist(),
        "high": (low + span).tolist(),
        "corners": base64.b64encode(grid.tobytes()).decode(),
    }


def triangles(path: Path) -> np.ndarray:
    """(n, 3, 3) corners of an .stl (binary or text) or .obj file."""
    if path.suffix.lower() not in (".obj", ".stl"):
        raise ValueError(f"{path.suffix or 'a file without extension'} is not supported; expected .stl or .obj")
    data = _read(path)
    found = _obj(data.decode(errors="replace")) if path.suffix.lower() == ".obj" else _stl(data)
    if not len(found) or not np.isfinite(found).all():
        raise ValueError("it contains no triangles" if not len(found) else "it contains numbers that are not finite")
    return found


def _read(path: Path) -> bytes:
    size = path.stat().st_size
    if size > LARGEST or (path.suffix.lower() == ".obj" and size > LARGEST_TEXT):
        raise ValueError(f"it has {size / 2**20:.0f} MB")
    return path.read_bytes()


def _stl(data: bytes) -> np.ndarray:
    count = int.from_bytes(data[80:84], "little") if len(data) >= 84 else -1
    if count >= 0 and len(data) == 84 + 50 * count:
        return np.frombuffer(data, _STL, count, 84)["corners"].astype(float)
    if len(data) > LARGEST_TEXT:
        raise ValueError(f"it has {len(data) / 2**20:.0f} MB of text")
    words = data.decode(errors="replace").split()
    numbers = [float(x) for k, w in enumerate(words) if w == "vertex" for x in words[k + 1 : k + 4]]
    return np.array(numbers).reshape(-1, 3, 3)


def _obj(text: str) -> np.ndarray:
    """Faces of any number of corners, as fans of triangles."""
    points: list[list[float]] = []
    faces: list[list[int]] = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["v"]:
            points.append([float(x) for x in words[1:4]])
        elif words[:1] == ["f"]:
            numbers = [int(w.partition("/")[0]) for w in words[1:]]
            corners = [n - 1 if n > 0 else len(points) + n for n in numbers]
            faces += [[corners[0], a, b] for a, b in pairwise(corners[1:])]
    return np.array(points)[np.array(faces, dtype=int)] if faces else np.zeros((0, 3, 3))
