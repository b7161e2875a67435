"""Λ = B*Ω B, the admittance between points of closure, and A Λ A*, the same along the closures' rows. O(n) a pair.

[Rodriguez, Jain & Kreutz, 3.10, A.3-A.5]

| here | paper | shape | meaning |
|---|---|---|---|
| Lambda | Υ(k) | Admittance by link | the blocks of Ω on the diagonal |
| omega[i, j] | Ω(i, j) | six Motions | of link i, for each unit force on link j |
| ends | A, B | (link, Force) by row | what a unit force of a row does to the links it joins |

Λ does not know the rows: a change of constraints leaves it as it is. Departures and slips mended: points of closure are
taken at the origins of their links, B* being part of the rows. Ω(k, m) = Ω(k, m+1) ψ(m+1, m); lemma 5 and "else 0" of
A.5 hold for serial chains only: branches with a common ancestor a that moves couple, Ω(k, m) = ψ*(a, k) Υ(a) ψ(a, m).
"""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.algorithms.closed.closure_rows import KeptRows, known_rows
from spanloop.algorithms.papers.lilly_orin.general_joints import SIX
from spanloop.math.spatial import Force, Motion, power
from spanloop.math.vector3 import total
from spanloop.topology.tree_paths import meeting, path
from spanloop.types import Scalar


def point_admittances(m, here, links) -> dict:
    """Ω between all pairs of these links; none where they have no ancestor in common that moves."""
    out: dict = {}
    links = sorted(set(links) - {-1})
    for n, i in enumerate(links):
        for j in links[: n + 1]:
            top = meeting(m.parents, i, j)
            if top < 0:
                continue
            block = [here[top].Lambda @ e for e in _units(m.links[top])]  # Υ(a)
            block = _transposed([c.six for c in _carried(m, here, block, top, j)])  # Ω(a, j) = Υ(a) ψ(a, j)
            out[i, j] = [c.six for c in _carried(m, here, block, top, i)]
            out[j, i] = out[i, j] if i == j else _transposed(out[i, j])
    return out


def _units(link) -> Sequence[Force]:
    """Unit forces on a link; on a flexible body also unit forces along its modes."""
    if not link.kind.bends:
        return SIX
    n = 6 + link.kind.nv
    return [Force.of([float(i == j) for j in range(n)]) for i in range(n)]


def _carried(m, here, columns: list[Motion], top: int, link: int) -> list[Motion]:
    """ψ*(top, link) of motions of link top."""
    inward = path(m.parents, link)
    for k in reversed(inward[: inward.index(top)]):
        columns = [here[k].X.T @ c for c in columns]
        for s, G, _ in reversed(here[k].gains):
            columns = [c - s * power(c, G) for c in columns]  # τ̄* = 1 − H*G*
    return columns


def _transposed(columns: list[Motion]) -> list[Motion]:
    return [Motion.of(row) for row in zip(*columns, strict=True)]


def row_admittance(omega: dict, rows: list) -> list[list]:
    """A Λ A*, for rows as lists of (link, wrench)."""
    out = [[0.0] * len(rows) for _ in rows]
    for s, ends in enumerate(rows):
        felt: dict = {}
        for j, K in ends:
            for i in {i for i, other in omega if other == j}:
                moved = [total(c * k for c, k in zip(row, K, strict=True)) for row in zip(*omega[i, j], strict=True)]
                felt.setdefault(i, []).append(Motion.of(moved))
        for r in range(s, len(rows)):
            x = total(power(moved, K) for i, K in rows[r] for moved in felt.get(i, ()))
            out[r][s] = out[s][r] = x
    return out


def row_ends(m, here, world, closure, kept: KeptRows) -> list[tuple[int, list[tuple[int, Force]], Scalar]]:
    """The rows of a closure that are kept: number, wrenches by link (none for the world), known acceleration γ."""
    out = []
    for row, gamma in known_rows(m, here, world, closure, kept):
        ends = [(closure.a.link, row.on_a), (closure.b.link, row.on_b)]
        out.append((row.number, [(i, K) for i, K in ends if i >= 0], gamma))
    return out


def row_forces(rows: Sequence[Sequence[tuple[int, Force]]], f: Sequence[Scalar]) -> dict[int, Force]:
    """A* f̃ on each link, for rows as lists of (link, wrench)."""
    terms: dict[int, list] = {}
    for ends, x in zip(rows, f, strict=True):
        for i, K in ends:
            terms.setdefault(i, []).append(K * x)
    return {i: Force.of([total(six) for six in zip(*map(tuple, own), strict=True)]) for i, own in terms.items()}
