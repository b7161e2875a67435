"""Gradients of runs with events: closed forms, differences of runs, adjoint beside forward, and what is refused."""

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, Reason, StateError

G = 9.81


def ball() -> sl.Model:
    """A mass that falls on the ground, z = 0."""
    b = sl.Builder("ball").body("ball", 1.0, inertia=(0.4e-2,) * 3).prismatic("fall", "world", "ball", "z")
    return b.loop("world", "ball", sl.joints.PointOnPlane("z"), name="ground", switchable=True).build()


def thrown() -> sl.Model:
    """A mass with coordinates x and z, that a string of 0.4 m may hold."""
    b = sl.Builder("thrown").body("slider", 1e-9).body("stone", 0.5, inertia=(2e-3,) * 3)
    b = b.prismatic("x", "world", "slider", "x").prismatic("z", "slider", "stone", "z")
    return b.loop("world", "stone", sl.joints.Distance(0.4), name="string", switchable=True).build()


def carts() -> sl.Model:
    """Two carts of 2 kg and 3 kg on a rail, and a latch between them."""
    b = sl.Builder("carts").body("left", 2.0, inertia=(0.01,) * 3).body("right", 3.0, inertia=(0.01,) * 3)
    b = b.prismatic("a", "world", "left", "x").prismatic("b", "world", "right", "x")
    return b.coupling("latch", "a", "b", switchable=True).build()


def catcher() -> sl.Model:
    """An arm that catches a stone which flies by."""
    b = sl.Builder("catcher").body("arm", 2.0, (0.3, 0, 0), (0.01, 0.06, 0.06)).body("stone", 0.5, inertia=(2e-3,) * 3)
    b = b.revolute("hinge", "world", "arm", "-y").free("flight", "world", "stone").frame("tip", "arm", (0.6, 0, 0))
    return b.loop("tip", "stone", "fixed", name="grip", switchable=True).build()


def motor(t, q, v, u):
    return {"hinge": -u[0] * q["hinge"] - u[1] * v["hinge"] + 2.0 * G * 0.3}


CATCH = [
    sl.events.Attach("grip", when=lambda t, q, v: q["flight"][6] - 0.02, capture=True),
    sl.events.Release("grip", when=lambda t, q, v: 0.35 - t + 0.3 * q["hinge"]),
]
FLIGHT = [0.1, 1, 0, 0, 0, 0.55, 0.02, 0.2], [0.2, 0.1, 0.2, 0.3, 0.1, 0.05, -0.1]


def bounced(z: float, v: float, e: float, bounces: int, duration: float) -> tuple[float, np.ndarray]:
    """Height after some bounces, and its derivatives by z and v at the start: ballistic arcs, by hand."""
    speed = np.sqrt(v * v + 2.0 * G * z)  # at the first impact
    dspeed = np.array([G, v]) / speed
    t, dt = (v + speed) / G, (np.array([0.0, 1.0]) + dspeed) / G
    for _ in range(bounces - 1):
        speed, dspeed = e * speed, e * dspeed
        t, dt = t + 2.0 * speed / G, dt + 2.0 * dspeed / G
    up, dup, s = e * speed, e * dspeed, duration - t
    return up * s - 0.5 * G * s * s, dup * s - (up - G * s) * dt


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bounces", "duration"),
    [(1, 0.9), pytest.param(2, 1.4, marks=pytest.mark.slow), pytest.param(3, 1.7, marks=pytest.mark.slow)],
)
def test_the_height_after_bounces_has_the_derivative_of_ballistic_arcs(bounces, duration):
    events = [sl.events.OneSided("ground", restitution=0.7)]
    run = sl.simulate(ball(), [1.0], [0.3], duration=duration, step=1e-2, events=events)
    found = sl.gradient(ball(), lambda q, v: q[0], [1.0], [0.3], duration=duration, step=1e-2, events=events)
    value, by = bounced(1.0, 0.3, 0.7, bounces, duration)
    assert (run.events.kind == "impact").sum() == bounces
    np.testing.assert_allclose(found.value, value, atol=1e-10)
    np.testing.assert_allclose([found.q[0], found.v[0]], by, atol=1e-9)  # location: 1e-9 of a step


