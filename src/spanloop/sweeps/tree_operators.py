"""The spatial operators of a tree, by name.  [Rodriguez, Jain & Kreutz, 2.3-2.14, 3.1-3.10, A.3]

| name | paper | maps | |
|---|---|---|---|
| E_phi, phi | ℰ_φ, φ | links to links | forces from children to the parent; from all that is outboard |
| H | H | links to joints | the joint's share of a force; H* is its motion space |
| Mb | M | links to links | spatial inertias (block diagonal) |
| P | P | links to links | articulated inertias (block diagonal) |
| D, G, K | D, G, K | joints; joints to links | H P H* + armature, P H* D⁻¹, ℰ_φ G |
| tau_bar, E_psi, psi | τ̄, ℰ_ψ, ψ | links to links | 1 − G H, ℰ_φ τ̄, (1 − ℰ_ψ)⁻¹ |
| Upsilon, Omega | Υ, Ω | links to links | diagonal of Ω; ψ* H* D⁻¹ H ψ |
| B, J | B, J | frames to links; joints to frames | forces at frames seen at their links; B* φ* H* |
| D_root | D^(1/2) | joints to joints | the lower triangular C with C C* = D, joint by joint (Cholesky) |
| A | A | frames to rows | rows of the closures: what they hold of the velocities at their points (2.16) |
| Lam | Λ | frames to frames | B* Ω B = J M⁻¹ J*, the admittance of the points of closure (3.10) |
| b | b | rows to joints | D^(−1/2) H ψ B A* (3.13) |
| armature | – | joints to joints | inertia of the rotors (diagonal) |

Departures. Links are numbered from base to tip, so that φ, K and ψ are upper triangular where the paper has them
lower; every block is the same. Blocks are in link axes (the joint's axis is z), those of frames in the frame's own.
D has the armature in it, which the paper does not know: then 3.4-3.6 hold for M = H φ Mb φ* H* + armature. The root
of D is no symmetric one, so that the left one of the two D^(−1/2) of 3.13 is transposed; b has the D^(−1/2) that its
definition there lacks. A, Lam and b are of mechanisms with closures (closure_operators.py).

A flexible body with n modes has blocks of 6 + n numbers in the space "links": forces with the work that they do along
its modes, motions with its modal rates (flexible_chain.py has section 4, with all nodes). Its modes are its joint, so
that H there takes the modal numbers, and φ to a node of it has the node's shapes: all identities hold at any q.
"""

from __future__ import annotations

from spanloop.math import symmetric
from spanloop.math.spatial import Force, Motion, combined, power
from spanloop.sweeps.closure_operators import Along, RowIdentity
from spanloop.sweeps.terms import (
    FRAMES,
    JOINTS,
    LINKS,
    ONE,
    ROWS,
    Local,
    Named,
    Shift,
    Term,
    Transition,
    added,
    block,
    product,
)


def _identity(link, here, x):
    return x


def _project(link, here, f):
    return tuple(power(s, Force.of(f)) for s in here.S)


def _span(link, here, rates):
    return block(link, combined(here.S, rates))


def _inertia(link, here, m):
    return tuple(here.inertia @ Motion.of(m))


def _articulated(link, here, m):
    return tuple(here.P @ Motion.of(m))


def _admittance(link, here, f):
    return tuple(here.Upsilon @ Force.of(f))


def _gain(link, here, x):
    return block(link, sum((g * k for g, k in zip(here.G, x, strict=True)), Force()))


def _gain_star(link, here, m):
    return tuple(power(Motion.of(m), g) for g in here.G)


def _yield(link, here, f):
    """(1 − G H) f: what of a force the joint passes on while it gives way."""
    return tuple(Force.of(f) - Force.of(_gain(link, here, _project(link, here, f))))


def _yield_star(link, here, m):
    return tuple(Motion.of(m) - Motion.of(_span(link, here, _gain_star(link, here, m))))


def _armature(link, here, x):
    return tuple(m * k for m, k in zip(link.armature, x, strict=True))


