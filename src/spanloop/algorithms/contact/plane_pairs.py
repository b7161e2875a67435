"""A plane with a point, sphere, capsule, box, cylinder or convex hull: spheres (also of radius 0) above a plane.

| shape | candidate points |
|---|---|
| point, sphere | its centre |
| capsule | the centres of both caps |
| box | its 8 corners |
| hull | its vertices |
| cylinder | the lowest points of both rims, and eight fixed ones of the lower rim |

The axes of a touch are those of the plane's frame: n = z, t1 = x, t2 = y.

A cylinder that leans by more than LEANING touches at the lowest points of its rims, exactly: their gaps change as these
points of the cylinder move. One that stands does so on eight fixed points: the lowest point of a rim would turn there
by radians in a step, and shake the cylinder.
"""

from __future__ import annotations

import math
from itertools import product

from spanloop.algorithms.contact.touch import Axes, Side, Spot, Touch
from spanloop.math.scalar import sqrt, where
from spanloop.math.vector3 import ZERO3, dot, scale, subtract
from spanloop.model.parts import Geometry
from spanloop.types import Scalar, Vector3

LEANING = 0.02  # sine of the tilt from which on a cylinder touches at the lowest points of its rims
_EIGHT = tuple((math.cos(k * math.pi / 4.0), math.sin(k * math.pi / 4.0)) for k in range(8))


def plane_touches(shape: Geometry, a: Side, plane: Geometry, b: Side) -> list[Touch]:
    """The touches of a shape (a) with a plane (b): n points out of the plane."""
    n, t1, t2 = (b.direction(d) for d in ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)))
    axes = (n, t1, t2)
    in_link: Axes = (a.T.rotation.T @ n, a.T.rotation.T @ t1, a.T.rotation.T @ t2)
    on_plane: Axes = (b.P.rotation @ (0.0, 0.0, 1.0), b.P.rotation @ (1.0, 0.0, 0.0), b.P.rotation @ (0.0, 1.0, 0.0))
    height = dot(n, subtract(a.T.translation, b.point(ZERO3)))
    centers, radius = _spheres(shape, a.P.rotation.T @ in_link[0])
    found = []
    for c in centers:
        c = a.P.point(c)
        gap = (height + dot(in_link[0], c)) - radius
        at = subtract(c, scale(radius, in_link[0]))  # on the shape, whose lever arms are then exact at any gap
        point = a.T.point(at)
        found.append(Touch(gap, Spot(point, axes), Spot(at, in_link), Spot(b.T.inverse_point(point), on_plane)))
    return found


def _spheres(shape: Geometry, up: Vector3) -> tuple[list[Vector3], float]:
    """Centres in the shape's frame, and the radius, of spheres of which the lowest is where the shape is lowest."""
    size = shape.size
    match shape.shape:
        case "sphere":
            return [ZERO3], size[0]
        case "capsule":
            return [(0.0, 0.0, 0.5 * size[1]), (0.0, 0.0, -0.5 * size[1])], size[0]
        case "box":
            return [(0.5 * x * size[0], 0.5 * y * size[1], 0.5 * z * size[2]) for x, y, z in _CORNERS], 0.0
        case "hull":
            return list(shape.vertices), 0.0
        case "cylinder":
            return _rim_points(size[0], 0.5 * size[1], up), 0.0
    return [ZERO3], 0.0  # a point


_CORNERS = tuple(product((1.0, -1.0), repeat=3))


def _rim_points(radius: float, half: float, up: Vector3) -> list[Vector3]:
    """Ten points of the rims of a cylinder in its frame; up: normal of the plane in that frame."""
    x, y = _downhill(up)
    lower = where(up[2] < 0.0, half, -half)
    lowest: list[Vector3] = [(radius * x, radius * y, half), (radius * x, radius * y, -half)]
    return [*lowest, *((radius * a, radius * b, lower) for a, b in _EIGHT)]


def _downhill(up: Vector3) -> tuple[Scalar, Scalar]:
    """The direction across the axis that falls most steeply; that of x where it leans by less than LEANING."""
    square = up[0] * up[0] + up[1] * up[1]
    leans = square > LEANING * LEANING
    inverse = 1.0 / sqrt(where(leans, square, 1.0))
    return where(leans, -(up[0] * inverse), 1.0), where(leans, -(up[1] * inverse), 0.0)
