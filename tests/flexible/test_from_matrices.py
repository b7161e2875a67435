"""sl.flexible.from_matrices against beams of our own, and against dense algebra on the whole matrices."""

import numpy as np
import pytest
from scipy.linalg import eigh

import spanloop as sl
from spanloop.flexible.beam import BeamPiece, _finite_elements
from spanloop.flexible.nodal_model import nodal_model
from spanloop.flexible.second_order import second_order

EVERY = {"y": 1, "z": 1, "torsion": 1, "extension": 1}
BLADE = {"E": 7e10, "density": 2700.0, "section": sl.flexible.rectangle(0.004, 0.1)}


def boom(basis="full", modes=EVERY, elements=2, **options):
    return sl.flexible.beam(1.0, **BLADE, elements=elements, modes=modes, basis=basis, **options)


def read_back(beam, basis, modes=None, **options):
    fe = sl.flexible.to_matrices(beam)
    ends = {"root": 0, "tip": len(fe.positions) - 1}
    return sl.flexible.from_matrices(fe, interfaces=ends, basis=basis, modes=modes, **options)


def hinged(flexible, center=(0.02, 0.01, 0.0)):
    b = sl.Builder("arm", gravity=(0.0, 0.0, 0.0)).body("boom", flexible=flexible)
    b.body("load", 0.2, center, (1e-4, 2e-4, 2e-4)).revolute("hinge", "world", "boom", "z")
    return sl.Dynamics(b.fixed("grip", "boom.tip", "load").build())


def springs(robot):
    """Frequencies of the arm whose hinge has a spring, by M and K of the model."""
    q = np.zeros(robot.model.nq)
    K = np.diag([5.0, *robot.model.joint("boom.modes").stiffness])
    return np.sqrt(eigh(K, robot.mass_matrix(q), eigvals_only=True))


@pytest.mark.slow
@pytest.mark.parametrize("theory", ["euler-bernoulli", "timoshenko"])
def test_a_beam_as_matrices_has_the_frequencies_of_the_beam(theory):
    for basis, modes in (("full", None), ("cantilever", 6)):
        found = read_back(boom(theory=theory), basis, modes)
        exact = np.sort(boom(theory=theory).frequencies)[: found.n]
        np.testing.assert_allclose(found.frequencies, exact, rtol=1e-9)
    whole, same = hinged(boom(theory=theory)), hinged(read_back(boom(theory=theory), "full"))
    np.testing.assert_allclose(springs(same), springs(whole), rtol=1e-9)
    made = boom(theory=theory).bodies[0]
    got = read_back(boom(theory=theory), "full").body
    np.testing.assert_allclose(got.mass, made.mass, rtol=1e-12)
    np.testing.assert_allclose(got.center, made.center, atol=1e-12)


