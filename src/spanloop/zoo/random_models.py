"""Random trees with joints of every kind, and the random bodies, joints and placements that they consist of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.joints import KINDS, General, Helical, JointKind, Universal
from spanloop.joints.kind import AxisJoint
from spanloop.model import user_input
from spanloop.model.builder import Builder
from spanloop.model.model import Model
from spanloop.types import Floats3

_SCREW_AND_SLIDE = ((0.0, 0.0, 1.0, 0.0, 0.0, 0.05), (0.0, 0.0, 0.0, 1.0, 0.0, 0.0))


def random_model(
    seed: int, n_bodies: int | None = None, kinds: Sequence[str] | None = None, free: bool | None = None
) -> Model:
    """Return a random tree, the same for the same arguments; the world may have several children.

    seed: of the random numbers
    n_bodies: 2 to 10 by default
    kinds: names of the kinds of joints to choose from, all by default
    free: True lets the first body float, False excludes free joints everywhere, None leaves it to chance

    Axes, placements, physically possible inertias and the direction of gravity are random, and so are damping, armature
    and springs of some joints. The first joint moves unless all kinds are fixed.
    """
    names = _names(kinds, free)
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 11)) if n_bodies is None else n_bodies
    b = Builder(f"random{seed}", gravity=9.81 * _unit(rng))
    for i in range(n):
        add_random_body(b, f"body{i + 1}", rng)
        above = int(rng.integers(0, i + 1)) if rng.uniform() < 0.5 else i
        choice = names if i else [name for name in names if name != "fixed"] or names
        name = "free" if i == 0 and free else str(rng.choice(choice))
        parent = f"body{above}" if above else "world"
        kind = random_kind(name, rng)
        rotation = random_rotation(rng) if rng.uniform() < 0.8 else None
        options = random_options(kind, rng)
        b.joint(f"joint{i + 1}", kind, parent, f"body{i + 1}", random_position(rng), rotation, **options)
    return b.build()


def _names(kinds: Sequence[str] | None, free: bool | None) -> list[str]:
    for name in kinds or ():
        if name not in KINDS:
            raise InputError(f"random_model: no kind of joint is called {name!r}; {nearest(name, KINDS)}")
    return [name for name in kinds or KINDS if name != "free" or free is not False]


def random_options(kind: JointKind, rng: np.random.Generator) -> dict[str, Any]:
    """Damping, armature and a spring, each on one joint in three; a general joint has no spring."""
    options: dict[str, Any] = {}
    for name, largest in (("damping", 0.5), ("armature", 0.05), ("stiffness", 5.0)):
        values = rng.uniform(0.0, largest, kind.nv)
        if rng.uniform() < 1.0 / 3.0 and not (name == "stiffness" and kind.name == "general"):
            options[name] = values.tolist()
    if "stiffness" in options and kind.nv:
        options["rest"] = kind.plus(kind.neutral(), rng.uniform(-0.5, 0.5, kind.nv).tolist())
    return options


def _unit(rng: np.random.Generator) -> np.ndarray:
    a = rng.normal(size=3)
    unit: np.ndarray = a / np.linalg.norm(a)
    return unit


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


def plain_kind(name: str) -> JointKind:
    """The kind with default axes; a screw of 0.05 m/rad; as general joint that screw and a slide along x."""
    if name == "helical":
        return Helical(pitch=0.05)
    if name == "general":
        return General(_SCREW_AND_SLIDE)
    return user_input.joint_kind(name, "zoo")


def random_kind(name: str, rng: np.random.Generator) -> JointKind:
    """The kind with random axes: a universal joint's are not square, a general joint has 1 to 5 DoF."""
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


def direction(rng: np.random.Generator) -> Floats3:
    """A unit vector, along a coordinate axis one time in three."""
    if rng.uniform() < 1.0 / 3.0:
        a = np.zeros(3)
        a[rng.integers(3)] = rng.choice((-1.0, 1.0))
    else:
        a = rng.normal(size=3)
        a /= np.linalg.norm(a)
    x, y, z = a.tolist()
    return (x, y, z)


def _two_directions(rng: np.random.Generator) -> tuple[Floats3, Floats3]:
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
