"""Figures of a run by name: what run.plot(...) draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from spanloop.errors import InputError, nearest
from spanloop.view.plots.closures import closure_residual
from spanloop.view.plots.energies import energy
from spanloop.view.plots.joints import accelerations, coordinates, torques, velocities
from spanloop.view.plots.loads import reactions
from spanloop.view.plots.phases import phase

if TYPE_CHECKING:
    from spanloop.results.trajectory import Trajectory

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