def differential_stiffness(beam):
    """Matrices of unit loads in the degrees of freedom of to_matrices, from the second-order field of the beam."""
    piece = BeamPiece(beam)
    model, nodes = _finite_elements(beam, 0), nodal_model(piece)
    bent = second_order(model.rod, model.fields)
    mass = model.rod.properties["mass"] * model.rod.weights
    first = np.einsum("p,ikpa->ika", mass, bent.g)
    E = np.einsum("p,p,ikpa->ika", mass, model.rod.points, bent.g)  # ∫ x g
    n = len(first)
    zero = np.zeros((n, n))
    found = {f"a{c}": first[..., k] for k, c in enumerate("xyz")}
    found |= {"wxwx": zero, "wywy": -E[..., 0], "wzwz": -E[..., 0], "wxwy": E[..., 1], "wxwz": E[..., 2], "wywz": zero}
    found |= {"dwx": zero, "dwy": -E[..., 2], "dwz": E[..., 1]}
    ends = np.concatenate([bent.g_ends[:, :, -1], bent.gamma_ends[:, :, -1]], axis=-1)
    found |= {f"tip.{c}{a}": -ends[..., 3 * j + k] for j, c in enumerate("fm") for k, a in enumerate("xyz")}
    count = len(nodes.positions)
    fe = sl.flexible.to_matrices(beam)
    rows = 6 * (count - 1 - fe.dofs[:, 0]) + (fe.dofs[:, 1] + 3) % 6  # among the numbers of the nodal model
    at = {row: k for k, row in enumerate(rows)}
    back = np.zeros((n, len(fe.dofs)))
    back[:, [at[f] for f in nodes.freedoms]] = np.linalg.inv(nodes.modes)
    return {key: back.T @ G @ back for key, G in found.items()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:simulate. body 'boom' spins")
def test_a_beam_as_matrices_with_stiffening_moves_as_the_beam():
    """At a spin of three times the first frequency. Of second order in the deflection, 1e-5 of the length, both differ:
    the part of the field that is not affine is not in matrices of unit loads."""
    G = differential_stiffness(boom(modes={"y": 1}, elements=4))
    beam = boom("cantilever", {"y": 3}, elements=4)
    part = read_back(beam, "cantilever", 3, stiffening=G)
    assert (part.level, read_back(beam, "cantilever", 3).level) == (2, 1)
    np.testing.assert_allclose(part.frequencies, beam.frequencies, rtol=1e-9)
    tips, bent = [], []
    for flexible in (beam, part, read_back(beam, "cantilever", 3, any_spin=True)):
        robot = hinged(flexible, (0.0, 0.0, 0.0))
        q, v = np.array([0.0, 1e-5, 0.0, 0.0]), np.array([3.0 * part.frequencies[0], 0.0, 0.0, 0.0])
        run = sl.simulate(robot, q, v, duration=0.1, step=5e-5, integrator="rk4")
        tips.append(run["load"].position)
        bent.append(run.q[:, 1:])
    np.testing.assert_allclose(tips[1], tips[0], rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(bent[1], bent[0], rtol=0.0, atol=1e-5 * np.abs(bent[0]).max())
    assert np.abs(bent[2]).max() > 1e3 * np.abs(bent[0]).max()  # without stiffening it is thrown outward


def test_level_0_has_the_frequencies_of_the_reduced_matrices():
    beam = boom(elements=6)
    fe = sl.flexible.to_matrices(beam)
    last = len(fe.positions) - 1
    ends = np.flatnonzero(np.isin(fe.dofs[:, 0], (0, last)))
    inner = np.setdiff1d(np.arange(len(fe.dofs)), ends)
    T = np.zeros((len(fe.dofs), 12))
    T[ends] = np.eye(12)
    T[inner] = -np.linalg.solve(fe.stiffness[np.ix_(inner, inner)], fe.stiffness[np.ix_(inner, ends)])
    M, K = T.T @ fe.mass @ T, T.T @ fe.stiffness @ T
    dofs = fe.dofs[ends].copy()
    dofs[:, 0] = dofs[:, 0] == last
    found = sl.flexible.from_matrices(
        M, K, fe.positions[[0, last]], dofs=dofs, interfaces={"root": 0, "tip": 1}, basis="guyan"
    )
    again = read_back(beam, "guyan")
    assert (found.level, again.level) == (0, 1)
    np.testing.assert_allclose(found.frequencies, again.frequencies, rtol=1e-9)
    exact = np.sqrt(eigh(K[6:, 6:], M[6:, 6:], eigvals_only=True))
    np.testing.assert_allclose(found.frequencies, exact, rtol=1e-9)
    np.testing.assert_allclose(springs(hinged(found)), springs(hinged(again)), rtol=1e-9)


def test_a_model_reduced_before_with_modes_without_a_place_is_taken():
    """A Craig-Bampton model of another program: interfaces, and inner modes as coordinates."""
    beam = boom(elements=6)
    fe = sl.flexible.to_matrices(beam)
    last = len(fe.positions) - 1
    ends = np.flatnonzero(np.isin(fe.dofs[:, 0], (0, last)))
    inner = np.setdiff1d(np.arange(len(fe.dofs)), ends)
    Kii, Mii = fe.stiffness[np.ix_(inner, inner)], fe.mass[np.ix_(inner, inner)]
    T = np.zeros((len(fe.dofs), 16))
    T[ends, :12] = np.eye(12)
    T[inner, :12] = -np.linalg.solve(Kii, fe.stiffness[np.ix_(inner, ends)])
    T[inner, 12:] = eigh(Kii, Mii)[1][:, :4]
    dofs = np.concatenate([fe.dofs[ends], np.array([[-1, k] for k in range(4)])])
    dofs[:12, 0] = dofs[:12, 0] == last
    M, K = T.T @ fe.mass @ T, T.T @ fe.stiffness @ T
    found = sl.flexible.from_matrices(
        M, K, fe.positions[[0, last]], dofs=dofs, interfaces={"root": 0, "tip": 1}, basis="full"
    )
    again = read_back(beam, "craig-bampton", 4)
    np.testing.assert_allclose(found.frequencies, again.frequencies, rtol=1e-9)


# ---- a portal of three bodies from matrices, closed by a weld

HEIGHT, WIDTH = 0.8, 1.1
PORTAL = {"area": 2.4e-3, "Iy": 3.2e-7, "Iz": 7.2e-7, "J": 7.5e-7, "G": 8e10, "E": 2.07e11, "density": 7800.0}
UPRIGHT = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


def portal_part(length):
    beam = sl.flexible.beam(length, **PORTAL, modes=EVERY, basis="full", theory="timoshenko", elements=1)
    fe = sl.flexible.to_matrices(beam)
    return fe, sl.flexible.from_matrices(fe, interfaces={"root": 0, "tip": 2}, basis="full")


@pytest.mark.slow
def test_a_portal_of_three_bodies_from_matrices_has_the_frequencies_of_the_assembled_ones():
    b = sl.Builder("portal", gravity=(0.0, 0.0, 0.0))
    (column, post), (across, lintel) = portal_part(HEIGHT), portal_part(WIDTH)
    b.body("left", flexible=post).fixed("left_foot", "world", "left", rotation=UPRIGHT)
    b.body("beam", flexible=lintel).fixed("left_corner", "left.tip", "beam", rotation=UPRIGHT.T)
    b.body("right", flexible=post)
    b.fixed("right_foot", "world", "right", position=(WIDTH, 0.0, 0.0), rotation=UPRIGHT)
    b.frame("right_corner", "right.tip", rotation=UPRIGHT.T)
    robot = sl.Dynamics(b.loop("beam.tip", "right_corner", name="weld").build())
    found = robot.modes(np.zeros(robot.model.nv)).angular_frequencies
    # assembled: nodes 0 (left foot), 1, 2 (corners), 3 (right foot) in world axes, middles of bars besides
    K, M = np.zeros((30, 30)), np.zeros((30, 30))
    for k, (fe, R, ends) in enumerate(
        ((column, UPRIGHT, (0, 1)), (across, np.eye(3), (1, 2)), (column, UPRIGHT, (3, 2)))
    ):
        T = np.zeros((len(fe.dofs), 30))
        for row, (node, c) in enumerate(fe.dofs):
            if node == 1:
                T[row, 24 + 2 * k + int(c >= 3)] = 1.0
            else:
                at = 6 * ends[node // 2] + 3 * int(c >= 3)
                T[row, at : at + 3] = R[:, c % 3]
        K += T.T @ fe.stiffness @ T
        M += T.T @ fe.mass @ T
    free = [k for k in range(30) if not (k < 6 or 18 <= k < 24)]
    exact = np.sqrt(eigh(K[np.ix_(free, free)], M[np.ix_(free, free)], eigvals_only=True))
    assert len(found) == len(exact) == 18
    np.testing.assert_allclose(found, exact, rtol=1e-9)


@pytest.mark.slow
def test_many_modes_warn_of_the_time_that_their_dynamics_take_to_compile():
    fe = sl.flexible.to_matrices(boom(elements=6))
    with pytest.warns(
        sl.errors.SpanloopWarning, match=r"modes; compiling the dynamics of a body takes seconds with 12"
    ):
        sl.flexible.from_matrices(fe, interfaces={"root": 0, "tip": 12}, basis="full")
