"""A hand that lifts a box between two fingers on slides."""

from __future__ import annotations

import math

import numpy as np

import spanloop as sl
from spanloop.joints import SoftFinger

MASS, HALF = 0.8, 0.03  # of the box [kg], half its width [m]


def two_fingers(switchable: bool = False) -> sl.Model:
    """Hand up along z, fingers along x toward each other, a box on soft fingers; z of their frames is into the box."""
    b = sl.Builder("two_fingers")
    b.body("hand", 1.0, inertia=(1e-3, 1e-3, 1e-3))
    b.prismatic("lift", "world", "hand", "z")
    b.body("left", 0.1, inertia=(1e-4, 1e-4, 1e-4))
    b.prismatic("close_left", "hand", "left", "x", (-HALF, 0.0, 0.0))
    b.body("right", 0.1, inertia=(1e-4, 1e-4, 1e-4))
    b.prismatic("close_right", "hand", "right", "-x", (HALF, 0.0, 0.0))
    b.body("box", MASS, inertia=(5e-4, 5e-4, 5e-4))
    b.free("floating", "world", "box")
    model = b.build()
    for side, sign in (("left", 1.0), ("right", -1.0)):
        model = model.with_frame(f"{side}_pad", side, (0.0, 0.0, 0.0), (0.0, sign * math.pi / 2, 0.0))
        model = model.with_frame(f"{side}_face", "box", (-sign * HALF, 0.0, 0.0), (0.0, sign * math.pi / 2, 0.0))
        model = model.with_loop(f"{side}_pad", f"{side}_face", SoftFinger(), name=f"hold_{side}", switchable=switchable)
    return model.actuate(["lift", "close_left", "close_right"])


def lifting(model: sl.Model, force: float, a: float, g: float = 9.80665) -> np.ndarray:
    """Torques (nv) that press with `force` [N] and lift with `a` [m/s²]."""
    tau = np.zeros(model.nv)
    total = sum(x.inertia.mass for x in model.bodies)
    for joint, x in (("lift", total * (g + a)), ("close_left", force), ("close_right", force)):
        tau[model.v_slice(joint)] = x
    return tau
