"""Targets and gains of joints, by name or as arrays, for control laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import InputError, UnsupportedError
from spanloop.joints import JointKind
from spanloop.model import Model
from spanloop.model.parts import Joint
from spanloop.simulation.control.motion_paths import Path, hold, path


@dataclass(frozen=True)
class Goal:
    """Paths of joints, in the model's order, each with the part of the inputs that it reads."""

    model: Model
    paths: tuple[tuple[Joint, Path, slice], ...] = ()
    inputs: int = 0

    @property
    def joints(self) -> set[str]:
        """Names of the joints that have a target."""
        return {joint.name for joint, _, _ in self.paths}

    @property
    def moves(self) -> bool:
        """Whether a target is a function of time; inputs are constant during a step."""
        return any(map(_moves, self.paths))

    def at(self, t: Any) -> tuple[list[Any], list[Any]]:
        """Position and rate (nv each) of the targets that are functions of time, 0 elsewhere."""
        x, rate = [0.0] * self.model.nv, [0.0] * self.model.nv
        for joint, aim, _ in filter(_moves, self.paths):
            sv = self.model.v_slice(joint.name)
            x[sv], rate[sv], _ = aim(t)
        return x, rate

    def miss(self, t: Any, q: Any, v: Any, u: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """The errors of displacement and rate (nv), and the target's acceleration (nv).

        The displacement leads from q to the target; joints without a target have zeros.
        """
        e, rate, a = ([0.0] * self.model.nv for _ in range(3))
        for joint, aim, mine in self.paths:
            sq, sv = self.model.q_slice(joint.name), self.model.v_slice(joint.name)
            x, dx, ddx = aim(t, u[mine])
            e[sv] = joint.kind.minus(tuple(x), tuple(q[sq]))
            zeros = [0.0] * joint.kind.nv
            rate[sv] = [w - r for w, r in zip(zeros if aim.constant else dx, v[sv], strict=True)]
            a[sv] = zeros if aim.constant else ddx
        return e, rate, a


def _moves(part: tuple[Joint, Path, slice]) -> bool:
    """Whether a joint's target is a function of time, and the way to it a difference of coordinates."""
    joint, aim, mine = part
    return not aim.constant and mine.start == mine.stop and type(joint.kind).minus is JointKind.minus


def goal(model: Model, target: Any, who: str) -> Goal:
    """Targets of joints: {"elbow": number, numbers or path}, coordinates q (nq), or one path of all nq coordinates."""
    if isinstance(target, Mapping):
        found = {model.joint(n).name: _as_path(x, f"{who}: target of joint {n!r}") for n, x in target.items()}
        paths, inputs = [], 0
        for joint in model.joints:
            if joint.name in found:
                aim = found[joint.name]
                paths.append((joint, aim, slice(inputs, inputs + aim.inputs)))
                inputs += aim.inputs
    else:
        whole = _as_path(target, f"{who}: target")
        if whole.size != model.nq:
            raise InputError(
                f"{who}: target has {whole.size} numbers; expected nq = {model.nq}, or {{'joint': target}}"
            )
        joints = [model.joint(name) for name in controllable(model)]
        paths = [(j, _part(whole, model.q_slice(j.name)), slice(0, whole.inputs)) for j in joints]
        inputs = whole.inputs
    for joint, aim, _ in paths:
        _check(model, joint, aim, who)
    if not paths:
        raise InputError(f"{who}: no joint has a target")
    return Goal(model, tuple(paths), inputs)


def controllable(model: Model) -> tuple[str, ...]:
    """Names of the joints at which a controller can act."""
    return tuple(name for name in model.actuated if not model.joint(name).driven)


def gains(model: Model, value: Any, owner: str) -> list[float]:
    """Gains (nv), not negative: from one for all controllable joints, by name, or nv of them."""
    out = [0.0] * model.nv
    able = controllable(model)
    if isinstance(value, Mapping):
        for name, x in value.items():
            s = model.v_slice(name)
            out[s] = _gain(x, s.stop - s.start, f"{owner} of joint {name!r}")
    elif np.ndim(value) == 0:
        for name in able:
            s = model.v_slice(name)
            out[s] = _gain(value, s.stop - s.start, owner)
    else:
        out = _gain(value, model.nv, owner)
    for joint in model.joints:
        if joint.name not in able and any(out[model.v_slice(joint.name)]):
            raise InputError(f"{owner}: joint {joint.name!r} is {_unable(joint)}; only actuated joints take gains")
    return out


def _gain(value: Any, n: int, owner: str) -> list[float]:
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.shape not in ((), (n,)) or not np.isfinite(array).all():
        raise InputError(f"{owner} is {value!r}; expected {'a finite number' if n == 1 else f'{n} finite numbers'}")
    if (array < 0.0).any():
        raise InputError(f"{owner} is {value!r}; must be >= 0")
    return [float(x) for x in np.broadcast_to(array, (n,))]


def _as_path(x: Any, owner: str) -> Path:
    if isinstance(x, Path):
        return x
    if callable(x):
        return path(x)
    array = np.atleast_1d(np.asarray(x))
    if array.dtype.kind not in "fiu" or array.ndim != 1 or not np.isfinite(array).all():
        raise InputError(f"{owner} is {x!r}; expected finite numbers or a path")
    return hold(array)


def _part(whole: Path, s: slice) -> Path:
    def motion(t: Any, u: Any) -> Any:
        x, v, a = whole(t, u)
        return x[s], v[s], a[s]

    return Path(s.stop - s.start, motion, constant=whole.constant)


def _check(model: Model, joint: Joint, aim: Path, who: str) -> None:
    if joint.name not in controllable(model):
        raise InputError(f"{who}: joint {joint.name!r} is {_unable(joint)}; only actuated joints take targets")
    if aim.size != joint.kind.nq:
        raise InputError(
            f"{who}: the target of joint {joint.name!r} has {aim.size} numbers; "
            f"a {joint.kind.name} joint has {joint.kind.nq} coordinates"
        )
    if joint.kind.nq != joint.kind.nv and not aim.constant:
        raise UnsupportedError(
            f"{who}: joint {joint.name!r} is {joint.kind.name}; a path of its {joint.kind.nq} coordinates has no "
            f"rates of its {joint.kind.nv} degrees of freedom. Give it a constant target"
        )


def _unable(joint: Joint) -> str:
    return "fixed" if not joint.kind.nv else "driven" if joint.driven else "not actuated"


def every_joint_controlled(model: Model, who: str) -> None:
    """Refuse models with a joint without a torque, for laws that invert the dynamics of the whole tree."""
    for joint in model.joints:
        if joint.kind.nv and joint.name not in controllable(model):
            raise UnsupportedError(
                f"{who}: joint {joint.name!r} is {_unable(joint)}; {who} needs a torque at every joint. Use control.pd"
            )


def has_loops(model: Model) -> bool:
    """Whether joints depend on each other, by loops or couplings."""
    return bool(model.loops or model.couplings)
