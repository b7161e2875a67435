"""A sphere or a point with a sphere, capsule, box or cylinder.

The signed distance of the sphere's centre from the other shape's surface, and the normal there, in the other shape's
frame. Where the centre is inside a box or cylinder, the normal is that of the nearest face, and the gap is negative by
the depth of the centre and the radius. A normal that is not unique (concentric spheres, a centre on an axis) is a
fixed direction of the other shape: every number stays finite.
"""

from __future__ import annotations

from collections.abc import Callable

from spanloop.algorithms.contact.touch import TINY, Side, Touch, clamped, length_and_direction
from spanloop.math.scalar import absolute, sqrt, where
from spanloop.math.vector3 import ZERO3, dot, scale, subtract
from spanloop.model.parts import Geometry
from spanloop.types import Scalar, Vector3

Size = tuple[float, ...]


def sphere_touches(sphere: Geometry, a: Side, other: Geometry, b: Side) -> list[Touch]:
    """The touch of a sphere or point (a) with a sphere, capsule, box or cylinder (b)."""
    radius = sphere.size[0] if sphere.size else 0.0
    center = a.point(ZERO3)
    distance, n = DISTANCES[other.shape](b.inverse_point(center), other.size)
    normal, gap = b.direction(n), distance - radius
    share = radius / (radius + other.size[0]) if other.shape in ("sphere", "capsule") else 0.0
    return [Touch.between(a, b, gap, subtract(center, scale(radius + share * gap, normal)), normal)]


def from_sphere(x: Vector3, size: Size) -> tuple[Scalar, Vector3]:
    """Distance of a point from a sphere (radius), and the normal; z at its centre."""
    length, n = length_and_direction(x, (0.0, 0.0, 1.0))
    return length - size[0], n


def from_capsule(x: Vector3, size: Size) -> tuple[Scalar, Vector3]:
    """Distance of a point from a capsule (radius, length without the caps), and the normal; x on its axis."""
    length, n = length_and_direction((x[0], x[1], x[2] - clamped(x[2], 0.5 * size[1])), (1.0, 0.0, 0.0))
    return length - size[0], n


def from_box(x: Vector3, size: Size) -> tuple[Scalar, Vector3]:
    """Distance of a point from a box (x, y, z), and the normal; inside, of the nearest face."""
    d = tuple(k - clamped(k, 0.5 * s) for k, s in zip(x, size, strict=True))
    outside, n = length_and_direction(d, (1.0, 0.0, 0.0))
    is_inside = dot(d, d) < TINY
    depths = [0.5 * s - absolute(k) for k, s in zip(x, size, strict=True)]
    depth, face = depths[0], [_sign(x[0]), 0.0, 0.0]
    for i in (1, 2):
        is_nearer = depths[i] < depth
        depth = where(is_nearer, depths[i], depth)
        face = [where(is_nearer, _sign(x[i]) if k == i else 0.0, face[k]) for k in range(3)]
    nx, ny, nz = (where(is_inside, f, k) for f, k in zip(face, n, strict=True))
    return where(is_inside, -depth, outside), (nx, ny, nz)


def from_cylinder(x: Vector3, size: Size) -> tuple[Scalar, Vector3]:
    """Distance of a point from a cylinder (radius, length), and the normal; inside, of the nearer of side and cap."""
    radius, half = size[0], 0.5 * size[1]
    across, (ex, ey, _) = length_and_direction((x[0], x[1], 0.0), (1.0, 0.0, 0.0))
    beyond_side = where(across > radius, across - radius, 0.0)
    beyond_cap = x[2] - clamped(x[2], half)
    square = beyond_side * beyond_side + beyond_cap * beyond_cap
    is_inside = square < TINY
    outside = sqrt(where(is_inside, 1.0, square))
    side, cap = radius - across, half - absolute(x[2])
    is_side = side < cap
    radial = where(is_inside, where(is_side, 1.0, 0.0), beyond_side / outside)
    axial = where(is_inside, where(is_side, 0.0, _sign(x[2])), beyond_cap / outside)
    distance = where(is_inside, -where(is_side, side, cap), outside)
    return distance, (radial * ex, radial * ey, axial)


def _sign(x: Scalar) -> Scalar:
    return where(x < 0.0, -1.0, 1.0)


DISTANCES: dict[str, Callable[[Vector3, Size], tuple[Scalar, Vector3]]] = {
    "sphere": from_sphere,
    "capsule": from_capsule,
    "box": from_box,
    "cylinder": from_cylinder,
}
