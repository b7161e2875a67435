"""The parts of a mechanism that move without regard to each other: nothing but the world joins them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.loops.measuring import mechanism_of
from spanloop.loops.structure import rank, singular_values
from spanloop.model import Model


@dataclass(frozen=True)
class Part:
    """Joints that hang together, and the freedoms that the loops leave them."""

    joints: tuple[str, ...]
    mobility: int


def parts(model: Model, jacobian: np.ndarray) -> tuple[Part, ...]:
    """The parts, with their mobility for rows (rows, nv) of a scaled Jacobian."""
    m, out = mechanism_of(model), []
    for links in _groups(len(m.links), _ties(m)):
        columns = [k for i in links for k in range(m.links[i].v.start, m.links[i].v.stop)]
        left = len(columns) - rank(singular_values(jacobian[:, columns]))
        out.append(Part(tuple(m.links[i].name for i in links), left))
    return tuple(out)


def _ties(m) -> list[tuple[int, int]]:
    """Pairs of links that a joint, a loop or a coupling joins."""
    pairs = [(link.number, link.parent) for link in m.links]
    pairs += [(c.a.link, c.b.link) for c in m.closures] + [(g.link, g.source) for g in m.gears]
    return [(a, b) for a, b in pairs if a >= 0 and b >= 0]


def _groups(count: int, ties: list[tuple[int, int]]) -> list[list[int]]:
    group = list(range(count))
    for a, b in ties:
        old, new = group[a], group[b]
        group = [new if g == old else g for g in group]
    return [[i for i in range(count) if group[i] == g] for g in dict.fromkeys(group)]
