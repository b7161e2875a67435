"""Section 4 of Rodriguez, Jain & Kreutz: the mass matrix of links with all nodes as DoF, its factors, its inverse."""

from __future__ import annotations

import numpy as np
import pytest
from flexible_mechanisms import loop, tree, tube
from flexible_reference import Reference

import spanloop as sl
from spanloop.errors import InputError, UnsupportedError

pytestmark = pytest.mark.slow

FULL = {"basis": "full", "modes": {"y": 1, "z": 1, "torsion": 1, "extension": 1}}


def serial(theory: str = "euler-bernoulli") -> sl.Model:
    """Three beams in series, of two elements each, on hinges; a rigid load at the end."""
    b, last = sl.Builder("serial"), "world"
    for k, axis in enumerate("zyx"):
        shape = sl.flexible.rectangle(0.03, 0.02)
        beam = sl.flexible.beam(0.5, 7e10, 2700.0, shape, elements=2, theory=theory, **FULL)
        b.body(f"beam{k}", flexible=beam)
        b.revolute(f"joint{k}", last, f"beam{k}", axis, (0.0, 0.02, 0.0), armature=0.01 * k)
        last = f"beam{k}.tip"
    b.body("load", 0.3, (0.05, 0.02, 0.0), (0.001, 0.002, 0.003))
    return b.fixed("weld", last, "load", (0.01, 0.0, 0.0)).build()


def pieces() -> sl.Model:
    """A beam of two pieces on a slider, welded to a rigid bracket."""
    b = sl.Builder("pieces").body("bracket", 0.5, (0.1, 0.0, 0.0), (0.01, 0.01, 0.01))
    b.prismatic("slide", "world", "bracket", "x").body("boom", flexible=tube(pieces=2, modes={"y": 1, "z": 1}))
    return b.fixed("bolts", "bracket", "boom", (0.2, 0.0, 0.1)).build()


MODELS = {"serial": serial, "thick": lambda: serial("timoshenko"), "tree": tree, "pieces": pieces}


@pytest.fixture(scope="module", params=MODELS)
def made(request):
    model = MODELS[request.param]()
    rng, q = np.random.default_rng(4), np.asarray(model.neutral()) + 0.0
    for joint in model.joints:
        if not joint.kind.bends:
            q[model.q_slice(joint.name)] = rng.normal(size=joint.kind.nq)
    return model, q, sl.papers.flexible_chain(sl.Dynamics(model, target="python"), q)


def near(found, expected, bound=1e-12):
    assert np.abs(found - expected).max(initial=0.0) <= bound * np.abs(expected).max(initial=1.0)


def test_the_mass_matrix_is_that_of_all_masses(made):
    """ℳᶠ in modal coordinates, against products of the velocities of all mass points."""
    model, q, chain = made
    near(chain.shapes.T @ chain.mass_matrix() @ chain.shapes, Reference(model).mass_matrix(q))


def test_with_all_modes_nothing_is_lost():
    """A basis of all modes is a change of coordinates: as many X as v, and shapes has an inverse."""
    model = serial()
    chain = sl.papers.flexible_chain(sl.Dynamics(model, target="python"), model.neutral())
    assert chain.shapes.shape == (model.nv, model.nv)
    assert np.linalg.matrix_rank(chain.shapes) == model.nv


def test_nodes_move_as_the_paper_has_it(made):
    """4.3: V^f = [1 + B*φ*C*][B*H* h*] X, in link axes, against velocities of the tips in dual numbers."""
    model, q, chain = made
    rng, dense = np.random.default_rng(5), Reference(model)
    v = rng.normal(size=model.nv)
    X = chain.shapes @ v
    right = np.hstack([chain.B.T @ chain.H.T, chain.h.T]) @ X
    V = right + chain.B.T @ chain.phi.T @ chain.C.T @ right
    starts = np.cumsum([0, *(6 * len(link.Q) for link in chain.links)])
    poses = dense.frames(q, 0.0 * v)
    for link, start in zip(chain.links, starts, strict=False):
        tip = next((n for n in (f"{link.name}.tip", f"{link.name}.end") if n in poses), None)
        if tip:
            turn = np.kron(np.eye(2), poses[tip][0].value.T)  # the node's axes are those of the undeformed link
            near(V[start : start + 6], turn @ dense.velocity(tip, q, v))


def test_b_c_is_the_shift_of_section_2(made):
    """B C = ℰ_φ, so that B [1 + CφB] = φB."""
    _, _, chain = made
    B, C, phi, one = chain.B, chain.C, chain.phi, np.eye(len(chain.m))
    near((np.eye(len(phi)) - B @ C) @ phi, np.eye(len(phi)))
    near(B @ (one + C @ phi @ B), phi @ B)


def test_rigid_motion_takes_the_rigid_inertia_and_no_spring(made):
    model, _, chain = made
    for link in chain.links:
        if len(link.Q) > 1 and not link.name.startswith("beam2"):  # beam2 has the load's inertia, too
            body = model.body(link.name).inertia
            M = link.B @ link.m @ link.B.T
            near(M[3:, 3:], body.mass * np.eye(3))
            near(M[:3, :3], np.array(body.rigid().inertia()))
            near(link.K @ link.B.T, 0.0 * link.B.T, 1e-12 * np.abs(link.K).max())


