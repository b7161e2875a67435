"""Rates of values that are known at some times, by cubic splines."""

from __future__ import annotations

import numpy as np

LEAST = 4  # samples that determine a cubic


def slopes(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """d/dt (n, m) at times (n,), n ≥ 4, of the cubic spline through values (n, m).

    The spline has two continuous derivatives; its third is continuous at the second and at the last but one time
    ("not a knot"), so that cubics are met exactly. The slopes err by O(h⁴), near the ends by O(h³).
    """
    h = np.diff(times)[:, None]
    rise = np.diff(values, axis=0) / h
    lower, middle, upper = np.zeros((3, len(times)))
    right = np.empty_like(values)
    lower[1:-1], middle[1:-1], upper[1:-1] = h[1:, 0], 2.0 * (h[1:, 0] + h[:-1, 0]), h[:-1, 0]
    right[1:-1] = 3.0 * (h[1:] * rise[:-1] + h[:-1] * rise[1:])
    middle[0], upper[0], right[0] = _end(h[0, 0], h[1, 0], rise[0], rise[1])
    middle[-1], lower[-1], right[-1] = _end(h[-1, 0], h[-2, 0], rise[-1], rise[-2])
    return _solved(lower, middle, upper, right)


def _end(near: float, next_: float, rise: np.ndarray, next_rise: np.ndarray) -> tuple[float, float, np.ndarray]:
    """The row of an end: factors of its slope and its neighbour's, and the right side."""
    both = near + next_
    return next_, both, ((near + 2.0 * both) * next_ * rise + near**2 * next_rise) / both


def _solved(lower: np.ndarray, middle: np.ndarray, upper: np.ndarray, right: np.ndarray) -> np.ndarray:
    """x (n, m) of a tridiagonal system; its pivots are positive."""
    pivot, x = middle.copy(), right.copy()
    for k in range(1, len(x)):
        factor = lower[k] / pivot[k - 1]
        pivot[k] -= factor * upper[k - 1]
        x[k] -= factor * x[k - 1]
    x[-1] /= pivot[-1]
    for k in range(len(x) - 2, -1, -1):
        x[k] = (x[k] - upper[k] * x[k + 1]) / pivot[k]
    return x
