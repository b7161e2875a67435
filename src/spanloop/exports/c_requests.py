"""The functions that a C file is to have: their names, the options that each takes, their kernels and comments."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spanloop.algorithms import catalog
from spanloop.compiler.lower import PairSystem, Plan
from spanloop.errors import InputError, SpanloopWarning, UnsupportedError, listed, nearest
from spanloop.exports.c_function import Argument, CFunction
from spanloop.exports.c_names import identifier, prefix_of
from spanloop.kernels import compile as compiled
from spanloop.kernels.lowering import LOOP_THRESHOLD
from spanloop.model import Model

TAKEN_BY = {
    "forces": "loaded",
    "frame": "frame",
    "expressed_in": "expressed_in",
    "frames": "frames",
    "points": "points",
    "open_chain": "open_chain",
}  # options of sl.compile that some functions take, and what the catalog calls them
FOR_ALL = ("parameters", "on_singular", "near", "regroup", "lowering")
OF_ONE = ("function", "method", "derivative", "wrt", *TAKEN_BY, *FOR_ALL)  # of the table of one function
MANY = 100_000  # operations beyond which a warning says how large the file will be
BYTES = 5  # of machine code for an operation, about

NOTES = {
    "q": "coordinates, in the order of the enum of places in q",
    "v": "velocities [rad/s or m/s], in the order of the enum of places in v",
    "a": "accelerations [rad/s2 or m/s2]",
    "tau": "torques [N m] or forces [N] at the joints",
    "forces": "[torque; force] on each body at its origin in world axes [N m; N]",
    "parameters": "numbers of the model, in the order of the enum of places of parameters",
    "start": "coordinates at the start",
    "delta": "change of the coordinates, one entry for each DoF",
}
RESULTS = {
    "forward_dynamics": ("a", "accelerations [rad/s2 or m/s2]"),
    "inverse_dynamics": ("tau", "torques [N m] or forces [N] at the joints"),
    "tree_inverse_dynamics": ("tau", "torques [N m] or forces [N] that joints and loops supply together"),
    "bias": ("tau", "torques [N m] or forces [N] of velocities and gravity"),
    "gravity_torques": ("tau", "torques [N m] or forces [N] that hold the mechanism at rest"),
    "mass_matrix": ("M", "mass matrix"),
    "mass_matrix_inverse": ("inverse", "inverse of the mass matrix"),
    "pose": ("pose", "homogeneous matrix, frame to world [m]"),
    "poses": ("poses", "homogeneous matrices of all bodies, body to world [m]"),
    "jacobian": ("J", "Jacobian, rows [angular; linear]"),
    "energy": ("energy", "kinetic and potential energy [J]"),
    "closure_error": ("error", "by how far loops are open [rad or m]"),
}


def torque_note(model: Model) -> str:
    """What the entries of tau and of the inputs u of a motion are: of driven joints they are accelerations."""
    driven = [j.name for j in model.joints if j.driven]
    if not driven:
        return NOTES["tau"]
    return f"{NOTES['tau']}; accelerations [rad/s2 or m/s2] at driven joints: {listed(map(repr, driven), 4)}"


@dataclass(frozen=True)
class Request:
    """A function of the file: its name in C (without the prefix), that of the catalog, and options of sl.compile."""

    name: str
    function: str
    options: Mapping[str, Any]

    def kernel(self, model: Model, dtype: str) -> Any:
        """The kernel in machine code, whose plan is written and whose answers the self-test compares with."""
        return compiled(model, self.function, dtype=dtype, **self.options)


def requests_of(
    model: Model, functions: Sequence[str] | Mapping[str, Any], options: Mapping[str, Any], moves: bool = False
) -> tuple[Request, ...]:
    """The functions with those of the options that each takes; InputError for an option that none takes.

    moves: the file has a motion, which takes a method and forces too.
    """
    own = functions if isinstance(functions, Mapping) else {}
    found: list[Request] = []
    used: set[str] = set()
    for name in functions:
        if not isinstance(name, str):
            raise InputError(f"export: {name!r} is no name of a function; expected one such as 'forward_dynamics'")
        table = _table(name, own.get(name, name))
        function = table.pop("function")
        _refuse_closed_inverse(model, function)
        shared = _taken(model, function, table.get("method", options.get("method")), options)
        used |= set(shared)
        found.append(Request(_checked(name), function, {**shared, **table}))
    for option in options:
        if option in used or option in FOR_ALL or (moves and option in ("method", "forces")):
            continue
        if found and options[option] is not None:
            takes = [n for n, f in catalog.FUNCTIONS.items() if TAKEN_BY.get(option) in f.options]
            raise InputError(
                f"export: none of {listed(repr(r.function) for r in found)} takes {option}="
                + (f"; {listed(takes, 4)} do" if takes else "")
            )
    twice = [r.name for k, r in enumerate(found) if r.name in [x.name for x in found[:k]]]
    if twice:
        raise InputError(f"export: {twice[0]!r} is named twice")
    return tuple(found)


def _table(name: str, given: Any) -> dict[str, Any]:
    """The options of one function, with its name of the catalog as "function"; InputError where they do not fit."""
    example = "{'function': 'pose', 'frame': 'tool'}"
    if isinstance(given, str):
        return {"function": given}
    if not isinstance(given, Mapping):
        raise InputError(f"export: the function {name!r} is {given!r}; expected a name as 'pose', or {example}")
    if "function" not in given and name not in catalog.FUNCTIONS:
        raise InputError(f'export: the table of {name!r} has no "function"; expected one such as {example}')
    table = {"function": name, **given}
    if not isinstance(table["function"], str):
        raise InputError(f"export: \"function\" of {name!r} is {table['function']!r}; expected a name, as 'pose'")
    for option in table:
        if option not in OF_ONE:
            raise InputError(f"export: the table of {name!r} takes no {option!r}; {nearest(str(option), OF_ONE)}")
    return table


def _refuse_closed_inverse(model: Model, function: str) -> None:
    """UnsupportedError for inverse dynamics of closed mechanisms, with what has it."""
    if function == "inverse_dynamics" and (model.loops or model.couplings):
        raise UnsupportedError(
            f"export: inverse_dynamics of {model.name!r}, which has loops or coupled joints, is no single kernel. "
            "Give controller=sl.control.computed_torque(...), which computes it"
        )


def _taken(model: Model, function: str, method: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the shared options that a function takes."""
    closed = bool(model.loops or model.couplings)
    entry = catalog.function(function)
    methods = entry.closed if closed and entry.closed is not None else entry.methods
    out = {n: x for n, x in options.items() if n in FOR_ALL and x is not None}
    if method in methods:
        out["method"] = method
    _, algorithm = catalog.algorithm(function, out.get("method"), closed)
    return out | {n: x for n, x in options.items() if TAKEN_BY.get(n) in algorithm.takes}


