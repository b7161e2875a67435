"""What contact forces and motions are unique, from the Delassus matrix over the points that are closed.

A point that sticks has a force of three components, one that slips of one: along normal − µ·(direction of its slip).
With R, whose columns are these directions, forces R x change the motion by W R x. They are unique for a point where
no x with RᵀW R x = 0 touches it: W is positive semidefinite, so that these are the x with W R x = 0.

A direction in which a point cannot move, as across a planar linkage, is left out: where friction acts along it all the
same, as at a stop that closed later, the caller marks it (`is_blocked`).

Where normal forces alone can be split in more than one way, friction of points that slip in different directions turns
the split into another motion. Where all of them slip alike it does not: what they do depends on sums alone.
"""

from __future__ import annotations

import numpy as np

_NULL = 1e-10  # of the largest eigenvalue: those below are zero
_BLOCKED = 1e-13  # of the largest entry of W: a point that moves less along a direction has no friction there
_TOUCHED = 1e-6  # of a unit null vector: a point with less is not in it
_ALIKE = 1e-6  # difference of µ·direction of points that slip alike


def unique(W: np.ndarray, directions: np.ndarray, slips: np.ndarray, pull: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether the force of each point (k, points), and the motion (k,), is the only one possible.

    W (k, points·size, points·size). directions (k, points, size, size): columns along which a point may push, zero
    beyond those it has; a point that is open has none. slips (k, points): whether it slips; pull (k, points, 3): µ
    times the direction of the slip, in world axes.
    """
    forces = _touched(W, directions)
    normals = directions.copy()
    normals[slips, 1:3, 0] = 0.0
    group = _touched(W, normals)
    both = group & slips
    first = np.take_along_axis(pull, both.argmax(axis=1)[:, None, None], axis=1)
    differs = (np.abs(pull - first) > _ALIKE).any(axis=-1)
    rubs = (np.abs(pull) > 0.0).any(axis=-1)
    motion = (both & rubs).any(axis=1) & ((both & differs) | (group & ~slips)).any(axis=1)
    return ~forces, ~motion


def is_blocked(W: np.ndarray, size: int) -> np.ndarray:
    """Whether a point cannot move along an axis (k, points, size): friction there changes no motion."""
    own = np.einsum("kii->ki", W)
    blocked: np.ndarray = own <= _BLOCKED * own.max(axis=1, keepdims=True, initial=0.0)
    return blocked.reshape(len(W), -1, size)


def directions(
    coefficients: np.ndarray, size: int, closed: np.ndarray, slips: np.ndarray, along: np.ndarray
) -> np.ndarray:
    """Columns (k, points, size, size) along which points push; one that slips has a single one, open ones none.

    coefficients (points, 3) or (k, points, 3): friction, torsion, rolling. closed, slips (k, points); along
    (k, points, 2): of the slip.
    """
    friction, torsion, rolling = np.split(coefficients, 3, axis=-1)
    rubs = np.zeros((*friction.shape[:-1], size), bool)
    rubs[..., 0], rubs[..., 1:3] = True, friction > 0.0
    if size == 6:
        rubs[..., 3:4], rubs[..., 4:] = torsion > 0.0, rolling > 0.0
    out = np.where(closed[..., None, None], rubs[..., None] * np.eye(size), 0.0)
    edge = slips & (friction[..., 0] > 0.0)
    out[edge, 1:3, 1:3] = 0.0
    out[edge, 1:3, 0] = -(friction * along)[edge]
    return out


def _touched(W: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Points (k, points) that null vectors of RᵀWR touch."""
    k, points, size, _ = directions.shape
    blocks = W.reshape(k, points, size, points, size)
    S = np.einsum("kpia,kpiqj,kqjb->kpaqb", directions, blocks, directions, optimize=True)
    S = S.reshape(k, points * size, points * size)
    own = np.einsum("kii->ki", S)
    exists = (directions != 0.0).any(axis=2).reshape(k, points * size)
    exists &= own > _BLOCKED * own.max(axis=1, keepdims=True, initial=0.0)
    scale = np.sqrt(np.where(exists, own, 1.0))  # columns of forces and torques alike
    scale = np.where(scale > 0.0, scale, 1.0)
    S = S / scale[:, :, None] / scale[:, None, :]
    every = np.arange(points * size)
    S[:, every, every] += ~exists  # columns that are not there are no null vectors
    values, vectors = np.linalg.eigh(np.nan_to_num(S))  # states that are refused
    null = values < _NULL * np.maximum(values[:, -1:], 1.0)
    sizes = np.sqrt(np.einsum("kiv,kv->ki", vectors**2, null.astype(float)))
    touched: np.ndarray = (sizes.reshape(k, points, size) > _TOUCHED).any(axis=-1)
    return touched
