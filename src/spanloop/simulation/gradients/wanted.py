"""What a run is differentiated by: the argument `wrt`, checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.simulation.problem import Problem

STATE, INPUTS, PARAMETERS, MOMENTS = ("q", "v"), ("tau", "inputs"), "parameters", "at"


@dataclass(frozen=True)
class Wanted:
    """Arguments of sl.simulate, and places of parameters.

    names: of q, v, tau or inputs, parameters, at (the times of events), in the order that was asked for; places: of
    the wanted parameters.
    """

    names: tuple[str, ...]
    places: tuple[int, ...] = ()

    @staticmethod
    def of(function: str, model: Model, wrt: Any, controller: Any, inputs: Any) -> Wanted:
        """The checked argument; controller, inputs: those of the run."""
        asked = [wrt] if isinstance(wrt, str) else list(wrt) if isinstance(wrt, Iterable) else [wrt]
        if not asked:
            raise InputError(f"{function}: wrt is empty; expected some of {_known(controller, inputs)}")
        parameters = model.parameters().names
        names, places = list[str](), list[int]()
        for name in asked:
            if name in parameters:
                places.append(parameters.index(name))
                name = PARAMETERS
            elif name == PARAMETERS:
                places += range(len(parameters))
            elif name not in (*STATE, *INPUTS, MOMENTS):
                known = (*STATE, *INPUTS, PARAMETERS, MOMENTS, *parameters)
                raise InputError(f"{function}: wrt holds {name!r}; {nearest(str(name), known)}")
            if name not in names:
                names.append(name)
        _refuse_what_is_named_twice(function, asked, parameters)
        _refuse_inputs_that_are_none(function, names, controller, inputs)
        return Wanted(tuple(names), tuple(places))

    def sizes(self, problem: Problem) -> dict[str, int]:
        """How many numbers there are of each that is wanted."""
        nv, rows = problem.model.nv, problem.inputs.values
        width = 0 if rows is None else rows.shape[-1] * rows.shape[-2]
        moments = len(problem.system.switching.moments) if problem.system.switching else 0
        known = {"q": nv, "v": nv, "tau": width, "inputs": width, PARAMETERS: len(self.places), MOMENTS: moments}
        return {name: known[name] for name in self.names}

    def columns(self, problem: Problem) -> int:
        """How many numbers are wanted."""
        return sum(self.sizes(problem).values())

    @property
    def arrays(self) -> tuple[str, ...]:
        """Names of the arrays of a step: q, v, u, p, at."""
        return tuple({"tau": "u", "inputs": "u", PARAMETERS: "p"}.get(n, n) for n in self.names)


def _known(controller: Any, inputs: Any) -> str:
    return ", ".join(map(repr, (*STATE, INPUTS[controller is not None or inputs is not None], PARAMETERS)))


def _refuse_what_is_named_twice(function: str, asked: list[str], parameters: Sequence[str]) -> None:
    for k, name in enumerate(asked):
        if name in asked[:k]:
            raise InputError(f"{function}: wrt names {name!r} twice; expected every name once")
        if PARAMETERS in asked and name in parameters:
            raise InputError(f"{function}: wrt names {name!r} and 'parameters', which holds it; expected one of them")


def _refuse_inputs_that_are_none(function: str, names: list[str], controller: Any, inputs: Any) -> None:
    if "tau" in names and controller is not None:
        raise InputError(f"{function}: wrt holds 'tau', but a controller acts; its inputs are 'inputs'")
    if "tau" in names and inputs is not None:
        raise InputError(f"{function}: wrt holds 'tau', but inputs of forces are given; these are 'inputs'")
    if "inputs" in names and controller is None and inputs is None:
        raise InputError(f"{function}: wrt holds 'inputs', but there is no controller; torques are 'tau'")
    if "inputs" in names and inputs is None:
        raise InputError(
            f"{function}: wrt holds 'inputs', but none are given; pass inputs=array for a controller (t, q, v, u)"
        )
