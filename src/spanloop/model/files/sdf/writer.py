"""Writer of SDF, the format of Gazebo: joints that close loops are joints like the others.

A joint's zero is the pose that the file shows, so a loop must be closed where all coordinates are neutral;
`model.rezero(q)` moves them there.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

from spanloop.errors import UnsupportedError
from spanloop.joints import JointKind
from spanloop.math.vector3 import dot, subtract, times, transpose
from spanloop.model.files.loss_report import (
    LossReport,
    Written,
    lose_actuators_sensors_gravity,
    mimics,
    without_contacts,
)
from spanloop.model.files.split_joints import split, without_offsets
from spanloop.model.files.surface_writer import write_surface
from spanloop.model.files.xml_writer import angles, child, document, is_turned, numbers
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Body, Coupling, Geometry, Joint, Loop, Placement
from spanloop.model.poses import neutral_poses
from spanloop.types import Floats3, Floats33

VERSION = "1.11"

TYPES = {
    "revolute": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "spherical": "ball",
    "universal": "universal",
    "helical": "screw",
}

CLOSED = 1e-9  # m, or entries of a rotation matrix

UNLIMITED = 1e16


def dumps(model: Model) -> Written:
    """The model as SDF."""
    report = LossReport()
    model = without_offsets(without_contacts(model, report))
    model = split(_distinct(model, report), ("cylindrical",), report)
    _can_stand(model)
    root = ET.Element("sdf", {"version": VERSION})
    inside = child(root, "model", name=model.name)
    for j, b in zip(model.joints, model.bodies, strict=True):
        _link(inside, j, b, report)
    followers = mimics(model, report)
    for j in model.joints:
        if j.kind.name != "free":
            _joint(inside, j, followers.get(j.name), report)
        elif j.name != "root":
            report.remark("free joints, which SDF has no names for", f"joint {j.name!r}")
    for x in model.loops:
        _loop(inside, x, model, report)
    for f in model.frames:
        attached = None if f.body == WORLD else f.body
        _pose(child(inside, "frame", name=f.name, attached_to=attached), f.placement, attached)
    _lost(model, report)
    return report.written(document(root, model.notes))


def _distinct(model: Model, report: LossReport) -> Model:
    """Links, joints and frames share their names in SDF: a joint that is called like another part gets a tail."""
    taken = {b.name for b in model.bodies} | {f.name for f in model.frames}
    new: dict[str, str] = {}
    for name in [j.name for j in model.joints] + [x.name for x in model.loops]:
        if name in taken:
            new[name] = f"{name}_joint"
            report.remark("joints that share their name with a body or frame, called ..._joint", repr(name))
    if not new:
        return model

    def named(part: Any) -> Any:
        return replace(part, name=new.get(part.name, part.name))

    def follows(c: Coupling) -> Coupling:
        joint, *source = (new.get(name, name) for name in c.joints)
        return replace(c, joint=joint, source=source[0] if source else None)

    return replace(
        model,
        joints=tuple(map(named, model.joints)),
        loops=tuple(map(named, model.loops)),
        couplings=tuple(map(follows, model.couplings)),
        actuators=tuple(replace(a, joint=new.get(a.joint, a.joint)) for a in model.actuators),
    )


def _can_stand(model: Model) -> None:
    for j in model.joints:
        on_world = j.kind.name == "free" and j.parent == WORLD
        if j.kind.name not in TYPES and not on_world:
            raise UnsupportedError(
                f"joint {j.name!r}: SDF has no {j.kind.name} joints{' between bodies' * (j.kind.name == 'free')}, "
                "and the rest depends on it; save as .toml"
            )


def _pose(element: ET.Element, p: Placement, relative_to: str | None = None) -> None:
    if p != Placement() or relative_to is not None:
        rpy = angles(p.rotation) if is_turned(p.rotation) else (0.0, 0.0, 0.0)
        child(element, "pose", numbers(*p.position, *rpy), relative_to=relative_to)


def _link(inside: ET.Element, j: Joint, b: Body, report: LossReport) -> None:
    """A link where its joint is, in the link that carries it."""
    link = child(inside, "link", name=b.name)
    _pose(link, j.placement, None if j.parent == WORLD else j.parent)
    inertial = child(link, "inertial")
    _pose(inertial, Placement(position=b.inertia.center))
    child(inertial, "mass", numbers(b.inertia.mass))
    inertia = child(inertial, "inertia")
    for name, x in zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), b.inertia.moments, strict=True):
        child(inertia, name, numbers(x))
    for k, g in enumerate(b.geometry):
        shape = _geometry(link, g, f"{b.name}_{g.use}_{k + 1}")
        if g.use == "collision":
            write_surface(shape, g.surface, b, report)


def _geometry(link: ET.Element, g: Geometry, name: str) -> ET.Element:
    shape = child(link, g.use, name=name)
    _pose(shape, g.placement)
    inside = child(child(shape, "geometry"), g.shape)
    match g.shape:
        case "box":
            child(inside, "size", numbers(*g.size))
        case "cylinder" | "capsule":
            child(inside, "radius", numbers(g.size[0]))
            child(inside, "length", numbers(g.size[1]))
        case "sphere":
            child(inside, "radius", numbers(g.size[0]))
        case "ellipsoid":
            child(inside, "radii", numbers(*g.size))
        case _:
            child(inside, "uri", g.file)
            if g.size:
                child(inside, "scale", numbers(*g.size))
    if g.color is not None and g.use == "visual":
        child(child(shape, "material"), "diffuse", numbers(*g.color))
    return shape


def _joint(inside: ET.Element, j: Joint, mimic: Coupling | None, report: LossReport) -> None:
    kind: Any = j.kind
    turns = kind.name == "revolute" and j.lower is None and j.upper is None
    joint = child(inside, "joint", name=j.name, type="continuous" if turns else TYPES[kind.name])
    child(joint, "parent", j.parent)
    child(joint, "child", j.child)
    for k, tag in enumerate(_axes(joint, kind)):
        axis = joint.find(tag)
        assert axis is not None
        _settings(axis, j, k)
        if mimic is not None:
            follow = child(axis, "mimic", joint=mimic.source)
            child(follow, "multiplier", numbers(mimic.ratio))
            child(follow, "offset", numbers(mimic.offset))
            child(follow, "reference", "0")
            report.remark("couplings, which SDF has no names for", f"coupling {mimic.name!r}")
    if kind.name == "spherical" and (any(j.damping) or any(j.friction) or any(j.stiffness) or j.lower or j.upper):
        report.lose("damping, friction, springs and limits of ball joints", f"joint {j.name!r}")


def _axes(joint: ET.Element, kind: Any) -> list[str]:
    """The axes of a joint, in its own frame."""
    tags = [
        (tag, getattr(kind, ours)) for tag, ours in (("axis", "axis"), ("axis2", "second_axis")) if hasattr(kind, ours)
    ]
    for tag, direction in tags:
        child(child(joint, tag), "xyz", numbers(*direction))
    if kind.name == "helical":
        child(joint, "screw_thread_pitch", numbers(2.0 * math.pi * kind.pitch))
    return [tag for tag, _ in tags]


def _settings(axis: ET.Element, j: Joint, k: int) -> None:
    limit = child(axis, "limit")
    for ours, theirs, none in (("lower", "lower", -UNLIMITED), ("upper", "upper", UNLIMITED)):
        value = getattr(j, ours)
        child(limit, theirs, numbers(none if value is None or math.isinf(value[k]) else value[k]))
    for ours, theirs in (("effort", "effort"), ("speed", "velocity")):
        value = getattr(j, ours)
        if value is not None and math.isfinite(value[k]):
            child(limit, theirs, numbers(value[k]))
    numbers_of = {
        "damping": j.damping[k],
        "friction": j.friction[k],
        "spring_reference": j.rest[k] if j.stiffness[k] else 0.0,
        "spring_stiffness": j.stiffness[k],
    }
    if any(numbers_of.values()):
        dynamics = child(axis, "dynamics")
        for name, x in numbers_of.items():
            child(dynamics, name, numbers(x))


def _loop(inside: ET.Element, x: Loop, model: Model, report: LossReport) -> None:
    """A loop as a joint, with its frame at the second end."""
    part = f"{x.name!r} ({x.kind.name})"
    if x.kind.name not in TYPES:
        report.lose("loops of a kind that SDF has not", part)
        return
    if x.b == WORLD:
        x = turned_round(x)
        report.remark("loops with their ends exchanged, since the world must be a joint's parent", part)
    poses = neutral_poses(model)
    miss = (poses[x.a] @ x.placement_a).inverse() @ poses[x.b] @ x.placement_b
    if open_by(x.kind, miss) > CLOSED:
        report.lose(
            "loops that are open at neutral coordinates, which SDF makes its zero (model.rezero(q) helps)", part
        )
        return
    kind: Any = x.kind
    if kind.name == "universal":
        kind = replace(kind, axis=times(transpose(miss.rotation), kind.axis))
    joint = child(inside, "joint", name=x.name, type=TYPES[kind.name])
    _pose(joint, x.placement_b)
    child(joint, "parent", x.a)
    child(joint, "child", x.b)
    _axes(joint, kind)
    for flag in ("driven", "switchable"):
        if getattr(x, flag):
            report.lose(f"that the loop is {flag}", part)


def _lost(model: Model, report: LossReport) -> None:
    followers = {c.joint for c in model.couplings}
    for j in model.joints:
        part = f"joint {j.name!r}"
        if any(j.armature):
            report.lose("armatures", part)
        if j.driven:
            report.lose("that the joint is driven", part)
        if not j.actuated and j.kind.nv in (1, 2) and j.name not in followers:
            report.lose("that the joint has no motor", part)
        if j.kind.name == "free" and any(map(any, (j.damping, j.friction, j.stiffness))):
            report.lose("damping, friction and springs of free joints", part)
    lose_actuators_sensors_gravity(model, report)


def open_by(kind: JointKind, pose: Placement) -> float:
    """By how much the child frame at a pose in the parent frame misses the joint [m, or entries of a rotation]."""
    return max(map(abs, _misses(kind, pose)), default=0.0)


def _misses(kind: Any, pose: Placement) -> list[float]:
    p, r = pose.position, pose.rotation
    turned = [r[i][j] - float(i == j) for i in range(3) for j in range(3)]
    match kind.name:
        case "fixed":
            return [*p, *turned]
        case "spherical":
            return list(p)
        case "revolute":
            return [*p, *subtract(times(r, kind.axis), kind.axis)]
        case "universal":
            between = dot(kind.axis, kind.second_axis)
            return [*p, dot(kind.axis, times(r, kind.second_axis)) - between]
        case "prismatic":
            along = dot(p, kind.axis)
            return [*turned, *(x - along * a for x, a in zip(p, kind.axis, strict=True))]
        case "helical":
            along = dot(p, kind.axis)
            off = [x - along * a for x, a in zip(p, kind.axis, strict=True)]
            return [*subtract(times(r, kind.axis), kind.axis), *off, along - kind.pitch * _angle(kind.axis, r)]
        case _:
            return [math.inf]


def _angle(axis: Floats3, r: Floats33) -> float:
    """The angle of a rotation about an axis."""
    sine = 0.5 * dot(axis, (r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1]))
    return math.atan2(sine, 0.5 * (r[0][0] + r[1][1] + r[2][2] - 1.0))


def turned_round(x: Loop) -> Loop:
    """The same constraint with the ends exchanged; a universal joint exchanges its axes."""
    kind: Any = x.kind
    if kind.name == "universal":
        kind = replace(kind, axis=kind.second_axis, second_axis=kind.axis)
    return replace(x, kind=kind, a=x.b, b=x.a, placement_a=x.placement_b, placement_b=x.placement_a)
