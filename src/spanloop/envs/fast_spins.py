"""Spins of bodies from finite elements without geometric stiffening: episodes in which one is too fast terminate."""

from __future__ import annotations

import warnings

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.envs.episode_ends import Named
from spanloop.errors import SpanloopWarning
from spanloop.flexible.matrices.spin import SPIN, TOO_FAST
from spanloop.model.flexible_bodies.stiffening_limits import soft_bodies, spin_share, spin_words

REASON = "spin"


class Spins:
    """Judges states after an action as sl.simulate judges its samples; warns once."""

    def __init__(self, robot: Dynamics):
        self.robot, self.bodies, self._has_warned = robot, soft_bodies(robot.model), False

    def failures(
        self, q: np.ndarray, v: np.ndarray, time: np.ndarray, moves: np.ndarray, parameters: np.ndarray | None = None
    ) -> Named:
        """Environments that move in which a body spins too fast for its data, and why.

        q (n, nq), v (n, nv); parameters (n, p): live ones of the episodes, if there are any.
        """
        out = Named()
        for body in self.bodies:
            shares = np.where(moves, spin_share(self.robot, body, q, v, parameters), 0.0)
            if not body.elements.any_spin:  # type: ignore[union-attr]
                for k in np.flatnonzero(shares > TOO_FAST):
                    out[int(k)] = REASON, spin_words(body, float(shares[k]), f"at t = {time[k]:.6g} s")
            worst = int(shares.argmax())
            if shares[worst] > SPIN and not self._has_warned:
                self._has_warned = True
                words = spin_words(body, float(shares[worst]), f"in environment {worst}")
                warnings.warn(f"MechanismEnv: {words}", SpanloopWarning, stacklevel=4)
        return out
