"""Where matrices have numbers: mass matrix, closure Jacobian, what closures feel of each other, spatial operators."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, nearest
from spanloop.loops.closure_errors import rows_of
from spanloop.model import Model
from spanloop.sweeps.operators import Operator
from spanloop.trajectory.files import labels
from spanloop.view.plots.canvas import FAINT, GREY, blank

_ZERO = 1e-10  # of the largest entry: what is smaller counts as none
_LABELS = 64  # freedoms or rows, up to which each has its name


def sparsity(model: Model | Dynamics, what: str = "mass_matrix", q=None, *, ax=None):
    """The non-zero entries of a matrix, darker where they are larger, on a scale of powers of ten.

    what: "mass_matrix" (nv, nv); "closure_jacobian" (n_rows, nv); "closure_admittance" (n_rows, n_rows), J M⁻¹ Jᵀ:
    what the rows of closures feel of each other. q (nq,): the state; if not told, the largest over three states at
    random, so that no entry is zero by chance.
    """
    robot = model if isinstance(model, Dynamics) else Dynamics(model)
    if what not in MATRICES:
        raise InputError(f"plot: there is no matrix {what!r}; {nearest(what, MATRICES)}")
    values = magnitudes(robot, what, q)
    if not values.size:
        raise InputError(f"plot: the {what} of model {robot.model.name!r} is empty; it has no loops")
    ax = _drawn(values, what.replace("_", " "), ax)
    _named(ax.set_xticks, _rows(robot.model) if what == "closure_admittance" else _freedoms(robot.model), 90)
    _named(ax.set_yticks, _rows(robot.model) if what.startswith("closure") else _freedoms(robot.model), 0)
    return ax


def operator_sparsity(operator: Operator, *, ax=None):
    """The non-zero entries of a spatial operator at its q, as of sl.operators(model, q), in the order of the links."""
    return _drawn(np.abs(operator.matrix()), repr(operator), ax)


def _drawn(values: np.ndarray, title: str, ax):
    """A map of the sizes of entries, on new axes or on these."""
    rows, columns = values.shape
    (ax,) = blank(ax, size=(1.8 + _inches(columns), 1.6 + _inches(rows)))
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
    bar.set_label("size of entries, powers of ten", color=GREY, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return ax


def magnitudes(robot: Dynamics, what: str, q=None) -> np.ndarray:
    """Sizes of a matrix's entries at q, or the largest of three states at random."""
    states = [np.asarray(q, float)] if q is not None else [robot.model.random_state(k)[0] for k in range(3)]
    return np.max([np.abs(MATRICES[what](robot, state)) for state in states], axis=0)


def _admittance(robot: Dynamics, q: np.ndarray) -> np.ndarray:
    J = robot.closure_jacobian(q)
    return J @ np.linalg.solve(robot.mass_matrix(q), J.T)


MATRICES: dict[str, Callable[[Dynamics, np.ndarray], np.ndarray]] = {
    "mass_matrix": Dynamics.mass_matrix,
    "closure_jacobian": Dynamics.closure_jacobian,
    "closure_admittance": _admittance,
}


def _freedoms(model: Model) -> list[str]:
    return [labels.joined(*name) for name in labels.dofs(model)]


def _rows(model: Model) -> list[str]:
    names = [*(x.name for x in model.loops), *(c.name for c in model.couplings)]
    return [names[row.owner] for row in rows_of(model)]


def _named(set_ticks: Callable, names: list[str], rotation: float) -> None:
    """A name at each row or column, once where neighbours share it; numbers where there are too many."""
    if len(names) > _LABELS:
        return
    shown = ["" if k and names[k - 1] == name else name for k, name in enumerate(names)]
    set_ticks(np.arange(len(names)) + 0.5, shown, rotation=rotation, fontsize=9 if len(names) <= 16 else 7)


def _inches(count: int) -> float:
    return float(np.clip(0.3 * count, 1.5, 7.0))
