"""Mechanisms that change while they move, where moment, place and velocities of every change are known.

The answers are closed forms, or quadratures in forty digits of hand-written equations (support/event_stories.py).
"""

from __future__ import annotations

import event_stories as known
import numpy as np
import pytest

import spanloop as sl

G = known.G
NEAR = 1e-8  # s, rad: the bound on moments and angles with RK4 in steps of 1 ms
EXACT = 1e-13
INTEGRATORS = [("rk4", NEAR), ("midpoint", 3e-5), ("implicit", 3e-5)]  # the others are of second order


def changes(run) -> list[tuple[str, str]]:
    """Kind and name of every event of a run."""
    return [(str(kind), str(name)) for kind, name in zip(run.events.kind, run.events.name, strict=True)]


# ---- impacts alone: exact


@pytest.mark.parametrize("closure", ["spherical", "revolute"])
def test_a_rod_caught_at_one_end_turns_at_three_halves_of_v_over_l(closure):
    length, speed, mass = 0.8, 1.7, 2.0
    b = sl.Builder("rod", gravity=(0, 0, 0)).body("rod", mass, inertia=(1e-3, *[mass * length**2 / 12] * 2))
    b.free("flight", "world", "rod").frame("end", "rod", (-length / 2, 0, 0))
    model = b.loop("end", "world", closure, name="catch", switchable=True).build()
    caught = sl.events.Attach("catch", at=0.04, capture=True)
    run = sl.simulate(model, v=[0, 0, 0, 0, speed, 0], duration=0.1, events=[caught])
    assert changes(run) == [("attach", "catch")]
    rate, energy = 1.5 * speed / length, 0.5 * mass * speed**2
    np.testing.assert_allclose(run.events.time, [0.04], atol=1e-12)
    np.testing.assert_allclose(run.events.v_after[0], [0, 0, rate, 0, rate * length / 2, 0], atol=EXACT)
    np.testing.assert_allclose(run.events.energy_lost, [0.25 * energy], rtol=EXACT)
    np.testing.assert_allclose(run.energy.sum(axis=-1)[-1], 0.75 * energy, rtol=1e-12)
    at_the_end = run.events.v_after[0, 4] - rate * length / 2
    assert abs(at_the_end) < EXACT


def two_discs(held_by: str) -> sl.Model:
    b = sl.Builder("discs").body("one", 1.0, inertia=(0.2, 0.2, 0.3)).body("two", 1.0, inertia=(0.5, 0.5, 0.7))
    b.revolute("first", "world", "one", "z").revolute("second", "world", "two", "z", (0, 0, 0.1))
    if held_by == "loop":
        return b.loop("one", "two", "fixed", name="clutch", switchable=True).build()
    return b.coupling("clutch", "second", "first", switchable=True).build()


@pytest.mark.parametrize("held_by", ["loop", "coupling"])
def test_a_clutch_of_two_discs_conserves_angular_momentum(held_by):
    engage, spins, moments = sl.events.Attach("clutch", at=0.05, capture=True), np.array([3.0, -1.0]), (0.3, 0.7)
    run = sl.simulate(two_discs(held_by), v=spins, duration=0.1, events=[engage])
    common, reduced = spins @ moments / sum(moments), np.prod(moments) / sum(moments)
    np.testing.assert_allclose(run.events.v_after[0], [common, common], rtol=EXACT)
    np.testing.assert_allclose(run.v[-1], [common, common], rtol=EXACT)
    np.testing.assert_allclose(run.events.energy_lost, [0.5 * reduced * np.ptp(spins) ** 2], rtol=EXACT)


