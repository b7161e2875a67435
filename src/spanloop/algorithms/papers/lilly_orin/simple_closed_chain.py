"""Forward dynamics of simple closed chains: m chains between a support and one reference member. O(mN). [Lilly & Orin]

The steps are those of Table 1. Arms and fingers that hold an object (Type 0) and legs that carry a body (Type 1) take
the same code: the support is the base of every chain (chains.py), the joint at its tip is a general joint, contact or
hip (general_joints.py). Steps 1 and 4 are sweeps over the bodies of the chains, from the support outward: `along`
(chains.py) runs them. What such a sweep keeps at a body is in world.bodies, the reference member first; what one that
runs inward sends to the support arrives at the world: world.L has the admittance of all rows, two row numbers a key.

| Table 1 | here |
|---|---|
| given: φ, φᶜ, h, αᶜ, X₀, ζ₀ᵏ | `joints_at_state` (general_joints.py) |
| given: b₀, g₀ | `bias_sweep` (tree/link_motion.py), for every body; z0 of the reference member |
| step 1: q̈_open, ẍ_open, Ω, Λ⁻¹ | `open_chain`, `open_acceleration` |
| step 2: a₀ (45), (46) | `reference_acceleration` |
| step 3: f_k (47) | `tip_forces`; `refinement` repeats steps 2 and 3 for their residual |
| step 4: q̈_k (48) | `closed_chain`; `carried_body` for bodies on the reference member |
| step 5: next state | `sl.simulate`; `feedback=True` counteracts drift |

| here | Lilly & Orin | shape | meaning | frame |
|---|---|---|---|---|
| x_open | ẍ_open | Motion by body | acceleration beyond ζ (tree/link_motion.py), the chains open | link |
| q_open, accelerations | q̈_open, q̈ | by joint | accelerations of the joints | joint |
| P, z | – | 6×6, Force by body | articulated inertia and bias force of the chain from its tip | link |
| U, G, e, nu | – | by DoF | as in tree/articulated_body.py | joint |
| K | – | Force by row | what a unit force of a row does to the body with all that it carries | link |
| kappa, shares | φᵀK, D⁻¹φᵀK | by row | of −Ω φᶜ the part that the joint itself adds (K is −φᶜ at a tip) | joint |
| L | φᶜᵀ Λ⁻¹ φᶜ | n_c × n_c | inverse operational inertia along the rows | rows |
| B, S, h | φᶜᵀ X₀, S_k, h_kᶜ | | as in reference_member.py | |
| a0 | a₀ | Motion | acceleration of the reference member beyond ζ | link |
| x | – | Motion by body | what the tip forces add to x_open; after `carried_body` their sum | link |

Departures. Of Λ⁻¹ and Ω only what φᶜ sees is computed, by propagating the forces of the rows from the tip inward; Ω is
applied to a force by one sweep outward and never written out. Known forces φ h_k act on the open chain, so that S_k
needs no Λ⁻¹ φ h_k: at a tip that is a joint of the tree (a hip) φ h_k is its torque; at one that is a closure it comes
from outside, as forces on the closure's two bodies (`loop_forces=`). Accelerations are classical, and those of bodies
are counted from ζ (tree/link_motion.py): our a0 and x_open are the paper's a₀ and ẍ_open less what the body does while
no free joint accelerates. Velocity terms are thus in ζ, and along the rows, with ζ₀ᵏ, in gamma (general_joints.py). A
chain may branch, and the reference member may carry bodies of its own: I₀ is its articulated inertia with these.

A chain may have loops inside. The rows of a joint that closes one travel inward from both of its ends, together with
those of the tip: L and S have entries for them, and they are eliminated before the tip's (reference_member.py). What
is left is L and S of step 1 for the chain with its own loops closed. The same holds for loops among the bodies that
only the reference member carries; there the rows travel on to that one, and what arrives is their B. In this way a
contact that cannot carry a chain (it is switched, or has no motion space of its own) still closes one. Two chains that
a loop joins are one. Where rows are redundant, their forces are one possible choice.
"""

from __future__ import annotations

from dataclasses import replace

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.closure_rows import KeptRows
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.papers.lilly_orin.chains import JOINT, Body, Chains, simple_chains
from spanloop.algorithms.papers.lilly_orin.general_joints import Carrier, joints_at_state
from spanloop.algorithms.papers.lilly_orin.reference_member import ChainRows, ReferenceMember, convergence
from spanloop.algorithms.tree.energy import fly
from spanloop.algorithms.tree.link_motion import bias_sweep, placed
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Force, Motion, dof_acceleration, dual_basis, power
from spanloop.math.vector3 import total
from spanloop.sweeps import Program, Sum, Values, at_once, inward, outward


