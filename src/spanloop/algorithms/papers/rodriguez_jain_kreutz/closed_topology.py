"""Forward dynamics of any closed topology: primary system, secondary system, closure constraints, steps A to F.

[Rodriguez, Jain & Kreutz, sections 2.3 and 3]

    A  M β̇ᶠ = T̂             free accelerations, of both systems
    B  α̃ᶠ = J β̇ᶠ            at the points of closure
    C  Λ = J M⁻¹ J*           their admittance
    D  A Λ A* f̃ = A α̃ᶠ − U   constraint forces: the only step that knows the constraints, and both systems
    E  M β̇ᵟ = −J*A* f̃        what they change
    F  β̇ = β̇ᶠ + β̇ᵟ

| here | paper | shape | meaning |
|---|---|---|---|
| free_accelerations, lam | β̇ᶠ, α̂ᶠ | by joint, Motion by link | free accelerations; those of links beyond ζ |
| omega | Ω, Λ | six Motions by two links | closure_admittance.py |
| rows | A, U | by row | wrenches on links; known acceleration γ = −U along the row |
| f | f̃ | by row | constraint forces |
| forced_accelerations | β̇ᵟ | by joint | due to the constraint forces |

The spanning trees of both systems are swept as one forest: their mass matrices do not couple. Step D takes the cheap
form where the secondary system is one free body that every closure joins to an arm of its own with as many DoFs
as the grasp has rows: A_P Λ_P A_P* is then block diagonal and N_S = 6. Where an arm is in a singular configuration that
form would fail; its pivots are clamped and the solution refined, as in reference_member.py. Elsewhere A Λ A* is
factored as a whole, O(N_E³). Loops inside either system are rows like all others.
Departures: the force of a row acts as K f̃ on its links, signs included; points of closure are link origins. Slips
mended: A.2 has T̂ for T; A.6: z(k) = ψ z(k−1) + x̂(k), ε = H z with x̂ = −BA*f̃; 2.17: U holds d/dt(AJ) β.
"""

from __future__ import annotations

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.closure_rows import KeptRows
from spanloop.algorithms.closed.pivot_tolerance import masked_factors, pivot_demands, row_bounds
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.papers.kreutz_rodriguez.grasps import Grasps, grasps
from spanloop.algorithms.papers.lilly_orin.general_joints import Constraint
from spanloop.algorithms.papers.lilly_orin.reference_member import ChainRows, balanced, convergence
from spanloop.algorithms.papers.rodriguez_jain_kreutz.closure_admittance import (
    point_admittances,
    row_admittance,
    row_ends,
    row_forces,
)
from spanloop.algorithms.papers.rodriguez_jain_kreutz.filter_sweeps import (
    ADMITTANCES,
    FACTORS,
    MassFactors,
)
from spanloop.algorithms.tree.energy import fly
from spanloop.algorithms.tree.link_motion import bias_sweep, placed
from spanloop.errors import UnsupportedError
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.spatial import Force, Motion, power
from spanloop.math.vector3 import total
from spanloop.sweeps import Program, Values, at_once, outward


def forward_dynamics(mechanism, loaded=(), redundancy: Redundancy | None = None, feedback: bool = False) -> Program:
    """a (nv,) for given q (nq,), v (nv,), tau (nv,), all loops closed; a driven joint's entry of tau is its
    acceleration."""
    if mechanism.gears:
        raise UnsupportedError(
            f"method 'closed_topology' has no couplings between joints ({mechanism.gears[0].name!r}); use 'elimination'"
        )
    redundancy = redundancy or Redundancy()
    kept = KeptRows.of(redundancy, feedback)
    sizes, flying, cheap = (
        kept.sizes(mechanism),
        kept.needs_velocities(mechanism),
        secondary_body(mechanism, redundancy),
    )

    def demands(m, here, world) -> list:
        openness = closure_kinematics.openness(m, here, world) if redundancy.refuses_open else []
        return openness + (world.pivot_bounds if redundancy.refuses_singular else [])

    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()) + tuple(sizes),
        (
            *placed(loaded),
            bias_sweep(mechanism),
            *((outward(fly, V=Motion()),) if flying else ()),
            *FACTORS,
            at_once(free_accelerations),  # A, and B on the way
            ADMITTANCES,
            at_once(admittances),  # C
            at_once(_cheap(cheap, kept) if cheap else _whole(kept)),  # D
            at_once(forced_accelerations),  # E
            outward(accelerations),  # F
        ),
        result=lambda m, here, world: [x for h in here for x in h.accelerations],
        shape=(mechanism.nv,),
        regroup=True,
        loaded=loaded,
        demands=demands,
        sizes=sizes,
        double=cheap is not None,
    )


