"""Admittances: symmetric 6x6 maps from forces to accelerations, the duals of articulated inertias.

| symbol | here | meaning |
|---|---|---|
| Υ | Admittance | acceleration [α; a] = Υ [n; f] of a frame under a force at it |
| φ* Υ φ | carried(X_AB) | what frame B, fixed to A, has when A has Υ |
| τ̄* Υ τ̄ + s D⁻¹ s* | joined(s, G, D⁻¹) | what lies beyond a freedom s with gain G, when what carries it has Υ |
"""

from __future__ import annotations

from spanloop.math.inertia import ZERO33, ArticulatedInertia
from spanloop.math.spatial import Force, Motion, Transform, power
from spanloop.math.vector3 import dot, transpose
from spanloop.types import Matrix3, Scalar


class Admittance:
    """Symmetric 6x6 in blocks: [α; a] = ((A, H), (Hᵀ, M)) [n; f]."""

    __slots__ = ("angular", "coupling", "linear")

    def __init__(self, angular: Matrix3 = ZERO33, coupling: Matrix3 = ZERO33, linear: Matrix3 = ZERO33):
        self.angular, self.coupling, self.linear = angular, coupling, linear

    def rows(self) -> tuple:
        """The six rows."""
        return ArticulatedInertia(self.angular, self.coupling, self.linear).rows()

    def __matmul__(self, f: Force) -> Motion:
        six = tuple(f)
        return Motion.of([dot(r, six) for r in self.rows()])

    def carried(self, x: Transform) -> Admittance:
        """φ* Υ φ. With angular and linear parts exchanged, motions move from A to B as forces do."""
        there = ArticulatedInertia(self.linear, transpose(self.coupling), self.angular).carried(x.inverse())
        return Admittance(there.linear, transpose(there.coupling), there.angular)

    def joined(self, s: Motion, gain: Force, over: Scalar) -> Admittance:
        """τ̄* Υ τ̄ + s D⁻¹ s* with τ̄ = 1 − G s*, one freedom."""
        w, column = self @ gain, tuple(s)
        own = power(w, gain) + over
        side = [w_i - 0.5 * (own * s_i) for w_i, s_i in zip(w, column, strict=True)]  # Υ − s sideᵀ − side sᵀ
        rows = [list(r) for r in self.rows()]
        for i in range(6):
            for j in range(i + 1):
                rows[i][j] = rows[j][i] = rows[i][j] - (column[i] * side[j] + side[i] * column[j])
        whole = ArticulatedInertia.of_rows(rows)
        return Admittance(whole.angular, whole.coupling, whole.linear)
