"""Figures with matplotlib, one function a figure. Each takes `ax=` and returns its axes.

Without `ax` the function makes a figure. With an interactive backend or a notebook the figure belongs to pyplot, so
that plt.show() shows it; otherwise it does not, and Python frees it when nothing refers to it. A figure of quantities
with several units has one panel for each: `ax` takes as many axes, and the function returns a tuple of them.
"""

from spanloop.view.plots.contact_figures import contact_states, contacts
from spanloop.view.plots.flexible_figures import deflection, modes
from spanloop.view.plots.linear_figures import bode, poles
from spanloop.view.plots.operation_counts import counts, scaling
from spanloop.view.plots.run_figures import (
    FIGURES,
    accelerations,
    closure_residual,
    coordinates,
    energy,
    phase,
    plot,
    reactions,
    torques,
    velocities,
)
from spanloop.view.plots.sparsity import operator_sparsity, sparsity
from spanloop.view.plots.topology_diagram import topology
from spanloop.view.plots.workspace_map import workspace

__all__ = [
    "FIGURES",
    "accelerations",
    "bode",
    "closure_residual",
    "contact_states",
    "contacts",
    "coordinates",
    "counts",
    "deflection",
    "energy",
    "modes",
    "operator_sparsity",
    "phase",
    "plot",
    "poles",
    "reactions",
    "scaling",
    "sparsity",
    "topology",
    "torques",
    "velocities",
    "workspace",
]
