"""How a run treats its contacts: sl.simulate(..., contacts="events"), or sl.contacts.Settings(...)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.algorithms.contact.points import ContactPoints, contact_points
from spanloop.contacts.contact_step import COEFFICIENTS, coefficients
from spanloop.contacts.geometry_check import OVERLAP
from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.topology import mechanism

IMPACTS = ("steps", "events", "ignore")
JAMS = ("continue", "end")


@dataclass(frozen=True)
class Settings:
    """What happens at the contacts of a run: sl.simulate(..., contacts=sl.contacts.Settings("events")).

    Args:
        impacts: "steps" solves contacts once a step, "events" also locates the moments at which gaps close, "ignore"
            leaves contacts out.
        friction: {"contact": µ}, a number, or (...,) for runs side by side; by default that of the model.
        restitution: {"contact": e} in the same way.
        overlap: by how much hard shapes may overlap at the start [m]; the first step parts them.
        on_jam: "continue" or "end": what a run does where friction presses a sliding contact into the surface so that
            no finite force answers (Painlevé). It goes on with an impulse that stops the slip; run.audit() says so.

    Raises:
        InputError: an argument is none of these, or negative, or a restitution above 1.

    Example:
        >>> slippery = sl.contacts.Settings(friction={"box": [0.1, 0.2, 0.3]})
    """

    impacts: str = "steps"
    friction: Mapping[str, Any] | None = None
    restitution: Mapping[str, Any] | None = None
    on_jam: str = "continue"
    overlap: float = OVERLAP

    def __post_init__(self) -> None:
        if self.impacts not in IMPACTS:
            raise InputError(
                f"contacts is {self.impacts!r}; expected 'steps', 'events', 'ignore' or sl.contacts.Settings"
            )
        if self.on_jam not in JAMS:
            raise InputError(f"on_jam is {self.on_jam!r}; expected 'continue' or 'end'")
        for name, given in (("friction", self.friction), ("restitution", self.restitution)):
            if not isinstance(given, Mapping | None):
                raise InputError(f"contacts: {name} is {given!r:.200}; expected {{'contact': number}}")
        length = isinstance(self.overlap, int | float | np.number) and not isinstance(self.overlap, bool)
        if not (length and 0.0 <= self.overlap < np.inf):
            raise InputError(f"overlap is {self.overlap!r}; expected a length [m], not negative")


@dataclass(frozen=True)
class ContactsOfRun:
    """The contact points of a run, and its settings."""

    model: Model
    points: ContactPoints
    settings: Settings

    def constants(self) -> dict[str, np.ndarray]:
        """The coefficients (..., n · 7) of all points, by the name of their array."""
        given = [("friction", self.settings.friction or {}), ("restitution", self.settings.restitution or {})]
        values = [self._checked(kind, name, x) for kind, named in given for name, x in named.items()]
        shape = np.broadcast_shapes(*(x.shape for _, _, x in values)) if values else ()
        own = coefficients(self.points).reshape(self.points.n, -1)
        rows = np.broadcast_to(own, (*shape, *own.shape)).copy()
        for kind, contact, x in values:
            chosen = [i for i, k in enumerate(self.points.contact_of) if k == contact]
            rows[..., chosen, COEFFICIENTS.index(kind)] = x[..., None]
        return {"contact.k": rows.reshape(*shape, -1)}

    def _checked(self, kind: str, name: str, x: Any) -> tuple[str, int, np.ndarray]:
        names = [c.name for c in self.model.contacts]
        if name not in names:
            raise InputError(f"contacts: {kind} of {name!r}: there is no such contact; {nearest(name, names)}")
        top = 1.0 if kind == "restitution" else np.inf
        try:
            values = np.asarray(x, float)
        except (TypeError, ValueError):
            values = np.full(1, np.nan)
        if not values.size or not ((values >= 0.0) & (values <= top) & np.isfinite(values)).all():
            bound = "between 0 and 1" if kind == "restitution" else "not negative"
            raise InputError(f"contacts: {kind} of {name!r} is {x!r}; must be {bound}")
        return kind, names.index(name), values


def contacts_of(model: Model, contacts: str | Settings) -> ContactsOfRun | None:
    """The contacts of a run; None where there are none, or they are ignored."""
    if not isinstance(contacts, str | Settings):
        raise InputError(f"contacts is {contacts!r}; expected 'steps', 'events', 'ignore' or sl.contacts.Settings")
    settings = contacts if isinstance(contacts, Settings) else Settings(contacts)
    if not model.contacts or settings.impacts == "ignore":
        return None
    return ContactsOfRun(model, contact_points(model, mechanism(model)), settings)
