"""The outputs of linear models: names of quantities and functions of the state, and their rows of C and D.

A row of C has the change of an output along each state's direction (dq, dv, da), a row of D along each input's
(0, 0, da).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.derivatives.batched_directions import along_directions
from spanloop.derivatives.closed_dynamics import ClosedDerivatives
from spanloop.errors import InputError, nearest
from spanloop.linear.loop_force_rows import loop_force_changes
from spanloop.linear.output_functions import function_changes
from spanloop.loops.arguments import dof_names, dofs_called
from spanloop.model import Model

Output = str | Callable[..., Any] | Mapping[str, Callable[..., Any]]

# of a frame: word -> rows of [angular; linear], and which of pose, velocity and acceleration
_QUANTITIES = {
    "position": (3, "pose", "m"),
    "rotation": (0, "pose", "rad"),
    "velocity": (3, "velocity", "m/s"),
    "angular_velocity": (0, "velocity", "rad/s"),
    "acceleration": (3, "acceleration", "m/s²"),
    "angular_acceleration": (0, "acceleration", "rad/s²"),
}
_LOADS = {"torque": (0, "N m"), "force": (3, "N")}  # of a loop: first row of [torque; force]
_OF_DOF = {"q": "", "v": "/s", "a": "/s²"}


@dataclass(frozen=True, eq=False)
class Row:
    """An output: its name and unit, its changes by states (n, k) and by inputs (n, m)."""

    name: str
    unit: str
    by_states: np.ndarray
    by_inputs: np.ndarray


@dataclass(frozen=True, eq=False)
class Changes:
    """A robot at states q (n, nq), v, tau, a (n, nv), and how these change.

    dq, dv, da (n, nv, k): by states. da_du, torques (n, nv, m): accelerations by inputs, and the torques at all joints
    that inputs are. forces: {"body": (n, 6)}, constant loads.
    """

    robot: Any
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    a: np.ndarray
    dq: np.ndarray
    dv: np.ndarray
    da: np.ndarray
    da_du: np.ndarray
    torques: np.ndarray
    forces: dict[str, np.ndarray]

    @property
    def model(self) -> Model:
        return self.robot.model

    @cached_property
    def none(self) -> np.ndarray:
        """No change by inputs (n, m)."""
        return np.zeros((len(self.q), self.da_du.shape[-1]))

    def along(self, function: str, count: int, **options: Any) -> np.ndarray:
        """The changes (n, size, k) of a function of the catalog whose inputs are the first of q, v, a."""
        inputs = (self.q, self.v, self.a)[:count]
        if options.get("forces"):
            inputs += (np.concatenate([self.forces[body] for body in options["forces"]], axis=-1),)
        ways = dict(zip("qva", (np.swapaxes(x, 1, 2) for x in (self.dq, self.dv, self.da)[:count]), strict=False))
        return np.swapaxes(along_directions(self.robot, function, inputs, ways, **options)[0], 1, 2)


def output_rows(
    robot: Any,
    state: tuple[np.ndarray, ...],
    found: ClosedDerivatives,
    da_du: np.ndarray,
    torques: np.ndarray,
    forces: Mapping[str, ArrayLike] | None,
    outputs: Output | Iterable[Output] | None,
) -> tuple[np.ndarray, np.ndarray, list[Row]]:
    """C (..., p, k), D (..., p, m) and the outputs; by default all states. state: q, v, tau, a with batch axes.

    da_du, torques: of input_columns. forces: constant loads.
    """
    leading, m = da_du.shape[:-2], da_du.shape[-1]
    changes, good = _changes(robot, state, found, da_du, torques, forces)
    if outputs is None:
        names = found.dofs.names
        outputs = (*names, *(f"{x}.v" for x in names))
    one = isinstance(outputs, str | Mapping) or callable(outputs)
    every: Any = [outputs] if one else outputs
    if not isinstance(every, Iterable):
        raise InputError(f"linearize: outputs is {outputs!r}; expected names or functions, as ['elbow', 'tool.x']")
    rows = [row for each in every for row in _rows(changes, each)]
    twice = [row.name for k, row in enumerate(rows) if row.name in [x.name for x in rows[:k]]]
    if twice:
        raise InputError(
            f"linearize: outputs name {twice[0]!r} twice; functions have the names of {{'name': function}}"
        )
    k = changes.dq.shape[-1]
    C, D = np.full((len(good), len(rows), k), np.nan), np.full((len(good), len(rows), m), np.nan)
    for place, row in enumerate(rows):
        C[good, place], D[good, place] = row.by_states, row.by_inputs
    return C.reshape(*leading, len(rows), k), D.reshape(*leading, len(rows), m), rows


def _changes(
    robot: Any,
    state: Sequence[np.ndarray],
    found: ClosedDerivatives,
    da_du: np.ndarray,
    torques: np.ndarray,
    forces: Mapping[str, ArrayLike] | None,
) -> tuple[Changes, np.ndarray]:
    """The operating points that have an answer, and which do (n,)."""
    count = math.prod(da_du.shape[:-2])
    q, v, tau, a = (x.reshape(count, x.shape[-1]) for x in state)
    T, dv, by_q, by_v, by_u, acting = (
        x.reshape(count, *x.shape[-2:]) for x in (found.dq, found.dv, found.da_dq, found.da_dv, da_du, torques)
    )
    loads = {
        body: np.broadcast_to(np.asarray(x, dtype=float), (*da_du.shape[:-2], 6)).reshape(count, 6)
        for body, x in (forces or {}).items()
    }
    good = np.isfinite(found.da).all(axis=(-2, -1)).reshape(count)
    dq = np.concatenate([T, np.zeros_like(T)], axis=-1)
    da = np.concatenate([by_q, by_v], axis=-1)
    parts = (q, v, tau, a, dq, np.concatenate([dv, T], axis=-1), da, by_u, acting)
    rows: list[Any] = [*(x[good] for x in parts), {body: x[good] for body, x in loads.items()}]
    return Changes(robot, *rows), good


def _rows(changes: Changes, output: Output) -> list[Row]:
    if isinstance(output, str):
        return _called(changes, output)
    if isinstance(output, Mapping):
        return [row for name, function in output.items() for row in _of_function(changes, function, str(name))]
    if callable(output):
        return _of_function(changes, output, getattr(output, "__name__", "output"))
    raise InputError(f"linearize: an output is {output!r}; expected a name, a function (q, v), or {{'name': function}}")


def _called(changes: Changes, name: str) -> list[Row]:
    model = changes.model
    found = _of_dofs(changes, name, "q") if _is_joint(model, name) else []
    front, _, last = name.rpartition(".")
    if not found and last in _OF_DOF and _is_joint(model, front):
        found = _of_dofs(changes, front, last)
    if (not found and front == "center_of_mass") or name == "center_of_mass":
        found = _of_mass_centre(changes, last if front else "xyz")
    return found or _of_loop(changes, name) or _of_frame(changes, name)


def _is_joint(model: Model, name: str) -> bool:
    return name in dof_names(model) or name in [j.name for j in model.joints]


def _of_dofs(changes: Changes, name: str, what: str) -> list[Row]:
    """Positions, rates or accelerations of a joint's DoF; names of DoF, as those of states."""
    names, units = dof_names(changes.model), [u for j in changes.model.joints for u in j.kind.units]
    by_states = {"q": changes.dq, "v": changes.dv, "a": changes.da}[what]
    ending = "" if what == "q" else f".{what}"
    return [
        Row(
            names[k] + ending, units[k] + _OF_DOF[what], by_states[:, k],
            changes.da_du[:, k] if what == "a" else changes.none,
        )
        for k in dofs_called(changes.model, name)
    ]  # fmt: skip


