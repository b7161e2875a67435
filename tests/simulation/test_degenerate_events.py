"""Events at the edge: met at the start, at one moment, refused, without end, of what is closed already."""

from __future__ import annotations

import event_stories as known
import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, Reason, StateError, UnsupportedError
from spanloop.simulation.events import Attach, OneSided, Release


def cars() -> sl.Model:
    """Cars of 3 and 5 kg on one rail, with a coupler."""
    b = sl.Builder("cars").body("one", 3.0, inertia=(1, 1, 1)).body("two", 5.0, inertia=(1, 1, 1))
    b.prismatic("first", "world", "one", "x").prismatic("second", "world", "two", "x")
    return b.loop("one", "two", "fixed", name="coupler", switchable=True).build()


OPEN = sl.Closures(active_loops=[])
CLOSED = sl.Closures(active_loops=["coupler"])


def on_rail(*events, q=(0.0, 0.0), v=(2.0, 1.2), **options):
    return sl.simulate(cars(), q, v, duration=0.1, events=list(events), **options)


def rows(run):
    """Kind, name and time of every event; times to a billionth of a step."""
    table = run.events
    return [(str(k), str(n), round(float(t), 11)) for k, n, t in zip(table.kind, table.name, table.time, strict=True)]


# ---- at the start


def test_a_condition_that_is_met_at_the_start_happens_at_once_with_a_note():
    run = on_rail(Attach("coupler", when=lambda t, q, v: q[0] - 1.0, capture=True))
    assert rows(run) == [("attach", "coupler", 0.0)]
    assert run.settings["note"] == (
        "not positive at the start, so that it happens at once: the condition of Attach('coupler')"
    )
    np.testing.assert_allclose(run.v[-1], 1.5, rtol=1e-13)


def test_a_moment_at_the_start_needs_no_note():
    run = on_rail(Attach("coupler", at=0.0, capture=True))
    assert rows(run) == [("attach", "coupler", 0.0)]
    assert "note" not in run.settings


def test_a_start_beyond_a_one_sided_constraint_is_refused():
    """Closing it would lift the ball by 10 mm out of nothing."""
    with pytest.raises(StateError) as refused:
        sl.simulate(known.ball(), [-0.01], duration=0.05, events=[OneSided("ground")])
    assert refused.value.reason is Reason.OPEN_LOOP
    assert str(refused.value) == (
        "simulate: OneSided('ground') starts on the wrong side: sign times its error is -0.01 m, and must be positive. "
        "Start where it is not, or give the other sign="
    )
    with says(StateError, "sign times its error is -0.02 m in run 1, and must be positive"):
        sl.simulate(known.ball(), [[1.0], [-0.02]], duration=0.05, events=[OneSided("ground")])


# ---- at one moment


@pytest.mark.slow
def test_events_of_one_moment_are_one_impact():
    b = sl.Builder("cars", gravity=(0, 0, 0))
    for name, mass in (("one", 1.0), ("two", 2.0), ("three", 3.0)):
        b.body(name, mass, inertia=(1, 1, 1)).prismatic(f"{name}_rail", "world", name, "x")
    b.loop("one", "two", "fixed", name="front", switchable=True)
    model = b.loop("two", "three", "fixed", name="back", switchable=True).build()
    both = [Attach("front", at=0.05, capture=True), Attach("back", at=0.05, capture=True)]
    run = sl.simulate(model, v=[6.0, 0.0, 2.0], duration=0.1, events=both)
    assert rows(run) == [("attach", "front", 0.05), ("attach", "back", 0.05)]
    np.testing.assert_allclose(run.events.v_after, 2.0, rtol=1e-13)
    np.testing.assert_allclose(run.events.energy_lost.sum(), 0.5 * (36 + 12) - 0.5 * 6 * 4, rtol=1e-13)


@pytest.mark.slow
def test_of_two_events_of_one_loop_at_one_moment_the_last_counts():
    attach, release = Attach("coupler", at=0.05, capture=True), Release("coupler", at=0.05)
    opened, closed = on_rail(attach, release), on_rail(release, attach)
    np.testing.assert_array_equal(opened.v[-1], [2.0, 1.2])
    np.testing.assert_allclose(closed.v[-1], 1.5, rtol=1e-13)
    np.testing.assert_array_equal(opened.events.energy_lost, 0.0)
    np.testing.assert_allclose(closed.events.energy_lost, [0.0, 0.6], rtol=1e-13)


# ---- of what is so already


def test_the_release_of_an_open_loop_changes_nothing_and_is_counted():
    run, alone = on_rail(Release("coupler", at=0.05), closures=OPEN), on_rail(closures=OPEN)
    assert rows(run) == [("no effect", "coupler", 0.05)]
    np.testing.assert_array_equal(run.q[-1], alone.q[-1])


def test_the_attach_of_a_closed_loop_changes_nothing_and_is_counted():
    run, alone = (on_rail(*events, v=(1.0, 1.0), closures=CLOSED) for events in ([Attach("coupler", at=0.05)], []))
    assert rows(run) == [("no effect", "coupler", 0.05)]
    np.testing.assert_allclose(run.q[-1], alone.q[-1], rtol=1e-14)
    assert run.events.energy_lost[0] == 0.0


