"""Inverse and forward dynamics by the Decoupled Natural Orthogonal Complement, for serial chains and trees. O(n).

[Saha, section 2; trees: eq. 47-52]. With t = N_l N_d θ̇ the Newton-Euler equations of all bodies become
I θ̈ + h = τ. Inverse dynamics evaluates N_dᵀ N_lᵀ by recursion (section 2.4.1); forward dynamics solves by I = U D Uᵀ,
reverse Gaussian elimination done on the recursion's own terms (eq. 18-21).

| here | Saha | shape | meaning | frame |
|---|---|---|---|---|
| X.T @ t | A_i,i−1 t | Motion | twist of the parent, seen at the link | link |
| X @ w | A_i,i−1ᵀ w | Force | wrench on the link, seen at its parent | parent |
| S | p_i | columns | joint-rate propagation | link |
| field | ω_i, ṫ_i | Field | angular velocity and twist rate | link |
| w | w*_i | Force | inertia wrench of the link and all that it carries | link |
| phi | φ_i | scalar | τ − h | joint |
| M | M̂_i, M̄_i | 6×6 | articulated-body inertia, before and after elimination | link |
| psi_hat, psi | ψ̂_i, ψ_i | Force | M̂ p, ψ̂/m̂ | link |
| m | m̂_i | scalar | pᵀ M̂ p, entry i of D | joint |
| eta | η_i | Force | what the bodies behind leave of φ̂ | link |
| mu | μ̃_i | Motion | acceleration due to θ̈ of the joints so far | link |

Departures. Vectors are in link axes, so that A_i,i−1 also turns. Twists are at the joint's origin O_i and twist rates
are its classical accelerations, as in the paper; the linear velocity cancels and is not computed. A joint of several
DoF is several joints in one place with massless bodies between (section 2.2), the last one eliminated first. On
a tree sums run over children. φ holds, besides gravity (an acceleration of the first bodies, eq. 17), dampers, springs
and the given accelerations of driven joints, whose p_i is then left out; armature is in m̂.
Slips mended: ψ_i = ψ̂_i/m̂_i; the second half of eq. 19b defines η_i+1; eq. 21a has ψ_i.
"""

from __future__ import annotations

from spanloop.algorithms.tree.link_motion import link_acceleration, placed
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Field, Force, Motion, combined, dof_acceleration, power
from spanloop.math.vector3 import ZERO3, negate
from spanloop.sweeps import Program, Values, inward, outward
from spanloop.sweeps.tested_pivots import PivotTest


def inverse_dynamics(mechanism, loaded=()) -> Program:
    """tau (nv,) for given q (nq,), v (nv,), a (nv,)."""
    return _recursive("inverse_dynamics", ("q", "v", "a"), mechanism, loaded)


def bias(mechanism, loaded=()) -> Program:
    """tau (nv,) that keeps θ̈ = 0 at q, v: h = C θ̇, with gravity, dampers and springs."""
    return _recursive("bias", ("q", "v"), mechanism, loaded)


def _recursive(name, inputs, mechanism, loaded) -> Program:
    return Program(
        name,
        inputs + (("forces",) if loaded else ()),
        (*placed(loaded), *recursions(mechanism)),
        result=lambda m, here, world: [t for h in here for t in h.torque],
        shape=(mechanism.nv,),
        regroup=True,
        loaded=loaded,
    )


def forward_dynamics(mechanism, loaded=()) -> Program:
    """a (nv,) for given q (nq,), v (nv,), tau (nv,); a driven joint's entry of tau is its acceleration."""
    tested = PivotTest(mechanism)
    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()),
        (
            *placed(loaded),
            *tested.sweeps,
            *recursions(mechanism),  # h, with θ̈ = 0
            inward(eliminate, M=ArticulatedInertia(), eta=Force()),  # steps 1 and 2
            outward(substitute, mu=Motion()),  # step 3
        ),
        result=lambda m, here, world: [x for h in here for x in h.accelerations],
        shape=(mechanism.nv,),
        regroup=True,
        loaded=loaded,
        demands=tested.demands,
    )


