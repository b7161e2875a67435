"""The numbered equations of docs/theory/elimination.md against dense algebra, on small mechanisms.

`Tree` takes a mechanism's numbers at a state (poses, inertias, wrenches of rows) and nothing else from the method;
`inward` is the recursion of the page in 6×6 matrices. Differences are of the order of rounding times the condition of
J M⁻¹Jᵀ, which is below 1e5 at these states: 1e-9 of the largest number.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import spanloop as sl
from spanloop import zoo
from spanloop.algorithms.closed import closure_correction, elimination
from spanloop.algorithms.closed.redundancy import find_redundancy
from spanloop.math.spatial import Force
from spanloop.sweeps import walk
from spanloop.topology import mechanism


def armature_on_the_free_body() -> sl.Model:
    """Arms on a free body, whose own joint has armature, another one for each direction."""
    model = zoo.arms_with_object(2, grasp="spherical")
    (free,) = (joint for joint in model.joints if joint.kind.name == "free")
    loaded = replace(free, armature=(0.3, 0.5, 0.7, 2.0, 3.0, 4.0))
    return replace(model, joints=tuple(loaded if joint is free else joint for joint in model.joints))


MODELS = {
    "rows that meet at the world": zoo.four_bar,
    "rows that meet at a moving link": lambda: zoo.n_four_bar(2),
    "arms on a free body": lambda: zoo.arms_with_object(2, grasp="spherical"),
    "arms on a free body with armature": armature_on_the_free_body,
    "loops inside arms on a free body": zoo.arms_with_linkage,
}
every_model = pytest.mark.parametrize("name", MODELS)


def same(found, expected) -> bool:
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    return bool(np.abs(found - expected).max(initial=0.0) <= 1e-9 * max(np.abs(expected).max(initial=0.0), 1.0))


class Tree:
    """A mechanism at a random closed state: what (1)-(4) are made of, and the library's answer."""

    def __init__(self, name: str):
        model = MODELS[name]()
        rng = np.random.default_rng(3)
        robot = sl.Dynamics(model)
        self.q = robot.assemble(robot.integrate(model.neutral(), 0.1 * rng.uniform(-1, 1, model.nv)))
        v, tau = rng.uniform(-1, 1, (2, model.nv))
        self.m, self.redundancy = mechanism(model), find_redundancy(mechanism(model))
        program = elimination.forward_dynamics(self.m, (), self.redundancy)
        kept: list = []
        program = replace(program, result=lambda m, here, world: kept.extend((here, world)) or [])
        walk(program, self.m, {"q": self.q.tolist(), "v": v.tolist(), "tau": tau.tolist()})
        self.here, self.world = kept
        self.accelerations = np.array([x for h in self.here for x in h.accelerations])
        self.parents = [link.parent for link in self.m.links]
        self.X = [np.array([tuple(h.X @ unit) for unit in _units()]).T for h in self.here]  # forces, to the parent
        self.S = [np.array([tuple(s) for s in h.S]).reshape(-1, 6) for h in self.here]
        self.I = [np.array(link.inertia.articulated().rows(), dtype=float) for link in self.m.links]
        self.rho = [link.armature for link in self.m.links]
        self.z = [np.array(tuple(h.z)) for h in self.here]
        self.torque = [h.torque for h in self.here]
        self.rows = sorted({r for h in self.here for r in h.own.K})
        self.K = [{r: np.array(tuple(k), dtype=float) for r, k in h.own.K.items()} for h in self.here]
        self.l = [dict(h.own.l) for h in self.here]
        self.ancestor = {r: c.meets for c in self.m.closures for r in c.rows}
        self.n = len(self.parents)

    def dense(self) -> tuple[np.ndarray, ...]:
        """M, h − τ, J and γ of (5), with the links' Jacobians from (1)."""
        A: list[np.ndarray] = []
        for i, link in enumerate(self.m.links):
            a = self.X[i].T @ A[link.parent] if link.parent >= 0 else np.zeros((6, self.m.nv))
            a[:, link.v] += self.S[i].T
            A.append(a)
        M = sum(a.T @ m @ a for a, m in zip(A, self.I, strict=True)) + np.diag(np.concatenate(self.rho))
        h = sum(a.T @ z for a, z in zip(A, self.z, strict=True)) - np.concatenate(self.torque)
        J = np.array([sum(A[i].T @ k[r] for i, k in enumerate(self.K) if r in k) for r in self.rows])
        return M, h, J, np.array([sum(l.get(r, 0.0) for l in self.l) for r in self.rows])


