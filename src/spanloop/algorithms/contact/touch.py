"""Where two shapes are nearest: the gap, a point between their surfaces, and axes (n, t1, t2) there.

The point is on the surface of the rounder shape; between two round ones it divides the gap as their radii. Lever arms
are then those of shapes that just touch, also where a step has let them overlap: a ball rolls at its own radius.

| symbol | shape | meaning | frame |
|---|---|---|---|
| gap | scalar | distance of the surfaces, negative where they overlap [m] | |
| n | (3,) | unit normal, from shape b to shape a | world, or link |
| t1, t2 | (3,) | unit tangents; (n, t1, t2) is right-handed | world, or link |
| T | Transform | pose of the link that carries a shape | world |
| P | Transform | pose of the shape in that link, of numbers | link |
"""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.math.scalar import sqrt, where
from spanloop.math.spatial import Transform
from spanloop.math.vector3 import cross, dot, negate, scale, subtract
from spanloop.types import Floats3, Scalar, Vector3

Axes = tuple[Vector3, Vector3, Vector3]  # n, t1, t2

TINY = 1e-36  # square of a length below which it has no direction [m²]; single precision has it too
_SEED: Floats3 = (0.36, 0.48, 0.8)  # the tangents of a normal turn about it; only those near -_SEED depend on rounding


@dataclass(frozen=True)
class Side:
    """A shape on a link: the link's pose T in the world, and the shape's pose P in the link."""

    T: Transform
    P: Transform

    def point(self, x: Vector3) -> Vector3:
        """A point of the shape's frame, in the world."""
        return self.T.point(self.P.point(x))

    def inverse_point(self, x: Vector3) -> Vector3:
        """A point of the world, in the shape's frame."""
        return self.P.inverse_point(self.T.inverse_point(x))

    def direction(self, d: Vector3) -> Vector3:
        """A direction of the shape's frame, in world axes."""
        return self.T.rotation @ (self.P.rotation @ d)


@dataclass(frozen=True)
class Spot:
    """A point and the axes (n, t1, t2) at it, in the axes and at the origin of one frame."""

    point: Vector3
    axes: Axes

    @staticmethod
    def seen_from(T: Transform, point: Vector3, axes: Axes) -> Spot:
        """A point and axes of the world, in the frame with pose T."""
        n, t1, t2 = (T.rotation.T @ d for d in axes)
        return Spot(T.inverse_point(point), (n, t1, t2))

    def turned_over(self) -> Spot:
        """The same point with the opposite normal."""
        n, t1, t2 = self.axes
        return Spot(self.point, (negate(n), t1, negate(t2)))


@dataclass(frozen=True)
class Touch:
    """One candidate point of a pair: its gap [m], and its spot in the world and in the links of both sides."""

    gap: Scalar
    world: Spot
    a: Spot
    b: Spot

    @property
    def normal(self) -> Vector3:
        """From b to a, in world axes."""
        return self.world.axes[0]

    @property
    def point(self) -> Vector3:
        """Between the surfaces, in the world [m]."""
        return self.world.point

    @staticmethod
    def between(a: Side, b: Side, gap: Scalar, point: Vector3, normal: Vector3) -> Touch:
        """The touch at a point of the world with this normal."""
        axes = (normal, *tangents(normal))
        return Touch(gap, Spot(point, axes), Spot.seen_from(a.T, point, axes), Spot.seen_from(b.T, point, axes))

    def swapped(self) -> Touch:
        """The same touch with the names of its sides exchanged."""
        return Touch(self.gap, self.world.turned_over(), self.b.turned_over(), self.a.turned_over())


def tangents(n: Vector3) -> tuple[Vector3, Vector3]:
    """Unit vectors t1, t2 with (n, t1, t2) right-handed; x and y for n = z.

    The reflection that takes a fixed unit vector s to -n takes the two vectors square to s to t1 and t2. Continuous in
    n but at n = -s, a direction that no wall has.
    """
    w = (_SEED[0] + n[0], _SEED[1] + n[1], _SEED[2] + n[2])
    square = dot(w, w)
    opposite = square < 1e-16
    w = (
        where(opposite, _ACROSS[0][0], w[0]),
        where(opposite, _ACROSS[0][1], w[1]),
        where(opposite, _ACROSS[0][2], w[2]),
    )
    twice = 2.0 / where(opposite, 1.0, square)
    t1, t2 = (subtract(e, scale(twice * dot(w, e), w)) for e in _ACROSS)
    return t1, t2


def _reflected(w: Floats3, e: Floats3) -> Floats3:
    return subtract(e, scale(2.0 * dot(w, e) / dot(w, w), w))


# square to _SEED, and such that the tangents of z are x and y
_ACROSS: tuple[Floats3, Floats3] = (
    _reflected((_SEED[0], _SEED[1], _SEED[2] + 1.0), (1.0, 0.0, 0.0)),
    _reflected((_SEED[0], _SEED[1], _SEED[2] + 1.0), (0.0, 1.0, 0.0)),
)


def length_and_direction(d: Vector3, otherwise: Vector3) -> tuple[Scalar, Vector3]:
    """|d| and d/|d|; where d is zero, 0 and the direction `otherwise`."""
    square = dot(d, d)
    has_none = square < TINY
    length = sqrt(where(has_none, 1.0, square))
    x, y, z = (where(has_none, o, k / length) for o, k in zip(otherwise, d, strict=True))
    return where(has_none, 0.0, length), (x, y, z)


def clamped(x: Scalar, bound: float) -> Scalar:
    """x, at least -bound and at most bound."""
    return where(x < -bound, -bound, where(x > bound, bound, x))


def row(point: Vector3, d: Vector3) -> tuple[Scalar, ...]:
    """[p × d; d]: times the twist [ω; u] of a link the velocity of its point p along d, all in its axes."""
    return (*cross(point, d), *d)
