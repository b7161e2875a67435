"""A motion at other times: exact at samples, of fourth order between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import batch_of, four_bar_run, integrated
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, UnsupportedError
from spanloop.trajectory import Segment


def tumbling(model, duration=0.32):
    q, v = model.random_state(3)
    return integrated(model, q, v, duration, 1e-3)


@pytest.mark.parametrize(
    "model",
    [sl.zoo.quadruped().without_losses(), sl.zoo.chain(2, "planar"), sl.zoo.chain(3, "spherical", seed=5)],
    ids=lambda m: m.name,
)
def test_halving_the_spacing_divides_the_error_by_sixteen(model):
    """q and v between samples, against a motion of 1 ms; a quarter of an order of slack."""
    fine = tumbling(model)
    robot = sl.Dynamics(model)
    wrong_q, wrong_v = [], []
    for coarser in (40, 20, 10):
        coarse = fine[::coarser].at(fine.times)
        wrong_q.append(np.abs(robot.difference(fine.q, coarse.q)).max())
        wrong_v.append(np.abs(fine.v - coarse.v).max())
    assert np.log2(wrong_q[1] / wrong_q[2]) > 3.75
    assert np.log2(wrong_v[1] / wrong_v[2]) > 3.75


def test_a_cubic_motion_is_reproduced():
    """A cart under a force that grows in time: q is a cubic, so that nothing but rounding is left."""
    builder = sl.Builder("cart").body("cart", mass=2.0)
    model = builder.prismatic("rail", "world", "cart", axis="x").build()
    times = np.array([0.0, 0.3, 0.5, 1.1])
    q, v, tau = times**3 - times, 3 * times**2 - 1, 12 * times
    run = replace(
        integrated(model, np.zeros(1), np.zeros(1), 0.01, 1e-2),
        segments=(Segment(times, q[:, None], v[:, None], tau[:, None]),),
    )
    t = np.linspace(0.0, 1.1, 23)
    fine = run.at(t)
    np.testing.assert_allclose(fine.q[:, 0], t**3 - t, atol=1e-14)
    np.testing.assert_allclose(fine.v[:, 0], 3 * t**2 - 1, atol=1e-14)
    np.testing.assert_allclose(fine.tau[:, 0], 12 * t, atol=1e-14)


def test_samples_are_returned_as_they_are():
    run = tumbling(sl.zoo.chain(3, "spherical", seed=5))
    mixed = np.sort(np.append(run.times[::7], run.times[3] + 2e-4))
    again = run.at(mixed)
    at_samples = np.isin(mixed, run.times)
    np.testing.assert_array_equal(again.q[at_samples], run.q[::7])
    np.testing.assert_array_equal(again.v[at_samples], run.v[::7])
    np.testing.assert_array_equal(run.at(run.times).q, run.q)


def test_held_torques_bend_the_rates_at_samples_only():
    """A hinge without gravity under torques that jump at every sample: rates are straight between samples."""
    model = sl.zoo.pendulum().with_gravity((0, 0, 0))
    torque = {0: 1.0, 1: -2.0, 2: 4.0, 3: 0.0}
    run = integrated(
        model, np.zeros(1), np.zeros(1), 0.3, 0.1, lambda t, q, v: np.array([torque[round(t / 0.1)]]), held=True
    )
    t = np.linspace(0.0, 0.3, 31)
    fine = run.at(t)
    np.testing.assert_allclose(fine.v[:, 0], np.interp(t, run.times, run.v[:, 0]), atol=1e-14)
    np.testing.assert_array_equal(fine.tau[1:10, 0], 1.0)
    assert fine.segments[0].held
    assert not run.at([0.0, 0.15, 0.3]).segments[0].held
    assert not run[::2].segments[0].held


def test_every_gap_gives_even_samples():
    run = four_bar_run()
    np.testing.assert_allclose(run.every(0.01).times, 0.01 * np.arange(31), atol=1e-15)
    assert run.every(0.07).times[-1] == pytest.approx(0.28)
    assert len(run.every(1.0)) == 1


def test_closures_stay_closed_to_fourth_order():
    """Samples 10 ms apart: the cubic leaves the loops by less than 1e-7 m, straight lines would by 1e-4 m."""
    coarse = four_bar_run()[::10]
    assert 1e-13 < coarse.every(1e-3).closure_residual.max() < 1e-7


def test_runs_of_a_batch_are_nan_after_their_end():
    run = four_bar_run()
    batch = batch_of(run, [301, 120, 7])
    fine = batch.every(5e-4)
    assert fine.q.shape == (3, 601, 3)
    assert np.isfinite(fine.q[0]).all()
    np.testing.assert_array_equal(np.isfinite(fine.q[1]).all(axis=1), fine.times <= run.times[119])
    np.testing.assert_array_equal(fine.q[1, :238], fine.q[0, :238])
    assert fine[2].times[-1] == batch.ends.times[2]


def test_at_a_change_of_topology_the_new_segment_counts():
    run = four_bar_run()
    first, second = run.segments[0].samples(slice(0, 101)), run.segments[0].samples(slice(100, None))
    second = replace(second, v=second.v * 2.0)
    two = replace(run, segments=(first, second))
    jump = two.at([0.0995, 0.1, 0.1005])
    assert [len(s) for s in jump.segments] == [1, 2]
    np.testing.assert_array_equal(jump.v[1], 2.0 * run.v[100])
    np.testing.assert_allclose(jump.v[0], run.v[99:101].mean(axis=0), rtol=1e-3)


def test_forces_and_memory_are_joined_by_straight_lines():
    run = four_bar_run()
    push = np.outer(run.times, np.arange(6.0))
    segment = replace(run.segments[0], memory=push[:, :2])
    fine = replace(run, segments=(segment,), forces={"crank": push}).at([0.0104, 0.02])
    np.testing.assert_allclose(fine.memory, np.outer([0.0104, 0.02], [0.0, 1.0]), atol=1e-15)
    np.testing.assert_allclose(fine.forces["crank"], np.outer([0.0104, 0.02], np.arange(6.0)), atol=1e-15)


def test_times_that_cannot_be_get_a_sentence():
    run = four_bar_run()
    with says(InputError, "at: time 0.31 s is outside the run, which lasts from 0 s to 0.3 s"):
        run.at([0.1, 0.31])
    with says(InputError, "at: time nan s is outside the run"):
        run.at(np.nan)
    with says(InputError, "at: times must increase"):
        run.at([0.2, 0.1])
    with says(InputError, "at: times has shape (1, 2) and type float64; expected numbers (n,)"):
        run.at([[0.1, 0.2]])
    with says(InputError, "every(0): the time between samples must be > 0"):
        run.every(0.0)


def test_a_general_joint_cannot_be_resampled():
    run = tumbling(sl.zoo.chain(2, "general"), 0.01)
    assert len(run.at(run.times[::2])) == 6
    with says(UnsupportedError, "two poses have no difference in its rates"):
        run.every(1e-4)
