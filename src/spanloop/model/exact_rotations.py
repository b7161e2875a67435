"""Exact rotations: rotations and axes computed from angles get back their exact zeros and right angles.

cos(1.57079632679) is 4.9e-12 and not 0: kernels would then carry a term that the mechanism does not have. Every
reader of angles (URDF, DH tables, the builder) snaps its matrices once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from spanloop.math.vector3 import IDENTITY3, cross
from spanloop.types import Floats3, Floats33

TOLERANCE = 1e-9  # an entry this close to 0 (or to ±1) was meant to be 0 (or ±1)
ROUNDING = 1e-15  # a change up to here only undoes rounding
_ORTHONORMAL = 4.5e-16  # R Rᵀ − 1 of a matrix that needs no correction
_IDENTITY: Floats33 = IDENTITY3


def snap_rotation(matrix: Sequence[Sequence[float]], tolerance: float = TOLERANCE) -> tuple[Floats33, bool]:
    """The rotation with exact zeros and right angles, orthonormal to rounding; did more than rounding change?

    A matrix that is no rotation to 1e-9 is returned as it is: the model's check reports it.
    """
    given: Floats33 = tuple(tuple(float(x) + 0.0 for x in row) for row in matrix)  # type: ignore[assignment]
    if not _off_orthonormal(given) <= TOLERANCE or _dot(given[0], cross(given[1], given[2])) < 0.0:
        return given, False  # the first comparison is also false for not a number
    r = _right_angles(tuple(tuple(0.0 if abs(x) < tolerance else x for x in row) for row in given))  # type: ignore[arg-type]
    if _off_orthonormal(r) > _ORTHONORMAL:
        r = _orthonormal(r)
    changed = max(abs(x - y) for a, b in zip(r, given, strict=True) for x, y in zip(a, b, strict=True))
    return r, changed > ROUNDING


def snap_axis(axis: Sequence[float]) -> tuple[Floats3, bool]:
    """The axis with length 1 and exact zeros; did more than its length and rounding change?

    An axis without direction is returned as it is: the joint's check reports it.
    """
    given = _unit(tuple(float(x) + 0.0 for x in axis))  # type: ignore[arg-type]
    if not all(map(math.isfinite, given)) or not any(given):
        return given, False
    a = _unit(tuple(0.0 if abs(x) < TOLERANCE else x for x in given))  # type: ignore[arg-type]
    changed = max(abs(x - y) for x, y in zip(a, given, strict=True))
    return a, changed > ROUNDING


def rotation_of_angles(roll: float, pitch: float, yaw: float) -> Floats33:
    """Rz(yaw) Ry(pitch) Rx(roll), the URDF's and SDF's convention; not snapped."""
    if roll == pitch == yaw == 0.0:
        return _IDENTITY
    (sr, cr), (sp, cp), (sy, cy) = ((math.sin(x), math.cos(x)) for x in (roll, pitch, yaw))
    return (
        (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        (-sp, cp * sr, cp * cr),
    )


def _right_angles(r: Floats33) -> Floats33:
    """An entry that is alone in its row or column is ±1, and alone in both."""
    if all(map(all, r)):
        return r
    out = [list(row) for row in r]
    for i in range(3):
        for j in range(3):
            in_row = any(out[i][k] for k in range(3) if k != j)
            in_column = any(out[k][j] for k in range(3) if k != i)
            if out[i][j] and not (in_row and in_column):
                for k in range(3):
                    out[i][k] = out[k][j] = 0.0
                out[i][j] = math.copysign(1.0, r[i][j])
    return tuple(map(tuple, out))  # type: ignore[return-value]


def _orthonormal(r: Floats33) -> Floats33:
    """Orthonormal rows, the row with most zeros first: what it does not share with others stays zero."""
    i = max(range(3), key=lambda k: r[k].count(0.0))
    j, k = (i + 1) % 3, (i + 2) % 3
    first = _unit(r[i])
    along = _dot(r[j], first)
    second = _unit(tuple(x - along * y for x, y in zip(r[j], first, strict=True)))  # type: ignore[arg-type]
    rows = {i: first, j: second, k: cross(first, second)}
    return tuple(tuple(x + 0.0 for x in rows[n]) for n in range(3))  # type: ignore[return-value]


def _off_orthonormal(r: Floats33) -> float:
    """Largest entry of R Rᵀ − 1; not a number if an entry is none."""
    a, b, c = r
    off = (_dot(a, a) - 1.0, _dot(b, b) - 1.0, _dot(c, c) - 1.0, _dot(a, b), _dot(b, c), _dot(c, a))
    return max(map(abs, off)) if math.isfinite(sum(off)) else math.nan


def _dot(a: Floats3, b: Floats3) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _unit(a: Floats3) -> Floats3:
    length = math.hypot(*a)
    if length == 0.0 or not math.isfinite(length) or abs(length - 1.0) < ROUNDING:
        return a
    return tuple(x / length for x in a)  # type: ignore[return-value]
