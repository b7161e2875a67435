"""Rows of closures with all that is known of the acceleration along them, beside ζ of drifting.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spanloop.algorithms.closed import closing
from spanloop.algorithms.closed.rows import Row, rows
from spanloop.math.small import dot, negate
from spanloop.math.spatial import Force, Motion, power
from spanloop.math.symmetric import inverse
from spanloop.types import Scalar


def known_rows(m, here, world, closure, basis: str, dropped=frozenset()) -> Iterator[tuple[Row, Scalar]]:
    """A closure's rows, each with γ: what ζ and the velocities do along it, less what is given.

    With λ, the accelerations of its two links beyond ζ, the row says K_aᵀ λ_a + K_bᵀ λ_b + γ = 0.
    """
    given = closing.given(m, world)
    for row in rows(m, here, closure, basis):
        if row.number in dropped:
            continue
        known = row.bias - given.get(row.number, 0.0)
        for link, wrench in ((closure.a.link, row.on_a), (closure.b.link, row.on_b)):
            drift = here[link].zeta.motion if link >= 0 else Motion(linear=negate(m.gravity))
            known = known + power(drift, wrench)
        yield row, known


def dual(space: Sequence) -> tuple[Force, ...]:
    """Of columns φ those of φ(φᵀφ)⁻¹."""
    gram = inverse([[dot(tuple(w), tuple(u)) for u in space] for w in space])
    return tuple(Force.of([dot(row, x) for x in zip(*space, strict=True)]) for row in gram)
