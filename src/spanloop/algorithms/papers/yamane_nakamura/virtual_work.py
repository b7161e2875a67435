"""Forward dynamics by the principle of virtual work, and the constraint forces of all joints. [Yamane & Nakamura]

Links are loose bodies with six accelerations each; joints are constraints between them, added one after the other
from the leaves to the root (path 1); the final forces follow from the root to the leaves (path 2). No articulated
inertia appears. O(n), links with more than three joints being split (section 4; `split_links.py`). Unsplit, adding
a joint to a link that has n_b others takes O(n_b²) products.

| here | paper | shape | meaning | frame |
|---|---|---|---|---|
| A⁻¹ | A_k⁻¹ | Mobility | inverse of the link's inertia | link |
| b | b_k | Force | velocity-dependent force | link |
| t | t_k | Force | all forces on the link but those of constraints | link |
| c | – | Motion | acceleration of the link when its parent and its joint have none | link |
| K | K_m = H_m,m | rows, Force | constraint space of the joint | link |
| KJ | K_Jm = H_Jm,m | rows, Force | what measures the joint's rates: KJ S = 1, K KJᵀ = 0 (eq. 11) | link |
| h | h_m | vector | K c: right-hand side of the constraint on accelerations | rows |
| H | H_m,m−1 | rows, Force | K seen from the parent | parent |
| S | S_m,n | matrix | coupling of two joints through their common link (eq. 39) | rows |
| M | M_m,n | matrix | block (m, n) of Φ⁻¹, of joints on one link (eq. 41, 43) | rows |
| n | n_m | vector | constraint force, at the stage reached or final | rows |

Departures. Relative motion is taken in the child's frame, so that H_m,m is K. A joint is added when the link that
carries it is visited: of S_m and a_m the child has made its own side (E, e). The world's A⁻¹ is 0, joints on it are not
coupled; gravity is an acceleration of the world. A driven joint is a constraint in all six directions, its acceleration
part of c. A rotor (armature) r is one more row √r KJ with a compliance of 1. Eq. 53 is read off link accelerations:
the same sum with fewer products. Both paths are walked twice, the second time for what is left of eq. 13 and 15 after
the first: A⁻¹ and Φ lose digits where light links carry heavy ones, and one correction brings them back. Where it is
too large to be the last one, the answer is refused (docs/decisions, 13).

Slips mended: a_i+1 needs + H_i+1,i A_i⁻¹ t_i; t_k holds all joint torques on link k from the start; the last term of
eq. 53 is −H_Ji,i A_i⁻¹ H_i+1,iᵀ n_i+1.
"""

from __future__ import annotations

from functools import partial

from spanloop.algorithms.papers.yamane_nakamura.constraint_inverse import added, coupled, spanned, transposed_times
from spanloop.algorithms.papers.yamane_nakamura.split_links import (
    inertia_demands,
    refuse_bodies_without_inertia,
    refuse_uneven_joints,
    split,
)
from spanloop.algorithms.tree.kinematics import poses
from spanloop.algorithms.tree.link_motion import driven_acceleration, link_acceleration, placed
from spanloop.errors import Reason, Refusal
from spanloop.joints.kind import EX, EY, EZ
from spanloop.math.inertia import Mobility
from spanloop.math.scalar import factor_of_armature
from spanloop.math.spatial import Field, Force, Motion, dual_basis, power
from spanloop.math.symmetric import apply, inverse
from spanloop.math.vector3 import ZERO3, dot, is_zero, negate, total
from spanloop.sweeps import Program, Union, Values, inward, outward

SIX = (Force(EX), Force(EY), Force(EZ), Force(linear=EX), Force(linear=EY), Force(linear=EZ))

LARGEST_CORRECTION = 1e-7  # relative to the accelerations; the error left after it is its square
LOST = Refusal(
    Reason.ROUNDING,
    "rounding errors are too large in method 'virtual_work': a body is too thin, or too light for what it carries. "
    "Use method 'articulated_body'",
)


