"""I = U D Uᵀ: the generalised inertia matrix by reverse Gaussian elimination. O(n · depth). [Saha, eq. 18-19]

| here | Saha | shape | meaning | frame |
|---|---|---|---|---|
| M | M̂_i, M̄_i | 6×6 | articulated-body inertia, before and after elimination | link |
| psi_hat, psi | ψ̂_i, ψ_j | Force; by freedom j | M̂ p; ψ̂/m̂, carried inward | link |
| diagonal | m̂_i | scalar | pᵀ M̂ p | joint |

Departures as in decoupled_complement: link axes, one freedom at a time (a joint's last one first), Σ over children.
On a tree U_ij is not zero only where joint i carries joint j: elimination fills nothing in.
"""

from __future__ import annotations

from spanloop.algorithms.papers.complement_matrices import own_columns, square
from spanloop.algorithms.tree.placing import placed
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import power
from spanloop.sweeps import Program, Union, Values, inward


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
    """The joint's rows of U and D, from its last freedom to its first."""
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
