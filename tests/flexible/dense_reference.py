"""Kinetic and potential energy of a model with flexible bodies, and its equations of motion by differentiation.

Independent of the recursions: positions of all mass points are a function of q, in dual numbers (value and rate), whose
entries may be complex. M v is a difference of energies, which are quadratic in v; derivatives by q are complex steps,
exact to rounding. Finite elements give the fields of beams at Gauss points; rigid bodies are six points each.
"""

from __future__ import annotations

import numpy as np

from spanloop.flexible.beam import _finite_elements
from spanloop.flexible.modes import Modal, Node
from spanloop.flexible.second_order import second_order

STEP = 1e-30


class Dual:
    """A value and its rate, as arrays."""

    __array_ufunc__ = None  # arrays leave operations to it

    def __init__(self, value, rate=None):
        self.value = np.asarray(value)
        self.rate = np.zeros_like(self.value) if rate is None else np.asarray(rate)

    def __add__(self, other):
        other = _dual(other)
        return Dual(self.value + other.value, self.rate + other.rate)

    __radd__ = __add__

    def __neg__(self):
        return Dual(-self.value, -self.rate)

    def __sub__(self, other):
        return self + (-_dual(other))

    def __mul__(self, other):
        other = _dual(other)
        return Dual(self.value * other.value, self.value * other.rate + self.rate * other.value)

    __rmul__ = __mul__

    def __matmul__(self, other):
        other = _dual(other)
        return Dual(self.value @ other.value, self.value @ other.rate + self.rate @ other.value)

    def __rmatmul__(self, other):
        return _dual(other) @ self

    def inverse(self):
        return Dual(1.0 / self.value, -self.rate / self.value**2)

    def __getitem__(self, k):
        return Dual(self.value[k], self.rate[k])

    @property
    def T(self):
        return Dual(np.swapaxes(self.value, -1, -2), np.swapaxes(self.rate, -1, -2))


def _dual(x):
    return x if isinstance(x, Dual) else Dual(x)


def einsum(spec, a, b):
    a, b = _dual(a), _dual(b)
    rate = np.einsum(spec, a.value, b.rate) + np.einsum(spec, a.rate, b.value)
    return Dual(np.einsum(spec, a.value, b.value), rate)


_EPSILON = np.zeros((3, 3, 3))
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    _EPSILON[_i, _j, _k], _EPSILON[_i, _k, _j] = 1.0, -1.0


def skew(a):
    """[a]×."""
    return (
        einsum("ijk,...k->...ij", -_EPSILON, a) if isinstance(a, Dual) else np.einsum("ijk,...k->...ij", -_EPSILON, a)
    )


def about(axis, angle: Dual) -> Dual:
    """Rotation about an axis."""
    k = skew(np.asarray(axis, dtype=float))
    s = Dual(np.sin(angle.value), np.cos(angle.value) * angle.rate)
    c = Dual(np.cos(angle.value), -np.sin(angle.value) * angle.rate)
    return Dual(np.eye(3)) + k * s + (k @ k) * (-(c - 1.0))


def deformed(positions, first, second, eta: Dual) -> Dual:
    """x + φ η + ½ g η η for first (n, ..., 3) and second (n, n, ..., 3)."""
    moved = einsum("n...,n->...", first, eta)
    bent = einsum("m...,m->...", einsum("nm...,n->m...", second, eta), eta)
    return moved + 0.5 * bent + positions


def cayley(psi: Dual) -> Dual:
    k = skew(psi)
    square = einsum("...a,...a->...", psi, psi)
    share = (square * 0.25 + 1.0).inverse()
    return Dual(np.eye(3)) + (k + 0.5 * (k @ k)) * share


def _points_of(inertia):
    """Six points with the mass, centre and inertia of a rigid body."""
    moment = inertia.matrix()
    second = 0.5 * np.trace(moment) * np.eye(3) - np.array(moment)
    values, axes = np.linalg.eigh(second)
    arms = np.sqrt(np.maximum(3.0 * values / inertia.mass, 0.0)) * axes
    return np.array(inertia.center) + np.concatenate([arms.T, -arms.T]), np.full(6, inertia.mass / 6.0)


