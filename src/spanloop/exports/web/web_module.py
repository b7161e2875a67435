"""Functions and, with step=, a motion of a model as one WebAssembly module, with a table that describes it.

Every function has arrays of its own, so that a call does not touch the state of the motion.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from spanloop import __version__
from spanloop.algorithms import catalog
from spanloop.compiler.lower import Plan
from spanloop.compiler.portable.wasm_kernel import SECTION, unrolled_only
from spanloop.compiler.portable.wasm_program import Program
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, nearest
from spanloop.exports.c_function import BIT, STATUS
from spanloop.exports.c_requests import NOTES, RESULTS, Request, requests_of, torque_note
from spanloop.exports.c_source import OF_FUNCTIONS, OF_MOTIONS, motion_arguments, names_of
from spanloop.exports.chosen_parameters import as_option, chosen_parameters, parameters_of_file
from spanloop.exports.portable_motion import PortableMotion
from spanloop.exports.web.coordinates import coordinates, degrees_of_freedom
from spanloop.exports.web.motion_table import CHECK, add_motion, motion_table
from spanloop.kernels import compile as compiled
from spanloop.model import Model
from spanloop.model.parameters import Parameters

OPTIONS = (*OF_FUNCTIONS, *OF_MOTIONS, "parameters", "forces", "step", "controller", "inputs")
RESERVED = ("constructor", "load", "memory", "motion", "begin", "step", "toString", "valueOf", "then", CHECK)


@dataclass(frozen=True)
class WebFunction:
    """A function of the module: its name there, what was asked for, and its plan; about: what it returns."""

    name: str
    request: Request
    plan: Plan
    about: str
    tau: str  # what the input tau is

    @property
    def inputs(self) -> list[tuple[str, str, int, str]]:
        """Of each input its name, its array, its size, and what it is."""
        return [
            (_camel(n), f"{self.name}.{n}", size, {**NOTES, "tau": self.tau}.get(n, n)) for n, size in self.plan.inputs
        ]

    @property
    def answer(self) -> str:
        """The array of the answer."""
        return f"{self.name}.answer"


@dataclass(frozen=True)
class WebModule:
    """A module and what it is made of."""

    model: Model
    functions: tuple[WebFunction, ...]
    motion: PortableMotion | None
    program: Program
    bodies: tuple[str, ...]  # those whose forces are inputs of the motion
    is_controlled: bool
    parameters: Parameters  # those that are inputs

    @staticmethod
    def of(model: Model, functions: Sequence[str] | Mapping[str, Any], options: Mapping[str, Any]) -> WebModule:
        """The module of functions of sl.compile and, with step=, of a motion; options as of sl.export."""
        _check(options)
        parameters = parameters_of_file(model, functions, options)
        found = tuple(_functions(model, functions, options))
        motion = _motion(model, options)
        if not found and motion is None:
            raise InputError("export: there is nothing to write; name functions, or give step= for a motion")
        program = Program()
        if motion:
            add_motion(program, motion)
        for f in found:
            program.add_kernel(f.name, f.plan, write=f.answer, reads=[array for _, array, _, _ in f.inputs])
        controlled = options.get("controller") is not None
        return WebModule(model, found, motion, program, names_of(options.get("forces")), controlled, parameters)

    def table(self) -> dict[str, Any]:
        """The description of the module, for JSON."""
        model, p = self.model, self.parameters
        return {
            "spanloop": __version__,
            "model": {
                "name": model.name,
                "nq": model.nq,
                "nv": model.nv,
                "coordinates": coordinates(model),
                "dofs": degrees_of_freedom(model),
                "bodies": [b.name for b in model.bodies],
                "neutral": [float(x) for x in model.neutral()],
                "parameters": {"names": list(p.names), "values": p.values.tolist()} if p.names else None,
            },
            "functions": {f.name: self._function(f) for f in self.functions},
            "motion": motion_table(self.motion, self.program, self.bodies, self.is_controlled) if self.motion else None,
            "status": {
                "functions": {bit: STATUS[n][1] for bit, n in ((1, "NO_ANSWER"), (2, "OFF_GUARD"), (4, "FAR_ANGLE"))},
                "motion": {BIT[n] // BIT["LOST"]: STATUS[n][1] for n in ("LOST", "HALTED", "NOT_CONVERGED")},
                "changes": {1: STATUS["NOT_CLOSED"][1]},  # of motions that close loops, in place of a lost step
            },
        }

    def binary(self) -> bytes:
        """The module, with the table in a custom section."""
        return self.program.binary({SECTION: json.dumps(self.table()).encode()})

    def _function(self, f: WebFunction) -> dict[str, Any]:
        at = self.program.memory.places
        return {
            "function": f.request.function,
            "inputs": [{"name": n, "place": at[array], "size": size} for n, array, size, _ in f.inputs],
            "answer": {"place": at[f.answer], "size": len(f.plan.outputs), "shape": list(f.plan.shape)},
        }


def _check(options: Mapping[str, Any]) -> None:
    for option in options:
        if option in ("real", "name"):
            raise InputError(f"export: {option}= is for C files; modules compute in double and have no prefix")
        if option not in OPTIONS:
            raise InputError(f"export: a WebAssembly module takes no {option}=; {nearest(option, OPTIONS)}")
    if options.get("step") is None:
        for option in (*OF_MOTIONS, "controller", "inputs"):
            if options.get(option) is not None:
                raise InputError(f"export: {option}= is for a motion; give its step= too, such as step=1e-3")


def _functions(model: Model, functions: Any, options: Mapping[str, Any]):
    shared = {n: options[n] for n in OF_FUNCTIONS if options.get(n) is not None}
    shared["parameters"] = as_option(chosen_parameters(model, options.get("parameters")), model)
    if names_of(options.get("forces")):
        shared["forces"] = names_of(options["forces"])
    taken: dict[str, str] = {}
    for request in requests_of(model, functions, shared, options.get("step") is not None):
        name = _camel(request.name)
        if name in RESERVED or name in taken:
            other = f"as {taken[name]!r} has" if name in taken else "of another part of the module"
            raise InputError(f"export: {request.name!r} has the name {name!r} in JavaScript, {other}; choose another")
        taken[name] = request.name
        plan = compiled(model, request.function, target="python", **request.options).plan
        about = RESULTS.get(request.function, ("", request.function.replace("_", " ")))[1]
        if "derivative" in request.options:
            about = f"derivative ({request.options['derivative']}) of {request.function}"
        plan = unrolled_only(f"export: {request.function}", plan, "WebAssembly")
        yield WebFunction(name, request, plan, about, torque_note(model))


def _motion(model: Model, options: Mapping[str, Any]) -> PortableMotion | None:
    step = options.get("step")
    if step is None:
        return None
    if isinstance(step, bool) or not isinstance(step, Real) or not 0.0 < float(step) < math.inf:
        raise InputError(f"export: step is {step!r}; expected a length in seconds, as 1e-3")
    given, method = motion_arguments(model, options), options.get("method")
    robot = Dynamics(model, method=method if _is_forward(model, method) else None)
    start = given.pop("q", None), given.pop("v", None)
    return PortableMotion.of(robot, *start, step=float(step), method=robot.method, **given)


def _is_forward(model: Model, method: Any) -> bool:
    """Whether a method, which may be that of another function, is one of forward dynamics."""
    entry = catalog.function("forward_dynamics")
    return method in ((entry.closed or {}) if model.loops or model.couplings else entry.methods)


def _camel(name: str) -> str:
    """forward_dynamics as forwardDynamics; d.q as dQ."""
    first, *others = name.replace(".", "_").split("_")
    return first + "".join(x[:1].upper() + x[1:] for x in others)
