"""MJCF's equality constraints, read and written: connect and weld are loops, joint is a coupling.

A tendon equality is one too where its tendons are fixed ones, sums of joint coordinates, of two joints in all.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np

from spanloop.joints import Fixed, JointKind, Spherical
from spanloop.math.vector3 import add, scale, times
from spanloop.model.files.load_notes import ACTS, LoadNotes
from spanloop.model.files.loss_report import LossReport
from spanloop.model.files.mjcf.bodies import Parts, placement
from spanloop.model.files.xml_writer import child, is_turned, numbers, quaternion
from spanloop.model.model import Model
from spanloop.model.orders.mujoco import joint_names
from spanloop.model.parts import Coupling, Loop, Placement
from spanloop.model.poses import neutral_poses
from spanloop.types import Floats3

NEAR = 1e-8  # m or 1, by which our snapped pose may differ from MuJoCo's where both mean the same
ARM = 0.1  # m along the axis of a hinge, between the two points that connect it
WRITABLE = ("fixed", "spherical", "revolute", "distance")


def read_equalities(source: Any, parts: Parts, notes: LoadNotes) -> tuple[list[Loop], list[Coupling]]:
    """Loops of connect and weld, couplings of joint equalities; others are noted."""
    m, kinds = source.model, source.mujoco.mjtEq
    loops: list[Loop] = []
    couplings: list[Coupling] = []
    taken, names = {j.name for j in parts.joints}, joint_names(m)
    for i, element in enumerate(source.spec.equalities):
        kind = kinds(int(m.eq_type[i]))
        name = element.name or f"{kind.name[5:].lower()}{i}"
        while name in taken:
            name += "_"
        taken.add(name)
        where = source.where(element)
        label = f"{name!r} ({where})"
        if not m.eq_active0[i]:
            notes.add("equality constraints that are not active, left out", label)
        elif kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
            loops.append(_read_loop(source, i, name, where, kind == kinds.mjEQ_WELD, parts, notes))
        elif kind not in (kinds.mjEQ_JOINT, kinds.mjEQ_TENDON):
            notes.add(f"{ACTS} equality constraint {kind.name[5:].lower()}", label)
        elif int(m.eq_obj2id[i]) >= 0 and any(m.eq_data[i, 2:5]):
            notes.add(f"{ACTS} equality constraint between joints that is no straight line", label)
        else:
            row = _row(source, i, kind == kinds.mjEQ_TENDON)
            if row is None or len(row) > 2:
                notes.add(f"{ACTS} equality constraint of a tendon that is no sum of two joints", label)
            else:
                couplings.append(_read_row(source, row, float(m.eq_data[i, 0]), name, where, names))
    if loops or couplings:
        notes.add(
            "equality constraints, soft in MuJoCo and exact here", repr(loops[0].name if loops else couplings[0].name)
        )
    return loops, couplings


def _read_loop(source: Any, i: int, name: str, where: str, weld: bool, parts: Parts, notes: LoadNotes) -> Loop:
    m = source.model
    kind: JointKind = Fixed() if weld else Spherical()
    if int(m.eq_objtype[i]) == int(source.mujoco.mjtObj.mjOBJ_SITE):
        ends = []
        for site in (int(m.eq_obj1id[i]), int(m.eq_obj2id[i])):
            ends.append((int(m.site_bodyid[site]), placement(m.site_quat[site], m.site_pos[site], notes)))
        (a, place_a), (b, place_b) = ends
    else:
        a, b = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
        data = m.eq_data[i]
        between = parts.rest[a].inverse() @ parts.rest[b]
        if weld:  # the anchor in body b, and the pose of b's axes there as seen from a
            place_b = Placement(position=tuple(float(x) + 0.0 for x in data[0:3]))  # type: ignore[arg-type]
            place_a = _nearer(between @ place_b, placement(data[6:10], data[3:6], notes))
        else:
            place_a = Placement(position=tuple(float(x) + 0.0 for x in data[0:3]))  # type: ignore[arg-type]
            theirs = Placement(position=tuple(float(x) + 0.0 for x in data[3:6]))  # type: ignore[arg-type]
            seen = Placement(position=(between.inverse() @ place_a).position)
            place_b = _nearer(seen, theirs)
    return Loop(name, kind, parts.names[a], parts.names[b], place_a, place_b, where=where)


def _nearer(ours: Placement, theirs: Placement) -> Placement:
    """Our own pose where it is MuJoCo's up to snapping: loops that close there close exactly here."""
    apart = (
        np.abs(np.subtract(ours.rotation, theirs.rotation)).max(),
        np.abs(np.subtract(ours.position, theirs.position)).max(),
    )
    return ours if max(apart) < NEAR else theirs


