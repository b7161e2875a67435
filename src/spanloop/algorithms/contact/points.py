"""The contact points of a mechanism: gaps, and rows of their Jacobian in the axes of the links that touch.

| symbol | shape | meaning | frame |
|---|---|---|---|
| T | Transform | pose of a link | world |
| row | (6,) | [p × d; d] of a point p and a direction d = n, t1, t2; [d; 0] of torsion and rolling | link |

For twists V = [ω; u] of the links, Σ over sides of row · V is the velocity of side a on side b along d: sides a have
their rows with +, sides b with −. A side on the world has no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spanloop.algorithms.contact.pairs import pair_touches
from spanloop.algorithms.contact.touch import Side, Spot, Touch, row
from spanloop.algorithms.tree.kinematics import poses
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.spatial import Transform
from spanloop.math.vector3 import ZERO3, dot
from spanloop.model.parts import Geometry
from spanloop.sweeps import Program, walk
from spanloop.types import Floats3, Scalar

if TYPE_CHECKING:
    from spanloop.model.contacts import Contact, ContactSide
    from spanloop.model.model import Model


@dataclass(frozen=True)
class PlacedShape:
    """A shape at a frame or body of a link (−1: the world)."""

    link: int
    at: str
    geometry: Geometry
    surface_velocity: Floats3 = ZERO3  # of its surface, in the link's axes [m/s]

    def side(self, m: Any, here: Any) -> Side:
        """The shape on its link; positions of bodies on fixed joints may be traced parameters of the mechanism."""
        own = self.geometry.placement
        T = here[self.link].T if self.link >= 0 else Transform()
        return Side(T, m.anchors[self.at].at(own.rotation, own.position).transform())


@dataclass(frozen=True)
class ContactPoints:
    """The contact points of a mechanism as plain data; points are ordered by contact.

    n: number of points; B: size of a point's block, 3 (n, t1, t2), or 6 with torsion or rolling; names (n,).
    contact_of (n,): the number of a point's contact. links: sorted numbers of the links that carry a side.
    sides: for each moving side of each point, a before b: (point, index into `links`, contact).
    coefficients: friction, torsion [m], rolling [m] of each point, 3 n numbers. restitution, resting [m/s],
    stiffness [N/m] (None: rigid), damping [N s/m]: n each.
    """

    n: int
    B: int
    names: tuple[str, ...]
    contact_of: tuple[int, ...]
    links: tuple[int, ...]
    sides: tuple[tuple[int, int, int], ...]
    coefficients: tuple[float, ...]
    restitution: tuple[float, ...]
    resting: tuple[float, ...]
    stiffness: tuple[float | None, ...]
    damping: tuple[float, ...]
    pairs: tuple[tuple[PlacedShape, PlacedShape], ...]  # of the contacts: a, b

    @property
    def has_moving_surfaces(self) -> bool:
        """True if a surface moves on its body, as that of a conveyor."""
        return any(any(b.surface_velocity) for _, b in self.pairs)


def contact_points(model: Model, mechanism: Any) -> ContactPoints:
    """The contact points of a model's contacts on its mechanism."""
    return points_of(model.contacts, mechanism)


def points_of(contacts: Sequence[Contact], mechanism: Any) -> ContactPoints:
    """The contact points of some contacts on a mechanism."""
    pairs = tuple((_placed(mechanism, c.a), _placed(mechanism, c.b, c.surface_velocity)) for c in contacts)
    contact_of = tuple(k for k, c in enumerate(contacts) for _ in range(c.n_points))
    links = tuple(sorted({s.link for pair in pairs for s in pair} - {-1}))
    sides = tuple((i, links.index(s.link), k) for i, k in enumerate(contact_of) for s in pairs[k] if s.link >= 0)
    of_points: list[Contact] = [contacts[k] for k in contact_of]
    turns = any(c.torsion or c.rolling for c in contacts)
    return ContactPoints(
        n=len(contact_of),
        B=6 if turns else 3,
        names=tuple(name for c in contacts for name in c.point_names),
        contact_of=contact_of,
        links=links,
        sides=sides,
        coefficients=tuple(x for c in of_points for x in (c.friction, c.torsion, c.rolling)),
        restitution=tuple(c.restitution for c in of_points),
        resting=tuple(c.resting for c in of_points),
        stiffness=tuple(c.stiffness for c in of_points),
        damping=tuple(c.damping for c in of_points),
        pairs=pairs,
    )


