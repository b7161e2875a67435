"""Which bodies form a simple closed chain: the reference member, the support, and the chains between them.

The support is the world with all links whose motion is given. Hops lead from it outward, whatever the spanning tree
does: in a Type 0 mechanism (arms, fingers) they follow its joints, in a Type 1 mechanism (legs) they begin at the feet
and run against them. [Lilly & Orin, section 1] Joints that carry nothing close loops (general_edges.py): between the
reference member and a chain (its tip), or inside a chain. Chains that a loop joins belong to one group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from spanloop.algorithms.papers.lilly_orin.joint_graph import (
    JOINT,
    Edge,
    closing_edges,
    general_edges,
    given_links,
    rows_of,
)
from spanloop.errors import UnsupportedError


@dataclass(frozen=True)
class Hop:
    """A general joint that carries a link, on the next body toward the support (or the reference member)."""

    link: int
    base: int
    edge: Edge
    chain: int | None  # none on the reference member
    group: int


@dataclass(frozen=True)
class Tip:
    """A general joint that closes a loop: from a link of a chain, or of the support, to the reference member.

    inner: does it close a loop inside a chain, or inside what the reference member carries? Then the other end is a
    link there, or on the support, or the reference member.
    """

    link: int
    other: int
    edge: Edge
    group: int  # each tip on the support is a group without links
    inner: bool = False


@dataclass(frozen=True)
class Chains:
    """A mechanism seen as chains between support and reference member; hops have bases first."""

    reference: int
    floats: bool  # does the reference member?
    support: frozenset[int]
    hops: tuple[Hop, ...]
    tips: tuple[Tip, ...]

    @property
    def n_chains(self) -> int:
        """With links."""
        return len({h.group for h in self.hops if h.chain is not None})

    @property
    def outward(self) -> bool:
        """Do all hops follow the joints of the spanning tree, and does the reference member float?"""
        along = all(h.edge.sort == JOINT and h.edge.number == h.link for h in self.hops)
        cut = [t for t in self.tips if t.edge.sort == JOINT and t.edge.number != self.reference]
        return along and self.floats and not cut

    @property
    def closed_on_reference(self) -> bool:
        """Has what hangs on the reference member alone loops of its own, or does it touch the support?"""
        carried = {h.link for h in self.hops if h.chain is None}
        return any(t.link in carried or t.other in carried for t in self.tips)


def simple_chains(mechanism) -> Chains:
    """The chains of a mechanism, around a reference member that floats, if one does.

    Of several it is the one without which all loops are open, or that leaves the least to factor, and meets the most
    chains.
    """
    if mechanism.gears:
        raise UnsupportedError(
            f"method 'simple_closed_chain' has no couplings between joints ({mechanism.gears[0].name!r}); "
            "use 'elimination'"
        )
    edges, support = general_edges(mechanism), given_links(mechanism)
    for edge in edges:
        if edge.a == edge.b and edge.a not in support:
            raise UnsupportedError(
                "method 'simple_closed_chain' needs general joints between two bodies; loop "
                f"{mechanism.closures[edge.number].name!r} joins two frames of one. Use 'elimination'"
            )
    moving = [link for link in mechanism.links if link.number not in support]
    if not moving:
        raise UnsupportedError(
            "method 'simple_closed_chain' needs a reference member; nothing moves freely. Use 'elimination'"
        )
    floating = [link for link in moving if link.floats]
    found = [_around(mechanism, link.number, support, edges) for link in floating or moving]
    return min(found, key=lambda c: (_work(mechanism, c), -c.n_chains))


def _work(mechanism, chains: Chains) -> int:
    """Of factoring the rows of all groups: the cubes of their numbers; none where no loop lies inside a chain."""
    if not any(t.inner for t in chains.tips):
        return 0
    rows: dict[int, int] = {}
    for t in chains.tips:
        rows[t.group] = rows.get(t.group, 0) + rows_of(mechanism, t.edge)
    return 1 + sum(n**3 for n in rows.values())


def _around(mechanism, reference: int, support: frozenset[int], edges: list[Edge]) -> Chains:
    closing = closing_edges(mechanism, edges, reference, support)
    walk = _Walk(reference, edges, closing)
    for edge in edges:
        ends = {edge.a, edge.b}
        if edge not in walk.used and len(ends & support) == 1 and reference not in ends:
            walk.grow(next(iter(ends & support)), edge, walk.count)
    for edge in edges:
        ends = {edge.a, edge.b}
        if edge in walk.used or ends <= support:
            continue
        if reference in ends and edge.other(reference) in support:
            walk.tips.append(Tip(edge.other(reference), reference, edge, walk.count))
            walk.count += 1
        elif reference in ends:
            walk.grow(reference, edge, None)
    floats = mechanism.links[reference].floats
    return _grouped(Chains(reference, floats, support, tuple(walk.hops), tuple(walk.tips)), closing)


class _Walk:
    """Hops and tips as they are found; `closing` joints are left aside."""

    def __init__(self, reference: int, edges, closing):
        self.reference = reference
        self.at: dict[int, list[Edge]] = {}
        for edge in edges:
            for link in {edge.a, edge.b}:
                self.at.setdefault(link, []).append(edge)
        self.hops: list[Hop] = []
        self.tips: list[Tip] = []
        self.used: set[Edge] = set(closing)
        self.count = 0

    def grow(self, base: int, edge: Edge, chain: int | None) -> None:
        """All bodies that the support, or the reference member alone, carries through this general joint."""
        waiting = [(base, edge)]
        while waiting:
            base, edge = waiting.pop(0)
            link = edge.other(base)
            self.used.add(edge)
            self.hops.append(Hop(link, base, edge, chain, self.count))
            for e in self.at[link]:
                if e in self.used:
                    continue
                if e.other(link) != self.reference:
                    waiting.append((link, e))
                else:
                    self.used.add(e)
                    self.tips.append(Tip(link, self.reference, e, self.count))
        self.count += 1


def _grouped(chains: Chains, closing: dict[Edge, bool]) -> Chains:
    """With the joints that are left as tips more, and chains that they join in one group."""
    group = {hop.link: hop.group for hop in chains.hops}
    same: dict[int, int] = {}

    def first(n: int) -> int:
        return first(same[n]) if n in same else n

    more = []
    for edge, inner in closing.items():
        link = edge.a if edge.a in group else edge.b
        if edge.other(link) in group:
            a, b = sorted((first(group[link]), first(group[edge.other(link)])))
            if a != b:
                same[b] = a
        more.append(Tip(link, edge.other(link), edge, group[link], inner))
    return _renumbered(replace(chains, tips=(*more, *chains.tips)), first) if more else chains


def _renumbered(chains: Chains, first: Callable[[int], int]) -> Chains:
    hops = tuple(replace(h, group=first(h.group)) for h in chains.hops)
    return replace(chains, hops=hops, tips=tuple(replace(t, group=first(t.group)) for t in chains.tips))
