"""Stand-ins for bodies without geometry: limbs between their joints, plates, the box of the inertia; stands of the
world."""

from __future__ import annotations

from dataclasses import replace
from math import hypot

import numpy as np

from spanloop.math.rotation import toward
from spanloop.model import WORLD, Model
from spanloop.model.parts import Body, Placement
from spanloop.types import Floats3
from spanloop.view.body_shapes import Shape, axis_of, inertia_box, rod

THICK, THINNEST, THICKEST = 0.09, 0.011, 0.032  # radius of a limb: of its length, between shares of the reach
SLENDER = 2e-3  # a thickness below this share of the length is a model's ideal rod
NEAR = 0.01  # points closer than this share of the reach are one
SENSIBLE = 1.6  # an inertia's box is drawn up to this multiple of the body's own reach; larger ones hide the rest
LAST = 0.1  # reach that a body at the end of a limb may have, of the mechanism's
FLAT, WIDE = 0.1, 0.35  # points span a plate: their extents across and along it, of the largest


def reach(model: Model, poses: np.ndarray) -> float:
    """Approximate size [m] of the mechanism: the box around its joints, at poses (n_bodies + 1, 4, 4). Where in the
    world a body floats has no part in it."""
    points = [
        poses[k, :3, :3] @ np.array(p) + poses[k, :3, 3]
        for name, k in model.body_number.items()
        for p in ([] if name == WORLD else [(0.0, 0.0, 0.0)]) + points_on(model, name, floating=False)
    ]
    spread = np.ptp(points, axis=0) if points else np.zeros(3)
    size = float(np.linalg.norm(spread))
    if size > 1e-6:
        return size
    diagonals = [hypot(*box.size) for b in model.bodies if (box := inertia_box(b.inertia))]
    return max(diagonals, default=1.0) or 1.0


def derived(model: Model, body: Body, size: float) -> tuple[Shape, ...]:
    """Shapes of a body without geometry: a plate, limbs from its joint to other points on it, or its inertia box."""
    ends = distinct(points_on(model, body.name), NEAR * size)
    joint = model.joints[model.body_number[body.name] - 1]
    floats = joint.kind.nv == 6
    touched = {f.placement.position for f in model.frames for c in model.contacts if f.name in (c.a.at, c.b.at)}
    joined = [p for p in ends if p not in touched]  # feet of a box do not make it a plate
    board = plate(joined if floats else [(0.0, 0.0, 0.0), *joined], size)
    if board is not None:
        return (board,)
    box = inertia_box(body.inertia)
    if box is not None and (floats or len(ends) not in (1, 2)):
        box = replace(box, size=tuple(max(x, 2.0 * THINNEST * size) for x in box.size))
        own = max((hypot(*p) for p in ends), default=(0.5 if floats else LAST) * size)
        if hypot(*box.size) <= 2.0 * SENSIBLE * own:
            outside = [p for p in ends if not _inside(p, box)]
            return (box, *(_strut(box.placement.position, p, size) for p in outside))
    if not ends:
        center = body.inertia.center
        ends = [center] if hypot(*center) > NEAR * size else []
    axis = None if floats else axis_of(joint.kind)
    limbs = [s for p in ends for s in _limb(p, axis, _limb_radius(hypot(*p), box, size))]
    return tuple(limbs) or (Shape("sphere", (1.5 * THINNEST * size,), derived=True),)


def with_contacts(
    model: Model, body: Body, shapes: tuple[Shape, ...], touching: tuple[Shape, ...], size: float
) -> tuple[Shape, ...]:
    """A body's stand-ins and what it touches others with, which replaces boxes, plates and balls; limbs lead to it."""
    if all(s.kind == "sphere" and s.derived for s in touching):  # points
        kept = shapes
    else:
        kept = tuple(s for s in shapes if s.derived and s.kind == "capsule")
    joint = model.joints[model.body_number[body.name] - 1]
    places = [] if joint.kind.nv == 6 else distinct([s.placement.position for s in touching], NEAR * size)
    known = points_on(model, body.name)
    limbs = [_limb(p, None, _limb_radius(hypot(*p), None, size)) for p in places if p not in known]
    return (*kept, *(s for limb in limbs for s in limb), *touching)


