"""Random bodies and placements that could exist."""

from __future__ import annotations

import numpy as np

from spanloop.joints import KINDS, General, Helical, JointKind, Universal
from spanloop.joints.kind import AxisJoint
from spanloop.model import user_input
from spanloop.model.builder import Builder


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


# ---- A joint of every kind for the families of mechanisms: with plain axes, or with random ones.


_SCREW_AND_SLIDE = ((0.0, 0.0, 1.0, 0.0, 0.0, 0.05), (0.0, 0.0, 0.0, 1.0, 0.0, 0.0))


def plain_kind(name: str) -> JointKind:
    """The kind with default axes; a screw of 0.05 m/rad; as general joint that screw and a slide along x."""
    if name == "helical":
        return Helical(pitch=0.05)
    if name == "general":
        return General(_SCREW_AND_SLIDE)
    return user_input.joint_kind(name, "zoo")


def random_kind(name: str, rng: np.random.Generator) -> JointKind:
    """The kind with random axes: a universal joint's are not square, a general joint has 1 to 5 freedoms."""
    if name == "universal":
        return Universal(*_two_directions(rng))
    if name == "helical":
        return Helical(direction(rng), pitch=float(rng.uniform(-0.3, 0.3)))
    if name == "general":
        return General(_columns(rng, int(rng.integers(1, 6))))
    kind = KINDS.get(name)
    if kind is not None and issubclass(kind, AxisJoint):
        return kind(direction(rng))
    return plain_kind(name)


def direction(rng: np.random.Generator) -> tuple[float, float, float]:
    """A unit vector, along a coordinate axis one time in three."""
    if rng.uniform() < 1.0 / 3.0:
        a = np.zeros(3)
        a[rng.integers(3)] = rng.choice((-1.0, 1.0))
    else:
        a = rng.normal(size=3)
        a /= np.linalg.norm(a)
    x, y, z = a.tolist()
    return (x, y, z)


def _two_directions(rng: np.random.Generator):
    """Two unit vectors, more than 30 degrees from parallel."""
    first, second = direction(rng), direction(rng)
    while abs(np.dot(first, second)) > 0.85:
        second = direction(rng)
    return first, second


def _columns(rng: np.random.Generator, n: int) -> tuple[tuple[float, ...], ...]:
    """n columns of six numbers, well independent: rows of a random orthogonal matrix, rescaled."""
    orthogonal = np.linalg.qr(rng.normal(size=(6, 6)))[0][:n]
    scaled = rng.uniform(0.5, 1.5, size=(n, 1)) * orthogonal
    return tuple(tuple(column) for column in scaled.tolist())
