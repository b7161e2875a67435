"""Closed states along a straight way of some joints' positions, without a jump to another assembly.

The way is taken in parts. In each, the dependent freedoms first move along their rates, then Newton steps close the
loops. A part counts if every Newton step is at most half of the one before, and if the dependent columns J_d of the
Jacobian changed by less than half of themselves: ‖J_d⁺ (J_d' − J_d)‖ < ½. J_d then has no zero determinant on the
straight line between the two, and the assembly is the same. Otherwise the part is halved. Towards a singular position
the parts become shorter without end; the way stops there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spanloop.loops.measuring import errors, positional
from spanloop.loops.robot import Robot, resolution, values
from spanloop.loops.structure import RANK, Structure, rank, singular_values, structure

_HALF = 0.5
_SHORTEST = 1e-7  # of the way: shorter parts are not tried
_NEWTON = 12  # steps
_PARTS = 400


@dataclass(frozen=True, eq=False)
class Way:
    """From q (nq,), closed, by `step` (n,) of the freedoms named."""

    robot: Robot
    freedoms: tuple[int, ...]

    def followed(self, q: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, float]:
        """The closed state reached (nq,), and the share of the way up to it: 1 where all of it could be taken."""
        rows = structure(self.robot, q)
        J, share, part = self._jacobian(rows, q), 0.0, 1.0
        if self._lost(rows, J):
            return q, 0.0
        for _ in range(_PARTS):
            part = min(part, 1.0 - share)
            found = self._tried(rows, q, J, part * step)
            if found is None:
                part *= _HALF
                if part < _SHORTEST:
                    break
                continue
            (q, J), share, part = found, share + part, 2.0 * part
            if share >= 1.0:
                return q, 1.0
        return q, share

    def _tried(self, rows: Structure, q, J, step) -> tuple[np.ndarray, np.ndarray] | None:
        """The state after one part and its Jacobian; None if it cannot be trusted."""
        free, rest = list(self.freedoms), self._rest
        backward = np.linalg.pinv(J[:, rest], rcond=RANK)
        delta = np.zeros(J.shape[1])
        delta[free] = step
        delta[rest] = -backward @ (J[:, free] @ step)
        reached = self._moved(q, delta)
        tolerance = max(1e-12, 100.0 * resolution(self.robot))
        before = np.inf
        for _ in range(_NEWTON):
            error, here = self._error(reached), self._jacobian(rows, reached)
            if not (np.isfinite(error).all() and np.linalg.norm(backward @ (here - J)[:, rest], 2) < _HALF):
                return None
            if np.abs(error).max(initial=0.0) <= tolerance:
                return reached, here
            correction = np.zeros(J.shape[1])
            correction[rest] = -np.linalg.lstsq(here[:, rest], rows.scaled_errors(error), rcond=RANK)[0]
            size = float(np.linalg.norm(correction))
            if size > _HALF * before:
                return None
            before, reached = size, self._moved(reached, correction)
        return None

    @property
    def _rest(self) -> list[int]:
        return [k for k in range(self.robot.model.nv) if k not in self.freedoms]

    def _lost(self, rows: Structure, J: np.ndarray) -> bool:
        """Is the rank of the dependent columns less than that of all columns in general?"""
        held = positional(self.robot.model)[rows.kept]
        usual = rank(singular_values(rows.jacobian * held[:, None]))
        return int(np.sum(singular_values(J[:, self._rest]) > RANK * np.linalg.norm(J))) < usual

    def _jacobian(self, rows: Structure, q: np.ndarray) -> np.ndarray:
        """(rows, nv), scaled; rows that hold no position are 0."""
        held = positional(self.robot.model)
        return rows.scaled(np.where(held[:, None], values(self.robot, "closure_jacobian", q[None])[0], 0.0))

    def _error(self, q: np.ndarray) -> np.ndarray:
        return np.where(positional(self.robot.model), errors(self.robot, q[None])[0], 0.0)

    def _moved(self, q: np.ndarray, delta: np.ndarray) -> np.ndarray:
        return values(self.robot, "integrate", q[None], delta[None])[0]


def followed(robot: Robot, q: np.ndarray, freedoms: Sequence[int], step: np.ndarray) -> tuple[np.ndarray, float]:
    """From a closed state q (nq,) by `step` (n,) of independent freedoms: the state reached, the share of the way."""
    return Way(robot, tuple(freedoms)).followed(q, step)
