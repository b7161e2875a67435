"""SDF joints: kinds, axes, limits, losses, springs; gearboxes and mimics as couplings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spanloop.errors import FileError, ModelError, UnsupportedError, nearest
from spanloop.joints import Fixed, Helical, JointKind, Prismatic, Revolute, Spherical, Universal
from spanloop.math.vector3 import dot, times, transpose
from spanloop.model.files.load_notes import LoadNotes
from spanloop.model.files.sdf.scopes import Scope, joined, joint_key
from spanloop.model.files.sdf.values import content, flag, number, numbers
from spanloop.model.files.xml_reader import Element
from spanloop.model.parts import WORLD, Coupling, Joint, Placement
from spanloop.types import Floats3

TYPES = ("revolute", "continuous", "prismatic", "screw", "universal", "revolute2", "ball", "fixed", "gearbox")

PARALLEL = 1e-6  # of two unit vectors' product
UNLIMITED = 1e16  # SDF's own number for no limit

NO_LIMIT = {"lower": -UNLIMITED, "upper": UNLIMITED, "velocity": -1.0, "effort": -1.0}

OURS = {"lower": "lower", "upper": "upper", "velocity": "speed", "effort": "effort"}


@dataclass(frozen=True)
class JointElement:
    """A joint of the file, with its frame's pose in its child."""

    joint: Joint
    at_child: Placement
    element: Element
    scope: Scope


def read_joint(element: Element, ground: Scope, scope: Scope, notes: LoadNotes) -> JointElement:
    """The joint of a <joint> that is no gearbox. Parent and child are paths to links."""
    name = element.text("name")
    kind_name = element.text("type")
    if kind_name not in TYPES:
        raise FileError(f"{element.where}: joint {name!r} has the type {kind_name!r}; {nearest(kind_name, TYPES)}")
    parent, child = (_end(scope, element, role) for role in ("parent", "child"))
    if parent == child:
        raise FileError(f"{element.where}: joint {name!r} has {child!r} as parent and as child; expected two links")
    key = name if scope.entries[name].tag == "joint" else joint_key(name)
    place = ground.pose(scope.full(key), element)
    axes = [axis_in_joint(e, scope, key, notes) for e in _axis_elements(element, kind_name)]
    kind = _kind(element, kind_name, axes)
    settings: dict[str, Any] = {"actuated": kind.nv in (1, 2)}
    settings |= _settings(element, kind, kind_name, notes)
    at_parent, at_child = (joined(_pose(ground, end, element).inverse(), place) for end in (parent, child))
    joint = Joint(scope.full(name), kind, parent, child, at_parent, where=element.where, **settings)
    return JointElement(joint, at_child, element, scope)


def _end(scope: Scope, element: Element, role: str) -> str:
    end = element.needed(role)
    body = scope.body(content(end), end)
    if role == "child" and body == WORLD:
        raise UnsupportedError(f"{end.where}: joint {element.text('name')!r} has the world as child; swap its ends")
    return body


def _pose(ground: Scope, body: str, asked: Element) -> Placement:
    return Placement() if body == WORLD else ground.pose(body, asked)


def _axis_elements(element: Element, kind: str) -> list[Element]:
    if kind in ("fixed", "ball"):
        return []
    tags = ("axis", "axis2") if kind in ("universal", "revolute2", "gearbox") else ("axis",)
    return [element.needed(tag) for tag in tags]


def axis_in_joint(element: Element, scope: Scope, joint: str, notes: LoadNotes) -> Floats3:
    """A direction in the joint's axes, given there, in the model's or in a named frame's."""
    xyz = element.needed("xyz")
    direction: Floats3 = numbers(xyz, 3)  # type: ignore[assignment]
    if math.hypot(*direction) < 1e-12:
        raise FileError(f"{xyz.where}: <xyz> is '{content(xyz)}', which has no direction; expected for example 0 0 1")
    frame = xyz.attributes.get("expressed_in", "").strip()
    if flag(element, "use_parent_model_frame"):
        frame = frame or "__model__"
    if frame:
        into = transpose(scope.pose(joint, element).rotation)
        direction = times(into, times(scope.pose(frame, xyz).rotation, direction))
    return notes.axis(direction)


def _kind(element: Element, name: str, axes: list[Floats3]) -> JointKind:
    try:
        match name:
            case "revolute" | "continuous":
                return Revolute(axes[0])
            case "prismatic":
                return Prismatic(axes[0])
            case "screw":
                return Helical(axes[0], _pitch(element))
            case "universal" | "revolute2":
                return Universal(axes[0], axes[1])
            case "ball":
                return Spherical()
            case _:
                return Fixed()
    except ModelError as error:
        raise FileError(f"{element.where}: joint {element.text('name')!r}: {error}") from None


