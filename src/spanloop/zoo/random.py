"""Random trees of every kind of joint: the tests' raw material."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.joints import KINDS, JointKind
from spanloop.model.builder import Builder
from spanloop.model.model import Model
from spanloop.zoo.random_parts import add_random_body, random_kind, random_position, random_rotation


def random_model(
    seed: int, n_bodies: int | None = None, kinds: Sequence[str] | None = None, free: bool | None = None
) -> Model:
    """A random tree, the same for the same arguments; the world may have several children.

    n_bodies: 2 to 10 if not given. kinds: names to choose from, all if not given. free: does the first body
    float? False also leaves free joints out elsewhere; None leaves it to chance. Random are axes, placements,
    inertias (possible ones), the direction of gravity, and on some joints damping, armature and springs. The
    first joint moves unless all kinds are fixed.
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
        options = _options(kind, rng)
        b.joint(f"joint{i + 1}", kind, parent, f"body{i + 1}", random_position(rng), rotation, **options)
    return b.build()


def _names(kinds: Sequence[str] | None, free: bool | None) -> list[str]:
    for name in kinds or ():
        if name not in KINDS:
            raise InputError(f"random_model: no kind of joint is called {name!r}; {nearest(name, KINDS)}")
    return [name for name in kinds or KINDS if name != "free" or free is not False]


def _options(kind: JointKind, rng: np.random.Generator) -> dict:
    """Damping, armature and a spring, each on one joint in three; a general joint has no spring."""
    options: dict = {}
    for name, largest in (("damping", 0.5), ("armature", 0.05), ("stiffness", 5.0)):
        values = rng.uniform(0.0, largest, kind.nv)
        if rng.uniform() < 1.0 / 3.0 and not (name == "stiffness" and kind.name == "general"):
            options[name] = values.tolist()
    if "stiffness" in options and kind.nv:
        options["rest"] = kind.plus(kind.neutral(), rng.uniform(-0.5, 0.5, kind.nv).tolist())
    return options


def _unit(rng: np.random.Generator) -> np.ndarray:
    a = rng.normal(size=3)
    return a / np.linalg.norm(a)
