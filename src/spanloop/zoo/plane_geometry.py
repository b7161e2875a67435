"""Where links meet: the plane geometry with which mechanisms are assembled, and what closes them."""

from __future__ import annotations

from math import acos, atan2, hypot, sqrt

from spanloop.errors import InputError, nearest
from spanloop.joints import Cylindrical, JointKind, Revolute, Spherical, Universal
from spanloop.types import Floats3

Point = tuple[float, float]


def crossing(center: Point, radius: float, other: Point, other_radius: float, side: int, owner: str) -> Point:
    """Where two circles cross: on the left (side = 1) or right (−1) of the way from `center` to `other`."""
    x, y = other[0] - center[0], other[1] - center[1]
    distance = hypot(x, y)
    if not abs(radius - other_radius) < distance < radius + other_radius:
        raise InputError(
            f"{owner}: links of {radius:g} m and {other_radius:g} m cannot meet from points {distance:g} m apart; "
            "expected a triangle. Try another angle or other lengths"
        )
    along = 0.5 * ((radius - other_radius) * (radius + other_radius) / distance + distance)
    across = side * sqrt((radius - along) * (radius + along))
    x, y = x / distance, y / distance
    return (center[0] + along * x - across * y, center[1] + along * y + across * x)


def angle_with(a: float, b: float, c: float, side: int, owner: str) -> float:
    """An angle θ with a cos θ + b sin θ = c; side = 1 or −1 takes the one or the other."""
    size = hypot(a, b)
    if not abs(c) < size:
        raise InputError(f"{owner}: no angle of the crank lets its rod reach; try a position nearer to the middle")
    return atan2(b, a) + side * acos(c / size)


def direction(start: Point, end: Point) -> float:
    """The angle [rad] of the way from one point to another, counter-clockwise from the first axis."""
    return atan2(end[1] - start[1], end[0] - start[0])


def planar_closure(closure: str | JointKind, axis: Floats3, second_axis: Floats3, owner: str) -> JointKind:
    """The joint that closes a plane loop whose hinges have this axis; the second axis is square to it.

    All of them leave the loop its motion, and of all their rows two are independent.
    """
    kinds: dict[str, JointKind] = {
        "revolute": Revolute(axis),
        "cylindrical": Cylindrical(axis),
        "universal": Universal(axis, second_axis),
        "spherical": Spherical(),
    }
    if isinstance(closure, JointKind):
        return closure
    if closure not in kinds:
        raise InputError(f"{owner}: it cannot be closed by {closure!r}; {nearest(closure, kinds)}")
    return kinds[closure]
