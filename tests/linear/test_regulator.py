"""Regulators hold mechanisms in simulation, are those of python-control, and are refused where no gain helps."""

from __future__ import annotations

import numpy as np
import pytest
from linear_mechanisms import cart_pole, chain, slider

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, SpanloopWarning, UnsupportedError

pytest.importorskip("scipy")


def test_default_weights_give_a_mass_the_natural_frequency_of_its_time():
    """Q = m diag(1/T², 1), R = T²/m: k = m/T², d = √3 m/T."""
    design = sl.Dynamics(slider(2.0)).linearize([0.0]).lqr(time=0.25)
    np.testing.assert_allclose(design.K, [[2.0 / 0.25**2, np.sqrt(3.0) * 2.0 / 0.25]], rtol=1e-9)
    assert design.gain("slide", "slide.v") == design.K[0, 1]
    assert "slide.v" in str(design)


@pytest.mark.parametrize("step", [None, 0.02])
def test_gains_are_those_of_python_control(step):
    control = pytest.importorskip("control")
    linear = sl.Dynamics(cart_pole(0.1)).linearize([0.0, 0.0])
    linear = linear if step is None else linear.discrete(step)
    Q, R = np.diag([1.0, 2.0, 0.1, 0.3]), [[0.5]]
    design = linear.lqr(Q, R)
    K, P, poles = (control.lqr if step is None else control.dlqr)(linear.A, linear.B, Q, R)
    np.testing.assert_allclose(design.K, K, rtol=1e-7)
    np.testing.assert_allclose(design.P, P, rtol=1e-7)
    np.testing.assert_allclose(np.sort(design.poles.real), np.sort(poles.real), rtol=1e-6)
    again = linear.lqr({"rail": 1.0, "hinge": 2.0, "rail.v": 0.1, "hinge.v": 0.3}, {"rail": 0.5})
    np.testing.assert_allclose(again.K, design.K, rtol=1e-9)
    np.testing.assert_allclose(linear.lqr(np.diag(Q), 0.5).K, design.K, rtol=1e-9)


def test_a_weight_of_an_output_is_that_of_its_row():
    linear = sl.Dynamics(cart_pole()).linearize([0.0, 0.0], outputs=["pole.x", "hinge"])
    wanted = 3.0 * np.outer(linear.C[0], linear.C[0])
    for name in ("pole.position.x", "pole.x"):
        np.testing.assert_allclose(linear.lqr({name: 3.0}, 1.0).Q, wanted)


def test_a_weight_takes_names_of_several_rows_as_linearize_does():
    outputs = ["pole.position", "pole.velocity.x", {"f": lambda q, v: q}]
    linear = sl.Dynamics(cart_pole()).linearize([0.0, 0.0], outputs=outputs)
    np.testing.assert_allclose(linear.lqr({"pole.position": 2.0, "f": 1.0}, 1.0).Q, _gram(linear.C, [2, 2, 2, 0, 1, 1]))
    with pytest.raises(InputError, match=r"no 'pole\.velocity\.y'"):
        linear.lqr({"pole.velocity.y": 1.0}, 1.0)


def _gram(C, weights):
    return C.T @ np.diag(weights) @ C


@pytest.mark.parametrize("n", [7, *(pytest.param(n, marks=pytest.mark.slow) for n in (8, 12, 20))])
def test_default_weights_of_many_motors_are_symmetric(n):
    robot = sl.Dynamics(zoo.pendulum(n))
    for angle in (0.0, np.pi):
        design = robot.linearize([angle] + [0.0] * (n - 1)).lqr()
        np.testing.assert_array_equal(design.R, design.R.T)
        assert design.closed_loop.is_stable


def test_a_time_beside_both_weights_is_refused():
    linear = sl.Dynamics(cart_pole()).linearize([0.0, 0.0])
    with pytest.raises(InputError, match=r"time=0.1 belongs to the default weights"):
        linear.lqr(1.0, 1.0, time=0.1)
    linear.lqr(1.0, time=0.1)


# ---- by simulation


def test_gains_of_discrete_time_hold_their_torques_over_the_step():
    """Applied at every moment, these gains make the cart-pole unstable; held over 0.8 s they are the design's."""
    model = cart_pole()
    linear = sl.Dynamics(model).linearize([0.0, 0.0]).discrete(0.8)
    design = linear.lqr(1.0, 0.01)
    run = sl.simulate(model, q=[1e-4, 2e-4], duration=4.0, step=0.001, controller=design.controller)
    held = run["rail"].tau
    assert np.ptp(held[2:800]) == 0.0
    assert np.ptp(held[801:1600]) == 0.0
    states = np.concatenate([run.q, run.v], axis=1)[800::800]  # the first sample is one step late
    expected = states[:-1] @ (linear.A - linear.B @ design.K).T
    np.testing.assert_allclose(states[1:], expected, atol=1e-4 * np.abs(states).max())


