"""`inputs=` of an export: the inputs of a controller by number or by name, one rule for all kinds of files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.simulation.controllers import Callback, applied_forces, controller_of
from spanloop.simulation.traced_kernels import takes_inputs

EXPECTED = "expected numbers, [0.0, 1.0], names, ['target'], or both, {'target': 5.0}"
_MOST = 64  # inputs that a law is tried with


@dataclass(frozen=True)
class ControlInput:
    """One input of a controller; value: at the start; is_named: whether the user chose its name."""

    name: str
    value: float = 0.0
    unit: str = ""
    is_named: bool = True


def control_inputs(model: Model, inputs: Any) -> tuple[ControlInput, ...]:
    """The inputs that numbers, names (zero at the start), {name: number} or {name: unit} stand for."""
    if isinstance(inputs, Mapping):
        _refuse_joints(model, inputs)
        return tuple(_from_pair(name, x) for name, x in inputs.items())
    given = [inputs] if isinstance(inputs, str) else inputs.tolist() if isinstance(inputs, np.ndarray) else inputs
    if isinstance(given, list | tuple) and len(given) == 1 and isinstance(given[0], list | tuple | np.ndarray):
        given = list(given[0])  # one row for all steps, as of sl.simulate
    if not isinstance(given, list | tuple):
        raise InputError(f"export: inputs is {inputs!r}; {EXPECTED}")
    if any(isinstance(x, str) for x in given):
        return tuple(ControlInput(_name(x)) for x in given)
    return tuple(ControlInput(f"u.{k + 1}", _value(x, f"inputs[{k}]"), "", False) for k, x in enumerate(given))


def with_numbers(model: Model, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an export with inputs as numbers; InputError where a law takes inputs and none are given."""
    refuse_without(options.get("controller"), options.get("inputs"), options.get("forces"))
    if options.get("inputs") is None:
        return dict(options)
    return {**options, "inputs": [x.value for x in control_inputs(model, options["inputs"])]}


def refuse_without(controller: Any, inputs: Any, forces: Any) -> None:
    """InputError for a controller, or forces beside one, that takes inputs where none are given."""
    if inputs is not None or controller is None or isinstance(controller, Callback):
        return
    wanted = controller_of(controller).inputs
    reads = callable(forces) and takes_inputs(forces)
    if wanted == 0 and not reads:
        return
    who = "controller" if wanted != 0 else "function of forces"
    count = f"{wanted} " if wanted else ""
    raise InputError(
        f"export: the {who} takes inputs u, but none are given; "
        f"give inputs=[{count}numbers], or their names, inputs=['target']"
    )


def refuse_too_few(model: Model, controller: Any, inputs: Any) -> None:
    """InputError for a law (t, q, v, u) that reads inputs beyond those that are given, after an IndexError."""
    if controller is None or inputs is None:
        return
    have = len(control_inputs(model, inputs))
    if not _fails(model, controller, have):
        return
    needed = next((n for n in range(have + 1, _MOST) if not _fails(model, controller, n)), None)
    if needed:
        raise InputError(
            f"export: the controller reads u[{needed - 1}], but inputs= has {have}; give {needed} numbers or names"
        )


def _fails(model: Model, controller: Any, count: int) -> bool:
    """Whether a law with this number of inputs reads beyond its arguments."""
    try:
        law = applied_forces(model, controller, count)
        zeros = {"t": [0.0], "v": [0.0] * model.nv, "u": [0.0] * count, "z": [0.0] * law.memory}
        law.command({**zeros, "q": [float(x) for x in model.neutral()]})
    except IndexError:
        return True
    except Exception:  # what else is wrong with the law is reported where it is traced
        return False
    return False


def _refuse_joints(model: Model, inputs: Mapping[Any, Any]) -> None:
    """InputError for numbers of joints, which sl.simulate reads as one for each DoF, if they are not just these."""
    joints = [j.name for j in model.joints if j.kind.nv]
    ambiguous = [x for x in inputs if x in joints and not isinstance(inputs[x], str)]
    if ambiguous and (list(inputs) != joints or len(joints) != model.nv):
        raise InputError(
            f"export: inputs has a number for the joint {ambiguous[0]!r}; sl.simulate reads such a table as numbers "
            "for all DoF, an export as its inputs in this order. Give numbers, inputs=[...], or other names"
        )


def _from_pair(name: Any, x: Any) -> ControlInput:
    if isinstance(x, str):
        return ControlInput(_name(name), unit=x)
    return ControlInput(_name(name), _value(x, f"inputs[{name!r}]"))


def _name(x: Any) -> str:
    if not isinstance(x, str) or not x.strip():
        raise InputError(f"export: inputs has {x!r} among names; {EXPECTED}")
    return x


def _value(x: Any, where: str) -> float:
    if isinstance(x, Real) and not isinstance(x, bool) and math.isfinite(float(x)):
        return float(x)
    is_row = isinstance(x, list | tuple | np.ndarray)
    hint = "; the program that runs the file sets those of each step" if is_row else ""
    raise InputError(f"export: {where} is {x!r}; expected a finite number{hint}")
