"""Contacts of an SDF: the pairs of collision shapes that Gazebo lets touch.

Shapes of two models collide if their masks have a bit in common (<collide_bitmask>); those of one model only if it asks
for it (<self_collide>), and not across a joint. Two frictions give the smaller one, as in ODE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from spanloop.model.contacts.contact_check import links_of
from spanloop.model.files.contact_pairs import Colliding, Details, Side, numbered_pairs
from spanloop.model.files.load_notes import ACTS, INVALID, LoadNotes
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


def read_pairs(
    model: Model, solids: Mapping[str, list[Solid]], scopes: list[Scope], has_ground: bool, notes: LoadNotes
) -> Colliding:
    """All pairs that collide; solids: by body; has_ground: with Gazebo's ground plane."""
    links = links_of(model, model.joints)
    shapes = list(_shapes(model, solids, links, _self_colliding(scopes), notes))
    if has_ground:
        side = Side("ground_plane", WORLD, "plane", GROUND_PLANE, WORLD)
        shapes.append(_Shape(side, ALL_BITS, "ground_plane", False, ""))
    ends = numbered_pairs(range(len(shapes)), _filter(shapes, model, links))

    def details(k: int) -> Details:
        one, other = (shapes[i] for i in ends[k])
        return Details(_values(one.side, other.side), where=one.where or other.where)

    return Colliding([s.side for s in shapes], ends, details)


def _filter(shapes: list[_Shape], model: Model, links: Mapping[str, str]) -> Callable[[int, np.ndarray], np.ndarray]:
    """Whether shape a collides with each of the shapes b."""
    number = {name: k for k, name in enumerate(dict.fromkeys(links.values()))}
    joined = [(j.parent, j.child) for j in model.joints] + [(x.a, x.b) for x in model.loops]
    ends = np.sort([[number[links[a]], number[links[b]]] for a, b in joined], axis=1)
    neighbours = ends[:, 0] * len(number) + ends[:, 1]
    link = np.array([number[s.side.link] for s in shapes], int)
    mask = np.array([s.mask for s in shapes], int)
    families = list(dict.fromkeys(s.family for s in shapes))
    family = np.array([families.index(s.family) for s in shapes], int)
    among_themselves = np.array([s.collides_in_family for s in shapes], bool)

    def collide(a: int, b: np.ndarray) -> np.ndarray:
        low, high = np.minimum(link[a], link[b]), np.maximum(link[a], link[b])
        related = np.isin(low * len(number) + high, neighbours)
        allowed = (family[a] != family[b]) | (among_themselves[a] & among_themselves[b] & ~related)
        return (link[a] != link[b]) & (mask[a] & mask[b] != 0) & allowed

    return collide


def _shapes(
    model: Model, solids: Mapping[str, list[Solid]], links: Mapping[str, str], colliding: set[str], notes: LoadNotes
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
            yield _Shape(side, _mask(solid.element, notes), family, body.name in colliding, solid.element.where)


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


def _mask(element: Element, notes: LoadNotes) -> int:
    bits = inside(element, "surface", "contact", "collide_bitmask")
    if bits is None or not bits.content.strip():
        return ALL_BITS
    try:
        return int(bits.content.strip(), 0) & 0xFFFFFFFF
    except ValueError:
        notes.add(f"{INVALID} <collide_bitmask> that is no whole number, read as all bits", bits.where)
        return ALL_BITS


def _says(element: Element, tag: str, default: bool) -> bool:
    found = inside(element, tag)
    return default if found is None else FLAGS.get(found.content.strip().lower(), default)
