"""When an answer is right: within 1e-9 of its largest number, or within 100 times what one rounding of its inputs does.

`weights` makes numbers of different units comparable. Numbers that are within this bound and yet off by more than 1e-9
of themselves (and 1e-12 of the largest) are counted, not wrong.
"""

from __future__ import annotations

import numpy as np

BOUND = 1e-9
ROUNDINGS = 100  # effects of one rounding of the inputs
SMALL = 1e-12
SINGULAR = 1e-14  # a pivot below this of its scale: an answer is wrong
REGULAR = 3e-4  # a pivot above this: a refusal is wrong; kernels refuse below 2e-5, or 2e-4 where M is factored


def tolerance(exact, shaken, weights, terms=None, pivot=None, strict: bool = False) -> np.ndarray:
    """What each number of `exact` (numbers, n) may be off.

    shaken: the same numbers from inputs moved by one rounding, one array a draw. weights (numbers,): factors that make
    numbers of different units comparable (a length for angles). terms: numbers like `exact` that cancel in it. pivot
    (n,): smallest pivots, if the answer is in single precision (docs/accuracy.md says the bound). strict: each number
    within 1e-9 of itself.
    """
    effect = np.max([np.abs(x - exact) for x in shaken], axis=0)
    weights = np.asarray(weights, dtype=exact.dtype)[:, None]
    size = np.abs(exact)
    all_terms = size if terms is None else np.maximum(size, np.abs(terms))
    largest = (weights * all_terms).max(0) / weights if len(size) else size
    if pivot is not None:
        with np.errstate(divide="ignore"):
            share = np.clip(1e-6 / pivot, 1e-4, 5e-3)
        return np.maximum(share * largest, ROUNDINGS * 2.0**29 * effect)
    if strict:
        return np.maximum.reduce((BOUND * size, ROUNDINGS * effect, SMALL * largest))
    return np.maximum(BOUND * largest, ROUNDINGS * effect)


def worst(answer, exact, allowed) -> np.ndarray:
    """How many times the tolerance each state (n,) is off at its worst number; NaN where the answer is NaN."""
    off = np.abs(answer - exact)
    with np.errstate(invalid="ignore", divide="ignore"):
        times = np.where(off == 0, 0, off / allowed)
    return times.max(0).astype(float) if len(times) else np.zeros(exact.shape[-1])
