"""Dynamics of trees in extended precision, many states at once, by geometric Jacobians.

    M = Σ m Jcᵀ Jc + Jωᵀ I Jω,     h = Σ Jcᵀ m (a_c − g) + Jωᵀ (I α + ω × I ω) + damping + springs − external forces

with Jc, Jω the Jacobians of a body's mass centre and spin in world axes, and a_c, α its accelerations while v is
constant. Arrays have the states on their last axis: vectors (3, n), matrices (3, 3, n), Jacobians (3, columns, n).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from plain_data import Data, Link, real

HALF = real(0.5)


# ---- vectors and rotations, states last


def mv(A, x):
    """A x."""
    return (A * x[None]).sum(1)


def mm(A, B):
    """A B."""
    return (A[:, :, None] * B[None]).sum(1)


def tr(A):
    """Aᵀ."""
    return np.swapaxes(A, 0, 1)


def cross(x, y):
    """x × y on the first axis; the others broadcast."""
    return np.stack((x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]))


def dot(x, y):
    """x · y on the first axis."""
    return (x * y).sum(0)


def constant(A):
    """A constant with an axis for the states."""
    return real(A)[..., None]


def orthonormal(R):
    """The rotation nearest to R (3, 3), which is one to within rounding: one step of Newton's method."""
    E = np.eye(3, dtype=R.dtype) * 3 - R.T @ R
    return HALF * (R @ E)


def unit(x):
    """x / |x| on the first axis."""
    return x / np.sqrt((x * x).sum(0))


def about(axis, angle):
    """Rotation (3, 3, n) by angles (n,) about a constant unit axis (3,): Rodrigues' formula."""
    x, y, z = axis
    K = real([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    s, half = np.sin(angle), np.sin(HALF * angle)
    return constant(np.eye(3)) + K[..., None] * s + (K @ K)[..., None] * (2 * half * half)


def quaternion_rotation(e):
    """Rotation (3, 3, n) of quaternions (4, n) of any length."""
    w, x, y, z = unit(e)
    return np.stack(
        (
            np.stack((w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y))),
            np.stack((2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x))),
            np.stack((2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z)),
        )
    )


def plane_axes(normal):
    """Rz Rx that takes z to a unit vector (3,), as NOTATION has it: its first two columns are the plane's axes."""
    x, y, z = normal
    up = np.hypot(x, y)
    if up == 0:
        return real(np.diag((1.0, np.sign(float(z)), np.sign(float(z)))))
    c, s = -y / up, x / up
    return real([[c, -s * z, s * up], [s, c * z, -c * up], [0, up, z]])


# ---- joints: rotation and displacement of the child frame, motion space in the child's axes


def joint_pose(link: Link, q):
    """Rotation (3, 3, n) and displacement (3, n) of the child frame in the joint's parent frame."""
    n, kind = q.shape[-1], link.kind
    still, here = np.broadcast_to(constant(np.eye(3)), (3, 3, n)), np.zeros((3, n), dtype=q.dtype)
    if kind == "fixed":
        return still, here
    if kind in ("spherical", "free", "general"):
        return quaternion_rotation(q[:4]), (q[4:7] if kind != "spherical" else here)
    axis = unit(link.axis)
    if kind == "universal":
        return mm(about(axis, q[0]), _second(link, q[1])), here
    along = axis[:, None]
    if kind == "revolute":
        return about(axis, q[0]), here
    if kind == "prismatic":
        return still, along * q[0]
    if kind == "helical":
        return about(axis, q[0]), along * (link.pitch * q[0])
    if kind == "cylindrical":
        return about(axis, q[0]), along * q[1]
    assert kind == "planar", kind
    P = plane_axes(axis)
    return about(axis, q[0]), P[:, 0, None] * q[1] + P[:, 1, None] * q[2]


def _second(link: Link, angle):
    """The second turn of a universal joint.

    A Rz(q1) AᵀB Rz(q2) Bᵀ = (A Rz(q1) Aᵀ)(B Rz(q2) Bᵀ): the turn about the first axis, then about the second.
    """
    return about(unit(link.second_axis), angle)


