"""Random trees of 1 to 60 bodies with every kind of joint, some with one link that carries twelve."""

from __future__ import annotations

import functools

import numpy as np

import spanloop as sl
from spanloop import zoo
from spanloop.zoo.bodies import add_random_body, random_position, random_rotation
from spanloop.zoo.kinds import random_kind

CARRIED = 12


@functools.cache
def tree(seed: int) -> sl.Model:
    """A random tree: of three, one floats, one is rooted, and one has a link with twelve children."""
    n = int(np.random.default_rng(1000 + seed).integers(1, 61))
    if seed % 3 == 0:
        return zoo.random_model(seed, n_bodies=n, free=True)
    model = zoo.random_model(seed, n_bodies=n)
    return model if seed % 3 == 1 else with_bouquet(zoo.random_model(seed, n_bodies=1 + n % 20), seed)


def with_bouquet(model: sl.Model, seed: int) -> sl.Model:
    """The model with twelve more bodies on its last one, on joints of every kind that moves."""
    rng = np.random.default_rng(2000 + seed)
    kinds = [k for k in sl.joints.KINDS if k != "fixed"] if hasattr(sl, "joints") else _moving()
    b = sl.Builder(f"{model.name}_bouquet", gravity=model.gravity)
    for j in model.joints:
        i = model.body(j.child).inertia
        b.body(j.child, i.mass, i.center, np.array(i.matrix()))
        options = {"damping": j.damping, "armature": j.armature, "stiffness": j.stiffness, "rest": j.rest}
        options = {k: x for k, x in options.items() if any(x)}
        b.joint(j.name, j.kind, j.parent, j.child, j.placement.position, j.placement.rotation, **options)
    host = model.bodies[-1].name
    for k in range(CARRIED):
        add_random_body(b, f"flower{k}", rng)
        kind = random_kind(kinds[k % len(kinds)], rng)
        options = {"armature": [0.02] * kind.nv} if k % 4 == 0 else {}
        b.joint(f"stem{k}", kind, host, f"flower{k}", random_position(rng), random_rotation(rng), **options)
    return b.build()


def _moving() -> list[str]:
    from spanloop.joints import KINDS

    return [k for k in KINDS if k != "fixed"]
