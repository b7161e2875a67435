"""The blocks of spatial operators at each link, and the sweeps that compute them.

| symbol | shape | meaning | frame |
|---|---|---|---|
| X, S | Transform, nv columns | pose of the link in its parent; the joint's motion space, H* | parent; link |
| inertia, modes | RigidInertia, n | inertia of the link, at its modal coordinates if it bends | link |
| P | 6×6 | articulated inertia; with n modes of a flexible body (6 + n)×(6 + n) | link |
| D, D_inverse | nv×nv | H P H* + armature, and its inverse | joint |
| G | nv columns | gain P H* D⁻¹ | link |
| dofs | (s, gain, 1/d) | the same, one DoF after the other: the LDLᵀ of D | link |
| Upsilon | Admittance | the diagonal block of Ω | link |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spanloop.math import symmetric
from spanloop.math.admittance import Admittance
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.spatial import Force, gain, power
from spanloop.sweeps.program import Sweep, Values, at_once, inward, outward
from spanloop.sweeps.tested_pivots import PivotTest
from spanloop.topology.mechanism import Anchor


def preparation(mechanism, anchors: Sequence[Anchor], level: int, kept: Callable) -> tuple[Sweep, ...]:
    """The sweeps that terms of this level need: 0 poses, 1 articulated inertias, 2 admittances.

    anchors: of the frames of B; kept(): numbers of the closures' rows in A, found if needed.
    """
    carried = [tuple(a.transform() for a in anchors if a.link == k) for k in range(len(mechanism.links))]

    def place(link, here, parent) -> Values:
        """X, S, the inertia at the present coordinates, and the frames that the link carries."""
        return Values(
            X=link.transform(here.q, parent.modes),
            S=link.kind.motion_space(here.q),
            inertia=link.inertia.at(here.q),
            modes=here.q if link.kind.bends else (),
            frames=carried[link.number],
        )

    def kept_rows(m, here, world) -> Values:
        """The function that finds the rows of A."""
        return Values(kept=kept)

    articulated = (*PivotTest(mechanism).sweeps, inward(articulate, P=ArticulatedInertia())) if level else ()
    admitted = (outward(admit, Upsilon=Admittance()),) if level > 1 else ()
    return (at_once(kept_rows), outward(place, modes=()), *articulated, *admitted)


def articulate(link, here, arriving) -> tuple[Values, Values]:
    """P = ψ P ψ* + M, D, G.  [Rodriguez, Jain & Kreutz, A.1]"""
    P = here.inertia.articulated() + arriving.P
    U = [P @ s for s in here.S]
    D = tuple(
        tuple(power(s, u) + (m if i == j else 0.0) for j, u in enumerate(U))
        for i, (s, m) in enumerate(zip(here.S, link.armature, strict=True))
    )
    D_inverse = symmetric.inverse(D)
    G = tuple(sum((u * x for u, x in zip(U, row, strict=True)), Force()) for row in D_inverse)
    left, dofs, pivots = P, [], []
    for s, m in zip(here.S, link.armature, strict=True):
        u = left @ s
        d = power(s, u) + m
        pivots.append(d)
        g, inverse_pivot = gain(u, d)
        dofs.append((s, g, inverse_pivot))
        left = left.less(g, u)
    kept = Values(P=P, D=D, D_inverse=D_inverse, G=G, dofs=tuple(dofs), pivots=pivots)
    return kept, Values(P=left.carried(here.X))


def admit(link, here, parent) -> Values:
    """Υ = ψ* Υ₋ ψ + H* D⁻¹ H.  [A.5]"""
    Upsilon = parent.Upsilon.carried(here.X)
    for s, g, inverse_pivot in reversed(here.dofs):
        Upsilon = Upsilon.joined(s, g, inverse_pivot)
    return Values(Upsilon=Upsilon)
