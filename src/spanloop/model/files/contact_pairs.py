"""Pairs of shapes that collide as a file describes them, and the contacts of those that are supported.

A file describes pairs by what it leaves out (masks, excluded bodies, neighbours), so there can be many: every pair is
followed in every step of a run, whether its shapes are near or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from spanloop.errors import InputError, UnsupportedError, listed
from spanloop.model.contacts.contact import PAIRS, Contact, ContactSide
from spanloop.model.files.load_notes import LoadNotes
from spanloop.model.parts import WORLD, Geometry

MOST_PAIRS = 64
MOST_SHAPES = 3000  # 4.5 million pairs
CHOICES = (False, True, "ground")
_BY_HAND = "model.with_ground and model.with_contact add them by name"


@dataclass(frozen=True)
class Side:
    """A shape that collides: its name, and the body that carries it.

    what: the shape's kind, also one that we do not have; geometry: None of such a shape, its placement in the body;
    link: the body that moves it, through joints without DoF. A body is "world" where there is none.
    """

    name: str
    at: str
    what: str
    geometry: Geometry | None
    link: str


@dataclass(frozen=True)
class Details:
    """What a pair has besides its sides: friction, torsion, rolling and restitution; a name of its own; its place."""

    values: dict[str, float] = field(default_factory=dict)
    name: str = ""
    where: str = ""


@dataclass(frozen=True)
class Colliding:
    """The pairs of shapes that a file lets collide: ends (n, 2), the numbers of their sides; details of number k."""

    sides: Sequence[Side]
    ends: np.ndarray
    details: Callable[[int], Details]

    @cached_property
    def is_apart(self) -> np.ndarray:
        """(n,) whether two links carry the shapes."""
        links = np.unique([side.link for side in self.sides], return_inverse=True)[1][self.ends]
        return links[:, 0] != links[:, 1]

    @cached_property
    def is_supported(self) -> np.ndarray:
        """(n,) whether the gap between the two shapes is known."""
        names = list(dict.fromkeys(side.what for side in self.sides))
        known = np.array([[(a, b) in PAIRS or (b, a) in PAIRS for b in names] for a in names])
        kinds = np.array([names.index(side.what) for side in self.sides])[self.ends]
        has_shape = np.array([side.geometry is not None for side in self.sides])[self.ends]
        return known[kinds[:, 0], kinds[:, 1]] & has_shape.all(axis=1)

    @cached_property
    def is_on_ground(self) -> np.ndarray:
        """(n,) whether one of the shapes is fixed to the world."""
        return np.array([side.link == WORLD for side in self.sides])[self.ends].any(axis=1)

    def sides_of(self, k: int) -> tuple[Side, Side]:
        """The sides of a pair: one that moves first, a plane last."""
        a, b = sorted((self.sides[i] for i in self.ends[k]), key=lambda s: (s.link == WORLD, s.what == "plane"))
        return a, b


def numbered_pairs(shapes: Sequence[int] | np.ndarray, collide: Callable[[int, np.ndarray], np.ndarray]) -> np.ndarray:
    """The pairs (n, 2) of these numbers that collide; collide(a, b): whether a does with each of b (k,)."""
    every = np.asarray(shapes, int)
    found = [np.zeros((0, 2), int)]
    for k, a in enumerate(every.tolist()):
        b = every[k + 1 :]
        b = b[collide(a, b)]
        found.append(np.stack((np.full_like(b, a), b), axis=1))
    return np.concatenate(found)


def too_many_shapes(n: int, contacts: bool | str, file: str, notes: LoadNotes) -> bool:
    """Whether a file has so many shapes that collide that their pairs are not searched for; with a note."""
    if n <= MOST_SHAPES:
        return False
    words = f"{n} shapes collide, of which pairs are not searched for beyond {MOST_SHAPES}"
    if contacts:
        raise UnsupportedError(f"{file}: {words}. Load it without contacts: {_BY_HAND}")
    notes.add(f"contacts left out; {_BY_HAND}", words)
    return True


def check_choice(contacts: bool | str) -> bool | str:
    """What the caller of load asks for: no contacts, all, or those with shapes fixed to the world."""
    if contacts not in CHOICES or (isinstance(contacts, int) and not isinstance(contacts, bool)):
        raise InputError(f"load: contacts is {contacts!r}; expected True, False or 'ground'")
    return contacts


def contacts_of(pairs: Colliding, contacts: bool | str, file: str, notes: LoadNotes) -> tuple[Contact, ...]:
    """The contacts that the caller asks for; notes list the pairs that are left out."""
    if not len(pairs.ends):
        return ()
    if not contacts:
        _note_unread(pairs, notes)
        return ()
    wanted = pairs.is_apart & (pairs.is_on_ground | (contacts != "ground"))
    missing = np.flatnonzero(wanted & ~pairs.is_supported)
    if missing.size:
        notes.add("contacts of shapes without a known gap left out", _kinds(pairs, missing))
    if not pairs.is_apart.all():
        notes.add("contacts of shapes on one link left out", _count((~pairs.is_apart).sum()))
    moving = pairs.is_apart & ~pairs.is_on_ground
    if contacts == "ground" and moving.any():
        notes.add("contacts between shapes that both move left out", _count(moving.sum()))
    found = np.flatnonzero(wanted & pairs.is_supported)
    if found.size > MOST_PAIRS:
        raise UnsupportedError(_too_many(pairs, found, file))
    return _named(pairs, found)


def _note_unread(pairs: Colliding, notes: LoadNotes) -> None:
    described, supported = int(pairs.is_apart.sum()), pairs.is_apart & pairs.is_supported
    n, on_ground = int(supported.sum()), int((supported & pairs.is_on_ground).sum())
    if not described:
        return
    if not n:
        how = "no pair of these shapes is supported"
    elif n <= MOST_PAIRS:
        how = f"sl.load(path, contacts=True) reads {'them' if n == described else f'{n} of them'}"
    elif 0 < on_ground <= MOST_PAIRS:
        how = f"sl.load(path, contacts='ground') reads the {on_ground} with shapes fixed to the world"
    else:
        how = f"more than {MOST_PAIRS}; {_BY_HAND}"
    notes.add(f"contacts left out; {how}", f"{_count(described)} of shapes")


def _too_many(pairs: Colliding, found: np.ndarray, file: str) -> str:
    """A sentence with the groups of pairs that are largest, and what to do."""
    sides = [[side.at for side in pairs.sides_of(k)] for k in found]
    groups = Counter(" with ".join(sorted(bodies)) for bodies in sides).most_common(4)
    on_ground = int(pairs.is_on_ground[found].sum())
    ground = f"contacts='ground' reads the {on_ground} with shapes fixed to the world; or "
    return (
        f"{file}: {found.size} pairs of shapes collide; {MOST_PAIRS} at most are read, as a run follows every pair in "
        f"every step. Largest groups: {listed([f'{bodies} ({n})' for bodies, n in groups], 4)}. "
        f"Try: {ground if 0 < on_ground <= MOST_PAIRS else ''}choose pairs after loading without contacts: {_BY_HAND}"
    )


def _count(n: int) -> str:
    return f"{n} pair" if n == 1 else f"{n} pairs"


def _kinds(pairs: Colliding, numbers: np.ndarray) -> str:
    """How many pairs there are of which kinds, the most frequent first."""
    kinds = Counter(tuple(sorted(side.what for side in pairs.sides_of(k))) for k in numbers).most_common()
    shown = ", ".join(f"{n} of {a} with {b}" for (a, b), n in kinds[:4])
    return shown + (f" and {sum(n for _, n in kinds[4:])} others" if len(kinds) > 4 else "")


def _named(pairs: Colliding, numbers: np.ndarray) -> tuple[Contact, ...]:
    """Contacts with names of their own: that of the shape on the only ground, else those of both shapes."""
    grounds = {b.name for _, b in map(pairs.sides_of, numbers) if b.link == WORLD and b.what == "plane"}
    taken: set[str] = set()
    out = []
    for k in numbers:
        (a, b), details = pairs.sides_of(k), pairs.details(k)
        alone = len(grounds) == 1 and b.name in grounds
        contact = _contact(a, b, details, details.name or (a.name if alone else f"{a.name}:{b.name}"))
        while taken & {contact.name, *contact.point_names}:
            contact = _contact(a, b, details, contact.name + "_")
        taken |= {contact.name, *contact.point_names}
        out.append(contact)
    return tuple(out)


def _contact(a: Side, b: Side, details: Details, name: str) -> Contact:
    one, other = (ContactSide(side.at, side.geometry) for side in (a, b) if side.geometry is not None)
    return Contact(name, one, other, where=details.where, **details.values)  # type: ignore[arg-type]
