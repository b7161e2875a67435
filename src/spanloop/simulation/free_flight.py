"""Free flight: a mechanism that nothing holds, without torques, and how well it keeps what it must keep.

Energy is constant, angular momentum about the centre of mass is constant, and linear momentum grows by m g t.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.simulation.runge_kutta import step


@dataclass(frozen=True)
class Flight:
    """A motion sampled at every step.

    times (n,) [s], q (n, nq), v (n, nv), kinetic and potential energy (n,) [J], momentum (n, 6) about the
    centre of mass [angular; linear], weight (3,) [N], mass [kg].
    """

    times: np.ndarray
    q: np.ndarray
    v: np.ndarray
    kinetic: np.ndarray
    potential: np.ndarray
    momentum: np.ndarray
    weight: np.ndarray
    mass: float

    @cached_property
    def energy_error(self) -> np.ndarray:
        """Energy minus its first value, (n,) [J]."""
        energy = self.kinetic + self.potential
        return energy - energy[0]

    @property
    def tumbling_energy(self) -> float:
        """Kinetic energy about the centre of mass at the start [J]: the measure of errors of energy."""
        linear = self.momentum[0, 3:]
        return float(self.kinetic[0] - linear @ linear / (2.0 * self.mass))

    @property
    def energy_drift(self) -> float:
        """Largest error of energy [J]."""
        return float(np.abs(self.energy_error).max())

    @property
    def angular_drift(self) -> float:
        """Largest error of angular momentum about the centre of mass [kg m²/s]."""
        angular = self.momentum[:, :3]
        return float(np.linalg.norm(angular - angular[0], axis=1).max())

    @property
    def linear_drift(self) -> float:
        """Largest difference between linear momentum and p(0) + m g t [kg m/s]."""
        expected = self.momentum[0, 3:] + self.times[:, None] * self.weight
        return float(np.linalg.norm(self.momentum[:, 3:] - expected, axis=1).max())


def fly(robot: Dynamics, q: np.ndarray, v: np.ndarray, duration: float, h: float) -> Flight:
    """The motion from (q, v) without torques, in steps of about h [s] that fill the duration [s]."""
    if not (np.isfinite(duration) and duration > 0.0):
        raise InputError(f"duration is {duration:g} s; must be > 0")
    n = max(1, round(duration / h))
    h = duration / n
    rest = np.zeros(robot.model.nv)
    qs, vs = np.empty((n + 1, len(q))), np.empty((n + 1, len(v)))
    qs[0], vs[0] = q, v
    for i in range(n):
        qs[i + 1], vs[i + 1] = step(lambda q, v: robot.forward_dynamics(q, v, rest), robot.integrate, qs[i], vs[i], h)
    kinetic, potential = np.array([robot.energy(q, v) for q, v in zip(qs, vs, strict=True)]).T
    momentum = np.array([robot.momentum(q, v) for q, v in zip(qs, vs, strict=True)])
    mass = robot.model.mass
    weight = mass * np.array(robot.model.gravity)
    return Flight(h * np.arange(n + 1), qs, vs, kinetic, potential, momentum, weight, mass)
