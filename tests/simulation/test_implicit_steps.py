"""Implicit steps: closed forms, the method in plain matrices, and when they are chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError
from spanloop.simulation.controllers import Controller

ROD = 0.5  # kg m², inertia of the rod about its hinge


def rod(gravity=(0.0, 0.0, 0.0), inertia=ROD, mass=1.0, **joint):
    body = sl.Builder("rod", gravity=gravity).body("link", mass, (0.0, 0.0, 0.0), (inertia,) * 3)
    return body.revolute("hinge", "world", "link", "y", **joint).build()


def with_losses(model, **values):
    """The model with these numbers at every joint."""
    joints = (replace(j, **{k: (x,) * j.kind.nv for k, x in values.items()}) for j in model.joints)
    return replace(model, joints=tuple(joints))


def decay(u):
    """By how much one step multiplies the velocity of a joint with the damping rate u / h."""
    return 1.0 / (1.0 + u + u**2 / 2.0 + u**3 / 6.0)


@pytest.mark.parametrize("u", [1e-3, 0.1, 1.0, 8.0, 240.0, 1e6])
def test_a_damped_rod_decays_as_the_closed_form_says(u):
    """And q + v/λ, which no motion changes, stays to rounding."""
    model = rod(damping=u * ROD / 1e-3)
    run = sl.simulate(model, [0.0], [1.0], duration=0.02, integrator="implicit")
    np.testing.assert_allclose(run.v[:, 0], decay(u) ** np.arange(21), rtol=0, atol=1e-13)
    np.testing.assert_allclose(run.q[:, 0] + run.v[:, 0] * 1e-3 / u, 1e-3 / u, rtol=0, atol=1e-14)
    assert (np.diff(run.v[:, 0]) <= 0.0).all()  # never alternates
    assert (run.v >= 0.0).all()


@pytest.mark.parametrize("damping", [0.0, 3.0])
def test_a_stiff_spring_comes_to_rest_where_it_carries_the_load(damping):
    """100 rad/step: a spring whose oscillation no step resolves."""
    model = rod(stiffness=1e10 * ROD, damping=damping)
    run = sl.simulate(model, duration=0.2, tau=[20.0])
    assert run.settings["integrator"] == "implicit"
    assert run.settings["stiff"].startswith("the spring of joint 'hinge'")
    assert run.q[-1, 0] == pytest.approx(20.0 / (1e10 * ROD), rel=1e-9)


def plain_step(robot, q, v, h, K, D, tau):
    """One step in plain matrices, with the mass matrix of each stage; K, D, (nv) are in the torques of the robot."""
    w = np.diag(np.linalg.inv(robot.mass_matrix(np.array(robot.model.neutral()))))
    u = h * (D * w + np.sqrt(K * w))
    s = np.sqrt((1.0 + u) / (12.0 + 12.0 * u + 6.0 * u**2 + 2.0 * u**3))
    g = np.where((K > 0.0) | (D > 0.0), h * (0.5 + s) / (1.0 - u * s), 0.0)

    def stage(q, v, r, before):
        E = np.diag(g * D + g * g * K)
        right = tau(q, v) - robot.inverse_dynamics(q, v, np.zeros_like(v)) - g * K * r + 2.0 * E @ before
        return np.linalg.solve(robot.mass_matrix(q) + E, right)

    a1 = stage(q, v, v, np.zeros_like(v))
    k1, v2 = v + g * a1, v + h * a1
    r = v2 - 2.0 * k1
    a2 = stage(robot.integrate(q, h * k1), v2, r, a1)
    return robot.integrate(q, h * (1.5 * k1 + 0.5 * (r + g * (a2 - 2.0 * a1)))), v + 0.5 * h * (a1 + a2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["puma", "star"])
def test_a_step_is_the_method_in_plain_matrices(name):
    model = with_losses({"puma": sl.zoo.puma, "star": lambda: sl.zoo.star(3)}[name](), stiffness=40.0, damping=3.0)
    robot, (q, v) = sl.Dynamics(model), model.random_state(5)
    law = sl.control.pd(model, 300.0, 20.0, model.neutral()) if name == "puma" else None
    run = sl.simulate(model, q, v, duration=4e-3, controller=law, integrator="implicit", limits="ignore")
    K, D = np.full(model.nv, 40.0), np.full(model.nv, 3.0)
    tau = lambda q, v: np.zeros(model.nv)  # noqa: E731
    if law is not None:
        K, D = K + 300.0, D + 20.0
        tau = lambda q, v: -300.0 * q - 20.0 * v  # noqa: E731
    for k in range(4):
        q, v = plain_step(robot, q, v, 1e-3, K, D, tau)
        np.testing.assert_allclose(run.v[k + 1], v, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(run.q[k + 1], q, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("closures", ["project", "minimal"])
def test_loops_with_a_stiff_damper_stay_closed(closures):
    model, q = with_losses(sl.zoo.five_bar(), damping=1e4), sl.zoo.five_bar_start()
    run = sl.simulate(model, q, duration=0.2, closures=closures)
    assert run.settings["integrator"] == "implicit"
    assert run.outcome.finished
    assert run.residual < 1e-12
    slow = sl.simulate(model, q, duration=0.2, integrator=sl.Integrator("Radau", accuracy=1e-10))
    np.testing.assert_allclose(run.q[-1], slow.q[-1], rtol=0, atol=1e-8)


@pytest.mark.slow
def test_high_gains_hold_a_joint_at_its_target():
    model = sl.zoo.puma()
    law = sl.control.pd(model, 1e7, 1e5, {"joint2": 0.3})
    run = sl.simulate(model, duration=0.5, controller=law, limits="ignore")
    assert run.settings["stiff"].startswith("the gains of joint 'joint2'")
    assert run["joint2"].q[-1] == pytest.approx(0.3, abs=1e-5)


def test_gains_count_no_more_where_a_motor_is_at_its_bound():
    """A torque that is clipped does not depend on the state: the acceleration is that of the bound."""
    model = rod().with_actuator("motor", "hinge", max_torque=5.0)
    law = sl.control.pd(model, 1e7, 1e4, {"hinge": 1.0})
    run = sl.simulate(model, duration=0.1, controller=law, integrator="implicit")
    np.testing.assert_allclose(run.v[:, 0], 5.0 / ROD * run.times, rtol=1e-12)


def test_a_joint_that_friction_stops_does_not_tremble():
    """Strength 50 N m at 0.5 kg m²: 100 rad/s² until it stops, after 10 ms. RK4 creeps on at 0.018 rad/s for ever."""
    model = rod(friction=50.0)
    run = sl.simulate(model, [0.0], [1.0], duration=0.05)
    assert run.settings["stiff"].startswith("the friction of joint 'hinge'")
    assert (run.v > -0.2 * 0.01).all()  # of the speed at which friction has 71 % of its strength
    np.testing.assert_allclose(run.v[:9, 0], 1.0 - 100.0 * run.times[:9], atol=1e-3)
    assert np.abs(run.v[14:]).max() < 1e-9


def test_a_link_without_mass_moves_as_its_damper_lets_it():
    model = rod(mass=0.0, inertia=0.0, damping=2.0)
    run = sl.simulate(model, duration=0.1, tau=[3.0])
    np.testing.assert_allclose(run.v[1:, 0], 1.5, rtol=1e-12)


def test_steps_that_suit_the_model_stay_explicit():
    assert sl.simulate(rod(damping=1.0), duration=0.01).settings["integrator"] == "rk4"
    assert sl.simulate(rod(damping=900.0), duration=0.01).settings["integrator"] == "rk4"
    run = sl.simulate(rod(damping=1200.0), duration=0.01)
    assert (run.settings["integrator"], "stiff" in run.settings) == ("implicit", True)
    assert "integrator implicit" in str(run)
    assert "the damping of joint 'hinge' (a rate of 2.4e+03 1/s)" in str(run)
    assert sl.simulate(rod(damping=1200.0), duration=0.01, step=1e-4).settings["integrator"] == "rk4"


ASKS = (
    "the damping of joint 'hinge' (a rate of 2e+06 1/s) asks for steps below 1e-06 s with integrator='{}', not "
    "0.001 s. Use integrator='implicit', which is stable at any step"
)


@pytest.mark.parametrize("limits", [None, 2.0])
@pytest.mark.parametrize("integrator", ["rk4", "euler", "midpoint"])
def test_an_explicit_step_that_fails_names_the_joint(integrator, limits):
    model = rod(damping=1e6, lower=limits and -limits, upper=limits)
    words = ASKS.format(integrator)
    with pytest.warns(sl.SpanloopWarning) as warned:
        run = sl.simulate(model, [0.0], [1.0], duration=0.05, integrator=integrator)
    assert f"simulate: {words}" in [str(w.message) for w in warned]
    assert run.outcome.sentence.endswith(f"T{words[1:]}")


def test_a_law_of_ones_own_that_is_too_stiff_is_named():
    run = sl.simulate(rod(), [0.0], [1.0], duration=0.05, controller=lambda t, q, v: [-1e6 * v[0]])
    assert run.outcome.reason == "not_finite"
    assert "The torques of the controller or the forces of joint 'hinge' (a rate of 2e+06 1/s) ask" in str(run.outcome)


def _hand(damping):
    hand = sl.Builder("hand")
    for name in ("left", "right"):
        hand = hand.body(name, 0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        hand = hand.prismatic(f"{name}_finger", "world", name, "y", damping=damping)
    return hand.coupling("together", "right_finger", "left_finger").build()


def test_coupled_links_without_mass_move_as_their_dampers_let_them():
    run = sl.simulate(_hand(0.3), duration=0.01, tau=[0.6, 0.0])
    assert run.settings["integrator"] == "implicit"
    np.testing.assert_allclose(run.v[-1], 1.0, rtol=1e-9)  # 0.6 N against two dampers of 0.3 N s/m
    np.testing.assert_allclose(run.q[-1, 0], run.q[-1, 1], atol=1e-12)


def test_a_loop_of_links_without_mass_or_damper_names_one_of_them():
    run = sl.simulate(_hand(0.0), duration=0.01)
    assert "_finger' (body '" in run.outcome.sentence
    assert "the mass matrix is singular" in run.outcome.sentence


class Servo(Controller):
    """A law of one's own that declares its gains."""

    inputs = 0

    def __init__(self, declared):
        self.declared = declared

    def torques(self, t, q, v, u, z):
        return [1e6 * (0.3 - q[0]) - 1e4 * v[0]]

    def joint_gains(self):
        return self.declared


