"""A capsule with a capsule: the nearest points of their axes, and the far end of the part where they run side by side.

| symbol | shape | meaning |
|---|---|---|
| u_a, u_b | (3,) | directions of the axes |
| s, t | scalar | places on the axes, from their centres [m] |
| d | (3,) | from the centre of b to that of a |

min |d + s u_a − t u_b| over the two segments has s = (u_a·u_b u_b·d − u_a·d)/sin² of the angle between the axes; then t
is the best for s and s the best for t, each inside its segment. Axes that are parallel touch along a line: the first
point is at one end of it, the second at the other. Elsewhere the second point is the end of the part of a beside b that
is farther from the first; where it is the first point itself, its gap is larger by the sum of the diameters, so that it
carries nothing.
"""

from __future__ import annotations

from spanloop.algorithms.contact.touch import Side, Touch, clamped, length_and_direction
from spanloop.math.scalar import absolute, where
from spanloop.math.vector3 import ZERO3, add, cross, dot, scale, subtract
from spanloop.model.parts import Geometry
from spanloop.types import Scalar

_PARALLEL = 1e-12  # square of the sine of the angle below which axes count as parallel
_APART = 1e-3  # distance of the two points below which they are one, as a share of the radii


def capsule_touches(first: Geometry, a: Side, second: Geometry, b: Side) -> list[Touch]:
    """The two touches of two capsules."""
    half_a, half_b = 0.5 * first.size[1], 0.5 * second.size[1]
    radii = first.size[0], second.size[0]
    center_a, center_b = a.point(ZERO3), b.point(ZERO3)
    u_a, u_b = a.direction((0.0, 0.0, 1.0)), b.direction((0.0, 0.0, 1.0))
    d = subtract(center_a, center_b)
    cosine, along_a, along_b, turn = dot(u_a, u_b), dot(u_a, d), dot(u_b, d), cross(u_a, u_b)
    sine2 = dot(turn, turn)
    is_parallel = sine2 < _PARALLEL
    beside = absolute(cosine) * half_b
    low, high = clamped(-along_a - beside, half_a), clamped(beside - along_a, half_a)
    s = (cosine * along_b - along_a) / where(is_parallel, 1.0, sine2)
    s = where(is_parallel, low, clamped(s, half_a))
    t = clamped(cosine * s + along_b, half_b)
    s = clamped(cosine * t - along_a, half_a)
    far = where(s - low < high - s, high, low)
    _, across = length_and_direction(turn, b.direction((1.0, 0.0, 0.0)))  # the normal where the axes cross

    def touch(s: Scalar, t: Scalar, is_one: Scalar) -> Touch:
        on_a, on_b = add(center_a, scale(s, u_a)), add(center_b, scale(t, u_b))
        length, n = length_and_direction(subtract(on_a, on_b), across)
        gap = length - (radii[0] + radii[1])
        point = subtract(on_a, scale(radii[0] + radii[0] / (radii[0] + radii[1]) * gap, n))
        return Touch.between(a, b, where(is_one, gap + 2.0 * (radii[0] + radii[1]), gap), point, n)

    is_one = absolute(far - s) < _APART * (radii[0] + radii[1])
    return [touch(s, t, False), touch(far, clamped(cosine * far + along_b, half_b), is_one)]
