"""The settings of a sensor, each checked when it is read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.model.parts import Sensor


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
