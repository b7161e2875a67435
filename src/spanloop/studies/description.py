"""The description of a study as plain texts: what its numbers depend on. Stores are compared by it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spanloop.kernels import content, source_hash
from spanloop.simulation.callback_identity import NotIdentifiable, identity
from spanloop.simulation.integrators.integrator import schedule_key
from spanloop.simulation.problem import Problem
from spanloop.studies.draws.designs import Design
from spanloop.studies.draws.distributions import Distribution
from spanloop.studies.kept import Item
from spanloop.studies.setup import Setup

_ASSIGNED = 1024  # runs, at most, whose numbers describe what assign does
_DIGITS = 9  # of these numbers
_OF_THE_GRID = ("integrator", "duration", "step", "sample")  # which are described by what was made of them


def description(
    setup: Setup, problem: Problem, design: Design, given: Mapping[str, Any], arguments: Mapping[str, Any],
    distributions: Sequence[Distribution], named_inputs: Sequence[str], defaults: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """What the numbers of a study depend on, as texts; stores are compared by it.

    Draws depend on the place of a variable in `vary`, and controllers read inputs by their places: both have an order.
    """
    names = setup.variables.names
    vary = {n: _text(d) for n, d in zip(names, distributions, strict=True)}
    if design.table is not None:
        vary = {n: f"table {_digest(design.table[:, k].tobytes())}" for k, n in enumerate(names)}
    key = schedule_key(problem.system, problem.events, setup.integrator.name, setup.integrator.dtype)
    shown = {n: _text(arguments[n]) for n in arguments if n not in _OF_THE_GRID}
    return {
        "model": f"{setup.model.name} {_digest(str(content(setup.model)).encode())}",
        "vary": vary,
        "order of vary": list(names),
        "design": design.kind,
        "runs": design.runs,
        "seed": design.seed,
        "assign": _text_of_assign(setup, design, given["assign"]),
        "keep": {item.name: _text_of_item(item) for item in setup.items},
        "trajectories": bool(setup.trajectories),
        "duration": setup.grid.duration,
        "steps": setup.grid.steps,
        "samples": f"{len(setup.samples)} of every {setup.grid.every} steps",
        "integrator": f"{setup.integrator.name}, {setup.integrator.dtype}",
        "inputs": _text_of_inputs(named_inputs, setup.inputs),
        **{n: x for n, x in shown.items() if x != _text(defaults.get(n))},
        "what acts": _digest(key.encode()),
        "spanloop's sources": source_hash()[:12],
    }


def _text_of_inputs(names: Sequence[str], values: np.ndarray | None) -> Any:
    """Inputs by name, in their order; those that change from step to step as one text."""
    if values is None or values.ndim > 1:
        return _text(values)
    return [f"{name} = {x!r}" for name, x in zip(names, values.tolist(), strict=True)]


def _text_of_assign(setup: Setup, design: Design, assign: Any) -> str:
    """What assign is made of, and what it gives the first runs: not all that a function reads can be compared."""
    if assign is None:
        return _text(None)
    found = setup.variables.assigned(design.rows(0, min(_ASSIGNED, design.runs)))
    parts = sorted(f"{target.name}: {_rounded(x)}" for target, x in found.items())
    return f"{_text(assign)}, numbers {_digest(' '.join(parts).encode())}"


def _rounded(x: np.ndarray) -> str:
    """Numbers (n,) to _DIGITS of the largest, as text: libraries round the last ones as the machine does."""
    largest = f"{np.abs(x).max(initial=0.0, where=np.isfinite(x)):.{_DIGITS}e}"
    shares = x / (float(largest) or 1.0) * 10.0**_DIGITS
    return f"{largest} {_digest((np.round(shares) + 0.0).tobytes())}"


def _text_of_item(item: Item) -> str:
    written = item.quantity.written if item.quantity is not None else None
    return f"{item} {_text(written)}" if written is not None else str(item)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def _text(x: Any) -> str:
    """An argument as text that is the same in another process; functions by what they are made of."""
    if isinstance(x, Mapping):
        return "{" + ", ".join(f"{k}: {_text(y)}" for k, y in x.items()) + "}"
    if isinstance(x, list | tuple):
        return "[" + ", ".join(map(_text, x)) + "]"
    if isinstance(x, np.ndarray):
        return f"array {x.shape} {_digest(np.ascontiguousarray(x).tobytes())}"
    if hasattr(x, "__dataclass_fields__") and not callable(x):
        parts = ", ".join(f"{n}={_text(getattr(x, n))}" for n in x.__dataclass_fields__)
        return f"{type(x).__name__}({parts})"
    if x is None or isinstance(x, str | bool | int | float | np.number):
        return repr(x)
    name = getattr(x, "__name__", type(x).__name__)
    try:
        return f"{name} {identity(x)[:12]}"
    except NotIdentifiable:  # what acts has a hash of its own
        return str(name)
