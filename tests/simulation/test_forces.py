"""Forces that are compiled into a motion: closed forms, energy balances, and sentences."""

from __future__ import annotations

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError
from spanloop.simulation import forces

STILL = (0.0, 0.0, 0.0)


def ball(mass: float = 2.0) -> sl.Model:
    """A body that floats without gravity, with a handle beside its origin."""
    b = sl.Builder("ball")
    b.body("ball", mass, (0.1, 0.0, 0.0), (0.2, 0.3, 0.4))
    b.free("root", "world", "ball")
    b.frame("handle", "ball", (0.3, 0.1, -0.2))
    b.frame("nail", "world", (1.0, 0.5, 0.0))
    return b.build().with_gravity(STILL)


def slider(**options) -> sl.Model:
    """1 kg on a rail along x."""
    b = sl.Builder("slider")
    b.body("cart", 1.0)
    b.prismatic("rail", "world", "cart", "x", **options)
    return b.build()


def work(run, body: str) -> np.ndarray:
    """Power of the recorded forces on a body, from its velocity: an independent account of what acted."""
    return np.einsum("...k,...k->...", run[body].velocity, run.forces[body])


def integral(rate: np.ndarray, h: float) -> np.ndarray:
    """From 0 to each second sample, by Simpson's rule."""
    parts = (h / 3.0) * (rate[:-2:2] + 4.0 * rate[1:-1:2] + rate[2::2])
    return np.concatenate([[0.0], np.cumsum(parts)])


def test_a_spring_to_the_ground_swings_with_its_period():
    model = slider()
    run = sl.simulate(model, [0.3], duration=2.0, forces=forces.spring(model, "cart", "world", 25.0))
    np.testing.assert_allclose(run["rail"].q, 0.3 * np.cos(5.0 * run.times), atol=1e-10)


def test_a_spring_with_a_rest_length_and_a_damper_is_the_damped_oscillator():
    model = slider()
    law = forces.spring(model, "world", "cart", 25.0, rest=0.5, damping=2.0)
    run = sl.simulate(model, [0.8], duration=2.0, forces=law)
    w = np.sqrt(24.0)
    swing = np.exp(-run.times) * (np.cos(w * run.times) + np.sin(w * run.times) / w)
    np.testing.assert_allclose(run["rail"].q, 0.5 + 0.3 * swing, atol=1e-10)


def test_a_spring_keeps_energy_with_its_own():
    """Kinetic energy and k (length − rest)²/2 between two points that turn: constant to the method's error."""
    model = ball()
    q, v = model.random_state(3)
    run = sl.simulate(model, q, v, duration=2.0, forces=forces.spring(model, "handle", "nail", 30.0, rest=0.4))
    length = np.linalg.norm(run["handle"].position - [1.0, 0.5, 0.0], axis=1)
    total = run.energy[:, 0] + 0.5 * 30.0 * (length - 0.4) ** 2
    assert np.ptp(run.energy[:, 0]) > 1.0
    assert np.ptp(total) < 1e-8


@pytest.mark.slow
def test_springs_between_moving_bodies_keep_energy_and_momentum():
    model = sl.zoo.quadruped().without_losses().with_gravity(STILL)
    q, v = model.random_state(2)
    law = forces.spring(model, "fl_foot", "hr_foot", 200.0, rest=0.3)
    run = sl.simulate(model, q, v, duration=0.5, limits="ignore", forces=law)
    length = np.linalg.norm(run["fl_foot"].position - run["hr_foot"].position, axis=1)
    total = run.energy[:, 0] + 100.0 * (length - 0.3) ** 2
    assert np.ptp(length) > 0.1
    assert np.ptp(total) < 1e-6 * total[0]
    np.testing.assert_allclose(run.momentum, np.tile(run.momentum[0], (len(run), 1)), atol=1e-6)


def test_what_a_damper_takes_is_missing_in_the_energy():
    model = ball()
    q, v = model.random_state(3)
    run = sl.simulate(model, q, v, duration=1.0, forces=forces.damper(model, "handle", "nail", 4.0))
    away = run["handle"].position - [1.0, 0.5, 0.0]
    rate = np.einsum("nk,nk->n", away, run["handle"].velocity[:, 3:]) / np.linalg.norm(away, axis=1)
    lost = integral(4.0 * rate**2, run.step)
    np.testing.assert_allclose(run.energy[::2, 0], run.energy[0, 0] - lost, atol=1e-9)
    assert lost[-1] > 0.1


