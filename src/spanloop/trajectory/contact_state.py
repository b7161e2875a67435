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

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from spanloop.algorithms.papers.kreutz_rodriguez import grasps
from spanloop.algorithms.papers.kreutz_rodriguez.grasp_margin import GRASPS
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.math import quaternion
from spanloop.model import Model
from spanloop.model.parts import Loop
from spanloop.papers import grasp_velocities
from spanloop.topology import mechanism
from spanloop.trajectory.quantities import over_samples
from spanloop.trajectory.topologies import is_uniform, joined, topologies

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory


def contact_state(run: Trajectory, name: str) -> np.ndarray:
    """Θ of a grasp: (..., n) of a hinge, (..., n, 4) of a point contact or soft finger, (..., n, 0) of a rigid one.

    NaN where the loop is open.
    """
    kind = _grasp(run.model, name).kind
    if kind.name == "fixed":
        return np.zeros((*run.batch, len(run), 0))
    turned = _where_closed(run, name, (3, 3), lambda robot, q, v: _turned(robot, _grasp(robot.model, name), q))
    if kind.name == "revolute":
        return _counted(_angle(turned, np.array(getattr(kind, "axis"))))  # noqa: B009
    return _continuous(quaternion.of_rotations(turned))


def contact_rates(run: Trajectory, name: str) -> np.ndarray:
    """W of a grasp (..., n, k): k = 1 of a hinge, 3 of a point contact, 2 of a soft finger, 0 of a rigid one.

    NaN where the loop is open.
    """
    _grasp(run.model, name)
    mine = _places(run.model, name)
    if mine.start == mine.stop:
        return np.zeros((*run.batch, len(run), 0))

    def rates(robot: Dynamics, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return grasp_velocities(robot, q, v)[:, _places(robot.model, name)]

    return _where_closed(run, name, (mine.stop - mine.start,), rates)


def _where_closed(
    run: Trajectory,
    name: str,
    shape: tuple[int, ...],
    compute: Callable[[Dynamics, np.ndarray, np.ndarray], np.ndarray],
) -> np.ndarray:
    """compute(robot, q, v) at the samples where a loop is closed, (..., n, *shape); NaN elsewhere."""
    if is_uniform(run):
        return over_samples("contact", lambda q, v: compute(run.robot, q, v), run.q, run.v)
    parts = []
    for t in topologies(run):
        found = np.full((len(t.q), *shape), np.nan)
        if any(x.name == name for x in t.model.loops):
            found[...] = over_samples("contact", functools.partial(compute, t.robot), t.q, t.v)
        parts.append((t, found))
    return joined(run, parts)


def _places(model: Model, name: str) -> slice:
    """Places of a grasp's rates among those of all loops."""
    first = 0
    for c in mechanism(model).closures:
        n = len(grasps.motion(c.kind, c.kind.closing_pose()))
        if c.name == name:
            return slice(first, first + n)
        first += n
    return slice(0, 0)


def _grasp(model: Model, name: str) -> Loop:
    loop = next((x for x in model.loops if x.name == name), None)
    if loop is None or loop.kind.name not in GRASPS:
        what = "no loop of the model" if loop is None else f"a {loop.kind.name} loop"
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