def forward_dynamics(mechanism, loaded=(), redundancy: Redundancy | None = None, feedback: bool = False) -> Program:
    """a (nv,) for given q (nq,), v (nv,), tau (nv,), all loops closed; a driven joint's entry of tau is its
    acceleration.

    feedback: with the input `gains` (2,), which pull an error e of a row back by gains[0] ė + gains[1] e (step 5).
    """
    redundancy = redundancy or Redundancy()
    kept, chains = KeptRows.of(redundancy, feedback), simple_chains(mechanism)
    sizes = kept.sizes(mechanism)
    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()) + tuple(sizes),
        (
            *placed(loaded),
            bias_sweep(mechanism),
            *((outward(fly, V=Motion()),) if kept.needs_velocities(mechanism) else ()),
            at_once(joints_at_state(chains, kept)),  # given
            chains.along(inward(open_chain, P=ArticulatedInertia(), z=Force(), K=Sum(), L=Sum())),  # step 1
            chains.along(outward(open_acceleration, x_open=Motion())),  # step 1
            at_once(reference_acceleration(chains)),  # step 2
            at_once(tip_forces),  # step 3
            at_once(refinement),  # steps 2 and 3 for their residual
            chains.along(outward(closed_chain, x=Motion())),  # step 4
            chains.along(outward(carried_body, begin=lambda world: Values(x=world.a0))),  # step 4
        ),  # step 5 is simulate()
        result=closed_accelerations(chains),
        shape=(mechanism.nv,),
        regroup=chains.outward,
        loaded=loaded,
        demands=lambda m, here, world: _demands(m, here, world, redundancy),
        sizes=sizes,
        double=True,  # pivots clamped at 1e-9 of their scale leave no digits in float32
    )


def _demands(m, here, world, redundancy: Redundancy) -> list:
    """How open the loops are, and whether the refinement of the forces converges."""
    openness = closure_kinematics.openness(m, here, world) if redundancy.refuses_open else []
    return openness + (convergence(world.member, world.refined) if redundancy.refuses_singular else [])


# ---- step 1: q̈_open, ẍ_open, Ω and Λ⁻¹ of every chain


def open_chain(body: Body, here, arriving) -> tuple[Values, Values]:
    """Articulated inertia, bias force and forces of the rows, past the general joint toward the support: Ω, Λ⁻¹."""
    P, z, K, L = here.inertia + arriving.P, here.own_z + arriving.z, here.own_K + arriving.K, arriving.L
    if body.is_reference:
        return Values(P0=P, z0=z, B=K), Values(P=ArticulatedInertia(), z=Force(), K=Sum(), L=L)
    joint = here.joint
    P, z, K = P.carried(joint.near), joint.near @ z, {r: joint.near @ k for r, k in K.items()}
    dofs = []
    for s, torque, armature in joint.dofs:
        U = P @ s
        inverse_pivot = reciprocal(power(s, U) + armature)  # D⁻¹
        G, e = U * inverse_pivot, torque - power(s, z)
        kappa = {r: power(s, k) for r, k in K.items()}
        shares = {r: x * inverse_pivot for r, x in kappa.items()}
        L = L + Sum({(t, r): kappa[r] * shares[t] for r in K for t in K if t <= r})  # Λ⁻¹ += Kᵀφ D⁻¹ φᵀK
        K = {r: k - G * kappa[r] for r, k in K.items()}
        dofs.append((s, G, e * inverse_pivot, shares))
        P, z = P.less(G, U), z + G * e
    z = z + P @ joint.c
    K = Sum({r: joint.far @ k for r, k in K.items()})
    return Values(dofs=dofs), Values(P=P.carried(joint.far), z=joint.far @ z, K=K, L=L)


def open_acceleration(body: Body, here, parent) -> Values:
    """ẍ_open and q̈_open: accelerations while no force acts at the tips, the reference member at rest."""
    if body.is_reference:
        return Values(x_open=Motion())
    start = here.joint.far.T @ parent.x_open + here.joint.c
    x_open, accelerations = _accelerated(here.joint, here.dofs, start, [nu for _, _, nu, _ in here.dofs])
    return Values(x_open=x_open, q_open=accelerations if here.dofs else here.given_accelerations)


def _accelerated(joint: Carrier, dofs, x: Motion, nu):
    """Accelerations of the body and of its joint, from that of what carries it."""
    accelerations = []
    for (s, G, _, _), y in reversed(list(zip(dofs, nu, strict=True))):
        acceleration = dof_acceleration(y, G, s, x)
        x = x + s * acceleration
        accelerations.append(acceleration)
    return joint.near.T @ x, tuple(reversed(accelerations))


# ---- step 2: a₀


