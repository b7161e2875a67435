"""Bodies of tetrahedra, reduced and against the whole model; every number of the whole is SciPy's or scikit-fem's."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh, splu

pytest.importorskip("skfem")
from solid_elements import ALUMINIUM, STEEL, Solid, bar

import spanloop as sl

LENGTH = 0.5


@pytest.fixture(scope="module")
def solid():
    return Solid(bar(LENGTH, counts=(12, 2, 2)))


def reduced(solid, **options):
    ends = {"root": solid.at(0.0), "tip": solid.at(LENGTH)}
    options = {"interfaces": ends, "dofs": solid.dofs, **options}
    return sl.flexible.from_matrices(solid.mass, solid.stiffness, solid.positions, **options)


def frame_rows(solid, nodes, about):
    """B (N, 6): displacements of nodes that move with a frame."""
    B = np.zeros((solid.basis.N, 6))
    for row in solid.rows_at(nodes):
        node, c = solid.dofs[row]
        B[row, c] = 1.0
        B[row, 3:] = [np.cross(axis, solid.positions[node] - about)[c] for axis in np.eye(3)]
    return B


def clamped(solid, tie):
    """Mass and stiffness with the root held; the tip rigid: its six numbers last, and its motion as six rows."""
    tip, about = solid.at(LENGTH), np.array([LENGTH, 0.0, 0.0])
    held = solid.rows_at(solid.at(0.0))
    B = frame_rows(solid, tip, about)
    if tie == "mean":
        keep = np.setdiff1d(np.arange(solid.basis.N), held)
        K, M = (A[keep][:, keep].tocsc() for A in (solid.stiffness, solid.mass))
        rows = solid.rows_at(tip)
        W = np.zeros((6, solid.basis.N))
        W[:, rows] = np.linalg.solve(B[rows].T @ B[rows], B[rows].T)
        return K, M, W[:, keep]
    keep = np.setdiff1d(np.arange(solid.basis.N), np.concatenate([held, solid.rows_at(tip)]))
    T = sp.hstack([sp.identity(solid.basis.N, format="csc")[:, keep], sp.csc_matrix(B)]).tocsc()
    W = np.zeros((6, T.shape[1]))
    W[:, -6:] = np.eye(6)
    return (T.T @ solid.stiffness @ T).tocsc(), (T.T @ solid.mass @ T).tocsc(), W


def compliance(K, W):
    lu = splu(K)
    x = lu.solve(W.T.copy())
    return W @ (x + lu.solve(W.T - K @ x))


def reduced_compliance(part):
    motion = np.hstack([part.shifts[0], part.turns[0]]).T
    return motion @ (motion / part.stiffness).T


@pytest.mark.slow
@pytest.mark.parametrize("tie", ["rigid", "mean"])
def test_frequencies_and_compliance_of_a_solid_cantilever_are_those_of_the_whole_model(solid, tie):
    K, M, W = clamped(solid, tie)
    exact = np.sqrt(np.sort(eigsh(K, 6, M, sigma=0.0, return_eigenvectors=False)))
    stiff = compliance(K, W)
    for basis, bound in (("rubin", 1e-6), ("craig-bampton", 1e-2)):
        part = reduced(solid, tie={"tip": tie}, basis=basis, modes=10)
        error = np.abs(part.frequencies[:6] / exact - 1.0)
        assert error.max() < bound
        np.testing.assert_allclose(np.diag(reduced_compliance(part)), np.diag(stiff), rtol=3e-9)
    assert error[0] < 2e-5  # of Craig-Bampton with ten inner modes; it falls with their number
    assert np.abs(reduced(solid, tie={"tip": tie}, modes=40).frequencies[:6] / exact - 1.0).max() < 2e-5


@pytest.mark.slow
def test_a_root_in_the_mean_and_free_modes_have_frequencies_of_the_free_body(solid):
    exact = np.sqrt(np.sort(eigsh(solid.stiffness, 12, solid.mass, sigma=-1e4, return_eigenvectors=False))[6:])
    part = reduced(solid, tie="mean", basis="free", modes=6)
    b = sl.Builder("free", gravity=(0, 0, 0)).body("bar", flexible=part).free("float", "world", "bar")
    robot = sl.Dynamics(b.build())
    M = robot.mass_matrix(robot.model.neutral())
    K = np.diag([0.0] * 6 + list(part.stiffness))
    squares = np.sort(np.linalg.eigvals(np.linalg.solve(M, K)).real)[6:]
    np.testing.assert_allclose(np.sqrt(squares), exact, rtol=1e-8)


@pytest.mark.slow
def test_the_mass_matrix_of_a_bent_body_is_that_of_its_elements(solid):
    """T = ½ ∫ρ |u + ω × r + φ η̇|², r = x + φ η, by the consistent mass of the elements."""
    part = reduced(solid, modes=2)
    robot = sl.Dynamics(sl.Builder("free").body("bar", flexible=part).free("float", "world", "bar").build())
    rng = np.random.default_rng(3)
    q = robot.model.neutral()
    eta = 0.02 * rng.standard_normal(part.n)
    q[robot.model.q_slice("bar.modes")] = eta
    # shapes of all nodes, by their modes' definition: solve the whole model for what the frame of the tip does
    shapes = _shapes(solid, part)
    r = solid.positions.copy()
    for row, (node, c) in enumerate(solid.dofs):
        r[node, c] += shapes[row] @ eta
    J = np.zeros((solid.basis.N, 6 + part.n))
    for row, (node, c) in enumerate(solid.dofs):
        J[row, c] = 1.0
        J[row, 3:6] = [np.cross(axis, r[node])[c] for axis in np.eye(3)]
        J[row, 6:] = shapes[row]
    exact = J.T @ (solid.mass @ J)
    v = robot.model.v_slice("float")
    M = robot.mass_matrix(q)
    found = M[
        np.ix_([*range(v.start, v.stop), *range(6, 6 + part.n)], [*range(v.start, v.stop), *range(6, 6 + part.n)])
    ]
    order = _linear_first(robot, q)
    np.testing.assert_allclose(found[np.ix_(order, order)], exact, rtol=0.0, atol=1e-11 * np.abs(exact).max())


def _linear_first(robot, q):
    """Rows of a free joint's velocity as displacement, then rotation."""
    J = robot.jacobian(q, "bar.root")  # angular, then linear rows
    linear = [int(np.argmax(np.abs(J[3 + k, :6]))) for k in range(3)]
    angular = [int(np.argmax(np.abs(J[k, :6]))) for k in range(3)]
    return [*linear, *angular, *range(6, robot.model.nv)]


