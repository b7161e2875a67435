"""The self-test of a C file, compiled where NAME_TEST is defined: answers that Python's machine code gave, compared.

The numbers come from kernels and runs of sl.compile and sl.simulate, whose code another renderer writes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.compiler.portable.c_plan import number
from spanloop.errors import SpanloopError, SpanloopWarning
from spanloop.exports.c_control import control_answer
from spanloop.exports.c_function import CFunction
from spanloop.exports.c_motion import CMotion
from spanloop.exports.c_requests import Request
from spanloop.exports.closed_states import closed_states
from spanloop.model import Model
from spanloop.model.parameters import Parameters
from spanloop.simulation.controllers import AppliedForces
from spanloop.simulation.integrators.integrator import Integrator
from spanloop.simulation.simulate import simulate

STATES = 3  # of each function, beside one that is refused
STEPS = 20  # of a motion
CLOSE = {"double": 1e-10, "float": 1e-4}  # of the largest number of an answer, unless single precision loses more
SMALL = 1e-3  # of a function's largest answer: smaller answers are compared with this
CONTROL_CLOSE = {"double": 1e-9, "float": 1e-2}  # of a law, which may lose digits in differences and gains
WORST = 0.05  # a state at which single precision loses more is left out
LOSS = 30.0  # times the error of Python's own kernel in single precision
TYPE: dict[str, Any] = {"double": np.float64, "float": np.float32}


@dataclass(frozen=True)
class Case:
    """A function's inputs and its answer; tolerance: of the largest number of the answer."""

    inputs: Sequence[np.ndarray]
    answer: np.ndarray
    tolerance: float


def self_test(
    model: Model,
    prefix: str,
    real: str,
    functions: Sequence[tuple[Request, Any, CFunction]],
    control: Sequence[CFunction],
    law: AppliedForces | None,
    motion: CMotion | None,
    parameters: Parameters,
    options: Mapping[str, Any],
) -> str:
    """Source of main(), which compares and returns 0 if all is well."""
    start = motion.motion.problem.q[0] if motion else options.get("near")
    states = closed_states(model, start, STATES)
    calls, bodies = [], []
    for request, kernel, f in functions:
        cases = _cases(model, request, kernel, real, states, parameters)
        if not cases:
            words = "answers none of the states of the self-test; near= names a closed state of the assembly"
            warnings.warn(f"export: {request.function} of {model.name!r} {words}", SpanloopWarning, stacklevel=5)
        bodies.append(_test_of_function(f, cases, real))
        calls.append(f"    failed += {f.name}_test();\n")
    for f in control:
        assert law is not None
        bodies.append(_test_of_function(f, _control_cases(law, f, real, states), real))
        calls.append(f"    failed += {f.name}_test();\n")
    if motion:
        bodies.append(_test_of_motion(motion, real))
        calls.append(f"    failed += {prefix}_motion_test();\n")
    return (
        f"#ifdef {prefix.upper()}_TEST\n#include <stdio.h>\n\n"
        + _shared(prefix, real)
        + "".join(bodies)
        + "int main(void)\n{\n    int failed = 0;\n"
        + "".join(calls)
        + f'    printf("{prefix}: %s\\n", failed == 0 ? "all tests passed" : "FAILED");\n'
        + "    return failed != 0;\n}\n#endif\n"
    )


# ---- functions


def _cases(
    model: Model, request: Request, kernel: Any, real: str, states: Sequence[Any], parameters: Parameters
) -> list[Case]:
    """States with the answers of machine code in double precision."""
    rng = np.random.default_rng(7)
    exact = kernel if real == "double" else request.kernel(model, "float64")
    out = []
    for j, (q, v) in enumerate(states):
        known = {"q": q, "v": v, "start": states[j - 1][0], "parameters": _changed(model, parameters)}
        rows = [np.ascontiguousarray(_input(n, k, known, rng).astype(TYPE[real])) for n, k in kernel.inputs]
        answer = np.empty(kernel.shape)
        if not exact.attempt([np.ascontiguousarray(x, float) for x in rows], answer):
            continue
        tolerance = CLOSE[real]
        if real == "float":
            own = np.empty(kernel.shape, np.float32)
            if not kernel.attempt(rows, own):
                continue
            tolerance = max(tolerance, LOSS * _difference(own, answer))
            if tolerance > WORST:
                continue
        out.append(Case(rows, answer.ravel(), tolerance))
    return out


