"""Closed motions in extended precision: states of a mechanism near a closed one, for central differences along them."""

from __future__ import annotations

import numpy as np
from extended import evaluate

import spanloop as sl
from spanloop.loops.independent_dofs import IndependentCoordinates
from spanloop.topology import mechanism

_ROUNDS = 6  # each takes ten digits or more
_RANK = 1e-9


class ClosedPaths:
    """States (q, v) with closed loops near a state, by changes of the independent positions and rates.

    The dependent positions follow from e(q) = 0, the dependent rates from J v = r, with r the rates of driven loops.
    The position of a driven loop, which has no error, is held to first order: enough for a first derivative.
    """

    def __init__(self, robot: sl.Dynamics, q: np.ndarray, v: np.ndarray, chosen: IndependentCoordinates):
        self.robot, self.chosen = robot, list(chosen.dofs)
        self.rest = [k for k in range(robot.model.nv) if k not in self.chosen]
        self.plans = {x: robot.kernel(x).plan for x in ("closure_error", "closure_jacobian", "integrate")}
        self.q, self.v = self._closed(np.asarray(q, np.longdouble)), np.asarray(v, np.longdouble)
        given = np.isin(np.arange(mechanism(robot.model).n_rows), mechanism(robot.model).given_rows)
        self.rates = np.where(given, self._jacobian(self.q) @ self.v, 0.0)

    def at(self, positions=0.0, rates=0.0) -> tuple[np.ndarray, np.ndarray]:
        """q (nq,), v (nv,) with the independent positions and rates changed by these (n,)."""
        delta = np.zeros(self.robot.model.nv, np.longdouble)
        delta[self.chosen] = positions
        J = self._jacobian(self.q)
        delta[self.rest] = -self._answer(J, J @ delta)
        q, v = self._closed(evaluate(self.plans["integrate"], self.q, delta)), self.v.copy()
        v[self.chosen] += rates
        J = self._jacobian(q)
        for _ in range(_ROUNDS):
            v[self.rest] -= self._answer(J, J @ v - self.rates)
        return q, v

    def accelerations(self, q, v, independent, given=0.0) -> np.ndarray:
        """a (nv,) with J a + γ = 0 (given, along driven loops) and these independent accelerations (n,)."""
        J, bias = self._jacobian(q), evaluate(self.robot.kernel("closure_bias").plan, q, v)
        a = np.zeros(self.robot.model.nv, np.longdouble)
        a[self.chosen] = independent
        for _ in range(_ROUNDS):
            a[self.rest] -= self._answer(J, J @ a + bias - given)
        return a

    def _closed(self, q: np.ndarray) -> np.ndarray:
        for _ in range(_ROUNDS):
            step = np.zeros(self.robot.model.nv, np.longdouble)
            step[self.rest] = -self._answer(self._jacobian(q), evaluate(self.plans["closure_error"], q))
            q = evaluate(self.plans["integrate"], q, step)
        return q

    def _jacobian(self, q: np.ndarray) -> np.ndarray:
        return evaluate(self.plans["closure_jacobian"], q).reshape(self.plans["closure_jacobian"].shape)

    def _answer(self, J: np.ndarray, error: np.ndarray) -> np.ndarray:
        """The step of the dependent DoF that removes an error of the rows, to the digits of a double."""
        size = np.abs(error).max(initial=0.0)
        if size == 0.0:
            return np.zeros(len(self.rest), np.longdouble)
        inverse = np.linalg.pinv(J[:, self.rest].astype(float), rcond=_RANK)
        return size * (inverse @ (error / size).astype(float)).astype(np.longdouble)


def moving(model: sl.Model, q: np.ndarray, seed: int = 1, **options):
    """A robot, a closed state of it that moves, and torques."""
    robot, rng = sl.Dynamics(model, **options), np.random.default_rng(seed)
    q, v = robot.project(q, rng.normal(size=model.nv))
    return robot, q, v, rng.normal(size=model.nv)
