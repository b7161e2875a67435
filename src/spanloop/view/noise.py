"""Levels below which numbers of a run are rounding, by unit: plots do not spread them over their whole height."""

from __future__ import annotations

import numpy as np

from spanloop.model import Model

SHARE = 1e-10  # of the mechanism's own scale
LIGHT = 1e-3  # of the weight
EARTH = 9.81  # m/s², for models without gravity


def least_force(model: Model) -> float:
    """The force [N] that scales the arrows of loops at least: smaller ones of a heavy mechanism are not drawn large."""
    return (LIGHT if any(model.gravity) else SHARE) * (weight(model) or 1.0)


def weight(model: Model) -> float:
    """The weight [N] of all bodies; on Earth, for models without gravity."""
    return sum(b.inertia.mass for b in model.bodies) * (float(np.linalg.norm(model.gravity)) or EARTH)


def noise_levels(model: Model, size: float = 1.0) -> dict[str, float]:
    """The level of each unit, from the mechanism's weight and size [m]."""
    force = SHARE * (weight(model) or 1.0)
    return {"N": force, "N m": force * size, "J": force * size, "rad": SHARE, "m": SHARE * size, "rad/s": SHARE,
            "m/s": SHARE * size}  # fmt: skip
