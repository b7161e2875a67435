"""Kernels of the functions that a simulation traces: torques, forces and events at many samples."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import numpy as np

from spanloop.compiler.lower import unrolled
from spanloop.compiler.runtime.kernel import Kernel, Recipe
from spanloop.errors import Reason, Refusal
from spanloop.kernels import source_hash


def kernel(name: str, sizes: Mapping[str, int], count: int, compute: Callable, key: str) -> Kernel:
    """A kernel of compute({array: scalars}) -> count scalars, and pairs of which the first must be less."""
    inputs = tuple(sizes.items())

    def answer(*rows: np.ndarray) -> np.ndarray | None:
        x = {n: [float(y) for y in row] for (n, _), row in zip(inputs, rows, strict=True)}
        try:
            numbers, pairs = compute(x)
            found = np.array(numbers, dtype=float)
        except (ZeroDivisionError, OverflowError):
            return None
        return found if np.isfinite(found).all() and all(a < b for a, b in pairs) else None

    def plan():
        def traced(x):
            numbers, pairs = compute(x)
            return numbers, (), [a < b for a, b in pairs]

        return unrolled(name, inputs, (count,), traced)

    def explain(*rows: np.ndarray) -> Refusal:
        return Refusal(Reason.NOT_FINITE, f"{name} has no finite value at this state")

    text = f"{key}|{name}|{inputs}|{source_hash()}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    found = _kernels.pop(digest, None)
    if found is None:
        found = Kernel(Recipe(name, digest, plan, answer, explain))
    if len(_kernels) >= _MOST:
        del _kernels[next(iter(_kernels))]
    _kernels[digest] = found
    return found


_kernels: dict[str, Kernel] = {}  # by key, the oldest first
_MOST = 64
