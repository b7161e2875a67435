"""Energy over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spanloop.view.plots.canvas import INK, PALETTE, blank, dressed, legend
from spanloop.view.plots.courses import Course, line, told

if TYPE_CHECKING:
    from spanloop.results.trajectory import Trajectory


def energy(run: Trajectory, *, ax=None):
    """Kinetic and potential energy and their sum [J] over time; run.audit() weighs the sum against the work done."""
    (ax,) = blank(ax)
    kinetic, potential = run.energy[..., 0], run.energy[..., 1]
    rows = (("kinetic", kinetic, PALETTE[0]), ("potential", potential, PALETTE[2]), ("total", kinetic + potential, INK))
    for name, values, color in rows:
        line(ax, run, Course(name, "J", values), {"color": color, "linestyle": "-" if name != "total" else "--"})
    dressed(ax, "time [s]", "energy [J]")
    if run.duration > 0.0:
        ax.set_xlim(run.times[0], run.times[-1])
    legend(ax, told(run))
    return ax
