"""Operators of closures: A, Λ, b, the root of D, and eq. 3.13 typed as printed. [Rodriguez, Jain & Kreutz]

    β̇ = [I − HψK]* D^(−1/2) [I − b (AΛA*)⁻¹ b*] D^(−1/2) [I − HψK] T̂,   b = D^(−1/2) H ψ B A*

for U = 0, that is at rest, against accelerations from a dense solution in 50 digits.
"""

from __future__ import annotations

import numpy as np
import pytest
from closed_answers import AGREE, case_of, difference
from dense_driven import exact
from singular_cases import CASES as SINGULAR

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, StateError, UnsupportedError
from spanloop.kernels import KernelSpec

# arms with an object; one planar loop, whose redundant rows are left out; loops in both systems; all kinds of joints
NAMES = ("four_bar", "arms 2", "arms 2 ball", "arms with linkage", "random 3", "doubled 3", "plane 2")


class Closed:
    def __init__(self, name: str):
        case = case_of(name)
        self.model, self.q = case.model.without_losses(), case.q
        self.S = sl.operators(self.model, self.q)
        self.robot = sl.Dynamics(self.model, target="python")
        kept = sorted(self.S.algebra.kept())
        self.J = self.robot.closure_jacobian(self.q)[kept]
        self.M = np.array(self.robot.mass_matrix(self.q))


@pytest.fixture(scope="module", params=NAMES)
def closed(request):
    return Closed(request.param)


def near(found, expected, bound=1e-10):
    assert np.abs(found - expected).max(initial=0.0) <= bound * max(np.abs(expected).max(initial=0.0), 1e-2)


def dynamics(S):
    """3.13. The root of D is a triangular one, so that the left one is transposed."""
    A, Lam, b, root, whitening = S.A, S.Lam, S.b, S.D_root, 1 - S.H @ S.psi @ S.K
    middle = 1 - b @ (A @ Lam @ A.T).inverse() @ b.T
    return whitening.T @ root.inverse().T @ middle @ root.inverse() @ whitening


def test_a_times_j_is_the_jacobian_of_the_closures(closed):
    """2.16: the rows that are kept, in the axes of the closures' child frames."""
    near((closed.S.A @ closed.S.J).matrix(), closed.J, 1e-13)
    near((closed.S.J.T @ closed.S.A.T).matrix(), closed.J.T, 1e-13)
    assert np.linalg.matrix_rank(closed.J) == len(closed.J)


def test_lambda_is_the_admittance_of_the_points_of_closure(closed):
    """3.10: Λ = B*ΩB = J M⁻¹ J*."""
    J = closed.S.J.matrix()
    near(closed.S.Lam.matrix(), J @ np.linalg.solve(closed.M, J.T))


@pytest.mark.slow
def test_b_is_a_root_of_the_admittance_of_the_rows(closed):
    """b*b = A Λ A* = (AJ) M⁻¹ (AJ)*."""
    S = closed.S
    expected = closed.J @ np.linalg.solve(closed.M, closed.J.T)
    near((S.b.T @ S.b).matrix(), expected)
    near((S.A @ S.Lam @ S.A.T).matrix(), expected)
    near((S.A @ S.Lam @ S.A.T).inverse().matrix() @ expected, np.eye(len(expected)), 1e-9)


@pytest.mark.slow
def test_the_middle_of_3_13_is_a_projector(closed):
    """Onto motions that no closure feels, in the whitened joints: I − b (b*b)⁻¹ b*."""
    S = closed.S
    P = (1 - S.b @ (S.A @ S.Lam @ S.A.T).inverse() @ S.b.T).matrix()
    near(P @ P, P)
    near(P, P.T)
    near(P @ S.b.matrix(), np.zeros(S.b.shape), 1e-9)
    assert np.trace(P) == pytest.approx(closed.model.nv - len(closed.J), abs=1e-8)


