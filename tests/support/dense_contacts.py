"""A run with contacts by dense matrices and plain iterations: slow, and independent of the compiled step but for gaps.

Per step: the free step without contacts; touches at its end; Y = M⁻¹ with loops eliminated, W = J Y Jᵀ; impulses by
projected iterations on de Saxcé's form, point by point; positions by half of the step, or by the share of it that is
left where a gap closes in it; overlaps taken back along the normals. The compiled step lets the forces of the last step
act in the free motion, which is left out here: both are of second order, and equal where bodies first meet.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import spanloop as sl
from spanloop.algorithms.contact.pairs import touches
from spanloop.math.rotation import from_matrix
from spanloop.math.spatial import Transform

EXACT = 1e-14  # N s relative: change of an impulse at which the iterations end
SWEEPS = 20_000
NEAR = 1e-9  # m: a point with a smaller gap is closed


class DenseRun:
    """Steps of a model with hard contacts, without torsional and rolling friction."""

    def __init__(self, model: sl.Model, step: float):
        self.model, self.h = model, step
        self.bare = replace(model, contacts=())
        self.robot = sl.Dynamics(self.bare)
        owners = [c for c in model.contacts for _ in range(c.n_points)]
        self.friction = np.array([c.friction for c in owners])
        self.restitution = np.array([c.restitution for c in owners])
        self.resting = np.array([c.resting for c in owners])
        self.impulses = np.zeros((len(owners), 3))

    def step(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state after a step."""
        free = sl.simulate(self.bare, q, v, duration=self.h, step=self.h)
        q_f, v_f = free.q[-1], free.v[-1]
        gap, J = self.rows(q_f)
        on = np.flatnonzero(gap <= NEAR)
        last, self.impulses = self.impulses, np.zeros_like(self.impulses)
        if not len(on):
            return q_f, v_f
        start, _ = self.rows(q)
        gap, J = self.rows(q_f)
        Y, rows = self.response(q_f), J[on].reshape(-1, self.model.nv)
        closes, share, bounce = self._closing(
            start[on], gap[on], rows[::3] @ v_f, rows[::3] @ (v_f - self.turned(q, v, q_f)), on
        )
        f = self._solved(rows @ Y @ rows.T, rows @ v_f, bounce, on, last[on].copy())
        self.impulses[on] = f
        self.world_impulses = np.einsum("nd,ndx->nx", self.impulses, self.axes)
        reacts = share[closes].max() if closes.any() else 0.5
        steady = np.minimum(last[on][:, 0], f[:, 0]) / np.where(f[:, 0] > 0.0, f[:, 0], 1.0)
        share = np.where(closes, share, reacts + steady * (0.5 - reacts))
        moved = self.robot.integrate(q_f, self.h * Y @ rows.T @ (share[:, None] * f).ravel())
        return self._loops_closed(self.taken_back(moved, Y), self.turned(q_f, v_f + Y @ rows.T @ f.ravel(), moved))

    def _loops_closed(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The nearest state on the loops, in the metric of kinetic energy."""
        if not (self.model.loops or self.model.couplings):
            return q, v
        for _ in range(4):
            back, C = self._onto_loops(q)
            q = self.robot.integrate(q, -back @ self.robot.closure_error(q))
        back, C = self._onto_loops(q)
        return q, v - back @ (C @ v)

    def _onto_loops(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        C, free = self.robot.closure_jacobian(q), np.linalg.inv(self.robot.mass_matrix(q))
        return free @ C.T @ np.linalg.pinv(C @ free @ C.T, rcond=1e-12, hermitian=True), C

    def turned(self, q: np.ndarray, v: np.ndarray, to: np.ndarray) -> np.ndarray:
        """v with the directions in the world that the velocities of free bodies have at q."""
        out = v.copy()
        for joint in self.model.joints:
            if joint.kind.name == "free":
                here, there = (self.robot.pose(x, joint.child)[:3, :3] for x in (q, to))
                own = self.model.v_slice(joint.name)
                out[own] = (v[own].reshape(2, 3) @ here.T @ there).ravel()
        return out

    def rows(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gaps (n) and Jacobians (n, 3, nv) of all points: rows along n, t1, t2 of a against b."""
        gaps, out, seen = [], [], []
        for c in self.model.contacts:
            poses = [np.eye(4) if s.at == "world" else self.robot.pose(q, s.at) for s in c.sides]
            for touch in touches(c, *(Transform(from_matrix(X[:3, :3].tolist()), tuple(X[:3, 3])) for X in poses)):
                axes, point = np.array(touch.world.axes), np.array(touch.world.point)
                gaps.append(touch.gap)
                seen.append(axes)
                out.append(
                    axes @ (self._velocity(q, c.a.at, poses[0], point) - self._velocity(q, c.b.at, poses[1], point))
                )
        self.axes = np.array(seen)
        return np.array(gaps), np.array(out)

    def _velocity(self, q, at: str, X: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Jacobian (3, nv) of a point of the world that is fixed to a body or frame."""
        if at == "world":
            return np.zeros((3, self.model.nv))
        J = self.robot.jacobian(q, at)
        return J[3:] + np.cross(J[:3].T, point - X[:3, 3]).T

    def response(self, q: np.ndarray) -> np.ndarray:
        """Y (nv, nv): change of velocities by generalised impulses, loops closed."""
        Y = np.linalg.inv(self.robot.mass_matrix(q))
        if self.model.loops or self.model.couplings:
            C = self.robot.closure_jacobian(q)
            Y = Y - Y @ C.T @ np.linalg.pinv(C @ Y @ C.T, rcond=1e-12, hermitian=True) @ C @ Y
        return Y

    def _closing(self, start, gap, u_end, forced, on) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which points close in the step; for which share of it they displace; the velocity with which they end it.

        In between, velocities change evenly; forced is what forces add to them, without the turning of a point.
        """
        change = 2 * (u_end - (gap - start) / self.h)
        root = np.sqrt(np.maximum(u_end**2 - 2 * change * gap / self.h, 0.0))
        left = np.clip(2 * gap / self.h / np.minimum(np.where(u_end < 0, u_end, 0.0) - root, -1e-300), 0.0, 1.0)
        closes = start > NEAR
        hit = u_end - np.where(closes, left * forced, change)
        leaves = -self.restitution[on] * hit + np.where(closes, u_end - hit, 0.0)
        bounce = np.where(-hit > self.resting[on], np.maximum(leaves, 0.0), 0.0)
        rests = np.clip(gap / self.h / np.where(u_end < 0, u_end, -1.0), 0.0, 1.0)  # to a gap of zero
        return closes, np.where(bounce > 0.0, left, rests), bounce

    def _solved(self, W: np.ndarray, b: np.ndarray, bounce: np.ndarray, on: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Impulses (n, 3) with 0 ≤ u_n − bounce ⊥ f_n ≥ 0, |f_t| ≤ µ f_n and f_t against the slip."""
        n, mu = len(on), self.friction[on]
        aim = b.reshape(n, 3).copy()
        aim[:, 0] -= bounce
        blocks = W.reshape(n, 3, n, 3)
        weights = [1.0 / np.linalg.eigvalsh(blocks[i, :, i]).max() for i in range(n)]
        for _ in range(SWEEPS):
            old = f.copy()
            for i in range(n):
                u = aim[i] + np.einsum("kjl,jl->k", blocks[i], f)
                u[0] += mu[i] * np.hypot(u[1], u[2])
                f[i] = _in_cone(f[i] - weights[i] * u, mu[i])
            if np.abs(f - old).max() <= EXACT * max(1e-3, np.abs(f).max()):
                return f
        raise AssertionError("the dense iterations do not end")

    def taken_back(self, q: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Coordinates without overlaps: moved along the normals by pushes that are not negative."""
        gap, J = self.rows(q)
        on = np.flatnonzero(gap < 0.0)
        if not len(on):
            return q
        rows, push = J[on, 0], np.zeros(len(on))
        A = rows @ Y @ rows.T
        for _ in range(SWEEPS):
            old = push.copy()
            for i in range(len(on)):
                push[i] = max(0.0, push[i] - (gap[on[i]] + A[i] @ push) / A[i, i])
            if np.abs(push - old).max() <= EXACT * max(1e-12, np.abs(push).max()):
                break
        return self.robot.integrate(q, Y @ rows.T @ push)


def _in_cone(x: np.ndarray, mu: float) -> np.ndarray:
    """The point of the cone |x_t| ≤ µ x_n that is nearest to x."""
    across = np.hypot(x[1], x[2])
    if across <= mu * x[0]:
        return x
    if mu * across <= -x[0]:
        return np.zeros(3)
    along = (x[0] + mu * across) / (1.0 + mu * mu)
    return np.array([along, *(mu * along * x[1:] / max(across, 1e-300))])


def dense_run(model: sl.Model, q, v, duration: float, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and velocities (steps + 1, ...) of a run by dense matrices."""
    made = DenseRun(model, step)
    states = [(np.array(q, dtype=float), np.array(v, dtype=float))]
    for _ in range(round(duration / step)):
        states.append(made.step(*states[-1]))
    return np.array([x for x, _ in states]), np.array([x for _, x in states])
