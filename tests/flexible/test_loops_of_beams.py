"""Closed loops of beams: parallel leaf springs, a portal, a four-bar whose hinge is askew."""

import numpy as np
import pytest
from scipy.linalg import eigh

import spanloop as sl

# ---- parallel leaf guidance

LENGTH, E, DENSITY, AREA, SECOND = 0.1, 2.07e11, 7800.0, 1e-5, 2e-13
BENDING = E * SECOND
APART = 0.04


def guidance(**options):
    """Two leaves along x carry a platform that is welded to both tips; forces act in the middle of it."""
    leaf = sl.flexible.beam(LENGTH, E=E, density=DENSITY, area=AREA, I=SECOND, **options)
    b = sl.Builder("guidance", gravity=(0.0, 0.0, 0.0))
    b.body("upper", flexible=leaf).fixed("upper_clamp", "world", "upper", position=(0.0, 0.5 * APART, 0.0))
    b.body("lower", flexible=leaf).fixed("lower_clamp", "world", "lower", position=(0.0, -0.5 * APART, 0.0))
    b.body("platform", 0.2, inertia=(1e-4, 1e-4, 1e-4))
    b.fixed("weld", "upper.tip", "platform", position=(0.0, -0.5 * APART, 0.0))
    b.frame("corner", "platform", position=(0.0, -0.5 * APART, 0.0))
    return sl.Dynamics(b.loop("lower.tip", "corner", name="closing").build())


def sway_stiffness(robot, axial):
    """Of one leaf [EI/L³], at an axial force [EI/L²] on each leaf, tension positive."""
    still = np.zeros(robot.model.nv)
    load = {"platform": np.array([0.0, 0.0, 0.0, 2.0 * axial * BENDING / LENGTH**2, 0.0, 0.0])}
    found = robot.derivatives(still, still, still, forces=load)
    np.testing.assert_allclose(robot.forward_dynamics(still, still, still, forces=load), 0.0, atol=1e-6)
    own = found.independent
    M = found.dq.T @ robot.mass_matrix(still) @ found.dq
    K = -M @ own.da_dq  # along the independent DoF
    sway = robot.jacobian(still, "platform")[4] @ found.dq  # how the platform moves in y with them
    return 1.0 / (sway @ np.linalg.solve(K, sway)) / 2.0 / (BENDING / LENGTH**3)


def exact_sway_stiffness(axial):
    """k L³/EI of a guided leaf: P/(L (1 − tanh u/u)), |P|/(L (tan u/u − 1)), u = (L/2) √(|P|/EI)."""
    u = 0.5 * np.sqrt(abs(axial))
    return axial / (1.0 - np.tanh(u) / u) if axial > 0.0 else -axial / (np.tan(u) / u - 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("inner", [0, 2])
def test_sway_stiffness_of_parallel_leaves_under_axial_load(inner):
    robot = guidance(modes={"y": inner})
    assert sway_stiffness(robot, 0.0) == pytest.approx(12.0, rel=1e-6)
    for axial in (-2.0, 2.0):
        assert sway_stiffness(robot, axial) == pytest.approx(exact_sway_stiffness(axial), rel=1e-3)
    if inner:  # the second has the shape that a leaf takes
        for axial in (-5.0, 5.0):
            assert sway_stiffness(robot, axial) == pytest.approx(exact_sway_stiffness(axial), rel=1e-3)


# ---- a portal: three beams, welded to each other and to the ground at both feet

HEIGHT, WIDTH = 0.8, 1.1
PORTAL = {"area": 2.4e-3, "Iy": 3.2e-7, "Iz": 7.2e-7, "J": 7.5e-7, "G": 8e10, "E": 2.07e11, "density": 7800.0}
UPRIGHT = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])  # axes of a column in the world, as columns


def portal(pieces):
    every = {"y": 1, "z": 1, "torsion": 1, "extension": 1}

    def recipe(length):
        return sl.flexible.beam(
            length, **PORTAL, modes=every, basis="full", theory="timoshenko", elements=1, pieces=pieces
        )

    b = sl.Builder("portal", gravity=(0.0, 0.0, 0.0))
    b.body("left", flexible=recipe(HEIGHT)).fixed("left_foot", "world", "left", rotation=UPRIGHT)
    b.body("beam", flexible=recipe(WIDTH)).fixed("left_corner", "left.tip", "beam", rotation=UPRIGHT.T)
    b.body("right", flexible=recipe(HEIGHT))
    b.fixed("right_foot", "world", "right", position=(WIDTH, 0.0, 0.0), rotation=UPRIGHT)
    b.frame("right_corner", "right.tip", rotation=UPRIGHT.T)
    return sl.Dynamics(b.loop("beam.tip", "right_corner", name="weld").build())


