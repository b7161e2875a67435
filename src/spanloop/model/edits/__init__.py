"""Edits: each takes a model and gives a new one. The longer ones have files of their own: locking, fusing, joining,
removing, mirroring, scaling, renaming, zeroing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spanloop.errors import InputError, nearest
from spanloop.joints import JointKind
from spanloop.model import motors, user_input
from spanloop.model.edits.attach import attach, weld
from spanloop.model.edits.fuse import fuse
from spanloop.model.edits.lock import lock
from spanloop.model.edits.mirror import mirror
from spanloop.model.edits.remove import remove
from spanloop.model.edits.rename import rename
from spanloop.model.edits.scale import scale
from spanloop.model.edits.zero import zeroed
from spanloop.model.files.inertia_check import possible
from spanloop.model.model import Model
from spanloop.model.parts import Actuator, Frame, Inertia, Joint, Loop, Placement, Sensor
from spanloop.model.snap import snap_rotation


def without_losses(model: Model) -> Model:
    """The model without damping, friction, armature and springs, and without those of its motors."""
    actuators = tuple(map(motors.without_losses, model.actuators))
    joints = (replace(j, damping=(), friction=(), armature=(), stiffness=()) for j in model.joints)
    return replace(model, joints=tuple(joints), actuators=actuators)


def close(
    model: Model,
    a: str,
    b: str,
    joint: str | JointKind,
    name: str | None = None,
    switchable: bool = False,
    driven: bool = False,
) -> Model:
    """The model with a joint that closes a loop between two frames or bodies (or the world)."""
    start, end = model.frame(a), model.frame(b)
    name = name or f"{a}_{b}"
    owner = f"loop {name!r}"
    if start.body == end.body:
        raise InputError(f"{owner}: {a!r} and {b!r} are both on body {start.body!r}; a loop joins two bodies")
    if name in _joints_and_loops(model):
        raise InputError(f"{owner}: a joint or loop of model {model.name!r} has this name; give another with name=")
    kind = user_input.joint_kind(joint, owner)
    loop = Loop(name, kind, start.body, end.body, start.placement, end.placement, switchable=switchable)
    closed = replace(model, loops=(*model.loops, loop))
    return drive(closed, [name]) if driven else closed


def opened(model: Model, names: Sequence[str]) -> Model:
    """The model without these loops."""
    _must_have(model, "loop", names, [x.name for x in model.loops])
    return replace(model, loops=tuple(x for x in model.loops if x.name not in names))


def drive(model: Model, names: Sequence[str]) -> Model:
    """The model with these joints or loops driven."""
    parts = _joints_and_loops(model)
    for name in names:
        if name not in parts:
            raise InputError(f"model {model.name!r} has no joint or loop {name!r}; {nearest(name, parts)}")
        if parts[name].kind.nv == 0:
            sort = "joint" if isinstance(parts[name], Joint) else "loop"
            raise InputError(f"{sort} {name!r}: a {parts[name].kind.name} joint has no freedom that could be driven")

    def driven(part):
        return replace(part, driven=True) if part.name in names else part

    return replace(model, joints=tuple(map(driven, model.joints)), loops=tuple(map(driven, model.loops)))


def actuate(model: Model, names: Sequence[str], only: bool = False) -> Model:
    """The model with these joints actuated; only: and no other joint."""
    changed = _with_actuated(model, names, True)
    return passive(changed, [name for name in changed.actuated if name not in names]) if only else changed


def passive(model: Model, names: Sequence[str]) -> Model:
    """The model with these joints passive; their actuators go, with a note."""
    gone = [a for a in model.actuators if a.joint in names]
    notes = (f"actuator {a.name!r}: left out, its joint {a.joint!r} is passive" for a in gone)
    kept = tuple(a for a in model.actuators if a not in gone)
    return replace(_with_actuated(model, names, False), actuators=kept, notes=(*model.notes, *notes))


def _with_actuated(model: Model, names: Sequence[str], actuated: bool) -> Model:
    for name in names:
        kind = model.joint(name).kind
        if kind.nv == 0:
            word = "actuated" if actuated else "passive"
            raise InputError(f"joint {name!r}: a {kind.name} joint has no freedom that could be {word}")
    joints = (replace(j, actuated=actuated) if j.name in names else j for j in model.joints)
    return replace(model, joints=tuple(joints))


def _joints_and_loops(model: Model) -> dict[str, Joint | Loop]:
    return {**{j.name: j for j in model.joints}, **{x.name: x for x in model.loops}}


def with_frame(model: Model, name: str, body: str, position=(0.0, 0.0, 0.0), rotation=None) -> Model:
    """The model with one more frame; the rotation is None, roll pitch yaw [rad] or a 3x3 matrix."""
    owner = f"frame {name!r}"
    if name in model.body_number or name in [f.name for f in model.frames]:
        raise InputError(f"{owner}: a frame or body of model {model.name!r} has this name; choose another")
    if body not in model.body_number:
        raise InputError(f"{owner}: its body {body!r} is not a body; {nearest(body, model.body_number)}")
    matrix, changed = snap_rotation(user_input.rotation(rotation, owner))
    frame = Frame(name, body, Placement(matrix, user_input.three(position, f"{owner}: position")))
    note = (f"{owner}: rotation snapped to exact right angles",) if changed else ()
    return replace(model, frames=(*model.frames, frame), notes=(*model.notes, *note))


def with_gravity(model: Model, gravity: Sequence[float]) -> Model:
    """The model in another field of gravity [m/s²], world axes."""
    return replace(model, gravity=user_input.three(gravity, f"model {model.name!r}: gravity"))


def with_inertia(model: Model, body: str, mass=None, center=None, inertia=None) -> Model:
    """The model with another inertia of a body; what is not given stays."""
    old, owner = model.body(body), f"body {body!r}"
    new = Inertia(
        old.inertia.mass if mass is None else user_input.number(mass, f"{owner}: mass"),
        old.inertia.center if center is None else user_input.three(center, f"{owner}: center"),
        old.inertia.moments if inertia is None else user_input.moments(inertia, owner),
    )
    possible(new, owner)
    bodies = (replace(b, inertia=new) if b is old else b for b in model.bodies)
    return replace(model, bodies=tuple(bodies))


def with_actuator(model: Model, name: str, joint: str, settings: Mapping[str, Any]) -> Model:
    """The model with one more actuator, on a joint that moves."""
    kind = model.joint(joint).kind
    if kind.nv == 0:
        raise InputError(f"actuator {name!r}: joint {joint!r} is fixed; there is nothing to move")
    return replace(model, actuators=(*model.actuators, Actuator(name, joint, tuple(settings.items()))))


def with_sensor(model: Model, name: str, kind: str, at: str, settings: Mapping[str, Any]) -> Model:
    """The model with one more sensor, at a joint, body or frame."""
    if not isinstance(kind, str) or not kind:
        raise InputError(f"sensor {name!r}: kind is {kind!r}; expected a word, as 'encoder'")
    return replace(model, sensors=(*model.sensors, Sensor(name, kind, at, tuple(settings.items()))))


def without_actuators(model: Model, names: Sequence[str]) -> Model:
    """The model without these actuators."""
    _must_have(model, "actuator", names, [a.name for a in model.actuators])
    return replace(model, actuators=tuple(a for a in model.actuators if a.name not in names))


def without_sensors(model: Model, names: Sequence[str]) -> Model:
    """The model without these sensors."""
    _must_have(model, "sensor", names, [s.name for s in model.sensors])
    return replace(model, sensors=tuple(s for s in model.sensors if s.name not in names))


def _must_have(model: Model, what: str, names: Sequence[str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"model {model.name!r} has no {what} {name!r}; {nearest(name, known)}")


__all__ = [
    "actuate",
    "attach",
    "close",
    "drive",
    "fuse",
    "lock",
    "mirror",
    "opened",
    "passive",
    "remove",
    "rename",
    "scale",
    "weld",
    "with_actuator",
    "with_frame",
    "with_gravity",
    "with_inertia",
    "with_sensor",
    "without_actuators",
    "without_losses",
    "without_sensors",
    "zeroed",
]
