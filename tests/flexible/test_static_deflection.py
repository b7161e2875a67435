"""static_deflection: closed forms of cantilevers, buckling, loops, loads, and what is reported."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from flexible_runs import FOUR_BAR_START, boom, four_bar

import spanloop as sl
from spanloop.errors import InputError, StateError

E, SIDE, LENGTH, DENSITY = 7e10, 0.02, 2.0, 2700.0
EI = E * SIDE**4 / 12.0
WEIGHT = DENSITY * SIDE**2 * 9.81  # N/m


def heavy(load: float, hinge="y", **recipe) -> sl.Model:
    """A beam whose weight is q L³/EI = load."""
    area = 1e-4
    I = DENSITY * area * 9.81 * LENGTH**3 / load / E
    beam = sl.flexible.beam(LENGTH, E=E, density=DENSITY, area=area, I=I, **recipe)
    return sl.Builder("heavy").body("boom", flexible=beam).revolute("hinge", "world", "boom", hinge).build()


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [1, 2])
def test_a_cantilever_sags_by_its_weight_and_by_a_tip_load(pieces):
    robot = sl.Dynamics(boom(modes={"z": 1}, pieces=pieces))
    sag = robot.static_deflection({"hinge": 0.0})
    tip = robot.pose(sag, "boom.tip")[2, 3]
    assert tip == pytest.approx(-WEIGHT * LENGTH**4 / (8.0 * EI), rel=2e-4)  # pieces follow the slope of 0.015 rad
    loaded = robot.static_deflection({"hinge": 0.0}, {"boom.tip": [0, 0, 0, 0, 0, -1.0]})
    assert robot.pose(loaded, "boom.tip")[2, 3] - tip == pytest.approx(-(LENGTH**3) / (3.0 * EI), rel=1e-3)


@pytest.mark.slow
def test_what_is_found_is_at_rest_under_the_torques_that_hold_it():
    robot = sl.Dynamics(boom(modes=1))
    q = robot.static_deflection(np.r_[0.4, np.zeros(robot.model.nq - 1)])
    tau = robot.static_torques(q)
    assert q[0] == 0.4
    assert np.abs(tau[1:]).max() < 1e-12 * abs(tau[0])
    assert tau[0] == pytest.approx(-WEIGHT * LENGTH * robot.center_of_mass(q)[0], rel=1e-12)
    assert np.abs(robot.forward_dynamics(q, np.zeros(len(tau)), tau)).max() < 1e-9
    single = sl.Dynamics(robot.model, dtype="float32")
    assert np.array_equal(single.static_deflection({"hinge": 0.4}), robot.static_deflection({"hinge": 0.4}))
    assert np.array_equal(robot.static_deflection(np.stack([q, q]))[1], robot.static_deflection(q))


@pytest.mark.slow
@pytest.mark.parametrize("modes", [{"z": 2}, {"y": 2, "z": 2}])
def test_a_beam_that_stands_buckles_by_its_own_weight(modes):
    """q L³/EI = 7.8373; with two cantilever modes a plane to 1 %."""
    for load, stable in ((7.7, True), (7.98, False)):
        robot = sl.Dynamics(heavy(load, modes=modes, basis="cantilever"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            q = robot.static_deflection({"hinge": -np.pi / 2})
        words = [str(w.message) for w in caught]
        assert np.abs(q[1:]).max() < 1e-9
        assert (words == []) == stable
    assert "not stable: it buckles at 0.98" in words[0]
    assert "stiffer" in words[0]


def test_a_beam_that_bends_farther_than_its_shapes_follow_is_reported():
    robot = sl.Dynamics(heavy(3.0, modes={"z": 1}))
    with pytest.warns(sl.SpanloopWarning, match=r"'boom' bends by up to 0\.\d+ rad .* pieces="):
        robot.static_deflection({"hinge": 0.0})


@pytest.mark.slow
def test_with_loops_passive_joints_follow_and_stay_closed():
    model = four_bar()
    robot = sl.Dynamics(model)
    q = robot.static_deflection(FOUR_BAR_START)
    assert q[0] == 1.0
    assert np.abs(robot.closure_error(q)).max() < 1e-12
    tau = robot.static_torques(q)
    assert np.abs(robot.forward_dynamics(q, np.zeros(model.nv), tau)).max() < 1e-8
    softer = sl.Dynamics(four_bar(E=3.5e8)).static_deflection(FOUR_BAR_START)
    at = model.q_slice("coupler.modes")
    assert softer[at][0] / q[at][0] == pytest.approx(2.0, rel=0.05)


@pytest.mark.slow
def test_wrong_arguments_are_refused():
    robot = sl.Dynamics(boom(modes=1))
    with pytest.raises(InputError, match="held names 'hing'; did you mean 'hinge'"):
        robot.static_deflection({"hinge": 0.0}, held=["hing"])
    with pytest.raises(InputError, match="no flexible body"):
        sl.Dynamics(sl.zoo.pendulum()).static_deflection([0.0])
    actuated = sl.Dynamics(
        four_bar().with_joint("rocker_hinge", actuated=True).with_joint("coupler_hinge", actuated=True)
    )
    with pytest.raises(InputError, match="Name those that are, as held="):
        actuated.static_deflection(FOUR_BAR_START)
    held = actuated.static_deflection(FOUR_BAR_START, held=["crank_hinge"])
    assert np.allclose(held, sl.Dynamics(four_bar()).static_deflection(FOUR_BAR_START), atol=1e-12)
    with pytest.raises(StateError, match="finite"):
        robot.static_deflection(np.full(robot.model.nq, np.nan))


def spinning(rate, **options):
    """A blade that spins about an axis across it, with a drive that keeps its rate; its weak direction is the axis."""
    blade = sl.flexible.beam(
        1.0,
        E=7e10,
        density=2700.0,
        section=sl.flexible.rectangle(0.03, 0.01),
        basis="cantilever",
        modes={"z": 3, "y": 2},
    )
    b = sl.Builder("rotor", gravity=(0, 0, 0)).body("blade", flexible=blade)
    robot = sl.Dynamics(b.revolute("drive", "world", "blade", "z", driven=True).build())
    v = np.zeros(robot.model.nv)
    v[0] = rate
    return robot, v


@pytest.mark.slow
def test_the_shape_of_a_steady_rotation_has_no_accelerations_and_stiffens_as_published():
    unit = np.sqrt(7e10 * 0.03 * 0.01**3 / 12.0 / (2700.0 * 0.03 * 0.01))
    for omega, published in ((0.0, 3.5160), (5.0, 6.4495), (10.0, 11.2023)):  # Wright et al. 1982
        robot, v = spinning(omega * unit)
        q = robot.static_deflection({"drive": 0.3}, v={"drive": omega * unit})
        assert q[0] == 0.3
        np.testing.assert_array_equal(q, robot.static_deflection(q, v=v))
        torques = robot.inverse_dynamics(q, v, np.zeros(robot.model.nv))
        assert np.abs(torques[1:]).max() < 1e-9 * max(1.0, (omega * unit) ** 2)
        poles = np.linalg.eigvals(robot.linearize(q, v).A).imag
        np.testing.assert_allclose(poles[poles > 1.0].min() / unit, published, rtol=3e-3)


def test_rates_of_a_steady_rotation_are_checked():
    robot, v = spinning(10.0)
    v[1] = 1.0
    with pytest.raises(sl.errors.InputError, match="a steady shape has none"):
        robot.static_deflection(robot.model.neutral(), v=v)
    with pytest.raises(sl.errors.InputError, match="expected 6 finite rates"):
        robot.static_deflection(robot.model.neutral(), v=[1.0])
