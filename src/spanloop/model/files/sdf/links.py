"""SDF links: inertia and geometry."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from spanloop.errors import FileError, ModelError, UnsupportedError
from spanloop.math.rotation import toward
from spanloop.math.vector3 import IDENTITY3, product, transpose
from spanloop.model.files.load_notes import ACTS, Color, LoadNotes
from spanloop.model.files.sdf.scopes import Scope, joined
from spanloop.model.files.sdf.values import FLAGS, content, number, numbers, read_pose
from spanloop.model.files.surfaces import collision_surface
from spanloop.model.files.xml_reader import Element
from spanloop.model.parts import Body, Geometry, Inertia, Placement
from spanloop.model.value_check import check_geometry

SCRIPTS: dict[str, Color] = {  # materials of Gazebo that files name most
    "Black": (0.1, 0.1, 0.1, 1.0),
    "Blue": (0.0, 0.0, 1.0, 1.0),
    "DarkGray": (0.18, 0.18, 0.18, 1.0),
    "DarkGrey": (0.18, 0.18, 0.18, 1.0),
    "Gold": (0.8, 0.64, 0.16, 1.0),
    "Gray": (0.7, 0.7, 0.7, 1.0),
    "Green": (0.0, 1.0, 0.0, 1.0),
    "Grey": (0.7, 0.7, 0.7, 1.0),
    "Orange": (1.0, 0.51, 0.0, 1.0),
    "Red": (1.0, 0.0, 0.0, 1.0),
    "White": (1.0, 1.0, 1.0, 1.0),
    "Wood": (0.6, 0.4, 0.2, 1.0),
    "Yellow": (1.0, 1.0, 0.0, 1.0),
}
MOMENTS = (("ixx", 1.0), ("ixy", 0.0), ("ixz", 0.0), ("iyy", 1.0), ("iyz", 0.0), ("izz", 1.0))


@dataclass(frozen=True)
class Solid:
    """A <collision> that was read: its element, its number among the body's shapes, or its plane, which no body has."""

    element: Element
    number: int
    plane: Geometry | None = None


def read_link(link: Element, scope: Scope, notes: LoadNotes) -> tuple[Body, list[Solid]]:
    """The body of a <link>, and what of it collides."""
    name = link.text("name")
    for tag in ("sensor", "plugin", "battery"):
        for part in link.all(tag):
            notes.add(f"<{tag}> left out", f"link {name!r} ({part.where})")
    shapes: list[Geometry] = []
    solids: list[Solid] = []
    for element in (c for c in link.children if c.tag in ("visual", "collision")):
        for g in _shapes(element, scope, name, notes):
            is_plane = g.shape == "plane"
            if g.use == "collision":
                solids.append(Solid(element, len(shapes), g if is_plane else None))
            if not is_plane:
                shapes.append(g)
    return Body(scope.full(name), _inertia(link, notes), tuple(shapes), link.where), solids


def _inertia(link: Element, notes: LoadNotes) -> Inertia:
    """Mass, centre and moments, turned from the axes of the <inertial> to those of the link."""
    inertial = link.one("inertial")
    label = f"link {link.text('name')!r} ({link.where})"
    if inertial is None:
        notes.add("without <inertial>, read as 1 kg with unit moments as SDF specifies", label)
        return Inertia(1.0, moments=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    if FLAGS.get(inertial.attributes.get("auto", "false").strip().lower(), False):
        raise UnsupportedError(f"{inertial.where}: <inertial auto='true'> is not read; write mass and inertia")
    if inertial.one("fluid_added_mass") is not None:
        notes.add(f"{ACTS} <fluid_added_mass>", label)
    placement = read_pose(inertial.one("pose"), notes)
    element = inertial.one("inertia")
    xx, xy, xz, yy, yz, zz = (number(element, tag, unit) if element is not None else unit for tag, unit in MOMENTS)
    r = placement.rotation
    if r != IDENTITY3:
        m = product(product(r, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))), transpose(r))
        xx, xy, xz, yy, yz, zz = (m[i][j] + 0.0 for i in range(3) for j in range(i, 3))
    mass = notes.mass(number(inertial, "mass", 1.0), label)
    return Inertia(mass, placement.position, (xx, xy, xz, yy, yz, zz))


