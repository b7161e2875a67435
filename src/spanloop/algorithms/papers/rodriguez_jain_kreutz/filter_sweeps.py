"""The operators of the mass matrix' factors as sweeps. [Kreutz & Rodriguez, section 5; Rodriguez, Jain & Kreutz, A]

M = (1 + HΦL) D (1 + HΦL)ᵀ;  M⁻¹ = (1 − HΨL)ᵀ D⁻¹ (1 − HΨL).

| here | paper | shape | meaning | frame |
|---|---|---|---|---|
| T | T' | by joint | torque less the bias torque C = Hφ(Mφᵀa + b) | joint |
| gains | H, G, D⁻¹, from P | by DoF | articulated inertia's gains (A.1) | link |
| nu | ν = D⁻¹ ε | by DoF | weighted residual | joint |
| lam | λ(k) | Motion | ψᵀ Hᵀ ν: acceleration beyond ζ (tree/link_motion.py) | link |
| Lambda | Λ(k), Υ(k) | Admittance | ψᵀ Hᵀ D⁻¹ H ψ, its block on the diagonal (6.10) | link |

`FACTORS` are sweeps of a program: they keep T and gains at every link. `MassFactors` applies the operators to
quantities by link, as often as an algorithm needs them. Joints with several DoFs pass one after the other; on trees
sums run over children.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from spanloop.math.admittance import Admittance
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Force, Motion, dof_acceleration, power
from spanloop.sweeps import Sweep, Values, inward, outward
from spanloop.sweeps.program import carry_out
from spanloop.types import Scalar

ByDof = Sequence[Sequence[Scalar]]  # for each link, an entry for each of its DoFs


# ---- sweeps that keep T, gains and Λ


def bias_free_torque(link, here, arriving) -> tuple[Values, Values]:
    """T' = T − Hφ(Mφᵀa + b)                                                        (6.11a)"""
    F = here.f + arriving.F
    passive = link.passive_torque(here.q, here.v)
    T = tuple(t + p - power(s, F) for s, t, p in zip(here.S, here.tau, passive, strict=True))
    return Values(T=T), Values(F=here.X @ F)


def factor(link, here, arriving) -> tuple[Values, Values]:
    """P, D, G                                                                      (A.1)"""
    P = here.inertia.articulated() + arriving.P
    gains, pivots = [], []
    for s, armature in zip(link.free(here.S), link.armature, strict=False):
        U = P @ s
        D = power(s, U) + armature
        pivots.append(D)
        inverse_pivot = reciprocal(D)
        G = U * inverse_pivot
        gains.append((s, G, inverse_pivot))
        P = P.less(G, U)
    return Values(gains=gains, pivots=pivots), Values(P=P.carried(here.X))


def admit(link, here, parent) -> Values:
    """Λ(k) = ψᵀ Λ(k+1) ψ + Hᵀ D⁻¹ H                                                (6.10), [RJK A.5]"""
    L = parent.Lambda.carried(here.X)
    for s, G, inverse_pivot in reversed(here.gains):
        L = L.joined(s, G, inverse_pivot)
    return Values(Lambda=L)


GAINS = inward(factor, P=ArticulatedInertia())
FACTORS = (inward(bias_free_torque, F=Force()), GAINS)
ADMITTANCES = outward(admit, Lambda=Admittance())


# ---- operators


class Response(NamedTuple):
    """Accelerations of joints by DoF, and of links beyond ζ."""

    accelerations: ByDof
    lam: Sequence[Motion]


class MassFactors:
    """The operators of M⁻¹ at a state, from links that keep X, S and gains; each one is a sweep."""

    def __init__(self, mechanism, here: Sequence[Values]):
        self.mechanism, self.here = mechanism, here

    def residuals(self, torque: ByDof | None = None, force: Mapping[int, Force] | None = None) -> ByDof:
        """ν = D⁻¹{T − Hψ(S L T + B f)}: of torques, of forces on links, or of both.  (5.10b-d, 6.4a-c, 6.17)"""
        none, forces = [(0.0,) * link.kind.nv for link in self.mechanism.links], force or {}
        given = [Values(torque=t, force=forces.get(i)) for i, t in enumerate(torque or none)]
        return [v.nu for v in self._applied(inward(_filter, z=Force()), given)]

    def response(self, nu: ByDof) -> Response:
        """θ̈ = (1 − HΨL)ᵀ ν, and λ = ψᵀHᵀ ν on the way                                  (5.10e-g, 6.4d-f)"""
        kept = self._applied(outward(_smooth, lam=Motion()), [Values(nu=x) for x in nu])
        return Response([v.accelerations for v in kept], [v.lam for v in kept])

    def link_accelerations(self, accelerations: ByDof) -> list[Motion]:
        """φᵀHᵀ θ̈                                                                       (6.11c)"""
        given = [Values(accelerations=x) for x in accelerations]
        return [v.lam for v in self._applied(outward(_accelerate, lam=Motion()), given)]

    def _applied(self, sweep: Sweep, given: Sequence[Values]) -> list[Values]:
        """What the sweep keeps at the links, with these values there."""
        links = [Values(X=h.X, S=h.S, gains=h.gains, **vars(v)) for h, v in zip(self.here, given, strict=True)]
        carry_out((sweep,), self.mechanism, links, Values())
        return links


def _filter(link, here, arriving) -> tuple[Values, Values]:
    """Weighted residuals."""
    z = arriving.z if here.force is None else arriving.z + here.force
    nu = []
    for (s, G, inverse_pivot), t in zip(here.gains, here.torque, strict=False):
        e = t - power(s, z)
        nu.append(e * inverse_pivot)
        z = z + G * e
    return Values(nu=nu), Values(z=here.X @ z)


def _smooth(link, here, parent) -> Values:
    """Accelerations of the joint and of the link."""
    m = here.X.T @ parent.lam
    found = []
    for (s, G, _), x in reversed(list(zip(here.gains, here.nu, strict=True))):
        acceleration = dof_acceleration(x, G, s, m)
        m = m + s * acceleration
        found.append(acceleration)
    return Values(lam=m, accelerations=tuple(reversed(found)))


def _accelerate(link, here, parent) -> Values:
    """Acceleration of the link from those of the joints."""
    m = here.X.T @ parent.lam
    for s, x in zip(link.free(here.S), here.accelerations, strict=False):
        m = m + s * x
    return Values(lam=m)


def added(one: ByDof, other: ByDof) -> list[tuple[Scalar, ...]]:
    """The sum of two quantities by DoF."""
    return [tuple(x + y for x, y in zip(a, b, strict=True)) for a, b in zip(one, other, strict=True)]
