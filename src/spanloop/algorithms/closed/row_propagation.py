"""Closure rows that travel inward: the subtree that they have passed, as the rows and the next joint feel it.

Equations in parentheses are those of docs/theory/elimination.md; r, t and u are rows.

| symbol | shape | meaning |
|---|---|---|
| K | Force by row | what a unit force of the row does to the link with all that it carries (6) |
| l | scalar by row | acceleration along the row at zero forces and zero acceleration of the link (7) |
| L | scalar by two rows | admittance: acceleration along one row due to a unit force of the other (7) |
| L0 | scalar by row | the row's own admittance before any row is eliminated: the scale of its pivot (19) |
| s, G, D, e | Motion, Force, scalars | a degree of freedom's motion, gain, pivot, torque left (ε) (9) |
| σ (coupled) | scalar by row | factor of the degree of freedom's own rate in a coupling's row (4) |
| κ | scalar by row | torque that a unit force of the row exerts at a degree of freedom (9) |
| shares | scalar by row | κ/D: acceleration of the degree of freedom due to a unit force of the row (9) |
| others | scalar by row | L_rt of an eliminated row r by the rows t that are still pending (14) |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spanloop.algorithms.closed.pivot_tolerance import PivotTolerance
from spanloop.math.spatial import Force, Motion, Transform, power
from spanloop.math.vector3 import is_zero
from spanloop.types import Scalar


class EliminatedRow(NamedTuple):
    """A row r with its force f_r = −(l + Kᵀ a + Σ L_rt f_t)/L_rr, where a is the link's acceleration beyond ζ (14)."""

    row: int
    K: Force
    l: Scalar
    inverse_pivot: Scalar
    others: dict[int, Scalar]


@dataclass(frozen=True)
class PendingRows:
    """The rows that have reached a link and are not eliminated yet."""

    K: Mapping[int, Force] = field(default_factory=dict)
    l: Mapping[int, Scalar] = field(default_factory=dict)
    L: Mapping[tuple[int, int], Scalar] = field(default_factory=dict)  # (smaller number, larger)
    L0: Mapping[int, Scalar] = field(default_factory=dict)

    def __add__(self, other: PendingRows) -> PendingRows:
        """The rows of two subtrees that meet at a link (8)."""
        return PendingRows(_sum(self.K, other.K), _sum(self.l, other.l), _sum(self.L, other.L), _sum(self.L0, other.L0))

    def admittance(self, r: int, t: int) -> Scalar:
        """L_rt."""
        return self.L.get(_pair(r, t), 0.0)

    def with_acceleration(self, r: int, acceleration: Scalar) -> PendingRows:
        """With a known acceleration along row r more (12)."""
        K = self.K if r in self.K else {**self.K, r: Force()}
        return replace(self, K=K, l=_sum(self.l, {r: acceleration}))

    def kappa(self, s: Motion, coupled: Mapping[int, Scalar]) -> dict[int, Scalar]:
        """κ = sᵀ K + σ of the rows that a degree of freedom with motion s moves (9)."""
        kappa = {r: power(s, k) for r, k in self.K.items()}
        for r, factor in coupled.items():
            kappa[r] = kappa.get(r, 0.0) + factor
        return {r: x for r, x in kappa.items() if not is_zero(x)}

    def past_dof(
        self, s: Motion, G: Force, e: Scalar, inverse_pivot: Scalar, coupled: Mapping[int, Scalar]
    ) -> tuple[PendingRows, dict[int, Scalar]]:
        """The rows beyond a degree of freedom with motion s, gain G and residual torque e; κ/D of each row (9)-(11).

        coupled: σ of the rows that hold the rate of this degree of freedom itself.
        """
        K = dict(self.K) | {r: Force() for r in coupled if r not in self.K}
        kappa = self.kappa(s, coupled)
        shares = {r: x * inverse_pivot for r, x in kappa.items()}
        more = {_pair(r, t): shares[r] * kappa[t] for r in kappa for t in kappa if t <= r}
        L = _sum(self.L, {pair: x for pair, x in more.items() if not is_zero(x)})  # L⁺ = L + κ κᵀ/D (11)
        L0 = _sum(self.L0, {r: shares[r] * x for r, x in kappa.items()})
        K |= {r: K[r] - G * x for r, x in kappa.items()}  # K⁺ = K − G κ (10)
        l = _sum(self.l, {r: x * e for r, x in shares.items()})  # l⁺ = l + κ e/D (11)
        return PendingRows(K, l, L, L0), shares

    def without(
        self, r: int, tolerance: PivotTolerance, mask: Mapping[int, Scalar]
    ) -> tuple[PendingRows, EliminatedRow]:
        """The other rows with row r closed, and row r as a function of them (14), (15)."""
        K, l = dict(self.K), dict(self.l)
        K_r, l_r = K.pop(r), l.pop(r, 0.0)
        inverse_pivot = tolerance.inverse(r, self.admittance(r, r), self.L0, mask)
        others = {t: x for t in K if not is_zero(x := self.admittance(r, t))}
        gains = {t: x * inverse_pivot for t, x in others.items()}  # L_rt/L_rr
        less = {_pair(t, u): -(gains[t] * others[u]) for t in others for u in others if u <= t}
        L = _sum(self.L, {pair: x for pair, x in less.items() if not is_zero(x)})
        K |= {t: K[t] - K_r * gain for t, gain in gains.items()}
        l |= {t: l.get(t, 0.0) - gain * l_r for t, gain in gains.items()}
        return PendingRows(K, l, L, self.L0), EliminatedRow(r, K_r, l_r, inverse_pivot, others)

    def moved(self, X: Transform) -> PendingRows:
        """The rows seen from the parent (13)."""
        return replace(self, K={r: X @ k for r, k in self.K.items()}, l=dict.fromkeys(self.K, 0.0) | dict(self.l))

    def without_wrenches(self) -> PendingRows:
        """The rows of a free body, whose acceleration stays unknown, on their way to the root system."""
        return replace(self, K={})


def _pair(r: int, t: int) -> tuple[int, int]:
    return min(r, t), max(r, t)


def _sum(one: Mapping, other: Mapping) -> dict:
    """The sum, key by key."""
    return {**one, **{key: one[key] + x if key in one else x for key, x in other.items()}}
