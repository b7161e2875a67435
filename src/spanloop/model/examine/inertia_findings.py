"""Inertias that are suspect: impossible, placeholders, in other units, missing.

Bodies on fixed joints are put together first. A body's extent is the largest distance that its description and those of
its neighbours show: from a body's origin to its mass centre, to its children's joints, frames and shapes. Its width is
twice its largest radius of gyration: that of a ball of radius r is 1.3 r, of a rod of length l 0.6 l, of a ring 2 r.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from spanloop.model.examine.messages import Finding, counted
from spanloop.model.model import Model
from spanloop.model.parts import Body, Inertia, Placement
from spanloop.model.poses import neutral_poses
from spanloop.model.value_check import label

TRIANGLE = 1e-6  # of the largest moment: files give six digits
WIDE = 6.0  # times its extent: a width that no body has
NARROW = 0.01
BEYOND = 3.0  # times the span of the mechanism: a width that only another unit explains
SLIM = 0.05  # of its length: a body is taken to be at least so thick
LINE = 1e-3  # of its length: a thinner body is a line, of which the inertia tells no volume
DENSEST = 1e5  # kg/m³; osmium has 2.3e4, the links of some sixty robots from 300 to 10 000
FARTHEST = 50.0  # m between two joints


def inertias(model: Model) -> Iterator[Finding]:
    """Yield all of them; those that are only worth a look together, by kind."""
    fused = model.fuse()
    sizes = _sizes(fused)
    yield from _massless(fused)
    thin = {j.child for j in model.joints if j.kind.bends}  # Euler-Bernoulli beams have no width
    for b in fused.bodies:
        if b.name in thin:
            continue
        yield from _impossible(b)
        yield from _heavy(b, sizes[b.name])
    for j in fused.joints:
        distance = math.hypot(*j.placement.position)
        if distance > FARTHEST:
            yield Finding("long", (label("joint", j),), {"distance": distance})
    filled = [b for b in fused.bodies if _is_placeholder(b.inertia)]
    if filled:
        values = {"mass": filled[0].inertia.mass, "moment": filled[0].inertia.moments[0]}
        yield _together("placeholder", filled, values, "has", "have")
    yield from _out_of_size([b for b in fused.bodies if b not in filled and b.name not in thin], sizes, _span(fused))


def _together(topic: str, bodies: list[Body], values: dict[str, Any], one: str, many: str) -> Finding:
    count = counted(len(bodies), f"body {one}", f"bodies {many}")
    return Finding(topic, tuple(label("body", b) for b in bodies), values | {"count": count})


def _impossible(b: Body) -> Iterator[Finding]:
    moments = np.linalg.eigvalsh(np.array(b.inertia.matrix()))
    if moments[0] + moments[1] < moments[2] - TRIANGLE * np.abs(moments).max() - 1e-15 * b.inertia.mass:
        shown = ", ".join(f"{x:.4g}" for x in moments)
        yield Finding("triangle", (label("body", b),), {"moments": shown})


def _massless(model: Model) -> Iterator[Finding]:
    """Bodies that move, and neither they nor what they carry has mass, inertia or armature."""
    weight = {b.name: b.inertia.mass + sum(map(abs, b.inertia.moments)) for b in model.bodies}
    for j in reversed(model.joints):
        weight[j.child] += sum(j.armature)
        if j.parent in weight:
            weight[j.parent] += weight[j.child]
    nodes = {j.child for j in model.joints if j.kind.rides}  # need no mass: their body has it
    gone = {b.name for b in model.bodies if weight[b.name] == 0.0} - nodes
    parents = {j.child: j.parent for j in model.joints}
    for b in model.bodies:
        if b.name in gone and parents[b.name] not in gone:
            yield Finding("massless", (label("body", b),))


def _is_placeholder(i: Inertia) -> bool:
    unit = i.moments[0]
    ball = i.moments == (unit, 0.0, 0.0, unit, 0.0, unit)
    return ball and (unit == 1.0 or (unit == 1e-3 and i.mass == 1.0))


def _out_of_size(bodies: list[Body], sizes: dict[str, float], span: float) -> Iterator[Finding]:
    large, small = [], []
    for b in bodies:
        width, extent = _width(b.inertia), sizes[b.name]
        if span > 0.0 and width > BEYOND * span:
            values = {"mass": b.inertia.mass, "moment": max(b.inertia.moments), "width": width, "span": span}
            yield Finding("inertia_units", (label("body", b),), values)
        elif extent > 1e-6 and width > WIDE * extent:
            large.append(b)
        elif 0.0 < width < NARROW * extent:
            small.append(b)
    for topic, found, one, many in (("inertia_large", large, "is", "are"), ("inertia_small", small, "has", "have")):
        if found:
            b = found[0]
            values = {"mass": b.inertia.mass, "moment": max(b.inertia.moments)}
            values |= {"width": _width(b.inertia), "extent": sizes[b.name]}
            yield _together(topic, found, values, one, many)


def _width(i: Inertia) -> float:
    """Twice the largest radius of gyration [m]."""
    moment = float(np.linalg.eigvalsh(np.array(i.matrix()))[2])
    return 2.0 * math.sqrt(max(moment, 0.0) / i.mass) if i.mass > 0.0 else 0.0


def _heavy(b: Body, extent: float) -> Iterator[Finding]:
    """The density of the even ellipsoid with this inertia; lines and bodies with hardly any inertia are skipped."""
    i = b.inertia
    if _width(i) <= SLIM * extent or _width(i) == 0.0:
        return
    moments = np.linalg.eigvalsh(np.array(i.matrix()))
    axes = np.sqrt(5.0 * np.maximum(0.5 * moments.sum() - moments, 0.0) / i.mass)
    if np.sort(axes)[1] < LINE * axes.max():
        return
    volume = 4.0 / 3.0 * math.pi * float(np.prod(np.maximum(axes, SLIM * axes.max())))
    if i.mass / volume > DENSEST:
        values = {"mass": i.mass, "volume": 1e3 * volume, "density": i.mass / volume}
        yield Finding("heavy", (label("body", b),), values)


def _span(model: Model) -> float:
    """The largest distance between joints, mass centres and frames at neutral coordinates, about [m]."""
    poses = neutral_poses(model)
    points = [(poses[b.name] @ Placement(position=b.inertia.center)).position for b in model.bodies]
    points += [poses[b.name].position for b in model.bodies]
    points += [(poses[f.body] @ f.placement).position for f in model.frames if f.body in model.body_number]
    return float(np.linalg.norm(np.ptp(points, axis=0))) if points else 0.0


def _sizes(model: Model) -> dict[str, float]:
    """The extent of each body: its own, or that of a neighbour if that is larger."""
    own = _extents(model)
    out = dict(own)
    for j in model.joints:
        if j.parent in out:
            out[j.child] = max(out[j.child], own[j.parent])
            out[j.parent] = max(out[j.parent], own[j.child])
    return out


def _extents(model: Model) -> dict[str, float]:
    """The largest distance from its origin that each body's description shows [m]."""
    out = {b.name: max(math.hypot(*b.inertia.center), _shapes(b)) for b in model.bodies}
    for j in model.joints:
        if j.parent in out:
            out[j.parent] = max(out[j.parent], math.hypot(*j.placement.position))
    for f in model.frames:
        if f.body in out:
            out[f.body] = max(out[f.body], math.hypot(*f.placement.position))
    return out


def _shapes(b: Body) -> float:
    """How far the shapes reach; of a mesh only its place is known."""
    reach = [0.0]
    for g in b.geometry:
        size = 0.0 if g.shape == "mesh" else math.hypot(*g.size)
        reach.append(math.hypot(*g.placement.position) + size)
    return max(reach)
