"""Which bodies form a simple closed chain: the reference member, the support, and the chains between them.

The paper takes this as given. Joints and closures are general joints alike: they join two bodies. The support is the
world with all links whose motion is given, and counts as one body. Hops lead from it outward, whatever the spanning
tree does: in a Type 0 mechanism (arms, fingers) they follow its joints, in a Type 1 mechanism (legs) they begin at the
feet and run against them. [Lilly & Orin, section 1]

Without the reference member the other bodies fall into parts. The part with the support holds the chains; the other
parts hang on the reference member alone. A general joint that is not needed to hold its part together closes a loop:
between the reference member and a chain (its tip), or inside a part. Chains that a loop joins belong to one group.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from spanloop.errors import UnsupportedError
from spanloop.sweeps import Sweep, Values, at_once
from spanloop.sweeps.program import carry_out

JOINT, CLOSURE = "joint", "closure"
WORLD = -1


@dataclass(frozen=True)
class Edge:
    """A joint of the tree (number of its link) or a closure (its number) between links a (parent side) and b."""

    kind: str
    number: int
    a: int  # −1 is the world
    b: int

    def other(self, link: int) -> int:
        return self.b if link == self.a else self.a


def general_edges(mechanism) -> list[Edge]:
    """All general joints, those of the tree first."""
    joints = [Edge(JOINT, link.number, link.parent, link.number) for link in mechanism.links]
    return joints + [Edge(CLOSURE, c.number, c.a.link, c.b.link) for c in mechanism.closures]


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

    inner: it closes a loop inside a chain, or inside what the reference member carries; the other end is then a link
    there, or on the support, or the reference member.
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
    floats: bool  # the reference member does
    support: frozenset[int]
    hops: tuple[Hop, ...]
    tips: tuple[Tip, ...]

    @property
    def n_chains(self) -> int:
        """With links."""
        return len({h.group for h in self.hops if h.chain is not None})

    @property
    def outward(self) -> bool:
        """All hops follow the joints of the spanning tree, and the reference member floats."""
        along = all(h.edge.kind == JOINT and h.edge.number == h.link for h in self.hops)
        cut = [t for t in self.tips if t.edge.kind == JOINT and t.edge.number != self.reference]
        return along and self.floats and not cut

    @functools.cached_property
    def links(self) -> tuple[Body, ...]:
        """The reference member and the link of every hop, each with the place of the body that carries it."""
        place = {self.reference: 0} | {hop.link: k for k, hop in enumerate(self.hops, 1)}
        own = Body(self.reference, -1, None)
        return (own, *(Body(hop.link, place.get(hop.base, -1), hop) for hop in self.hops))

    def along(self, sweep: Sweep) -> Sweep:
        """The sweep over the bodies of the chains instead of the links of the tree.

        world.bodies holds the bodies' values, in the order of `links`; what a sweep inward sends to the support is kept
        at the world, as with a sweep over the tree.
        """

        @functools.wraps(sweep.step)
        def walk_chains(m, here, world) -> Values:
            bodies, kept = [Values(**vars(b)) for b in world.bodies], Values(**vars(world))
            carry_out((sweep,), self, bodies, kept)
            return Values(**{**vars(kept), "bodies": bodies})

        return at_once(walk_chains)


@dataclass(frozen=True)
class Body:
    """A body of the chains: its link in the tree, and what carries it, toward the support or the reference member."""

    number: int
    parent: int  # its place in Chains.links; −1 for the support, and for the reference member
    hop: Hop | None  # none for the reference member

    @property
    def is_reference(self) -> bool:
        return self.hop is None

    @property
    def in_chain(self) -> bool:
        """The support carries it, and not the reference member alone."""
        return self.hop is not None and self.hop.chain is not None


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
        if edge.kind == CLOSURE and edge.a != edge.b and {edge.a, edge.b} <= support:
            raise UnsupportedError(
                f"method 'simple_closed_chain' does not test whether given motions agree; loop "
                f"{mechanism.closures[edge.number].name!r} joins two bodies whose motion is given. Use 'elimination'"
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
    """Work of factoring the rows of all groups: the cubes of their numbers; 0 where no loop lies inside a chain."""
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


# ---- joints that close loops


def given_links(mechanism) -> frozenset[int]:
    """The world and the links whose motion is given: driven, and so on down to the world."""
    out = {WORLD}
    for link in mechanism.links:
        if link.driven and link.parent in out:
            out.add(link.number)
    return frozenset(out)


def closing_edges(mechanism, edges: Sequence[Edge], reference: int, support: frozenset[int]) -> dict[Edge, bool]:
    """Joints that carry no link and are no tips of chains; True for those that close a loop inside their part.

    The others join a part that hangs on the reference member to a chain or the support.
    """
    parts = _Parts(support)
    moving = [e for e in edges if not {e.a, e.b} <= support]
    within = [e for e in moving if reference not in (e.a, e.b)]
    floating = [e for e in within if e.kind == JOINT and mechanism.links[e.number].floats]
    contacts = [e for e in within if _carries(mechanism, e)]
    contacts.sort(key=lambda e: -rows_of(mechanism, e))
    for edge in within:
        if edge.kind == JOINT and not mechanism.links[edge.number].floats:
            parts.join(edge)
    parts.reach(contacts)
    for edge in floating:
        parts.join(edge)
    parts.reach(contacts)
    for edge in moving:
        if edge.kind == JOINT and reference in (edge.a, edge.b) and not parts.on_support(edge.other(reference)):
            parts.join(edge)
    tips = {e for e in moving if reference in (e.a, e.b) and parts.on_support(e.other(reference))}
    left = [e for e in moving if e not in tips and e not in parts.joined]
    return {e: parts.of(e.a) == parts.of(e.b) for e in left}


def rows_of(mechanism, edge: Edge) -> int:
    """How many directions a general joint constrains."""
    if edge.kind == CLOSURE:
        return len(mechanism.closures[edge.number].rows)
    link = mechanism.links[edge.number]
    return 6 if link.driven else 6 - link.kind.nv


def _carries(mechanism, edge: Edge) -> bool:
    """A chain can stand on this closure: it is not switched, and has a motion space of its own."""
    if edge.kind == JOINT:
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