def _control_cases(law: AppliedForces, f: CFunction, real: str, states: Sequence[Any]) -> list[Case]:
    """States with the torques, or the next memory, of the law on Python's floats."""
    rng, out = np.random.default_rng(9), []
    for q, v in states:
        known = {"q": q, "v": v, "t": np.array([rng.uniform(0.0, 1.0)]), "h": np.array([1e-3])}
        rows = [known.get(a.name, 0.5 * rng.standard_normal(a.size)).astype(TYPE[real]) for a in f.arguments]
        answer = control_answer(law, f, rows)
        if np.isfinite(answer).all():
            out.append(Case(rows, answer, CONTROL_CLOSE[real]))
    return out


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max(initial=0.0) / max(float(np.abs(b).max(initial=0.0)), 1e-30))


def _input(name: str, size: int, known: Mapping[str, Any], rng: np.random.Generator) -> np.ndarray:
    """A number for each place of an input."""
    if name in known:
        return np.asarray(known[name])
    return 0.5 * rng.standard_normal(size)


def _changed(model: Model, parameters: Parameters) -> np.ndarray:
    """Other numbers than the model's own, with which the loops stay closed: another gravity and other masses."""
    rigid = not any(j.kind.bends for j in model.joints)  # masses of flexible bodies do not change alone
    changes = [n.startswith("gravity.") or (rigid and n.endswith(".mass")) for n in parameters.names]
    found: np.ndarray = parameters.values * np.where(changes, 0.9, 1.0)
    return found


def _test_of_function(f: CFunction, cases: Sequence[Case], real: str) -> str:
    """static int name_test(void): failures of one function."""
    n, p = f.result.size, f.prefix
    largest = max((float(np.abs(c.answer).max(initial=0.0)) for c in cases), default=0.0)
    least = number(float(TYPE[real](max(SMALL * largest, 1e-30))), real)
    lines = [f"    {real} out[{max(n, 1)}], largest = {number(0.0, real)};", "    int failed = 0;"]
    for k, case in enumerate(cases):
        rows = [_table(f"in{k}_{j}", x, real) for j, x in enumerate(case.inputs)]
        lines += [*rows, _table(f"out{k}", case.answer, real)]
    for k, case in enumerate(cases):
        given = ", ".join([*(f"in{k}_{j}" for j in range(len(case.inputs))), "out"])
        close = number(float(TYPE[real](case.tolerance)), real)
        lines.append(f"    failed += {f.name}({given}) != 0;")
        lines.append(f"    failed += {p}_differ(out, out{k}, {n}, {close}, {least}, &largest);")
    sized = [a for a in f.arguments if a.size]
    if cases and sized:
        lines += _refused(f, cases[0], real)
    lines += [f'    printf("%-40s %s, largest difference %.1e of the answer (%d states)\\n", "{f.name}",']
    lines += [f'           failed == 0 ? "ok" : "FAILED", (double)largest, {len(cases)});', "    return failed;"]
    return f"static int {f.name}_test(void)\n{{\n" + "\n".join(lines) + "\n}\n\n"


def _refused(f: CFunction, case: Case, real: str) -> list[str]:
    """Lines that call the function with a number that is not finite, which it must refuse."""
    k = next(k for k, a in enumerate(f.arguments) if a.size)
    a = f.arguments[k]
    given = [f"in0_{j}" for j in range(len(case.inputs))]
    given[k] = "bad"
    return [
        "    {",
        f"        {real} bad[{a.size}];",
        f"        memcpy(bad, in0_{k}, sizeof bad);",
        f"        bad[{a.size - 1}] = ({real})NAN;",
        f"        failed += {f.name}({', '.join([*given, 'out'])}) != {f.prefix.upper()}_NOT_FINITE;",
        f"        failed += {f.result.size} > 0 && !(out[0] != out[0]);" if f.result.size else "        (void)out;",
        "    }",
    ]


def _table(name: str, x: np.ndarray, real: str) -> str:
    values = ", ".join(number(float(v), real) for v in x) or number(0.0, real)
    return f"    static const {real} {name}[{max(len(x), 1)}] = {{{values}}};"


