"""Is a loop closed at a pose, and the same loop told from its other end."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from spanloop.joints import JointKind
from spanloop.math.small import dot, subtract, times
from spanloop.model.parts import Loop, Placement


def open_by(kind: JointKind, pose: Placement) -> float:
    """By how much the child frame at a pose in the parent frame misses the joint [m, or entries of a rotation]."""
    return max(map(abs, _misses(kind, pose)), default=0.0)


def _misses(kind: Any, pose: Placement) -> list[float]:
    p, r = pose.position, pose.rotation
    turned = [r[i][j] - float(i == j) for i in range(3) for j in range(3)]
    match kind.name:
        case "fixed":
            return [*p, *turned]
        case "spherical":
            return list(p)
        case "revolute":
            return [*p, *subtract(times(r, kind.axis), kind.axis)]
        case "universal":
            between = dot(kind.axis, kind.second_axis)
            return [*p, dot(kind.axis, times(r, kind.second_axis)) - between]
        case "prismatic":
            along = dot(p, kind.axis)
            return [*turned, *(x - along * a for x, a in zip(p, kind.axis, strict=True))]
        case "helical":
            along = dot(p, kind.axis)
            off = [x - along * a for x, a in zip(p, kind.axis, strict=True)]
            return [*subtract(times(r, kind.axis), kind.axis), *off, along - kind.pitch * _angle(kind.axis, r)]
        case _:
            return [math.inf]


def _angle(axis, r) -> float:
    """The angle of a rotation about an axis."""
    sine = 0.5 * dot(axis, (r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1]))
    return math.atan2(sine, 0.5 * (r[0][0] + r[1][1] + r[2][2] - 1.0))


def turned_round(x: Loop) -> Loop:
    """The same constraint with the ends exchanged; a universal joint exchanges its axes."""
    kind: Any = x.kind
    if kind.name == "universal":
        kind = replace(kind, axis=kind.second_axis, second_axis=kind.axis)
    return replace(x, kind=kind, a=x.b, b=x.a, placement_a=x.placement_b, placement_b=x.placement_a)