def reference_acceleration(chains: Chains):
    def solve_a0(m, here, world) -> Values:
        """[I₀ + Σ X₀ᵀ R_k] a₀ = Σ X₀ᵀ P_k − b₀ + g₀  (45), (46)."""
        x_open = {i: Motion() for i in chains.support}
        x_open |= {body.number: values.x_open for body, values in zip(chains.links, world.bodies, strict=True)}
        own, groups = world.bodies[0], []
        for rows, n_dofs in world.tip_rows:
            S = [-total([r.gamma, *(power(x_open[i], K) for i, K in r.ends)]) for r in rows]  # S_k (36)
            L = [[world.L.get(_pair(r.number, t.number), 0.0) for t in rows] for r in rows]  # M⁻¹ = φᶜᵀ Λ⁻¹ φᶜ (36)
            for k, row in enumerate(rows):
                L[k][k] = L[k][k] + row.compliance
            seen = [replace(row, B=own.B.get(row.number, Force())) for row in rows]  # φᶜᵀ X₀
            groups.append(ChainRows(seen, L, S, n_dofs, sum(row.inner for row in rows)))
        member = ReferenceMember(groups, own.P0, m.links[chains.reference].inertia)  # (46)
        return Values(member=member, a0=member.acceleration([c.S for c in groups], -own.z0))  # (45)

    return solve_a0


def _pair(r: int, t: int) -> tuple[int, int]:
    return min(r, t), max(r, t)


# ---- step 3: f_k


def tip_forces(m, here, world) -> Values:
    """f_k = P_k − R_k a₀  (47), along the rows."""
    return Values(h=world.member.tip_forces([c.S for c in world.member.chains], world.a0))


def refinement(m, here, world) -> Values:
    """Steps 2 and 3 again for what clamped pivots leave of their equations (reference_member.py)."""
    member = world.member
    S, force = [c.S for c in member.chains], -world.bodies[0].z0
    refined = member.refined(S, force, world.a0, world.h, member.refinements)
    forces = {
        row.number: x for c, xs in zip(member.chains, refined.h, strict=True) for row, x in zip(c.rows, xs, strict=True)
    }
    bodies = [Values(**vars(values), due=_due(values, forces)) for values in world.bodies]
    return Values(a0=refined.a0, refined=refined, forces=forces, bodies=bodies)


def _due(values: Values, forces: dict) -> list:
    """Of each degree of freedom's acceleration the terms that the forces of the rows cause: entries of −Ω f."""
    return [[x * forces[r] for r, x in shares.items()] for *_, shares in getattr(values, "dofs", ())]


# ---- step 4: closed-chain accelerations


def closed_chain(body: Body, here, parent) -> Values:
    """q̈_k = q̈_open − Ω_k f_k  (48), of the bodies that the support carries."""
    if not body.in_chain:
        return Values(x=Motion())
    nu = [total(terms) for terms in here.due]
    x, response = _accelerated(here.joint, here.dofs, here.joint.far.T @ parent.x, nu)  # −Ω f
    accelerations = tuple(a + b for a, b in zip(here.q_open, response, strict=True)) if here.dofs else here.q_open
    return Values(x=x, accelerations=accelerations)


def carried_body(body: Body, here, parent) -> Values:
    """Accelerations of the bodies that only the reference member carries, from a₀."""
    if body.in_chain:
        return Values(x=here.x_open + here.x)
    if body.is_reference:
        return Values(x=parent.x)  # a₀
    start = here.joint.far.T @ parent.x + here.joint.c
    nu = [total([own, *terms]) for (_, _, own, _), terms in zip(here.dofs, here.due, strict=True)]
    x, accelerations = _accelerated(here.joint, here.dofs, start, nu)
    return Values(x=x, accelerations=accelerations if here.dofs else here.given_accelerations)


def closed_accelerations(chains: Chains):
    def result(m, here, world) -> list:
        """q̈ (nv,) of the joints of the tree."""
        x = {i: Motion() for i in chains.support}
        accelerations = {i: here[i].tau for i in chains.support if i >= 0}
        for body, values in zip(chains.links, world.bodies, strict=True):
            x[body.number] = values.x
            if body.hop and body.hop.edge.kind == JOINT:
                accelerations[body.hop.edge.number] = values.accelerations
        for t in chains.tips:
            if t.edge.kind == JOINT:
                accelerations[t.edge.number] = _across(m, here, t.edge.number, x)
        return [y for link in m.links for y in accelerations[link.number]]

    return result


def _across(m, here, i: int, x: dict) -> tuple:
    """Accelerations of a joint of the tree from those of its two links."""
    link, h = m.links[i], here[i]
    if link.driven:
        return h.tau
    slip = x[i] - h.X.T @ x[link.parent]
    return tuple(power(slip, w) for w in dual_basis(h.S))
