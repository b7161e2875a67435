"""Edits that add contacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spanloop.errors import InputError
from spanloop.model import user_input
from spanloop.model.contacts.contact import Contact, ContactSide
from spanloop.model.parts import WORLD, Geometry

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from spanloop.model.model import Model

    Side = str | Sequence[Any]  # a name, or (name, shape)

GROUND = "ground"  # the plane z = 0 of the world
_EXAMPLE = "(name, sl.contacts.Sphere(0.02))"


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
    owner = f"contact {user_input.name(name, 'contact: the name')!r}"
    sides = (_side(model, a, f"{owner}: a"), _side(model, b, f"{owner}: b"))
    given = {"friction": friction, "restitution": restitution, "torsion": torsion, "rolling": rolling}
    settings = _surfaces(*sides) | {key: _number(x, key, owner) for key, x in given.items() if x is not None}
    contact = Contact(
        name,
        *sides,
        **settings,
        stiffness=None if stiffness is None else _number(stiffness, "stiffness", owner),
        damping=_number(damping, "damping", owner),
        surface_velocity=user_input.three(surface_velocity, f"{owner}: surface_velocity"),
        resting=_number(resting, "resting", owner),
    )
    return replace(model, contacts=(*model.contacts, contact))


def _number(value: Any, setting: str, owner: str) -> float:
    return user_input.number(value, f"{owner}: {setting}")


def _surfaces(a: ContactSide, b: ContactSide) -> dict[str, Any]:
    """Friction, torsion, rolling and restitution that the surfaces of two shapes have together."""
    one, other = a.geometry.surface, b.geometry.surface
    if one is None:
        return {} if other is None else dict(other.touching(None))
    return dict(one.touching(other))


def _side(model: Model, given: Side, owner: str) -> ContactSide:
    """A side from a name, or a name and a shape."""
    if not isinstance(given, str):
        return _with_shape(model, given, owner)
    frames = {f.name for f in model.frames}
    if given == GROUND:
        if given in model.body_number or given in frames:
            raise InputError(
                f"{owner} is 'ground', the plane z = 0 of the world, and model {model.name!r} has a body or frame of "
                "this name; give ('world', sl.contacts.Plane()), or ('ground', shape)"
            )
        return ContactSide(WORLD, Geometry("plane", use="collision"))
    at = _place(model, given, owner)
    if given in frames:
        return ContactSide(given, Geometry("point", use="collision"))
    if given == WORLD:
        raise InputError(f"{owner} is 'world', which has no shape; give 'ground' for the plane z = 0, or {_EXAMPLE}")
    return ContactSide(at, _collision_shape(model, given, None, owner))


def _with_shape(model: Model, given: Any, owner: str) -> ContactSide:
    try:
        at, shape = given
    except (TypeError, ValueError):
        raise InputError(f"{owner} is {given!r}; expected a name, or {_EXAMPLE}") from None
    at = _place(model, at, owner)
    if isinstance(shape, int) and not isinstance(shape, bool):
        shape = _collision_shape(model, at, shape, owner)
    if not isinstance(shape, Geometry):
        raise InputError(f"{owner}: the shape of {at!r} is {shape!r}; expected one of sl.contacts, as {_EXAMPLE}")
    return ContactSide(at, shape)


def _place(model: Model, name: Any, owner: str) -> str:
    try:
        return model.frame(name).name
    except InputError as error:
        raise InputError(f"{owner}: {error}") from None


def _collision_shape(model: Model, body: str, k: int | None, owner: str) -> Geometry:
    """The collision shape of a body: the only one, or number k."""
    found = [g for g in model.body(body).geometry if g.use == "collision"]
    if not found:
        visual = len(model.body(body).geometry)
        has = f"no shape for collisions ({visual} only to be seen)" if visual else "no shape"
        raise InputError(f"{owner}: body {body!r} has {has}; a contact needs one: {_example(body)}")
    if k is None and len(found) > 1:
        raise InputError(
            f"{owner}: body {body!r} has {len(found)} shapes for collisions; a contact takes one. Choose by number, "
            f"({body!r}, 0), or give a shape, {_example(body)}"
        )
    if k is not None and not 0 <= k < len(found):
        raise InputError(f"{owner}: body {body!r} has no shape {k}; expected 0 to {len(found) - 1}")
    return found[k or 0]


def _example(body: str) -> str:
    return f"({body!r}, sl.contacts.Sphere(0.02))"
