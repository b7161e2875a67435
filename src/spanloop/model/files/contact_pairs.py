"""Pairs of shapes that collide as a file describes them, and the contacts of those that are supported.

A file describes pairs by what it leaves out (masks, excluded bodies, neighbours), so there can be many: every pair is
followed in every step of a run, whether its shapes are near or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from spanloop.errors import InputError, UnsupportedError, listed
from spanloop.model.contacts.contact import PAIRS, Contact, ContactSide
from spanloop.model.files.load_notes import LoadNotes
from spanloop.model.parts import WORLD, Geometry

MOST_PAIRS = 64
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

    @property
    def is_fixed(self) -> bool:
        """Whether the world carries it."""
        return self.link == WORLD


@dataclass(frozen=True)
class Pair:
    """Two shapes that collide; values: friction, torsion, rolling and restitution; name: "" for one from the shapes."""

    a: Side
    b: Side
    values: dict[str, float] = field(default_factory=dict)
    name: str = ""
    where: str = ""

    @property
    def is_supported(self) -> bool:
        """Whether the gap between the two shapes is known."""
        shapes = (self.a.what, self.b.what)
        known = shapes in PAIRS or shapes[::-1] in PAIRS
        return known and self.a.geometry is not None and self.b.geometry is not None

    @property
    def is_on_ground(self) -> bool:
        """Whether one of the shapes is fixed to the world."""
        return self.a.is_fixed or self.b.is_fixed

    @property
    def kind(self) -> str:
        """The two kinds of shapes, in alphabetical order."""
        return " with ".join(sorted((self.a.what, self.b.what)))


def check_choice(contacts: bool | str) -> bool | str:
    """What the caller of load asks for: no contacts, all, or those with shapes fixed to the world."""
    if contacts not in CHOICES or (isinstance(contacts, int) and not isinstance(contacts, bool)):
        raise InputError(f"load: contacts is {contacts!r}; expected True, False or 'ground'")
    return contacts


def contacts_of(described: Sequence[Pair], contacts: bool | str, file: str, notes: LoadNotes) -> tuple[Contact, ...]:
    """The contacts that the caller asks for; a note lists the pairs that are left out."""
    pairs = [p for p in described if p.a.link != p.b.link]
    wanted = [p for p in pairs if p.is_on_ground or contacts != "ground"]
    supported = [p for p in wanted if p.is_supported]
    if not contacts:
        _note_unread(supported, len(wanted), notes)
        return ()
    missing = [p.kind for p in wanted if not p.is_supported]
    if missing:
        notes.add("contacts of shapes without a known gap left out", _counted(missing))
    if len(pairs) < len(described):
        notes.add("contacts of shapes on one link left out", _count(len(described) - len(pairs)))
    if contacts == "ground" and len(pairs) > len(wanted):
        notes.add("contacts between shapes that both move left out", _count(len(pairs) - len(wanted)))
    if len(supported) > MOST_PAIRS:
        raise UnsupportedError(_too_many(supported, file))
    return _named(supported)


def _note_unread(supported: Sequence[Pair], described: int, notes: LoadNotes) -> None:
    if not described:
        return
    on_ground = sum(p.is_on_ground for p in supported)
    if not supported:
        how = "no pair of these shapes is supported"
    elif len(supported) <= MOST_PAIRS:
        how = f"sl.load(path, contacts=True) reads {_all_of(len(supported), described)}"
    elif 0 < on_ground <= MOST_PAIRS:
        how = f"sl.load(path, contacts='ground') reads the {on_ground} with shapes fixed to the world"
    else:
        how = f"more than {MOST_PAIRS}; {_BY_HAND}"
    notes.add(f"contacts left out; {how}", f"{_count(described)} of shapes")


def _all_of(n: int, described: int) -> str:
    return "them" if n == described else f"{n} of them"


def _too_many(pairs: Sequence[Pair], file: str) -> str:
    """A sentence with the groups of pairs that are largest, and what to do."""
    groups = Counter(" with ".join(sorted((p.a.at, p.b.at))) for p in pairs)
    shown = listed([f"{bodies} ({n})" for bodies, n in groups.most_common(4)], 4)
    on_ground = sum(p.is_on_ground for p in pairs)
    ground = f"contacts='ground' reads the {on_ground} with shapes fixed to the world; or "
    advice = (
        ground if 0 < on_ground <= MOST_PAIRS else ""
    ) + f"choose pairs after loading without contacts: {_BY_HAND}"
    return (
        f"{file}: {len(pairs)} pairs of shapes collide; {MOST_PAIRS} at most are read, as a run follows every pair in "
        f"every step. Largest groups: {shown}. Try: {advice}"
    )


def _count(n: int) -> str:
    return f"{n} pair" + "s" * (n != 1)


def _counted(kinds: Sequence[str]) -> str:
    counts = Counter(kinds).most_common()
    shown = ", ".join(f"{n} of {kind}" for kind, n in counts[:4])
    return shown + (f" and {sum(n for _, n in counts[4:])} others" if len(counts) > 4 else "")


def _named(pairs: Sequence[Pair]) -> tuple[Contact, ...]:
    """Contacts with names of their own: that of the shape on the only ground, else those of both shapes."""
    grounds = {p.b.name for p in pairs if p.b.is_fixed and p.b.what == "plane"}
    taken: set[str] = set()
    out = []
    for p in pairs:
        alone = len(grounds) == 1 and p.b.name in grounds
        contact = _contact(p, p.name or (p.a.name if alone else f"{p.a.name}:{p.b.name}"))
        while taken & {contact.name, *contact.point_names}:
            contact = _contact(p, contact.name + "_")
        taken |= {contact.name, *contact.point_names}
        out.append(contact)
    return tuple(out)


def _contact(p: Pair, name: str) -> Contact:
    a, b = (ContactSide(side.at, side.geometry) for side in (p.a, p.b) if side.geometry is not None)
    return Contact(name, a, b, where=p.where, **p.values)  # type: ignore[arg-type]
