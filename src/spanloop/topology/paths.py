"""Ways through the tree between two links: how an axis or a point of one looks from the other."""

from __future__ import annotations

from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Transform
from spanloop.topology.closures import meeting, path


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
