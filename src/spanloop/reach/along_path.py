"""`robot.inverse_kinematics_path`: states along a sequence of targets, one branch and one assembly throughout.

From sample to sample the targets go straight (rotations about one axis), in parts. In each part Newton steps lead from
the last state to the targets. A part counts if every step is at most half as long as the one before: then the
solution is the one that continues the last state, as no other is as near. Otherwise the part is halved. At a singular
configuration, at limits or out of reach the parts become shorter without end; the path stops there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.algorithms.tree.target_rows import DIRECTION, ORIENTATION, POSE
from spanloop.errors import InputError, StateError, listed
from spanloop.loops.batching import Robot
from spanloop.math import rotation_vector
from spanloop.reach.goal import Goal
from spanloop.reach.inverse_kinematics import Rows, Task, check_options, inverse_kinematics
from spanloop.reach.residuals import is_closed, residuals
from spanloop.reach.result import Reach, sizes

FUNCTION = "inverse_kinematics_path"
_SHORTEST = 1e-6  # of the way between two samples: shorter parts are not tried
_LONGEST = 0.3  # rad, or of the robot's size: the first step of a part is no longer
_STEPS = 12
_NEAR = 1e-5  # rad or m: this near to a limit, it may be what stops a path
_DAMPING = 1e-3  # the factor of the damping: nearly Newton's method


def inverse_kinematics_path(
    robot: Robot,
    targets: Any,
    start: ArrayLike | None = None,
    *,
    fixed: str | Sequence[str] = (),
    tolerance: float | None = None,
    seed: int = 0,
) -> Reach:
    """As Dynamics.inverse_kinematics_path."""
    check_options(FUNCTION, tolerance, 0, seed)
    if start is not None and np.shape(start) != (robot.model.nq,):
        raise InputError(f"{FUNCTION}: start has shape {np.shape(start)}; expected one state ({robot.model.nq},)")
    task = Task.of(FUNCTION, robot, targets, start, fixed, tolerance, whole=False)
    goal = task.goal
    if len(goal.leading) != 1 or not goal.leading[0]:
        raise InputError(
            f"{FUNCTION}: the targets have the batch axes {goal.leading}; expected one, the samples of the path, "
            "as poses (n, 4, 4)"
        )
    if task.refusals:
        first = min(task.refusals)
        where = f"{FUNCTION}: sample {first}" if first in goal.refusals else FUNCTION
        raise StateError.of(where, task.refusals[first])
    return _Walk(task, seed, start is not None).result()


class _Walk:
    """Along the samples of one task."""

    def __init__(self, task: Task, seed: int, has_start: bool):
        self.task, self.goal, self.count = task, task.goal, task.goal.leading[0]
        self.q = np.full((self.count, task.robot.model.nq), np.nan)
        self.steps = np.zeros(self.count, int)
        self.seed, self.has_start = seed, has_start

    def result(self) -> Reach:
        """The states up to where the path stops; NaN after that."""
        done, stopped = 0, self._first()
        if not stopped:
            done = 1
            while done < self.count:
                reached, share = self._next(done)
                if share < 1.0:
                    stopped = self._why(done, reached, share)
                    break
                self.q[done] = reached
                done += 1
        q = self.q[:done]
        rows = Rows(np.arange(done), q, is_closed(self.task.robot, q), self.steps[:done], np.zeros(done, int))
        return self.task.result(rows, {}, stopped)

    def _first(self) -> str:
        """Solve the first sample, near the start if there is one; why it cannot be reached, or nothing."""
        task = self.task
        found = inverse_kinematics(
            task.robot, _first_of(self.goal), task.start[0], fixed=task.fixed, tolerance=task.tolerance, seed=self.seed,
            restarts=0 if self.has_start else 50,
        )  # fmt: skip
        self.q[0], self.steps[0] = found.q, found.iterations
        hint = ". Leave out start, or give one nearer to it" if self.has_start else ""
        return "" if found.converged else f"Sample 0 is {str(found).split(': ', 1)[1]}{hint}"

    def _next(self, k: int) -> tuple[np.ndarray, float]:
        """The state of sample k, from that of the sample before, and the share of the way that could be taken."""
        q, share, part = self.q[k - 1], 0.0, 1.0
        while share < 1.0:
            part = min(part, 1.0 - share)
            found = self._tried(q, between(self.goal, k - 1, share + part), k)
            if found is None:
                part *= 0.5
                if part < _SHORTEST:
                    break
            else:
                q, share, part = found, share + part, 2.0 * part
        return q, share

    def _tried(self, q: np.ndarray, numbers: np.ndarray, k: int) -> np.ndarray | None:
        """The state that meets these targets (1, numbers), if steps from q lead there without a doubt."""
        steps, constants = self.task.own.steps, self.task.constants(numbers, q[None])
        rows, before = steps.begun(q[None], _DAMPING), _LONGEST**2
        for _ in range(_STEPS):
            arrived, _ = steps.advance(rows, constants, 1)
            self.steps[k] += 1
            if arrived[0]:
                reached = q.copy()
                reached[steps.moving] = steps.part(rows, "q")[0]
                return reached
            size = float(steps.part(rows, "merit")[0, 2])
            if size > before or steps.part(rows, "pace")[0, 1] < 1.0:
                return None
            before = 0.25 * size
        return None

    def _why(self, k: int, q: np.ndarray, share: float) -> str:
        task = self.task
        left = residuals(task.robot, self.goal, q[None], slice(k, k + 1))
        by = listed(f"{n!r} by {sizes(r.distance[0], r.angle[0])}" for n, r in left.items())
        limits, x = task.limits, q[task.limits.in_q]
        near = (x < limits.lower + _NEAR) | (x > limits.upper - _NEAR)
        held = [name for name, at in zip(limits.names, near, strict=True) if at]
        cause = f"at limits: {listed(map(repr, held), 6)}" if held else "a singular configuration, or the edge of reach"
        if not is_closed(task.robot, q[None])[0]:
            cause = "loops that open"
        return (
            f"Between samples {k - 1} and {k} the path stops after {share:.0%} of the way ({cause}); there, sample {k} "
            f"is missed: {by}"
        )


def _first_of(goal: Goal) -> Goal:
    """The goal of the first sample alone."""
    return Goal(goal.kinds, goal.names, goal.numbers[:1], goal.weights, (), {})


def between(goal: Goal, k: int, share: float) -> np.ndarray:
    """Numbers (1, width) of the targets on the way from sample k to the next."""
    if share >= 1.0:
        return goal.numbers[k + 1 : k + 2]
    out = []
    for _, kind, x in goal.parts():
        a, b = x[k], x[k + 1]
        if kind.kind in (POSE, ORIENTATION):
            A, B = a[:9].reshape(3, 3), b[:9].reshape(3, 3)
            out.append((_turned(B @ A.T, share) @ A).ravel())
            a, b = a[9:], b[9:]
        if kind.kind == DIRECTION:
            straight = (1.0 - share) * a + share * b
            length = math.hypot(*straight)
            out.append(straight / length if length > 1e-9 else a)
        elif kind.kind != ORIENTATION:
            out.append((1.0 - share) * a + share * b)
    return np.concatenate(out)[None]


def _turned(r: np.ndarray, share: float) -> np.ndarray:
    """The rotation (3, 3) about the axis of r by a share of its angle."""
    turn = np.array(rotation_vector.of_matrix((tuple(r[0]), tuple(r[1]), tuple(r[2])))) * share
    angle = float(np.linalg.norm(turn))
    if angle < 1e-15:
        return np.eye(3)
    x, y, z = turn / angle
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    found: np.ndarray = np.eye(3) + math.sin(angle) * K + (1.0 - math.cos(angle)) * K @ K
    return found
