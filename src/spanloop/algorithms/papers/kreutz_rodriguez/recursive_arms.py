"""Forward dynamics of several arms that hold one object, by operators: RCCFD 1, 2, 3. O(n) + O(ℓ³).

[Kreutz & Rodriguez: 6.11, 6.18, 6.22; grasps that leave DoFs: appendices A and B]

| here | paper | shape | meaning |
|---|---|---|---|
| accelerations, a_f | θ̈, α_f(0) | by joint, Motion by link | accelerations of joints and links; links' beyond ζ |
| nu | ν | by DoF | weighted residuals (filter_sweeps.py) |
| J M⁻¹ Jᵀ | Λ(0) | block diagonal | of the arms, along the rows of the grasps |
| Omega | Ω | rows × rows | J M⁻¹ Jᵀ + A M(C)⁻¹ Aᵀ |
| loads(f) | −B f(0) | Force by link | contact forces as loads on the last links of the arms |
| f, zeta | f(0), ζ(C) | by row | contact forces; Ω⁻¹ a'(C) of RCCFD 3 |
| known | a'(C) | by row | known acceleration along the rows: of ζ, velocities, and the object by itself |

Departures. f(0) is sought along φᶜ only, where H(0) f(0) = 0 holds by itself: Π of b.7 is φᶜ(φᶜᵀ Ω φᶜ)⁻¹φᶜᵀ, which
also exists where Ω has no inverse (an arm in a singular configuration, or with fewer than six joints). Contact forces
act on the arm as K f, on the object as A f, signs included. The object is an arm without joints: P = M(C).
Slips mended: the missing H and minus of 6.11g, minus in 6.4, H in 6.5a; k = 1 belongs to the loop of 6.4; transposes in
6.18e; 6.9b ends in H_i(k) ψ; b.4a has Jᵀ; 5.1d, b.4c and b.9a mean J̇ θ̇ where J θ̇ is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.closure_rows import KeptRows
from spanloop.algorithms.closed.pivot_tolerance import masked_factors, pivot_demands, row_bounds
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.papers.kreutz_rodriguez.grasps import Grasps, contacts, grasps
from spanloop.algorithms.papers.rodriguez_jain_kreutz.filter_sweeps import (
    ADMITTANCES,
    FACTORS,
    ByDof,
    MassFactors,
    added,
)
from spanloop.algorithms.tree.energy import fly
from spanloop.algorithms.tree.link_motion import bias_sweep, placed
from spanloop.math.spatial import Force, Motion, power
from spanloop.math.symmetric import apply, inverse
from spanloop.math.vector3 import dot, total
from spanloop.sweeps import Program, Values, at_once, outward
from spanloop.types import Scalar


def forward_dynamics_1(mechanism, loaded=(), redundancy: Redundancy | None = None, feedback: bool = False) -> Program:
    """RCCFD 1: free accelerations, contact forces, correction accelerations.         (6.11)"""
    return _program(rccfd_1, "arms_on_object_1", mechanism, loaded, redundancy or Redundancy(), feedback)


def forward_dynamics_2(mechanism, loaded=(), redundancy: Redundancy | None = None, feedback: bool = False) -> Program:
    """RCCFD 2: contact forces first, then torques and contact forces in one filter.  (6.18)"""
    return _program(rccfd_2, "arms_on_object_2", mechanism, loaded, redundancy or Redundancy(), feedback)


def forward_dynamics_3(mechanism, loaded=(), redundancy: Redundancy | None = None, feedback: bool = False) -> Program:
    """RCCFD 3: responses to the torques and to the known accelerations, apart.       (6.22)"""
    return _program(rccfd_3, "arms_on_object_3", mechanism, loaded, redundancy or Redundancy(), feedback)


# ---- the three algorithms: θ̈ of the arms and f(0)


def rccfd_1(arms: HeldObject) -> tuple[ByDof, Sequence[Scalar]]:
    """RCCFD 1."""
    theta_f = arms.response(arms.residuals(arms.T)).accelerations  # (6.11b)
    a_f = arms.link_accelerations(theta_f)  # (6.11c)
    f = arms.contact_forces([-(x + y) for x, y in zip(arms.along_rows(a_f), arms.known, strict=True)])  # (6.11d-f)
    change = arms.response(arms.residuals(force=arms.loads(f))).accelerations  # (6.4): (6.11g)
    return added(theta_f, change), f  # (6.11i)


def rccfd_2(arms: HeldObject) -> tuple[ByDof, Sequence[Scalar]]:
    """RCCFD 2."""
    lam = arms.response(arms.residuals(arms.T)).lam  # Bᵀψᵀ Hᵀ D⁻¹(1 − HΨL) T'
    f = arms.contact_forces([-(x + y) for x, y in zip(arms.along_rows(lam), arms.known, strict=True)])  # (6.18b-d)
    return arms.response(arms.residuals(arms.T, arms.loads(f))).accelerations, f  # (6.18e)


def rccfd_3(arms: HeldObject) -> tuple[ByDof, Sequence[Scalar]]:
    """RCCFD 3."""
    nu = arms.residuals(arms.T)
    f_1 = arms.contact_forces([-x for x in arms.along_rows(arms.response(nu).lam)])  # (6.22b, c)
    zeta = arms.contact_forces(arms.known)  # ζ(C) = Ω⁻¹ a'(C) (6.22d)
    f_2 = [-x for x in zeta]
    drawn = arms.residuals(force=arms.loads(f_1))  # −D⁻¹HψBΩ⁻¹BᵀψᵀHᵀD⁻¹ (1 − HΨL)T'
    theta_1 = arms.response(added(nu, drawn)).accelerations  # (6.22f)
    theta_2 = arms.response(arms.residuals(force=arms.loads(f_2))).accelerations  # (6.22g)
    return added(theta_1, theta_2), [x + y for x, y in zip(f_1, f_2, strict=True)]  # (6.22h), (6.22e)


class HeldObject(MassFactors):
    """The arms' operators, the object by itself, and Ω with its factors, at a state."""

    def __init__(self, m, here, world, g: Grasps, kept: KeptRows):
        super().__init__(m, here)
        by_arm = contacts(m, here, world, g, kept)
        self.rows = [row for rows in by_arm for row in rows]
        link = m.links[g.body]
        mass = [list(r) for r in link.inertia.articulated().rows()]
        for k, armature in enumerate(link.armature):
            mass[k][k] = mass[k][k] + armature
        self.mobility = inverse(mass)  # M(C)⁻¹
        self.free = apply(self.mobility, here[g.body].T)  # acceleration of the object that nobody holds, beyond ζ
        self.T = [h.T for h in here]
        self.known = [row.gamma + dot(tuple(row.A), self.free) for row in self.rows]  # a'(C): while arms do nothing
        self.Omega = self._omega(by_arm)
        masks = [row.mask for row in self.rows]
        bounds = row_bounds(m, [row.row for row in self.rows], self.Omega)
        self.factors = masked_factors(self.Omega, bounds, masks)
        self.pivot_bounds = pivot_demands(bounds, self.factors, masks)

    def _omega(self, by_arm) -> list[list]:
        """Ω = A M(C)⁻¹ Aᵀ + J M⁻¹ Jᵀ, of which the second has a block Λ_i(0) for each arm."""
        reach = [apply(self.mobility, tuple(row.A)) for row in self.rows]
        Omega = [[dot(tuple(row.A), x) for x in reach] for row in self.rows]
        first = 0
        for rows in by_arm:
            felt = [self.here[row.tip].Lambda @ row.K for row in rows]  # Λ_i(0), with φᶜ on its right
            for i, row in enumerate(rows):
                for j, moved in enumerate(felt[: i + 1]):
                    x = Omega[first + i][first + j] + power(moved, row.K)
                    Omega[first + i][first + j] = Omega[first + j][first + i] = x
            first += len(rows)
        return Omega

    def along_rows(self, lam: Sequence[Motion]) -> list[Scalar]:
        """φᶜᵀ α(0): accelerations of the arms' last links along the rows."""
        return [power(lam[row.tip], row.K) for row in self.rows]

    def contact_forces(self, accelerations: Sequence[Scalar]) -> list[Scalar]:
        """Ω⁻¹ of accelerations along the rows."""
        return self.factors.solve(accelerations)

    def loads(self, f: Sequence[Scalar]) -> dict[int, Force]:
        """−B f at the last links: a filter takes forces as loads that the joints must bear."""
        out = {}
        for tip in dict.fromkeys(row.tip for row in self.rows):
            mine = [(row, x) for row, x in zip(self.rows, f, strict=True) if row.tip == tip]
            out[tip] = Force.of([-total(tuple(r.K)[k] * x for r, x in mine) for k in range(6)])
        return out

    def body_accelerations(self, f: Sequence[Scalar]) -> tuple:
        """α(C), beyond ζ."""
        pushed = [total(tuple(row.A)[k] * x for row, x in zip(self.rows, f, strict=True)) for k in range(6)]
        return tuple(a + b for a, b in zip(self.free, apply(self.mobility, pushed), strict=True))


