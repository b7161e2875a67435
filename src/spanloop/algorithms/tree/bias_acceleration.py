"""Bias accelerations, carried outward before anything is solved: what the links do when no free joint accelerates.

| symbol | shape | meaning | frame |
|---|---|---|---|
| field | Field | ω of the link, and ζ: its acceleration when no free joint accelerates; gravity is the world's | link |
| z | Force | force that this takes, less external ones: M ζ + b | link |

The accelerations that joints add are then counted from ζ, and an articulated inertia never meets a bias: a product of a
6×6 with a vector less for each link. [Kreutz & Rodriguez, eq. 5.14]
"""

from __future__ import annotations

from spanloop.math.spatial import Field, Motion, combined, coriolis
from spanloop.math.vector3 import ZERO3, add, negate
from spanloop.sweeps import Sweep, Values, outward


def bias_acceleration(link, here, parent) -> Values:
    """ζ = φ* ζ₋ + what the velocities and given accelerations do here."""
    R, p = here.X.rotation.T, here.X.translation
    relative = combined(here.S, here.v)  # S v
    carrier = R @ parent.field.omega
    zeta = (
        Motion(R @ parent.field.alpha, R @ parent.field.at(p))
        + coriolis(carrier, relative)
        + link.kind.motion_space_rate(here.q, here.v)
        + combined(link.given(here.S), link.given(here.tau))
    )
    field = Field(add(carrier, relative.angular), zeta.angular, zeta.linear)
    return Values(field=field, z=link.inertia.force(field) - here.external)


# ---- Bias accelerations carried outward before anything is solved: ζ = φᵀ a, and the forces that they take. [KR 5.14a]
#
# What is left to find is linear: with λ, a link's acceleration beyond ζ, every joint says λ = φᵀ λ₋ + Hᵀ θ̈.
#
# | here | paper | shape | meaning | frame |
# |---|---|---|---|---|
# | zeta | ζ(k) | Field | acceleration of the link when no free joint accelerates, and its ω | link |
# | field | – | Field | ω alone: what it adds to the accelerations of points | link |
# | f | M ζ + b | Force | force that ζ takes, less the forces from outside | link |


def bias_sweep(mechanism) -> Sweep:
    """The sweep; gravity is an acceleration of the base, the accelerations of driven joints are part of ζ."""
    return outward(carried_bias, zeta=Field(ZERO3, origin=negate(mechanism.gravity)))


def carried_bias(link, here, parent) -> Values:
    """ζ(k) = φᵀ ζ(k+1) + a(k), and the force M ζ + b.                              (5.14a)"""
    found = bias_acceleration(link, here, Values(field=parent.zeta))
    return Values(zeta=found.field, field=Field(found.field.omega), f=found.z)