def gaps(points: ContactPoints, mechanism: Any, q: Sequence[Scalar]) -> list[Scalar]:
    """The gaps (n) of all points [m]."""
    return [touch.gap for touch in all_touches(points, mechanism, q)]


def gaps_and_rows(points: ContactPoints, mechanism: Any, q: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    """The gaps (n), and for every side in order its rows: 6 · B numbers, row after row."""
    found = all_touches(points, mechanism, q)
    return [touch.gap for touch in found], rows(points, found)


def rows(points: ContactPoints, found: Sequence[Touch]) -> list[Scalar]:
    """The rows of all sides for these touches, 6 · B numbers each."""
    numbers: list[Scalar] = []
    for i, k in enumerate(points.contact_of):
        a, b = points.pairs[k]
        if a.link >= 0:
            numbers += _rows_of(found[i].a, points.B)
        if b.link >= 0:
            numbers += [-x for x in _rows_of(found[i].b, points.B)]
    return numbers


def frames(points: ContactPoints, mechanism: Any, q: Sequence[Scalar]) -> list[Scalar]:
    """For each point its position (3) [m] and its axes n, t1, t2 (9), in the world: 12 n numbers."""
    spots = [touch.world for touch in all_touches(points, mechanism, q)]
    return [x for spot in spots for vector in (spot.point, *spot.axes) for x in vector]


def surface_rates(points: ContactPoints, mechanism: Any, q: Sequence[Scalar]) -> list[Scalar]:
    """Velocities (n · B) of moving surfaces along the axes of each point, to subtract from that of a on b [m/s].

    The velocity of a surface across its own tangent plane moves nothing and is left out.
    """
    return surface_rates_at(points, all_touches(points, mechanism, q))


def surface_rates_at(points: ContactPoints, found: Sequence[Touch]) -> list[Scalar]:
    """The velocities of `surface_rates` for these touches."""
    numbers: list[Scalar] = []
    for touch, k in zip(found, points.contact_of, strict=True):
        _, t1, t2 = touch.b.axes
        velocity = points.pairs[k][1].surface_velocity
        numbers += [0.0, dot(t1, velocity), dot(t2, velocity)] + [0.0] * (points.B - 3)
    return numbers


def all_touches(points: ContactPoints, mechanism: Any, q: Sequence[Scalar]) -> list[Touch]:
    """The touches of all points, in order."""

    def result(m: Any, here: Any, world: Any) -> list[Touch]:
        return touches_at(points, m, here)

    program = Program("contact_points", ("q",), (*placed(()), poses()), result, (points.n,))
    return walk(program, mechanism, {"q": q})


def touches_at(points: ContactPoints, m: Any, here: Any) -> list[Touch]:
    """The touches of all points; after the sweeps `placed` and `poses`."""
    pairs = [(a.geometry, a.side(m, here), b.geometry, b.side(m, here)) for a, b in points.pairs]
    return [touch for pair in pairs for touch in pair_touches(*pair)]


def _rows_of(spot: Spot, B: int) -> list[Scalar]:
    numbers = [x for d in spot.axes for x in row(spot.point, d)]
    return numbers if B == 3 else numbers + [x for d in spot.axes for x in (*d, *ZERO3)]


def _placed(mechanism: Any, side: ContactSide, surface_velocity: Floats3 = ZERO3) -> PlacedShape:
    anchor = mechanism.anchors[side.at]
    return PlacedShape(anchor.link, side.at, side.geometry, anchor.transform().rotation @ surface_velocity)