def bending_shapes(xi, length, bending, shear):
    """Deflection, rotation, curvature, shear (4, points) for unit displacements of the ends (w, ψ, w, ψ).

    Without loads between the ends w is a cubic in x, and the rotation ψ is its slope and EI/kGA times its third rate.
    """
    x, alpha, one = xi * length, bending / shear, np.ones_like(xi)
    w = np.array([one, x, x**2, x**3])
    slope = np.array([0 * x, one, 2 * x, 3 * x**2])
    psi = slope + np.array([0 * x, 0 * x, 0 * x, 6 * alpha * one])
    curvature = np.array([0 * x, 0 * x, 2 * one, 6 * x])
    ends = [np.array([[1, e, e**2, e**3], [0, 1, 2 * e, 3 * e**2 + 6 * alpha]]) for e in (0.0, length)]
    coefficients = np.linalg.inv(np.vstack(ends)).T
    return [coefficients @ y for y in (w, psi, curvature, slope - psi)]


def element_matrices(length):
    """Stiffness and mass (14, 14) of an element along x: (u, Θ) of both ends, then u_x and Θ_x of its middle."""
    p = PORTAL
    xi, weights = np.polynomial.legendre.leggauss(6)
    xi, weights = 0.5 * (xi + 1.0), 0.5 * length * weights
    K, M = np.zeros((14, 14)), np.zeros((14, 14))

    def add(places, signs, terms):
        rows = np.array(places)
        for matrix, factor, shape in terms:
            own = np.array(signs)[:, None] * shape
            matrix[np.ix_(rows, rows)] += factor * (own * weights) @ own.T

    line = np.array([2 * (xi - 0.5) * (xi - 1), 2 * xi * (xi - 0.5), 4 * xi * (1 - xi)])
    slope = np.array([4 * xi - 3, 4 * xi - 1, 4 - 8 * xi]) / length
    ones, rho = np.ones(3), p["density"]
    add((0, 6, 12), ones, [(K, p["E"] * p["area"], slope), (M, rho * p["area"], line)])
    add((3, 9, 13), ones, [(K, p["G"] * p["J"], slope), (M, rho * (p["Iy"] + p["Iz"]), line)])
    shear = 5.0 / 6.0 * p["G"] * p["area"]
    for places, signs, second in (((1, 5, 7, 11), (1, 1, 1, 1), p["Iz"]), ((2, 4, 8, 10), (1, -1, 1, -1), p["Iy"])):
        w, psi, curvature, strain = bending_shapes(xi, length, p["E"] * second, shear)
        add(places, signs, [(K, p["E"] * second, curvature), (K, shear, strain)])
        add(places, signs, [(M, rho * p["area"], w), (M, rho * second, psi)])
    return K, M


