"""Bodies that fall and bounce, with known times and velocities: in steps to first order, located to 1e-9 s."""

from __future__ import annotations

import contact_stories as known
import event_stories
import numpy as np
import pytest

import spanloop as sl

G = known.G


# ---- a ball that bounces


@pytest.mark.parametrize("contacts", ["steps", "events"])
@pytest.mark.parametrize("restitution", [0.5, 0.9])
def test_a_bouncing_ball_has_its_closed_form(contacts, restitution):
    """Also in steps: an impact is where the parabola of its gap is zero. 1e-9 s would show as v times that."""
    run = sl.simulate(known.falling_ball(restitution), [1.0], duration=1.2, contacts=contacts)
    expected = known.bouncing_height(run.times, 1.0, restitution)
    near = run.times < known.impact_times(1.0, restitution, 7)[-1]
    assert np.abs(run.q[near, 0] - expected[near]).max() < 1e-9 * np.sqrt(2 * G)
    assert np.abs(run.q[:, 0] - expected).max() < 1e-6
    assert run.q.min() > -1e-9


@pytest.mark.slow
@pytest.mark.parametrize("contacts", ["steps", "events"])
def test_a_bouncing_ball_comes_to_rest_when_it_should(contacts):
    """At t₁ (1 + e)/(1 − e) = 1.354571 s; in steps, several impacts in one step count as the last one."""
    model = known.falling_ball(0.5, resting=1e-8)
    run = sl.simulate(model, [1.0], duration=1.4, contacts=contacts)
    rest = np.sqrt(2 / G) * 1.5 / 0.5
    assert abs(rest - 1.354571) < 1e-6
    assert abs(run.times[np.flatnonzero(np.abs(run.v[:, 0]) > 1e-9)[-1]] - rest) < 5e-3
    assert np.abs(run.q[run.times > rest + 5e-3]).max() < 1e-9


# ---- a ball that falls with spin (Capobianco, Harsch, Eugster & Leine 2021)


def spinning(spin: float, contacts: str, step: float = 1e-3):
    """A ball of radius 0.1 m that falls 0.9 m with a spin about y [rad/s], on µ = 0.2."""
    q, v = known.at(z=1.0), [0, spin, 0, 0, 0, 0]
    run = sl.simulate(known.sphere(0.2), q, v, duration=1.0, step=step, contacts=contacts)
    half = np.arctan2(run.q[:, 2], run.q[:, 0])
    return run, np.cos(2 * half) * run.v[:, 3] + np.sin(2 * half) * run.v[:, 5]


@pytest.mark.slow
@pytest.mark.parametrize(("contacts", "bound"), [("steps", 1e-5), ("events", 1e-5)])
@pytest.mark.parametrize(("spin", "end"), [(50.0, 10 / 7), (10.0, 2 / 7)])
def test_a_ball_that_falls_with_spin_rolls_away(contacts, bound, spin, end):
    """At 50 rad/s it slips in the impact, at 10 rad/s it does not."""
    run, speed = spinning(spin, contacts)
    np.testing.assert_allclose([speed[-1], 0.1 * run.v[-1, 1]], end, atol=bound)


@pytest.mark.slow
def test_the_ball_slips_for_0_29977_seconds_after_its_impact():
    run, speed = spinning(50.0, "events")
    fall, impact = np.sqrt(2 * 0.9 / G), 0.2 * np.sqrt(2 * G * 0.9)
    slips = (5.0 - 3.5 * impact) / (3.5 * 0.2 * G)
    assert abs(slips - 0.29977) < 1e-5
    inside = (run.times > fall + 1e-6) & (run.times < fall + slips)
    np.testing.assert_allclose(speed[inside], impact + 0.2 * G * (run.times[inside] - fall), atol=1e-5)
    np.testing.assert_allclose(impact, 0.8404, atol=1e-4)


# ---- a block that rocks


BLOCK = known.RockingBlock(0.1, 0.4)
TILT = 0.1  # rad


def rocking(contacts: str, step: float = 1e-3, duration: float = 0.4):
    """A block on its edge, from rest."""
    model = known.box(0.6, size=(2 * BLOCK.b, 0.3, 2 * BLOCK.h))
    return sl.simulate(model, BLOCK.tilted(TILT), duration=duration, step=step, contacts=contacts)


def energy_rates(run) -> np.ndarray:
    """Angular velocity that each sample would have at the impact, from the block's energy [rad/s]."""
    tilt = np.abs(2 * np.arctan2(run.q[:, 2], run.q[:, 0]))
    at_impact = run.v[:, 1] ** 2 / 2 - BLOCK.rate**2 * (np.cos(BLOCK.slant) - np.cos(BLOCK.slant - tilt))
    return np.sqrt(np.maximum(2 * at_impact, 0.0))


