"""Bias accelerations carried outward before anything is solved: ζ = φᵀ a, and the forces that they take. [KR 5.14a]

What is left to find is linear: with λ, a link's acceleration beyond ζ, every joint says λ = φᵀ λ₋ + Hᵀ θ̈.

| here | paper | shape | meaning | frame |
|---|---|---|---|---|
| zeta | ζ(k) | Field | acceleration of the link when no free joint accelerates, and its ω | link |
| field | – | Field | ω alone: what it adds to the accelerations of points | link |
| f | M ζ + b | Force | force that ζ takes, less the forces from outside | link |
"""

from __future__ import annotations

from spanloop.algorithms.tree.drifting import drift as carried_outward
from spanloop.math.small import ZERO3, negate
from spanloop.math.spatial import Field
from spanloop.sweeps import Sweep, Values, outward


def drifting(mechanism) -> Sweep:
    """The sweep; gravity is an acceleration of the base, the accelerations of driven joints are part of ζ."""
    return outward(drift, zeta=Field(ZERO3, origin=negate(mechanism.gravity)))


def drift(link, here, parent) -> Values:
    """ζ(k) = φᵀ ζ(k+1) + a(k), and the force M ζ + b.                              (5.14a)"""
    found = carried_outward(link, here, Values(field=parent.zeta))
    return Values(zeta=found.field, field=Field(found.field.omega), f=found.z)
