"""Forward dynamics of several arms that hold one object, by operators: RCCFD 1, 2, 3. O(n) + O(ℓ³).

[Kreutz & Rodriguez: 6.11, 6.18, 6.22; grasps that leave freedoms: appendices A and B]

| here | paper | shape | meaning |
|---|---|---|---|
| rates, a_f | θ̈, α_f(0) | by joint, Motion by link | accelerations of joints and links; links' beyond ζ |
| J M⁻¹ Jᵀ | Λ(0) | block diagonal | of the arms, along the rows of the grasps |
| Omega | Ω | rows × rows | J M⁻¹ Jᵀ + A M(C)⁻¹ Aᵀ |
| push | B f(0) | Force by link | what the contact forces do to the last link of an arm |
| f, zeta | f(0), ζ(C) | by row | contact forces; Ω⁻¹ a'(C) of RCCFD 3 |
| known | a'(C) | by row | known acceleration along the rows: of ζ, velocities, and the object by itself |

Departures. f(0) is sought along φᶜ only, where H(0) f(0) = 0 holds by itself: Π of b.7 is φᶜ(φᶜᵀ Ω φᶜ)⁻¹φᶜᵀ, which
also exists where Ω has no inverse (an arm in a singular position, or with fewer than six joints). Contact forces act on
the arm as K f, on the object as A f, signs included. The object is an arm without joints: P = M(C).
Slips mended: the missing H and minus of 6.11g, minus in 6.4, H in 6.5a; k = 1 belongs to the loop of 6.4; transposes in
6.18e; 6.9b ends in H_i(k) ψ; b.4a has Jᵀ; 5.1d, b.4c and b.9a mean J̇ θ̇ where J θ̇ is printed.
"""

from __future__ import annotations

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.closure_rows import KeptRows
from spanloop.algorithms.closed.pivot_tolerance import masked_factors, pivot_demands, row_bounds
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.papers.kreutz_rodriguez.grasps import Grasps, contacts, grasps
from spanloop.algorithms.papers.rodriguez_jain_kreutz.filter_sweeps import (
    accelerated,
    admitted,
    bias_free_torque,
    factored,
    filtered,
    smoothed,
)
from spanloop.algorithms.tree.energy import fly
from spanloop.algorithms.tree.link_motion import bias_sweep, placed
from spanloop.math.spatial import Force, Motion, power
from spanloop.math.symmetric import apply, inverse
from spanloop.math.vector3 import dot, total
from spanloop.sweeps import Program, Values, at_once, outward


def forward_dynamics_1(mechanism, loaded=(), redundancy: Redundancy | None = None, feedback: bool = False) -> Program:
    """RCCFD 1: free accelerations, contact forces, correction accelerations.         (6.11)"""
    g, redundancy = grasps(mechanism, "arms_on_object_1"), redundancy or Redundancy()
    kept = KeptRows.of(redundancy, feedback)
    steps = (
        filtered("T", None, "nu"),
        smoothed("nu", "free_rates", "lam"),  # (6.11b)
        accelerated("free_rates", "a_f"),  # (6.11c)
        admitted(),
        at_once(_solved(g, kept, "a_f")),  # (6.11d-f)
        filtered(None, "push", "nu_more"),  # (6.4a-c)
        smoothed("nu_more", "more_rates", "more"),  # (6.4d-f): (6.11g)
        outward(_sum("free_rates", "more_rates")),  # (6.11i)
    )
    return _program(mechanism, loaded, redundancy, kept, g, steps)


def forward_dynamics_2(mechanism, loaded=(), redundancy: Redundancy | None = None, feedback: bool = False) -> Program:
    """RCCFD 2: contact forces first, then torques and contact forces in one filter.  (6.18)"""
    g, redundancy = grasps(mechanism, "arms_on_object_2"), redundancy or Redundancy()
    kept = KeptRows.of(redundancy, feedback)
    steps = (
        filtered("T", None, "nu"),
        smoothed("nu", "free_rates", "lam"),  # Bᵀψᵀ Hᵀ D⁻¹(1 − HΨL) T', of which the rates are not used
        admitted(),
        at_once(_solved(g, kept, "lam")),  # (6.18b-d)
        filtered("T", "push", "nu_all"),
        smoothed("nu_all", "rates", "all"),  # (6.18e)
    )
    return _program(mechanism, loaded, redundancy, kept, g, steps)


def forward_dynamics_3(mechanism, loaded=(), redundancy: Redundancy | None = None, feedback: bool = False) -> Program:
    """RCCFD 3: what the torques do and what the known accelerations do, apart.       (6.22)"""
    g, redundancy = grasps(mechanism, "arms_on_object_3"), redundancy or Redundancy()
    kept = KeptRows.of(redundancy, feedback)
    steps = (
        filtered("T", None, "nu"),
        smoothed("nu", "free_rates", "lam"),
        admitted(),
        at_once(_solved_apart(g, kept)),  # (6.22b-e)
        filtered(None, "push_1", "nu_drawn"),  # −D⁻¹HψBΩ⁻¹BᵀψᵀHᵀD⁻¹ (1 − HΨL)T'
        outward(_sum("nu", "nu_drawn", "nu_1")),
        smoothed("nu_1", "rates_1", "lam_1"),  # (6.22f)
        filtered(None, "push_2", "nu_2"),
        smoothed("nu_2", "rates_2", "lam_2"),  # (6.22g)
        outward(_sum("rates_1", "rates_2")),  # (6.22h)
    )
    return _program(mechanism, loaded, redundancy, kept, g, steps)


