"""Bias accelerations carried outward before anything is solved: ζ = φᵀ a, and the forces that they take. [KR 5.14a]

What is left to find is linear: with λ, a link's acceleration beyond ζ, every joint says λ = φᵀ λ₋ + Hᵀ θ̈.

| here | paper | shape | meaning | frame |
|---|---|---|---|---|
| zeta | ζ(k) | Field | acceleration of the link when no free joint accelerates, and its ω | link |
| field | – | Field | ω alone: what it adds to the accelerations of points | link |
| f | M ζ + b | Force | force that ζ takes, less the forces from outside | link |
"""

from __future__ import annotations

from spanloop.math.small import ZERO3, add, negate
from spanloop.math.spatial import Field, Motion, combined, coriolis
from spanloop.sweeps import Sweep, Values, outward


def drifting(mechanism) -> Sweep:
    """The sweep; gravity is an acceleration of the base, the accelerations of driven joints are part of ζ."""
    return outward(drift, zeta=Field(ZERO3, origin=negate(mechanism.gravity)))


def drift(link, here, parent) -> Values:
    """ζ(k) = φᵀ ζ(k+1) + a(k), and the force M ζ + b.                              (5.14a)"""
    R, p = here.X.rotation.T, here.X.translation
    relative = combined(here.S, here.v)
    carrier = R @ parent.zeta.omega
    zeta = (
        Motion(R @ parent.zeta.alpha, R @ parent.zeta.at(p))
        + coriolis(carrier, relative)
        + link.kind.motion_space_rate(here.q, here.v)
        + combined(link.given(here.S), link.given(here.tau))
    )
    omega = add(carrier, relative.angular)
    field = Field(omega, zeta.angular, zeta.linear)
    return Values(zeta=field, field=Field(omega), f=link.inertia.force(field) - here.external)