# ---- section 2.4.1: inverse dynamics


def recursions(mechanism):
    """Forward and backward recursion; gravity is an acceleration of the first bodies (17)."""
    rho = Field(ZERO3, origin=negate(mechanism.gravity))
    return outward(move, field=rho), inward(press, w=Force())


def move(link, here, parent) -> Values:
    """Twist and twist rate, and the wrench that they take."""
    rates = getattr(here, "v", (0.0,) * link.kind.nv)
    own = combined(here.S, known_accelerations(link, here))  # p θ̈
    field = link_acceleration(link, here, parent.field, rates, own)  # ṫ = A ṫ₋ + Ȧ t₋ + W p θ̇ + p θ̈
    return Values(field=field, w=link.inertia.force(field) - here.external)  # M ṫ + W M E t  (5)


def known_accelerations(link, here):
    """θ̈ of inverse dynamics; in forward dynamics that of driven joints, and 0."""
    if hasattr(here, "a"):
        return here.a
    return here.tau if link.driven and hasattr(here, "tau") else (0.0,) * link.kind.nv


def press(link, here, arriving) -> tuple[Values, Values]:
    """Wrench of all that the joint carries, and its torque: τ = pᵀ w*, with armature, damper and spring."""
    w = here.w + arriving.w
    rotor = (r * a for r, a in zip(link.armature, known_accelerations(link, here), strict=True))
    passive = link.passive_torque(here.q, here.v)
    torque = tuple(power(p, w) + x - y for p, x, y in zip(here.S, rotor, passive, strict=True))
    return Values(torque=torque), Values(w=here.X @ w)


# ---- section 2.4.2: forward dynamics


def eliminate(link, here, arriving) -> tuple[Values, Values]:
    """The joint's rows of U⁻¹ φ and D⁻¹ U⁻¹ φ, from its last DoF to its first."""
    M = link.inertia.articulated() + arriving.M  # M̂                                (19d)
    eta = arriving.eta
    eliminated, pivots = [], []
    phi = [t - h for t, h in zip(here.tau, here.torque, strict=True)]  # φ = τ − h
    for p, x, armature in reversed(list(zip(link.free(here.S), phi, link.armature, strict=False))):
        psi_hat = M @ p
        m = power(p, psi_hat) + armature  # m̂ = pᵀ ψ̂                                (19c)
        pivots.append(m)
        inverse_pivot = reciprocal(m)
        psi = psi_hat * inverse_pivot
        x = x - power(p, eta)  # φ̂ = φ − pᵀ η                                        (19a)
        eliminated.append((p, psi, x * inverse_pivot))  # φ̃ = φ̂ / m̂                          (20)
        eta = eta + psi * x  # η = ψ φ̂ + η                                           (19b)
        M = M.less(psi, psi_hat)  # M̄ = M̂ − ψ̂ ψᵀ                                     (19d)
    return Values(eliminated=eliminated, pivots=pivots[::-1]), Values(M=M.carried(here.X), eta=here.X @ eta)


def substitute(link, here, parent) -> Values:
    """θ̈ = U⁻ᵀ φ̃, the joint's first DoF first."""
    mu = here.X.T @ parent.mu  # μ̃_i,i−1 = A μ̃_i−1                                  (21b)
    accelerations = []
    for p, psi, x in reversed(here.eliminated):
        acceleration = dof_acceleration(x, psi, p, mu)  # θ̈ = φ̃ − ψᵀ μ̃                           (21a)
        mu = mu + p * acceleration  # μ̃ = p θ̈ + μ̃                                          (21b)
        accelerations.append(acceleration)
    return Values(mu=mu, accelerations=tuple(accelerations) if here.eliminated else here.tau)
