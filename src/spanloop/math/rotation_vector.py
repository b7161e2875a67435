"""Rotation vectors: the turn that a rotation matrix makes, and the shortest turn between two directions.

Both are of length at most π, and of length π where the angle is: nowhere does a turn that is left vanish.
"""

from __future__ import annotations

from spanloop.math.scalar import arctan2, sqrt, where
from spanloop.math.vector3 import cross, dot, scale
from spanloop.types import Matrix3, Scalar, Vector3

_SMALL = 1e-4  # sin²: below it three terms of the series of the arc sine are exact to 1e-13 of the angle
_FAR = -0.95  # cosine: below it the axis comes from the symmetric part of the matrix


def of_matrix(r: Matrix3) -> Vector3:
    """The rotation vector [rad] of a rotation matrix.

    r = c 1 + (1 − c) a aᵀ + s [a]× with the axis a: s a is its skew part, (1 − c) a aᵀ what its symmetric part shows.
    """
    skew: Vector3 = (0.5 * (r[2][1] - r[1][2]), 0.5 * (r[0][2] - r[2][0]), 0.5 * (r[1][0] - r[0][1]))
    cosine = 0.5 * (r[0][0] + r[1][1] + r[2][2] - 1.0)
    factor, angle = _factor(dot(skew, skew), cosine)
    axis = _axis_far(r, skew, cosine)
    far = cosine < _FAR
    return tuple(where(far, angle * a, factor * s) for a, s in zip(axis, skew, strict=True))


def between(a: Vector3, d: Vector3) -> tuple[Scalar, Vector3]:
    """The angle [rad] from the unit vector a to d, and the shortest turn; opposite vectors have a turn of length 0."""
    normal = cross(a, d)
    factor, angle = _factor(dot(normal, normal), dot(a, d))
    return angle, scale(factor, normal)


def _factor(square: Scalar, cosine: Scalar) -> tuple[Scalar, Scalar]:
    """angle / sine and the angle, from sine² and cosine; a factor of 0 for half a turn."""
    near = (square < _SMALL) & (cosine > 0.0)
    none = square < 1e-300
    sine = sqrt(where(none, 0.0, square))
    angle = arctan2(sine, cosine)
    series = 1.0 + square * (1.0 / 6 + square * (3.0 / 40 + square * (15.0 / 336)))
    return where(near, series, where(none, 0.0, angle / where(none, 1.0, sine))), angle


def _axis_far(r: Matrix3, skew: Vector3, cosine: Scalar) -> Vector3:
    """The axis of nearly half a turn: the column of (r + rᵀ)/2 − c with the largest diagonal entry, along the skew
    part."""
    half = [[0.5 * (r[i][j] + r[j][i]) - (cosine if i == j else 0.0) for j in range(3)] for i in range(3)]
    x, y, z = half
    second = x[0] < y[1]
    best, size = ([where(second, b, a) for a, b in zip(x, y, strict=True)], where(second, y[1], x[0]))
    third = size < z[2]
    column: Vector3 = tuple(where(third, b, a) for a, b in zip(best, z, strict=True))
    square = dot(column, column)
    length = sqrt(where(square < 1e-30, 1.0, square))
    sign = where(dot(column, skew) < 0.0, -1.0, 1.0)
    return scale(sign / length, column)
