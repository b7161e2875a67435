"""Kinds of sensors: what each reads exactly, and the settings that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from spanloop.results import quantities
from spanloop.results.evaluating import over_samples

if TYPE_CHECKING:
    from spanloop.results.trajectory import Trajectory

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
