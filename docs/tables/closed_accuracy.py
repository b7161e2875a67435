"""Prints the table of closed mechanisms of docs/accuracy.md: errors of forward dynamics by family and method.

python docs/tables/closed_accuracy.py [cases of each family]

Cases are those of tests/support (random mechanisms at random states); the reference is that of tests/attack, an
independent dense solution in extended precision.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "attack")]

from loop_reference import Closed  # noqa: E402
from plain_data import data, shaken  # noqa: E402
from random_chains import random_chains  # noqa: E402
from random_inside import random_inside  # noqa: E402
from random_legs import random_legs  # noqa: E402
from random_loops import Case, random_loops, random_plane_loop, scaled, unequal  # noqa: E402

import spanloop as sl  # noqa: E402
from spanloop.kernels.spec import KernelSpec  # noqa: E402
from spanloop.topology import mechanism  # noqa: E402

METHODS = (
    "elimination",
    "dense",
    "simple_closed_chain",
    "closed_topology",
    "arms_on_object",
    "arms_on_object_1",
    "arms_on_object_2",
    "arms_on_object_3",
    "parallel_legs",
)
MAKERS = (random_loops, random_plane_loop, random_chains, random_inside, random_legs)
FAMILIES = {
    "well-scaled": lambda case, seed: case,
    "lengths × 1e-5": lambda case, seed: scaled(case, 1e-5),
    "lengths × 1e3": lambda case, seed: scaled(case, 1e3),
    "masses spread over 1e6": lambda case, seed: unequal(case, 6.0, seed),
    "masses spread over 1e12": lambda case, seed: unequal(case, 12.0, seed),
}


def cases(family: str, count: int) -> Iterator[Case]:
    """Random mechanisms of all kinds, without driven joints."""
    for maker in MAKERS:
        for seed in range(count):
            case = maker(seed)
            if not any(j.driven for j in case.model.joints):
                yield FAMILIES[family](case, seed)


def exact(case: Case) -> tuple[np.ndarray, float]:
    """Accelerations (nv,) in extended precision, and what one rounding of every input does to them, relative."""
    numbers, rng = data(case.model), np.random.default_rng(0)
    closed = Closed(numbers, case.q[:, None], case.v[:, None])
    a = closed.accelerations(case.tau[:, None])[0]
    moved = [shaken(x[:, None], rng) for x in (case.q, case.v, case.tau)]
    other = Closed(numbers.rounded(rng), *moved[:2], choice=closed.choice).accelerations(moved[2])[0]
    return a[:, 0], difference(case, other[:, 0], a[:, 0])


def difference(case: Case, a: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference of two accelerations, relative to the largest; metres are counted in loops' lengths."""
    units = 1.0 / np.array(mechanism(case.model).dof_lengths)
    return float(np.abs(units * (a - expected)).max() / np.abs(units * expected).max())


def outcome(case: Case, method: str, expected: np.ndarray) -> float | None:
    """The error relative to the largest acceleration; NaN if the state is refused, None if the model does not fit."""
    try:
        spec = KernelSpec.of(case.model, "forward_dynamics", method=method)
        inputs = {"q": case.q.tolist(), "v": case.v.tolist(), "tau": case.tau.tolist()}
        a, demands = spec.compute(inputs)
    except sl.errors.UnsupportedError:
        return None
    if not all(less < more for less, more in demands):
        return np.nan
    return difference(case, np.array(a), expected)


def row(family: str, count: int) -> str:
    """A line of the table: for each method the largest error, and how many states it refuses."""
    found: dict[str, list[float]] = {m: [] for m in METHODS}
    effects = []
    for case in cases(family, count):
        expected, effect = exact(case)
        effects.append(effect)
        for method in METHODS:
            error = outcome(case, method, expected)
            if error is not None:
                found[method].append(error)
    cells = [f"{family} ({len(effects)} states)", f"{max(effects):.0e}"]
    for errors in found.values():
        answered = [x for x in errors if np.isfinite(x)]
        refused = len(errors) - len(answered)
        worst = f"{max(answered):.0e}" if answered else "–"
        cells.append(worst + (f" ({refused} of {len(errors)} refused)" if refused else ""))
    return "| " + " | ".join(cells) + " |"


def table(count: int) -> Iterator[str]:
    heads = ["family", "one rounding", *(f"`{m}`" for m in METHODS)]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for family in FAMILIES:
        yield row(family, count)


if __name__ == "__main__":
    for line in table(int(sys.argv[1]) if len(sys.argv) > 1 else 20):
        print(line, flush=True)
