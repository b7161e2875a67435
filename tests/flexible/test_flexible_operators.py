"""Spatial operators of models with flexible bodies: 6 + n numbers a link, all identities of the papers, bent modes."""

from __future__ import annotations

import numpy as np
import pytest
from flexible_mechanisms import case, tube
from operator_identities import identities

import spanloop as sl
from spanloop import zoo
from spanloop.sweeps.tree_operators import NAMES

pytestmark = pytest.mark.slow

FRAMES = ("tool", "boom.middle", "whip.tip", "boom")
BOUND = 1e-10  # articulated quantities lean on D⁻¹: roundings times the condition of the joints' blocks


def chain() -> sl.Model:
    """Flexible and rigid bodies in series."""
    b = sl.Builder("flexible chain").body("boom", flexible=tube(nodes={"middle": 0.4}, modes={"y": 1, "z": 1}))
    b.revolute("shoulder", "world", "boom", "z", armature=0.02)
    b.body("arm", 0.7, (0.2, 0.01, 0.0), (0.01, 0.02, 0.02)).revolute("elbow", "boom.tip", "arm", "y", (0.05, 0.0, 0.0))
    b.body("whip", flexible=tube(modes={"y": 1, "z": 0})).prismatic("slide", "arm", "whip", "x", (0.4, 0.0, 0.0))
    return b.frame("tool", "arm", (0.3, 0.1, 0.05)).build()


class Made:
    """Operators at a bent state, with dense definitions from E_phi, H, Mb and the armature."""

    def __init__(self, kind: str):
        if kind == "chain":
            self.model, rng = chain(), np.random.default_rng(8)
            bent = np.concatenate([np.full(j.kind.nq, 0.02 if j.kind.bends else 0.5) for j in self.model.joints])
            self.q = rng.normal(size=self.model.nq) * bent
        else:
            self.model, self.q = case(kind).model, case(kind).q
        self.S = sl.operators(self.model, self.q, FRAMES)
        self.reference = case("tree").reference.__class__(self.model)
        self._define()

    def _define(self):
        self.E_phi, self.H, self.Mb, self.armature = (
            getattr(self.S, name).matrix() for name in ("E_phi", "H", "Mb", "armature")
        )
        one = np.eye(len(self.Mb))
        self.phi, self.P = np.linalg.inv(one - self.E_phi), self.Mb + one  # any start will do
        for _ in self.S.algebra.mechanism.links:  # 3.1 by iteration: after a round for each link nothing changes
            D = self.H @ self.P @ self.H.T + self.armature
            less = self.P - self.P @ self.H.T @ np.linalg.solve(D, self.H @ self.P)
            self.P = self.Mb + self.E_phi @ less @ self.E_phi.T
        self.D = self.H @ self.P @ self.H.T + self.armature
        self.D_root = np.linalg.cholesky(self.D)
        self.G = self.P @ self.H.T @ np.linalg.inv(self.D)
        self.K, self.tau_bar = self.E_phi @ self.G, one - self.G @ self.H
        self.E_psi = self.E_phi @ self.tau_bar
        self.psi = np.linalg.inv(one - self.E_psi)
        self.Omega = self.psi.T @ self.H.T @ np.linalg.solve(self.D, self.H @ self.psi)
        self.Upsilon = np.zeros_like(self.Omega)
        for own in self.S.algebra.blocks(self.S.algebra.mechanism, "links"):
            self.Upsilon[np.ix_(own, own)] = self.Omega[np.ix_(own, own)]
        self.B = self.S.B.matrix()
        self.J = self.B.T @ self.phi.T @ self.H.T


@pytest.fixture(scope="module", params=["chain", "tree", "loop"])
def made(request):
    return Made(request.param)


def near(found, expected, bound=BOUND):
    assert found.shape == expected.shape
    assert np.abs(found - expected).max(initial=0.0) <= bound * max(np.abs(expected).max(initial=0.0), 0.01)


def test_a_flexible_body_has_6_and_n_numbers(made):
    sizes = {
        "boom.modes": 6 + made.model.joint("boom.modes").kind.nv,
        "whip.modes": 6 + made.model.joint("whip.modes").kind.nv,
    }
    blocks = made.S.algebra.blocks(made.S.algebra.mechanism, "links")
    for link, own in zip(made.S.algebra.mechanism.links, blocks, strict=True):
        assert len(own) == sizes.get(link.name, 6)
    assert made.S.phi.shape == (sum(map(len, blocks)),) * 2


@pytest.mark.parametrize("name", NAMES)
def test_every_operator_is_its_definition(made, name):
    near(getattr(made.S, name).matrix(), getattr(made, name))
    near(getattr(made.S, name).T.matrix(), getattr(made, name).T)


def test_the_mass_matrix_is_that_of_all_masses(made):
    """2.11 at η ≠ 0, against products of the velocities of all mass points."""
    S = made.S
    near((S.H @ S.phi @ S.Mb @ S.phi.T @ S.H.T + S.armature).matrix(), made.reference.mass_matrix(made.q), 1e-12)


def test_the_jacobian_is_that_of_the_frames_in_their_axes(made):
    """2.14: of a rigid body, of nodes, and of the frame of a flexible body."""
    poses = made.reference.frames(made.q, np.zeros(made.model.nv))
    rows = [np.kron(np.eye(2), poses[f][0].value.T) @ made.reference.jacobian(f, made.q) for f in FRAMES]
    near(made.S.J.matrix(), np.vstack(rows), 1e-12)


@pytest.mark.parametrize("name", list(identities(sl.operators(zoo.pendulum(2), frames="tip"))))
def test_the_identity_holds(made, name):
    left, right = identities(made.S)[name]
    near(left.matrix(), right.matrix(), 1e-9 if name in ("lemma 3", "3.10", "lemma 5, trees") else BOUND)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "python"])
def test_operators_become_kernels(made, target):
    S = sl.operators(made.model)
    M = S.H @ S.phi @ S.Mb @ S.phi.T @ S.H.T + S.armature
    x = np.random.default_rng(5).normal(size=made.model.nv)
    tau = sl.compile(made.model, M, target=target)(made.q, x)
    near(tau, made.reference.mass_matrix(made.q) @ x, 1e-12)
    near(sl.compile(made.model, M.inverse(), target=target)(made.q, tau), x, 1e-8)


@pytest.mark.slow
def test_3_13_gives_the_accelerations_of_the_flexible_loop():
    """At rest, and Λ, b of the ball at the tip of a flexible body; against M a + h = tau + Jᵀ λ, J a = 0."""
    c = case("loop")
    S = sl.operators(c.model, c.q)
    A, Lam, b, root, whitening = S.A, S.Lam, S.b, S.D_root, 1 - S.H @ S.psi @ S.K
    rows = c.reference.frames(c.q, c.v)["whip.tip"][0].value.T @ c.rows
    near((A @ S.J).matrix(), rows, 1e-12)
    near((b.T @ b).matrix(), rows @ np.linalg.solve(c.M, rows.T), 1e-9)
    J = S.J.matrix()
    near(Lam.matrix(), J @ np.linalg.solve(c.M, J.T), 1e-9)
    middle = 1 - b @ (A @ Lam @ A.T).inverse() @ b.T
    T = c.a - c.reference.bias(c.q, np.zeros(c.model.nv))
    near((whitening.T @ root.inverse().T @ middle @ root.inverse() @ whitening) @ T, c.response(T), 1e-8)
