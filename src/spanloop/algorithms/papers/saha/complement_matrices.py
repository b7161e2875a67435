"""The decoupled complement as matrices: N_l, N_d, I with its factors, C. [Saha, eq. 13-19; trees: 47-52]

t = N_l N_d θ̇ gathers the twists of all links, N = N_l N_d. I = Nᵀ M N = U D Uᵀ is the generalised inertia matrix, its
factors by reverse Gaussian elimination; C = Nᵀ(M Ṅ + W M E N) is the matrix of convective inertia terms (MCI), and
h = C θ̇, the vector (VCI), is the bias torque without gravity, dampers and springs.

| here | Saha | shape | meaning | frame |
|---|---|---|---|---|
| A | block row of N_l | Motion by column | the six unit twists of every link inward, seen at this one | link |
| S | p_i, block of N_d | columns | joint-rate propagation | link |
| I | M̃_i | RigidInertia | composite body: the link with all that it carries | link |
| w | M̃_j p_j | Force by DoF j | wrench that a unit acceleration of DoF j takes | link |
| M | M̂_i, M̄_i | 6×6 | articulated-body inertia, before and after elimination | link |
| psi_hat, psi | ψ̂_i, ψ_j | Force; by DoF j | M̂ p; ψ̂/m̂, carried inward | link |
| diagonal | m̂_i | scalar | pᵀ M̂ p | joint |
| N | block of N | Motion by DoF j | twist of the link due to a unit rate of DoF j | link |
| rate | block of Ṅ; t' | Motion by DoF j; Motion | its rate as seen from the world; their sum with θ̇ | link |
| omega | W | 3 | angular velocity of the link | link |
| w of C | | Force by DoF j; Force | M Ṅ + W M E N; the same times θ̇ | link |

Departures: vectors are in link axes, and so are the rows of N_l and N_d (link i has rows 6i to 6i + 5); rates are those
seen from the world. A joint of several DoF is eliminated one DoF at a time, on trees sums run over children. On trees
block (i, j) of N_l is not zero where link j carries link i; eq. 48 has a sign that depends on an A₀ᵏ which is not
defined: here it is +. The matrix I has armature on its diagonal, as everywhere in this library.
"""

from __future__ import annotations

import numpy as np

from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.inertia import ArticulatedInertia, RigidInertia
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Force, Motion, combined, power
from spanloop.math.vector3 import ZERO3, add, cross
from spanloop.sweeps import Program, Sum, Union, Values, inward, outward, walk
from spanloop.sweeps.tested_pivots import PivotTest

UNITS = tuple(Motion.of([1.0 if k == j else 0.0 for k in range(6)]) for j in range(6))


# ---- N_l and N_d as arrays; no kernel is made of them


def decoupled_matrices(mechanism, q) -> tuple[np.ndarray, np.ndarray]:
    """N_l (6n, 6n) and N_d (6n, nv) at q (nq,), for n links."""
    given = {"q": [float(x) for x in q]}
    programs = twist_propagation(mechanism), joint_rate_propagation(mechanism)
    N_l, N_d = (np.array(walk(p, mechanism, given), dtype=float).reshape(p.shape) for p in programs)
    return N_l, N_d


def twist_propagation(mechanism) -> Program:
    """N_l (6n, 6n): block (i, j) is A_ij where link j carries link i, 1 where they are one."""
    n = len(mechanism.links)

    def propagate(link, here, parent) -> Values:
        """The six unit twists of every link inward, and of the link itself."""
        carried = {key: here.X.T @ m for key, m in parent.A.items()}
        own = {6 * link.number + j: e for j, e in enumerate(UNITS)}
        return Values(A={**carried, **own})

    return Program(
        "twist_propagation",
        ("q",),
        (*placed(()), outward(propagate, A={})),
        result=lambda m, here, world: _rows([h.A for h in here], 6 * n),
        shape=(6 * n, 6 * n),
    )


