"""Spatial operators: each against its definition by dense matrices; the papers' identities; their cost."""

from __future__ import annotations

import numpy as np
import pytest
from dense_operators import DenseOperators
from dense_reference import Reference
from operator_identities import identities

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, StateError
from spanloop.joints import KINDS
from spanloop.kernels import KernelSpec
from spanloop.sweeps.tree_operators import NAMES

TREES = {
    **{f"random{seed}": (lambda seed=seed: zoo.random_model(seed)) for seed in (2, 3, 7, 10)},
    **{f"floating{seed}": (lambda seed=seed: zoo.random_model(seed, 7, free=True)) for seed in (100,)},
    **{f"chain_{k}": (lambda k=k: zoo.chain(2, k, seed=7)) for k in KINDS if k != "fixed"},
    "tree": lambda: zoo.tree(7, 3, seed=2),
    "star": lambda: zoo.star(4),
    "puma": zoo.puma,
}
# articulated quantities lean on D⁻¹: a few hundred roundings times the condition of the joints' blocks
BOUND = 1e-10


class Case:
    def __init__(self, name: str):
        self.model = TREES[name]()
        self.q, self.v = self.model.random_state(np.random.default_rng(3))
        bodies = [b.name for b in self.model.bodies]
        self.frames = (bodies[-1], "world", bodies[len(bodies) // 2])
        self.S = sl.operators(self.model, self.q, self.frames)
        self.dense = DenseOperators(self.model, self.q, self.frames)


@pytest.fixture(scope="module", params=TREES)
def case(request):
    return Case(request.param)


def near(found, expected, bound=BOUND):
    scale = max(np.abs(expected).max(initial=0.0), 0.01)  # τ̄ of a free joint is zero but for rounding
    assert np.abs(found - expected).max(initial=0.0) <= bound * scale


@pytest.mark.parametrize("name", NAMES)
def test_every_operator_is_its_definition(case, name):
    near(getattr(case.S, name).matrix(), getattr(case.dense, name))
    near(getattr(case.S, name).T.matrix(), getattr(case.dense, name).T)


def test_the_mass_matrix_is_that_of_newton_and_euler(case):
    """2.11, against dense matrices in world axes that know nothing of links."""
    H, phi, Mb = case.S.H, case.S.phi, case.S.Mb
    M = H @ phi @ Mb @ phi.T @ H.T + case.S.armature
    near(M.matrix(), np.array(Reference(case.model, case.q).mass_matrix()), 1e-13)


def test_the_jacobian_is_that_of_the_frame_in_its_own_axes(case):
    """2.14."""
    reference = Reference(case.model, case.q)
    rows = []
    for name in case.frames:
        turn = np.kron(np.eye(2), reference.pose(name)[:3, :3].T)
        rows.append(turn @ reference.jacobian(name))
    near(case.S.J.matrix(), np.vstack(rows), 1e-13)


@pytest.mark.parametrize("name", list(identities(sl.operators(zoo.pendulum(2), frames="tip"))))
def test_the_identity_holds(case, name):
    left, right = identities(case.S)[name]
    near(left.matrix(), right.matrix())


@pytest.mark.parametrize("name", ["chain_revolute", "chain_spherical", "chain_free", "puma"])
def test_lemma_5_holds_on_serial_chains(name):
    """A.3 and A.4 as printed."""
    S = Case(name).S
    near((S.H.T @ S.D.inverse() @ S.H).matrix(), (S.Upsilon - S.E_psi.T @ S.Upsilon @ S.E_psi).matrix())
    strict = S.psi - 1
    near(S.Omega.matrix(), (S.Upsilon + strict.T @ S.Upsilon + S.Upsilon @ strict).matrix())


@pytest.mark.parametrize("name", ["tree", "star"])
def test_lemma_5_as_printed_does_not_hold_on_trees(name):
    S = Case(name).S
    strict = S.psi - 1
    printed = (S.Upsilon + strict.T @ S.Upsilon + S.Upsilon @ strict).matrix()
    assert np.abs(printed - S.Omega.matrix()).max() > 0.1


def test_siblings_couple_through_their_closest_common_ancestor(case):
    """A.5, mended: Ω(k, m) = ψ(c, k)* Υ(c) ψ(c, m) with c the last link on both ways to the world."""
    parents = case.S.algebra.mechanism.parents
    psi, Upsilon, Omega = (getattr(case.dense, x) for x in ("psi", "Upsilon", "Omega"))

    def block(A, i, j):
        return A[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]

    def way(k):
        return [k, *way(parents[k])] if k >= 0 else []

    expected = np.zeros_like(Omega)
    for k in range(len(parents)):
        for m in range(len(parents)):
            common = [c for c in way(k) if c in way(m)]
            if common:
                c = common[0]
                expected[6 * k : 6 * k + 6, 6 * m : 6 * m + 6] = (
                    block(psi, c, k).T @ block(Upsilon, c, c) @ block(psi, c, m)
                )
    near(case.S.Omega.matrix(), expected)


# ---- algebra


@pytest.fixture(scope="module")
def S():
    model = zoo.tree(5, 2, seed=1)
    return sl.operators(model, model.random_state(np.random.default_rng(0))[0], "body5")


def test_an_operator_is_shown_as_it_is_typed(S):
    M = S.H @ S.phi @ S.Mb @ S.phi.T @ S.H.T
    assert repr(M) == repr(M.T) == "H @ phi @ Mb @ phi.T @ H.T"
    assert repr((1 + S.H @ S.phi @ S.K).inverse()) == "1 - H @ psi @ K"
    assert repr(1 + S.H @ S.phi @ S.K) == repr(S.H @ S.phi @ S.K + 1)
    assert repr((1 - S.E_phi).inverse()) == "phi"
    assert repr(S.psi.inverse().T) == "1 - E_psi.T"
    assert repr(-2 * (S.D - S.D.inverse())) == "-2 * D + 2 * D.inverse()"
    assert repr((S.D @ (1 + S.H @ S.phi @ S.K).T).inverse()) == "(1 - K.T @ psi.T @ H.T) @ D.inverse()"


def test_vectors_are_taken_from_both_sides_and_in_columns(S):
    rng = np.random.default_rng(1)
    x, X, f = rng.normal(size=5), rng.normal(size=(5, 3)), rng.normal(size=30)
    A = S.phi.T @ S.H.T
    near(A @ X, A.matrix() @ X, 1e-13)
    near(f @ A, A.matrix().T @ f, 1e-13)
    near((2 * S.D - S.D) @ x, S.D @ x, 1e-13)
    assert A.shape == (30, 5)


def test_the_picture_shows_the_tree(S):
    """Bodies 2 and 3 hang on body 1, bodies 4 and 5 on body 2; links are numbered depth first."""
    assert S.phi.picture().splitlines() == [
        "phi: links to links",
        "joint1  # # # # #",
        "joint2  · # # # ·",
        "joint4  · · # · ·",
        "joint5  · · · # ·",
        "joint3  · · · · #",
    ]
    assert sl.operators(S.algebra.model, frames="body5").J.picture().splitlines() == [
        "J: joints to frames",
        "body5  # # · # ·",
    ]


def test_what_does_not_fit_is_refused_in_a_sentence(S):
    with pytest.raises(InputError, match="takes vectors of joints, the second gives vectors of links"):
        S.D @ S.phi
    with pytest.raises(InputError, match="the first maps links to joints, the second links to links"):
        S.H + S.phi
    with pytest.raises(InputError, match="only a square operator"):
        S.H + 1
    with pytest.raises(InputError, match="compose operators with @"):
        S.H * S.phi
    with pytest.raises(InputError, match="Mb: no inverse is known"):
        S.Mb.inverse()
    with pytest.raises(InputError, match="x has 3 entries; expected 5, a vector of joints"):
        S.D @ np.ones(3)
    with pytest.raises(InputError, match=r"at which q\? Use sl.operators\(model, q\)"):
        sl.operators(zoo.puma()).D @ np.ones(6)
    with pytest.raises(InputError, match="q has 2 entries; expected 6"):
        sl.operators(zoo.puma(), np.zeros(2))
    with pytest.raises(StateError, match="quaternion of length 2"):
        sl.operators(zoo.star(2), np.concatenate(([2.0], zoo.star(2).neutral()[1:])))


# ---- compiled


@pytest.mark.parametrize("target", ["cpu", "python"])
def test_an_operator_becomes_a_kernel(case, target):
    """The inverse of the mass matrix by lemma 3, compiled, solves for what the mass matrix gives."""
    S = sl.operators(case.model)
    M = S.H @ S.phi @ S.Mb @ S.phi.T @ S.H.T + S.armature
    x = np.random.default_rng(5).normal(size=case.model.nv)
    tau = sl.compile(case.model, M, target=target)(case.q, x)
    near(tau, M.at(case.q).matrix() @ x, 1e-13)
    near(sl.compile(case.model, M.inverse(), target=target)(case.q, tau), x, 1e-9)


@pytest.mark.slow
def test_an_expression_of_vectors_becomes_a_kernel():
    """5.14 of Kreutz & Rodriguez: accelerations from torques and bias forces in three sweeps, a batch at once."""
    model = zoo.random_model(7).without_losses()
    S = sl.operators(model)
    tau, b = S.vector("tau"), S.vector("b", "links")
    e = tau - S.H @ S.psi @ (S.K @ tau + b)
    a = (1 - S.H @ S.psi @ S.K).T @ S.D.inverse() @ e
    kernel = sl.compile(model, a)
    assert [name for name, _ in kernel.inputs] == ["q", "tau", "b"]
    rng = np.random.default_rng(2)
    q, _ = zip(*(model.random_state(rng) for _ in range(5)), strict=True)
    t, f = rng.normal(size=(5, model.nv)), rng.normal(size=(5, S.Mb.shape[0]))
    found = kernel(np.array(q), t, f)
    for k in range(5):
        dense = DenseOperators(model, q[k])
        M = dense.H @ dense.phi @ dense.Mb @ dense.phi.T @ dense.H.T + dense.armature
        near(found[k], np.linalg.solve(M, t[k] - dense.H @ dense.phi @ f[k]), 1e-9)


def test_live_parameters_reach_the_operators():
    model = zoo.tree(4, 2, seed=3)
    S = sl.operators(model, frames="body4")
    kernel = sl.compile(model, S.J @ S.J.T, parameters="live")
    q = model.random_state(np.random.default_rng(0))[0]
    f = np.arange(6.0)
    values = model.parameters().values
    near(kernel(q, f, values), S.J.at(q) @ (S.J.at(q).T @ f), 1e-13)
    assert np.abs(kernel(q, f, 1.1 * values) - kernel(q, f, values)).max() > 1e-3


def test_an_expression_of_another_model_is_refused():
    with pytest.raises(InputError, match="operators of 'puma', not of 'stanford'"):
        sl.compile(zoo.stanford(), sl.operators(zoo.puma()).D)
    with pytest.raises(InputError, match="takes no frame"):
        sl.compile(zoo.puma(), sl.operators(zoo.puma()).D, frame="tool")


# ---- cost


def counted(model, expression) -> int:
    n = KernelSpec.of_expression(model, expression(sl.operators(model, frames="tool"))).plan.operations
    return n.multiplications + n.additions + n.divisions


EXPRESSIONS = {
    "M": lambda S: S.H @ S.phi @ S.Mb @ S.phi.T @ S.H.T,
    "inverse of M": lambda S: (S.H @ S.phi @ S.Mb @ S.phi.T @ S.H.T).inverse(),
    "Omega": lambda S: S.Omega,
    "admittance": lambda S: S.B.T @ S.Upsilon @ S.B,
    "lemma 5": lambda S: S.Upsilon + (S.psi - 1).T @ S.Upsilon + S.Upsilon @ (S.psi - 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_operations_grow_linearly_with_the_chain(name):
    """Every doubling adds twice what the one before added; from 32 to 64 links the slope is at most 1.05.

    From 4 links on it is higher: the links next to the world are cheaper, a n − b with a b of about two links.
    """
    sizes = (4, 8, 16, 32, 64)
    counts = [counted(zoo.chain(n, seed=1), EXPRESSIONS[name]) for n in sizes]
    each = np.diff(counts) / np.diff(sizes)
    np.testing.assert_allclose(each, each[-1], rtol=0.05)
    assert np.log(counts[-1] / counts[-2]) / np.log(2.0) <= 1.05
