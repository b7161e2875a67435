"""Functions and a motion of a model as C99: the text of one source and one header, which need no Python."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from spanloop import __version__
from spanloop.compiler.portable.c_plan import number, sincos_function
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, nearest
from spanloop.exports.c_control import control_functions, control_law
from spanloop.exports.c_function import CFunction, shared_functions, status_text
from spanloop.exports.c_header import header
from spanloop.exports.c_motion import CMotion
from spanloop.exports.c_names import comment, prefix_of
from spanloop.exports.c_requests import Request, c_functions, requests_of, torque_note, warn_of_size
from spanloop.exports.c_self_test import self_test
from spanloop.exports.chosen_parameters import as_option, chosen_parameters, parameters_of_file
from spanloop.exports.portable_motion import PortableMotion
from spanloop.model import Model
from spanloop.model.files.own_files import MARK
from spanloop.model.parameters import Parameters

REALS = ("double", "float")
OF_FUNCTIONS = ("method", "frame", "frames", "expressed_in", "points", "on_singular", "near", "regroup", "open_chain",
                "lowering")  # fmt: skip
OF_MOTIONS = ("integrator", "q", "v", "limits", "closures", "events", "contacts", "start")
OTHERS = ("name", "real", "parameters", "forces", "step", "controller", "inputs")
RESERVED = ("start", "step", "time", "state", "set_state", "set_parameters", "motion", "control", "control_memory",
            "status_text", "parameters")  # fmt: skip


@dataclass(frozen=True)
class CSource:
    """The text of a source and its header; both have the names of `functions` and of `motion`, if there is one."""

    name: str
    header: str
    source: str
    functions: tuple[CFunction, ...]
    motion: CMotion | None


def c_source(
    model: Model, functions: Sequence[str] | Mapping[str, Any], name: str, *, file: str = "", **options: Any
) -> CSource:
    """The C text of functions and, with step=, of a motion of a model; options as of sl.export.

    file: the name of the header that the source includes; by default name.h.
    """
    _known(options)
    prefix = prefix_of(name)
    real = options.get("real", "double")
    if real not in REALS:
        raise InputError(f"export: real is {real!r}; expected 'double' or 'float'")
    sincos = f"{prefix}_sincos"
    parameters = parameters_of_file(model, functions, options)
    motion = _motion(model, prefix, real, sincos, options)
    if motion and functions and (model.loops or model.couplings):
        options = {"near": motion.motion.problem.q[0], **options}
    made = c_functions(model, _requests(model, functions, options), prefix, real)
    law = None
    if options.get("controller") is not None:
        law = control_law(model, options["controller"], options.get("inputs"))
    control = tuple(control_functions(law, prefix, real)) if law else ()
    if not made and not control and motion is None:
        raise InputError("export: there is nothing to write; name functions, or give step= for a motion")
    every = (*(f for _, _, f in made), *control)
    facts = header(
        model, prefix, real, every, motion, law, parameters, options, str(Path(file or prefix).with_suffix(".c"))
    )
    test = self_test(model, prefix, real, made, control, law, motion, parameters, options)
    return CSource(prefix, facts, _source(prefix, real, file, model, every, motion, parameters, test), every, motion)


def _known(options: Mapping[str, Any]) -> None:
    known = (*OF_FUNCTIONS, *OF_MOTIONS, *OTHERS)
    for option in options:
        if option not in known:
            raise InputError(f"export: a C file takes no {option}=; {nearest(option, known)}")
    if options.get("step") is None:
        for option in OF_MOTIONS:
            if options.get(option) is not None:
                raise InputError(f"export: {option}= is for a motion; give its step= too, such as step=1e-3")


def _requests(model: Model, functions: Any, options: Mapping[str, Any]) -> tuple[Request, ...]:
    for name in functions:
        if name in RESERVED:
            raise InputError(f"export: {name!r} is the name of another function of the file; choose another")
    shared = {n: options[n] for n in OF_FUNCTIONS if options.get(n) is not None}
    shared["parameters"] = as_option(chosen_parameters(model, options.get("parameters")), model)
    if names_of(options.get("forces")):
        shared["forces"] = names_of(options["forces"])
    return requests_of(model, functions, shared, bool(options.get("step")))


def names_of(forces: Any) -> tuple[str, ...]:
    """The bodies of forces= that are inputs; () where it is a function or a table, which act in the motion."""
    if forces is None or callable(forces) or isinstance(forces, Mapping):
        return ()
    return (forces,) if isinstance(forces, str) else tuple(forces)


def _motion(model: Model, prefix: str, real: str, sincos: str, options: Mapping[str, Any]) -> CMotion | None:
    step = options.get("step")
    if step is None:
        return None
    if isinstance(step, bool) or not isinstance(step, Real) or not 0.0 < float(step) < math.inf:
        raise InputError(f"export: step is {step!r}; expected a length in seconds, as 1e-3")
    if not model.nv:
        raise InputError(f"export: {model.name!r} has no degree of freedom, and so no motion; leave out step=")
    given = motion_arguments(model, options)
    dtype = "float64" if real == "double" else "float32"
    robot = Dynamics(model, method=options.get("method") if _is_forward(model, options.get("method")) else None)
    q, v = given.pop("q", None), given.pop("v", None)
    motion = PortableMotion.of(robot, q, v, step=float(step), dtype=dtype, method=robot.method, **given)
    bodies = names_of(options.get("forces"))
    words = "inputs of the controller" if options.get("controller") else torque_note(model)
    if bodies:
        words += f", then [torque; force] on each of {', '.join(bodies)} at its origin in world axes [N m; N]"
    made = CMotion(motion, prefix, real, sincos, comment(words), bool(bodies))
    warn_of_size(f"export: a step of {model.name!r}", made.operations)
    return made


def _is_forward(model: Model, method: Any) -> bool:
    from spanloop.algorithms import catalog

    entry = catalog.function("forward_dynamics")
    return method in ((entry.closed or {}) if model.loops or model.couplings else entry.methods)


def motion_arguments(model: Model, options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of PortableMotion.of (but for the step) that the options of a C file stand for."""
    given = {n: options[n] for n in OF_MOTIONS if options.get(n) is not None}
    controller, inputs, forces = (options.get(n) for n in ("controller", "inputs", "forces"))
    if controller is not None:
        given |= {"controller": controller} | ({} if inputs is None else {"inputs": inputs})
    elif inputs is not None:
        raise InputError("export: inputs= are those of a controller; give controller= too")
    chosen = as_option(chosen_parameters(model, options.get("parameters")), model)
    if chosen == "live":
        given["parameters"] = model.parameters().values
    elif chosen != "baked":
        given["varied"] = chosen
    bodies = names_of(forces)
    if bodies:
        given |= _with_force_inputs(model, bodies, given)
    elif forces is not None:
        given["forces"] = forces
    return given