@pytest.mark.parametrize("kind", ["constant", "of time", "in the frame's axes"])
def test_a_wrench_does_the_work_that_the_energy_gains(kind):
    model = ball()
    q, v = model.random_state(1)
    six = (0.3, -0.2, 0.1, 1.0, 2.0, -1.0)

    def of_time(t):
        return [c * (1.0 + t) for c in six]

    law = forces.wrench(model, "handle", of_time if kind == "of time" else six, "handle" if kind[0] == "i" else "world")
    run = sl.simulate(model, q, v, duration=1.0, forces=law)
    size = 1.0 + run.times if kind == "of time" else np.ones(len(run))
    turn = run["handle"].pose[:, :3, :3] if kind[0] == "i" else np.broadcast_to(np.eye(3), (len(run), 3, 3))
    acting = np.concatenate([turn @ np.array(six[:3]), turn @ np.array(six[3:])], axis=1) * size[:, None]
    power = np.einsum("nk,nk->n", acting, run["handle"].velocity)
    np.testing.assert_allclose(run.energy[::2, 0], run.energy[0, 0] + integral(power, run.step), atol=1e-9)
    np.testing.assert_allclose(work(run, "ball"), power, atol=1e-10)


def test_drag_brings_a_body_to_its_terminal_speed():
    """m g = c₁ u + c₂ u²."""
    b = sl.Builder("drop")
    b.body("drop", 0.5, (0, 0, 0), (0.01, 0.01, 0.01))
    b.free("root", "world", "drop")
    model = b.build()
    law = forces.drag(model, "drop", linear=0.2, quadratic=0.3, angular=0.1)
    run = sl.simulate(model, v=[1.0, 0, 0, 0, 0, 0], duration=5.0, forces=law)
    speed = (-0.2 + np.sqrt(0.2**2 + 4 * 0.3 * 0.5 * 9.81)) / 0.6
    assert run["drop"].velocity[-1, 5] == pytest.approx(-speed, rel=1e-9)
    np.testing.assert_allclose(run["root"].v[:, 0], np.exp(-10.0 * run.times), atol=1e-8)


def test_a_stop_throws_back_after_half_a_period_with_the_same_speed():
    """Contact lasts π √(m/k), the depth is v √(m/k); the corner at the limit costs the method an order."""
    model = slider(lower=-1.0, upper=0.1)
    run = sl.simulate(model, [0.0], [1.0], duration=0.5, step=1e-4, limits="ignore", forces=forces.stops(model, 1e4))
    inside = run.times[run["rail"].q > 0.1]
    assert inside[-1] - inside[0] == pytest.approx(np.pi / 100.0, abs=2.5e-4)
    assert run["rail"].q.max() == pytest.approx(0.1 + 1.0 / 100.0, abs=1e-6)
    assert run["rail"].v[-1] == pytest.approx(-1.0, abs=1e-4)
    assert run["rail"].tau.max() == 0.0
    assert run["rail"].tau.min() == pytest.approx(-100.0, rel=1e-3)


def test_a_damped_stop_takes_energy_and_never_pulls():
    model = slider(lower=-0.1, upper=0.1)
    law = forces.stops(model, 1e4, damping=40.0)
    run = sl.simulate(model, [0.0], [1.0], duration=1.0, step=1e-4, limits="ignore", forces=law)
    beyond_upper, beyond_lower = run["rail"].q > 0.1, run["rail"].q < -0.1
    assert beyond_upper.any()
    assert beyond_lower.any()
    assert (run["rail"].tau[beyond_upper] <= 0.0).all()
    assert (run["rail"].tau[beyond_lower] >= 0.0).all()
    assert not run["rail"].tau[~(beyond_upper | beyond_lower)].any()
    free = ~(beyond_upper | beyond_lower)
    assert (np.diff(run.energy[free, 0]) < 1e-9).all()
    assert run.energy[-1, 0] < 0.7 * run.energy[0, 0]


def test_friction_decelerates_by_its_strength():
    """Beyond the slip speed v falls by f/m a second, but for slip²/v²."""
    model = slider()
    run = sl.simulate(model, [0.0], [2.0], duration=1.0, forces=forces.friction(model, {"rail": 1.0}, slip=1e-4))
    np.testing.assert_allclose(run["rail"].v, 2.0 - run.times, atol=1e-6)


