"""Scale: the same mechanism larger, heavier or slower, every number by the powers of its unit.

With factors L of lengths, m of masses and T of times a force grows by m L/T², a torque by m L²/T². Motions stay
similar: q' (lengths by L) at times T t. By default T = √L, so that gravity stays the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spanloop.errors import InputError
from spanloop.joints import JointKind
from spanloop.model import user_input
from spanloop.model.contacts.contact import Contact
from spanloop.model.parts import Body, Coupling, Geometry, Inertia, Joint, Placement

if TYPE_CHECKING:
    from spanloop.model.model import Model

# numbers of a DoF: the power of time, and those of length for an angle and for a displacement; all have one of mass
_POWERS = {
    "damping": (-1, 2, 0),
    "friction": (-2, 2, 1),
    "armature": (0, 2, 0),
    "stiffness": (-2, 2, 0),
    "effort": (-2, 2, 1),
}


def scale(model: Model, *, length: float = 1.0, mass: float = 1.0, time: float | None = None) -> Model:
    """Return the model with all lengths, masses and times multiplied.

    length, mass, time: factors > 0; time is √length by default, which leaves gravity unchanged

    Inertias, losses, limits, contacts and gravity follow. Settings of actuators and sensors stay, with a note.
    Raises InputError for a factor that is not positive.

    >>> arm_in_millimetres = sl.zoo.pendulum(1, length=500.0)
    >>> arm_in_millimetres.scale(length=0.001).frame("tip").placement.position
    (0.0, 0.0, -0.5)
    """
    length, mass = _factor(length, "length"), _factor(mass, "mass")
    time = math.sqrt(length) if time is None else _factor(time, "time")
    field = length / (time * time)
    g = model.gravity
    kept = ("settings of actuators and sensors are as they were before scaling",)
    unscaled = any(part.settings for part in (*model.actuators, *model.sensors))  # type: ignore[attr-defined]
    scaled = mapped(
        model,
        body=lambda b: _body(b, length, mass),
        joint=lambda j: _joint(j, length, mass, time),
        kind=lambda k: k.scaled(length),
        placement=lambda p: _placement(p, length),
        contact=lambda c: _contact(c, length, mass, time),
    )
    return replace(
        scaled,
        couplings=tuple(_coupling(c, model, length) for c in model.couplings),
        gravity=g if abs(field - 1.0) < 1e-15 else (field * g[0], field * g[1], field * g[2]),
        notes=model.notes + kept * unscaled,
    )


def mapped(
    model: Model,
    body: Callable[[Body], Body],
    joint: Callable[[Joint], Joint],
    kind: Callable[[JointKind], JointKind],
    placement: Callable[[Placement], Placement],
    contact: Callable[[Contact], Contact],
) -> Model:
    """The model with a function applied to each body, joint and contact, and to kinds and placements of frames and
    loops."""
    return replace(
        model,
        bodies=tuple(map(body, model.bodies)),
        joints=tuple(map(joint, model.joints)),
        frames=tuple(replace(f, placement=placement(f.placement)) for f in model.frames),
        loops=tuple(
            replace(x, kind=kind(x.kind), placement_a=placement(x.placement_a), placement_b=placement(x.placement_b))
            for x in model.loops
        ),
        contacts=tuple(map(contact, model.contacts)),
    )


def _factor(value: float, what: str) -> float:
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
    surface = g.surface
    if surface is not None:
        moments = {name: getattr(surface, name) for name in ("torsion", "rolling")}
        surface = replace(surface, **{name: length * x for name, x in moments.items() if x is not None})
    sizes = tuple(length * x for x in size)
    vertices: Any = tuple(tuple(length * x for x in p) for p in g.vertices)
    return replace(g, size=sizes, placement=_placement(g.placement, length), vertices=vertices, surface=surface)


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


def _contact(c: Contact, length: float, mass: float, time: float) -> Contact:
    speed = length / time
    velocity: Any = tuple(speed * x for x in c.surface_velocity)
    return replace(
        c,
        a=replace(c.a, geometry=_geometry(c.a.geometry, length)),
        b=replace(c.b, geometry=_geometry(c.b.geometry, length)),
        torsion=length * c.torsion,
        rolling=length * c.rolling,
        stiffness=None if c.stiffness is None else mass / time**2 * c.stiffness,
        damping=mass / time * c.damping,
        surface_velocity=velocity,
        resting=speed * c.resting,
    )


def _coupling(c: Coupling, model: Model, length: float) -> Coupling:
    of, *source = (model.joint(name).kind.lengths()[0] for name in c.joints)
    ratio = length ** (of - source[0]) * c.ratio if source else c.ratio
    return replace(c, ratio=ratio, offset=length**of * c.offset)
