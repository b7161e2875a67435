"""A Solution in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from spanloop.loops.solving import Solution

NOT_UNIQUE = " (not unique in every row: the shortest; see unique_rows)"


def said(solution: Solution) -> str:
    """A line for each part of a single state's answer; of many states, how they came out."""
    if solution.a.ndim > 1:
        return _many(solution)
    lines = [f"a    {_numbers(solution.a)}", f"tau  {_numbers(solution.tau)}"]
    for name, six in solution.forces.items():
        alone = "" if solution.unique.get(name, True) else NOT_UNIQUE
        lines.append(f"{name}: torque {_numbers(six[:3])} N m, force {_numbers(six[3:])} N{alone}")
    left = f", closure acceleration left {float(solution.residual):.1e}" if solution.forces else ""
    return "\n".join([*lines, f"status: {solution.status}{left}"])


def _many(solution: Solution) -> str:
    words, counts = np.unique(solution.status, return_counts=True)
    lines = [
        f"{solution.status.size} states {solution.status.shape}, {solution.a.shape[-1]} freedoms: "
        + ", ".join(f"{n} {word}" for word, n in zip(words, counts, strict=True))
    ]
    for name, six in solution.forces.items():
        sizes = [np.linalg.norm(six[..., k : k + 3], axis=-1) for k in (0, 3)]
        torque, force = (np.nanmax(x) if np.isfinite(x).any() else np.nan for x in sizes)
        alone = "" if solution.unique.get(name, True) else NOT_UNIQUE
        lines.append(f"{name}: torques up to {torque:.4g} N m, forces up to {force:.4g} N{alone}")
    return "\n".join(lines)


def _numbers(x: np.ndarray) -> str:
    return np.array2string(np.asarray(x), precision=5, suppress_small=True, max_line_width=200, threshold=40)