def plate(points: list[Floats3], size: float) -> Shape | None:
    """A disc through three or more points that lie in a plane and surround their middle; None if they do not."""
    if len(points) < 3:
        return None
    p = np.array(points)
    middle = p.mean(axis=0)
    _, spread, axes = np.linalg.svd(p - middle)
    if spread[1] < WIDE * spread[0] or (spread[2] if len(spread) > 2 else 0.0) > FLAT * spread[0]:
        return None
    normal = axes[2] if axes[2][int(np.argmax(np.abs(axes[2])))] > 0.0 else -axes[2]
    around = np.sort(np.arctan2((p - middle) @ axes[1], (p - middle) @ axes[0]))
    if np.diff(around, append=around[0] + 2.0 * np.pi).max() > 0.95 * np.pi:  # all to one side
        return None
    radius = float(np.linalg.norm(p - middle, axis=1).max())
    x, y, z = (float(c) for c in middle)
    turn = toward((float(normal[0]), float(normal[1]), float(normal[2]))).matrix()
    thickness = max(0.08 * radius, THINNEST * size)
    return Shape("cylinder", (1.06 * radius, thickness), Placement(turn, (x, y, z)), derived=True)


def stands(model: Model, size: float) -> tuple[Shape, ...]:
    """What carries the joints and closures on the world: one plate for joints that need no columns, else a stand for
    each."""
    joints = [j.placement.position for j in model.joints if j.parent == WORLD and j.kind.nv < 6]
    closures = [x.placement_a.position for x in model.loops if x.a == WORLD]
    closures += [x.placement_b.position for x in model.loops if x.b == WORLD]
    found = distinct(joints + closures, NEAR * size, origin=False)
    board = None if closures or any(_is_raised(p, size) for p in found) else plate(found, size)
    return (board,) if board is not None else tuple(_stand(p, size) for p in found)


def points_on(model: Model, body: str, floating: bool = True) -> list[Floats3]:
    """Positions of joints, loops and frames on a body, in its frame. floating: also of joints that hold nothing."""
    found = [j.placement.position for j in model.joints if j.parent == body and (floating or j.kind.nv < 6)]
    found += [x.placement_a.position for x in model.loops if x.a == body]
    found += [x.placement_b.position for x in model.loops if x.b == body]
    return found + [f.placement.position for f in model.frames if f.body == body]


def distinct(points: list[Floats3], near: float, origin: bool = True) -> list[Floats3]:
    """The points without duplicates, and without those at the origin if `origin`."""
    out: list[Floats3] = [(0.0, 0.0, 0.0)] if origin else []
    for p in points:
        if all(hypot(*(a - b for a, b in zip(p, o, strict=True))) > near for o in out):
            out.append(p)
    return out[1:] if origin else out


def _limb_radius(length: float, box: Shape | None, size: float) -> float:
    """The radius of a limb: in proportion to its length, but no thicker than its inertia says, if that is sensible."""
    radius = min(THICK * length, THICKEST * size)
    if box is not None and max(box.size) < 2.0 * length and sorted(box.size)[1] > SLENDER * length:
        radius = min(radius, 0.6 * sorted(box.size)[1])
    return max(radius, THINNEST * size)


def _limb(end: Floats3, axis: Floats3 | None, radius: float) -> list[Shape]:
    """A limb from the origin to a point: along the joint's axis, then perpendicular to it where both are needed."""
    if axis is not None:
        along = sum(a * p for a, p in zip(axis, end, strict=True))
        x, y, z = (along * a for a in axis)
        across = hypot(*(p - c for p, c in zip(end, (x, y, z), strict=True)))
        if abs(along) > radius and across > radius:
            return [rod((0.0, 0.0, 0.0), (x, y, z), radius), rod((x, y, z), end, radius)]
    return [rod((0.0, 0.0, 0.0), end, radius)]


def _strut(start: Floats3, end: Floats3, size: float) -> Shape:
    return rod(start, end, THINNEST * size)


def _is_raised(place: Floats3, size: float) -> bool:
    """Whether a place is above the floor, but not so far that a column would be strange."""
    return 0.05 * size < place[2] < size


def _stand(place: Floats3, size: float) -> Shape:
    """A column from the floor, or a plate where the place is near it or below."""
    x, y, z = place
    if _is_raised(place, size):
        return rod((x, y, 0.0), place, 0.025 * size, "cylinder")
    return rod((x, y, z - 0.02 * size), place, 0.04 * size, "cylinder")


def _inside(point: Floats3, box: Shape) -> bool:
    own = np.array(box.placement.rotation).T @ (np.array(point) - box.placement.position)
    return bool(np.all(np.abs(own) <= 0.55 * np.array(box.size)))
