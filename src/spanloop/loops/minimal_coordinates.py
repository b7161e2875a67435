"""Minimal coordinates: a closed mechanism as an ordinary differential equation in its actuated freedoms.

Positions of the other joints are solved at every evaluation, along a way from the last ones found (`continuing.py`).
[Saha, section 3, takes them as known]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spanloop.compiler.runtime.arrays import converted
from spanloop.errors import InputError, StateError
from spanloop.loops.arguments import actuators
from spanloop.loops.assembly import assemble
from spanloop.loops.batching import one_state
from spanloop.loops.follow import followed
from spanloop.loops.independent import complete_acceleration, complete_velocity, resolved


class Minimal:
    """One mechanism in the coordinates of joints of one freedom that determine the others; one state at a time.

    names: of the joints, in the order of all arrays (n,) here.

    It remembers the last state it found and the one it began with. From the last one the joints go straight to the new
    positions, and the others follow without a jump to another assembly; where a singular position lies on that way,
    straight from the first one; else the call is refused and nothing is forgotten. So the answer depends on positions
    alone, but for whole turns of joints that follow and for mechanisms that change their assembly around a singular
    position. Limits of joints are not looked at.
    """

    def __init__(self, robot, start, joints: Sequence[str] | None = None):
        """start (nq,): closed, or nearly so; it chooses the assembly. joints: the actuated ones if not named."""
        self.robot, model = robot, robot.model
        self.names = tuple(actuators(model, joints, None).names)
        for name in self.names:
            if name not in {j.name for j in model.joints}:
                raise InputError(f"minimal: {name!r} is one freedom of several; name joints of one freedom")
        start = one_state("minimal", robot, start)
        self.freedoms = resolved(robot, start, self.names, "minimal", "joints=[...]").freedoms
        self._places = [model.q_slice(name).start for name in self.names]
        self._last = self._first = assemble(robot, start)

    @property
    def last(self) -> np.ndarray:
        """q (nq,) of the last state that was found."""
        return self._last.copy()

    def state(self, positions, rates) -> tuple[np.ndarray, np.ndarray]:
        """q (nq,), v (nv,) of all joints."""
        positions, rates = self._given("state", "positions", positions), self._given("state", "rates", rates)
        return self._state(positions, rates)

    def forward_dynamics(self, positions, rates, torques) -> np.ndarray:
        """Accelerations (n,) under torques (n,)."""
        name = "forward_dynamics"
        positions, rates = self._given(name, "positions", positions), self._given(name, "rates", rates)
        tau = np.zeros(self.robot.model.nv)
        tau[list(self.freedoms)] = self._given(name, "torques", torques)
        q, v = self._state(positions, rates)
        return self.robot.forward_dynamics(q, v, tau)[list(self.freedoms)]

    def inverse_dynamics(self, positions, rates, accelerations) -> np.ndarray:
        """Torques (n,) for accelerations (n,)."""
        name = "inverse_dynamics"
        positions, rates = self._given(name, "positions", positions), self._given(name, "rates", rates)
        accelerations = self._given(name, "accelerations", accelerations)
        q, v = self._state(positions, rates)
        a = complete_acceleration(self.robot, q, v, accelerations, self.names)
        return self.robot.inverse_dynamics(q, v, a, actuated=self.names)[list(self.freedoms)]

    def restart(self, q) -> None:
        """Begin again from a state q (nq,), closed or nearly so."""
        self._last = self._first = assemble(self.robot, one_state("minimal.restart", self.robot, q))

    def __repr__(self) -> str:
        return f"Minimal({self.robot.model.name!r}, {', '.join(map(repr, self.names))})"

    def __str__(self) -> str:
        model = self.robot.model
        return (
            f"{model.name}: {len(self.names)} of {model.nv} freedoms determine the others: {', '.join(self.names)}.\n"
            f"Last state found: {self._told(self._last[self._places])}."
        )

    def _state(self, positions: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        reached = []
        for origin in (self._last, self._first):
            q, share = followed(self.robot, origin, self.freedoms, positions - origin[self._places])
            if share == 1.0:
                q[self._places] = positions
                v = complete_velocity(self.robot, q, rates, self.names)
                self._last = q
                return q, v
            reached.append(q)
        raise StateError(
            f"minimal: on the way from {self._told(self._last[self._places])} to {self._told(positions)} the mechanism "
            f"comes to a singular position near {self._told(reached[0][self._places])}, behind which the other joints "
            "do not follow (or the positions are out of reach). Go another way, by positions between; or begin at "
            "another assembly: minimal.restart(q)"
        )

    def _given(self, function: str, what: str, x) -> np.ndarray:
        """Finite numbers (n,), or a sentence."""
        n = len(self.names)
        order = f"one state ({n},), in the order {_listed(self.names)}"
        if isinstance(x, dict):
            raise InputError(f"minimal.{function}: {what} is a dict; expected {order}")
        if np.shape(x) != (n,):
            many = ". Call it for each state in turn" if np.ndim(x) > 1 else ""
            raise InputError(f"minimal.{function}: {what} has shape {np.shape(x)}; expected {order}{many}")
        a = converted(f"minimal.{function}", what, n, x, np.dtype(float))
        if not np.isfinite(a).all():
            k = int(np.argmax(~np.isfinite(a)))
            raise StateError(
                f"minimal.{function}: {what}[{k}] ({self.names[k]!r}) is {a[k]}; every number must be finite"
            )
        return a

    def _told(self, positions: np.ndarray) -> str:
        each = [f"{name} = {x:.4g}" for name, x in zip(self.names, positions, strict=True)]
        return _listed(each)


def _listed(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
