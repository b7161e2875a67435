"""MJCF's actuators and sensors, read and written: those of a joint, a body or a site."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

from spanloop.model.files.load_notes import ACTS, LoadNotes
from spanloop.model.files.loss_report import LossReport
from spanloop.model.files.xml_writer import child, numbers
from spanloop.model.model import Model
from spanloop.model.orders.mujoco import KINDS, body_names, joint_names
from spanloop.model.parts import WORLD, Actuator, Sensor

DOFS = {"free": 6, "ball": 3, "slide": 1, "hinge": 1}
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


def read_actuators(source: Any, notes: LoadNotes) -> Iterator[Actuator]:
    """Actuators on joints. Settings: kind, gear, and what the kind needs (gain, stiffness, damping, bias)."""
    m, mujoco = source.model, source.mujoco
    names = joint_names(m)
    seen: set[str] = set()
    for i in range(len(m.actuator_trntype)):
        name = m.actuator(i).name or f"actuator{i}"
        while name in seen:
            name += "_"
        seen.add(name)
        way = mujoco.mjtTrn(int(m.actuator_trntype[i]))
        if way not in (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT):
            notes.add(f"actuators through a {way.name[6:].lower()} left out", repr(name))
            continue
        for array in ("actuator_armature", "actuator_damping"):
            if hasattr(m, array) and getattr(m, array)[i].any():
                notes.add(f"{ACTS} {array[9:]} of an actuator", repr(name))
        joint = int(m.actuator_trnid[i, 0])
        n = DOFS[KINDS[int(m.jnt_type[joint])]]
        gear = tuple(float(x) for x in m.actuator_gear[i, :n])
        settings = {"kind": "", "gear": gear[0] if n == 1 else gear, **_law(source, i), **_ranges(m, i)}
        yield Actuator(name, names[joint], tuple(settings.items()))


def _law(source: Any, i: int) -> dict[str, Any]:
    """force = gain · control + bias₀ + bias₁ · length + bias₂ · velocity, by name where it has one."""
    m, mujoco = source.model, source.mujoco
    gain, bias = float(m.actuator_gainprm[i, 0]), tuple(float(x) for x in m.actuator_biasprm[i, :3])
    dynamics = mujoco.mjtDyn(int(m.actuator_dyntype[i]))
    activation: dict[str, Any] = {} if dynamics == mujoco.mjtDyn.mjDYN_NONE else {"dynamics": dynamics.name[6:].lower()}
    gain_kind = mujoco.mjtGain(int(m.actuator_gaintype[i]))
    bias_kind = mujoco.mjtBias(int(m.actuator_biastype[i]))
    if gain_kind != mujoco.mjtGain.mjGAIN_FIXED or bias_kind not in (
        mujoco.mjtBias.mjBIAS_NONE,
        mujoco.mjtBias.mjBIAS_AFFINE,
    ):
        return {"kind": gain_kind.name[7:].lower(), **activation}
    if bias_kind == mujoco.mjtBias.mjBIAS_NONE:
        return {"kind": "motor", "gain": gain, **activation}
    if bias[0] == 0.0 and bias[1] == -gain:
        return {"kind": "position", "stiffness": gain, "damping": -bias[2] + 0.0, **activation}
    if bias[0] == bias[1] == 0.0 and bias[2] == -gain:
        return {"kind": "velocity", "damping": gain, **activation}
    return {"kind": "general", "gain": gain, "bias": bias, **activation}


def _ranges(m: Any, i: int) -> dict[str, Any]:
    found = {}
    k = int(m.actuator_ctrladr[i]) if hasattr(m, "actuator_ctrladr") else i
    if k < len(m.actuator_ctrllimited) and m.actuator_ctrllimited[k]:
        found["control_range"] = tuple(float(x) for x in m.actuator_ctrlrange[k])
    if i < len(m.actuator_forcelimited) and m.actuator_forcelimited[i]:
        found["force_range"] = tuple(float(x) for x in m.actuator_forcerange[i])
    return found


def read_sensors(source: Any, sites: list[str], notes: LoadNotes) -> Iterator[Sensor]:
    """Sensors at a joint, body or site, by MuJoCo's name of their kind."""
    m, objects = source.model, source.mujoco.mjtObj
    joints, bodies = joint_names(m), body_names(m)
    places = {
        int(objects.mjOBJ_JOINT): joints,
        int(objects.mjOBJ_BODY): bodies,
        int(objects.mjOBJ_XBODY): bodies,
        int(objects.mjOBJ_SITE): sites,
    }
    seen: set[str] = set()
    for i in range(m.nsensor):
        kind = source.mujoco.mjtSensor(int(m.sensor_type[i])).name[7:].lower()
        name = m.sensor(i).name or f"sensor{i}"
        while name in seen:
            name += "_"
        seen.add(name)
        known = places.get(int(m.sensor_objtype[i]))
        if known is None:
            notes.add("sensors of neither joint, body nor site left out", f"{name!r} ({kind})")
            continue
        extra = {"noise": float(m.sensor_noise[i])} if m.sensor_noise[i] else {}
        if m.sensor_cutoff[i]:
            extra["cutoff"] = float(m.sensor_cutoff[i])
        yield Sensor(name, kind, known[int(m.sensor_objid[i])], tuple(extra.items()))


def write_actuators(root: ET.Element, model: Model, report: LossReport) -> None:
    """The model's actuators, and a motor for every other actuated joint, which MJCF describes in no other way."""
    single = {j.name: j for j in model.joints if j.kind.nv == 1}
    listed = list(model.actuators)
    known = {a.joint for a in listed}
    names = {a.name for a in listed}
    listed += [Actuator(j.name, j.name) for j in single.values() if j.actuated and j.name not in known | names]
    if not listed:
        return
    section = child(root, "actuator")
    for a in listed:
        _write_actuator(section, a, report, a.joint in single)


def _write_actuator(section: ET.Element, a: Actuator, report: LossReport, single: bool) -> None:
    settings = dict(a.settings)
    kind = settings.pop("kind", "motor")
    if not single:
        report.lose("actuators of joints with several DoF", repr(a.name))
        return
    if kind not in ACTUATORS:
        report.lose("actuators of a kind that MuJoCo has not", f"{a.name!r} ({kind})")
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
        report.lose("settings of actuators", f"{name!r} of {a.name!r}")


def write_sensors(root: ET.Element, inside: dict[str, ET.Element], model: Model, report: LossReport) -> None:
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
            report.lose("sensors of a kind or at a place that MuJoCo has not", f"{s.name!r} ({s.kind} at {s.at!r})")
            continue
        for name, value in s.settings:
            if name in ("noise", "cutoff"):
                element.set(name, numbers(value))
            else:
                report.lose("settings of sensors", f"{name!r} of {s.name!r}")