class Reference:
    """The equations of motion of a model; every joint's rates are those of its coordinates."""

    def __init__(self, model):
        self.model = model

    def energies(self, q, v):
        """Kinetic and potential energy at q, v, of which both may be complex."""
        poses = {"world": (Dual(np.eye(3)), Dual(np.zeros(3)))}
        modes = {}
        kinetic, potential = 0.0, 0.0
        gravity = np.array(self.model.gravity)
        for joint, body in zip(self.model.joints, self.model.bodies, strict=True):
            x = Dual(q[self.model.q_slice(joint.name)], v[self.model.v_slice(joint.name)])
            R, p = poses[joint.parent]
            p = p + R @ np.array(joint.placement.position)
            R = R @ np.array(joint.placement.rotation)
            kind = joint.kind
            if kind.name == "revolute":
                R = R @ about(kind.axis, x[0])
            elif kind.name == "prismatic":
                p = p + R @ (np.array(kind.axis) * x[0])
            elif isinstance(kind, Modal):
                modes[joint.child] = x
            elif isinstance(kind, Node):
                s, eta = kind.shape, modes[joint.parent]
                p = p + R @ deformed(0.0, np.array(s.translations), np.array(s.bent_translations), eta)
                R = R @ cayley(deformed(0.0, np.array(s.rotations), np.array(s.bent_rotations), eta))
            else:
                assert kind.name == "fixed", kind.name
            poses[joint.child] = R, p
            if isinstance(kind, Modal):
                places, masses, spin = self._beam(kind, R, x)
                kinetic = kinetic + spin
            elif body.inertia.mass:
                places, masses = _points_of(body.inertia)
            else:
                places, masses = np.zeros((0, 3)), np.zeros(0)
            r = einsum("ab,pb->pa", R, places) + p
            kinetic = kinetic + 0.5 * masses @ (r.rate**2).sum(axis=-1)
            potential = potential - masses @ (r.value @ gravity)
            kinetic = kinetic + 0.5 * np.array(joint.armature) @ x.rate**2
            potential = potential + 0.5 * np.array(joint.stiffness) @ (x.value - np.array(joint.rest)) ** 2
        return kinetic, potential

    @staticmethod
    def _beam(kind, R, x):
        """Mass points of a beam in its frame, their masses, and the kinetic energy of its sections' rotation."""
        model = _finite_elements(kind.source.beam, kind.source.number)
        rod = model.rod
        axis = np.stack([rod.points, 0 * rod.points, 0 * rod.points], axis=1)
        places = deformed(axis, model.fields.u, second_order(rod, model.fields).g, x)
        inertia = np.stack([rod.properties[k] * rod.weights for k in ("polar", "about_y", "about_z")], axis=1)
        turning = (R.T @ R).value * 0.0 + R.value.T @ R.rate
        omega = np.array([turning[2, 1], turning[0, 2], turning[1, 0]])
        spin = omega + np.einsum("npa,n->pa", model.fields.theta, x.rate)
        return places, rod.properties["mass"] * rod.weights, 0.5 * (inertia * spin**2).sum()

    def momentum(self, q, v):
        """M v (nv,)."""
        base, units = self.energies(q, v)[0], np.eye(len(v))
        return np.array([self.energies(q, v + e)[0] - base - self.energies(q, e)[0] for e in units])

    def mass_matrix(self, q):
        return np.array([self.momentum(q, e) for e in np.eye(len(q))])

    def bias(self, q, v):
        """h (nv,): M a + h = tau, dampers included."""
        n = len(q)
        rate = np.array(self.momentum(q + 1j * STEP * v, v.astype(complex))).imag / STEP
        slopes = np.array([[e.imag / STEP for e in self.energies(q + 1j * STEP * u, v)] for u in np.eye(n)])
        damping = np.concatenate([np.array(j.damping) for j in self.model.joints])
        return rate - slopes[:, 0] + slopes[:, 1] + damping * v
