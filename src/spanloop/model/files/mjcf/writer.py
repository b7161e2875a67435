"""Writer of MJCF, the format of MuJoCo: bodies in bodies, joints, sites, equality constraints, actuators.

MuJoCo's equality constraints close loops by stiff springs, not exactly; they connect points or weld poses.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import numpy as np

from spanloop.errors import UnsupportedError
from spanloop.joints import Planar
from spanloop.math.rotation import toward
from spanloop.model.files.loss_report import LossReport, Written, without_contacts
from spanloop.model.files.mjcf.actuators_and_sensors import write_actuators, write_sensors
from spanloop.model.files.mjcf.contact_writer import placed, write_contacts, write_geom
from spanloop.model.files.mjcf.equality import write_end_sites, write_equalities
from spanloop.model.files.split_joints import without_offsets
from spanloop.model.files.xml_writer import checked, child, document, numbers
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Body, Inertia, Joint, Placement
from spanloop.model.poses import hosts_of
from spanloop.types import Floats3

# kind -> MuJoCo's joints, each by its type and the number of our DoF
PARTS = {
    "fixed": (),
    "revolute": (("hinge", 0),),
    "prismatic": (("slide", 0),),
    "spherical": (("ball", None),),
    "free": (("free", None),),
    "universal": (("hinge", 0), ("hinge", 1)),
    "cylindrical": (("hinge", 0), ("slide", 1)),
    "planar": (("slide", 1), ("slide", 2), ("hinge", 0)),
}

FAR = 1e10  # the side of a range on which there is no limit
SMALLEST = 1e-9  # kg and kg m² of bodies that have less


def dumps(model: Model) -> Written:
    """The model as MJCF."""
    report, contacts = LossReport(), model.contacts
    model = without_offsets(without_contacts(replace(model, contacts=()), report))
    _can_stand(model)
    model = put_together(model, report)
    root = ET.Element("mujoco", {"model": checked(model.name)})
    compiler = child(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    child(root, "option", gravity=numbers(*model.gravity))
    inside = {WORLD: child(root, "worldbody")}
    for j, b in zip(model.joints, model.bodies, strict=True):
        inside[b.name] = _body(inside[j.parent], j, b, report)
    write_contacts(root, inside, model, contacts, report)
    bounded(compiler, model, report)
    for f in model.frames:
        placed(child(inside[f.body], "site", name=f.name), f.placement)
    write_end_sites(inside, model)
    write_equalities(root, model, report)
    write_actuators(root, model, report)
    write_sensors(root, inside, model, report)
    _lost(model, report)
    return report.written(document(root, model.notes))


def _can_stand(model: Model) -> None:
    for j in model.joints:
        if j.kind.name not in PARTS:
            reason = f"MuJoCo has no {j.kind.name} joints"
        elif j.kind.name == "free" and j.parent != WORLD:
            reason = f"MuJoCo has free joints on the world only, this one is on {j.parent!r}"
        else:
            continue
        raise UnsupportedError(f"joint {j.name!r}: {reason}, and the rest depends on it; save as .toml")


def _body(parent: ET.Element, j: Joint, b: Body, report: LossReport) -> ET.Element:
    body = placed(child(parent, "body", name=b.name), j.placement)
    i = b.inertia
    if i.mass or any(i.moments):
        xx, xy, xz, yy, yz, zz = i.moments
        plain = not (xy or xz or yz)
        shape = {"diaginertia": numbers(xx, yy, zz)} if plain else {"fullinertia": numbers(xx, yy, zz, xy, xz, yz)}
        child(body, "inertial", pos=numbers(*i.center), mass=numbers(i.mass), **shape)
    for (kind, k), axis, name in zip(PARTS[j.kind.name], _axes(j), names(j), strict=True):
        _joint(body, j, name, kind, k, axis, report)
    if j.kind.name == "free" and j.placement != Placement():
        report.remark("free joints whose coordinates MuJoCo counts from the world", f"joint {j.name!r}")
    if j.kind.name == "planar":
        report.remark("planar joints, written as two slides and a hinge", f"joint {j.name!r}")
    for g in b.geometry:
        if g.shape == "mesh":
            report.lose("meshes", f"{g.file!r} of body {b.name!r}")
        else:
            write_geom(body, g, b, report)
    return body


def names(j: Joint) -> list[str]:
    """MuJoCo's names of a joint's parts: its own where there is one."""
    count = len(PARTS[j.kind.name])
    return [j.name] if count == 1 else [f"{j.name}_{k + 1}" for k in range(count)]


def _axes(j: Joint) -> list[Floats3 | None]:
    kind: Any = j.kind
    if kind.name == "universal":
        return [kind.axis, kind.second_axis]
    if isinstance(kind, Planar):
        turn = toward(kind.axis)
        return [turn @ (1.0, 0.0, 0.0), turn @ (0.0, 1.0, 0.0), kind.axis]
    return [getattr(kind, "axis", None)] * len(PARTS[kind.name])


def _joint(
    body: ET.Element, j: Joint, name: str, kind: str, k: int | None, axis: Floats3 | None, report: LossReport
) -> None:
    part = f"joint {j.name!r}"
    joint = child(body, "joint", name=name, type=kind, axis=numbers(*axis) if axis is not None else None)
    for ours, theirs in (("damping", "damping"), ("friction", "frictionloss"), ("armature", "armature")):
        values = getattr(j, ours)
        if k is None and len(set(values)) > 1:
            report.lose(f"{ours} that differs between the axes of a joint", part)
        elif any(values):
            joint.set(theirs, numbers(values[k or 0]))
    if any(j.stiffness):
        _spring(joint, j, k, report)
    if k is None:
        if j.lower is not None or j.upper is not None or j.effort is not None:
            report.lose("limits of joints with several DoF", part)
        return
    lower, upper = ((getattr(j, s) or (None,) * j.kind.nv)[k] for s in ("lower", "upper"))
    _range(joint, lower, upper, part, report)
    if j.effort is not None and math.isfinite(j.effort[k]) and j.effort[k] > 0.0:
        joint.set("actuatorfrcrange", numbers(-j.effort[k], j.effort[k]))


def _range(joint: ET.Element, lower: float | None, upper: float | None, part: str, report: LossReport) -> None:
    low = -math.inf if lower is None else lower
    high = math.inf if upper is None else upper
    if low == high:
        report.lose("limits that leave no room", part)
    elif math.isfinite(low) or math.isfinite(high):
        joint.set("range", numbers(max(low, -FAR), min(high, FAR)))


def _spring(joint: ET.Element, j: Joint, k: int | None, report: LossReport) -> None:
    if k is not None:
        joint.set("stiffness", numbers(j.stiffness[k]))
        joint.set("springref", numbers(j.rest[k]))
    elif j.kind.name == "spherical" and len(set(j.stiffness)) == 1 and j.rest == j.kind.neutral():
        joint.set("stiffness", numbers(j.stiffness[0]))
    else:
        report.lose("springs of joints with several DoF", f"joint {j.name!r}")


def _lost(model: Model, report: LossReport) -> None:
    for j in model.joints:
        if j.speed is not None and any(map(math.isfinite, j.speed)):
            report.lose("limits of speed", f"joint {j.name!r}")
        if j.driven:
            report.lose("that the joint is driven", f"joint {j.name!r}")


# ---- inertias as MuJoCo accepts them


def put_together(model: Model, report: LossReport) -> Model:
    """MuJoCo takes no body whose own inertia is impossible: on fixed joints it is put together with its parent's."""
    groups: dict[str, list[Body]] = {}
    for name, (host, _) in hosts_of(model.joints).items():
        if name != WORLD:
            groups.setdefault(host, []).append(model.body(name))
    new: dict[str, Inertia] = {}
    fused = model.fuse()
    for host, members in groups.items():
        odd = [b for b in members if is_odd(b.inertia)]
        if odd and (host == WORLD or len(members) > 1):
            new |= {b.name: Inertia() for b in members}
            new |= {} if host == WORLD else {host: fused.body(host).inertia}
            report.remark("inertias that no body has alone, put together over fixed joints", f"body {odd[0].name!r}")
    return replace(model, bodies=tuple(replace(b, inertia=new.get(b.name, b.inertia)) for b in model.bodies))


