"""Quantities of a run over time on axes: one unit a panel, one line a quantity, a batch as median and band."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.view.noise import noise_levels
from spanloop.view.plots.canvas import as_label, axes_for, legend, line_styles, mark_events, style_axes, unwrapped

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

Names = str | Sequence[str] | None  # of joints, loops or contacts; None for all

BAND = (5.0, 95.0)  # percent of the runs of a batch that lie below


@dataclass(frozen=True)
class Series:
    """One quantity: its name, unit, and values (..., n) at the samples of a run."""

    name: str
    unit: str
    values: np.ndarray


def draw(run: Trajectory, series: Sequence[Series], words: dict[str, str], ax: Any = None) -> Any:
    """Draw series in one panel for each unit. words: the name of a panel's quantity, by unit."""
    units = list(dict.fromkeys(s.unit for s in series))
    axes = axes_for(ax, len(units), (8.0, _height(series, units)))
    for one, unit in zip(axes, units, strict=True):
        own = [s for s in series if s.unit == unit]
        panel(one, run, own, f"{words.get(unit, words[''])} [{unit}]", named=one is axes[0])
    for one in axes[:-1] if ax is None else ():
        one.set_xlabel("")
    return unwrapped(axes)


def panel(ax: Any, run: Trajectory, series: Sequence[Series], label: str, named: bool = True) -> None:
    """Draw series of one unit on one axes. named: whether marks of events have names."""
    for one, style in zip(series, line_styles(len(series)), strict=True):
        line(ax, run, one, style)
    mark_events(ax, run, named)
    style_axes(ax, "time [s]", label)
    _flatten_rounding(ax, run, series)
    low, high = np.nanmin(run.times), np.nanmax(run.times)
    if high > low:
        ax.set_xlim(low, high)
    legend(ax, legend_title(run))


def _flatten_rounding(ax: Any, run: Trajectory, series: Sequence[Series]) -> None:
    """Give curves that differ from a constant by rounding alone a range in which they are flat."""
    values = np.concatenate([np.ravel(s.values) for s in series])
    values = values[np.isfinite(values)]
    rounding = noise_levels(run.model).get(series[0].unit, 0.0)
    if len(values) and np.ptp(values) < rounding:
        middle = float(np.median(values)) if np.abs(values).max() > rounding else 0.0
        room = 0.1 * abs(middle) or 1.0
        ax.set_ylim(middle - room, middle + room)


def line(ax: Any, run: Trajectory, one: Series, style: dict[str, Any], across: bool = False) -> None:
    """Draw one run as a line, a batch as its median and a band around it.

    across: whether the line goes on from one segment to the next, with a step.
    """
    if not run.batch:
        times, values = (run.times, one.values) if across else (cut(run, run.times), cut(run, one.values))
        ax.plot(times, values, label=as_label(one.name), linewidth=1.5, **style)
        return
    low, middle, high = spread(one.values)
    ax.fill_between(run.times, low, high, color=style["color"], alpha=0.16, linewidth=0.0)
    ax.plot(run.times, middle, label=as_label(one.name), linewidth=1.6, **style)


def cut(run: Trajectory, values: np.ndarray) -> np.ndarray:
    """Values (..., n) with a NaN between segments, where a line has to end."""
    edges = np.cumsum([len(s) for s in run.segments])[:-1]
    return np.insert(np.asarray(values, float), edges, np.nan, axis=-1)


def spread(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lower edge, median and upper edge (n,) of the band over the runs (..., n) that have not ended."""
    runs = values.reshape(-1, values.shape[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # samples after the end of every run
        low, middle, high = np.nanpercentile(runs, (BAND[0], 50.0, BAND[1]), axis=0)
    return low, middle, high


def legend_title(run: Trajectory) -> str | None:
    """The title of a batch's legend."""
    return f"median and {BAND[0]:g}–{BAND[1]:g} %\nof {len(run.outcomes)} runs" if run.batch else None


def _height(series: Sequence[Series], units: Sequence[str]) -> float:
    """Room for the longest legend, and for all panels [inch]."""
    most = max((sum(s.unit == u for s in series) for u in units), default=1)
    each = 4.5 if len(units) == 1 else 2.6
    return len(units) * max(each, 0.14 * min(most, 32) + 0.6)
