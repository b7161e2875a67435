"""Trajectories: samples, parts by name, runs of a batch, what follows from the samples."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from motions import batch_of, flying_run, four_bar_run, integrated
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, StateWarning, UnsupportedError
from spanloop.trajectory import Outcome, Segment, Trajectory


def test_samples_are_those_that_were_given():
    run = four_bar_run()
    assert len(run) == 301
    assert run.q.shape == (301, 3)
    assert run.duration == pytest.approx(0.3)
    assert run.step == 1e-3
    assert run.batch == ()
    assert not run.q.flags.writeable


def test_segments_are_joined():
    run = four_bar_run()
    parts = (run.segments[0].samples(slice(0, 101)), run.segments[0].samples(slice(100, None)))
    two = replace(run, segments=parts)
    assert len(two) == 302
    np.testing.assert_array_equal(two.times[100:102], run.times[[100, 100]])
    np.testing.assert_array_equal(two.q, np.concatenate([run.q[:101], run.q[100:]]))
    assert [len(s) for s in two[99:103].segments] == [2, 2]
    assert [len(s) for s in two[::100].segments] == [2, 2]
    np.testing.assert_array_equal(two[::100].times, two.times[::100])


@pytest.mark.slow
def test_parts_by_name_are_their_columns_and_frames():
    run = flying_run()
    model, robot = run.model, sl.Dynamics(run.model)
    np.testing.assert_array_equal(run["fl_knee"].q, run.q[:, model.q_slice("fl_knee").start])
    np.testing.assert_array_equal(run["root"].q, run.q[:, :7])
    np.testing.assert_array_equal(run["root"].v, run.v[:, :6])
    np.testing.assert_array_equal(run["fl_foot"].pose[7], robot.pose(run.q[7], "fl_foot"))
    np.testing.assert_array_equal(run["fl_foot"].position, run["fl_foot"].pose[:, :3, 3])
    np.testing.assert_array_equal(run["fl_knee"].a[3], robot.forward_dynamics(run.q[3], run.v[3], run.tau[3])[8])


def test_a_frames_velocity_is_the_rate_of_its_position():
    """Central differences at 1 ms err by h²/6 times the third derivative, below 1e-3 m/s here."""
    run = flying_run()
    rate = (run["hr_foot"].position[2:] - run["hr_foot"].position[:-2]) / (2 * run.step)
    np.testing.assert_allclose(run["hr_foot"].velocity[1:-1, 3:], rate, atol=2e-3)


def test_a_loop_has_errors_and_a_force():
    run = four_bar_run()
    robot = sl.Dynamics(run.model)
    np.testing.assert_array_equal(run["closing"].error, run.closure_error)
    found = robot.reactions(run.q[11], run.v[11], run.tau[11])
    np.testing.assert_allclose(run["closing"].force[11], found["closing"], atol=1e-12)
    np.testing.assert_allclose(run["crank_hinge"].force[11], found["crank_hinge"], atol=1e-12)
    assert run.reactions().unique["closing"] == found.unique["closing"]


def test_a_name_that_stands_for_two_parts_has_what_both_have():
    builder = sl.Builder("arm")
    builder.body("elbow", mass=1.0, center=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))
    builder.revolute("elbow", "world", "elbow", axis="y")
    model = builder.build()
    run = integrated(model, np.array([0.1]), np.array([0.2]), 0.01, 1e-3)
    assert run["elbow"].q.shape == (11,)
    assert run["elbow"].pose.shape == (11, 4, 4)


def test_quantities_are_those_of_each_state():
    run = four_bar_run()
    robot = sl.Dynamics(run.model)
    np.testing.assert_array_equal(run.energy[9], robot.energy(run.q[9], run.v[9]))
    np.testing.assert_array_equal(run.momentum[9], robot.momentum(run.q[9], run.v[9]))
    np.testing.assert_array_equal(run.center_of_mass[9], robot.center_of_mass(run.q[9]))
    rates = robot.closure_jacobian(run.q[9]) @ run.v[9]
    assert run.velocity_residual[9] == pytest.approx(np.abs(rates).max(), abs=1e-15)
    assert run.closure_residual[9] == np.abs(robot.closure_error(run.q[9])).max()
    assert run.closure_residual.max() < 1e-10  # what the method itself keeps at 1 ms


@pytest.mark.slow
def test_external_forces_count_in_accelerations_and_reactions():
    run = flying_run()
    push = np.zeros((len(run), 6))
    push[:, 3] = np.linspace(0.0, 5.0, len(run))
    pushed = replace(run, forces={"trunk": push})
    robot = sl.Dynamics(run.model)
    expected = robot.forward_dynamics(run.q[50], run.v[50], run.tau[50], forces={"trunk": push[50]})
    np.testing.assert_array_equal(pushed.a[50], expected)
    found = robot.reactions(run.q[50], run.v[50], run.tau[50], forces={"trunk": push[50]})
    np.testing.assert_allclose(pushed["fl_knee"].force[50], found["fl_knee"], atol=1e-9)
    assert pushed[40:60].forces["trunk"].shape == (20, 6)


def test_a_run_of_a_batch_ends_where_it_ended():
    run = four_bar_run()
    batch = batch_of(run, [301, 120, 7])
    assert batch.batch == (3,)
    assert batch.energy.shape == (3, 301, 2)
    assert np.isnan(batch.energy[1, 120:]).all()
    np.testing.assert_array_equal(batch.energy[1, :120], run.energy[:120])
    one = batch[1]
    assert len(one) == 121
    assert one.times[-1] == batch.ends.times[1]
    assert one.outcome.reason == "event"
    assert one.ends is None
    np.testing.assert_array_equal(one.q[:120], run.q[:120])
    assert len(batch[0]) == 301
    assert len(batch_of(run, [301, 120, 7], ends=False)[-1]) == 7
    assert [len(r) for r in batch] == [301, 121, 8]


def test_batches_of_two_axes_are_picked_by_two_numbers():
    run = four_bar_run()
    flat = batch_of(run, [301, 120, 7, 301, 50, 60])
    segment, ends = flat.segments[0], flat.ends
    grid = Trajectory(
        run.model,
        segment.mapped(lambda x: x.reshape(2, 3, *x.shape[1:])),
        flat.outcomes,
        flat.settings,
        ends=replace(ends.mapped(lambda x: x.reshape(2, 3, *x.shape[1:])), times=ends.times.reshape(2, 3)),
    )
    assert len(grid[1, 1]) == 51
    assert grid[1].batch == (3,)
    assert len(grid[1][2]) == 61
    assert len(grid[1, 2, 10:20]) == 10
    assert grid[1].outcomes == flat.outcomes[3:]
    assert grid.closure_residual.shape == (2, 3, 301)


def test_a_located_end_stays_with_the_sample_before_it():
    batch = batch_of(four_bar_run(), [301, 120, 7])
    assert len(batch[:50][1]) == 50  # its end is later
    assert len(batch[:50][2]) == 8
    assert len(batch[:120][1]) == 121
    assert len(batch[::2][1]) == 61
    assert len(batch.between(0.1, 0.2)[1]) == 21


def test_between_takes_the_samples_in_an_interval():
    run = four_bar_run().between(0.1, 0.2)
    assert run.times[0] == pytest.approx(0.1)
    assert run.times[-1] == pytest.approx(0.2)
    assert len(run) in (100, 101)  # 0.2 may be a rounding error beyond


def test_states_without_an_answer_give_one_warning_and_nan():
    run = flying_run()
    q = run.q.copy()
    q[5, :4] *= 1.1
    broken = replace(run, segments=(replace(run.segments[0], q=q),))
    sentence = r"^energy: 1 of 201 states has no answer; its row is NaN\. It is state 5: "
    with pytest.warns(StateWarning, match=sentence):
        energy = broken.energy
    assert np.isnan(energy[5]).all()
    assert np.isfinite(np.delete(energy, 5, axis=0)).all()


def test_runs_of_a_batch_share_their_kernels():
    batch = batch_of(four_bar_run(), [301, 120])
    assert batch[0].robot is batch[1].robot is batch.between(0.1, 0.2)[0].at([0.15]).robot


def test_a_trajectory_survives_pickling():
    run = pickle.loads(pickle.dumps(batch_of(four_bar_run(), [301, 120])))
    assert run.outcomes[1].reason == "event"
    np.testing.assert_array_equal(run[0].energy, four_bar_run().energy)


def test_driven_loops_have_no_accelerations_on_record():
    run = four_bar_run()
    driven = replace(run, model=run.model.drive("closing"))
    with says(UnsupportedError, "accelerations: loop 'closing' is driven, and its accelerations are not record"):
        _ = driven.a
    with says(UnsupportedError, "reactions: loop 'closing' is driven"):
        driven.reactions()
    assert driven.audit()["energy"].verdict == "not judged"


def test_text_is_one_line_or_a_short_report():
    run = four_bar_run()
    assert repr(run) == "Trajectory('four_bar', 301 samples from 0 to 0.3 s, finished)"
    batch = batch_of(run, [301, 120, 301])
    assert repr(batch) == "Trajectory('four_bar', 3 runs, 301 samples from 0 to 0.3 s, 2 finished, 1 event)"
    assert str(run).splitlines()[:3] == [
        "four_bar: 0.3 s in 301 samples, from 0 s.",
        "Made with method rk4, step 0.001, closures none.",
        "The run finished at 0.3 s.",
    ]
    assert "3 runs: 2 finished, 1 event. The first that did not finish is run 1: Stopped at 0.1194 s." in str(batch)


def test_names_and_numbers_that_are_not_there_get_a_sentence():
    run = four_bar_run()
    batch = batch_of(run, [301, 120])
    with says(InputError, "model 'four_bar' has no joint, frame, body, loop or coupling 'crnk'; did you mean 'crank'?"):
        run["crnk"]
    with says(InputError, "'crank' is a frame or body; q is of joints"):
        _ = run["crank"].q
    with says(InputError, "'closing' is a loop or coupling; pose is of frames and bodies"):
        _ = run["closing"].pose
    with says(InputError, "'crank' is a frame or body; force is of joints and loops"):
        _ = run["crank"].force
    with says(InputError, "run[0]: this is one run, not a batch; names give parts, slices take samples"):
        run[0]
    with says(InputError, "run[2]: the batch has shape (2,); there is no run 2 of 2"):
        batch[2]
    with says(InputError, "run[0, 0]: the batch has shape (2,); expected 1 numbers at most"):
        batch[0, 0]
    with says(InputError, "run[1.5]: expected a name, numbers of runs, or a slice of samples"):
        run[1.5]
    with says(InputError, "run[5:5] has no samples; there are 301"):
        run[5:5]
    with says(InputError, "the slice has step -1; time runs forward: expected 1 or more"):
        run[::-1]
    with says(InputError, "between(0.0101, 0.0102): no sample lies there; samples run from 0 s to 0.3 s. Try run.at("):
        run.between(0.0101, 0.0102)
    with says(InputError, "this is a batch of 2 runs; run.outcomes has all of them, run[0].outcome is of one"):
        _ = batch.outcome


def test_arrays_that_do_not_fit_get_a_sentence():
    run = four_bar_run()
    s, outcome = run.segments[0], run.outcomes
    with says(InputError, "q has shape (301, 2); expected (301, 3)"):
        Trajectory(run.model, replace(s, q=s.q[:, :2]), outcome, {})
    with says(InputError, "a trajectory's times must be finite and increase from sample to sample"):
        Trajectory(run.model, replace(s, times=s.times[::-1]), outcome, {})
    with says(InputError, "a trajectory needs samples; this one has none"):
        Trajectory(run.model, (), outcome, {})
    with says(InputError, "2 outcomes are given; expected one a run, 1"):
        Trajectory(run.model, s, outcome * 2, {})
    with says(InputError, "setting 'law' is a function; expected text, a number or a truth value"):
        Trajectory(run.model, s, outcome, {"law": says})
    with says(InputError, "forces names 'crnk', which is not a body; did you mean 'crank'?"):
        Trajectory(run.model, s, outcome, {}, {"crnk": np.zeros((301, 6))})
    with says(InputError, "the segment's q has entries of type complex128; expected real numbers"):
        Segment(s.times, s.q * 1j, s.v, s.tau)
    with says(InputError, "the outcome's reason is 'finish'; did you mean 'finished'?"):
        Outcome("finish", "", 0.0)
