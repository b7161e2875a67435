"""Dynamics of closed mechanisms by dense matrices: the closures' rows beside the equations of dense_reference.py.

A loop's joint has its parent frame in body a and its child frame in body b. With the velocity of the child frame
against the parent's, r = [angular; linear] at the child's origin in the child's axes, it allows r = φ α, so that

    φᶜᵀ r = J v = 0,     φᶜᵀ (dr/dt − dφ/dt α) = J a + γ = 0,     M a + h = τ + Jᵀ λ.

λ are the components of the force on body b (and its opposite on body a) along the columns of φᶜ. Where rows are
redundant, λ is the shortest one.
"""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
from dense_reference import Extended, Reference, cross

REDUNDANT = 1e-9  # singular values of J M^(-1/2) below this part of the largest one count as zero


class ClosedReference(Reference):
    """A model with loops at one state. `scalar` is float or Extended."""

    def relative_pose(self, loop) -> np.ndarray:
        """Pose (4, 4) of the child frame in the parent frame."""
        Ra, pa, Rb, pb = (self._float(x) for x in self._frames(loop))
        X = np.eye(4)
        X[:3, :3] = Ra.T @ Rb
        X[:3, 3] = Ra.T @ (pb - pa)
        return X

    def coordinates(self, loop) -> tuple[float, ...]:
        """The coordinates of the loop's joint that come nearest to the relative pose."""
        return nearest_coordinates(loop.kind, self.relative_pose(loop))

    def closure_error(self) -> np.ndarray:
        """How far each row is from closed, [rad] and [m]; its derivative is J v. Rows of all loops, in their order."""
        rows = [np.zeros(0)]
        for loop in self.model.loops:
            X, q = self.relative_pose(loop), self.coordinates(loop)
            rows.append(_forces(loop.kind, q).T @ offset(loop.kind, q, X))
        return np.concatenate(rows)

    def closure_jacobian(self):
        """J (rows, nv)."""
        rows = [self._array(np.zeros((0, self.model.nv)))]
        for loop in self.model.loops:
            _, J, _ = self._relative(loop)
            rows.append(self._array(_forces(loop.kind, self.coordinates(loop)).T) @ J)
        return np.vstack(rows)

    def closure_bias(self):
        """γ (rows,): J a + γ = 0 keeps the loops closed."""
        rows = [self._array(np.zeros(0))]
        for loop in self.model.loops:
            q = self.coordinates(loop)
            r, _, rate = self._relative(loop)
            phi = _motions(loop.kind, q)
            alpha = np.linalg.lstsq(phi, self._float(r), rcond=None)[0]
            own = self._array(tuple(loop.kind.motion_space_rate(q, alpha.tolist())))
            rows.append(self._array(_forces(loop.kind, q).T) @ (rate - own))
        return np.concatenate(rows)

    def consistent(self, v) -> np.ndarray:
        """The velocity nearest to v with J v = 0."""
        J = self._float(self.closure_jacobian())
        return v - np.linalg.pinv(J, rcond=REDUNDANT) @ (J @ v)

    def rank(self) -> int:
        """Number of independent rows."""
        J = self._float(self.closure_jacobian())
        return int(np.linalg.matrix_rank(J, tol=REDUNDANT * np.linalg.norm(J, 2))) if J.size else 0

    def mobility(self) -> int:
        """Freedoms that the loops leave."""
        return self.model.nv - self.rank()

    def forward_dynamics(self, tau, forces=None):
        """Accelerations a (nv,) and closure forces λ (rows,) in floats, λ the shortest one."""
        M, J = self._float(self.mass_matrix()), self._float(self.closure_jacobian())
        free = np.linalg.solve(M, tau - self._float(self.bias(forces)))
        L = np.linalg.cholesky(M)
        W = np.linalg.solve(L, J.T).T  # J M^(-1/2)
        U, s, Vt = np.linalg.svd(W, full_matrices=False)
        kept = s > REDUNDANT * max(s, default=0.0)
        U, s, Vt = U[:, kept], s[kept], Vt[kept]
        step = -(U.T @ (J @ free + self._float(self.closure_bias()))) / s
        return free + np.linalg.solve(L.T, Vt.T @ step), U @ (step / s)

    def loop_forces(self, force) -> np.ndarray:
        """Of closure forces λ (rows,) the [torque; force] on body b (loops, 6), at the child's origin in world axes."""
        out, row = [], 0
        for loop in self.model.loops:
            columns = _forces(loop.kind, self.coordinates(loop))
            six = columns @ force[row : row + columns.shape[1]]
            R = self._float(self._frames(loop)[2])
            out.append(np.concatenate((R @ six[:3], R @ six[3:])))
            row += columns.shape[1]
        return np.array(out).reshape(-1, 6)

    def exact_forward_dynamics(self, tau):
        """Accelerations from the equations in 50 digits, with a largest set of independent rows."""
        n = self.model.nv
        J = self.closure_jacobian()
        rows = independent_rows(self._float(J))
        M, h, gamma = self.mass_matrix(), self.bias(), self.closure_bias()
        K = mpmath.matrix(n + len(rows))
        right = mpmath.matrix(n + len(rows), 1)
        for i in range(n):
            right[i] = (Extended(tau[i]) - h[i]).x
            for j in range(n):
                K[i, j] = Extended(M[i, j]).x
        for k, row in enumerate(rows):
            right[n + k] = -Extended(gamma[row]).x
            for j in range(n):
                K[n + k, j] = Extended(J[row, j]).x
                K[j, n + k] = -Extended(J[row, j]).x
        return np.array([float(x) for x in mpmath.lu_solve(K, right)[:n]])

    # ---- inside

    def _frames(self, loop):
        """Rotations and origins of parent and child frame in the world."""
        out = []
        for name, placement in ((loop.a, loop.placement_a), (loop.b, loop.placement_b)):
            body = self.bodies[name]
            out += [body.R @ self._array(placement.rotation), body.at(self._array(placement.position))[0]]
        return out

    def _relative(self, loop):
        """r (6,), its Jacobian (6, nv) and dr/dt at a = 0, all in the child's axes."""
        a, b = self.bodies[loop.a], self.bodies[loop.b]
        _, _, Rb, pb = self._frames(loop)
        _, ub, ab, Jb = b.at(self._array(loop.placement_b.position))
        _, ua, aa, Ja = a.at(a.R.T @ (pb - a.p))  # the point of body a that is there now
        w, u = b.w - a.w, ub - ua
        rates = b.alpha - a.alpha - cross(b.w, w), ab - aa - cross(a.w, u) - cross(b.w, u)
        J = np.vstack((Rb.T @ (b.Jw - a.Jw), Rb.T @ (Jb - Ja)))
        return np.concatenate((Rb.T @ w, Rb.T @ u)), J, np.concatenate([Rb.T @ x for x in rates])

    def _array(self, values):
        if self.scalar is float:
            return np.array(values, dtype=float)
        values = np.array(values, dtype=object)
        flat = [self.scalar(x) for x in values.ravel()]
        return np.array([*flat, None], dtype=object)[:-1].reshape(values.shape)

    def _float(self, values):
        return np.array(values, dtype=float)