@pytest.mark.slow
@pytest.mark.parametrize(("contacts", "bound"), [("steps", 1e-2), ("events", 1e-2)])
def test_a_rocking_block_keeps_1_less_three_halves_sine_squared(contacts, bound):
    fall = BLOCK.fall(TILT)
    run = rocking(contacts, duration=round(fall + 0.1, 3))
    rates = energy_rates(run)
    np.testing.assert_allclose(rates[run.times < fall - 2e-3], BLOCK.rate_at_impact(TILT), rtol=bound)
    after = rates[run.times > fall + 2e-3] / BLOCK.rate_at_impact(TILT)
    np.testing.assert_allclose(after, BLOCK.kept, rtol=bound)
    assert abs(BLOCK.kept - 0.911765) < 1e-6


# ---- several bodies


def test_newtons_law_on_a_chain_of_balls_moves_the_last_two_together():
    """(−⅓, ⅔, ⅔) for e = 1, where a row of real balls passes the impact on: (0, 0, 1)."""
    run = sl.simulate(known.three_balls(), [-1.25, 0.0, 1.0], [1.0, 0.0, 0.0], duration=0.5)
    np.testing.assert_allclose(run.v[-1], [-1 / 3, 2 / 3, 2 / 3], atol=1e-12)


@pytest.mark.slow
def test_a_ball_that_hits_another_leaves_it_its_velocity():
    """One pair alone, e = 1: velocities are exchanged."""
    run = sl.simulate(known.three_balls(), [-1.25, 0.0, 50.0], [1.0, 0.0, 0.0], duration=0.5)
    np.testing.assert_allclose(run.v[-1], [0.0, 1.0, 0.0], atol=1e-12)


@pytest.mark.slow
def test_a_ball_that_is_hit_from_above_stays_on_the_ground():
    """The ground reacts to the impact inside the step, and the impulse is not expected again in the next one."""
    b = sl.Builder("balls")
    for k in range(2):
        b.body(f"ball{k}", 1.0, inertia=(0.004,) * 3).free(f"free{k}", "world", f"ball{k}")
    model, shapes = b.build(), [(f"ball{k}", sl.contacts.Sphere(0.1)) for k in range(2)]
    model = model.with_contact("ground", shapes[0], "ground", friction=0.3)
    model = model.with_contact("pair", shapes[1], shapes[0], friction=0.3, restitution=0.4)
    run = sl.simulate(model, [*known.at(z=0.1), *known.at(0.02, 0.0, 0.35)], duration=0.3, step=2e-3)
    assert run.contacts["pair"].normal_force.max() > 100.0
    assert np.abs(run.contacts["ground"].gap).max() < 1e-5  # 1e-3 if it were


@pytest.mark.slow
def test_a_four_bar_bounces_on_a_stop_when_it_should():
    """Six impacts through a loop, beside a quadrature of its one equation of motion."""
    stop, restitution = 0.3, 0.6
    plane = ("world", sl.contacts.Plane(rotation=(0, -stop, 0)))
    model = sl.zoo.four_bar().with_frame("tip", "crank", (1.0, 0.0, 0.0))
    model = model.with_contact("stop", "tip", plane, restitution=restitution)
    expected = event_stories.FourBar().impacts(np.pi / 3, stop, restitution, 6)
    run = sl.simulate(model, sl.zoo.four_bar_start(), duration=1.6, contacts="events")
    np.testing.assert_allclose(run.events.time[:6], [t for t, _ in expected], atol=1e-8)
    np.testing.assert_allclose(run.events.v_before[:6, 0], [rate for _, rate in expected], rtol=1e-7)
    assert run.residual < 1e-12


def test_an_elastic_box_that_tumbles_keeps_its_energy_in_steps():
    """Corners that turn gain velocity without a force: it must not count when they bounce. 30 % at 1 ms if it does."""
    b = sl.Builder("box").body(
        "box", mass=1.0, inertia=(0.004, 0.006, 0.005), geometry=[sl.contacts.Box(0.3, 0.2, 0.1)]
    )
    model = b.free("flight", "world", "box").build().with_ground(friction=0, restitution=1.0)
    q = np.array([0.9, 0.2, 0.3, 0.1, 0.0, 0.0, 0.6])
    q[:4] /= np.linalg.norm(q[:4])
    energy = sl.simulate(model, q, [1, 2, 3, 1, 0, 0], duration=2.0, step=1e-3).energy.sum(axis=-1)
    assert np.abs(energy / energy[0] - 1.0).max() < 0.01
