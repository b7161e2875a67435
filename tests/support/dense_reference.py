"""Dynamics by dense matrices in world axes: Newton and Euler for every body, d'Alembert over the body Jacobians.

Independent of the library's algorithms: of the joints only transform, motion space and its rate are used (which
test_joints.py checks by axiom), nothing is recursive but the motion of the bodies, no frame is turned, no inertia
moved.

    M = Σ m Jcᵀ Jc + Jwᵀ I Jw + armature,   h = Σ Jcᵀ m (ac − g) + Jwᵀ (I α + ω × I ω) + damper + spring − Jᵀ f

It works on any scalar: floats, or `Extended` numbers of 50 digits.
"""

from __future__ import annotations

import mpmath
import numpy as np

mpmath.mp.dps = 50


class Extended:
    """A number of 50 digits that knows what the library asks of a scalar."""

    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x.x if isinstance(x, Extended) else mpmath.mpf(x)

    def __add__(self, other):
        return NotImplemented if isinstance(other, np.ndarray) else Extended(self.x + Extended(other).x)

    __radd__ = __add__

    def __sub__(self, other):
        return NotImplemented if isinstance(other, np.ndarray) else Extended(self.x - Extended(other).x)

    def __rsub__(self, other):
        return Extended(Extended(other).x - self.x)

    def __mul__(self, other):
        return NotImplemented if isinstance(other, np.ndarray) else Extended(self.x * Extended(other).x)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return NotImplemented if isinstance(other, np.ndarray) else Extended(self.x / Extended(other).x)

    def __rtruediv__(self, other):
        return Extended(Extended(other).x / self.x)

    def __neg__(self):
        return Extended(-self.x)

    def __lt__(self, other):
        return bool(self.x < Extended(other).x)

    def __gt__(self, other):
        return bool(self.x > Extended(other).x)

    def __float__(self):
        return float(self.x)

    def sincos(self):
        return Extended(mpmath.sin(self.x)), Extended(mpmath.cos(self.x))

    def sqrt(self):
        return Extended(mpmath.sqrt(self.x))


class Motion:
    """A body's pose, velocity, acceleration at a = 0 and Jacobian, at its origin in world axes."""

    def __init__(self, nv, zero):
        self.R, self.p = _array(np.eye(3), zero), _array(np.zeros(3), zero)
        self.w, self.u, self.alpha, self.a = (_array(np.zeros(3), zero) for _ in range(4))
        self.Jw, self.Ju = _array(np.zeros((3, nv)), zero), _array(np.zeros((3, nv)), zero)

    def at(self, r):
        """Position, velocity, acceleration at a = 0 and Jacobian of the body's point r (in its own axes)."""
        x = self.R @ np.array(r)
        velocity = self.u + cross(self.w, x)
        acceleration = self.a + cross(self.alpha, x) + cross(self.w, cross(self.w, x))
        return self.p + x, velocity, acceleration, self.Ju - skew(x) @ self.Jw


