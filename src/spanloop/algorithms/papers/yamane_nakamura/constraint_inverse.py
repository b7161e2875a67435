"""Blocks of Φ⁻¹ for the joints of one link: the linear algebra of virtual_work. [Yamane & Nakamura, eq. 31-43]

A joint waits as (H, E): its rows in the axes of the link that carries it, and the far side of its S_m. A matrix is a
list of rows; joints are known by number.
"""

from __future__ import annotations

from typing import Any

from spanloop.math.inertia import Mobility
from spanloop.math.spatial import Force, power
from spanloop.math.symmetric import apply, inverse
from spanloop.math.vector3 import product, total, transpose


def added(joints, mobility: Mobility) -> tuple[list, dict]:
    """Joints added to a link one after the other.

    Returns for each its number, couplings Φ_i,j and gains Φ_i,· Φ⁻¹ to those before it and M_i, and the blocks
    of Φ⁻¹ when all of them are there.
    """
    stages: list = []
    M: dict = {}
    for i, (H, E) in joints.items():
        before = [j for j, *_ in stages]
        W = [mobility @ h for h in H]  # A⁻¹ Hᵀ
        phi: dict[int, Any] = {j: [[power(w, h) for h in joints[j][0]] for w in W] for j in before}
        gains: dict[int, Any] = {j: _sum([product(phi[k], M[k, j]) for k in before]) for j in before}
        own = _plus(E, [[power(w, h) for h in H] for w in W])  # S_i
        for j in before:
            own = _minus(own, product(gains[j], transpose(phi[j])))
        M[i, i] = inverse(own)  # (41)
        for j in before:
            back = product(transpose(gains[j]), M[i, i])
            for k in before:
                M[j, k] = _plus(M[j, k], product(back, gains[k]))  # (43)
            M[j, i] = [[-x for x in r] for r in back]
            M[i, j] = transpose(M[j, i])
        stages.append((i, phi, gains, M[i, i]))
    return stages, M


def coupled(own, S: dict, M: dict, compliance) -> list:
    """own − Σ S_i M_ij S_jᵀ, with compliances on the diagonal: the near side of a joint's S_m less what follows."""
    for i, row in S.items():
        for j, column in S.items():
            own = _minus(own, product(product(row, M[i, j]), transpose(column)))
    for i, soft in enumerate(compliance):
        own[i][i] = own[i][i] + soft
    return own


def spanned(rows, numbers) -> Force:
    """rowsᵀ numbers."""
    f = Force()
    for w, x in zip(rows, numbers, strict=True):
        f = f + w * x
    return f


def transposed_times(m, x):
    """mᵀ x."""
    return apply(transpose(m), x)


def _plus(m, n):
    return [[x + y for x, y in zip(r, s, strict=True)] for r, s in zip(m, n, strict=True)]


def _minus(m, n):
    return [[x - y for x, y in zip(r, s, strict=True)] for r, s in zip(m, n, strict=True)]


def _sum(matrices):
    return [[total(x) for x in zip(*rows, strict=True)] for rows in zip(*matrices, strict=True)]
