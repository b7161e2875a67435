"""Courses that repeat, as sums of harmonics: smooth, easy to differentiate, and of any scalar, so that they compile."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np

from spanloop.math.scalar import sincos


@dataclass(frozen=True, eq=False)
class Periodic:
    """n numbers over time: mean + Σ cosines[k−1] cos kωt + sines[k−1] sin kωt, with ω = 2π/period."""

    period: float  # s
    mean: np.ndarray  # (n,)
    cosines: np.ndarray  # (harmonics, n)
    sines: np.ndarray  # (harmonics, n)

    @staticmethod
    def through(values: np.ndarray, period: float, harmonics: int) -> Periodic:
        """The first harmonics of values (samples, n), evenly spaced over one period, its end left out."""
        count = len(values)
        parts = np.fft.rfft(values, axis=0)[: harmonics + 1] / count
        return Periodic(period, parts[0].real, 2.0 * parts[1:].real, -2.0 * parts[1:].imag)

    def __call__(self, t) -> list[Any]:
        """The n numbers at time t [s], a float or a traced scalar."""
        sine, cosine = sincos(2.0 * pi / self.period * t)
        out: list[Any] = self.mean.tolist()
        s, c = sine, cosine
        for a, b in zip(self.cosines.tolist(), self.sines.tolist(), strict=True):
            out = [x + a[k] * c + b[k] * s for k, x in enumerate(out)]
            s, c = s * cosine + c * sine, c * cosine - s * sine  # the next harmonic
        return out

    def rate(self) -> Periodic:
        """The derivative."""
        omega = 2.0 * pi / self.period * np.arange(1, len(self.cosines) + 1)[:, None]
        return Periodic(self.period, 0.0 * self.mean, omega * self.sines, -omega * self.cosines)

    def at(self, times: np.ndarray) -> np.ndarray:
        """(samples, n) at times (samples,)."""
        return np.array([self(float(t)) for t in times])
