"""The complement of legs on a platform as three matrices: t = N_l N_c N_d θ̇, to look at. [Saha, eq. 30-32]

Rows: six for every DoF of the legs, leg by leg from the world outward (a joint of several DoF is several
joints in one place with massless bodies between), then six for the platform; each in its link's axes. θ̇: the actuated
rates. N_l propagates twists through the legs, N_c adds what the platform's twist makes of unactuated joints, N_d is
diag(p) of the actuated ones.

Departures. The paper orders t by link number across the legs (32b: first links of all legs, then second ones), and has
no block for the platform. For an actuator that is not first in its leg: row i of N_c is p_i p̃_iᵀ/δ_i (Ā_ea − A_ea) for
actuators a that follow joint i in its own leg, and p_i p̃_iᵀ/δ_i Ā_ea for all others, with Ā_ea = Φ⁻¹ Φ_l A_ea (eq. 32c,
mended). Slips mended: the text has N_d as 6n × 6n, it is 6n × n; t of 32b ends with t_m; 32d ends in A_j+1,j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.algorithms.papers.saha.leg_elimination import Eliminated, eliminated
from spanloop.algorithms.papers.saha.legs import Legs, legs_of
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.spatial import Motion, Transform
from spanloop.sweeps import Program, walk


@dataclass(frozen=True, eq=False)
class ParallelComplement:
    """N_l (6b, 6b), N_c (6b, 6n), N_d (6n, n); links: the number of each block's link; actuated: places in v."""

    N_l: np.ndarray
    N_c: np.ndarray
    N_d: np.ndarray
    links: tuple[int, ...]
    actuated: tuple[int, ...]

    @property
    def matrix(self) -> np.ndarray:
        """N (6b, n)."""
        return self.N_l @ self.N_c @ self.N_d


def parallel_complement(mechanism, q) -> ParallelComplement:
    """The three matrices at q (nq,), at which the loops are closed, the legs regular and as many actuators as DoF.

    None of that is checked here; sl.papers.parallel_complement checks it and names rows and columns.
    """
    legs = legs_of(mechanism)
    here, parts = _walked(mechanism, legs, q)
    blocks = [_blocks(mechanism, legs, leg.links, part, here) for leg, part in zip(legs.legs, parts, strict=True)]
    phi = sum(_projection(part) for part in parts)
    order = {f: k for k, f in enumerate(legs.actuated)}
    reach = np.zeros((6, 6 * len(order)))  # Ā: the platform's twist due to the actuated joints' bodies
    for leg, part in zip(blocks, parts, strict=True):
        for b in leg:
            if b.dof in order:
                k = order[b.dof]
                reach[:, 6 * k : 6 * k + 6] = np.linalg.solve(phi, _projection(part) @ b.A_e)
    every = [b for leg in blocks for b in leg]
    n = len(every)
    N_l, N_c, N_d = np.eye(6 * n + 6), np.zeros((6 * n + 6, 6 * len(order))), np.zeros((6 * len(order), len(order)))
    row = 0
    for leg in blocks:
        for i, b in enumerate(leg):
            here_i = slice(6 * row, 6 * row + 6)
            if i:
                N_l[here_i] += b.psi @ b.A @ N_l[6 * row - 6 : 6 * row]
            if b.dof in order:
                k = order[b.dof]
                N_c[here_i, 6 * k : 6 * k + 6] = np.eye(6)
                N_d[6 * k : 6 * k + 6, k] = b.p
            else:
                follows = np.zeros_like(reach)
                for later in leg[i + 1 :]:
                    if later.dof in order:
                        k = order[later.dof]
                        follows[:, 6 * k : 6 * k + 6] = later.A_e
                N_c[here_i] = np.outer(b.p, b.p_tilde) / b.delta @ (reach - follows)
            row += 1
    N_c[6 * n :] = reach
    return ParallelComplement(N_l, N_c, N_d, (*(b.link for b in every), legs.platform), legs.actuated)


@dataclass(frozen=True, eq=False)
class _Block:
    """One DoF of a leg."""

    link: int
    dof: int
    p: np.ndarray
    A: np.ndarray  # from the body before
    A_e: np.ndarray  # to the platform
    p_tilde: np.ndarray
    delta: float
    psi: np.ndarray


def _blocks(m, legs: Legs, links, part: Eliminated, here) -> list[_Block]:
    columns = {c.dof: c for c in part.columns if c.dof is not None}
    out = []
    for i in links:
        to_platform = _matrix(part.seen[i])
        for k, s in enumerate(here[i].S):
            c, p = columns[m.links[i].v.start + k], np.array(tuple(s), dtype=float)
            A = np.eye(6) if k else _matrix(here[i].X)
            if c.e is None:
                tilde, delta, psi = np.zeros(6), 1.0, np.eye(6)
            else:
                tilde = np.array(tuple(c.e), dtype=float)
                delta = float(tilde @ tilde)
                psi = np.eye(6) - np.outer(p, tilde) @ to_platform / delta  # (31)
            out.append(_Block(i, m.links[i].v.start + k, p, A, to_platform, tilde, delta, psi))
    return out


def _walked(m, legs: Legs, q) -> tuple[list, list[Eliminated]]:
    program = Program(
        "legs", ("q",), placed(()), lambda m, here, world: [list(here), eliminated(m, legs, here, unit=1.0)[0]], ()
    )
    here, parts = walk(program, m, {"q": [float(x) for x in q]})
    return here, parts


def _projection(part: Eliminated) -> np.ndarray:
    """Φ_l (6, 6)."""
    units = (Motion.of(e) for e in np.eye(6).tolist())
    return np.array([tuple(part.projected(u)) for u in units], dtype=float).T


def _matrix(x: Transform) -> np.ndarray:
    """(6, 6) of xᵀ, which takes motions outward."""
    return np.array([tuple(x.T @ Motion.of(e)) for e in np.eye(6).tolist()], dtype=float).T