# ---- refused


def test_a_loop_that_is_open_does_not_attach():
    run = on_rail(Attach("coupler", at=0.05), q=(0.0, 0.01))
    assert (run.outcome.reason, round(run.outcome.time, 11)) == ("attach", 0.05)
    assert run.outcome.sentence == (
        "at t = 0.05 s loop 'coupler' cannot attach: it is open by 30 mm. capture=True holds it as it is; or move it "
        "there first"
    )


@pytest.mark.slow
def test_a_loop_that_is_turned_does_not_attach():
    b = sl.Builder("discs").body("one", 1.0, inertia=(1, 1, 1)).body("two", 1.0, inertia=(1, 1, 1))
    b.revolute("first", "world", "one", "z").revolute("second", "world", "two", "z")
    model = b.loop("one", "two", "fixed", name="clutch", switchable=True).build()
    run = sl.simulate(model, [0.0, 0.2], duration=0.1, events=[Attach("clutch", at=0.05)])
    assert run.outcome.reason == "attach"
    assert "loop 'clutch' cannot attach: it is open by 199 mrad" in run.outcome.sentence


def test_a_loop_that_closes_too_fast_does_not_attach():
    run = on_rail(Attach("coupler", at=0.05, capture=True, speed=0.5))
    assert (run.outcome.reason, round(run.outcome.time, 11)) == ("attach", 0.05)
    assert run.outcome.sentence == (
        "at t = 0.05 s loop 'coupler' cannot attach: it closes at 0.8 m/s (coupler: force along x), and speed= allows "
        "0.5"
    )
    assert on_rail(Attach("coupler", at=0.05, capture=True, speed=0.81)).outcome.finished


@pytest.mark.slow
def test_an_attach_that_makes_the_loops_lose_rank_ends_the_run():
    """The rocker of a four-bar, held where it turns back: the crank could still move, to first order."""
    model = sl.zoo.four_bar().with_coupling("rocker_hinge", None, name="hold", switchable=True)
    held = Attach("hold", when=lambda t, q, v: -v["rocker_hinge"], capture=True)
    run = sl.simulate(model, sl.zoo.four_bar_start(angle=0.5), {"crank_hinge": 1.0}, duration=1.0, events=[held])
    assert run.outcome.reason == "singular"
    assert "'closing', 'hold'" in run.outcome.sentence
    found = sl.Dynamics(run.segments[-1].model).diagnose(run.q[-1])
    assert any("hold" in row for row in found.redundant_here)


@pytest.mark.slow
def test_an_attach_that_leaves_no_motion_stops_it():
    model = sl.zoo.four_bar().with_coupling("rocker_hinge", None, name="hold", switchable=True)
    model = model.with_coupling("crank_hinge", None, name="brake", switchable=True)
    both = [Attach(name, at=0.1, capture=True) for name in ("hold", "brake")]
    run = sl.simulate(model, sl.zoo.four_bar_start(), {"crank_hinge": 1.0}, duration=0.3, events=both)
    assert run.outcome.finished
    np.testing.assert_allclose(run.v[-1], 0.0, atol=1e-13)
    assert run.audit().well


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (Release("couple", at=0.05), "has no switchable loop or coupling 'couple'; did you mean 'coupler'?"),
        (OneSided("coupler"), "this loop has 6 rows; name the one that is watched, row=0 ... 5"),
        (OneSided("coupler", row=7), "row is 7; expected 0 ... 5"),
        (Release("coupler", when=lambda t, q, v: np.nan), "returned nan; expected a finite number"),
        (Release("coupler", when=lambda t, q, v: q), "returned a Named; expected one number"),
    ],
)
def test_events_that_do_not_fit_the_model_are_refused(event, sentence):
    with says(InputError, sentence):
        on_rail(event, v=(1.0, 1.0))


@pytest.mark.parametrize(
    ("times", "more", "sentence"),
    [
        (([0.01, 0.02],), {"v": np.ones((3, 2))}, "v (3, 2), tau, inputs, parameters or at= of events (2, 0)"),
        (([0.01, 0.02], [0.05, 0.06, 0.07]), {}, "at= of events have the shapes (2,), (3,); expected one number a run"),
        (([0.01, 0.02],), {"tau": np.zeros((3, 1, 2))}, "tau and inputs (3,), at= of events (2,); they must be equal"),
    ],
)
def test_moments_that_do_not_fit_the_runs_are_refused(times, more, sentence):
    with says(InputError, sentence):
        on_rail(*(Release("coupler", at=x) for x in times), **{"v": (1.0, 1.0)} | more)


@pytest.mark.parametrize("closures", ["feedback", "none"])
def test_changes_need_projection(closures):
    with says(UnsupportedError, f"events that change the mechanism need closures='project'; closures is '{closures}'"):
        on_rail(Release("coupler", at=0.05), v=(1.0, 1.0), closures=closures)


# ---- one-sided constraints that depend on each other


