"""Closure rows that travel inward: the subtree that they have passed, as the rows and the next joint feel it.

Equations in parentheses are those of docs/theory/elimination.md.

| symbol | shape | meaning |
|---|---|---|
| K | Force by row | what a unit force of the row does to the link with all that it carries (6) |
| l | scalar by row | acceleration along the row at zero forces and zero acceleration of the link (7) |
| L | scalar by two rows | admittance: acceleration along one row due to a unit force of the other (7) |
| L0 | scalar by row | the row's own admittance before any row is eliminated: the scale of its pivot (19) |
| κ | scalar by row | torque that a unit force of the row exerts at a degree of freedom |
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
    """A row with its force f = −(l + Kᵀ a + Σ L f)/L_rr, a the link's acceleration, f in Σ the other rows' (14)."""

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

    def admittance(self, r: int, s: int) -> Scalar:
        """L_rs."""
        return self.L.get(_pair(r, s), 0.0)

    def with_acceleration(self, r: int, acceleration: Scalar) -> PendingRows:
        """With a known acceleration along row r more (12)."""
        K = self.K if r in self.K else {**self.K, r: Force()}
        return replace(self, K=K, l=_sum(self.l, {r: acceleration}))

    def past_dof(
        self, s: Motion, G: Force, e: Scalar, inverse_pivot: Scalar, coupled: Mapping[int, Scalar]
    ) -> tuple[PendingRows, dict[int, Scalar]]:
        """The rows beyond a degree of freedom with motion s, gain G and residual torque e; κ/D of each row (9)-(11).

        coupled: rows that hold the rate of this degree of freedom itself, and their factors σ.
        """
        K = dict(self.K) | {r: Force() for r in coupled if r not in self.K}
        kappa = {r: power(s, k) for r, k in self.K.items()}
        for r, factor in coupled.items():
            kappa[r] = kappa.get(r, 0.0) + factor
        kappa = {r: x for r, x in kappa.items() if not is_zero(x)}  # κ = sᵀ K + σ (9)
        shares = {r: x * inverse_pivot for r, x in kappa.items()}
        more = {_pair(r, q): shares[r] * kappa[q] for r in kappa for q in kappa if q <= r}
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
        k, a = K.pop(r), l.pop(r, 0.0)
        inverse_pivot = tolerance.inverse(r, self.admittance(r, r), self.L0, mask)
        others = {s: x for s in K if not is_zero(x := self.admittance(r, s))}
        gains = {s: x * inverse_pivot for s, x in others.items()}
        less = {_pair(s, t): -(gains[s] * others[t]) for s in others for t in others if t <= s}
        L = _sum(self.L, {pair: x for pair, x in less.items() if not is_zero(x)})
        K |= {s: K[s] - k * gain for s, gain in gains.items()}
        l |= {s: l.get(s, 0.0) - gain * a for s, gain in gains.items()}
        return PendingRows(K, l, L, self.L0), EliminatedRow(r, k, a, inverse_pivot, others)

    def moved(self, X: Transform) -> PendingRows:
        """The rows seen from the parent (13)."""
        return replace(self, K={r: X @ k for r, k in self.K.items()}, l=dict.fromkeys(self.K, 0.0) | dict(self.l))

    def without_wrenches(self) -> PendingRows:
        """The rows of a free body, whose acceleration stays unknown, on their way to the root system."""
        return replace(self, K={})


def _pair(r: int, s: int) -> tuple[int, int]:
    return min(r, s), max(r, s)


def _sum(one: Mapping, other: Mapping) -> dict:
    """The sum, key by key."""
    return {**one, **{key: one[key] + x if key in one else x for key, x in other.items()}}
