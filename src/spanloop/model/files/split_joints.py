"""Joints with two DoF as two joints with a body without mass between, for formats that have only single ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spanloop.errors import ModelError
from spanloop.joints import Prismatic, Revolute
from spanloop.math.spatial import Transform
from spanloop.model.edits.rename import all_names
from spanloop.model.files.loss_report import LossReport
from spanloop.model.model import Model
from spanloop.model.parts import Body, Joint, Placement

_PER_DOF = ("damping", "friction", "armature", "stiffness", "rest")
_LIMITS = ("lower", "upper", "speed", "effort")


def without_offsets(model: Model) -> Model:
    """The model with the constant angles in front of coordinates moved into the joints' placements."""
    return replace(model, joints=tuple(map(_without_offset, model.joints)))


def _without_offset(j: Joint) -> Joint:
    kind: Any = j.kind
    if not getattr(kind, "offset", 0.0):
        return j
    turn: Transform = Revolute(kind.axis).transform((kind.offset,))
    placement = j.placement @ Placement(turn.rotation.matrix(), turn.translation)
    return replace(j, kind=replace(kind, offset=0.0), placement=placement)


def split(model: Model, kinds: tuple[str, ...], report: LossReport) -> Model:
    """The model with cylindrical and universal joints (those of the given kinds) as two joints each."""
    bodies, joints = list(model.bodies), []
    for j in model.joints:
        if j.kind.name not in kinds:
            joints.append(j)
            continue
        first, second, between = _two(j, model)
        bodies.append(between)
        joints += [first, second]
        report.remark(
            "joints with two DoF, written as two joints with a body without mass between", f"joint {j.name!r}"
        )
    taken = {a.joint for a in model.actuators} | {s.at for s in model.sensors}
    for j in model.joints:
        if j.kind.name in kinds and j.name in taken:
            report.lose("actuators and sensors of joints that are split", f"joint {j.name!r}")
    gone = {j.name for j in model.joints if j.kind.name in kinds}
    return replace(
        model,
        bodies=tuple(bodies),
        joints=tuple(joints),
        actuators=tuple(a for a in model.actuators if a.joint not in gone),
        sensors=tuple(s for s in model.sensors if s.at not in gone),
    )


def _two(j: Joint, model: Model) -> tuple[Joint, Joint, Body]:
    kind: Any = j.kind
    last = Prismatic(kind.axis) if kind.name == "cylindrical" else Revolute(kind.second_axis)
    names = [f"{j.name}_1", f"{j.name}_2"]
    between = f"{j.name}_between"
    taken = set(all_names(model))
    for name in (*names, between):
        if name in taken:
            raise ModelError(f"joint {j.name!r} is to be split, but {name!r} is taken; rename that")
    options: list[dict[str, Any]] = [
        {key: (getattr(j, key)[k],) for key in _PER_DOF}
        | {key: (getattr(j, key)[k],) for key in _LIMITS if getattr(j, key) is not None}
        | {"actuated": j.actuated, "driven": j.driven}
        for k in range(2)
    ]
    first = Joint(names[0], Revolute(kind.axis), j.parent, between, j.placement, where=j.where, **options[0])
    second = Joint(names[1], last, between, j.child, where=j.where, **options[1])
    return first, second, Body(between)
