"""Writer of URDF: trees of hinges, sliders, planar and floating joints, with mimic joints.

Loops are written as <loop>, which only spanloop reads, and frames as links without mass. Numbers that URDF requires and
the model does not have (limits of a slider, efforts, speeds) are written as 1e30.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from typing import Any

from spanloop.errors import UnsupportedError
from spanloop.model.files.loss_report import (
    LossReport,
    Written,
    lose_actuators_sensors_gravity,
    mimics,
    without_contacts,
)
from spanloop.model.files.split_joints import split, without_offsets
from spanloop.model.files.surface_writer import write_link_surface
from spanloop.model.files.xml_writer import angles, checked, child, document, is_turned, numbers
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Body, Coupling, Geometry, Inertia, Joint, Loop, Placement

TYPES = {"revolute": "revolute", "prismatic": "prismatic", "fixed": "fixed", "free": "floating", "planar": "planar"}
NO_LIMIT = 1e30


def dumps(model: Model) -> Written:
    """The model as URDF."""
    report = LossReport()
    model = split(without_offsets(without_contacts(model, report)), ("cylindrical", "universal"), report)
    _can_stand(model)
    robot = ET.Element("robot", {"name": checked(model.name)})
    root = _implied_root(model)
    if root is None:
        child(robot, "link", name=WORLD)
    for body in model.bodies:
        _link(robot, body, report)
    followers = mimics(model, report)
    for j in model.joints:
        if j is not root:
            _joint(robot, j, followers.get(j.name), report)
    _frames(robot, model, report)
    for x in model.loops:
        _loop(robot, x, report)
    _lost(model, report, root)
    return report.written(document(robot, model.notes))


def _can_stand(model: Model) -> None:
    for j in model.joints:
        if j.kind.name not in TYPES:
            raise UnsupportedError(
                f"joint {j.name!r}: URDF has no {j.kind.name} joints, and the rest depends on it; save as .toml"
            )


def _implied_root(model: Model) -> Joint | None:
    """The joint 'root' of the only body on the world, which a reader of URDF adds itself."""
    roots = [j for j in model.joints if j.parent == WORLD]
    on_world = any(f.body == WORLD for f in model.frames) or any(WORLD in (x.a, x.b) for x in model.loops)
    if len(roots) != 1 or on_world or roots[0].name != "root" or roots[0].placement != Placement():
        return None
    return roots[0] if roots[0].kind.name in ("fixed", "free") else None


def _link(robot: ET.Element, b: Body, report: LossReport) -> None:
    link = child(robot, "link", name=b.name)
    if b.inertia != Inertia():
        inertial = child(link, "inertial")
        child(inertial, "origin", xyz=numbers(*b.inertia.center))
        child(inertial, "mass", value=numbers(b.inertia.mass))
        names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        child(inertial, "inertia", **dict(zip(names, map(numbers, b.inertia.moments), strict=True)))
    for g in b.geometry:
        if g.shape == "ellipsoid":
            report.lose("ellipsoids", f"body {b.name!r}")
        else:
            _geometry(link, g)
    write_link_surface(robot, link, b, report)


def _geometry(link: ET.Element, g: Geometry) -> None:
    shape = child(link, g.use)
    _origin(shape, g.placement)
    inside = child(shape, "geometry")
    match g.shape:
        case "box":
            child(inside, "box", size=numbers(*g.size))
        case "cylinder" | "capsule":
            child(inside, g.shape, radius=numbers(g.size[0]), length=numbers(g.size[1]))
        case "sphere":
            child(inside, "sphere", radius=numbers(g.size[0]))
        case _:
            child(inside, "mesh", filename=g.file, scale=numbers(*g.size) if g.size else None)
    if g.color is not None and g.use == "visual":
        material = child(shape, "material", name="color " + numbers(*g.color))
        child(material, "color", rgba=numbers(*g.color))


def _origin(parent: ET.Element, p: Placement) -> None:
    if p != Placement():
        rpy = numbers(*angles(p.rotation)) if is_turned(p.rotation) else None
        child(parent, "origin", xyz=numbers(*p.position), rpy=rpy)


def _joint(robot: ET.Element, j: Joint, mimic: Coupling | None, report: LossReport) -> None:
    kind: Any = j.kind
    turns = kind.name == "revolute" and j.lower is None and j.upper is None
    joint = child(robot, "joint", name=j.name, type="continuous" if turns else TYPES[kind.name])
    _origin(joint, j.placement)
    child(joint, "parent", link=j.parent)
    child(joint, "child", link=j.child)
    if hasattr(kind, "axis"):
        child(joint, "axis", xyz=numbers(*kind.axis))
    if kind.nv == 1:
        _limit(joint, j, turns, report)
        if any(j.damping) or any(j.friction):
            child(joint, "dynamics", damping=numbers(*j.damping), friction=numbers(*j.friction))
    if mimic is not None:
        child(joint, "mimic", joint=mimic.source, multiplier=numbers(mimic.ratio), offset=numbers(mimic.offset))
        if mimic.name != f"{j.name}_mimic":
            report.remark("couplings that are called after their joint in URDF", f"coupling {mimic.name!r}")


def _limit(joint: ET.Element, j: Joint, turns: bool, report: LossReport) -> None:
    """All four numbers: URDF demands them of hinges with limits and of sliders."""
    given = {ours: getattr(j, ours) for ours in ("lower", "upper", "effort", "speed")}
    if turns and given["effort"] is None and given["speed"] is None:
        return
    wanted = ("effort", "speed") if turns else ("lower", "upper", "effort", "speed")
    values = {k: (given[k] or (-math.inf if k == "lower" else math.inf,))[0] for k in wanted}
    if any(math.isinf(x) for x in values.values()):
        report.remark(f"limits that there are none of, written as {NO_LIMIT:g}", f"joint {j.name!r}")
    finite = {k: numbers(math.copysign(NO_LIMIT, x) if math.isinf(x) else x) for k, x in values.items()}
    child(joint, "limit", **{{"speed": "velocity"}.get(k, k): x for k, x in finite.items()})


def _frames(robot: ET.Element, model: Model, report: LossReport) -> None:
    taken = {j.name for j in model.joints}
    for f in model.frames:
        name = f"{f.name}_joint"
        while name in taken:
            name += "_"
        taken.add(name)
        child(robot, "link", name=f.name)
        joint = child(robot, "joint", name=name, type="fixed")
        _origin(joint, f.placement)
        child(joint, "parent", link=f.body)
        child(joint, "child", link=f.name)
        report.remark("frames, written as links without mass", f"frame {f.name!r}")


def _loop(robot: ET.Element, x: Loop, report: LossReport) -> None:
    kind: Any = x.kind
    report.lose("loops (written as <loop>, which only spanloop reads; other programs leave them open)", f"{x.name!r}")
    if kind.name in ("general", "free"):
        report.lose("loops that <loop> cannot describe either", f"{x.name!r} ({kind.name})")
        return
    flags = {key: "true" for key in ("driven", "switchable") if getattr(x, key)}
    sizes = {key: numbers(getattr(kind, key)) for key in ("pitch", "length") if hasattr(kind, key)}
    loop = child(robot, "loop", name=x.name, type=kind.name, **flags, **sizes)
    for tag, link, place in (("parent", x.a, x.placement_a), ("child", x.b, x.placement_b)):
        _origin(child(loop, tag, link=link), place)
    for axis in ("axis", "second_axis"):
        if hasattr(kind, axis):
            child(loop, axis, xyz=numbers(*getattr(kind, axis)))


def _lost(model: Model, report: LossReport, root: Joint | None) -> None:
    """What URDF has no words for."""
    followers = {c.joint for c in model.couplings}
    for j in model.joints:
        part = f"joint {j.name!r}"
        for name in ("armature", "stiffness"):
            if any(getattr(j, name)):
                report.lose({"armature": "armatures", "stiffness": "springs"}[name], part)
        if j.kind.nv > 1 and any(any(getattr(j, name) or ()) for name in ("lower", "upper", "speed", "effort")):
            report.lose("limits of joints with several DoF", part)
        if j.kind.nv > 1 and (any(j.damping) or any(j.friction)):
            report.lose("damping and friction of joints with several DoF", part)
        if j.driven:
            report.lose("that the joint is driven", part)
        if not j.actuated and j.kind.nv and j.kind.name != "free" and j.name not in followers:
            report.lose("that the joint has no motor", part)
    lose_actuators_sensors_gravity(model, report)
    if root is not None and root.kind.name == "free":
        report.remark("the base floats: load with base='free'", f"{root.child!r}")