OPEN = sl.Closures(active_loops=())


def test_the_time_of_flight_and_the_range_of_a_throw_have_known_derivatives():
    z, vx, vz = 0.5, 3.0, 4.0
    end = np.sqrt(vz * vz + 2.0 * G * z)
    T, by_z, by_vz = (vz + end) / G, 1.0 / end, (1.0 + vz / end) / G
    given = {"q": [0.0, z], "v": [vx, vz], "duration": 3.0, "step": 1e-2, "closures": OPEN}
    given["events"] = {"ground": lambda t, q, v: q["z"]}
    time = sl.gradient(thrown(), lambda t, q, v: t, **given)
    far = sl.gradient(thrown(), lambda q, v: q[0], **given)
    np.testing.assert_allclose([time.value, *time.q, *time.v], [T, 0.0, by_z, 0.0, by_vz], atol=1e-10)
    np.testing.assert_allclose([far.value, *far.q, *far.v], [vx * T, 1.0, vx * by_z, T, vx * by_vz], atol=1e-9)


@pytest.mark.slow
def test_the_best_angle_of_a_throw_on_level_ground_is_45_degrees():
    v = 5.0 * np.array([1.0, 1.0]) / np.sqrt(2.0)
    given = {"duration": 2.0, "step": 1e-2, "closures": OPEN, "events": {"ground": lambda t, q, v: q["z"] + 1e-9}}
    found = sl.gradient(thrown(), lambda q, v: q[0], [0.0, 0.0], v, **given)
    assert abs(found.v @ [-v[1], v[0]]) < 1e-7  # along a change of the angle


@pytest.mark.slow
def test_a_sling_that_lets_go_at_an_angle_throws_as_a_pendulum_swings():
    """s² = v₀² − 2 g l (1 − cos θ) at the angle θ of release, then a throw to z = −1; the swing lasts ∫ l/s dφ."""
    length, angle, start = 0.4, 0.9, 4.0
    sine, cosine = np.sin(angle), np.cos(angle)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    speeds = np.sqrt(start**2 - 2.0 * G * length * (1.0 - np.cos(0.5 * angle * (nodes + 1.0))))
    s, ds = speed_at(start, angle, length)
    up = np.sqrt((s * sine) ** 2 + 2.0 * G * (1.0 - length * cosine))
    flight, dflight = (s * sine + up) / G, ds * (sine + s * sine**2 / up) / G
    swing, dswing = (0.5 * angle * length * weights @ x for x in (1.0 / speeds, -start / speeds**3))
    events = [
        sl.events.Release("string", when=lambda t, q, v: length * sine - q["x"]),
        sl.events.End("floor", when=lambda t, q, v: q["z"] + 1.0),
    ]
    given = {"q": [0.0, -length], "v": [start, 0.0], "duration": 2.0, "step": 1e-3, "events": events}
    far, time = (sl.gradient(thrown(), f, **given) for f in (lambda q, v: q[0], lambda t, q, v: t))
    np.testing.assert_allclose(far.value, length * sine + s * cosine * flight, atol=1e-9)
    np.testing.assert_allclose(far.v[0], cosine * (ds * flight + s * dflight), atol=1e-8)
    np.testing.assert_allclose([time.value, time.v[0]], [swing + flight, dswing + dflight], atol=1e-8)


