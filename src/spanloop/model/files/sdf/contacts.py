"""Contacts of an SDF: the pairs of collision shapes that Gazebo lets touch.

Shapes of two models collide if their masks have a bit in common (<collide_bitmask>); those of one model only if it asks
for it (<self_collide>), and not across a joint. Two frictions give the smaller one, as in ODE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from spanloop.errors import FileError
from spanloop.model.contacts.contact_check import links_of
from spanloop.model.files.contact_pairs import Colliding, Details, Side
from spanloop.model.files.load_notes import ACTS, LoadNotes
from spanloop.model.files.sdf.links import Solid
from spanloop.model.files.sdf.scopes import Scope
from spanloop.model.files.sdf.values import FLAGS
from spanloop.model.files.surfaces import value_inside
from spanloop.model.files.xml_reader import Element, inside
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Geometry, Surface

GROUND_PLANE = Geometry("plane", use="collision", surface=Surface(100.0, 0.0, None, 0.0, "minimum"))  # of Gazebo
ALL_BITS = 0xFFFF


@dataclass(frozen=True)
class _Shape:
    """A shape that collides: the side of a contact, and what decides with which others."""

    side: Side
    mask: int
    family: str  # the outermost model
    collides_in_family: bool
    where: str


def read_pairs(model: Model, solids: Mapping[str, list[Solid]], scopes: list[Scope], has_ground: bool) -> Colliding:
    """All pairs that collide; solids: by body; has_ground: with Gazebo's ground plane."""
    links = links_of(model, model.joints)
    shapes = list(_shapes(model, solids, links, _self_colliding(scopes)))
    if has_ground:
        side = Side("ground_plane", WORLD, "plane", GROUND_PLANE, WORLD)
        shapes.append(_Shape(side, ALL_BITS, "ground_plane", False, ""))
    neighbours = {frozenset((links[j.parent], links[j.child])) for j in model.joints}
    neighbours |= {frozenset((links[x.a], links[x.b])) for x in model.loops}
    ends = [ij for ij in combinations(range(len(shapes)), 2) if _collide(shapes[ij[0]], shapes[ij[1]], neighbours)]

    def details(k: int) -> Details:
        one, other = (shapes[i] for i in ends[k])
        return Details(_values(one.side, other.side), where=one.where or other.where)

    return Colliding([s.side for s in shapes], np.array(ends, int).reshape(-1, 2), details)


def _collide(a: _Shape, b: _Shape, neighbours: set[frozenset[str]]) -> bool:
    if a.side.link == b.side.link or not a.mask & b.mask:
        return False
    if a.family != b.family:
        return True
    return a.collides_in_family and b.collides_in_family and {a.side.link, b.side.link} not in neighbours


def _shapes(
    model: Model, solids: Mapping[str, list[Solid]], links: Mapping[str, str], colliding: set[str]
) -> Iterator[_Shape]:
    families = {body.name.partition("::")[0] for body in model.bodies}
    moved = {f.body for f in model.frames if f.name == f"{f.body}::origin"}
    for body in model.bodies:
        found = [s for s in solids.get(body.name, []) if not _is_ghost(s.element)]
        for k, solid in enumerate(found):
            family, _, called = body.name.partition("::")
            name = (called if len(families) == 1 else body.name) + (f".{k}" if len(found) > 1 else "")
            geometry = solid.plane or body.geometry[solid.number]
            at = f"{body.name}::origin" if solid.plane is not None and body.name in moved else body.name
            side = Side(name, at, geometry.shape, geometry, links[body.name])
            yield _Shape(side, _mask(solid.element), family, body.name in colliding, solid.element.where)


def _values(a: Side, b: Side) -> dict[str, float]:
    one, other = (side.geometry.surface if side.geometry is not None else None for side in (a, b))
    return one.touching(other) if one is not None else other.touching(None) if other is not None else {}


def _self_colliding(scopes: list[Scope]) -> set[str]:
    """Paths to the links that collide with others of their model."""
    found = set()
    for scope in scopes:
        own = _says(scope.element, "self_collide", False) if scope.path else False
        for link in scope.element.all("link"):
            if _says(link, "self_collide", own):
                found.add(scope.full(link.text("name")))
    return found


def note_settings(solids: Mapping[str, list[Solid]], notes: LoadNotes) -> None:
    """Note what a hard contact does not have: stiffness, damping and slip."""
    for owned in solids.values():
        for solid in owned:
            slips = inside(solid.element, "surface", "friction", "ode")
            if inside(solid.element, "surface", "contact", "ode") is not None:
                notes.add("stiffness and damping of contacts left out; contacts are hard here", solid.element.where)
            if any(value_inside(slips, tag, 0.0) for tag in ("slip1", "slip2")):
                notes.add(f"{ACTS} slip1 and slip2 of a surface", solid.element.where)


def _is_ghost(element: Element) -> bool:
    """Whether a shape is seen by sensors only."""
    contact = inside(element, "surface", "contact")
    return contact is not None and _says(contact, "collide_without_contact", False)


def _mask(element: Element) -> int:
    bits = inside(element, "surface", "contact", "collide_bitmask")
    if bits is None or not bits.content.strip():
        return ALL_BITS
    try:
        return int(bits.content.strip(), 0)
    except ValueError:
        raise FileError(
            f"{bits.where}: <collide_bitmask> is {bits.content.strip()!r:.60}; expected a whole number"
        ) from None


def _says(element: Element, tag: str, default: bool) -> bool:
    found = inside(element, tag)
    return default if found is None else FLAGS.get(found.content.strip().lower(), default)
