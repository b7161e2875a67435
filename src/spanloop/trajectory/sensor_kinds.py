"""Kinds of sensors: what each reads exactly, and the settings that it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.model.parts import Sensor
from spanloop.trajectory import quantities
from spanloop.trajectory.quantities import over_samples

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

Readings = dict[str, np.ndarray]

ERRORS = ("bias", "noise", "density", "cutoff")  # settings of each reading

_COMMON = ("rate", "seed")


@dataclass(frozen=True)
class Kind:
    """read(run, at) -> exact values by name; leads: what stands before the settings of a reading's errors."""

    place: str  # "joint" or "frame"
    read: Callable[[Trajectory, str], Readings]
    leads: Mapping[str, str] = field(default_factory=dict)  # nothing, if it is not there
    counts: bool = False  # is it an encoder?

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of all its settings."""
        errors = [lead + error for lead in (self.leads.values() or ("",)) for error in ERRORS]
        return (*_COMMON, *errors, *(("counts", "offset") if self.counts else ()))


def _position(run: Trajectory, at: str) -> Readings:
    return {"position": run[at].q}


def _velocity(run: Trajectory, at: str) -> Readings:
    return {"velocity": run[at].v}


def _torque(run: Trajectory, at: str) -> Readings:
    return {"torque": run[at].tau}


def _force_torque(run: Trajectory, at: str) -> Readings:
    turn = quantities.pose(run, run.model.joint(at).child)[..., :3, :3]
    six = run.reactions()[at]
    return {"torque": _seen(turn, six[..., :3]), "force": _seen(turn, six[..., 3:])}


def _angular_velocity(run: Trajectory, at: str) -> Readings:
    turn = quantities.pose(run, at)[..., :3, :3]
    return {"angular_velocity": _seen(turn, quantities.twist(run, at)[..., :3])}


def _specific_force(run: Trajectory, at: str) -> Readings:
    def accelerating(q, v, a):
        J = run.robot.jacobian(q, at)[..., 3:, :]
        return np.einsum("...rk,...k->...r", J, a) + run.robot.jacobian_bias(q, v, at)[..., 3:]

    turn = quantities.pose(run, at)[..., :3, :3]
    acceleration = over_samples("specific force", accelerating, run.q, run.v, run.a)
    return {"specific_force": _seen(turn, acceleration - np.array(run.model.gravity))}


def _imu(run: Trajectory, at: str) -> Readings:
    return _angular_velocity(run, at) | _specific_force(run, at)


def _place(run: Trajectory, at: str) -> Readings:
    return {"position": run[at].position}


def _seen(turn: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Rᵀ v."""
    return np.einsum("...ji,...j->...i", turn, vector)


KINDS: dict[str, Kind] = {
    "encoder": Kind("joint", _position, counts=True),
    "tachometer": Kind("joint", _velocity),
    "torque": Kind("joint", _torque),
    "force_torque": Kind("joint", _force_torque, {"torque": "torque_", "force": "force_"}),
    "imu": Kind("frame", _imu, {"angular_velocity": "gyro_", "specific_force": "accelerometer_"}),
    "gyro": Kind("frame", _angular_velocity),
    "accelerometer": Kind("frame", _specific_force),
    "position": Kind("frame", _place),
}

KINDS |= {"jointpos": KINDS["encoder"], "jointvel": KINDS["tachometer"]}  # as MJCF files name them


# ---- The settings of a sensor, each checked when it is read.


class Settings:
    """The settings of a sensor, read one by one."""

    def __init__(self, sensor: Sensor, known: tuple[str, ...]):
        self.owner, self.given = f"sensor {sensor.name!r}", dict(sensor.settings)
        for name in self.given:
            if name not in known:
                raise InputError(f"{self.owner}: {sensor.kind} has no setting {name!r}; {nearest(name, known)}")

    def number(self, name: str) -> float:
        x = self.given.get(name, 0.0)
        if isinstance(x, bool) or not isinstance(x, (int, float)) or not math.isfinite(x):
            raise InputError(f"{self.owner}: {name} is {x!r}; expected a finite number")
        return float(x)

    def not_negative(self, name: str) -> float:
        x = self.number(name)
        if x < 0.0:
            raise InputError(f"{self.owner}: {name} is {x:g}; must be >= 0")
        return x

    def positive(self, name: str) -> float:
        """0 if it is not given."""
        x = self.number(name)
        if name in self.given and x <= 0.0:
            raise InputError(f"{self.owner}: {name} is {x:g}; must be > 0")
        return x

    def whole(self, name: str) -> int:
        x = self.given.get(name, 0)
        if isinstance(x, bool) or not isinstance(x, int) or x < 0:
            raise InputError(f"{self.owner}: {name} is {x!r}; expected a whole number, not negative")
        return x

    def vector(self, name: str, shape: tuple[int, ...]) -> Any:
        """A number, or as many as the reading has."""
        x = self.given.get(name, 0.0)
        array = np.asarray(x)
        if array.dtype.kind not in "fiu" or array.shape not in ((), shape) or not np.isfinite(array).all():
            raise InputError(f"{self.owner}: {name} is {x!r}; expected a number" + (", or three" if shape else ""))
        return array
