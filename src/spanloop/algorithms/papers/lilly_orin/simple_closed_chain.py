"""Forward dynamics of simple closed chains: m chains between a support and one reference member. O(mN). [Lilly & Orin]

The steps are those of Table 1. Arms and fingers that hold an object (Type 0) and legs that carry a body (Type 1) go
through the same code: the support is the base of every chain (simple_chains.py), the joint at its tip is a general
joint, contact or hip (general_joints.py).

| here | Lilly & Orin | shape | meaning | frame |
|---|---|---|---|---|
| lam | ẍ_open, then ẍ | Motion by link | acceleration beyond ζ (drifting.py) | link |
| rates | q̈_open, then q̈ | by joint | accelerations of the joints | joint |
| P, f | – | 6×6, Force by link | articulated inertia and bias force of the chain from its tip | link |
| K | – | Force by row | what a unit force of a row does to the link with all that it carries | link |
| shares | D⁻¹φᵀK | by row | of Ω the part that the joint itself adds | joint |
| L | φᶜᵀ Λ⁻¹ φᶜ | n_c × n_c | inverse operational inertia along the rows | rows |
| B, S, h | φᶜᵀ X₀, S_k, h_kᶜ | | as in reference_member.py | |

Departures. Of Λ⁻¹ and Ω only what φᶜ sees is computed, by propagating the forces of the rows from the tip inward; Ω is
applied to a force by one sweep outward and never written out. Known forces φ h_k act on the open chain, so that S_k
needs no Λ⁻¹ φ h_k: at a tip that is a joint of the tree (a hip) φ h_k is its torque; at one that is a closure it comes
from outside, as forces on the closure's two bodies (`known=`, loops/arguments.py). Accelerations are classical. A chain
may branch, and the reference member may carry bodies of its own.

A chain may have loops inside. The rows of a joint that closes one ride inward from both of its ends, together with
those of the tip: L and S have entries for them, and they are eliminated before the tip's (reference_member.py). What
is left is L and S of step 1 for the chain with its own loops closed. So do loops among the bodies that only the
reference member carries; there the rows ride on to that one, and what arrives is their B. In this way a contact that
cannot carry a chain (it is switched, or has no motion space of its own) still closes one. Two chains that a loop joins
are one. Where rows are redundant, their forces are one possible choice.
"""

from __future__ import annotations

from dataclasses import replace

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.closure_rows import KeptRows
from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.papers.lilly_orin.chains import Chains, Tip, simple_chains
from spanloop.algorithms.papers.lilly_orin.general_joints import Carrier, Constraint, carrier, tip
from spanloop.algorithms.papers.lilly_orin.joint_graph import JOINT
from spanloop.algorithms.papers.lilly_orin.reference_member import Held, balanced, convergence
from spanloop.algorithms.tree.energy import fly
from spanloop.algorithms.tree.link_motion import bias_sweep, placed
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Force, Motion, dual_basis, joint_rate, power
from spanloop.math.vector3 import total
from spanloop.sweeps import Program, Values, at_once, outward


def forward_dynamics(mechanism, loaded=(), redundancy: Redundancy | None = None, feedback: bool = False) -> Program:
    """a (nv,) for given q (nq,), v (nv,), tau (nv,), all loops closed; a driven joint's entry of tau is its
    acceleration.

    feedback: with the input `gains` (2,), which pull an error e of a row back by gains[0] ė + gains[1] e (step 5).
    """
    redundancy = redundancy or Redundancy()
    kept = KeptRows.of(redundancy, feedback)
    chains, sizes, flying = simple_chains(mechanism), kept.sizes(mechanism), kept.needs_velocities(mechanism)
    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()) + tuple(sizes),
        (
            *placed(loaded),
            bias_sweep(mechanism),
            *((outward(fly, V=Motion()),) if flying else ()),
            at_once(joined(chains, kept)),
            at_once(opened(chains)),  # step 1
            at_once(held(chains)),  # steps 2 and 3
            at_once(closed(chains)),  # step 4
        ),
        result=lambda m, here, world: [x for link in m.links for x in world.rates[link.number]],
        shape=(mechanism.nv,),
        regroup=chains.outward,
        loaded=loaded,
        demands=lambda m, here, world: _demands(m, here, world, redundancy),
        sizes=sizes,
        double=True,
    )


