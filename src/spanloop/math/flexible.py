"""Flexible bodies: inertia that depends on modal coordinates. flexible_nodes.py has the poses of their nodes.

A flexible body is a set of particles. Particle p, times the root of its mass, is at r_p = x_p + φ_pi η_i + ½ g_pik η_i
η_k in the body's frame: modes φ, and a second-order field g, by which a bent body shortens. In the kinetic energy and
in the Jacobians of nodes g is geometric stiffening under every load. Cross-sections turn besides; their rotary inertia
is kept to second order. The forces below follow from this kinetic energy without further approximation, so that energy
is kept, and M is positive definite; docs/theory/flexible.md derives them, numbers in parentheses are its equations.

| symbol | here | shape | meaning |
|---|---|---|---|
| η, η̇, η̈ | eta, field.rates, field.accelerations | n | modal coordinates |
| w_p | weights | particles | root of the mass of a particle [√kg] |
| x_p, φ_pi, g_pik | positions, translations, bent | 3 | position, and its first and second derivative by η, times w_p |
| s_pi | slopes | 3 | ∂r_p/∂η_i = φ_pi + g_pik η_k |
| C_i, C_ij, E_ij | Sections | 3×3 | ∫ρ (Θ_i × ρ)ᵀ, ∫(Θ_i × ρ)(Θ_j × ρ)ᵀ, ∫ρ g_ij(ρ)ᵀ over sections, ρ in them |
| E_i | turned.E | 3×3 | C_i + (C_ji + E_ij) η_j |
| p_i, a_i | coupling | 3, 3 | Σ w s_i, Σ r × s_i + axial E_i: momentum at the frame for unit modal rates |
| m_ij | modal | n×n | Σ s_i · s_j + tr C_ij |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spanloop.math.inertia import RigidInertia
from spanloop.math.spatial import Field, Force, Motion, Transform, power
from spanloop.math.vector3 import (
    ZERO3,
    add,
    add_matrices,
    cross,
    dot,
    scale,
    scale_matrix,
    subtract,
    times,
    total,
    trace,
    transpose,
)
from spanloop.types import Floats3, Floats33, Matrix3, Scalar, Vector3


@dataclass(frozen=True)
class Sections:
    """Rotary inertia of cross-sections that turn with n modes [kg m²].

    mixed: C_i; gradients: C_ji + E_ij at [i][j]; swirls: axial C_ji at [i][j]; curls: axial E_ij; masses: tr C_ij.
    """

    mixed: tuple[Floats33, ...]
    gradients: tuple[tuple[Floats33, ...], ...]
    swirls: tuple[tuple[Floats3, ...], ...]
    curls: tuple[tuple[Floats3, ...], ...]
    masses: tuple[tuple[float, ...], ...]


class _Turned:
    """Sections of a deformed body: E_i, and their second moment beyond that of the undeformed body (10)."""

    __slots__ = ("E", "of", "second")

    def __init__(self, sections: Sections, eta: Sequence[Scalar]):
        turns = [sum_of_matrices(row, eta) for row in sections.gradients]
        self.of, self.E = sections, [add_matrices(c, t) for c, t in zip(sections.mixed, turns, strict=True)]
        both = sum_of_matrices([add_matrices(c, e) for c, e in zip(sections.mixed, self.E, strict=True)], eta)
        self.second: Matrix3 = scale_matrix(0.5, add_matrices(both, transpose(both)))

    def force(self, field: Field) -> Force:
        """What their turning adds to moment and modal forces (8), (9), besides `second` in the inertia of the body."""
        modal = [total(field.gradient[a][b] * e[b][a] for a in range(3) for b in range(3)) for e in self.E]
        if not field.rates:
            return Force(modal=tuple(modal))
        flow, double = sum_of_matrices(self.E, field.rates), add(field.omega, field.omega)
        spin = subtract(scale(trace(flow), double), times(transpose(flow), double))
        swirls = [dot(double, sum_of(row, field.rates)) for row in self.of.swirls]
        moment = add(spin, of_pairs(self.of.curls, field.rates))
        return Force(moment, modal=tuple(x + y for x, y in zip(modal, swirls, strict=True)))


@dataclass(frozen=True)
class Particles:
    """The mass of a flexible body with n modes, as particles and as rotary inertia of its sections.

    Positions and their derivatives are multiplied by the root of the particle's mass [√kg m]. Particles need not be
    points of the body: any set with the same products stands for the same mass.
    """

    weights: tuple[float, ...]
    positions: tuple[Floats3, ...]
    translations: tuple[tuple[Floats3, ...], ...]  # by particle and mode
    bent: tuple[tuple[tuple[Floats3, ...], ...], ...]  # by particle and two modes
    sections: Sections

    @property
    def n(self) -> int:
        """Number of modes."""
        return len(self.sections.mixed)

    @property
    def modal_masses(self) -> list[float]:
        """The mass of each mode: m_ii at η = 0."""
        own = [sum(x * x for f in self.translations for x in f[i]) for i in range(self.n)]
        return [x + self.sections.masses[i][i] for i, x in enumerate(own)]

    @property
    def rigid(self) -> RigidInertia:
        """Mass, first and second moment of the particles at η = 0."""
        mass = sum(w * w for w in self.weights)
        first = tuple(sum(w * x[k] for w, x in zip(self.weights, self.positions, strict=True)) for k in range(3))
        second = tuple(tuple(sum(x[a] * x[b] for x in self.positions) for b in range(3)) for a in range(3))
        return RigidInertia(mass, first, second)  # type: ignore[arg-type]


class FlexibleInertia:
    """Inertia of 6 + n rows: of the body's frame, a RigidInertia or an ArticulatedInertia, and of its modes.

    coupling: n forces at the frame for unit modal accelerations; modal (n, n): modal masses.
    """

    __slots__ = ("coupling", "modal", "rigid")

    def __init__(self, rigid, coupling: tuple[Force, ...], modal: Sequence[Sequence[Scalar]]):
        self.rigid, self.coupling, self.modal = rigid, coupling, modal

    def __add__(self, other):
        """The sum; an inertia without modes has none to add."""
        if not isinstance(other, FlexibleInertia):
            return FlexibleInertia(self.rigid + other, self.coupling, self.modal)
        coupling = tuple(a + b for a, b in zip(self.coupling, other.coupling, strict=True))
        rows = zip(self.modal, other.modal, strict=True)
        modal = tuple(tuple(x + y for x, y in zip(a, b, strict=True)) for a, b in rows)
        return FlexibleInertia(self.rigid + other.rigid, coupling, modal)

    def __matmul__(self, m: Motion) -> Force:
        """Momentum of a velocity, or force of an acceleration at rest."""
        own = self.rigid @ m.six
        modal = [power(m.six, c) for c in self.coupling]
        for c, x in zip(self.coupling, m.modal, strict=False):
            own = own + c * x
        if m.modal:
            modal = [p + dot(row, m.modal) for p, row in zip(modal, self.modal, strict=True)]
        return Force(own.angular, own.linear, tuple(modal))

    def articulated(self) -> FlexibleInertia:
        """The same with a 6x6 for the frame."""
        return FlexibleInertia(self.rigid.articulated(), self.coupling, self.modal)

    def less(self, gain: Force, f: Force) -> FlexibleInertia:
        """I − gain fᵀ, where gain is a multiple of f: what is left when one direction yields freely."""
        rigid = self.rigid.less(gain.six, f.six)
        coupling = tuple(c - f.six * x for c, x in zip(self.coupling, gain.modal, strict=True))
        n = range(len(self.modal))
        modal = [[0.0] * len(n) for _ in n]
        for i in n:
            for j in range(i + 1):
                modal[i][j] = modal[j][i] = self.modal[i][j] - f.modal[i] * gain.modal[j]
        return FlexibleInertia(rigid, coupling, modal)

    def carried(self, x: Transform):
        """The inertia of the frame seen from a parent, with the modes locked, or after they have yielded."""
        return self.rigid.carried(x)

    @property
    def mass(self) -> Scalar:
        """Mass [kg]."""
        return self.rigid.mass

    @property
    def first(self) -> Vector3:
        """First moment [kg m]."""
        return self.rigid.first


class DeformableInertia:
    """A flexible body: its rigid inertia at η = 0, and particles whose masses are multiplied by `factor`."""

    __slots__ = ("factor", "particles", "rest", "rigid")

    def __init__(self, rigid: RigidInertia, particles: Particles, factor: Scalar = 1.0):
        self.rigid, self.particles, self.factor = rigid, particles, factor
        own = particles.rigid
        self.rest = RigidInertia(  # what the particles do not have: rotary inertia of sections
            rigid.mass,
            _difference(rigid.first, scale(factor, own.first)),
            tuple(  # type: ignore[arg-type]
                _difference(a, b) for a, b in zip(rigid.second, scale_matrix(factor, own.second), strict=True)
            ),
        )

    mass = property(lambda self: self.rigid.mass)
    first = property(lambda self: self.rigid.first)
    second = property(lambda self: self.rigid.second)

    def __matmul__(self, m: Motion) -> Force:
        """Momentum at η = 0."""
        return self.at((0.0,) * self.particles.n) @ m

    def at(self, eta: Sequence[Scalar]) -> DeformedInertia:
        """The inertia of the deformed body."""
        found = [
            _Particle(w, x, f, g, eta)
            for w, x, f, g in zip(
                self.particles.weights,
                self.particles.positions,
                self.particles.translations,
                self.particles.bent,
                strict=True,
            )
        ]
        return DeformedInertia(self, found, _Turned(self.particles.sections, eta))


class _Particle:
    """A particle of a deformed body: position r and slopes ∂r/∂η_i, times the root of its mass (2)."""

    __slots__ = ("bent", "r", "slopes", "weight")

    def __init__(self, weight: float, x: Vector3, translations, bent, eta: Sequence[Scalar]):
        turns = [sum_of(g, eta) for g in bent]
        self.weight, self.bent = weight, bent
        self.slopes = [add(f, t) for f, t in zip(translations, turns, strict=True)]
        self.r = add(x, sum_of([add(f, s) for f, s in zip(translations, self.slopes, strict=True)], halves(eta)))

    def force(self, field: Field) -> Vector3:
        """What moves the particle with the frame and at these modal rates, times the root of its mass (6)."""
        f = add(scale(self.weight, field.origin), times(field.gradient, self.r))
        if not field.rates:
            return f
        flow = cross(field.omega, sum_of(self.slopes, field.rates))
        return add(add(f, add(flow, flow)), of_pairs(self.bent, field.rates))


class DeformedInertia(FlexibleInertia):
    """A flexible body at given modal coordinates."""

    __slots__ = ("factor", "particles", "sections", "turned")

    def __init__(self, body: DeformableInertia, particles: list[_Particle], turned: _Turned):
        k, n = body.factor, range(body.particles.n)
        self.particles, self.turned, self.factor = particles, turned, k
        own = add_matrices(body.rest.second, scale_matrix(k, turned.second))
        self.sections = RigidInertia(0.0, body.rest.first, own)  # what the particles do not have
        first = _total([scale(x.weight, x.r) for x in particles])
        second = [[0.0] * 3 for _ in range(3)]
        for a in range(3):
            for b in range(a + 1):
                second[a][b] = second[b][a] = total(x.r[a] * x.r[b] for x in particles)
        rigid = RigidInertia(
            body.rest.mass,
            add(body.rest.first, scale(k, first)),
            add_matrices(own, scale_matrix(k, tuple(map(tuple, second)))),  # type: ignore[arg-type]
        )
        coupling = tuple(
            Force(
                scale(k, add(_total([cross(x.r, x.slopes[i]) for x in particles]), _axial(turned.E[i]))),
                scale(k, _total([scale(x.weight, x.slopes[i]) for x in particles])),
            )
            for i in n
        )  # (4)
        modal = [[0.0] * len(n) for _ in n]
        for i in n:
            for j in range(i + 1):
                own_mass = total(x.slopes[i][a] * x.slopes[j][a] for x in particles for a in range(3))
                modal[i][j] = modal[j][i] = k * (own_mass + turned.of.masses[i][j])  # (5)
        super().__init__(rigid, coupling, modal)

    def force(self, field: Field) -> Force:
        """The force at the frame, and along the modes, that gives the body these accelerations (7)-(9)."""
        forces = [x.force(field) for x in self.particles]
        own = Force(
            _total([cross(x.r, f) for x, f in zip(self.particles, forces, strict=True)]),
            _total([scale(x.weight, f) for x, f in zip(self.particles, forces, strict=True)]),
            tuple(
                total(dot(x.slopes[i], f) for x, f in zip(self.particles, forces, strict=True))
                for i in range(len(self.modal))
            ),
        )
        found = (own + self.turned.force(field)) * self.factor + self.sections.force(field)
        for c, row, x in zip(self.coupling, self.modal, field.accelerations, strict=False):
            found = found + Force(c.angular, c.linear, tuple(row)) * x
        return found


def _difference(a: Vector3, b: Vector3) -> Vector3:
    """a − b; zero where both are numbers and equal but for rounding."""
    return tuple(  # type: ignore[return-value]
        0.0 if isinstance(x, float) and isinstance(y, float) and abs(x - y) <= 1e-14 * abs(x) else x - y
        for x, y in zip(a, b, strict=True)
    )


def sum_of(vectors: Sequence[Vector3], factors: Sequence[Scalar]) -> Vector3:
    """Σ vector · factor."""
    return tuple(dot([v[k] for v in vectors], factors) for k in range(3)) if vectors else ZERO3


def sum_of_matrices(matrices: Sequence[Matrix3], factors: Sequence[Scalar]) -> Matrix3:
    """Σ matrix · factor."""
    return tuple(sum_of([m[k] for m in matrices], factors) for k in range(3))  # type: ignore[return-value]


def _axial(m: Matrix3) -> Vector3:
    """∫ r × s from m = ∫ r sᵀ."""
    return (m[1][2] - m[2][1], m[2][0] - m[0][2], m[0][1] - m[1][0])


def _total(vectors: Sequence[Vector3]) -> Vector3:
    """The sum of vectors."""
    return tuple(total(v[k] for v in vectors) for k in range(3))


def halves(eta: Sequence[Scalar]) -> list[Scalar]:
    """η/2: φ_i η_i + ½ g_ik η_i η_k is the sum of (φ_i + s_i) η_i/2, where s_i = φ_i + g_ik η_k."""
    return [0.5 * x for x in eta]


def of_pairs(table, rates: Sequence[Scalar]) -> Vector3:
    """Σ table_ik η̇_i η̇_k of a symmetric table of numbers."""
    pairs = [(i, k) for i in range(len(rates)) for k in range(i + 1)]
    vectors = [table[i][k] if i == k else scale(2.0, table[i][k]) for i, k in pairs]
    return sum_of(vectors, [rates[i] * rates[k] for i, k in pairs])


__all__ = ["DeformableInertia", "FlexibleInertia", "Particles", "Sections"]
