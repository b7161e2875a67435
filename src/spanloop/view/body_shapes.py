"""Shapes of bodies: the model's geometry with its meshes and colours; a stand-in where the model shows nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot, sqrt
from pathlib import Path

import numpy as np

from spanloop.joints import JointKind
from spanloop.math.rotation import toward
from spanloop.math.vector3 import IDENTITY3, add, scale, subtract
from spanloop.model import Model
from spanloop.model.files.mesh_paths import resolve_mesh
from spanloop.model.parts import Body, Geometry, Inertia, Placement
from spanloop.types import Floats3
from spanloop.view.meshes.hull import hull_mesh
from spanloop.view.meshes.mesh import Mesh, read_mesh

UNSEEN = ("point", "plane")  # shapes without an extent of their own
PICTURED = 0.5  # share of the bodies with geometry from which the others are shown as the file has them: not at all
HERE = Placement()


@dataclass(frozen=True)
class Shape:
    """A shape in a body's frame [m], centred at its placement.

    kind: "box" (x, y, z), "cylinder" or "capsule" (radius, length along z without the caps), "sphere" (radius),
    "ellipsoid" (three half axes), "mesh" (scale x, y, z) with its file and triangles, scaled. derived: not part of the
    model, made here. color: "#rrggbb" of the model's file, "" if it has none.
    """

    kind: str
    size: tuple[float, ...]
    placement: Placement = HERE
    file: str = ""
    derived: bool = False
    color: str = ""
    mesh: Mesh | None = None


def axis_of(kind: JointKind) -> Floats3 | None:
    """A joint's axis in its child's frame, if it has one (the first, or the normal of a plane)."""
    return getattr(kind, "axis", None)


def is_pictured(model: Model) -> bool:
    """Whether the model's file shows most of its bodies; then the others have nothing to show, but flexible ones."""
    bending = {j.child for j in model.joints if j.kind.bends}
    solid = [b for b in model.bodies if (b.geometry or b.inertia.mass > 0.0) and b.name not in bending]
    return bool(solid) and sum(bool(b.geometry) for b in solid) >= PICTURED * len(solid)


def shows_collisions(model: Model) -> bool:
    """Whether bodies without visual geometry show that for collisions: where most have no other, as in many MJCF."""
    solid = [b for b in model.bodies if b.geometry]
    return 2 * sum(any(g.use == "visual" for g in b.geometry) for b in solid) < len(solid)


def is_visible(g: Geometry) -> bool:
    """Whether a shape is more than transparent."""
    return g.shape not in UNSEEN and (g.color is None or g.color[3] > 0.0)


def own_shapes(body: Body, collisions: bool, folder: str | Path | None, notes: list[str]) -> tuple[Shape, ...]:
    """Shapes of a body's visual geometry, or, if `collisions`, of its collision geometry where it has no other; with
    notes on meshes that cannot be shown. folder: searched for meshes whose path the model does not have."""
    listed = [g for g in body.geometry if g.use == "visual"] or (list(body.geometry) if collisions else [])
    faults: list[str] = []
    found = [_from_geometry(g, folder, faults) for g in listed if is_visible(g)]
    out = tuple(s for s in found if s is not None)
    notes += [f"{why}; {'it is left out' if out else 'a simple shape replaces it'}" for why in faults]
    return out


def _from_geometry(g: Geometry, folder: str | Path | None, faults: list[str]) -> Shape | None:
    color = "" if g.color is None else "#" + "".join(f"{round(255 * x):02x}" for x in g.color[:3])
    if g.shape == "hull":
        return replace(hull(g.vertices, g.placement), color=color)
    if g.shape != "mesh":
        return Shape(g.shape, g.size, g.placement, color=color)
    found: str | Path | None = g.path
    why = g.missing or f"mesh {g.file!r}: its folder is unknown; folder= names the folder of the model's file"
    if not found and folder is not None:
        found, why = resolve_mesh(g.file, folder)
    if not found:
        faults.append(why)
        return None
    size = g.size or (1.0, 1.0, 1.0)
    try:
        return Shape("mesh", size, g.placement, str(found), color=color, mesh=read_mesh(found).scaled(size))
    except (OSError, ValueError) as error:
        faults.append(f"mesh {Path(found).name!r} cannot be shown ({error})")
        return None


def hull(vertices: tuple[Floats3, ...], placement: Placement) -> Shape:
    """The convex hull of a few points (n, 3) [m]."""
    return Shape("mesh", (1.0, 1.0, 1.0), placement, f"hull of {vertices}", mesh=hull_mesh(vertices))


def inertia_box(inertia: Inertia) -> Shape | None:
    """The box of the same mass, centre and moments; None for a body without mass or extent."""
    return _of_equal_inertia(inertia, "box", 12.0)


def ellipsoid(inertia: Inertia, most: float = float("inf")) -> Shape | None:
    """The full ellipsoid of the same mass, centre and moments; None for a body without mass or extent.

    most [m]: its longest half axis at most; a longer one is drawn in proportion.
    """
    found = _of_equal_inertia(inertia, "ellipsoid", 5.0)
    if found is None or max(found.size) <= most:
        return found
    return replace(found, size=tuple(x * most / max(found.size) for x in found.size))


def extent(shape: Shape) -> float:
    """The diagonal [m] of the box around a shape."""
    return float(np.linalg.norm(np.ptp(corners(replace(shape, placement=HERE)), axis=0)))


def corners(shape: Shape) -> np.ndarray:
    """Corners (8, 3) of the box around a shape, in its body's frame."""
    middle = np.zeros(3)
    half: tuple[float, ...] | np.ndarray
    if shape.mesh is not None:
        low, high = shape.mesh.box
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
    elif shape.kind in ("capsule", "cylinder"):
        radius, length = shape.size
        half = (radius, radius, 0.5 * length + (radius if shape.kind == "capsule" else 0.0))
    else:
        half = {"box": tuple(0.5 * x for x in shape.size), "ellipsoid": shape.size}.get(shape.kind, shape.size * 3)
    signs = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
    return (signs * half + middle) @ np.array(shape.placement.rotation).T + np.array(shape.placement.position)


def rod(start: Floats3, end: Floats3, radius: float, kind: str = "capsule") -> Shape:
    """A capsule or cylinder between two points."""
    dx, dy, dz = subtract(end, start)
    length = hypot(dx, dy, dz)
    turn = toward((dx / length, dy / length, dz / length)).matrix() if length > 0.0 else IDENTITY3
    x, y, z = scale(0.5, add(start, end))
    return Shape(kind, (radius, length), Placement(turn, (x, y, z)), derived=True)


def _of_equal_inertia(inertia: Inertia, kind: str, factor: float) -> Shape | None:
    """Extent along a principal axis: √(factor · ∫x² dm / m)."""
    if inertia.mass <= 0.0:
        return None
    moments, axes = np.linalg.eigh(np.array(inertia.matrix()))
    second = np.maximum(0.5 * moments.sum() - moments, 0.0)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]
    size = tuple(sqrt(factor * x / inertia.mass) for x in second)
    if max(size) <= 0.0:
        return None
    rows = tuple(tuple(float(x) for x in row) for row in axes)
    return Shape(kind, size, Placement(rows, inertia.center), derived=True)  # type: ignore[arg-type]
