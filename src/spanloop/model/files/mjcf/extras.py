"""What stands beside the bodies of an MJCF file: equality constraints, actuators, sensors."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from typing import Any

from spanloop.math.vector3 import add, scale, times
from spanloop.model.files.loss_report import Account
from spanloop.model.files.xml_writer import child, is_turned, numbers, quaternion
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Actuator, Loop, Placement
from spanloop.model.poses import neutral_poses

ARM = 0.1  # m along the axis of a hinge, between the two points that hold it
HELD = ("fixed", "spherical", "revolute", "distance")
# our settings -> attributes, for each kind of actuator; control · gain + bias · (1, position, velocity) is the force
ACTUATORS: dict[str, dict[str, str]] = {
    "motor": {"gain": "gainprm"},
    "position": {"stiffness": "kp", "damping": "kv"},
    "velocity": {"damping": "kv"},
    "general": {"gain": "gainprm", "bias": "biasprm"},
}
RANGES = {"gear": "gear", "control_range": "ctrlrange", "force_range": "forcerange"}
ALIASES = {"encoder": "jointpos", "tachometer": "jointvel"}
AT_JOINTS = ("jointpos", "jointvel", "jointactuatorfrc")
AT_SITES = ("gyro", "accelerometer", "velocimeter", "magnetometer", "force", "torque", "touch")


def end_sites(inside: dict[str, ET.Element], model: Model) -> None:
    """The ends of loops as sites; a hinge has a second pair along its axis."""
    for x in model.loops:
        if x.kind.name not in HELD:
            continue
        for end, body, place in (("a", x.a, x.placement_a), ("b", x.b, x.placement_b)):
            _site(inside[body], f"{x.name}_{end}", place)
            if x.kind.name == "revolute":
                _site(inside[body], f"{x.name}_{end}2", Placement(place.rotation, _along(x, place)))


def _along(x: Loop, place: Placement):
    kind: Any = x.kind
    return add(place.position, scale(ARM, times(place.rotation, kind.axis)))


def _site(body: ET.Element, name: str, place: Placement) -> None:
    turn = numbers(*quaternion(place.rotation)) if is_turned(place.rotation) else None
    child(body, "site", name=name, pos=numbers(*place.position), quat=turn)


def equalities(root: ET.Element, model: Model, account: Account) -> None:
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
        _loop(equality, x, poses, account)
    for c in model.couplings:
        child(
            equality,
            "joint",
            name=c.name,
            joint1=c.joint,
            joint2=c.source,
            polycoef=numbers(c.offset, c.ratio, 0, 0, 0),
        )


def _loop(equality: ET.Element, x: Loop, poses: dict[str, Placement], account: Account) -> None:
    part = f"{x.name!r} ({x.kind.name})"
    if x.kind.name not in HELD:
        account.lose("loops of a kind that MuJoCo cannot hold", part)
        return
    account.remark("loops, which MuJoCo holds by stiff springs, not exactly", part)
    for flag in ("driven", "switchable"):
        if getattr(x, flag):
            account.lose(f"that the loop is {flag}", part)
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


def actuators(root: ET.Element, model: Model, account: Account) -> None:
    """The model's actuators, and a motor for every other joint that has one: MJCF knows no other way to say it."""
    single = {j.name: j for j in model.joints if j.kind.nv == 1}
    listed = list(model.actuators)
    known = {a.joint for a in listed}
    names = {a.name for a in listed}
    listed += [Actuator(j.name, j.name) for j in single.values() if j.actuated and j.name not in known | names]
    if not listed:
        return
    section = child(root, "actuator")
    for a in listed:
        _actuator(section, a, account, a.joint in single)


def _actuator(section: ET.Element, a: Actuator, account: Account, single: bool) -> None:
    settings = dict(a.settings)
    kind = settings.pop("kind", "motor")
    if not single:
        account.lose("actuators of joints of several freedoms", repr(a.name))
        return
    if kind not in ACTUATORS:
        account.lose("actuators of a kind that MuJoCo has not", f"{a.name!r} ({kind})")
        return
    if kind == "motor" and settings.get("gain") == 1.0:
        del settings["gain"]
    tag = "general" if kind == "general" or "gain" in settings else str(kind)
    element = child(section, tag, name=a.name, joint=a.joint, biastype="affine" if kind == "general" else None)
    for ours, theirs in {**RANGES, **ACTUATORS[str(kind)]}.items():
        if ours in settings:
            value = settings.pop(ours)
            element.set(theirs, numbers(*value) if isinstance(value, tuple) else numbers(value))
    for name in settings:
        account.lose("settings of actuators", f"{name!r} of {a.name!r}")


def sensors(root: ET.Element, inside: dict[str, ET.Element], model: Model, account: Account) -> None:
    """Encoders and the like at joints, others at sites."""
    if not model.sensors:
        return
    section = child(root, "sensor")
    joints = {j.name for j in model.joints if j.kind.nv == 1}
    frames = {f.name for f in model.frames}
    for s in model.sensors:
        tag = ALIASES.get(s.kind, s.kind)
        if tag in AT_JOINTS and s.at in joints:
            element = child(section, tag, name=s.name, joint=s.at)
        elif tag in AT_SITES and s.at != WORLD and s.at in frames | set(inside):
            at = s.at if s.at in frames else f"{s.name}_site"
            if at != s.at:
                child(inside[s.at], "site", name=at)
            element = child(section, tag, name=s.name, site=at)
        else:
            account.lose("sensors of a kind or at a place that MuJoCo has not", f"{s.name!r} ({s.kind} at {s.at!r})")
            continue
        for name, value in s.settings:
            if name in ("noise", "cutoff"):
                element.set(name, numbers(value))
            else:
                account.lose("settings of sensors", f"{name!r} of {s.name!r}")
