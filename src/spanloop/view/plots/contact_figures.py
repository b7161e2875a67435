"""Figures of contacts over time: normal forces, gaps and slip, and when each contact sticks or slips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError
from spanloop.view import palette
from spanloop.view.contact_forces import slip_speed
from spanloop.view.plots.canvas import as_label, axes_for, legend, mark_events, style_axes
from spanloop.view.plots.series import Names, Series, legend_title, panel

if TYPE_CHECKING:
    from spanloop.trajectory.contacts.contact_results import ContactResult
    from spanloop.trajectory.trajectory import Trajectory

STATES = (("sticks", palette.STICKS), ("slips", palette.SLIPS))
FEWEST = 4  # rows, so that bars of few contacts are no taller than others
BAR = 0.7  # height of a bar, of that of its row


def contacts(run: Trajectory, names: Names = None, *, ax: Any = None) -> Any:
    """Plot contacts over time in four panels: normal forces [N], gaps [m], speeds of slip [m/s], and bars of states.

    names: of contacts, or of points of contacts with several (default: all contacts). Slip is drawn while they touch.
    """
    found = _listed(run, names)
    axes = axes_for(ax, 4, (8.0, 9.0))
    quantities = (
        ("normal force", "N", [x.normal_force for x in found]),
        ("gap", "m", [x.gap for x in found]),
        ("speed of slip", "m/s", [slip_speed(x) for x in found]),
    )
    for one, (words, unit, values) in zip(axes, quantities, strict=False):
        series = [Series(x.name, unit, v) for x, v in zip(found, values, strict=True)]
        panel(one, run, series, f"{words} [{unit}]", named=one is axes[0])
        one.set_xlabel("")
    contact_states(run, names, ax=axes[3])
    return axes


def contact_states(run: Trajectory, names: Names = None, *, ax: Any = None) -> Any:
    """Plot when contacts stick and slip: a bar for each, which of a batch is as high as the share of its runs.

    Of one run ticks mark bounces.

    names: of contacts, or of points of contacts with several (default: all contacts).
    """
    found = _listed(run, names)
    (ax,) = axes_for(ax, size=(8.0, 1.2 + 0.3 * len(found)))
    for row, one in enumerate(found):
        state = one.state.reshape(-1, len(run))
        there = np.maximum((state != "").sum(axis=0), 1)
        base = np.full(len(run), row - 0.5 * BAR)
        for word, color in STATES:
            top = base + BAR * (state == word).sum(axis=0) / there
            label = word if row == 0 else None
            ax.fill_between(run.times, base, top, step="pre", color=color, linewidth=0.0, label=label)
            base = top
    if not run.batch:
        _mark_bounces(ax, run, found)
    mark_events(ax, run, named=False)
    style_axes(ax, "time [s]", "")
    ax.set_yticks(range(len(found)), [as_label(x.name) for x in found])
    ax.set_ylim(max(len(found), FEWEST) - 0.5, -0.5)
    ax.grid(False, axis="y")
    if run.duration > 0.0:
        ax.set_xlim(run.times[0], run.times[-1])
    legend(ax, legend_title(run) and f"share of {len(run.outcomes)} runs")
    return ax


def _mark_bounces(ax: Any, run: Trajectory, found: list[ContactResult]) -> None:
    """A tick for each sample at whose step a contact pushes and opens."""
    rows = [np.flatnonzero((x.state == "open") & (np.nan_to_num(x.normal_force) > 0.0)) for x in found]
    if any(len(row) for row in rows):
        times = np.concatenate([run.times[row] for row in rows])
        heights = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        color = palette.EVENTS["impact"]
        ax.plot(times, heights, "|", color=color, markersize=9, label="bounces", linestyle="none")


def _listed(run: Trajectory, names: Names) -> list[ContactResult]:
    if not len(run.contacts):
        raise InputError(f"plot: model {run.model.name!r} has no contacts; model.with_contact(...) adds one")
    chosen = list(run.contacts) if names is None else [names] if isinstance(names, str) else names
    return [run.contacts[name] for name in chosen]
