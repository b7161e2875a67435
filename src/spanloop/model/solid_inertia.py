"""Principal moments of inertia [kg m²] of homogeneous shapes about their centre, along x, y, z."""

from __future__ import annotations

from spanloop.errors import InputError, nearest
from spanloop.types import Floats3


def rod(mass: float, length: float, axis: str = "x") -> Floats3:
    """A thin rod along an axis: m l²/12 across it and nothing along it."""
    across = mass * length * length / 12.0
    return _along(axis, 0.0, across)


def box(mass: float, x: float, y: float, z: float) -> Floats3:
    """A box with edges x, y, z [m]: m (y² + z²)/12 about x, and so on."""
    k = mass / 12.0
    return (k * (y * y + z * z), k * (x * x + z * z), k * (x * x + y * y))


def ball(mass: float, radius: float) -> Floats3:
    """A full sphere: 2/5 m r²."""
    moment = 0.4 * mass * radius * radius
    return (moment, moment, moment)


def cylinder(mass: float, radius: float, length: float, axis: str = "z") -> Floats3:
    """A full cylinder along an axis: m r²/2 along it, m (3 r² + l²)/12 across it."""
    square = radius * radius
    return _along(axis, 0.5 * mass * square, mass * (3.0 * square + length * length) / 12.0)


def _along(axis: str, along: float, across: float) -> Floats3:
    if axis not in ("x", "y", "z"):
        raise InputError(f"shape: axis is {axis!r}; {nearest(axis, 'xyz')}")
    x, y, z = (along if axis == name else across for name in "xyz")
    return (x, y, z)
