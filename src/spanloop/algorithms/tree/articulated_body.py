"""Forward dynamics of trees, bias accelerations carried outward first. O(n). [Kreutz & Rodriguez, eq. 5.14]

In the paper's operators  ζ = φᵀ a;  ε = T − Hψ(𝒮LT + M ζ + b),  ν = D⁻¹ ε;  θ̈ = (1 − HΨL)ᵀ ν.

Each of ζ, ε and θ̈ is one sweep: three in all, after `placed` has found the poses (and, in a second sweep, the external
forces where there are some). Where the four sweeps of eq. 5.8-5.10 first remove the bias torque and then solve, here
the bias force M ζ + b enters the filter directly. Unlike in `articulated_body_textbook`, ζ is what all biases from the
base on do to the link, and meets the link's own inertia only; the smoother's λ is what the joints add to it.

| here | paper | shape | meaning | frame |
|---|---|---|---|---|
| S, s | Hᵀ(k) | columns, Motion | motion space of the joint, one column of it | link |
| here.X | φ(k+1, k) | Transform | takes forces on the link to its parent; φ: to all links inboard | parent |
| – | ψ(k+1, k), Ψ | 6×6 | φ(k+1, k) (1 − G H): the same past the free joint; Ψ = ψ𝒮 | parent |
| – | 𝒮 | – | shift of a link's entry to its parent, the S of eq. 5.12; here what `inward` does | – |
| – | a(k), b(k) | Motion, Force | velocity terms of the acceleration and of the force | link |
| field | ζ(k) | Field | acceleration of the link when no free joint accelerates, and its ω (bias_acceleration) | link |
| here.z | M ζ + b | Force | force that this takes | link |
| P | P(k) | 6×6 | articulated inertia | link |
| U, D, G | P Hᵀ, D(k), φ⁻¹L | Force, 1, Force | D = H P Hᵀ, gain G = P Hᵀ D⁻¹; L(k) = φ(k+1, k) G | link |
| z | ẑ(k) | Force | filtered force | link |
| e, nu | ε(k), ν(k) | scalar | residual, weighted residual | joint |
| accelerations | θ̈(k) | by DoF | accelerations of the joint | joint |
| lam | λ(k) | Motion | acceleration beyond ζ | link |

Departures: links are numbered from the base, so that "tip to base" is inward; joints of several DoF are filtered
one DoF at a time; on a tree the filter sums over children; D contains the armature. Gravity is an acceleration of the
base and, like the given accelerations of driven joints, part of a. Slips mended: 5.10e-g runs from base to tip; the
transposes of 5.13.
"""

from __future__ import annotations

from spanloop.algorithms.tree.link_motion import bias_acceleration, placed
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.spatial import Field, Force, Motion, dof_acceleration, gain, power
from spanloop.math.vector3 import ZERO3, negate
from spanloop.sweeps import Program, Values, inward, outward
from spanloop.sweeps.tested_pivots import PivotTest


def forward_dynamics(mechanism, loaded=()) -> Program:
    """a (nv,) for given q (nq,), v (nv,), tau (nv,); a driven joint's entry of tau is its acceleration."""
    tested = PivotTest(mechanism)
    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()),
        (
            *placed(loaded),
            *tested.sweeps,
            outward(bias_acceleration, field=Field(ZERO3, origin=negate(mechanism.gravity))),  # 5.14a
            inward(filtered, P=ArticulatedInertia(), z=Force()),  # 5.14b, c
            outward(smooth, lam=Motion()),  # 5.14d
        ),
        result=lambda m, here, world: [x for h in here for x in h.accelerations],
        shape=(mechanism.nv,),
        regroup=True,
        loaded=loaded,
        demands=tested.demands,
    )


def filtered(link, here, arriving) -> tuple[Values, Values]:
    """Residuals: ẑ(k) = Σ [ψ ẑ(k−1) + L T] + M ζ + b, ε = T − H ẑ.                 (5.14b, c)"""
    P = here.inertia.articulated() + arriving.P
    z = here.z + arriving.z
    torque = [t + p for t, p in zip(here.tau, link.passive_torque(here.q, here.v), strict=True)]
    residuals, pivots, gains = [], [], []
    for s, t, armature in zip(link.free(here.S), torque, link.armature, strict=False):  # a driven joint: no column
        U = P @ s
        D = power(s, U) + armature
        pivots.append(D)
        G, inverse_pivot = gain(U, D)
        gains.append(G)
        e = t - power(s, z)  # ε = T − H ẑ
        residuals.append((s, G, e * inverse_pivot))  # ν = D⁻¹ ε
        P = P.less(G, U)
        z = z + G * e  # (1 − G H) ẑ + G T
    return Values(residuals=residuals, pivots=pivots, pivot_gains=gains), Values(P=P.carried(here.X), z=here.X @ z)


def smooth(link, here, parent) -> Values:
    """θ̈ = ν − Lᵀ λ(k+1), λ(k) = ψᵀ λ(k+1) + Hᵀ ν.                                  (5.14d; 5.10f, g)"""
    lam = here.X.T @ parent.lam
    accelerations = []
    for s, G, nu in reversed(here.residuals):
        acceleration = dof_acceleration(nu, G, s, lam)  # ν − Gᵀ λ
        lam = lam + s * acceleration
        accelerations.append(acceleration)
    return Values(lam=lam, accelerations=tuple(reversed(accelerations)) if here.residuals else here.tau)
