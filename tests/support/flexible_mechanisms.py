"""Models with flexible bodies, and states of them at which modes are bent: for tests of many functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from flexible_reference import Reference

import spanloop as sl

ENDS = ("whip.tip", "tool")  # frames b and a of the loop


def tube(length: float = 0.8, **options) -> sl.flexible.Beam:
    """A thin tube of aluminium."""
    return sl.flexible.beam(length, 7e10, 2700.0, sl.flexible.tube(0.02, 0.002), elements=4, **options)


def tree() -> sl.Model:
    """Two flexible bodies, of 12 and of 5 modes, rigid ones before, between and beside them."""
    return tree_parts().build()


def tree_parts() -> sl.Builder:
    """The same, for more parts to come."""
    b = sl.Builder("flexible tree", gravity=(0.3, -0.4, -9.0))
    b.body("base", 2.0, (0.1, 0.0, 0.2), (0.1, 0.2, 0.15)).revolute("yaw", "world", "base", "z")
    b.body("boom", flexible=tube(nodes={"middle": 0.4}, modes={"y": 1, "z": 1, "torsion": 0}, damping=0.01))
    b.revolute("shoulder", "base", "boom", "y", (0.1, 0.0, 0.3), armature=0.02)
    b.body("arm", 0.7, (0.2, 0.01, 0.0), (0.01, 0.02, 0.02))
    b.revolute("elbow", "boom.tip", "arm", "y", (0.05, 0.0, 0.02), damping=0.1)
    b.body("slider", 0.4, (0.0, 0.02, 0.1), (0.01, 0.01, 0.02)).prismatic("slide", "boom.middle", "slider", "x")
    b.body("whip", flexible=tube(modes={"y": 1, "z": 0}, theory="timoshenko"))
    b.revolute("wrist", "arm", "whip", "z", (0.4, 0.0, 0.0))
    return b.frame("tool", "arm", (0.3, 0.1, 0.05))


def loop() -> sl.Model:
    """A four-bar whose crank and rocker bend, closed by a ball at the tip of one of them."""
    b = sl.Builder("flexible loop")
    b.body("boom", flexible=tube(nodes={"middle": 0.4}, modes={"y": 1, "z": 1})).revolute("drive", "world", "boom", "z")
    b.body("arm", 0.5, (0.4, 0.0, 0.0), (0.01, 0.03, 0.03)).revolute("pin", "boom.tip", "arm", "z")
    b.body("whip", flexible=tube(modes={"y": 1, "z": 0})).revolute("pivot", "world", "whip", "z", (1.0, 0.1, 0.0))
    b.frame("tool", "arm", (0.9, 0.0, 0.0))
    return b.loop("tool", "whip.tip", "spherical").build()


@dataclass(frozen=True, eq=False)
class Case:
    """A model, its dense reference, and a state with bent modes at which loops are closed."""

    model: sl.Model
    reference: Reference
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray  # also torques, where a function takes torques

    @cached_property
    def M(self) -> np.ndarray:
        return self.reference.mass_matrix(self.q)

    @cached_property
    def h(self) -> np.ndarray:
        return self.reference.bias(self.q, self.v)

    @cached_property
    def rows(self) -> np.ndarray:
        """Jacobian (3, nv) of the ball, in world axes; none of a tree."""
        J = [self.jacobian(name)[3:] for _ in self.model.loops for name in ENDS]
        return J[0] - J[1] if J else np.zeros((0, self.model.nv))

    @cached_property
    def row_bias(self) -> np.ndarray:
        """The acceleration (3,) of its ends on each other while a = 0, in world axes."""
        g = [self.reference.jacobian_bias(x, self.q, self.v)[3:] for _ in self.model.loops for x in ENDS]
        return g[0] - g[1] if g else np.zeros(0)

    @lru_cache  # noqa: B019
    def jacobian(self, frame: str) -> np.ndarray:
        """Of a frame, (6, nv), in world axes."""
        return self.reference.jacobian(frame, self.q)

    def response(self, force: np.ndarray) -> np.ndarray:
        """Y f: accelerations (nv,) under forces along the DoF from rest, loops closed."""
        n, k = len(force), len(self.rows)
        whole = np.block([[self.M, self.rows.T], [self.rows, np.zeros((k, k))]])
        return np.linalg.solve(whole, np.concatenate([force, np.zeros((k, *force.shape[1:]))]))[:n]


@lru_cache
def case(name: str) -> Case:
    """The tree or the loop at a state: seed 7."""
    rng = np.random.default_rng(7)
    model = {"tree": tree, "loop": loop}[name]()
    bent = np.concatenate([np.full(j.kind.nq, 0.02 if j.kind.bends else 0.5) for j in model.joints])
    q = rng.normal(size=model.nq) * bent
    v, a = rng.normal(size=model.nv), rng.normal(size=model.nv)
    if model.loops:
        robot = sl.Dynamics(model, target="python")
        start = q + 0.0
        start[model.q_slice("drive")] = 1.2
        q = np.asarray(robot.assemble(start, fixed=["boom.modes", "whip.modes"]))
    made = Case(model, Reference(model), q, v, a)
    J, M = made.rows, made.M
    v = v - np.linalg.solve(M, J.T) @ np.linalg.solve(J @ np.linalg.solve(M, J.T), J @ v) if model.loops else v
    return Case(model, made.reference, q, v, a)