def _gather_frames(link, here, six):
    parts = (x @ Force.of(six[6 * k : 6 * k + 6]) for k, x in enumerate(here.frames))
    return block(link, sum(parts, Force()))


def _at_frames(link, here, m):
    return tuple(x for frame in here.frames for x in frame.T @ Motion.of(m))


def _root(link, here, x):
    return symmetric.apply(symmetric.root(here.D), x)


def _root_star(link, here, x):
    return symmetric.apply(tuple(zip(*symmetric.root(here.D), strict=True)), x)


def _over_root(link, here, x):
    return symmetric.solve_lower(symmetric.root(here.D), x)


def _over_root_star(link, here, x):
    return symmetric.solve_upper(symmetric.root(here.D), x)


def identity(space: str) -> Term:
    """1 on vectors of a space."""
    return RowIdentity() if space == ROWS else Local(ONE, space, space, 0, _identity)


E_phi = Shift()
phi = Transition("phi", Local(ONE, LINKS, LINKS, 0, _identity))
H = Local("H", JOINTS, LINKS, 0, _project, _span)
Mb = Local("Mb", LINKS, LINKS, 0, _inertia)
B = Local("B", LINKS, FRAMES, 0, _gather_frames, _at_frames)
armature = Local("armature", JOINTS, JOINTS, 0, _armature)
J = Named("J", product(B.star(), phi.star(), H.star()))

P = Local("P", LINKS, LINKS, 1, _articulated)
D = Local("D", JOINTS, JOINTS, 1, lambda link, here, x: symmetric.apply(here.D, x))
D_inverse = Local("D.inverse()", JOINTS, JOINTS, 1, lambda link, here, x: symmetric.apply(here.D_inverse, x))
D_root = Local("D_root", JOINTS, JOINTS, 1, _root, _root_star)
D_root_inverse = Local("D_root.inverse()", JOINTS, JOINTS, 1, _over_root, _over_root_star)
G = Local("G", LINKS, JOINTS, 1, _gain, _gain_star)
K = Named("K", product(E_phi, G))
tau_bar = Local("tau_bar", LINKS, LINKS, 1, _yield, _yield_star)
E_psi = Named("E_psi", product(E_phi, tau_bar))
psi = Transition("psi", tau_bar)

Upsilon = Local("Upsilon", LINKS, LINKS, 2, _admittance)
Omega = Named("Omega", product(psi.star(), H.star(), D_inverse, H, psi))

A = Along()
Lam = Named("Lam", product(B.star(), Omega, B))
b = Named("b", product(D_root_inverse, H, psi, B, A.star()))

NAMES: dict[str, Term] = {
    t.text: t for t in (E_phi, phi, H, Mb, P, D, D_root, G, K, tau_bar, E_psi, psi, Upsilon, Omega, B, J, armature)
}
CLOSED: dict[str, Term] = {t.text: t for t in (A, Lam, b)}  # where there are closures


def inverses(has_armature: bool) -> dict[str, Term]:
    """Inverses that are known, by the text of what they are the inverse of: D⁻¹, 2.9, 3.3, lemmas 2 and 3."""
    one, joints = identity(LINKS), identity(JOINTS)
    innovations = added((1.0, joints), (1.0, product(H, phi, K)))
    whitening = added((1.0, joints), (-1.0, product(H, psi, K)))
    bare = product(H, phi, Mb, phi.star(), H.star())
    mass = added((1.0, bare), (1.0, armature)) if has_armature else bare
    pairs = (
        (D, D_inverse),
        (D_root, D_root_inverse),
        (added((1.0, one), (-1.0, E_phi)), phi),
        (added((1.0, one), (-1.0, E_psi)), psi),
        (innovations, whitening),
        (mass, product(whitening.star(), D_inverse, whitening)),
    )
    known: dict[str, Term] = {ONE: one}
    for a, b in pairs:
        for x, y in ((a, b), (b, a), (a.star(), b.star()), (b.star(), a.star())):
            known[x.text] = y
    if not has_armature:
        known[added((1.0, bare), (1.0, armature)).text] = known[mass.text]
    return known
