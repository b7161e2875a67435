"""Links with more than three joints become several, joined by fixed joints. [Yamane & Nakamura, section 4]

A link with n joints (its own and those it carries) becomes n − 2 links in a row, each with three: the first keeps the
link's own joint and its first child, the last takes two. All have the link's frame; each has an equal share of its
inertia, since every part must have some.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from spanloop.errors import UnsupportedError
from spanloop.joints import Fixed
from spanloop.math.inertia import RigidInertia
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Transform
from spanloop.math.vector3 import cross, dot, negate, scale, scale_matrix, trace
from spanloop.topology.mechanism import Link, Mechanism

LARGEST_CONDITION = 1e3  # of a joint's motion space, as numbers: beyond this its dual basis has too few digits left
LEAST_MOMENT = 1e-5  # relative to the largest principal moment: below this the inverse has too few digits left


def split(mechanism: Mechanism) -> Mechanism:
    """The mechanism with at most two children on any link; the world is left as it is."""
    carries = Counter(link.parent for link in mechanism.links)
    links: list[Link] = []
    parts: dict[int, list[int]] = {-1: [-1]}  # new numbers of each old link
    seen: Counter[int] = Counter()  # children placed so far

    for i, link in enumerate(mechanism.links):
        hosts = parts[link.parent]
        host = hosts[min(seen[link.parent], len(hosts) - 1)]
        seen[link.parent] += 1
        n = max(1, carries[i] - 1)
        inertia = shared(link.inertia, n)  # type: ignore[arg-type]  # bodies are rigid here
        parts[i] = list(range(len(links), len(links) + n))
        links.append(replace(link, number=parts[i][0], parent=host, inertia=inertia))
        links += [replace(fixed_part(link), number=k, parent=k - 1, inertia=inertia) for k in parts[i][1:]]
    anchors = {name: replace(a, link=parts[a.link][0]) for name, a in mechanism.anchors.items()}
    return replace(mechanism, links=tuple(links), anchors=anchors)


def shared(inertia: RigidInertia, parts: int) -> RigidInertia:
    """One of so many equal parts."""
    k = 1.0 / parts
    return RigidInertia(k * inertia.mass, scale(k, inertia.first), scale_matrix(k, inertia.second))


def fixed_part(link: Link) -> Link:
    """A further part of a link: on a fixed joint in the link's own frame; nameless, being no joint of the user."""
    q, v = slice(link.q.stop, link.q.stop), slice(link.v.stop, link.v.stop)
    bare = replace(link, name="", kind=Fixed(), placement=Transform(), driven=False, q=q, v=v)
    return replace(bare, armature=(), damping=(), stiffness=(), rest=())


def refuse_bodies_without_inertia(mechanism: Mechanism) -> None:
    """The inverse of every link's inertia must exist; numbers that are not known yet are not checked."""
    for i, link in enumerate(mechanism.links):
        found = missing(link.inertia)  # type: ignore[arg-type]
        if found:
            body = next((name for name, a in mechanism.anchors.items() if a.link == i), link.name)
            raise UnsupportedError(
                f"method 'virtual_work': body {body!r} (joint {link.name!r}) has no {found}; "
                "the method inverts the inertia of every body. Give it some, or use method 'articulated_body'"
            )


def refuse_uneven_joints(mechanism: Mechanism) -> None:
    """The columns of every motion space must be well apart, angular and linear numbers together."""
    for link in mechanism.links:
        columns = link.kind.motion_space(link.kind.neutral())
        if len(columns) > 1 and np.linalg.cond([tuple(s) for s in columns]) > LARGEST_CONDITION:
            raise UnsupportedError(
                f"method 'virtual_work': the columns of the motion space of joint {link.name!r} are nearly dependent "
                "as numbers in rad and m; the method inverts their products. Use method 'articulated_body'"
            )


def missing(inertia: RigidInertia) -> str:
    """What an inertia lacks to have an inverse, if anything."""
    numbers = [inertia.mass, *inertia.first, *(x for r in inertia.second for x in r)]
    if not all(isinstance(x, float) for x in numbers):
        return ""
    if inertia.mass <= 0.0:
        return "mass"
    about_center = inertia.moved(negate(scale(1.0 / inertia.mass, inertia.first)))
    moments = np.linalg.eigvalsh(np.array(about_center.inertia()))
    return "significant inertia about one of its axes" if moments[0] <= LEAST_MOMENT * moments[-1] else ""


def inertia_demands(inertia: RigidInertia) -> list[tuple]:
    """The same condition on numbers that are not known yet, as pairs of which the first must be less.

    With principal moments a ≤ b ≤ c: abc > LEAST_MOMENT (a + b + c)³/8 means a > LEAST_MOMENT c where b is about c,
    and a little more where b is small too.
    """
    if isinstance(inertia.mass, float):
        return []
    about_center = inertia.moved(negate(scale(reciprocal(inertia.mass), inertia.first))).inertia()
    x, y, z = about_center
    sum_of_moments = trace(about_center)
    product = dot(x, cross(y, z))
    return [(0.0, inertia.mass), (0.125 * LEAST_MOMENT * (sum_of_moments * sum_of_moments * sum_of_moments), product)]
