"""Random simple closed chains with loops inside: the raw material of test_loops_inside_chains.py.

Arms on an object or legs under a body as in random_chains.py. Up to four closures more, of random kinds, join two links
of one chain, links of two chains, a link and the support, or two of the bodies that hang on the object alone. Some
chains begin with a four-bar of hinges in a plane that lies askew: three of its closure's five rows are redundant.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from dense_closures import ClosedReference
from random_chains import MOSTLY, RARELY
from random_loops import CLOSING, WELL_CONDITIONED, Case, fitted, moving

from spanloop.model.builder import Builder
from spanloop.zoo.random_models import add_random_body, random_kind, random_options, random_position, random_rotation

SORTS = ("own", "two chains", "support", "carried")
_TRIES = 12


def random_inside(seed: int, sort: int | None = None, inside: str | None = None) -> Case:
    """sort: 0 (arms) or 1 (legs); inside: one of SORTS, for all loops inside. At least one is there."""
    rng = np.random.default_rng([seed, 5])
    sort = int(rng.integers(0, 2)) if sort is None else sort
    while True:
        tree, chains, four_bars = _tree(rng, seed, sort)
        q, _ = tree.random_state(rng)
        loops = [_plane(tree, q, f"pin{n}", *ends, rng) for n, ends in enumerate(four_bars)]
        for k, chain in enumerate(chains[:-1]):
            a, b = (chain[-1], "object") if sort == 0 else ("world", chain[-1])
            loops.append(fitted(tree, q, f"grasp{k}", str(rng.choice(CLOSING)), a, b, rng))
        held = replace(tree, name=f"random_inside{seed}", loops=tuple(loops))
        if _fits(held, q):
            model = _closed_inside(held, q, chains, inside, rng)
            if four_bars or len(model.loops) > len(loops):
                return moving(model, q, rng)


def _closed_inside(model, q, chains, inside: str | None, rng):
    """The model with up to four closures more that fit."""
    wanted = int(rng.integers(2, 5))
    start = len(model.loops)
    for _ in range(_TRIES):
        if len(model.loops) == start + wanted:
            break
        a, b = _ends(chains, inside or str(rng.choice(SORTS)), rng)
        if a == b:
            continue
        loop = fitted(model, q, f"inner{len(model.loops)}", str(rng.choice(CLOSING)), a, b, rng)
        trial = replace(model, loops=(*model.loops, loop))
        model = trial if _fits(trial, q) else model
    return model


def _ends(chains, sort: str, rng) -> tuple[str, str]:
    *arms, carried = chains
    if sort == "carried":
        return tuple(map(str, rng.choice(["object", *carried], 2, replace=False)))
    one = arms[int(rng.integers(len(arms)))]
    other = one if sort == "own" else ["world"] if sort == "support" else arms[int(rng.integers(len(arms)))]
    return str(rng.choice(one)), str(rng.choice(other))


def _fits(model, q) -> bool:
    """Is a freedom left, and are all rows well conditioned but the three of each pin that are redundant?"""
    reference = ClosedReference(model, q)
    J = np.array(reference.closure_jacobian(), dtype=float)
    W = np.linalg.solve(np.linalg.cholesky(reference.mass_matrix()), J.T).T
    lengths = np.linalg.norm(W, axis=1, keepdims=True)
    rank = len(J) - 3 * sum(x.name.startswith("pin") for x in model.loops)
    if rank >= model.nv:
        return False
    s = np.linalg.svd(np.where(lengths > 1e-9, W / np.maximum(lengths, 1e-9), 0.0), compute_uv=False)
    return s[0] < WELL_CONDITIONED * s[rank - 1]


def _plane(tree, q, name: str, a: str, b: str, rng):
    """A hinge between two links of a four-bar; the axis of both links' own hinges is z."""
    return fitted(tree, q, name, "revolute", a, b, rng, plane=ClosedReference(tree, q).pose(a)[:3, :3])


def _tree(rng, seed: int, sort: int):
    """Object and open chains; the bodies by chain, of which the last is that on the object; ends of four-bars."""
    b = Builder(f"random_inside{seed}")
    add_random_body(b, "object", rng)
    b.free("floating", "world", "object", random_position(rng), random_rotation(rng))
    chains, four_bars = [], []
    for k in range(int(rng.integers(1, 4))):
        root = "world" if sort == 0 else "object"
        chains.append([])
        if rng.uniform() < 0.4:
            root = _four_bar(b, k, root, rng)
            chains[-1] += [f"crank{k}", f"rocker{k}", root]
            four_bars.append((root, f"rocker{k}"))
        chains[-1] += _serial(b, f"arm{k}", root, int(rng.integers(3, 7)), rng)
    chains.append(_serial(b, "carried", "object", int(rng.integers(3, 6)), rng))
    return b.build(), chains, four_bars


def _serial(b: Builder, name: str, parent: str, n: int, rng) -> list[str]:
    out = []
    for i in range(n):
        add_random_body(b, f"{name}_{i}", rng)
        kind = random_kind(str(rng.choice(MOSTLY if rng.uniform() < 0.85 else RARELY)), rng)
        place = random_position(rng), random_rotation(rng)
        b.joint(f"{name}_joint{i}", kind, parent, f"{name}_{i}", *place, **random_options(kind, rng))
        parent = f"{name}_{i}"
        out.append(parent)
    return out


def _four_bar(b: Builder, k: int, root: str, rng) -> str:
    """Three bars on hinges of one plane; the name of the coupler."""
    turn = random_rotation(rng)
    for bar in ("crank", "rocker", "coupler"):
        add_random_body(b, f"{bar}{k}", rng)
    foot = rng.uniform(0.1, 0.3, 3)
    b.revolute(f"crank_hinge{k}", root, f"crank{k}", "z", (0.0, 0.0, 0.0), turn)
    b.revolute(f"rocker_hinge{k}", root, f"rocker{k}", "z", tuple(np.array(turn) @ foot), turn)
    b.revolute(f"coupler_hinge{k}", f"crank{k}", f"coupler{k}", "z", tuple(rng.uniform(0.2, 0.4, 3)))
    return f"coupler{k}"
