"""Figures with matplotlib: one function a figure. Each takes `ax=` and returns its axes.

Without `ax` a figure is made. Where matplotlib has a window or a notebook to show it in, it is one of pyplot's, so
that plt.show() finds it; elsewhere pyplot never hears of it, and it is gone when it is let go. Where what is drawn has
several units there are as many panels: `ax` takes that many axes, and a tuple of them returns.
"""

from spanloop.view.plots.operations import counts, scaling
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
from spanloop.view.plots.sparsities import operator_sparsity, sparsity
from spanloop.view.plots.trees import topology

__all__ = [
    "FIGURES",
    "accelerations",
    "closure_residual",
    "coordinates",
    "counts",
    "energy",
    "operator_sparsity",
    "phase",
    "plot",
    "reactions",
    "scaling",
    "sparsity",
    "topology",
    "torques",
    "velocities",
]
