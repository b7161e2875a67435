"""Periodic motions of mechanisms with loops: coordinates, torques, and a controller that tracks them.

The course gives the coordinates of some joints (an object that arms carry, say) over one period; the loops are
closed around them. Torques at the actuated joints follow from the power they must give: for every motion T u that
the loops allow, (T u)ᵀ tau = (T u)ᵀ (M a + h). Where more joints are actuated than the mobility needs, the torques of
least norm are taken. The controller adds springs and dampers. Periodic functions are sums of harmonics: smooth, easy to
differentiate, and traceable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.math.scalar import sincos
from spanloop.model import Model

SAMPLES, HARMONICS = 64, 12


@dataclass(frozen=True, eq=False)
class Led:
    """A motion to track: its start q (nq,), v (nv,), its angles and torques over time, and the gains."""

    model: Model
    q: np.ndarray
    v: np.ndarray
    joints: tuple[str, ...]
    angles: Periodic
    torques: Periodic
    stiffness: float  # N m/rad
    damping: float  # N m s/rad

    def control(self, t: Any, q: Any, v: Any) -> dict[str, object]:
        """Torques by joint: those of the motion, and springs and dampers to it. A controller for sl.simulate."""
        wanted, rates, torques = self.angles(t), self.angles.rate()(t), self.torques(t)
        return {
            name: torques[k] + self.stiffness * (wanted[k] - q[name]) + self.damping * (rates[k] - v[name])
            for k, name in enumerate(self.joints)
        }


def lead(
    robot: Dynamics,
    start: np.ndarray,
    course: Callable[[float], Mapping[str, Sequence[float]]],
    period: float,
    *,
    stiffness: float = 400.0,
    damping: float = 60.0,
) -> Led:
    """The motion in which joints follow course(t) -> {"joint": coordinates}, from a closed posture start (nq,) near."""
    model = robot.model
    joints = tuple(j.name for j in model.joints if j.actuated and j.kind.nq == j.kind.nv == 1)
    if not joints:
        raise InputError(f"lead: model {model.name!r} has no actuated hinges or slides; nothing can be led")
    times = period * np.arange(SAMPLES) / SAMPLES
    q = _postures(robot, np.asarray(start, float), [course(float(t)) for t in times])
    angles = Periodic.through(q[:, [model.q_slice(j).start for j in joints]], period, HARMONICS)
    rates, accelerations = (x.at(times) for x in (angles.rate(), angles.rate().rate()))
    own = [model.v_slice(j).start for j in joints]
    free = robot.independent_coordinates(start)
    T = robot.velocity_map(q, free)
    give = np.linalg.pinv(T[:, own])  # from rates of the joints to independent ones
    v = _times(T, _times(give, rates))
    drift = robot.complete_acceleration(q, v, np.zeros(len(free)), free)
    a = drift + _times(T, _times(give, accelerations - drift[:, own]))
    power = _times(T.mT, _times(robot.mass_matrix(q), a) + robot.bias(q, v))
    torques = _times(give.mT, power)
    return Led(
        model,
        q[0],
        v[0],
        joints,
        angles,
        Periodic.through(torques, period, HARMONICS),
        float(stiffness),
        float(damping),
    )


def _postures(robot: Dynamics, start: np.ndarray, course: list[Mapping[str, Sequence[float]]]) -> np.ndarray:
    """Closed postures (samples, nq), each found from the one before."""
    model, q, out = robot.model, start.copy(), []
    for coordinates in course:
        for name, values in coordinates.items():
            q[model.q_slice(name)] = values
        q = robot.assemble(q, fixed=tuple(coordinates))
        out.append(q)
        q = q.copy()
    return np.array(out)


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    out: np.ndarray = np.einsum("kij,kj->ki", matrices, vectors)
    return out


@dataclass(frozen=True, eq=False)
class Periodic:
    """n numbers over time: mean + Σ cosines[k−1] cos kωt + sines[k−1] sin kωt, with ω = 2π/period."""

    period: float  # s
    mean: np.ndarray  # (n,)
    cosines: np.ndarray  # (harmonics, n)
    sines: np.ndarray  # (harmonics, n)

    @staticmethod
    def through(values: np.ndarray, period: float, harmonics: int) -> Periodic:
        """The first harmonics of values (samples, n), evenly spaced over one period, its end left out."""
        count = len(values)
        parts = np.fft.rfft(values, axis=0)[: harmonics + 1] / count
        return Periodic(period, parts[0].real, 2.0 * parts[1:].real, -2.0 * parts[1:].imag)

    def __call__(self, t: Any) -> list[Any]:
        """The n numbers at time t [s], a float or a traced scalar."""
        sine, cosine = sincos(2.0 * pi / self.period * t)
        out: list[Any] = self.mean.tolist()
        s, c = sine, cosine
        for a, b in zip(self.cosines.tolist(), self.sines.tolist(), strict=True):
            out = [x + a[k] * c + b[k] * s for k, x in enumerate(out)]
            s, c = s * cosine + c * sine, c * cosine - s * sine  # the next harmonic
        return out

    def rate(self) -> Periodic:
        """The derivative."""
        omega = 2.0 * pi / self.period * np.arange(1, len(self.cosines) + 1)[:, None]
        return Periodic(self.period, 0.0 * self.mean, omega * self.sines, -omega * self.cosines)

    def at(self, times: np.ndarray) -> np.ndarray:
        """(samples, n) at times (samples,)."""
        return np.array([self(float(t)) for t in times])
