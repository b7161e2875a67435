"""Coordinates, velocities, accelerations and torques of joints over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.trajectory.files import labels
from spanloop.view.plots.canvas import GREY, INK, PALETTE, blank, dressed, legend, pens
from spanloop.view.plots.time_series import Course, draw, line, told

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory
if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory
if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory
if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory
if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory
if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

Names = str | Sequence[str] | None


def coordinates(run: Trajectory, names: Names = None, *, ax=None):
    """Coordinates q over time; names: of joints, all if not told. Angles, lengths and quaternions in panels."""
    words = {"rad": "angle", "m": "displacement", "1": "quaternion", "": "coordinate"}
    chosen = _chosen(run.model, names, labels.coordinates, run.model.q_slice)
    return draw(run, _courses(run.q, chosen, labels.coordinates, labels.coordinate_units, run.model), words, ax)


def velocities(run: Trajectory, names: Names = None, *, ax=None):
    """Rates v over time."""
    words = {"rad/s": "angular velocity", "m/s": "velocity", "": "rate"}
    return draw(run, _of_freedoms(run, run.v, names, labels.dof_units(run.model)), words, ax)


def accelerations(run: Trajectory, names: Names = None, *, ax=None):
    """Accelerations a over time, under the torques and forces that acted."""
    words = {"rad/s²": "angular acceleration", "m/s²": "acceleration", "": "acceleration"}
    units = [unit and f"{unit}²" for unit in labels.dof_units(run.model)]
    return draw(run, _of_freedoms(run, run.a, names, units), words, ax)


def torques(run: Trajectory, names: Names = None, *, ax=None):
    """What acted at the joints over time; names: of joints, all that are not passive if not told.

    A driven joint's entry is its acceleration, in a panel of its own.
    """
    words = {"N m": "torque", "N": "force", "rad/s²": "given acceleration", "m/s²": "given acceleration", "": "torque"}
    if names is None:
        names = [j.name for j in run.model.joints if j.actuated or j.driven] or None
    return draw(run, _of_freedoms(run, run.tau, names, labels.torque_units(run.model)), words, ax)


def _of_freedoms(run: Trajectory, values: np.ndarray, names: Names, units: list[str]) -> list[Course]:
    chosen = _chosen(run.model, names, labels.dofs, run.model.v_slice)
    return _courses(values, chosen, labels.dofs, lambda _: units, run.model)


def _courses(values: np.ndarray, chosen: list[int], name: Callable, unit: Callable, model: Model) -> list[Course]:
    names, units = name(model), unit(model)
    return [Course(labels.joined(*names[k]), units[k] or "–", values[..., k]) for k in chosen]


def _chosen(model: Model, names: Names, entries: Callable, place: Callable[[str], slice]) -> list[int]:
    """Which entries of q or v belong to the joints that are named."""
    count = len(entries(model))
    if names is None:
        found = list(range(count))
    else:
        listed = [names] if isinstance(names, str) else list(names)
        found = [k for name in listed for k in range(count)[place(name)]]
    if not found:
        raise InputError(f"plot: model {model.name!r} has no joint with a freedom among {names or 'its joints'!r}")
    return found


# ---- How well the loops stay closed, over time.


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


# ---- Energy over time.


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


# ---- Forces and torques that joints and loops carry, over time.


COMPONENTS = ("size", "x", "y", "z")


def reactions(run: Trajectory, names: str | Sequence[str] | None = None, *, component: str = "size", ax=None):
    """What joints and loops carry over time, forces [N] and torques [N m] in two panels.

    names: of joints and loops; all if not told. component: "size", or "x", "y", "z" in world axes. A star marks a
    force that is one of many possible ones, the shortest, because rows are redundant.
    """
    if component not in COMPONENTS:
        raise InputError(f"plot: component is {component!r}; {nearest(component, COMPONENTS)}")
    found = run.reactions()
    listed = list(found) if names is None else [names] if isinstance(names, str) else list(names)
    for name in listed:
        if name not in found:
            raise InputError(f"plot: there is no joint or loop {name!r}; {nearest(name, found)}")
    courses = []
    for unit, part in (("N", slice(3, 6)), ("N m", slice(0, 3))):
        for name in listed:
            star = "" if found.unique.get(name, True) else " *"
            courses.append(Course(name + star, unit, _component(found[name][..., part], component)))
    what = "" if component == "size" else f", along {component}"
    return draw(run, courses, {"N": f"force{what}", "N m": f"torque{what}", "": ""}, ax)


def _component(three: np.ndarray, component: str) -> np.ndarray:
    if component == "size":
        return np.linalg.norm(three, axis=-1)
    return three[..., "xyz".index(component)]


# ---- A joint's rate over its coordinate.


_FAINT = 0.35  # of the lines of a batch


def phase(run: Trajectory, names: str | Sequence[str] | None = None, *, ax=None):
    """Rate over coordinate of joints of one freedom; a dot where a run begins. All runs of a batch are drawn.

    names: of joints with one unit; if not told, those of the first such joint's unit.
    """
    joints = _chosen_dof(run, names)
    unit = joints[0].kind.units[0]
    (ax,) = blank(ax, size=(6.5, 5.0))
    for joint, pen in zip(joints, pens(len(joints)), strict=True):
        part = run[joint.name]
        q, v = (np.reshape(x, (-1, len(run))) for x in (part.q, part.v))
        for k in range(len(q)):
            alpha = _FAINT if run.batch else 1.0
            ax.plot(q[k], v[k], linewidth=1.4, alpha=alpha, label=None if k else joint.name, **pen)
        ax.plot(q[:, 0], v[:, 0], "o", markersize=5, color=pen["color"])
    quantity = "angle" if unit == "rad" else "displacement"
    dressed(ax, f"{quantity} [{unit}]", f"rate [{unit}/s]")
    legend(ax, f"{len(run.outcomes)} runs" if run.batch else None)
    return ax


def _chosen_dof(run: Trajectory, names):
    single = [j for j in run.model.joints if j.kind.nq == j.kind.nv == 1]
    if names is None:
        joints = [j for j in single if j.kind.units == single[0].kind.units]
    else:
        joints = [run.model.joint(name) for name in ([names] if isinstance(names, str) else names)]
    for joint in joints:
        if joint not in single:
            raise InputError(f"plot: joint {joint.name!r} has {joint.kind.nv} freedoms; a phase is of joints with one")
    if not joints:
        raise InputError(f"plot: model {run.model.name!r} has no joint with one freedom, which a phase is of")
    units = {j.kind.units[0]: j.name for j in joints}
    if len(units) > 1:
        told = " and ".join(f"{name!r} in {unit}" for unit, name in units.items())
        raise InputError(f"plot: a phase has one unit; {told} differ. Draw them one by one")
    return joints


# ---- Figures of a run by name: what run.plot(...) draws.


FIGURES: dict[str, Callable] = {
    "coordinates": coordinates,
    "velocities": velocities,
    "accelerations": accelerations,
    "torques": torques,
    "reactions": reactions,
    "energy": energy,
    "closure_residual": closure_residual,
    "phase": phase,
}

LETTERS = {"q": "coordinates", "v": "velocities", "a": "accelerations", "tau": "torques"}


def plot(run: Trajectory, what: str, names=None, *, ax=None, **options):
    """The figure called `what`; names: of the joints or loops in it. Returns its axes."""
    name = LETTERS.get(what, what)
    if name not in FIGURES:
        raise InputError(f"plot: there is no figure {what!r}; {nearest(what, (*LETTERS, *FIGURES))}")
    if names is not None and name in ("energy", "closure_residual"):
        raise InputError(f"plot: {name} is of the whole mechanism and takes no names")
    chosen = {} if names is None else {"names": names}
    return FIGURES[name](run, **chosen, ax=ax, **options)
