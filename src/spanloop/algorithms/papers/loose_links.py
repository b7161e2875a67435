"""Links as loose bodies: what acts on them, and what their joints ask of them. [Yamane & Nakamura, section 3.1-3.2]

Symbols and departures are those of `virtual_work.py`.
"""

from __future__ import annotations

from spanloop.algorithms.papers.blocks import spanned
from spanloop.joints.kind import EX, EY, EZ
from spanloop.math.scalar import sqrt
from spanloop.math.small import add, dot, is_zero
from spanloop.math.spatial import Field, Force, Motion, combined, coriolis, power
from spanloop.math.symmetric import inverse
from spanloop.sweeps import Values

SIX = (Force(EX), Force(EY), Force(EZ), Force(linear=EX), Force(linear=EY), Force(linear=EZ))


def turn(link, here, parent) -> Values:
    """Velocities and what comes of them: b_k, h_m; the joint's constraints and its measures."""
    R, p = here.X.rotation.T, here.X.translation
    relative = combined(here.S, here.v)
    carrier = R @ parent.omega
    c = (
        here.X.T @ parent.ground
        + Motion(linear=R @ Field(parent.omega).at(p))
        + coriolis(carrier, relative)
        + link.kind.motion_space_rate(here.q, here.v)
        + combined(link.given(here.S), link.given(here.tau))
    )
    omega = add(carrier, relative.angular)
    KJ = measures(link.free(here.S))
    K = SIX if link.driven else link.kind.constraint_space(here.q)
    rotors = tuple(w * sqrt(r) for w, r in zip(KJ, link.armature, strict=False) if not is_zero(r))
    return Values(
        omega=omega,
        ground=Motion(),
        b=link.inertia.force(Field(omega)),
        c=c,
        h=tuple(power(c, k) for k in K + rotors),  # (29)
        K=K + rotors,
        KJ=KJ,
        compliance=(0.0,) * len(K) + (1.0,) * len(rotors),
    )


def measures(S) -> tuple[Force, ...]:
    """KJ = (SᵀS)⁻¹Sᵀ, row by row."""
    gram = inverse([[dot(tuple(s), tuple(r)) for r in S] for s in S])
    return tuple(Force.of([dot(row, x) for x in zip(*S, strict=True)]) for row in gram)


def push(link, here, arriving) -> tuple[Values, Values]:
    """t_k: forces from outside, of velocities, of the link's own joint and of those that it carries."""
    torque = [t + p for t, p in zip(here.tau, link.passive_torque(here.q, here.v), strict=True)]
    drive = spanned(here.KJ, torque[: len(here.KJ)])  # H_Jᵀ n_J
    return Values(t=here.external - here.b + drive + arriving.t), Values(t=-(here.X @ drive))  # (28)
