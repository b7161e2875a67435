"""Admittances: symmetric 6x6 maps from forces to accelerations, the duals of articulated inertias.

| symbol | here | meaning |
|---|---|---|
| Υ | Admittance | acceleration [α; a] = Υ [n; f] of a frame under a force at it |
| φ* Υ φ | carried(X_AB) | what frame B, fixed to A, has when A has Υ |
| τ̄* Υ τ̄ + s D⁻¹ s* | joined(s, G, D⁻¹) | beyond a DoF s with gain G, when what carries it has Υ |
"""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.math.inertia import ZERO33, ArticulatedInertia
from spanloop.math.spatial import Force, Motion, Transform
from spanloop.math.vector3 import dot, is_zero, total, transpose
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
        """φ* Υ φ: seen from frame B at pose x in A. With angular and linear parts exchanged, an admittance is carried
        outward as an inertia is carried inward."""
        there = ArticulatedInertia(self.linear, transpose(self.coupling), self.angular).carried(x.inverse())
        return Admittance(there.linear, transpose(there.coupling), there.angular)

    def joined(self, s: Motion, gain: Force, inverse_pivot: Scalar) -> Admittance | FlexibleAdmittance:
        """τ̄* Υ τ̄ + s D⁻¹ s* with τ̄ = 1 − G s*, for one degree of freedom."""
        if s.modal:
            return FlexibleAdmittance.of(self, len(s.modal)).joined(s, gain, inverse_pivot)
        column, g = tuple(s), tuple(gain)
        axis = _axis(column)
        if axis is not None and isinstance(g[axis], float) and g[axis] == 1.0:
            rows = self._joined_axis(axis, g, inverse_pivot)
        else:
            rows = self._joined_column(column, g, inverse_pivot)
        whole = ArticulatedInertia.of_rows(rows)
        return Admittance(whole.angular, whole.coupling, whole.linear)

    def _joined_axis(self, k: int, g: Sequence[Scalar], inverse_pivot: Scalar) -> list[list[Scalar]]:
        """The rows for s along axis k and a gain of 1 along it: τ̄ takes row k of Υ away, −g takes its place."""
        rows = [list(r) for r in self.rows()]
        others = [j for j in range(6) if j != k]
        x = {i: total(rows[i][j] * g[j] for j in others) for i in others}
        for i in others:
            rows[i][k] = rows[k][i] = -x[i]
        rows[k][k] = total([inverse_pivot, *(x[i] * g[i] for i in others)])
        return rows

    def _joined_column(self, s: Sequence[Scalar], g: Sequence[Scalar], inverse_pivot: Scalar) -> list[list[Scalar]]:
        """The rows for any s: Υ − w sᵀ − s restᵀ with w = Υ G."""
        return _joined_rows(self.rows(), s, g, inverse_pivot)


class FlexibleAdmittance:
    """Symmetric admittance of a flexible body with n modes, of 6 + n rows: [α; a; η̈] for [n; f; modal forces]."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Sequence[Sequence[Scalar]]):
        self._rows = rows

    @staticmethod
    def of(frame: Admittance, n: int) -> FlexibleAdmittance:
        """That of a body whose n modes are locked."""
        rows = [[*row, *(0.0,) * n] for row in frame.rows()]
        return FlexibleAdmittance(rows + [[0.0] * (6 + n) for _ in range(n)])

    def __matmul__(self, f: Force) -> Motion:
        numbers = tuple(f)
        return Motion.of([dot(r[: len(numbers)], numbers) for r in self._rows])

    def joined(self, s: Motion, gain: Force, inverse_pivot: Scalar) -> FlexibleAdmittance:
        """As Admittance.joined."""
        return FlexibleAdmittance(_joined_rows(self._rows, tuple(s), tuple(gain), inverse_pivot))

    def carried(self, x: Transform) -> Admittance:
        """φ* Υ φ, seen from a node of the body at pose x, or from a frame that no mode moves."""
        units = [Force.of([float(i == j) for j in range(6)]) for i in range(6)]
        rows = [tuple(x.T @ (self @ (x @ f))) for f in units]
        whole = ArticulatedInertia.of_rows(rows)
        return Admittance(whole.angular, whole.coupling, whole.linear)


def _joined_rows(rows: Sequence[Sequence[Scalar]], s: Sequence[Scalar], g: Sequence[Scalar], inverse_pivot: Scalar):
    """The rows of τ̄* Υ τ̄ + s D⁻¹ s* for any s: Υ − w sᵀ − s restᵀ with w = Υ G."""
    found = [list(r) for r in rows]
    w = [dot(r, g) for r in found]
    own = dot(w, g) + inverse_pivot
    rest = [w_i - own * s_i for w_i, s_i in zip(w, s, strict=True)]
    for i in range(len(found)):
        for j in range(i + 1):
            found[i][j] = found[j][i] = found[i][j] - w[i] * s[j] - s[i] * rest[j]
    return found


def _axis(six: Sequence[Scalar]) -> int | None:
    """The number of the coordinate axis along which a column lies; None where it lies along none."""
    nonzero = [k for k, x in enumerate(six) if not is_zero(x)]
    one = len(nonzero) == 1 and isinstance(six[nonzero[0]], float) and six[nonzero[0]] == 1.0
    return nonzero[0] if one else None
