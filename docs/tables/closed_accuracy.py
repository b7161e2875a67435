"""Prints the section of docs/accuracy.md on closed mechanisms: errors of forward dynamics by family and method.

python docs/tables/closed_accuracy.py

The mechanisms are those of tests/attack/attacked_loops.py, the exact answers those of tests/attack/loop_reference.py.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("SPANLOOP_CACHE", "off")
ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("attack", "support")]

import attacked_loops  # noqa: E402
import numpy as np  # noqa: E402
from closed import Judge  # noqa: E402
from trees import quiet  # noqa: E402

import spanloop as sl  # noqa: E402

MECHANISMS, STATES = 24, 60  # of each family
FAMILIES = {  # sizes [m], decades of mass above and below the mean
    "1 m, similar masses": (1.0, 0.5),
    "10 µm": (1e-5, 0.5),
    "1 km": (1e3, 0.5),
    "1 m, mass ratios to 1e6": (1.0, 3.0),
    "1 m, mass ratios to 1e12": (1.0, 6.0),
}
COLUMNS = (
    ("elimination", "float64"),
    ("dense", "float64"),
    ("closed_topology", "float64"),
    ("simple_closed_chain", "float64"),
    ("elimination", "float32"),
)
PIVOTS = ((0.1, 10.0), (0.01, 0.1), (1e-3, 0.01), (1e-4, 1e-3), (1e-6, 1e-4))


def errors(judge: Judge, method: str, dtype: str) -> np.ndarray | None:
    """The largest error of each state relative to its largest acceleration; NaN where refused."""
    try:
        robot = sl.Dynamics(judge.model, method=method, dtype=dtype)
        a, _ = quiet(robot.forward_dynamics, judge.q, judge.v, judge.tau, **judge.options)
    except sl.errors.UnsupportedError:
        return None
    weights = judge.lengths[:, None]
    size = np.maximum(np.abs(judge.a), 1e-3 * np.abs(judge.free))
    return np.array((weights * np.abs(a.T - judge.a)).max(0) / (weights * size).max(0), dtype=float)


def cell(found: list[np.ndarray]) -> str:
    """The error that 99 % of the answers keep, the largest, and the share of refusals."""
    every = np.concatenate(found) if found else np.zeros(0)
    answered = every[np.isfinite(every)]
    if not len(answered):
        return "refused" if len(every) else "–"
    share = 1.0 - len(answered) / len(every)
    refused = f", {100 * share:.0f} % refused" if share > 0.005 else ""
    return f"{np.quantile(answered, 0.99):.0e} ({answered.max():.0e}{refused})"


def judged(family: str, number: int):
    """A mechanism of a family at regular states, or None if it has none."""
    size, decades = FAMILIES[family]
    rng = np.random.default_rng([7, list(FAMILIES).index(family), number])
    body = attacked_loops._body
    attacked_loops._body = lambda b, name, rng, mass, size, ratio=1.0: body(b, name, rng, mass, size, decades)
    try:
        made = attacked_loops.THEMES[number % len(attacked_loops.THEMES)](rng, size, 1.0)
    finally:
        attacked_loops._body = body
    judge = Judge(made, STATES, family, rng)
    return judge if len(judge.q) else None


def main() -> None:
    by_family, by_pivot = defaultdict(list), defaultdict(list)
    for family in FAMILIES:
        for number in range(MECHANISMS):
            judge = judged(family, number)
            if judge is None:
                continue
            regular = ~judge.singular & ~judge.contrary & np.isfinite(judge.pivot)
            for column in COLUMNS:
                found = errors(judge, *column)
                if found is None:
                    continue
                by_family[family, column].append(found[regular & (judge.pivot > 1e-2)])
                for least, most in PIVOTS:
                    near = regular & (judge.pivot > least) & (judge.pivot <= most)
                    if family == "1 m, similar masses":
                        by_pivot[(least, most), column].append(found[near])
    head = " | ".join(f"`{method}`" + ("" if dtype == "float64" else f", {dtype}") for method, dtype in COLUMNS)
    print(f"| family | {head} |\n|---|{'---|' * len(COLUMNS)}")
    for family in FAMILIES:
        print(f"| {family} | " + " | ".join(cell(by_family[family, c]) for c in COLUMNS) + " |")
    print(f"\n| smallest pivot | {head} |\n|---|{'---|' * len(COLUMNS)}")
    for least, most in PIVOTS:
        name = f"above {least:g}" if most > 1 else f"{least:g} to {most:g}"
        print(f"| {name} | " + " | ".join(cell(by_pivot[(least, most), c]) for c in COLUMNS) + " |")


if __name__ == "__main__":
    main()
