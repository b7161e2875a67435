"""The impulse solve: closed forms of one point, redundant points, random problems, lanes, float32."""

from __future__ import annotations

import contact_problems as made
import numpy as np
import pytest

from spanloop.algorithms.contact.friction_cone import jam, pressing
from spanloop.compiler.render.rollout import rollout
from spanloop.contacts.solver.problem import OneProblem, _rollout, solve

SOLVED = 1e-12  # m/s


def ball(points: int = 1) -> np.ndarray:
    """W of a ball of 2 kg that is touched at one place, so often."""
    return np.tile(np.diag([0.5, 1.75, 1.75]), (points, points))


def box(n: int) -> tuple[np.ndarray, np.ndarray]:
    """J of n points below a box of 3 kg with half sizes 0.2, 0.15, 0.1 m; M⁻¹."""
    half = np.array([[0.2, 0.15, 0.1]])
    J, inverse = made.body(made.face(half, n, 2, -1), made.UP, np.array([3.0]), half)
    return J[0], inverse[0]


def test_a_point_that_leaves_has_no_impulse():
    assert (solve(ball(), [0.1, 2.0, 0.0], [0.5]).f == 0.0).all()


def test_a_point_sticks_inside_its_cone():
    found = solve(ball(), [-0.5, 0.3, 0.4], [0.5])
    np.testing.assert_allclose(found.f[0], [1.0, -0.3 / 1.75, -0.4 / 1.75], atol=1e-15)
    assert found.residual <= SOLVED


def test_a_point_slips_against_its_velocity():
    found = solve(ball(), [-0.5, 3.0, 4.0], [0.5])
    np.testing.assert_allclose(found.f[0], [1.0, -0.3, -0.4], atol=1e-15)


@pytest.mark.parametrize("tilt", [-0.3, 0.3])
def test_slip_and_pressure_of_a_coupled_point_solve_one_another(tilt):
    """W couples normal and tangent, as below a rod: f_n = −b_n / n·W(n − µ d), where d is the slip's direction."""
    W, b, friction = np.array([[1.0, tilt, 0.0], [tilt, 1.0, 0.0], [0.0, 0.0, 1.0]]), [-1.0, 9.0, 0.0], 0.5
    normal = 1.0 / pressing(W.ravel(), friction, (1.0, 0.0))
    np.testing.assert_allclose(solve(W, b, [friction]).f[0], [normal, -friction * normal, 0.0], atol=1e-14)


def test_without_friction_impulses_are_normal():
    found = solve(ball(2), [-0.5, 3.0, 4.0] * 2, [0.0, 0.0])
    np.testing.assert_allclose(found.f, [[0.5, 0.0, 0.0]] * 2, atol=1e-9)
    assert found.residual <= SOLVED


def test_torsion_and_rolling_have_discs_of_their_own():
    """Moments below their limits stop the spin, others oppose it."""
    W, k = np.diag([0.5, 1.75, 1.75, 10.0, 20.0, 20.0]), [[0.5, 0.02, 0.01]]
    stopped = solve(W, [-0.5, 0.0, 0.0, 0.1, 0.06, 0.08], k).f[0]
    np.testing.assert_allclose(stopped, [1.0, 0.0, 0.0, -0.01, -0.003, -0.004], atol=1e-15)
    slipping = solve(W, [-0.5, 3.0, 4.0, -9.0, 6.0, 8.0], k).f[0]
    np.testing.assert_allclose(slipping, [1.0, -0.3, -0.4, 0.02, -0.006, -0.008], atol=1e-15)


@pytest.mark.parametrize("n", [4, 8])
def test_redundant_points_of_a_box_carry_its_weight_exactly(n):
    """The resultant holds the box, and from nothing the impulses are the least."""
    J, inverse = box(n)
    v = np.array([0.0, 0.0, 0.0, 2e-3, 0.0, -9.81e-3])
    found = solve(J @ inverse @ J.T, J @ v, np.full(n, 0.5))
    np.testing.assert_allclose(inverse @ J.T @ found.f.ravel(), -v, atol=1e-15)
    np.testing.assert_allclose(found.f.ravel(), -np.linalg.pinv(J.T) @ np.linalg.solve(inverse, v), atol=1e-9)


@pytest.mark.parametrize("n", [4, 8])
def test_a_split_that_solves_the_problem_stays(n):
    J, inverse = box(n)
    W, v = J @ inverse @ J.T, np.array([0.0, 0.0, 0.0, 2e-3, 0.0, -9.81e-3])
    f = solve(W, J @ v, np.full(n, 0.5)).f
    uneven = f.copy()
    uneven[:4, 0] += 1e-3 * np.array([1.0, -1.0, 1.0, -1.0])  # presses one diagonal more: no resultant
    np.testing.assert_allclose(solve(W, J @ v, np.full(n, 0.5), uneven).f, uneven, atol=1e-9)
    shared = solve(W, 1.1 * (J @ v), np.full(n, 0.5), uneven).f
    assert np.abs(shared - uneven).max() < 0.2 * np.abs(f).max()  # nearest to the last


