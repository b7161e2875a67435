"""Scaling: the same machine larger, heavier or slower, every number by the powers of its unit.

With factors L of lengths, m of masses and T of times a force grows by m L/T², a torque by m L²/T². Motions stay
similar: q' (lengths by L) at times T t. By default T = √L, so that gravity stays what it is.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from spanloop.errors import InputError
from spanloop.model import user_input
from spanloop.model.model import Model
from spanloop.model.parts import Body, Coupling, Geometry, Inertia, Joint, Placement

# numbers of a freedom: the power of time, and those of length for an angle and for a displacement; all have one of mass
_POWERS = {
    "damping": (-1, 2, 0),
    "friction": (-2, 2, 1),
    "armature": (0, 2, 0),
    "stiffness": (-2, 2, 0),
    "effort": (-2, 2, 1),
}


def scale(model: Model, length: float = 1.0, mass: float = 1.0, time: float | None = None) -> Model:
    """The model with all lengths, masses and times multiplied; inertias, losses, limits and gravity follow."""
    length, mass = _factor(length, "length"), _factor(mass, "mass")
    time = math.sqrt(length) if time is None else _factor(time, "time")
    field = length / (time * time)
    g = model.gravity
    kept = ("settings of actuators and sensors are as they were before scaling",)
    unscaled = any(part.settings for part in (*model.actuators, *model.sensors))  # type: ignore[attr-defined]
    return replace(
        model,
        bodies=tuple(_body(b, length, mass) for b in model.bodies),
        joints=tuple(_joint(j, length, mass, time) for j in model.joints),
        frames=tuple(replace(f, placement=_placement(f.placement, length)) for f in model.frames),
        loops=tuple(
            replace(
                x,
                kind=x.kind.scaled(length),
                placement_a=_placement(x.placement_a, length),
                placement_b=_placement(x.placement_b, length),
            )
            for x in model.loops
        ),
        couplings=tuple(_coupling(c, model, length) for c in model.couplings),
        gravity=g if abs(field - 1.0) < 1e-15 else (field * g[0], field * g[1], field * g[2]),
        notes=model.notes + kept * unscaled,
    )


def _factor(value, what: str) -> float:
    x = user_input.number(value, f"scale: {what}")
    if x <= 0.0:
        raise InputError(f"scale: {what} is {x:g}; must be > 0. To mirror a model use model.mirror(...)")
    return x


def _placement(p: Placement, length: float) -> Placement:
    x, y, z = p.position
    return Placement(p.rotation, (length * x, length * y, length * z))


def _body(b: Body, length: float, mass: float) -> Body:
    i = b.inertia
    center: Any = tuple(length * x for x in i.center)
    moments: Any = tuple(mass * length * length * x for x in i.moments)
    geometry = tuple(_geometry(g, length) for g in b.geometry)
    return replace(b, inertia=Inertia(mass * i.mass, center, moments), geometry=geometry)


def _geometry(g: Geometry, length: float) -> Geometry:
    size = (g.size or (1.0, 1.0, 1.0)) if g.shape == "mesh" and length != 1.0 else g.size
    return replace(g, size=tuple(length * x for x in size), placement=_placement(g.placement, length))


def _joint(j: Joint, length: float, mass: float, time: float) -> Joint:
    slides = [int(unit == "m") for unit in j.kind.units]
    changed: dict[str, Any] = {}
    for name, (t, *powers) in _POWERS.items():
        if getattr(j, name) is not None:
            values = zip(slides, getattr(j, name), strict=True)
            changed[name] = tuple(mass * time**t * length ** powers[s] * x for s, x in values)
    for name, factor in (("lower", 1.0), ("upper", 1.0), ("speed", 1.0 / time)):
        if getattr(j, name) is not None:
            changed[name] = tuple(factor * length**s * x for s, x in zip(slides, getattr(j, name), strict=True))
    rest = tuple(length**n * x for n, x in zip(j.kind.lengths(), j.rest, strict=True))
    return replace(j, kind=j.kind.scaled(length), placement=_placement(j.placement, length), rest=rest, **changed)


def _coupling(c: Coupling, model: Model, length: float) -> Coupling:
    of, source = (model.joint(name).kind.lengths()[0] for name in (c.joint, c.source))
    return replace(c, ratio=length ** (of - source) * c.ratio, offset=length**of * c.offset)