def _shapes(solid, part):
    """The shapes (N, n) of a body again: of least energy where its surface shows them. All nodes are drawn."""
    shapes = np.zeros((solid.basis.N, part.n))
    nodes = np.arange(len(solid.positions))
    pad = np.concatenate([nodes, nodes[: -len(nodes) % 3]]).reshape(-1, 3)
    drawn = reduced(solid, modes=2, surface=pad)
    np.testing.assert_allclose(drawn.stiffness, part.stiffness, rtol=1e-9)
    for row, (node, c) in enumerate(solid.dofs):
        shapes[row] = drawn.movement[node, :, c]
    return shapes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:simulate. body 'bar' spins")
def test_a_free_body_keeps_its_energy_and_momentum(solid):
    part = reduced(solid, basis="cantilever", modes=4)
    robot = sl.Dynamics(
        sl.Builder("free", gravity=(0, 0, 0)).body("bar", flexible=part).free("float", "world", "bar").build()
    )
    v = np.zeros(robot.model.nv)
    v[:6] = [5.0, -8.0, 10.0, 0.1, 0.2, 0.0]
    q = robot.model.neutral()
    q[robot.model.q_slice("bar.modes")] = [2e-3, -1e-3, 2e-4, 1e-4]
    run = sl.simulate(robot, q, v, duration=0.02, step=1e-6, integrator="rk4")
    energy = run.energy.sum(axis=-1)
    assert np.ptp(energy) < 1e-9 * energy[0]
    before, after = (robot.momentum(run.q[k], run.v[k]) for k in (0, -1))
    np.testing.assert_allclose(after[3:], before[3:], rtol=0.0, atol=1e-10 * np.abs(before).max())


# ---- geometric stiffening by a function that returns differential stiffness

BLADE = (1.0, 0.02, 0.05)  # length, width, height: soft in y


@pytest.fixture(scope="module")
def blade():
    mesh = bar(*BLADE, counts=(20, 1, 2))
    solid = Solid(mesh, ALUMINIUM)
    ends = {"root": solid.at(0.0), "tip": solid.at(BLADE[0])}
    part = sl.flexible.from_matrices(
        solid.mass, solid.stiffness, solid.positions, dofs=solid.dofs, interfaces=ends, basis="rubin", modes=6,
        stiffening=solid.differential_stiffness,
    )  # fmt: skip
    return part


