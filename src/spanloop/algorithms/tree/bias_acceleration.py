"""Bias accelerations ζ, carried outward before anything is solved: ζ = φᵀ a. [Kreutz & Rodriguez, eq. 5.14a]

ζ is the acceleration of a link while no free joint accelerates: gravity (an acceleration of the world), velocity terms
and the accelerations of driven joints. What is left to find is linear: the acceleration λ of a link beyond ζ obeys
λ = φᵀ λ₋ + Hᵀ θ̈ at every joint, and an articulated inertia never meets a bias: a product of a 6×6 with a vector less
for each link.

| symbol | shape | meaning | frame |
|---|---|---|---|
| field, zeta | Field | ω of the link and ζ | link |
| z, f | Force | force that ζ takes, less external ones: M ζ + b | link |

`bias_sweep` keeps ζ as `zeta` and, as `field`, ω alone: what it adds to the accelerations of points.
"""

from __future__ import annotations

from spanloop.algorithms.tree.kinematics import driven_acceleration, link_acceleration
from spanloop.math.spatial import Field
from spanloop.math.vector3 import ZERO3, negate
from spanloop.sweeps import Sweep, Values, outward


def bias_acceleration(link, here, parent) -> Values:
    """ζ = φᵀ ζ₋ + a, and the force M ζ + b.                                         (5.14a)"""
    field = link_acceleration(link, here, parent.field, here.v, driven_acceleration(link, here))
    return Values(field=field, z=link.inertia.force(field) - here.external)


def bias_sweep(mechanism) -> Sweep:
    """The sweep that keeps ζ (zeta), ω alone (field) and M ζ + b (f) at every link."""
    return outward(carried_bias, zeta=Field(ZERO3, origin=negate(mechanism.gravity)))


def carried_bias(link, here, parent) -> Values:
    """ζ = φᵀ ζ₋ + a, and the force M ζ + b.                                         (5.14a)"""
    found = bias_acceleration(link, here, Values(field=parent.zeta))
    return Values(zeta=found.field, field=Field(found.field.omega), f=found.z)
