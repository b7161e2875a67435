"""Reduction of large finite-element models: time and memory, beside the same eigenvalues of the whole model by SciPy.

    python benchmarks/finite_elements.py [elements along, across, across] [--whole]

Needs the extra `fem` (scikit-fem). A steel bar of quadratic tetrahedra, 58 8 8 has 1.0e5 degrees of freedom, to 20
modes by Craig-Bampton (6 static, 14 inner). Peak memory is that of the process, less what the mesh and its matrices
took. --whole computes the first six frequencies of the whole model besides.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np

import spanloop as sl

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from solid_elements import Solid, bar


def peak() -> float:
    """Largest memory of the process so far [GB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    numbers = [int(x) for x in sys.argv[1:] if x.isdigit()] or [58, 8, 8]
    start = time.perf_counter()
    solid = Solid(bar(counts=tuple(numbers)))
    meshed = time.perf_counter() - start
    print(f"{solid.basis.N} degrees of freedom, {solid.stiffness.nnz} entries; meshed in {meshed:.1f} s")
    before = peak()
    wall, cpu = time.perf_counter(), time.process_time()
    part = sl.flexible.from_matrices(
        solid.mass,
        solid.stiffness,
        solid.positions,
        dofs=solid.dofs,
        interfaces={"root": solid.at(0.0), "tip": solid.at(0.5)},
        modes=14,
    )
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"to {part.n} modes: {wall:.1f} s ({cpu:.1f} s CPU), peak memory {peak():.2f} GB ({before:.2f} GB before)")
    print(part)
    if "--whole" in sys.argv:
        wall = time.perf_counter()
        exact = solid.held_frequencies(solid.rows_at(solid.at(0.0)), 6)
        print(f"whole model, tip free: {time.perf_counter() - wall:.1f} s, {exact / (2 * np.pi)} Hz")


if __name__ == "__main__":
    main()
