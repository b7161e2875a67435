"""What the derivatives of inverse dynamics consist of: a few vectors for each degree of freedom. O(n).

[Singh, Russo & Wensing 2022, "Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra"]

Every entry of ∂tau/∂q, ∂tau/∂v and M = ∂tau/∂a is then a product of vectors of two degrees of freedom, one of which
carries the other (compiler/lower/pair_system.py multiplies them). If DoF j moves, all that it carries moves with it by
s; seen from there, velocities change by ψ and accelerations by χ + ψ × v:

    i above j      ∂tau_i/∂q_j = s_i · f_q,j                       ∂tau_i/∂v_j = s_i · f_v,j      M_ij = s_i · F_j
    i below j, =   ∂tau_i/∂q_j = F_i · χ_j + b_i · ψ_j (+ e_i · s_j)   ∂tau_i/∂v_j = F_i · γ_j + b_i · s_j

| symbol | shape | meaning |
|---|---|---|
| s | Motion | column of the motion space |
| ψ (psi) | Motion | v × s, v of what carries the joint; only its angular part meets b |
| χ (chi) | Motion | a × s + v × ψ |
| γ (gamma) | Motion | change of accelerations with the rate of the DoF: ψ + v × s, v of the link |
| F | Force | I s, I of the link with all that it carries |
| b | 3 | 2 Bᵀ s: B of momenta of all that is carried; B takes angular motions only (math/moments.py) |
| f_q, f_v | Force | I χ + 2 B ψ + s × f, and I γ + 2 B s; f: force through the joint |
| e | 3 | as b, of external forces, which keep their directions in the world |

All are in world axes, about the origin of the link at the root of its tree, so that places far from the world's origin
lose no digits. A joint whose motion space turns against the link (universal) is taken as two joints in series. What
springs, dampers and armatures add is not here.
"""

from __future__ import annotations

from spanloop.algorithms.tree import articulated_body
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.inertia import RigidInertia
from spanloop.math.moments import Moments
from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Force, Motion, combined
from spanloop.math.vector3 import IDENTITY3, ZERO3, add, cross, negate, scale
from spanloop.sweeps import Program, Sweep, Values, inward, outward

PARTS = {"s": 6, "psi": 3, "chi": 6, "gamma": 6, "F": 6, "b": 3, "f_q": 6, "f_v": 6}  # numbers a DoF, in order
LOADED_PARTS = {**PARTS, "e": 3}


def terms_of_inverse_dynamics(mechanism, loaded=()) -> Program:
    """The vectors of all DoF at q, v, a: one row a component, (sum of PARTS, nv)."""
    inputs = ("q", "v", "a") + (("forces",) if loaded else ())
    return _program("inverse_dynamics_derivatives", inputs, placed(loaded), move, mechanism, loaded, None)


def terms_of_forward_dynamics(mechanism, loaded=()) -> Program:
    """The same at q, v and the accelerations that tau gives."""
    base = articulated_body.forward_dynamics(mechanism, loaded)
    return _program("derivatives", base.inputs, base.sweeps, move_on, mechanism, loaded, base.demands)


def _program(name, inputs, opening: tuple[Sweep, ...], moving, mechanism, loaded, demands) -> Program:
    parts = LOADED_PARTS if loaded else PARTS
    gravity = Motion(linear=negate(mechanism.gravity))
    none = {"I": RigidInertia(), "momenta": Moments(), "f": Force()} | ({"loads": Moments()} if loaded else {})

    def result(m, here, world):
        return [
            tuple(column)[k]
            for part, size in parts.items()
            for k in range(size)
            for h in here
            for column in getattr(h, part)
        ]

    return Program(
        name,
        inputs,
        (
            *opening,
            outward(moving, is_link=0.0, R=Rotation.full(IDENTITY3), p=ZERO3, V=Motion(), A=gravity),
            inward(gather_loaded if loaded else gather, **none),
        ),
        result,
        (sum(parts.values()), mechanism.nv),
        regroup=True,
        loaded=loaded,
        demands=demands,
    )


def move(link, here, parent) -> Values:
    """Motion of the link at given accelerations; s, ψ, χ, γ of its joint; momenta and force of the link alone."""
    return _moved(link, here, parent, here.a)


