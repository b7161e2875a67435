"""Check of the contacts of a model when it is made: shapes, pairs, links, numbers, names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import ModelError, listed, nearest
from spanloop.model.contacts.contact import MOST_VERTICES, PAIRS, Contact, ContactSide
from spanloop.model.parts import WORLD, Geometry, Joint
from spanloop.model.poses import hosts_of
from spanloop.model.value_check import check_geometry, check_numbers, label

if TYPE_CHECKING:
    from spanloop.model.model import Model

FLAT = 1e-9  # extent of a hull across its thinnest direction, of the longest, below which it has no volume
ACROSS = 1e-2  # of the velocity of a surface: this much may be along its normal, where it has no effect
_SOLID = ("sphere", "capsule", "box", "cylinder")  # shapes whose sizes are more than 0
_NOT_NEGATIVE = ("friction", "torsion", "rolling", "damping", "resting")


def check_contacts(model: Model, joints: Iterable[Joint]) -> None:
    """Raise ModelError for a contact that no mechanism can have; joints: those of the model, parents first."""
    places = dict.fromkeys((WORLD, *(b.name for b in model.bodies), *(f.name for f in model.frames)))
    links = links_of(model, joints)
    for c in model.contacts:
        owner = label("contact", c)
        for s in c.sides:
            if s.at not in places:
                raise ModelError(f"{owner}: {s.at!r} is not a body or frame; {nearest(s.at, places)}")
            check_shape(s.geometry, owner)
        _check_pair(c, owner)
        _check_links(c, links[c.a.at], links[c.b.at], owner)
        _check_numbers(c, owner)
    _check_point_names(model)


def refuse_same_pairs(model: Model, new: Iterable[Contact]) -> None:
    """Raise ModelError where a new contact is of the two shapes of another one: both would push at the same points."""
    taken: dict[frozenset[object], Contact] = {}
    new = list(new)
    for c in (*(c for c in model.contacts if c not in new), *new):
        key = frozenset(_shape_in_body(model, s) for s in c.sides)
        if key in taken and c in new:
            raise ModelError(
                f"{label('contact', c)} is of the same two shapes as {label('contact', taken[key])}: the "
                f"{c.a.geometry.shape} of {c.a.at!r} and the {c.b.geometry.shape} of {c.b.at!r}. Leave one of them "
                f"out, or remove one, model.remove({taken[key].name!r}, kind='contact')"
            )
        taken.setdefault(key, c)


def _shape_in_body(model: Model, side: ContactSide) -> object:
    """What two sides that are the same have in common: the body, the shape, and where it is, to 1e-9."""
    body, placement = side.on(model)
    g, turned = side.geometry, np.array(placement.rotation)
    place = [*np.ravel(turned), *placement.position]
    if g.shape == "plane":  # moved along itself it is the same
        place = [*turned[:, 2], float(turned[:, 2] @ placement.position)]
    return body, g.shape, g.size, g.vertices, tuple(np.round(place, 9) + 0.0)


def links_of(model: Model, joints: Iterable[Joint]) -> dict[str, str]:
    """The body as whose part each body and frame moves, by fixed joints and fixed loops; for some it is the world.

    joints: those of the model, parents first
    """
    links = {name: host for name, (host, _) in hosts_of(joints).items()}
    for x in model.loops:
        if x.kind.name == "fixed" and not x.switchable:
            one, other = sorted((links[x.a], links[x.b]), key=lambda name: name != WORLD)
            links = {name: one if link == other else link for name, link in links.items()}
    return links | {f.name: links[f.body] for f in model.frames}


def with_moving_contacts(model: Model, contacts: Iterable[Contact]) -> Model:
    """The model with those contacts whose sides move against each other; notes list the others."""
    contacts = tuple(contacts)
    links = links_of(model, model.joints)
    moving = tuple(c for c in contacts if links[c.a.at] != links[c.b.at])
    notes = [
        f"contact {c.name!r}: removed; {c.a.at!r} and {c.b.at!r} no longer move against each other"
        for c in contacts
        if c not in moving
    ]
    return replace(model, contacts=moving, notes=(*model.notes, *notes)) if contacts else model


def check_shape(g: Geometry, owner: str) -> None:
    """Raise ModelError for a shape that cannot touch: of no extent, or a hull of no volume or too many vertices."""
    check_geometry(g, owner)
    if g.shape in _SOLID and min(g.size) <= 0.0:
        advice = ". Give a sphere" if g.shape == "capsule" and g.size[0] > 0.0 else ""
        raise ModelError(f"{owner}: the size of a {g.shape} is {g.size} m; every number must be > 0{advice}")
    if g.shape != "hull":
        return
    if not 4 <= len(g.vertices) <= MOST_VERTICES:
        raise ModelError(
            f"{owner}: a hull has {len(g.vertices)} vertices; expected 4 to {MOST_VERTICES}. "
            "Simplify the shape, or use several contacts"
        )
    extents = np.linalg.svd(np.array(g.vertices) - np.mean(g.vertices, axis=0), compute_uv=False)
    if extents[2] <= FLAT * extents[0]:
        raise ModelError(f"{owner}: the vertices of a hull lie in one plane; expected a hull with a volume")


def _check_pair(c: Contact, owner: str) -> None:
    if c.pair not in PAIRS:
        one, other = c.a.geometry.shape, c.b.geometry.shape
        raise ModelError(
            f"{owner}: no contact of {_a(one)} ({c.a.at!r}) with {_a(other)} ({c.b.at!r}) is supported; "
            + ", ".join(map(partners, dict.fromkeys((one, other))))
        )


def partners(shape: str) -> str:
    """A clause with the shapes that one shape can touch."""
    found = [b if a == shape else a for a, b in PAIRS if shape in (a, b)]
    return f"{_a(shape)} touches {'a ' + listed(found) if found else 'nothing'}"


def _a(shape: str) -> str:
    return f"an {shape}" if shape[0] == "e" else f"a {shape}"


def _check_links(c: Contact, one: str, other: str, owner: str) -> None:
    if one != other:
        return
    if one == WORLD:
        raise ModelError(
            f"{owner}: {c.a.at!r} and {c.b.at!r} are both fixed to the world; a contact needs a shape that moves"
        )
    via = "" if c.a.at == c.b.at == one else f" (of body {one!r}, to which fixed joints or loops attach them)"
    raise ModelError(
        f"{owner}: {c.a.at!r} and {c.b.at!r} are shapes of one link{via}; a contact needs two links that move "
        "against each other"
    )


def _check_numbers(c: Contact, owner: str) -> None:
    for name in _NOT_NEGATIVE:
        value = getattr(c, name)
        check_numbers((value,), f"{owner}: {name}")
        if value < 0.0:
            raise ModelError(f"{owner}: {name} is {value:g}; must be >= 0")
    if not (math.isfinite(c.restitution) and 0.0 <= c.restitution <= 1.0):
        raise ModelError(f"{owner}: restitution is {c.restitution:g}; expected 0 (plastic) to 1 (elastic)")
    if len(c.surface_velocity) != 3:
        raise ModelError(f"{owner}: surface_velocity is {c.surface_velocity}; expected three numbers [m/s]")
    check_numbers(c.surface_velocity, f"{owner}: surface_velocity")
    _check_conveyor(c, owner)
    if c.stiffness is not None:
        check_numbers((c.stiffness,), f"{owner}: stiffness")
        if c.stiffness <= 0.0:
            raise ModelError(f"{owner}: stiffness is {c.stiffness:g} N/m; must be > 0, or None for a hard contact")
    elif c.damping > 0.0:
        raise ModelError(
            f"{owner}: damping is {c.damping:g} N s/m and there is no stiffness; a hard contact has none. "
            "Give stiffness= too, or restitution="
        )


def _check_conveyor(c: Contact, owner: str) -> None:
    """The surface of a plane moves along itself."""
    velocity = np.array(c.surface_velocity)
    if c.b.geometry.shape == "plane":
        normal = np.array(c.b.geometry.placement.rotation)[:, 2]
        along = float(normal @ velocity)
        if abs(along) > ACROSS * float(np.linalg.norm(velocity)):
            raise ModelError(
                f"{owner}: surface_velocity is {c.surface_velocity} m/s, of which {along:.4g} m/s are along the normal "
                f"of the plane of {c.b.at!r}; a surface moves along itself. Let the body move instead"
            )


def _check_point_names(model: Model) -> None:
    """The points of all contacts have different names."""
    owners: dict[str, Contact] = {}
    for c in model.contacts:
        for name in dict.fromkeys((c.name, *c.point_names)):
            if name in owners:
                raise ModelError(
                    f"{label('contact', c)}: its point {name!r} has the name of a point or of all of contact "
                    f"{owners[name].name!r}; rename one of the two"
                )
            owners[name] = c
