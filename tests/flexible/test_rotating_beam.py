"""A beam that turns at a constant rate about one end: flapping frequencies as published, and Southwell's rule.

Rates and frequencies are in units of √(EI/ρAL⁴). The table is that of Wright, Smith, Thresher & Wang (1982), hub
radius 0. Flapping is out of the plane of rotation, lag in it: lag² = flap² − Ω².
"""

import numpy as np
import pytest

import spanloop as sl

pytestmark = pytest.mark.slow

LENGTH, E, DENSITY, AREA, SECOND = 10.0, 7e10, 3000.0, 4e-4, 2e-7
UNIT = np.sqrt(E * SECOND / (DENSITY * AREA * LENGTH**4))
RATES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0)
FIRST = (3.5160, 3.6816, 4.1373, 4.7973, 5.5850, 6.4495, 7.3604, 9.2568, 11.2023, 13.1702)
SECOND_FLAP = (22.0345, 22.181, 22.615, 23.320, 24.273, 25.446, 26.809, 29.995, 33.640, 37.603)
THREE_MODES = (3.5160, 3.6817, 4.1374, 4.7975, 5.5858, 6.4512, 7.3636, 9.2657, 11.2210, 13.2036)


def rotor(modes, **options):
    recipe = sl.flexible.beam(LENGTH, E=E, density=DENSITY, area=AREA, I=SECOND, modes=modes, **options)
    b = sl.Builder("rotor", gravity=(0.0, 0.0, 0.0)).body("blade", flexible=recipe)
    return sl.Dynamics(b.revolute("shaft", "world", "blade", "z", driven=True).build())


def frequencies(robot, rate):
    """Frequencies of small motions about a steady rotation, slowest first, in units."""
    nv = robot.model.nv
    v = np.zeros(nv)
    v[0] = rate * UNIT
    found = robot.derivatives(np.zeros(nv), v, np.zeros(nv))
    np.testing.assert_allclose(robot.forward_dynamics(np.zeros(nv), v, np.zeros(nv)), 0.0, atol=1e-12)  # it is steady
    np.testing.assert_allclose(found.da_dv[1:, 1:], 0.0, atol=1e-12)  # nothing gyroscopic among the modes
    squares = np.linalg.eigvals(-found.da_dq[1:, 1:])
    return np.sqrt(np.sort(squares.real)) / UNIT


@pytest.fixture(scope="module")
def flap():
    return rotor({"z": 3}, basis="cantilever")


def test_first_flapping_frequency_with_three_cantilever_modes(flap):
    assert abs(frequencies(flap, 5.0)[0] / 6.4495 - 1.0) < 3e-4
    assert abs(frequencies(flap, 10.0)[0] / 11.2023 - 1.0) < 2e-3


def test_the_table_of_first_and_second_frequencies(flap):
    found = np.array([frequencies(flap, rate) for rate in RATES])
    np.testing.assert_allclose(found[:, 0], THREE_MODES, rtol=2e-5)  # what three modes can do, to the digits printed
    np.testing.assert_allclose(found[:, 0], FIRST, rtol=2.6e-3)
    np.testing.assert_allclose(found[:, 1], SECOND_FLAP, rtol=4.5e-3)


def test_lag_squared_is_flap_squared_less_the_rate_squared(flap):
    lag = rotor({"y": 3}, basis="cantilever")
    for rate in (0.0, 2.0, 5.0, 10.0):
        np.testing.assert_allclose(frequencies(lag, rate) ** 2, frequencies(flap, rate) ** 2 - rate**2, rtol=1e-9)


def test_southwells_rule(flap):
    squares = np.array([frequencies(flap, rate)[0] ** 2 for rate in (0.0, 0.05)])
    assert (squares[1] - squares[0]) / 0.05**2 == pytest.approx(1.193, rel=2e-3)


def test_pieces_approach_the_published_frequencies():
    robot = rotor({"z": 1}, pieces=3, elements=10)
    for rate in (0.0, 5.0, 10.0, 12.0):
        k = RATES.index(rate)
        found = frequencies(robot, rate)[:2]
        np.testing.assert_allclose(found, (FIRST[k], SECOND_FLAP[k]), rtol=2.5e-4)


def test_a_linear_model_about_the_steady_rotation_has_these_poles(flap):
    nv = flap.model.nv
    v = np.zeros(nv)
    v[0] = 5.0 * UNIT
    poles = np.linalg.eigvals(flap.linearize(np.zeros(nv), v).A)
    found = np.sort(np.abs(poles.imag))[-6::2] / UNIT
    np.testing.assert_allclose(found, frequencies(flap, 5.0), rtol=1e-6)


# ---- sections that turn


def poles_about_rotation(robot, rate):
    """Imaginary parts of the poles of all DoF but the first, which turns at this rate [rad/s]."""
    nv = robot.model.nv
    v = np.zeros(nv)
    v[0] = rate
    found = robot.derivatives(np.zeros(nv), v, np.zeros(nv))
    zero, one = np.zeros((nv - 1, nv - 1)), np.eye(nv - 1)
    values = np.linalg.eigvals(np.block([[zero, one], [found.da_dq[1:, 1:], found.da_dv[1:, 1:]]]))
    np.testing.assert_allclose(values.real, 0.0, atol=1e-6 * np.abs(values).max())
    return np.sort(values.imag[values.imag > 0.0])