def test_rail_cars_that_couple_and_part_conserve_momentum():
    b = sl.Builder("cars").body("one", 3.0, inertia=(1, 1, 1)).body("two", 5.0, inertia=(1, 1, 1))
    b.prismatic("first", "world", "one", "x").prismatic("second", "world", "two", "x")
    model = b.loop("one", "two", "fixed", name="coupler", switchable=True).build()

    def gap(t, q, v):
        return q[1] - q[0] - 0.5

    events = [sl.events.Attach("coupler", when=gap, capture=True), sl.events.Release("coupler", at=0.9)]
    run = sl.simulate(model, [0, 1.0], [2.0, 1.2], duration=1.0, events=events)
    assert changes(run) == [("attach", "coupler"), ("release", "coupler")]
    np.testing.assert_allclose(run.events.time, [0.5 / 0.8, 0.9], atol=1e-12)
    np.testing.assert_allclose(run.v[-1], [12.0 / 8.0] * 2, rtol=EXACT)
    np.testing.assert_allclose(run.events.energy_lost, [0.5 * 15 / 8 * 0.8**2, 0.0], atol=EXACT)


@pytest.mark.slow
def test_a_body_released_from_a_turning_arm_flies_straight_with_all_it_had():
    length, rate = 0.6, 3.0
    b = sl.Builder("sling", gravity=(0, 0, 0)).body("arm", 2.0, (0.3, 0, 0), (0.01, 0.06, 0.06))
    b.body("stone", 0.5, inertia=(0.002, 0.003, 0.004)).revolute("hinge", "world", "arm", "z")
    b.free("flight", "world", "stone").frame("tip", "arm", (length, 0, 0))
    model = b.loop("tip", "stone", "fixed", name="grip", switchable=True).build()
    start = [0.0, 1, 0, 0, 0, length, 0, 0]
    run = sl.simulate(model, start, [rate, 0, 0, rate, 0, rate * length, 0], duration=0.8,
                      events=[sl.events.Release("grip", at=0.4)])  # fmt: skip
    assert changes(run) == [("release", "grip")]
    angle = rate * 0.4
    place = length * np.array([np.cos(angle), np.sin(angle), 0])
    flown = place + 0.4 * rate * length * np.array([-np.sin(angle), np.cos(angle), 0])
    np.testing.assert_allclose(run.q[-1, 5:8], flown, atol=1e-11)
    np.testing.assert_allclose(run.v[-1, [0, 3]], rate, rtol=1e-12)
    assert run.events.energy_lost[0] == 0.0
    assert np.ptp(run.energy.sum(axis=-1)) < 1e-11


# ---- one-sided constraints


@pytest.mark.slow
@pytest.mark.parametrize(("integrator", "near"), INTEGRATORS)
@pytest.mark.parametrize("start", [0.3, 0.05])
def test_a_bead_leaves_the_ball_at_two_thirds_of_its_cosine(start, integrator, near):
    radius = 0.7
    model, answer = known.point("ball", radius), known.when_the_bead_leaves(start, radius)
    q = radius * np.array([np.sin(start), np.cos(start)])
    run = sl.simulate(model, q, duration=round(answer.time + 0.1, 3), integrator=integrator, step=1e-3,
                      closures=sl.Closures(active_loops=["ball"]), events=[sl.events.OneSided("ball")])  # fmt: skip
    assert changes(run) == [("release", "ball")]
    x, z = run.events.q[0]
    assert abs(run.events.time[0] - answer.time) < near
    assert abs(np.arctan2(x, z) - answer.angle) < near
    assert abs(np.hypot(*run.events.v_after[0]) - radius * answer.rate) < near
    assert np.ptp(run.energy.sum(axis=-1)) < (1e-9 if integrator == "rk4" else 1e-4)


@pytest.mark.parametrize(("integrator", "near"), INTEGRATORS)
def test_a_string_goes_slack_and_catches_the_bob(integrator, near):
    length, speed = 0.9, 5.5
    model = known.point("string", length)
    slack, catch = known.when_the_string_is_slack(speed, length), known.when_the_string_catches(speed, length)
    run = sl.simulate(model, [0, -length], [speed, 0], duration=round(catch.time + 0.2, 3), step=1e-3,
                      integrator=integrator, closures=sl.Closures(active_loops=["string"]),
                      events=[sl.events.OneSided("string", sign=-1)])  # fmt: skip
    assert changes(run)[:2] == [("release", "string"), ("attach", "string")]
    table = run.events
    assert abs(table.time[0] - slack.time) < near
    assert abs(np.arctan2(table.q[0, 0], -table.q[0, 1]) - slack.angle) < near
    assert abs(table.time[1] - catch.time) < 5 * near  # grows along the parabola
    np.testing.assert_allclose(table.q[1], catch.place, atol=10 * near)
    np.testing.assert_allclose(table.v_before[1], catch.before, atol=20 * near)
    np.testing.assert_allclose(table.v_after[1], catch.after, atol=40 * near)
    assert abs(table.energy_lost[1] - catch.lost) < 200 * near
    assert run.residual < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(("integrator", "near"), INTEGRATORS)
