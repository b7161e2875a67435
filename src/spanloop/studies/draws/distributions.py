"""Distributions of what varies in a study: functions from the unit interval, so that any design can draw them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from spanloop.errors import InputError
from spanloop.studies.real_numbers import real_numbers

_LEAST = 2.0**-54  # a draw of the unit interval is not nearer to its ends


@dataclass(frozen=True)
class Distribution:
    """A number that varies from run to run.

    unit: for results, of inputs and of variables of your own; quantities of the model have theirs. relative: the number
    multiplies the model's own value, so that Uniform(0.9, 1.1, relative=True) is 10 % either way.
    """

    unit: str = field(default="", kw_only=True)
    relative: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.relative, bool | np.bool_):
            raise InputError(f"{type(self).__name__}: relative is {self.relative!r:.60}; expected True or False")
        if not isinstance(self.unit, str):
            raise InputError(f"{type(self).__name__}: unit is {self.unit!r:.60}; expected a text, as 'N m/rad'")
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in ("unit", "relative", "values", "weights") or (value is None and f.default is None):
                continue
            found = None if isinstance(value, bool | np.bool_) else real_numbers(value)
            if found is None or found.ndim or not np.isfinite(found):
                raise InputError(f"{type(self).__name__}: {f.name} is {value!r:.60}; expected a finite number")
        self._check()

    def _check(self) -> None:
        """Raise InputError where numbers do not fit together."""

    def _must(self, good: bool, words: str) -> None:
        if not good:
            raise InputError(f"{self}: {words}")

    def value(self, u: np.ndarray) -> np.ndarray:
        """The numbers at places u (n,) of the unit interval."""
        raise NotImplementedError

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest number; infinite where there is none."""
        return -math.inf, math.inf


@dataclass(frozen=True)
class Uniform(Distribution):
    """Every number from low to high is as likely."""

    low: float
    high: float

    def _check(self) -> None:
        self._must(self.low < self.high, "low must be less than high")

    def value(self, u: np.ndarray) -> np.ndarray:
        return self.low + (self.high - self.low) * u

    @property
    def bounds(self) -> tuple[float, float]:
        return float(self.low), float(self.high)


@dataclass(frozen=True)
class Normal(Distribution):
    """A normal distribution, cut off at low and high if these are given."""

    mean: float
    deviation: float
    low: float | None = None
    high: float | None = None

    def _check(self) -> None:
        self._must(self.deviation > 0.0, "deviation must be positive")
        low, high = self.bounds
        self._must(low < high, "low must be less than high")

    def value(self, u: np.ndarray) -> np.ndarray:
        from scipy.special import ndtr, ndtri

        low, high = ((x - self.mean) / self.deviation for x in self.bounds)
        u = np.clip(u, _LEAST, 1.0 - 2.0**-53)
        if high < 0.0:
            found = _in_lower_tail(low, high, 1.0 - u)
        elif low > 0.0:
            found = -_in_lower_tail(-high, -low, u)
        else:
            a, b = float(ndtr(low)), float(ndtr(high))
            found = ndtri(np.clip(a + (b - a) * u, _LEAST, 1.0 - 2.0**-53))
        return np.clip(self.mean + self.deviation * found, *self.bounds)

    @property
    def bounds(self) -> tuple[float, float]:
        return (
            -math.inf if self.low is None else float(self.low),
            math.inf if self.high is None else float(self.high),
        )


@dataclass(frozen=True)
class LogNormal(Distribution):
    """median·exp(deviation·n), n normal: never negative. deviation: of the logarithm, about the relative one."""

    median: float
    deviation: float

    def _check(self) -> None:
        self._must(self.median > 0.0 and self.deviation > 0.0, "median and deviation must be positive")

    def value(self, u: np.ndarray) -> np.ndarray:
        from scipy.special import ndtri

        return self.median * np.exp(self.deviation * ndtri(np.clip(u, _LEAST, 1.0 - 2.0**-53)))

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, math.inf


