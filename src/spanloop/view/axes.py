"""Axes of a small plot: round numbers, powers of ten in a person's notation."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np

from spanloop.view.svg import element, halo, number, points, text

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Plot:
    """A frame of pixels (left, top, width, height) and the ranges of numbers that it shows."""

    left: float
    top: float
    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, value):
        low, high = self.x_range
        return self.left + self.width * (value - low) / (high - low)

    def y(self, value):
        low, high = self.y_range
        return self.top + self.height * (high - value) / (high - low)

    def frame(self, x_label: str, y_label: str, ink: str, faint: str, paper: str) -> list[str]:
        """Grid, tick labels and names of the axes."""
        bottom, right = self.top + self.height, self.left + self.width
        drawn = []
        for value in ticks(*self.y_range, 5):
            y = self.y(value)
            drawn.append(element("line", x1=self.left, x2=right, y1=y, y2=y, stroke=faint))
            label = f"{value:g}".replace("-", "−")
            drawn.append(text(label, self.left - 8, y + 4, 12, text_anchor="end", fill=ink))
        for value in ticks(*self.x_range, 8):
            x = self.x(value)
            drawn.append(element("line", x1=x, x2=x, y1=bottom, y2=bottom + 5, stroke=ink))
            drawn.append(text(f"{value:g}", x, bottom + 20, 12, text_anchor="middle", fill=ink))
        drawn.append(element("line", x1=self.left, x2=right, y1=bottom, y2=bottom, stroke=ink))
        middle = (self.left + right) / 2
        drawn.append(text(x_label, middle, bottom + 40, 13, text_anchor="middle", fill=ink))
        drawn.append(text(y_label, self.left, self.top - 12, 13, fill=ink, **halo(paper)))
        return drawn

    def line(self, x: np.ndarray, y: np.ndarray, color: str) -> str:
        corners = points(np.stack([self.x(x), self.y(y)], axis=-1))
        return element("polyline", points=corners, fill="none", stroke=color, stroke_width=1.8, stroke_linejoin="round")

    def moving_dot(self, x: np.ndarray, y: np.ndarray) -> tuple[list[str], list[str]]:
        """Values of cx and cy of a dot that runs along the line."""
        return [number(v) for v in self.x(x)], [number(v) for v in self.y(y)]


def ticks(low: float, high: float, count: int) -> list[float]:
    """Round numbers from low to high, about `count` intervals apart by 1, 2 or 5 times a power of ten."""
    raw = (high - low) / count
    power = 10.0 ** floor(log10(raw))
    width = next(k * power for k in (1.0, 2.0, 5.0, 10.0) if k * power >= raw * (1.0 - 1e-9))
    first, last = ceil(low / width - 1e-9), floor(high / width + 1e-9)
    return [round(k * width, 12) for k in range(first, last + 1)]


def power_of_ten(values: np.ndarray) -> tuple[float, str]:
    """The power of ten of the largest value, as a number and as text: 1e-9 and "10⁻⁹"."""
    largest = float(np.abs(values).max())
    exponent = floor(log10(largest)) if largest > 0.0 else 0
    return 10.0**exponent, "10" + str(exponent).translate(_RAISED)
