"""URDF links: inertia and geometry, and the poses that all URDF elements share."""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.errors import FileError, nearest
from spanloop.math.small import IDENTITY3, product, transpose
from spanloop.model.load.markup import Element
from spanloop.model.load.snap import rotation_of_angles, snap_axis, snap_rotation
from spanloop.model.parts import Body, Geometry, Inertia, Placement
from spanloop.types import Floats3

SHAPES = ("box", "cylinder", "sphere", "mesh", "capsule")


@dataclass
class Snapping:
    """Snaps what a file says in angles, and counts what it changed."""

    rotations: int = 0
    axes: int = 0

    def placement(self, origin: Element | None) -> Placement:
        """The pose in an <origin>: xyz [m], then rpy [rad], R = Rz(yaw) Ry(pitch) Rx(roll)."""
        if origin is None:
            return Placement()
        position: Floats3 = origin.numbers("xyz", 3, (0.0, 0.0, 0.0))  # type: ignore[assignment]
        angles = origin.numbers("rpy", 3, (0.0, 0.0, 0.0))
        if not any(angles):
            return Placement(position=position)
        rotation, changed = snap_rotation(rotation_of_angles(*angles))
        self.rotations += changed
        return Placement(rotation, position)

    def axis(self, element: Element | None) -> Floats3:
        """The direction in an <axis>, x if there is none."""
        if element is None:
            return (1.0, 0.0, 0.0)
        xyz = element.numbers("xyz", 3)
        if not any(xyz):
            raise FileError(f'{element.where}: <axis> xyz is 0 0 0, which has no direction; expected for example "0 0 1"')
        axis, changed = snap_axis(xyz)
        self.axes += changed
        return axis

    def note(self) -> str:
        """What was snapped, empty if nothing was."""
        if not self.rotations + self.axes:
            return ""
        return (
            f"{self.rotations} rotations and {self.axes} axes were within 1e-9 of exact zeros and right angles "
            "and were set to these"
        )


def read_link(link: Element, snapping: Snapping) -> Body:
    """The body of a <link>."""
    return Body(
        link.text("name"),
        _inertia(link.one("inertial"), snapping),
        tuple(_geometry(c, snapping) for c in link.children if c.tag in ("visual", "collision")),
        link.where,
    )


def _inertia(inertial: Element | None, snapping: Snapping) -> Inertia:
    """Mass, centre and moments, turned from the axes of the <origin> to those of the link."""
    if inertial is None:
        return Inertia()
    placement = snapping.placement(inertial.one("origin"))
    element = inertial.needed("inertia")
    xx, xy, xz, yy, yz, zz = (element.number(k) for k in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    r = placement.rotation
    if r != IDENTITY3:
        m = product(product(r, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))), transpose(r))
        xx, xy, xz, yy, yz, zz = (m[i][j] + 0.0 for i in range(3) for j in range(i, 3))
    return Inertia(inertial.needed("mass").number("value"), placement.position, (xx, xy, xz, yy, yz, zz))


def _geometry(element: Element, snapping: Snapping) -> Geometry:
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
    return Geometry(shape.tag, size, file, snapping.placement(element.one("origin")), element.tag)
