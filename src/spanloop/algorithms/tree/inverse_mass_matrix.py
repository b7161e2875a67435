"""Inverse of the mass matrix in O(n · nv) operations, without the matrix itself.

M⁻¹ = [1 − HψK]* D⁻¹ [1 − HψK] [Rodriguez, Jain & Kreutz, 3.6]: the articulated-body sweeps with a unit torque at one
DoF after the other. A torque at DoF j sends forces inward from j only, and of the accelerations only those at
DoF i ≤ j are kept: the matrix is symmetric.

| symbol | shape | meaning | frame |
|---|---|---|---|
| P, D, G | | as in articulated_body | link |
| z | Force by DoF j | bias force due to a unit torque at j | link |
| a | Motion by DoF j | acceleration due to a unit torque at j | link |
"""

from __future__ import annotations

from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.spatial import Force, Motion, dof_acceleration, gain, power
from spanloop.math.symmetric import mirrored
from spanloop.sweeps import Program, Union, Values, inward, outward
from spanloop.sweeps.tested_pivots import PivotTest


def mass_matrix_inverse(mechanism) -> Program:
    """M⁻¹ (nv, nv) at q (nq,)."""
    tested = PivotTest(mechanism)
    return Program(
        "mass_matrix_inverse",
        ("q",),
        (
            *placed(()),
            *tested.sweeps,
            inward(articulate, P=ArticulatedInertia(), z=Union()),
            outward(accelerate, a=Union()),
        ),
        result=_matrix,
        shape=(mechanism.nv, mechanism.nv),
        regroup=True,
        demands=tested.demands,
    )


def articulate(link, here, arriving) -> tuple[Values, Values]:
    """Articulated inertia, and the innovations ε of every torque behind or at this joint."""
    P = here.inertia.articulated() + arriving.P
    z = Union(arriving.z)
    eliminated, pivots, gains = [], [], []
    for k, (s, armature) in enumerate(zip(here.S, link.armature, strict=True)):
        U = P @ s
        D = power(s, U) + armature
        pivots.append(D)
        G, inverse_pivot = gain(U, D)  # P H* D⁻¹, D⁻¹
        gains.append(G)
        own = link.v.start + k
        e = Union({j: -power(s, f) for j, f in z.items()})
        e[own] = 1.0 - power(s, z[own]) if own in z else 1.0
        for j, x in e.items():
            z[j] = z.get(j, Force()) + G * x
        eliminated.append((s, G, {j: x * inverse_pivot for j, x in e.items()}))
        P = P.less(G, U)
    sent = Union({j: here.X @ f for j, f in z.items()})
    kept = Values(eliminated=tuple(eliminated), pivots=pivots, pivot_gains=gains)
    return kept, Values(P=P.carried(here.X), z=sent)


def accelerate(link, here, parent) -> Values:
    """Rows of the inverse at this joint: accelerations due to every torque not numbered before it."""
    first = link.v.start
    a = {j: here.X.T @ m for j, m in parent.a.items() if j >= first}
    for _, _, e in here.eliminated:
        a.update({j: Motion() for j in e if j not in a})
    row = {}
    for k, (s, G, nu) in reversed(tuple(enumerate(here.eliminated))):
        for j, m in a.items():
            x = dof_acceleration(nu.get(j, 0.0), G, s, m)
            a[j] = m + s * x
            row[first + k, j] = x
    return Values(a=Union(a), row=row)


def _matrix(mechanism, here, world) -> list:
    upper = [{(i, j): x for (i, j), x in h.row.items() if i <= j} for h in here]
    return [x for row in mirrored(mechanism.nv, upper) for x in row]
