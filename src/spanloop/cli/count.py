"""`spanloop count`: operation counts of every function and method, before multiplications and additions are fused."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from spanloop.cli.terminal import add_json, print_json

if TYPE_CHECKING:
    from spanloop.compiler.lower import Operations
    from spanloop.model import Model

EXAMPLES = (
    "spanloop count zoo:puma",
    "spanloop count zoo:dh_arm --growth",
    "spanloop count zoo:quadruped --frame fl_foot --json",
)
PLAIN = (
    "forward_dynamics",
    "inverse_dynamics",
    "mass_matrix",
    "mass_matrix_inverse",
    "bias",
    "gravity_torques",
    "energy",
)
FRAMED = ("pose", "jacobian", "jacobian_bias", "operational_inverse_inertia", "force_response")
COLUMNS = {"multiplications": "×", "additions": "+", "divisions": "÷", "sincos": "sin/cos"}
SIZES = range(3, 11)  # of a family, for its growth


def arguments(parser: argparse.ArgumentParser) -> None:
    from spanloop.cli.shared_arguments import add_model

    add_model(parser)
    parser.add_argument("--frame", metavar="NAME", help="also count the functions of this frame")
    parser.add_argument("--growth", action="store_true", help="for a family of the zoo: formulas in its size n")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Print the counts of a model, or the growth of a family."""
    from spanloop.cli.shared_arguments import loading, model_of

    frames = () if chosen.frame is None else (chosen.frame,)
    if chosen.growth:
        family = family_of(chosen.file, chosen.base)
        found = {key: written(value) for key, value in growth(family, SIZES, frames).items()}
        shown = {"family": chosen.file, "sizes": list(SIZES), "formulas": _nested(found)}
        title = f"{chosen.file}, in its size n (from n = {SIZES[0]} to {SIZES[-1]})"
    else:
        model = model_of(chosen.file, **loading(chosen))
        counted = {key: asdict(n) for key, n in counts(model, frames).items()}
        found = {key: {c: str(n[c]) for c in COLUMNS} for key, n in counted.items()}
        shown = {"model": model.name, "nv": model.nv, "operations": _nested(counted)}
        title = f"{model.name}: nv = {model.nv}"
    if chosen.json:
        print_json(shown)
    else:
        print(f"{title}\n{table(found)}")
    return 0


def counts(model: Model, frames: Sequence[str] = ()) -> dict[tuple[str, str], Operations]:
    """Operations by function and method, without methods that do not support the model."""
    from spanloop.algorithms.catalog import FUNCTIONS
    from spanloop.errors import InputError, UnsupportedError
    from spanloop.kernels import operations

    closed = bool(model.loops or model.couplings)
    found = {}
    for name in PLAIN + (FRAMED if frames else ()):
        entry = FUNCTIONS[name]
        for method in entry.closed if closed and entry.closed is not None else entry.methods:
            try:
                found[name, method] = operations(model, name, method, frames)
            except UnsupportedError:
                continue
            except InputError:
                if frames:
                    raise  # an unknown frame
    return found


def family_of(word: str, base: str | None = None) -> Callable[[int], Model]:
    """The mechanisms zoo:NAME:1, zoo:NAME:2, ..."""
    from spanloop.cli.shared_arguments import ZOO, model_of
    from spanloop.errors import InputError

    if not word.startswith(ZOO) or word.count(":") != 1:
        raise InputError(f"{word}: --growth needs a family of the zoo, without a number; try zoo:dh_arm or zoo:chain")
    model_of(f"{word}:{SIZES[0]}", base)  # raises if the name is wrong
    return lambda n: model_of(f"{word}:{n}", base)


def growth(
    family: Callable[[int], Model], sizes: Sequence[int], frames: Sequence[str] = ()
) -> dict[tuple[str, str], dict[str, tuple[Fraction, ...] | None]]:
    """Polynomials in n, lowest power first, by function and method, that hold at every size; None if there is none of
    degree 3 or less. Sizes must be consecutive, at least six."""
    many = [counts(family(n), frames) for n in sizes]
    return {
        key: {c: polynomial(sizes[0], [getattr(m[key], c) for m in many]) for c in COLUMNS}
        for key in many[0]
        if all(key in m for m in many)
    }


def polynomial(first: int, values: Sequence[int]) -> tuple[Fraction, ...] | None:
    """The polynomial through values at first, first + 1, ..., from differences; two values at least must confirm it."""
    leading: list[int] = []
    row = list(values)
    while row and any(row) and len(leading) <= 4:
        leading.append(row[0])
        row = [b - a for a, b in pairwise(row)]
    if len(leading) > 4 or len(values) < len(leading) + 2:
        return None
    powers = [Fraction(0)] * max(len(leading), 1)
    basis = [Fraction(1)]  # (n − first choose k), by powers of n
    for k, d in enumerate(leading):
        for i, x in enumerate(basis):
            powers[i] += d * x
        shift = Fraction(first + k)
        up, down = [Fraction(0), *basis], [*basis, Fraction(0)]
        basis = [(a - shift * b) / (k + 1) for a, b in zip(up, down, strict=True)]  # times (n − first − k)/(k + 1)
    return tuple(powers)


def formula(powers: tuple[Fraction, ...] | None) -> str:
    """81n−105 for (−105, 81)."""
    if powers is None:
        return "no formula"
    text = ""
    for k in reversed(range(len(powers))):
        if powers[k]:
            size = "" if abs(powers[k]) == 1 and k else str(abs(powers[k]))
            sign = "−" if powers[k] < 0 else "+" if text else ""
            text += f"{sign}{size}{('', 'n', 'n²', 'n³')[k]}"
    return text or "0"


def written(columns: dict[str, tuple[Fraction, ...] | None]) -> dict[str, str]:
    return {c: formula(p) for c, p in columns.items()}


def table(rows: dict[tuple[str, str], dict[str, str]]) -> str:
    """Function, method, and a column for each kind of operation."""
    lines = [("function", "method", *COLUMNS.values())]
    lines += [(*key, *(row[c] for c in COLUMNS)) for key, row in rows.items()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{x:<{w}}" if k < 2 else f"{x:>{w}}" for k, (x, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    )


def _nested(found: dict[tuple[str, str], Any]) -> dict[str, dict[str, Any]]:
    out: dict[str, dict[str, Any]] = {}
    for (function, method), value in found.items():
        out.setdefault(function, {})[method] = value
    return out
