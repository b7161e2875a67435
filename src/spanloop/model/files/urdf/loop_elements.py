"""Loops in a URDF: our own <loop>, URDF+'s <loop> and <coupling> (MIT and Notre Dame's grbda), and the <constraint>
proposed for urdfdom (pull request 264). docs/urdf.md shows each.

| element         | ends                                               | axis                       |
|-----------------|----------------------------------------------------|----------------------------|
| <loop> of ours  | <parent link> <child link>, each with <origin>     | <axis>, <second_axis>      |
| <loop> of URDF+ | <predecessor link> <successor link>, with <origin> | <axis>                     |
| <constraint>    | <parent link>, <parent_origin>, <child ...>        | <parent_axis>, <child_axis>|
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spanloop.errors import FileError, ModelError, UnsupportedError, nearest
from spanloop.joints import (
    Cylindrical,
    Distance,
    Fixed,
    Helical,
    JointKind,
    Planar,
    PointOnLine,
    PointOnPlane,
    Prismatic,
    Revolute,
    SoftFinger,
    Spherical,
    Universal,
)
from spanloop.math.rotation import toward
from spanloop.math.vector3 import IDENTITY3
from spanloop.model.files.load_notes import LoadNotes
from spanloop.model.files.urdf.links_and_joints import read_axis, read_placement
from spanloop.model.files.xml_reader import Element
from spanloop.model.parts import Coupling, Joint, Loop, Placement
from spanloop.types import Floats3, Floats33

WITH_AXIS: dict[str, Callable[[Floats3], JointKind]] = {
    "revolute": Revolute,
    "continuous": Revolute,
    "prismatic": Prismatic,
    "cylindrical": Cylindrical,
    "point_on_line": PointOnLine,
    "point_on_plane": PointOnPlane,
}
WITHOUT_AXIS: dict[str, JointKind] = {"spherical": Spherical(), "fixed": Fixed(), "soft_finger": SoftFinger()}
TYPES = (*WITH_AXIS, "planar", "helical", "universal", *WITHOUT_AXIS, "distance")
CONSTRAINTS = ("revolute", "prismatic", "universal", "spherical", "link")
ENDS = (("parent", "child"), ("predecessor", "successor"))
FLAGS = {"true": True, "1": True, "false": False, "0": False}


def read_loop(element: Element, notes: LoadNotes) -> Loop:
    """The closure of a <loop>, in our words or URDF+'s."""
    a, b = (element.needed(tag) for tag in _ends(element))
    kind = _kind(element, notes)
    place_a, place_b = (read_placement(end.one("origin"), notes) for end in (a, b))
    ends = a.text("link"), b.text("link")
    driven, switchable = _flag(element, "driven"), _flag(element, "switchable")
    return Loop(element.text("name"), kind, *ends, place_a, place_b, driven, switchable, where=element.where)


def _ends(element: Element) -> tuple[str, str]:
    found = [pair for pair in ENDS if any(element.one(tag) is not None for tag in pair)]
    if len(found) != 1:
        raise FileError(
            f"{element.where}: <loop> needs <parent link='...'> and <child link='...'> "
            "(or URDF+'s <predecessor> and <successor>)"
        )
    return found[0]


def _kind(element: Element, notes: LoadNotes) -> JointKind:
    name = element.text("type")
    try:
        if name in WITH_AXIS:
            return WITH_AXIS[name](read_axis(element, "axis", notes))
        if name in WITHOUT_AXIS:
            return WITHOUT_AXIS[name]
        match name:
            case "planar":
                return Planar(read_axis(element, "axis", notes))
            case "helical":
                return Helical(read_axis(element, "axis", notes), element.number("pitch"))
            case "universal":
                return Universal(read_axis(element, "axis", notes), read_axis(element, "second_axis", notes))
            case "distance":
                return Distance(element.number("length"))
    except ModelError as error:
        raise FileError(f"{element.where}: loop {element.text('name')!r}: {error}") from None
    raise FileError(f"{element.where}: loop {element.text('name')!r} has the type {name!r}; {nearest(name, TYPES)}")


def _flag(element: Element, key: str) -> bool:
    word = element.attributes.get(key, "false").strip().lower()
    if word not in FLAGS:
        raise FileError(f"{element.where}: <loop> {key} is {word!r}; expected true or false")
    return FLAGS[word]


# ---- <constraint>, urdfdom pull request 264


def read_constraint(element: Element, notes: LoadNotes) -> Loop:
    """The closure of a <constraint>: the joint or link that was cut."""
    name, kind_name = element.text("name"), element.text("type").lower()
    a, b = (read_placement(element.one(f"{end}_origin"), notes) for end in ("parent", "child"))
    first = read_axis(element, "parent_axis", notes)
    second = read_axis(element, "child_axis", notes) if element.one("child_axis") is not None else first
    kind: JointKind
    match kind_name:
        case "revolute":
            kind, b = Revolute(first), b @ Placement(_turn(first, second))
        case "prismatic":
            if second != first:
                raise FileError(
                    f"{element.where}: constraint {name!r}: a prismatic one needs <parent_axis> and <child_axis> "
                    "alike; turn its <child_origin> instead"
                )
            kind = Prismatic(first)
        case "universal":
            if element.one("child_axis") is None:
                raise FileError(f"{element.where}: constraint {name!r}: a universal one needs a <child_axis>")
            kind = _universal(element, first, second)
        case "spherical":
            kind = Spherical()
        case "link":
            kind = Fixed()
        case _:
            raise FileError(
                f"{element.where}: constraint {name!r} has the type {kind_name!r}; {nearest(kind_name, CONSTRAINTS)}"
            )
    parent, child = (element.needed(end).text("link") for end in ("parent", "child"))
    return Loop(name, kind, parent, child, a, b, where=element.where)


def _universal(element: Element, first: Floats3, second: Floats3) -> JointKind:
    try:
        return Universal(first, second)
    except ModelError as error:
        raise FileError(f"{element.where}: constraint {element.text('name')!r}: {error}") from None


def _turn(a: Floats3, b: Floats3) -> Floats33:
    """A rotation that takes direction a to direction b."""
    if a == b:
        return IDENTITY3
    matrix: Floats33 = (toward(b) @ toward(a).T).matrix()
    return matrix


# ---- <coupling>, URDF+


def read_coupling(element: Element, joints: Sequence[Joint]) -> Coupling:
    """ratio · (angles on the way to the predecessor) = angles on the way to the successor, from where the ways part;
    each way must be one joint here."""
    ends = [element.needed(tag).text("link") for tag in ENDS[1]]
    source, joint = _parted(element, ends, {j.child: j for j in joints})
    ratio = element.needed("ratio").number("value")
    return Coupling(element.text("name"), joint, source, ratio, where=element.where)


def _parted(element: Element, ends: list[str], above: dict[str, Joint]) -> list[str]:
    ways = []
    for link in ends:
        way: list[str] = []
        while link in above and len(way) <= len(above):
            j = above[link]
            way += [j.name] if j.kind.nv else []
            link = j.parent
        ways.append(way)
    common = set(ways[0]) & set(ways[1])
    apart = [[name for name in way if name not in common] for way in ways]
    for link, way in zip(ends, apart, strict=True):
        if len(way) != 1:
            found = ", ".join(map(repr, way[:4])) or "none"
            raise UnsupportedError(
                f"{element.where}: coupling {element.text('name')!r}: the way to {link!r} has {len(way)} moving joints "
                f"({found}); couplings join single ones"
            )
    return [way[0] for way in apart]
