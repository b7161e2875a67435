"""Forward sensitivities of runs: closed forms, differences, the adjoint, linear systems of single steps."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, StateError, StateWarning, UnsupportedError
from spanloop.simulation.gradients.start_map import joint_rates

BRICK = (0.1, 0.0, 0.0, 0.2, 0.0, 0.25)


def slider() -> sl.Model:
    b = sl.Builder("slider").body("mass", 2.0, inertia=BRICK)
    return b.prismatic("rail", "world", "mass", "z", stiffness=30.0, damping=1.5).build()


def ball() -> sl.Model:
    return sl.Builder("ball").body("stone", 2.0, inertia=BRICK).free("base", "world", "stone").build()


def test_a_linear_system_against_the_exponential_of_its_matrix():
    A = np.array([[0.0, 1.0], [-15.0, -0.75]])
    values, vectors = np.linalg.eig(A)
    s = sl.sensitivities(slider(), [0.3], [0.1], duration=0.2, step=1e-3, integrator="rk4")
    for k in (0, 100, 200):
        exact = (vectors @ np.diag(np.exp(values * s.times[k])) @ np.linalg.inv(vectors)).real
        assert np.concatenate([s.dq[k], s.dv[k]]) == pytest.approx(exact, abs=1e-11)
    assert s.names == ("q.rail", "v.rail")
    assert s.by("q", "v") == pytest.approx(exact, abs=1e-11)


@pytest.mark.slow
def test_samples_are_those_of_simulate():
    q, tau = sl.zoo.four_bar_start(), np.random.default_rng(0).normal(size=(20, 3))
    options = {"duration": 0.2, "step": 0.01, "sample": 0.05, "tau": tau, "limits": "ignore", "integrator": "rk4"}
    run, s = sl.simulate(sl.zoo.four_bar(), q, **options), sl.sensitivities(sl.zoo.four_bar(), q, **options)
    assert np.array_equal(s.times, run.times)
    assert s.q == pytest.approx(run.q, abs=1e-13)
    assert s.v == pytest.approx(run.v, abs=1e-12)
    assert s.dq.shape == (5, 3, 6)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["rk4", "midpoint", "implicit"])
@pytest.mark.parametrize("make", [ball, sl.zoo.four_bar], ids=lambda f: f.__name__)
def test_they_agree_with_the_adjoint(make, integrator):
    rng, model = np.random.default_rng(1), make()
    robot = sl.Dynamics(model)
    if model.loops:
        q = sl.zoo.four_bar_start()
        v = robot.complete_velocity(q, {model.joints[0].name: 1.3})
    else:
        q, v = robot.integrate(model.neutral(), rng.normal(size=6)), rng.normal(size=6)
    tau, weights = rng.normal(size=(3, model.nv)), rng.normal(size=(4, model.nv))
    options = {"duration": 0.03, "step": 0.01, "integrator": integrator, "limits": "ignore", "tau": tau}
    options["wrt"] = ("q", "v", "tau")
    s, found = sl.sensitivities(model, q, v, **options), sl.gradient(model, {"v": weights}, q, v, **options)
    expected = np.concatenate([found.q, found.v, found.tau.ravel()])
    assert np.einsum("si,sik->k", weights, s.dv) == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert s.names[-1] == f"tau.{'base[5]' if make is ball else 'rocker_hinge'}@2"


@pytest.mark.slow
def test_parameters_by_name_agree_with_the_adjoint():
    options = {"duration": 0.1, "step": 0.01, "wrt": ("gravity.z", "v", "rail.stiffness"), "integrator": "rk4"}
    s, found = sl.sensitivities(slider(), [0.3], **options), sl.gradient(slider(), lambda q, v: v[0], [0.3], **options)
    assert s.names == ("gravity.z", "rail.stiffness", "v.rail")
    expected = [found.parameter("gravity.z"), found.parameter("rail.stiffness"), found.v[0]]
    assert s.dv[-1, 0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_lengths_of_links_move_the_start_with_the_loops():
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    name = next(
        n for n, x in zip(model.parameters().names, model.parameters().values, strict=True) if "position.x" in n and x
    )
    s = sl.sensitivities(model, q, duration=0.02, step=0.01, limits="ignore", wrt=name)
    robot, e = sl.Dynamics(model), 1e-6
    p = [
        model.parameters().changed({name: model.parameters().values[model.parameters().index(name)] + x})
        for x in (e, -e)
    ]
    a, b = (sl.Dynamics(model.with_parameters(x)).project(q) for x in p)
    assert s.dq[0, :, 0] == pytest.approx(robot.difference(b, a) / (2.0 * e), abs=1e-7)


@pytest.mark.slow
def test_rates_of_quaternions_are_those_of_the_joint():
    rng, e = np.random.default_rng(2), 1e-6
    model = ball()
    robot = sl.Dynamics(model)
    q, v = robot.integrate(model.neutral(), rng.normal(size=6)), rng.normal(size=6)
    options = {"duration": 0.05, "step": 0.01}
    s, direction = sl.sensitivities(model, q, v, **options), rng.normal(size=6)
    a, b = (sl.simulate(model, robot.integrate(q, x * direction), v, **options) for x in (e, -e))
    assert s.dq[-1, :, :6] @ direction == pytest.approx(robot.difference(b.q[-1], a.q[-1]) / (2.0 * e), abs=1e-8)


def test_rates_of_coordinates_lead_back_to_rates_of_joints():
    b = sl.Builder("kinds")
    for name in ("a", "b", "c", "d", "e"):
        b = b.body(name, 1.0, inertia=BRICK)
    b = b.free("free", "world", "a").spherical("ball", "a", "b").planar("plane", "b", "c", "x")
    model = b.cylindrical("tube", "c", "d").universal("cross", "d", "e").build()
    rng, robot = np.random.default_rng(7), sl.Dynamics(model)
    q, v, e = robot.integrate(model.neutral(), rng.normal(size=model.nv)), rng.normal(size=(3, model.nv)), 1e-6
    rates = [(robot.integrate(q, e * x) - robot.integrate(q, -e * x)) / (2.0 * e) for x in v]
    assert joint_rates(model, q, np.array(rates)) == pytest.approx(v, abs=1e-8)


@pytest.mark.slow
def test_single_steps_of_a_motion_chain_to_the_whole():
    model, steps, h = sl.zoo.chain(2), 6, 0.01
    tau = np.random.default_rng(3).normal(size=(steps, 2))
    options = {"step": h, "integrator": "rk4", "limits": "ignore"}
    run = sl.simulate(model, np.full(2, 0.3), duration=steps * h, tau=tau, **options)
    one = sl.sensitivities(
        model, run.q[:-1], run.v[:-1], duration=h, tau=tau[:, None], wrt=("q", "v", "tau"), **options
    )
    A, B = one.by("q", "v"), one.by("tau")
    assert A.shape == (steps, 4, 4)
    assert B.shape == (steps, 4, 2)
    whole = sl.sensitivities(model, np.full(2, 0.3), duration=steps * h, tau=tau, **options)
    product = np.eye(4)
    for a in A:
        product = a @ product
    assert product == pytest.approx(whole.by("q", "v"), abs=1e-10)
    found = sl.gradient(model, lambda q, v: q[1], np.full(2, 0.3), duration=steps * h, tau=tau, wrt="tau", **options)
    assert found.tau[-1] == pytest.approx(B[-1][1], abs=1e-12)


def test_single_precision():
    options = {"duration": 0.1, "step": 0.01}
    s = sl.sensitivities(slider(), [0.3], integrator=sl.Integrator("rk4", dtype="float32"), **options)
    exact = sl.sensitivities(slider(), [0.3], integrator="rk4", **options)
    assert s.dq.dtype == np.float32
    assert np.abs(s.dq - exact.dq).max() < 1e-5


def test_runs_that_end_early_are_refused():
    def bounce(t, q, v):
        return q[0] + 0.01

    with pytest.raises(StateError, match="sensitivities: the run ended before its duration"):
        sl.sensitivities(slider(), [0.0], duration=0.5, events=bounce)
    with pytest.raises(StateError, match="the run ended before its duration"):
        sl.sensitivities(slider(), [-1.0], duration=0.5, events=bounce)
    with pytest.warns(StateWarning, match="the run ended before its duration"):
        s = sl.sensitivities(slider(), [[0.0], [1.0]], duration=0.1, events=bounce)
    assert np.isnan(s.dq[0]).all()
    assert np.isfinite(s.dq[1]).all()


def test_arguments_that_do_not_fit_are_refused():
    with pytest.raises(UnsupportedError, match="sensitivities: integrator 'RK45' chooses its steps"):
        sl.sensitivities(slider(), duration=0.1, integrator="RK45")
    with pytest.raises(InputError, match="wrt holds 'x'"):
        sl.sensitivities(slider(), duration=0.1, wrt="x")
    with pytest.raises(InputError, match="by: 'tau' is not among wrt"):
        sl.sensitivities(slider(), duration=0.1).by("tau")
    with pytest.raises(InputError, match=r"Give a longer sample=, or use sl\.gradient"):
        sl.sensitivities(slider(), duration=20.0, sample=0.001, tau=np.zeros((20000, 1)), wrt="tau")
