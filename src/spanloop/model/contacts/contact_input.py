"""Arguments of users about contacts, checked once: sides by name or with a shape, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.model import user_input
from spanloop.model.contacts.contact import Contact, ContactSide
from spanloop.model.parts import WORLD, Geometry

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from spanloop.model.model import Model

Side: TypeAlias = str | Sequence[Any]  # a name, or (name, shape)
GROUND = "ground"  # the plane z = 0 of the world
_EXAMPLE = "(name, sl.contacts.Sphere(0.02))"


class ContactSettings(TypedDict, total=False):
    """How two shapes push, rub and rebound; model.with_contact lists meanings and units."""

    friction: float | None
    restitution: float | None
    torsion: float | None
    rolling: float | None
    stiffness: float | None
    damping: float
    surface_velocity: ArrayLike
    resting: float


def contact_of(model: Model, name: str, a: Side, b: Side, settings: ContactSettings) -> Contact:
    """A contact from what a user gives; settings that are None or missing have their defaults or the surfaces'."""
    owner = f"contact {user_input.name(name, 'contact: the name')!r}"
    if isinstance(a, str) and isinstance(b, str) and a == b:
        raise InputError(f"{owner}: both sides are {a!r}; expected a name and two sides, as ('heel', 'foot', 'ground')")
    (at_a, one), (at_b, other) = _side(model, a, f"{owner}: a"), _side(model, b, f"{owner}: b")
    values = {**_surfaces(one, other), **settings_of(settings, owner)}
    return Contact(name, ContactSide(at_a, one), ContactSide(at_b, other), **values)


def settings_of(given: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """The settings that are given, as numbers."""
    known = ContactSettings.__annotations__
    for key in given:
        if key not in known:
            raise InputError(f"{owner}: a contact has no setting {key!r}; {nearest(key, known)}")
    return {
        key: user_input.three(x, f"{owner}: {key}")
        if key == "surface_velocity"
        else user_input.number(x, f"{owner}: {key}")
        for key, x in given.items()
        if x is not None
    }


def _surfaces(a: Geometry, b: Geometry) -> dict[str, Any]:
    """Friction, torsion, rolling and restitution that the surfaces of two shapes have together."""
    if a.surface is None:
        return {} if b.surface is None else dict(b.surface.touching(None))
    return dict(a.surface.touching(b.surface))


# ---- sides


def _side(model: Model, given: Side, owner: str) -> tuple[str, Geometry]:
    """The place and the shape of a side, from a name, or a name and a shape or its number among the body's."""
    if not isinstance(given, str):
        return _with_shape(model, given, owner)
    frames = {f.name for f in model.frames}
    if given == GROUND:
        if given in model.body_number or given in frames:
            raise InputError(
                f"{owner} is 'ground', the plane z = 0 of the world, and model {model.name!r} has a body or frame of "
                "this name; give ('world', sl.contacts.Plane()), or ('ground', shape)"
            )
        return WORLD, Geometry("plane", use="collision")
    at = _place(model, given, owner)
    if given in frames:
        return given, Geometry("point", use="collision")
    if given == WORLD:
        raise InputError(f"{owner} is 'world', which has no shape; give 'ground' for the plane z = 0, or {_EXAMPLE}")
    return at, _collision_shape(model, given, None, owner)


def collision_shapes(model: Model, body: str) -> list[Geometry]:
    """The collision shapes of a body."""
    return [g for g in model.body(body).geometry if g.use == "collision"]


def _with_shape(model: Model, given: Any, owner: str) -> tuple[str, Geometry]:
    try:
        at, shape = given
    except (TypeError, ValueError):
        raise InputError(f"{owner} is {given!r}; expected a name, or {_EXAMPLE}") from None
    if isinstance(at, Geometry):
        name = repr(shape) if isinstance(shape, str) else "name"
        raise InputError(f"{owner} is a shape and a name; expected the name first, ({name}, shape), as {_EXAMPLE}")
    at = _place(model, at, owner)
    if isinstance(shape, (int, np.integer)) and not isinstance(shape, bool):
        shape = _collision_shape(model, at, int(shape), owner)
    return at, user_input.shape(shape, f"{owner}: the shape of {at!r}")


def _place(model: Model, name: Any, owner: str) -> str:
    known = [GROUND, *model.body_number, *(f.name for f in model.frames)]
    if not isinstance(name, str) or name not in known[1:]:
        raise InputError(f"{owner}: model {model.name!r} has no body or frame {name!r}; {nearest(name, known)}")
    return name


def _collision_shape(model: Model, body: str, k: int | None, owner: str) -> Geometry:
    """The collision shape of a body: the only one, or number k."""
    if body not in model.body_number or body == WORLD:
        raise InputError(f"{owner}: {body!r} is no body, and has no shape of its own; give one, {_example(body)}")
    found = collision_shapes(model, body)
    if not found:
        visual = len(model.body(body).geometry)
        has = f"no shape for collisions ({visual} only to be seen)" if visual else "no shape"
        raise InputError(f"{owner}: body {body!r} has {has}; a contact needs one. Give {_example(body)}")
    if k is None and len(found) > 1:
        raise InputError(
            f"{owner}: body {body!r} has {len(found)} shapes for collisions; a contact takes one. Choose by number, "
            f"({body!r}, 0), or give a shape, {_example(body)}"
        )
    if k is not None and not 0 <= k < len(found):
        raise InputError(f"{owner}: body {body!r} has no collision shape {k}; expected 0 to {len(found) - 1}")
    return found[k or 0]


def _example(body: str) -> str:
    return f"({body!r}, sl.contacts.Sphere(0.02))"
