"""Links and general joints as a graph: which joints carry links, and which close loops.

Joints and closures are general joints alike: they join two bodies. The support (the world with all links whose motion
is given) counts as one body. Without the reference member the others fall into parts. The part with the support has
the chains; the other parts hang on the reference member alone. A joint that is not needed to hold its part together
closes a loop inside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

JOINT, CLOSURE = "joint", "closure"
WORLD = -1


@dataclass(frozen=True)
class Edge:
    """A joint of the tree (number of its link) or a closure (its number) between links a (parent side) and b."""

    sort: str
    number: int
    a: int  # −1 is the world
    b: int

    def other(self, link: int) -> int:
        return self.b if link == self.a else self.a


def general_edges(mechanism) -> list[Edge]:
    """All general joints, those of the tree first."""
    joints = [Edge(JOINT, link.number, link.parent, link.number) for link in mechanism.links]
    return joints + [Edge(CLOSURE, c.number, c.a.link, c.b.link) for c in mechanism.closures]


def given_links(mechanism) -> frozenset[int]:
    """The world and the links whose motion is given: driven, and so on down to the world."""
    out = {WORLD}
    for link in mechanism.links:
        if link.driven and link.parent in out:
            out.add(link.number)
    return frozenset(out)


def closing_edges(mechanism, edges: Sequence[Edge], reference: int, support: frozenset[int]) -> dict[Edge, bool]:
    """Joints that carry nothing and are no tips of chains; of each: does it close a loop inside its part?

    The others join a part that hangs on the reference member to a chain or the support.
    """
    parts = _Parts(support)
    moving = [e for e in edges if not {e.a, e.b} <= support]
    within = [e for e in moving if reference not in (e.a, e.b)]
    floating = [e for e in within if e.sort == JOINT and mechanism.links[e.number].floats]
    contacts = [e for e in within if _carries(mechanism, e)]
    contacts.sort(key=lambda e: -rows_of(mechanism, e))
    for edge in within:
        if edge.sort == JOINT and not mechanism.links[edge.number].floats:
            parts.join(edge)
    parts.reach(contacts)
    for edge in floating:
        parts.join(edge)
    parts.reach(contacts)
    for edge in moving:
        if edge.sort == JOINT and reference in (edge.a, edge.b) and not parts.on_support(edge.other(reference)):
            parts.join(edge)
    tips = {e for e in moving if reference in (e.a, e.b) and parts.on_support(e.other(reference))}
    left = [e for e in moving if e not in tips and e not in parts.joined]
    return {e: parts.of(e.a) == parts.of(e.b) for e in left}


def rows_of(mechanism, edge: Edge) -> int:
    """How many directions a general joint holds."""
    if edge.sort == CLOSURE:
        return len(mechanism.closures[edge.number].rows)
    link = mechanism.links[edge.number]
    return 6 if link.driven else 6 - link.kind.nv


def _carries(mechanism, edge: Edge) -> bool:
    """Can a chain stand on this closure? Not if it is switched, nor if it has no motion space of its own."""
    if edge.sort == JOINT:
        return False
    closure = mechanism.closures[edge.number]
    return not closure.switchable and (len(closure.rows) == 6 or closure.kind.carries)


class _Parts:
    """Links in parts that grow together, the support being one body; `joined` are the joints that did it."""

    def __init__(self, support: frozenset[int]):
        self.above = dict.fromkeys(support - {WORLD}, WORLD)
        self.joined: set[Edge] = set()

    def of(self, link: int) -> int:
        while link in self.above:
            link = self.above[link]
        return link

    def on_support(self, link: int) -> bool:
        return self.of(link) == WORLD

    def join(self, edge: Edge) -> None:
        """Two parts into one, unless they are."""
        a, b = self.of(edge.a), self.of(edge.b)
        if a != b:
            self.above[max(a, b)] = min(a, b)
            self.joined.add(edge)

    def reach(self, contacts: Sequence[Edge]) -> None:
        """Stand parts on that with the support, through contacts, as far as they lead; the first ones first."""
        while True:
            edge = next((e for e in contacts if self.on_support(e.a) != self.on_support(e.b)), None)
            if edge is None:
                return
            self.join(edge)
