"""The table of events, and runs that are cut at them: balls that bounce, carts that couple, in closed form."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from event_motions import G, bouncing, coupled_carts
from sentences import says

from spanloop.errors import InputError
from spanloop.trajectory import EventTable
from spanloop.trajectory.events import NO_EVENTS


def test_rows_are_events_with_attributes():
    events = coupled_carts().events
    assert len(events) == 2
    assert [e.kind for e in events] == ["attach", "release"]
    assert events[0].closed == ("hook",)
    assert events[-1].closed == ()
    assert events[0].energy_lost == 1.5
    np.testing.assert_allclose(np.linalg.norm(events[0].impulse), 1.5)
    with says(InputError, "events[2]: there are 2 events"):
        _ = events[2]


def test_a_table_prints_time_kind_name_impulse_and_energy():
    lines = str(coupled_carts().events).splitlines()
    assert lines[0].split("  ") == ["time [s]", "kind", "", " name", "impulse", "energy lost [J]"]
    assert lines[1].split() == ["0.5", "attach", "hook", "1.5", "N", "s", "1.5"]
    assert str(bouncing((1.0, 0.5)).events).startswith("run  time [s]")
    assert str(EventTable()) == "no events"
    assert repr(coupled_carts().events) == "EventTable(2 events: 1 attach, 1 release)"


def test_tables_of_one_run_and_of_an_interval():
    events = bouncing((1.0, 0.5, 2.0)).events
    assert len(events.of(1)) == 2
    assert events.of(1).runs == 1
    assert set(events.of(1).run) == {0}
    assert [e.run for e in events.between(0.3, 0.5)] == [0, 1]
    carts = coupled_carts().events
    assert carts.between(0.6, 1.0).begin_on.all()  # what happened before remains
    assert not carts.between(0.0, 1.0).begin_on.any()


def test_a_table_that_does_not_fit_is_refused():
    events = coupled_carts().events
    with says(InputError, "events: kind is 'atach'; did you mean 'attach'?"):
        replace(events, kind=["atach", "release"])
    with says(InputError, "rows must be in the order of runs"):
        replace(events, time=[0.8, 0.5])
    with says(InputError, "events: on has shape (2, 2); expected (2, 1)"):
        replace(events, on=np.zeros((2, 2)))


@pytest.mark.parametrize("at_grid", [True, False])
def test_a_single_run_is_cut_at_its_events(at_grid):
    run = coupled_carts(at_grid=at_grid)
    first, second = run.events.time
    assert [s.closed for s in run.segments] == [(), ("hook",), ()]
    assert [s.times[0] for s in run.segments] == [0.0, first, second]
    assert [s.times[-1] for s in run.segments] == [first, second, 1.0]
    assert len(run) == 101 + (2 if at_grid else 4)  # a sample at an event is replaced
    np.testing.assert_array_equal(run.segments[0].v[-1], [2.0, 0.0])
    np.testing.assert_array_equal(run.segments[1].v[0], [0.5, 0.5])
    assert [len(run.model.loops if s.model is None else s.model.loops) for s in run.segments] == [0, 1, 0]


def test_a_run_of_a_batch_is_cut_and_the_batch_is_not():
    batch = bouncing((1.0, 0.5, 2.0))
    assert batch.q.shape == (3, 121, 1)
    one = batch[1]
    assert [len(s) for s in one.segments] == [33, 54, 38]
    np.testing.assert_allclose(one.segments[0].times[-1], np.sqrt(2 * 0.5 / G), rtol=1e-15)
    assert len(batch[[2][0]].events) == 1


def test_cutting_again_changes_nothing():
    run = coupled_carts()
    for again in (replace(run), run.changed(settings={}), pickle.loads(pickle.dumps(run))):
        np.testing.assert_array_equal(again.times, run.times)
        assert [s.closed for s in again.segments] == [s.closed for s in run.segments]


def test_the_table_without_events_stays_one_object():
    assert pickle.loads(pickle.dumps(bouncing(batch=False).pieces[0])).events is NO_EVENTS


def test_samples_that_are_taken_keep_their_events():
    run = coupled_carts()
    assert len(run[:50].events) == 0
    assert len(run[:52].events) == 1  # the samples before and after 0.5 s
    assert len(run[51:].events) == 1
    assert run[51:]["hook"].active.sum() == 31
    assert len(run.between(0.5, 0.6).events) == 1
    assert run.between(0.55, 0.6)["hook"].active.all()
    assert [len(s) for s in run[::7].segments] == [8, 4, 3]


def test_an_event_at_the_start_has_one_sample_before_it():
    run = coupled_carts()
    events = run.events.kept(run.events.kind == "release", np.array([True, False]))
    late = run[51:82].segments[0]  # closed all the time
    opened = replace(run, segments=(replace(late, closed=None, model=None),), events=replace(events, time=[0.5]))
    assert [len(s) for s in opened.segments] == [1, 31]
    assert [s.closed for s in opened.segments] == [("hook",), ()]


def test_a_loop_knows_when_it_is_closed_and_what_it_gave():
    run = coupled_carts(at_grid=False)
    closed = (run.times > 0.6) & (run.times < 0.7)
    assert run["hook"].active[closed].all()
    assert not run["hook"].active[run.times < 0.5].any()
    np.testing.assert_allclose(run["hook"].impulse, [[0, 0, 0, 1.5, 0, 0]], atol=1e-15)
    np.testing.assert_array_equal(run["hook"].impulse_times, run.events.time[:1])
    assert not run["hook"].force.any()
    assert len(run["hook"].events) == 2
    np.testing.assert_allclose(bouncing(batch=False)["slide::stop"].impulse[0], 2.0 * 1.8 * np.sqrt(2 * G))
    with says(InputError, 'Use run[0]["slide::stop"].impulse'):
        _ = bouncing()["slide::stop"].impulse


def test_active_sets_of_a_batch_are_those_of_its_runs():
    run = coupled_carts(at_grid=False)
    segment = replace(coupled_carts().segments[0], closed=None, model=None)
    grid = run.at(1e-2 * np.arange(101))
    segment = replace(segment, times=grid.times, q=grid.q[None], v=grid.v[None], tau=grid.tau[None])
    batch = replace(run, segments=(segment,))
    np.testing.assert_array_equal(batch["hook"].active[0], grid["hook"].active)
    np.testing.assert_allclose(batch.energy[0], grid.energy)
    np.testing.assert_array_equal(batch.closure_error[0], grid.closure_error)


def test_closure_errors_are_those_of_closed_loops():
    run = coupled_carts()
    active = run["hook"].active
    assert np.isnan(run.closure_error[~active]).all()
    assert run.closure_residual.max() < 1e-15
    assert run["hook"].error[0, 3] == pytest.approx(1.0)  # while it is open: how far it is from closed


def height(times, start, restitution=0.8):
    """Height and rate (n,) of a ball that fell from `start`, in closed form."""
    t, v, z = np.array(times, float), 0.0, start
    out = np.empty((len(t), 2))
    while len(t) and (t > -np.inf).any():
        fall = (v + np.sqrt(v**2 + 2 * G * z)) / G
        out = np.where((t >= 0)[:, None], np.stack([z + v * t - 0.5 * G * t**2, v - G * t], axis=1), out)
        if (t < fall).all():
            return out.T
        t, v, z = t - fall, restitution * (G * fall - v), 0.0
    return out.T


@pytest.mark.parametrize("batch", [False, True])
def test_resampling_never_crosses_an_event(batch):
    """The motion between events is a parabola, which the cubic meets exactly."""
    run = bouncing((1.0, 0.5, 2.0), batch=batch)
    times = np.sort(np.concatenate([np.linspace(0.0, 1.2, 77), run.events.time - 1e-5, run.events.time + 1e-5]))
    found = run.at(times)
    for k, start in enumerate((1.0, 0.5, 2.0) if batch else (1.0,)):
        z, v = height(times, start)
        np.testing.assert_allclose(found.q[k, :, 0] if batch else found.q[:, 0], z, atol=1e-13)
        np.testing.assert_allclose(found.v[k, :, 0] if batch else found.v[:, 0], v, atol=1e-12)
    assert len(found.events) == len(run.events)
