"""Whether points are open, stick or slip at samples, and whether their forces and the motion are unique there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.trajectory.contacts.contact_samples import ContactSamples
from spanloop.trajectory.contacts.uniqueness import unique
from spanloop.trajectory.quantities import over_samples
from spanloop.trajectory.topologies import is_uniform, topologies

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

OPEN, STICKS, SLIPS = "open", "sticks", "slips"
SLOW = {"float64": 1e-9, "float32": 1e-5}  # m/s: a point that is slower does not slip
_INSIDE = 1e-6  # of the cone: a force farther from its edge than this sticks
_TINY = 1e-300


def is_closed(run: Trajectory, found: ContactSamples) -> np.ndarray:
    """Whether points (..., n, points) push in the step that ends at a sample, and do not bounce off in it."""
    pushes = np.nan_to_num(found.normal_force) > 0.0
    closed: np.ndarray = pushes & ~(found.leaving > found.points.resting)
    return closed


def slips(run: Trajectory, found: ContactSamples, closed: np.ndarray) -> np.ndarray:
    """Whether points (..., n, points) that are closed slip: at the edge of their cone, and not at rest."""
    speed = np.linalg.norm(found.tangential_slip, axis=-1)
    friction = np.linalg.norm(found.local[..., 1:3], axis=-1)
    at_edge = friction >= (1.0 - _INSIDE) * found.points.friction * found.normal_force
    moving: np.ndarray = closed & at_edge & (speed > SLOW[str(run.v.dtype)])
    return moving


def states(run: Trajectory, found: ContactSamples) -> np.ndarray:
    """ "open", "sticks" or "slips" of points (..., n, points); "" after a run's end."""
    closed = is_closed(run, found)
    words = np.where(closed, np.where(slips(run, found, closed), SLIPS, STICKS), OPEN)
    out: np.ndarray = np.where(found.known[..., None], words, "")
    return out


# ---- uniqueness


def uniqueness(run: Trajectory, found: ContactSamples) -> tuple[np.ndarray, np.ndarray]:
    """Whether the force of each point (..., n, points) and the motion (..., n) is the only one possible.

    A point that is open has no force, and that is unique.
    """
    closed = is_closed(run, found)
    moving = slips(run, found, closed)
    some = closed.any(axis=-1)
    forces, motion = np.ones(closed.shape, bool), np.ones(some.shape, bool)
    if not some.any():
        return forces, motion
    rows = _described(found, closed, moving)
    if is_uniform(run):
        groups = [(run.robot, some)]
    else:
        groups = [(t.robot, t.where & some) for t in topologies(run, most=None)]
    for robot, where in groups:
        if where.any():
            flags = _flags(run, robot, found, run.q[where], rows[where])
            forces[where], motion[where] = flags[:, :-1], flags[:, -1]
    return forces, motion


def _described(found: ContactSamples, closed: np.ndarray, moving: np.ndarray) -> np.ndarray:
    """(..., n, points × 6): closed, slips, direction of the slip along t1 and t2, speed, a place that is not used."""
    along = np.einsum("...ij,...j->...i", found.axes[..., 1:, :], found.tangential_slip)
    speed = np.linalg.norm(along, axis=-1, keepdims=True)
    unit = along / np.maximum(speed, _TINY)
    parts = np.concatenate([closed[..., None], moving[..., None], unit, found.axes[..., 0, :] * 0.0], axis=-1)
    return np.nan_to_num(parts.reshape(*closed.shape[:-1], -1))


def _flags(run: Trajectory, robot: Dynamics, found: ContactSamples, q: np.ndarray, rows: np.ndarray) -> np.ndarray:
    raise NotImplementedError