def test_a_law_of_ones_own_may_declare_its_gains():
    """What is declared counts, also for two laws that compute the same."""
    run = sl.simulate(rod(), duration=0.3, controller=Servo(([1e6], [1e4])))
    assert run.settings["stiff"].startswith("the gains of joint 'hinge'")
    assert run.q[-1, 0] == pytest.approx(0.3, abs=1e-6)
    half = sl.simulate(rod(), duration=0.3, controller=Servo(([5e5], [5e3])))
    assert not np.array_equal(half.q, run.q)
    with pytest.raises(InputError, match=r"joint_gains returned .*; expected stiffness and damping, 1 numbers each"):
        sl.simulate(rod(), duration=0.3, controller=Servo(([1.0, 2.0], [-1.0])))


def test_a_target_that_moves_evenly_is_followed_without_torque():
    line = sl.control.path(lambda t: (1.0 * t, 1.0, 0.0))
    law = sl.control.pd(rod(), 1e6, 1e4, {"hinge": line})
    run = sl.simulate(rod(), v=[1.0], duration=0.2, controller=law)
    assert run.settings["integrator"] == "implicit"
    np.testing.assert_allclose(run.q[:, 0], run.times, rtol=0, atol=1e-13)
    np.testing.assert_allclose(run.tau, 0.0, rtol=0, atol=1e-7)


