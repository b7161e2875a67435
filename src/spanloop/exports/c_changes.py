"""Changes of a motion from outside, in C: another state, and other parameters, with the loops closed after them.

Both take steps of length 0, which close the loops and move nothing. What is refused leaves everything as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spanloop.compiler.lower.schedule import STEP, TIME
from spanloop.compiler.portable.c_plan import number
from spanloop.compiler.portable.memory import LOGGED
from spanloop.compiler.portable.sines import LIMIT
from spanloop.compiler.portable.status import FLAGS
from spanloop.compiler.render.rollout import LOST
from spanloop.exports.c_function import BIT
from spanloop.exports.portable_motion import LEAST_SHARE, STAGE, PortableMotion
from spanloop.kernels.lowering import UNIT_TOLERANCE

if TYPE_CHECKING:
    from spanloop.exports.c_motion import CMotion


def shared_source(c: CMotion) -> str:
    """A step of length 0, and its status."""
    at, p, zero = c.steps.memory.places, c.prefix, number(0.0, c.real)
    log = f"    motion->memory[{at[LOGGED]}] = {zero};\n" if LOGGED in at else ""
    found = f"((why & {LOST}) ? {BIT['NOT_CLOSED']} : 0) | {p}_why(why & ~{LOST})"
    u = c.motion.start["u"] if c.n_inputs else ()
    numbers = ", ".join(number(float(x), c.real) for x in u)
    inputs = (
        f"    static const {c.real} u[{len(u)}] = {{{numbers}}}; /* not those of a step that failed */\n"
        if numbers
        else ""
    )
    log += _copy(c, f"motion->memory + {at['u']}", "u", "u") if numbers else ""
    return (
        f"static int {p}_close({p}_motion *motion)\n{{\n    int why;\n{inputs}"
        f"    motion->memory[{at[TIME]}] = {p}_time(motion);\n    motion->memory[{at[STEP]}] = {zero};\n{log}"
        f"    why = {p}_schedule_step(motion->memory);\n"
        f"    return {found if c.motion.problem.system.keeps_closed else f'{p}_why(why)'};\n}}\n\n"
    )


def set_state(c: CMotion) -> str:
    """The body of NAME_set_state."""
    s, at, p = c.motion.schedule, c.steps.memory.places, c.prefix
    out = f"    {c.real} *m = motion->memory;\n    int why;\n" + _declared(c)
    out += f"    if ({p}_not_finite(q, {s.sizes['q']}) || {p}_not_finite(v, {s.sizes['v']}))"
    out += f" return {BIT['NOT_FINITE']};\n" + _position_checks(c)
    out += "".join(_copy(c, f"before_{at[n]}", f"m + {at[n]}", n) for n in _kept(c))
    out += _copy(c, f"m + {at['q']}", "q", "q") + _copy(c, f"m + {at['v']}", "v", "v")
    for n in ("q.rest", "v.rest"):
        if n in s.state:
            out += f"    memset(m + {at[n]}, 0, {s.sizes[n]} * sizeof({c.real}));\n"
    out += f"    why = {p}_close(motion);\n"
    if c.motion.problem.system.keeps_closed:
        out += f"    if (why == 0) why = {p}_close(motion); /* to rounding */\n"
    out += "    if (why != 0) {\n" + _restored(c, _kept(c), "    ") + "        return why;\n    }\n"
    return out + _restored(c, [n for n in _kept(c) if n in ("z", "loops")]) + "    return 0;\n"


def set_parameters(c: CMotion) -> str:
    """The body of NAME_set_parameters: stages between the old and the new numbers, so that loops follow."""
    s, at, p, real = c.motion.schedule, c.steps.memory.places, c.prefix, c.real
    n, lengths = s.sizes["p"], c.motion.length_places
    out = f"    {real} *m = motion->memory;\n    {real} flags[{FLAGS}], own[{n}], done = {number(0.0, real)};\n"
    out += f"    {real} share = {number(1.0, real)};\n    int k, far, why;\n" + _declared(c)
    out += "".join(f"    {real} last_{at[x]}[{s.sizes[x]}];\n" for x in _positions(c))
    if lengths:
        most = ", ".join(number(x, real) for x in c.motion.most_changes)
        out += f"    static const int lengths[{len(lengths)}] = {{{', '.join(map(str, lengths))}}};\n"
        out += f"    static const {real} most[{s.sizes['q']}] = {{{most}}};\n"
    out += f"    if ({p}_not_finite(parameters, {n})) return {BIT['NOT_FINITE']};\n"
    out += f"    {p}_parameter_check(parameters, flags);\n"
    out += f"    if (!(flags[1] == {number(0.0, real)})) return {BIT['OFF_GUARD']};\n"
    out += _copy(c, "own", f"m + {at['p']}", "p")
    out += "".join(_copy(c, f"before_{at[x]}", f"m + {at[x]}", x) for x in _kept(c))
    if lengths:
        out += f"    for (k = 0; k < {len(lengths)}; k++)\n"
        out += f"        if (parameters[lengths[k]] != own[lengths[k]]) share = {number(STAGE, real)};\n"
    out += _stages(c)
    if c.motion.problem.system.keeps_closed:
        out += f"    for (k = 0; k < 2; k++) {{ /* to rounding */\n        why = {p}_close(motion);\n"
        out += _restored(c, _others(c), "    ") + "        if (why == 0) continue;\n"
        out += _given_up(c, "    ") + "        return why;\n    }\n"
    return out + "    return 0;\n"


def _stages(c: CMotion) -> str:
    """A loop of stages; one that fails, or turns a joint too far, is tried again with half of the change."""
    s, at, p, real = c.motion.schedule, c.steps.memory.places, c.prefix, c.real
    one, stage, fabs = number(1.0, real), number(STAGE, real), "fabs" if real == "double" else "fabsf"
    out = f"    while (done < {one}) {{\n        const {real} next = done + share < {one} ? done + share : {one};\n"
    out += f"        for (k = 0; k < {s.sizes['p']}; k++)\n"
    out += f"            m[{at['p']} + k] = next < {one} ? own[k] + next * (parameters[k] - own[k]) : parameters[k];\n"
    out += "".join(_copy(c, f"last_{at[x]}", f"m + {at[x]}", x, "    ") for x in _positions(c))
    out += f"        why = {p}_close(motion);\n        far = 0;\n"
    if c.motion.length_places:
        test = f"!({fabs}(m[{at['q']} + k] - last_{at['q']}[k]) <= most[k])"
        out += f"        for (k = 0; k < {s.sizes['q']}; k++) far |= {test};\n"
    out += _restored(c, _others(c), "    ") + "        if (why == 0 && !far) {\n            done = next;\n"
    out += f"            if (share < {stage}) share *= {number(2.0, real)};\n"
    out += "            continue;\n        }\n"
    out += "".join(_copy(c, f"m + {at[x]}", f"last_{at[x]}", x, "    ") for x in _positions(c))
    out += f"        share *= {number(0.5, real)};\n        if (share < {number(LEAST_SHARE, real)}) {{\n"
    out += _given_up(c, "        ") + f"            return why != 0 ? why : {BIT['NOT_CLOSED']};\n        }}\n    }}\n"
    return out


def _given_up(c: CMotion, indent: str) -> str:
    """Positions and parameters as they were."""
    own = _copy(c, f"m + {c.steps.memory.places['p']}", "own", "p", indent)
    return _restored(c, _positions(c), indent) + own


def _position_checks(c: CMotion) -> str:
    """Angles in the range of the sine, and quaternions of unit length."""
    real, out = c.real, ""
    fabs = "fabs" if real == "double" else "fabsf"
    angles, quaternions = angle_places(c.motion), quaternion_places(c.motion)
    if angles:
        tests = " ||\n        ".join(f"!({fabs}(q[{k}]) <= {number(LIMIT[real], real)})" for k in angles)
        out += f"    if ({tests})\n        return {BIT['FAR_ANGLE']};\n"
    for k in quaternions:
        square = " + ".join(f"q[{j}] * q[{j}]" for j in range(k, k + 4))
        bound = number(2.0 * UNIT_TOLERANCE, real)
        out += f"    if (!({fabs}({square} - {number(1.0, real)}) <= {bound})) return {BIT['OFF_GUARD']};\n"
    return out


def angle_places(motion: PortableMotion) -> list[int]:
    """Places in q of angles."""
    model, out = motion.problem.model, []
    for j in model.joints:
        if j.kind.nq == j.kind.nv and j.kind.nv:
            first = model.q_slice(j.name).start
            out += [first + k for k, unit in enumerate(j.kind.units) if unit == "rad"]
    return out


def quaternion_places(motion: PortableMotion) -> list[int]:
    """Places in q at which quaternions begin."""
    model, out = motion.problem.model, []
    for j in model.joints:
        s = model.q_slice(j.name)
        if j.kind.nq:
            out += [int(part[0]) for part in j.kind.unit_parts(tuple(range(s.start, s.stop)))]
    return out


def _kept(c: CMotion) -> list[str]:
    """The arrays of the state."""
    return [n for n in c.motion.schedule.state if c.motion.schedule.sizes[n]]


def _positions(c: CMotion) -> list[str]:
    """Of these the positions."""
    return [n for n in _kept(c) if n in ("q", "q.rest")]


def _others(c: CMotion) -> list[str]:
    return [n for n in _kept(c) if n not in ("q", "q.rest")]


def _declared(c: CMotion) -> str:
    """Arrays that keep the state."""
    at, sizes = c.steps.memory.places, c.motion.schedule.sizes
    return "".join(f"    {c.real} before_{at[n]}[{sizes[n]}];\n" for n in _kept(c))


def _restored(c: CMotion, names: list[str], indent: str = "") -> str:
    at = c.steps.memory.places
    return "".join(_copy(c, f"m + {at[n]}", f"before_{at[n]}", n, indent) for n in names)


def _copy(c: CMotion, to: str, source: str, name: str, indent: str = "") -> str:
    size = c.motion.schedule.sizes[name]
    return f"{indent}    memcpy({to}, {source}, {size} * sizeof({c.real}));\n"
