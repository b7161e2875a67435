"""Spatial vectors [angular; linear], transforms between frames, and the acceleration field of a rigid body.

Accelerations are classical: the linear part is the second derivative of the origin's position. Then the linear
velocity appears nowhere in the equations of motion, which saves a fifth of the operations.

| symbol | here | meaning |
|---|---|---|
| X_AB | Transform | pose of frame B in frame A: rotation R_AB, position of B's origin in A |
| φ    | X_AB @ f | force at B, in B's axes, seen at A in A's axes |
| φ*   | X_AB.T @ a | motion at A, in A's axes, of the point B in B's axes |
| [ω]ײ + [α]× | Field.gradient | acceleration of a body's point at r is a + gradient r |

Motions of a flexible body, and forces on it, have a modal part besides: rates of its modes, and the work that a force
does along each of them. Elsewhere it is empty, and what has none has zeros (flexible.py has transforms to its nodes).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spanloop.math.rotation import Rotation
from spanloop.math.scalar import reciprocal
from spanloop.math.symmetric import inverse
from spanloop.math.vector3 import ZERO3, add, cross, dot, is_zero, negate, scale, subtract, times, total
from spanloop.types import Matrix3, Scalar, Vector3


class _Pair:
    """Two three-vectors, angular first; of a flexible body also one number a mode."""

    __slots__ = ("angular", "linear", "modal")

    def __init__(self, angular: Vector3 = ZERO3, linear: Vector3 = ZERO3, modal: tuple[Scalar, ...] = ()):
        self.angular, self.linear, self.modal = angular, linear, modal

    def __add__(self, other):
        modal = _sum(self.modal, other.modal)
        return type(self)(add(self.angular, other.angular), add(self.linear, other.linear), modal)

    def __sub__(self, other):
        modal = _sum(self.modal, tuple(-x for x in other.modal))
        return type(self)(subtract(self.angular, other.angular), subtract(self.linear, other.linear), modal)

    def __neg__(self):
        return type(self)(negate(self.angular), negate(self.linear), tuple(-x for x in self.modal))

    def __mul__(self, k: Scalar):
        return type(self)(scale(k, self.angular), scale(k, self.linear), tuple(k * x for x in self.modal))

    def __iter__(self):
        yield from self.angular
        yield from self.linear
        yield from self.modal

    @classmethod
    def of(cls, numbers: Sequence[Scalar]):
        """From six numbers, angular first, and those of the modes."""
        return cls(tuple(numbers[:3]), tuple(numbers[3:6]), tuple(numbers[6:]))

    def turned(self, r: Rotation):
        """Both three-vectors seen in the axes that r leads to."""
        return type(self)(r @ self.angular, r @ self.linear, self.modal)

    @property
    def six(self):
        """The six numbers without those of modes."""
        return type(self)(self.angular, self.linear)


def _sum(one: tuple[Scalar, ...], other: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """The sum of two modal parts; an empty one is zero."""
    if one and other:
        return tuple(x + y for x, y in zip(one, other, strict=True))
    return one or other


class Motion(_Pair):
    """Angular and linear velocity or acceleration."""

    __slots__ = ()


class Force(_Pair):
    """Moment and force."""

    __slots__ = ()


def power(m: Motion, f: Force | Motion) -> Scalar:
    """mᵀ f; f may also be a motion, of which the numbers are multiplied alike."""
    return total([a * b for a, b in zip(m, f, strict=not (m.modal or f.modal))])


def gain(f: Force, d: Scalar) -> tuple[Force, Scalar]:
    """f/d and 1/d; an entry of f that is d itself becomes exactly 1, be it a number or traced."""
    inverse_pivot = reciprocal(d)
    if isinstance(d, float) and d != 0.0:
        return Force.of([x / d for x in f]), inverse_pivot
    return f * inverse_pivot, inverse_pivot


def dof_acceleration(nu: Scalar, G: Force, s: Motion, m: Motion) -> Scalar:
    """ν − Gᵀ m: the acceleration of a degree of freedom with motion s and gain G that moves beyond a motion m.

    For s along a coordinate axis, where G is 1, Gᵀ m is split into (G − s)ᵀ m and sᵀ m, which comes last: the link's
    acceleration m + s (ν − Gᵀ m) then loses its own part along s, and nothing is computed twice. For other s the two
    parts would cancel.
    """
    entries = [x for x in s if not is_zero(x)]
    if len(entries) > 1 or not isinstance(entries[0], float):
        return nu - power(m, G)
    rest = Force.of([g - x for g, x in zip(G, s, strict=True)])
    return (nu - power(m, rest)) - power(m, s)


def dual_basis(columns: Sequence[Motion | Force]) -> tuple[Force, ...]:
    """The columns of φ(φᵀφ)⁻¹ for those of φ: the combinations w of them with wᵢᵀ φⱼ = 1 for i = j and 0 otherwise.

    For the motion space of a joint they measure its rates; of a constraint space they are motions, six numbers each.
    """
    gram = inverse([[dot(tuple(w), tuple(u)) for u in columns] for w in columns])
    return tuple(Force.of([dot(row, x) for x in zip(*columns, strict=True)]) for row in gram)


def combined(columns: Sequence[Motion], rates: Sequence[Scalar]) -> Motion:
    """Σ column · rate: the motion space times the joint's rates."""
    m = Motion()
    for s, x in zip(columns, rates, strict=True):
        m = m + s * x
    return m


