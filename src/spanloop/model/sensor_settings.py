"""Sensors: the kinds that a run reads, where each can be, and the settings of each.

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
sensor as torque_bias and force_bias. Sensors of the kinds in UNREAD come from MJCF files and go to them; a run does not
read them.

Specific force is the acceleration of the frame's origin less that of gravity: at rest it points up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError, ModelError, nearest
from spanloop.model.parts import Sensor
from spanloop.model.value_check import check_numbers

if TYPE_CHECKING:
    from spanloop.model.model import Model

ERRORS = ("bias", "noise", "density", "cutoff")  # settings of each reading
_COMMON = ("rate", "seed")
UNREAD = ("jointactuatorfrc", "velocimeter", "magnetometer", "force", "touch")


@dataclass(frozen=True)
class SensorKind:
    """Where a sensor of the kind can be, and its readings with what stands before the settings of their errors."""

    place: str  # "joint" or "frame"
    readings: Mapping[str, str] = field(default_factory=dict)
    counts: bool = False  # it is an encoder

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of all its settings."""
        errors = [lead + error for lead in self.readings.values() for error in ERRORS]
        return (*_COMMON, *errors, *(("counts", "offset") if self.counts else ()))


KINDS: dict[str, SensorKind] = {
    "encoder": SensorKind("joint", {"position": ""}, counts=True),
    "tachometer": SensorKind("joint", {"velocity": ""}),
    "torque": SensorKind("joint", {"torque": ""}),
    "force_torque": SensorKind("joint", {"torque": "torque_", "force": "force_"}),
    "imu": SensorKind("frame", {"angular_velocity": "gyro_", "specific_force": "accelerometer_"}),
    "gyro": SensorKind("frame", {"angular_velocity": ""}),
    "accelerometer": SensorKind("frame", {"specific_force": ""}),
    "position": SensorKind("frame", {"position": ""}),
}
KINDS |= {"jointpos": KINDS["encoder"], "jointvel": KINDS["tachometer"]}  # as MJCF files name them


def check_sensor(sensor: Sensor, model: Model) -> None:
    """Raise InputError for a kind, place or setting that no sensor has."""
    if sensor.kind in UNREAD:
        Settings(sensor, (*_COMMON, *ERRORS))
        return
    kind, settings = checked_kind(sensor, model, (*KINDS, *UNREAD))
    settings.positive("rate")
    settings.whole("seed")
    for lead in kind.readings.values():
        settings.vector(lead + "bias", _size(sensor, kind, model))
        settings.not_negative(lead + "noise")
        settings.not_negative(lead + "density")
        settings.positive(lead + "cutoff")
    if kind.counts:
        settings.positive("counts")
        settings.number("offset")


def check_values(sensor: Sensor) -> None:
    """Raise ModelError for a number that no sensor can have; files may hold kinds and settings of other names."""
    for name, value in sensor.settings:
        numbers = [x for x in (value if isinstance(value, tuple) else (value,)) if _is_number(x)]
        owner = f"sensor {sensor.name!r}: {name}"
        check_numbers(numbers, owner)
        if name in ("rate", "counts") and any(x <= 0 for x in numbers):
            raise ModelError(f"{owner} is {value!r}; must be > 0")
        if name.endswith(("noise", "density", "cutoff")) and any(x < 0 for x in numbers):
            raise ModelError(f"{owner} is {value!r}; must be >= 0")


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def checked_kind(sensor: Sensor, model: Model, known: Iterable[str] = KINDS) -> tuple[SensorKind, Settings]:
    """The kind and settings of a sensor. Raises InputError for a kind, place or name of a setting that there is not."""
    if sensor.kind not in KINDS:
        raise InputError(f"sensor {sensor.name!r}: there is no kind {sensor.kind!r}; {nearest(sensor.kind, known)}")
    kind = KINDS[sensor.kind]
    settings = Settings(sensor, kind.settings)
    _check_place(sensor, kind, model)
    return kind, settings


def _check_place(sensor: Sensor, kind: SensorKind, model: Model) -> None:
    if kind.place == "frame":
        if sensor.at not in model.body_number and sensor.at not in [f.name for f in model.frames]:
            raise InputError(
                f"sensor {sensor.name!r}: {sensor.kind} is at joint {sensor.at!r}; expected a frame or body"
            )
        return
    if sensor.at not in [j.name for j in model.joints]:
        raise InputError(f"sensor {sensor.name!r}: {sensor.kind} is at frame {sensor.at!r}; expected a joint")
    joint = model.joint(sensor.at).kind
    if kind.counts and (joint.nq, joint.nv) != (1, 1):
        raise InputError(
            f"sensor {sensor.name!r}: joint {sensor.at!r} is {joint.name}; an encoder reads joints of one DoF"
        )


def _size(sensor: Sensor, kind: SensorKind, model: Model) -> tuple[int, ...]:
    """Shape of one reading: a vector (3,), one number, or one for each DoF of the joint."""
    if kind.place == "frame" or len(kind.readings) > 1:
        return (3,)
    nv = model.joint(sensor.at).kind.nv
    return () if nv == 1 else (nv,)


class Settings:
    """The settings of a sensor, their names checked at once, each value when it is read."""

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
