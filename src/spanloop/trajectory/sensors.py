"""Readings of the sensors of a model during a run; spanloop.model.sensor_settings lists kinds and settings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.model.parts import Sensor
from spanloop.model.sensor_settings import Settings, checked_kind
from spanloop.trajectory import quantities
from spanloop.trajectory.quantities import over_samples

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

Readings = dict[str, np.ndarray]


def sensed(run: Trajectory, name: str) -> Readings:
    """The readings (..., n) or (..., n, 3) of a sensor by their names, with their times (n,)."""
    sensor = _named(run, name)
    kind, settings = checked_kind(sensor, run.model)
    exact = READERS[sensor.kind](run, sensor.at)
    rate = settings.positive("rate")
    rng = np.random.default_rng(settings.whole("seed"))
    out: Readings = {}
    for what, values in exact.items():
        lead, size = kind.readings[what], values.shape[len(run.batch) + 1 :]
        values = values + settings.vector(lead + "bias", size)
        white = settings.not_negative(lead + "density") * math.sqrt(rate or 1.0 / _gap(run))
        deviation = math.hypot(settings.not_negative(lead + "noise"), white)
        if deviation:
            values = values + deviation * rng.normal(size=values.shape)
        cutoff = settings.positive(lead + "cutoff")
        out[what] = np.clip(values, -cutoff, cutoff) if cutoff else values
    if kind.counts:
        out = _counted(out["position"], settings, run.model.joint(sensor.at).kind.units[0])
    held = _held(run.times, rate) if rate else slice(None)
    axis = len(run.batch)
    return {"times": run.times} | {what: x[(slice(None),) * axis + (held,)] for what, x in out.items()}


def _counted(position: np.ndarray, settings: Settings, unit: str) -> Readings:
    """Readings of an encoder: the nearest count."""
    position = position + settings.number("offset")
    counts = settings.positive("counts")
    if not counts:
        return {"position": position}
    whole = np.round(position * (counts / (2.0 * math.pi) if unit == "rad" else counts))
    return {"position": whole * (2.0 * math.pi / counts if unit == "rad" else 1.0 / counts), "counts": whole}


def _held(times: np.ndarray, rate: float) -> np.ndarray:
    """For each time the number of the sample at the last tick before it."""
    ticks = times[0] + np.floor((times - times[0]) * rate + 1e-6) / rate
    return np.searchsorted(times, ticks + 1e-9 / rate, side="right") - 1


def _gap(run: Trajectory) -> float:
    gaps = np.diff(run.times)
    return float(np.median(gaps)) if len(gaps) else 1.0


def _named(run: Trajectory, name: str) -> Sensor:
    known = {s.name: s for s in run.model.sensors}
    if name not in known:
        raise InputError(f"model {run.model.name!r} has no sensor {name!r}; {nearest(name, known)}")
    return known[name]


# ---- kinds


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


# exact values by name, for each kind of sensor
READERS: dict[str, Callable[[Trajectory, str], Readings]] = {
    "encoder": _position,
    "jointpos": _position,
    "tachometer": _velocity,
    "jointvel": _velocity,
    "torque": _torque,
    "force_torque": _force_torque,
    "imu": _imu,
    "gyro": _angular_velocity,
    "accelerometer": _specific_force,
    "position": _place,
}
