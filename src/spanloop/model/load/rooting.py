"""From bodies and joints in any direction to a graph whose every body can be reached from the world.

Joints are followed from parent to child as far as that leads; where only a joint's child is reached, the joint is
turned round. Bodies to which no joint leads from the world stand on it themselves, each group by one body.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from spanloop.errors import UnsupportedError
from spanloop.joints import JointKind, Universal
from spanloop.math.small import negate
from spanloop.model.parts import WORLD, Body, Joint, Placement

Placements = dict[str, Placement]


def rooted(
    bodies: Sequence[Body], joints: Sequence[Joint], at_child: Placements, stand: Callable[[str, bool], Joint]
) -> tuple[list[Joint], Placements, list[str]]:
    """The joints in reachable directions with their places in the children, and the names of those turned round.

    stand(body, only) gives the joint by which a body stands on the world; only: it is the only one that does.
    """
    directed, places, turned = {j.name: j for j in joints}, dict(at_child), list[str]()
    standing: list[str] = []
    touching: dict[str, list[str]] = {}
    for j in joints:
        for end in (j.parent, j.child):
            touching.setdefault(end, []).append(j.name)
    seen, children = {WORLD}, {j.child for j in joints}

    def grow(start: list[str]) -> None:
        """Everything reached from `start`; joints are turned round only where there is no other way."""
        front, against = deque(start), deque[str]()
        while front or against:
            if front:
                at = front.popleft()
                for name in touching.get(at, []):
                    j = directed[name]
                    if j.parent == at and j.child not in seen:
                        seen.add(j.child)
                        front.append(j.child)
                    elif j.child == at and j.parent not in seen:
                        against.append(name)
                continue
            j = directed[against.popleft()]
            if j.parent not in seen:
                directed[j.name] = reversed_joint(j, places.get(j.name, Placement()))
                places[j.name] = j.placement
                turned.append(j.name)
                seen.add(j.parent)
                front.append(j.parent)

    grow([WORLD])
    for candidates in ([b for b in bodies if b.name not in children], bodies):
        for b in candidates:
            if b.name not in seen:
                standing.append(b.name)
                seen.add(b.name)
                grow([b.name])
    roots = [stand(name, len(standing) == 1) for name in standing]
    return [*roots, *(directed[j.name] for j in joints)], places, turned


def reversed_joint(j: Joint, at_child: Placement) -> Joint:
    """The same joint told from its child: with the opposite axis it has the same coordinate."""
    settings: dict[str, Any] = {}
    kind = reversed_kind(j.kind, j.name)
    if isinstance(kind, Universal):  # its angles change places
        for name in ("lower", "upper", "speed", "effort", "damping", "friction", "armature", "stiffness", "rest"):
            value = getattr(j, name)
            settings[name] = None if value is None else tuple(reversed(value))
    return replace(j, kind=kind, parent=j.child, child=j.parent, placement=at_child, **settings)


def reversed_kind(kind: JointKind, name: str) -> JointKind:
    """The kind whose transform is the inverse."""
    if isinstance(kind, Universal):
        return Universal(negate(kind.second_axis), negate(kind.axis))
    if hasattr(kind, "axis") and kind.name in ("revolute", "prismatic", "helical", "cylindrical"):
        return replace(kind, axis=negate(kind.axis))  # type: ignore[type-var]
    if kind.name in ("fixed", "spherical", "free"):
        return kind
    raise UnsupportedError(f"joint {name!r}: a {kind.name} joint cannot be turned round; swap its parent and child")


def spare(joints: Sequence[Joint], rank: Callable[[Joint], int | None]) -> set[str]:
    """Names of joints that can be cut, none of them alone or together being the only way to a body.

    Joints of lower rank are kept first; those of rank None are left to be cut by the shortest ways.
    """
    group: dict[str, str] = {}

    def find(x: str) -> str:
        while group.setdefault(x, x) != x:
            group[x] = group[group[x]]
            x = group[x]
        return x

    out = set()
    for j in sorted(joints, key=lambda j: rank(j) or 0):
        a, b = find(j.parent), find(j.child)
        if a != b:
            group[a] = b
        elif rank(j) is not None:
            out.add(j.name)
    return out