class Transform:
    """Pose of frame B in frame A."""

    __slots__ = ("rotation", "translation")

    def __init__(self, rotation: Rotation | None = None, translation: Vector3 = ZERO3):
        self.rotation, self.translation = rotation or Rotation(), translation

    def __matmul__(self, other):
        """X_AB @ X_BC = X_AC; X_AB @ f_B = f_A."""
        r, p = self.rotation, self.translation
        if isinstance(other, Transform):
            return other.behind(self)
        f = r @ other.linear
        return Force(add(r @ other.angular, cross(p, f)), f, tuple(power(c, other) for c in self.columns))

    def behind(self, first: Transform) -> Transform:
        """first @ self."""
        return Transform(first.rotation @ self.rotation, first.point(self.translation))

    @property
    def columns(self) -> tuple[Motion, ...]:
        """Motion of B in A for unit rates of the modes of A's body: none unless B is a node of a flexible one."""
        return ()

    def with_modes(self, inertia: Any, at_parent: Any) -> Any:
        """An inertia at B seen from A, with what the modes of A's body feel of it; at_parent: φ inertia φ*."""
        return at_parent

    def velocity(self, field: Field) -> Motion:
        """Motion of B in A that the modes of A's body cause, in B's axes."""
        return Motion()

    def acceleration(self, field: Field) -> Motion:
        """What the modes of A's body add to the acceleration of B, in B's axes, besides Coriolis terms."""
        return Motion()

    @property
    def T(self) -> _Transposed:
        """φ*: X_AB.T @ a takes a motion from A to B."""
        return _Transposed(self)

    def inverse(self) -> Transform:
        """Pose of A in B."""
        r = self.rotation.T
        return Transform(r, negate(r @ self.translation))

    def point(self, x: Vector3) -> Vector3:
        """Coordinates in A of a point given in B."""
        return add(self.translation, self.rotation @ x)

    def inverse_point(self, x: Vector3) -> Vector3:
        """Coordinates in B of a point given in A."""
        return self.rotation.T @ subtract(x, self.translation)


class _Transposed:
    """φ*: takes motions outward."""

    __slots__ = ("of",)

    def __init__(self, of: Transform):
        self.of = of

    def __matmul__(self, m: Motion) -> Motion:
        r = self.of.rotation.T
        own = Motion(r @ m.angular, r @ add(m.linear, cross(m.angular, self.of.translation)))
        return own + combined(self.of.columns, m.modal) if self.of.columns and m.modal else own


class Field:
    """Accelerations of all points of a rigid body, in body axes: at r it is origin + gradient r.

    omega (3,) angular velocity, alpha (3,) angular acceleration, origin (3,) acceleration of the frame's origin.
    Of a flexible body: what its points do that move with the frame; rates, accelerations of its modes.
    """

    __slots__ = ("accelerations", "alpha", "differences", "gradient", "omega", "origin", "rates")

    def __init__(
        self,
        omega: Vector3,
        alpha: Vector3 = ZERO3,
        origin: Vector3 = ZERO3,
        rates: tuple[Scalar, ...] = (),
        accelerations: tuple[Scalar, ...] = (),
    ):
        self.omega, self.alpha, self.origin = omega, alpha, origin
        self.rates, self.accelerations = rates, accelerations
        x, y, z = omega
        xx, yy, zz = x * x, y * y, z * z
        xy, xz, yz = x * y, x * z, y * z
        a, b, c = alpha
        self.gradient: Matrix3 = (
            (-(yy + zz), xy - c, xz + b),
            (xy + c, -(xx + zz), yz - a),
            (xz - b, yz + a, -(xx + yy)),
        )
        # gradient[k+2][k+2] - gradient[k+1][k+1], with one subtraction each
        self.differences: Vector3 = (zz - yy, xx - zz, yy - xx)

    def at(self, r: Vector3) -> Vector3:
        """Acceleration of the body's point r."""
        return add(self.origin, times(self.gradient, r))

    @property
    def motion(self) -> Motion:
        """[alpha; origin; accelerations of modes]."""
        return Motion(self.alpha, self.origin, self.accelerations)


def coriolis(carrier: Vector3, relative: Motion) -> Motion:
    """Acceleration of a body that moves with twist `relative` on a carrier turning with angular velocity `carrier`.

    All in the moving body's axes: [ω×ω_r; 2ω×v_r + ω_r×v_r].
    """
    twice = add(relative.linear, relative.linear)
    return Motion(
        cross(carrier, relative.angular),
        add(cross(carrier, twice), cross(relative.angular, relative.linear)),
    )


__all__ = [
    "Field",
    "Force",
    "Motion",
    "Transform",
    "combined",
    "coriolis",
    "dof_acceleration",
    "dot",
    "dual_basis",
    "gain",
    "power",
]
