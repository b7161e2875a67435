"""Unit quaternions (w, x, y, z), scalar first, that take body axes to parent axes.

A quaternion that misses length 1 by rounding, or within the tolerance of kernels, stands for the rotation of the unit
quaternion along it: rotation matrix and logarithm divide by its length.
"""

from __future__ import annotations

import numpy as np

from spanloop.math.scalar import arctan2, sincos, sqrt, where
from spanloop.math.vector3 import dot, scale, times
from spanloop.types import Matrix3, Scalar, Vector3

Quaternion = tuple[Scalar, Scalar, Scalar, Scalar]

IDENTITY: Quaternion = (1.0, 0.0, 0.0, 0.0)

# below this angle squared [rad²] the Taylor series of the exponential and the logarithm are exact to 1e-17
_SMALL = 1e-4


def matrix(e: Quaternion) -> Matrix3:
    """Rotation matrix of a quaternion, which need not have length 1."""
    w, x, y, z = e
    k = 2.0 / dot(e, e)
    x2, y2, z2 = k * x, k * y, k * z
    xx, yy, zz = x * x2, y * y2, z * z2
    xy, xz, yz = x * y2, x * z2, y * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    return (
        (1.0 - (yy + zz), xy - wz, xz + wy),
        (xy + wz, 1.0 - (xx + zz), yz - wx),
        (xz - wy, yz + wx, 1.0 - (xx + yy)),
    )


def multiply(e: Quaternion, f: Quaternion) -> Quaternion:
    """The product: R(e f) = R(e) R(f)."""
    a, b, c, d = e
    w, x, y, z = f
    return (
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    )


def conjugate(e: Quaternion) -> Quaternion:
    """The inverse rotation."""
    return (e[0], -e[1], -e[2], -e[3])


def mirrored(s: Matrix3, e: Quaternion) -> Quaternion:
    """The rotation as seen in a mirror s (3, 3), a reflection: s R(e) s."""
    x, y, z = times(s, e[1:])
    return (e[0], 0.0 - x, 0.0 - y, 0.0 - z)


def rate(e: Quaternion, omega: Vector3) -> Quaternion:
    """Time derivative for an angular velocity [rad/s] in body axes: e (0, omega)/2."""
    h = scale(0.5, omega)
    return multiply(e, (0.0, h[0], h[1], h[2]))


def exponential(turn: Vector3) -> Quaternion:
    """Quaternion of the rotation vector `turn` [rad]."""
    square = dot(turn, turn)
    small = square < _SMALL
    angle = sqrt(where(small, 1.0, square))
    s, c = sincos(0.5 * angle)
    # sin(angle/2)/angle and cos(angle/2) by their series in angle²
    near_s = 0.5 - square * (1.0 / 48 - square * (1.0 / 3840 - square * (1.0 / 645120)))
    near_c = 1.0 - square * (1.0 / 8 - square * (1.0 / 384 - square * (1.0 / 46080)))
    k = where(small, near_s, s / angle)
    return (where(small, near_c, c), k * turn[0], k * turn[1], k * turn[2])


def logarithm(e: Quaternion) -> Vector3:
    """Rotation vector [rad] of a quaternion, which need not have length 1; of length at most pi."""
    w, x, y, z = normalized(e)
    sign = where(w < 0.0, -1.0, 1.0)
    w = sign * w
    square = x * x + y * y + z * z
    small = square < _SMALL
    length = sqrt(where(small, 1.0, square))
    angle = 2.0 * arctan2(length, w)
    # 2 asin(s)/s by its series in s² = square
    near = 2.0 + square * (1.0 / 3 + square * (3.0 / 20 + square * (5.0 / 56)))
    k = sign * where(small, near, angle / length)
    return (k * x, k * y, k * z)


def normalized(e: Quaternion) -> Quaternion:
    """The unit quaternion along e."""
    k = 1.0 / sqrt(dot(e, e))
    return (k * e[0], k * e[1], k * e[2], k * e[3])


def of_rotations(r: np.ndarray) -> np.ndarray:
    """Unit quaternions (..., 4) of rotation matrices (..., 3, 3) of floats: the largest number is found first."""
    d = np.diagonal(r, axis1=-2, axis2=-1)
    t = d.sum(axis=-1)
    squares = np.stack([1.0 + t, *(1.0 + 2.0 * d[..., k] - t for k in range(3))], axis=-1)
    x, y, z = r[..., 2, 1] - r[..., 1, 2], r[..., 0, 2] - r[..., 2, 0], r[..., 1, 0] - r[..., 0, 1]
    xy, xz, yz = (r[..., i, j] + r[..., j, i] for i, j in ((0, 1), (0, 2), (1, 2)))
    w2, x2, y2, z2 = np.moveaxis(squares, -1, 0)
    rows = np.stack(
        [
            np.stack([w2, x, y, z], axis=-1),
            np.stack([x, x2, xy, xz], axis=-1),
            np.stack([y, xy, y2, yz], axis=-1),
            np.stack([z, xz, yz, z2], axis=-1),
        ],
        axis=-2,
    )
    best = np.argmax(np.nan_to_num(squares, nan=-1.0), axis=-1)
    chosen = np.take_along_axis(rows, best[..., None, None], axis=-2)[..., 0, :]
    found: np.ndarray = chosen / np.linalg.norm(chosen, axis=-1, keepdims=True)
    return found