@pytest.mark.parametrize("start", [1.2, 0.9])
def test_a_ladder_leaves_the_wall_at_two_thirds_of_its_sine(start, integrator, near):
    length = 2.5
    model, answer = known.ladder(length), known.when_the_ladder_leaves(start, length)
    q = [0.5 * length * np.cos(start), 0.5 * length * np.sin(start), start]
    run = sl.simulate(model, q, duration=round(answer.time + 0.1, 3), integrator=integrator, step=1e-3,
                      closures=sl.Closures(active_loops=["floor", "wall"]),
                      events=[sl.events.OneSided("floor"), sl.events.OneSided("wall")])  # fmt: skip
    assert changes(run) == [("release", "wall")]
    assert abs(run.events.time[0] - answer.time) < near
    assert abs(run.events.q[0, 2] - answer.angle) < near
    assert abs(run.events.v_after[0, 2] - answer.rate) < 10 * near
    np.testing.assert_allclose(run["x"].v[-1], run.events.v_after[0, 0], atol=1e-9)  # nothing pushes sideways


@pytest.mark.parametrize(("integrator", "near"), INTEGRATORS)
def test_a_bouncing_ball_comes_to_rest_after_finite_time(integrator, near):
    e, first = 0.5, np.sqrt(2.0 / G)
    model = known.ball()
    run = sl.simulate(model, [1.0], duration=2.0, integrator=integrator, step=1e-3,
                      events=[sl.events.OneSided("ground", restitution=e, resting=1e-3)])  # fmt: skip
    bounces = [t for t, kind in zip(run.events.time, run.events.kind, strict=True) if kind == "impact"]
    n = int(np.ceil(np.log(1e-3 / (G * first)) / np.log(e)))  # the first impact below the resting speed closes it
    times = first * (1.0 + np.concatenate([[0.0], np.cumsum(2.0 * e ** np.arange(1, 30))]))
    np.testing.assert_allclose(bounces, times[: len(bounces)], atol=near)
    assert len(bounces) in (n, n + 1)
    closed = run.events.time[[k for k, kind in enumerate(run.events.kind) if kind == "attach"]]
    np.testing.assert_allclose(closed, times[len(bounces)], atol=near)
    assert abs(closed[0] - first * (1 + e) / (1 - e)) < 3e-4
    np.testing.assert_allclose([run.q[-1], run.v[-1]], 0.0, atol=1e-13)
    np.testing.assert_allclose(run.events.energy_lost.sum(), G * 1.0, rtol=1e-6)


@pytest.mark.slow
def test_a_one_way_clutch_holds_where_the_motion_turns_back():
    """A stop that moves along: it captures the angle where the speed falls to 0, and lets go when it would pull."""
    weight, pull, rate, inertia = 5.0, 20.0, 6.0, 0.5  # N m, N m, rad/s, kg m²
    b = sl.Builder("winch").body("drum", 1.0, inertia=(0.3, 0.3, inertia)).revolute("turn", "world", "drum", "z")
    model = b.coupling("pawl", "turn", switchable=True).build()
    turns_back = sl.events.Attach("pawl", when=lambda t, q, v: v["turn"] + 1e-9, capture=True)
    run = sl.simulate(model, duration=2.0, events=[sl.events.OneSided("pawl"), turns_back],
                      controller=lambda t, q, v: {"turn": pull * np.sin(rate * t) - weight},
                      closures=sl.Closures(active_loops=["pawl"]))  # fmt: skip
    assert changes(run) == [("release", "pawl"), ("attach", "pawl")] * 2
    lifts = np.arcsin(weight / pull) / rate
    np.testing.assert_allclose(run.events.time[::2], lifts + 2.0 * np.pi / rate * np.arange(2), atol=NEAR)
    t = run.events.time[1]  # where the integral of the torque from there on is 0 again
    gained = pull / rate * (np.cos(rate * lifts) - np.cos(rate * t)) - weight * (t - lifts)
    assert abs(gained) < 1e-7
    assert run["turn"].v.min() > -1e-8


