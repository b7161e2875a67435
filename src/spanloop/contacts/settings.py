"""How a run treats its contacts: sl.simulate(..., contacts="events"), or sl.contacts.Settings(...)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.algorithms.contact.points import ContactPoints, contact_points
from spanloop.contacts.contact_arrays import COEFFICIENTS, coefficients
from spanloop.contacts.geometry_check import OVERLAP
from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.topology import mechanism

IMPACTS = ("steps", "events", "ignore")
JAMS = ("continue", "end")
KINDS = ("friction", "restitution")
ALL = None  # in place of the name of a contact


@dataclass(frozen=True)
class Settings:
    """What happens at the contacts of a run: sl.simulate(..., contacts=sl.contacts.Settings("events")).

    Args:
        impacts: "steps" solves contacts once a step, "events" also locates the moments at which gaps close, "ignore"
            leaves contacts out.
        friction: µ of all contacts, or {"contact": µ}; a number, or an array with the axes of runs side by side, (3,)
            for three. Else the model's.
        restitution: e in the same way.
        overlap: by how much hard shapes may overlap at the start [m]; the first step parts them.
        on_jam: "continue" or "end": what a run does where friction presses a sliding contact into the surface so that
            no finite force answers (Painlevé). It goes on with an impulse that stops the slip; run.audit() says so.

    Raises:
        InputError: an argument is none of these, or negative, or a restitution above 1.

    Example:
        >>> slippery = sl.contacts.Settings(friction={"box": [0.1, 0.2, 0.3]})
    """

    impacts: str = "steps"
    friction: Mapping[str, Any] | ArrayLike | None = None
    restitution: Mapping[str, Any] | ArrayLike | None = None
    on_jam: str = "continue"
    overlap: float = OVERLAP

    def __post_init__(self) -> None:
        if self.impacts not in IMPACTS:
            raise InputError(f"contacts: impacts is {self.impacts!r}; expected 'steps', 'events' or 'ignore'")
        if self.on_jam not in JAMS:
            raise InputError(f"contacts: on_jam is {self.on_jam!r}; expected 'continue' or 'end'")
        length = isinstance(self.overlap, int | float | np.number) and not isinstance(self.overlap, bool)
        if not (length and 0.0 <= self.overlap < np.inf):
            raise InputError(f"contacts: overlap is {self.overlap!r}; expected a length [m], not negative")

        for kind in KINDS:
            self._checked_values(kind)

    @property
    def differs_in_runs(self) -> bool:
        """Whether runs side by side have a friction or restitution of their own."""
        return any(np.ndim(x) for kind in KINDS for x in self._checked_values(kind).values())

    def values(self, model: Model) -> list[tuple[str, int, np.ndarray]]:
        """What is given for the contacts of a model: its kind, the number of the contact, the values (...,)."""
        names, out = [c.name for c in model.contacts], []
        for kind in KINDS:
            given = self._checked_values(kind)
            if given and not names:
                raise InputError(
                    f"contacts: {kind} is given, and model {model.name!r} has no contacts; see model.with_contact and "
                    "model.with_ground"
                )
            given = dict.fromkeys(names, given[ALL]) if ALL in given else given
            for name, x in given.items():
                if name not in names:
                    raise InputError(f"contacts: {kind} of {name!r}: there is no such contact; {nearest(name, names)}")
                out.append((kind, names.index(name), x))
        return out

    def _checked_values(self, kind: str) -> dict[Any, np.ndarray]:
        """The values of a kind by contact, or of ALL."""
        given = getattr(self, kind)
        if given is None:
            return {}
        named = dict(given) if isinstance(given, Mapping) else {ALL: given}
        return {name: _numbers(kind, name, x) for name, x in named.items()}


def _numbers(kind: str, name: Any, x: Any) -> np.ndarray:
    """Values (...,) of a kind that users give; name: of the contact, or ALL."""
    top = 1.0 if kind == "restitution" else np.inf
    owner = f"contacts: {kind}" if name is ALL else f"contacts: {kind} of {name!r}"
    try:
        values = np.asarray(x)
        values = values.astype(float) if values.dtype.kind in "fiu" else np.zeros(0)
    except (TypeError, ValueError):
        values = np.zeros(0)
    if not values.size:
        raise InputError(f"{owner} is {shortened(x)}; expected a number, or an array of them with one for each run")
    fits = (values >= 0.0) & (values <= top) & np.isfinite(values)
    if not fits.all():
        bound = "between 0 and 1" if kind == "restitution" else "not negative"
        at = np.argwhere(~fits)[0].tolist()
        of_run = f" of run {at[0] if len(at) == 1 else tuple(at)}" if at else ""
        raise InputError(f"{owner}{of_run} is {values[tuple(at)]:g}; must be a finite number, {bound}")
    return values


@dataclass(frozen=True)
class ContactsOfRun:
    """The contact points of a run, and its settings."""

    model: Model
    points: ContactPoints
    settings: Settings

    def constants(self) -> dict[str, np.ndarray]:
        """The coefficients (..., n · 7) of all points, by the name of their array."""
        values = self.settings.values(self.model)
        shape = self._batch(values)
        own = coefficients(self.points).reshape(self.points.n, -1)
        rows = np.broadcast_to(own, (*shape, *own.shape)).copy()
        for kind, contact, x in values:
            chosen = [i for i, k in enumerate(self.points.contact_of) if k == contact]
            rows[..., chosen, COEFFICIENTS.index(kind)] = x[..., None]
        return {"contact.k": rows.reshape(*shape, -1)}

    def _batch(self, values: list[tuple[str, int, np.ndarray]]) -> tuple[int, ...]:
        """The axes of runs side by side that all values fit."""
        shapes = {f"{kind} of {self.model.contacts[k].name!r}": x.shape for kind, k, x in values if x.shape}
        for name, shape in shapes.items():
            refuse_column(f"{name} has", shape, shapes)
        try:
            return np.broadcast_shapes(*shapes.values())
        except ValueError:
            words = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise InputError(f"contacts: these have different numbers of runs: {words}") from None


def refuse_column(owner: str, shape: tuple[int, ...], others: Mapping[str, tuple[int, ...]]) -> None:
    """Raise InputError where a shape (runs, 1) stands beside one of (runs,): together they make runs × runs."""
    for name, runs in others.items():
        if shape == (*runs, 1) and runs and runs[-1] > 1:
            words = f"contacts: {owner} the shape {shape} and {name} {runs}, which makes {runs[-1]} × {runs[-1]} runs"
            raise InputError(f"{words}. One number a run has the shape {runs}: leave out its last axis, [..., 0]")


def contacts_of(model: Model, contacts: str | Settings) -> ContactsOfRun | None:
    """The contacts of a run; None where there are none, or they are ignored."""
    if not (isinstance(contacts, Settings) or (isinstance(contacts, str) and contacts in IMPACTS)):
        raise InputError(f"contacts is {contacts!r}; expected 'steps', 'events', 'ignore' or sl.contacts.Settings")
    settings = contacts if isinstance(contacts, Settings) else Settings(contacts)
    settings.values(model)
    if not model.contacts or settings.impacts == "ignore":
        return None
    return ContactsOfRun(model, contact_points(model, mechanism(model)), settings)
