"""Events that meet each other, bodies that are not there, starts on the wrong side: refused or right, never silent."""

from __future__ import annotations

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, StateError
from spanloop.simulation.events import Appear, Attach, End, OneSided, Release, Vanish


def ball() -> sl.Model:
    model = sl.Builder("ball").body("ball", 1.0).prismatic("z", "world", "ball", "z").build()
    return model.with_loop("world", "ball", "point_on_plane", name="floor", switchable=True)


def cart_and_part() -> sl.Model:
    builder = sl.Builder("two").body("cart", 1.0, inertia=[0.1] * 3).body("part", 0.5, inertia=[0.01] * 3)
    model = builder.prismatic("x", "world", "cart", "x").free("flies", "world", "part").build()
    return model.with_gravity((0.0, 0.0, 0.0)).with_loop("cart", "part", "fixed", name="grip", switchable=True)


def pushed(events: list, **options: object) -> sl.Trajectory:
    return sl.simulate(cart_and_part(), v=[1.0, *[0.0] * 6], duration=0.05, events=events, **options)


@pytest.mark.parametrize(
    "events",
    [
        [Attach("grip", at=0.01, capture=True), Appear("part", at=0.02)],
        [Vanish("part", at=0.005), Attach("grip", at=0.01, capture=True)],
    ],
)
def test_a_body_that_is_not_there_cannot_be_attached(events):
    run = pushed(events)
    assert run.outcome.reason == "attach"
    assert "cannot attach: body 'part' is not there" in run.outcome.sentence
    assert run.v[-1, 0] == 1.0


def test_the_order_of_events_of_one_moment_does_not_matter():
    pose = np.eye(4)
    pose[0, 3] = 0.3
    appear, attach = Appear("part", at=0.01, pose=pose), Attach("grip", at=0.01, capture=True)
    for events in ([appear, attach], [attach, appear]):
        run = pushed(events)
        assert run.outcome.finished
        assert run.v[-1, [0, 4]] == pytest.approx([2.0 / 3.0, 2.0 / 3.0], abs=1e-14)
        assert run.q[-1, 5] == pytest.approx(0.3 + 0.04 * 2.0 / 3.0, abs=1e-10)
    vanish, late = Vanish("part", at=0.01), Attach("grip", at=0.01, capture=True)
    for events in ([vanish, late], [late, vanish]):
        run = pushed(events)
        assert run.outcome.finished
        assert run.v[-1, 0] == 1.0
        assert not run.events.on[-1].any()


def test_a_body_that_is_there_does_not_appear_again():
    pose = np.eye(4)
    pose[2, 3] = 2.0
    run = pushed([Appear("part", at=0.01), Appear("part", at=0.02, pose=pose), Attach("grip", at=1.0)])
    assert run.events.kind.tolist() == ["appear", "appear"]
    assert np.array_equal(run.q[-1, 1:], [1.0, *[0.0] * 6])


def test_loops_of_a_body_that_appears_begin_open():
    run = pushed([Appear("part", at=0.01)])
    assert not run.events.begin_on.any()
    assert run.v[-1, 0] == 1.0
    with says(InputError, "active_loops names 'grip', which holds 'part', a body that is not there before it appears"):
        pushed([Appear("part", at=0.01)], closures=sl.Closures(active_loops=["grip"]))
    held = cart_and_part().with_loop("world", "part", "fixed", name="hold")
    with says(InputError, "Vanish('part'): loop 'hold' holds this body and is not switchable"):
        sl.simulate(held, duration=0.05, events=[Vanish("part", at=0.01)])


def test_a_loop_that_captured_before_is_measured_against_its_own_place():
    events = [Attach("grip", at=0.01, capture=True), Release("grip", at=0.02), Attach("grip", at=0.02, speed=1.0)]
    run = pushed(events)  # at 0.02 it is closed, and released after that
    assert run.outcome.finished
    events[2] = Attach("grip", at=0.03)
    run = pushed(events)
    assert run.outcome.reason == "attach"
    assert "it is open by 10 mm" in run.outcome.sentence


def test_a_start_on_the_wrong_side_is_refused():
    with says(StateError, "OneSided('floor') starts on the wrong side: sign times its error is -0.1 m"):
        sl.simulate(ball(), [-0.1], duration=0.01, events=[OneSided("floor")])
    with says(StateError, "sign times its error is -0.2 m in run 1"):
        sl.simulate(ball(), [[0.1], [0.2]], duration=0.01, events=[OneSided("floor", sign=-1)])


def test_a_condition_that_is_no_number_at_the_start_fires_alone():
    odd = End("odd", when=lambda t, q, v: np.sqrt(q[0] - 2.0) + 1.0)
    run = sl.simulate(ball(), [1.0], duration=0.01, events=[OneSided("floor"), odd])
    assert (run.outcome.reason, run.events.kind.tolist()) == ("event", ["end"])
    with says(InputError, "returned a bool"):
        sl.simulate(
            ball(), [1.0], duration=0.01, events=[OneSided("floor"), End("x", when=lambda t, q, v: np.bool_(1))]
        )