@pytest.mark.slow
def test_a_throw_moves_with_the_time_at_which_the_string_lets_go():
    """Free flight after the release at t: dz(T)/dt = (acceleration on the string − acceleration in flight) (T − t)."""
    at, duration = 0.155, 0.5
    given = {"q": [0.0, -0.4], "v": [3.0, 0.0], "duration": duration, "step": 1e-3}
    events = [sl.events.Release("string", at=at)]
    found = sl.gradient(thrown(), lambda q, v: q["z"], events=events, wrt="at", **given)
    run = sl.simulate(thrown(), events=events, **given)
    z = run.events.q[0, 1]
    tension = (run.events.v_before[0] @ run.events.v_before[0] - G * z) / 0.4  # over the mass
    np.testing.assert_allclose(found.at, [-z / 0.4 * tension * (duration - at)], rtol=1e-8)
    s = sl.sensitivities(thrown(), events=events, wrt="at", **given)
    assert s.names == ("at.0",)
    np.testing.assert_allclose(s.dq[-1, 1], found.at, rtol=1e-12)
    with pytest.raises(InputError, match="no event has a time"):
        sl.gradient(thrown(), lambda q, v: q["z"], wrt="at", **given)


@pytest.mark.slow
def test_a_bead_that_leaves_a_ball_lands_with_the_energy_that_it_had():
    """It leaves at ⅔ of its first height with v² = 2 g (z₀ − z), then falls to z = −0.4: dx/dz₀ by hand.

    With steps of 10 ms it touches once more where it leaves, which is one event.
    """
    r, first = 0.4, 0.4 * np.cos(0.3)

    def landing(first):
        z = first * 2.0 / 3.0
        cosine = z / r
        sine, speed = np.sqrt(1.0 - cosine**2), np.sqrt(2.0 * G * (first - z))
        down = speed * sine
        return r * sine + speed * cosine * (np.sqrt(down**2 + 2.0 * G * (z + r)) - down) / G

    model, q = thrown(), np.array([r * np.sin(0.3), first])
    events = [sl.events.OneSided("string"), sl.events.End("floor", when=lambda t, q, v: q["z"] + r)]
    given = {"duration": 1.5, "events": events, "closures": sl.Closures(active_loops=["string"])}
    expected = (landing(first + 1e-6) - landing(first - 1e-6)) / 2e-6
    for step, tolerance in ((1e-2, 1e-5), (1e-3, 1e-8)):
        found = sl.gradient(model, lambda q, v: q["x"], q, step=step, **given)
        np.testing.assert_allclose(found.value, landing(first), rtol=tolerance)
        along = np.array([-first / q[0], 1.0])  # a closed motion with dz = 1
        np.testing.assert_allclose(found.q @ along, expected, rtol=10.0 * tolerance)


def speed_at(start: float, angle: float, length: float) -> tuple[float, float]:
    """Speed of a pendulum at an angle, and its derivative by that at the bottom."""
    s = np.sqrt(start**2 - 2.0 * G * length * (1.0 - np.cos(angle)))
    return s, start / s


@pytest.mark.slow
def test_carts_that_latch_move_on_with_their_momentum():
    v, gap, duration = 1.5, 0.3, 1.0
    events = [sl.events.Attach("latch", when=lambda t, q, v: q["b"] - q["a"], capture=True)]
    given = {"q": [0.0, gap], "v": [v, 0.0], "duration": duration, "step": 1e-2, "events": events}
    found = sl.gradient(carts(), lambda q, v: q["b"], **given)
    np.testing.assert_allclose(found.value, gap + 0.4 * v * (duration - gap / v), atol=1e-10)
    np.testing.assert_allclose(found.q, [0.4, 0.6], atol=1e-9)
    np.testing.assert_allclose(found.v, [0.4 * duration, 0.6 * duration], atol=1e-9)


# ---- beside differences of runs


def difference(value, size: float, d: float = 1e-6) -> np.ndarray:
    """Derivatives of value(x) at x = 0 by central differences."""
    return np.array([(value(d * x) - value(-d * x)) / (2.0 * d) for x in np.eye(size)])


WEIGHTS = np.random.default_rng(3).normal(size=32)


def mixed(t, q, v):
    """A function of all numbers of the last state, and of its time."""
    numbers = [t, *(q[k] for k in range(len(q))), *(v[k] for k in range(len(v)))]
    return sum(w * x * (1.0 + 0.1 * x) for w, x in zip(WEIGHTS, numbers, strict=False))


def value_of(model: sl.Model, q, v, **given) -> float:
    run = sl.simulate(model, q, v, **given)
    return float(mixed(run.times[-1], run.q[-1], run.v[-1]))


