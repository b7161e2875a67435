"""Values over time: a line for each, or median and band of a batch, in one panel a unit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spanloop.view.plots.canvas import blank, dressed, legend, pens, returned

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

BAND = (5.0, 95.0)  # percent of the runs of a batch that lie below


@dataclass(frozen=True)
class Course:
    """One quantity: its name, unit, and values (..., n) at the samples of a run."""

    name: str
    unit: str
    values: np.ndarray


def draw(run: Trajectory, courses: Sequence[Course], words: dict[str, str], ax=None):
    """Panels with the courses. words: what a panel's quantity is called, by unit."""
    units = list(dict.fromkeys(c.unit for c in courses))
    axes = blank(ax, len(units), (8.0, _height(courses, units)))
    for one, unit in zip(axes, units, strict=True):
        panel(one, run, [c for c in courses if c.unit == unit], f"{words.get(unit, words[''])} [{unit}]")
    for one in axes[:-1] if ax is None else ():
        one.set_xlabel("")
    return returned(axes)


def panel(ax, run: Trajectory, courses: Sequence[Course], label: str) -> None:
    """Courses of one unit on one axes."""
    for course, pen in zip(courses, pens(len(courses)), strict=True):
        line(ax, run, course, pen)
    dressed(ax, "time [s]", label)
    low, high = np.nanmin(run.times), np.nanmax(run.times)
    if high > low:
        ax.set_xlim(low, high)
    legend(ax, told(run))


def line(ax, run: Trajectory, course: Course, pen: dict) -> None:
    """One run as a line; of a batch the median as a line and a band around it."""
    if not run.batch:
        ax.plot(run.times, course.values, label=course.name, linewidth=1.5, **pen)
        return
    low, middle, high = spread(course.values)
    ax.fill_between(run.times, low, high, color=pen["color"], alpha=0.16, linewidth=0.0)
    ax.plot(run.times, middle, label=course.name, linewidth=1.6, **pen)


def spread(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n,) each: the band's lower edge, the median, the band's upper edge, over runs (..., n) that still go on."""
    runs = values.reshape(-1, values.shape[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # samples after the end of every run
        low, middle, high = np.nanpercentile(runs, (BAND[0], 50.0, BAND[1]), axis=0)
    return low, middle, high


def told(run: Trajectory) -> str | None:
    """What the lines of a batch are, for the legend."""
    return f"median and {BAND[0]:g}–{BAND[1]:g} %\nof {len(run.outcomes)} runs" if run.batch else None


def _height(courses: Sequence[Course], units: Sequence[str]) -> float:
    """Room for the longest legend, and for all panels [inch]."""
    most = max((sum(c.unit == u for c in courses) for u in units), default=1)
    each = 4.5 if len(units) == 1 else 2.6
    return len(units) * max(each, 0.14 * min(most, 32) + 0.6)
