"""Events in adaptive steps: the same moments, impacts and ends as with fixed steps."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import SpanloopError
from spanloop.simulation.events import Appear, Attach, End, OneSided, Release, Vanish

G = 9.81


def ball() -> sl.Model:
    model = sl.Builder("ball").body("ball", 1.0).prismatic("z", "world", "ball", "z").build()
    return model.with_loop("world", "ball", "point_on_plane", name="floor", switchable=True)


def bob() -> sl.Model:
    builder = sl.Builder("bob").body("slide", 0.0).body("bob", 1.0).prismatic("x", "world", "slide", "x")
    model = builder.prismatic("z", "slide", "bob", "z").build()
    return model.with_loop("world", "bob", sl.joints.Distance(1.0), name="string", switchable=True)


def discs() -> sl.Model:
    builder = sl.Builder("discs").body("one", 1.0, inertia=(0.2, 0.2, 0.3)).body("two", 2.0, inertia=(0.3, 0.3, 0.5))
    model = builder.revolute("p", "world", "one", "z").revolute("r", "world", "two", "z").build()
    return model.with_coupling("r", "p", switchable=True, name="clutch")


STORIES = {
    "bouncing ball": (ball, {"q": [1.0], "events": [OneSided("floor", restitution=0.5)], "duration": 1.6}),
    "string": (
        bob,
        {
            "q": [0.0, -1.0],
            "v": [np.sqrt(3.5 * G), 0.0],
            "events": [OneSided("string", sign=-1)],
            "closures": sl.Closures(active_loops=["string"]),
            "duration": 1.5,
        },
    ),
    "clutch": (
        discs,
        {
            "v": [7.0, -2.0],
            "events": [Attach("clutch", when=lambda t, q, v: 1.0 - q[0], capture=True), Release("clutch", at=0.6)],
            "duration": 1.0,
        },
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize("method", ["DOP853", "Radau"])
def test_adaptive_and_fixed_steps_agree(name, method):
    make, options = STORIES[name]
    fixed = sl.simulate(make(), **options)
    free = sl.simulate(make(), **options, integrator=sl.Integrator(method, accuracy=1e-11))
    assert free.events.kind.tolist() == fixed.events.kind.tolist()
    assert len(free.events) > 1
    np.testing.assert_allclose(free.events.time, fixed.events.time, rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(free.events.energy_lost, fixed.events.energy_lost, rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(free.q[-1], fixed.q[-1], rtol=0.0, atol=1e-8)
    assert [s.closed for s in free.segments] == [s.closed for s in fixed.segments]


@pytest.mark.slow
def test_samples_before_an_event_are_those_before_it():
    builder = sl.Builder("cars").body("one", 2.0).body("two", 3.0).prismatic("x", "world", "one", "x")
    model = builder.prismatic("y", "world", "two", "x").build()
    model = model.with_loop("one", "two", "fixed", name="grip", switchable=True)
    events = [Attach("grip", when=lambda t, q, v: q[1] - q[0]), Release("grip", at=0.4)]
    options = {"duration": 0.5, "sample": 1e-3, "events": events}
    fixed, free = (sl.simulate(model, [0.0, 0.25], [1.0, 0.0], integrator=x, **options) for x in ("rk4", "DOP853"))
    np.testing.assert_allclose(free.times, fixed.times, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(free.q, fixed.q, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(free.v, fixed.v, rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("others", [[], [OneSided("floor")]])
def test_long_steps_do_not_pass_over_a_short_event(others):
    """The ball is above 1 m for 9 ms; a step on its parabola is as long as the run."""
    events = [End("high", when=lambda t, q, v: 1.0 - q[0]), *others]
    options = {"duration": 1.0, "closures": sl.Closures(active_loops=[]), "events": events}
    speed = np.sqrt(2.0 * G * 0.5001)
    run = sl.simulate(ball(), [0.5], [speed], integrator="DOP853", **options)
    assert run.outcome.reason == "event"
    assert run.outcome.time == pytest.approx((speed - np.sqrt(speed**2 - G)) / G, abs=1e-8)


@pytest.mark.slow
def test_a_ball_bounces_at_the_moments_of_its_parabolas():
    run = sl.simulate(ball(), [1.0], duration=1.6, integrator="DOP853", events=[OneSided("floor", restitution=0.5)])
    first = np.sqrt(2.0 / G)
    bounces = run.events.kind == "impact"
    expected = first * (1.0 + 2.0 * np.cumsum([0.0, *(0.5 ** np.arange(1, bounces.sum()))]))
    np.testing.assert_allclose(run.events.time[bounces], expected, rtol=0.0, atol=1e-12)
    assert run.events.kind[-1] == "attach"  # slower than `resting`
    assert run.q[-1, 0] == pytest.approx(0.0, abs=1e-15)
    assert run.audit().well


@pytest.mark.slow
def test_a_ball_that_never_rests_is_held_after_many_bounces():
    event = OneSided("floor", restitution=0.5, resting=0.0)
    run = sl.simulate(ball(), [1.0], duration=1.5, integrator="DOP853", events=[event])
    assert run.outcome.finished
    assert run.events.time[-1] == pytest.approx(3.0 * np.sqrt(2.0 / G), abs=1e-5)
    assert (run.q[-1, 0], run.v[-1, 0]) == (0.0, 0.0)


@pytest.mark.slow
def test_ends_limits_and_refusals_end_a_run_where_they_happen():
    rod = sl.Builder("rod").body("link", 1.0, (0.5, 0.0, 0.0), (0.1, 0.1, 0.1))
    rod = rod.revolute("hinge", "world", "link", "y", lower=-1.0, upper=0.3).build()
    stop = sl.simulate(rod, duration=0.5, integrator="DOP853", limits="stop")
    assert [(e.kind, e.name) for e in stop.events] == [("attach", "hinge::stop")]
    assert stop.q[-1, 0] == pytest.approx(0.3, abs=1e-15)
    events = [OneSided("floor"), End("half", when=lambda t, q, v: q[0] - 0.5)]
    run = sl.simulate(ball(), [1.0], duration=1.0, integrator="DOP853", events=events)
    assert run.outcome.reason == "event"
    assert run.outcome.time == pytest.approx(np.sqrt(1.0 / G), abs=1e-12)
    assert run.times[-1] == run.outcome.time
    fast = sl.simulate(ball(), [1.0], duration=1.0, integrator="DOP853", events=[Attach("floor", at=0.1)])
    assert fast.outcome.reason == "attach"
    assert "is open by" in fast.outcome.sentence


@pytest.mark.slow
def test_bodies_come_and_go_and_runs_of_a_batch_are_as_alone():
    builder = sl.Builder("two").body("cart", 1.0, inertia=[0.1] * 3).body("part", 0.5, inertia=[0.01] * 3)
    model = builder.prismatic("x", "world", "cart", "x").free("flies", "world", "part").build()
    model = model.with_loop("cart", "part", "fixed", name="grip", switchable=True)
    events = [
        Appear("part", at=0.2, pose=np.eye(4)),
        Attach("grip", when=lambda t, q, v: 0.3 - q[0], capture=True),
        Vanish("part", at=0.7),
    ]
    v = np.zeros((2, 7))
    v[:, 0] = 1.0, 0.8
    run = sl.simulate(model, v=v, duration=0.8, integrator="DOP853", events=events)
    assert run.events.kind.tolist() == ["appear", "attach", "vanish"] * 2
    alone = sl.simulate(model, v=v[1], duration=0.8, integrator="DOP853", events=events)
    np.testing.assert_array_equal(run[1].events.time, alone.events.time)
    np.testing.assert_array_equal(run[1].q, alone.q)
    assert alone.v[-1, 0] < 0.8


@pytest.mark.slow
def test_minimal_coordinates_with_events_are_refused():
    model = sl.zoo.four_bar().with_loop("world", "coupler", "fixed", name="latch", switchable=True)
    with pytest.raises(SpanloopError, match="minimal"):
        sl.simulate(
            model,
            sl.zoo.four_bar_start(),
            duration=0.1,
            closures="minimal",
            integrator="DOP853",
            events=[Attach("latch", at=0.05, capture=True)],
        )


def test_rounding_does_not_arm_a_condition_again():
    """Cars that couple where they meet stay there by rounding, and part once."""
    builder = sl.Builder("cars").body("one", 2.0).body("two", 3.0).prismatic("x", "world", "one", "x")
    model = builder.prismatic("y", "world", "two", "x").build()
    model = model.with_loop("one", "two", "fixed", name="grip", switchable=True)
    events = [Attach("grip", when=lambda t, q, v: q[1] - q[0]), Release("grip", at=0.4)]
    run = sl.simulate(model, [0.0, 0.3], [2.0, 1.2], duration=0.8, integrator="DOP853", events=events)
    assert run.events.kind.tolist() == ["attach", "release"]


@pytest.mark.slow
def test_an_attach_that_makes_the_loops_lose_rank_ends_the_run():
    model = sl.zoo.four_bar().with_coupling("rocker_hinge", None, name="hold", switchable=True)
    held = Attach("hold", when=lambda t, q, v: -v["rocker_hinge"], capture=True)
    start = sl.zoo.four_bar_start(angle=0.5), {"crank_hinge": 1.0}
    run = sl.simulate(model, *start, duration=1.0, events=[held], integrator="DOP853")
    assert run.outcome.reason == "singular"
    assert "of the switchable loops hold are closed there" in run.outcome.sentence