@dataclass(frozen=True)
class Triangular(Distribution):
    """A triangle from low over mode, where it is highest, to high."""

    low: float
    mode: float
    high: float

    def _check(self) -> None:
        inside = self.low <= self.mode <= self.high and self.low < self.high
        self._must(inside, "must be low <= mode <= high, and low < high")

    def value(self, u: np.ndarray) -> np.ndarray:
        low, mode, high = self.low, self.mode, self.high
        up = low + np.sqrt(u * (high - low) * (mode - low))
        down = high - np.sqrt((1.0 - u) * (high - low) * (high - mode))
        return np.where(u * (high - low) < mode - low, up, down)

    @property
    def bounds(self) -> tuple[float, float]:
        return float(self.low), float(self.high)


@dataclass(frozen=True)
class Choice(Distribution):
    """One of some numbers, with weights if these are given; in a grid each of them."""

    values: Sequence[float]
    weights: Sequence[float] | None = None

    def _check(self) -> None:
        object.__setattr__(self, "values", _numbers(self, "values", self.values))
        if self.weights is not None:
            object.__setattr__(self, "weights", _numbers(self, "weights", self.weights))
            good = len(self.weights) == len(self.values) and min(self.weights) >= 0.0 and sum(self.weights) > 0.0
            self._must(good, "weights must be as many as values, not negative, and not all zero")

    def value(self, u: np.ndarray) -> np.ndarray:
        weights = np.ones(len(self.values)) if self.weights is None else np.array(self.weights)
        ends = np.cumsum(weights) / weights.sum()
        found: np.ndarray = np.array(self.values)[np.minimum(np.searchsorted(ends, u, "right"), len(ends) - 1)]
        return found

    @property
    def bounds(self) -> tuple[float, float]:
        return min(self.values), max(self.values)


@dataclass(frozen=True)
class Levels(Distribution):
    """`count` numbers from low to high at equal distances: one axis of a grid."""

    low: float
    high: float
    count: int

    def _check(self) -> None:
        self._must(float(self.count).is_integer() and self.count >= 1, "count must be a whole number, at least 1")
        self._must(self.low < self.high or self.count == 1, "low must be less than high")

    @property
    def values(self) -> tuple[float, ...]:
        """The numbers."""
        return tuple(np.linspace(self.low, self.high, int(self.count)).tolist())

    def value(self, u: np.ndarray) -> np.ndarray:
        places = np.minimum((u * self.count).astype(int), int(self.count) - 1)
        found: np.ndarray = np.array(self.values)[places]
        return found

    @property
    def bounds(self) -> tuple[float, float]:
        return float(self.low), float(self.high)


def _in_lower_tail(low: float, high: float, share: np.ndarray) -> np.ndarray:
    """Standard normal numbers between low and high < 0, with this share (n,) of those there above them.

    By logarithms of probabilities: these themselves are 0 in double precision below −38.
    """
    from scipy.special import log_ndtr, ndtri_exp

    at_low, at_high = float(log_ndtr(low)), float(log_ndtr(high))
    share = np.minimum(share, 1.0 - 2.0**-53)  # finite where there is no low
    found: np.ndarray = ndtri_exp(at_high + np.log1p(share * math.expm1(at_low - at_high)))
    return found


KINDS: dict[str, type[Distribution]] = {
    "uniform": Uniform,
    "normal": Normal,
    "lognormal": LogNormal,
    "triangular": Triangular,
    "choice": Choice,
    "levels": Levels,
}


def _numbers(owner: Distribution, name: str, given: Any) -> tuple[float, ...]:
    found = real_numbers(given)
    if found is None or found.ndim != 1 or not len(found) or not np.isfinite(found).all():
        raise InputError(f"{type(owner).__name__}: {name} is {given!r:.60}; expected finite numbers, at least one")
    return tuple(found.tolist())