@pytest.mark.parametrize("rates", [True, False])
@pytest.mark.parametrize(("kp", "kd"), [(1e6, 1e3), (1e6, 1e4), (0.0, 1e5)])
def test_stiff_gains_follow_a_target_that_swings(kp, kd, rates):
    """Also one whose rates are not given: the joint lags by kd/kp of them. The steps of rk4 are 50 times as short."""

    def swing(t):
        x, rate, a = 0.3 * np.sin(6.0 * t), 1.8 * np.cos(6.0 * t), -10.8 * np.sin(6.0 * t)
        return (x, rate, a) if rates else (x, 0.0 * t, 0.0 * t)

    law = sl.control.pd(rod(), kp, kd, {"hinge": sl.control.path(swing)})
    law = sl.control.together(rod(), law, lambda t, q, v: [0.1 * v[0]])
    start = {"v": [1.8 if rates else 0.0], "duration": 0.2, "sample": 0.01, "controller": law}
    run = sl.simulate(rod(), **start, integrator="implicit")
    exact = sl.simulate(rod(), **start, integrator="rk4", step=5e-6 if kd > 2e4 else 2e-5)
    settled = slice(0 if rates else 10, None)
    np.testing.assert_allclose(run.q[settled], exact.q[settled], rtol=0, atol=3e-6)
    np.testing.assert_allclose(run.tau[10:], exact.tau[10:], rtol=0, atol=0.03)