def assembled_frequencies(elements):
    """Angular frequencies of the portal in finite elements: nodes along left, beam and right, feet held."""
    count = 3 * elements + 1
    size = 6 * count + 2 * 3 * elements
    K, M = np.zeros((size, size)), np.zeros((size, size))
    down = UPRIGHT @ np.diag([-1.0, 1.0, -1.0])
    parts = ((UPRIGHT, HEIGHT), (np.eye(3), WIDTH), (down, HEIGHT))
    for e in range(3 * elements):
        R, length = parts[e // elements]
        stiffness, mass = element_matrices(length / elements)
        turn = np.eye(14)
        for k in range(4):
            turn[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = R.T
        places = [*range(6 * e, 6 * e + 12), 6 * count + 2 * e, 6 * count + 2 * e + 1]
        K[np.ix_(places, places)] += turn.T @ stiffness @ turn
        M[np.ix_(places, places)] += turn.T @ mass @ turn
    free = [k for k in range(size) if not (k < 6 or 6 * count - 6 <= k < 6 * count)]
    return np.sqrt(eigh(K[np.ix_(free, free)], M[np.ix_(free, free)], eigvals_only=True))


@pytest.mark.slow
@pytest.mark.parametrize(("elements", "count"), [(1, 18), (2, 42)])
def test_a_portal_closed_by_a_weld_has_the_frequencies_of_its_finite_elements(elements, count):
    robot = portal(elements)
    found = robot.modes(np.zeros(robot.model.nv))
    exact = assembled_frequencies(elements)
    assert len(found) == len(exact) == count
    np.testing.assert_allclose(found.angular_frequencies, exact, rtol=1e-9)


# ---- a four-bar whose last hinge is askew by 5°: rigid bars are locked, flexible ones bend and twist
# [Bauchau et al. 2016, doi 10.1007/s11044-016-9514-y]

BARS = {"crank": (0.12, 0.016), "coupler": (0.24, 0.016), "rocker": (0.12, 0.008)}  # length, side of the square [m]
STEEL = {"E": 207e9, "density": 7800.0}
SKEW = np.radians(5.0)
TURNED = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # crank and rocker start along y
RATE, RAMP = 0.6, 0.25  # of the crank [rad/s], reached after [s]


def four_bar(flexible=True, **options):
    b = sl.Builder("four_bar", gravity=(0.0, 0.0, 0.0))
    ends = {}
    for name, (length, side) in BARS.items():
        if flexible:
            square = sl.flexible.rectangle(side, side)
            b.body(name, flexible=sl.flexible.beam(length, **STEEL, section=square, **options))
            ends[name] = (f"{name}.tip", (0.0, 0.0, 0.0))
        else:
            mass = STEEL["density"] * side**2 * length
            b.body(name, mass, center=(0.5 * length, 0, 0), inertia=(mass * side**2 / 6, *2 * (mass * length**2 / 12,)))
            ends[name] = (name, (length, 0.0, 0.0))
    c, s = np.cos(SKEW), np.sin(SKEW)
    askew = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    b.revolute("A", "world", "crank", "z", rotation=TURNED, driven=True)
    b.revolute("B", ends["crank"][0], "coupler", "z", position=ends["crank"][1], rotation=TURNED.T)
    b.revolute("D", "world", "rocker", "z", position=(0.24, 0.0, 0.0), rotation=TURNED)
    b.frame("C1", ends["coupler"][0], position=ends["coupler"][1], rotation=askew)
    b.frame("C2", ends["rocker"][0], position=ends["rocker"][1], rotation=TURNED.T @ askew)
    return sl.Dynamics(b.loop("C1", "C2", "revolute", name="C").build())


def turned(robot, duration=2.0, step=1e-3):
    """A run in which the crank is driven: from rest to RATE, smoothly, then steadily."""
    t = (np.arange(round(duration / step)) + 0.5) * step
    tau = np.zeros((len(t), robot.model.nv))
    tau[:, 0] = np.where(t < RAMP, RATE / RAMP * (1.0 - np.cos(2.0 * np.pi * t / RAMP)), 0.0)
    q = np.zeros(robot.model.nq)
    return sl.simulate(robot, q, duration=duration, step=step, tau=tau, integrator="implicit")


@pytest.mark.slow
def test_rigid_bars_with_a_hinge_askew_are_locked_and_the_driven_joint_is_named():
    robot = four_bar(flexible=False)
    run = turned(robot)
    assert run.times[-1] == 0.0
    assert "driven joints ('A') prescribe more than the loops leave free: the loops leave 0 DoF" in str(run)


@pytest.mark.slow
def test_flexible_bars_with_a_hinge_askew_turn_all_round_and_one_piece_is_enough():
    static = {"y": 0, "z": 0, "torsion": 0, "extension": 0}  # with extension the bars pass the stretched positions
    found = []
    for options in ({"modes": static}, {"modes": static, "pieces": 2, "elements": 10}):
        robot = four_bar(**options)
        run = turned(robot, 11.0)
        assert run.times[-1] == pytest.approx(11.0)
        assert run.q[-1, 0] == pytest.approx(RATE * (11.0 - 0.5 * RAMP), abs=1e-9)
        q, v = run.q[::20], run.v[::20]
        assert np.abs(robot.closure_error(q)).max() < 1e-9
        found.append((robot.pose(q, "coupler.tip")[:, 2, 3], robot.energy(q, v)[:, 1]))
    (height, strain), (finer_height, finer_strain) = found
    assert np.abs(finer_height).max() > 2e-3  # it leaves its plane by millimetres
    np.testing.assert_allclose(height, finer_height, rtol=0.0, atol=5e-3 * np.abs(finer_height).max())
    np.testing.assert_allclose(strain, finer_strain, rtol=0.0, atol=5e-3 * finer_strain.max())


@pytest.mark.slow
def test_bars_that_cannot_stretch_come_to_a_singular_position_where_all_are_in_line():
    run = turned(four_bar(modes={"y": 0, "z": 0, "torsion": 0}), 3.0)
    assert "the loops came to a singular configuration" in str(run)
    assert run.q[-1, 0] == pytest.approx(0.5 * np.pi, abs=0.05)
