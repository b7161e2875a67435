"""Paths through the tree: from a link to the world, between two links, and how one link is placed in another."""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Transform


def path(parents: Sequence[int], link: int) -> list[int]:
    """Links from this one inward; the world, −1, last."""
    out = [link]
    while out[-1] >= 0:
        out.append(parents[out[-1]])
    return out


def meeting(parents: Sequence[int], a: int, b: int) -> int:
    """The closest common ancestor of two links."""
    above = set(path(parents, a))
    return next(i for i in path(parents, b) if i in above)


def between(mechanism, here, start: int, end: int) -> tuple[list[int], list[int]]:
    """Links passed inward from start, and outward to end, on the way between them."""
    parents = mechanism.parents
    top = meeting(parents, start, end)
    up, down = path(parents, start), path(parents, end)
    return up[: up.index(top)], list(reversed(down[: down.index(top)]))


def rotation(mechanism, here, start: int, end: int) -> Rotation:
    """R with v_end = R v_start: from axes of link start to those of link end (−1: the world)."""
    up, down = between(mechanism, here, start, end)
    r = Rotation()
    for i in up:
        r = here[i].X.rotation @ r
    for i in down:
        r = here[i].X.rotation.T @ r
    return r


def point(mechanism, here, x, start: int, end: int):
    """A point of link start, seen from link end."""
    up, down = between(mechanism, here, start, end)
    for i in up:
        x = here[i].X.point(x)
    for i in down:
        x = here[i].X.inverse_point(x)
    return x


def relative_pose(mechanism, here, closure) -> Transform:
    """Pose of a closure's child frame in its parent frame."""
    a, b = closure.a.transform(), closure.b.transform()
    r = rotation(mechanism, here, closure.b.link, closure.a.link)
    p = point(mechanism, here, b.translation, closure.b.link, closure.a.link)
    return Transform(a.rotation.T @ (r @ b.rotation), a.inverse_point(p))
