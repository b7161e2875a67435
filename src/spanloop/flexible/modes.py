"""The modes of a flexible body, as a joint: n coordinates that bend what it carries, and nodes that ride on it.

A flexible body stands on a joint of this kind. The frame of the body does not move with the modes: their motion space
is along the modal part of spatial vectors. What is attached to the body sits on its nodes, whose pose depends on the
modal coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from spanloop.errors import UnsupportedError
from spanloop.joints.kind import EX, EY, EZ, JointKind
from spanloop.math.flexible import Particles
from spanloop.math.flexible_nodes import NodeShape
from spanloop.math.spatial import Force, Motion, Transform

_SIX = (Force(EX), Force(EY), Force(EZ), Force(linear=EX), Force(linear=EY), Force(linear=EZ))


@dataclass(frozen=True)
class Modal(JointKind):
    """q: modal coordinates. Stiffness and damping of the modes are those of the joint.

    particles: the mass of the body that it carries; mass: of it [kg], others scale the particles; mode_units: "m" or
    "rad" for each mode; mode_names: for printouts; source: what the modes were computed from, for files.
    """

    particles: Particles
    mass: float
    mode_units: tuple[str, ...]
    mode_names: tuple[str, ...]
    source: Any = field(default=None, repr=False)

    name = "modal"
    bends = True

    @property
    def nq(self) -> int:  # type: ignore[override]
        return self.particles.n

    @property
    def units(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.mode_units

    def sizes(self) -> tuple[float, ...]:
        """A hundredth of the body's length, or 0.01 rad."""
        own = self.particles
        second = sum(x * x for p in own.positions for x in p)
        length = sqrt(3.0 * second / sum(w * w for w in own.weights))  # of a uniform rod
        return tuple(0.01 if unit == "rad" else 0.01 * length for unit in self.mode_units)

    def dof_names(self, joint):
        return tuple(f"{joint}[{mode}]" for mode in self.mode_names)

    def transform(self, q) -> Transform:
        return Transform()

    def motion_space(self, q):
        n = self.particles.n
        return tuple(Motion(modal=tuple(float(i == k) for k in range(n))) for i in range(n))

    def constraint_space(self, q):
        return _SIX

    def mirrored(self, s):
        raise UnsupportedError("modes of a flexible body cannot be mirrored; build the mirror image from its own beam")

    def scaled(self, length):
        raise UnsupportedError(
            "modes of a flexible body cannot be scaled: stiffness and mass depend on lengths in other powers; "
            "build the body from a scaled beam"
        )


@dataclass(frozen=True)
class Node(JointKind):
    """A node of the flexible body that is its parent; without coordinates of its own."""

    shape: NodeShape

    name = "node"
    units = ()
    nq = 0
    rides = True

    def transform(self, q) -> Transform:
        """Of the undeformed body."""
        return Transform()

    def seat(self, q, modes) -> Transform:
        return self.shape.seat(modes) if modes else Transform()

    def motion_space(self, q) -> tuple[Motion, ...]:
        return ()

    def constraint_space(self, q):
        return _SIX

    mirrored = Modal.mirrored
    scaled = Modal.scaled
