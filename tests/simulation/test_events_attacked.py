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


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert run.events.kind.tolist() == ["appear", "no effect"]
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


@pytest.mark.slow
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


def puck(width: float = 0.1) -> sl.Model:
    model = sl.Builder("puck").body("puck", 1.0).prismatic("x", "world", "puck", "z").build()
    model = model.with_gravity((0.0, 0.0, 0.0)).with_frame("wall", "world", position=(0.0, 0.0, width))
    model = model.with_loop("world", "puck", "point_on_plane", name="left", switchable=True)
    return model.with_loop("wall", "puck", "point_on_plane", name="right", switchable=True)


WALLS = [OneSided("left", restitution=1.0, resting=0.0), OneSided("right", sign=-1, restitution=1.0, resting=0.0)]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"step": 0.01}, {"integrator": "DOP853"}])
def test_a_puck_between_two_walls_never_loses_energy(options):
    run = sl.simulate(puck(), [0.03], [30.0], duration=0.5, events=WALLS, **options)
    assert len(run.events) == 150
    np.testing.assert_allclose(run.events.time, (0.07 + 0.1 * np.arange(150)) / 30.0, rtol=0.0, atol=1e-11)
    assert np.array_equal(np.abs(run.v), np.full(run.v.shape, 30.0))
    assert run.q.min() > -1e-12
    assert run.q.max() < 0.1 + 1e-12


@pytest.mark.slow
def test_more_bounces_than_a_step_can_locate_are_not_stopped_in_silence():
    run = sl.simulate(puck(), [0.03], [1000.0], duration=0.05, step=0.01, events=WALLS)
    assert run.outcome.reason == "not_converged"
    assert "Take shorter steps" in run.outcome.sentence
    assert abs(run.v[-1, 0]) == 1000.0


def block(corners: int) -> sl.Model:
    """A block of 0.4 m by 1.6 m in a plane, with corners on a smooth floor."""
    builder = sl.Builder("block").body("x", 0.0).body("z", 0.0).body("block", 1.0, inertia=[0.68 / 3.0] * 3)
    builder = (
        builder.prismatic("x", "world", "x", "x").prismatic("z", "x", "z", "z").revolute("turn", "z", "block", "y")
    )
    model = builder.build()
    for k, (x, z) in enumerate([(-0.2, -0.8), (0.2, -0.8), (0.2, 0.8), (-0.2, 0.8)][:corners]):
        model = model.with_frame(f"f{k}", "block", position=(x, 0.0, z))
        model = model.with_loop("world", f"f{k}", "point_on_plane", name=f"c{k}", switchable=True)
    return model


@pytest.mark.slow
def test_impacts_of_symmetry_happen_together():
    events = [OneSided("c0", restitution=1.0), OneSided("c1", restitution=1.0)]
    run = sl.simulate(block(2), [0.0, 0.9, 0.0], duration=3.0, step=0.01, events=events)
    assert len(run.events) == 22
    assert np.abs(run.q[:, 2]).max() < 1e-12
    energy = 0.5 * run.v[:, 1] ** 2 + 9.81 * run.q[:, 1]
    assert np.abs(energy - energy[0]).max() < 1e-12


@pytest.mark.slow
def test_a_rocking_block_comes_to_rest():
    events = [OneSided("c0"), OneSided("c1")]
    for step in (1e-3, 1e-2):
        start = [0.0, 0.2 * np.sin(0.1) + 0.8 * np.cos(0.1), 0.1]
        run = sl.simulate(block(2), start, duration=1.5, step=step, events=events)
        assert run.outcome.finished
        corners = run.q[:, 1:2] + np.sin(run.q[:, 2:]) * [0.2, -0.2] - 0.8 * np.cos(run.q[:, 2:])
        assert corners.min() > -1e-9
        assert np.abs(run.v[-1]).max() < 1e-12
        ratios = run.events.v_after[1:5, 2] / run.events.v_before[1:5, 2]
        assert np.abs(ratios).max() < 1.0  # Housner: less at every change of corners
        assert (run.events.energy_lost > -1e-15).all()


