"""Forward dynamics: a = M⁻¹(tau − h), by sweeps outward, inward, outward. O(n).

[Featherstone 1983], the Kalman-filter form of [Rodriguez, Jain & Kreutz, A.1-A.2], with two departures:
a joint of several DoF is eliminated one DoF at a time (D stays scalar, the elimination is the LDLᵀ of its
block), and accelerations are classical, so that the velocity terms need angular velocities only.

| symbol | shape | meaning | frame |
|---|---|---|---|
| field | Field | angular velocity ω of the link and what it does to accelerations | link |
| c | Motion | acceleration of the link when its parent and its joint have none | link |
| P | 6×6 | articulated inertia | link |
| z | Force | articulated bias force | link |
| D, G | 1, Force | Sᵀ P S, gain P S D⁻¹ of one DoF | link |
| a | Motion | acceleration of the link; gravity is an acceleration of the world | link |
"""

from __future__ import annotations

from spanloop.algorithms.tree.link_motion import driven_acceleration, link_acceleration, placed
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
            outward(turn, field=Field(ZERO3)),
            inward(articulate, P=ArticulatedInertia(), z=Force()),
            outward(accelerate, a=Motion(linear=negate(mechanism.gravity))),
        ),
        result=lambda m, here, world: [x for h in here for x in h.accelerations],
        shape=(mechanism.nv,),
        regroup=True,
        loaded=loaded,
        demands=tested.demands,
    )


def turn(link, here, parent) -> Values:
    """Angular velocity, and the accelerations and forces that come of it."""
    moved = link_acceleration(link, here, parent.field, here.v, driven_acceleration(link, here))
    field = Field(moved.omega, rates=moved.rates)  # velocities alone: the parent's acceleration is not known yet
    return Values(field=field, c=moved.motion, z=here.inertia.force(field) - here.external)


def articulate(link, here, arriving) -> tuple[Values, Values]:
    """Articulated inertia and bias force; the joint's DoF are eliminated, the rest goes to the parent."""
    P = here.inertia.articulated() + arriving.P
    z = here.z + arriving.z
    torque = tuple(t + p for t, p in zip(here.tau, link.passive_torque(here.q, here.v), strict=True))
    eliminated, pivots, gains = [], [], []
    for s, t, armature in zip(link.free(here.S), torque, link.armature, strict=False):  # a driven joint: no column
        U = P @ s
        D = power(s, U) + armature  # D = H P H*           [A.1]
        pivots.append(D)
        G, inverse_pivot = gain(U, D)  # G = P H* D⁻¹
        gains.append(G)
        e = t - power(s, z)  # ε = T − H z
        eliminated.append((s, G, e * inverse_pivot))
        P = P.less(G, U)  # P⁺ = (1 − G H) P
        z = z + G * e  # z⁺ = z + G ε
    z = z + P @ here.c
    kept = Values(eliminated=tuple(eliminated), pivots=pivots, pivot_gains=gains)
    return kept, Values(P=P.carried(here.X), z=here.X @ z)


def accelerate(link, here, parent) -> Values:
    """Accelerations: of the link, of its joint."""
    a = here.X.T @ parent.a + here.c  # φ* a₋ + c
    accelerations = []
    for s, G, nu in reversed(here.eliminated):
        acceleration = dof_acceleration(nu, G, s, a)  # ν − G* a
        a = a + s * acceleration
        accelerations.append(acceleration)
    return Values(a=a, accelerations=tuple(reversed(accelerations)) if here.eliminated else here.tau)
