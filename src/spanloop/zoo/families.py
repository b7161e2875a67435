"""Mechanisms of any size: pendulums, chains, trees, stars."""

from __future__ import annotations

from math import pi

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError
from spanloop.math.vector3 import times
from spanloop.model.builder import Builder
from spanloop.model.exact_rotations import rotation_of_angles, snap_rotation
from spanloop.model.model import Model
from spanloop.model.solid_inertia import box, cylinder, rod
from spanloop.types import Floats3
from spanloop.zoo.random_models import add_random_body, plain_kind, random_kind, random_position, random_rotation


def pendulum(n: int = 1, length: float = 1.0, mass: float = 1.0) -> Model:
    """n uniform thin rods hanging from each other, turning about y; at q = 0 they hang along −z."""
    _at_least_one(n, "pendulum")
    b = Builder(f"pendulum{n}")
    parent, top = "world", 0.0
    for i in range(1, n + 1):
        b.body(f"rod{i}", mass, (0.0, 0.0, -0.5 * length), rod(mass, length, "z"))
        b.revolute(f"hinge{i}", parent, f"rod{i}", "y", (0.0, 0.0, top))
        parent, top = f"rod{i}", -length
    b.frame("tip", parent, (0.0, 0.0, -length))
    return b.build()


def chain(n: int, joint: str = "revolute", seed: int | None = None) -> Model:
    """A serial chain of n links on joints of one kind.

    Without a seed: joints in turn 0.2 m along x and 0.1 m along z of the link, twisted by ±π/2 about x; the
    links are boxes. With a seed: random axes, placements and inertias, for tests that must not profit from
    zeros.
    """
    _at_least_one(n, "chain")
    b = Builder(f"chain{n}_{joint}" + ("" if seed is None else f"_{seed}"))
    rng = None if seed is None else np.random.default_rng(seed)
    parent = "world"
    for i in range(1, n + 1):
        body = f"link{i}"
        position: ArrayLike
        rotation: ArrayLike | None
        if rng is None:
            _add_plain_link(b, body, i)
            position, rotation = _plain_step(i - 1)
            kind = plain_kind(joint)
        else:
            add_random_body(b, body, rng)
            position, rotation = random_position(rng), random_rotation(rng)
            kind = random_kind(joint, rng)
        b.joint(f"joint{i}", kind, parent, body, position, rotation)
        parent = body
    b.frame("tool", parent, (0.2, 0.0, 0.0))
    return b.build()


def tree(n: int, branching: int = 2, seed: int = 0) -> Model:
    """n bodies on hinges, each with up to `branching` children; random axes, placements and inertias."""
    _at_least_one(n, "tree")
    _at_least_one(branching, "tree: branching")
    rng = np.random.default_rng(seed)
    b = Builder(f"tree{n}_{branching}_{seed}")
    for i in range(1, n + 1):
        above = (i - 2) // branching + 1
        add_random_body(b, f"body{i}", rng)
        kind = random_kind("revolute", rng)
        parent = "world" if i == 1 else f"body{above}"
        b.joint(f"joint{i}", kind, parent, f"body{i}", random_position(rng), random_rotation(rng))
    return b.build()


def star(n: int, joint: str = "spherical") -> Model:
    """A free disc with n legs of one link each around its rim."""
    _at_least_one(n, "star")
    b = Builder(f"star{n}_{joint}")
    b.body("hub", 4.0, inertia=cylinder(4.0, 0.2, 0.1))
    b.free("root", "world", "hub")
    for i in range(1, n + 1):
        angle = 2.0 * pi * (i - 1) / n
        b.body(f"leg{i}", 1.0, (0.15, 0.0, 0.0), box(1.0, 0.3, 0.05, 0.04))
        turn, _ = snap_rotation(rotation_of_angles(0.0, 0.0, angle))
        b.joint(f"joint{i}", plain_kind(joint), "hub", f"leg{i}", times(turn, (0.2, 0.0, 0.0)), turn)
    return b.build()


def _plain_step(i: int) -> tuple[Floats3, Floats3 | None]:
    """Position and rotation (roll, pitch, yaw) of the joint on link i."""
    if i == 0:
        return (0.0, 0.0, 0.0), None
    return ((0.2, 0.0, 0.0), (pi / 2, 0.0, 0.0)) if i % 2 else ((0.0, 0.0, 0.1), (-pi / 2, 0.0, 0.0))


def _add_plain_link(b: Builder, body: str, i: int) -> None:
    mass = 1.0 + 0.25 * (i % 3)
    center = (0.1, 0.01, 0.02) if i % 2 else (0.02, 0.01, 0.05)
    b.body(body, mass, center, box(mass, 0.2, 0.06, 0.08))


def _at_least_one(n: int, owner: str) -> None:
    if n < 1:
        raise InputError(f"zoo: {owner}: {n} is asked for; expected at least 1")