def agrees(model: sl.Model, q, v, atol: float = 2e-8, **given) -> sl.gradient:
    """The gradient by q and v, which agrees with differences of runs."""
    robot, nv = sl.Dynamics(model), model.nv
    q = np.asarray(q, float)
    found = sl.gradient(model, mixed, q, v, **given)
    np.testing.assert_allclose(found.value, value_of(model, q, v, **given), rtol=1e-9)
    by_q = difference(lambda d: value_of(model, robot.integrate(q, d), v, **given), nv)
    by_v = difference(lambda d: value_of(model, q, v + d, **given), nv)
    scale = max(1.0, np.abs([*by_q, *by_v]).max())
    np.testing.assert_allclose(found.q, by_q, atol=atol * scale)
    np.testing.assert_allclose(found.v, by_v, atol=atol * scale)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["rk4", "midpoint"])
def test_a_stone_that_is_caught_where_it_is_and_let_go_has_the_derivatives_of_differences(integrator):
    given = {
        "controller": motor,
        "inputs": [80.0, 8.0],
        "duration": 0.5,
        "step": 1e-2,
        "events": CATCH,
        "integrator": integrator,
    }
    q, v = (np.array(x) for x in FLIGHT)
    run = sl.simulate(catcher(), q, v, **given)
    assert list(run.events.kind) == ["attach", "release"]
    agrees(catcher(), q, v, **given)


@pytest.mark.slow
def test_gains_and_parameters_move_a_run_across_events_as_differences_say():
    model, (q, v) = catcher(), (np.array(x) for x in FLIGHT)
    packed = model.parameters()
    given = {"controller": motor, "duration": 0.5, "step": 1e-2, "events": CATCH}
    found = sl.gradient(
        model, mixed, q, v, inputs=[80.0, 8.0], parameters=packed, wrt=("inputs", "parameters"), **given
    )  # fmt: skip
    numbers = np.asarray(packed)

    def moved(d):
        return value_of(model, q, v, inputs=[80.0, 8.0], parameters=numbers + d, **given)

    by_gains = difference(lambda d: value_of(model, q, v, inputs=[80.0, 8.0] + d, parameters=packed, **given), 2, 1e-5)
    some = [packed.names.index(n) for n in ("arm.mass", "stone.mass", "gravity.z")]
    by_some = [(moved(1e-6 * x) - moved(-1e-6 * x)) / 2e-6 for x in np.eye(len(numbers))[some]]
    np.testing.assert_allclose(found.inputs, by_gains, atol=1e-8)
    np.testing.assert_allclose(found.parameters[some], by_some, atol=1e-7)


@pytest.mark.slow
def test_a_four_bar_that_closes_in_flight_has_the_derivatives_of_differences():
    b = sl.Builder("links")
    for k, name in enumerate(("crank", "coupler", "rocker")):
        b = b.body(name, 0.5 + 0.1 * k, (0.2, 0, 0), (1e-3, 8e-3, 8e-3))
    b = b.revolute("j1", "world", "crank", "y").revolute("j2", "crank", "coupler", "y", (0.4, 0, 0))
    b = b.revolute("j3", "world", "rocker", "y", (0.7, 0, 0)).frame("tip", "coupler", (0.4, 0, 0))
    b = b.frame("end", "rocker", (0.4, 0, 0))
    model = b.loop("tip", "end", sl.joints.Revolute("y"), name="pin", switchable=True).build()
    event = sl.events.Attach("pin", when=lambda t, q, v: 0.1 - t + 0.05 * q["j1"], capture=True)
    agrees(model, [-0.9, 0.5, -1.2], np.array([0.3, -0.2, 0.4]), duration=0.3, step=5e-3, events=[event])