def is_odd(i: Inertia) -> bool:
    """Would MuJoCo refuse or change it?"""
    moments = np.linalg.eigvalsh(np.array(i.matrix()))
    full = any((i.moments[1], i.moments[2], i.moments[4]))
    flat = moments[0] + moments[1] < moments[2] * (1.0 - 1e-12)
    return bool(flat or moments[0] < 0.0 or (full and moments[0] < SMALLEST * moments[2]))


def bounded(compiler: ET.Element, model: Model, report: LossReport) -> None:
    """MuJoCo wants mass and three moments of every body that a joint moves."""
    for j, b in zip(model.joints, model.bodies, strict=True):
        moments = np.linalg.eigvalsh(np.array(b.inertia.matrix()))
        if j.kind.nv and (b.inertia.mass < SMALLEST or moments[0] < SMALLEST):
            what = f"bodies that move with no mass or no moment about an axis (at least {SMALLEST:g} each is used)"
            report.lose(what, f"body {b.name!r}")
            compiler.set("boundmass", numbers(SMALLEST))
            compiler.set("boundinertia", numbers(SMALLEST))
        if moments[0] + moments[1] < moments[2] * (1.0 - 1e-12):
            compiler.set("balanceinertia", "true")
            report.lose("inertias that no body can have (MuJoCo levels their moments)", f"body {b.name!r}")
