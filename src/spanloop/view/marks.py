"""Sizes of the marks of joints and closures: seen on limbs, and never so large that they hide bodies or each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

import numpy as np

from spanloop.model import WORLD, Model
from spanloop.model.parts import Joint
from spanloop.types import Floats3
from spanloop.view.body_shapes import Shape, corners
from spanloop.view.stand_ins import NEAR

LARGEST, SMALLEST = 0.019, 0.003  # radius of a mark, in sizes of the mechanism
OUTSIDE = 1.25  # radius of a mark on a limb, in radii of the limb
APART = 0.3  # radius, of the distance to the next mark on the same body
WITHIN = 0.3  # radius, of the smaller extents of a body with geometry of its own


class Marks:
    """Radii [m] of the marks of a model's joints and loops; 0 for a slide whose place is a loop's.

    shapes: those of the world and of every body.
    """

    def __init__(self, model: Model, shapes: Sequence[tuple[Shape, ...]], size: float):
        self.model, self.shapes, self.size = model, shapes, size
        self.points: dict[str, list[Floats3]] = {name: [] for name in model.body_number}
        for j in model.joints:
            self.points[j.parent].append(j.placement.position)
            self.points[j.child].append((0.0, 0.0, 0.0))
        for x in model.loops:
            self.points[x.a].append(x.placement_a.position)
            self.points[x.b].append(x.placement_b.position)
        self._extents = [self._extent(own) for own in shapes]

    def joints(self) -> list[float]:
        """A radius for each joint."""
        here = (0.0, 0.0, 0.0)
        return [
            0.0 if self._is_hidden(j) else self._radius((j.parent, j.placement.position), (j.child, here))
            for j in self.model.joints
        ]

    def loops(self) -> list[float]:
        """A radius for each loop."""
        return [self._radius((x.a, x.placement_a.position), (x.b, x.placement_b.position)) for x in self.model.loops]

    def _is_hidden(self, joint: Joint) -> bool:
        """Whether a slide's child is tied to another body at its origin, as a piston at its end; modes and nodes."""
        if joint.kind.bends or joint.kind.rides:
            return True
        places = [x.placement_a for x in self.model.loops if x.a == joint.child]
        places += [x.placement_b for x in self.model.loops if x.b == joint.child]
        return joint.kind.name == "prismatic" and any(hypot(*p.position) < NEAR * self.size for p in places)

    def _radius(self, *ends: tuple[str, Floats3]) -> float:
        number = self.model.body_number
        limbs = [s.size[0] for name, _ in ends for s in self.shapes[number[name]] if s.derived and s.kind == "capsule"]
        radius = max(LARGEST * self.size, OUTSIDE * max(limbs, default=0.0))
        for name, point in ends:
            radius = min(radius, self._room(name, point), self._extents[number[name]])
        return max(radius, SMALLEST * self.size, OUTSIDE * min(limbs, default=0.0))

    def _room(self, name: str, point: Floats3) -> float:
        """A share of the distance to the next mark on a body."""
        away = np.linalg.norm(np.array(self.points[name]) - point, axis=1)
        other = away[away > NEAR * self.size]
        return float("inf") if not len(other) or name == WORLD else APART * float(other.min())

    def _extent(self, own: tuple[Shape, ...]) -> float:
        """A share of the middle extent of a body's own geometry; no bound for stand-ins."""
        shown = [corners(s) for s in own if not s.derived]
        if not shown:
            return float("inf")
        return WITHIN * float(np.median(np.ptp(np.concatenate(shown), axis=0)))