@pytest.mark.parametrize("theory", ["euler-bernoulli", "timoshenko"])
def test_a_flat_blade_turns_back_into_its_plane_of_rotation(theory):
    """The propeller moment, and the pull of the blade on its fibres: in the two modes sin((2k − 1) πx/2L), of
    ((GJ + T Ip/A) θ′)′ − ρ (Iz − Iy) Ω² θ + ρ Ip ω² θ = 0 with the tension T = ρA Ω² (L² − x²)/2."""
    section, rate = sl.flexible.rectangle(0.1, 0.02), 500.0
    modes = {"modes": {"torsion": 2}, "basis": "cantilever", "theory": theory}
    recipe = sl.flexible.beam(1.0, E=E, density=DENSITY, section=section, **modes)
    b = sl.Builder("blade", gravity=(0.0, 0.0, 0.0)).body("blade", flexible=recipe)
    robot = sl.Dynamics(b.revolute("shaft", "world", "blade", "z", driven=True).build())
    x, weights = np.polynomial.legendre.leggauss(40)
    x, weights, waves = 0.5 * (x + 1.0), 0.5 * weights, np.array([0.5, 1.5])[:, None] * np.pi
    shapes, slopes, polar = np.sin(waves * x), waves * np.cos(waves * x), section.Iy + section.Iz
    pull = 0.5 * DENSITY * rate**2 * (1.0 - x**2) * polar
    K = (slopes * weights * (recipe.G * section.J + pull)) @ slopes.T
    K += DENSITY * (section.Iz - section.Iy) * rate**2 * (shapes * weights) @ shapes.T
    squares = np.linalg.eigvals(np.linalg.solve(DENSITY * polar * (shapes * weights) @ shapes.T, K))
    np.testing.assert_allclose(poles_about_rotation(robot, rate), np.sqrt(np.sort(squares.real)), rtol=1e-5)
    assert poles_about_rotation(robot, rate)[0] > 1.02 * poles_about_rotation(robot, 0.0)[0]


def whirl(rate, forward, radius, length):
    """The slowest whirl [rad/s] of a clamped round shaft with rotary inertia that spins at a rate about its axis.

    With b = ρI (ω² − 2 Ω ω), the deflection w obeys EI w⁗ + b w″ − ρA ω² w = 0; the shear force EI w‴ + b w′ vanishes
    at the tip.
    """
    from scipy.optimize import brentq

    gyration, wave = radius**2 / 4.0, E / DENSITY  # I/A, EI/ρI

    def determinant(omega):
        s, k = (omega**2 - 2.0 * rate * omega) / wave, omega**2 / (wave * gyration)
        root = np.sqrt(s * s / 4.0 + k)
        p, q = np.sqrt(root - s / 2.0), np.sqrt(root + s / 2.0)
        ch, sh, c, z = np.cosh(p * length), np.sinh(p * length), np.cos(q * length), np.sin(q * length)
        moment = (p * p * ch + q * q * c, p * p * sh + p * q * z)  # of cosh px − cos qx and sinh px − p/q sin qx
        force = (p**3 * sh - q**3 * z + s * (p * sh + q * z), p**3 * ch + p * q * q * c + s * (p * ch - p * c))
        return moment[0] * force[1] - moment[1] * force[0]

    still = 1.875104**2 * np.sqrt(wave * gyration) / length**2
    low, high = (0.9 * still, 1.3 * still) if forward else (-1.1 * still, -0.7 * still)
    return abs(brentq(determinant, low, high, xtol=1e-10))


def test_a_spinning_shaft_with_rotary_inertia_whirls_as_the_exact_one():
    """In the axes that spin, a forward whirl has the frequency |ω − Ω|, a backward one ω + Ω."""
    radius, length = 0.05, 1.0
    round_bar = {"section": sl.flexible.circle(radius), "theory": "timoshenko", "G": 1e4 * E}  # without shear
    recipe = sl.flexible.beam(length, E=E, density=DENSITY, modes={"y": 4, "z": 4}, basis="cantilever", **round_bar)
    b = sl.Builder("shaft", gravity=(0.0, 0.0, 0.0)).body("shaft", flexible=recipe)
    robot = sl.Dynamics(b.revolute("spin", "world", "shaft", "x", driven=True).build())
    still = whirl(0.0, True, radius, length)
    for rate in (0.0, 0.5 * still, 5.0 * still):
        forward, backward = (whirl(rate, way, radius, length) for way in (True, False))
        found = poles_about_rotation(robot, rate)
        for expected in (abs(forward - rate), backward + rate):
            assert np.abs(found - expected).min() < 2e-5 * still
    assert forward - backward > 0.02 * still  # gyroscopic moments of sections matter