@pytest.mark.slow
def test_loops_decay_as_trees_do():
    """A rate that one step does not resolve: the crank goes v / λ further, not back."""
    model, q = sl.zoo.four_bar().with_joint("crank_hinge", damping=1e4), sl.zoo.four_bar_start()
    v = sl.Dynamics(model).complete_velocity(q, {"crank_hinge": 1.0})
    run = sl.simulate(model, q, v, duration=0.02)
    exact = sl.simulate(model, q, v, duration=0.02, integrator="rk4", step=2e-5)
    assert run.settings["integrator"] == "implicit"
    np.testing.assert_allclose(run.q[-1], exact.q[-1], rtol=0, atol=2e-7)


def test_live_parameters_count_in_the_choice_of_steps():
    model = rod(damping=1.0)
    stiff = model.parameters().changed({"hinge.damping": 1e5}).values
    rows = np.stack([model.parameters().values] * 20 + [stiff])
    for parameters in (stiff, rows, rows[-3:]):
        run = sl.simulate(model, v=[1.0], duration=0.02, parameters=parameters)
        assert run.settings["integrator"] == "implicit"
        assert run.settings["stiff"].startswith("the damping of joint 'hinge'")
    assert run[2].q[-1, 0] == pytest.approx(ROD / 1e5, rel=1e-9)
    free = rod()
    assert sl.simulate(free, duration=0.01, parameters=free.parameters().values).settings["integrator"] == "rk4"


def pulled_in_part():
    """A chain of which the middle joint alone has a damper."""
    chain = sl.zoo.pendulum(3)
    joints = tuple(replace(j, damping=(2.0,)) if k == 1 else j for k, j in enumerate(chain.joints))
    return replace(chain, joints=joints)


def uneven_ball():
    body = sl.Builder("ball").body("link", 1.0, (0.0, 0.0, -0.3), (0.2, 0.3, 0.1))
    return body.spherical("joint", "world", "link", stiffness=(1.0, 60.0, 5.0)).build()


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (lambda: sl.zoo.pendulum(2), {}),
        (pulled_in_part, {}),
        (lambda: rod(limits=(-0.1, 0.1)), {"limits": "stop"}),
        (uneven_ball, {}),
        pytest.param(sl.zoo.four_bar, {}, marks=pytest.mark.slow),
        pytest.param(lambda: with_losses(sl.zoo.four_bar(), damping=3.0), {}, marks=pytest.mark.slow),
    ],
    ids=["nothing pulls", "one damper", "stop", "ball", "loop", "damped loop"],
)
def test_live_parameters_take_the_steps_of_the_model(model, options):
    model = model()
    v = None if model.loops else np.full(model.nv, 1.0)
    given = {"duration": 0.1, "step": 0.01, "integrator": "implicit"} | options
    own, live = (sl.simulate(model, v=v, **given, parameters=p) for p in (None, model.parameters()))
    np.testing.assert_allclose(live.q, own.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(live.v, own.v, rtol=0, atol=1e-12)


def test_a_gradient_by_parameters_is_that_of_the_same_run():
    model, loss = sl.zoo.pendulum(2), lambda q, v: q @ q + v @ v
    given = {"duration": 0.3, "step": 0.01, "integrator": "implicit"}
    own, live = (sl.gradient(model, loss, [0.3, 0.4], [1.0, 2.0], wrt=w, **given) for w in ("q", ("q", "parameters")))
    assert live.value == pytest.approx(own.value, rel=1e-12)
    np.testing.assert_allclose(live.q, own.q, rtol=1e-11)
    assert np.isfinite(live.parameters).all()
