"""Moments of runs: several events at once, events at the start, impulses that pull, and times without any body."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

import spanloop as sl


def ball_on_floor():
    builder = sl.Builder("ball").body("ball", 1.0, inertia=(0.1,) * 3).prismatic("z", "world", "ball", "z")
    return builder.loop("world", "ball", sl.joints.PointOnPlane("z"), name="floor", switchable=True).build()


def bounces(q=1.0, v=0.0, **options):
    events = [sl.events.OneSided("floor", restitution=1.0)]
    return sl.simulate(ball_on_floor(), [q], [v], duration=0.6, step=1e-2, events=events, **options)


@functools.cache
def lifted():
    """A box on a table, which a hand grasps and pulls up at the same moment."""
    builder = sl.Builder("lift").body("hand", 1.0, inertia=(0.1,) * 3).prismatic("h", "world", "hand", "z")
    builder.body("box", 0.5, inertia=(0.1,) * 3).prismatic("bz", "world", "box", "z")
    builder.coupling("hold", "bz", "h", switchable=True)
    model = builder.loop("world", "box", sl.joints.PointOnPlane("z"), name="table", switchable=True).build()
    return sl.simulate(
        model,
        [0.1, 0.0],
        duration=0.3,
        step=1e-2,
        controller=lambda t, q, v: {"h": 9.81 + sl.where(t < 0.2, 0.0, 50.0)},
        events=[sl.events.OneSided("table"), sl.events.Attach("hold", at=0.2, capture=True)],
    )


@pytest.mark.slow
def test_events_of_one_moment_have_one_state_before_and_one_after():
    run = lifted()
    assert [(e.kind, e.name) for e in run.events][1:] == [("attach", "hold"), ("release", "table")]
    assert run.events.time[1] == run.events.time[2] == pytest.approx(0.2, abs=1e-11)
    assert np.sum(np.abs(run.times - 0.2) < 1e-6) == 2
    assert [s.closed for s in run.segments][-2:] == [("table",), ("hold",)]
    assert run.audit().well


@pytest.mark.slow
def test_an_impact_just_after_the_start_is_at_the_start():
    run = bounces(2e-13, -1.0)
    assert run.times[:3].tolist() == [0.0, 0.0, 0.01]
    assert run.events.time[0] == 0.0
    assert run.v[:2, 0].tolist() == pytest.approx([-1.0, 1.0])


def test_impulses_of_impacts_at_one_moment_add_up():
    events = bounces().events
    twice = replace(
        events, **{name: np.repeat(getattr(events, name), 2, axis=0) for name in ("run", "time", "kind", "name", "q",
                   "v_before", "v_after", "tau_before", "tau_after", "impulse", "energy_lost", "on", "captured")}
    )  # fmt: skip
    moment = next(twice.moments())
    np.testing.assert_array_equal(twice.impulse_in(moment), events.impulse[0])  # two events of one impact
    followed = replace(twice, impulse=twice.impulse * [[1.0], [2.0]])
    np.testing.assert_array_equal(followed.impulse_in(moment), 3.0 * events.impulse[0])


def test_elastic_impacts_change_velocities_and_take_no_energy():
    assert bounces().audit()["impacts"].sentence.startswith("1 impact takes no energy.")


def test_an_impulse_that_pulls_is_a_fault():
    run = bounces()
    assert run.audit()["impulses"].value == 0.0
    called = replace(run, events=replace(run.events, one_sided=(("floor", 0, -1),)))
    assert "impulses" in called.audit().faults


@pytest.mark.slow
def test_events_are_sliced_and_segments_are_printed_briefly():
    run = lifted()
    assert [e.kind for e in run.events[1:]] == ["attach", "release"]
    assert run.events[1:].begin_on.tolist() == [run.events.on[0].tolist()]
    assert len(run.events[5:]) == 0
    with pytest.raises(sl.errors.InputError, match="forward"):
        run.events[::-1]
    assert repr(run.segments[-1]) == "Segment(11 samples; 0.2 s to 0.3 s; closed hold)"


def test_a_run_goes_on_for_a_duration():
    with pytest.raises(sl.errors.InputError, match="duration"):
        bounces().continued()


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("arm", [False, True])
def test_times_without_any_body_have_an_audit_and_a_page(arm, tmp_path):
    builder = sl.Builder("part").body("part", 1.0, inertia=(0.1,) * 3).free("root", "world", "part")
    if arm:  # and a base that never moves
        builder.body("base", 2.0).fixed("foot", "world", "base")
        builder.body("arm", 0.5, inertia=(0.1,) * 3).revolute("elbow", "part", "arm", "x")
    appear = [sl.events.Appear("part", at=t, pose=np.eye(4)) for t in (0.1, 0.3)]
    events = [appear[0], sl.events.Vanish("part", at=0.2), appear[1]]
    run = sl.simulate(builder.build(), duration=0.4, step=1e-2, events=events)
    there = np.repeat([not s.absent for s in run.segments], [len(s) for s in run.segments])
    assert set(there.tolist()) == {False, True}
    for values in (run.momentum, run.center_of_mass):
        np.testing.assert_array_equal(np.isfinite(values).all(axis=1), there)
    audit = run.audit()
    assert audit.well
    assert arm or audit["linear momentum"].verdict == "well"
    assert run.page(tmp_path / "part.html").stat().st_size > 0
