"""A mechanism answers alike whatever its size: lengths are measured against those of its own loops."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop import zoo
from spanloop.errors import Reason, StateError
from spanloop.topology import mechanism

CASES = {
    "slider_crank": (zoo.slider_crank, zoo.slider_crank_start),
    "four_bar": (zoo.four_bar, zoo.four_bar_start),
    "stewart": (zoo.stewart, zoo.stewart_start),
    "delta": (zoo.delta, zoo.delta_start),
}
FACTORS = (1e-4, 2.0**-10, 1e3)  # a crank of 0.1 m becomes one of 10 µm, and of 100 m


def state(name):
    """A model, a closed state with velocities and torques, and its answer."""
    make, start = CASES[name]
    robot = sl.Dynamics(make())
    rng = np.random.default_rng(1)
    q, v = robot.project(robot.assemble(start()), rng.normal(size=robot.model.nv))
    tau = rng.normal(size=robot.model.nv)
    return robot, q, v, tau


def units(model, length):
    """Factors of q, v and a: of entries of v, and of entries of q."""
    of_v = np.array([length if u == "m" else 1.0 for j in model.joints for u in j.kind.units])
    of_q = np.concatenate([[length if u == "m" else 1.0 for u in coordinates(j.kind)] for j in model.joints])
    return of_v, of_q


def coordinates(kind):
    """Units of the entries of q; a quaternion has four numbers for three rates."""
    turning = kind.nq - sum(u == "m" for u in kind.units)
    return ["rad"] * turning + [u for u in kind.units if u == "m"] if kind.nq != kind.nv else kind.units


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow
def test_a_mechanism_of_any_size_has_the_same_answers(name, factor):
    robot, q, v, tau = state(name)
    small = sl.Dynamics(robot.model.scale(length=factor, time=1.0))
    of_v, of_q = units(robot.model, factor)
    found = small.solve(q * of_q, v * of_v, tau * factor**2 / of_v)
    expected = robot.solve(q, v, tau)
    assert np.abs(found.a / of_v - expected.a).max() < 1e-12 * np.abs(expected.a).max()
    assert found.status == expected.status == "ok"
    for loop in robot.model.loops:
        forces = [x.loop_forces[loop.name] for x in (found, expected)]
        scale = np.abs(forces[1]).max()
        assert np.abs(forces[0][:3] / factor**2 - forces[1][:3]).max() < 1e-11 * scale
        assert np.abs(forces[0][3:] / factor - forces[1][3:]).max() < 1e-11 * scale
    here, there = small.diagnose(q * of_q), robot.diagnose(q)
    assert (here.rank, here.redundant, here.independent.names) == (there.rank, there.redundant, there.independent.names)
    assert here.distance == pytest.approx(there.distance, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("name", CASES)
def test_a_loop_is_open_by_shares_of_its_own_length(name, factor):
    robot, q, v, tau = state(name)
    small = sl.Dynamics(robot.model.scale(length=factor, time=1.0))
    of_v, of_q = units(robot.model, factor)
    opened = robot.integrate(q, np.full(robot.model.nv, 0.01)) * of_q
    with pytest.raises(StateError) as caught:
        small.forward_dynamics(opened, v * of_v, tau)
    assert caught.value.reason is Reason.OPEN_LOOP
    again = small.assemble(opened)
    assert np.abs(small.closure_error(again) / mechanism(small.model).row_lengths).max() < 1e-12


def test_the_length_of_a_loop_is_that_of_its_links_and_scales_with_them():
    model = zoo.four_bar()
    assert mechanism(model).length == pytest.approx(1.8)
    assert mechanism(model.scale(length=1e-5)).length == pytest.approx(1.8e-5)
    assert mechanism(rail(60.0)).length == pytest.approx(1.0)


def rail(distance):
    """A double pendulum on a slide; its tip is pinned to the ground this far away."""
    b = sl.Builder("rail", gravity=(0.0, -9.81, 0.0))
    for name in ("cart", "upper", "lower"):
        b.body(name, mass=1.0, center=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
    b.prismatic("slide", "world", "cart", "x").revolute("shoulder", "cart", "upper", "z")
    b.revolute("elbow", "upper", "lower", "z", position=(1.0, 0.0, 0.0))
    b.frame("pin", "world", (distance, 0.0, 0.0)).frame("tip", "lower", (1.0, 0.0, 0.0))
    return b.loop("pin", "tip", sl.joints.Revolute("z"), name="closing").build()


@pytest.mark.slow
@pytest.mark.parametrize("distance", [0.5, 60.0, 3e4])
def test_a_slide_that_must_go_far_to_close_its_loop(distance):
    """The links in line, the slide at its end: the loop is singular there, however far that is from neutral."""
    robot = sl.Dynamics(rail(distance))
    bent = robot.assemble([distance - 1.5, 0.6, -1.2])
    near = sl.Dynamics(rail(0.5))
    shift = np.array([distance - 0.5, 0.0, 0.0])
    a = robot.forward_dynamics(bent, np.zeros(3), np.zeros(3))
    assert np.allclose(a, near.forward_dynamics(bent - shift, np.zeros(3), np.zeros(3)), rtol=1e-9)
    assert robot.diagnose(bent).mobility == 1
    with pytest.raises(StateError) as caught:
        robot.forward_dynamics([distance, np.pi / 2, 0.0], np.zeros(3), np.zeros(3))
    assert caught.value.reason is Reason.OPEN_LOOP
