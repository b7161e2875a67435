"""A controller in C:  int arm_control(t, q, v, u, z, tau), and the update of its memory z where it has one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from spanloop.compiler.lower import Plan, unrolled
from spanloop.errors import UnsupportedError
from spanloop.exports.c_function import Argument, CFunction
from spanloop.exports.c_requests import torque_note
from spanloop.model import Model
from spanloop.simulation.controllers import AppliedForces, Callback, applied_forces, traced
from spanloop.simulation.inputs import inputs_of

NOTES = {
    "t": "time [s]",
    "h": "length of the step that ended [s]",
    "q": "coordinates, in the order of the enum of places in q",
    "v": "velocities [rad/s or m/s]",
    "u": "inputs of the controller",
    "z": "memory of the controller",
}


def control_law(model: Model, controller: Any, inputs: Any) -> AppliedForces:
    """The controller of sl.simulate's arguments, without what else acts on the model."""
    if isinstance(controller, Callback):
        raise UnsupportedError(
            "export: a callback runs in Python and has no form in C. Give the function itself: controller=function"
        )
    given = inputs_of(model, None, controller, inputs)
    return applied_forces(model, controller, given.width if given.exist else None)


def control_functions(law: AppliedForces, prefix: str, real: str) -> Iterator[CFunction]:
    """The function of the torques, and where the controller has a memory, that of the next memory."""
    model, nz = law.model, law.memory
    sizes = {"t": 1, "q": model.nq, "v": model.nv, "u": law.inputs, "z": nz}
    plan = _plan("control", sizes, model.nv, law.command)
    about: tuple[str, ...] = (f"Torques that the controller commands: {len(plan.nodes)} operations.",)
    result = Argument("tau", model.nv, torque_note(model))
    yield CFunction(f"{prefix}_control", plan, _arguments(plan), result, about, prefix, real)
    if not nz:
        return
    sizes = {"t": 1, "h": 1, **sizes}

    def update(x: Mapping[str, Sequence[Any]]) -> list[Any]:
        return law.update(x, x)

    plan = _plan("control_memory", sizes, nz, update)
    about = ("The memory of the controller after a step; q and v: at its end,", "t: the time there.")
    result = Argument("z_next", nz, "memory from then on")
    yield CFunction(f"{prefix}_control_memory", plan, _arguments(plan), result, about, prefix, real)


def control_answer(law: AppliedForces, function: CFunction, rows: Sequence[np.ndarray]) -> np.ndarray:
    """What the controller answers to the inputs of one of these functions, in Python's own arithmetic."""
    x: dict[str, Any] = dict.fromkeys(NOTES, ())
    x |= {a.name: [float(y) for y in row] for a, row in zip(function.arguments, rows, strict=True)}
    found = law.update(x, x) if "h" in {a.name for a in function.arguments} else law.command(x)
    return np.array([float(y) for y in found])


def _plan(name: str, sizes: Mapping[str, int], count: int, compute: Any) -> Plan:
    inputs = tuple((n, size) for n, size in sizes.items() if size)
    missing: dict[str, list[Any]] = {n: [] for n, size in sizes.items() if not size}
    return traced(
        "the controller", lambda: unrolled(name, inputs, (count,), lambda x: (compute({**x, **missing}), (), ()))
    )


def _arguments(plan: Plan) -> tuple[Argument, ...]:
    return tuple(Argument(n, size, NOTES[n]) for n, size in plan.inputs)