def flapping(part, spin):
    """The first frequency of the blade in its soft direction y, while its root spins about y."""
    b = sl.Builder("rotor", gravity=(0, 0, 0)).body("blade", flexible=part)
    robot = sl.Dynamics(b.revolute("hub", "world", "blade", "y", driven=True).build())
    n = part.n
    v = np.zeros(robot.model.nv)
    v[0] = spin
    tau = np.zeros(robot.model.nv)
    step = 1e-6

    def acceleration(eta):
        return robot.forward_dynamics(np.array([0.0, *eta]), v, tau)[1:]

    rest, steps = np.zeros(n), step * np.eye(n)
    for _ in range(3):  # stretched by the spin, in equilibrium
        A = np.array([(acceleration(rest + e) - acceleration(rest - e)) / (2 * step) for e in steps]).T
        rest = rest - np.linalg.solve(A, acceleration(rest))
    return np.sqrt(np.sort(-np.linalg.eigvals(A).real)[0])


@pytest.mark.slow
def test_a_spinning_blade_of_tetrahedra_flaps_as_the_exact_beam(blade):
    still = blade.frequencies[0]
    assert blade.level == 2
    for ratio, exact in ((2.0, 4.1373), (4.0, 5.5850)):  # Ω, flap in √(EI/ρAL⁴) [Wright et al. 1982]
        unit = still / 3.5160
        found = flapping(blade, ratio * unit) / unit
        assert found == pytest.approx(exact, rel=2e-3)


@pytest.mark.slow
def test_a_column_of_tetrahedra_buckles_at_eulers_load(blade):
    length, width, height = BLADE
    euler = np.pi**2 / 4.0 * ALUMINIUM["E"] * height * width**3 / 12.0 / length**2
    g = blade.bent_shifts[0][..., 0]
    values = np.linalg.eigvals(np.linalg.solve(np.diag(blade.stiffness), -g))  # K − (−P)(−g): det(K + P g) = 0
    found = 1.0 / values.real.max()
    assert found == pytest.approx(euler, rel=1e-2)


@pytest.mark.slow
def test_modes_are_chosen_by_frequency_and_by_effective_mass(solid):
    slow = reduced(solid, basis="cantilever", modes=6)
    some = reduced(solid, basis="cantilever", up_to=1.001 * slow.frequencies[3] / (2 * np.pi))
    assert some.n == 4
    np.testing.assert_allclose(some.frequencies, slow.frequencies[:4], rtol=1e-9)
    heavy = reduced(solid, basis="cantilever", modes=6, by="effective mass")
    assert heavy.effective[:3].min() > 0.7 > slow.effective[:3].min()  # the slowest ones move hardly any mass along x


def test_steel_in_words(solid):
    text = str(reduced(solid, modes=2))
    mass = STEEL["rho"] * LENGTH * 0.03 * 0.02
    for part in (
        f"mass {mass:.4g}",
        "craig-bampton (2 inner) to 8 modes",
        "level of data 1",
        "tip at (0.5,",
        "leave out",
    ):
        assert part in text


def test_a_solid_that_was_condensed_before_has_level_0_and_warns():
    solid = Solid(bar(0.2, counts=(4, 1, 1)), quadratic=False)
    n = len(solid.positions)
    order = np.argsort(3 * solid.dofs[:, 0] + solid.dofs[:, 1])
    M, K = (A.toarray()[np.ix_(order, order)] for A in (solid.mass, solid.stiffness))
    kept = np.setdiff1d(np.arange(n), solid.at(0.1)[:2])
    a = (3 * kept[:, None] + np.arange(3)).ravel()
    b = np.setdiff1d(np.arange(3 * n), a)
    T = np.zeros((3 * n, len(a)))
    T[a], T[b] = np.eye(len(a)), -np.linalg.solve(K[np.ix_(b, b)], K[np.ix_(b, a)])
    M, K = (0.5 * (A + A.T) for A in (T.T @ M @ T, T.T @ K @ T))
    x = solid.positions[kept, 0]
    ends = {"root": np.flatnonzero(x < 1e-9).tolist(), "tip": np.flatnonzero(x > 0.2 - 1e-9).tolist()}
    with pytest.warns(sl.errors.SpanloopWarning, match="reduced before .static condensation.: level of data 0"):
        part = sl.flexible.from_matrices(M, K, solid.positions[kept], interfaces=ends, modes=2)
    assert part.level == 0
