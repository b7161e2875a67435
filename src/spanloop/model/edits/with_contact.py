"""Edits that add contacts: one pair of shapes, or all shapes of bodies with the ground."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from spanloop.errors import InputError, ModelError, listed, nearest
from spanloop.model import user_input
from spanloop.model.contacts.contact import PAIRS, Contact
from spanloop.model.contacts.contact_check import links_of, partners, refuse_same_pairs
from spanloop.model.contacts.contact_input import GROUND, ContactSettings, Side, collision_shapes, contact_of
from spanloop.model.contacts.shapes import Plane
from spanloop.model.parts import WORLD, Geometry, Placement

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import ArrayLike

    from spanloop.model.model import Model


def with_contact(
    model: Model,
    name: str,
    a: Side,
    b: Side = GROUND,
    *,
    friction: float | None = None,
    restitution: float | None = None,
    torsion: float | None = None,
    rolling: float | None = None,
    stiffness: float | None = None,
    damping: float = 0.0,
    surface_velocity: ArrayLike = (0.0, 0.0, 0.0),
    resting: float = 1e-3,
) -> Model:
    """Return the model with one more contact: two shapes that push, rub and rebound where they touch, and never pull.

    name: of the contact, run.contacts[name]; where several points can touch they are called NAME.0, NAME.1, ...
    a, b: a body with one collision shape, a frame (its origin is a point), "ground" (the plane z = 0 of the world), or
        (body, frame or "world", shape): a shape of sl.contacts, or the number of one of the body's collision shapes.
        The normal points from b to a, forces are those on a
    friction: Coulomb's coefficient µ; restitution: e of Newton's law, 0 to 1
    torsion, rolling [m]: torque of friction per normal force about the normal, and about the tangents. These four have
        the values of the shapes' surfaces where they are not given (as files describe them), else 0
    stiffness [N/m], damping [N s/m]: of a compliant contact; hard without
    surface_velocity (3,) [m/s]: of the surface of b relative to b, in the axes of its body or frame: a conveyor
    resting [m/s]: impacts slower than this do not rebound

    Raises InputError for an unknown name or no shape, and ModelError for what cannot be a contact: a pair of shapes
    that is not supported, two shapes of one link, a negative friction, ...

    >>> ball = sl.Builder("ball").body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004)).free("root", "world", "ball")
    >>> model = ball.build().with_contact("bounce", ("ball", sl.contacts.Sphere(0.1)), "ground", restitution=0.5)
    >>> model.contacts[0].point_names
    ('bounce',)
    """
    settings: ContactSettings = {
        "friction": friction,
        "restitution": restitution,
        "torsion": torsion,
        "rolling": rolling,
        "stiffness": stiffness,
        "damping": damping,
        "surface_velocity": surface_velocity,
        "resting": resting,
    }
    return _with(model, [contact_of(model, name, a, b, settings)])


def with_ground(
    model: Model,
    *,
    bodies: str | Iterable[str] | None = None,
    skip: str | Iterable[str] = (),
    position: ArrayLike = (0.0, 0.0, 0.0),
    rotation: ArrayLike | None = None,
    placement: Placement | None = None,
    **settings: Unpack[ContactSettings],
) -> Model:
    """Return the model with a contact with the ground, a plane fixed to the world, for every collision shape of bodies.

    bodies: their names; by default all that move and have collision shapes. skip: names of bodies to leave out
    position (3,) [m], rotation: of the plane, whose z axis is the normal: height and slope; None, roll pitch yaw (3,)
        [rad] or a matrix (3, 3); placement: both as one Placement
    settings: friction, restitution, torsion, rolling, stiffness, damping, surface_velocity and resting of all these
        contacts, as in with_contact. friction must be given unless all shapes have one from their file

    A contact has the name of its body; where a body has several shapes they are called BODY.0, BODY.1, ...
    Raises InputError where no shape is found, and ModelError for shapes without a contact (meshes, ellipsoids), by the
    names of their bodies.

    >>> foot = sl.contacts.Sphere(0.02, position=(0, 0, -0.3))
    >>> leg = sl.Builder("leg").body("shank", mass=0.5, inertia=(0.004, 0.004, 0.0001), geometry=[foot])
    >>> model = leg.prismatic("rail", "world", "shank", "z", (0, 0, 0.5)).build().with_ground(friction=0.8)
    >>> [c.name for c in model.contacts]
    ['shank']
    """
    ground = (WORLD, Plane(position=position, rotation=rotation, placement=placement))
    found = {body: collision_shapes(model, body) for body in _grounded(model, bodies, skip)}
    _can_touch(found)
    contacts: list[Contact] = []
    for body, shapes in found.items():
        for k in range(len(shapes)):
            name = body if len(shapes) == 1 else f"{body}.{k}"
            contacts.append(contact_of(model, name, (body, k), ground, settings))
    if settings.get("friction") is None:
        _have_friction(found)
    taken = [c.name for c in contacts if c.name in {old.name for old in model.contacts}]
    if taken:
        raise ModelError(
            f"with_ground: model {model.name!r} already has contacts {listed(map(repr, taken), 4)}, of a file or "
            "another with_ground; one is enough, with all settings. bodies=[...] and skip=[...] choose bodies, and "
            f"model.remove({taken[0]!r}, kind='contact') removes a contact"
        )
    return _with(model, contacts)


def _with(model: Model, contacts: list[Contact]) -> Model:
    """The model with more contacts, of pairs of shapes that have none yet."""
    out = replace(model, contacts=(*model.contacts, *contacts))
    refuse_same_pairs(out, contacts)
    return out


def _grounded(model: Model, bodies: str | Iterable[str] | None, skip: str | Iterable[str]) -> list[str]:
    """Names of the bodies that get contacts with the ground."""
    given = None if bodies is None else user_input.names([bodies], "with_ground: bodies")
    left_out = user_input.names([skip], "with_ground: skip")
    known = [b.name for b in model.bodies]
    for name in (*(given or ()), *left_out):
        if name not in known:
            raise InputError(f"with_ground: model {model.name!r} has no body {name!r}; {nearest(name, known)}")
    links = links_of(model, model.joints)
    for name in given or ():
        if not collision_shapes(model, name):
            raise InputError(
                f"with_ground: body {name!r} has no collision shape; a contact needs one. Give it with "
                f"model.with_contact(name, ({name!r}, sl.contacts.Sphere(0.02)))"
            )
    chosen = [n for n in known if collision_shapes(model, n) and links[n] != WORLD] if given is None else list(given)
    chosen = [name for name in dict.fromkeys(chosen) if name not in left_out]
    if not chosen:
        raise InputError(
            f"with_ground: no body of model {model.name!r} that moves and is not skipped has a collision shape; give "
            "shapes with model.with_contact(name, (body, sl.contacts.Sphere(0.02)))"
        )
    return chosen


def _have_friction(found: dict[str, list[Geometry]]) -> None:
    """Raise InputError for shapes whose friction nobody gives: a robot on ice is rarely what is meant."""
    unknown = [
        repr(body)
        for body, shapes in found.items()
        if any(g.surface is None or g.surface.friction is None for g in shapes)
    ]
    if unknown:
        raise InputError(
            f"with_ground: friction is not given, and shapes of {listed(unknown, 4)} have none from a file; give "
            "friction=0.8 or another coefficient, 0 for none"
        )


def _can_touch(found: dict[str, list[Geometry]]) -> None:
    """Raise ModelError for shapes that have no contact with a plane, all at once."""
    kinds: dict[str, list[str]] = {}
    for body, shapes in found.items():
        for g in shapes:
            if ("plane", g.shape) not in PAIRS:
                kinds.setdefault(g.shape, []).append(repr(body))
    if kinds:
        bodies = list(dict.fromkeys(name for names in kinds.values() for name in names))
        which = "; ".join(f"{kind}: {listed(dict.fromkeys(names), 6)}" for kind, names in kinds.items())
        raise ModelError(
            f"with_ground: some collision shapes have no contact with a plane ({which}); {partners('plane')}. Leave "
            f"the bodies out, skip=[{listed(bodies, 3)}], or name those that touch, bodies=[...]; for the others give "
            "simple shapes with model.with_contact(name, (body, sl.contacts.Box(...)))"
        )
