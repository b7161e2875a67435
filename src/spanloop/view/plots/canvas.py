"""Axes, line styles and legends that all figures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError, UnsupportedError, printable
from spanloop.view import palette

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

# Okabe and Ito's colours, which colour-blind people can distinguish; without yellow, which is too faint for lines
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
INK, GREY, FAINT = "#22303c", "#66747f", "#e3e1da"
CLOSED, OPEN = "#D55E00", "#7f0000"
_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1)))
_BRIGHTEST = 0.55
_ROWS = 32  # of a legend, before it gets another column
MOST_NAMED, LONGEST_NAME = 12, 44  # moments of events that have names, and their characters
MOST_OF_BATCH = 200  # moments of a batch that are marked
_WINDOWLESS = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")


def axes_for(ax: Any, panels: int = 1, size: tuple[float, float] = (8.0, 4.5), share: bool = True) -> tuple[Any, ...]:
    """The axes to draw on: `ax`, or new ones below each other. size: width and height of a new figure [inch]."""
    if ax is None:
        made = new_figure(size).subplots(panels, 1, sharex=share, squeeze=False)
        return tuple(made[:, 0])
    axes = tuple(np.ravel(np.asarray(ax, dtype=object)))
    if len(axes) != panels:
        noun = "axes" if len(axes) > 1 else "axis"
        raise InputError(f"plot: ax holds {len(axes)} {noun}; this figure has {panels} panels, one for each unit")
    for one in axes:
        if not hasattr(one, "plot"):
            raise InputError(f"plot: ax is a {type(one).__name__}; expected axes of matplotlib")
    return axes


def new_figure(size: tuple[float, float]) -> Any:
    """An empty figure of this width and height [inch]; pyplot's where there are windows."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError("plots need matplotlib, which is not installed; try: pip install matplotlib") from None
    if matplotlib.get_backend().lower() in _WINDOWLESS:
        return Figure(figsize=size, layout="constrained")
    from matplotlib import pyplot

    return pyplot.figure(figsize=size, layout="constrained")


def unwrapped(axes: Sequence[Any]) -> Any:
    """The only axes, or a tuple of all."""
    return axes[0] if len(axes) == 1 else tuple(axes)


def figure_of(axes: Any) -> Any:
    """The figure of the axes that a plot returned: figure_of(run.plot("q")).savefig("q.png")."""
    return np.ravel(np.asarray(axes, dtype=object))[0].figure


def line_styles(count: int) -> list[dict[str, Any]]:
    """Colour and dashes for each of `count` lines; neighbours differ."""
    if count <= len(PALETTE):
        return [{"color": PALETTE[k], "linestyle": "-"} for k in range(count)]
    from matplotlib import colormaps

    shades = colormaps["turbo"](np.linspace(0.04, 0.94, count))[:, :3]
    bright = shades @ (0.3, 0.6, 0.1)
    shades *= np.minimum(1.0, _BRIGHTEST / bright)[:, None]  # pale lines are hard to see on white
    return [{"color": tuple(shades[k]), "linestyle": _DASHES[k % len(_DASHES)]} for k in range(count)]


def as_label(name: str) -> str:
    """A name as matplotlib shows it: dollars are not mathematics, a leading underscore does not hide a line."""
    shown = printable(name).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def style_axes(ax: Any, x: str, y: str) -> None:
    """Set labels and a light grid, and remove the box."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(True, color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def mark_events(ax: Any, run: Trajectory, named: bool = True) -> None:
    """Draw a thin vertical line at each moment of a run's events, with kind and name if there are few of them."""
    events = run.events
    moments = list(events.moments())
    if not moments or (run.batch and len(moments) > MOST_OF_BATCH):
        return
    few = len(moments) <= MOST_NAMED and not run.batch
    for rows in moments:
        color = palette.EVENTS.get(str(events.kind[rows[0]]), GREY)
        time = float(events.time[rows[0]])
        ax.axvline(time, color=color, linewidth=0.9 if few else 0.5, alpha=0.7 if few else 0.3, zorder=0.8)
        if few and named:
            words = ", ".join(f"{events.kind[k]} {events.name[k]}" for k in rows)
            ax.annotate(
                as_label(shortened(words)), (time, 1.0), xycoords=("data", "axes fraction"), xytext=(2, -3),
                textcoords="offset points", rotation=90, ha="left", va="top", fontsize=7, color=color, zorder=5,
                annotation_clip=True,
            )  # fmt: skip


def shortened(words: str) -> str:
    """The first characters of a label."""
    return words if len(words) <= LONGEST_NAME else f"{words[: LONGEST_NAME - 1]}…"


def legend(ax: Any, title: str | None = None) -> None:
    """Place a legend beside the axes, where it hides no line; small and in columns if it has many entries."""
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
