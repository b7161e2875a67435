"""How well the loops stay closed, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import InputError
from spanloop.view.plots.canvas import GREY, blank, dressed, legend, pens
from spanloop.view.plots.courses import Course, line, told

if TYPE_CHECKING:
    from spanloop.results.trajectory import Trajectory

BOUND = 1e-9  # m or rad: the audit's
_FLOOR = 1e-18  # m or rad: below this the axis ends; an exact zero is not drawn


def closure_residual(run: Trajectory, *, ax=None):
    """The largest error of each loop and coupling [m or rad] over time, on a scale of powers of ten.

    The dotted line is the bound of run.audit(). Exact zeros have no place on such a scale and leave gaps.
    """
    names = [*(x.name for x in run.model.loops), *(c.name for c in run.model.couplings)]
    if not names:
        raise InputError(f"plot: model {run.model.name!r} has no loops, so nothing can open")
    (ax,) = blank(ax)
    errors = [np.abs(run[name].error).max(axis=-1, initial=0.0) for name in names]
    for name, values, pen in zip(names, errors, pens(len(names)), strict=True):
        line(ax, run, Course(name, "m or rad", values), pen)
    ax.axhline(BOUND, color=GREY, linestyle=":", linewidth=1.2, label="bound of the audit")
    ax.set_yscale("log", nonpositive="mask")
    highest = max((float(np.nanmax(e)) for e in errors), default=0.0)
    ax.set_ylim(_FLOOR, 10.0 * max(highest, BOUND))
    dressed(ax, "time [s]", "closure error [m or rad]")
    if run.duration > 0.0:
        ax.set_xlim(run.times[0], run.times[-1])
    legend(ax, told(run))
    return ax
