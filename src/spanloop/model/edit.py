"""Edits: each takes a model and gives a new one. The longer ones: locking, fusing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spanloop.errors import InputError, nearest
from spanloop.joints import JointKind
from spanloop.model import given
from spanloop.model.fusing import fuse
from spanloop.model.load.snap import snap_rotation
from spanloop.model.locking import lock
from spanloop.model.model import Model
from spanloop.model.parts import Frame, Joint, Loop, Placement


def without_losses(model: Model) -> Model:
    """The model without damping, friction, armature and springs."""
    joints = (replace(j, damping=(), friction=(), armature=(), stiffness=()) for j in model.joints)
    return replace(model, joints=tuple(joints))


def close(
    model: Model, a: str, b: str, joint: str | JointKind, name: str | None = None, switchable: bool = False
) -> Model:
    """The model with a joint that closes a loop between two frames or bodies (or the world)."""
    start, end = model.frame(a), model.frame(b)
    name = name or f"{a}_{b}"
    owner = f"loop {name!r}"
    if start.body == end.body:
        raise InputError(f"{owner}: {a!r} and {b!r} are both on body {start.body!r}; a loop joins two bodies")
    if name in _joints_and_loops(model):
        raise InputError(f"{owner}: a joint or loop of model {model.name!r} has this name; give another with name=")
    kind = given.joint_kind(joint, owner)
    loop = Loop(name, kind, start.body, end.body, start.placement, end.placement, switchable=switchable)
    return replace(model, loops=(*model.loops, loop))


def opened(model: Model, names: Sequence[str]) -> Model:
    """The model without these loops."""
    known = [x.name for x in model.loops]
    for name in names:
        if name not in known:
            raise InputError(f"model {model.name!r} has no loop {name!r}; {nearest(name, known)}")
    return replace(model, loops=tuple(x for x in model.loops if x.name not in names))


def drive(model: Model, names: Sequence[str]) -> Model:
    """The model with these joints or loops driven."""
    parts = _joints_and_loops(model)
    for name in names:
        if name not in parts:
            raise InputError(f"model {model.name!r} has no joint or loop {name!r}; {nearest(name, parts)}")
        if parts[name].kind.nv == 0:
            raise InputError(f"joint {name!r}: a {parts[name].kind.name} joint has no freedom that could be driven")

    def driven(part):
        return replace(part, driven=True) if part.name in names else part

    return replace(model, joints=tuple(map(driven, model.joints)), loops=tuple(map(driven, model.loops)))


def _joints_and_loops(model: Model) -> dict[str, Joint | Loop]:
    return {**{j.name: j for j in model.joints}, **{x.name: x for x in model.loops}}


def with_frame(model: Model, name: str, body: str, position=(0.0, 0.0, 0.0), rotation=None) -> Model:
    """The model with one more frame; the rotation is None, roll pitch yaw [rad] or a 3x3 matrix."""
    owner = f"frame {name!r}"
    if name in model.body_number or name in [f.name for f in model.frames]:
        raise InputError(f"{owner}: a frame or body of model {model.name!r} has this name; choose another")
    if body not in model.body_number:
        raise InputError(f"{owner}: its body {body!r} is not a body; {nearest(body, model.body_number)}")
    matrix, changed = snap_rotation(given.rotation(rotation, owner))
    frame = Frame(name, body, Placement(matrix, given.three(position, f"{owner}: position")))
    note = (f"{owner}: rotation snapped to exact right angles",) if changed else ()
    return replace(model, frames=(*model.frames, frame), notes=(*model.notes, *note))


def with_gravity(model: Model, gravity: Sequence[float]) -> Model:
    """The model in another field of gravity [m/s²], world axes."""
    return replace(model, gravity=given.three(gravity, f"model {model.name!r}: gravity"))


__all__ = ["close", "drive", "fuse", "lock", "with_frame", "with_gravity", "without_losses"]
