"""Kinetic and potential energy of a model with flexible bodies, and its equations of motion by differentiation.

Independent of the recursions: positions of all mass points are a function of q, in dual numbers (value and rate), whose
entries may be complex. M v is a difference of energies, which are quadratic in v; derivatives by q are complex steps,
exact to rounding. Finite elements give the fields of beams at Gauss points; rigid bodies are six points each.
"""

from __future__ import annotations

from typing import NamedTuple

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


def turned_by(theta: Dual) -> Dual:
    """The Cayley map of Θ (1 + Θ²/12)."""
    return cayley(einsum("...a,...->...a", theta, einsum("...a,...a->...", theta, theta) * (1.0 / 12.0) + 1.0))


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


class Part(NamedTuple):
    """A joint with its coordinates, the pose of its child, and the child's mass: points, rotation of sections."""

    joint: object
    x: Dual
    R: Dual
    p: Dual
    r: Dual  # (points, 3) in the world
    masses: np.ndarray
    turning: np.ndarray  # rates of sections, times the root of their rotary inertia
    spin: np.ndarray  # angular momentum of sections
    omega: np.ndarray  # angular velocity of the body in its own axes
    A: np.ndarray  # (3, 3), B (3, n): energy ½ ω·A ω + ω·B η̇ of sections that are turned, beyond `turning`
    B: np.ndarray


def _sections(kind):
    """Rotary inertia (points, 3) of sections, and the rotations (n, points, 3) that turn them: in bending only if it
    has rotary inertia."""
    model = _finite_elements(kind.source.beam, kind.source.number)
    names = ("polar", "about_y", "about_z")
    inertia = np.stack([model.rod.properties[k] * model.rod.weights for k in names], axis=1)
    thick = inertia[:, 1:].any()
    return inertia, model.fields.theta * ([1.0, 1.0, 1.0] if thick else [1.0, 0.0, 0.0])


