"""Noise of starts: independent degrees of freedom (DoF) moved by up to a size, others as closed loops move them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.joints.kind import JointKind
from spanloop.loops.independent_dofs import IndependentCoordinates, resolved
from spanloop.model import Model
from spanloop.model.parts import Joint


@dataclass(frozen=True)
class StartNoise:
    """Random states near a start: every independent coordinate is moved by at most `size` [rad or m].

    Where coordinates do not simply add (ball, planar and free joints) a joint turns by at most size, in the norm of its
    rotation vector, and its origin shifts by at most size.
    """

    robot: Dynamics
    start: np.ndarray  # (nq,)
    size: float
    map_of: np.ndarray  # (nv, n): velocities of all DoF from those of the independent ones
    balls: tuple[np.ndarray, ...]  # columns of independent DoF that are drawn in a ball
    shifts: np.ndarray  # (nv,): DoF that are lengths
    held: tuple[str, ...]  # joints that stay as they are drawn while the loops are assembled

    @staticmethod
    def of(robot: Dynamics, start: np.ndarray, size: float) -> StartNoise:
        """The noise about a closed start (nq,)."""
        model = robot.model
        if model.loops or model.couplings:
            chosen = resolved(robot, start, None)
            dofs, map_of, held = chosen.dofs, robot.velocity_map(start, chosen), _held(model, chosen)
        else:
            dofs, map_of, held = tuple(range(model.nv)), np.eye(model.nv), ()
        units = [(j, unit) for j in model.joints for unit in j.kind.units]
        groups: dict[tuple[str, str], list[int]] = {}
        for column, dof in enumerate(dofs):
            joint, unit = units[dof]
            if _is_curved(joint):
                groups.setdefault((joint.name, unit), []).append(column)
        balls = tuple(np.array(columns) for columns in groups.values())
        return StartNoise(robot, start, size, map_of, balls, np.array([u == "m" for _, u in units], bool), held)

    def __call__(self, random: np.random.Generator, n: int) -> np.ndarray:
        """States (n, nq); loops are closed to first order.

        Joints shift before they turn: a twist of both at once would shift by more.
        """
        moves = random.uniform(-self.size, self.size, (n, self.map_of.shape[1]))
        for columns in self.balls:
            moves[:, columns] = _in_ball(moves[:, columns])
        step = moves @ self.map_of.T
        shifted = self.robot.integrate(np.tile(self.start, (n, 1)), np.where(self.shifts, step, 0.0))
        return self.robot.integrate(shifted, np.where(self.shifts, 0.0, step))


def _held(model: Model, chosen: IndependentCoordinates) -> tuple[str, ...]:
    """Joints all of whose DoF are independent."""
    dofs = range(model.nv)
    return tuple(j.name for j in model.joints if j.kind.nv and set(dofs[model.v_slice(j.name)]) <= set(chosen.dofs))


def _is_curved(joint: Joint) -> bool:
    """Whether coordinates do not simply add."""
    return type(joint.kind).plus is not JointKind.plus


def _in_ball(x: np.ndarray) -> np.ndarray:
    """Vectors x (n, k) of a cube, each made shorter so that its length is that of its largest number."""
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    return x * np.divide(np.abs(x).max(axis=1, keepdims=True), lengths, out=np.ones_like(lengths), where=lengths > 0.0)
