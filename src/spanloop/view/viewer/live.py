"""Live simulation: compiled steps in real time, with adjustable gravity, damping and an external force."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.kernels import KernelSpec
from spanloop.model import Model
from spanloop.simulation.stepper import Moment, Stepper

STEP = 1e-3  # s
LONGEST = 0.1  # s of motion computed at once, however far the simulation lags behind


@dataclass
class Settings:
    """Adjustable loads: a factor on gravity, damping [N m s/rad or N s/m] at every joint, a force (3,) [N] on a body's
    centre of mass."""

    gravity: float = 1.0
    damping: float = 0.0
    body: str = ""
    force: np.ndarray = field(default_factory=lambda: np.zeros(3))


class Live:
    """A simulation in real time. `now` is the current state; `ended` is the reason why it stopped, "" while it runs."""

    def __init__(self, robot: Dynamics, q, v=None, step: float = STEP):
        self.robot, self.step = robot, step
        self.settings = Settings()
        self.restart(q, v)

    def restart(self, q, v=None, time: float = 0.0) -> None:
        """Restart from q (nq,) and v (nv,), at rest if v is None."""
        rates = np.zeros(self.robot.model.nv) if v is None else np.array(v, float)
        self.now, self.ended, self._owed = Moment(time, np.array(q, float), rates), "", 0.0

    def advance(self, seconds: float) -> None:
        """Advance by `seconds`, in whole steps; the remainder is added to the next call."""
        self._owed = min(self._owed + seconds, LONGEST)
        count = int(self._owed / self.step + 1e-9)
        if count and not self.ended:
            self._owed -= count * self.step
            self.now, outcome = self._stepper.advanced(self.now, count, self._inputs())
            self.ended = "" if outcome.finished else outcome.sentence

    def torques(self) -> np.ndarray:
        """Joint torques (nv,) of the dampers at the current state."""
        return -np.where(self._driven, 0.0, self.settings.damping * self.now.v)

    def forces(self) -> dict[str, np.ndarray]:
        """External forces (6,) at the bodies' origins in world axes: the push, and the correction of gravity."""
        s, model = self.settings, self.robot.model
        out: dict[str, np.ndarray] = {}
        for body in model.bodies:
            force = (s.gravity - 1.0) * body.inertia.mass * np.array(model.gravity)
            force = force + (s.force if body.name == s.body else 0.0)
            if np.any(force):
                lever = self.robot.pose(self.now.q, body.name)[:3, :3] @ body.inertia.center
                out[body.name] = np.concatenate([np.cross(lever, force), force])
        return out

    @cached_property
    def _stepper(self) -> Stepper:
        model = self.robot.model
        return Stepper(self.robot, self.now.q, controller(model), model.nv + 2, self.step)

    @cached_property
    def _driven(self) -> np.ndarray:
        return np.array([j.driven for j in self.robot.model.joints for _ in range(j.kind.nv)], dtype=bool)

    def _inputs(self) -> np.ndarray:
        return np.concatenate([self._push(), [self.settings.damping, self.settings.gravity]])

    def _push(self) -> np.ndarray:
        """Jᵀ f at the joints (nv,) of the force on a body's centre of mass, constant during one call of advance."""
        s = self.settings
        if not s.body or not np.any(s.force):
            return np.zeros(self.robot.model.nv)
        lever = self.pushed_at() - self.robot.pose(self.now.q, s.body)[:3, 3]
        six = np.concatenate([np.cross(lever, s.force), s.force])
        return np.where(self._driven, 0.0, self.robot.jacobian(self.now.q, s.body).T @ six)

    def pushed_at(self) -> np.ndarray:
        """The centre of mass (3,) [m] of the pushed body, in the world."""
        pose = self.robot.pose(self.now.q, self.settings.body)
        return pose[:3, :3] @ self.robot.model.body(self.settings.body).inertia.center + pose[:3, 3]


def controller(model: Model):
    """Torques from u = (torques (nv), damping, factor on gravity): u − damping · v + (1 − factor) · g(q).

    g(q) are the gravity torques, so gravity is scaled exactly, without another model and another kernel. The entry of a
    driven joint is its acceleration, 0.
    """
    gravity = KernelSpec.of(model, "gravity_torques")
    driven = [j.driven for j in model.joints for _ in range(j.kind.nv)]
    n = model.nv

    def torques(t, q, v, u):
        weight, _ = gravity.compute({"q": q})
        return [0.0 if driven[k] else u[k] - u[n] * v[k] + (1.0 - u[n + 1]) * weight[k] for k in range(n)]

    return torques
