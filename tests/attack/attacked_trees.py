"""Random trees that are hard on numbers.

Every joint kind, sizes from 1e-5 m to 1e3 m, mass ratios to 1e6, bodies without mass, axes in line, gimbal locks.
"""

from __future__ import annotations

import numpy as np

import spanloop as sl

KINDS = ["revolute", "prismatic", "helical", "cylindrical", "universal", "spherical", "planar", "free", "general"]
THEMES = (
    "plain",
    "plain",
    "mixed sizes",
    "mass ratios",
    "massless",
    "in line",
    "gimbal",
    "branches",
    "losses",
    "driven",
)


def direction(rng) -> np.ndarray:
    """A unit vector, along a coordinate axis one time in two."""
    if rng.uniform() < 0.5:
        return rng.choice((-1.0, 1.0)) * np.eye(3)[rng.integers(3)]
    a = rng.normal(size=3)
    return a / np.linalg.norm(a)


def rotation(rng) -> np.ndarray | None:
    """None, a right angle, or any rotation."""
    chance = rng.uniform()
    if chance < 0.3:
        return None
    if chance < 0.5:
        return np.roll(np.eye(3), rng.integers(3), axis=0)
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q * np.linalg.det(Q)


def joint_kind(name: str, rng, size: float):
    """A kind with random axes; lengths of order `size` [m]."""
    if name == "universal":
        first, second = direction(rng), direction(rng)
        while abs(first @ second) > 0.95:
            second = direction(rng)
        return sl.joints.Universal(tuple(first), tuple(second))
    if name == "helical":
        return sl.joints.Helical(tuple(direction(rng)), pitch=float(size * rng.uniform(-0.3, 0.3)))
    if name == "general":
        n = int(rng.integers(1, 6))
        columns = np.linalg.qr(rng.normal(size=(6, 6)))[0][:n] * rng.uniform(0.5, 1.5, (n, 1))
        columns[:, 3:] *= size
        return sl.joints.General(tuple(map(tuple, columns)))
    if name in ("spherical", "free", "fixed"):
        return sl.joints.KINDS[name]()
    return sl.joints.KINDS[name](tuple(direction(rng)))


def inertia(rng, mass: float, size: float) -> np.ndarray:
    """Moments (3, 3) that a body of this mass and size can have; sometimes a slender rod or a point."""
    chance = rng.uniform()
    spread = size * rng.uniform(0.05, 0.3, 3)
    if chance < 0.1:
        spread[1:] *= 1e-3
    Q = rotation(rng)
    Q = np.eye(3) if Q is None else Q
    second = Q @ np.diag(mass * spread**2) @ Q.T
    moments = np.trace(second) * np.eye(3) - second
    return 0.5 * (moments + moments.T)


def options(kind, rng, mass: float, size: float, chance: float) -> dict:
    """Damping, armature and springs of an order that matters."""
    out, unit = {}, np.array([mass * size**2 if u == "rad" else mass for u in kind.units] or [0.0])
    if kind.name == "general":
        unit = np.full(kind.nv, mass * size**2)
    for name in ("damping", "armature", "stiffness"):
        if rng.uniform() < chance and kind.nv and not (name == "stiffness" and kind.name == "general"):
            out[name] = (unit * rng.uniform(0.0, 1.0, kind.nv)).tolist()
    if "stiffness" in out:
        turn = rng.uniform(-0.5, 0.5, kind.nv) * np.array([1.0 if u == "rad" else size for u in kind.units])
        out["rest"] = _rest(kind.name, turn)
    return out


def _rest(name: str, turn: np.ndarray) -> list[float]:
    if name not in ("spherical", "free"):
        return turn.tolist()
    e = np.array([1.0, *turn[:3]])
    return [*(e / np.linalg.norm(e)), *turn[3:]]