def _checked(name: str) -> str:
    if identifier(name) != name or not name:
        prefix_of(name, "function")
    return name


def c_functions(
    model: Model, requests: Iterable[Request], prefix: str, real: str
) -> list[tuple[Request, Any, CFunction]]:
    """Each request with its kernel and its C function."""
    dtype = "float64" if real == "double" else "float32"
    return [(r, k, c_function(model, r, k, prefix, real)) for r in requests for k in (r.kernel(model, dtype),)]


def c_function(model: Model, request: Request, kernel: Any, prefix: str, real: str) -> CFunction:
    """The C function of a kernel; UnsupportedError where it has no portable form."""
    plan = kernel.plan
    label = f"export: {request.function} of {model.name!r}"
    if not isinstance(plan, Plan):
        if isinstance(plan, PairSystem):
            raise UnsupportedError(
                f"{label}: these derivatives are loops over pairs of DoF, which have no form in C. "
                "Export derivative='jvp' or 'vjp'"
            )
        raise UnsupportedError(
            f"{label}: beyond {LOOP_THRESHOLD} links kernels are loops over links, which have no form in C. "
            f"Written out it takes about {plan.operations.total} operations ({_size(plan.operations.total)}); "
            "lowering='unrolled' writes them all the same"
        )
    warn_of_size(label, len(plan.nodes))
    notes = {**NOTES, "tau": torque_note(model)}
    notes["forces"] = f"{NOTES['forces']}: {', '.join(map(repr, request.options.get('forces', ())))}"
    arguments = tuple(Argument(n.replace(".", "_"), size, notes.get(n, n)) for n, size in plan.inputs)
    name, note = RESULTS.get(request.function, ("answer", request.function.replace("_", " ")))
    if "derivative" in request.options:
        name, note = "answer", f"derivative ({request.options['derivative']}) of {request.function}"
    shape = " x ".join(map(str, plan.shape))
    rows = f" ({shape}, row by row)" if len(plan.shape) > 1 else ""
    name = f"{name}_out" if name in {a.name for a in arguments} else name
    chosen = {n: x for n, x in request.options.items() if n not in ("near", "forces") and x and x != "baked"}
    given = ", ".join(f"{n}={x!r}" for n, x in chosen.items())
    words = request.function.replace("_", " ").capitalize() + (f" with {given}" if given else "")
    about = (f"{words}: {len(plan.nodes)} operations.",)
    result = Argument(name, len(plan.outputs), note + rows)
    return CFunction(f"{prefix}_{request.name}", plan, arguments, result, about, prefix, real)


def warn_of_size(label: str, operations: int) -> None:
    """Warn of code that compilers take long for."""
    if operations > MANY:
        words = f"{label}: {operations} operations, {_size(operations)} of machine code; compilers take long"
        warnings.warn(words, SpanloopWarning, stacklevel=6)


def _size(operations: int) -> str:
    return f"about {max(1, operations * BYTES // 1000)} kB"