def motion_space(link: Link, q):
    """Columns (3, nv, n) of angular and of linear velocity in the child's axes."""
    n, kind = q.shape[-1], link.kind
    nv = link.v.stop - link.v.start
    angular, linear = np.zeros((2, 3, nv, n), dtype=q.dtype)
    if kind in ("spherical", "free"):
        angular[:, :3] = constant(np.eye(3))
        if kind == "free":
            linear[:, 3:] = constant(np.eye(3))
    elif kind == "general":
        angular[:] = constant(link.motion[:, :3].T)
        linear[:] = constant(link.motion[:, 3:].T)
    elif kind == "universal":
        angular[:, 0] = mv(tr(_second(link, q[1])), constant(unit(link.axis)))
        angular[:, 1] = constant(unit(link.second_axis))
    elif kind != "fixed":
        axis = constant(unit(link.axis))
        if kind in ("prismatic",):
            linear[:, 0] = axis
        else:
            angular[:, 0] = axis
        if kind == "helical":
            linear[:, 0] = link.pitch * axis
        if kind == "cylindrical":
            linear[:, 1] = axis
        if kind == "planar":
            linear[:, 1:] = constant(plane_axes(unit(link.axis))[:, :2])
    return angular, linear


def spring(link: Link, q):
    """Torque (nv, n) that the joint's springs apply, and their energy (n,)."""
    k, rest = link.stiffness[:, None], link.rest[:, None]
    if link.kind in ("spherical", "free"):
        torque, energy = _rotation_spring(q[:4], link.rest[:4], k[:3])
        if link.kind == "spherical":
            return torque, energy
        pull = k[3:] * (q[4:] - rest[4:])
        force = -mv(tr(quaternion_rotation(q[:4])), pull)
        return np.concatenate((torque, force)), energy + HALF * (pull * (q[4:] - rest[4:])).sum(0)
    stretch = q - rest
    pull = k * stretch
    torque = -pull
    if link.kind == "planar":
        c, s = np.cos(q[0]), np.sin(q[0])
        torque = np.stack((-pull[0], -(c * pull[1] + s * pull[2]), s * pull[1] - c * pull[2]))
    return torque, HALF * (pull * stretch).sum(0)


def _rotation_spring(e, rest, k):
    """Energy Σ k x²/2 in the rotation vector x from rest; dx/dt = (1 + [x]/2 + d [x]²) ω, so that torque is
    −(1 − [x]/2 + d [x]²) k x."""
    w0, x0, y0, z0 = unit(rest)
    w, x, y, z = unit(e)
    turn = np.stack(
        (
            w0 * w + x0 * x + y0 * y + z0 * z,
            w0 * x - x0 * w - y0 * z + z0 * y,
            w0 * y + x0 * z - y0 * w - z0 * x,
            w0 * z - x0 * y + y0 * x - z0 * w,
        )
    )
    turn = turn * np.where(turn[0] < 0, -1, 1)
    sine = np.sqrt((turn[1:] ** 2).sum(0))
    angle = 2 * np.arctan2(sine, turn[0])
    tiny = sine < 1e-8
    x = turn[1:] * np.where(tiny, real(2.0), angle / np.where(tiny, 1, sine))
    safe = np.where(angle < 1e-3, real(1.0), angle)
    near = 1 / real(12) + angle**2 / real(720) + angle**4 / real(30240) + angle**6 / real(1209600)
    d = np.where(angle < 1e-3, near, (1 - HALF * safe / np.tan(HALF * safe)) / safe**2)
    pull = k * x
    turned = cross(x, pull)
    return -pull + HALF * turned - d * cross(x, turned), HALF * (pull * x).sum(0)


# ---- a tree at many states


@dataclass
class Body:
    """Where a body is and how it moves, in world axes. columns: the DoF that move it."""

    R: np.ndarray
    p: np.ndarray
    spin: np.ndarray
    speed: np.ndarray
    alpha: np.ndarray  # accelerations of spin and origin while v is constant
    acc: np.ndarray
    columns: list[int]
    Jw: np.ndarray  # (3, columns, n)
    Ju: np.ndarray

    def at(self, r):
        """Speed, acceleration and Jacobian (3, columns, n) of the point r (3, n) off the origin, in world axes."""
        turning = cross(self.spin, r)
        acc = self.acc + cross(self.alpha, r) + cross(self.spin, turning)
        return self.speed + turning, acc, self.Ju + cross(self.Jw, r[:, None])


