"""Columns of a run: entries of q, v, a or tau by joint and errors by loop, also where models have other joints."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spanloop.model import Model
from spanloop.trajectory.events import impulse_rows
from spanloop.trajectory.files import labels
from spanloop.trajectory.topologies import has_same_joints, model_of

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Column:
    """One entry: its name, its unit, and values (..., n), NaN where a segment has no such joint."""

    name: str
    unit: str
    values: np.ndarray


def columns(
    run: Trajectory,
    letter: str,
    names_of: Callable[[Model], list[labels.Name]],
    units_of: Callable[[Model], list[str]],
    joints: Collection[str] | None = None,
) -> list[Column]:
    """The entries of q, v, a or tau (letter), of all joints or of some."""
    if has_same_joints(run):
        rows = list(zip(names_of(run.model), units_of(run.model), strict=True))
        values = getattr(run, letter)
        found = [(name[0], Column(labels.joined(*name), unit, values[..., k])) for k, (name, unit) in enumerate(rows)]
    else:
        found = list(_of_all_models(run, letter, names_of, units_of))
    if joints is None:
        return [column for _, column in found]
    return [column for joint in joints for owner, column in found if owner == joint]


def models_of(run: Trajectory) -> list[Model]:
    """The distinct models of a run's segments."""
    return list(dict.fromkeys(model_of(run, s) for s in run.segments))


def largest_error(run: Trajectory, name: str) -> np.ndarray:
    """The largest error (..., n) over the rows of a loop or coupling [m or rad]; NaN while it is open."""
    if has_same_joints(run):
        rows = [k for k, row in enumerate(impulse_rows(run.model)) if row.owner == name]
        return np.asarray(np.abs(run.closure_error[..., rows]).max(axis=-1, initial=0.0))
    parts = []
    for piece in run.pieces:
        is_there = any(row.owner == name for row in impulse_rows(piece.model))
        parts.append(largest_error(piece, name) if is_there else np.full((*run.batch, len(piece)), np.nan))
    return np.concatenate(parts, axis=-1)


def _of_all_models(
    run: Trajectory,
    letter: str,
    names_of: Callable[[Model], list[labels.Name]],
    units_of: Callable[[Model], list[str]],
) -> Iterator[tuple[str, Column]]:
    parts: dict[tuple[str, str], tuple[int, str]] = {}
    for model in models_of(run):
        own: dict[str, int] = {}
        for name, unit in zip(names_of(model), units_of(model), strict=True):
            number = own[name[0]] = own.get(name[0], -1) + 1
            parts.setdefault(name, (number, unit))
    for name, (number, unit) in parts.items():
        values = getattr(run[name[0]], letter)
        one = values if values.ndim == len(run.batch) + 1 else values[..., number]
        yield name[0], Column(labels.joined(*name), unit, one)
