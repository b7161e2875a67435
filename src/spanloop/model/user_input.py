"""Arguments that users give, checked once: three numbers, a rotation, moments of inertia, a kind of joint."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.joints import CLOSURE_KINDS, JointKind
from spanloop.math.vector3 import IDENTITY3
from spanloop.model.exact_rotations import rotation_of_angles
from spanloop.model.value_check import check_rotation
from spanloop.types import Floats3, Floats33

Moments = tuple[float, float, float, float, float, float]


def number(value: Any, owner: str) -> float:
    """One finite float."""
    try:
        x = math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        x = math.nan
    if not math.isfinite(x):
        raise InputError(f"{owner} is {value!r}; expected a finite number")
    return x


def three(value: Any, owner: str) -> Floats3:
    """Three finite floats."""
    x, y, z = _numbers(value, owner, ((3,),), "three finite numbers").tolist()
    return (x, y, z)


def rotation(value: Any, owner: str) -> Floats33:
    """A rotation matrix from None, a 3x3 matrix, or roll, pitch, yaw [rad]: Rz(yaw) Ry(pitch) Rx(roll)."""
    if value is None:
        return IDENTITY3
    expected = "nothing, roll pitch yaw [rad], or a 3x3 matrix, all finite"
    array = _numbers(value, f"{owner}: rotation", ((3,), (3, 3)), expected)
    if array.shape == (3, 3):
        matrix = tuple(tuple(row) for row in array.tolist())
        check_rotation(matrix, owner)
        return matrix  # type: ignore[return-value]
    return rotation_of_angles(*array.tolist())


def moments(value: Any, owner: str) -> Moments:
    """(xx, xy, xz, yy, yz, zz) from three principal moments, those six numbers, or a symmetric 3x3 matrix."""
    expected = "3 principal moments, 6 numbers xx xy xz yy yz zz, or a symmetric 3x3 matrix, all finite"
    array = _numbers(value, f"{owner}: inertia", ((3,), (6,), (3, 3)), expected)
    if array.shape == (3,):
        array = np.diag(array)
    if array.shape == (3, 3):
        if np.abs(array - array.T).max() > 1e-9 * np.abs(array).max():
            raise InputError(f"{owner}: inertia is not symmetric; expected {expected}")
        array = array[np.triu_indices(3)]
    return tuple(array.tolist())


def joint_kind(value: str | JointKind, owner: str) -> JointKind:
    """A kind of joint from its name (with the kind's defaults) or as it is."""
    if isinstance(value, JointKind):
        return value
    if not isinstance(value, str):
        raise InputError(f"{owner}: {value!r} is not a kind of joint; expected 'revolute', Revolute(axis), ...")
    if value not in CLOSURE_KINDS:
        raise InputError(f"{owner}: no kind of joint is called {value!r}; {nearest(value, CLOSURE_KINDS)}")
    return CLOSURE_KINDS[value]()


def coordinates(value: Any, kind: JointKind, owner: str) -> tuple[float, ...]:
    """The nq coordinates of one joint from a number or a sequence; quaternions are made exactly unit."""
    single = np.ndim(value) == 0 and not isinstance(value, str)
    q = _numbers([value] if single else value, f"{owner}: position", None, "finite numbers")
    if q.shape != (kind.nq,):
        raise InputError(f"{owner}: {q.size} coordinates are given; a {kind.name} joint has {kind.nq}")
    for part in kind.unit_parts(q.tolist()):
        length = math.hypot(*part)
        if abs(length - 1.0) > 1e-6:
            raise InputError(f"{owner}: its quaternion has length {length:g}; must be 1")
    return tuple(kind.plus(q.tolist(), (0.0,) * kind.nv))


def _numbers(value: Any, owner: str, shapes: Collection[tuple[int, ...]] | None, expected: str) -> np.ndarray:
    try:
        array = np.array(value if isinstance(value, np.ndarray) else list(value), dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{owner} is {value!r}; expected {expected}") from None
    if (shapes and array.shape not in shapes) or not np.isfinite(array).all():
        raise InputError(f"{owner} is {value!r}; expected {expected}")
    return array + 0.0  # no -0.0
