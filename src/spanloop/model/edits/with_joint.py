"""with_joint: other limits, losses, springs and flags of joints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from spanloop.errors import InputError, nearest
from spanloop.model import user_input
from spanloop.model.parts import Joint, has_motor

if TYPE_CHECKING:
    from typing import Unpack

    from spanloop.model.model import Model


def with_joint(model: Model, /, *names: str | Iterable[str], **settings: Unpack[user_input.JointSettings]) -> Model:
    """Return the model with other limits, losses or springs of these joints; settings left out stay as they are.

    names: joints, or patterns as "*" and "left_*", which match every joint that moves, except free ones
    settings: limits=(lower, upper), or lower and upper [rad or m], speed [rad/s or m/s] and effort [N m or N], None
        or infinite for no limit; damping [N m s/rad or N s/m], friction [N m or N], armature [kg m² or kg], stiffness
        [N m/rad or N/m] and rest [rad or m] of a spring; driven and actuated. A number is for all DoF of a joint, a
        sequence has one entry for each (rest: one for each coordinate).

    Raises InputError for a name or setting that there is not, with the nearest one, and ModelError for a value that no
    joint can have.

    >>> arm = sl.zoo.puma().with_joint("*", damping=0.1).with_joint("joint2", limits=(-1.5, 1.5), armature=0.02)
    >>> arm.joint("joint2").damping, arm.joint("joint2").upper, arm.joint("joint3").armature
    ((0.1,), (1.5,), (0.0,))
    """
    chosen = {j.name: j for name in user_input.names(names, "with_joint") for j in _matching(model, name)}
    if not chosen:
        raise InputError("with_joint: no joint is named; expected names or a pattern, as with_joint('*', damping=0.1)")
    if not settings:
        listed = ", ".join(user_input.JointSettings.__annotations__)
        raise InputError(f"with_joint: no setting is given; there are {listed}")
    joints = []
    for j in model.joints:
        fields: dict[str, Any] = {}
        if j.name in chosen:
            fields = user_input.joint_settings(settings, j.kind, f"joint {j.name!r}")
            fields.pop("actuated", None)
            unlimited = [name for name, x in user_input.UNLIMITED.items() if set(fields.get(name) or ()) == {x}]
            fields.update(dict.fromkeys(unlimited))
        joints.append(replace(j, **fields) if fields else j)
    changed = replace(model, joints=tuple(joints))
    if "actuated" not in settings:
        return changed
    return changed.actuate(*chosen) if settings["actuated"] else changed.unactuate(*chosen)


def _matching(model: Model, name: str) -> list[Joint]:
    """The joints of a name or pattern."""
    joints = {j.name: j for j in model.joints}
    if name in joints:
        if joints[name].kind.nv == 0:
            raise InputError(f"joint {name!r}: a {joints[name].kind.name} joint has no DoF, hence no such settings")
        return [joints[name]]
    found = [j for j in joints.values() if j.kind.nv and has_motor(j.kind.name) and fnmatchcase(j.name, name)]
    if not found:
        loops = [x.name for x in model.loops]
        if name in loops:
            raise InputError(
                f"with_joint: {name!r} is a loop of model {model.name!r}, which holds no limits, losses or springs; "
                "give these to joints of the tree (Builder.build(cut=...) chooses which joint becomes the loop)"
            )
        moving = " that moves" if "*" in name else ""
        raise InputError(f"model {model.name!r} has no joint {name!r}{moving}; {nearest(name, joints)}")
    return found