@pytest.mark.parametrize("integrator", ["rk4", "DOP853"])
def test_a_floor_does_not_hold_what_is_pulled_up(integrator):
    builder = sl.Builder("hooked").body("ball", 1.0).body("crane", 1.0).prismatic("z", "world", "ball", "z")
    model = builder.prismatic("up", "world", "crane", "z").build()
    model = model.with_loop("world", "ball", "point_on_plane", name="floor", switchable=True)
    model = model.with_coupling("z", "up", switchable=True, name="hook")
    events = [OneSided("floor"), Attach("hook", at=0.05, capture=True)]
    run = sl.simulate(model, [0.0, 0.5], [0.0, 2.0], duration=0.1, integrator=integrator, events=events)
    assert run.events.kind.tolist() == ["attach", "release", "attach"]
    after = 0.5 * (2.0 - 9.81 * 0.05)
    assert run.events.v_after[-1] == pytest.approx([after, after], abs=1e-10)
    assert run.q[-1, 0] == pytest.approx(after * 0.05 - 0.5 * 9.81 * 0.05**2, abs=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_condition_may_be_as_large_as_it_likes(dtype):
    integrator = sl.Integrator("rk4", dtype=dtype)
    events = [OneSided("floor"), End("far", when=lambda t, q, v: 1e12 + q[0]), Attach("floor", at=1e7)]
    run = sl.simulate(ball(), [0.01], duration=0.01, events=events, integrator=integrator)
    assert run.outcome.finished
    alone = {"far": lambda t, q, v: 1e12 + q[0]}
    assert sl.simulate(sl.zoo.pendulum(), [0.1], duration=0.01, events=alone, integrator=integrator).outcome.finished


def test_where_a_run_ends_nothing_else_happens():
    events = [OneSided("floor", restitution=0.5), End("hit", when=lambda t, q, v: q[0])]
    run = sl.simulate(ball(), [0.005], duration=0.1, events=events)
    assert run.events.kind.tolist() == ["end"]
    assert not run.events.on.any()
    assert run.v[-1, 0] == pytest.approx(-np.sqrt(2.0 * 9.81 * 0.005), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"step": 0.01}, {"integrator": "DOP853"}])
def test_moments_at_both_ends_of_a_run_and_on_its_grid_are_met(options):
    model = ball().with_coupling("z", None, offset=0.0, switchable=True, name="brake")
    for at in (0.0, 1e-15, 0.02, np.nextafter(0.02, 0.0), np.nextafter(0.02, 1.0), 0.02 - 1e-12, 0.05 - 1e-12, 0.05):
        events = [OneSided("floor"), Attach("brake", at=at, capture=True)]
        run = sl.simulate(model, [1.0], duration=0.05, events=events, **options)
        assert run.events.name.tolist() == ["brake"]
        assert run.events.time[0] == pytest.approx(at, abs=1e-11)
        assert run.q[-1, 0] == pytest.approx(1.0 - 0.5 * 9.81 * at**2, abs=1e-11)
        assert run.v[-1, 0] == 0.0


@pytest.mark.parametrize("integrator", ["rk4", "DOP853"])
def test_a_bounce_and_an_attach_of_one_moment_make_no_energy(integrator):
    builder = sl.Builder("two").body("ball", 1.0).body("crane", 1.0).prismatic("z", "world", "ball", "z")
    model = builder.prismatic("up", "world", "crane", "z").build().with_gravity((0.0, 0.0, 0.0))
    model = model.with_loop("world", "ball", "point_on_plane", name="floor", switchable=True)
    model = model.with_coupling("z", "up", switchable=True, name="hook")
    events = [OneSided("floor", restitution=1.0), Attach("hook", when=lambda t, q, v: q["z"], capture=True)]
    run = sl.simulate(model, [0.01, 0.5], [-1.0, 0.0], duration=0.02, integrator=integrator, events=events)
    assert run.v[-1] == pytest.approx([0.5, 0.5], abs=1e-12)
    assert run.events.energy_lost.sum() == pytest.approx(0.25, abs=1e-12)
    assert run.events.energy_lost.min() > -1e-12


@pytest.mark.slow
def test_a_body_does_not_appear_inside_the_floor():
    model = sl.Builder("drop").body("part", 0.5, inertia=[0.01] * 3).free("flies", "world", "part").build()
    model = model.with_loop("world", "part", "point_on_plane", name="floor", switchable=True)
    for height, reason in ((0.01, "finished"), (0.0, "finished"), (-0.05, "attach")):
        pose = np.eye(4)
        pose[2, 3] = height
        events = [OneSided("floor", restitution=0.5), Appear("part", at=0.01, pose=pose)]
        run = sl.simulate(model, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0], duration=0.1, events=events)
        assert run.outcome.reason == reason
        assert run.events.kind[0] == "appear"
    assert "it is 0.05 m on its wrong side" in run.outcome.sentence