def test_a_step_longer_than_the_held_torques_ends_the_run():
    model = cart_pole()
    design = sl.Dynamics(model).linearize([0.0, 0.0]).discrete(0.1).lqr()
    run = sl.simulate(model, q=[0.01, 0.01], duration=1.0, step=0.2, controller=design.controller)
    assert "Take a shorter step" in str(run.outcome)


def test_actuators_are_noted_and_slow_ones_warned_of():
    model = cart_pole().with_actuator("motor", "rail", lag=0.3, max_torque=50.0)
    linear = sl.Dynamics(model).linearize([0.0, 0.0])
    assert "motor (lag 0.3 s, max_torque 50 N m)" in linear.notes[0]
    assert linear.notes[0] in str(linear)
    with pytest.warns(SpanloopWarning, match=r"lag and delay of actuators: motor \(lag 0.3 s"):
        _ = linear.lqr().controller
    quick = cart_pole().with_actuator("motor", "rail", lag=1e-3, friction=0.1, gear=2.0)
    linear = sl.Dynamics(quick).linearize([0.0, 0.0])
    assert linear.notes[0].endswith("motor (lag 0.001 s, friction 0.1 N m)")
    _ = linear.lqr().controller


def test_a_controller_refuses_a_model_with_other_joints():
    design = sl.Dynamics(cart_pole()).linearize([0.0, 0.0]).lqr()
    with pytest.raises(InputError, match="'pendulum2' has other joints"):
        sl.simulate(zoo.pendulum(2), duration=0.1, controller=design.controller)
    heavier = cart_pole().with_parameters({"cart.mass": 3.0})
    assert sl.simulate(heavier, q=[0.1, 0.0], duration=0.01, controller=design.controller).q.shape[-1] == 2


def test_a_cart_pole_is_balanced():
    robot = sl.Dynamics(cart_pole())
    design = robot.linearize([0.0, 0.0]).lqr()
    assert design.closed_loop.is_stable
    run = sl.simulate(robot.model, q=[0.2, 0.3], duration=6.0, controller=design.controller)
    assert np.abs(run.q[-1]).max() < 1e-6


@pytest.mark.slow
def test_a_small_motion_is_that_of_the_closed_loop():
    robot = sl.Dynamics(cart_pole(0.05))
    design = robot.linearize([0.0, 0.0]).lqr()
    start = 1e-4 * np.array([1.0, 2.0])
    run = sl.simulate(robot.model, q=start, duration=2.0, step=1e-3, integrator="rk4", controller=design.controller)
    y = design.closed_loop.simulate(run.times, x=[*start, 0.0, 0.0])
    np.testing.assert_allclose(np.hstack([run.q, run.v]), y, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "stiffness"), [("five_bar", 0.0), ("five_bar", 40.0), ("stewart", 2000.0)])
