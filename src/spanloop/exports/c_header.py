"""The header of a C file: what is in it, the order of coordinates and degrees of freedom, sizes, declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanloop import __version__
from spanloop.compiler.portable.sines import LIMIT
from spanloop.exports.c_function import CFunction, status_enum
from spanloop.exports.c_motion import CMotion
from spanloop.exports.c_names import comment, identifiers, quoted
from spanloop.model import Model
from spanloop.model.files.own_files import MARK
from spanloop.model.parameters import Parameters
from spanloop.model.parts import Joint
from spanloop.simulation.controllers import AppliedForces


def header(
    model: Model,
    prefix: str,
    real: str,
    functions: Sequence[CFunction],
    motion: CMotion | None,
    law: AppliedForces | None,
    parameters: Parameters,
    options: Mapping[str, Any],
    file: str,
) -> str:
    """The text of the header; parameters: those that are inputs; file: the name of the source."""
    upper = prefix.upper()
    parts = [_title(model, prefix, real, motion, options, comment(file))]
    parts.append(f"#ifndef {upper}_H\n#define {upper}_H\n\n#include <stdint.h>\n\n")
    parts.append('#ifdef __cplusplus\nextern "C" {\n#endif\n\n')
    parts.append(_sizes(model, upper, motion, law, parameters))
    parts.append(_order(model, prefix))
    if parameters.names:
        parts.append(_parameters(parameters.names, upper))
    parts.append(f"/* Bits of a status. */\nenum {prefix}_status {{\n" + "\n".join(status_enum(prefix)) + "\n};\n\n")
    parts.append(
        f"/* The sentence of the lowest bit of a status. */\nconst char *{prefix}_status_text(int status);\n\n"
    )
    if parameters.names:
        n = len(parameters)
        about = "/* Fill in the model's own numbers, to be changed from there. */\n"
        parts.append(f"{about}void {prefix}_parameters({real} parameters[{n}]);\n\n")
    parts += [f.declaration() + "\n" for f in functions]
    if motion:
        parts.append(motion.declarations())
    parts.append("#ifdef __cplusplus\n}\n#endif\n\n#endif\n")
    return "".join(parts)


def _title(model: Model, prefix: str, real: str, motion: CMotion | None, options: Mapping[str, Any], file: str) -> str:
    chosen = ", ".join(f"{n}={_shown(x)}" for n, x in options.items() if x is not None and n != "name")
    lines = [
        f"{MARK.capitalize()} {__version__}: model {quoted(model.name)}.",
        "",
        f"{model.n_bodies} bodies, {model.nv} degrees of freedom (DoF), loops: {len(model.loops)}. Options: "
        + (comment(chosen) or "none")
        + ".",
        f"All numbers are {real}, in SI units (m, kg, s, rad, N). No allocation, no variables outside functions:",
        "functions may be called from several threads or interrupts at once. Arrays must not overlap.",
        "",
        "Every function returns 0, or bits of why there is no answer; its result is then NaN. Refused are numbers that",
        f"are not finite, angles beyond {LIMIT[real]:g} rad, quaternions off unit length, and states without an answer",
        "(singular positions, open loops; states at which loops lose digits, which Python answers by refinement).",
        "",
        f"Compile with  cc -std=c99 -O2 -c {file}  (never -ffast-math) and link with -lm.",
        f"Self-test: cc -std=c99 -O2 -D{prefix.upper()}_TEST {file} -lm && ./a.out",
    ]
    if motion:
        m = motion.motion
        lines += ["", f"Motion: integrator '{m.integrator}', steps of {m.step!r} s, {motion.operations} operations."]
        if not motion.can_be_set:
            lines.append(f"Its contacts or events carry more than q and v: there is no {prefix}_set_state.")
    return "/* " + "\n".join(f"   {line}".rstrip() for line in lines).lstrip() + " */\n\n"


def _shown(x: Any) -> str:
    if callable(x):
        return getattr(x, "__name__", type(x).__name__)
    if hasattr(x, "shape"):
        return "given"
    text = repr(x)
    return text if len(text) <= 60 else "given"


def _sizes(model: Model, upper: str, motion: CMotion | None, law: AppliedForces | None, parameters: Parameters) -> str:
    lines = [f'#define {upper}_VERSION "{__version__}"']
    lines += [f"#define {upper}_NQ {model.nq} /* coordinates */", f"#define {upper}_NV {model.nv} /* DoF */"]
    if parameters.names:
        lines.append(f"#define {upper}_N_PARAMETERS {len(parameters)}")
    if law:
        lines.append(f"#define {upper}_CONTROL_INPUTS {law.inputs}")
        lines.append(f"#define {upper}_CONTROL_MEMORY {law.memory}")
        start = ", ".join(f"{x:g}" for x in law.start())
        if start:
            lines.append(f"/* The memory of the controller begins with {start}. */")
    if motion:
        lines.append(f"#define {upper}_STEP {motion.motion.step!r} /* s */")
        lines.append(f"#define {upper}_INPUTS {motion.n_inputs} /* numbers u of a step */")
        lines.append(f"#define {upper}_MEMORY {motion.size} /* numbers of a motion */")
    return "\n".join(lines) + "\n\n"


def _order(model: Model, prefix: str) -> str:
    """Enums of the places of joints in q and v."""
    moving = [j for j in model.joints if j.kind.nv]
    if not moving:
        return ""
    out = ""
    for letter, word in (("Q", "coordinates q"), ("V", "velocities v, accelerations and torques")):
        names = identifiers(j.name for j in moving)
        lines = []
        for k, (joint, name) in enumerate(zip(moving, names, strict=True)):
            s = model.q_slice(joint.name) if letter == "Q" else model.v_slice(joint.name)
            count = s.stop - s.start
            units = _units(joint, letter, count)
            many = f", {count} numbers" if count > 1 else ""
            end = "," if k < len(moving) - 1 else ""
            driven = ", driven: tau and u have its acceleration" if joint.driven and letter == "V" else ""
            note = f"{joint.kind.name} joint {quoted(joint.name)}{many} [{units}]{driven}"
            lines.append(f"    {prefix.upper()}_{letter}_{name} = {s.start}{end} /* {note} */")
        out += f"/* Where each joint begins in {word}. */\nenum {prefix}_place_in_{letter.lower()} {{\n"
        out += "\n".join(lines) + "\n};\n\n"
    return out


def _units(joint: Joint, letter: str, count: int) -> str:
    """The units of a joint's coordinates or velocities."""
    own = joint.kind.units
    if letter == "V":
        return ", ".join(f"{unit}/s" for unit in own)
    if count == len(own):
        return ", ".join(own)
    return "unit quaternion w, x, y, z" + (", position in m" if count > 4 else "")


def _parameters(names: Sequence[str], upper: str) -> str:
    lines = [
        f"    {upper}_PARAMETER_{word} = {k}{',' if k < len(names) - 1 else ''} /* {quoted(name)} */"
        for k, (name, word) in enumerate(zip(names, identifiers(names), strict=True))
    ]
    return f"/* Places of parameters. */\nenum {upper.lower()}_place_of_parameter {{\n" + "\n".join(lines) + "\n};\n\n"
