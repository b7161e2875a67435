"""Several arms that hold one object: which links are which, and the rows of their grasps. [Kreutz & Rodriguez]

The object floats and carries nothing; every closure joins it to a link of an arm. An arm is a tree on the world, or on
a base whose motion is given, and holds the object once. Grasps may be of any kind of closure.
"""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.algorithms.closed import closing
from spanloop.algorithms.papers.closure_rows import Telling, known_rows
from spanloop.errors import UnsupportedError
from spanloop.math.spatial import Force
from spanloop.types import Scalar


@dataclass(frozen=True)
class Arm:
    """A tree of links, its base first, and the link that holds the object through a closure."""

    links: tuple[int, ...]
    base: tuple[int, ...]  # links under it whose motion is given
    tip: int
    closure: int


@dataclass(frozen=True)
class Grasps:
    """The object's link, and the arms."""

    body: int
    arms: tuple[Arm, ...]


@dataclass(frozen=True)
class Contact:
    """A row of a grasp: its force acts as K on the arm's last link and as A on the object."""

    row: int
    tip: int
    K: Force
    A: Force
    gamma: Scalar  # known acceleration along it
    mask: Scalar


def grasps(mechanism, method: str) -> Grasps:
    """Arms and object of a mechanism, or the reason why it has none."""
    links, closures = mechanism.links, mechanism.closures

    def refused(reason: str) -> UnsupportedError:
        return UnsupportedError(
            f"method {method!r} needs one free body that every closure joins to an arm of its own; {reason}. "
            "Use 'elimination'"
        )

    if mechanism.gears:
        raise refused(f"joints are coupled ({mechanism.gears[0].name!r})")
    free = [k.number for k in links if k.floats and k.kind.name == "free"]
    bodies = [i for i in free if all(i in (c.a.link, c.b.link) for c in closures)]
    if not bodies or not closures:
        raise refused("there is none here")
    body = bodies[0]
    if body in mechanism.parents:
        raise refused(f"the body on joint {links[body].name!r} carries others")
    base: dict[int, tuple[int, ...]] = {-1: ()}  # of links whose motion is given: those under it, and itself
    root: dict[int, int] = {}
    for k in links:
        if k.number == body:
            continue
        if k.driven and k.parent in base:
            base[k.number] = (*base[k.parent], k.number)
        else:
            root[k.number] = k.number if k.parent in base else root[k.parent]
    arms: list[Arm] = []
    for c in closures:
        tip = c.b.link if c.a.link == body else c.a.link
        if tip not in root:
            raise refused(f"loop {c.name!r} joins it to a body whose motion is given")
        mine = tuple(i for i in root if root[i] == root[tip])
        if any(mine == arm.links for arm in arms):
            raise refused(f"the arm of loop {c.name!r} holds it twice")
        arms.append(Arm(mine, base[links[root[tip]].parent], tip, c.number))
    return Grasps(body, tuple(arms))


def contacts(m, here, world, g: Grasps, telling: Telling) -> list[list[Contact]]:
    """Rows of every grasp: H(0) f = 0 leaves the forces along φᶜ.                   (a.7)"""
    masks = closing.masks(m, world)
    out = []
    for arm in g.arms:
        c = m.closures[arm.closure]
        rows = []
        for row, gamma in known_rows(m, here, world, c, telling):
            K, A = (row.on_b, row.on_a) if c.a.link == g.body else (row.on_a, row.on_b)
            rows.append(Contact(row.number, arm.tip, K, A, gamma, masks.get(row.number, 1.0)))
        out.append(rows)
    return out
