"""Live simulation: compiled steps in real time, with adjustable gravity, damping and an external force.

Actuated joints are held where the simulation starts, unless the user lets them go: then they are driven, with the
acceleration −2 ω v − ω² (q − start), and everything else moves around them. Other joints rebound at their limits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import SpanloopError
from spanloop.kernels import KernelSpec
from spanloop.math.scalar import where
from spanloop.model import Model
from spanloop.simulation.stepper import Moment, Stepper

STEP = 1e-3  # s
HOLD = 30.0  # rad/s: how fast a held joint returns to its place
STOP = 80.0  # rad/s: how fast a joint beyond its limit is pushed back
LONGEST = 0.1  # s of motion computed at once, however far the simulation lags behind


@dataclass
class Settings:
    """Adjustable loads: a factor on gravity, damping [N m s/rad or N s/m] at every joint, a force (3,) [N] on a body's
    centre of mass; hold: whether actuated joints are held."""

    gravity: float = 1.0
    damping: float = 0.0
    hold: bool = True
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
        self._home = self.now.q.copy()

    def advance(self, seconds: float) -> None:
        """Advance by `seconds`, in whole steps; the remainder is added to the next call."""
        self._owed = min(self._owed + seconds, LONGEST)
        count = int(self._owed / self.step + 1e-9)
        if count and not self.ended:
            self._owed -= count * self.step
            stepper = self._free if self.acting is self.robot else self._holding
            self.now, outcome = stepper.advanced(self.now, count, self._inputs())
            self.ended = "" if outcome.finished else outcome.sentence

    def torques(self) -> np.ndarray:
        """Joint torques (nv,) of the dampers at the current state; 0 for driven and held joints."""
        driven = [j.driven for j in self.acting.model.joints for _ in range(j.kind.nv)]
        return -np.where(driven, 0.0, self.settings.damping * self.now.v)

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
    def held(self) -> tuple[str, ...]:
        """The actuated joints that can be held: where loops are redundantly actuated, as many as move on their own."""
        model = self.robot.model
        try:
            free = set(self.robot.independent_coordinates(self.now.q).dofs)
        except SpanloopError:
            return ()
        movable = [j for j in model.joints if j.actuated and not j.driven and j.kind.nv]
        return tuple(j.name for j in movable if set(range(model.nv)[model.v_slice(j.name)]) <= free)

    @property
    def acting(self) -> Dynamics:
        """The dynamics that the simulation follows: with held joints as driven ones, or those of the model."""
        return self._held_robot if self.settings.hold and self.held else self.robot

    @cached_property
    def _held_robot(self) -> Dynamics:
        model = self.robot.model
        joints = tuple(replace(j, driven=True) if j.name in self.held else j for j in model.joints)
        return Dynamics(replace(model, joints=joints))

    @cached_property
    def _free(self) -> Stepper:
        return self._stepper(self.robot)

    @cached_property
    def _holding(self) -> Stepper:
        return self._stepper(self._held_robot)

    def _stepper(self, robot: Dynamics) -> Stepper:
        model = robot.model
        law = controller(model, self.held, self._light)
        return Stepper(robot, self.now.q, law, model.nv + 2 + model.nq, self.step)

    @cached_property
    def _light(self) -> np.ndarray:
        """The inertia (nv,) of each degree of freedom while all others are free; 0 if it does not answer a torque."""
        n = self.robot.model.nv
        q, v = np.tile(self.now.q, (n + 1, 1)), np.zeros((n + 1, n))
        a = self.robot.forward_dynamics(q, v, np.vstack([np.zeros(n), np.eye(n)]))
        answer = np.diagonal(a[1:] - a[0])
        return np.where(answer > 1e-9, 1.0 / np.maximum(answer, 1e-9), 0.0)

    @cached_property
    def _driven(self) -> np.ndarray:
        return np.array([j.driven for j in self.robot.model.joints for _ in range(j.kind.nv)], dtype=bool)

    def _inputs(self) -> np.ndarray:
        return np.concatenate([self._push(), [self.settings.damping, self.settings.gravity], self._home])

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


def controller(model: Model, held: Sequence[str] = (), light: np.ndarray | None = None) -> Callable[..., list[Any]]:
    """Torques from u = (torques (nv), damping, factor on gravity, places (nq)): u − damping · v + (1 − factor) · g(q).

    g(q) are the gravity torques, so gravity is scaled exactly, without another model and another kernel. The entry of a
    driven joint is its acceleration: toward its place for a held one, else 0. light (nv,): inertias from which stops at
    the joints' limits have their stiffness; without them there are none.
    """
    gravity = KernelSpec.of(model, "gravity_torques")
    driven = [j.driven for j in model.joints for _ in range(j.kind.nv)]
    holds = _places(model, [j.name for j in model.joints if j.driven and j.name in held])
    stops = {} if light is None else _stops(model, light)
    n = model.nv

    def torques(t, q, v, u):
        weight, _ = gravity.compute({"q": q})
        out = []
        for k in range(n):
            if driven[k]:
                at = holds.get(k)
                back = 0.0 if at is None else -HOLD * HOLD * (q[at] - u[n + 2 + at])
                out.append(back - 2.0 * HOLD * v[k] if k in holds else 0.0)
                continue
            tau = u[k] - u[n] * v[k] + (1.0 - u[n + 1]) * weight[k]
            out.append(tau + _stop(stops[k], q, v[k]) if k in stops else tau)
        return out

    return torques


@dataclass(frozen=True)
class _Stop:
    """Limits of the coordinate q[at], with a stiffness and a damping."""

    at: int
    low: float | None
    high: float | None
    stiffness: float
    damping: float


def _stop(stop: _Stop, q: Any, v: Any) -> Any:
    """The torque that pushes a joint back which is beyond a limit."""
    x, out = q[stop.at], 0.0
    if stop.low is not None:
        out = out + where(x < stop.low, stop.stiffness * (stop.low - x) - stop.damping * v, 0.0)
    if stop.high is not None:
        out = out + where(stop.high < x, stop.stiffness * (stop.high - x) - stop.damping * v, 0.0)
    return out


def _places(model: Model, names: Sequence[str]) -> dict[int, int | None]:
    """The entry of q of each degree of freedom of some joints; None if it has none of its own."""
    out: dict[int, int | None] = {}
    for name in names:
        kind = model.joint(name).kind
        for k, dof in enumerate(range(model.nv)[model.v_slice(name)]):
            out[dof] = range(model.nq)[model.q_slice(name)][k] if kind.nq == kind.nv else None
    return out


def _stops(model: Model, light: np.ndarray) -> dict[int, _Stop]:
    """A stop for each joint with one coordinate and a limit, by its degree of freedom."""
    out = {}
    for j in model.joints:
        if j.kind.nq != 1 or j.kind.nv != 1 or j.driven:
            continue
        dof, at = model.v_slice(j.name).start, model.q_slice(j.name).start
        low, high = (float(x[0]) if x and np.isfinite(x[0]) else None for x in (j.lower, j.upper))
        if (low is not None or high is not None) and light[dof] > 0.0:
            out[dof] = _Stop(at, low, high, light[dof] * STOP * STOP, 0.6 * light[dof] * STOP)
    return out
