"""Runs that go on with another model: time, states by name, motion of bodies, impacts, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.compiler.runtime import machine
from spanloop.errors import InputError, Reason, StateError
from spanloop.simulation import simulate
from spanloop.trajectory import segment_models


def bodies(name: str, gravity=(0.0, 0.0, 0.0)) -> sl.Builder:
    builder = sl.Builder(name, gravity=gravity).body("arm", 1.0, (0.4, 0.0, 0.0), (0.1, 0.2, 0.3))
    return builder.body("ball", 0.5, (0.02, 0.01, 0.0), (0.01, 0.02, 0.025)).revolute("hinge", "world", "arm", "z")


def held(**options) -> sl.Model:
    return bodies("held", **options).fixed("grip", "arm", "ball", (1.0, 0.0, 0.1), (0.3, -0.2, 0.5)).build()


def released(**options) -> sl.Model:
    return bodies("released", **options).free("flies", "world", "ball").build()


def cars(gap: float = 0.0) -> sl.Model:
    builder = sl.Builder("cars").body("one", 2.0).body("two", 3.0).prismatic("x", "world", "one", "x")
    return builder.prismatic("y", "world", "two", "x", (gap, 0.0, 0.0)).build()


def total(run: sl.Trajectory, k: int) -> np.ndarray:
    """[energy, linear and angular momentum about the origin] at sample k."""
    momentum, center = run.momentum[k], run.center_of_mass[k]
    about_origin = momentum[:3] + np.cross(center, momentum[3:])
    return np.array([run.energy[k].sum(), *momentum[3:], *about_origin])


# ---- time


@pytest.mark.parametrize("integrator", ["rk4", "DOP853"])
def test_controllers_and_events_see_the_time_that_starts_where_the_user_says(integrator):
    model = sl.zoo.puma()
    run = sl.simulate(
        model,
        duration=0.01,
        start=2.0,
        integrator=integrator,
        controller=lambda t, q, v: [t] * 6,
        events={"late": lambda t, q, v: 2.0055 - t},
    )
    assert run.times[0] == 2.0
    np.testing.assert_allclose(run.times[-1], 2.0055, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(run.tau[:, 0], run.times, rtol=1e-15)
    assert run.outcome.reason == "event"


def test_a_start_that_is_no_time_is_refused():
    with pytest.raises(InputError, match="start is nan; expected a time in seconds"):
        sl.simulate(sl.zoo.puma(), duration=0.01, start=np.nan)


def test_the_same_model_goes_on_as_if_it_had_not_stopped():
    model = sl.zoo.puma()
    law = {"controller": lambda t, q, v: [3.0 * t - x for x in v]}
    whole = sl.simulate(model, duration=0.2, **law)
    parts = sl.simulate(model, duration=0.1, **law).continued(model, duration=0.1, **law)
    again = [k for k in range(len(parts)) if k != 101]
    np.testing.assert_allclose(parts.q[again], whole.q, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(parts.times[again], whole.times, rtol=1e-15)
    assert parts.times[100] == parts.times[101] == 0.1
    assert parts.outcome.finished
    assert parts.outcome.time == pytest.approx(0.2)
    assert parts.events.kind.tolist() == ["continued"]
    assert len(parts.earlier) == 1


# ---- bodies that go on


@pytest.mark.slow
def test_a_body_released_from_a_turning_arm_flies_straight_and_keeps_energy_and_momentum():
    run = sl.simulate(held(), [0.1], [2.0], duration=0.3).continued(released(), duration=0.2)
    assert [s.model.name for s in run.segments] == ["held", "released"]
    np.testing.assert_allclose(total(run, 301), total(run, 300), rtol=1e-14, atol=1e-15)
    free = [0, 3, 4, 5, 6]  # the hinge pushes along x and y
    np.testing.assert_allclose(total(run, -1)[free], total(run, 301)[free], rtol=0.0, atol=1e-13)
    at, rate = run["ball"].pose[301:], run["ball"].velocity[301]
    center = at[:, :3, 3] + at[:, :3, :3] @ np.array([0.02, 0.01, 0.0])
    speed = rate[3:] + np.cross(rate[:3], center[0] - at[0, :3, 3])
    flight = center[0] + (run.times[301:] - 0.3)[:, None] * speed
    np.testing.assert_allclose(center, flight, rtol=0.0, atol=1e-13)
    assert "'flies' took over the motion of their bodies" in run.settings["continued"]


def test_a_body_is_taken_back_by_a_joint_that_allows_its_motion():
    def spinning(name: str) -> sl.Builder:
        builder = sl.Builder(name, gravity=(0.0, 0.0, 0.0)).body("arm", 1.0, (0.4, 0.0, 0.0), (0.1, 0.2, 0.3))
        return builder.body("top", 0.5, inertia=(0.01, 0.01, 0.02)).revolute("hinge", "world", "arm", "z")

    on_arm = spinning("on_arm").revolute("wrist", "arm", "top", "z", (1.0, 0.0, 0.0)).build()
    free = spinning("free").free("flies", "world", "top").build()
    run = sl.simulate(on_arm, [0.1, 0.4], [0.0, -1.0], duration=0.1)
    back = run.continued(free, duration=0.1).continued(on_arm, duration=0.1)
    np.testing.assert_allclose(back.segments[2].q[-1], [0.1, 0.1], rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(back.segments[2].v[-1], [0.0, -1.0], rtol=0.0, atol=1e-13)


def test_a_mirrored_joint_keeps_the_motion_and_turns_the_sign():
    def pendulum(axis: str) -> sl.Model:
        return (
            sl.Builder("pendulum")
            .body("rod", 1.0, (0.5, 0.0, 0.0), [0.1] * 3)
            .revolute("pin", "world", "rod", axis)
            .build()
        )

    run = sl.simulate(pendulum("y"), [0.3], [1.0], duration=0.1)
    on = run.continued(pendulum("-y"), duration=0.1)
    np.testing.assert_allclose(on.segments[1].q[0], -run.q[-1], rtol=1e-14)
    np.testing.assert_allclose(on.segments[1].v[0], -run.v[-1], rtol=1e-14)
    whole = sl.simulate(pendulum("y"), [0.3], [1.0], duration=0.2)
    np.testing.assert_allclose(on.segments[1].q[-1], -whole.q[-1], rtol=1e-12)


def test_a_part_that_is_added_starts_as_the_user_says():
    arm = sl.Builder("arm").body("rod", 1.0, (0.5, 0.0, 0.0), [0.1] * 3).revolute("pin", "world", "rod", "y")
    whole = sl.Builder("whole").body("rod", 1.0, (0.5, 0.0, 0.0), [0.1] * 3).revolute("pin", "world", "rod", "y")
    whole = whole.body("disc", 0.2, inertia=[1e-3] * 3).revolute("axle", "rod", "disc", "y", (1.0, 0.0, 0.0)).build()
    run = sl.simulate(arm.build(), [0.3], [1.0], duration=0.05)
    plain, spun = run.continued(whole, duration=0.05), run.continued(whole, duration=0.05, v={"axle": 3.0})
    assert plain.segments[1].q[0].tolist() == [run.q[-1, 0], 0.0]
    assert spun.segments[1].v[0].tolist() == [run.v[-1, 0], 3.0]
    assert np.isnan(spun["axle"].q[:51]).all()
    assert np.isfinite(spun["axle"].q[51:]).all()
    assert "joints 'axle' began anew" in spun.settings["continued"]


def test_the_momentum_of_what_is_gone_is_reported():
    alone = sl.Builder("alone").body("one", 2.0).prismatic("x", "world", "one", "x").build()
    run = sl.simulate(cars(), [0.0, 1.0], [1.0, -0.5], duration=0.1).continued(alone, duration=0.1)
    assert "'two' left with the momentum [-1.5, 0, 0] N s" in run.settings["continued"]
    assert "0.375 J" in run.settings["continued"]


@pytest.mark.slow
def test_forces_on_bodies_that_are_gone_stay_with_their_segment():
    alone = sl.Builder("alone").body("one", 2.0).prismatic("x", "world", "one", "x").build()
    pull = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    run = sl.simulate(cars(), [0.0, 1.0], duration=0.1, forces={"two": pull})
    on = run.continued(alone, duration=0.1, forces={"one": pull})
    assert (on.forces["two"][:101] == pull).all()
    assert not on.forces["two"][101:].any()
    assert on.audit().well
    assert list(on.between(0.12, 0.2).forces) == ["one"]
    assert (on.at([0.05, 0.15]).forces["one"][:, 3] == [0.0, 1.0]).all()


# ---- loops that close


def test_two_rail_cars_that_couple_lose_what_a_plastic_impact_takes():
    run = sl.simulate(cars(), [0.0, 0.25], [1.0, 0.0], duration=0.25)
    on = run.continued(cars().with_loop("one", "two", "fixed", name="coupling"), duration=0.1)
    np.testing.assert_allclose(on.v[-1], 0.4, rtol=1e-13)
    assert on.events.kind.tolist() == ["continued", "attach"]
    assert on.events.energy_lost.sum() == pytest.approx(0.5 * 2.0 * 3.0 / 5.0, rel=1e-13)
    rows = on.events.rows_named("coupling")
    assert np.abs(on.events.impulse[1, rows]).max() == pytest.approx(2.0 * 0.6, rel=1e-13)
    np.testing.assert_allclose(on.energy.sum(axis=1)[251] - on.energy.sum(axis=1)[250], -0.6, rtol=1e-12)


@pytest.mark.parametrize("kind", ["revolute", "spherical"])
def test_a_rod_caught_at_one_end_turns_at_three_halves_of_v_over_l(kind):
    length, speed = 0.8, 1.7
    builder = sl.Builder("rod", gravity=(0.0, 0.0, 0.0)).body("rod", 1.5, inertia=np.array([0.1, 1, 1]) * 0.08)
    rod = builder.free("flies", "world", "rod").frame("end", "rod", (-length / 2, 0.0, 0.0)).build()
    start = [1.0, 0.0, 0.0, 0.0, length / 2, -0.01 * speed, 0.0]
    run = sl.simulate(rod, start, [0.0, 0.0, 0.0, 0.0, speed, 0.0], duration=0.01)
    on = run.continued(rod.with_loop("world", "end", kind, name="pin"), duration=0.01)
    assert on.v[-1, 2] == pytest.approx(1.5 * speed / length, rel=1e-13)
    assert on.events.energy_lost.sum() == pytest.approx(0.25 * 0.5 * 1.5 * speed**2, rel=1e-13)


def test_loops_that_were_closed_stay_closed_and_lose_nothing():
    model = sl.zoo.four_bar()
    run = sl.simulate(model, sl.zoo.four_bar_start(), duration=0.1).continued(model, duration=0.1)
    assert run.events.kind.tolist() == ["continued"]
    assert not run.events.energy_lost.any()
    assert run.closure_residual.max() < 1e-12
    assert run.residual is not None
    assert run.residual < 1e-9


def test_other_active_loops_open_and_close():
    model = cars().with_loop("one", "two", "fixed", name="grip", switchable=True)
    open_, closed = (sl.Closures(active_loops=x) for x in ([], ["grip"]))
    run = sl.simulate(model, [0.0, 0.25], [1.0, 0.0], duration=0.25, closures=open_)
    held = run.continued(model, duration=0.1, closures=closed)
    still = held.continued(model, duration=0.1)  # what is closed stays closed
    loose = still.continued(model, duration=0.1, closures=open_)
    assert loose.events.kind.tolist() == ["continued", "attach", "continued", "continued", "release"]
    assert [len(s.model.loops) for s in loose.segments] == [0, 1, 1, 0]
    np.testing.assert_allclose(loose.v[-1], 0.4, rtol=1e-13)
    assert len(loose.earlier) == 3


def test_an_open_loop_is_refused_with_how_far_it_is_open():
    run = sl.simulate(cars(), [0.0, 0.5], [1.0, 0.0], duration=0.25)
    with pytest.raises(StateError, match="loop 'c', between 'one' and 'two', is open by 250 mm and 0 mrad") as error:
        run.continued(cars().with_loop("one", "two", "fixed", name="c"), duration=0.1)
    assert error.value.reason is Reason.OPEN_LOOP


# ---- runs with events


def grip() -> sl.Model:
    return cars().with_loop("one", "two", "fixed", name="grip", switchable=True)


def gripped(start) -> sl.Trajectory:
    """Cars that couple at a distance of 0.05 m, which the loop captures."""
    events = [sl.events.Attach("grip", when=lambda t, q, v: q[1] - q[0] - 0.05, capture=True)]
    return sl.simulate(grip(), start, [1.0, 0.0], duration=0.3, events=events)


@pytest.mark.slow
def test_loops_hold_on_to_the_pose_that_they_have_captured():
    run = gripped([0.0, 0.25])
    still = run.continued(duration=0.1)
    assert still.events.kind.tolist() == ["attach", "continued"]
    later = run.continued(grip(), duration=0.2, events=[sl.events.Release("grip", at=0.4)])
    assert later.events.kind.tolist() == ["attach", "continued", "release"]
    assert [s.closed for s in later.segments] == [(), ("grip",), ("grip",), ()]
    np.testing.assert_allclose(later.q[-1, 1] - later.q[-1, 0], 0.05, atol=1e-12)
    free = run.continued(cars(), duration=0.1)
    assert free.events.kind.tolist() == ["attach", "continued", "release"]
    assert free.audit().well


def test_a_batch_with_events_goes_on_where_its_loops_do_not_matter():
    run = gripped([[0.0, 0.25], [0.0, 0.15]])
    on = run.continued(cars(), duration=0.1)
    assert on.events.kind.tolist() == ["attach", "continued", "release"] * 2
    assert [s.closed for s in on[1].segments] == [(), ("grip",), ()]
    with pytest.raises(InputError, match="hold where each run has captured them"):
        run.continued(grip(), duration=0.1)


@pytest.mark.slow
def test_a_body_that_is_absent_does_not_come_back_by_itself():
    builder = sl.Builder("two").body("cart", 1.0).body("part", 0.5, inertia=[0.01] * 3)
    model = builder.prismatic("x", "world", "cart", "x").free("flies", "world", "part").build()
    run = sl.simulate(model, duration=0.02, events=[sl.events.Vanish("part", at=0.01)])
    with pytest.raises(InputError, match="body 'part' is absent at the end of the run, and the new model has it"):
        run.continued(model, duration=0.01)
    assert run.continued(model.remove("part"), duration=0.01).outcome.finished
    again = run.continued(model, duration=0.02, events=[sl.events.Appear("part", at=0.03)])
    assert again.events.kind.tolist() == ["vanish", "continued", "appear"]


def test_files_keep_a_run_that_goes_on(tmp_path):
    run = sl.simulate(held(), [0.1], [2.0], duration=0.02).continued(released(), duration=0.02)
    run.save(tmp_path / "run.npz")
    again = sl.load_run(tmp_path / "run.npz")
    assert again.earlier == run.earlier
    assert [s.model.name for s in again.segments if s.model is not None] == ["held", "released"]
    np.testing.assert_array_equal(again.segments[1].q, run.segments[1].q)


# ---- batches


def test_runs_of_a_batch_go_on_from_their_own_ends():
    coupled = cars().with_loop("one", "two", "fixed", name="coupling")
    starts = [[0.0, 0.25], [0.0, 0.5]], [[1.0, 0.0], [2.0, 0.0]]
    run = sl.simulate(cars(), *starts, duration=0.25)
    on = run.continued(coupled, duration=0.1)
    np.testing.assert_allclose(on.v[:, -1], [[0.4, 0.4], [0.8, 0.8]], rtol=1e-13)
    assert on.events.run.tolist() == [0, 0, 1, 1]
    alone = sl.simulate(cars(), starts[0][1], starts[1][1], duration=0.25).continued(coupled, duration=0.1)
    assert (on[1].v == alone.v).all()
    assert (on[1].q == alone.q).all()


def test_runs_that_failed_stay_ended():
    model = sl.Builder("slide").body("block", 1.0).prismatic("x", "world", "block", "x").build()
    law = {"forces": lambda t, q, v: {"block": [0.0, 0.0, 0.0, 1.0 / sl.where(q[0] < 2.0, 1.0, 0.0), 0.0, 0.0]}}
    run = sl.simulate(model, [[0.0], [1.9]], [[0.0], [1.0]], duration=0.2, **law)
    assert [o.finished for o in run.outcomes] == [True, False]
    on = run.continued(model, duration=0.1)
    assert [o.finished for o in on.outcomes] == [True, False]
    assert np.isfinite(on.segments[1].q[0]).all()
    assert np.isnan(on.segments[1].q[1]).all()
    assert on[1].outcome.reason == "not_finite"
    assert len(on[1].segments) == 1
    with pytest.raises(StateError, match="there is nothing to go on from"):
        run[1].continued(model, duration=0.1)


def test_runs_that_end_at_different_times_are_continued_one_by_one():
    ends = {"there": lambda t, q, v: 0.1 - q[0]}
    run = sl.simulate(cars(), [[0.0, 1.0], [0.05, 1.0]], [1.0, 0.0], duration=0.25, events=ends)
    with pytest.raises(InputError, match=r"share their times. Continue them one by one: \[one.continued"):
        run.continued(cars(), duration=0.1)
    both = [one.continued(cars(), duration=0.1) for one in run]
    np.testing.assert_allclose([x.times[-1] for x in both], [0.2, 0.15], rtol=1e-9)


# ---- kernels


def test_a_change_that_was_seen_before_compiles_nothing(monkeypatch):
    """Models that are equal, but new: their kernels come from the cache."""

    def story() -> sl.Trajectory:
        run = sl.simulate(held(), [0.1], [2.0], duration=0.02).continued(released(), duration=0.02)
        coupled = cars().with_loop("one", "two", "fixed", name="coupling")
        sl.simulate(cars(), [0.0, 0.02], [1.0, 0.0], duration=0.02).continued(coupled, duration=0.02)
        return run

    first = story()
    for kept in (simulate._robot, segment_models.robot_of):
        kept.cache_clear()
    compiled = []
    monkeypatch.setattr(machine, "object_code", lambda source: compiled.append(source))
    assert (story().segments[1].q == first.segments[1].q).all()
    assert not compiled


# ---- what is refused


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"q": {"hinje": 0.1}}, "hinje"),
        ({"v": [0.0]}, "v is a list; the state is that of the run's end"),
        ({"start": 1.0}, "start is given; a run goes on at its end"),
        ({"model": "held"}, "model is a str; expected a Model or a Dynamics"),
    ],
)
def test_wrong_arguments_are_refused(options, words):
    run = sl.simulate(held(), duration=0.01)
    with pytest.raises(InputError, match=words):
        run.continued(**{"model": held(), "duration": 0.01} | options)


def test_a_joint_that_cannot_hold_its_body_is_refused():
    run = sl.simulate(released(), v={"flies": [0.0, 0.0, 0.0, 0.0, 0.1, 0.0]}, duration=0.01)
    with pytest.raises(InputError, match=r"'grip' is new, and cannot hold body 'ball' where it is: 1\.02e\+03 mm"):
        run.continued(held(), duration=0.01)
    spun = bodies("spun").prismatic("slide", "world", "ball", "x", (0.0, 1e-3, 0.0)).build()
    with pytest.raises(InputError, match=r"not allow the velocity of body 'ball': 0\.1 m/s and 0 rad/s are left"):
        run.continued(spun, duration=0.01)


def test_an_end_that_is_not_finite_is_refused():
    run = sl.simulate(cars(), duration=0.01)
    lost = run.changed(segments=(*run.segments[:-1], run.segments[-1].mapped(lambda x: x * np.nan)))
    with pytest.raises(StateError, match="ends in a state that is not finite"):
        lost.continued(cars(), duration=0.01)


def test_the_audit_of_a_run_that_began_in_single_precision_allows_for_it():
    spin = {"flies": [0.1, 0.2, 3.0, 0.0, 0.0, 0.0]}
    run = sl.simulate(released(), v=spin, duration=0.1, integrator=sl.Integrator("rk4", dtype="float32"))
    assert run.continued(released(), duration=0.05).audit().well
