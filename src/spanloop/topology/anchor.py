"""Where a frame of the user sits in the mechanism."""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.math.rotation import from_matrix
from spanloop.math.small import IDENTITY3, add, product, times
from spanloop.math.spatial import Transform
from spanloop.types import Floats33, Vector3


@dataclass(frozen=True)
class Anchor:
    """Fixed to a link (−1: the world), with this rotation and position in it."""

    link: int
    rotation: Floats33 = IDENTITY3
    position: Vector3 = (0.0, 0.0, 0.0)

    def at(self, rotation: Floats33, position: Vector3) -> Anchor:
        """A frame placed in this one."""
        return Anchor(self.link, product(self.rotation, rotation), add(self.position, times(self.rotation, position)))

    def transform(self) -> Transform:
        return Transform(from_matrix(self.rotation), self.position)
