"""Figures of a run over time: coordinates, velocities, torques, reactions, energy, closure errors, phase portraits.

One unit a panel, one line a quantity; a batch of runs is drawn as median and band. Thin lines mark events, and no line
is drawn across a jump of velocities. `plot` draws a figure by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.model.parts import Joint
from spanloop.trajectory.audit.audit import bounds_of
from spanloop.trajectory.files import labels
from spanloop.view.columns import columns, largest_error, models_of
from spanloop.view.plots.canvas import (
    GREY,
    INK,
    PALETTE,
    as_label,
    axes_for,
    legend,
    line_styles,
    mark_events,
    style_axes,
)
from spanloop.view.plots.contact_figures import contacts
from spanloop.view.plots.flexible_figures import deflection, modes
from spanloop.view.plots.series import Names, Series, cut, draw, legend_title, line

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

_FLOOR = 1e-18  # m or rad: lower end of the axis of closure errors
_FAINT = 0.35  # opacity of the lines of a batch
COMPONENTS = ("norm", "x", "y", "z")


def coordinates(run: Trajectory, names: Names = None, *, ax: Any = None) -> Any:
    """Plot coordinates q over time. names: of joints (default: all). One panel for each unit."""
    words = {"rad": "angle", "m": "displacement", "1": "quaternion", "": "coordinate"}
    return draw(run, _series(run, "q", names, labels.coordinates, labels.coordinate_units), words, ax)


def velocities(run: Trajectory, names: Names = None, *, ax: Any = None) -> Any:
    """Plot velocities v over time. names: of joints (default: all)."""
    words = {"rad/s": "angular velocity", "m/s": "velocity", "": "velocity"}
    return draw(run, _series(run, "v", names, labels.dofs, labels.dof_units), words, ax)


def accelerations(run: Trajectory, names: Names = None, *, ax: Any = None) -> Any:
    """Plot accelerations a over time, under the recorded torques and forces. names: of joints (default: all)."""
    words = {"rad/s²": "angular acceleration", "m/s²": "acceleration", "": "acceleration"}
    return draw(run, _series(run, "a", names, labels.dofs, _acceleration_units), words, ax)


def _acceleration_units(model: Model) -> list[str]:
    return [unit and f"{unit}²" for unit in labels.dof_units(model)]


def torques(run: Trajectory, names: Names = None, *, ax: Any = None) -> Any:
    """Plot joint torques over time. names: of joints (default: all actuated or driven ones).

    The entry of a driven joint is its acceleration, in a panel of its own.
    """
    words = {
        "N m": "torque",
        "N": "force",
        "rad/s²": "prescribed acceleration",
        "m/s²": "prescribed acceleration",
        "": "torque",
    }
    if names is None:
        moved = (j.name for model in models_of(run) for j in model.joints if j.actuated or j.driven)
        names = list(dict.fromkeys(moved)) or None
    return draw(run, _series(run, "tau", names, labels.dofs, labels.torque_units), words, ax)


def _series(
    run: Trajectory,
    letter: str,
    names: Names,
    names_of: Callable[[Model], list[labels.Name]],
    units_of: Callable[[Model], list[str]],
) -> list[Series]:
    """Entries of q, v, a or tau that belong to the named joints."""
    listed = None if names is None else [names] if isinstance(names, str) else list(names)
    models = models_of(run)
    for name in listed or ():
        if not any(j.name == name for model in models for j in model.joints):
            run.model.joint(name)  # which raises with the nearest name
    found = columns(run, letter, names_of, units_of, listed)
    if not found:
        raise InputError(f"plot: model {run.model.name!r} has no joint that can move among {names or 'its joints'!r}")
    return [Series(c.name, c.unit or "–", c.values) for c in found]


def closure_residual(run: Trajectory, *, ax: Any = None) -> Any:
    """Plot the largest error of each loop and coupling [m or rad] over time, on a logarithmic scale.

    The dotted line is the bound of run.audit(). Exact zeros leave gaps.
    """
    models = [run.model, *models_of(run)]
    every = [name for m in models for name in (*(x.name for x in m.loops), *(c.name for c in m.couplings))]
    names = list(dict.fromkeys(every))
    if not names:
        raise InputError(f"plot: model {run.model.name!r} has no loops, so there is no closure error")
    (ax,) = axes_for(ax)
    errors = [largest_error(run, name) for name in names]
    for name, values, style in zip(names, errors, line_styles(len(names)), strict=True):
        line(ax, run, Series(name, "m or rad", values), style)
    bound = bounds_of(run).closure
    ax.axhline(bound, color=GREY, linestyle=":", linewidth=1.2, label="bound of the audit")
    ax.set_yscale("log", nonpositive="mask")
    highest = max((float(np.nanmax(e, initial=0.0)) for e in errors), default=0.0)
    ax.set_ylim(_FLOOR, 10.0 * max(highest, bound))
    mark_events(ax, run)
    style_axes(ax, "time [s]", "closure error [m or rad]")
    if run.duration > 0.0:
        ax.set_xlim(run.times[0], run.times[-1])
    legend(ax, legend_title(run))
    return ax


def energy(run: Trajectory, *, ax: Any = None) -> Any:
    """Plot kinetic and potential energy and their sum [J] over time, with steps at impacts.

    run.audit() compares it with the work done.
    """
    (ax,) = axes_for(ax)
    kinetic, potential = run.energy[..., 0], run.energy[..., 1]
    rows = (("kinetic", kinetic, PALETTE[0]), ("potential", potential, PALETTE[2]), ("total", kinetic + potential, INK))
    for name, values, color in rows:
        dashes = "-" if name != "total" else "--"
        line(ax, run, Series(name, "J", values), {"color": color, "linestyle": dashes}, across=True)
    mark_events(ax, run)
    style_axes(ax, "time [s]", "energy [J]")
    if run.duration > 0.0:
        ax.set_xlim(run.times[0], run.times[-1])
    legend(ax, legend_title(run))
    return ax


def reactions(run: Trajectory, names: Names = None, *, component: str = "norm", ax: Any = None) -> Any:
    """Plot reactions of joints and loops over time, forces [N] and torques [N m] in two panels.

    names: of joints and loops (default: all). component: "norm", or "x", "y", "z" in world axes. "not unique" marks a
    force that redundant rows leave open; the smallest one is drawn.
    """
    if component not in COMPONENTS:
        raise InputError(f"plot: component is {component!r}; {nearest(component, COMPONENTS)}")
    found = run.reactions()
    listed = list(found) if names is None else [names] if isinstance(names, str) else list(names)
    for name in listed:
        if name not in found:
            raise InputError(f"plot: there is no joint or loop {name!r}; {nearest(name, found)}")
    series = []
    for unit, part in (("N", slice(3, 6)), ("N m", slice(0, 3))):
        for name in listed:
            alone = "" if found.unique.get(name, True) else " (not unique)"
            series.append(Series(name + alone, unit, _component(found[name][..., part], component)))
    what = "" if component == "norm" else f", along {component}"
    return draw(run, series, {"N": f"force{what}", "N m": f"torque{what}", "": ""}, ax)


def _component(three: np.ndarray, component: str) -> np.ndarray:
    if component == "norm":
        return np.asarray(np.linalg.norm(three, axis=-1))
    return np.asarray(three[..., "xyz".index(component)])


def phase(run: Trajectory, names: Names = None, *, ax: Any = None) -> Any:
    """Plot velocity over coordinate of joints with one degree of freedom, for all runs of a batch.

    A dot marks the start. names: of joints with the same unit (default: those with the unit of the first such joint).
    """
    joints = _phase_joints(run, names)
    unit = joints[0].kind.units[0]
    (ax,) = axes_for(ax, size=(6.5, 5.0))
    for joint, style in zip(joints, line_styles(len(joints)), strict=True):
        part = run[joint.name]
        q, v = (cut(run, np.reshape(x, (-1, len(run)))) for x in (part.q, part.v))
        for k in range(len(q)):
            alpha = _FAINT if run.batch else 1.0
            ax.plot(q[k], v[k], linewidth=1.4, alpha=alpha, label=None if k else as_label(joint.name), **style)
        ax.plot(q[:, 0], v[:, 0], "o", markersize=5, color=style["color"])
    quantity = "angle" if unit == "rad" else "displacement"
    style_axes(ax, f"{quantity} [{unit}]", f"velocity [{unit}/s]")
    legend(ax, f"{len(run.outcomes)} runs" if run.batch else None)
    return ax


def _phase_joints(run: Trajectory, names: Names) -> list[Joint]:
    single = [j for j in run.model.joints if j.kind.nq == j.kind.nv == 1]
    if names is None:
        joints = [j for j in single if j.kind.units == single[0].kind.units]
    else:
        joints = [run.model.joint(name) for name in ([names] if isinstance(names, str) else names)]
    for joint in joints:
        if joint not in single:
            raise InputError(
                f"plot: joint {joint.name!r} has {joint.kind.nv} DoF; a phase portrait needs joints with one"
            )
    if not joints:
        raise InputError(f"plot: model {run.model.name!r} has no joint with one DoF, which a phase portrait needs")
    units = {j.kind.units[0]: j.name for j in joints}
    if len(units) > 1:
        differing = " and ".join(f"{name!r} in {unit}" for unit, name in units.items())
        raise InputError(f"plot: a phase portrait has one unit; {differing} differ. Draw them one by one")
    return joints


FIGURES: dict[str, Callable[..., Any]] = {
    "coordinates": coordinates,
    "velocities": velocities,
    "accelerations": accelerations,
    "torques": torques,
    "reactions": reactions,
    "contacts": contacts,
    "energy": energy,
    "closure_residual": closure_residual,
    "phase": phase,
    "deflection": deflection,
    "modes": modes,
}

LETTERS = {"q": "coordinates", "v": "velocities", "a": "accelerations", "tau": "torques"}


def plot(run: Trajectory, what: str, names: Names = None, *, ax: Any = None, **options: Any) -> Any:
    """Draw the figure `what` of a run and return its axes. names: of the joints, loops, contacts or nodes in it
    (default: all).

    what: a key of FIGURES, or q, v, a, tau. options: those of the figure's own function.
    """
    name = LETTERS.get(what, what)
    if name not in FIGURES:
        raise InputError(f"plot: there is no figure {what!r}; {nearest(what, (*LETTERS, *FIGURES))}")
    if names is not None and name in ("energy", "closure_residual"):
        raise InputError(f"plot: {name} shows the whole mechanism and takes no names")
    chosen = {} if names is None else {"names": names}
    return FIGURES[name](run, **chosen, ax=ax, **options)