def _of_mass_centre(changes: Changes, axes: str) -> list[Row]:
    if not axes or axes not in "xyz":
        raise InputError(f"linearize: there is no output 'center_of_mass.{axes}'; expected .x, .y or .z")
    J = np.asarray(changes.robot.center_of_mass_jacobian(changes.q), dtype=float) @ changes.dq
    return [Row(f"center_of_mass.{x}", "m", J[:, "xyz".index(x)], changes.none) for x in axes]


def _of_loop(changes: Changes, name: str) -> list[Row]:
    """ "closing.force.x", or all three axes of "closing.torque": what a loop does to its body b, in world axes."""
    front, _, last = name.rpartition(".")
    loop, kind, axes = (front, last, "xyz") if last in _LOADS else (*front.rpartition(".")[::2], last)
    if kind not in _LOADS or not axes or axes not in "xyz" or loop not in [x.name for x in changes.model.loops]:
        return []
    first, unit = _LOADS[kind]
    wanted = [first + "xyz".index(x) for x in axes]
    by_states, by_inputs = loop_force_changes(changes, loop, wanted)
    return [
        Row(f"{loop}.{kind}.{x}", unit, by_states[:, k], by_inputs[:, k]) for x, k in zip(axes, wanted, strict=True)
    ]


def _of_frame(changes: Changes, name: str) -> list[Row]:
    """ "tool.x", "tool.velocity.z", or all three axes of "tool.velocity"."""
    front, _, last = name.rpartition(".")
    if last in _QUANTITIES:
        frame, quantity, axes = front, last, "xyz"
    else:
        frame, _, quantity = front.rpartition(".")
        axes = last
        if quantity not in _QUANTITIES:
            frame, quantity = front, "position"
    model = changes.model
    frames = [*model.body_number, *(f.name for f in model.frames)]
    if frame not in frames or len(axes) not in (1, 3) or axes not in "xyz":
        ends = ["x", "y", "z", *_QUANTITIES]
        loads = [f"{x.name}.{kind}" for x in model.loops for kind in _LOADS]
        known = [
            *dof_names(model),
            *loads,
            *(f"{x}.{end}" for x in frames if x != "world" for end in ends),
            "center_of_mass",
        ]
        raise InputError(f"linearize: there is no output {name!r}; {nearest(name, known)}")
    first, kind, unit = _QUANTITIES[quantity]
    by_states, by_inputs = _frame_changes(changes, frame, kind)
    rows = [(x, first + "xyz".index(x)) for x in axes]
    return [Row(f"{frame}.{quantity}.{x}", unit, by_states[:, k], by_inputs[:, k]) for x, k in rows]


def _frame_changes(changes: Changes, frame: str, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Changes of a frame's pose, velocity or acceleration (n, 6, k) and (n, 6, m), in world axes."""
    J = np.asarray(changes.robot.jacobian(changes.q, frame), dtype=float)
    none = np.zeros((len(J), 6, changes.da_du.shape[-1]))
    if kind == "pose":
        return J @ changes.dq, none
    if kind == "velocity":
        return changes.along("frame_velocity", 2, frame=frame, expressed_in="world"), none
    moved = changes.along("frame_acceleration", 3, frame=frame, expressed_in="world")
    return moved, J @ changes.da_du


def _of_function(changes: Changes, function: Callable[..., Any], name: str) -> list[Row]:
    found, single = function_changes(changes.model, function, name, changes.q, changes.v, changes.dq, changes.dv)
    count = found.shape[1]
    return [Row(name if single else f"{name}[{k}]", "", found[:, k], changes.none) for k in range(count)]
