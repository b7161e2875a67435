"""Figures of flexible bodies over time: deflection of their nodes, and modal amplitudes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spanloop.errors import InputError, nearest
from spanloop.trajectory.files import labels
from spanloop.view.beams.deflection import curves, nodes
from spanloop.view.columns import columns, models_of
from spanloop.view.plots.series import Names, Series, draw

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory


def deflection(run: Trajectory, names: Names = None, *, ax: Any = None) -> Any:
    """Plot displacements of nodes from their undeformed places over time, in the axes of their flexible body's root.

    names: of nodes, as "boom.tip" (default: all). A direction in which no node moves is left out.
    """
    known = [name for model in models_of(run) for name in nodes(model)]
    listed = _chosen(run, names, list(dict.fromkeys(known)), "node")
    found = [Series(name, "m", values) for name, values in curves(run, listed)]
    return draw(run, found, {"m": "deflection", "": ""}, ax)


def modes(run: Trajectory, names: Names = None, *, ax: Any = None) -> Any:
    """Plot modal amplitudes of flexible bodies over time. names: of joints, as "boom.modes" (default: all).

    An amplitude is the largest displacement [m], or the largest rotation [rad] of torsion, of its mode's shape.
    """
    known = [j.name for model in models_of(run) for j in model.joints if j.kind.bends]
    listed = _chosen(run, names, list(dict.fromkeys(known)), "joint of modes")
    found = columns(run, "q", labels.coordinates, labels.coordinate_units, listed)
    words = {"m": "modal amplitude", "rad": "modal amplitude", "": "modal amplitude"}
    return draw(run, [Series(c.name, c.unit, c.values) for c in found], words, ax)


def _chosen(run: Trajectory, names: Names, known: list[str], what: str) -> list[str]:
    """The names that are asked for, or all that are known."""
    if not known:
        raise InputError(f"plot: model {run.model.name!r} has no flexible body, and so no {what}")
    listed = known if names is None else [names] if isinstance(names, str) else list(names)
    for name in listed:
        if name not in known:
            raise InputError(f"plot: there is no {what} {name!r}; {nearest(name, known)}")
    return listed
