"""The acceleration of the reference member and the forces at the tips of all chains. [Lilly & Orin, eq. 36-47]

    L_k h_k + B_k λ₀ = S_k  for every chain,      P₀ λ₀ − Σ B_kᵀ h_k = −f₀.

| here | Lilly & Orin | shape | meaning |
|---|---|---|---|
| L | φᶜᵀ Λ⁻¹ φᶜ = M⁻¹ | n_c × n_c | admittance of a chain along the rows of its tip |
| B | φᶜᵀ X₀ | n_c Forces | the rows seen from the reference member |
| S | S_k | n_c | what the forces at the tip have to undo |
| h | h_kᶜ | n_c | forces along the rows |
| L_ii, S_i | – | n_i × n_i, n_i | the same of loops inside a chain: its first rows |
| L_tt, S_t | – | n_c × n_c, n_c | the same of its tip |
| P0, f0 | I₀, b₀ − g₀ | 6×6, Force | inertia and bias force of the reference member with all that only it carries |
| lam | a₀ | Motion | its acceleration beyond ζ |

Rows of loops inside a chain are the first of its rows, and have B = 0. Eliminating them first leaves, of L_k and S_k,
what the chain has at its tip with its own loops closed: L_tt − L_ti L_ii⁻¹ L_it, S_t − L_ti L_ii⁻¹ S_i. Their pivots
vanish only where their rows depend on each other, whatever the reference member does.

M_k must not be a pseudo-inverse: where a chain cannot yield (fewer than six freedoms, a singular position) its row
holds the reference member itself, with a force that is yet unknown. Such pivots of L_k are held at CLAMP of their
scale, and the whole system is refined: every refinement multiplies the error by about CLAMP, more where the other
chains let the reference member yield much less than by itself. Sums over chains are shaped as trees.
"""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.algorithms.closed.pivot_tolerance import pivot_demands
from spanloop.algorithms.papers.lilly_orin.general_joints import Constraint
from spanloop.math.inertia import ArticulatedInertia, RigidInertia
from spanloop.math.scalar import reciprocal
from spanloop.math.spatial import Force, Motion, power
from spanloop.math.symmetric import LDL, InversePivot, clamped_inverse, guarded_inverse, pivot_bounds
from spanloop.math.vector3 import dot, is_zero, negate, total, trace
from spanloop.types import Scalar

CLAMP = 1e-7
# where every chain has as many freedoms as its tip has rows; where one has fewer; where chains have loops, too
REFINEMENTS = 2, 3, 4
LARGEST_CORRECTION = 1e-7  # of the last refinement, beside the accelerations; much less is left
SLOWEST = 1e-3  # part of a probe that may be left after one refinement


@dataclass(frozen=True)
class Held:
    """A chain as the reference member feels it; the rows of its own loops, which do not feel that one, come first."""

    rows: list[Constraint]
    L: list[list[Scalar]]
    S: list[Scalar]
    freedoms: int
    inner: int = 0  # rows of its own loops


class Balance:
    """The system with its factors; solve() as often as there are right sides."""

    def __init__(self, chains: list[Held], P0: ArticulatedInertia, body: RigidInertia):
        self.chains, self.P0 = chains, P0
        self.zero = [zero(c) for c in chains]
        self.factors = [
            LDL(c.L, inverse_pivot(c, least(c, body), bounds)) for c, bounds in zip(chains, self.zero, strict=True)
        ]
        seen = []  # (1 + N)⁻¹ B, with D⁻¹ of the same
        for c, F in zip(chains, self.factors, strict=True):
            columns = [F.forward([tuple(r.B)[x] for r in c.rows]) for x in range(6)]
            seen.append((columns, [[y * o for y, o in zip(col, F.inverse_pivots, strict=True)] for col in columns]))
        self.seen = seen
        own = P0.rows()
        whole = [[0.0] * 6 for _ in range(6)]  # (46): I₀ + Σ X₀ᵀ φᶜ M φᶜᵀ X₀
        self.reflected: list = []  # X₀ᵀ R of the chains, entry by entry
        for x in range(6):
            for y in range(x + 1):
                parts = [dot(columns[x], scaled[y]) for columns, scaled in seen]
                whole[x][y] = whole[y][x] = total([own[x][y], *parts])
                self.reflected += parts
        self.whole = LDL(whole)

    def solve(self, S, right) -> tuple[Motion, list[list]]:
        """λ₀ (45) and the forces h of all chains (38)."""
        forward = [F.forward(s) for F, s in zip(self.factors, S, strict=True)]
        pushes = [[dot(col, y) for col in scaled] for (_, scaled), y in zip(self.seen, forward, strict=True)]
        six = [total(terms) for terms in zip(tuple(right), *pushes, strict=True)]
        lam = self.whole.solve(six)
        h = []
        for F, y, (columns, _) in zip(self.factors, forward, self.seen, strict=True):
            left = [total([a, *(-(col[k] * x) for col, x in zip(columns, lam, strict=True))]) for k, a in enumerate(y)]
            h.append(F.backward(left))
        return Motion.of(lam), h

    def refined(self, S, right, times: int) -> tuple[Motion, list[list], Motion]:
        """The solution, corrected as often as told, and the last correction of λ₀."""
        lam, h = self.solve(S, right)
        step = lam
        for _ in range(times):
            step, more = self.solve(*self.missed(S, right, lam, h))
            lam = lam + step
            h = [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(h, more, strict=True)]
        return lam, h, step

    def missed(self, S, right, lam: Motion, h) -> tuple[list[list], Force]:
        """What is left of both equations."""
        rest = []
        for c, s, x in zip(self.chains, S, h, strict=True):
            rest.append([a - dot(row, x) - power(lam, r.B) for a, row, r in zip(s, c.L, c.rows, strict=True)])
        pushes = [push(c.rows, x) for c, x in zip(self.chains, h, strict=True)]
        own = Force.of([-x for x in self.P0 @ lam])
        return rest, Force.of(
            [total(terms) for terms in zip(tuple(right), tuple(own), *map(tuple, pushes), strict=True)]
        )


