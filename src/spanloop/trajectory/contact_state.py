"""Contact state of grasps over a motion: Θ, how body b is turned in body a, and W, how it turns. [Kreutz & Rodriguez,
appendix A]

| grasp | Θ | W [rad/s] |
|---|---|---|
| fixed | – | – |
| revolute | angle [rad] about the axis, counted beyond a turn | its rate |
| spherical | quaternion (w, x, y, z) | angular velocity of b on a, in the axes of the child frame |
| soft_finger | quaternion | the same along x and y; that along z, the normal, is 0 |

Θ belongs to the child frame as seen from the parent frame. Coordinates q hold the poses of both bodies, so that Θ is a
function of q: it is as accurate as the run, and has no error of its own. That goes for the angle about the normal of a
soft finger too, which depends on the way and which the run integrates with the velocities.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spanloop.algorithms.papers.kreutz_rodriguez import grasps
from spanloop.algorithms.papers.kreutz_rodriguez.grasp_margin import GRASPS
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.math import quaternion
from spanloop.model.parts import Loop
from spanloop.papers import grasp_velocities
from spanloop.topology import mechanism
from spanloop.trajectory.quantities import over_samples

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory


def contact_state(run: Trajectory, name: str) -> np.ndarray:
    """Θ of a grasp: (..., n) of a hinge, (..., n, 4) of a point contact or soft finger, (..., n, 0) of a rigid one."""
    loop = _grasp(run, name)
    turned = over_samples("contact", lambda q: _turned(run.robot, loop, q), run.q)
    if loop.kind.name == "fixed":
        return np.zeros((*turned.shape[:-2], 0))
    if loop.kind.name == "revolute":
        return _counted(_angle(turned, np.array(getattr(loop.kind, "axis"))))  # noqa: B009
    return _continuous(quaternion.of_rotations(turned))


def contact_rates(run: Trajectory, name: str) -> np.ndarray:
    """W of a grasp (..., n, k): k = 1 of a hinge, 3 of a point contact, 2 of a soft finger, 0 of a rigid one."""
    loop = _grasp(run, name)
    first = 0
    for c in mechanism(run.model).closures:
        n = len(grasps.motion(c.kind, c.kind.closing_pose()))
        if c.name == loop.name:
            break
        first += n
    if not n:
        return np.zeros((*run.q.shape[:-1], 0))
    return over_samples(
        "contact_rate", lambda q, v: grasp_velocities(run.robot, q, v)[:, first : first + n], run.q, run.v
    )


def _grasp(run: Trajectory, name: str) -> Loop:
    loop = next((x for x in run.model.loops if x.name == name), None)
    if loop is None or loop.kind.name not in GRASPS:
        what = "a coupling" if loop is None else f"a {loop.kind.name} loop"
        raise InputError(f"{name!r} is {what}; contact is of grasps, loops of kind {', '.join(GRASPS)}")
    return loop


def _turned(robot: Dynamics, loop: Loop, q: np.ndarray) -> np.ndarray:
    """Rotation (n, 3, 3) of the child frame as seen from the parent frame."""
    a, b = (
        robot.pose(q, body)[..., :3, :3] @ np.array(placement.rotation)
        for body, placement in ((loop.a, loop.placement_a), (loop.b, loop.placement_b))
    )
    turned: np.ndarray = np.swapaxes(a, -1, -2) @ b
    return turned


def _angle(turned: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """The angle (..., n) of rotations about an axis: of the axis' own part sin and cos."""
    sine = 0.5 * sum(axis[k] * (turned[..., k - 1, k - 2] - turned[..., k - 2, k - 1]) for k in range(3))
    cosine = 0.5 * (np.trace(turned, axis1=-2, axis2=-1) - 1.0)
    angle: np.ndarray = np.arctan2(sine, cosine)
    return angle


def _counted(angle: np.ndarray) -> np.ndarray:
    """Angles (..., n) without jumps of a turn from sample to sample; each is less than half a turn from the last."""
    turns = np.round(np.nan_to_num(np.diff(angle, axis=-1)) / (2.0 * math.pi))
    out = angle.copy()
    out[..., 1:] -= 2.0 * math.pi * np.cumsum(turns, axis=-1)
    return out


def _continuous(e: np.ndarray) -> np.ndarray:
    """Quaternions (..., n, 4) without jumps of sign from sample to sample; the first has w >= 0."""
    turned = np.concatenate([e[..., :1, 0], np.sum(e[..., 1:, :] * e[..., :-1, :], axis=-1)], axis=-1)
    signs = np.cumprod(np.where(turned < 0.0, -1.0, 1.0), axis=-1)
    return e * signs[..., None]
