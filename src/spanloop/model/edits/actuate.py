"""Drive and actuate: which joints and loops follow a prescribed acceleration, which joints carry a motor torque."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from spanloop.errors import InputError, nearest
from spanloop.model import user_input
from spanloop.model.parts import Joint, Loop

if TYPE_CHECKING:
    from spanloop.model.model import Model

_Part = TypeVar("_Part", Joint, Loop)


def drive(model: Model, *names: str | Iterable[str]) -> Model:
    """Return the model with these joints or loops driven: the caller prescribes their acceleration.

    names: joints or loops with at least one DoF. Raises InputError for a name that the model does not have and for a
    joint without DoF.

    >>> sl.zoo.puma().drive("joint1", "joint2").driven
    ('joint1', 'joint2')
    """
    parts: dict[str, Joint | Loop] = {j.name: j for j in model.joints} | {x.name: x for x in model.loops}
    chosen = user_input.names(names, "drive")
    for name in chosen:
        if name not in parts:
            raise InputError(f"model {model.name!r} has no joint or loop {name!r}; {nearest(name, parts)}")
        if parts[name].kind.nv == 0:
            what = "joint" if isinstance(parts[name], Joint) else "loop"
            raise InputError(f"{what} {name!r}: a {parts[name].kind.name} joint has no DoF that could be driven")

    def driven(part: _Part) -> _Part:
        return replace(part, driven=True) if part.name in chosen else part

    return replace(model, joints=tuple(map(driven, model.joints)), loops=tuple(map(driven, model.loops)))


def actuate(model: Model, *joints: str | Iterable[str], only: bool = False) -> Model:
    """Return the model with these joints actuated: a motor can apply a torque to them.

    joints: names of joints with at least one DoF; only: make every other joint passive (see unactuate).
    `model.actuated` lists the actuated joints.

    >>> sl.zoo.five_bar().actuate("drive1", only=True).actuated
    ('drive1',)
    """
    chosen = user_input.names(joints, "actuate")
    changed = _with_actuated(model, chosen, True)
    return unactuate(changed, [name for name in changed.actuated if name not in chosen]) if only else changed


def unactuate(model: Model, *joints: str | Iterable[str]) -> Model:
    """Return the model with these joints passive: they carry no motor torque.

    Their actuators are removed, with a note each.

    >>> sl.zoo.pendulum(2).unactuate("hinge2").actuated
    ('hinge1',)
    """
    chosen = user_input.names(joints, "unactuate")
    removed = [a for a in model.actuators if a.joint in chosen]
    notes = (f"actuator {a.name!r}: left out, its joint {a.joint!r} is passive" for a in removed)
    kept = tuple(a for a in model.actuators if a not in removed)
    return replace(_with_actuated(model, chosen, False), actuators=kept, notes=(*model.notes, *notes))


def _with_actuated(model: Model, names: tuple[str, ...], actuated: bool) -> Model:
    for name in names:
        kind = model.joint(name).kind
        if kind.nv == 0:
            word = "actuated" if actuated else "passive"
            raise InputError(f"joint {name!r}: a {kind.name} joint has no DoF that could be {word}")
    joints = (replace(j, actuated=actuated) if j.name in names else j for j in model.joints)
    return replace(model, joints=tuple(joints))
