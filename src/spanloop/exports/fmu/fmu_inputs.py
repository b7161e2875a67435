"""The inputs of a unit: numbers of a controller, torques at joints, and forces on bodies, in this order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spanloop.errors import InputError, nearest
from spanloop.exports.control_inputs import control_inputs, refuse_without
from spanloop.model import Model
from spanloop.simulation.controllers import Callback, Controller, controller_of
from spanloop.simulation.traced_kernels import takes_inputs

AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Input:
    """One input: its name, its unit, what it is, its value at the start, and whether the user chose its name."""

    name: str
    unit: str
    description: str
    value: float = 0.0
    is_named: bool = False


class UnitInputs(Controller):
    """A controller that adds the torques of some inputs to those of another controller."""

    def __init__(self, model: Model, joints: Sequence[str], controller: Controller | None, own: int, forces: int):
        self.model, self.joints, self.controller, self.own = model, tuple(joints), controller, own
        self.first = own  # of the torques
        self.count = sum(model.joint(name).kind.nv for name in joints)
        self.inputs = own + self.count + forces
        self.memory = controller.memory if controller else 0

    def start(self, model: Model) -> Sequence[float]:
        return self.controller.start(model) if self.controller else ()

    def torques(self, t: Any, q: Any, v: Any, u: Any, z: Any) -> list[Any]:
        tau: list[Any] = [0.0] * self.model.nv
        if self.controller:
            found = self.controller.torques(t, q, v, u[: self.own], z)
            tau = _all(self.model, found)
        at = self.first
        for name in self.joints:
            s = self.model.v_slice(name)
            more = u[at : at + s.stop - s.start]
            tau[s] = [a + b for a, b in zip(tau[s], more, strict=True)]
            at += s.stop - s.start
        return tau

    def update(self, t: Any, h: Any, q: Any, v: Any, u: Any, z: Any) -> Any:
        return self.controller.update(t, h, q, v, u[: self.own], z) if self.controller else z

    def joint_gains(self) -> Any:
        known = getattr(self.controller, "joint_gains", None)
        return known() if known else None

    def joint_targets(self, t: Any) -> Any:
        known = getattr(self.controller, "joint_targets", None)
        return known(t) if known else None


def _all(model: Model, found: Any) -> list[Any]:
    """Torques (nv), also of joints by name."""
    if not isinstance(found, Mapping):
        return list(found)
    tau: list[Any] = [0.0] * model.nv
    for name, x in found.items():
        tau[model.v_slice(name)] = list(x) if hasattr(x, "__len__") else [x]
    return tau


@dataclass(frozen=True)
class Actions:
    """What acts on a model in a unit, as arguments of sl.simulate, and the names of the inputs."""

    controller: UnitInputs
    forces: Any
    inputs: tuple[Input, ...]


def actions(model: Model, controller: Any, inputs: Any, torques: Any, forces: Any) -> Actions:
    """The actions of a unit.

    inputs: those of the controller, as control_inputs.py reads them. torques: joints with torque inputs; by default
    all that are actuated, or none beside a controller. forces: names of bodies with force inputs, or
    what sl.simulate takes.
    """
    if isinstance(controller, Callback):
        raise InputError("export: a callback is Python code, which a unit does not have; give a controller that traces")
    refuse_without(controller, inputs, forces)
    named = _controller_inputs(model, controller, inputs)
    joints = _joints(model, torques, controller)
    bodies = _bodies(model, forces)
    own = None if controller is None else controller_of(controller)
    for_forces = own is not None and own.inputs == 0 and callable(forces) and takes_inputs(forces)
    if own is not None and own.inputs not in (None, len(named)) and not for_forces:
        raise InputError(
            f"export: the controller takes {own.inputs} inputs, but {len(named)} are given; "
            f"expected inputs=[{own.inputs} numbers or names]"
        )
    made = UnitInputs(model, joints, own, len(named), 6 * len(bodies))
    every = (*named, *_of_torques(model, joints), *(x for b in bodies for x in _of_body(b)))
    function = _forces_of_inputs(bodies, len(every) - 6 * len(bodies)) if bodies else forces
    return Actions(made, None if _is_names(forces) and not bodies else function, every)


def _controller_inputs(model: Model, controller: Any, inputs: Any) -> tuple[Input, ...]:
    if inputs is None:
        return ()
    if controller is None:
        raise InputError("export: inputs= are those of a controller; no controller is given")
    found = control_inputs(model, inputs)
    return tuple(Input(x.name, x.unit, "input of the controller", x.value, x.is_named) for x in found)


def _joints(model: Model, torques: Any, controller: Any) -> list[str]:
    """Joints with torque inputs."""
    if torques is None:
        return [] if controller is not None else [j.name for j in model.joints if j.kind.nv and j.actuated]
    found = [model.joint(name) for name in _names(torques, "torques")]
    for j in found:
        if not j.kind.nv:
            raise InputError(f"export: joint {j.name!r} does not move; it takes no torque")
    return list(dict.fromkeys(j.name for j in found))


def _is_names(forces: Any) -> bool:
    return isinstance(forces, str | list | tuple)


def _bodies(model: Model, forces: Any) -> list[str]:
    """Bodies with force inputs."""
    if not _is_names(forces):
        return []
    known = [b.name for b in model.bodies]
    for name in _names(forces, "forces"):
        if name not in known:
            raise InputError(f"export: forces names {name!r}, which is not a body; {nearest(name, known)}")
    return list(dict.fromkeys(_names(forces, "forces")))


def _names(given: Any, what: str) -> list[str]:
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, list | tuple) else None
    if names is None or not all(isinstance(x, str) for x in names):
        raise InputError(f"export: {what} is {given!r}; expected a list of names")
    return names


def _of_torques(model: Model, joints: Sequence[str]) -> list[Input]:
    from spanloop.trajectory.files import labels

    words, out = labels.dofs(model), []
    for name in joints:
        joint = model.joint(name)
        for k, unit in zip(range(model.nv)[model.v_slice(name)], joint.kind.units, strict=True):
            part = labels.joined(*words[k])
            if joint.driven:
                accelerated = f"{unit}/s2" if unit else "1/s2"
                out.append(Input(f"acceleration.{part}", accelerated, f"given acceleration of the joint {name}"))
            else:
                out.append(Input(f"tau.{part}", TORQUES.get(unit, ""), f"torque or force at the joint {name}"))
    return out


TORQUES = {"rad": "N.m", "m": "N"}


def _of_body(body: str) -> list[Input]:
    where = f"on the body {body}, at its origin in world axes"
    return [
        *(Input(f"torque.{body}.{a}", "N.m", f"torque {where}") for a in AXES),
        *(Input(f"force.{body}.{a}", "N", f"force {where}") for a in AXES),
    ]


def _forces_of_inputs(bodies: Sequence[str], first: int) -> Callable[..., dict[str, Any]]:
    """The forces on bodies from the inputs of a step, six each from number `first` on."""

    def forces(t: Any, q: Any, v: Any, u: Any) -> dict[str, Any]:
        return {body: u[first + 6 * k : first + 6 * k + 6] for k, body in enumerate(bodies)}

    return forces
