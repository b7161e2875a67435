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
    elif count > 0 and not _is_text(data):
        raise ValueError(
            f"it is truncated or damaged: {count} triangles need {84 + 50 * count} bytes, it has {len(data)}"
        )
    elif len(data) > LARGEST_TEXT:
        raise ValueError(f"it has {len(data) / 2**20:.0f} MB of text")
    else:
        words = data.decode(errors="replace").split()
        rows = [words[k + 1 : k + 4] for k, w in enumerate(words) if w == "vertex"]
        try:
            corners = np.array([[float(x) for x in row] for row in rows], np.float32).reshape(-1, 3)
        except ValueError:
            raise ValueError("a vertex of it does not have three numbers") from None
    if not len(corners):
        raise ValueError("it contains no triangles")
    return merged(corners)


def _is_text(data: bytes) -> bool:
    """Whether an .stl file is text: it has the words of one, and no zero bytes."""
    return b"\0" not in data[:1000] and b"vertex" in data[:10_000]


def merged(corners: np.ndarray) -> Mesh:
    """Triangles given by their corners (3 n, 3), with equal corners as one."""
    rows = np.ascontiguousarray(corners + np.float32(0.0), np.float32).view("V12").ravel()
    _, first, number = np.unique(rows, return_index=True, return_inverse=True)
    return Mesh.of(corners[first], number.reshape(-1, 3))


def obj(path: Path) -> Mesh:
    """The faces of an .obj file, of any number of corners, as fans of triangles."""
    points: list[list[float]] = []
    faces: list[list[int]] = []
    colors: list[int] = []
    materials: dict[str, int] = {}
    libraries, color = 0, NO_COLOR
    for row, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        key, _, rest = line.strip().partition(" ")
        if key == "v":
            points.append(_numbers(rest.split()[:3], row))
        elif key == "f":
            numbers = _corner_numbers(rest, row)
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


def _numbers(words: list[str], row: int) -> list[float]:
    try:
        found = [float(w) for w in words]
    except ValueError:
        found = []
    if len(found) != 3:
        raise ValueError(f"line {row}: {' '.join(words)!r} is no point; expected three numbers")
    return found


def _corner_numbers(rest: str, row: int) -> list[int]:
    try:
        return [int(w.partition("/")[0]) for w in rest.split()]
    except ValueError:
        raise ValueError(f"line {row}: {rest.strip()[:60]!r} is no face; expected numbers of corners") from None


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
