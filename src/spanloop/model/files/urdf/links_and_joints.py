"""URDF links and joints: inertia, geometry; kind, placement, limits, losses and mimics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from spanloop.errors import FileError, ModelError, nearest
from spanloop.joints import Fixed, Free, JointKind, Planar, Prismatic, Revolute, Spherical
from spanloop.math.vector3 import IDENTITY3, product, transpose
from spanloop.model.files.load_notes import INVALID, Color, LoadNotes
from spanloop.model.files.surfaces import collision_surface, pybullet_surface
from spanloop.model.files.xml_reader import Element
from spanloop.model.parts import Body, Coupling, Geometry, Inertia, Joint, Placement, Surface
from spanloop.model.value_check import check_geometry
from spanloop.types import Floats3

MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
SHAPES = ("box", "cylinder", "sphere", "mesh", "capsule")
TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical")
WITHOUT_AXIS: dict[str, JointKind] = {"fixed": Fixed(), "floating": Free(), "spherical": Spherical()}
WITH_AXIS: dict[str, Callable[[Floats3], JointKind]] = {
    "revolute": Revolute,
    "continuous": Revolute,
    "prismatic": Prismatic,
    "planar": Planar,
}
LIMITS = (("speed", "velocity"), ("effort", "effort"))  # our name, the file's


def read_placement(origin: Element | None, notes: LoadNotes) -> Placement:
    """The pose in an <origin>: xyz [m], rpy [rad]."""
    if origin is None:
        return Placement()
    position: Floats3 = origin.numbers("xyz", 3, (0.0, 0.0, 0.0))  # type: ignore[assignment]
    angles = origin.numbers("rpy", 3, (0.0, 0.0, 0.0))
    if not any(angles):
        return Placement(position=position)
    return Placement(notes.rotation(*angles), position)


Colors = dict[str, Color]


def read_colors(robot: Element, notes: LoadNotes) -> Colors:
    """The colours of <material>s by name, of the robot first, then of its links, as urdfdom reads them."""
    visuals = [visual for link in robot.all("link") for visual in link.all("visual")]
    found: Colors = {}
    for material in (m for owner in (robot, *visuals) for m in owner.all("material")):
        name, color = material.attributes.get("name", "").strip(), _color(material, notes)
        if name and color is not None:
            found.setdefault(name, color)
    return found


def _color(material: Element, notes: LoadNotes) -> Color | None:
    color = next(material.all("color"), None)
    return notes.color(color.attributes.get("rgba", ""), color.where) if color is not None else None


def read_link(link: Element, colors: Colors, surfaces: dict[str, Surface], notes: LoadNotes) -> Body:
    """The body of a <link>; colors: of materials, by name; surfaces: of <gazebo> elements, by link."""
    surface = surfaces.get(link.text("name")) or pybullet_surface(link, notes)
    shapes = [g for c in link.children if c.tag in ("visual", "collision") for g in _shapes(c, link, colors, notes)]
    shapes = [replace(g, surface=g.surface or surface) if g.use == "collision" else g for g in shapes]
    return Body(link.text("name"), _inertia(link, notes), tuple(shapes), link.where)


def _inertia(link: Element, notes: LoadNotes) -> Inertia:
    """Mass, centre and moments, turned from the axes of the <origin> to those of the link."""
    inertial, owner = link.one("inertial"), f"link {link.text('name')!r} ({link.where})"
    mass = inertial.one("mass") if inertial is not None else None
    if inertial is None or mass is None:
        if inertial is not None:
            notes.add(f"{INVALID} <inertial> without <mass>, read as no mass and no inertia", owner)
        return Inertia()
    placement = read_placement(inertial.one("origin"), notes)
    xx, xy, xz, yy, yz, zz = _moments(inertial.one("inertia"), owner, notes)
    r = placement.rotation
    if r != IDENTITY3:
        m = product(product(r, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))), transpose(r))
        xx, xy, xz, yy, yz, zz = (m[i][j] + 0.0 for i in range(3) for j in range(i, 3))
    return Inertia(notes.mass(mass.number("value"), owner), placement.position, (xx, xy, xz, yy, yz, zz))


def _moments(element: Element | None, owner: str, notes: LoadNotes) -> list[float]:
    if element is None:
        notes.add(f"{INVALID} <inertial> without <inertia>, read as a point mass", owner)
        return [0.0] * 6
    if any(key not in element.attributes for key in MOMENTS):
        notes.add(f"{INVALID} <inertia> without all six moments, the others are read as 0", owner)
    return [element.number(key, 0.0) for key in MOMENTS]


def _shapes(element: Element, link: Element, colors: Colors, notes: LoadNotes) -> Iterator[Geometry]:
    """The shape of a <visual> or <collision>; one that cannot be read is left out with a note, the robot is not."""
    try:
        shape = _geometry(element, colors, notes)
        check_geometry(shape, f"link {link.text('name')!r} ({element.where})")
        yield shape
    except (FileError, ModelError) as error:
        notes.add("shapes that cannot be read left out", str(error))


def _geometry(element: Element, colors: Colors, notes: LoadNotes) -> Geometry:
    inside = element.needed("geometry").children
    known = [c for c in inside if c.tag in SHAPES]
    if not known:
        found = ", ".join(f"<{c.tag}>" for c in inside) or "nothing"
        raise FileError(f"{element.where}: <geometry> holds {found}; expected one of {', '.join(SHAPES)}")
    shape, file = known[0], ""
    size: tuple[float, ...]
    match shape.tag:
        case "box":
            size = shape.numbers("size", 3)
        case "cylinder" | "capsule":
            size = (shape.number("radius"), shape.number("length"))
        case "sphere":
            size = (shape.number("radius"),)
        case _:
            file, size = shape.text("filename"), shape.numbers("scale", 3, ())
    material = next(element.all("material"), None)
    color = None
    if material is not None:
        color = _color(material, notes) or colors.get(material.attributes.get("name", "").strip())
    place, surface = read_placement(element.one("origin"), notes), None
    if element.tag == "collision":
        surface = collision_surface(element, element.where, notes, default=False)
    return Geometry(shape.tag, size, file, place, element.tag, color, surface=surface)


# ---- joints


def read_joint(element: Element, notes: LoadNotes) -> Joint:
    """The joint of a <joint>; what it cannot hold is noted."""
    name = element.text("name")
    kind = _kind(element, name, notes)
    passive = kind.name == "free" or element.one("mimic") is not None
    passive = passive or element.attributes.get("independent") == "false"  # URDF+: its motion follows from the others'
    settings: dict[str, Any] = {"actuated": not passive}
    if kind.nv == 1:
        settings |= _limits(element, notes) | _losses(element, notes)
    elif kind.nv > 1 and (element.one("limit") or element.one("dynamics")):
        notes.add("<limit> and <dynamics> left out, one number for several DoF", _label(element))
    return Joint(
        name,
        kind,
        element.needed("parent").text("link"),
        element.needed("child").text("link"),
        read_placement(element.one("origin"), notes),
        where=element.where,
        **settings,
    )


def read_mimic(element: Element, notes: LoadNotes) -> Coupling | None:
    """The coupling of a joint's <mimic>; a fixed joint has none."""
    mimic = element.one("mimic")
    if mimic is None:
        return None
    if element.text("type") == "fixed":
        notes.add("<mimic> of a fixed joint left out", _label(element))
        return None
    name = element.text("name")
    ratio, offset = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
    return Coupling(f"{name}_mimic", name, mimic.text("joint"), ratio, offset, where=mimic.where)


