"""The operators of the mass matrix' factors as sweeps. [Kreutz & Rodriguez, section 5; Rodriguez, Jain & Kreutz, A]

M = (1 + HΦL) D (1 + HΦL)ᵀ;  M⁻¹ = (1 − HΨL)ᵀ D⁻¹ (1 − HΨL).

| here | paper | shape | meaning | frame |
|---|---|---|---|---|
| T | T' | by joint | torque less the bias torque C = Hφ(Mφᵀa + b) | joint |
| gains | H, G, D⁻¹, from P | by freedom | articulated inertia's gains (A.1) | link |
| nu | ν = D⁻¹ ε | by freedom | weighted residual | joint |
| lam | λ(k) | Motion | ψᵀ Hᵀ ν: acceleration beyond ζ (drifting.py) | link |
| Lambda | Λ(k), Υ(k) | Admittance | ψᵀ Hᵀ D⁻¹ H ψ, its block on the diagonal (6.10) | link |

A step is made for the names under which it finds its input and keeps its answer, since some algorithms apply an
operator more than once. Joints of several freedoms pass one after the other; on trees sums run over children.
"""

from __future__ import annotations

from typing import Any

from spanloop.math.admittance import Admittance
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Force, Motion, joint_rate, power
from spanloop.sweeps import Sweep, Values, inward, outward


def bias_free_torque() -> Sweep:
    """T' = T − Hφ(Mφᵀa + b)                                                        (6.11a)"""

    def unburden(link, here, arriving) -> tuple[Values, Values]:
        """Torque less what the bias accelerations take."""
        F = here.f + arriving.F
        passive = link.passive_torque(here.q, here.v)
        T = tuple(t + p - power(s, F) for s, t, p in zip(here.S, here.tau, passive, strict=True))
        return Values(T=T), Values(F=here.X @ F)

    return inward(unburden, F=Force())


def factored() -> Sweep:
    """P, D, G                                                                      (A.1)"""

    def factor(link, here, arriving) -> tuple[Values, Values]:
        """Articulated inertia and the gains of the joint's freedoms."""
        P = link.inertia.articulated() + arriving.P
        gains = []
        for s, armature in zip(link.free(here.S), link.armature, strict=False):
            U = P @ s
            over = reciprocal(power(s, U) + armature)
            G = U * over
            gains.append((s, G, over))
            P = P.less(G, U)
        return Values(gains=gains), Values(P=P.carried(here.X))

    return inward(factor, P=ArticulatedInertia())


def filtered(torque: str | None, force: str | None, nu: str) -> Sweep:
    """ν = D⁻¹{T − Hψ(S L T + B f)}: of torques, of forces on the links, or of both.  (5.10b-d, 6.4a-c, 6.17)"""

    def filter(link, here, arriving) -> tuple[Values, Values]:
        """Weighted residuals."""
        z = arriving.z + getattr(here, force, Force()) if force else arriving.z
        torques = getattr(here, torque) if torque else (0.0,) * link.kind.nv
        out = []
        for (s, G, over), t in zip(here.gains, torques, strict=False):
            e = t - power(s, z)
            out.append(e * over)
            z = z + G * e
        return Values(**{nu: out}), Values(z=here.X @ z)

    return inward(filter, z=Force())


def smoothed(nu: str, rates: str, lam: str) -> Sweep:
    """θ̈ = (1 − HΨL)ᵀ ν, and λ = ψᵀHᵀ ν on the way                                  (5.10e-g, 6.4d-f)"""

    def smooth(link, here, parent) -> Values:
        """Accelerations of the joint and of the link."""
        m = here.X.T @ getattr(parent, lam)
        found = []
        for (s, G, _), x in reversed(list(zip(here.gains, getattr(here, nu), strict=True))):
            rate = joint_rate(x, G, s, m)
            m = m + s * rate
            found.append(rate)
        return Values(**{lam: m, rates: tuple(reversed(found))})

    start: dict[str, Any] = {lam: Motion()}
    return outward(smooth, **start)


def accelerated(rates: str, lam: str) -> Sweep:
    """φᵀHᵀ θ̈                                                                       (6.11c)"""

    def accelerate(link, here, parent) -> Values:
        """Acceleration of the link from those of the joints."""
        m = here.X.T @ getattr(parent, lam)
        for s, x in zip(link.free(here.S), getattr(here, rates), strict=False):
            m = m + s * x
        return Values(**{lam: m})

    start: dict[str, Any] = {lam: Motion()}
    return outward(accelerate, **start)


def admitted() -> Sweep:
    """Λ(k) = ψᵀ Λ(k+1) ψ + Hᵀ D⁻¹ H                                                (6.10), [RJK A.5]"""

    def admit(link, here, parent) -> Values:
        """Admittance of the link."""
        L = parent.Lambda.carried(here.X)
        for s, G, over in reversed(here.gains):
            L = L.joined(s, G, over)
        return Values(Lambda=L)

    return outward(admit, Lambda=Admittance())
