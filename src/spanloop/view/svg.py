"""SVG as text: elements, numbers and moving attributes. Nothing but the standard library."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"


def element(name: str, *children: str, **attributes) -> str:
    """<name ...>children</name>; `stroke_width=2` is written stroke-width="2", None is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(x)}"' for key, x in attributes.items() if x is not None
    )
    return f"<{name}{given}>{''.join(children)}</{name}>" if children else f"<{name}{given}/>"


def text(words: str, x: float, y: float, size: float = 13.0, **attributes) -> str:
    """A line of text whose baseline starts (or with text_anchor="middle", "end": lies) at x, y."""
    return element("text", escape(words), x=x, y=y, font_size=size, **attributes)


def halo(color: str) -> dict[str, str]:
    """Attributes of text that keeps lines behind it away."""
    return {"stroke": color, "stroke_width": "5", "paint_order": "stroke"}


def document(width: float, height: float, title: str, background: str, children: Sequence[str]) -> str:
    """A complete SVG file."""
    head = [element("title", escape(title)), element("rect", width=width, height=height, fill=background)]
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
    """A child that leads its parent's attribute through these values, again and again; duration [s]."""
    return element(
        "animate",
        attributeName=attribute,
        values=";".join(values),
        dur=f"{duration:g}s",
        repeatCount="indefinite",
        calcMode="linear" if smooth else "discrete",
    )


def number(x: float) -> str:
    """A length in pixels with one decimal, short."""
    shown = f"{x:.1f}"
    return "0" if shown == "-0.0" else shown.removesuffix(".0")


def _value(x) -> str:
    return escape(x) if isinstance(x, str) else f"{x:.6g}"
