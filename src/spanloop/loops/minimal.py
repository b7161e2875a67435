"""Minimal coordinates: a closed mechanism as an ordinary differential equation in its actuated freedoms.

Positions of the other joints are solved at every evaluation, from the last ones found. [Saha, section 3, takes them as
known]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spanloop.errors import InputError
from spanloop.loops.actuating import actuators
from spanloop.loops.assembling import assemble
from spanloop.loops.independent import complete_acceleration, complete_velocity, resolved


class Minimal:
    """One mechanism in the coordinates of joints of one freedom that determine the others; one state at a time.

    names: of the joints, in the order of all arrays (n,) here.
    """

    def __init__(self, robot, start, joints: Sequence[str] | None = None):
        """start (nq,): closed, or nearly so; it chooses the assembly. joints: the actuated ones if not named."""
        self.robot, model = robot, robot.model
        self.names = tuple(actuators(model, joints, None).names)
        for name in self.names:
            if name not in {j.name for j in model.joints}:
                raise InputError(f"minimal: {name!r} is one freedom of several; name joints of one freedom")
        self.freedoms = resolved(robot, start, self.names).freedoms
        self._places = [model.q_slice(name).start for name in self.names]
        self._last = assemble(robot, start)

    def state(self, positions, rates) -> tuple[np.ndarray, np.ndarray]:
        """q (nq,), v (nv,) of all joints."""
        guess = self._last.copy()
        guess[self._places] = positions
        q = assemble(self.robot, guess, self.names)
        self._last = q
        return q, complete_velocity(self.robot, q, np.asarray(rates, float), self.names)

    def forward_dynamics(self, positions, rates, torques) -> np.ndarray:
        """Accelerations (n,) under torques (n,)."""
        q, v = self.state(positions, rates)
        tau = np.zeros(self.robot.model.nv)
        tau[list(self.freedoms)] = torques
        return self.robot.forward_dynamics(q, v, tau)[list(self.freedoms)]

    def inverse_dynamics(self, positions, rates, accelerations) -> np.ndarray:
        """Torques (n,) for accelerations (n,)."""
        q, v = self.state(positions, rates)
        a = complete_acceleration(self.robot, q, v, np.asarray(accelerations, float), self.names)
        return self.robot.inverse_dynamics(q, v, a, actuated=self.names)[list(self.freedoms)]

    def restart(self, q) -> None:
        """Begin again from a closed state q (nq,)."""
        self._last = assemble(self.robot, q)
