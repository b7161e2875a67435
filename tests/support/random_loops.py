"""Random closed mechanisms with a state at which their loops are closed: the raw material of test_loops.py.

A random tree stands in a random configuration q. Between two of its bodies (or a body and the world) a joint of a
random kind is put in so that its two frames fit at q: with the child frame at transform(c) in the parent frame, for
random coordinates c of the joint. Rows of a closure are kept only where they are independent of all before them and
well conditioned; a closure may then be doubled, so that the second one is redundant wherever the loops are closed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from dense_closures import ClosedReference

from spanloop import zoo
from spanloop.joints import KINDS
from spanloop.model.model import Model
from spanloop.model.parts import Loop, Placement
from spanloop.zoo.random_models import random_kind, random_position, random_rotation

CLOSING = tuple(name for name in KINDS if name != "free")
WELL_CONDITIONED = 100.0  # largest ratio of singular values of the rows, each of length 1 in the metric M⁻¹
_TRIES = 60


@dataclass(frozen=True)
class Case:
    """A closed mechanism, q (nq,) at which it is closed, v (nv,) that keeps it closed, tau (nv,)."""

    model: Model
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray


def random_loops(
    seed: int, n_loops: int | None = None, closing: str | None = None, doubled: bool = False, kinds=None
) -> Case:
    """A random tree of 4 to 9 bodies, closed by 1 to 4 loops (fewer where no more fit).

    closing: the kind of the first closure; doubled: is it there twice?; kinds: of the tree's joints, all if not given.
    """
    rng = np.random.default_rng(seed)
    wanted = int(rng.integers(1, 5)) if n_loops is None else n_loops
    while True:
        tree = zoo.random_model(int(rng.integers(10**6)), n_bodies=int(rng.integers(4, 10)), kinds=kinds)
        q, _ = tree.random_state(rng)
        model = _closed(tree, q, wanted, closing, rng)
        if model.loops:
            break
    if doubled:
        first = model.loops[0]
        model = replace(model, loops=(*model.loops, replace(first, name=f"{first.name}_again")))
    return moving(replace(model, name=f"random_loops{seed}"), q, rng)


def random_plane_loop(seed: int) -> Case:
    """Four to seven links on hinges and slides of one plane, closed by a hinge: of its five rows two are independent.

    The plane lies askew, so that nothing profits from zeros; a second, smaller loop may share some links.
    """
    rng = np.random.default_rng(seed)
    b = zoo.random_models.Builder(f"random_plane_loop{seed}", gravity=9.81 * _unit(rng))
    n = int(rng.integers(4, 8))
    turn = random_rotation(rng)
    parent = "world"
    for i in range(1, n + 1):
        zoo.random_models.add_random_body(b, f"body{i}", rng)
        place = (*rng.uniform(-0.4, 0.4, 2), rng.uniform(-0.1, 0.1))
        rotation = turn if i == 1 else None
        if rng.uniform() < 0.75 or i == 1:
            b.revolute(f"joint{i}", parent, f"body{i}", "z", place, rotation)
        else:
            b.prismatic(f"joint{i}", parent, f"body{i}", (*_direction(rng), 0.0), place)
        parent = f"body{i}"
    tree = b.build()
    q, _ = tree.random_state(rng)
    ends = [("world", f"body{n}")] + ([("body1", f"body{n - 1}")] if n > 5 else [])
    loops = tuple(fitted(tree, q, f"loop{k}", "revolute", a, b, rng, plane=turn) for k, (a, b) in enumerate(ends))
    return moving(replace(tree, loops=loops), q, rng)


def moving(model: Model, q: np.ndarray, rng: np.random.Generator) -> Case:
    """The mechanism at q with a random velocity that keeps its loops closed, and random torques."""
    v = ClosedReference(model, q).consistent(rng.normal(size=model.nv))
    return Case(model, q, v, rng.normal(size=model.nv))


def unequal(case: Case, decades: float, seed: int) -> Case:
    """The case with its bodies' inertias multiplied by random numbers that spread over this many decades."""
    rng = np.random.default_rng([seed, 77])
    bodies = []
    for body in case.model.bodies:
        factor, i = 10.0 ** rng.uniform(-decades / 2, decades / 2), body.inertia
        inertia = replace(i, mass=factor * i.mass, moments=tuple(factor * x for x in i.moments))
        bodies.append(replace(body, inertia=inertia))
    return replace(case, model=replace(case.model, bodies=tuple(bodies)).without_losses())


