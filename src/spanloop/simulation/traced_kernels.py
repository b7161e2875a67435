"""What the traced functions of a simulation say at given states: torques, forces, watched values, for many samples."""

from __future__ import annotations

import functools
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
    place = _loaded(hashlib.sha256(text.encode()).hexdigest())
    if not place:
        place.append(Kernel(Recipe(name, hashlib.sha256(text.encode()).hexdigest(), plan, answer, explain)))
    return place[0]


@functools.lru_cache(maxsize=64)
def _loaded(key: str) -> list[Kernel]:
    """A place for the kernel with this key: one that was used a moment ago need not be loaded again."""
    return []