def _units():
    return [Force.of(row) for row in np.eye(6).tolist()]


def inward(tree: Tree, eliminate: bool = True):
    """Sections 2-4 of the page: P, z and K of every link, seen from its parent; L and l of the rows that are left."""
    rows, at = tree.rows, {r: k for k, r in enumerate(tree.rows)}
    P, z = [m.copy() for m in tree.I], [x.copy() for x in tree.z]
    K = [np.array([own.get(r, np.zeros(6)) for r in rows]) for own in tree.K]
    l = np.array([sum(own.get(r, 0.0) for own in tree.l) for r in rows])
    L = np.zeros((len(rows), len(rows)))
    L0 = np.zeros(len(rows))
    for i in reversed(range(tree.n)):
        for r in [r for r in rows if tree.ancestor[r] == i and eliminate]:
            k = at[r]
            pivot, k_r, L_r, l_r = L[k, k], K[i][k].copy(), L[k].copy(), l[k]
            P[i] = P[i] + np.outer(k_r, k_r) / pivot  # (15)
            z[i] = z[i] + k_r * l_r / pivot
            K[i] = K[i] - np.outer(L_r, k_r) / pivot
            l, L = l - L_r * l_r / pivot, L - np.outer(L_r, L_r) / pivot
        if tree.m.links[i].floats:
            continue
        for s, t, rho in zip(tree.S[i], tree.torque[i], tree.rho[i], strict=True):
            U = P[i] @ s
            D = s @ U + rho
            G, e, kappa = U / D, t - s @ z[i], K[i] @ s  # (9)
            P[i], z[i], K[i] = P[i] - np.outer(G, U), z[i] + G * e, K[i] - np.outer(kappa, G)  # (10)
            l, L, L0 = l + kappa * e / D, L + np.outer(kappa, kappa) / D, L0 + kappa**2 / D  # (11), (19)
        p = tree.parents[i]
        if p >= 0:
            P[p], z[p], K[p] = P[p] + tree.X[i] @ P[i] @ tree.X[i].T, z[p] + tree.X[i] @ z[i], K[p] + K[i] @ tree.X[i].T
    return P, z, K, l, L, L0  # (8), (13)


def root(tree: Tree):
    """A, b of (17) with the rows that reach the world first, and how many these are."""
    P, z, K, l, L, _ = inward(tree)
    left = [k for k, r in enumerate(tree.rows) if tree.ancestor[r] < 0]
    free = [i for i in range(tree.n) if tree.m.links[i].floats]
    A, b = L[np.ix_(left, left)], -l[left]
    for i in free:
        border = K[i][left]  # Kᵀ
        own = -(P[i] + np.diag(tree.rho[i]))
        A = np.block([[A, np.vstack([border, np.zeros((len(A) - len(left), 6))])], [np.zeros((6, len(A))), own]])
        A[-6:, : len(left)] = border.T
        b = np.concatenate([b, z[i] - np.array(tree.torque[i])])
    return A, b, left, free


@pytest.fixture(scope="module")
def trees():
    return {name: Tree(name) for name in MODELS}


@pytest.mark.slow
@every_model
def test_accelerations_solve_the_equations_of_motion(trees, name):
    """(5)"""
    tree = trees[name]
    M, h, J, gamma = tree.dense()
    n, k = len(M), len(J)
    solution = np.linalg.solve(np.block([[M, -J.T], [J, np.zeros((k, k))]]), np.concatenate([-h, -gamma]))
    assert same(tree.accelerations, solution[:n])
    forces = {r: f for h in tree.here for r, f in h.f.items()}
    assert same([forces[r] for r in tree.rows], solution[n:])


@pytest.mark.slow
def test_admittance_and_bias_of_the_rows_at_the_world(trees):
    """(7)-(13): L = J M⁻¹Jᵀ and l = γ + J M⁻¹(τ − h); the scale L⁰ of (19) is the diagonal of L."""
    tree = trees["rows that meet at the world"]
    M, h, J, gamma = tree.dense()
    _, _, _, l, L, L0 = inward(tree)
    assert same(L, J @ np.linalg.solve(M, J.T))
    assert same(l, gamma - J @ np.linalg.solve(M, h))
    assert same(L0, np.diag(L))
    assert same([tree.world.rows.admittance(r, s) for r in tree.rows for s in tree.rows], L.ravel())
    assert same([tree.world.rows.l[r] for r in tree.rows], l)