class TreeCase:
    """A random tree, its theme, and random states for it."""

    def __init__(self, rng):
        self.rng = rng
        self.theme = THEMES[rng.integers(len(THEMES))]
        self.size = 10.0 ** rng.uniform(-5.0, 3.0)
        self.mass = 10.0 ** rng.uniform(-3.0, 3.0)
        self.n_bodies = int(rng.integers(1, 6))
        self.model = self._gimbal() if self.theme == "gimbal" else self._random()

    def _numbers(self) -> tuple[float, float]:
        rng, mass, size = self.rng, self.mass, self.size
        if self.theme in ("mass ratios", "in line"):
            mass *= 10.0 ** rng.uniform(-3.0, 3.0)
        if self.theme == "mixed sizes":
            size *= 10.0 ** rng.uniform(-2.0, 2.0)
        return mass * rng.uniform(0.5, 2.0), size

    def _random(self) -> sl.Model:
        rng = self.rng
        b = sl.Builder("attacked", gravity=rng.uniform(0.0, 10.0) * direction(rng))
        names = ["revolute", "helical", "prismatic"] if self.theme == "in line" else KINDS
        shared = direction(rng)
        for i in range(self.n_bodies):
            mass, size = self._numbers()
            massless = self.theme in ("massless", "in line") and i < self.n_bodies - 1 and rng.uniform() < 0.4
            if massless:
                b.body(f"b{i}")
            else:
                b.body(f"b{i}", mass, size * rng.uniform(-0.5, 0.5, 3), inertia(rng, mass, size))
            name = str(rng.choice(["fixed", *names])) if i and rng.uniform() < 0.3 else str(rng.choice(names))
            if massless and self.theme == "massless":
                name = str(rng.choice(["revolute", "prismatic", "helical"]))
            kind = joint_kind(name, rng, size)
            if self.theme == "in line" and name != "fixed":
                kind = self._along(kind, shared)
            up = int(rng.integers(0, i + 1)) if rng.uniform() < (0.7 if self.theme == "branches" else 0.2) else i
            still = self.theme == "in line"
            place = size * (rng.uniform() < 0.5) * shared if still else size * rng.uniform(-1.0, 1.0, 3)
            losses = options(kind, rng, mass, size, 0.7 if self.theme == "losses" else 0.15)
            if self.theme == "driven" and kind.nv and rng.uniform() < 0.4 and kind.name != "general":
                losses["driven"] = True
            parent = f"b{up - 1}" if up else "world"
            b.joint(f"j{i}", kind, parent, f"b{i}", place, None if still else rotation(rng), **losses)
        return b.build()

    @staticmethod
    def _along(kind, axis):
        from dataclasses import replace

        return replace(kind, axis=tuple(axis))

    def _gimbal(self) -> sl.Model:
        """Three hinges on one point with two bodies between them that weigh nothing, and a body after them."""
        rng = self.rng
        mass, size = self._numbers()
        b = sl.Builder("gimbal", gravity=9.81 * direction(rng))
        frame = rotation(rng)
        b.body("b0").body("b1").body("b2", mass, size * rng.uniform(-0.5, 0.5, 3), inertia(rng, mass, size))
        b.revolute("j0", "world", "b0", "z", size * rng.uniform(-1, 1, 3), frame)
        b.revolute("j1", "b0", "b1", "y").revolute("j2", "b1", "b2", "x")
        mass, size = self._numbers()
        b.body("b3", mass, size * rng.uniform(-0.5, 0.5, 3), inertia(rng, mass, size))
        kind = joint_kind(str(rng.choice(KINDS)), rng, size)
        b.joint("j3", kind, "b2", "b3", size * rng.uniform(-1.0, 1.0, 3), rotation(rng))
        return b.build()

    def states(self, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q (n, nq), v and tau (n, nv): ordinary ones, and some at rest, at right angles, far away, turned often."""
        rng, q = self.rng, []
        units = []
        for joint in self.model.joints:
            units += ["rad" if u == "rad" else u for u in joint.kind.units]
            q.append(self._coordinates(joint.kind, n))
        nv = self.model.nv
        per = np.array([1.0 if u != "m" else self.size for u in units])
        v = rng.normal(size=(n, nv)) * per * 10.0 ** rng.uniform(-1.0, 1.0, (n, 1))
        v[rng.uniform(size=n) < 0.1] = 0.0
        force = np.array([self.mass * self.size * (self.size if u != "m" else 1.0) for u in units])
        tau = rng.normal(size=(n, nv)) * force * 10.0 ** rng.uniform(0.0, 1.0, (n, 1))
        tau[rng.uniform(size=n) < 0.1] = 0.0
        driven = [k for j in self.model.joints if j.driven for k in range(*self.model.v_slice(j.name).indices(nv))]
        tau[:, driven] = rng.normal(size=(n, len(driven))) * per[driven]
        q = np.concatenate(q, axis=1) if q else np.zeros((n, 0))
        if self.theme == "gimbal":
            near = rng.uniform(size=n) < 0.5
            away = 10.0 ** rng.uniform(-12.0, -1.0, n) * (rng.uniform(size=n) < 0.8)
            q[near, 1] = (rng.choice((-0.5, 0.5), n) * np.pi + away)[near]
        return q, v, tau

    def _coordinates(self, kind, n: int) -> np.ndarray:
        rng, out = self.rng, []
        if kind.name in ("spherical", "free", "general"):
            e = rng.normal(size=(n, 4))
            e[rng.uniform(size=n) < 0.05, 1:] = 0.0
            out.append(e / np.linalg.norm(e, axis=1)[:, None])
            if kind.name != "spherical":
                far = 10.0 ** (3.0 * (rng.uniform(size=(n, 1)) < 0.1))
                out.append(self.size * rng.uniform(-1.0, 1.0, (n, 3)) * far)
            return np.concatenate(out, axis=1)
        for unit in kind.units:
            x = rng.uniform(-1.0, 1.0, n) * (np.pi if unit == "rad" else self.size)
            right = rng.uniform(size=n) < 0.05
            x[right] = np.round(x[right] / (np.pi / 2)) * (np.pi / 2)
            often = rng.uniform(size=n) < 0.03
            x[often] *= 10.0 ** rng.uniform(0.0, 4.0, often.sum())
            x[rng.uniform(size=n) < 0.03] = 0.0
            out.append(x)
        return np.stack(out, axis=1) if out else np.zeros((n, 0))