def _demands(m, here, world, redundancy: Redundancy) -> list:
    """How open the loops are, and whether the refinement of the forces comes to its end."""
    far = closure_kinematics.openness(m, here, world) if redundancy.refuses_open else []
    return far + (convergence(world.balance, world.lam0, world.step) if redundancy.refuses_singular else [])


# ---- what is known beforehand


def joined(chains: Chains, kept: KeptRows):
    def join(m, here, world) -> Values:
        """General joints at this state: those that carry links, and rows and known forces at the tips."""
        carriers = [carrier(m, here, world, hop, kept) for hop in chains.hops]
        f = {i: h.f for i, h in enumerate(here)}
        rows: dict[int, list[tuple[Tip, Constraint]]] = {t.group: [] for t in sorted(chains.tips, key=_group)}
        for t in chains.tips:
            own, on_link, on_other = tip(m, here, world, t, kept)
            rows[t.group] += [(t, row) for row in own]
            for link, known in ((t.other, on_other), (t.link, on_link)):
                if link not in chains.support:
                    f[link] = f[link] - known  # (33): φ h
        ordered = {n: sorted(own, key=_inner_first) for n, own in rows.items() if own}
        return Values(carriers=carriers, f=f, tip_rows=ordered)

    return join


def _group(t: Tip) -> int:
    return t.group


def _inner_first(entry: tuple[Tip, Constraint]) -> bool:
    return not entry[0].inner


def _ends(entry: tuple[Tip, Constraint]):
    """The two links that a row joins, and what its unit force does to each."""
    t, row = entry
    return (t.link, row.K), (t.other, row.B)


# ---- step 1: the open chain solution


def opened(chains: Chains):
    def open_chains(m, here, world) -> Values:
        """Chains without the reference member: articulated inertias, Λ⁻¹, and accelerations."""
        P = {i: m.links[i].inertia.articulated() for i in range(len(m.links))}
        f = dict(world.f)
        K: dict = {i: {} for i in P}
        admittance: dict = {}
        for rows in world.tip_rows.values():
            for entry in rows:
                for link, wrench in _ends(entry):
                    if link not in chains.support:
                        K[link][entry[1].key] = wrench
        passed = []
        for hop, joint in reversed(list(zip(chains.hops, world.carriers, strict=True))):
            freedoms, left = _passed(joint, P[hop.link], f[hop.link], K[hop.link], admittance)
            passed.append(freedoms)
            if hop.base not in chains.support:
                P[hop.base] = P[hop.base] + left.P.carried(joint.far)
                f[hop.base] = f[hop.base] + joint.far @ left.f
                for r, k in left.K.items():
                    K[hop.base][r] = K[hop.base].get(r, Force()) + joint.far @ k
        passed.reverse()
        of_chains = [k for k, hop in enumerate(chains.hops) if hop.chain is not None]
        lam: dict = {i: Motion() for i in (*chains.support, chains.reference)}
        rates: dict = {i: here[i].tau for i in chains.support if i >= 0}
        for k in range(len(chains.hops)) if chains.closed_on_reference else of_chains:
            hop, joint = chains.hops[k], world.carriers[k]
            start = joint.far.T @ lam[hop.base] + joint.c
            lam[hop.link], rate = _accelerated(joint, passed[k], start, [x[2] for x in passed[k]])
            if hop.edge.sort == JOINT:
                rates[hop.edge.number] = rate if passed[k] else here[hop.edge.number].tau
        own = chains.reference
        return Values(
            passed=passed, admittance=admittance, P0=P[own], f0=f[own], B=K[own], lam=lam, open_rates=rates,
            of_chains=of_chains,
        )  # fmt: skip

    return open_chains


def _passed(joint: Carrier, P, f: Force, K: dict, admittance: dict):
    """A general joint passed inward: its freedoms yield; what is left is in the joint's frame."""
    P, f = P.carried(joint.near), joint.near @ f
    K = {r: joint.near @ k for r, k in K.items()}
    freedoms = []
    for s, torque, armature in joint.freedoms:
        U = P @ s
        over = reciprocal(power(s, U) + armature)
        G = U * over
        e = torque - power(s, f)
        kappa = {r: power(s, k) for r, k in K.items()}
        shares = {r: x * over for r, x in kappa.items()}
        keys = list(kappa)
        for n, r in enumerate(keys):
            for t in keys[: n + 1]:
                pair = (t, r) if (t, r) in admittance else (r, t)
                admittance[pair] = admittance.get(pair, 0.0) + kappa[r] * shares[t]  # Λ⁻¹ += φᵀK D⁻¹ Kᵀφ
            K[r] = K[r] - G * kappa[r]
        freedoms.append((s, G, e * over, shares))
        P, f = P.less(G, U), f + G * e
    f = f + P @ joint.c
    return freedoms, Values(P=P, f=f, K=K)