def test_closed_mechanisms_return_to_their_operating_point(case, stiffness):
    """The five-bar is unstable without its springs; those of the Stewart platform leave it undamped."""
    model, q = (zoo.five_bar(), zoo.five_bar_start()) if case == "five_bar" else (zoo.stewart(), zoo.stewart_start())
    if stiffness:
        model = model.with_parameters({f"{name}.stiffness": stiffness for name in model.actuated})
    robot = sl.Dynamics(model)
    linear = robot.linearize(q)
    design = linear.lqr(time=0.2)
    v = robot.complete_velocity(q, 0.1 * np.ones(len(linear.states) // 2), list(linear.point.dofs))
    run = sl.simulate(model, q=q, v=v, duration=4.0, step=2e-3, controller=design.controller)
    assert np.abs(robot.difference(q, run.q[50])).max() > 1e-4
    assert np.abs(robot.difference(q, run.q[-1])).max() < 1e-6
    assert np.abs(run.v[-1]).max() < 1e-6


@pytest.mark.slow
def test_a_body_on_a_ball_joint_is_held_upright():
    """States of a quaternion: three angles in the body's axes."""
    builder = sl.Builder("top").body("top", 1.0, (0.0, 0.0, 0.3), inertia=[0.02, 0.03, 0.01])
    model = builder.spherical("ball", "world", "top").build()
    robot = sl.Dynamics(model)
    linear = robot.linearize(model.neutral())
    assert linear.states[:3] == ("ball[0]", "ball[1]", "ball[2]")
    design, start = linear.lqr(), robot.integrate(model.neutral(), [0.4, -0.3, 0.5])
    run = sl.simulate(model, q=start, duration=5.0, controller=design.controller)
    assert np.abs(robot.difference(model.neutral(), run.q[-1])).max() < 1e-6


# ---- refusals


def test_modes_that_inputs_do_not_reach_are_named():
    """Two equal poles on one cart: the inputs cannot move their difference."""
    linear = sl.Dynamics(cart_pole(poles=2)).linearize([0.0] * 3)
    with pytest.raises(
        InputError, match=r"lqr: the inputs rail do not act on the mode with the pole [\d.]+ 1/s.*hinge"
    ):
        linear.lqr()
    assert len(linear.uncontrollable_modes) == 2
    assert linear.unobservable_modes == ()
    only_cart = sl.Dynamics(cart_pole()).linearize([0.0, 0.0], outputs="hinge")
    assert only_cart.unobservable_modes == (0.0,)


@pytest.mark.slow
def test_a_falling_body_has_poles_at_zero_that_rounding_does_not_make_unstable():
    """Rotations, velocities and positions of a free body in gravity are a chain of four integrators."""
    robot = sl.Dynamics(zoo.quadruped())
    q = robot.integrate(robot.model.neutral(), 0.3 * np.arange(18.0) / 18.0)
    linear = robot.linearize(q)
    assert "marginal: no pole grows" in str(linear)
    with pytest.raises(InputError, match=r"the mode with the pole 0 1/s, which moves root"):
        linear.lqr()
    assert linear.uncontrollable_modes == (0.0,)


@pytest.mark.slow
def test_an_arm_is_held_with_joints_of_very_different_inertias():
    robot, q = sl.Dynamics(zoo.puma()), np.array([0.1, -0.5, 0.4, 0.3, 0.6, -0.2])
    design = robot.linearize(q).lqr(time=0.1)
    assert design.model.uncontrollable_modes == ()
    run = sl.simulate(robot.model.without_losses(), q=q + 0.1, duration=2.0, controller=design.controller)
    assert np.abs(run.q[-1] - q).max() < 1e-4


def test_a_mode_that_decays_by_itself_needs_no_input():
    robot = sl.Dynamics(chain(2))
    linear = robot.linearize([0.0, 0.0], inputs=["h0"])
    assert linear.lqr().closed_loop.is_stable


def test_weights_that_leave_out_an_unstable_mode_are_refused():
    linear = sl.Dynamics(cart_pole()).linearize([0.0, 0.0])
    with pytest.raises(InputError, match="Q does not weight the mode"):
        linear.lqr({"hinge": 1.0}, 1.0)


@pytest.mark.parametrize(
    ("Q", "R", "words"),
    [
        ([1.0], None, "Q is of shape"),
        (-1.0, 1.0, "must be >= 0"),
        (1.0, 0.0, "must be > 0"),
        ({"hinges": 1.0}, 1.0, "no 'hinges'"),
        ({"hinge": -1.0}, 1.0, "expected a number >= 0"),
        (np.nan, 1.0, "not finite"),
        ("x", 1.0, "Q is 'x'; expected a number"),
        ([[1.0], [2.0, 3.0]], 1.0, r"Q is \[\[1.0\]"),
    ],
)
def test_weights_that_do_not_fit_are_refused(Q, R, words):
    linear = sl.Dynamics(cart_pole()).linearize([0.0, 0.0])
    with pytest.raises(InputError, match=words):
        linear.lqr(Q, R)


def test_controllers_are_refused_off_equilibria_and_for_loads():
    robot = sl.Dynamics(cart_pole())
    with pytest.raises(UnsupportedError, match="no equilibrium"):
        _ = robot.linearize([0.0, 0.3]).lqr().controller
    with pytest.raises(UnsupportedError, match="no torque of a joint"):
        _ = robot.linearize([0.0, 0.0], inputs=["cart.force.x"]).lqr().controller
    with pytest.raises(InputError, match="no inputs"):
        robot.linearize([0.0, 0.0], inputs=[]).lqr()


def test_equal_actuators_share_a_load():
    """Redundant inputs: two names for one torque at a loop's joints have finite gains."""
    robot, q = sl.Dynamics(zoo.four_bar()), zoo.four_bar_start()
    design = robot.linearize(q, inputs=["crank_hinge", "rocker_hinge"]).lqr()
    assert np.isfinite(design.K).all()
    assert design.closed_loop.is_stable
