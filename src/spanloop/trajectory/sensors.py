"""Readings of the sensors of a model during a run.

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
| rate [Hz] | all | readings change at these times only and stay constant in between |
| counts, offset | encoder | counts in a turn (or a metre), and an offset of the position before counting |
| bias | all | a constant error |
| noise | all | standard deviation of white noise |
| density | all | the same by its density [unit/√Hz]: a deviation of density · √rate |
| cutoff | all | readings stay within −cutoff and cutoff |
| seed | all | of the random numbers, 0 by default |

An imu has bias, noise, density and cutoff for each of its readings, as gyro_bias and accelerometer_bias; a force_torque
sensor as torque_bias and force_bias.

Specific force is the acceleration of the frame's origin less that of gravity: at rest it points up.
"""

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
    """Check that the sensor is where one of its kind can be."""
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


# ---- kinds


@dataclass(frozen=True)
class Kind:
    """read(run, at) -> exact values by name; leads: what stands before the settings of a reading's errors."""

    place: str  # "joint" or "frame"
    read: Callable[[Trajectory, str], Readings]
    leads: Mapping[str, str] = field(default_factory=dict)  # nothing, if it is not there
    counts: bool = False  # it is an encoder

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


# ---- settings


class Settings:
    """The settings of a sensor, each checked when it is read."""

    def __init__(self, sensor: Sensor, known: tuple[str, ...]):
        self.owner, self.values = f"sensor {sensor.name!r}", dict(sensor.settings)
        for name in self.values:
            if name not in known:
                raise InputError(f"{self.owner}: {sensor.kind} has no setting {name!r}; {nearest(name, known)}")

    def number(self, name: str) -> float:
        x = self.values.get(name, 0.0)
        if isinstance(x, bool) or not isinstance(x, (int, float)) or not math.isfinite(x):
            raise InputError(f"{self.owner}: {name} is {x!r}; expected a finite number")
        return float(x)

    def not_negative(self, name: str) -> float:
        x = self.number(name)
        if x < 0.0:
            raise InputError(f"{self.owner}: {name} is {x:g}; must be >= 0")
        return x

    def positive(self, name: str) -> float:
        """0 if it is not set."""
        x = self.number(name)
        if name in self.values and x <= 0.0:
            raise InputError(f"{self.owner}: {name} is {x:g}; must be > 0")
        return x

    def whole(self, name: str) -> int:
        x = self.values.get(name, 0)
        if isinstance(x, bool) or not isinstance(x, int) or x < 0:
            raise InputError(f"{self.owner}: {name} is {x!r}; expected a whole number, not negative")
        return x

    def vector(self, name: str, shape: tuple[int, ...]) -> Any:
        """A number, or as many as the reading has."""
        x = self.values.get(name, 0.0)
        array = np.asarray(x)
        if array.dtype.kind not in "fiu" or array.shape not in ((), shape) or not np.isfinite(array).all():
            raise InputError(f"{self.owner}: {name} is {x!r}; expected a number" + (", or three" if shape else ""))
        return array
