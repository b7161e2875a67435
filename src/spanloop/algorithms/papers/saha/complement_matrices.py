"""The decoupled complement as matrices: N_l, N_d, and the generalised inertia matrix. [Saha, eq. 13-16; trees: 47-52]

t = N_l N_d θ̇ gathers the twists of all links; I = N_dᵀ (N_lᵀ M N_l) N_d.

| here | Saha | shape | meaning | frame |
|---|---|---|---|---|
| A | block row of N_l | Motion by column | the six unit twists of every link inward, seen at this one | link |
| S | p_i, block of N_d | columns | joint-rate propagation | link |
| I | M̃_i | RigidInertia | composite body: the link with all that it carries | link |
| w | M̃_j p_j | Force by DoF j | wrench that a unit acceleration of DoF j takes | link |

Departures: vectors are in link axes, and so are the rows of N_l and N_d; link i has rows 6i to 6i + 5. On trees block
(i, j) of N_l is not zero where link j carries link i; eq. 48 has a sign that depends on an A₀ᵏ which the text does not
define: here it is +. The matrix I has armature on its diagonal, as everywhere in this library.
"""

from __future__ import annotations

import numpy as np

from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.inertia import ArticulatedInertia, RigidInertia
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Motion, power
from spanloop.sweeps import Program, Union, Values, inward, outward, walk

UNITS = tuple(Motion.of([1.0 if k == j else 0.0 for k in range(6)]) for j in range(6))


# ---- N_l and N_d: to look at; no kernel is made of them


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


# ---- I = U D Uᵀ: the generalised inertia matrix by reverse Gaussian elimination. O(n · depth). [Saha, eq. 18-19]
#
# | here | Saha | shape | meaning | frame |
# |---|---|---|---|---|
# | M | M̂_i, M̄_i | 6×6 | articulated-body inertia, before and after elimination | link |
# | psi_hat, psi | ψ̂_i, ψ_j | Force; by DoF j | M̂ p; ψ̂/m̂, carried inward | link |
# | diagonal | m̂_i | scalar | pᵀ M̂ p | joint |
#
# Departures as in decoupled_complement: link axes, one DoF at a time (a joint's last one first), Σ over children.
# On a tree U_ij is not zero only where joint i carries joint j: elimination fills in no zero.


def inertia_factors(mechanism) -> Program:
    """U and D (2, nv, nv): U unit upper triangular, U_ij = p_iᵀ A_jiᵀ ψ_j; D diagonal, D_i = m̂_i."""

    def result(m, here, world):
        unit = {(i, i): 1.0 for i in range(m.nv)}
        U = square(m.nv, [unit, *(h.row for h in here)])
        return U + square(m.nv, [h.diagonal for h in here])

    return Program(
        "inertia_factors",
        ("q",),
        (*placed(()), inward(factor, M=ArticulatedInertia(), psi=Union())),
        result,
        (2, mechanism.nv, mechanism.nv),
        regroup=True,
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
    return Values(row=row, diagonal=diagonal), Values(M=M.carried(here.X), psi=sent)
