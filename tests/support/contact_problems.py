"""Random contact problems u = W f + b, W = J M⁻¹ Jᵀ, of many families, and how well impulses solve them.

A problem is W (N, 3n, 3n), b (N, 3n) and friction (N, n); a family gives J (N, 3n, nv) and M⁻¹ of N mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Problems = tuple[np.ndarray, np.ndarray, np.ndarray]
SQUARE = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [0, -1], [1, 0], [0, 1], [-1, 0]])
UP = np.array([0.0, 0.0, 1.0])


def skew(p):
    x, y, z = p[..., 0], p[..., 1], p[..., 2]
    rows = [[0 * x, -z, y], [z, 0 * x, -x], [-y, x, 0 * x]]
    return np.stack([np.stack(r, -1) for r in rows], -2)


def axes(normals):
    """Rows n, t1, t2."""
    a = np.where(np.abs(normals[..., :1]) < 0.6, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    t = np.cross(a, normals)
    t /= np.linalg.norm(t, axis=-1, keepdims=True)
    return np.stack([normals, t, np.cross(normals, t)], -2)


def body(points, normals, mass, half):
    """A free body of this mass, a box of these half sizes: J of points about its centre, M⁻¹."""
    N, n, _ = points.shape
    F = axes(np.broadcast_to(normals, points.shape))
    J = np.concatenate([F @ -skew(points), F], -1).reshape(N, 3 * n, 6)
    inertia = mass[:, None] / 3 * (np.sum(half**2, -1, keepdims=True) - half**2)
    return J, np.eye(6) / np.concatenate([inertia, np.repeat(mass[:, None], 3, 1)], 1)[:, None]


def _sizes(rng, N):
    return np.exp(rng.uniform(-1, 3, N)), rng.uniform(0.05, 0.6, (N, 3))


def face(half, n, axis, side):
    """n points on one face of boxes: its corners, then the middles of its edges."""
    others = [k for k in range(3) if k != axis]
    p = np.empty((len(half), n, 3))
    p[..., others] = SQUARE[:n] * half[:, None, others]
    p[..., axis] = side * half[:, None, axis]
    return p


def box(rng, N, n):
    mass, half = _sizes(rng, N)
    return body(face(half, n, 2, -1), UP, mass, half)


def in_a_corner(rng, N):
    """A box on a floor and at a wall, eight points."""
    mass, half = _sizes(rng, N)
    points = np.concatenate([face(half, 4, 2, -1), face(half, 4, 0, -1)], 1)
    return body(points, np.repeat([UP, [1.0, 0.0, 0.0]], 4, 0), mass, half)


def surrounded(rng, N, n):
    """A body that is touched from all sides."""
    mass, half = _sizes(rng, N)
    p = rng.normal(size=(N, n, 3))
    p *= half[:, None] / np.linalg.norm(p, axis=-1, keepdims=True)
    normals = -p / np.linalg.norm(p, axis=-1, keepdims=True) + 0.3 * rng.normal(size=p.shape)
    return body(p, normals / np.linalg.norm(normals, axis=-1, keepdims=True), mass, half)


def stack(rng, N, ratio):
    """A box on another on the ground; the upper one is up to `ratio` times as heavy or light."""
    (lower, half), (_, above) = _sizes(rng, N), _sizes(rng, N)
    upper = lower * np.exp(np.log(ratio) * rng.uniform(-1, 1, N))
    common = np.minimum(half, above)
    ground, Ma = body(face(half, 4, 2, -1), UP, lower, half)
    top, _ = body(face(common, 4, 2, 1) * [1, 1, 0] + face(half, 4, 2, 1) * UP, UP, lower, half)
    bottom, Mb = body(face(common, 4, 2, -1) * [1, 1, 0] + face(above, 4, 2, -1) * UP, UP, upper, above)
    J = np.concatenate([np.concatenate([ground, 0 * ground], 2), np.concatenate([-top, bottom], 2)], 1)
    M = np.zeros((N, 12, 12))
    M[:, :6, :6], M[:, 6:, 6:] = Ma, Mb
    return J, M


def legged(rng, N, legs, feet=1):
    """A free base with legs of three hinges and two links; a foot is a point, or four of a sole."""
    nv = 6 + 3 * legs
    M = np.zeros((N, nv, nv))

    def rows(p, hinges):
        """Angular and linear velocity at p; hinges: column, axis, place."""
        J = np.zeros((N, 6, nv))
        J[:, :3, :3] = J[:, 3:, 3:6] = np.eye(3)
        J[:, 3:, :3] = -skew(p)
        for column, axis, at in hinges:
            J[:, :3, column], J[:, 3:, column] = axis, np.cross(axis, p - at)
        return J

    def add(mass, inertia, J):
        weight = np.concatenate([inertia, np.repeat(mass[:, None], 3, 1)], 1)
        M[:] += np.swapaxes(J, 1, 2) @ (weight[:, :, None] * J)

    mass, half = rng.uniform(3, 40, N), rng.uniform(0.1, 0.4, (N, 3))
    add(mass, mass[:, None] / 3 * (np.sum(half**2, -1, keepdims=True) - half**2), rows(np.zeros((N, 3)), []))
    out = []
    for leg in range(legs):
        angle, hinges = 2 * np.pi * leg / legs + 0.5, []
        p = half * [np.cos(angle), np.sin(angle), 0.0]
        for j in range(3):
            axis = np.eye(3)[min(j, 1)] + 0.15 * rng.normal(size=(N, 3))
            hinges.append((6 + 3 * leg + j, axis / np.linalg.norm(axis, axis=-1, keepdims=True), p))
            length = (0.05 if j == 0 else 0.3) * rng.uniform(0.7, 1.3, N)
            swing, side = rng.uniform(-0.9, 0.9, N), rng.uniform(-0.4, 0.4, N)
            link = length[:, None] * np.stack([np.sin(swing), np.sin(side), -np.cos(swing)], -1)
            m = rng.uniform(0.1, 2.0, N)
            add(m, np.repeat((m * length**2 / 12 + 1e-4)[:, None], 3, 1), rows(p + 0.5 * link, hinges))
            p = p + link
        soles = [[0.0, 0.0, 0.0]] if feet == 1 else [[0.08 * x, 0.04 * y, 0.0] for x, y in SQUARE[:feet]]
        out += [axes(UP) @ rows(p + sole, hinges)[:, 3:] for sole in soles]
    return np.concatenate(out, 1), np.linalg.inv(M)


def dense(rng, N, n, nv):
    """No mechanism: normal numbers."""
    A = rng.normal(size=(N, nv, nv))
    return rng.normal(size=(N, 3 * n, nv)), A @ np.swapaxes(A, 1, 2) / nv + 0.05 * np.eye(nv)


def twice(family):
    """Every point two times."""
    return np.concatenate([family[0]] * 2, 1), family[1]


FAMILIES: dict[str, Callable] = {
    "one point": lambda r, N: body(0.3 * r.normal(size=(N, 1, 3)), UP, *_sizes(r, N)),
    "box, 4 points": lambda r, N: box(r, N, 4),
    "box, 8 points": lambda r, N: box(r, N, 8),
    "box in a corner, 8": in_a_corner,
    "surrounded, 4": lambda r, N: surrounded(r, N, 4),
    "surrounded, 12": lambda r, N: surrounded(r, N, 12),
    "quadruped, 4": lambda r, N: legged(r, N, 4),
    "hexapod, 6": lambda r, N: legged(r, N, 6),
    "biped, 2 soles, 8": lambda r, N: legged(r, N, 2, 4),
    "quadruped, 4 soles, 16": lambda r, N: legged(r, N, 4, 4),
    "stack 1:10, 8": lambda r, N: stack(r, N, 10.0),
    "stack 1:10000, 8": lambda r, N: stack(r, N, 1e4),
    "dense, rank 6 of 24": lambda r, N: dense(r, N, 8, 6),
    "dense, regular, 4": lambda r, N: dense(r, N, 4, 16),
    "dense, rank 24 of 48": lambda r, N: dense(r, N, 16, 24),
    "box, points twice": lambda r, N: twice(box(r, N, 4)),
    "quadruped, points twice": lambda r, N: twice(legged(r, N, 4)),
}
MOTIONS = ("standing", "falling", "sliding", "random")
CLOSED_IN = ("surrounded", "dense", "box in a corner")  # restitution may ask them for what no motion gives


def motion(rng, J, inverse, kind):
    """Velocities of the mechanism (N, nv)."""
    N, rows, nv = J.shape
    if kind == "random":
        return rng.normal(size=(N, nv)) * rng.choice([0.01, 1.0, 5.0], (N, 1))
    press, rub = {"standing": (1e-2, 1e-3), "falling": (1.0, 1.0), "sliding": (0.3, 3.0)}[kind]
    f = rub * rng.normal(size=(N, rows // 3, 3))
    f[..., 0] = press * rng.exponential(size=(N, rows // 3))
    return -np.einsum("nij,nkj,nk->ni", inverse, J, f.reshape(N, rows))


def problems(rng, family: str, kind: str, N: int) -> Problems:
    """N problems; µ from 0.1 to 1.5, equal at all points or not, here and there 0; some with restitution."""
    J, inverse = FAMILIES[family](rng, N)
    b = np.einsum("nij,nj->ni", J, motion(rng, J, inverse, kind))
    friction = rng.uniform(0.1, 1.5, (N, b.shape[1] // 3))
    friction = np.where(rng.random((N, 1)) < 0.5, friction[:, :1], friction)
    friction[rng.random(friction.shape) < 0.03] = 0.0
    bounces = (kind != "standing") & (not family.startswith(CLOSED_IN)) & (rng.random((N, 1)) < 0.3)
    b[:, ::3] += np.where(bounces, rng.uniform(0, 1, (N, 1)), 0.0) * np.minimum(b[:, ::3], 0.0)
    W = J @ inverse @ np.swapaxes(J, 1, 2)
    return 0.5 * (W + np.swapaxes(W, 1, 2)), b, friction


def natural_residual(W, b, friction, f):
    """The largest entry of (f − P(f − ρ u))/ρ [m/s] of each problem, ρ from the diagonal of W."""
    N, n, _ = f.shape
    u = (np.einsum("nij,nj->ni", W, f.reshape(N, -1)) + b).reshape(f.shape)
    w = np.einsum("nii->ni", W).reshape(N, n, 3)
    w = np.stack([w[..., 0], *(w[..., 1:].mean(-1),) * 2], -1)
    x = f - u / w
    normal = np.maximum(x[..., 0], 0.0)
    size = np.linalg.norm(x[..., 1:], axis=-1)
    share = np.minimum(1.0, friction * normal / np.where(size > 0.0, size, 1.0))
    P = np.concatenate([normal[..., None], share[..., None] * x[..., 1:]], -1)
    return np.abs((f - P) * w).max((1, 2))


def rounding(W, b, f):
    """What rounding makes of the largest entry of W f + b [m/s], four times."""
    sums = np.einsum("nij,nj->ni", np.abs(W), np.abs(f).reshape(len(b), -1)) + np.abs(b)
    return 4 * 2.2e-16 * b.shape[1] ** 0.5 * sums.max(1)