def _kind(element: Element, name: str, notes: LoadNotes) -> JointKind:
    kind = element.text("type")
    if kind in WITH_AXIS:
        return WITH_AXIS[kind](read_axis(element, "axis", notes))
    if kind in WITHOUT_AXIS:
        return WITHOUT_AXIS[kind]
    raise FileError(f"{element.where}: joint {name!r} has the type {kind!r}; {nearest(kind, TYPES)}")


def read_axis(element: Element, tag: str, notes: LoadNotes) -> Floats3:
    """The direction in an <axis xyz>; x if there is none, as URDF has it, but a second axis must be there."""
    axis = element.needed(tag) if tag == "second_axis" else element.one(tag)
    if axis is None:
        return (1.0, 0.0, 0.0)
    xyz = axis.numbers("xyz", 3)
    if math.hypot(*xyz) < 1e-12:
        raise FileError(
            f"{axis.where}: <{tag}> xyz is {axis.text('xyz')!r}, which has no direction; expected for example '0 0 1'"
        )
    return notes.axis(xyz)


def _limits(element: Element, notes: LoadNotes) -> dict[str, float]:
    """Lower, upper, speed, effort as given; a missing one of lower and upper is 0, as the standard specifies."""
    limit = element.one("limit")
    if limit is None:
        return {}
    found = [(ours, theirs) for ours, theirs in LIMITS if theirs in limit.attributes]
    if element.text("type") != "continuous":
        if "lower" in limit.attributes or "upper" in limit.attributes:
            found += [("lower", "lower"), ("upper", "upper")]
        else:
            notes.add("<limit> without lower and upper, read as without limits", _label(element))
    elif "lower" in limit.attributes or "upper" in limit.attributes:
        notes.add("lower and upper of a continuous joint left out", _label(element))
    values = {ours: limit.number(theirs, 0.0, infinite=True) for ours, theirs in found}
    for ours, theirs in LIMITS:
        if values.get(ours, 0.0) < 0.0:
            notes.add(f"negative {theirs} of a <limit>, read as without limit", _label(element))
            del values[ours]
    return notes.limits(values, _label(element))


def _losses(element: Element, notes: LoadNotes) -> dict[str, tuple[float, ...]]:
    dynamics = element.one("dynamics")
    if dynamics is None:
        return {}
    values = {key: (dynamics.number(key, 0.0),) for key in ("damping", "friction")}
    return {key: notes.losses(key, value, _label(element)) for key, value in values.items()}


def _label(element: Element) -> str:
    return f"joint {element.text('name')!r} ({element.where})"