def test_points_that_are_off_take_no_part():
    J, inverse = box(8)
    W, v = J @ inverse @ J.T, np.array([0.3, 0.2, 0.1, 0.5, -0.3, -0.4])
    on = np.array([1.0] * 4 + [0.0] * 4)
    guess = np.outer(1.0 - on, [1.0, 0.0, 0.0])
    found, four = solve(W, J @ v, np.full(8, 0.5), guess, on=on), solve(W[:12, :12], (J @ v)[:12], [0.5] * 4)
    assert (found.f[4:] == 0.0).all()
    np.testing.assert_allclose(J.T @ found.f.ravel(), J[:12].T @ four.f.ravel(), atol=1e-12)


def test_softness_adds_to_the_normal():
    assert np.isclose(solve(ball(), [-0.5, 0.0, 0.0], [0.5], soft=[0.5]).f[0, 0], 0.5, rtol=1e-14)


def test_a_slip_that_is_given_has_its_friction_even_at_rest():
    found = solve(ball(), [-0.5, 0.0, 0.0], [0.5], toward=[[0.6, 0.8]])
    np.testing.assert_allclose(found.f[0], [1.0, -0.3, -0.4], atol=1e-15)


@pytest.mark.parametrize(("friction", "jams"), [(1.2, False), (4 / 3 + 1e-9, True)])
def test_painleves_rod_jams_from_four_thirds_on(friction, jams):
    """Of a rod with tan θ = 2 sliding on its tip: n·W(n − µ d) = 1.6 − 1.2 µ, times 1/m."""
    W = np.array([1.6, 1.2, 0.0, 1.2, 3.4, 0.0, 0.0, 0.0, 4.0])
    assert jam(W, friction, (1.0, 0.0)) == jams
    found = solve(W.reshape(3, 3), [-0.1, 2.0, 0.0], [friction], toward=[[1.0, 0.0]])
    assert (found.residual > 1e-3) == jams  # no impulse answers, and that is reported


DAILY = ("box, 8 points", "quadruped, 4")


@pytest.mark.parametrize(
    "family", [x if x in DAILY else pytest.param(x, marks=pytest.mark.slow) for x in made.FAMILIES]
)
def test_random_problems_are_solved_to_rounding(family):
    rng = np.random.default_rng(17)
    for kind in made.MOTIONS:
        W, b, friction = made.problems(rng, family, kind, 40)
        found = solve(W, b, friction)
        bound = np.maximum(SOLVED, made.rounding(W, b, found.f))
        measured = made.natural_residual(W, b, friction, found.f)
        assert (measured > bound).sum() <= 1, kind  # none here, and one in 20 000; rounding decides which
        assert (measured <= 1.01 * found.residual + bound).all()  # what is not solved is known


def test_a_problem_without_an_answer_reports_its_residual():
    """Pinched from both sides, and asked to leave both."""
    W = np.kron([[1.0, -1.0], [-1.0, 1.0]], np.diag([1.0, 0.0, 0.0])) + np.kron(np.eye(2), np.diag([0.0, 1.0, 1.0]))
    assert solve(W, [-1.0, 0.0, 0.0] * 2, [0.3, 0.3]).residual > 0.1


def test_a_problem_has_the_same_bits_alone_and_among_others():
    W, b, friction = made.problems(np.random.default_rng(5), "quadruped, 4", "falling", 11)
    together, one = solve(W, b, friction), OneProblem(4)
    for k in range(11):
        one.W[:], one.b[:], one.friction[:], one.f[:] = W[k].reshape(4, 3, 4, 3), b[k].reshape(4, 3), friction[k], 0.0
        assert one.solve() == together.residual[k]
        assert (one.f == together.f[k]).all()
    some = solve(W[3:6], b[3:6], friction[3:6])
    assert (some.f == together.f[3:6]).all()


def test_a_problem_that_is_no_number_does_not_disturb_others():
    W, b, friction = made.problems(np.random.default_rng(5), "box, 8 points", "falling", 8)
    alone = solve(W, b, friction)
    b[3, 4] = np.nan
    found, others = solve(W, b, friction), np.arange(8) != 3
    assert (found.f[others] == alone.f[others]).all()
    assert found.residual[3] > 1.0
    assert found.steps[3] == 0


@pytest.mark.parametrize("family", ["box, 8 points", "quadruped, 4"])
def test_float32_solves_to_its_own_rounding(family):
    W, b, friction = made.problems(np.random.default_rng(6), family, "falling", 64)
    found = solve(W, b, friction, dtype="float32")
    sums = np.einsum("nij,nj->ni", np.abs(W), np.abs(found.f).reshape(64, -1)).max(1) + np.abs(b).max(1)
    assert found.f.dtype == np.float32
    assert (found.residual < 4e-6 * sums).all()  # some 30 units in the last place


def test_code_does_not_grow_with_the_number_of_points():
    small, large = (len(rollout(_rollout(n, 3, "float64").schedule, "double", 1)) for n in (4, 32))
    assert large < 2 * small  # W has 64 times as many numbers; arrays that come and go are copied
