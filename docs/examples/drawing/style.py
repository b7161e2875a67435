"""How all pictures look: sizes, letters, a legend that hides no curve; and how they are written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from spanloop.view.plots.canvas import FAINT, GREY, PALETTE, style_axes

LOOK = {
    "font.size": 12,
    "axes.titlesize": 12,
    "legend.fontsize": 11,
    "lines.linewidth": 1.8,
    "svg.fonttype": "path",
    "svg.hashsalt": "spanloop",  # the same numbers give the same file
    "path.simplify_threshold": 0.05,
}

__all__ = ["FAINT", "GREY", "LOOK", "PALETTE", "bars", "legend_above", "panels", "style_axes", "write"]


def panels(rows: int = 1, columns: int = 1, height: float = 3.0, width: float = 8.0, **options):
    """A figure and its axes (rows, columns); height of a row [inch]."""
    figure = Figure(figsize=(width, height * rows), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def legend_above(figure, ax, columns: int = 4) -> None:
    """The curves of one axes, named in a row above all."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)


def write(pictures: dict, folder: Path) -> list[Path]:
    """Each picture as NAME.svg."""
    folder.mkdir(exist_ok=True)
    out = []
    for name, picture in pictures.items():
        path = folder / f"{name}.svg"
        if isinstance(picture, str):
            path.write_text(picture, encoding="utf-8")
        else:
            with rc_context(LOOK):
                picture.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
        out.append(path)
    return out


def bars(ax, lines: np.ndarray, **style) -> None:
    """Bars (n, 2, 2) between points of a plane [m], with a dot at each joint."""
    for line in lines:
        ax.plot(*line.T, marker="o", markersize=3.5, solid_capstyle="round", **style)
