"""Random pairs of systems with closures between them and loops within them, at a state at which all are closed.

The primary system is a random tree with one or two loops of its own, the secondary one with none or one; one to three
closures of random kinds join them. Rows must be independent and well conditioned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from random_loops import CLOSING, WELL_CONDITIONED, condition, fitted, moving

from spanloop import zoo
from spanloop.model.edits.rename import renamed
from spanloop.model.model import Model
from spanloop.model.parts import Loop

_TRIES = 40


@dataclass(frozen=True)
class PairCase:
    """Two systems with their own loops, the closures between them, and a state of both, the primary's entries first."""

    primary: Model
    secondary: Model
    closures: tuple[Loop, ...]
    whole: Model
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray


def random_pair(seed: int) -> PairCase:
    rng = np.random.default_rng(seed)
    while True:
        one = _system(rng, "p_", int(rng.integers(4, 8)))
        other = _system(rng, "s_", int(rng.integers(1, 5)), free=bool(rng.uniform() < 0.5))
        tree = replace(one, bodies=one.bodies + other.bodies, joints=one.joints + other.joints)
        q, _ = tree.random_state(rng)
        ours, theirs = ([b.name for b in m.bodies] for m in (one, other))
        wanted = [(ours, ours, "pp", int(rng.integers(1, 3))), (ours, theirs, "ps", int(rng.integers(1, 4)))]
        if len(theirs) > 1:
            wanted.append((theirs, theirs, "ss", int(rng.integers(0, 2))))
        found = {sort: _closures(tree, q, a, b, sort, n, rng) for a, b, sort, n in wanted}
        loops = tuple(x for sort in ("pp", "ss", "ps") for x in found.get(sort, ()))
        whole = replace(tree, loops=loops)
        rows = sum(6 - x.kind.nv for x in loops)
        if found["pp"] and found["ps"] and rows < tree.nv and condition(whole, q) < WELL_CONDITIONED:
            case = moving(whole, q, rng)
            primary, secondary = replace(one, loops=found["pp"]), replace(other, loops=found.get("ss", ()))
            return PairCase(primary, secondary, found["ps"], whole, case.q, case.v, case.tau)


def _system(rng, prefix: str, n: int, free: bool = False) -> Model:
    model = zoo.random_model(int(rng.integers(10**6)), n_bodies=n, free=free)
    return replace(renamed(model, lambda name: prefix + name), name=f"{prefix}system", gravity=(0.0, 0.0, -9.81))


def _closures(tree: Model, q, a: list[str], b: list[str], sort: str, n: int, rng) -> tuple[Loop, ...]:
    """n closures of random kinds between bodies of two lists that fit together (fewer where no more do)."""
    out: tuple[Loop, ...] = ()
    for _ in range(_TRIES):
        if len(out) == n:
            break
        start, end = str(rng.choice(a)), str(rng.choice(b))
        if start == end:
            continue
        more = fitted(tree, q, f"{sort}{len(out)}", str(rng.choice(CLOSING)), start, end, rng)
        trial = replace(tree, loops=(*out, more))
        if sum(6 - x.kind.nv for x in trial.loops) < tree.nv and condition(trial, q) < WELL_CONDITIONED:
            out = trial.loops
    return out
