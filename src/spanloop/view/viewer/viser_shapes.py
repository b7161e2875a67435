"""Shapes of a scene as viser nodes: primitives, capsules, meshes in their colours, marks of joints and closures."""

from __future__ import annotations

from typing import Any

import numpy as np

from spanloop.math.rotation import toward
from spanloop.math.vector3 import product
from spanloop.model.parts import Placement
from spanloop.types import Floats3
from spanloop.view.body_shapes import Shape
from spanloop.view.meshes.decimation import decimated
from spanloop.view.meshes.mesh import Mesh

_ROUND = 24  # faces around a capsule
_MOST_TRIANGLES = 60_000  # of one mesh
_MOST_BENDING = 10_000  # of a surface that bends, whose corners are sent with every frame
_FEW_TRIANGLES = 60  # of a mesh with flat faces, as a hull or a box
_MOST_COLORS = 24  # of one mesh, each of which is a node


def draw_all(
    world: Any, name: str, shape: Shape, color: str, *, opacity: float | None = None, side: str = "front"
) -> list[Any]:
    """Add nodes with this shape in its own colours, else in this one: one node, or one a colour of its mesh.

    side: of a mesh's triangles that is seen, "front" or "double".
    """
    own = shape.color or color
    if shape.mesh is None:
        return [draw(world, name, shape, own, opacity)]
    mesh = decimated(shape.mesh, _MOST_TRIANGLES)
    turn, place = placed(shape.placement)
    return [
        world.add_mesh_simple(
            f"{name}/{k}",
            *part,
            wxyz=turn,
            position=place,
            color=rgb(tint or own),
            opacity=opacity,
            side=side,
            flat_shading=len(mesh.faces) <= _FEW_TRIANGLES,
        )
        for k, (part, tint) in enumerate(by_color(mesh))
    ]


def draw_surface(world: Any, name: str, mesh: Mesh, color: str) -> list[tuple[Any, Mesh]]:
    """Add nodes with a surface that bends, one a colour, each with the mesh whose corners it shows."""
    out = []
    for k, (part, tint) in enumerate(parts_by_color(decimated(mesh, _MOST_BENDING))):
        corners, faces = part.vertices.astype(np.float32), part.faces.astype(np.uint32)
        out.append(
            (world.add_mesh_simple(f"{name}/{k}", corners, faces, color=rgb(tint or color), side="double"), part)
        )
    return out


def by_color(mesh: Mesh) -> list[tuple[tuple[np.ndarray, np.ndarray], str]]:
    """Corners and triangles of each colour ("" for none), the most frequent colours first; rare ones join the last."""
    return [((m.vertices.astype(np.float32), m.faces.astype(np.uint32)), tint) for m, tint in parts_by_color(mesh)]


def parts_by_color(mesh: Mesh) -> list[tuple[Mesh, str]]:
    """The same as meshes."""
    colors, counts = np.unique(mesh.colors, return_counts=True)
    listed = colors[np.argsort(-counts, kind="stable")][:_MOST_COLORS].tolist()
    out = []
    for k, color in enumerate(listed):
        own = mesh.colors == color
        if k + 1 == len(listed):
            own |= ~np.isin(mesh.colors, listed)
        used, faces = np.unique(mesh.faces[own], return_inverse=True)
        movement = None if mesh.movement is None else mesh.movement[used]
        part = Mesh(mesh.vertices[used], faces.reshape(-1, 3), mesh.colors[own], movement)
        out.append((part, f"#{color:06x}" if color >= 0 else ""))
    return out


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
    vertices, faces = _capsule(shape)
    return world.add_mesh_simple(name, vertices, faces, **common)


def _capsule(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 3) [m] and triangles (m, 3)."""
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


def closure(axis: Floats3 | None, placement: Placement, mark: float, outer: bool) -> Shape:
    """The mark of a closure on one of its bodies: a pin along its axis, or a ball; the outer one is wider."""
    radius, length = (mark, 2.2 * mark) if outer else (0.8 * mark, 3.6 * mark)
    if axis is None:
        return Shape("sphere", (radius,), placement, derived=True)
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
