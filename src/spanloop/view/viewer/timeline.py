"""Where one is in a run that is played."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.results import Trajectory

FRAMES = 60.0  # a second, at most: samples in between are not drawn


@dataclass
class Timeline:
    """One run, at time `now` [s]; `speed` 1 is real time. At the end it begins again if `again`."""

    run: Trajectory
    now: float = 0.0
    speed: float = 1.0
    playing: bool = False
    again: bool = True

    def __post_init__(self):
        self.now = float(self.run.times[0])

    @property
    def first(self) -> float:
        return float(self.run.times[0])

    @property
    def last(self) -> float:
        return float(self.run.times[-1])

    @property
    def sample(self) -> int:
        """The number of the sample that is nearest to now."""
        times = self.run.times
        k = int(np.clip(np.searchsorted(times, self.now), 1, max(len(times) - 1, 1)))
        return k - 1 if len(times) == 1 or self.now - times[k - 1] <= times[k] - self.now else k

    def advance(self, seconds: float) -> None:
        """Play on by so many seconds of the clock."""
        self.now += seconds * self.speed
        if self.now > self.last:
            if self.again and self.last > self.first:
                self.now = self.first + (self.now - self.first) % (self.last - self.first)
            else:
                self.now, self.playing = self.last, False


def played(run: Trajectory) -> Trajectory:
    """A single run with about as many samples a second as can be seen, the last one among them."""
    gaps = len(run) - 1
    most = max(1, int(gaps / max(FRAMES * run.duration, 1.0)))
    stride = max(k for k in range(1, most + 1) if gaps % k == 0) if gaps else 1
    return run[::stride] if stride > 1 else run
