"""Friction cones of one contact point, on any scalar: projection, its derivative, one local step, jams.

A block has the impulses (n, t1, t2), or (n, t1, t2, moments about n, t1, t2) with torsion and rolling. With
a = f_n − ρ_n u_n and s = f_d − ρ_d u_d of each disc d, the projection of Alart & Curnier is

    P_n = max(0, a),    P_d = s if |s| < µ_d P_n, else µ_d P_n s/|s|

and f solves the contact iff f = P: u_n ≥ 0 ⊥ f_n ≥ 0, |f_d| ≤ µ_d f_n, and f_d opposes u_d where u_d is not 0. Discs
are true circles: friction opposes the slip exactly, and slipping points do not lift.

| symbol | numbers | meaning |
|---|---|---|
| f, u | block | impulses [N s, N m s], velocities [m/s, rad/s] |
| k | 3 | friction µ, torsion [m], rolling [m] |
| toward | 2 | the direction of a slip that is given, zeros where it is not: P_t = −µ P_n · toward |
| w | groups | 1/ρ of normal, tangents, torsion, rolling: diagonal entries of W [1/kg, 1/(kg m²)] |
| M | derivative_size | ∂P/∂(a, s) ρ, sparse: entry of n; of each disc its column under n, then its symmetric part |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spanloop.math.scalar import absolute, sqrt, where
from spanloop.types import Scalar

TINY = 1e-30


def discs(block: int) -> tuple[tuple[tuple[int, ...], int], ...]:
    """The entries of each disc of a block, and the number of its coefficient."""
    return (((1, 2), 0),) if block == 3 else (((1, 2), 0), ((3,), 1), ((4, 5), 2))


def groups(block: int) -> tuple[int, ...]:
    """The group of each entry of a block: normal, tangents, torsion, rolling."""
    return (0, 1, 1) if block == 3 else (0, 1, 1, 2, 3, 3)


def derivative_size(block: int) -> int:
    """Numbers of M."""
    return 6 if block == 3 else 13


def diagonal_scales(W: Sequence[Scalar], soft: Scalar, block: int) -> list[Scalar]:
    """w of each group from the point's own block of W, row by row; 1 where W is 0."""
    d = [W[a * (block + 1)] for a in range(block)]
    out = [d[0] + soft, 0.5 * (d[1] + d[2])]
    out += [] if block == 3 else [d[3], 0.5 * (d[4] + d[5])]
    return [where(x > TINY, x, 1.0) for x in out]


def projection(
    a: Scalar, s: Sequence[Scalar], k: Sequence[Scalar], toward: Sequence[Scalar], block: int
) -> list[Scalar]:
    """P of a block; s has its entries beside the normal one."""
    P_n = where(a > 0.0, a, 0.0)
    out: list[Any] = [P_n] + [0.0] * (block - 1)
    given = toward[0] * toward[0] + toward[1] * toward[1] > 0.25
    for entries, c in discs(block):
        x = [s[e - 1] for e in entries]
        radius, size = k[c] * P_n, sqrt(sum(y * y for y in x))
        share = where(size < radius, 1.0, radius / where(size > TINY, size, 1.0))
        for e, y in zip(entries, x, strict=True):
            out[e] = share * y if c else where(given, -(radius * toward[e - 1]), share * y)
    return out


def projection_and_derivative(
    a: Scalar,
    s: Sequence[Scalar],
    k: Sequence[Scalar],
    toward: Sequence[Scalar],
    rho: Sequence[Scalar],
    block: int,
) -> tuple[list[Scalar], list[Scalar]]:
    """P and M of a block; rho: of each group."""
    presses = a > 0.0
    P_n = where(presses, a, 0.0)
    P: list[Any] = [P_n] + [0.0] * (block - 1)
    M: list[Any] = [where(presses, rho[0], 0.0)]
    given = toward[0] * toward[0] + toward[1] * toward[1] > 0.25
    for entries, c in discs(block):
        x, r = [s[e - 1] for e in entries], rho[groups(block)[entries[0]]]
        radius, size = k[c] * P_n, sqrt(sum(y * y for y in x))
        inverse = 1.0 / where(size > TINY, size, 1.0)
        sticks = size < radius
        share = where(sticks, 1.0, radius * inverse)
        slope = where(sticks, 0.0, where(presses, k[c], 0.0))
        along = [y * inverse for y in x]
        bend = where(sticks, 0.0, share)  # share (1 − x xᵀ/|x|²) where it slips
        square = [(p, q) for p in range(len(x)) for q in range(p, len(x))]
        T = [(share if p == q else 0.0) - bend * (along[p] * along[q]) for p, q in square]
        if c == 0:  # a slip whose direction is given
            along = [where(given, -toward[e - 1], y) for e, y in zip(entries, along, strict=True)]
            slope = where(given, where(presses, k[c], 0.0), slope)
            T = [where(given, 0.0, y) for y in T]
        for e, y, z in zip(entries, x, along, strict=True):
            P[e] = where(given, radius * z, share * y) if c == 0 else share * y
        M += [slope * (rho[0] * y) for y in along] + [r * y for y in T]
    return P, M


def dense(M: Sequence[Scalar], block: int) -> list[list[Scalar]]:
    """M as a matrix with its zeros."""
    out: list[list[Any]] = [[0.0] * block for _ in range(block)]
    out[0][0], at = M[0], 1
    for entries, _ in discs(block):
        for e in entries:
            out[e][0], at = M[at], at + 1
        for p, e in enumerate(entries):
            for g in entries[p:]:
                out[e][g] = out[g][e] = M[at]
                at += 1
    return out


def local_step(
    W: Sequence[Scalar],
    u: Sequence[Scalar],
    f: Sequence[Scalar],
    k: Sequence[Scalar],
    toward: Sequence[Scalar],
    w: Sequence[Scalar],
    block: int,
) -> list[Scalar]:
    """The next impulses of one point while all others stay: the normal one first, then friction at what it leaves."""
    a = f[0] - u[0] / w[0]
    change = where(a > 0.0, a, 0.0) - f[0]
    of = groups(block)
    s = [f[e] - (u[e] + W[e * block] * change) / w[of[e]] for e in range(1, block)]
    return projection(a, s, k, toward, block)


def pressing(W: Sequence[Scalar], friction: Scalar, slip: Sequence[Scalar]) -> Scalar:
    """n·W(n − µ slip) [1/kg]: how the normal velocity answers to a normal impulse of a point that slips.

    W: the point's own block, row by row; slip: the direction of its slip in (t1, t2), of length 1.
    """
    return W[0] - friction * (W[1] * slip[0] + W[2] * slip[1])


def jam(W: Sequence[Scalar], friction: Scalar, slip: Sequence[Scalar]) -> Any:
    """Whether a slipping point is jammed (Painlevé): pressing lowers its normal velocity, so that no bounded force or
    more than one answers."""
    return pressing(W, friction, slip) <= 0.0


def largest(x: Scalar, *others: Scalar) -> Scalar:
    """The largest of some magnitudes."""
    out = absolute(x)
    for y in others:
        size = absolute(y)
        out = where(out < size, size, out)
    return out