def push(rows: list[Constraint], h) -> Force:
    """Bᵀ h: what a chain does to the reference member."""
    return Force.of([total(tuple(r.B)[x] * y for r, y in zip(rows, h, strict=True)) for x in range(6)])


def balanced(chains: list[Held], P0: ArticulatedInertia, f0: Force, body: RigidInertia):
    """λ₀, forces h by chain, the last correction of λ₀, and the system."""
    balance = Balance(chains, P0, body)
    short = any(c.freedoms < len(c.rows) for c in chains if len(c.rows) > c.inner)
    times = REFINEMENTS[short + (short and any(c.inner for c in chains))]
    return *balance.refined([c.S for c in chains], -f0, times), balance


def convergence(balance: Balance, lam: Motion, step: Motion) -> list:
    """Pairs of which the first must be less: the last correction, what is left of a probe, pivots of inner loops.

    The probe is any right side, refined once. Where rows depend on each other it cannot be met.
    """
    probe = [[r.mask * (1.0 + 0.4 * ((7 * k + 3 * n) % 5 - 2)) for n, r in enumerate(c.rows)]
             for k, c in enumerate(balance.chains)]  # fmt: skip
    left, _ = balance.missed(probe, Force(), *balance.refined(probe, Force(), 1)[:2])
    missed = [r.mask * x for c, xs in zip(balance.chains, left, strict=True) for r, x in zip(c.rows, xs, strict=True)]
    asked = [x for xs in probe for x in xs]
    undone = [x for c in balance.chains for x in c.S]
    thin = [
        pair
        for c, bounds, F in zip(balance.chains, balance.zero, balance.factors, strict=True)
        for pair in pivot_demands(bounds, F, [r.mask for r in c.rows[: c.inner]])
    ]
    return [
        (_square(step), LARGEST_CORRECTION**2 * (_square(lam) + dot(undone, undone)) + 1e-24),
        (dot(missed, missed), SLOWEST**2 * dot(asked, asked) + 1e-24),
        *thin,
    ]


def least(chain: Held, body: RigidInertia) -> list:
    """What pivots are held at: CLAMP of the admittance of all rows of one sort, chain and reference member together.

    Rows inside the chain have scales of their own (zero).
    """
    own = {"force": 0.0, "moment": 0.0}
    if not is_zero(body.mass):
        over = reciprocal(body.mass)
        about = trace(body.moved(negate(tuple(over * x for x in body.first))).inertia())
        own = {"force": over, "moment": 0.0 if is_zero(about) else 3.0 * reciprocal(about)}
    for k, row in enumerate(chain.rows):
        if k >= chain.inner:
            own[row.sort] = own[row.sort] + chain.L[k][k]
    return [CLAMP * own[row.sort] for row in chain.rows]


def inverse_pivot(chain: Held, least: list, zero: list) -> InversePivot:
    """1/pivot of a chain's rows: those of its own loops left out below `zero`, the others clamped at `least`."""

    def of_row(k: int, pivot: Scalar) -> Scalar:
        found = guarded_inverse(pivot, zero[k]) if k < len(zero) else clamped_inverse(pivot, least[k])
        return found * chain.rows[k].mask

    return of_row


def zero(chain: Held) -> list:
    """Below which a pivot of a chain's own loops counts as zero: relative to all rows of one joint and kind."""
    inner = chain.rows[: chain.inner]
    return pivot_bounds([chain.L[k][k] for k in range(chain.inner)], [(row.key[0], row.sort) for row in inner])


def _square(m: Motion) -> Scalar:
    return dot(tuple(m), tuple(m))
