"""When: steps and samples that fill a duration."""

from __future__ import annotations

import math
from dataclasses import dataclass

from spanloop.errors import InputError

STEP = 1e-3  # s
MOST_STEPS = 2_000_000_000
_PLENTY = 20_000_000  # numbers that are kept without being asked for


@dataclass(frozen=True)
class Grid:
    """`steps` steps of length h [s]; a sample at the start of every `every`-th, and at the end."""

    duration: float
    steps: int
    every: int

    @property
    def h(self) -> float:
        return self.duration / self.steps

    @property
    def samples(self) -> int:
        return self.steps // self.every + 1

    def halved(self) -> Grid:
        """Steps of half the length, samples at the same times."""
        return Grid(self.duration, 2 * self.steps, 2 * self.every)


def grid(duration, step, sample, width: int) -> Grid:
    """The grid of a run. width: numbers that one sample of all runs has."""
    duration = _positive(duration, "duration")
    h = _positive(STEP if step is None else step, "step")
    if h > duration * (1.0 + 1e-9):
        raise InputError(f"step is {h:g} s, longer than the duration of {duration:g} s; must be at most that")
    if duration / h > MOST_STEPS:
        raise InputError(f"{duration:g} s in steps of {h:g} s are {duration / h:.2g} steps; at most {MOST_STEPS:.0g}")
    steps = max(1, round(duration / h))
    if sample is None:
        every = max(1, -(-(steps * width) // _PLENTY))
        return Grid(duration, every * max(1, -(-steps // every)), every)
    gap = _positive(sample, "sample")
    if gap > duration * (1.0 + 1e-9):
        raise InputError(f"sample is {gap:g} s, longer than the duration of {duration:g} s; must be at most that")
    if gap < h * (1.0 - 1e-9):
        raise InputError(f"sample is {gap:g} s, shorter than the step of {h:g} s; must be a multiple of it")
    samples = max(1, round(duration / gap))
    every = max(1, round(duration / samples / h))
    return Grid(duration, samples * every, every)


def _positive(x, name: str) -> float:
    try:
        value = float(x)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {x!r}; expected a number of seconds") from None
    if not (math.isfinite(value) and value > 0.0):
        raise InputError(f"{name} is {value:g} s; must be positive")
    return value
