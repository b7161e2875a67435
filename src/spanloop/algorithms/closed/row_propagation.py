"""Rows on their way inward: what they do to the link they have reached, to each other, and what is known of them.

| symbol | shape | meaning |
|---|---|---|
| K | Force by row | what a unit force of the row does to the link with all it carries |
| l | scalar by row | acceleration along the row at zero forces, as far as known |
| L | scalar by two rows | admittance: acceleration along one row due to a unit force of the other |
| L0 | scalar by row | the row's own admittance before any row was eliminated: the scale of its pivot |
"""

from __future__ import annotations

from typing import NamedTuple

from spanloop.algorithms.closed.pivot_tolerance import Guard
from spanloop.math.spatial import Force, Motion, Transform, power
from spanloop.math.vector3 import is_zero
from spanloop.types import Scalar


class Met(NamedTuple):
    """A row that was eliminated: f = −over (l + Kᵀ a + Σ L f), a the link's acceleration, f in Σ the other rows'."""

    row: int
    K: Force
    l: Scalar
    over: Scalar
    others: dict[int, Scalar]


class Pending(dict):
    """K by row; l, L and L0 travel along."""

    def __init__(self, K=(), l=(), L=(), L0=()):
        super().__init__(K)
        self.l, self.L, self.L0 = dict(l), dict(L), dict(L0)

    def __add__(self, other: Pending) -> Pending:
        out = Pending(self, self.l, self.L, self.L0)
        for r, k in other.items():
            out[r] = out[r] + k if r in out else k
        for mine, theirs in ((out.l, other.l), (out.L, other.L), (out.L0, other.L0)):
            for key, x in theirs.items():
                mine[key] = mine[key] + x if key in mine else x
        return out

    def admittance(self, r: int, s: int) -> Scalar:
        return self.L.get((min(r, s), max(r, s)), 0.0)

    def admit(self, r: int, s: int, value: Scalar) -> None:
        if not is_zero(value):
            key = (min(r, s), max(r, s))
            self.L[key] = self.L[key] + value if key in self.L else value

    def lead(self, r: int, acceleration: Scalar) -> None:
        """Add a known acceleration along row r."""
        self.setdefault(r, Force())
        self.l[r] = self.l.get(r, 0.0) + acceleration

    def meet(self, r: int, guard: Guard, mask: dict) -> Met:
        """Row r is a pivot: it is taken out, and the other rows are as if it were held."""
        K, l = self.pop(r), self.l.pop(r, 0.0)
        over = guard.zero(r, self.admittance(r, r), self.L0, mask)
        others = {s: x for s in self if not is_zero(x := self.admittance(r, s))}
        for s, x in others.items():
            gain = x * over
            for t in (t for t in others if t <= s):
                self.admit(s, t, -(gain * others[t]))
            self[s] = self[s] - K * gain
            self.l[s] = self.l.get(s, 0.0) - gain * l
        return Met(r, K, l, over, others)

    def pass_freedom(self, s: Motion, G: Force, e: Scalar, over: Scalar, geared: dict) -> dict[int, Scalar]:
        """All rows pass one freedom with motion s, gain G and innovation e; the torque κ/D that each has there.

        geared: rows that hold the freedom's rate itself, and their share in it.
        """
        kappa = {r: power(s, K) for r, K in self.items()}  # κ = sᵀ K
        for r, share in geared.items():
            self.setdefault(r, Force())
            kappa[r] = kappa.get(r, 0.0) + share
        kappa = {r: x for r, x in kappa.items() if not is_zero(x)}
        for r, x in kappa.items():
            gain = x * over
            for q in (q for q in kappa if q <= r):
                self.admit(r, q, gain * kappa[q])  # L += κ κᵀ/D
            self.L0[r] = self.L0.get(r, 0.0) + gain * x
            self[r] = self[r] - G * x  # K⁺ = K − G κ
            self.l[r] = self.l.get(r, 0.0) + gain * e
        return {r: x * over for r, x in kappa.items()}

    def moved(self, X: Transform) -> Pending:
        """The rows seen from the parent."""
        l = dict.fromkeys(self, 0.0) | self.l
        return Pending({r: X @ K for r, K in self.items()}, l, self.L, self.L0)

    def without_wrenches(self) -> Pending:
        return Pending((), self.l, self.L, self.L0)
