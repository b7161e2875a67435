"""Coordinates, velocities, accelerations and torques of joints over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.results.files import labels
from spanloop.view.plots.courses import Course, draw

if TYPE_CHECKING:
    from spanloop.results.trajectory import Trajectory

Names = str | Sequence[str] | None


def coordinates(run: Trajectory, names: Names = None, *, ax=None):
    """Coordinates q over time; names: of joints, all if not told. Angles, lengths and quaternions in panels."""
    words = {"rad": "angle", "m": "displacement", "1": "quaternion", "": "coordinate"}
    chosen = _chosen(run.model, names, labels.coordinates, run.model.q_slice)
    return draw(run, _courses(run.q, chosen, labels.coordinates, labels.coordinate_units, run.model), words, ax)


def velocities(run: Trajectory, names: Names = None, *, ax=None):
    """Rates v over time."""
    words = {"rad/s": "angular velocity", "m/s": "velocity", "": "rate"}
    return draw(run, _of_freedoms(run, run.v, names, labels.freedom_units(run.model)), words, ax)


def accelerations(run: Trajectory, names: Names = None, *, ax=None):
    """Accelerations a over time, under the torques and forces that acted."""
    words = {"rad/s²": "angular acceleration", "m/s²": "acceleration", "": "acceleration"}
    units = [unit and f"{unit}²" for unit in labels.freedom_units(run.model)]
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
    chosen = _chosen(run.model, names, labels.freedoms, run.model.v_slice)
    return _courses(values, chosen, labels.freedoms, lambda _: units, run.model)


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