def secondary_body(mechanism, redundancy: Redundancy) -> Grasps | None:
    """Arms and the free body that they hold, where step D has its cheap form."""
    try:
        g = grasps(mechanism, "closed_topology")
    except UnsupportedError:
        return None
    for arm in g.arms:
        dofs = sum(mechanism.links[i].kind.nv for i in arm.links if not mechanism.links[i].driven)
        if dofs < len(set(mechanism.closures[arm.closure].rows) - redundancy.dropped):
            return None
    return g


# ---- steps A to C


def free_accelerations(m, here, world) -> tuple[Values, dict[int, Values]]:
    """β̇ᶠ = M⁻¹ T̂, and the links' free accelerations beyond ζ."""
    factors = MassFactors(m, here)
    free = factors.response(factors.residuals([h.T for h in here]))
    both = zip(free.accelerations, free.lam, strict=True)
    return Values(), {i: Values(free_accelerations=x, lam=lam) for i, (x, lam) in enumerate(both)}


def admittances(m, here, world) -> Values:
    """Λ between all points of closure."""
    return Values(omega=point_admittances(m, here, {end.link for c in m.closures for end in (c.a, c.b)}))


# ---- step D


def _whole(kept: KeptRows):
    def solve(m, here, world) -> Values:
        """(3.11): A Λ A* as a whole."""
        rows = [row for c in m.closures for row in row_ends(m, here, world, c, kept)]
        masks = closure_kinematics.masks(m, world)
        on = [masks.get(number, 1.0) for number, _, _ in rows]
        L = row_admittance(world.omega, [ends for _, ends, _ in rows])
        asked = [-total([gamma, *(power(here[i].lam, K) for i, K in ends)]) for _, ends, gamma in rows]
        bounds = row_bounds(m, [number for number, _, _ in rows], L)
        factors = masked_factors(L, bounds, on)
        f = factors.solve(asked)
        pushes = row_forces([ends for _, ends, _ in rows], f)
        return Values(f=f, pushes=pushes, pivot_bounds=pivot_demands(bounds, factors, on))

    return solve


def _cheap(g: Grasps, kept: KeptRows):
    def solve(m, here, world) -> Values:
        """N_S equations of the secondary body; A_P Λ_P A_P* by arms."""
        link, h, masks = m.links[g.body], here[g.body], closure_kinematics.masks(m, world)
        chains, ends = [], []
        for arm in g.arms:
            c = m.closures[arm.closure]
            rows = []
            for k, (number, sides, gamma) in enumerate(row_ends(m, here, world, c, kept)):
                K, A = (dict(sides)[i] for i in (arm.tip, g.body))
                kind, mask = c.row_kind(c.rows.index(number)), masks.get(number, 1.0)
                rows.append(Constraint((c.number, k), kind, K, A, gamma, mask=mask))
                ends.append([(arm.tip, K), (g.body, A)])
            omega = {key: x for key, x in world.omega.items() if key == (arm.tip, arm.tip)}
            L = row_admittance(omega, [[(arm.tip, row.K)] for row in rows])
            S = [-(row.gamma + power(here[arm.tip].lam, row.K)) for row in rows]
            chains.append(ChainRows(rows, L, S, len(rows)))
        mass = [list(r) for r in link.inertia.articulated().rows()]
        for k, armature in enumerate(link.armature):
            mass[k][k] = mass[k][k] + armature
        push = Force.of([-x for x in h.T])
        found, member = balanced(chains, ArticulatedInertia.of_rows(mass), push, link.inertia)
        f = [x for xs in found.h for x in xs]
        return Values(f=f, pushes=row_forces(ends, f), pivot_bounds=convergence(member, found))

    return solve


# ---- steps E and F


def forced_accelerations(m, here, world) -> tuple[Values, dict[int, Values]]:
    """β̇ᵟ = −M⁻¹J*A* f̃; a filter takes forces as loads that the joints must bear: x̂ = −BA* f̃."""
    factors = MassFactors(m, here)
    forced = factors.response(factors.residuals(force={i: -push for i, push in world.pushes.items()}))
    return Values(), {i: Values(forced_accelerations=x) for i, x in enumerate(forced.accelerations)}


def accelerations(link, here, parent) -> Values:
    """β̇ = β̇ᶠ + β̇ᵟ."""
    if link.driven:
        return Values(accelerations=here.tau)
    both = zip(here.free_accelerations, here.forced_accelerations, strict=True)
    return Values(accelerations=tuple(x + y for x, y in both))
