"""What the sensors of a model would have read during a run.

| kind | at | reads |
|---|---|---|
| encoder, jointpos | joint | position; counts |
| tachometer, jointvel | joint | velocity |
| torque | joint | torque that acts at the joint |
| force_torque | joint | torque, force of the joint on its child, at the child's origin in its axes |
| imu | frame | angular_velocity, specific_force in the frame's axes |
| gyro, accelerometer | frame | one half of an imu |
| position | frame | position of the origin in the world |

| setting | of | meaning |
|---|---|---|
| rate [Hz] | all | readings change at these times only and are held in between |
| counts, offset | encoder | counts in a turn (or a metre), and what is added to the position before counting |
| bias | all | is added |
| noise | all | standard deviation of white noise that is added |
| density | all | the same by its density [unit/√Hz]: a deviation of density · √rate |
| cutoff | all | readings stay within −cutoff and cutoff |
| seed | all | of the random numbers, 0 if not given |

An imu has bias, noise, density and cutoff for each of its readings, as gyro_bias and accelerometer_bias; a force_torque
sensor as torque_bias and force_bias.

Specific force is the acceleration of the frame's origin less that of gravity: at rest it points up.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.model.parts import Sensor
from spanloop.trajectory.sensor_kinds import KINDS, Readings, Settings

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

__all__ = ["sensed"]

# ---- Readings of a sensor: what is exact, with bias, noise, counts and holding.


def sensed(run: Trajectory, name: str) -> Readings:
    """The readings (..., n) or (..., n, 3) of a sensor by their names, with their times (n,)."""
    sensor = _named(run, name)
    if sensor.kind not in KINDS:
        raise InputError(f"sensor {name!r}: there is no kind {sensor.kind!r}; {nearest(sensor.kind, KINDS)}")
    kind, settings = KINDS[sensor.kind], Settings(sensor, KINDS[sensor.kind].settings)
    _placed(run, sensor, kind.place)
    exact = kind.read(run, sensor.at)
    rate = settings.positive("rate")
    rng = np.random.default_rng(settings.whole("seed"))
    out: Readings = {}
    for what, values in exact.items():
        lead, size = kind.leads.get(what, ""), values.shape[len(run.batch) + 1 :]
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


def _placed(run: Trajectory, sensor: Sensor, place: str) -> None:
    """Is the sensor where one of its kind can be?"""
    model = run.model
    if place == "frame":
        if sensor.at not in model.body_number and sensor.at not in [f.name for f in model.frames]:
            raise InputError(
                f"sensor {sensor.name!r}: {sensor.kind} is at joint {sensor.at!r}; expected a frame or body"
            )
        return
    if sensor.at not in [j.name for j in model.joints]:
        raise InputError(f"sensor {sensor.name!r}: {sensor.kind} is at frame {sensor.at!r}; expected a joint")
    kind = model.joint(sensor.at).kind
    if KINDS[sensor.kind].counts and (kind.nq, kind.nv) != (1, 1):
        raise InputError(
            f"sensor {sensor.name!r}: joint {sensor.at!r} is {kind.name}; an encoder reads joints of one DoF"
        )
