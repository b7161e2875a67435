"""Shapes of bodies: the model's visual geometry, limbs between joints, or the box of the inertia."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot, sqrt
from pathlib import Path

import numpy as np

from spanloop.joints import JointKind
from spanloop.math.rotation import toward
from spanloop.math.vector3 import IDENTITY3, add, scale, subtract
from spanloop.model import WORLD, Model
from spanloop.model.files.mesh_paths import resolve_mesh
from spanloop.model.parts import Body, Geometry, Inertia, Placement
from spanloop.types import Floats3

THICK, THINNEST, THICKEST = 0.09, 0.011, 0.032  # radius of a limb: of its length, between shares of the reach
NEAR = 0.01  # points closer than this share of the reach are one
SENSIBLE = 1.6  # an inertia's box is drawn up to this multiple of the body's own reach; larger ones hide the rest
LAST = 0.1  # reach that a body at the end of a limb may have, of the mechanism's
HERE = Placement()


@dataclass(frozen=True)
class Shape:
    """A shape in a body's frame [m], centred at its placement.

    kind: "box" (x, y, z), "cylinder" or "capsule" (radius, length along z without the caps), "sphere" (radius),
    "ellipsoid" (three half axes), "mesh" (scale x, y, z) with its file. derived: not part of the model, made here.
    color: red, green, blue, opacity, 0 to 1, of the model's file, None if it has none.
    """

    kind: str
    size: tuple[float, ...]
    placement: Placement = HERE
    file: str = ""
    derived: bool = False
    color: tuple[float, float, float, float] | None = None


def axis_of(kind: JointKind) -> Floats3 | None:
    """A joint's axis in its child's frame, if it has one (the first, or the normal of a plane)."""
    return getattr(kind, "axis", None)


def reach(model: Model, poses: np.ndarray) -> float:
    """Approximate size [m] of the mechanism: the diagonal of its bounding box, at poses (n_bodies + 1, 4, 4)."""
    points = [
        poses[k, :3, :3] @ np.array(p) + poses[k, :3, 3]
        for name, k in model.body_number.items()
        for p in ([] if name == WORLD else [(0.0, 0.0, 0.0)]) + _points(model, name)
    ]
    spread = np.ptp(points, axis=0) if points else np.zeros(3)
    size = float(np.linalg.norm(spread))
    if size > 1e-6:
        return size
    diagonals = [hypot(*box.size) for b in model.bodies if (box := inertia_box(b.inertia))]
    return max(diagonals, default=1.0) or 1.0


def shapes(model: Model, size: float, folder: str | Path | None = None):
    """Shapes of the world and of every body by name, and notes on what is shown differently from the model.

    folder: the folder of the model's file, searched for meshes that were not found when it was loaded.
    """
    out: dict[str, tuple[Shape, ...]] = {WORLD: tuple(_stands(model, size))}
    notes: list[str] = []
    for body in model.bodies:
        uses = {g.use for g in body.geometry}
        drawn = "visual" if "visual" in uses else "collision"
        visual = [_from_geometry(g, folder, notes) for g in body.geometry if g.use == drawn]
        seen = tuple(s for s in visual if s is not None)
        out[body.name] = seen or derived(model, body, size)
    return out, tuple(dict.fromkeys(notes))


def inertia_box(inertia: Inertia) -> Shape | None:
    """The box of the same mass, centre and moments; None for a body without mass or extent."""
    return _of_equal_inertia(inertia, "box", 12.0)


def ellipsoid(inertia: Inertia) -> Shape | None:
    """The full ellipsoid of the same mass, centre and moments; None for a body without mass or extent."""
    return _of_equal_inertia(inertia, "ellipsoid", 5.0)


def corners(shape: Shape) -> np.ndarray:
    """Corners (8, 3) of the box around a shape, in its body's frame."""
    if shape.kind in ("capsule", "cylinder"):
        radius, length = shape.size
        half: tuple[float, ...] = (radius, radius, 0.5 * length + (radius if shape.kind == "capsule" else 0.0))
    else:
        half = {"box": tuple(0.5 * x for x in shape.size), "ellipsoid": shape.size, "mesh": (0.0, 0.0, 0.0)}.get(
            shape.kind, shape.size * 3
        )
    signs = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
    return (signs * half) @ np.array(shape.placement.rotation).T + np.array(shape.placement.position)


def rod(start: Floats3, end: Floats3, radius: float, kind: str = "capsule") -> Shape:
    """A capsule or cylinder between two points."""
    dx, dy, dz = subtract(end, start)
    length = hypot(dx, dy, dz)
    turn = toward((dx / length, dy / length, dz / length)).matrix() if length > 0.0 else IDENTITY3
    x, y, z = scale(0.5, add(start, end))
    return Shape(kind, (radius, length), Placement(turn, (x, y, z)), derived=True)


