"""Which bodies form a simple closed chain: the reference member, the support, and the chains between them.

Joints and closures are general joints alike: they join two bodies. The support is the world with all links whose motion
is given. Without the reference member the bodies must form trees, each joined to the support, or to the reference
member, once. Hops lead from the support outward, whatever the spanning tree does: in a Type 0 mechanism (arms,
fingers) they follow its joints, in a Type 1 mechanism (legs) they begin at the feet and run against them. [Lilly &
Orin, section 1]
"""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.errors import UnsupportedError

JOINT, CLOSURE = "joint", "closure"


@dataclass(frozen=True)
class Edge:
    """A joint of the tree (number of its link) or a closure (its number) between links a (parent side) and b."""

    sort: str
    number: int
    a: int  # −1 is the world
    b: int

    def other(self, link: int) -> int:
        return self.b if link == self.a else self.a


@dataclass(frozen=True)
class Hop:
    """A general joint that carries a link, on the next body toward the support (or the reference member)."""

    link: int
    base: int
    edge: Edge
    chain: int | None  # none on the reference member


@dataclass(frozen=True)
class Tip:
    """A general joint between the reference member and a link of a chain, or of the support."""

    link: int
    edge: Edge
    chain: int  # number of the chain; each tip on the support is a chain without links


@dataclass(frozen=True)
class Chains:
    """A mechanism seen as chains between support and reference member; hops have bases first."""

    reference: int
    support: frozenset[int]
    hops: tuple[Hop, ...]
    tips: tuple[Tip, ...]
    n_chains: int  # with links

    @property
    def outward(self) -> bool:
        """Do all hops follow the joints of the spanning tree, and does the reference member float?"""
        along = all(h.edge.sort == JOINT and h.edge.number == h.link for h in self.hops)
        return along and all(t.edge.sort == CLOSURE or t.link in self.support for t in self.tips)


class _NoChains(Exception):
    """Why a link cannot be the reference member."""


def simple_chains(mechanism) -> Chains:
    """The chains of a mechanism, with the reference member that floats, or else meets the most chains."""
    if mechanism.gears:
        raise UnsupportedError(
            f"method 'simple_closed_chain' has no couplings between joints ({mechanism.gears[0].name!r}); "
            "use 'elimination'"
        )
    floating = [link for link in mechanism.links if link.floats]
    others = [link for link in mechanism.links if not link.floats]
    reasons: list[str] = []
    for links in (floating, others):
        found = []
        for link in links:
            try:
                found.append(_around(mechanism, link.number))
            except _NoChains as reason:
                reasons.append(f"with the body on joint {link.name!r} as that one, {reason}")
        if found:
            return max(found, key=lambda c: c.n_chains)
    raise UnsupportedError(
        "method 'simple_closed_chain' needs one reference member without which every loop is open; "
        f"{(reasons or ['nothing moves'])[0]}. Use 'elimination'"
    )


def _around(mechanism, reference: int) -> Chains:
    support = given_links(mechanism)
    if reference in support:
        raise _NoChains("its motion is given")
    edges = [Edge(JOINT, link.number, link.parent, link.number) for link in mechanism.links]
    edges += [Edge(CLOSURE, c.number, c.a.link, c.b.link) for c in mechanism.closures]
    walk = _Walk(mechanism, reference, support, edges)
    for edge in edges:
        ends = {edge.a, edge.b}
        if len(ends & support) == 1 and reference not in ends:
            walk.chain(next(iter(ends & support)), edge)
    n_chains = walk.count
    for edge in edges:
        ends = {edge.a, edge.b}
        if edge in walk.used or ends <= support:
            continue
        if reference in ends and edge.other(reference) in support:
            walk.tips.append(Tip(edge.other(reference), edge, walk.count))
            walk.count += 1
        elif reference in ends:
            walk.branch(edge)
    return Chains(reference, support, tuple(walk.hops), tuple(walk.tips), n_chains)


def given_links(mechanism) -> frozenset[int]:
    """The world and the links whose motion is given: driven, and so on down to the world."""
    out = {-1}
    for link in mechanism.links:
        if link.driven and link.parent in out:
            out.add(link.number)
    return frozenset(out)


class _Walk:
    """Hops and tips as they are found."""

    def __init__(self, mechanism, reference, support, edges):
        self.mechanism, self.reference, self.support = mechanism, reference, support
        self.at: dict[int, list[Edge]] = {}
        for edge in edges:
            for link in {edge.a, edge.b}:
                self.at.setdefault(link, []).append(edge)
        self.hops: list[Hop] = []
        self.tips: list[Tip] = []
        self.used: set[Edge] = set()
        self.seen: set[int] = set()
        self.count = 0

    def chain(self, base: int, edge: Edge) -> None:
        """All bodies that the support carries through this general joint."""
        self._grow(base, edge, self.count)
        self.count += 1

    def branch(self, edge: Edge) -> None:
        """All bodies that only the reference member carries."""
        self._grow(self.reference, edge, None)

    def _grow(self, base: int, edge: Edge, chain: int | None) -> None:
        waiting = [(base, edge)]
        while waiting:
            base, edge = waiting.pop(0)
            link = edge.other(base)
            if link in self.seen or link in self.support or link == base:
                raise _NoChains(f"{self._name(edge)} closes a loop inside a chain")
            self.seen.add(link)
            self.used.add(edge)
            self.hops.append(Hop(link, base, edge, chain))
            for e in self.at[link]:
                if e in self.used:
                    continue
                if e.other(link) != self.reference:
                    waiting.append((link, e))
                elif chain is None:
                    raise _NoChains(f"{self._name(e)} closes a loop that does not reach the support")
                else:
                    self.used.add(e)
                    self.tips.append(Tip(link, e, chain))

    def _name(self, edge: Edge) -> str:
        if edge.sort == JOINT:
            return f"joint {self.mechanism.links[edge.number].name!r}"
        return f"loop {self.mechanism.closures[edge.number].name!r}"