def test_the_stiffness_is_that_of_the_modes(made):
    model, _, chain = made
    expected = np.diag(np.concatenate([np.array(j.stiffness) for j in model.joints]))
    near(chain.shapes.T @ chain.stiffness() @ chain.shapes, expected, 1e-9)


def test_section_3_holds_with_6_and_n_numbers_a_link(made):
    """Lemmas 1 to 3, and forward dynamics by two sweeps; digits are lost as the condition of ℳᶠ has it."""
    _, _, chain = made
    M, D, F, W = chain.mass_matrix(), chain.D, chain.innovations(), chain.whitening()
    near(F @ D @ F.T, M, 1e-12)
    near(W @ F, np.eye(len(M)), 1e-9)
    near(W.T @ np.linalg.solve(D, W) @ M, np.eye(len(M)), 1e-8)
    T = np.random.default_rng(6).normal(size=len(M))
    near(M @ chain.forward_dynamics(T), T, 1e-9)
    for link, x in zip(chain.links, chain.articulated, strict=True):
        assert x.P.shape == (6 + len(link.h),) * 2
        assert x.D.shape == (len(link.H) + len(link.h),) * 2


def test_a_clamped_beam_has_the_frequencies_of_the_closed_form():
    """ω = (βL)² √(EI/ρAL⁴), βL = 1.87510, 4.69409 of a cantilever; 8 elements have them to 1e-4."""
    section = sl.flexible.rectangle(0.02, 0.03)
    beam = sl.flexible.beam(1.0, 7e10, 2700.0, section, elements=8, basis="full", modes={"y": 1})
    model = sl.Builder("cantilever").body("beam", flexible=beam).fixed("clamp", "world", "beam").build()
    chain = sl.papers.flexible_chain(sl.Dynamics(model, target="python"), model.neutral())
    values = np.linalg.eigvals(np.linalg.solve(chain.mass_matrix(), chain.stiffness()))
    found = np.sqrt(np.sort(values.real))[:2]
    unit = np.sqrt(7e10 * section.Iz / (2700.0 * section.area))
    np.testing.assert_allclose(found, [1.87510407**2 * unit, 4.69409113**2 * unit], rtol=1e-4)


def test_matrices_of_ones_own():
    """A bar of two point masses on a spring, on a hinge at its root: M by hand."""
    Q, m, K = np.array([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), np.zeros((12, 12)), np.zeros((12, 12))
    m[3:6, 3:6], m[9:12, 9:12] = 3.0 * np.eye(3), 5.0 * np.eye(3)
    K[np.ix_((3, 9), (3, 9))] = 100.0 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    hinge = np.array([[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]])
    chain = sl.papers.FlexibleChain((sl.papers.FlexibleLink("bar", Q, m, K, hinge, freedoms=(3, 4)),))
    np.testing.assert_allclose(chain.mass_matrix(), [[12.0, 0.0, 6.0], [0.0, 3.0, 0.0], [6.0, 0.0, 3.0]], atol=1e-15)
    np.testing.assert_allclose(chain.stiffness(), np.diag([0.0, 100.0, 0.0]))
    assert chain.links[0].B.shape == (6, 12)
    assert chain.links[0].h.shape == (2, 12)
    assert sl.papers.FlexibleLink("bar", Q, m, K, hinge).h.shape == (6, 12)  # by default all but the root


def test_what_the_section_does_not_cover_is_refused():
    robot = sl.Dynamics(tree(), target="python")
    q = np.asarray(robot.model.neutral()) + 0.0
    q[robot.model.q_slice("boom.modes").start] = 0.01
    with pytest.raises(InputError, match=r"q of 'boom\.modes' is .* those of undeformed links"):
        sl.papers.flexible_chain(robot, q)
    with pytest.raises(UnsupportedError, match="flexible_chain is for trees; model 'flexible loop' has loops"):
        sl.papers.flexible_chain(sl.Dynamics(loop()), loop().neutral())
    six, none = np.eye(6), np.zeros((0, 6))
    with pytest.raises(InputError, match=r"link 'a': m has shape \(6, 6\); expected \(12, 12\) for 2 nodes"):
        sl.papers.FlexibleLink("a", np.zeros((2, 3)), six, six, none)
    with pytest.raises(InputError, match="link 'a': m is not symmetric"):
        sl.papers.FlexibleLink("a", np.zeros((1, 3)), np.triu(np.ones((6, 6))), six, none)
    with pytest.raises(InputError, match="link 'a': parent is 0; expected a link before it, or -1"):
        sl.papers.FlexibleChain((sl.papers.FlexibleLink("a", np.zeros((1, 3)), six, six, none, parent=0),))
    first = sl.papers.FlexibleLink("a", np.zeros((1, 3)), six, six, none)
    second = sl.papers.FlexibleLink("b", np.zeros((1, 3)), six, six, none, parent=0, node=3)
    with pytest.raises(InputError, match="link 'a' has no node 3"):
        sl.papers.FlexibleChain((first, second))
