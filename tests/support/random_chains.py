"""Random simple closed chains with a state at which they are closed: arms on an object, legs under a body.

A support (the world, or a driven palm), a reference member that floats, and chains of joints of all kinds between
them. Type 0: chains stand on the support and their tips touch the reference member through closures of random kinds;
Type 1: the other way round. Rows must be independent and well conditioned.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from random_loops import CLOSING, WELL_CONDITIONED, Case, condition, fitted, moving

from spanloop.joints import KINDS
from spanloop.model.builder import Builder
from spanloop.zoo.random_models import add_random_body, random_kind, random_options, random_position, random_rotation

MOSTLY = ("revolute", "revolute", "revolute", "prismatic", "helical")
RARELY = tuple(n for n in KINDS if n not in ("fixed", "free"))


def random_chains(
    seed: int,
    sort: int | None = None,
    closing: str | None = None,
    joints: tuple[int, int] = (2, 8),
    arms: int | None = None,
    moving_support: bool | None = None,
) -> Case:
    """sort: 0 (arms) or 1 (legs); closing: kind of every closure; joints: of a chain, from and below; arms: chains."""
    rng = np.random.default_rng(seed)
    sort = int(rng.integers(0, 2)) if sort is None else sort
    while True:
        tree, tips = _tree(rng, seed, sort, joints, arms, moving_support)
        q, _ = tree.random_state(rng)
        root = "support" if any(j.name == "carrying" for j in tree.joints) else "world"
        loops = []
        for k, tip in enumerate(tips):
            name = closing or str(rng.choice(CLOSING))
            a, b = (tip, "object") if sort == 0 else (root, tip)
            loops.append(fitted(tree, q, f"grasp{k}", name, a, b, rng))
        model = replace(tree, loops=tuple(loops))
        if sum(6 - x.kind.nv for x in loops) < tree.nv and condition(model, q) < WELL_CONDITIONED:
            return moving(model, q, rng)


def _tree(rng, seed: int, sort: int, joints, arms, moving_support):
    """Support, reference member and open chains; the names of the bodies at the chains' ends."""
    b = Builder(f"random_chains{seed}")
    support = "world"
    by_chance = rng.uniform() < 0.3
    if by_chance if moving_support is None else moving_support:
        add_random_body(b, "support", rng)
        b.joint("carrying", random_kind(str(rng.choice(("free", "planar", "revolute"))), rng), "world", "support")
        support = "support"
    add_random_body(b, "object", rng)
    b.free("floating", "world", "object", random_position(rng), random_rotation(rng))
    tips = []
    for k in range(int(rng.integers(1, 5)) if arms is None else arms):
        parent = support if sort == 0 else "object"
        for i in range(int(rng.integers(*joints))):
            body = f"arm{k}_{i}"
            add_random_body(b, body, rng)
            kind = random_kind(str(rng.choice(MOSTLY if rng.uniform() < 0.85 else RARELY)), rng)
            b.joint(
                f"joint{k}_{i}",
                kind,
                parent,
                body,
                random_position(rng),
                random_rotation(rng),
                **random_options(kind, rng),
            )
            parent = body
        tips.append(parent)
    model = b.build()
    return (model.drive("carrying") if support == "support" else model), tips