def _accelerated(joint: Carrier, freedoms, lam: Motion, nu):
    """Acceleration of the link, from the joint's side outward, and of the joint."""
    rates = []
    for (s, G, _, _), x in reversed(list(zip(freedoms, nu, strict=True))):
        rate = joint_rate(x, G, s, lam)
        lam = lam + s * rate
        rates.append(rate)
    return joint.near.T @ lam, tuple(reversed(rates))


# ---- steps 2 and 3: the reference member and the forces at the tips


def held(chains: Chains):
    def hold(m, here, world) -> Values:
        """a₀ and the forces of all rows."""
        seen = []
        freedoms: dict = {}
        for hop, joint in zip(chains.hops, world.carriers, strict=True):
            freedoms[hop.group] = freedoms.get(hop.group, 0) + len(joint.freedoms)
        for group, entries in world.tip_rows.items():
            rows = [replace(row, B=world.B.get(row.key, Force())) for _, row in entries]
            L = [[_between(world.admittance, r.key, t.key) for t in rows] for r in rows]
            for k, row in enumerate(rows):
                L[k][k] = L[k][k] + row.soft
            S = [-total([e[1].gamma, *(power(world.lam[i], K) for i, K in _ends(e))]) for e in entries]  # S_k (36)
            inner = sum(t.inner for t, _ in entries)
            seen.append(Held(rows, L, S, freedoms.get(group, 0), inner))
        body = m.links[chains.reference].inertia
        lam0, h, step, balance = balanced(seen, world.P0, world.f0, body)
        forces = {row.key: x for c, xs in zip(seen, h, strict=True) for row, x in zip(c.rows, xs, strict=True)}
        return Values(lam0=lam0, forces=forces, step=step, balance=balance)

    return hold


def _between(admittance: dict, r, t):
    return admittance[r, t] if (r, t) in admittance else admittance.get((t, r), 0.0)


# ---- step 4: closed-chain accelerations


def closed(chains: Chains):
    def close(m, here, world) -> Values:
        """q̈ = q̈_open − Ω f (48), and what hangs on the reference member."""
        lam, rates = dict(world.lam), dict(world.open_rates)
        more: dict = {i: Motion() for i in chains.support}
        for k in world.of_chains:
            hop, joint = chains.hops[k], world.carriers[k]
            nu = [total(_due(shares, world.forces)) for *_, shares in world.passed[k]]
            more[hop.link], rate = _accelerated(joint, world.passed[k], joint.far.T @ more[hop.base], nu)
            lam[hop.link] = lam[hop.link] + more[hop.link]
            if hop.edge.sort == JOINT and world.passed[k]:
                i = hop.edge.number
                rates[i] = tuple(x + y for x, y in zip(rates[i], rate, strict=True))
        lam[chains.reference] = world.lam0
        for k, (hop, joint) in enumerate(zip(chains.hops, world.carriers, strict=True)):
            if k not in world.of_chains:
                start = joint.far.T @ lam[hop.base] + joint.c
                nu = [total([x, *_due(shares, world.forces)]) for *_, x, shares in world.passed[k]]
                lam[hop.link], rate = _accelerated(joint, world.passed[k], start, nu)
                if hop.edge.sort == JOINT:
                    rates[hop.edge.number] = rate if world.passed[k] else here[hop.edge.number].tau
        for t in chains.tips:
            if t.edge.sort == JOINT:
                rates[t.edge.number] = _across(m, here, t.edge.number, lam)
        return Values(rates=rates)

    return close


def _due(shares: dict, forces: dict) -> list:
    """Of a freedom's acceleration the parts that are due to the forces of rows."""
    return [x * forces[r] for r, x in shares.items()]


def _across(m, here, i: int, lam: dict) -> tuple:
    """Accelerations of a joint of the tree from those of its two links."""
    link, h = m.links[i], here[i]
    if link.driven:
        return h.tau
    slip = lam[i] - h.X.T @ lam[link.parent]
    return tuple(power(slip, w) for w in dual_basis(h.S))