def table(axis) -> sl.Model:
    """A table of 1 kg on four legs, one more than determine it, with a load of 2 kg that slides along an axis."""
    b = sl.Builder("table").body("top", 1.0, inertia=(0.1, 0.1, 0.1)).free("free", "world", "top")
    for k, (x, y) in enumerate(((-0.5, -0.4), (-0.5, 0.4), (0.5, -0.4), (0.5, 0.4))):
        b.frame(f"foot{k}", "top", (x, y, -0.2))
        b.loop("world", f"foot{k}", sl.joints.PointOnPlane("z"), name=f"leg{k}", switchable=True)
    return b.body("load", 2.0, inertia=(0.01,) * 3).prismatic("slide", "top", "load", axis).build()


LEGS = [OneSided(f"leg{k}") for k in range(4)]
STANDING = sl.Closures(active_loops=[f"leg{k}" for k in range(4)])


@pytest.mark.slow
@pytest.mark.parametrize("turn", [(0.0, 0.0), (0.05, 0.0), (0.03, 0.04)])
def test_a_table_falls_on_its_four_legs_and_rests(turn):
    """Flat on four legs, on an edge, or on one leg: then leg after leg strikes, ever faster."""
    q = [np.sqrt(1.0 - turn[0] ** 2 - turn[1] ** 2), *turn, 0.0, 0.0, 0.0, 0.5, 0.0]
    run = sl.simulate(table("x").lock("slide"), q[:7], duration=0.5, events=LEGS)
    assert run.outcome.finished
    np.testing.assert_allclose(run.v[-1], 0.0, atol=1e-9)
    np.testing.assert_allclose(run.q[-1, [1, 2, 6]], [0.0, 0.0, 0.2], atol=1e-9)
    np.testing.assert_allclose(run.events.energy_lost.sum(), 3.0 * known.G * 0.3, rtol=1e-6)


@pytest.mark.slow
def test_a_table_tips_where_its_load_passes_the_edge_of_its_feet():
    model, q = table("x"), [1.0, 0, 0, 0, 0, 0, 0.2, -0.3]
    run = sl.simulate(model, q, [0.0] * 6 + [2.0], duration=0.7, closures=STANDING, events=LEGS)
    tips = run.events.time[-1]  # the last of the two legs behind
    assert abs(tips - (0.5 * 3.0 / 2.0 + 0.3) / 2.0) < 1e-8
    assert set(run.events.name) == {"leg0", "leg1"}
    assert run.audit().well


@pytest.mark.slow
@pytest.mark.parametrize("axis", [(0.5, -0.4, 0.0), (0.5, 0.1, 0.0), (0.5, 0.4, 0.0)])
def test_a_table_stands_still_while_its_load_goes_to_and_fro(axis):
    """The legs that carry it change; which of the four is idle is not unique, the motion is."""
    run = sl.simulate(table(axis), [1.0, 0, 0, 0, 0, 0, 0.2, -0.5], duration=1.5, closures=STANDING, events=LEGS,
                      controller=lambda t, q, v: {"slide": -60.0 * q["slide"]})  # fmt: skip
    assert run.outcome.finished
    assert np.abs(run.q[:, 1:3]).max() < 1e-9
    assert np.abs(run.q[:, 6] - 0.2).max() < 1e-9


# ---- without end


@pytest.mark.slow
def test_a_ball_that_bounces_without_end_comes_to_rest_with_a_note():
    run = sl.simulate(known.ball(), [0.01], duration=0.3, events=[OneSided("ground", restitution=0.5, resting=0.0)])
    assert run.outcome.finished
    assert run.settings["note"] == "impacts of ground followed each other too fast: restitution counts as 0 there"
    assert run.events.kind[-1] == "attach"
    assert abs(run.events.time[-1] - 3.0 * np.sqrt(0.02 / known.G)) < 1e-8  # t₁ (1 + e) / (1 − e)
    np.testing.assert_allclose([run.q[-1], run.v[-1]], 0.0, atol=1e-14)


# ---- energy never appears


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_an_attach_never_makes_energy(seed):
    rng = np.random.default_rng(seed)
    model = sl.zoo.chain(5).with_frame("anchor", "world", (0.3, 0.1, 0.2))
    model = model.with_loop("tool", "anchor", "spherical", name="grip", switchable=True)
    at = [float(x) for x in np.sort(rng.uniform(0.02, 0.2, 4))]
    events = [kind("grip", at=t, **more) for kind, more, t in
              zip((Attach, Release) * 2, ({"capture": True}, {}) * 2, at, strict=True)]  # fmt: skip
    q, v = model.random_state(rng)
    run = sl.simulate(model, q, 3.0 * v, duration=0.25, events=events)
    assert len(run.events) == 4
    assert (run.events.energy_lost[::2] > 0.0).all()
    np.testing.assert_array_equal(run.events.energy_lost[1::2], 0.0)
    robot = sl.Dynamics(model)
    energies = [robot.energy(run.events.q, x)[:, 0] for x in (run.events.v_before, run.events.v_after)]
    np.testing.assert_allclose(energies[0] - energies[1], run.events.energy_lost, atol=1e-12 * energies[0].max())
    assert "energy" not in run.audit().faults
