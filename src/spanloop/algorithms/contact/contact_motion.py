"""Programs of contacts: where the points of a state are and how they move.

| symbol | shape | meaning | frame |
|---|---|---|---|
| V | Motion | velocity of a link at its origin | link |
| u | (6,) | velocity of side a on the surface of side b along n, t1, t2 [m/s], and about these axes [rad/s] | point |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spanloop.algorithms.contact.points import ContactPoints, points_of, surface_rates_at, touches_at
from spanloop.algorithms.contact.touch import Spot, row
from spanloop.algorithms.tree.kinematics import fly, poses
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.spatial import Motion
from spanloop.math.vector3 import dot
from spanloop.sweeps import Program, outward
from spanloop.types import Scalar

if TYPE_CHECKING:
    from spanloop.model.contacts import Contact

WIDTH = 13  # numbers of a point: gap, position (3), n, t1, t2 (3 each)


def contact_geometry(mechanism: Any, contacts: Sequence[Contact]) -> Program:
    """Gap [m], position (3) and axes n, t1, t2 (9) of every contact point in the world: (n, 13)."""
    points = points_of(contacts, mechanism)

    def result(m: Any, here: Any, world: Any) -> list[Scalar]:
        found = touches_at(points, m, here)
        return [x for t in found for x in (t.gap, *t.point, *t.world.axes[0], *t.world.axes[1], *t.world.axes[2])]

    return Program("contact_geometry", ("q",), (*placed(()), poses()), result, (points.n, WIDTH))


def contact_velocities(mechanism: Any, contacts: Sequence[Contact]) -> Program:
    """Velocity (n, 6) of side a on the surface of side b along n, t1, t2 of every contact point, and about them."""
    points = points_of(contacts, mechanism)

    def result(m: Any, here: Any, world: Any) -> list[Scalar]:
        return _velocities(points, m, here)

    sweeps = (*placed(()), poses(), outward(fly, V=Motion()))
    return Program("contact_velocities", ("q", "v"), sweeps, result, (points.n, 6))


def _velocities(points: ContactPoints, m: Any, here: Any) -> list[Scalar]:
    found = touches_at(points, m, here)
    surfaces = surface_rates_at(points, found)
    numbers: list[Scalar] = []
    for i, k in enumerate(points.contact_of):
        u: list[Scalar] = [-x for x in surfaces[i * points.B : i * points.B + 3]] + [0.0] * 3
        for shape, spot, sign in zip(points.pairs[k], (found[i].a, found[i].b), (1.0, -1.0), strict=True):
            if shape.link >= 0:
                u = [x + sign * y for x, y in zip(u, _rates(spot, here[shape.link].V), strict=True)]
        numbers += u
    return numbers


def _rates(spot: Spot, V: Motion) -> list[Scalar]:
    """Velocity of a link's point along its axes, and about them."""
    return [dot(row(spot.point, d), tuple(V)) for d in spot.axes] + [dot(d, V.angular) for d in spot.axes]