def _from_geometry(g: Geometry, folder: str | Path | None, notes: list[str]) -> Shape | None:
    if g.shape != "mesh":
        return Shape(g.shape, g.size, g.placement, color=g.color)
    found: str | Path | None = g.path
    why = f"mesh {g.file!r}: its folder is unknown"
    if not found and folder is not None:
        found, why = resolve_mesh(g.file, folder)
    if not found:
        notes.append(f"{why}; a simple shape replaces it")
        return None
    return Shape("mesh", g.size or (1.0, 1.0, 1.0), g.placement, str(found), color=g.color)


def derived(model: Model, body: Body, size: float) -> tuple[Shape, ...]:
    """Shapes of a body without visual geometry: limbs from its joint to the other points on it, or its inertia box."""
    ends = _distinct(_points(model, body.name), NEAR * size)
    joint = model.joints[model.body_number[body.name] - 1]
    floats = joint.kind.nv == 6
    box = inertia_box(body.inertia)
    if box is not None and (floats or len(ends) not in (1, 2)):
        box = replace(box, size=tuple(max(x, 2.0 * THINNEST * size) for x in box.size))
        own = max((hypot(*p) for p in ends), default=LAST * size)
        if hypot(*box.size) <= 2.0 * SENSIBLE * own:
            outside = [p for p in ends if not _inside(p, box)]
            return (box, *(_strut(box.placement.position, p, size) for p in outside))
    if not ends:
        center = body.inertia.center
        ends = [center] if hypot(*center) > NEAR * size else []
    limbs = [s for p in ends for s in _limb(p, None if floats else axis_of(joint.kind), size)]
    return tuple(limbs) or (Shape("sphere", (1.5 * THINNEST * size,), derived=True),)


def _limb(end: Floats3, axis: Floats3 | None, size: float) -> list[Shape]:
    """A limb from the origin to a point: along the joint's axis, then perpendicular to it where both are needed."""
    radius = min(max(THICK * hypot(*end), THINNEST * size), THICKEST * size)
    if axis is not None:
        along = sum(a * p for a, p in zip(axis, end, strict=True))
        x, y, z = (along * a for a in axis)
        across = hypot(*(p - c for p, c in zip(end, (x, y, z), strict=True)))
        if abs(along) > radius and across > radius:
            return [rod((0.0, 0.0, 0.0), (x, y, z), radius), rod((x, y, z), end, radius)]
    return [rod((0.0, 0.0, 0.0), end, radius)]


def _strut(start: Floats3, end: Floats3, size: float) -> Shape:
    return rod(start, end, THINNEST * size)


def _stands(model: Model, size: float) -> list[Shape]:
    """A stand for every joint and closure on the world."""
    places = [j.placement.position for j in model.joints if j.parent == WORLD and j.kind.nv < 6]
    places += [x.placement_a.position for x in model.loops if x.a == WORLD]
    places += [x.placement_b.position for x in model.loops if x.b == WORLD]
    return [_stand(p, size) for p in _distinct(places, NEAR * size, origin=False)]


def _stand(place: Floats3, size: float) -> Shape:
    """A column from the floor, or a plate where the place is near it or below."""
    x, y, z = place
    if 0.05 * size < z < size:
        return rod((x, y, 0.0), place, 0.025 * size, "cylinder")
    return rod((x, y, z - 0.02 * size), place, 0.04 * size, "cylinder")


def _points(model: Model, body: str) -> list[Floats3]:
    """Positions of joints, loops and frames on a body, in its frame."""
    found = [j.placement.position for j in model.joints if j.parent == body]
    found += [x.placement_a.position for x in model.loops if x.a == body]
    found += [x.placement_b.position for x in model.loops if x.b == body]
    return found + [f.placement.position for f in model.frames if f.body == body]


def _distinct(points: list[Floats3], near: float, origin: bool = True) -> list[Floats3]:
    """The points without duplicates, and without those at the origin if `origin`."""
    out: list[Floats3] = [(0.0, 0.0, 0.0)] if origin else []
    for p in points:
        if all(hypot(*(a - b for a, b in zip(p, o, strict=True))) > near for o in out):
            out.append(p)
    return out[1:] if origin else out


def _inside(point: Floats3, box: Shape) -> bool:
    own = np.array(box.placement.rotation).T @ (np.array(point) - box.placement.position)
    return bool(np.all(np.abs(own) <= 0.55 * np.array(box.size)))


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
