"""The map of a workspace: points that a frame reaches, coloured by its manipulability there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from spanloop.dynamics.workspace import Workspace
from spanloop.errors import InputError, SpanloopWarning
from spanloop.view.plots.canvas import GREY, as_label, new_figure, style_axes

LABEL = "manipulability √det(J Jᵀ)"
_SHOWN = 0.95  # share of the points whose colour is exact
_FLAT = 1e-6  # of the largest extent: points within this lie in a plane


def workspace(found: Workspace, ax: Any = None, color: str | None = "manipulability") -> Any:
    """Draw the points that a frame reaches: in the plane of a planar mechanism, in space otherwise.

    found: what robot.workspace(frame) returns. ax: axes of matplotlib, in space with projection="3d". color:
    "manipulability" (Yoshikawa's measure of the linear velocity), or None for one colour.

    Returns the axes; plots.figure_of(axes).savefig("workspace.png") keeps the figure.
    """
    if not isinstance(found, Workspace):
        raise InputError(f"workspace: a {type(found).__name__} is given; expected what robot.workspace(frame) returns")
    if color not in (None, "manipulability"):
        raise InputError(f"workspace: color is {color!r}; expected 'manipulability' or None")
    if not len(found):
        raise InputError(f"workspace: {found.frame!r} has no points: no state could be closed inside the limits")
    extent = np.ptp(found.points, axis=0)
    shown = [k for k in range(3) if extent[k] > _FLAT * extent.max()]
    shown = shown if len(shown) > 1 else [0, 2]
    if ax is None:
        figure = new_figure((7.0, 6.0))
        ax = figure.add_subplot(projection="3d" if len(shown) == 3 else None)
    names = [f"{'xyz'[k]} [m]" for k in shown]
    shades = _measure(found, "".join("xyz"[k] for k in shown)) if color else None
    dots: dict[str, Any] = {"s": 9.0, "linewidths": 0.0, "alpha": 0.85}
    if shades is None:
        dots["color"] = GREY
    else:  # near singular positions the measure of closed mechanisms grows without bound
        dots |= {"c": shades, "vmin": 0.0, "vmax": np.nanquantile(shades, _SHOWN), "cmap": "viridis"}
    drawn = ax.scatter(*(found.points[:, k] for k in shown), **dots)
    style_axes(ax, names[0], names[1])
    if len(shown) == 3:
        ax.set_zlabel(names[2])
    ax.set_aspect("equal")
    ax.set_title(as_label(f"{found.frame}: {len(found)} of {found.tried} states"), fontsize=10)
    if shades is not None:
        ax.figure.colorbar(drawn, ax=ax, shrink=0.7, pad=0.1 if len(shown) == 3 else 0.02, extend="max", label=LABEL)
    return ax


def _measure(found: Workspace, axes: str) -> np.ndarray:
    """Yoshikawa's measure (n,) at the points, NaN where it has no bound."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpanloopWarning)
        return found.robot.manipulability(found.q, found.frame, axes=axes).measure
