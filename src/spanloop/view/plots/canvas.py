"""Paper and pens: axes to draw on, colours for few lines and for many, legends that hide nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spanloop.errors import InputError, UnsupportedError

# Okabe and Ito's colours, which people who see few colours can tell apart; yellow is left out, too faint for lines
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
INK, GREY, FAINT = "#22303c", "#66747f", "#e3e1da"
CLOSED, OPEN = "#D55E00", "#7f0000"
_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1)))
_BRIGHTEST = 0.55
_ROWS = 32  # of a legend, before it gets another column
_WINDOWLESS = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")


def blank(ax, panels: int = 1, size: tuple[float, float] = (8.0, 4.5), share: bool = True) -> tuple[Any, ...]:
    """The axes to draw on: those given, or new ones, one above the other. size: width and height [inch]."""
    if ax is None:
        made = _figure(size).subplots(panels, 1, sharex=share, squeeze=False)
        return tuple(made[:, 0])
    given = tuple(np.ravel(np.asarray(ax, dtype=object)))
    if len(given) != panels:
        word = "axes" if len(given) > 1 else "axis"
        raise InputError(f"plot: ax holds {len(given)} {word}; this figure has {panels} panels, one for each unit")
    for one in given:
        if not hasattr(one, "plot"):
            raise InputError(f"plot: ax is a {type(one).__name__}; expected axes of matplotlib")
    return given


def _figure(size: tuple[float, float]):
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError(
            "plots need matplotlib, which is not installed; try: pip install 'spanloop[plots]'"
        ) from None
    if matplotlib.get_backend().lower() in _WINDOWLESS:
        return Figure(figsize=size, layout="constrained")
    from matplotlib import pyplot

    return pyplot.figure(figsize=size, layout="constrained")


def returned(axes: Sequence[Any]):
    """The one axes, or all."""
    return axes[0] if len(axes) == 1 else tuple(axes)


def figure_of(axes):
    """The figure that axes belong to, as a plot returned them: figure_of(run.plot("q")).savefig("q.png")."""
    return np.ravel(np.asarray(axes, dtype=object))[0].figure


def pens(count: int) -> list[dict[str, Any]]:
    """Colour and dashes for each of so many lines: neighbours differ."""
    if count <= len(PALETTE):
        return [{"color": PALETTE[k], "linestyle": "-"} for k in range(count)]
    from matplotlib import colormaps

    shades = colormaps["turbo"](np.linspace(0.04, 0.94, count))[:, :3]
    bright = shades @ (0.3, 0.6, 0.1)
    shades *= np.minimum(1.0, _BRIGHTEST / bright)[:, None]  # pale lines are lost on white
    return [{"color": tuple(shades[k]), "linestyle": _DASHES[k % len(_DASHES)]} for k in range(count)]


def dressed(ax, x: str, y: str) -> None:
    """Labels, a light grid, and no box around it."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(True, color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def legend(ax, title: str | None = None) -> None:
    """Beside the axes, so that no line is hidden; small and in columns where there are many."""
    count = len(ax.get_legend_handles_labels()[1])
    if count:
        ax.legend(
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0.0,
            frameon=False,
            fontsize=9 if count <= 14 else 7,
            ncols=-(-count // _ROWS),
            labelspacing=0.35,
            handlelength=2.2,
            title=title,
            title_fontsize=8,
            alignment="left",
        )