def _with_force_inputs(model: Model, bodies: Sequence[str], given: dict[str, Any]) -> dict[str, Any]:
    """Torques and forces on bodies, both read from the inputs of a step."""
    if "controller" in given:
        raise InputError(
            "export: forces= names bodies, and a controller has the inputs of a step. Read both in functions of u: "
            "controller(t, q, v, u) and forces(t, q, v, u)"
        )
    nv = model.nv
    for name in bodies:
        model.body(name)

    def torques(t, q, v, u):
        return list(u[:nv])

    def forces(t, q, v, u):
        return {name: list(u[nv + 6 * k : nv + 6 * k + 6]) for k, name in enumerate(bodies)}

    return {"controller": torques, "forces": forces, "inputs": np.zeros(nv + 6 * len(bodies))}


def _source(
    prefix: str,
    real: str,
    file: str,
    model: Model,
    functions: Sequence[CFunction],
    motion: CMotion | None,
    parameters: Parameters,
    test: str,
) -> str:
    """The source: checks of the compiler, what all functions share, functions, motion, self-test."""
    title = f"/* {MARK.capitalize()} {__version__}: {comment(model.name)}. The header documents the functions. */\n"
    includes = f'#include "{_in_quotes(file or prefix + ".h")}"\n\n#include <float.h>\n#include <math.h>\n'
    includes += "#include <string.h>\n\n"
    parts = [f.source(f"{prefix}_sincos") for f in functions]
    if motion:
        parts.append(motion.source())
    parts += [_parameters(parameters, prefix, real), status_text(prefix), test]
    rest = "".join(parts)
    shared = {**shared_functions(prefix, real), f"{prefix}_sincos": sincos_function(real, f"{prefix}_sincos") + "\n"}
    used = "".join(text for name, text in shared.items() if f"{name}(" in rest)
    return title + includes + _guards(real) + used + rest


def _guards(real: str) -> str:
    allowed = "FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16" + (" && FLT_EVAL_METHOD != 1" if real == "double" else "")
    return (
        "#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)\n"
        '#error "compile without -ffast-math: refusals are NaN"\n#endif\n'
        f"#if defined(FLT_EVAL_METHOD) && {allowed}\n"
        f'#error "{real} is computed with more digits here, which the sine cannot use (x87: -msse2 -mfpmath=sse)"\n'
        "#endif\n\n"
    )


def _parameters(parameters: Parameters, prefix: str, real: str) -> str:
    """The function that fills in the model's own numbers of the parameters that are inputs."""
    if not parameters.names:
        return ""
    values = parameters.values
    numbers = ", ".join(number(float(x), real) for x in values)
    return (
        f"void {prefix}_parameters({real} parameters[{len(values)}])\n{{\n"
        f"    static const {real} own[{len(values)}] = {{{numbers}}};\n"
        f"    memcpy(parameters, own, sizeof own);\n}}\n\n"
    )


def _in_quotes(file: str) -> str:
    """The name of a header between quotes."""
    if any(x in file for x in ('"', "\n", "\r", "\\", "??")) or any("\ud800" <= x <= "\udfff" for x in file):
        raise InputError(f"export: the file name {file!r} has characters that #include cannot have; choose another")
    return file