def _pitch(element: Element) -> float:
    """Metres per radian. <screw_thread_pitch>: metres per turn of a right-handed thread; the older <thread_pitch>:
    radians per metre of a left-handed one."""
    if element.one("screw_thread_pitch") is not None:
        return number(element, "screw_thread_pitch") / math.tau
    older = number(element, "thread_pitch", 1.0)
    if older == 0.0:
        raise FileError(f"{element.where}: <thread_pitch> is 0 radians per metre; must not be 0")
    return -1.0 / older


def _settings(element: Element, kind: JointKind, name: str, notes: LoadNotes) -> dict[str, Any]:
    """Limits, losses and springs, one entry per DoF."""
    label = f"joint {element.text('name')!r} ({element.where})"
    if not kind.nv or name == "ball":
        if any(axis.one("dynamics") for axis in element.all("axis")):
            notes.add("<axis> of a ball or fixed joint left out", label)
        return {}
    axes = _axis_elements(element, name)
    settings: dict[str, Any] = {}
    for theirs, none in NO_LIMIT.items():
        values = [_limit(axis, theirs, none) for axis in axes]
        if any(abs(v) < UNLIMITED for v in values) and not (name == "continuous" and theirs in ("lower", "upper")):
            settings[OURS[theirs]] = tuple(math.copysign(math.inf, v) if abs(v) >= UNLIMITED else v for v in values)
    dynamics = [axis.one("dynamics") for axis in axes]
    for ours, theirs in (("damping", "damping"), ("friction", "friction"), ("stiffness", "spring_stiffness")):
        values = [number(d, theirs, 0.0) if d else 0.0 for d in dynamics]
        settings[ours] = notes.losses(ours, values, label)
    settings["rest"] = tuple(number(d, "spring_reference", 0.0) if d else 0.0 for d in dynamics)
    return notes.limits(settings, label)


def _limit(axis: Element, tag: str, none: float) -> float:
    limit = axis.one("limit")
    value = number(limit, tag, none, infinite=True) if limit is not None else none
    if tag in ("velocity", "effort") and value < 0.0:
        return math.inf
    return value


# ---- gearboxes and mimics


def read_gearbox(
    element: Element,
    ground: Scope,
    scope: Scope,
    elements: Sequence[JointElement],
    notes: LoadNotes,
) -> Coupling:
    """θ₂ = −ratio · θ₁, θ₁ the angle from the reference body to the parent about <axis>, θ₂ to the child about
    <axis2>; each must be the coordinate of a hinge."""
    name = element.text("name")
    reference = element.needed("gearbox_reference_body")
    body = scope.body(content(reference), reference)
    ratio = number(element, "gearbox_ratio", 1.0)
    key = name if scope.entries[name].tag == "joint" else joint_key(name)
    turn = ground.pose(scope.full(key), element).rotation
    sides = []
    for role, tag in (("parent", "axis"), ("child", "axis2")):
        end = element.needed(role)
        link = scope.body(content(end), end)
        axis = times(turn, axis_in_joint(element.needed(tag), scope, key, notes))
        sides.append(_hinge(element, body, link, axis, ground, elements))
    (source, first), (joint, second) = sides
    return Coupling(scope.full(name), joint, source, -ratio * first * second, where=element.where)


def _hinge(
    element: Element, body: str, link: str, axis: Floats3, ground: Scope, elements: Sequence[JointElement]
) -> tuple[str, float]:
    """The hinge between two links and its sense against an axis of the world."""
    for t in elements:
        j = t.joint
        if j.kind.name == "revolute" and {j.parent, j.child} == {body, link}:
            place = (ground.pose(j.parent, element) if j.parent != WORLD else ground.pose("", element)).rotation
            along = dot(times(place, times(j.placement.rotation, j.kind.axis)), axis)  # type: ignore[attr-defined]
            if abs(abs(along) - 1.0) < PARALLEL:
                return j.name, (1.0 if along > 0.0 else -1.0) * (1.0 if j.parent == body else -1.0)
    raise UnsupportedError(
        f"{element.where}: gearbox {element.text('name')!r} needs a hinge about its axis between {body!r} and "
        f"{link!r}; there is none"
    )


def read_mimic(t: JointElement, elements: Sequence[JointElement], notes: LoadNotes) -> Coupling | None:
    """follower = multiplier · (leader − reference) + offset, of <axis><mimic> (SDF 1.11)."""
    axis = t.element.one("axis")
    mimic = axis.one("mimic") if axis is not None else None
    if mimic is None:
        return None
    leader = t.scope.full(mimic.text("joint"))
    names = [x.joint.name for x in elements]
    if leader not in names:
        raise FileError(
            f"{mimic.where}: <mimic> names the joint {leader!r}, which does not exist; {nearest(leader, names)}"
        )
    if mimic.attributes.get("axis", "axis") != "axis":
        raise UnsupportedError(
            f"{mimic.where}: <mimic> of a second axis is not read; couplings join joints with one DoF"
        )
    ratio = number(mimic, "multiplier", 1.0)
    offset = number(mimic, "offset", 0.0) - ratio * number(mimic, "reference", 0.0)
    return Coupling(f"{t.joint.name}_mimic", t.joint.name, leader, ratio, offset, where=mimic.where)