def _shared(prefix: str, real: str) -> str:
    zero, fabs = number(0.0, real), "fabs" if real == "double" else "fabsf"
    head = f"const {real} *a, const {real} *b, int size, {real} close, {real} least, {real} *largest"
    return f"""static int {prefix}_differ({head})
{{
    {real} most = least, worst = {zero};
    int k, bad = 0;
    for (k = 0; k < size; k++) {{
        const {real} difference = {fabs}(a[k] - b[k]);
        if ({fabs}(b[k]) > most) most = {fabs}(b[k]);
        if (difference > worst) worst = difference;
        bad |= difference != difference;
    }}
    if (worst / most > *largest) *largest = worst / most;
    return bad || !(worst <= close * most);
}}

"""


# ---- motion


def _test_of_motion(motion: CMotion, real: str) -> str:
    """static int name_motion_test(void): failures of a motion of a few steps."""
    p, m = motion.prefix, motion.motion
    u = _inputs(motion)
    q, v, count = _reference(motion, u)
    close = number(1e-9 if real == "double" else 1e-3, real)
    nq, nv, least = len(q), len(v), number(1e-3, real)
    lines = [_table("end_q", q, real), _table("end_v", v, real)]
    lines += [_table("u", u, real)] if motion.n_inputs else []
    lines += [f"    {p}_motion motion;", f"    {real} q[{nq}], v[{nv}], largest = {number(0.0, real)};"]
    lines += ["    int k, failed = 0;", f"    {p}_start(&motion);"]
    call = f"{p}_step(&motion{', u' if motion.n_inputs else ''})"
    lines += [f"    for (k = 0; k < {count}; k++) failed += {call} != 0;"]
    lines += [f"    failed += {p}_state(&motion, q, v) != 0;"]
    lines += [f"    failed += {p}_differ(q, end_q, {nq}, {close}, {least}, &largest);"]
    lines += [f"    failed += {p}_differ(v, end_v, {nv}, {close}, {least}, &largest);"]
    if motion.n_inputs:
        lines += ["    {", f"        {real} bad[{len(u)}];", "        memcpy(bad, u, sizeof bad);"]
        lines += [
            f"        bad[0] = ({real})NAN;",
            f"        failed += {p}_step(&motion, bad) != {p.upper()}_NOT_FINITE;",
        ]
        lines += [f"        failed += motion.steps != {count};", "    }"]
    lines += [f'    printf("%-40s %s, largest difference %.1e (%d steps of {m.step!r} s)\\n", "{p}_step",']
    lines += [f'           failed == 0 ? "ok" : "FAILED", (double)largest, {count});', "    return failed;"]
    return f"static int {p}_motion_test(void)\n{{\n" + "\n".join(lines) + "\n}\n\n"


def _inputs(motion: CMotion) -> np.ndarray:
    """Inputs u of all steps: small torques, or what the controller begins with."""
    if not motion.n_inputs:
        return np.zeros(0)
    problem = motion.motion.problem
    given = np.array(motion.motion.start["u"], float)
    if not problem.applied.inputs_are_torques and not motion.has_force_inputs:
        return given
    try:
        size = 0.1 * float(np.abs(problem.robot.gravity_torques(problem.q[0])).max(initial=0.0))
    except SpanloopError:
        size = 0.0
    return given + (size or 0.01) * np.cos(np.arange(len(given)))


def _reference(motion: CMotion, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """q and v after a few steps of sl.simulate, and how many there are."""
    m = motion.motion
    given = dict(m.arguments)
    if len(u):
        given["tau" if m.problem.applied.inputs_are_torques or "controller" not in given else "inputs"] = u
    integrator = Integrator(m.integrator, dtype=m.dtype, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpanloopWarning)  # of the start: the motion has warned already
        run = simulate(m.problem.robot, duration=STEPS * m.step, step=m.step, integrator=integrator, **given)
    for count in range(STEPS, 0, -1):  # events add samples between those of steps
        found = np.flatnonzero(np.abs(run.times - m.problem.start - count * m.step) < 1e-6 * m.step)
        if len(found):
            return run.q[found[-1]], run.v[found[-1]], count
    return run.q[0], run.v[0], 0
