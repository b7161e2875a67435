"""Rows of closures with all that is known of the acceleration along them, beside ζ of drifting.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from spanloop.algorithms.closed import bias, closing
from spanloop.algorithms.closed.rows import B, Row, basis_of, rows
from spanloop.algorithms.closed.setting import Setting
from spanloop.math.small import ZERO3, dot, negate
from spanloop.math.spatial import Field, Force, Motion, power
from spanloop.math.symmetric import inverse
from spanloop.types import Scalar


@dataclass(frozen=True)
class Telling:
    """Which rows are left out, and what the others are told: velocities' share alone, or feedback of their errors."""

    dropped: frozenset[int] = frozenset()
    told: bias.Motion | bias.Feedback = field(default_factory=bias.Motion)

    @staticmethod
    def of(setting: Setting, feedback: bool) -> Telling:
        return Telling(setting.dropped, bias.Feedback() if feedback else bias.Motion())

    def sizes(self, mechanism) -> dict[str, int]:
        """Inputs of the dynamics that belong to closures."""
        return closing.extra_inputs(mechanism) | ({"gains": 2} if self.told.child_axes else {})

    def needs_velocities(self, mechanism) -> bool:
        return self.told.child_axes or any(c.slides for c in mechanism.closures)


def known_rows(m, here, world, closure, telling: Telling, child_axes: bool = False) -> Iterator[tuple[Row, Scalar]]:
    """A closure's rows, each with γ: what ζ and the velocities do along it, less what is given.

    With λ, the accelerations of its two links beyond ζ, the row says K_aᵀ λ_a + K_bᵀ λ_b + γ = 0.
    child_axes: must they be written in the axes of the closure's child frame?
    """
    given = closing.given(m, world)
    own = child_axes or telling.told.child_axes
    for row in rows(m, here, closure, B if own else basis_of(m, closure, telling.dropped), Field(ZERO3)):
        if row.number in telling.dropped:
            continue
        known = telling.told.of_row(m, here, world, closure, row) - given.get(row.number, 0.0)
        for link, wrench in ((closure.a.link, row.on_a), (closure.b.link, row.on_b)):
            drift = here[link].zeta.motion if link >= 0 else Motion(linear=negate(m.gravity))
            known = known + power(drift, wrench)
        yield row, known


def dual(space: Sequence) -> tuple[Force, ...]:
    """Of columns φ those of φ(φᵀφ)⁻¹."""
    gram = inverse([[dot(tuple(w), tuple(u)) for u in space] for w in space])
    return tuple(Force.of([dot(row, x) for x in zip(*space, strict=True)]) for row in gram)