class Tree:
    """A mechanism at states q (nq, n), v (nv, n), its loops open. forces: {body number: (6, n)}, [torque; force]."""

    def __init__(self, numbers: Data, q, v, forces=None):
        self.numbers, self.q, self.v = numbers, real(q), real(v)
        self.n = self.q.shape[-1] if numbers.nq else self.v.shape[-1]
        zero = np.zeros((3, self.n), dtype=self.v.dtype)
        still = np.broadcast_to(constant(np.eye(3)), (3, 3, self.n))
        none = np.zeros((3, 0, self.n), dtype=self.v.dtype)
        self.world = Body(still, zero, zero, zero, zero, zero, [], none, none)
        self.bodies: list[Body] = []
        for link in numbers.links:
            self.bodies.append(self._placed(link))
        self._sum(forces or {})

    def body(self, number: int) -> Body:
        """Body by number; −1 is the world."""
        return self.world if number < 0 else self.bodies[number]

    def _placed(self, link: Link) -> Body:
        up, q, v = self.body(link.parent), self.q[link.q], self.v[link.v]
        Q, d = joint_pose(link, q)
        turn = mm(up.R, np.broadcast_to(constant(orthonormal(link.turn)), up.R.shape))
        R = mm(turn, Q)
        r = mv(up.R, constant(link.place) + 0 * up.p) + mv(turn, d)
        angular, linear = (np.einsum("ijn,jkn->ikn", R, x) for x in motion_space(link, q))
        spin, slide = (angular * v[None]).sum(1), (linear * v[None]).sum(1)
        w = up.spin + spin
        moved = cross(up.spin, r) + slide
        alpha = up.alpha + cross(w, spin)
        acc = up.acc + cross(up.alpha, r) + cross(up.spin, moved) + cross(w, slide)
        if link.kind == "universal":  # its first axis is fixed in the parent: dφ/dt v
            alpha = alpha - cross(w - up.spin, angular[:, 0] * v[0])
        columns = [*up.columns, *range(link.v.start, link.v.stop)]
        Jw = np.concatenate((up.Jw, angular), axis=1)
        Ju = np.concatenate((up.Ju + cross(up.Jw, r[:, None]), linear), axis=1)
        return Body(R, up.p + r, w, up.speed + moved, alpha, acc, columns, Jw, Ju)

    def _sum(self, forces) -> None:
        nv, n = self.numbers.nv, self.n
        self.M = np.zeros((nv, nv, n), dtype=self.v.dtype)
        self.velocity_torque, self.gravity_torque, self.push = np.zeros((3, nv, n), dtype=self.v.dtype)
        self.kinetic, self.potential = np.zeros((2, n), dtype=self.v.dtype)
        g = constant(self.numbers.gravity)
        for number, (link, body) in enumerate(zip(self.numbers.links, self.bodies, strict=True)):
            columns = body.columns
            if number in forces:
                load = real(forces[number])
                self.push[columns] += (body.Jw * load[:3, None] + body.Ju * load[3:, None]).sum(0)
            if columns and (link.mass != 0 or link.moments.any()):
                self._add_inertia(link, body, g)
            stretch, energy = spring(link, self.q[link.q]) if link.stiffness.any() else (0, 0)
            at = np.arange(link.v.start, link.v.stop)
            self.velocity_torque[at] += link.damping[:, None] * self.v[at] - stretch
            self.potential = self.potential + energy
            self.M[at, at] += link.armature[:, None]
            self.kinetic = self.kinetic + HALF * (link.armature[:, None] * self.v[at] ** 2).sum(0)
        self.h = self.velocity_torque + self.gravity_torque - self.push

    def _add_inertia(self, link: Link, body: Body, g) -> None:
        columns, m = body.columns, link.mass
        xx, xy, xz, yy, yz, zz = link.moments
        inertia = constant([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) + 0 * body.R
        inertia = mm(mm(body.R, inertia), tr(body.R))
        c = mv(body.R, constant(link.center) + 0 * body.p)
        speed, acc, Jc = body.at(c)
        turned = np.einsum("ijn,jkn->ikn", inertia, body.Jw)
        block = m * np.einsum("din,djn->ijn", Jc, Jc) + np.einsum("din,djn->ijn", body.Jw, turned)
        self.M[np.ix_(columns, columns)] += block
        momentum = mv(inertia, body.spin)
        moment = mv(inertia, body.alpha) + cross(body.spin, momentum)
        self.velocity_torque[columns] += (m * Jc * acc[:, None] + body.Jw * moment[:, None]).sum(0)
        self.gravity_torque[columns] -= (m * Jc * g[:, None]).sum(0)
        self.kinetic = self.kinetic + HALF * (m * dot(speed, speed) + dot(body.spin, momentum))
        self.potential = self.potential - m * dot(g, body.p + c)

    # ---- answers

    def inverse_dynamics(self, a):
        """M a + h (nv, n)."""
        return (self.M * real(a)[None]).sum(1) + self.h

    def forward_dynamics(self, tau):
        """Accelerations (nv, n), and the smallest pivot ratio (n,) of the factors; tau of a driven joint is its a."""
        tau = real(tau)
        driven = [k for x in self.numbers.links if x.driven for k in range(x.v.start, x.v.stop)]
        free = [k for k in range(self.numbers.nv) if k not in driven]
        a = tau.copy()
        right = tau[free] - self.h[free] - (self.M[np.ix_(free, driven)] * tau[driven][None]).sum(1)
        M = self.M[np.ix_(free, free)]
        a[free] = solve(M, right[:, None])[:, 0]
        return a, self.margin(free)

    def margin(self, dofs: list[int]):
        """The smallest pivot ratio (n,), each DoF being the last of its joint to give way once."""
        joints = [[k for k in range(x.v.start, x.v.stop) if k in dofs] for x in self.numbers.links]
        found = np.ones(self.n)
        for r in range(max(map(len, joints), default=0)):
            order = [k for joint in joints for k in joint[r % max(len(joint), 1) :] + joint[: r % max(len(joint), 1)]]
            found = np.minimum(found, pivots(self.M[np.ix_(order, order)]))
        return found

    def mass_matrix_inverse(self):
        """M⁻¹ (nv, nv, n) and the smallest pivot ratio (n,)."""
        eye = np.broadcast_to(constant(np.eye(self.numbers.nv)), self.M.shape)
        return solve(self.M, eye), self.margin(list(range(self.numbers.nv)))


def factor(M):
    """L (unit, lower) and D of M = L D Lᵀ, states last, after the order of the DoF is reversed: tips first."""
    A, n = M[::-1, ::-1].copy(), len(M)
    for k in range(n):
        with np.errstate(divide="ignore", invalid="ignore"):
            below = A[k + 1 :, k] / A[k, k]
            A[k + 1 :, k + 1 :] -= below[:, None] * A[None, k + 1 :, k]
        A[k + 1 :, k] = below
    return A


def pivots(M):
    """The smallest ratio (n,) of a pivot to its entry of the diagonal before any elimination; 0 where it is not > 0."""
    if not len(M):
        return np.ones(M.shape[-1])
    A, at = factor(M), np.arange(len(M))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (A[at, at] / M[::-1, ::-1][at, at]).min(0)
    return np.where(ratio > 0, ratio, 0.0).astype(float)


def solve(M, right):
    """M⁻¹ right for right (nv, columns, n), refined once."""
    A = factor(M)

    def back(r):
        x = r[::-1].copy()
        for k in range(len(x)):
            x[k + 1 :] -= A[k + 1 :, k, None] * x[k][None]
        with np.errstate(divide="ignore", invalid="ignore"):
            x /= A[np.arange(len(x)), np.arange(len(x))][:, None]
        for k in reversed(range(len(x))):
            x[:k] -= A[k, :k, None] * x[k][None]
        return x[::-1]

    if not len(M):
        return right.copy()
    with np.errstate(invalid="ignore", over="ignore"):
        x = back(right)
        left = right - np.einsum("ijn,jkn->ikn", M, x)
        return x + back(left)
