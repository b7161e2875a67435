"""Readers of STL (binary and text) and of OBJ with the colours of its materials."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from spanloop.view.meshes.mesh import LARGEST_TEXT, NO_COLOR, Mesh

_STL = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_MOST_LIBRARIES = 8  # material files of one mesh


def stl(path: Path) -> Mesh:
    """The triangles of an .stl file; equal corners become one."""
    data = path.read_bytes()
    count = int.from_bytes(data[80:84], "little") if len(data) >= 84 else -1
    if count >= 0 and len(data) == 84 + 50 * count:
        corners = np.frombuffer(data, _STL, count, 84)["corners"].reshape(-1, 3)
    elif len(data) > LARGEST_TEXT:
        raise ValueError(f"it has {len(data) / 2**20:.0f} MB of text")
    else:
        words = data.decode(errors="replace").split()
        numbers = [float(x) for k, w in enumerate(words) if w == "vertex" for x in words[k + 1 : k + 4]]
        corners = np.array(numbers, np.float32).reshape(-1, 3)
    if not len(corners):
        raise ValueError("it contains no triangles")
    return merged(corners)


def merged(corners: np.ndarray) -> Mesh:
    """Triangles given by their corners (3 n, 3), with equal corners as one."""
    rows = np.ascontiguousarray(corners + np.float32(0.0), np.float32).view("V12").ravel()
    _, first, number = np.unique(rows, return_index=True, return_inverse=True)
    return Mesh.of(corners[first], number.reshape(-1, 3))


def obj(path: Path) -> Mesh:
    """The faces of an .obj file, of any number of corners, as fans of triangles."""
    points: list[list[str]] = []
    faces: list[list[int]] = []
    colors: list[int] = []
    materials: dict[str, int] = {}
    libraries, color = 0, NO_COLOR
    for line in path.read_text(errors="replace").splitlines():
        key, _, rest = line.strip().partition(" ")
        if key == "v":
            points.append(rest.split()[:3])
        elif key == "f":
            numbers = [int(w.partition("/")[0]) for w in rest.split()]
            corners = [n - 1 if n > 0 else len(points) + n for n in numbers]
            fan = [[corners[0], a, b] for a, b in pairwise(corners[1:])]
            faces += fan
            colors += [color] * len(fan)
        elif key == "usemtl":
            color = materials.get(rest.strip(), NO_COLOR)
        elif key == "mtllib" and libraries < _MOST_LIBRARIES:
            libraries += 1
            materials.update(_materials(path.parent, rest.strip()))
    return Mesh.of(np.array(points, float).reshape(-1, 3), np.array(faces, np.int64), np.array(colors, np.int64))


def _materials(folder: Path, name: str) -> dict[str, int]:
    """Diffuse colours of an .mtl file beside the mesh; nothing if it is not there or leads elsewhere."""
    path = folder / name
    out: dict[str, int] = {}
    try:
        if Path(name).name != name or not path.resolve().is_relative_to(folder.resolve()):
            return out
        if path.stat().st_size > 2**20:
            return out
        current = ""
        for line in path.read_text(errors="replace").splitlines():
            key, _, rest = line.strip().partition(" ")
            if key == "newmtl":
                current = rest.strip()
            elif key == "Kd":
                out[current] = packed_color([float(x) for x in rest.split()[:3]])
            elif key == "map_Kd":
                out[current] = NO_COLOR  # a picture, which is not read
    except (OSError, ValueError):
        pass
    return out


def packed_color(rgb: list[float]) -> int:
    """Red, green, blue from 0 to 1 as 0xrrggbb; NO_COLOR if they are not three numbers."""
    if len(rgb) < 3 or not np.isfinite(rgb[:3]).all():
        return NO_COLOR
    r, g, b = (round(255 * min(max(x, 0.0), 1.0)) for x in rgb[:3])
    return r << 16 | g << 8 | b
