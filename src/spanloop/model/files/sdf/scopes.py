"""Scopes of an SDF: poses of links, joints, frames and models that are placed relative to each other by name.

A scope is a model (or the world) with the frames it names. A pose is relative to what `relative_to` names, or to
the scope itself; a joint's to its child, a frame's to what it is attached to. `a::b` is frame b of the model a
inside; `__model__` is the scope itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from spanloop.errors import FileError, nearest
from spanloop.math.vector3 import IDENTITY3
from spanloop.model.exact_rotations import snap_rotation
from spanloop.model.files.load_notes import LoadNotes
from spanloop.model.files.sdf.values import content, read_pose
from spanloop.model.files.xml_reader import Element
from spanloop.model.parts import WORLD, Placement

ITSELF = "__model__"
ROUNDING = 1e-14  # of the lengths that were added: what is left of zeros


@dataclass
class Entry:
    """A named thing with a pose: its tag, what it is placed against and what it moves with."""

    tag: str
    element: Element
    relative_to: str
    placement: Placement
    moves_with: str = ""  # a frame or joint moves with what this names


@dataclass
class Scope:
    """A model, or the ground on which the models stand. `path` leads to it, empty for the ground."""

    path: str
    element: Element
    entries: dict[str, Entry] = field(default_factory=dict)
    inside: dict[str, Scope] = field(default_factory=dict)
    bodies: dict[str, str] = field(default_factory=dict)  # the links that frames move with, as far as known
    known: dict[str, Placement] = field(default_factory=lambda: {"": Placement(), ITSELF: Placement()})

    def full(self, name: str) -> str:
        """The path to a name of this scope."""
        return f"{self.path}::{name}" if self.path else name

    def pose(self, name: str, asked: Element) -> Placement:
        """Where a frame is in this scope; `asked` is the element that names it."""
        if name == WORLD and not self.path:
            return Placement()
        chain: dict[str, Placement] = {}
        while name not in self.known:
            if name in chain:
                raise FileError(f"{asked.where}: {name!r} is placed relative to itself ({_cycle(name, chain)})")
            asked, below, chain[name] = self._step(name, asked)
            name = below
        found = self.known[name]
        for name, placement in reversed(chain.items()):
            found = self.known[name] = joined(found, placement)
        return found

    def _step(self, name: str, asked: Element) -> tuple[Element, str, Placement]:
        """What a frame is placed against, and its pose there."""
        scope, rest = self._inside(name)
        if scope is not None:
            return asked, name[: -len(rest) - 2], scope.pose(rest, asked)
        entry = self.entry(name, asked)
        placement = entry.placement
        anchor = entry.element.attributes.get("placement_frame", "") if entry.tag == "model" else ""
        if anchor:
            placement = joined(placement, self.inside[name].pose(anchor, entry.element).inverse())
        return entry.element, entry.relative_to, placement

    def body(self, name: str, asked: Element) -> str:
        """The path to the link that a frame moves with, or 'world'."""
        chain: dict[str, None] = {}
        while (found := self._body(name, asked)) is None:
            if name in chain:
                raise FileError(f"{asked.where}: {name!r} is attached to itself ({_cycle(name, chain)})")
            chain[name] = None
            entry = self.entry(name, asked)
            asked, name = entry.element, entry.moves_with
        self.bodies |= dict.fromkeys(chain, found)
        return found

    def _body(self, name: str, asked: Element) -> str | None:
        """The path to the link that a frame moves with; None if the frame is attached to another one here."""
        if name in self.bodies:
            return self.bodies[name]
        if name == WORLD or (name in ("", ITSELF) and not self.path):
            return WORLD
        if name in ("", ITSELF):
            return self.canonical(asked)
        scope, rest = self._inside(name)
        if scope is not None:
            return scope.body(rest, asked)
        entry = self.entry(name, asked)
        if entry.tag == "link":
            return self.full(name)
        return self.inside[name].canonical(asked) if entry.tag == "model" else None

    def canonical(self, asked: Element) -> str:
        """The link that the scope's own frame moves with: the one it names, or its first."""
        named = self.element.attributes.get("canonical_link", "").strip()
        if named:
            scope, rest = self._inside(named)
            if (scope or self).entry(rest, self.element).tag != "link":
                raise FileError(f"{self.element.where}: canonical_link is {named!r}, which is not a link")
            return (scope or self).full(rest)
        for name, entry in self.entries.items():
            if entry.tag == "link":
                return self.full(name)
        for scope in self.inside.values():
            return scope.canonical(asked)
        raise FileError(f"{self.element.where}: model {self.element.text('name')!r} has no <link>; expected one")

    def entry(self, name: str, asked: Element) -> Entry:
        """The entry with a name; raises FileError at `asked` if there is none."""
        if name not in self.entries:
            offer = nearest(name, self.entries)
            raise FileError(f"{asked.where}: <{asked.tag}> names {name!r}, which does not exist; {offer}")
        return self.entries[name]

    def _inside(self, name: str) -> tuple[Scope | None, str]:
        """The model inside that a name with :: leads to, and the rest of the name."""
        scope: Scope | None = None
        head, colons, rest = name.partition("::")
        while colons and rest and head in (scope or self).inside:
            scope, name = (scope or self).inside[head], rest
            head, colons, rest = name.partition("::")
        return scope, name