def _program(mechanism, loaded, redundancy: Redundancy, kept: KeptRows, g: Grasps, steps) -> Program:
    sizes, flying = kept.sizes(mechanism), kept.needs_velocities(mechanism)

    def result(m, here, world) -> list:
        given = {link.number: here[link.number].tau for link in m.links if link.driven}
        rates = {i: h.rates for i, h in enumerate(here)} | given | {g.body: world.body_rates}
        return [x for link in m.links for x in rates[link.number]]

    def demands(m, here, world) -> list:
        far = closure_kinematics.openness(m, here, world) if redundancy.refuses_open else []
        return far + (world.thin if redundancy.refuses_singular else [])

    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()) + tuple(sizes),
        (
            *placed(loaded),
            bias_sweep(mechanism),
            *((outward(fly, V=Motion()),) if flying else ()),
            bias_free_torque(),
            factored(),
            *steps,
        ),
        result,
        (mechanism.nv,),
        regroup=True,
        loaded=loaded,
        demands=demands,
        sizes=sizes,
    )


# ---- contact forces


class _Held:
    """The object alone, and Ω with its factors."""

    def __init__(self, m, here, world, g: Grasps, kept: KeptRows):
        self.by_arm = contacts(m, here, world, g, kept)
        self.rows = [row for rows in self.by_arm for row in rows]
        link, h = m.links[g.body], here[g.body]
        mass = [list(r) for r in link.inertia.articulated().rows()]
        for k, armature in enumerate(link.armature):
            mass[k][k] = mass[k][k] + armature
        self.mobility = inverse(mass)  # M(C)⁻¹
        self.free = apply(self.mobility, h.T)  # acceleration of the object when nobody holds it, beyond ζ
        reach = [apply(self.mobility, tuple(row.A)) for row in self.rows]
        self.Omega = [[dot(tuple(row.A), x) for x in reach] for row in self.rows]  # A M(C)⁻¹ Aᵀ
        first = 0
        for rows in self.by_arm:
            felt = [here[row.tip].Lambda @ row.K for row in rows]  # Λ_i(0), with φᶜ on its right
            for i, row in enumerate(rows):
                for j, moved in enumerate(felt[: i + 1]):
                    x = self.Omega[first + i][first + j] + power(moved, row.K)
                    self.Omega[first + i][first + j] = self.Omega[first + j][first + i] = x
            first += len(rows)
        masks = [row.mask for row in self.rows]
        bounds = row_bounds(m, [row.row for row in self.rows], self.Omega)
        self.factors = masked_factors(self.Omega, bounds, masks)
        self.thin = pivot_demands(bounds, self.factors, masks)

    def known(self) -> list:
        """a'(C): acceleration along the rows while the arms do nothing."""
        return [row.gamma + dot(tuple(row.A), self.free) for row in self.rows]

    def of_arms(self, here, name: str) -> list:
        return [power(getattr(here[row.tip], name), row.K) for row in self.rows]

    def laid_down(self, here, f, name: str) -> None:
        """−B f at the last links: a filter takes forces as loads that the joints must bear."""
        for i, h in enumerate(here):
            mine = [(row, x) for row, x in zip(self.rows, f, strict=True) if row.tip == i]
            if mine:
                setattr(h, name, Force.of([-total(tuple(r.K)[k] * x for r, x in mine) for k in range(6)]))

    def body_rates(self, f) -> tuple:
        """α(C), beyond ζ."""
        pushed = [total(tuple(row.A)[k] * x for row, x in zip(self.rows, f, strict=True)) for k in range(6)]
        return tuple(a + b for a, b in zip(self.free, apply(self.mobility, pushed), strict=True))


def _solved(g: Grasps, kept: KeptRows, name: str):
    def solve(m, here, world) -> Values:
        """Ω f(0) = −(α_f(0) + a'(C)), all along the rows."""
        held = _Held(m, here, world, g, kept)
        asked = [-(x + y) for x, y in zip(held.of_arms(here, name), held.known(), strict=True)]
        f = held.factors.solve(asked)
        held.laid_down(here, f, "push")
        return Values(f=f, thin=held.thin, body_rates=held.body_rates(f))

    return solve


def _solved_apart(g: Grasps, kept: KeptRows):
    def solve(m, here, world) -> Values:
        """ζ(C) = Ω⁻¹ a'(C), and the contact forces of the torques alone."""
        held = _Held(m, here, world, g, kept)
        zeta = held.factors.solve(held.known())  # (6.22d)
        f_1 = held.factors.solve([-x for x in held.of_arms(here, "lam")])
        f_2 = [-x for x in zeta]
        held.laid_down(here, f_1, "push_1")
        held.laid_down(here, f_2, "push_2")
        f = [x + y for x, y in zip(f_1, f_2, strict=True)]  # (6.22e)
        return Values(f=f, thin=held.thin, body_rates=held.body_rates(f))

    return solve


def _sum(one: str, other: str, name: str = "rates"):
    def add(link, here, parent) -> Values:
        """Two parts together."""
        return Values(**{name: tuple(x + y for x, y in zip(getattr(here, one), getattr(here, other), strict=True))})

    return add