# ---- stops


@pytest.mark.slow
@pytest.mark.parametrize(("integrator", "near"), INTEGRATORS)
def test_a_rod_falls_on_the_stop_of_its_hinge_and_stays(integrator, near):
    length, mass, start, end = 1.1, 1.3, 0.8, -0.4
    b = sl.Builder("rod").body("rod", mass, (length / 2, 0, 0), (1e-3, *[mass * length**2 / 12] * 2))
    model = b.revolute("hinge", "world", "rod", "-y", lower=end, upper=2.0).build()
    answer = known.when_the_rod_falls_to(start, end, length)
    run = sl.simulate(
        model, [start], duration=round(answer.time + 0.2, 3), integrator=integrator, step=1e-3, limits="stop"
    )
    assert [kind for kind, _ in changes(run)] == ["attach"]
    assert abs(run.events.time[0] - answer.time) < near
    assert abs(run.events.v_before[0, 0] - answer.rate) < 10 * near
    assert run.events.v_after[0, 0] == pytest.approx(0.0, abs=1e-14)
    assert run.events.energy_lost[0] == pytest.approx(mass * length**2 / 6 * answer.rate**2, abs=100 * near)
    np.testing.assert_allclose(run.q[-1], end, atol=1e-13)
    np.testing.assert_allclose(run.v[-1], 0.0, atol=1e-13)


@pytest.mark.slow
def test_a_motor_lifts_a_rod_from_its_stop_when_its_torque_exceeds_the_weight():
    length, mass, end, growth = 1.1, 1.3, -0.4, 20.0
    b = sl.Builder("rod").body("rod", mass, (length / 2, 0, 0), (1e-3, *[mass * length**2 / 12] * 2))
    model = b.revolute("hinge", "world", "rod", "-y", lower=end, upper=2.0).build()
    run = sl.simulate(model, [end], duration=0.5, limits="stop", controller=lambda t, q, v: [growth * t])
    lifted = [t for t, kind in zip(run.events.time, run.events.kind, strict=True) if kind == "release"]
    np.testing.assert_allclose(lifted, [mass * G * length / 2 * np.cos(end) / growth], atol=NEAR)
    assert run.q[-1, 0] > end + 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("integrator", "near"), INTEGRATORS)
def test_a_four_bar_bounces_on_a_stop(integrator, near):
    e, start, stop = 0.6, np.pi / 3, 0.3
    impacts = known.FourBar().impacts(start, stop, e, 2)
    model = known.stopped_four_bar(stop)
    run = sl.simulate(model, sl.zoo.four_bar_start(angle=start), duration=1.0, integrator=integrator, step=1e-3,
                      events=[sl.events.OneSided("stop", restitution=e)])  # fmt: skip
    assert changes(run)[:2] == [("impact", "stop")] * 2
    for k, (time, rate) in enumerate(impacts):
        assert abs(run.events.time[k] - time) < (k + 1) * near
        assert abs(run.events.v_before[k, 0] - rate) < 100 * near
        assert abs(run.events.v_after[k, 0] + e * run.events.v_before[k, 0]) < EXACT
    assert run.residual < 1e-12


# ---- grasps


@pytest.mark.slow
def test_fingers_slip_when_the_weight_exceeds_what_friction_carries():
    mass, squeeze, mu, growth = 0.4, 12.0, 0.5, 30.0  # kg, N, –, m/s³
    model = known.pinch(mass)
    total = model.mass

    def lift(t, q, v):
        return {"lift": total * (G + growth * t), "left": squeeze, "right": squeeze}

    run = sl.simulate(model, duration=1.0, controller=lift,
                      events=[sl.events.Grasp(x, friction=mu) for x in ("left_grip", "right_grip")])  # fmt: skip
    assert abs(run.outcome.time - (2 * mu * squeeze / mass - G) / growth) < NEAR
