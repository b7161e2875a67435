"""Contacts as frozen data. SI units; the normal of a contact points from b to a, its force acts on a."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from spanloop.math.vector3 import times
from spanloop.model.parts import Geometry, Placement
from spanloop.types import Floats3

if TYPE_CHECKING:
    from spanloop.model.model import Model

SETTINGS = (
    "friction", "restitution", "torsion", "rolling", "stiffness", "damping", "surface_velocity", "resting",
)  # fmt: skip
MOST_VERTICES = 16  # of a hull
# pairs of shapes with a gap in closed form -> number of points that can touch; of a hull one for each vertex
PAIRS = {
    ("plane", "point"): 1,
    ("plane", "sphere"): 1,
    ("plane", "capsule"): 2,
    ("plane", "box"): 8,
    ("plane", "cylinder"): 10,
    ("plane", "hull"): MOST_VERTICES,
    ("sphere", "sphere"): 1,
    ("sphere", "capsule"): 1,
    ("sphere", "box"): 1,
    ("sphere", "cylinder"): 1,
    ("capsule", "capsule"): 2,
    ("point", "sphere"): 1,
    ("point", "capsule"): 1,
    ("point", "box"): 1,
    ("point", "cylinder"): 1,
}


@dataclass(frozen=True)
class ContactSide:
    """One of the two shapes of a contact.

    at: name of the body or frame that carries it, or "world"
    geometry: its shape, size [m] and placement in the frame `at`, without a surface: the contact has the values of both
    """

    at: str
    geometry: Geometry

    def __post_init__(self) -> None:
        if self.geometry.surface is not None:
            object.__setattr__(self, "geometry", replace(self.geometry, surface=None))

    def on(self, model: Model) -> tuple[str, Placement]:
        """Return the name of the body that carries the shape ("world" for none) and the shape's placement in it."""
        frame = model.frame(self.at)
        return frame.body, frame.placement @ self.geometry.placement


@dataclass(frozen=True)
class Contact:
    """A pair of shapes that can touch: it pushes, rubs and rebounds, and never pulls.

    name: of the contact; its points are called `point_names`
    a, b: the two shapes; the gap is positive where they are apart, the normal points from b to a
    friction: Coulomb's coefficient µ of the circular cone
    restitution: e of Newton's law, 0 (plastic) to 1 (elastic)
    torsion, rolling: of friction about the normal and about the tangents [m]: a torque per normal force
    stiffness, damping: of a compliant contact [N/m, N s/m]; None: hard
    surface_velocity: of the surface of b relative to b (3) [m/s], in the axes of its frame: a conveyor
    resting: an impact slower than this [m/s] does not rebound
    """

    name: str
    a: ContactSide
    b: ContactSide
    friction: float = 0.0
    restitution: float = 0.0
    torsion: float = 0.0
    rolling: float = 0.0
    stiffness: float | None = None
    damping: float = 0.0
    surface_velocity: Floats3 = (0.0, 0.0, 0.0)
    resting: float = 1e-3
    where: str = field(default="", compare=False, repr=False)

    @property
    def sides(self) -> tuple[ContactSide, ContactSide]:
        """Both shapes: a, b."""
        return self.a, self.b

    @property
    def pair(self) -> tuple[str, str]:
        """Names of the two shapes in the order of PAIRS, or as they are where no order is supported."""
        shapes = (self.a.geometry.shape, self.b.geometry.shape)
        return shapes if shapes in PAIRS or shapes[::-1] not in PAIRS else shapes[::-1]

    @property
    def n_points(self) -> int:
        """Number of points of the pair that can touch."""
        vertices = self.a.geometry.vertices or self.b.geometry.vertices
        return len(vertices) if "hull" in self.pair else PAIRS[self.pair]

    @property
    def point_names(self) -> tuple[str, ...]:
        """Names of the points: that of the contact if it has one point, else NAME.0, NAME.1, ..."""
        return (self.name,) if self.n_points == 1 else tuple(f"{self.name}.{k}" for k in range(self.n_points))

    @property
    def has_torques(self) -> bool:
        """Whether friction resists spinning or rolling."""
        return self.torsion > 0.0 or self.rolling > 0.0


def moved_contact(contact: Contact, places: Mapping[str, tuple[str, Placement]]) -> Contact:
    """The contact with each side that is on a named place put on another, where the first has a placement."""

    def moved(side: ContactSide) -> ContactSide:
        if side.at not in places:
            return side
        at, placement = places[side.at]
        return ContactSide(at, replace(side.geometry, placement=placement @ side.geometry.placement))

    velocity: Floats3 = contact.surface_velocity
    if contact.b.at in places:
        velocity = times(places[contact.b.at][1].rotation, velocity)
    return replace(contact, a=moved(contact.a), b=moved(contact.b), surface_velocity=velocity)


def contact_content(model: Model) -> str:
    """A hash of what kernels with contacts depend on, besides `spanloop.kernels.spec.content` of the model."""
    parts = [
        (
            c.name,
            [(s.at, s.geometry.shape, s.geometry.size, s.geometry.vertices, s.geometry.placement) for s in c.sides],
            [getattr(c, name) for name in SETTINGS],
        )
        for c in model.contacts
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()
