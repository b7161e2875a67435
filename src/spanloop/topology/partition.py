"""Which links form parts of a mechanism that meet only at the support and at a hub: the arms that hold an object, the
legs that carry a body, the limbs of a trunk, machines that stand beside each other.

The support is the world with all links whose motion is given. A hub is a link, or two of them, without which the rest
falls into parts. Joints, closures and gears all join links.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from spanloop.topology.mechanism import Mechanism

MANY = 16  # branching links among which pairs are looked at


def parts_of(mechanism: Mechanism) -> tuple[tuple[int, ...], ...]:
    """Numbers of the links of each part; nothing if no two parts are alike in what they are joined to.

    The hub leaves the smallest largest part, in freedoms.
    """
    support = _support(mechanism)
    near = _neighbours(mechanism)
    links = [link.number for link in mechanism.links if link.number not in support]
    branching = [i for i in links if len(near[i]) > 2]
    hubs: list[tuple[int, ...]] = [(), *((i,) for i in links)]
    if len(branching) <= MANY:
        hubs += combinations(branching, 2)
    best: tuple[tuple[int, ...], ...] = ()
    least = mechanism.nv + 1
    for hub in hubs:
        found = _components(near, [i for i in links if i not in hub])
        largest = max((_freedoms(mechanism, part) for part in found), default=0)
        if largest < least and _alike(near, found, (support, *({i} for i in hub))):
            best, least = found, largest
    return best


def _support(mechanism: Mechanism) -> set[int]:
    out = {-1}
    for link in mechanism.links:
        if link.driven and link.parent in out:
            out.add(link.number)
    return out


def _neighbours(mechanism: Mechanism) -> dict[int, set[int]]:
    near: dict[int, set[int]] = {i: set() for i in range(-1, len(mechanism.links))}
    pairs = [(link.number, link.parent) for link in mechanism.links]
    pairs += [(c.a.link, c.b.link) for c in mechanism.closures]
    pairs += [(g.link, g.source) for g in mechanism.gears]
    for a, b in pairs:
        near[a].add(b)
        near[b].add(a)
    return near


def _components(near: dict[int, set[int]], links: list[int]) -> tuple[tuple[int, ...], ...]:
    left, out = set(links), []
    for start in links:
        if start not in left:
            continue
        left.remove(start)
        part = [start]
        for i in part:
            fresh = near[i] & left
            left -= fresh
            part += sorted(fresh)
        out.append(tuple(sorted(part)))
    return tuple(out)


def _alike(near: dict[int, set[int]], found: Iterable[tuple[int, ...]], ends: tuple[set[int], ...]) -> bool:
    """Are two parts joined to the same of these ends? (Those of a chain that is cut in two are not.)"""
    met = [tuple(any(near[i] & end for i in part) for end in ends) for part in found]
    return len(set(met)) < len(met)


def _freedoms(mechanism: Mechanism, part: Iterable[int]) -> int:
    return sum(mechanism.links[i].kind.nv for i in part)
