"""Sparsity patterns: mass matrix, closure Jacobian, closure admittance, spatial operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, nearest
from spanloop.loops.closure_errors import rows_of
from spanloop.model import Model
from spanloop.sweeps.operators import Operator
from spanloop.trajectory.files import labels
from spanloop.view.plots.canvas import FAINT, GREY, as_label, axes_for

_ZERO = 1e-10  # relative to the largest entry: smaller entries count as zero
_LABELS = 64  # degrees of freedom or rows, up to which each gets its name


def sparsity(model: Model | Dynamics, what: str = "mass_matrix", q: ArrayLike | None = None, *, ax: Any = None) -> Any:
    """Plot the non-zero entries of a matrix, darker where they are larger, on a logarithmic scale.

    what: "mass_matrix" (nv, nv); "closure_jacobian" (n_rows, nv); "closure_admittance" (n_rows, n_rows), J M⁻¹ Jᵀ,
    which couples the closure rows. q (nq,): the configuration (default: the largest entries over three random ones, so
    that no entry is zero by chance).
    """
    robot = model if isinstance(model, Dynamics) else Dynamics(model)
    if what not in MATRICES:
        raise InputError(f"plot: there is no matrix {what!r}; {nearest(what, MATRICES)}")
    values = magnitudes(robot, what, q)
    if not values.size:
        raise InputError(f"plot: the {what} of model {robot.model.name!r} is empty; it has no loops")
    ax = _drawn(values, what.replace("_", " "), ax)
    _named(ax.set_xticks, _rows(robot.model) if what == "closure_admittance" else _dof_names(robot.model), 90)
    _named(ax.set_yticks, _rows(robot.model) if what.startswith("closure") else _dof_names(robot.model), 0)
    return ax


def operator_sparsity(operator: Operator, *, ax: Any = None) -> Any:
    """Plot the non-zero entries of a spatial operator of sl.operators(model, q), in the order of the links."""
    return _drawn(np.abs(operator.matrix()), repr(operator), ax)


def _drawn(values: np.ndarray, title: str, ax: Any) -> Any:
    """Draw the magnitudes of entries, on `ax` or on new axes."""
    rows, columns = values.shape
    (ax,) = axes_for(ax, size=(1.8 + _inches(columns), 1.6 + _inches(rows)))
    present = values > _ZERO * values.max(initial=0.0)
    shades = np.where(present, np.log10(np.where(present, values, 1.0)), np.nan)
    drawn = ax.pcolormesh(shades, cmap="Blues", edgecolors=FAINT, linewidth=0.4, vmin=np.nanmin(shades) - 1.0)
    ax.set_aspect("equal")
    ax.invert_yaxis()
    ax.set_title(
        f"{title}: {present.sum()} of {present.size} entries ({present.mean():.0%})",
        fontsize=10,
        loc="left",
    )
    bar = ax.figure.colorbar(drawn, ax=ax, fraction=0.04, pad=0.02)
    bar.set_label("magnitude of entries, powers of ten", color=GREY, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return ax


def magnitudes(robot: Dynamics, what: str, q: ArrayLike | None = None) -> np.ndarray:
    """Magnitudes of a matrix's entries at q, or the largest over three random configurations."""
    states = [np.asarray(q, float)] if q is not None else [robot.model.random_state(k)[0] for k in range(3)]
    return np.asarray(np.max([np.abs(MATRICES[what](robot, state)) for state in states], axis=0))


def _admittance(robot: Dynamics, q: np.ndarray) -> np.ndarray:
    J = robot.closure_jacobian(q)
    return J @ np.linalg.solve(robot.mass_matrix(q), J.T)


MATRICES: dict[str, Callable[[Dynamics, np.ndarray], np.ndarray]] = {
    "mass_matrix": Dynamics.mass_matrix,
    "closure_jacobian": Dynamics.closure_jacobian,
    "closure_admittance": _admittance,
}


def _dof_names(model: Model) -> list[str]:
    return [labels.joined(*name) for name in labels.dofs(model)]


def _rows(model: Model) -> list[str]:
    names = [*(x.name for x in model.loops), *(c.name for c in model.couplings)]
    return [names[row.owner] for row in rows_of(model)]


def _named(set_ticks: Callable[..., Any], names: list[str], rotation: float) -> None:
    """Label each row or column by name, once where neighbours share it; keep numbers if there are too many."""
    if len(names) > _LABELS:
        return
    shown = ["" if k and names[k - 1] == name else as_label(name) for k, name in enumerate(names)]
    set_ticks(np.arange(len(names)) + 0.5, shown, rotation=rotation, fontsize=9 if len(names) <= 16 else 7)


def _inches(count: int) -> float:
    return float(np.clip(0.3 * count, 1.5, 7.0))
