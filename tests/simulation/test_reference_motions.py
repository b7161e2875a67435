"""Motions against closed forms, published digits and integrations that owe nothing to the library."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
import pytest
from independent_motions import ANDREWS, FiveBar, FreeBody, fall, pendulum_time
from pinocchio_peer import Peer
from scipy.spatial.transform import Rotation

import spanloop as sl
from spanloop.math.scalar import sincos
from spanloop.math.scalar import sqrt as root
from spanloop.zoo import squeezer

METHODS = {"rk4": 4, "midpoint": 2, "euler": 1}


def order(errors, steps) -> float:
    """Of the power law that fits errors over steps best."""
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


# ---- Andrews' squeezing mechanism


def squeeze(t, q, v):
    """The crank's moment and the spring, traced; zoo.andrews_forces is the same on floats."""
    s, c = sincos(q["gamma"])
    x, y = c * squeezer.D[0] - s * squeezer.D[1], s * squeezer.D[0] + c * squeezer.D[1]
    dx, dy = x + (squeezer.B[0] - squeezer.C[0]), y + (squeezer.B[1] - squeezer.C[1])
    pull = -squeezer.STIFFNESS * (1.0 - squeezer.REST / root(dx * dx + dy * dy))
    return {"beta": squeezer.MOMENT, "gamma": pull * (x * dy - y * dx)}


@pytest.fixture(scope="module")
def squeezing():
    model = sl.zoo.andrews()
    return lambda **how: sl.simulate(model, sl.zoo.andrews_start(), duration=0.03, controller=squeeze, **how)


def squeezed(run) -> np.ndarray:
    """Differences from the published angles at the end."""
    return np.array([run[name].q[-1] - x for name, x in ANDREWS.items()])


def test_andrews_squeezer_ends_where_the_test_set_says(squeezing):
    """A step of 10 µs has converged to 2e-10. What it converges to is 1.4e-9 from the published β and Θ."""
    run = squeezing(step=1e-5)
    assert np.abs(squeezed(run)).max() < 1e-8
    assert run.residual < 1e-14  # m and rad; the links are 7 to 40 mm long


def test_steps_too_long_for_the_squeezer_are_noticed(squeezing):
    """At 1 ms, the default, the run finishes 0.9 rad away; at 0.5 ms 0.012 rad, with closed loops and good energy."""
    with pytest.warns(sl.SpanloopWarning, match=r"steps of 0\.001 s are too long for this motion: one of them changes"):
        run = squeezing(step=1e-3)
    assert run.outcome.finished
    assert "steps" in run.audit().faults
    assert squeezing(step=5e-4).audit().faults == ("steps",)
    for h in (2e-4, 1e-4):
        run, error = squeezing(step=h), np.abs(squeezed(squeezing(step=h))).max()
        assert run.audit().well
        assert 0.3 * error < run.settings["step_error"] < 10.0 * error


def test_andrews_squeezer_converges_in_fourth_order(squeezing):
    exact = squeezing(step=1e-6).q[-1]
    steps = (1e-5, 7.5e-6, 5e-6)
    errors = [np.abs(squeezing(step=h).q[-1] - exact).max() for h in steps]
    assert order(errors, steps) == pytest.approx(4.0, abs=0.3)


def test_andrews_squeezer_with_feedback_ends_there_too(squeezing):
    assert np.abs(squeezed(squeezing(step=5e-6, closures=sl.Closures("feedback", gains=1000.0)))).max() < 1e-8


@pytest.mark.parametrize("accuracy", [1e-9, 1e-11])
def test_andrews_squeezer_by_adaptive_steps(squeezing, accuracy):
    run = squeezing(integrator=sl.Integrator("DOP853", accuracy=accuracy))
    assert np.abs(squeezed(run)).max() < 1e-8
    assert run.closure_residual.max() < 1e-14


@pytest.mark.parametrize(("name", "bound"), [("LSODA", 1e-7), ("BDF", 5e-7), ("Radau", 1e-7)])
def test_andrews_squeezer_by_stiff_methods_takes_about_a_thousand_steps(squeezing, name, bound):
    """Rates reach 1400 rad/s: drift is measured as the method measures errors. LSODA took 46 291 steps, BDF 242 394."""
    run = squeezing(integrator=sl.Integrator(name, accuracy=1e-8))
    assert np.abs(squeezed(run)).max() < bound
    assert run.settings["steps"] < 1500
    assert run.closure_residual.max() < 1e-14


@pytest.mark.slow
def test_the_published_angles_are_good_to_2e_9(squeezing):
    """Three methods agree far better with each other than with the test set's β and Θ."""
    how = (
        {"step": 1e-6},
        {"integrator": sl.Integrator("DOP853", accuracy=1e-12)},
        {"integrator": sl.Integrator("Radau", accuracy=1e-11)},
    )
    ends = np.array([squeezed(squeezing(**x)) for x in how])
    assert np.abs(ends - ends[0]).max() < 2e-11
    assert 1e-9 < np.abs(ends[0]).max() < 2e-9


