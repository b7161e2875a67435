"""Dense and sparse LDLᵀ, admittances and dual bases agree with their definitions, as NumPy evaluates them."""

from __future__ import annotations

import numpy as np
import pytest

from spanloop.math.admittance import Admittance
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.sparse_ldl import SparseLDL, System, block_order
from spanloop.math.spatial import Force, Motion, dof_acceleration, dual_basis, power
from spanloop.math.symmetric import (
    LDL,
    PIVOT_TOLERANCE,
    clamped_inverse,
    guarded_inverse,
    inverse,
    mirrored,
    pivot_bounds,
    root,
    solve,
)

SIZES = range(1, 8)
EXACT = 1e-12  # matrices below have condition numbers of at most some hundred


def positive(n: int, seed: int = 0) -> np.ndarray:
    """A symmetric positive definite matrix (n, n)."""
    A = np.random.default_rng(1000 * n + seed).normal(size=(n, n))
    return A @ A.T + n * np.eye(n)


@pytest.mark.parametrize("n", SIZES)
def test_the_factors_are_those_of_the_matrix(n):
    A = positive(n)
    factors = LDL(A.tolist())
    L = np.eye(n) + np.array(factors.lower)
    np.testing.assert_allclose(L @ np.diag(factors.pivots) @ L.T, A, atol=EXACT)
    np.testing.assert_allclose(factors.inverse_pivots, 1.0 / np.array(factors.pivots), rtol=EXACT)


@pytest.mark.parametrize("n", SIZES)
def test_solution_inverse_and_root(n):
    A, b = positive(n), np.arange(1.0, n + 1.0)
    np.testing.assert_allclose(solve(A.tolist(), b.tolist()), np.linalg.solve(A, b), atol=EXACT)
    np.testing.assert_allclose(inverse(A.tolist()), np.linalg.inv(A), atol=EXACT)
    np.testing.assert_allclose(root(A.tolist()), np.linalg.cholesky(A), atol=EXACT)


@pytest.mark.parametrize("n", SIZES)
def test_the_sparse_factors_solve_in_any_order(n):
    A, b = positive(n), np.arange(1.0, n + 1.0)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(n).tolist()
        x = SparseLDL(System.of(A.tolist()), order).solve(dict(enumerate(b.tolist())))
        np.testing.assert_allclose([x[k] for k in range(n)], np.linalg.solve(A, b), atol=EXACT)


def test_a_product_with_a_sparse_system_is_that_with_its_matrix():
    A, x = positive(5), np.arange(5.0)
    found = System.of(A.tolist()).times(dict(enumerate(x.tolist())))
    np.testing.assert_allclose([found[k] for k in range(5)], A @ x, atol=EXACT)


def test_leaves_first_a_tree_fills_no_zero():
    """Three branches on one trunk: the trunk, 0, comes last in the order."""
    A = np.diag([5.0, 2.0, 3.0, 4.0])
    A[0, 1:] = A[1:, 0] = 1.0
    factors = SparseLDL(System.of(A.tolist()), (3, 2, 1, 0))
    assert [len(gains) for _, _, gains in factors.steps] == [1, 1, 1, 0]
    worst = SparseLDL(System.of(A.tolist()), (0, 1, 2, 3))
    assert [len(gains) for _, _, gains in worst.steps] == [3, 2, 1, 0]


def test_the_order_of_little_fill_leaves_the_hub_for_the_end():
    system = System.of([[5.0], [1.0, 2.0], [1.0, 0.0, 3.0], [1.0, 0.0, 0.0, 4.0]])
    order, _ = block_order({k: [k] for k in range(4)}, system, lambda block: False)
    assert order.index(0) >= 2  # with one leaf left, hub and leaf cost the same


def test_a_row_without_a_pivot_is_left_out():
    A = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])  # the second row repeats the first
    bounds = pivot_bounds(A.diagonal().tolist(), "aab")
    assert bounds == [PIVOT_TOLERANCE * 2.0, PIVOT_TOLERANCE * 2.0, PIVOT_TOLERANCE * 2.0]
    factors = LDL(A.tolist(), lambda k, pivot: guarded_inverse(pivot, bounds[k]))
    assert factors.inverse_pivots == [1.0, 0.0, 0.5]
    assert factors.solve([3.0, 3.0, 4.0]) == [3.0, 0.0, 2.0]


def test_pivots_are_guarded_or_clamped():
    assert guarded_inverse(4.0, 1.0) == 0.25
    assert guarded_inverse(1.0, 1.0) == guarded_inverse(0.0, 1.0) == 0.0
    assert clamped_inverse(4.0, 2.0) == 0.25
    assert clamped_inverse(1.0, 2.0) == clamped_inverse(0.0, 2.0) == 0.5


def test_one_half_makes_a_symmetric_matrix():
    assert mirrored(2, [{(0, 0): 1.0}, {(0, 1): 2.0}]) == [[1.0, 2.0], [2.0, 0.0]]


# ---- one degree of freedom


def six(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=6)


AXIS = np.eye(6)[2]


@pytest.mark.parametrize("armature", [0.0, 0.3])
@pytest.mark.parametrize("s", [AXIS, np.eye(6)[4], six(1)], ids=["turn", "slide", "any"])
def test_an_admittance_beyond_a_joint_is_the_products_that_define_it(s, armature):
    Y, P = positive(6, 1), positive(6, 2)
    U = P @ s
    D = s @ U + armature
    G = U / D
    whole = ArticulatedInertia.of_rows(Y.tolist())
    found = Admittance(whole.angular, whole.coupling, whole.linear).joined(
        Motion.of(s.tolist()), Force.of(G.tolist()), 1.0 / D
    )
    tau = np.eye(6) - np.outer(G, s)
    np.testing.assert_allclose(found.rows(), tau.T @ Y @ tau + np.outer(s, s) / D, atol=1e-11)


@pytest.mark.parametrize("s", [AXIS, six(3)], ids=["turn", "any"])
def test_a_joints_rate_is_its_residual_less_the_gain_times_the_motion(s):
    G, m = six(4), six(5)
    found = dof_acceleration(0.7, Force.of(G.tolist()), Motion.of(s.tolist()), Motion.of(m.tolist()))
    assert found == pytest.approx(0.7 - G @ m, abs=EXACT)


@pytest.mark.parametrize("n", range(1, 7))
def test_a_dual_basis_measures_one_column_each(n):
    columns = [Motion.of(six(10 + k).tolist()) for k in range(n)]
    gram = [[power(s, w) for s in columns] for w in dual_basis(columns)]
    np.testing.assert_allclose(gram, np.eye(n), atol=1e-11)
