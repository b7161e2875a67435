"""Masses beside the nodes of a finite-element model, against energies that are integrated over the elements."""

import numpy as np
import pytest
from frame_elements import DENSITY, frame, straight
from scipy.linalg import eigh

import spanloop as sl

THIN = {"width": 0.006, "height": 0.006}  # next to no rotary inertia of sections, which points do not have
BENT = frame([(0.1 * k, 0.0, 0.0) for k in range(6)] + [(0.5, 0.07 * k, 0.02 * k) for k in range(1, 5)], **THIN)


def skew(c):
    return np.array([[0.0, -c[2], c[1]], [c[2], 0.0, -c[0]], [-c[1], c[0], 0.0]])


def with_masses(model, masses):
    """The mass matrix with point masses {node: (kg, offset)}."""
    M = model.mass.copy()
    for node, (m, c) in masses.items():
        at, S = slice(6 * node, 6 * node + 6), skew(np.array(c))
        M[at, at] += np.block([[m * np.eye(3), -m * S], [m * S, m * S.T @ S]])
    return M


def moved_nodes(model, c):
    """M and K of the same elements for nodes that stand at −c from them."""
    T = np.eye(len(model.mass))
    for k in range(0, len(T), 6):
        T[k : k + 3, k + 3 : k + 6] = -skew(c)
    return T.T @ model.mass @ T, T.T @ model.stiffness @ T


