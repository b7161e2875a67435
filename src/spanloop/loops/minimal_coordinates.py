"""Minimal coordinates: a closed mechanism as an ordinary differential equation in its actuated DoF.

The positions of the other joints are solved at every evaluation, along a way from the last state (`path_following.py`).
[Saha, section 3, takes them as known]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.compiler.runtime.arrays import converted
from spanloop.errors import InputError, Reason, Refusal, StateError, in_one_line, listed
from spanloop.loops.arguments import actuators
from spanloop.loops.assembly.assembly import assemble
from spanloop.loops.assembly.path_following import followed, refuse_velocity_loops
from spanloop.loops.batching import one_state
from spanloop.loops.independent_dofs import complete_acceleration, complete_velocity, resolved
from spanloop.types import Array


class MinimalCoordinates:
    """One mechanism in the coordinates of joints of one DoF that determine the others; one state at a time.

    names: of the joints, in the order of all arrays (n,) here.

    The object keeps its first and its last state. A call moves the joints straight from the last state to the new
    positions, and the others follow without a jump to another assembly; if a singular configuration blocks that way,
    straight from the first state; otherwise it raises StateError and keeps the last state. The result therefore
    depends on the positions alone, except for whole turns of the other joints and for mechanisms that change their
    assembly around a singular configuration. Joint limits are not checked.
    """

    def __init__(self, robot: Any, start: ArrayLike, joints: Sequence[str] | None = None):
        """start (nq,): closed, or nearly so; it selects the assembly. joints: the actuated ones by default."""
        self.robot, model = robot, robot.model
        refuse_velocity_loops(model, "minimal_coordinates")
        self.names = tuple(actuators(model, joints, None).names)
        for name in self.names:
            if name not in {j.name for j in model.joints}:
                raise InputError(f"minimal_coordinates: {name!r} is one DoF of several; name joints of one DoF")
        start = one_state("minimal_coordinates", robot, start)
        self.dofs = resolved(robot, start, self.names, "minimal_coordinates", "joints=[...]").dofs
        self._places = [model.q_slice(name).start for name in self.names]
        self._last = self._first = assemble(robot, start)

    @property
    def last(self) -> np.ndarray:
        """q (nq,) of the last state."""
        return self._last.copy()

    def state(self, positions: ArrayLike, rates: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """q (nq,), v (nv,) of all joints."""
        positions, rates = self._checked("state", "positions", positions), self._checked("state", "rates", rates)
        return self._state(positions, rates)

    def forward_dynamics(self, positions: ArrayLike, rates: ArrayLike, torques: ArrayLike) -> Array:
        """Accelerations (n,) under torques (n,)."""
        name = "forward_dynamics"
        positions, rates = self._checked(name, "positions", positions), self._checked(name, "rates", rates)
        tau = np.zeros(self.robot.model.nv)
        tau[list(self.dofs)] = self._checked(name, "torques", torques)
        q, v = self._state(positions, rates)
        a: Array = self.robot.forward_dynamics(q, v, tau)[list(self.dofs)]
        return a

    def inverse_dynamics(self, positions: ArrayLike, rates: ArrayLike, accelerations: ArrayLike) -> Array:
        """Torques (n,) for accelerations (n,)."""
        name = "inverse_dynamics"
        positions, rates = self._checked(name, "positions", positions), self._checked(name, "rates", rates)
        accelerations = self._checked(name, "accelerations", accelerations)
        q, v = self._state(positions, rates)
        a = complete_acceleration(self.robot, q, v, accelerations, self.names)
        tau: Array = self.robot.inverse_dynamics(q, v, a, actuated=self.names)[list(self.dofs)]
        return tau

    def restart(self, q: ArrayLike) -> None:
        """Start again from a state q (nq,), closed or nearly so."""
        self._last = self._first = assemble(self.robot, one_state("minimal_coordinates.restart", self.robot, q))

    def __repr__(self) -> str:
        return f"MinimalCoordinates({self.robot.model.name!r}, {', '.join(map(repr, self.names))})"

    def __str__(self) -> str:
        model = self.robot.model
        count = f"{len(self.names)} of {model.nv}"
        lines = (
            f"{model.name}: {count} DoF determine the others: {listed(self.names)}.",
            f"Last state: {self._listed(self._last)}.",
        )
        return "\n".join(map(in_one_line, lines))

    def _state(self, positions: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        reached = []
        for origin in (self._last, self._first):
            q, share = followed(self.robot, origin, self.dofs, positions - origin[self._places])
            if share == 1.0:
                q[self._places] = positions
                v = complete_velocity(self.robot, q, rates, self.names)
                self._last = q
                return q, v
            reached.append(q)
        refusal = Refusal(
            Reason.BLOCKED_PATH,
            f"on the way from {self._listed(self._last)} to {_values(self.names, positions)} the mechanism comes to a "
            f"singular configuration near {self._listed(reached[0])}, beyond which the other joints do not follow (or "
            "the positions are out of reach). Take another way, through positions between them; or start from another "
            "assembly: restart(q)",
        )
        raise StateError.of("minimal_coordinates", refusal)

    def _checked(self, function: str, what: str, x: ArrayLike) -> np.ndarray:
        """Finite numbers (n,), or an error."""
        n = len(self.names)
        order = f"one state ({n},), in the order {listed(self.names, 6)}"
        if isinstance(x, dict):
            raise InputError(f"minimal_coordinates.{function}: {what} is a dict; expected {order}")
        if np.shape(x) != (n,):
            many = ". Call it for each state in turn" if np.ndim(x) > 1 else ""
            raise InputError(f"minimal_coordinates.{function}: {what} has shape {np.shape(x)}; expected {order}{many}")
        a = converted(f"minimal_coordinates.{function}", what, n, x, np.dtype(float))
        if not np.isfinite(a).all():
            k = int(np.argmax(~np.isfinite(a)))
            sentence = f"{what}[{k}] ({self.names[k]!r}) is {a[k]}; every number must be finite"
            raise StateError.of(f"minimal_coordinates.{function}", Refusal(Reason.NOT_FINITE, sentence))
        return a

    def _listed(self, q: np.ndarray) -> str:
        return _values(self.names, q[self._places])


def _values(names: Sequence[str], positions: np.ndarray) -> str:
    return listed([f"{name} = {x:.4g}" for name, x in zip(names, positions, strict=True)], 6)
