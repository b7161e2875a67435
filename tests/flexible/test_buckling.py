"""Loads at which beams buckle: the least load at which the stiffness of small deflections becomes singular.

Exact loads: [Timoshenko & Gere 1961] tip load π²/4 EI/L², own weight 7.8373 EI/L³, lateral 4.0126 √(EI GJ)/L². A beam
that is loaded along its axis, or across its stiff side, has q = 0 as an equilibrium.
"""

import numpy as np
import pytest
from scipy.optimize import brentq

import spanloop as sl

LENGTH, E, DENSITY, AREA, SECOND = 2.0, 7e10, 2700.0, 4e-4, 2e-8
BENDING = E * SECOND
CANTILEVER = {"basis": "cantilever", "modes": {"y": 2, "z": 2}}
TIP_SHAPES = {"basis": "craig-bampton", "modes": {"y": 0, "z": 0}}


def column(gravity=0.0, **options):
    """A beam on the ground, upright along x; gravity [m/s²] presses it down."""
    recipe = sl.flexible.beam(LENGTH, E=E, density=DENSITY, area=AREA, I=SECOND, **options)
    b = sl.Builder("column", gravity=(-gravity, 0.0, 0.0)).body("column", flexible=recipe)
    return sl.Dynamics(b.fixed("ground", "world", "column").build())


def stiffness(robot, force):
    """∂(forces that hold it)/∂q under a force (3,) at the tip that keeps its direction; q = 0 is an equilibrium."""
    still = np.zeros(robot.model.nv)
    load = {f"{robot.model.bodies[1].name}.tip": np.concatenate([np.zeros(3), force])}
    np.testing.assert_allclose(robot.inverse_dynamics(still, still, still, forces=load), 0.0, atol=1e-9)
    found = robot.inverse_dynamics_derivatives(still, still, still, forces=load).dtau_dq
    np.testing.assert_allclose(found, found.T, atol=1e-9 * np.abs(found).max())
    return found


def least_eigenvalue(K):
    """Of K with rows and columns scaled, so that modes of all stiffnesses count alike."""
    scale = np.sqrt(np.abs(K.diagonal()))
    return np.linalg.eigvalsh(K / np.outer(scale, scale))[0]


@pytest.mark.slow
@pytest.mark.parametrize("options", [CANTILEVER, TIP_SHAPES], ids=["cantilever", "tip"])
def test_a_column_under_a_tip_load(options):
    robot, unit = column(**options), BENDING / LENGTH**2
    load = brentq(lambda p: least_eigenvalue(stiffness(robot, (-p * unit, 0.0, 0.0))), 1.0, 4.0, xtol=1e-10)
    assert abs(load / (np.pi**2 / 4.0) - 1.0) < 0.01
    assert load == pytest.approx({"cantilever": 2.482, "craig-bampton": 2.486}[options["basis"]], abs=6e-4)
    planes = np.linalg.eigvalsh(stiffness(robot, (-load * unit, 0.0, 0.0)))[:2]
    np.testing.assert_allclose(planes, 0.0, atol=1e-5 * BENDING / LENGTH**3)  # both planes buckle at once


@pytest.mark.slow
@pytest.mark.parametrize("options", [CANTILEVER, TIP_SHAPES], ids=["cantilever", "tip"])
def test_a_column_under_its_own_weight(options):
    unit = BENDING / (DENSITY * AREA * LENGTH**3)  # of gravity, for a load of EI/L³ along the column
    straight, pressed = (stiffness(column(g * unit, **options), (0.0, 0.0, 0.0)) for g in (0.0, 1.0))
    found = brentq(lambda g: least_eigenvalue(straight + g * (pressed - straight)), 4.0, 12.0, xtol=1e-10)
    assert abs(found / 7.8373 - 1.0) < 0.01
    assert found == pytest.approx({"cantilever": 7.853, "craig-bampton": 7.889}[options["basis"]], abs=1e-3)
    singular = least_eigenvalue(stiffness(column(found * unit, **options), (0.0, 0.0, 0.0)))
    assert abs(singular) < 1e-9  # the stiffness is linear in gravity


@pytest.mark.slow
def test_tension_holds_a_column_straight():
    robot = column(**CANTILEVER)
    none, pulled = (least_eigenvalue(stiffness(robot, (p, 0.0, 0.0))) for p in (0.0, 50.0 * BENDING / LENGTH**2))
    assert none == pytest.approx(1.0)
    assert pulled > 0.0


def blade(**options):
    """A cantilever that is stiff in z: it bends in y and twists; a force in z makes it tip over."""
    recipe = sl.flexible.beam(
        LENGTH, E=E, density=DENSITY, area=AREA, Iz=SECOND, Iy=30.0 * SECOND, J=3.0 * SECOND, G=2.6e10, **options
    )
    b = sl.Builder("blade", gravity=(0.0, 0.0, 0.0)).body("blade", flexible=recipe)
    return sl.Dynamics(b.fixed("wall", "world", "blade").build())


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("basis", ["cantilever", "craig-bampton"])
def test_lateral_buckling_by_a_tip_force(basis, sign):
    robot, unit = blade(modes={"y": 2, "torsion": 2}, basis=basis), np.sqrt(BENDING * 2.6e10 * 3.0 * SECOND) / LENGTH**2
    found = brentq(lambda p: least_eigenvalue(stiffness(robot, (0.0, 0.0, sign * p * unit))), 2.0, 8.0, xtol=1e-10)
    assert abs(found / 4.0126 - 1.0) < 0.01
