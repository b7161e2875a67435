"""Nodes of flexible bodies: poses that depend on modal coordinates, and transforms to what rides there.

Equations in parentheses are those of docs/theory/flexible.md, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spanloop.math.flexible import FlexibleInertia, halves, of_pairs, sum_of
from spanloop.math.rotation import Rotation
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Field, Motion, Transform, combined, power
from spanloop.math.vector3 import add, cross, dot, scale, subtract
from spanloop.types import Floats3, Scalar, Vector3

_TWELFTH = 1.0 / 12.0  # 2 tan(Θ/2) = Θ + Θ³/12 + …


class Seat(Transform):
    """Pose of a node in the frame of its flexible body, and how it moves with the modes.

    columns: motion of the node in the body for unit modal rates, in the node's axes; `rate` is what the rates of the
    columns add to its acceleration.
    """

    __slots__ = ("_columns", "node")

    def __init__(self, rotation: Rotation, translation: Vector3, columns: tuple[Motion, ...], node: DeformedNode):
        super().__init__(rotation, translation)
        self._columns, self.node = columns, node

    @property
    def columns(self) -> tuple[Motion, ...]:
        return self._columns

    def behind(self, first: Transform) -> Seat:
        return Seat(first.rotation @ self.rotation, first.point(self.translation), self.columns, self.node)

    def with_modes(self, inertia: Any, at_parent: Any) -> FlexibleInertia:
        """[X; Φᵀ] I [Xᵀ Φ]."""
        forces = [inertia @ c for c in self.columns]
        rigid = Transform(self.rotation, self.translation)
        modal = [[0.0] * len(forces) for _ in forces]
        for i, c in enumerate(self.columns):
            for j in range(i + 1):
                modal[i][j] = modal[j][i] = power(c, forces[j])
        return FlexibleInertia(at_parent, tuple(rigid @ f for f in forces), modal)

    def velocity(self, field: Field) -> Motion:
        return combined(self.columns, field.rates) if field.rates else Motion()

    def acceleration(self, field: Field) -> Motion:
        found = self.node.rate(self.velocity(field), field.rates) if field.rates else Motion()
        return found + combined(self.columns, field.accelerations) if field.accelerations else found


@dataclass(frozen=True)
class NodeShape:
    """How a node moves with n modes: translations Φ, small rotations Ψ, and what they are of second order in η.

    It is at x + Φ η + ½ g η η, turned by the Cayley map of Θ (1 + Θ²/12), Θ = Ψ η + ½ γ η η: by |Θ| to fifth order.
    """

    translations: tuple[Floats3, ...]
    rotations: tuple[Floats3, ...]
    bent_translations: tuple[tuple[Floats3, ...], ...]  # g_ik
    bent_rotations: tuple[tuple[Floats3, ...], ...]  # γ_ik

    def seat(self, eta: Sequence[Scalar]) -> Seat:
        """The node on the body deformed by these modal coordinates."""
        node = DeformedNode(self, eta)
        return Seat(node.rotation, node.displacement, node.columns(), node)


class DeformedNode:
    """A node at given modal coordinates (12)-(15)."""

    def __init__(self, shape: NodeShape, eta: Sequence[Scalar]):
        self.shape = shape
        slides = [sum_of(g, eta) for g in shape.bent_translations]
        turns = [sum_of(g, eta) for g in shape.bent_rotations]
        self.slopes = [add(f, s) for f, s in zip(shape.translations, slides, strict=True)]  # ∂(displacement)/∂η_i
        self.turns = [add(f, s) for f, s in zip(shape.rotations, turns, strict=True)]  # ∂Θ/∂η_i
        half = halves(eta)
        self.displacement = sum_of([add(f, s) for f, s in zip(shape.translations, self.slopes, strict=True)], half)
        self.theta = sum_of([add(f, s) for f, s in zip(shape.rotations, self.turns, strict=True)], half)
        self.stretch = 1.0 + _TWELFTH * dot(self.theta, self.theta)
        self.psi = scale(self.stretch, self.theta)
        self.share = reciprocal(1.0 + 0.25 * dot(self.psi, self.psi))
        self.rotation = _cayley(self.psi, self.share)

    def columns(self) -> tuple[Motion, ...]:
        """Motion of the node for unit modal rates, in its own axes (14)."""
        back = self.rotation.T
        turns = [self._turn(t) for t in self.turns]
        return tuple(Motion(self._spin(t), back @ s) for t, s in zip(turns, self.slopes, strict=True))

    def rate(self, relative: Motion, rates: Sequence[Scalar]) -> Motion:
        """dΦ/dt η̇, where Φ η̇ is `relative` (15)."""
        slide = of_pairs(self.shape.bent_translations, rates)
        rate, bend = sum_of(self.turns, rates), of_pairs(self.shape.bent_rotations, rates)
        curl = scale(2.0 * _TWELFTH * dot(rate, rate), self.theta)
        turn = add(self._turn(bend), add(curl, scale(4.0 * _TWELFTH * dot(self.theta, rate), rate)))  # d²ψ/dt²
        fade = -0.5 * self.share * dot(self.psi, self._turn(rate))
        angular = add(self._spin(turn), scale(fade, relative.angular))
        linear = subtract(self.rotation.T @ slide, cross(relative.angular, relative.linear))
        return Motion(angular, linear)

    def _turn(self, rate: Vector3) -> Vector3:
        """The rate of ψ = Θ (1 + Θ²/12) for one of Θ."""
        return add(scale(self.stretch, rate), scale(2.0 * _TWELFTH * dot(self.theta, rate), self.theta))

    def _spin(self, rate: Vector3) -> Vector3:
        """Angular velocity in the node's axes for a rate of ψ: (ψ̇ − ½ ψ × ψ̇)/(1 + ψ²/4)."""
        return scale(self.share, subtract(rate, scale(0.5, cross(self.psi, rate))))


def _cayley(psi: Vector3, share: Scalar) -> Rotation:
    """1 + ([ψ] + ½ [ψ]²)/(1 + ψ²/4); nothing where ψ is zero as a matter of numbers."""
    if all(isinstance(x, float) and x == 0.0 for x in psi):
        return Rotation()
    x, y, z = psi
    half = 0.5 * share
    xx, yy, zz = half * (x * x), half * (y * y), half * (z * z)
    xy, xz, yz = half * (x * y), half * (x * z), half * (y * z)
    sx, sy, sz = share * x, share * y, share * z
    return Rotation.full(
        (
            (1.0 - (yy + zz), xy - sz, xz + sy),
            (xy + sz, 1.0 - (xx + zz), yz - sx),
            (xz - sy, yz + sx, 1.0 - (xx + yy)),
        )
    )