# ---- PUMA


@pytest.mark.slow
def test_puma_falls_for_six_seconds_as_pinocchio_says():
    """The reference is good to about 3e-12: a deviation grows by less than a hundred within the six seconds."""
    model = sl.zoo.puma()
    peer, still = Peer(model), np.zeros(6)
    times = np.linspace(0.0, 6.0, 13)
    reference = fall(lambda q, v: peer.forward_dynamics(q, v, still), still, times)
    run = sl.simulate(model, still, still, duration=6.0, sample=0.5)
    np.testing.assert_allclose(run.q, reference, rtol=0, atol=1e-9)
    for how in (
        {"step": 2.5e-4},
        {"integrator": sl.Integrator("DOP853", accuracy=1e-12)},
    ):  # an accuracy of every step, which grows
        finer = sl.simulate(model, still, still, duration=6.0, sample=0.5, **how)
        np.testing.assert_allclose(finer.q, reference, rtol=0, atol=1e-10)


def test_puma_is_as_accurate_as_was_asked_for():
    model = sl.zoo.puma()
    still = np.zeros(6)
    peer = Peer(model)
    run = sl.simulate(model, still, still, duration=2.0, step=0.05, sample=0.5, integrator=sl.Integrator(accuracy=1e-8))
    reference = fall(lambda q, v: peer.forward_dynamics(q, v, still), still, run.times)
    assert np.abs(run.q - reference).max() < 1.2e-8  # the estimate is the leading term of the error
    assert run.step > 1e-3


# ---- five-bar


def far_rods_apart(t, q, v):
    """Sine of the angle between the far rods: 0 where they are in line."""
    s, _ = sincos((q["drive1"] + q["elbow1"]) - (q["drive2"] + q["elbow2"]))
    return s


@pytest.mark.parametrize("how", [{}, {"integrator": sl.Integrator("DOP853", accuracy=1e-11)}], ids=["rk4", "DOP853"])
def test_five_bar_falls_until_its_far_rods_are_in_line(how):
    q = sl.zoo.five_bar_start()
    expected = FiveBar().in_line(np.array((q[0], q[0] + q[1], q[2], q[2] + q[3])))
    run = sl.simulate(sl.zoo.five_bar(), q, duration=2.0, events={"in line": far_rods_apart}, **how)
    assert run.outcome.reason == "event"
    assert "'in line'" in str(run.outcome)
    assert run.outcome.time == pytest.approx(expected, abs=1e-9)
    assert run.outcome.time == pytest.approx(1.367, abs=5e-4)  # what the reading of the paper's figure gives
    assert run.times[-1] == run.outcome.time
    assert abs(np.sin(run.q[-1] @ (1.0, 1.0, -1.0, -1.0))) < 1e-10  # turns by 12 rad/s; 1e-9 of a step of some ms
    assert run.closure_residual.max() < 1e-13


# ---- a free rigid body


@pytest.fixture(scope="module")
def stone():
    b = sl.Builder("stone", gravity=(0.0, 0.0, 0.0))
    b.body("stone", 2.0, inertia=tuple(FreeBody.moments))
    return b.free("flight", "world", "stone").build()


def tumble(stone, **how):
    q, v = (1.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.3), (*FreeBody.start, 0.0, 0.0, 0.0)
    return sl.simulate(stone, q, v, **how)


def turned(run) -> np.ndarray:
    w, x, y, z = run.q[-1, :4]
    return Rotation.from_quat((x, y, z, w)).as_matrix()


@pytest.mark.parametrize("method", METHODS)
def test_a_free_body_tumbles_as_the_closed_form_says(stone, method):
    """Rates and attitude, both of the method's order."""
    body, end, steps = FreeBody(), 3.0, (0.04, 0.02, 0.01)
    rates, attitudes = [], []
    for h in steps:
        run = tumble(stone, duration=end, step=h, integrator=method)
        rates.append(np.abs(run.v[-1, :3] - body.angular_velocity(end)).max())
        attitudes.append(np.abs(turned(run) - body.attitude(end)).max())
    for errors in (rates, attitudes):
        assert order(errors, steps) == pytest.approx(METHODS[method], abs=0.1)
    if method == "rk4":
        assert max(rates[-1], attitudes[-1]) < 1e-9


def test_implicit_midpoint_keeps_the_energy_of_a_free_body(stone):
    """A quadratic invariant, kept to the tolerance of its rounds; the explicit steps lose some of it at this length."""
    kinetic = {m: tumble(stone, duration=100.0, step=0.1, integrator=m).energy[:, 0] for m in METHODS}
    assert np.ptp(kinetic["midpoint"]) < 1e-9 * kinetic["midpoint"][0]
    assert np.ptp(kinetic["rk4"]) > 1e-8
    assert np.ptp(kinetic["euler"]) > 1e-3