class Reference:
    """A model at one state. `scalar` is float or Extended."""

    def __init__(self, model, q, v=None, scalar=float):
        self.model, self.scalar = model, scalar
        self.q = [scalar(x) for x in q]
        self.v = [scalar(x) for x in (np.zeros(model.nv) if v is None else v)]
        self.bodies = {"world": Motion(model.nv, scalar)}
        for joint in model.joints:
            self.bodies[joint.child] = self._moved(joint, self.bodies[joint.parent])
        self.moving = self._moving()

    def _moved(self, joint, parent):
        model, kind = self.model, joint.kind
        q, v = self.q[model.q_slice(joint.name)], self.v[model.v_slice(joint.name)]
        x = kind.transform(q)
        place = _array(joint.placement.rotation, self.scalar)
        position = _array(joint.placement.position, self.scalar)
        b = Motion(model.nv, self.scalar)
        b.R = parent.R @ place @ _array(x.rotation.matrix(), self.scalar)
        r = parent.R @ (position + place @ _array(x.translation, self.scalar))
        b.p = parent.p + r
        S = _columns(kind.motion_space(q), self.scalar)
        Sw, Su = b.R @ S[:3], b.R @ S[3:]
        rate = _array(tuple(kind.motion_space_rate(q, v)), self.scalar)
        rw, ru = b.R @ rate[:3], b.R @ rate[3:]
        w, u = (Sw @ v, Su @ v) if kind.nv else (rw, ru)
        b.w = parent.w + w
        b.u = parent.u + cross(parent.w, r) + u
        b.alpha = parent.alpha + cross(parent.w, w) + rw
        b.a = parent.a + cross(parent.alpha, r) + cross(parent.w, cross(parent.w, r) + u) + cross(b.w, u) + ru
        b.Jw, b.Ju = parent.Jw.copy(), parent.Ju - skew(r) @ parent.Jw
        where = model.v_slice(joint.name)
        b.Jw[:, where] = b.Jw[:, where] + Sw
        b.Ju[:, where] = b.Ju[:, where] + Su
        return b

    def _moving(self):
        """Bodies that some joint can move."""
        free = {"world": False}
        for j in self.model.joints:
            free[j.child] = free[j.parent] or j.kind.nv > 0
        return [b for b in self.model.bodies if free[b.name]]

    def _inertia(self, body):
        """Inertia about the mass centre in world axes."""
        R = self.bodies[body.name].R
        return R @ _array(body.inertia.matrix(), self.scalar) @ R.T

    def center(self, body):
        return self.bodies[body.name].at(_array(body.inertia.center, self.scalar))

    def mass_matrix(self):
        n = self.model.nv
        M = _array(np.zeros((n, n)), self.scalar)
        for b in self.moving:
            Jc, Jw = self.center(b)[3], self.bodies[b.name].Jw
            M = M + self.scalar(b.inertia.mass) * (Jc.T @ Jc) + Jw.T @ self._inertia(b) @ Jw
        armature = [x for j in self.model.joints for x in j.armature]
        for k, x in enumerate(armature):
            M[k, k] = M[k, k] + x
        return M

    def bias(self, forces=None):
        """h at q, v; forces {body: [torque; force]} at body origins in world axes."""
        g = _array(self.model.gravity, self.scalar)
        h = self._against(g)
        for b in self.moving:
            body = self.bodies[b.name]
            I = self._inertia(b)
            _, _, a, Jc = self.center(b)
            h = h + self.scalar(b.inertia.mass) * (Jc.T @ a)
            h = h + body.Jw.T @ (I @ body.alpha + cross(body.w, I @ body.w))
        h = h - self.passive()
        for name, f in (forces or {}).items():
            body, f = self.bodies[name], _array(f, self.scalar)
            h = h - (body.Jw.T @ f[:3] + body.Ju.T @ f[3:])
        return h

    def gravity(self):
        return self._against(_array(self.model.gravity, self.scalar))

    def _against(self, g):
        h = _array(np.zeros(self.model.nv), self.scalar)
        for b in self.moving:
            h = h - self.scalar(b.inertia.mass) * (self.center(b)[3].T @ g)
        return h

    def passive(self):
        """Torque of dampers and springs."""
        torque = []
        for j in self.model.joints:
            v = self.v[self.model.v_slice(j.name)]
            own = [-(d * x) for d, x in zip(j.damping, v, strict=True)]
            if any(j.stiffness):
                spring, _ = j.kind.spring(self.q[self.model.q_slice(j.name)], j.rest, j.stiffness)
                own = [t + x for t, x in zip(own, spring, strict=True)]
            torque += own
        return _array(torque, self.scalar)

    def energy(self):
        kinetic, potential = self.scalar(0), self.scalar(0)
        g = _array(self.model.gravity, self.scalar)
        half = self.scalar(0.5)
        for b in self.moving:
            body, m = self.bodies[b.name], self.scalar(b.inertia.mass)
            c, u, _, _ = self.center(b)
            kinetic = kinetic + half * (m * (u @ u) + body.w @ (self._inertia(b) @ body.w))
            potential = potential - m * (g @ c)
        for j in self.model.joints:
            for x, y in zip(j.armature, self.v[self.model.v_slice(j.name)], strict=True):
                kinetic = kinetic + half * x * y * y
            if any(j.stiffness):
                potential = potential + j.kind.spring(self.q[self.model.q_slice(j.name)], j.rest, j.stiffness)[1]
        return np.array([kinetic, potential])

    def center_of_mass(self):
        mass = sum(b.inertia.mass for b in self.moving)
        return sum(b.inertia.mass * self.center(b)[0] for b in self.moving) / mass

    def momentum(self):
        """[angular; linear] about the centre of mass."""
        o = self.center_of_mass()
        angular, linear = np.zeros(3), np.zeros(3)
        for b in self.moving:
            c, u, _, _ = self.center(b)
            p = b.inertia.mass * u
            angular = angular + self._inertia(b) @ self.bodies[b.name].w + cross(c - o, p)
            linear = linear + p
        return np.concatenate((angular, linear))

    def _frame(self, name):
        frame = self.model.frame(name)
        return self.bodies[frame.body], frame.placement

    def pose(self, name):
        body, placement = self._frame(name)
        x = np.eye(4)
        x[:3, :3] = body.R @ np.array(placement.rotation)
        x[:3, 3] = body.at(np.array(placement.position))[0]
        return x

    def jacobian(self, name):
        body, placement = self._frame(name)
        return np.vstack((body.Jw, body.at(np.array(placement.position))[3]))

    def jacobian_bias(self, name):
        body, placement = self._frame(name)
        return np.concatenate((body.alpha, body.at(np.array(placement.position))[2]))


def cross(a, b):
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def skew(a):
    zero = a[0] * 0.0
    return np.array([[zero, -a[2], a[1]], [a[2], zero, -a[0]], [-a[1], a[0], zero]])


def solve(M, b):
    """x with M x = b, on Extended numbers."""
    n = len(b)
    matrix = mpmath.matrix([[M[i, j].x for j in range(n)] for i in range(n)])
    x = mpmath.lu_solve(matrix, mpmath.matrix([y.x for y in b]))
    return np.array([Extended(y) for y in x])


def _array(values, scalar):
    if scalar is float:
        return np.array(values, dtype=float)
    flat = np.array([[scalar(x) for x in np.ravel(np.array(values, dtype=object))]], dtype=object)
    return flat.reshape(np.shape(values))


def _columns(motions, scalar):
    return _array([tuple(s) for s in motions], scalar).reshape(-1, 6).T