@pytest.mark.slow
def test_3_13_gives_the_accelerations_of_the_closed_mechanism(closed):
    """At rest, gravity being part of T̂ = tau − C."""
    tau = np.random.default_rng(1).normal(size=closed.model.nv)
    T = tau - closed.robot.bias(closed.q, np.zeros(closed.model.nv))
    a = dynamics(closed.S) @ T
    assert difference(a, exact(closed.model, closed.q, np.zeros(closed.model.nv), tau)) < AGREE
    near(closed.S.A @ (closed.S.J @ a), np.zeros(len(closed.J)), 1e-9 * np.abs(a).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar", "arms 2 ball"])
@pytest.mark.parametrize("target", ["cpu", "python"])
def test_3_13_becomes_a_kernel(name, target):
    """One state and a batch; vectors of rows as inputs and answers."""
    c = Closed(name)
    S = sl.operators(c.model)
    tau = np.random.default_rng(1).normal(size=(3, c.model.nv))
    kernel = sl.compile(c.model, dynamics(S), target=target)
    expected = np.array([dynamics(c.S) @ x for x in tau])
    near(kernel(c.q, tau[0]), expected[0])
    near(kernel(np.stack([c.q] * 3), tau), expected)
    f, T = S.vector("f", "rows"), S.vector("T")
    rows = sl.compile(c.model, S.b.T @ T - 2 * (S.A @ S.Lam @ S.A.T) @ f, target=target)
    push = np.random.default_rng(2).normal(size=len(c.J))
    near(rows(c.q, tau[0], push), c.S.b.T @ tau[0] - 2 * ((c.S.A @ c.S.Lam @ c.S.A.T) @ push))


def test_live_parameters_reach_the_closures():
    c = Closed("four_bar")
    kernel = sl.compile(c.model, dynamics(sl.operators(c.model)), parameters="live")
    T, values = np.arange(1.0, 1.0 + c.model.nv), c.model.parameters().values
    near(kernel(c.q, T, values), dynamics(c.S) @ T)


def test_without_closures_the_tree_is_recovered():
    """3.7: A = 0 and the middle term is I."""
    model = zoo.tree(4, seed=2)
    q, _ = model.random_state(np.random.default_rng(0))
    S = sl.operators(model, q)
    whitening, root = 1 - S.H @ S.psi @ S.K, S.D_root
    near(
        (whitening.T @ root.inverse().T @ root.inverse() @ whitening).matrix(),
        sl.Dynamics(model).mass_matrix_inverse(q),
    )
    for name in ("A", "Lam", "b"):
        with pytest.raises(InputError, match=f"{name} is an operator of loops; model '.*' has none"):
            getattr(S, name)


@pytest.mark.slow
def test_3_13_is_applied_by_sweeps():
    """With three rows a joint more always costs the same."""
    counts = []
    for n in (6, 12, 18):
        model = zoo.chain(n).with_frame("ground", "world", (0.1, 0.2, 0.3)).with_loop("tool", "ground", "spherical")
        n = KernelSpec.of_expression(model, dynamics(sl.operators(model))).plan.operations
        counts.append(n.multiplications + n.additions)
    assert counts[2] - counts[1] == pytest.approx(counts[1] - counts[0], rel=0.02)


def test_rows_are_vectors_of_their_own():
    c = Closed("four_bar")
    S = c.S
    one = 1 + 0 * (S.A @ S.Lam @ S.A.T)
    near(one.matrix(), np.eye(2))
    near((2 * (S.A @ S.Lam @ S.A.T) - one).matrix(), 2 * (S.A @ S.Lam @ S.A.T).matrix() - np.eye(2))
    assert repr((S.A @ S.Lam @ S.A.T).inverse()) == "(A @ Lam @ A.T).inverse()"
    assert repr((S.A @ S.Lam @ S.A.T).inverse().inverse()) == "A @ Lam @ A.T"
    assert repr(S.Lam.T) == "Lam"
    assert S.A.shape == (2, 12)
    with pytest.raises(InputError, match="takes vectors of frames, the second gives vectors of rows"):
        S.A @ S.A @ S.Lam
    with pytest.raises(InputError, match="no inverse is known"):
        S.Lam.inverse()


def test_the_picture_shows_which_points_a_closure_joins():
    """Arms on an object: each grasp has two points; the arms' points feel themselves, the object's each other."""
    S = sl.operators(zoo.arms_with_object(2), zoo.arms_with_object_start(2))
    assert S.A.picture().splitlines() == ["A: frames to rows", "holding1  # # · ·", "holding2  · · # #"]
    assert [line.split("  ")[-1] for line in S.Lam.picture().splitlines()[1:]] == [
        "# · · ·", "· # · #", "· · # ·", "· # · #",
    ]  # fmt: skip
    assert S.Lam.picture().splitlines()[2].strip().startswith("holding1 on object ")
    assert (S.A @ S.Lam @ S.A.T).picture().splitlines()[1:] == ["holding1  # #", "holding2  # #"]


def test_named_frames_leave_the_closures_out():
    S = sl.operators(zoo.arms_with_object(2), zoo.arms_with_object_start(2), "object")
    assert S.J.shape == (6, 18)
    with pytest.raises(InputError, match=r"A is an operator of loops; .* has some, but frames are named"):
        S.A  # noqa: B018


def test_a_singular_position_is_refused():
    case = next(x for x in SINGULAR if x.name == "folded four-bar").at(0.0)
    S = sl.operators(case.model, case.q)
    with pytest.raises(StateError, match="the loops are in a singular configuration at this q"):
        dynamics(S) @ case.tau
    with pytest.raises(StateError, match="the loops are in a singular configuration"):
        sl.compile(case.model, dynamics(sl.operators(case.model)))(case.q, case.tau)


def test_couplings_are_refused():
    b = sl.Builder("geared")
    for name in ("one", "two"):
        b.body(name, 1.0, (0.5, 0.0, 0.0), (0.1, 0.1, 0.1)).revolute(f"{name}_hinge", "world", name, "z")
    b.frame("a", "one", (1.0, 0.0, 0.0)).frame("b", "two", (1.0, 0.0, 0.0)).loop("a", "b", "spherical")
    model = b.coupling("gears", "two_hinge", "one_hinge").build()
    with pytest.raises(UnsupportedError, match=r"has a coupling \('gears'\), which A does not know"):
        sl.operators(model, np.zeros(2)).A.matrix()