def nearest_coordinates(kind, X) -> tuple[float, ...]:
    """Coordinates q of a joint with transform(q) ≈ X, by Gauss-Newton from the best of a few turns."""
    if kind.name == "general":
        return (*_quaternion(X[:3, :3]), *X[:3, 3])
    turns = [(0.0, 2.0, -2.0) if unit == "rad" else (0.0,) for unit in kind.units]
    starts = [tuple(map(float, kind.plus(kind.neutral(), turn))) for turn in itertools.product(*turns)]
    q = min(starts, key=lambda start: np.linalg.norm(_pose(kind, start)[:3, :3] - X[:3, :3]))
    for _ in range(60 if kind.nv else 0):
        step = np.linalg.lstsq(_motions(kind, q), offset(kind, q, X), rcond=None)[0]
        q = tuple(map(float, kind.plus(q, step.tolist())))
        if np.abs(step).max() < 1e-15:
            break
    return q


def offset(kind, q, X) -> np.ndarray:
    """What is left of X beside transform(q): (sin of the angle) axis and translation, in the child's axes."""
    left = np.linalg.inv(_pose(kind, q)) @ X
    R = left[:3, :3]
    if kind.name == "general":
        return np.zeros(6)  # its rows are rows of velocity; a pose satisfies or violates none
    return np.array((R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], *(2.0 * left[:3, 3]))) / 2.0


def independent_rows(J) -> list[int]:
    """Numbers of a largest set of well independent rows: each time the row farthest from those taken."""
    left, taken = J.copy(), []
    size = np.linalg.norm(J, 2) if J.size else 0.0
    for _ in range(min(J.shape)):
        lengths = np.linalg.norm(left, axis=1)
        k = int(lengths.argmax())
        if lengths[k] <= REDUNDANT * size:
            break
        taken.append(k)
        d = left[k] / lengths[k]
        left = left - np.outer(left @ d, d)
    return sorted(taken)


def _pose(kind, q) -> np.ndarray:
    x = kind.transform(q)
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = x.rotation.matrix(), x.translation
    return X


def _motions(kind, q) -> np.ndarray:
    return np.array([tuple(s) for s in kind.motion_space(q)], dtype=float).reshape(-1, 6).T


def _forces(kind, q) -> np.ndarray:
    return np.array([tuple(f) for f in kind.constraint_space(q)], dtype=float).reshape(-1, 6).T


def _quaternion(R) -> np.ndarray:
    """Of a rotation matrix: the eigenvector of its quadratic form."""
    K = np.zeros((4, 4))
    K[0, 0] = np.trace(R)
    K[0, 1:] = K[1:, 0] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    K[1:, 1:] = R + R.T - np.trace(R) * np.eye(3)
    return np.linalg.eigh(K)[1][:, -1]