def points(model, masses):
    """Masses, places and displacements (3, N) of Gauss points in the elements, and of the point masses."""
    found, N = [], len(model.mass)
    g, w = np.polynomial.legendre.leggauss(5)
    for at, T, _, _ in model.elements:
        a, b = model.positions[at[0] // 6], model.positions[at[6] // 6]
        L = np.linalg.norm(b - a)
        for s, weight in zip((g + 1.0) / 2.0, w / 2.0, strict=True):
            h = [1 - 3 * s**2 + 2 * s**3, L * (s - 2 * s**2 + s**3), 3 * s**2 - 2 * s**3, L * (s**3 - s**2)]
            local = np.zeros((3, 12))
            local[0, [0, 6]] = 1 - s, s
            local[1, [1, 5, 7, 11]] = h
            local[2, [2, 4, 8, 10]] = h[0], -h[1], h[2], -h[3]
            whole = np.zeros((3, N))
            whole[:, at] = T[:3, :3].T @ local @ T
            found.append((DENSITY * THIN["width"] * THIN["height"] * weight * L, a + s * (b - a), whole))
    for node, (m, c) in masses.items():
        whole = np.zeros((3, N))
        whole[:, 6 * node : 6 * node + 6] = np.hstack([np.eye(3), -skew(np.array(c))])
        found.append((m, model.positions[node] + c, whole))
    return found


def clamped(M, K, positions, modes=4, **options):
    """The body with modes of its root held, and these modes (N, n)."""
    tip = len(positions) - 1
    options = {"interfaces": {"root": 0, "tip": tip}} | options
    body = sl.flexible.from_matrices(M, K, positions, basis="cantilever", modes=modes, **options)
    shapes = np.vstack([np.zeros((6, modes)), eigh(M[6:, 6:], K[6:, 6:])[1][:, : -modes - 1 : -1]])
    seen = np.hstack([body.shifts[0], body.turns[0]]).T
    return body, shapes @ np.linalg.lstsq(shapes[-6:], seen)[0]


def free_mass_matrix(body, eta):
    b = sl.Builder("b", gravity=(0.0, 0.0, 0.0)).body("part", flexible=body).free("fly", "world", "part")
    return sl.Dynamics(b.build()).mass_matrix(np.concatenate([[1.0, 0, 0, 0, 0, 0, 0], eta]))


@pytest.mark.parametrize(
    ("model", "masses"),
    [
        (BENT, {9: (0.8, (0.0, 0.05, 0.12)), 5: (0.3, (0.0, 0.0, -0.1))}),
        (straight(elements=10, **THIN), {10: (0.8, (0.2, 0.1, 0.05))}),
        (straight(elements=4, **THIN), {4: (0.8, (0.2, 0.0, 0.0))}),
        (straight(elements=10, lumped=True, **THIN), {10: (0.5, (0.3, 0.1, 0.0)), 4: (0.2, (0.0, 0.0, 0.1))}),
    ],
    ids=["corner", "tip", "along", "lumped"],
)
def test_a_bent_body_with_masses_beside_its_nodes_has_the_inertia_of_its_points(model, masses):
    """To 1e-3, what products along three axes differ by; where offsets are not seen, 1e-2 to 1e-1."""
    M = with_masses(model, masses)
    body, shapes = clamped(M, model.stiffness, model.positions)
    eta = 0.05 * np.array([1.0, -0.7, 0.2, 0.1])
    bars = points(model, masses)
    if np.count_nonzero(model.mass - np.diag(np.diag(model.mass))) == 0:
        own = np.diag(model.mass)[::6]
        lumps: list = [
            (m, x, np.eye(3, len(M), 6 * k)) for k, (m, x) in enumerate(zip(own, model.positions, strict=True))
        ]
        bars = lumps + bars[-len(masses) :]
    expected = np.zeros((10, 10))
    for m, x, N in bars:
        reach = np.hstack([-skew(x + N @ shapes @ eta), np.eye(3), N @ shapes])
        expected += m * reach.T @ reach
    found = free_mass_matrix(body, eta)
    size = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(found / np.outer(size, size), expected / np.outer(size, size), atol=1e-3)


@pytest.mark.slow
def test_a_spinning_arm_with_a_mass_beside_its_tip_bends_as_with_a_body_there():
    """Half of the difference is what level 1 leaves out, 1.19 times the square of the spin over the first frequency."""
    c, m, spin = np.array([0.3, 0.1, 0.0]), 0.5, 4.0
    arm = straight(elements=20, width=0.02, height=0.02)
    light = 1e-3 * arm.mass
    plain = sl.flexible.from_matrices(light, arm.stiffness, arm.positions, interfaces={"root": 0, "tip": 20}, modes=2)
    M = with_masses(arm, {20: (m, c)}) - arm.mass + light
    part = sl.flexible.from_matrices(M, arm.stiffness, arm.positions, interfaces={"root": 0, "tip": 20}, modes=2)
    one = sl.Builder("one", gravity=(0, 0, 0)).body("x", flexible=part).revolute("d", "world", "x", "z", driven=True)
    two = sl.Builder("two", gravity=(0, 0, 0)).body("x", flexible=plain).revolute("d", "world", "x", "z", driven=True)
    two = two.body("load", m, tuple(c), inertia=(0, 0, 0)).fixed("grip", "x.tip", "load")
    bent = []
    for b in (one, two):
        robot = sl.Dynamics(b.build())
        bent.append(robot.pose(robot.static_deflection({"d": 0.0}, v={"d": spin}), "x.tip")[1, 3])
    assert bent[0] == pytest.approx(bent[1], rel=0.012)  # 0.13 where the offset is not seen


@pytest.mark.parametrize("c", [(0.0, 0.05, 0.0), (0.0, 0.03, -0.08)])
def test_a_beam_beside_its_nodes_is_that_beam(c):
    """First moments are summed over elements, an error of the second order in their length; unseen, 1e-2."""
    bar, c, eta = straight(elements=10), np.array(c), np.array([0.02, -0.03, 0.004, 0.003])
    beside, _ = clamped(*moved_nodes(bar, c), bar.positions)
    ends = {"root": (0, tuple(bar.positions[0])), "tip": (10, tuple(bar.positions[-1]))}
    plain, _ = clamped(bar.mass, bar.stiffness, bar.positions + c, interfaces=ends)
    sizes = [np.linalg.norm(p.shifts[0], axis=1) for p in (beside, plain)]
    same = np.sign((beside.shifts[0] * plain.shifts[0]).sum(axis=1)) * sizes[0] / sizes[1]
    scale = np.concatenate([np.ones(6), same])
    found, expected = free_mass_matrix(beside, eta), free_mass_matrix(plain, eta * same) * np.outer(scale, scale)
    size = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(found / np.outer(size, size), expected / np.outer(size, size), atol=2.5e-3)
    np.testing.assert_allclose(beside.frequencies, plain.frequencies, rtol=1e-10)


def test_a_beam_whose_nodes_are_on_it_has_no_mass_beside_them():
    import scipy.sparse as sp

    from spanloop.flexible.finite_elements import FiniteElements
    from spanloop.flexible.matrices.eccentric import eccentric_masses

    for x in (np.linspace(0.0, 1.0, 9), np.array([0.0, 0.1, 0.4, 0.5, 1.0])):
        bar = frame(np.stack([x, 0.5 * x, 0.2 * x], axis=1))
        dofs = np.stack([np.repeat(np.arange(len(x)), 6), np.tile(np.arange(6), len(x))], axis=1)
        fe = FiniteElements(sp.csr_matrix(bar.mass), sp.csr_matrix(bar.stiffness), bar.positions, dofs)
        assert len(eccentric_masses(fe).nodes) == 0
