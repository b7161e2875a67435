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
    closing, within, at_reference = list[Edge](), list[Edge](), list[Edge]()
    for edge in sorted((e for e in edges if not {e.a, e.b} <= support), key=lambda e: _rank(mechanism, e)):
        (at_reference if reference in (edge.a, edge.b) else within).append(edge)
    for edge in within + at_reference:
        if reference in (edge.a, edge.b) and parts.of(edge.other(reference)) == parts.of(WORLD):
            continue  # a tip
        if parts.of(edge.a) == parts.of(edge.b) or not _carries(mechanism, edge):
            closing.append(edge)
        else:
            parts.join(edge.a, edge.b)
    return {edge: parts.of(edge.a) == parts.of(edge.b) for edge in sorted(closing, key=edges.index)}


def rows_of(mechanism, edge: Edge) -> int:
    """How many directions a general joint holds."""
    if edge.sort == CLOSURE:
        return len(mechanism.closures[edge.number].rows)
    link = mechanism.links[edge.number]
    return 6 if link.driven else 6 - link.kind.nv


def _rank(mechanism, edge: Edge) -> tuple[int, int]:
    """Joints of the tree, then closures, those with many rows first, then the joints of bodies that float."""
    if edge.sort == CLOSURE:
        return 1, -rows_of(mechanism, edge)
    return 2 * mechanism.links[edge.number].floats, 0


def _carries(mechanism, edge: Edge) -> bool:
    """Not a contact that is switched, nor one without a motion space of its own."""
    if edge.sort == JOINT:
        return True
    closure = mechanism.closures[edge.number]
    return not closure.switchable and (len(closure.rows) == 6 or closure.kind.carries)


class _Parts:
    """Links in parts that grow together."""

    def __init__(self, support: frozenset[int]):
        self.above = dict.fromkeys(support - {WORLD}, WORLD)

    def of(self, link: int) -> int:
        while link in self.above:
            link = self.above[link]
        return link

    def join(self, a: int, b: int) -> None:
        a, b = self.of(a), self.of(b)
        self.above[max(a, b)] = min(a, b)