def read_scope(element: Element, path: str, old: bool, notes: LoadNotes) -> Scope:
    """The frames of a model or of the ground, and of the models inside.

    old: before version 1.7, when a link and a joint may share a name.
    """
    scope = Scope(path, element)
    for child in element.children:
        if child.tag == "model":
            inner = child.text("name")
            _enter(scope, inner, _placed(child, "model", "", notes))
            scope.inside[inner] = read_scope(child, scope.full(inner), old, notes)
        elif child.tag == "link":
            _enter(scope, child.text("name"), _placed(child, "link", "", notes))
        elif child.tag == "joint":
            end = content(child.needed("child"))
            name = child.text("name")
            taken = scope.entries.get(name)
            name = joint_key(name) if old and taken is not None and taken.tag != "joint" else name
            _enter(scope, name, _placed(child, "joint", end, notes))
        elif child.tag == "frame" and "name" in child.attributes:
            end = child.attributes.get("attached_to", "").strip()
            _enter(scope, child.text("name"), _placed(child, "frame", end, notes))
    return scope


def joint_key(name: str) -> str:
    """The name under which a joint is kept that shares its name with a link."""
    return f"joint {name}"


def _cycle(name: str, chain: Iterable[str]) -> str:
    names = list(chain)
    return " -> ".join([*names[names.index(name) :][:6], name])


def _placed(element: Element, tag: str, moves_with: str, notes: LoadNotes) -> Entry:
    pose = element.one("pose")
    given = pose.attributes if pose is not None else {}
    relative_to = (given.get("relative_to") or given.get("frame") or "").strip()
    return Entry(tag, element, relative_to or moves_with, read_pose(pose, notes), moves_with)


def _enter(scope: Scope, name: str, entry: Entry) -> None:
    if name in scope.entries:
        other = scope.entries[name]
        raise FileError(
            f"{entry.element.where}: a second {entry.tag} or frame is called {name!r}, the first is a {other.tag} "
            f"at {other.element.where}; names must be unique"
        )
    if "::" in name or (name.startswith("__") and name.endswith("__")) or name == WORLD:
        raise FileError(
            f"{entry.element.where}: a {entry.tag} is called {name!r}; "
            "'world', __name__ and names with '::' have a meaning of their own. Rename it"
        )
    scope.entries[name] = entry


def joined(outer: Placement, inner: Placement) -> Placement:
    """outer @ inner without rounding errors in place of zeros and right angles."""
    both = outer @ inner
    scale = max(map(abs, (*outer.position, *inner.position, *both.position)))
    position = tuple(0.0 if abs(x) <= ROUNDING * scale else x for x in both.position)
    rotation = both.rotation if both.rotation == IDENTITY3 else snap_rotation(both.rotation, ROUNDING)[0]
    return Placement(rotation, position)  # type: ignore[arg-type]