def move_on(link, here, parent) -> Values:
    """The same at the accelerations that were found."""
    return _moved(link, here, parent, here.accelerations)


def _moved(link, here, parent, a) -> Values:
    R = Rotation.full((parent.R @ here.X.rotation).matrix())
    p = scale(parent.is_link, add(parent.p, parent.R @ here.X.translation))
    S = tuple(_about_origin(s.turned(R), p) for s in here.S)
    V, A = parent.V, parent.A
    psi, chi, gamma = [], [], []
    for joint in ((0, link.kind.nv),) if link.kind.constant_space else ((k, k + 1) for k in range(link.kind.nv)):
        own = slice(*joint)
        by_position = [_cross(V, s) for s in S[own]]
        psi += by_position
        chi += [_cross(A, s) + _cross(V, x) for s, x in zip(S[own], by_position, strict=True)]
        A = A + combined(S[own], a[own]) + combined(by_position, here.v[own])
        V = V + combined(S[own], here.v[own])
        alone = joint[1] - joint[0] == 1
        gamma += [x + x if alone else x + _cross(V, s) for s, x in zip(S[own], by_position, strict=True)]
    I = link.inertia.turned(R).moved(p)
    momenta = Moments.of_velocities(I, V)
    gyroscopic = Force(
        add(cross(V.angular, momenta.axial()), cross(V.linear, momenta.sum)), cross(V.angular, momenta.sum)
    )
    motion = {"s": S, "psi": tuple(psi), "chi": tuple(chi), "gamma": tuple(gamma)}
    return Values(is_link=1.0, R=R, p=p, V=V, A=A, own=(I, momenta, I @ A + gyroscopic), **motion)


def gather(link, here, arriving) -> tuple[Values, Values]:
    """Sums over all that the joint carries; F, b, f_q, f_v of its DoF."""
    I, momenta, f = (x + y for x, y in zip(here.own, (arriving.I, arriving.momenta, arriving.f), strict=True))
    kept = Values(
        F=tuple(I @ s for s in here.s),
        b=tuple(scale(2.0, momenta.felt_along(s)) for s in here.s),
        f_q=tuple(
            I @ chi + momenta.turned_by(psi.angular) * 2.0 + _force_cross(s, f)
            for s, psi, chi in zip(here.s, here.psi, here.chi, strict=True)
        ),
        f_v=tuple(I @ gamma + momenta.turned_by(s.angular) * 2.0 for s, gamma in zip(here.s, here.gamma, strict=True)),
    )
    return kept, Values(I=I, momenta=momenta, f=f)


def gather_loaded(link, here, arriving) -> tuple[Values, Values]:
    """The same with external forces, which act against f and do not turn with what they act on."""
    loads, external = arriving.loads, Force()
    for six, origin in here.forces:
        point, f = add(here.p, here.R @ origin), Force.of(six)
        loads = loads + Moments.of_force(f, point)
        external = external + Force(add(f.angular, cross(point, f.linear)), f.linear)
    I, momenta, f = here.own
    alone = Values(own=(I, momenta, f - external), **{k: getattr(here, k) for k in ("s", "psi", "chi", "gamma")})
    kept, sent = gather(link, alone, arriving)
    held = tuple(f + loads.turned_by(s.angular) for f, s in zip(kept.f_q, here.s, strict=True))
    e = tuple(loads.felt_along(s) for s in here.s)
    return Values(F=kept.F, b=kept.b, f_q=held, f_v=kept.f_v, e=e), Values(loads=loads, **vars(sent))


def _about_origin(s: Motion, p) -> Motion:
    """A motion at p, as one about the origin."""
    return Motion(s.angular, add(s.linear, cross(p, s.angular)))


def _cross(v: Motion, s: Motion) -> Motion:
    """v × s of motions."""
    return Motion(cross(v.angular, s.angular), add(cross(v.angular, s.linear), cross(v.linear, s.angular)))


def _force_cross(s: Motion, f: Force) -> Force:
    """s × f of a motion and a force."""
    return Force(add(cross(s.angular, f.angular), cross(s.linear, f.linear)), cross(s.angular, f.linear))
