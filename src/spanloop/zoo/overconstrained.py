"""Loops that move although their joints' count forbids it."""

from __future__ import annotations

from math import acos, cos, pi
from typing import Any

import numpy as np

from spanloop.errors import InputError
from spanloop.joints import Revolute
from spanloop.model.build import Builder
from spanloop.model.model import Model
from spanloop.model.shapes import cylinder


def bricard(*, length: float = 0.4) -> Model:
    """Six equal bars in a ring, each with its two hinges square to it and to each other. Mobility 1.

    Six hinges leave a ring in space no freedom in general; this one, Bricard's trihedral linkage with equal sides,
    has one in every position: link lengths a, twists ±π/2 in turn, no offsets. The first five hinges make the tree,
    the last one closes it with all its five rows, of which four are independent. One bar is the ground.
    """
    b = Builder("bricard")
    parent, place = "world", dict[str, Any]()
    for i in range(1, 6):
        b.body(f"bar{i}", 0.5, (0.5 * length, 0.0, 0.0), cylinder(0.5, 0.02, length, "x"))
        b.revolute(f"hinge{i}", parent, f"bar{i}", "z", actuated=i == 1, **place)
        parent = f"bar{i}"
        place = {"position": (length, 0.0, 0.0), "rotation": (_twist(i), 0.0, 0.0)}
    b.frame("last_end", "bar5", **place)
    b.frame("ground_end", "world", (-length, 0.0, 0.0), (-_twist(6), 0.0, 0.0))
    return b.close("last_end", "ground_end", Revolute(), name="hinge6").build()


def bricard_start(*, length: float = 0.4, angle: float = 1.9) -> np.ndarray:
    """q (5,): hinges 1, 3, 5 stand at `angle` θ [rad], 2, 4 and 6 at φ with cos θ + cos φ + cos θ cos φ = 0."""
    c = cos(angle)
    if not -0.5 <= c <= 1.0:
        raise InputError(f"bricard: angle is {angle:g} rad; the ring closes up to {2.0 * pi / 3.0:g} rad")
    other = acos(-c / (1.0 + c))
    return np.array((angle, other, angle, other, angle))


def _twist(i: int) -> float:
    return 0.5 * pi if i % 2 else -0.5 * pi
