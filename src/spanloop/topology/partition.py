"""Which links form parts of a mechanism that meet only at the support and at a hub: the arms that hold an object, the
legs that carry a body, the limbs of a trunk, machines that stand side by side.

The support is the world with all links whose motion is given. A hub is a link, or two of them, without which the rest
falls into parts. Joints, closures and gears all join links.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from typing import TypeVar

from spanloop.topology.mechanism import Mechanism

MANY = 16  # branching links; with more, pairs of them are not tried as hubs

Node = TypeVar("Node", bound=Hashable)


def parts_of(mechanism: Mechanism) -> tuple[tuple[int, ...], ...]:
    """Numbers of the links of each part; empty if no two parts are joined to the same ends.

    The hub is the one whose largest part has the fewest DoF.
    """
    support = _support(mechanism)
    tied = ties(mechanism)
    near: dict[int, set[int]] = {i: set() for i in range(-1, len(mechanism.links))}
    for a, b in tied:
        near[a].add(b)
        near[b].add(a)
    links = [link.number for link in mechanism.links if link.number not in support]
    branching = [i for i in links if len(near[i]) > 2]
    hubs: list[tuple[int, ...]] = [(), *((i,) for i in links)]
    if len(branching) <= MANY:
        hubs += combinations(branching, 2)
    best: tuple[tuple[int, ...], ...] = ()
    least = mechanism.nv + 1
    for hub in hubs:
        found = connected_components([i for i in links if i not in hub], tied)
        largest = max((_dofs(mechanism, part) for part in found), default=0)
        if largest < least and _alike(near, found, (support, *({i} for i in hub))):
            best, least = found, largest
    return best


def _support(mechanism: Mechanism) -> set[int]:
    out = {-1}
    for link in mechanism.links:
        if link.driven and link.parent in out:
            out.add(link.number)
    return out


def ties(mechanism: Mechanism) -> list[tuple[int, int]]:
    """Pairs of links (−1: the world) that a joint, a closure or a gear joins."""
    pairs = [(link.number, link.parent) for link in mechanism.links]
    pairs += [(c.a.link, c.b.link) for c in mechanism.closures]
    return pairs + [(g.link, g.source) for g in mechanism.gears if g.source >= 0]


def connected_components(nodes: Sequence[Node], tied: Iterable[tuple[Node, Node]]) -> tuple[tuple[Node, ...], ...]:
    """Groups of nodes that ties connect, directly or through others; ties to anything else do not count.

    Nodes keep their order within a group, groups the order of their first nodes.
    """
    near: dict[Node, list[Node]] = {x: [] for x in nodes}
    for a, b in tied:
        if a in near and b in near:
            near[a].append(b)
            near[b].append(a)
    group: dict[Node, int] = {}
    for start in nodes:
        if start in group:
            continue
        number, found = len(group), [start]
        group[start] = number
        for x in found:
            fresh = [y for y in near[x] if y not in group]
            group.update(dict.fromkeys(fresh, number))
            found += dict.fromkeys(fresh)
    return tuple(tuple(x for x in nodes if group[x] == k) for k in dict.fromkeys(group[x] for x in nodes))


def _alike(near: dict[int, set[int]], found: Iterable[tuple[int, ...]], ends: tuple[set[int], ...]) -> bool:
    """Are two parts joined to the same of these ends? (Those of a chain that is cut in two are not.)"""
    met = [tuple(any(near[i] & end for i in part) for end in ends) for part in found]
    return len(set(met)) < len(met)


def _dofs(mechanism: Mechanism, part: Iterable[int]) -> int:
    return sum(mechanism.links[i].kind.nv for i in part)
