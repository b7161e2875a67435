"""Linear systems of steps 2 and 3: the reference member and the rows at the tips of all chains. [Lilly & Orin 36-47]

    L_k h_k + B_k a₀ = S_k  for every chain (36),      P₀ a₀ − Σ B_kᵀ h_k = −z₀ (43).

| here | Lilly & Orin | shape | meaning |
|---|---|---|---|
| L | φᶜᵀ Λ⁻¹ φᶜ = M⁻¹ | n_c × n_c | admittance of a chain along the rows of its tip |
| B | φᶜᵀ X₀ | n_c Forces | the rows seen from the reference member |
| S | S_k | n_c | acceleration along the rows that the forces at the tip have to undo |
| h | h_kᶜ | n_c | unknown forces along the rows, on the reference member; the known h_k act on the open chain |
| factors | M_k | n_c × n_c | LDLᵀ of L, clamped: solves for h |
| reflected | X₀ᵀR_k | 6×6 | inertia of a chain as the reference member feels it, R_k = φᶜ M_k φᶜᵀ X₀ (41) |
| pushes | X₀ᵀP_k | 6 | force of a chain on a reference member without acceleration, P_k = φᶜ M_k S_k (41) |
| L_ii, S_i | – | n_i × n_i, n_i | the same of loops inside a chain: its first rows |
| L_tt, S_t | – | n_c × n_c, n_c | the same of its tip |
| P0, z0 | I₀, b₀ − g₀ | 6×6, Force | inertia and bias force of the reference member with all that only it carries |
| a0 | a₀ | Motion | its acceleration beyond ζ (tree/link_motion.py) |

P is an articulated inertia in all our files; P_k and f_k = P_k − R_k a₀ are the paper's, forces without a name here.
The term φ h_k of its P_k acts on the bodies themselves (general_joints.py), in z0 and in what moves the chain.

The paper does not print the factorisation of M⁻¹, nor what follows. Rows of loops inside a chain are the first of its
rows, and have B = 0. Eliminating them first leaves, of L_k and S_k, what the chain has at its tip with its own loops
closed: L_tt − L_ti L_ii⁻¹ L_it, S_t − L_ti L_ii⁻¹ S_i. Their pivots vanish only where their rows depend on each other,
whatever the reference member does.

M_k must not be a pseudo-inverse: where a chain cannot yield (fewer than six DoFs, a singular configuration) its row
fixes the reference member itself, with a force that is yet unknown. Such pivots of L_k are clamped at CLAMP of their
scale, and the whole system is refined: every refinement multiplies the error by about CLAMP, more where the other
chains let the reference member yield much less than by itself, as with masses of different size: with a ratio of 1e6 by
up to 1e-3. Smaller clamped pivots would lose digits to rounding, which a refinement restores only in part. Sums over
chains are shaped as trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spanloop.algorithms.closed.pivot_tolerance import pivot_demands
from spanloop.algorithms.papers.lilly_orin.general_joints import Constraint
from spanloop.errors import Reason, Refusal
from spanloop.math.inertia import ArticulatedInertia, RigidInertia
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Force, Motion, power
from spanloop.math.symmetric import LDL, InversePivot, clamped_inverse, guarded_inverse, pivot_bounds
from spanloop.math.vector3 import dot, is_zero, negate, total, trace
from spanloop.sweeps.program import Demand
from spanloop.types import Scalar

CLAMP = 1e-9  # of their scale; at 1e-7 mass ratios of 1e6 kept six digits only
# where every chain has as many DoFs as its tip has rows; where one has fewer; where chains have loops, too
REFINEMENTS = 2, 3, 4
LARGEST_ERROR = 1e-11  # that the refinements may leave, relative to the accelerations of the tips
LARGEST_REST = 1e-3  # of the right-hand side of `probe`, after one refinement


NOT_CONVERGED = Refusal(
    Reason.ROUNDING,
    "the forces between the chains and the member that they carry are not known to 1e-11 after the last refinement: "
    "masses, or what the chains let that member yield in different directions, differ too much for this method. "
    "Use method='elimination'",
)


@dataclass(frozen=True)
class ChainRows:
    """A chain as the reference member feels it; the rows of its own loops, which do not feel that one, come first."""

    rows: list[Constraint]
    L: list[list[Scalar]]
    S: list[Scalar]
    dofs: int
    inner: int = 0  # rows of its own loops


class Refined(NamedTuple):
    """The solution after its refinements, and the corrections (of a₀, of h) that they made."""

    a0: Motion
    h: list[list[Scalar]]
    steps: list[tuple[Motion, list[list[Scalar]]]]


class ReferenceMember:
    """The reference member with the chains at their tips: (45) and (47) for any S and any force on it."""

    def __init__(self, chains: Sequence[ChainRows], P0: ArticulatedInertia, body: RigidInertia):
        self.chains, self.P0 = chains, P0
        self.zero_bounds = [_zero_bounds(c) for c in chains]
        self.factors = [
            LDL(c.L, _inverse_pivot(c, _least_pivots(c, body), bounds))
            for c, bounds in zip(chains, self.zero_bounds, strict=True)
        ]
        self.columns, self.scaled = [], []  # (1 + N)⁻¹ B and D⁻¹(1 + N)⁻¹ B, column by column
        for c, F in zip(chains, self.factors, strict=True):
            columns = [F.forward([tuple(r.B)[x] for r in c.rows]) for x in range(6)]
            self.columns.append(columns)
            self.scaled.append([[y * o for y, o in zip(column, F.inverse_pivots, strict=True)] for column in columns])
        own = P0.rows()
        whole = [[0.0] * 6 for _ in range(6)]
        self.reflected: list = []  # X₀ᵀ R_k of all chains, entry by entry
        for x in range(6):
            for y in range(x + 1):
                parts = [dot(c[x], s[y]) for c, s in zip(self.columns, self.scaled, strict=True)]
                whole[x][y] = whole[y][x] = total([own[x][y], *parts])  # I₀ + Σ X₀ᵀ φᶜ M φᶜᵀ X₀ (46)
                self.reflected += parts
        self.whole = LDL(whole)

    def acceleration(self, S: Sequence[Sequence[Scalar]], force: Force) -> Motion:
        """a₀ with [I₀ + Σ X₀ᵀ R_k] a₀ = Σ X₀ᵀ P_k + force (45), of P_k = φᶜ M S_k."""
        pushes = []
        for F, s, scaled in zip(self.factors, S, self.scaled, strict=True):
            y = F.forward(s)
            pushes.append([dot(column, y) for column in scaled])
        return Motion.of(self.whole.solve([total(terms) for terms in zip(tuple(force), *pushes, strict=True)]))

    def tip_forces(self, S: Sequence[Sequence[Scalar]], a0: Motion) -> list[list[Scalar]]:
        """h of all chains: f_k = P_k − R_k a₀ (47) along the rows, M (S_k − φᶜᵀ X₀ a₀) (38)."""
        h = []
        for F, s, columns in zip(self.factors, S, self.columns, strict=True):
            y = F.forward(s)
            left = [total([a, *(-(c[k] * x) for c, x in zip(columns, a0, strict=True))]) for k, a in enumerate(y)]
            h.append(F.backward(left))
        return h

    def residual(self, S, force: Force, a0: Motion, h) -> tuple[list[list[Scalar]], Force]:
        """What a₀ and h leave of (36) and (43)."""
        rest = []
        for c, s, x in zip(self.chains, S, h, strict=True):
            rest.append([a - dot(row, x) - power(a0, r.B) for a, row, r in zip(s, c.L, c.rows, strict=True)])
        pushes = [_push(c.rows, x) for c, x in zip(self.chains, h, strict=True)]
        own = [-x for x in self.P0 @ a0]
        return rest, Force.of([total(x) for x in zip(tuple(force), own, *map(tuple, pushes), strict=True)])

    def refined(self, S, force: Force, a0: Motion, h, times: int) -> Refined:
        """a₀ and h, corrected by steps 2 and 3 for their residual."""
        steps = []
        for _ in range(times):
            rest, missing = self.residual(S, force, a0, h)
            step = self.acceleration(rest, missing)
            more = self.tip_forces(rest, step)
            steps.append((step, more))
            a0 = a0 + step
            h = [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(h, more, strict=True)]
        return Refined(a0, h, steps)

    def size(self, a0: Motion, h) -> Scalar:
        """The square of the accelerations of the reference member, and of the tips under h alone."""
        tips = [dot(row, x) for c, x in zip(self.chains, h, strict=True) for row in c.L]
        return dot(tuple(a0), tuple(a0)) + dot(tips, tips)

    @property
    def refinements(self) -> int:
        """How often the solution is corrected."""
        few_dofs = any(c.dofs < len(c.rows) for c in self.chains if len(c.rows) > c.inner)
        return REFINEMENTS[few_dofs + (few_dofs and any(c.inner for c in self.chains))]


def _push(rows: Sequence[Constraint], h: Sequence[Scalar]) -> Force:
    """Bᵀ h: the force of a chain on the reference member."""
    return Force.of([total(tuple(r.B)[x] * y for r, y in zip(rows, h, strict=True)) for x in range(6)])


def balanced(
    chains: Sequence[ChainRows], P0: ArticulatedInertia, z0: Force, body: RigidInertia
) -> tuple[Refined, ReferenceMember]:
    """a₀ and h by chain, and the system: steps 2 and 3 with their refinement."""
    member, S = ReferenceMember(chains, P0, body), [c.S for c in chains]
    a0 = member.acceleration(S, -z0)
    return member.refined(S, -z0, a0, member.tip_forces(S, a0), member.refinements), member


# ---- pivots


def _least_pivots(chain: ChainRows, body: RigidInertia) -> list:
    """Bounds at which pivots are clamped: CLAMP of the admittance of all rows of one kind, with the reference member's.

    Rows inside the chain have scales of their own (_zero_bounds).
    """
    own = {"force": 0.0, "moment": 0.0}
    if not is_zero(body.mass):
        mobility = reciprocal(body.mass)
        about = trace(body.moved(negate(tuple(mobility * x for x in body.first))).inertia())
        own = {"force": mobility, "moment": 0.0 if is_zero(about) else 3.0 * reciprocal(about)}
    for k, row in enumerate(chain.rows):
        if k >= chain.inner:
            own[row.kind] = own[row.kind] + chain.L[k][k]
    return [CLAMP * own[row.kind] for row in chain.rows]


def _zero_bounds(chain: ChainRows) -> list:
    """Bounds below which pivots of inner loops count as zero, relative to all rows of one joint and kind."""
    inner = chain.rows[: chain.inner]
    return pivot_bounds([chain.L[k][k] for k in range(chain.inner)], [(row.key[0], row.kind) for row in inner])


def _inverse_pivot(chain: ChainRows, least: list, zero: list) -> InversePivot:
    """1/pivot of a chain's rows: those of its own loops left out below `zero`, the others clamped at `least`."""

    def of_row(k: int, pivot: Scalar) -> Scalar:
        found = guarded_inverse(pivot, zero[k]) if k < len(zero) else clamped_inverse(pivot, least[k])
        return found * chain.rows[k].mask

    return of_row