@pytest.mark.slow
def test_a_stop_that_bounces_and_one_that_holds_and_lets_go_have_the_derivatives_of_differences():
    b = sl.Builder("rod").body("rod", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
    rod = b.revolute("hinge", "world", "rod", "y", lower=-2.0, upper=0.7).build()
    agrees(rod, [0.0], np.array([0.3]), duration=0.8, step=1e-2, events=[sl.events.Stop("hinge", restitution=0.6)])

    def lift(t, q, v):
        return {"hinge": -30.0 * t * t}

    given = {"duration": 0.9, "step": 1e-2, "limits": "stop", "controller": lift}
    run = sl.simulate(rod, [0.0], [0.3], **given)
    assert list(run.events.kind) == ["attach", "release"]
    found = agrees(rod, [0.0], np.array([0.3]), **given)
    assert np.abs([found.q, found.v]).max() < 1e-9  # the stop forgets how it was reached


@pytest.mark.slow
def test_bodies_that_come_and_go_carry_no_derivative_of_what_they_were():
    b = sl.Builder("feeder").body("part1", 1.0, inertia=(0.01,) * 3).body("part2", 1.0, inertia=(0.01,) * 3)
    model = b.free("free1", "world", "part1").free("free2", "world", "part2").build()
    pose = np.eye(4)
    events = [sl.events.Vanish("part1", at=0.2), sl.events.Appear("part2", at=0.3, pose=pose)]
    found = sl.gradient(model, lambda q, v: q["free1"][4] + q["free2"][6], duration=0.5, step=1e-2, events=events)
    np.testing.assert_allclose(found.q, [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(found.v, [0, 0, 0, 0.2, 0, 0, 0, 0, 0, 0, 0, 0], atol=1e-9)


@pytest.mark.slow
def test_an_integral_over_a_run_with_events_has_the_derivatives_of_its_differences():
    events = [sl.events.OneSided("ground", restitution=0.7)]

    def found(x):
        return sl.gradient(
            ball(), lambda q, v: q[0], [1.0 + x[0]], [0.3 + x[1]], duration=0.9, step=1e-2, events=events,
            running=lambda t, q, v, u: t * q[0] + v[0] ** 2 + u[0] ** 2, tau=[0.4 + x[2]], wrt=("q", "v", "tau"),
        )  # fmt: skip

    at = found(np.zeros(3))
    by = difference(lambda d: float(found(d).value), 3)
    np.testing.assert_allclose([*at.q, *at.v, *at.tau], by, atol=1e-7)


@pytest.mark.slow
def test_runs_of_a_batch_have_the_gradients_that_they_have_alone():
    events = [sl.events.OneSided("ground", restitution=0.7)]
    heights = np.array([[1.0], [0.6], [0.01]])
    given = {"duration": 0.4, "step": 1e-2, "events": events[:1]}
    with pytest.warns(sl.SpanloopWarning, match="bounces until it rests"):
        found = sl.gradient(ball(), lambda q, v: q[0] ** 2, heights, **given)
    for k in (0, 1):
        alone = sl.gradient(ball(), lambda q, v: q[0] ** 2, heights[k], **given)
        np.testing.assert_array_equal(found.q[k], alone.q)
    assert np.isnan(found.q[2]).all()  # it bounces until it rests


@pytest.mark.slow
def test_what_is_asked_for_first_does_not_change_what_is_asked_for_next():
    events = [sl.events.OneSided("ground", restitution=0.7), sl.events.Release("ground", at=0.2)]
    given = {"duration": 0.9, "step": 1e-2, "events": events, "parameters": ball().parameters()}
    first = sl.gradient(ball(), lambda q, v: q[0], [1.0], **given)
    both = sl.gradient(ball(), lambda q, v: q[0], [1.0], wrt=("q", "at", "gravity.z"), **given)
    np.testing.assert_array_equal(first.q, both.q)
    assert both.at.shape == (1,)
    assert abs(both.parameter("gravity.z")) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("closures", ["feedback", "minimal"])
def test_a_four_bar_ends_at_an_angle_however_its_loop_is_kept_closed(closures):
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    end = {"angle": lambda t, x, v: x[0] - float(q[0]) + 0.2}
    given = {"duration": 0.8, "step": 1e-2, "events": end}
    found, usual = (
        sl.gradient(model, lambda t, q, v: t, q, closures=x, integrator="rk4", **given) for x in (closures, "project")
    )
    along = sl.Dynamics(model).complete_velocity(q, {"crank_hinge": 1.0})  # a closed motion
    np.testing.assert_allclose([found.q @ along, found.v @ along], [usual.q @ along, usual.v @ along], rtol=1e-4)
    now = sl.gradient(model, lambda t, q, v: t, q, closures=closures, events=lambda t, q, v: -1.0, duration=0.1)
    np.testing.assert_array_equal([now.value, *now.q], np.zeros(4))  # it ends where it starts


@pytest.mark.slow
def test_a_geared_run_ends_at_a_condition_wherever_its_step_is_cut():
    """The gear is closed once more at the end, and the condition may be a little above 0 there."""
    b = sl.Builder("gears").body("a", 1.0, (0.1, 0, 0), (0.02, 0.03, 0.02))
    b = b.body("w", 1.0, (0.01, 0, 0), (0.02, 0.03, 0.02)).revolute("a", "world", "a", "y")
    model = b.revolute("w", "world", "w", "y", (0, 1, 0)).coupling("gear", "w", "a", -2.5, 0.3).build()
    given = {"duration": 0.5, "step": 2e-3, "events": {"angle": lambda t, q, v: 0.7 - q["a"]}}
    q = np.linspace(0.0, 0.6, 40)[:, None] * [1.0, -2.5] + [0.0, 0.3]
    along, d = np.array([1.0, -2.5]), 1e-4

    def found(v):
        return sl.gradient(model, lambda t, q, v: t + 0.01 * v @ v, q, v, **given)

    v = np.tile(2.0 * along, (40, 1))
    differences = (found(v + d * along).value - found(v - d * along).value) / (2.0 * d)
    np.testing.assert_allclose(found(v).v @ along, differences, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "events",
    [
        [sl.events.Appear("load", at=0.2)],
        [sl.events.Appear("load", when=lambda t, q, v: 0.2 - t)],
        [sl.events.Vanish("load", at=0.1), sl.events.Appear("load", at=0.2)],
        [sl.events.Appear("load", at=0.2, pose=np.eye(4))],
    ],
    ids=["at", "when", "vanish", "pose"],
)
def test_the_velocity_of_a_body_that_is_absent_at_the_start_changes_nothing(events):
    b = sl.Builder("feeder").body("load", 0.5, inertia=(2e-3,) * 3).body("lid", 0.2, (0.1, 0, 0), (2e-3,) * 3)
    model = b.free("flight", "world", "load").revolute("hinge", "load", "lid", "y").build()
    q, v = np.array([1, 0, 0, 0, 0, 0, 0.3, 0.2]), np.array([0.1, 0, 0, 0.5, 0, 0, 0.7])
    given = {"duration": 0.4, "step": 1e-2, "events": events}
    moving, resting = (sl.simulate(model, q, x, **given) for x in (v, 0.0 * v))
    np.testing.assert_array_equal(moving.q, resting.q)
    assert "not used: v of load" in moving.settings["note"]
    assert "note" not in resting.settings
    found = sl.gradient(model, lambda q, v: q["flight"][4] + q["hinge"] + v["hinge"], q, v, **given)
    np.testing.assert_array_equal(found.v, np.zeros(7))
    np.testing.assert_array_equal(sl.sensitivities(model, q, v, wrt="v", **given).dq, 0.0)


# ---- forward


@pytest.mark.slow
def test_sensitivities_across_events_agree_with_the_gradient_and_with_differences():
    """A stone that a string catches, and lets go."""
    model, q, v = thrown(), np.array([0.1, 0.2]), np.array([0.5, 0.3])
    events = [
        sl.events.Attach("string", when=lambda t, q, v: 0.16 - q["x"] ** 2 - q["z"] ** 2),
        sl.events.Release("string", when=lambda t, q, v: 0.5 - t + 0.1 * q["x"]),
    ]
    given = {"duration": 0.7, "step": 1e-2, "events": events, "sample": 0.05, "tau": [0.1, 0.2]}
    assert list(sl.simulate(model, q, v, **given).events.kind) == ["attach", "release"]
    s = sl.sensitivities(model, q, v, wrt=("q", "v", "tau", "gravity.z"), **given)
    found = sl.gradient(model, lambda q, v: v["z"], q, v, wrt=("q", "v", "tau", "parameters"), **given)
    by = np.concatenate([found.q, found.v, found.tau, [found.parameter("gravity.z")]])
    np.testing.assert_allclose(s.dv[-1, 1], by, atol=1e-12)
    for k, x in enumerate(np.eye(2)):
        run = sl.simulate(model, np.stack([q, q]), np.stack([v + d * x for d in (1e-6, -1e-6)]), **given)
        np.testing.assert_allclose(s.dq[..., 2 + k], (run.q[0] - run.q[1]) / 2e-6, atol=1e-8)
        np.testing.assert_allclose(s.dv[..., 2 + k], (run.v[0] - run.v[1]) / 2e-6, atol=1e-7)


# ---- refusals


@pytest.mark.slow
@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([sl.events.OneSided("ground", restitution=0.3)], "bounces until it rests"),
        ([sl.events.OneSided("ground"), sl.events.End("low", when=lambda t, q, v: q["fall"])], "at the same moment"),
        ([sl.events.End("top", when=lambda t, q, v: 0.1 + 0.125 * G - 1e-12 - q["fall"])], "grazes zero"),
    ],
)
def test_events_without_a_derivative_are_refused_with_the_moment(events, words):
    with pytest.raises(StateError, match=words) as error:
        sl.gradient(ball(), lambda q, v: q[0], [0.1], [0.5 * G], duration=2.5, step=1e-2, events=events, closures=OPEN)
    assert error.value.reason is Reason.NOT_SMOOTH
    assert "t = " in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("times", "words"),
    [
        ((0.1, 0.1), r"Attach\('latch'\) at a given time and Release.* a small change of their times decides"),
        ((0.1, 0.2), r"Release\('latch'\) at a given time happens at the last moment .* small change of its time"),
        ((0.0, 0.1), r"Attach\('latch'\) at a given time happens at the start.* small change of its time"),
    ],
)
def test_times_that_coincide_or_end_a_run_have_no_derivative_and_may_be_given(times, words):
    events = [sl.events.Attach("latch", at=times[0], capture=True), sl.events.Release("latch", at=times[1])]
    given = {"duration": 0.2, "step": 1e-2, "events": events}
    with pytest.raises(StateError, match=words) as error:
        sl.gradient(carts(), lambda q, v: q[0], [0.0, 0.5], [1.0, 0.0], wrt="at", **given)
    assert error.value.reason is Reason.NOT_SMOOTH
    assert np.isfinite(sl.gradient(carts(), lambda q, v: q[0], [0.0, 0.5], [1.0, 0.0], **given).v).all()


def test_a_start_on_the_ground_is_refused():
    with pytest.raises(StateError, match="happens at the start"):
        sl.gradient(ball(), lambda q, v: q[0], [0.0], [-1.0], duration=0.1, events=[sl.events.OneSided("ground")])


@pytest.mark.slow
def test_a_run_that_fails_says_how_it_ended():
    event = sl.events.Attach("grip", at=0.1)  # open by centimetres
    with pytest.raises(StateError, match=r"ended before its duration.*open"):
        sl.gradient(catcher(), mixed, *FLIGHT, duration=0.3, step=1e-2, events=[event])


@pytest.mark.slow
def test_a_run_that_ends_at_a_limit_is_refused():
    b = sl.Builder("rod").body("rod", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
    rod = b.revolute("hinge", "world", "rod", "y", lower=-2.0, upper=0.7).build()
    end = {"late": lambda t, q, v: 0.7 - t}
    with pytest.raises(StateError, match="reached its upper limit"):
        sl.gradient(rod, mixed, [0.0], [0.3], duration=0.8, step=1e-2, events=end)