@pytest.mark.slow
def test_scales_are_admittances_before_any_elimination(trees):
    """(19), where rows are eliminated on the way."""
    tree = trees["rows that meet at a moving link"]
    M, _, J, _ = tree.dense()
    _, _, _, _, L, L0 = inward(tree, eliminate=False)
    assert same(L, J @ np.linalg.solve(M, J.T))
    assert same(L0, np.diag(L))


@pytest.mark.parametrize("name", ["rows that meet at a moving link", "loops inside arms on a free body"])
def test_a_loop_becomes_part_of_its_ancestors_inertia(trees, name):
    """(14), (15): rows that met on the way have left L, l and K; the library has the same pivots."""
    tree = trees[name]
    assert any(i >= 0 for i in tree.ancestor.values())
    _, _, K, l, L, _ = inward(tree)
    for k, r in enumerate(tree.rows):
        if tree.ancestor[r] >= 0:
            assert same(L[k], 0.0 * L[k])
            assert abs(l[k]) < 1e-9
            above = tree.ancestor[r]
            assert same(K[above][k], np.zeros(6))


@every_model
def test_the_root_system_gives_the_rows_forces_and_the_bodies_accelerations(trees, name):
    """(16), (17)"""
    tree = trees[name]
    A, b, left, free = root(tree)
    if not len(A):
        return
    x = np.linalg.solve(A, b)
    assert same([tree.world.f[tree.rows[k]] for k in left], x[: len(left)])
    assert same([y for i in free for y in tree.here[i].free_acceleration], x[len(left) :])


@pytest.mark.parametrize("name", ["arms on a free body", "arms on a free body with armature"])
def test_what_is_left_for_a_free_body_is_a_six_by_six(trees, name):
    """(18)"""
    tree = trees[name]
    P, z, K, l, L, _ = inward(tree)
    (i,) = (i for i in range(tree.n) if tree.m.links[i].floats)
    for first in tree.m.closures:
        others = [k for k, r in enumerate(tree.rows) if r not in first.rows]
        own = [k for k, r in enumerate(tree.rows) if r in first.rows]
        assert same(L[np.ix_(own, others)], np.zeros((len(own), len(others))))  # a block for each arm
    left = -(P[i] + np.diag(tree.rho[i]) + K[i].T @ np.linalg.solve(L, K[i]))
    a = np.linalg.solve(left, z[i] - np.array(tree.torque[i]) + K[i].T @ np.linalg.solve(L, l))
    assert same(tuple(tree.here[i].free_acceleration), a)


def test_the_refinement_leaves_the_added_pivots_times_its_step(trees):
    """(20)-(22), for pivots that are raised by much more than a clamp would."""
    A, b, left, _ = root(trees["arms on a free body"])
    E = np.diag(np.concatenate([1e-3 * np.diag(A)[: len(left)], np.zeros(len(A) - len(left))]))
    first = np.linalg.solve(A + E, b)
    assert same(b - A @ first, E @ first)
    step = np.linalg.solve(A + E, b - A @ first)
    assert same(b - A @ (first + step), E @ step)
    errors = [np.linalg.norm(x - np.linalg.solve(A, b)) for x in (first, first + step)]
    assert errors[1] < 0.1 * errors[0]


@every_model
def test_rows_that_are_dropped_depend_on_the_others(trees, name):
    """(23): the rows that are kept have full rank, and as much as all rows."""
    tree = trees[name]
    kept = [r for r in range(tree.m.n_rows) if r not in tree.redundancy.dropped]
    assert kept == tree.rows
    for J in tree.redundancy.jacobians:
        assert np.linalg.matrix_rank(J[kept], tol=1e-6) == len(kept) == np.linalg.matrix_rank(J, tol=1e-6)


@every_model
def test_a_correction_is_the_acceleration_of_a_mechanism_at_rest(trees, name):
    """(24), and no other change that closes the loops has less kinetic energy."""
    tree = trees[name]
    program = closure_correction.position_correction(tree.m, tree.redundancy)
    rng = np.random.default_rng(5)
    error = rng.uniform(-1, 1, tree.m.n_rows)
    found = np.array(walk(program, tree.m, {"q": tree.q.tolist(), "error": error.tolist()}))
    J = sl.Dynamics(MODELS[name]()).closure_jacobian(tree.q)[tree.rows]
    M, e = tree.dense()[0], error[tree.rows]
    expected = -np.linalg.solve(M, J.T) @ np.linalg.solve(J @ np.linalg.solve(M, J.T), e)
    assert same(found, expected)
    other = rng.uniform(-1, 1, len(M))
    other -= np.linalg.pinv(J) @ (J @ other)  # keeps J δ
    assert found @ M @ found < (found + other) @ M @ (found + other)
