"""Random trees of 1 to 60 bodies with every kind of joint, some with one link that carries twelve."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

import spanloop as sl
from spanloop import zoo
from spanloop.joints import KINDS
from spanloop.zoo.random_models import add_random_body, random_kind, random_position, random_rotation

CARRIED = 12


@functools.cache
def tree(seed: int, kinds: tuple[str, ...] = tuple(KINDS)) -> sl.Model:
    """Of three trees one floats, one is as chance has it, and one has a link with twelve children more."""
    n = int(np.random.default_rng(1000 + seed).integers(1, 61))
    if seed % 3 == 2:
        return with_bouquet(zoo.random_model(seed, 1 + n % 20, kinds), seed, kinds)
    return zoo.random_model(seed, n, kinds, free=True if seed % 3 == 0 else None)


def with_bouquet(model: sl.Model, seed: int, kinds: tuple[str, ...] = tuple(KINDS)) -> sl.Model:
    """The model with twelve more bodies on its last one, on joints of every kind in turn; some have rotors."""
    rng = np.random.default_rng(2000 + seed)
    b = sl.Builder("bouquet").body("host", 1.0, inertia=(1.0, 1.0, 1.0)).free("root", "world", "host")
    for k in range(CARRIED):
        add_random_body(b, f"flower{k}", rng)
        kind = random_kind(kinds[k % len(kinds)], rng)
        options = {"armature": [0.02] * kind.nv} if k % 4 == 0 else {}
        b.joint(f"stem{k}", kind, "host", f"flower{k}", random_position(rng), random_rotation(rng), **options)
    built, host = b.build(), model.bodies[-1].name
    stems = (replace(j, parent=host) for j in built.joints[1:])
    return replace(model, bodies=model.bodies + built.bodies[1:], joints=(*model.joints, *stems))