class Reference:
    """The equations of motion of a model; every joint's rates are those of its coordinates."""

    def __init__(self, model):
        self.model = model

    def poses(self, q, v):
        """Rotation and position of every body, in dual numbers."""
        poses = {"world": (Dual(np.eye(3)), Dual(np.zeros(3)))}
        modes = {}
        for joint in self.model.joints:
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
                R = R @ turned_by(deformed(0.0, np.array(s.rotations), np.array(s.bent_rotations), eta))
            else:
                assert kind.name == "fixed", kind.name
            poses[joint.child] = R, p
        return poses

    def parts(self, q, v):
        """Of every joint and its child at q, v, of which both may be complex, a Part."""
        poses = self.poses(q, v)
        for joint, body in zip(self.model.joints, self.model.bodies, strict=True):
            x = Dual(q[self.model.q_slice(joint.name)], v[self.model.v_slice(joint.name)])
            R, p = poses[joint.child]
            turning, spin, A, B = np.zeros((0, 3)), np.zeros(3), np.zeros((3, 3)), np.zeros((3, len(x.value)))
            rate = R.value.T @ R.rate
            omega = np.array([rate[2, 1], rate[0, 2], rate[1, 0]])
            if isinstance(joint.kind, Modal):
                places, masses, turning, A, B = self._beam(joint.kind, omega, x)
                spin = R.value @ (self._spin(joint.kind, omega, x) + A @ omega + B @ x.rate)
            elif body.inertia.mass:
                places, masses = _points_of(body.inertia)
            else:
                places, masses = np.zeros((0, 3)), np.zeros(0)
            yield Part(joint, x, R, p, einsum("ab,pb->pa", R, places) + p, masses, turning, spin, omega, A, B)

    def energies(self, q, v):
        """Kinetic and potential energy at q, v, of which both may be complex."""
        kinetic, potential = 0.0, 0.0
        gravity = np.array(self.model.gravity)
        for part in self.parts(q, v):
            joint, x = part.joint, part.x
            kinetic = kinetic + 0.5 * (part.turning**2).sum() + 0.5 * part.masses @ (part.r.rate**2).sum(axis=-1)
            kinetic = kinetic + 0.5 * part.omega @ part.A @ part.omega + part.omega @ part.B @ x.rate
            potential = potential - part.masses @ (part.r.value @ gravity)
            kinetic = kinetic + 0.5 * np.array(joint.armature) @ x.rate**2
            potential = potential + 0.5 * np.array(joint.stiffness) @ (x.value - np.array(joint.rest)) ** 2
        return kinetic, potential

    @staticmethod
    def _beam(kind, omega, x):
        """Mass points of a beam in its frame, their masses; rates of its sections, times the root of their rotary
        inertia; A and B of sections that are turned by Θ, in second order: j becomes (1 + [Θ] + ½[Θ]²) j (...)ᵀ."""
        model = _finite_elements(kind.source.beam, kind.source.number)
        rod = model.rod
        axis = np.stack([rod.points, 0 * rod.points, 0 * rod.points], axis=1)
        places = deformed(axis, model.fields.u, second_order(rod, model.fields).g, x)
        inertia, theta = _sections(kind)
        spin = omega + np.einsum("npa,n->pa", model.fields.theta, x.rate)
        j = np.zeros((len(rod.points), 3, 3))
        j[:, 1, 1], j[:, 2, 2] = (rod.properties[k] * rod.weights for k in ("across_y", "across_z"))
        T = skew(np.einsum("npa,n->pa", theta, x.value))
        change = T @ j + np.swapaxes(T @ j, 1, 2) + T @ j @ np.swapaxes(T, 1, 2)
        change = (change + 0.5 * (T @ T @ j + np.swapaxes(T @ T @ j, 1, 2))).sum(axis=0)
        A = np.trace(change) * np.eye(3) - change
        B = []
        for t in skew(theta):
            flow = T @ j @ np.swapaxes(t, 1, 2) + 0.5 * j @ np.swapaxes(t @ T + T @ t, 1, 2)
            B.append(np.einsum("aij,pij->a", _EPSILON, flow))
        return places, rod.properties["mass"] * rod.weights, np.sqrt(inertia) * spin, A, np.array(B).T

    @staticmethod
    def _spin(kind, omega, x):
        """Angular momentum of sections that are not turned, in the axes of the body."""
        model, (inertia, _) = _finite_elements(kind.source.beam, kind.source.number), _sections(kind)
        return (inertia * (omega + np.einsum("npa,n->pa", model.fields.theta, x.rate))).sum(axis=0)

    def momentum(self, q, v):
        """M v (nv,)."""
        base, units = self.energies(q, v)[0], np.eye(len(v))
        return np.array([self.energies(q, v + e)[0] - base - self.energies(q, e)[0] for e in units])

    def mass_matrix(self, q):
        """M (nv, nv): products of the rates of all masses for unit rates of two coordinates."""
        columns, turned = [], np.zeros((len(q), len(q)))
        moving = [list(self.parts(q, e)) for e in np.eye(len(q))]
        for i, one in enumerate(moving):
            for k, other in enumerate(moving):
                pairs = zip(one, other, strict=True)
                turned[i, k] = sum(a.omega @ a.A @ b.omega + a.omega @ a.B @ b.x.rate + b.omega @ a.B @ a.x.rate
                                   for a, b in pairs)  # fmt: skip
        for parts in moving:
            moved = [np.sqrt(p.masses)[:, None] * p.r.rate for p in parts] + [p.turning for p in parts]
            rotors = [np.sqrt(np.array(p.joint.armature)) * p.x.rate for p in parts]
            columns.append(np.concatenate([x.ravel() for x in (*moved, *rotors)]))
        return np.array(columns) @ np.array(columns).T + turned

    def gravity_torques(self, q):
        """What holds the weight (nv,)."""
        gravity = np.array(self.model.gravity)
        return np.array([-sum(p.masses @ p.r.rate @ gravity for p in self.parts(q, e)) for e in np.eye(len(q))])

    def bias(self, q, v):
        """h (nv,): M a + h = tau, dampers included."""
        n = len(q)
        rate = np.array(self.momentum(q + 1j * STEP * v, v.astype(complex))).imag / STEP
        slopes = np.array([[e.imag / STEP for e in self.energies(q + 1j * STEP * u, v)] for u in np.eye(n)])
        damping = np.concatenate([np.array(j.damping) for j in self.model.joints])
        return rate - slopes[:, 0] + slopes[:, 1] + damping * v

    # ---- loops: spherical ones and welds

    def closures(self, q, v):
        """Errors (rows,) of all loops as dual numbers: distance of the frames, and of welds their misalignment."""
        poses, out = self.poses(q, v), []
        for loop in self.model.loops:
            (Ra, pa), (Rb, pb) = poses[loop.a], poses[loop.b]
            pa = pa + Ra @ np.array(loop.placement_a.position)
            pb = pb + Rb @ np.array(loop.placement_b.position)
            out.append(pb - pa)
            if loop.kind.name == "fixed":
                turn = (Ra @ np.array(loop.placement_a.rotation)).T @ (Rb @ np.array(loop.placement_b.rotation))
                out.append(einsum("aij,ij->a", _EPSILON, turn))
            else:
                assert loop.kind.name == "spherical", loop.kind.name
        return Dual(np.concatenate([x.value for x in out]), np.concatenate([x.rate for x in out]))

    def forward_dynamics(self, q, v, tau):
        """a (nv,) with all loops closed: M a + h = tau + Jᵀ λ, J a + γ = 0."""
        M, h = self.mass_matrix(q), self.bias(q, v)
        if not self.model.loops:
            return np.linalg.solve(M, tau - h)
        J = np.array([self.closures(q, e).rate for e in np.eye(len(q))]).T
        gamma = self.closures(q + 1j * STEP * v, v.astype(complex)).rate.imag / STEP
        n, rows = len(q), len(J)
        scale = 1.0 / np.sqrt(M.diagonal())
        whole = np.block([[M * np.outer(scale, scale), (J * scale).T], [J * scale, np.zeros((rows, rows))]])
        found = np.linalg.lstsq(whole, np.concatenate([scale * (tau - h), -gamma]), rcond=1e-13)[0]
        return scale * found[:n]

    # ---- frames

    def frames(self, q, v):
        """Rotation and position of every body and frame in the world, as Duals, by name."""
        found = self.poses(q, v)
        for f in self.model.frames:
            R, p = found[f.body]
            found[f.name] = (R @ np.array(f.placement.rotation), p + R @ np.array(f.placement.position))
        return found

    def velocity(self, name, q, v):
        """[angular; linear] (6,) of a frame's origin, in world axes."""
        R, p = self.frames(q, v)[name]
        turning = R.rate @ R.value.T
        return np.array([turning[2, 1], turning[0, 2], turning[1, 0], *p.rate])

    def jacobian(self, name, q):
        return np.array([self.velocity(name, q, e) for e in np.eye(len(q))]).T

    def jacobian_bias(self, name, q, v):
        """The acceleration (6,) of a frame's origin while a = 0."""
        return self.velocity(name, q + 1j * STEP * v, v.astype(complex)).imag / STEP

    # ---- momenta

    def momenta(self, q, v):
        """[angular; linear] momentum (n_joints, 6) of every joint's child about the world's origin."""
        out = []
        for part in self.parts(q, v):
            linear = part.masses[:, None] * part.r.rate
            out.append([*(np.cross(part.r.value, linear).sum(axis=0) + part.spin), *linear.sum(axis=0)])
        return np.array(out)

    def center_of_mass(self, q):
        """Position (3,), and mass, of what moves."""
        parts = list(self.parts(q, np.zeros(len(q))))
        mass = sum(p.masses.sum() for p in parts)
        return sum(p.masses @ p.r.value for p in parts) / mass, mass

    def reactions(self, q, v, a):
        """[torque; force] (n_joints, 6) through every joint on its child, at its origin in world axes."""
        rates = self.momenta(q + 1j * STEP * v, v + 1j * STEP * a).imag / STEP
        parts, gravity = list(self.parts(q, v)), np.array(self.model.gravity)
        for k, part in enumerate(parts):
            weight = part.masses[:, None] * gravity
            rates[k] -= [*np.cross(part.r.value, weight).sum(axis=0), *weight.sum(axis=0)]
        number = {part.joint.child: k for k, part in enumerate(parts)}
        for k in reversed(range(len(parts))):
            parent = parts[k].joint.parent
            if parent in number:
                rates[number[parent]] += rates[k]
        for k, part in enumerate(parts):
            rates[k, :3] -= np.cross(part.p.value, rates[k, 3:])
        return rates
