"""Events at the edge: impacts that would pull, starts beyond stops, events that change nothing, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, SpanloopWarning, StateError

AFTER = 5.019 / 1.5  # the hand is at 6 − 0.981 m/s when it takes the box


def hand_and_box(box_has_limit: bool = False, grabs: bool = True) -> sl.Model:
    b = sl.Builder("hand").body("hand", 1.0, inertia=(1e-2,) * 3).body("box", 0.5, inertia=(1e-2,) * 3)
    bounds = {"lower": 0.0, "upper": 5.0} if box_has_limit else {}
    b = b.prismatic("up", "world", "hand", "z").prismatic("lift", "world", "box", "z", **bounds)
    b = b.coupling("grab", "lift", "up", switchable=True) if grabs else b
    if not box_has_limit:
        b = b.loop("world", "box", sl.joints.PointOnPlane("z"), name="table", switchable=True)
    return b.build()


def leg(lower: float, upper: float) -> sl.Model:
    b = sl.Builder("leg").body("sh", 3.0, (0, 0, -0.2), (0.05, 0.05, 0.005))
    return b.revolute("knee", "world", "sh", "y", lower=lower, upper=upper).build()


@pytest.mark.parametrize("on_stop", [False, True])
def test_an_attach_lets_go_what_it_would_pull(on_stop):
    events = [sl.events.Attach("grab", at=0.1, capture=True)]
    events += [] if on_stop else [sl.events.OneSided("table")]
    limits = "stop" if on_stop else "end"
    run = sl.simulate(hand_and_box(on_stop), [-1.0, 0.0], [6.0, 0.0], duration=0.15, events=events, limits=limits)
    assert run.events.kind.tolist() == ["attach", "attach", "release"]
    table = run.events.rows_named("lift::stop" if on_stop else "table")
    np.testing.assert_allclose(run.events.v_after[1], AFTER)
    assert (run.events.impulse[1, table] == 0.0).all()


@pytest.mark.slow
def test_a_continued_run_lets_go_what_its_impact_would_pull():
    model, table = hand_and_box(grabs=False), [sl.events.OneSided("table")]
    run = sl.simulate(model, [-1.0, 0.0], [6.0, 0.0], duration=0.1, events=table)
    more = model.with_coupling("lift", "up", offset=-float(run.q[-1, 0]), name="grab")
    both = run.continued(more, duration=0.05, events=table)
    np.testing.assert_allclose(both.events.v_after[-1], AFTER)
    assert both.events.kind.tolist() == ["attach", "continued", "release", "attach"]


@pytest.mark.parametrize(("lower", "q", "v", "kinds"), [
    (0.0, -0.3, 0.0, []),
    (0.0, -0.3, -1.0, ["attach", "release"]),
    (0.5, 0.3, 0.0, ["attach"]),
    (0.5, 0.3, -1.0, ["attach"]),
])  # fmt: skip
def test_a_joint_that_starts_beyond_a_stop_may_come_inside(lower, q, v, kinds):
    with pytest.warns(SpanloopWarning, match="beyond its lower limit"):
        run = sl.simulate(leg(lower, 2.0), [q], [v], duration=0.5, limits="stop")
    assert run.events.kind.tolist() == kinds
    assert run.q[-1, 0] > 0.2 if lower == 0.0 else run.q[-1, 0] == q


@pytest.mark.parametrize("integrator", ["rk4", "implicit", pytest.param("DOP853", marks=pytest.mark.slow)])
def test_a_joint_beyond_its_stop_is_held_while_it_is_pushed_further(integrator):
    def pushes(t, q, v):
        return {"knee": sl.where(t < 0.03, 0.0, sl.where(t < 0.2, -20.0, 0.0))}

    with pytest.warns(SpanloopWarning, match="beyond its lower limit"):
        run = sl.simulate(leg(0.0, 2.0), [-0.3], duration=0.3, limits="stop", controller=pushes, integrator=integrator)
    assert run.events.kind.tolist() == ["attach", "release"]
    assert run.events.time[1] == pytest.approx(0.2, abs=2e-3)


def test_a_stop_without_room_never_opens():
    run = sl.simulate(leg(0.5, 0.5), [0.5], duration=0.1, limits="stop")
    assert run.events.kind.tolist() == ["attach"]
    assert np.abs(run.q[:, 0] - 0.5).max() < 1e-12


def two_slides() -> sl.Model:
    b = sl.Builder("slides").body("a", 1.0, inertia=(1e-2,) * 3).body("b", 1.0, inertia=(1e-2,) * 3)
    b = b.prismatic("s", "world", "a", "x").prismatic("w", "world", "b", "x")
    return b.coupling("dock", "w", "s", switchable=True).build()


def test_a_condition_on_a_step_boundary_attaches_once():
    attach = sl.events.Attach("dock", when=lambda t, q, v: 1.0 - q["s"], capture=True)
    run = sl.simulate(two_slides(), [0.0, 0.0], [5.0, 0.0], duration=0.3, events=[attach])
    assert run.events.kind.tolist() == ["attach"]


def test_events_without_effect_and_refused_ones_are_kinds_of_their_own():
    Attach, Release = sl.events.Attach, sl.events.Release
    events = [Attach("dock", at=0.01, capture=True), Attach("dock", at=0.02, capture=True), Release("dock", at=0.03)]
    events += [Release("dock", at=0.04), Attach("dock", at=0.05)]
    run = sl.simulate(two_slides(), [0.0, 1.0], [5.0, 0.0], duration=0.1, events=events)
    assert run.events.kind.tolist() == ["attach", "no effect", "release", "no effect", "refused"]
    assert run.outcome.reason == "attach"


@pytest.mark.parametrize("at", ["1", True, [True, False], ["1"], b"1", 1j])
def test_moments_that_are_no_numbers_are_refused(at):
    with pytest.raises(InputError, match=r"at is .*; expected seconds, a number or one for each run"):
        sl.events.Attach("dock", at=at)


def test_a_moment_before_the_start_is_noted():
    attach = sl.events.Attach("dock", at=0.5, capture=True)
    run = sl.simulate(two_slides(), duration=0.01, start=2.0, events=[attach])
    assert "before the start, so that it happens at once: at of Attach('dock')" in run.settings["note"]


def test_moments_of_too_few_runs_name_their_event():
    with pytest.raises(InputError, match=r"q \(3,\), at of Attach\('dock'\) \(2,\); they must be equal or 1"):
        sl.simulate(two_slides(), np.zeros((3, 2)), duration=0.1, events=[sl.events.Attach("dock", at=[0.1, 0.2])])


@pytest.mark.parametrize(("given", "words"), [
    ({"velocity": [0, 0, 0, 1, 0, 0]}, "velocity= is given without pose="),
    ({"pose": np.stack([np.eye(4)] * 2)}, r"shape \(2, 4, 4\); expected numbers \(4, 4\), .* the same for all runs"),
    ({"pose": lambda t: np.eye(4)}, r"pose is a function; expected numbers \(4, 4\)"),
    ({"pose": 2.0 * np.eye(4)}, "must be a rotation"),
    ({"pose": np.eye(4), "velocity": [0.0] * 3}, r"velocity has the shape \(3,\); expected six numbers"),
])  # fmt: skip
def test_how_a_body_appears_is_checked(given, words):
    with pytest.raises(InputError, match=words):
        sl.events.Appear("part", at=1.0, **given)


@pytest.mark.parametrize(("condition", "words"), [
    (lambda t, q, v: q["nobody"], "the condition of attach 'dock': model 'slides' has no joint 'nobody'"),
    (lambda t, q, v: 1.0 if q["s"] > 0.0 else -1.0, "the condition of attach 'dock' cannot be traced"),
    (lambda t, q, v, f: f["dok"], r"the condition of attach 'dock': f\['dok'\]: there is no loop or coupling"),
])  # fmt: skip
def test_what_a_condition_raises_names_its_event(condition, words):
    with pytest.raises(InputError, match=words):
        sl.simulate(two_slides(), duration=0.1, events=[sl.events.Attach("dock", when=condition)])


def test_couplings_are_called_so():
    run = sl.simulate(two_slides(), [0.0, 1.0], duration=0.01, events=[sl.events.Attach("dock", at=0.005)])
    assert "coupling 'dock' cannot attach" in run.outcome.sentence
    with pytest.raises(InputError, match=r"row is 3; expected 0$"):
        sl.simulate(two_slides(), duration=0.1, events=[sl.events.OneSided("dock", row=3)])


def test_rates_that_closed_switches_forbid_name_them():
    model = two_slides().with_coupling("s", None, offset=0.0, switchable=True, name="brake")
    attach = [sl.events.Attach("dock", at=0.005)]
    with pytest.warns(SpanloopWarning, match="Switchable, and closed at the start: 'brake'"):
        sl.simulate(model, v=[3.0, 0.0], duration=0.01, events=attach)
    with pytest.raises((StateError, InputError), match="Switchable, and closed at the start: 'brake'"):
        sl.simulate(model, v={"s": 3.0}, duration=0.01, events=attach)


def test_a_joint_on_its_stop_tells_where_that_is():
    run = sl.simulate(leg(0.0, 2.0), [0.3], duration=0.01, limits="stop")
    with pytest.raises(InputError, match=r"The stop of this joint is run\['knee::stop'\]"):
        _ = run["knee"].active


def test_a_grasp_without_force_does_not_pull():
    b = sl.Builder("pad", gravity=(0.0, 0.0, 0.0)).body("pad", 1.0, inertia=(1e-2,) * 3)
    model = b.prismatic("s", "world", "pad", "x").loop("world", "pad", "fixed", name="hold").build()
    run = sl.simulate(model, duration=0.01, events=[sl.events.Grasp("hold", friction=0.5, torsion=0.1)])
    assert "presses with 0 N" in run.outcome.sentence


@pytest.mark.parametrize("alone", [True, False])
def test_a_condition_that_becomes_no_number_is_named(alone):
    def near(t, q, v):
        return np.sqrt(q[0] - 1.0001) + 0.1

    b = sl.Builder("cart").body("cart", 1.0, inertia=(0.01,) * 3).prismatic("rail", "world", "cart", "x")
    model = b.coupling("hold", "rail", switchable=True).build()
    events = {"near": near} if alone else [sl.events.Attach("hold", when=near, capture=True)]
    start = sl.Closures(active_loops=[])
    run = sl.simulate(model, [1.01], [-1.0], duration=0.1, events=events, closures=start)
    assert run.outcome.reason == "not_finite"
    assert f"the condition of {'near' if alone else 'hold'!r} is no number at t = 0.009" in run.outcome.sentence


@pytest.mark.slow
def test_the_note_on_conditions_leaves_out_what_is_not_there_yet():
    b = sl.Builder("part").body("part", 1.0, inertia=(0.01,) * 3).free("flight", "world", "part")
    model = b.loop("world", "part", "fixed", name="grip", switchable=True).build()
    grip = sl.events.Attach("grip", when=lambda t, q, v: q["flight"][6], capture=True)
    here = sl.simulate(model, duration=0.02, events=[grip])
    later = sl.simulate(model, duration=0.02, events=[sl.events.Appear("part", at=0.01), grip])
    assert "Attach('grip')" in here.settings["note"]
    assert "note" not in later.settings
    assert list(later.events.kind) == ["appear", "attach"]


def test_a_body_that_is_there_appears_without_effect():
    b = sl.Builder("part").body("part", 1.0, inertia=(0.01,) * 3).free("flight", "world", "part")
    times = (sl.events.Appear("part", at=0.01), sl.events.Appear("part", at=0.02), sl.events.Vanish("part", at=0.03))
    run = sl.simulate(b.build(), duration=0.05, events=[*times, sl.events.Vanish("part", at=0.04)])
    assert list(run.events.kind) == ["appear", "no effect", "vanish", "no effect"]
