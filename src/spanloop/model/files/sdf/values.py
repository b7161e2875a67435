"""Values between the tags of an SDF: numbers, flags, names and poses."""

from __future__ import annotations

import math

from spanloop.errors import FileError, nearest
from spanloop.math.quaternion import matrix
from spanloop.model.exact_rotations import snap_rotation
from spanloop.model.files.load_notes import LoadNotes
from spanloop.model.files.xml_reader import Element, parsed_numbers
from spanloop.model.parts import Placement

FLAGS = {"true": True, "1": True, "false": False, "0": False}
FORMATS = ("euler_rpy", "quat_xyzw")


def content(element: Element) -> str:
    """The text inside an element, which must not be empty."""
    text = element.content.strip()
    if not text:
        raise FileError(f"{element.where}: <{element.tag}> is empty; expected a value")
    return text


def numbers(element: Element, count: int, *, infinite: bool = False) -> tuple[float, ...]:
    """The numbers inside an element."""
    return parsed_numbers(content(element), count, f"{element.where}: <{element.tag}>", infinite=infinite)


def number(parent: Element, tag: str, default: float | None = None, *, infinite: bool = False) -> float:
    """The number inside the element <tag> of a parent; it must be there if there is no default."""
    element = parent.one(tag)
    if element is None and default is not None:
        return default
    return numbers(element or parent.needed(tag), 1, infinite=infinite)[0]


def text(parent: Element, tag: str, default: str = "") -> str:
    """The text inside the element <tag> of a parent."""
    element = parent.one(tag)
    return default if element is None else content(element)


def flag(parent: Element, tag: str) -> bool:
    """Whether <tag> is there and true."""
    element = parent.one(tag)
    if element is None:
        return False
    word = content(element).lower()
    if word not in FLAGS:
        raise FileError(f"{element.where}: <{tag}> is {word!r}; expected true or false")
    return FLAGS[word]


def read_pose(element: Element | None, notes: LoadNotes) -> Placement:
    """A <pose>: x y z [m] and roll pitch yaw [rad], in degrees where its attribute is set, or a quaternion x y z w."""
    if element is None or not element.content.strip():
        return Placement()
    style = element.attributes.get("rotation_format", "euler_rpy")
    if style not in FORMATS:
        raise FileError(f"{element.where}: <pose> rotation_format is {style!r}; {nearest(style, FORMATS)}")
    if style == "quat_xyzw":
        return _quaternion_pose(element, notes)
    x, y, z, *angles = numbers(element, 6)
    word = element.attributes.get("degrees", "false").strip().lower()
    if word not in FLAGS:
        raise FileError(f"{element.where}: <pose> degrees is {word!r}; expected true or false")
    if FLAGS[word]:
        angles = [math.radians(a) for a in angles]
    if not any(angles):
        return Placement(position=(x, y, z))
    return Placement(notes.rotation(*angles), (x, y, z))


def _quaternion_pose(element: Element, notes: LoadNotes) -> Placement:
    x, y, z, *q = numbers(element, 7)
    length = math.hypot(*q)
    if abs(length - 1.0) > 1e-6:
        raise FileError(f"{element.where}: <pose> has a quaternion of length {length:g}; must be 1")
    i, j, k, w = (c / length for c in q)
    rotation, changed = snap_rotation(matrix((w, i, j, k)))
    notes.rotations += changed
    return Placement(rotation, (x, y, z))