def test_implicit_midpoint_has_no_trend_in_a_pendulum_s_energy():
    """It sways within every swing, and is after 100 s where it was after 10 s; that of RK4 at this step is lost."""
    model = sl.zoo.pendulum()

    def energies(method):
        run = sl.simulate(model, [2.0], duration=100.0, step=0.02, integrator=method)
        e = run.energy.sum(axis=-1)
        return e[:500] - e[0], e[-500:] - e[0]

    early, late = energies("midpoint")
    assert np.abs(late).max() < 1.1 * np.abs(early).max()
    early, late = energies("rk4")
    assert np.abs(late).max() > 5.0 * np.abs(early).max()


# ---- single precision


def plain_single(model, q, v, h, count):
    """RK4 in float32 as one writes it down: accelerations of the same kernels, sums without a rest."""
    robot = sl.Dynamics(model, dtype="float32")
    tau = np.zeros(model.nv, np.float32)
    q, v, h = q.astype(np.float32), v.astype(np.float32), np.float32(h)
    half, sixth = np.float32(0.5) * h, h / np.float32(6.0)
    two = np.float32(2.0)
    for _ in range(count):
        a1 = robot.forward_dynamics(q, v, tau)
        v2 = v + half * a1
        a2 = robot.forward_dynamics(q + half * v, v2, tau)
        v3 = v + half * a2
        a3 = robot.forward_dynamics(q + half * v2, v3, tau)
        v4 = v + h * a3
        a4 = robot.forward_dynamics(q + h * v3, v4, tau)
        q, v = q + sixth * (v + two * (v2 + v3) + v4), v + sixth * (a1 + two * (a2 + a3) + a4)
    assert q.dtype == v.dtype == np.float32
    return q.astype(float)


def test_single_precision_keeps_what_its_sums_lose():
    """20000 steps: what a plain sum loses has grown to some 1e-4 rad; with the rests it is 10 to 100 times less."""
    model = sl.zoo.puma()
    q, v, h, count = np.zeros(6), np.zeros(6), 1e-4, 20_000
    how = {"duration": h * count, "step": h, "sample": 0.5}
    exact = sl.simulate(model, q, v, **how).q[-1]
    single = sl.simulate(model, q, v, integrator=sl.Integrator(dtype="float32"), **how).q[-1]
    plain = plain_single(model, q, v, h, count)
    ours, theirs = np.abs(single - exact).max(), np.abs(plain - exact).max()
    assert ours < 0.1 * theirs
    assert ours < 2e-5


# ---- events


def ground(t, q, v):
    return q["flight"][6]


@pytest.mark.parametrize(("method", "step"), [("rk4", 1e-3), ("rk4", 1e-2), ("midpoint", 1e-3)])
def test_a_thrown_body_meets_the_ground_to_1e_9_of_the_step(method, step):
    """Both methods are exact for a constant acceleration; what is left is the location."""
    b = sl.Builder("ball")
    model = b.body("ball", 2.0, inertia=(0.1, 0.1, 0.1)).free("flight", "world", "ball").build()
    height, rise = np.array((1.7, 0.2, 3.0)), np.array((3.0, -1.0, 0.0))
    q, v = np.zeros((3, 7)), np.zeros((3, 6))
    q[:, 0], q[:, 6], v[:, 5] = 1.0, height, rise
    expected = (rise + np.sqrt(rise**2 + 2.0 * 9.81 * height)) / 9.81
    run = sl.simulate(model, q, v, duration=2.0, step=step, integrator=method, events={"ground": ground})
    assert [o.reason for o in run.outcomes] == ["event"] * 3
    np.testing.assert_allclose([o.time for o in run.outcomes], expected, rtol=0, atol=1.5e-9 * step)
    assert all(np.abs(one.q[-1, 6]) < 2e-8 * step for one in run)  # its speed is below 10 m/s


@pytest.mark.parametrize("angle", [1.0, 0.0, -1.5])
def test_a_pendulum_passes_an_angle_when_the_closed_form_says(angle):
    """A uniform rod of 1 m: frequency² = 3 g / 2 l."""
    run = sl.simulate(sl.zoo.pendulum(), [2.0], duration=2.0, events={"there": lambda t, q, v: q[0] - angle})
    expected = pendulum_time(angle, 2.0, sqrt(1.5 * 9.81))
    assert run.outcome.time == pytest.approx(expected, abs=1.5e-9 * 1e-3 + 5e-12)  # 5e-12 s: RK4's own error
    assert run.q[-1, 0] == pytest.approx(angle, abs=1e-10)


def test_a_pendulum_that_does_not_come_there_goes_on():
    run = sl.simulate(sl.zoo.pendulum(), [1.0], duration=5.0, events={"there": lambda t, q, v: q[0] + 0.5 * pi})
    assert run.outcome.reason == "finished"