def _shapes(element: Element, scope: Scope, link: str, notes: LoadNotes) -> Iterator[Geometry]:
    """The shape of a <visual> or <collision>; one that cannot be read is left out with a note, the model is not."""
    try:
        shape = _geometry(element, scope, link, notes)
        if shape is not None:
            check_geometry(shape, f"link {link!r} ({element.where})")
            yield shape
    except (FileError, ModelError) as error:
        notes.add("shapes that cannot be read left out", str(error))


def _geometry(element: Element, scope: Scope, link: str, notes: LoadNotes) -> Geometry | None:
    inside = [c for c in element.needed("geometry").children if c.tag != "empty"]
    if not inside:
        return None
    shape = inside[0]
    file, size = "", tuple[float, ...]()
    match shape.tag:
        case "box":
            size = numbers(shape.needed("size"), 3)
        case "cylinder" | "capsule":
            size = (number(shape, "radius"), number(shape, "length"))
        case "sphere":
            size = (number(shape, "radius"),)
        case "ellipsoid":
            size = numbers(shape.needed("radii"), 3)
        case "mesh":
            file = content(shape.needed("uri"))
            scale = shape.one("scale")
            size = numbers(scale, 3) if scale is not None else ()
        case "plane" if element.tag == "collision":
            pass
        case _:
            notes.add(f"shape <{shape.tag}> left out", f"link {link!r} ({shape.where})")
            return None
    if any(x <= 0.0 for x in size) and shape.tag != "mesh":
        raise FileError(f"{shape.where}: <{shape.tag}> has the sizes {size}; must be > 0")
    color = _color(element, notes)
    place, surface = _placement(element, scope, link, notes), None
    if shape.tag == "plane":
        place = place @ _upward(shape)
    if element.tag == "collision":
        surface = collision_surface(element, f"link {link!r} ({element.where})", notes, default=True)
    return Geometry(shape.tag, size, file, place, element.tag, color, surface=surface)


def _upward(plane: Element) -> Placement:
    """The pose whose z axis is the normal of a <plane>."""
    normal = plane.one("normal")
    x, y, z = numbers(normal, 3) if normal is not None else (0.0, 0.0, 1.0)
    length = math.hypot(x, y, z)
    if length == 0.0:
        raise FileError(f"{plane.where}: <plane> has the normal 0 0 0; expected a direction")
    turn = toward((x / length, y / length, z / length))
    columns = [turn @ axis for axis in IDENTITY3]
    return Placement(transpose((columns[0], columns[1], columns[2])))


def _color(element: Element, notes: LoadNotes) -> Color | None:
    """The diffuse colour of a shape's <material>, or that of the script it names."""
    material = next(element.all("material"), None)
    if material is None:
        return None
    diffuse, script = (next(material.all(tag), None) for tag in ("diffuse", "script"))
    if diffuse is not None:
        return notes.color(diffuse.content, diffuse.where)
    name = next(script.all("name"), None) if script is not None else None
    return SCRIPTS.get(name.content.strip().removeprefix("Gazebo/")) if name is not None else None


def _placement(element: Element, scope: Scope, link: str, notes: LoadNotes) -> Placement:
    pose = element.one("pose")
    here = read_pose(pose, notes)
    given = pose.attributes if pose is not None else {}
    relative_to = (given.get("relative_to") or given.get("frame") or "").strip()
    if pose is None or not relative_to or relative_to == link:
        return here
    return joined(scope.pose(link, pose).inverse(), joined(scope.pose(relative_to, pose), here))
