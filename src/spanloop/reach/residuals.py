"""By how much states miss targets, from the kernels of poses and of the centre of mass, not those that search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spanloop.algorithms.tree.target_rows import CENTER_OF_MASS, DIRECTION, ORIENTATION, POSE, TargetKind
from spanloop.loops.batching import Robot, resolution, values
from spanloop.loops.closure_errors import positional, relative_errors
from spanloop.reach.goal import Goal

CLOSED = 1e-12  # rad, or of the loop's length: the tolerance of assemble


@dataclass(frozen=True, eq=False)
class Residual:
    """What is left to a target: distance (...) [m] and angle (...) [rad]; 0 where a target has none."""

    distance: np.ndarray
    angle: np.ndarray

    def within(self, tolerance: float) -> np.ndarray:
        """Where both are at most `tolerance`."""
        found: np.ndarray = (self.distance <= tolerance) & (self.angle <= tolerance)
        return found


def residuals(robot: Robot, goal: Goal, q: np.ndarray, rows: np.ndarray | slice = slice(None)) -> dict[str, Residual]:
    """By name, at states q (n, nq) for the rows of the goal."""
    return {name: _residual(robot, kind, numbers[rows], q) for name, kind, numbers in goal.parts()}


def _residual(robot: Robot, kind: TargetKind, wanted: np.ndarray, q: np.ndarray) -> Residual:
    none = np.zeros(len(q))
    if kind.kind == CENTER_OF_MASS:
        return Residual(np.linalg.norm(wanted - values(robot, "center_of_mass", q), axis=1), none)
    pose = values(robot, "pose", q, frame=kind.frame)
    R, p = pose[:, :3, :3], pose[:, :3, 3]
    if kind.kind == DIRECTION:
        axis = R @ np.array(kind.axis)
        sine = np.linalg.norm(np.cross(axis, wanted), axis=1)
        return Residual(none, np.arctan2(sine, np.einsum("ni,ni->n", axis, wanted)))
    if kind.kind == ORIENTATION:
        return Residual(none, angle_between(wanted.reshape(-1, 3, 3), R))
    if kind.kind == POSE:
        return Residual(np.linalg.norm(wanted[:, 9:] - p, axis=1), angle_between(wanted[:, :9].reshape(-1, 3, 3), R))
    return Residual(np.linalg.norm(wanted - p, axis=1), none)


def angle_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The angle (n,) [rad] of the rotation between rotations (n, 3, 3)."""
    r = a @ np.swapaxes(b, 1, 2)
    skew = np.stack([r[:, 2, 1] - r[:, 1, 2], r[:, 0, 2] - r[:, 2, 0], r[:, 1, 0] - r[:, 0, 1]], axis=1)
    found: np.ndarray = np.arctan2(np.linalg.norm(skew, axis=1), np.trace(r, axis1=1, axis2=2) - 1.0)
    return found


def features(robot: Robot, kinds: Sequence[TargetKind], q: np.ndarray) -> np.ndarray:
    """Where states q (n, nq) have what targets of these kinds name, as the numbers (n, k) of a goal."""
    out = []
    for kind in kinds:
        if kind.kind == CENTER_OF_MASS:
            out.append(values(robot, "center_of_mass", q))
            continue
        pose = values(robot, "pose", q, frame=kind.frame)
        if kind.kind in (POSE, ORIENTATION):
            out += [pose[:, :3, :3].reshape(-1, 9), pose[:, :3, 3]][: 2 if kind.kind == POSE else 1]
        else:
            out.append(pose[:, :3, :3] @ np.array(kind.axis) if kind.kind == DIRECTION else pose[:, :3, 3])
    return np.concatenate(out, axis=1)


def is_closed(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Which states (n,) have all loops and couplings closed to the tolerance of assemble."""
    if not (robot.model.loops or robot.model.couplings):
        return np.ones(len(q), dtype=bool)
    error = relative_errors(robot, q)[:, positional(robot.model)]
    closed: np.ndarray = np.abs(error).max(axis=1, initial=0.0) <= max(CLOSED, 100.0 * resolution(robot))
    return closed
