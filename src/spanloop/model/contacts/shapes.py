"""Shapes of contacts, each a collision Geometry with its placement in a body, a frame or the world.

Arguments that all of them take:

position, rotation: of the shape: (3,) [m]; None, roll pitch yaw (3,) [rad] or a matrix (3, 3)
placement: both as one Placement, in the place of the two
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError
from spanloop.model import user_input
from spanloop.model.contacts.contact_check import check_shape
from spanloop.model.exact_rotations import snap_rotation
from spanloop.model.parts import Geometry, Placement

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_ORIGIN = (0.0, 0.0, 0.0)


def Point(
    *, position: ArrayLike = _ORIGIN, rotation: ArrayLike | None = None, placement: Placement | None = None
) -> Geometry:
    """Return a point: the origin of its placement.

    >>> sl.contacts.Point(position=(0, 0, -0.1)).placement.position
    (0.0, 0.0, -0.1)
    """
    return _shape("point", (), position, rotation, placement)


def Sphere(
    radius: float,
    *,
    position: ArrayLike = _ORIGIN,
    rotation: ArrayLike | None = None,
    placement: Placement | None = None,
) -> Geometry:
    """Return a ball; radius [m].

    >>> sl.contacts.Sphere(0.02).size
    (0.02,)
    """
    return _shape("sphere", (radius,), position, rotation, placement)


def Capsule(
    radius: float,
    length: float,
    *,
    position: ArrayLike = _ORIGIN,
    rotation: ArrayLike | None = None,
    placement: Placement | None = None,
) -> Geometry:
    """Return a capsule along z: radius [m], length between the centres of its caps [m]."""
    return _shape("capsule", (radius, length), position, rotation, placement)


def Box(
    x: float,
    y: float,
    z: float,
    *,
    position: ArrayLike = _ORIGIN,
    rotation: ArrayLike | None = None,
    placement: Placement | None = None,
) -> Geometry:
    """Return a box with edges x, y, z [m], centred on its placement."""
    return _shape("box", (x, y, z), position, rotation, placement)


def Cylinder(
    radius: float,
    length: float,
    *,
    position: ArrayLike = _ORIGIN,
    rotation: ArrayLike | None = None,
    placement: Placement | None = None,
) -> Geometry:
    """Return a cylinder along z, centred on its placement: radius and length [m]."""
    return _shape("cylinder", (radius, length), position, rotation, placement)


def Hull(
    vertices: ArrayLike,
    *,
    position: ArrayLike = _ORIGIN,
    rotation: ArrayLike | None = None,
    placement: Placement | None = None,
) -> Geometry:
    """Return the convex hull of vertices (n, 3) [m], 4 to 16 of them, not all in one plane.

    >>> corners = [(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)]
    >>> len(sl.contacts.Hull(corners).vertices)
    4
    """
    return _shape("hull", (), position, rotation, placement, vertices)


def Plane(
    *, position: ArrayLike = _ORIGIN, rotation: ArrayLike | None = None, placement: Placement | None = None
) -> Geometry:
    """Return a plane: all that is below z = 0 of its placement is solid."""
    return _shape("plane", (), position, rotation, placement)


def _shape(
    shape: str,
    size: tuple[Any, ...],
    position: ArrayLike,
    rotation: ArrayLike | None,
    placement: Placement | None,
    vertices: ArrayLike = (),
) -> Geometry:
    owner = f"contacts.{shape.capitalize()}"
    numbers = tuple(user_input.number(x, f"{owner}: a size") for x in size)
    geometry = Geometry(shape, numbers, "", _placed(owner, position, rotation, placement), "collision")
    if shape == "hull":
        geometry = Geometry(shape, (), "", geometry.placement, "collision", vertices=_points(vertices, owner))
    check_shape(geometry, owner)
    return geometry


def _placed(owner: str, position: ArrayLike, rotation: ArrayLike | None, placement: Placement | None) -> Placement:
    if placement is None:
        matrix, _ = snap_rotation(user_input.rotation(rotation, owner))
        return Placement(matrix, user_input.three(position, f"{owner}: position"))
    if not isinstance(placement, Placement):
        raise InputError(f"{owner}: placement is {placement!r}; expected a Placement, or position= and rotation=")
    if rotation is not None or position is not _ORIGIN:
        raise InputError(f"{owner}: placement and position or rotation are given; give one of the two")
    return placement


def _points(vertices: ArrayLike, owner: str) -> tuple[tuple[float, float, float], ...]:
    try:
        array = np.array(vertices, dtype=float) + 0.0
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    if array.ndim != 2 or array.shape[1] != 3:
        raise InputError(f"{owner}: vertices is {vertices!r:.200}; expected an array (n, 3) [m]")
    return tuple((x, y, z) for x, y, z in array.tolist())