def forward_dynamics(mechanism, loaded=(), rewrite=split) -> Program:
    """a (nv,) for given q (nq,), v (nv,), tau (nv,); a driven joint's entry of tau is its acceleration."""
    refuse_bodies_without_inertia(mechanism)
    refuse_uneven_joints(mechanism)
    return Program(
        "forward_dynamics",
        ("q", "v", "tau") + (("forces",) if loaded else ()),
        sweeps(mechanism, loaded),
        result=lambda m, here, world: [x for h in here for x in h.accelerations],
        shape=(mechanism.nv,),
        loaded=loaded,
        rewrite=rewrite,
        demands=demands,
        refusal=LOST,
        double=True,
    )


def constraint_forces(mechanism, loaded=(), rewrite=split) -> Program:
    """[torque; force] (n_joints, 6) of each joint's constraint on its child, at the body's origin in world axes.

    For given q, v, tau; torques along the joint's DoF are not part of it, the force of a driven joint is.
    Bodies on fixed joints are links of their own here.
    """
    refuse_bodies_without_inertia(mechanism)
    refuse_uneven_joints(mechanism)

    def result(m, here, world):
        joints = [h for link, h in zip(m.links, here, strict=True) if link.name]
        return [x for h in joints for x in h.constraint.turned(h.T.rotation)]

    return Program(
        "constraint_forces",
        ("q", "v", "tau") + (("forces",) if loaded else ()),
        (*sweeps(mechanism, loaded), poses()),
        result,
        shape=(len(mechanism.links), 6),
        loaded=loaded,
        whole=True,
        rewrite=rewrite,
        demands=demands,
        refusal=LOST,
        double=True,
    )


forward_dynamics_unsplit = partial(forward_dynamics, rewrite=None)
constraint_forces_unsplit = partial(constraint_forces, rewrite=None)


def sweeps(mechanism, loaded):
    """Links made loose, joints added and forces found, twice."""
    paths = (inward(gather, e=Union()), outward(release, n={}, a=Motion()))
    return (
        *placed(loaded),
        outward(constrain, field=Field(ZERO3, origin=negate(mechanism.gravity))),
        inward(push, t=Force()),
        inward(connect, joints=Union()),
        *paths,
        outward(remain, a=Motion()),
        *paths,
        outward(finish, a=Motion()),
    )


# ---- links as loose bodies: what acts on them, and what their joints require (section 3.1-3.2)


def constrain(link, here, parent) -> Values:
    """Velocity terms b_k and h_m, the joint's constraint space K and the dual basis KJ of its motion space."""
    moved = link_acceleration(link, here, parent.field, here.v, driven_acceleration(link, here))
    field, c = Field(moved.omega), moved.motion  # the parent's acceleration is an unknown
    KJ = dual_basis(link.free(here.S))
    K = SIX if link.driven else link.kind.constraint_space(here.q)
    rotors = tuple(w * factor_of_armature(r) for w, r in zip(KJ, link.armature, strict=False) if not is_zero(r))
    return Values(
        field=field,
        b=link.inertia.force(field),
        c=c,
        h=tuple(power(c, k) for k in K + rotors),  # (29)
        K=K + rotors,
        KJ=KJ,
        compliance=(0.0,) * len(K) + (1.0,) * len(rotors),
    )


def push(link, here, arriving) -> tuple[Values, Values]:
    """t_k: external forces, velocity terms, and torques of the link's own joint and of those that it carries."""
    torque = [t + p for t, p in zip(here.tau, link.passive_torque(here.q, here.v), strict=True)]
    drive = spanned(here.KJ, torque[: len(here.KJ)])  # H_Jᵀ n_J
    return Values(t=here.external - here.b + drive + arriving.t), Values(t=-(here.X @ drive))  # (28)


# ---- path 1, from the leaves to the root: first what does not depend on forces


def connect(link, here, arriving) -> tuple[Values, Values]:
    """The link's children are joined to it (M); its own joint's side of S_m is made ready for its parent."""
    mobility, K = Mobility.of(link.inertia), here.K
    stages, M = added(arriving.joints, mobility)
    W = [mobility @ k for k in K]  # A⁻¹ Kᵀ
    S = {i: [[-power(w, h) for h in H] for w in W] for i, (H, _) in arriving.joints.items()}  # (39)
    E = coupled([[power(w, k) for k in K] for w in W], S, M, here.compliance)
    H = tuple(here.X @ k for k in K)
    carried = {i: H for i, (H, _) in arriving.joints.items()}
    kept = Values(mobility=mobility, stages=stages, M=M, S_own=S, H=carried, E=E)
    return kept, Values(joints=Union({link.number: (H, E)} if K else {}))


