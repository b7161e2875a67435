"""URDF links: inertia and geometry, and the poses that all URDF elements share."""

from __future__ import annotations

from spanloop.errors import FileError, nearest
from spanloop.math.small import IDENTITY3, product, transpose
from spanloop.model.load.findings import Findings
from spanloop.model.load.markup import Element
from spanloop.model.parts import Body, Geometry, Inertia, Placement
from spanloop.types import Floats3

SHAPES = ("box", "cylinder", "sphere", "mesh", "capsule")


def read_placement(origin: Element | None, findings: Findings) -> Placement:
    """The pose in an <origin>: xyz [m], rpy [rad]."""
    if origin is None:
        return Placement()
    position: Floats3 = origin.numbers("xyz", 3, (0.0, 0.0, 0.0))  # type: ignore[assignment]
    angles = origin.numbers("rpy", 3, (0.0, 0.0, 0.0))
    if not any(angles):
        return Placement(position=position)
    return Placement(findings.rotation(*angles), position)


def read_link(link: Element, findings: Findings) -> Body:
    """The body of a <link>."""
    return Body(
        link.text("name"),
        _inertia(link.one("inertial"), findings),
        tuple(_geometry(c, findings) for c in link.children if c.tag in ("visual", "collision")),
        link.where,
    )


def _inertia(inertial: Element | None, findings: Findings) -> Inertia:
    """Mass, centre and moments, turned from the axes of the <origin> to those of the link."""
    if inertial is None:
        return Inertia()
    placement = read_placement(inertial.one("origin"), findings)
    mass = inertial.needed("mass").number("value")
    element = inertial.needed("inertia")
    xx, xy, xz, yy, yz, zz = (element.number(k) for k in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    r = placement.rotation
    if r != IDENTITY3:
        m = product(product(r, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))), transpose(r))
        xx, xy, xz, yy, yz, zz = (m[i][j] + 0.0 for i in range(3) for j in range(i, 3))
    return Inertia(mass, placement.position, (xx, xy, xz, yy, yz, zz))


def _geometry(element: Element, findings: Findings) -> Geometry:
    """The shape of a <visual> or <collision>."""
    inside = element.needed("geometry").children
    if len(inside) != 1 or inside[0].tag not in SHAPES:
        found = ", ".join(f"<{c.tag}>" for c in inside) or "nothing"
        hint = nearest(inside[0].tag, SHAPES) if inside else f"expected one of {', '.join(SHAPES)}"
        raise FileError(f"{element.where}: <geometry> holds {found}; {hint}")
    shape, file = inside[0], ""
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
    return Geometry(shape.tag, size, file, read_placement(element.one("origin"), findings), element.tag)