def _program(algorithm: Callable, method: str, mechanism, loaded, redundancy: Redundancy, feedback: bool) -> Program:
    g, kept = grasps(mechanism, method), KeptRows.of(redundancy, feedback)
    sizes = kept.sizes(mechanism)

    def solve(m, here, world) -> Values:
        arms = HeldObject(m, here, world, g, kept)
        accelerations, f = algorithm(arms)
        given = {link.number: here[link.number].tau for link in m.links if link.driven}
        by_link = dict(enumerate(accelerations)) | given | {g.body: arms.body_accelerations(f)}
        return Values(f=f, accelerations=[by_link[link.number] for link in m.links], pivot_bounds=arms.pivot_bounds)

    def demands(m, here, world) -> list:
        openness = closure_kinematics.openness(m, here, world) if redundancy.refuses_open else []
        return openness + (world.pivot_bounds if redundancy.refuses_singular else [])

    solve.__doc__ = algorithm.__doc__
    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()) + tuple(sizes),
        (
            *placed(loaded),
            bias_sweep(mechanism),
            *((outward(fly, V=Motion()),) if kept.needs_velocities(mechanism) else ()),
            *FACTORS,
            ADMITTANCES,
            at_once(solve),
        ),
        lambda m, here, world: [x for joint in world.accelerations for x in joint],
        (mechanism.nv,),
        regroup=True,
        loaded=loaded,
        demands=demands,
        sizes=sizes,
    )
