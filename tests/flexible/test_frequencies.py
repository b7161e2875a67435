"""Natural frequencies of beams against closed forms: the roots of their frequency equations.

A beam of 30 pieces with one element each is the finite-element model of 30 elements itself, as a chain of flexible
bodies. Its lowest frequencies are too high by (βL/30)⁴/1440.
"""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

import spanloop as sl

pytestmark = pytest.mark.slow

LENGTH, E, DENSITY, AREA, SECOND = 2.0, 7e10, 2700.0, 4e-4, 2e-8
UNIT = np.sqrt(E * SECOND / (DENSITY * AREA * LENGTH**4))  # of bending frequencies [rad/s]
GOAL = 2e-5

CLAMPED = (1.8751040687, 4.6940911330, 7.8547574382)
FREE = (4.7300407449, 7.8532046241, 10.9956078380)
HINGED = (3.9266023120, 7.0685827456, 10.2101761228)


def beam(**options):
    return sl.flexible.beam(**{"length": LENGTH, "E": E, "density": DENSITY, "area": AREA, "I": SECOND} | options)


def mechanism(recipe, joint="fixed", tip_mass=0.0):
    """The beam on a joint: "fixed", "free", or "y" or "z", the axis of a hinge."""
    b = sl.Builder("beam", gravity=(0.0, 0.0, 0.0)).body("beam", flexible=recipe)
    if joint in "yz":
        b.revolute("root", "world", "beam", joint)
    else:
        getattr(b, joint)("root", "world", "beam")
    if tip_mass:
        b.body("tip", tip_mass, inertia=(0.0, 0.0, 0.0)).fixed("weld", "beam.tip", "tip")
    return b.build()


def frequencies(model, count=3):
    """The lowest angular frequencies that are not of rigid modes [rad/s]."""
    found = sl.Dynamics(model).modes(model.neutral())
    assert all(kind in ("rigid", "oscillation") for kind in found.kinds)
    return np.array([w for w, kind in zip(found.angular_frequencies, found.kinds, strict=True) if kind != "rigid"])[
        :count
    ]


def largest_error(found, exact):
    assert len(found) == len(exact)
    return np.abs(np.array(found) / np.array(exact) - 1.0).max()


@pytest.mark.parametrize("plane", ["y", "z"])
def test_a_clamped_beam(plane):
    found = frequencies(mechanism(beam(modes={plane: 3}, basis="cantilever")))
    assert largest_error(found / UNIT, np.square(CLAMPED)) < GOAL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plane", "joint", "roots"), [("y", "fixed", CLAMPED), ("z", "free", FREE), ("y", "z", HINGED)]
)
def test_thirty_elements_on_every_root(plane, joint, roots):
    model = mechanism(beam(modes={plane: 0}, pieces=30, elements=1), joint)
    assert largest_error(frequencies(model) / UNIT, np.square(roots)) < GOAL


def tip_mass_roots():
    """βL of a clamped beam with a tip mass equal to its own: 1 + cos cosh + βL (cos sinh − sin cosh) = 0."""

    def equation(x):
        return 1.0 / np.cosh(x) + np.cos(x) + x * (np.cos(x) * np.tanh(x) - np.sin(x))

    return [brentq(equation, *span) for span in ((0.5, 2.0), (3.5, 4.5), (6.5, 7.8))]


def test_the_roots_with_a_tip_mass_are_the_published_ones():
    np.testing.assert_allclose(np.square(tip_mass_roots())[:2], (1.557298, 16.250085), rtol=1e-6)


@pytest.mark.slow
def test_a_clamped_beam_with_a_tip_mass_equal_to_its_own():
    recipe = beam(modes={"z": 0}, pieces=30, elements=1)
    found = frequencies(mechanism(recipe, tip_mass=recipe.mass))
    assert largest_error(found / UNIT, np.square(tip_mass_roots())) < GOAL


@pytest.mark.slow
def test_static_shapes_of_the_tip_and_inner_modes_converge_with_a_tip_mass():
    exact, errors = np.square(tip_mass_roots()[:2]), []
    for inner in (1, 2, 4):
        recipe = beam(modes={"y": inner})
        found = frequencies(mechanism(recipe, tip_mass=recipe.mass), 2) / UNIT
        errors.append(np.abs(found / exact - 1.0))
    assert errors[0][0] < 2e-5  # 1.55732
    assert errors[0][1] < 1e-3  # 16.261
    assert errors[2][1] < 3e-5


@pytest.mark.slow
@pytest.mark.parametrize(("direction", "speed"), [("torsion", "shear"), ("extension", "rod")])
def test_torsion_and_extension_of_a_clamped_rod(direction, speed):
    G, J = 2.6e10, 4e-8
    recipe = beam(modes={direction: 3}, basis="cantilever", G=G, J=J)
    c = {"shear": np.sqrt(G * J / (DENSITY * 2.0 * SECOND)), "rod": np.sqrt(E / DENSITY)}[speed]
    exact = (2.0 * np.arange(1, 4) - 1.0) * np.pi / 2.0 * c / LENGTH
    assert largest_error(frequencies(mechanism(recipe)), exact) < GOAL


@pytest.mark.slow
def test_extension_of_a_free_rod_of_linear_elements():
    recipe = beam(modes={"extension": 0}, pieces=30, elements=1)
    waves = np.arange(1, 4) * np.pi
    found = frequencies(mechanism(recipe, "free")) / (waves * np.sqrt(E / DENSITY) / LENGTH) - 1.0
    np.testing.assert_allclose(found, (waves / 30.0) ** 2 / 24.0, rtol=0.01)  # their known error


# ---- Timoshenko: w' = ψ + V/kGA, ψ' = M/EI, V' = −ρA ω² w, M' = −V − ρI ω² ψ


def timoshenko(second, shear, count=3):
    """Angular frequencies of a clamped Timoshenko beam: zeros of the determinant of its transfer matrix."""
    G = E / 2.6

    def determinant(w):
        A = np.zeros((4, 4))
        A[0, 1], A[0, 2] = 1.0, 1.0 / (shear * G * AREA)
        A[1, 3] = 1.0 / (E * second)
        A[2, 0] = -DENSITY * AREA * w**2
        A[3, 1], A[3, 2] = -DENSITY * second * w**2, -1.0
        return np.linalg.det(expm(A * LENGTH)[2:, 2:])

    steps = np.linspace(0.1, 70.0, 400) * np.sqrt(second / SECOND) * UNIT
    values = [determinant(w) for w in steps]
    pairs = zip(steps, steps[1:], values, values[1:], strict=False)
    return [brentq(determinant, a, b, xtol=1e-9) for a, b, x, y in pairs if x * y < 0.0][:count]


@pytest.mark.slow
@pytest.mark.parametrize("plane", ["y", "z"])
def test_a_clamped_thick_beam_has_the_frequencies_of_timoshenkos_equation(plane):
    second = 4e-6  # radius of gyration 0.1 m, a twentieth of the length
    exact = timoshenko(second, 5.0 / 6.0)
    assert exact[2] < 0.85 * CLAMPED[2] ** 2 * np.sqrt(second / SECOND) * UNIT  # shear and rotary inertia matter
    coarse, fine = (
        frequencies(mechanism(beam(modes={plane: 3}, basis="cantilever", theory="timoshenko", I=second, elements=n)))
        for n in (30, 60)
    )
    assert largest_error(coarse, exact) < 8e-4  # shear is constant in each element
    assert largest_error((4.0 * fine - coarse) / 3.0, exact) < GOAL
