"""Kinds of sensors: what each reads exactly, and the settings that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spanloop.results import quantities
from spanloop.results.evaluating import over_samples

if TYPE_CHECKING:
    from spanloop.results.trajectory import Trajectory

Readings = dict[str, np.ndarray]
_COMMON = ("rate", "seed")
_PLAIN = (*_COMMON, "bias", "noise")


@dataclass(frozen=True)
class Kind:
    """read(run, at) -> exact values by name; errors: for each name the settings of its bias and noise."""

    place: str  # "joint" or "frame"
    read: Callable[[Trajectory, str], Readings]
    errors: Mapping[str, tuple[str, str]]
    settings: tuple[str, ...] = _PLAIN


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


_IMU = ("gyro_bias", "gyro_noise", "accelerometer_bias", "accelerometer_noise")
KINDS: dict[str, Kind] = {
    "encoder": Kind("joint", _position, {}, (*_COMMON, "counts", "offset")),
    "tachometer": Kind("joint", _velocity, {"velocity": ("bias", "noise")}),
    "torque": Kind("joint", _torque, {"torque": ("bias", "noise")}),
    "force_torque": Kind(
        "joint", _force_torque, {"torque": ("torque_bias", "torque_noise"), "force": ("force_bias", "force_noise")},
        (*_COMMON, "torque_bias", "torque_noise", "force_bias", "force_noise"),
    ),
    "imu": Kind("frame", _imu, {"angular_velocity": _IMU[:2], "specific_force": _IMU[2:]}, (*_COMMON, *_IMU)),
    "gyro": Kind("frame", _angular_velocity, {"angular_velocity": ("bias", "noise")}),
    "accelerometer": Kind("frame", _specific_force, {"specific_force": ("bias", "noise")}),
    "position": Kind("frame", _place, {"position": ("bias", "noise")}),
}  # fmt: skip
