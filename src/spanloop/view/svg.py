"""SVG as text: elements, animated attributes, and the axes of a small plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

import numpy as np

from spanloop.errors import printable

FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"


def element(name: str, *children: str, **attributes) -> str:
    """<name ...>children</name>; `stroke_width=2` is written stroke-width="2", None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(x)}"' for key, x in attributes.items() if x is not None
    )
    return f"<{name}{written}>{''.join(children)}</{name}>" if children else f"<{name}{written}/>"


def text(words: str, x: float, y: float, size: float = 13.0, **attributes) -> str:
    """A line of text with its baseline at x, y; text_anchor="middle" or "end" aligns it there."""
    return element("text", escape(printable(words)), x=x, y=y, font_size=size, **attributes)


def halo(color: str) -> dict[str, str]:
    """Attributes that draw an outline around text, so that it stays readable over lines."""
    return {"stroke": color, "stroke_width": "5", "paint_order": "stroke"}


def document(width: float, height: float, title: str, background: str, children: Sequence[str]) -> str:
    """A complete SVG file."""
    head = [element("title", escape(printable(title))), element("rect", width=width, height=height, fill=background)]
    picture = element(
        "svg",
        *(f"\n{child}" for child in [*head, *children]),
        "\n",
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {number(width)} {number(height)}",
        font_family=FONT,
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{picture}\n'


def points(xy: np.ndarray) -> str:
    """Corners (n, 2) as the attribute of a polyline or polygon."""
    return " ".join(f"{number(x)},{number(y)}" for x, y in xy)


def moving(attribute: str, values: Sequence[str], duration: float, smooth: bool = True) -> str:
    """A child that animates an attribute of its parent through these values, repeatedly; duration [s]."""
    return element(
        "animate",
        attributeName=attribute,
        values=";".join(values),
        dur=f"{duration:g}s",
        repeatCount="indefinite",
        calcMode="linear" if smooth else "discrete",
    )


def number(x: float) -> str:
    """A length in pixels with at most one decimal."""
    shown = f"{x:.1f}"
    return "0" if shown == "-0.0" else shown.removesuffix(".0")


def _value(x) -> str:
    return escape(x) if isinstance(x, str) else f"{x:.6g}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Plot:
    """A plot: its frame in pixels (left, top, width, height) and its ranges of x and y."""

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
        """Values of cx and cy of a dot that moves along the line."""
        return [number(v) for v in self.x(x)], [number(v) for v in self.y(y)]


def ticks(low: float, high: float, count: int) -> list[float]:
    """Round numbers from low to high: about `count` intervals of 1, 2 or 5 times a power of ten."""
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
