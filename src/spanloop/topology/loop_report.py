"""A report on the loops of a model: what closes each, through which joints it runs, which ones share joints."""

from __future__ import annotations

from itertools import combinations

from spanloop.errors import in_one_line, listed
from spanloop.model import Model
from spanloop.model.examine.messages import counted
from spanloop.topology.closures import Closure
from spanloop.topology.mechanism import Mechanism, mechanism
from spanloop.topology.partition import connected_components
from spanloop.topology.tree_paths import path


def loops_in_words(model: Model) -> str:
    """One paragraph a loop, and the groups of loops that move each other."""
    if not (model.loops or model.couplings):
        return "no loops: the joints form a tree"
    m = mechanism(model)
    lines = []
    for c, loop in zip(m.closures, model.loops, strict=True):
        ways = [_way(m, end.link, c.meets) for end in (c.a, c.b)]
        where = "the world" if c.meets < 0 else f"joint {m.links[c.meets].name!r}"
        switch = ", switchable" if c.switchable else ""
        lines.append(
            f"loop {c.name!r}: a {c.kind.name} joint ({counted(len(c.rows), 'row')}{switch}) "
            f"between {loop.a!r} and {loop.b!r}; joints {listed(ways[0])} | {listed(ways[1])}; "
            f"the two ways meet at {where}; rows in the axes of its child frame: {listed(row_words(c))}"
        )
    for g in m.gears:
        joint, *source = (m.links[i].name for i, _ in g.ends)
        switch = ", switchable" if g.switchable else ""
        does = f"rate of {joint!r} is {g.ratio:g} times that of {source[0]!r}" if source else f"{joint!r} is held"
        lines.append(f"coupling {g.name!r}: {does} (1 row{switch})")
    groups = [g for g in coupled_loops(m) if len(g) > 1]
    lines += [f"loops that share joints and move each other: {listed(g)}" for g in groups]
    return "\n".join(map(in_one_line, lines))


def row_words(c: Closure) -> list[str]:
    """What each row of a closure transmits."""
    return [c.row_name(k).removeprefix(f"{c.name}: ") for k in range(len(c.rows))]


def coupled_loops(m: Mechanism) -> list[list[str]]:
    """Groups of closures that share a joint, directly or through others."""
    joints = _joints_by_closure(m)
    sharing = [(a, b) for a, b in combinations(joints, 2) if joints[a] & joints[b]]
    return [list(group) for group in connected_components(list(joints), sharing)]


def _joints_by_closure(m: Mechanism) -> dict[str, set[int]]:
    out = {c.name: {i for end in (c.a, c.b) for i in _links(m, end.link, c.meets)} for c in m.closures}
    out.update({g.name: {i for end, _ in g.ends for i in _links(m, end, g.meets)} for g in m.gears})
    return out


def _links(m: Mechanism, link: int, top: int) -> list[int]:
    way = path(m.parents, link)
    return way[: way.index(top)]


def _way(m: Mechanism, link: int, top: int) -> list[str]:
    return [m.links[i].name for i in reversed(_links(m, link, top))]
