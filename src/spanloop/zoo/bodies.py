"""Random bodies and placements that could exist."""

from __future__ import annotations

import numpy as np

from spanloop.model.build import Builder


def add_random_body(b: Builder, name: str, rng: np.random.Generator) -> None:
    """A body of about 1 kg and 0.1 m whose inertia a distribution of mass can have.

    Second moments J = R diag(d) Rᵀ with d > 0 give trace(J) 1 − J, which keeps the triangle inequality.
    """
    mass = float(rng.uniform(0.5, 2.0))
    turn = random_rotation(rng)
    second = turn @ np.diag(mass * rng.uniform(0.02, 0.15, 3) ** 2) @ turn.T
    inertia = np.trace(second) * np.eye(3) - second
    b.body(name, mass, rng.uniform(-0.15, 0.15, 3), 0.5 * (inertia + inertia.T))


def random_position(rng: np.random.Generator) -> np.ndarray:
    """A point up to 0.3 m away along each axis [m]."""
    return rng.uniform(-0.3, 0.3, 3)


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    """A rotation matrix, uniform over all rotations."""
    w, x, y, z = (e := rng.normal(size=4)) / np.linalg.norm(e)
    return np.array(
        (
            (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
            (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
            (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
        )
    )