def gather(link, here, arriving) -> tuple[Values, Values]:
    """Constraint forces of the joints that the link carries, before its own joint is added."""
    free = here.mobility @ here.t  # A_k⁻¹ t_k
    n: dict = {}
    for i, couplings, gains, M in here.stages:
        a = [x + power(free, k) for x, k in zip(arriving.e[i], here.H[i], strict=True)]
        for j, phi in couplings.items():
            a = [x - dot(row, n[j]) for x, row in zip(a, phi, strict=True)]
        n[i] = apply(M, a)  # (40)
        for j, gain in gains.items():
            n[j] = tuple(x - y for x, y in zip(n[j], transposed_times(gain, n[i]), strict=True))  # (35)
    e = [x - power(free, k) for x, k in zip(here.h, here.K, strict=True)]
    for i, S in here.S_own.items():
        e = [x - dot(row, n[i]) for x, row in zip(e, S, strict=True)]
    own = apply(inverse(here.E), e) if link.parent < 0 else ()
    return Values(free=free, staged=n, own=own), Values(e=Union({link.number: e}))


# ---- path 2, from the root to the leaves


def release(link, here, parent) -> Values:
    """Final constraint forces of the joints that the link carries, and its acceleration."""
    own = here.own if link.parent < 0 else parent.n.get(link.number, ())
    n = dict(here.staged)
    if own:
        pull = {j: transposed_times(S, own) for j, S in here.S_own.items()}
        for i in n:
            for j in n:
                n[i] = tuple(x - y for x, y in zip(n[i], apply(here.M[i, j], pull[j]), strict=True))  # (47)
    f = spanned(here.K, own)
    for i, H in here.H.items():
        f = f - spanned(H, n[i])
    return Values(n=n, own=own, f=f, a=here.free + here.mobility @ f)  # (15)


def remain(link, here, parent) -> Values:
    """What is left of the equations of motion (15) and of the constraints (13): the second walk's t and h."""
    t = here.t + here.f - link.inertia @ here.a
    slip = here.a - here.X.T @ parent.a
    rest = zip(here.h, here.K, here.compliance, here.own, strict=True)
    h = tuple(x - power(slip, k) - y * z for x, k, y, z in rest)
    return Values(a=here.a, t=t, h=h, first=Values(n=here.own, a=here.a, slip=slip - here.c))


def finish(link, here, parent) -> Values:
    """Joint accelerations and constraint forces of both walks together."""
    second = here.a - here.X.T @ parent.a
    slip = here.first.slip + second
    accelerations = tuple(power(slip, w) for w in here.KJ) if here.KJ else here.tau  # (14), (53)
    n = [x + y for x, y, soft in zip(here.first.n, here.own, here.compliance, strict=True) if not soft]
    sizes = (square(here.a), square(here.first.a))
    corrections = tuple(power(second, w) for w in here.KJ)
    constraint = spanned(here.K[: len(n)], n)
    return Values(a=here.a, accelerations=accelerations, corrections=corrections, constraint=constraint, sizes=sizes)


def square(m: Motion):
    """The sum of the squares of six entries."""
    return dot(tuple(m), tuple(m))


def demands(m, here, world) -> list:
    """Pairs, the first to be less: the size of the correction, and of what it may be; live bodies must not be thin.

    Sizes are those of links, and of joints by the unit of their DoF.
    """
    corrections, accelerations = (total(h.sizes[k] for h in here) for k in (0, 1))
    live = [pair for link in m.links for pair in inertia_demands(link.inertia)]
    sizes = [(corrections, accelerations)]
    for unit in sorted({u for link in m.links if not link.driven for u in link.kind.units}):
        joints = [(k.kind.units, h) for k, h in zip(m.links, here, strict=True) if not k.driven]
        sizes.append(tuple(_total_of(unit, joints, name) for name in ("corrections", "accelerations")))
    return [*((x, LARGEST_CORRECTION**2 * y + 1e-200) for x, y in sizes), *live]


def _total_of(unit: str, joints, name: str):
    """The sum of squares of what joints keep by this name for their DoF in this unit."""
    return total(x * x for units, h in joints for u, x in zip(units, getattr(h, name), strict=True) if u == unit)