def joint_rate_propagation(mechanism) -> Program:
    """N_d (6n, nv): block (i, i) is p_i."""
    return Program(
        "joint_rate_propagation",
        ("q",),
        placed(()),
        result=lambda m, here, world: _rows(
            [own_columns(link, h.S) for link, h in zip(m.links, here, strict=True)], m.nv
        ),
        shape=(6 * len(mechanism.links), mechanism.nv),
    )


def own_columns(link, columns) -> dict:
    """A link's columns by the number of their DoF."""
    return {link.v.start + k: s for k, s in enumerate(columns)}


def _rows(columns: list[dict], width: int) -> list:
    """Six rows a link from its columns by number; zeros elsewhere."""
    zero = (0.0,) * 6
    wide = [[tuple(c[j]) if j in c else zero for j in range(width)] for c in columns]
    return [x[k] for row in wide for k in range(6) for x in row]


# ---- I = N_dᵀ (N_lᵀ M N_l) N_d


def mass_matrix(mechanism) -> Program:
    """I (nv, nv): I_ij = p_iᵀ A_jiᵀ M̃_j p_j for joint i inward of joint j."""
    return Program(
        "mass_matrix",
        ("q",),
        (*placed(()), inward(compose, I=RigidInertia(), w=Union())),
        result=lambda m, here, world: square(m.nv, [h.row for h in here], symmetric=True),
        shape=(mechanism.nv, mechanism.nv),
        regroup=True,
    )


def compose(link, here, arriving) -> tuple[Values, Values]:
    """M̃_i = M_i + Σ Aᵀ M̃ A, and the joint's row of I."""
    I, own = link.inertia + arriving.I, own_columns(link, here.S)
    w = arriving.w + Union({j: I @ p for j, p in own.items()})
    row = {(i, j): power(p, f) for i, p in own.items() for j, f in w.items() if j >= i}
    for i, armature in zip(own, link.armature, strict=True):
        row[i, i] = row[i, i] + armature
    sent = Union({j: here.X @ f for j, f in w.items()})
    return Values(row=row), Values(I=I.carried(here.X), w=sent)


def square(n: int, parts, symmetric: bool = False) -> list:
    """n × n entries in C order, from parts that map (row, column) to a scalar; zeros elsewhere."""
    M = [[0.0] * n for _ in range(n)]
    for entries in parts:
        for (i, j), x in entries.items():
            M[i][j] = x
            if symmetric:
                M[j][i] = x
    return [x for r in M for x in r]


# ---- I = U D Uᵀ, a joint's last DoF first; on a tree elimination fills in no zero. O(n · depth). [eq. 18-19]


def inertia_factors(mechanism) -> Program:
    """U and D (2, nv, nv): U unit upper triangular, U_ij = p_iᵀ A_jiᵀ ψ_j; D diagonal, D_i = m̂_i."""

    def result(m, here, world):
        unit = {(i, i): 1.0 for i in range(m.nv)}
        U = square(m.nv, [unit, *(h.row for h in here)])
        return U + square(m.nv, [h.diagonal for h in here])

    tested = PivotTest(mechanism)
    return Program(
        "inertia_factors",
        ("q",),
        (*placed(()), *tested.sweeps, inward(factor, M=ArticulatedInertia(), psi=Union())),
        result,
        (2, mechanism.nv, mechanism.nv),
        regroup=True,
        demands=tested.demands,
    )


def factor(link, here, arriving) -> tuple[Values, Values]:
    """The joint's rows of U and D, from its last DoF to its first."""
    M = link.inertia.articulated() + arriving.M  # M̂                                (19d)
    psi = Union(arriving.psi)
    row, diagonal = {}, {}
    own = own_columns(link, here.S)
    for i, armature in zip(reversed(own), reversed(link.armature), strict=True):
        psi_hat = M @ own[i]
        diagonal[i, i] = power(own[i], psi_hat) + armature  # m̂                      (19c)
        row.update({(i, j): power(own[i], f) for j, f in psi.items()})
        psi[i] = psi_hat * reciprocal(diagonal[i, i])
        M = M.less(psi[i], psi_hat)  # M̄                                            (19d)
    sent = Union({j: here.X @ f for j, f in psi.items()})
    pivots = [diagonal[i, i] for i in own]
    return Values(row=row, diagonal=diagonal, pivots=pivots), Values(M=M.carried(here.X), psi=sent)