def scaled(case: Case, length: float) -> Case:
    """The case with all lengths multiplied; the same angles, and torques that cause the same accelerations of them."""
    q, v, tau = case.q.copy(), case.v.copy(), case.tau.copy()
    for joint in case.model.joints:
        at, rates = case.model.q_slice(joint.name), case.model.v_slice(joint.name)
        q[at] *= [length if x else 1.0 for x in joint.kind.lengths()]
        v[rates] *= [length if unit == "m" else 1.0 for unit in joint.kind.units]
        tau[rates] *= [length if unit == "m" else length**2 for unit in joint.kind.units]
    model = case.model.without_losses().scale(length=length)
    return Case(replace(model, gravity=tuple(length * x for x in case.model.gravity)), q, v, tau)


def condition(model: Model, q: np.ndarray) -> float:
    """Ratio of the singular values of J M^(-1/2), its rows scaled to length 1; infinite without full rank."""
    reference = ClosedReference(model, q)
    J = np.array(reference.closure_jacobian(), dtype=float)
    W = np.linalg.solve(np.linalg.cholesky(reference.mass_matrix()), J.T).T
    lengths = np.linalg.norm(W, axis=1, keepdims=True)
    if J.shape[0] > J.shape[1] or lengths.min() < 1e-9:
        return np.inf
    s = np.linalg.svd(W / lengths, compute_uv=False)
    return s[0] / max(s[-1], 1e-300)


def _closed(tree: Model, q, wanted: int, closing: str | None, rng) -> Model:
    """The tree with up to that many loops that fit together and leave it a freedom."""
    model = tree
    bodies = ["world", *(b.name for b in tree.bodies)]
    for _ in range(_TRIES):
        if len(model.loops) == wanted:
            break
        a, b = map(str, rng.choice(bodies, 2, replace=False))
        name = closing if closing and not model.loops else str(rng.choice(CLOSING))
        trial = replace(model, loops=(*model.loops, fitted(tree, q, f"loop{len(model.loops) + 1}", name, a, b, rng)))
        rows = sum(6 - x.kind.nv for x in trial.loops)
        if rows < tree.nv and condition(trial, q) < WELL_CONDITIONED:
            model = trial
    return model


def fitted(tree: Model, q, name: str, kind_name: str, a: str, b: str, rng, plane=None) -> Loop:
    """A loop between bodies a and b whose frames fit at q: P_b = X_b⁻¹ X_a P_a T(c)."""
    reference = ClosedReference(tree, q)
    X_a, X_b = reference.pose(a), reference.pose(b)
    P_a = np.eye(4)
    P_a[:3, :3], P_a[:3, 3] = random_rotation(rng), random_position(rng)
    kind = random_kind(kind_name, rng)
    if plane is not None:  # the axis z of the plane, seen from body a
        kind = KINDS["revolute"]()
        P_a[:3, :3] = X_a[:3, :3].T @ plane
    T = np.eye(4)
    x = kind.transform(kind.plus(kind.neutral(), rng.uniform(-1.0, 1.0, kind.nv).tolist()))
    T[:3, :3], T[:3, 3] = x.rotation.matrix(), x.translation
    return Loop(name, kind, a, b, _placement(P_a), _placement(np.linalg.inv(X_b) @ X_a @ P_a @ T))


def _placement(X: np.ndarray) -> Placement:
    return Placement(tuple(map(tuple, X[:3, :3].tolist())), tuple(X[:3, 3].tolist()))


def _direction(rng) -> tuple[float, float]:
    angle = rng.uniform(-np.pi, np.pi)
    return float(np.cos(angle)), float(np.sin(angle))


def _unit(rng) -> np.ndarray:
    a = rng.normal(size=3)
    return a / np.linalg.norm(a)