def test_friction_ends_a_motion_and_its_loss_is_the_energy():
    model = slider()
    run = sl.simulate(model, [0.0], [0.5], duration=1.0, forces=forces.friction(model, {"rail": 1.0}))
    assert abs(run["rail"].v[-1]) < 1e-6
    lost = integral(-run["rail"].tau * run["rail"].v, run.step)
    np.testing.assert_allclose(run.energy[::2, 0], run.energy[0, 0] - lost, atol=1e-7)


def test_forces_add_up():
    model = ball()
    q, v = model.random_state(5)
    one, two = forces.spring(model, "handle", "nail", 30.0), forces.wrench(model, "ball", (0, 0, 0, 1, 2, 3))
    both = forces.together(one, two)(0.0, q, v)
    np.testing.assert_allclose(both["ball"], np.add(one(0.0, q, v)["ball"], two(0.0, q, v)["ball"]))
    cart = slider(upper=0.1)
    mixed = forces.together(forces.friction(cart, {"rail": 1.0}), forces.stops(cart, 10.0))
    assert mixed(0.0, [0.2], [1e9]) == {("joint", "rail"): [pytest.approx(-2.0)]}


def test_forces_act_on_closed_loops():
    """A four-bar with a spring across it keeps its energy."""
    model, q = sl.zoo.four_bar().with_frame("eye", "coupler", (1.1, 0.3, 0.0)), sl.zoo.four_bar_start()
    law = forces.spring(model, "eye", "world", 50.0)
    run = sl.simulate(model, q, duration=0.5, forces=law)
    stored = 25.0 * (run["eye"].position ** 2).sum(axis=1)
    assert np.ptp(stored) > 1.0
    assert np.ptp(run.energy.sum(axis=1) + stored) < 1e-6
    assert run.closure_residual.max() < 1e-10


def test_a_batch_is_its_runs():
    model = ball()
    states = [model.random_state(k) for k in range(3)]
    q, v = (np.array(x) for x in zip(*states, strict=True))
    law = forces.together(
        forces.spring(model, "handle", "nail", 30.0, 0.4, 0.5), forces.drag(model, "handle", 0.1, 0.2)
    )
    many = sl.simulate(model, q, v, duration=0.2, forces=law)
    for k in range(3):
        np.testing.assert_allclose(many.q[k], sl.simulate(model, q[k], v[k], duration=0.2, forces=law).q, atol=1e-12)


def test_what_cannot_act_is_said():
    model, cart = ball(), slider()
    with says(InputError, "spring: stiffness is -1; must be >= 0"):
        forces.spring(model, "handle", "nail", -1.0)
    with says(InputError, "spring: 'handle' and 'ball' are both on 'ball'; nothing moves between them"):
        forces.spring(model, "handle", "ball", 1.0)
    with says(InputError, "has no frame or body 'handel'; did you mean 'handle'?"):
        forces.damper(model, "handel", "nail", 1.0)
    with says(InputError, "wrench: 'nail' is fixed in the world; name a frame that moves"):
        forces.wrench(model, "nail", np.zeros(6))
    with says(InputError, "wrench: [1, 2, 3] is given; expected six finite numbers, [torque; force]"):
        forces.wrench(model, "ball", [1, 2, 3])
    with says(InputError, "stops: no joint of model 'slider' has limits"):
        forces.stops(cart, 1.0)
    with says(InputError, "stops: joint 'rail' has no limits to stop at; give it lower= and upper="):
        forces.stops(cart, 1.0, joints=["rail"])
    with says(InputError, "friction: slip is 0; must be > 0"):
        forces.friction(cart, {"rail": 1.0}, slip=0.0)
    with says(InputError, "has no joint 'rial'; did you mean 'rail'?"):
        forces.friction(cart, {"rial": 1.0})
    with says(InputError, "forces names ('joints', 'rail'); expected the name of a body, or ('joint', name)"):
        sl.simulate(cart, duration=0.1, forces=lambda t, q, v: {("joints", "rail"): [1.0]})
    with says(InputError, "forces act at joint 'rail', which is driven: its acceleration is given"):
        sl.simulate(cart.drive("rail"), duration=0.1, forces=lambda t, q, v: {("joint", "rail"): [1.0]})
    with says(InputError, "forces at joint 'rail': 2 numbers were returned; expected 1"):
        sl.simulate(cart, duration=0.1, forces=lambda t, q, v: {("joint", "rail"): [1.0, 2.0]})