# ---- C in O(n · depth), C θ̇ in O(n); C depends on where twists are taken (at the joints' origins). [eq. 16]


def convective_inertia(mechanism) -> Program:
    """C (nv, nv) at q, v: C θ̇ is the bias torque without gravity, dampers and springs."""
    return Program(
        "convective_inertia",
        ("q", "v"),
        (*placed(()), outward(differentiate, N={}, rate={}, omega=ZERO3), inward(project, w=Sum())),
        result=lambda m, here, world: square(m.nv, [h.row for h in here]),
        shape=(mechanism.nv, mechanism.nv),
    )


def convective_torque(mechanism) -> Program:
    """h = C θ̇ (nv,), summed over the DoF before it is carried inward."""
    return Program(
        "convective_torque",
        ("q", "v"),
        (*placed(()), outward(total_rate, rate=Motion(), omega=ZERO3), inward(press, w=Force())),
        result=lambda m, here, world: [x for h in here for x in h.torque],
        shape=(mechanism.nv,),
        regroup=True,
    )


def differentiate(link, here, parent) -> Values:
    """N and Ṅ of every DoF that moves the link: Ṅ = Ȧ N₋ + A Ṅ₋, and ṗ = W p + (p's own change)."""
    R, _, omega, lever_rate = turning(link, here, parent)
    N = {j: here.X.T @ m for j, m in parent.N.items()}
    rate = {j: here.X.T @ m for j, m in parent.rate.items()}
    for j, m in parent.N.items():
        rate[j] = rate[j] + Motion(linear=R @ cross(m.angular, lever_rate))
    changes = link.kind.motion_space_rates(here.q, here.v)
    for (j, p), change in zip(own_columns(link, here.S).items(), changes, strict=True):
        N[j] = p
        rate[j] = Motion(cross(omega, p.angular), cross(omega, p.linear)) + change
    w = Sum({j: link.inertia @ rate[j] + gyroscopic(link.inertia, omega, N[j]) for j in N})
    return Values(N=N, rate=rate, omega=omega, w=w)


def turning(link, here, parent):
    """Rotation to the link, its joint's twist, its angular velocity, and the rate of the lever O₋O (parent axes)."""
    R, r = here.X.rotation.T, here.X.translation
    relative = combined(here.S, here.v)
    omega = add(R @ parent.omega, relative.angular)
    return R, relative, omega, add(cross(parent.omega, r), here.X.rotation @ relative.linear)


def gyroscopic(inertia: RigidInertia, omega, m: Motion) -> Force:
    """W M E m: of the wrench M m the part due to turning, turned by ω."""
    momentum = inertia @ Motion(m.angular)
    return Force(cross(omega, momentum.angular), cross(omega, momentum.linear))


def project(link, here, arriving) -> tuple[Values, Values]:
    """The joint's row of C: pᵀ of every DoF's wrench."""
    w = here.w + arriving.w
    row = {(i, j): power(p, f) for i, p in own_columns(link, here.S).items() for j, f in w.items()}
    return Values(row=row), Values(w=Sum({j: here.X @ f for j, f in w.items()}))


def total_rate(link, here, parent) -> Values:
    """t' = (Ṅ_l + N_l W) N_d θ̇ of the link, and M t' + W M E t.                    (16c)"""
    R, relative, omega, lever_rate = turning(link, here, parent)
    rate = (
        here.X.T @ parent.rate
        + Motion(linear=R @ cross(parent.omega, lever_rate))
        + Motion(cross(omega, relative.angular), cross(omega, relative.linear))
        + link.kind.motion_space_rate(here.q, here.v)
    )
    w = link.inertia @ rate + gyroscopic(link.inertia, omega, Motion(omega))
    return Values(rate=rate, omega=omega, w=w)


def press(link, here, arriving) -> tuple[Values, Values]:
    """w̃' = N_lᵀ w', h = N_dᵀ w̃'."""
    w = here.w + arriving.w
    return Values(torque=tuple(power(p, w) for p in here.S)), Values(w=here.X @ w)
