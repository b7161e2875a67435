"""Whether points are open, stick or slip at samples, and whether their forces and the motion are unique there.

| state | of a point at a sample |
|---|---|
| open | it does not push in the step that ends there, or rebounds in it (restitution), faster than its `resting` |
| slips | it pushes with a force at the edge of its friction cone, and moves along the surface |
| sticks | all others |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spanloop.contacts.uniqueness import directions, is_blocked, unique
from spanloop.dynamics import Dynamics
from spanloop.trajectory.contacts.contact_samples import TOUCHES, ContactSamples, number_type, robots
from spanloop.trajectory.quantities import over_samples

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

OPEN, STICKS, SLIPS = "open", "sticks", "slips"
SLOW = {"float64": 1e-9, "float32": 1e-5}  # m/s: a point that is slower does not slip
_INSIDE = 1e-6  # of the cone: a force farther from its edge than this sticks
_TINY = 1e-300
_RUBS = 1e-9  # of the normal force: less friction counts as none
_COLUMNS = 10  # closed, slips, µ, the slip's direction (2), µ times it in the world (3), friction along t1, t2 or none


def is_closed(found: ContactSamples) -> np.ndarray:
    """Whether points (..., n, points) push in the step that ends at a sample, and do not rebound in it.

    Where their force is not known: whether they touch.
    """
    unknown = np.isnan(found.normal_force)
    pushes = np.where(unknown, found.gap <= TOUCHES, found.normal_force > 0.0)
    closed: np.ndarray = pushes & ~found.bounced
    return closed


def is_slipping(found: ContactSamples, slow: float = SLOW["float64"]) -> np.ndarray:
    """Whether points (..., n, points) slip; slow: the speed [m/s] up to which they stick."""
    speed = np.linalg.norm(found.tangential, axis=-1)
    friction = np.linalg.norm(found.local[..., 1:3], axis=-1)
    inside = friction < (1.0 - _INSIDE) * found.points.friction * found.normal_force
    slipping: np.ndarray = is_closed(found) & ~inside & (speed > slow)
    return slipping


def states(found: ContactSamples, slow: float = SLOW["float64"]) -> np.ndarray:
    """ "open", "sticks" or "slips" of points (..., n, points); "" after a run's end."""
    words = np.where(is_closed(found), np.where(is_slipping(found, slow), SLIPS, STICKS), OPEN)
    out: np.ndarray = np.where(found.known[..., None], words, "")
    return out


def uniqueness(run: Trajectory, found: ContactSamples) -> tuple[np.ndarray, np.ndarray]:
    """Whether the force of each point (..., n, points) and the motion (..., n) is the only one possible.

    The force of a point that is open is zero, and unique.
    """
    closed, slipping = is_closed(found), is_slipping(found, SLOW[number_type(run)])
    some = np.any(closed, axis=-1)
    forces, motion = np.ones(closed.shape, bool), np.ones(some.shape, bool)
    if not some.any():
        return forces, motion
    rows = _described(found, closed, slipping)
    for robot, where in robots(run, some):
        flags = _flags(robot, found, run.q[where], rows[where], run.step) > 0.5
        forces[where], motion[where] = flags[:, :-1], flags[:, -1]
    return forces, motion


def _described(found: ContactSamples, closed: np.ndarray, slipping: np.ndarray) -> np.ndarray:
    """What uniqueness depends on beside W: (..., n, points × 10)."""
    size = np.linalg.norm(found.tangential, axis=-1, keepdims=True)
    direction = found.tangential / np.maximum(size, _TINY)
    along = np.einsum("...ij,...j->...i", found.axes[..., 1:, :], direction)
    friction = np.broadcast_to(found.points.friction, closed.shape)[..., None]
    rubs = np.abs(found.local[..., 1:3]) > _RUBS * np.abs(found.local[..., :1])
    parts = [closed[..., None], slipping[..., None], friction, along, friction * direction, rubs]
    return np.nan_to_num(np.concatenate(parts, axis=-1)).reshape(*closed.shape[:-1], -1)


def _flags(robot: Dynamics, found: ContactSamples, q: np.ndarray, rows: np.ndarray, step: float) -> np.ndarray:
    """1 or 0 (k, points + 1): whether forces, and the motion, are unique in states q (k, nq)."""
    p = found.points

    def flags(q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        W = softened(robot.delassus(q), found, step)
        described = rows.reshape(len(q), len(p), _COLUMNS)
        closed, slipping = described[..., 0] > 0.5, described[..., 1] > 0.5
        others = np.broadcast_to(np.column_stack([p.torsion, p.rolling]), (*closed.shape, 2))
        columns = directions(np.concatenate([described[..., 2:3], others], axis=-1), p.size, closed, slipping,
                             described[..., 3:5])  # fmt: skip
        forces, motion = unique(W, columns, slipping, described[..., 5:8])
        forces &= ~(is_blocked(W, p.size)[..., 1:3] & (described[..., 8:] > 0.5)).any(axis=-1)
        return np.concatenate([forces, motion[:, None]], axis=1).astype(float)

    return over_samples("unique", flags, q, rows)


def softened(W: np.ndarray, found: ContactSamples, step: float) -> np.ndarray:
    """W with the compliance of soft contacts along their normals, in a step [s]."""
    p = found.points
    soft = p.stiffness > 0.0
    if not soft.any():
        return W
    W = W.copy()
    normals = p.size * np.flatnonzero(soft)
    W[..., normals, normals] += 1.0 / (step**2 * p.stiffness[soft] + step * p.damping[soft])
    return W
