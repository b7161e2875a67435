"""Quantities at every sample: kernels over all rows that hold a state, NaN elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from spanloop.errors import SpanloopWarning

ROWS = 8192  # states at once: what a kernel gives for them stays small


def over_samples(name: str, compute: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """compute(*rows (k, size)) → (k, *shape) for all samples of arrays (..., n, size), as (..., n, *shape).

    Rows with NaN, after a run's end, stay NaN. Other samples without an answer are NaN, too, with one warning.
    """
    leading = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    rows = [np.broadcast_to(a, (*leading, a.shape[-1])).reshape(-1, a.shape[-1]) for a in arrays]
    good = np.flatnonzero(np.logical_and.reduce([np.isfinite(a).all(axis=1) for a in rows]))
    parts, said = [], []
    for k in range(0, max(len(good), 1), ROWS):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SpanloopWarning)
            parts.append(compute(*(a[good[k : k + ROWS]] for a in rows)))
        said += [str(w.message) for w in caught if issubclass(w.category, SpanloopWarning)]
    found = np.concatenate(parts)
    if said:
        lost = ~np.isfinite(found.reshape(len(found), -1)).all(axis=1)
        why = said[0].partition(": ")[2].partition(": ")[2] or said[0]
        message = f"{name}: {lost.sum()} of {len(found)} samples have no answer; they are NaN. The first: {why}"
        warnings.warn(message, SpanloopWarning, stacklevel=4)
    out = np.full((len(rows[0]), *found.shape[1:]), np.nan)
    out[good] = found
    return out.reshape(*leading, *found.shape[1:])