def convergence(member: ReferenceMember, found: Refined) -> list:
    """Pairs of which the first must be less: the estimate of the error, the rest of the probe, bounds of inner pivots.

    Corrections shrink by one factor: after a last one of size s and one of size r before it, s²/r is left.
    """
    asked, undone = probe(member.chains), [x for c in member.chains for x in c.S]
    a, h = member.acceleration(asked, Force()), member.tip_forces(asked, member.acceleration(asked, Force()))
    rest, _ = member.residual(asked, Force(), *member.refined(asked, Force(), a, h, 1)[:2])
    before, last = (member.size(*step) for step in found.steps[-2:])
    size = dot(tuple(found.a0), tuple(found.a0)) + dot(undone, undone)
    missed = [r.mask * x for c, xs in zip(member.chains, rest, strict=True) for r, x in zip(c.rows, xs, strict=True)]
    right = [x for xs in asked for x in xs]
    pivots = [
        pair
        for c, bounds, F in zip(member.chains, member.zero_bounds, member.factors, strict=True)
        for pair in pivot_demands(bounds, F, [r.mask for r in c.rows[: c.inner]])
    ]
    return [
        Demand.of(last * last, LARGEST_ERROR**2 * before * size + 1e-60, NOT_CONVERGED),
        (dot(missed, missed), LARGEST_REST**2 * dot(right, right) + 1e-24),
        *pivots,
    ]


def probe(chains: Sequence[ChainRows]) -> list[list[Scalar]]:
    """A right-hand side of (36) that cannot be met where rows depend on each other.

    Where a combination Σ c_r of rows vanishes, a right-hand side is met only if its entries have Σ c_r S_r = 0, and the
    refinement of any other stalls. The state's own S may satisfy that by chance (at rest it is zero); the probe must
    not. Dependent rows are mostly sums and differences of like rows of two chains, or of neighbours in one. Hence the
    entries differ between neighbours and between chains: 0.2, 0.6, 1.0, 1.4, 1.8, in an order of period 5 in the row
    (step 3) and in the chain (step 7 = 2 mod 5). All are positive, so that no entry drops out.
    """
    return [
        [r.mask * (1.0 + 0.4 * ((7 * k + 3 * n) % 5 - 2)) for n, r in enumerate(c.rows)] for k, c in enumerate(chains)
    ]
