"""The inputs of linear models by name, and the accelerations that they make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.loops.arguments import actuators, dof_names, dofs_called
from spanloop.model import Model
from spanloop.model.motors import KIND, is_motor
from spanloop.model.parts import Actuator

_LOADS = {"torque": 0, "force": 3}  # "frame.force.x": place in [torque; force]
_TORQUES = {"rad": "N m", "m": "N"}
_OF_MOTORS = {  # settings that act in simulations between a command and the torque, with their units
    "lag": " s", "delay": " s", "friction": " N m", "efficiency": "", "max_torque": " N m", "force_range": " N m",
    "control_range": "", "max_speed": " rad/s",
}  # fmt: skip


@dataclass(frozen=True)
class Input:
    """An input: a torque at the DoF at a place in v, or a load along a world axis at a frame."""

    name: str
    unit: str
    dof: int | None = None
    frame: str = ""
    row: int = 0  # of [torque; force]


def named_inputs(model: Model, names: str | Sequence[str] | None) -> list[Input]:
    """Inputs by name: of joints, DoF, "frame.force.x", "frame.torque" (all three); by default the actuated DoF."""
    if names is None:
        return [_torque(model, k) for k in actuators(model, None, None).dofs]
    given: Any = [names] if isinstance(names, str) else names
    if not isinstance(given, Iterable):
        raise InputError(f"linearize: inputs is {names!r}; expected names, as ['elbow', 'tool.force.x']")
    found = [x for name in given for x in _called(model, name)]
    twice = [x.name for k, x in enumerate(found) if x.name in [y.name for y in found[:k]]]
    if twice:
        raise InputError(f"linearize: inputs name {twice[0]!r} twice")
    return found


def _called(model: Model, name: str) -> list[Input]:
    if not isinstance(name, str):
        raise InputError(f"linearize: an input is {name!r}; expected a name of a joint, a DoF or 'frame.force.x'")
    if name in dof_names(model) or name in [j.name for j in model.joints]:
        return [_torque(model, k) for k in dofs_called(model, name)]
    rest, _, last = name.rpartition(".")
    frame, kind, axes = (rest, last, "xyz") if last in _LOADS else (*_cut(rest), last)
    if kind in _LOADS and axes and axes in "xyz" and frame in _frames(model):
        unit = "N m" if kind == "torque" else "N"
        return [Input(f"{frame}.{kind}.{x}", unit, None, frame, _LOADS[kind] + "xyz".index(x)) for x in axes]
    known = [*dof_names(model), *(f"{x}.{kind}.{axis}" for x in _frames(model) for kind in _LOADS for axis in "xyz")]
    raise InputError(f"linearize: there is no input {name!r}; {nearest(name, known)}")


def _cut(name: str) -> tuple[str, str]:
    frame, _, kind = name.rpartition(".")
    return frame, kind


def _frames(model: Model) -> list[str]:
    return [*(b.name for b in model.bodies), *(f.name for f in model.frames)]


def _torque(model: Model, place: int) -> Input:
    units = [(u, j.driven) for j in model.joints for u in j.kind.units]
    unit, driven = units[place]
    return Input(dof_names(model)[place], f"{unit}/s²" if driven else _TORQUES.get(unit, ""), place)


def input_columns(
    robot: Any, q: np.ndarray, inputs: Sequence[Input], da_dtau: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """∂a/∂u (..., nv, m), the accelerations of all DoF by each input, and the torques at all joints (..., nv, m) that
    do the same; of a driven joint's acceleration none."""
    driven = np.array([j.driven for j in robot.model.joints for _ in range(j.kind.nv)], dtype=bool)
    torques = np.zeros((*da_dtau.shape[:-1], len(inputs)))
    for k, x in enumerate(inputs):
        if x.dof is None:
            torques[..., k] = np.asarray(robot.jacobian(q, x.frame), dtype=float)[..., x.row, :]
        else:
            torques[..., x.dof, k] = 0.0 if driven[x.dof] else 1.0
    torques[..., driven, :] = 0.0  # the motor of a driven joint takes every load along it
    da_du = da_dtau @ torques
    for k, x in enumerate(inputs):
        if x.dof is not None and driven[x.dof]:
            da_du[..., k] = da_dtau[..., x.dof]
    return da_du, torques


def left_out(model: Model, actuator: Actuator) -> list[str]:
    """What an actuator does to a command in simulations and has no part in a linear model, with its numbers."""
    if model.joint(actuator.joint).driven:
        return []
    given = dict(actuator.settings)
    if not is_motor(actuator) or "dynamics" in given:
        return [f"its law, a {given.get('kind', KIND)!r}"]
    none = {"lag": 0.0, "delay": 0.0, "friction": 0.0, "efficiency": 1.0}
    return [f"{x} {_short(given[x])}{unit}" for x, unit in _OF_MOTORS.items() if x in given and given[x] != none.get(x)]


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(list(value))
