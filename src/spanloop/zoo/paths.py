"""Paths in joint coordinates, for examples and comparisons."""

from __future__ import annotations

import numpy as np

from spanloop.errors import InputError


def cycloidal_path(start, end, duration: float, times) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v, a (n, nq) at times (n,) [s]: from rest at `start` to rest at `end`, as Saha's arms move. [Saha, eq. 22-23]

    θ = θ(0) + (θ(T) − θ(0))/T · (t − T/2π sin(2π t/T)); start, end (nq,): one number a joint, [rad] or [m].
    """
    if not duration > 0.0:
        raise InputError(f"cycloidal_path: duration is {duration!r} s; must be > 0")
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    t = np.asarray(times, dtype=float)[..., None]
    mean, turn = (end - start) / duration, 2.0 * np.pi / duration
    q = start + mean * (t - np.sin(turn * t) / turn)
    return q, mean * (1.0 - np.cos(turn * t)), mean * turn * np.sin(turn * t)
