"""Serial arms: the two of Saha's paper with the path they follow, and an arm with no special numbers.

Reading of the tables: `model/files/dh/table.py` has frames; the mass centre of link i is at O_{i+1} − r_i, in frame
i+1; inertias are about it. Gravity is 9.81 m/s² along −z of frame 1, which the text does not state.
"""

from __future__ import annotations

from math import pi

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError, nearest
from spanloop.model.files.dh.table import DHRow, from_dh
from spanloop.model.model import Model


def puma() -> Model:
    """PUMA with six revolute joints. [Saha, Table 3]"""
    table = (
        DHRow(0.0, 0.0, -pi / 2, 0.0, "r", 10.521, (0.0, 0.0, 0.054), (1.612, 1.612, 0.5091)),
        DHRow(0.432, 0.149, 0.0, 0.0, "r", 15.761, (0.292, 0.0, 0.0), (0.4898, 8.0783, 8.2672)),
        DHRow(0.02, 0.0, -pi / 2, 0.0, "r", 8.767, (0.02, 0.0, -0.197), (3.3768, 3.3768, 0.3009)),
        DHRow(0.0, 0.432, -pi / 2, 0.0, "r", 1.052, (0.0, -0.057, 0.0), (0.181, 0.1273, 0.181)),
        DHRow(0.0, 0.0, -pi / 2, 0.0, "r", 1.052, (0.0, 0.0, -0.007), (0.0735, 0.1273, 0.0735)),
        DHRow(0.0, 0.05, 0.0, 0.0, "r", 0.351, (0.0, 0.0, 0.019), (0.0071, 0.0071, 0.0141)),
    )
    return from_dh(table, "puma")


def stanford() -> Model:
    """Stanford arm: joint 3 slides, the others turn. [Saha, Table 4]

    Read literally, the table puts not every mass centre on its link; no choice of sign would mend that.
    The free fall of the text's figure starts from `stanford_start()`.
    """
    table = (
        DHRow(0.0, 0.1, -pi / 2, 0.0, "r", 9.0, (0.0, -0.1, 0.0), (0.01, 0.02, 0.01)),
        DHRow(0.0, 0.1, -pi / 2, 0.0, "r", 6.0, (0.0, 0.0, 0.0), (0.05, 0.06, 0.01)),
        DHRow(0.0, 0.0, 0.0, 0.0, "p", 4.0, (0.0, 0.0, 0.0), (0.4, 0.4, 0.01)),
        DHRow(0.0, 0.6, pi / 2, 0.0, "r", 1.0, (0.0, -0.1, 0.0), (0.001, 0.001, 0.0005)),
        DHRow(0.0, 0.0, -pi / 2, 0.0, "r", 0.6, (0.0, 0.0, -0.06), (0.0005, 0.0005, 0.0002)),
        DHRow(0.0, 0.0, 0.0, 0.0, "r", 0.5, (0.0, 0.0, 0.2), (0.003, 0.001, 0.002)),
    )
    return from_dh(table, "stanford")


def dh_arm(n: int = 6) -> Model:
    """n hinges with Denavit-Hartenberg parameters and inertias of which none is special, to count operations on.

    No twist is a right angle, no length and no product of inertia is zero.
    """
    if n < 1:
        raise InputError(f"zoo: dh_arm: {n} is asked for; expected at least 1")
    table = []
    for k in range(n):
        x = 0.1 * (0.618034 * k % 1.0)  # never the same twice
        moments = (0.05 + x, 0.004, -0.003, 0.06 + x, 0.002, 0.04 + x)
        table.append(DHRow(0.3 + x, 0.1 + x, 0.7 + x, 0.0, "r", 2.0 + x, (0.15 + x, 0.03, -0.02), moments))
    return from_dh(table, f"dh_arm{n}")


def stanford_start(start: str = "text") -> np.ndarray:
    """Return q (6,), where the Stanford arm's free fall starts.

    "text": θ₂ = π/2 and the others 0, as section 2.5.2 has it for the path. "table": all zeros, as Table 4a
    has it; then only b₃ falls, along the vertical.
    """
    starts = {"text": (0.0, pi / 2, 0.0, 0.0, 0.0, 0.0), "table": (0.0,) * 6}
    if start not in starts:
        raise InputError(f"stanford: there is no start {start!r}; {nearest(start, starts)}")
    return np.array(starts[start])


def cycloidal_path(
    start: ArrayLike, end: ArrayLike, duration: float, times: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, v, a (n, nq) at times (n,) [s] from rest at `start` to rest at `end`. [Saha, eq. 22-23]

    start, end: (nq,) one number a joint [rad or m]; duration T [s]. Saha's arms move in this way:
    θ = θ(0) + (θ(T) − θ(0))/T · (t − T/2π sin(2π t/T))
    """
    if not duration > 0.0:
        raise InputError(f"cycloidal_path: duration is {duration!r} s; must be > 0")
    first, last = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    t = np.asarray(times, dtype=float)[..., None]
    mean, turn = (last - first) / duration, 2.0 * np.pi / duration
    q = first + mean * (t - np.sin(turn * t) / turn)
    return q, mean * (1.0 - np.cos(turn * t)), mean * turn * np.sin(turn * t)
