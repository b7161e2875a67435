"""The nearest closed state to targets out of reach: steps along the closed states, from several candidates at once.

The steps of the search close loops and approach targets at the same time, and a target out of reach pulls them open.
Here every state is closed: a damped Gauss-Newton step along the null space of the closures, loops closed again, and the
step counts only if the targets are nearer. So the answer is never worse than any candidate.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from spanloop.algorithms.tree.target_rows import CENTER_OF_MASS, DIRECTION, ORIENTATION, POSE, TargetKind
from spanloop.loops.assembly.assembly import Limits, descended
from spanloop.loops.batching import Robot, resolution, values
from spanloop.loops.closure_errors import mechanism_of, positional, relative_errors
from spanloop.reach.goal import Goal

_STEPS = 80
_TURN = 0.5  # rad: the most that a DoF turns in a step
_CUT = 1e-9  # of the largest singular value: what is smaller counts as zero
_CLOSED = 1e-12  # rad, or of the loop's length
_AS_OPEN = 1.5  # states of a file whose rounding keeps loops open stay about as open as they begin
_HIGHEST, _GAIN = 1e6, 1e-12  # damping with which no step helps; the share of the cost that is no gain


@dataclass(frozen=True, eq=False)
class Nearest:
    """Targets of one robot with loops or couplings; weights of squares, by groups of rows."""

    robot: Robot
    goal: Goal
    limits: Limits
    weights: list[float]
    _lengths: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lengths", np.array(mechanism_of(self.robot.model).dof_lengths))

    def found(self, q: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Closed states (n, nq) that descend from candidates q (n, nq) to minima for rows (n,) of the goal; their cost.

        The cost of a candidate whose loops do not close is infinite.
        """
        q = descended(self.robot, q, self.limits)
        openness = self._openness(q)
        cost = np.where(openness < 1e-3, self._cost(q, rows), np.inf)
        bound = np.maximum(max(_CLOSED, 100.0 * resolution(self.robot)), _AS_OPEN * openness)
        damping = 0.1 * np.sqrt(cost)
        busy = np.flatnonzero(np.isfinite(cost) & (cost > 0.0))
        for _ in range(_STEPS):
            if not len(busy):
                break
            trial = self._trial(q[busy], rows[busy], damping[busy])
            reached = np.where(self._openness(trial) <= bound[busy], self._cost(trial, rows[busy]), np.inf)
            gain = cost[busy] - reached
            better = gain > 0.0
            damping[busy] *= np.where(better, 0.3, 4.0)
            q[busy[better]], cost[busy[better]] = trial[better], reached[better]
            still = (better & (gain <= _GAIN * cost[busy])) | (damping[busy] > _HIGHEST)
            busy = busy[~still]
        return q, cost

    def _openness(self, q: np.ndarray) -> np.ndarray:
        error = relative_errors(self.robot, q)[:, positional(self.robot.model)]
        largest: np.ndarray = np.abs(error).max(axis=1, initial=0.0)
        return np.where(np.isfinite(largest), largest, np.inf)

    def _cost(self, q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.einsum("nr,nr->n", *[self._errors(q, rows)] * 2)

    def _errors(self, q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """What is left (n, k), times the root of its weight."""
        parts = [x for _, kind, numbers in self.goal.parts() for x in _left(self.robot, kind, numbers[rows], q)]
        return np.concatenate([w**0.5 * x for w, x in zip(self.weights, parts, strict=True)], axis=1)

    def _jacobian(self, q: np.ndarray) -> np.ndarray:
        """How fast that falls (n, k, nv), in units of each DoF."""
        parts = [x for _, kind, _ in self.goal.parts() for x in _rates(self.robot, kind, q)]
        J = np.concatenate([w**0.5 * x for w, x in zip(self.weights, parts, strict=True)], axis=1)
        return J * self._lengths

    def _trial(self, q: np.ndarray, rows: np.ndarray, damping: np.ndarray) -> np.ndarray:
        """The closed states (n, nq) after a step."""
        e, J = self._errors(q, rows), self._jacobian(q)
        lengths = np.array(mechanism_of(self.robot.model).row_lengths)[:, None]
        C = (values(self.robot, "closure_jacobian", q) / lengths * self._lengths)[:, positional(self.robot.model)]
        down, up = self.limits.room(q)
        free = np.tile(~self.limits.fixed, (len(q), 1))
        for _ in range(6):
            step = _along(J * free[:, None], C * free[:, None], e, damping) * self._lengths
            blocked = free & (((step > 0.0) & (up == 0.0)) | ((step < 0.0) & (down == 0.0)))
            if not blocked.any():
                break
            free &= ~blocked
        turn = np.abs(step / self._lengths).max(axis=1, initial=1e-300)
        step *= np.minimum(1.0, _TURN / turn)[:, None]
        moved = values(self.robot, "integrate", q, np.clip(step, down, up))
        return descended(self.robot, moved, self.limits, is_near=True)


def _along(J: np.ndarray, C: np.ndarray, e: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """The step (n, nv) with C δ = 0 that makes |J δ − e|² + damping |δ|² least."""
    _, s, Vt = np.linalg.svd(C, full_matrices=False)
    Vt = Vt * (s > _CUT * s.max(axis=1, initial=1e-100, keepdims=True))[:, :, None]
    J = J - (J @ np.swapaxes(Vt, 1, 2)) @ Vt
    system = J @ np.swapaxes(J, 1, 2) + (damping[:, None, None] + 1e-14) * np.eye(J.shape[1])
    found: np.ndarray = (np.swapaxes(J, 1, 2) @ np.linalg.solve(system, e[:, :, None]))[:, :, 0]
    return found


def _left(robot: Robot, kind: TargetKind, wanted: np.ndarray, q: np.ndarray) -> list[np.ndarray]:
    """What is left to a target, by group of rows (n, 3) in world axes."""
    if kind.kind == CENTER_OF_MASS:
        return [wanted - values(robot, "center_of_mass", q)]
    pose = values(robot, "pose", q, frame=kind.frame)
    R, p = pose[:, :3, :3], pose[:, :3, 3]
    if kind.kind == DIRECTION:
        axis = R @ np.array(kind.axis)
        turn = np.cross(axis, wanted)
        return [_turned(turn, np.einsum("ni,ni->n", axis, wanted), np.roll(axis, 1, axis=1))]
    out = [] if kind.kind == ORIENTATION else [wanted[:, -3:] - p]
    if kind.kind in (POSE, ORIENTATION):
        r = wanted[:, :9].reshape(-1, 3, 3) @ np.swapaxes(R, 1, 2)
        skew = 0.5 * np.stack([r[:, 2, 1] - r[:, 1, 2], r[:, 0, 2] - r[:, 2, 0], r[:, 1, 0] - r[:, 0, 1]], axis=1)
        diagonal = np.argmax(np.einsum("nii->ni", r), axis=1)
        columns = (r + np.eye(3))[np.arange(len(r)), :, diagonal]  # of half a turn: along its axis
        out.append(_turned(skew, 0.5 * (np.trace(r, axis1=1, axis2=2) - 1.0), columns))
    return out


def _turned(sine: np.ndarray, cosine: np.ndarray, opposite: np.ndarray) -> np.ndarray:
    """The rotation vector (n, 3) from sin θ times its axis and cos θ; of half a turn about `opposite`."""
    size = np.linalg.norm(sine, axis=1)
    angle = np.arctan2(size, cosine)
    axis = np.where(((size < 1e-7) & (cosine < 0.0))[:, None], opposite, sine)
    length = np.linalg.norm(axis, axis=1)
    found: np.ndarray = axis * (angle / np.where(length > 0.0, length, 1.0))[:, None]
    return found


def _rates(robot: Robot, kind: TargetKind, q: np.ndarray) -> list[np.ndarray]:
    """The velocities (n, 3, nv) of what _left measures, for a unit rate of each DoF."""
    if kind.kind == CENTER_OF_MASS:
        return [values(robot, "center_of_mass_jacobian", q)]
    J = values(robot, "jacobian", q, frame=kind.frame, expressed_in="world")
    angular, linear = J[:, :3], J[:, 3:]
    if kind.kind == DIRECTION:
        axis = values(robot, "pose", q, frame=kind.frame)[:, :3, :3] @ np.array(kind.axis)
        return [angular - axis[:, :, None] * np.einsum("ni,niv->nv", axis, angular)[:, None]]
    return {POSE: [linear, angular], ORIENTATION: [angular]}.get(kind.kind, [linear])
