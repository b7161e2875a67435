"""Convective inertia terms: the matrix C of C θ̇, and the vector. [Saha, eq. 16]

C = Nᵀ(M Ṅ + W M E N) is the matrix of convective inertia terms (MCI); h = C θ̇, the vector (VCI), is the bias torque
without gravity, dampers and springs.

| here | Saha | shape | meaning | frame |
|---|---|---|---|---|
| N | block of N | Motion by DoF j | twist of the link due to a unit rate of DoF j | link |
| rate | block of Ṅ; t' | Motion by DoF j; Motion | its rate as seen from the world; their sum with θ̇ | link |
| omega | W | 3 | angular velocity of the link | link |
| w | | Force by DoF j; Force | M Ṅ + W M E N; the same times θ̇ | link |

Departures: vectors are in link axes, their rates are those seen from the world. C is O(n · depth), h is O(n). C depends
on where twists are taken (the joints' origins, as in the paper), C θ̇ does not.
"""

from __future__ import annotations

from spanloop.algorithms.papers.saha.complement_matrices import own_columns, square
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.inertia import RigidInertia
from spanloop.math.spatial import Force, Motion, combined, power
from spanloop.math.vector3 import ZERO3, add, cross
from spanloop.sweeps import Program, Sum, Values, inward, outward


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