def _row(source: Any, i: int, tendons: bool) -> dict[int, float] | None:
    """Factors c of the joints in Σ c (q − q⁰) = a₀; None where a tendon is no sum of joint coordinates."""
    m = source.model
    first, second, ratio = int(m.eq_obj1id[i]), int(m.eq_obj2id[i]), float(m.eq_data[i, 1])
    if not tendons:
        return {first: 1.0} | ({second: -ratio} if second >= 0 else {})
    row: dict[int, float] = {}
    for tendon, factor in ((first, 1.0), (second, -ratio))[: 1 + (second >= 0)]:
        start = int(m.tendon_adr[tendon])
        for w in range(start, start + int(m.tendon_num[tendon])):
            if int(m.wrap_type[w]) != int(source.mujoco.mjtWrap.mjWRAP_JOINT):
                return None
            joint = int(m.wrap_objid[w])
            row[joint] = row.get(joint, 0.0) + factor * float(m.wrap_prm[w])
    return {joint: c for joint, c in row.items() if c != 0.0} or None


def _read_row(source: Any, row: dict[int, float], constant: float, name: str, where: str, names: list[str]) -> Coupling:
    """c₁ (q₁ − q₁⁰) + c₂ (q₂ − q₂⁰) = a₀; without a second joint the first is held."""
    m = source.model
    (first, scale), *others = row.items()
    offset = constant / scale + float(m.qpos0[m.jnt_qposadr[first]])
    for second, factor in others:
        ratio = -factor / scale
        offset -= ratio * float(m.qpos0[m.jnt_qposadr[second]])
        return Coupling(name, names[first], names[second], ratio, offset, where=where)
    return Coupling(name, names[first], offset=offset, where=where)


def write_end_sites(inside: dict[str, ET.Element], model: Model) -> None:
    """The ends of loops as sites; a hinge has a second pair along its axis."""
    for x in model.loops:
        if x.kind.name not in WRITABLE:
            continue
        for end, body, place in (("a", x.a, x.placement_a), ("b", x.b, x.placement_b)):
            _site(inside[body], f"{x.name}_{end}", place)
            if x.kind.name == "revolute":
                _site(inside[body], f"{x.name}_{end}2", Placement(place.rotation, _along(x, place)))


def _along(x: Loop, place: Placement) -> Floats3:
    kind: Any = x.kind
    return add(place.position, scale(ARM, times(place.rotation, kind.axis)))


def _site(body: ET.Element, name: str, place: Placement) -> None:
    turn = numbers(*quaternion(place.rotation)) if is_turned(place.rotation) else None
    child(body, "site", name=name, pos=numbers(*place.position), quat=turn)


def write_equalities(root: ET.Element, model: Model, report: LossReport) -> None:
    """Loops as connect and weld, rods as tendons of constant length, couplings as joint equalities."""
    if not (model.loops or model.couplings):
        return
    rods = [x for x in model.loops if x.kind.name == "distance"]
    if rods:
        tendons = child(root, "tendon")
        for x in rods:
            rod = child(tendons, "spatial", name=x.name)
            for end in "ab":
                child(rod, "site", site=f"{x.name}_{end}")
    equality = child(root, "equality")
    poses = neutral_poses(model)
    for x in model.loops:
        _write_loop(equality, x, poses, report)
    for c in model.couplings:
        child(
            equality,
            "joint",
            name=c.name,
            joint1=c.joint,
            joint2=c.source,
            polycoef=numbers(c.offset, 0.0 if c.source is None else c.ratio, 0, 0, 0),
        )
        if c.switchable:
            report.lose("that the coupling is switchable", repr(c.name))


def _write_loop(equality: ET.Element, x: Loop, poses: dict[str, Placement], report: LossReport) -> None:
    part = f"{x.name!r} ({x.kind.name})"
    if x.kind.name not in WRITABLE:
        report.lose("loops of a kind that MuJoCo cannot hold", part)
        return
    report.remark("loops, which MuJoCo holds by stiff springs, not exactly", part)
    for flag in ("driven", "switchable"):
        if getattr(x, flag):
            report.lose(f"that the loop is {flag}", part)
    ends = {"site1": f"{x.name}_a", "site2": f"{x.name}_b"}
    if x.kind.name == "fixed":
        child(equality, "weld", name=x.name, **ends)
    elif x.kind.name == "distance":
        a, b = ((poses[body] @ place).position for body, place in ((x.a, x.placement_a), (x.b, x.placement_b)))
        kind: Any = x.kind
        child(
            equality, "tendon", name=x.name, tendon1=x.name, polycoef=numbers(kind.length - math.dist(a, b), 0, 0, 0, 0)
        )
    else:
        child(equality, "connect", name=x.name, **ends)
    if x.kind.name == "revolute":
        child(equality, "connect", name=f"{x.name}_2", site1=f"{x.name}_a2", site2=f"{x.name}_b2")
