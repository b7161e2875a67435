"""Shapes of a scene as viser nodes: primitives, capsules, meshes from files, marks of joints and closures."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.math.rotation import toward
from spanloop.math.vector3 import product
from spanloop.model import Model
from spanloop.model.files.file_io import LARGEST
from spanloop.model.parts import Placement
from spanloop.types import Floats3
from spanloop.view.body_shapes import Shape
from spanloop.view.scene import Scene, scene

_ROUND = 24  # faces around a capsule
MESHES = (".stl", ".obj", ".dae", ".ply", ".off", ".glb", ".gltf")


def draw(world: Any, name: str, shape: Shape, color: str, opacity: float | None = None) -> Any:
    """Add a node with this shape in its parent's frame."""
    turn, place = placed(shape.placement)
    common = {"wxyz": turn, "position": place, "color": rgb(color), "opacity": opacity}
    if shape.kind == "box":
        return world.add_box(name, dimensions=shape.size, **common)
    if shape.kind == "cylinder":
        return world.add_cylinder(name, radius=shape.size[0], height=shape.size[1], **common)
    if shape.kind == "sphere":
        return world.add_icosphere(name, radius=shape.size[0], **common)
    if shape.kind == "ellipsoid":
        return world.add_icosphere(name, radius=1.0, scale=tuple(max(x, 1e-4) for x in shape.size), **common)
    vertices, faces = _triangles(shape)
    return world.add_mesh_simple(name, vertices, faces, **common)


def _triangles(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 3) [m] and triangles (m, 3)."""
    if shape.kind == "mesh":
        corners, faces = mesh(shape.file)
        return (corners * np.array(shape.size)).astype(np.float32), faces
    import trimesh

    radius, length = shape.size
    found = trimesh.creation.capsule(height=length, radius=radius, count=[_ROUND, _ROUND])
    corners = found.vertices - found.vertices.mean(axis=0)
    return np.asarray(corners, np.float32), np.asarray(found.faces, np.uint32)


def pin(axis: Floats3, radius: float, length: float) -> Shape:
    """A short cylinder along a joint's axis."""
    return Shape("cylinder", (radius, length), Placement(toward(axis).matrix()), derived=True)


def ball(radius: float) -> Shape:
    """A sphere at the joint's origin."""
    return Shape("sphere", (radius,), derived=True)


def closure(axis: Floats3 | None, placement: Placement, size: float, outer: bool) -> Shape:
    """The mark of a closure on one of its bodies: a pin along its axis, or a ball; the outer one is wider."""
    radius, length = (0.026 * size, 0.05 * size) if outer else (0.02 * size, 0.09 * size)
    if axis is None:
        return Shape("sphere", (1.2 * (radius if outer else 0.9 * radius),), placement, derived=True)
    turned = product(placement.rotation, toward(axis).matrix())
    return Shape("cylinder", (radius, length), Placement(turned, placement.position), derived=True)


def placed(placement: Placement) -> tuple[np.ndarray, np.ndarray]:
    """Quaternion (w, x, y, z) and position."""
    return quaternions(np.array(placement.rotation)[None])[0], np.array(placement.position)


def quaternions(rotations: np.ndarray) -> np.ndarray:
    """Quaternions (n, 4), scalar first, of rotation matrices (n, 3, 3): eigenvectors of the largest eigenvalue."""
    r = rotations
    k = np.zeros((len(r), 4, 4))
    xx, yy, zz = r[:, 0, 0], r[:, 1, 1], r[:, 2, 2]
    k[:, 0, 0], k[:, 1, 1], k[:, 2, 2], k[:, 3, 3] = xx + yy + zz, xx - yy - zz, yy - xx - zz, zz - xx - yy
    pairs = {(0, 1): (2, 1, -1), (0, 2): (0, 2, -1), (0, 3): (1, 0, -1), (1, 2): (1, 0, 1), (1, 3): (0, 2, 1)}
    for (i, j), (a, b, sign) in (pairs | {(2, 3): (2, 1, 1)}).items():
        k[:, i, j] = k[:, j, i] = r[:, a, b] + sign * r[:, b, a]
    return np.linalg.eigh(k)[1][:, :, -1]


def rgb(color: str) -> tuple[int, int, int]:
    """Red, green, blue, 0 to 255, of "#rrggbb"."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def darker(color: str, share: float = 0.65) -> str:
    """A darker colour for thin parts, which otherwise look pale."""
    return "#" + "".join(f"{round(share * c):02x}" for c in rgb(color))


def scene_with_meshes(model: Model, q=None, folder: str | Path | None = None) -> Scene:
    """The scene of a model, with simple shapes for bodies whose meshes cannot be read; notes list them."""
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
    """Corners (n, 3) and triangles (m, 3) of a mesh file, read with trimesh."""
    import trimesh

    path = Path(file)
    if path.suffix.lower() not in MESHES:  # others may unpack to any size
        raise ValueError(f"{path.suffix or 'no extension'} is not supported; expected one of {', '.join(MESHES)}")
    if path.stat().st_size > LARGEST:
        raise ValueError(f"it has {path.stat().st_size / 2**20:.0f} MB; at most {LARGEST // 2**20} MB are read")
    read: Any = trimesh.load(file, force="mesh")
    return np.asarray(read.vertices, np.float32), np.asarray(read.faces, np.uint32)


def _fault(file: str) -> str:
    """Why a mesh cannot be drawn; "" if it can."""
    name = Path(file).name
    try:
        empty = not len(mesh(file)[1])
    except ImportError as error:
        return f"mesh {name!r}: {error}; a simple shape replaces it"
    except Exception as error:  # readers of many formats fail in many ways
        return f"mesh {name!r} cannot be read ({error}); a simple shape replaces it"
    return f"mesh {name!r} is empty; a simple shape replaces it" if empty else ""
