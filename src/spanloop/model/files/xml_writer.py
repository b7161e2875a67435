"""XML as text: elements, numbers that read back exactly, angles of a rotation."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable

from spanloop.errors import ModelError
from spanloop.math.vector3 import IDENTITY3
from spanloop.types import Floats3, Floats33

_FORBIDDEN = re.compile("[\x00-\x1f\ud800-\udfff\ufffe\uffff]")


def child(parent: ET.Element, tag: str, text: str | None = None, **attributes: str | None) -> ET.Element:
    """A new element in another; attributes that are None are left out."""
    element = ET.SubElement(parent, tag, {k: checked(v) for k, v in attributes.items() if v is not None})
    if text is not None:
        element.text = checked(text)
    return element


def document(root: ET.Element, notes: Iterable[str] = ()) -> str:
    """The whole text, indented, with the notes as comments at its head."""
    ET.indent(root)
    head = "".join(f"<!-- {_comment(n)} -->\n" for n in notes)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + head + ET.tostring(root, encoding="unicode") + "\n"


def numbers(*values: float) -> str:
    """Floats as text that reads back exactly."""
    return " ".join(_number(x) for x in values)


def _number(x: float) -> str:
    x = float(x) + 0.0  # no -0.0
    return str(int(x)) if x == int(x) and abs(x) < 1e15 else repr(x)


def angles(rotation: Floats33) -> Floats3:
    """Roll, pitch, yaw [rad] of Rz(yaw) Ry(pitch) Rx(roll)."""
    r = rotation
    across = math.hypot(r[0][0], r[1][0])
    pitch = math.atan2(-r[2][0], across)
    if across < 1e-12:  # looking straight up or down: only yaw − roll (or their sum) counts
        return (0.0, pitch, math.atan2(-r[0][1], r[1][1]))
    return (math.atan2(r[2][1], r[2][2]), pitch, math.atan2(r[1][0], r[0][0]))


def quaternion(rotation: Floats33) -> tuple[float, float, float, float]:
    """The unit quaternion (w, x, y, z) of a rotation matrix, by its largest entry."""
    r = rotation
    squares = (
        1.0 + r[0][0] + r[1][1] + r[2][2],
        1.0 + r[0][0] - r[1][1] - r[2][2],
        1.0 - r[0][0] + r[1][1] - r[2][2],
        1.0 - r[0][0] - r[1][1] + r[2][2],
    )
    k = max(range(4), key=lambda i: squares[i])
    columns = (
        (squares[0], r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1]),
        (r[2][1] - r[1][2], squares[1], r[1][0] + r[0][1], r[0][2] + r[2][0]),
        (r[0][2] - r[2][0], r[1][0] + r[0][1], squares[2], r[2][1] + r[1][2]),
        (r[1][0] - r[0][1], r[0][2] + r[2][0], r[2][1] + r[1][2], squares[3]),
    )
    w, x, y, z = columns[k]
    length = math.copysign(math.sqrt(w * w + x * x + y * y + z * z), w if w else 1.0)
    return (w / length, x / length, y / length, z / length)


def is_turned(rotation: Floats33) -> bool:
    """Whether a rotation differs from the identity."""
    return rotation != IDENTITY3


def checked(text: str) -> str:
    """The text; raises ModelError for a character that XML cannot hold."""
    found = _FORBIDDEN.search(text)
    if found:
        raise ModelError(f"{text!r} has the character {found[0]!r}, which XML cannot hold; rename it")
    return text


def _comment(text: str) -> str:
    return _FORBIDDEN.sub(" ", text).replace("--", "- -")
