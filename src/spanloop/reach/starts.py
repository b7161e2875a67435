"""Where a search begins: the state inside all limits, and states drawn at random inside the limits."""

from __future__ import annotations

import functools

import numpy as np

from spanloop.loops.assembly.assembly import Limits
from spanloop.loops.closure_errors import mechanism_of
from spanloop.model import Model
from spanloop.model.parts import Joint

_HALF = 0.5


@functools.lru_cache(maxsize=64)
def size_of(model: Model) -> float:
    """The size of a robot [m]: the longest way from the world over joints to a frame; 1 if there is none."""
    m = mechanism_of(model)
    far: list[float] = []
    for link in m.links:
        slide = link.reach if np.isfinite(link.reach) else 0.0
        before = far[link.parent] if link.parent >= 0 else 0.0
        far.append(before + float(np.linalg.norm(link.placement.translation)) + slide)
    ways = [far[a.link] + float(np.linalg.norm(a.position)) for a in m.anchors.values() if a.link >= 0]
    return max(ways, default=0.0) or 1.0


def default_start(model: Model) -> np.ndarray:
    """q (nq,): neutral, with joints whose limits exclude that in the middle of them."""
    q = np.array(model.neutral(), dtype=float)
    for joint in model.joints:
        if joint.kind.nq == joint.kind.nv == 1:
            lower, upper = _range(joint, np.inf)
            at = model.q_slice(joint.name).start
            if not lower < q[at] < upper:
                q[at] = _middle(lower, upper)
    return q


def random_states(model: Model, limits: Limits, base: np.ndarray, count: int, seed: int) -> np.ndarray:
    """States q (count, nq), the same for the same seed; fixed joints, and floating bases of trees, stay at base (nq,).

    Joints with limits are anywhere between them, other angles anywhere, other displacements within half of the size of
    the robot around base.
    """
    rng = np.random.default_rng(seed)
    q = np.tile(base, (count, 1))
    for joint in model.joints:
        own = model.q_slice(joint.name)
        drawn = _drawn(model, joint, base[own], rng, count)
        if not limits.fixed[model.v_slice(joint.name)].any():
            q[:, own] = drawn
    return limits.within(q)


def kept(model: Model, limits: Limits) -> np.ndarray:
    """Which coordinates (nq,) random_states does not draw."""
    out = np.zeros(model.nq, dtype=bool)
    for joint in model.joints:
        floats = joint.kind.name == "free" and not model.loops
        if floats or limits.fixed[model.v_slice(joint.name)].any():
            out[model.q_slice(joint.name)] = True
    return out


def _drawn(model: Model, joint: Joint, base: np.ndarray, rng: np.random.Generator, count: int) -> np.ndarray:
    """Coordinates (count, nq) of one joint."""
    kind, half = joint.kind, _HALF * size_of(model)
    if kind.nq == kind.nv:
        lower = np.array([-np.pi if unit == "rad" else x - half for unit, x in zip(kind.units, base, strict=True)])
        upper = np.array([np.pi if unit == "rad" else x + half for unit, x in zip(kind.units, base, strict=True)])
        if kind.nq == 1:
            low, high = _range(joint, upper[0] - lower[0])
            lower = np.array([low]) if np.isfinite(low) else lower
            upper = np.array([high]) if np.isfinite(high) else upper
        return rng.uniform(lower, upper, (count, kind.nq))
    turns = rng.normal(size=(count, 4))
    if kind.name == "free":
        if not model.loops:
            return np.tile(base, (count, 1))
        turns = _HALF * turns + base[:4]
        place = base[4:] + rng.uniform(-half, half, (count, 3))
        return np.concatenate([turns / np.linalg.norm(turns, axis=1, keepdims=True), place], axis=1)
    if kind.name == "spherical":
        return turns / np.linalg.norm(turns, axis=1, keepdims=True)
    return np.tile(base, (count, 1))


def _range(joint: Joint, span: float) -> tuple[float, float]:
    """Limits of a joint with one DoF; where there is one alone, the other is `span` away."""
    lower = -np.inf if joint.lower is None else float(joint.lower[0])
    upper = np.inf if joint.upper is None else float(joint.upper[0])
    if np.isfinite(lower) and not np.isfinite(upper):
        upper = lower + span
    elif np.isfinite(upper) and not np.isfinite(lower):
        lower = upper - span
    return lower, upper


def _middle(lower: float, upper: float) -> float:
    if np.isfinite(lower) and np.isfinite(upper):
        return 0.5 * (lower + upper)
    return lower if np.isfinite(lower) else upper


def turning_freely(model: Model) -> np.ndarray:
    """Places in q of the hinges without limits; not of those in couplings, which count turns."""
    geared = {name for c in model.couplings for name in c.joints}
    free = [
        j.name
        for j in model.joints
        if j.kind.name == "revolute" and j.lower is None and j.upper is None and j.name not in geared
    ]
    return np.array([model.q_slice(name).start for name in free], dtype=int)


def wrapped(q: np.ndarray, near: np.ndarray, hinges: np.ndarray) -> np.ndarray:
    """q (n, nq) with these hinges within half a turn of `near` (n, nq)."""
    if len(hinges):
        q[:, hinges] -= 2.0 * np.pi * np.round((q[:, hinges] - near[:, hinges]) / (2.0 * np.pi))
    return q
