"""The audit: it finds what is wrong, blames nobody for coarse samples, and adds up what joints and forces did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import SETTINGS, batch_of, flying_run, four_bar_run, integrated
from scipy.integrate import quad, solve_ivp
from sentences import says

import spanloop as sl
from spanloop.errors import InputError
from spanloop.trajectory import Outcome, Segment, Trajectory
from spanloop.trajectory.audit.balances import balance
from spanloop.trajectory.audit.quadrature import Integral, _rule


def changed(run, **arrays):
    return replace(run, segments=(replace(run.segments[0], **arrays),))


def of_arrays(model, times, q, v, tau, **more):
    outcome = Outcome("finished", "The run finished.", times[-1])
    return Trajectory(model, Segment(times, q, v, tau), outcome, SETTINGS, **more)


# ---- integrals


def test_cubics_are_integrated_exactly_whatever_the_spacing():
    rng = np.random.default_rng(4)
    times = np.sort(rng.uniform(0.0, 2.0, 9))
    f = np.polynomial.Polynomial(rng.normal(size=4))
    parts, misses = _rule(times, f(times)[None])
    np.testing.assert_allclose(parts[0], np.diff(f.integ()(times)), atol=1e-13)
    np.testing.assert_allclose(misses, 0.0, atol=1e-13)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 40, 41])
def test_the_doubt_covers_the_error_of_an_integral(n):
    times = np.linspace(0.0, 3.0, n)
    parts, misses = _rule(times, np.sin(2.0 * times + 0.3)[None])
    exact = quad(lambda t: np.sin(2.0 * t + 0.3), 0.0, 3.0, epsabs=1e-13)[0]
    assert abs(parts.sum() - exact) <= Integral(parts, misses).doubt.max()


# ---- energy


def damped_pendulum(samples, duration=2.0):
    """A hinge with damper and torque by SciPy at 1e-12, and the work of torque and damper as further unknowns."""
    model = sl.zoo.pendulum()
    model = replace(model, joints=(replace(model.joints[0], damping=(0.2,)),))
    robot = sl.Dynamics(model)

    def torque(t):
        return 2.0 * np.sin(3.0 * t)

    def rates(t, y):
        a = robot.forward_dynamics(y[:1], y[1:2], np.array([torque(t)]))
        return [y[1], a[0], torque(t) * y[1], -0.2 * y[1] ** 2]

    times = np.linspace(0.0, duration, samples)
    y = solve_ivp(rates, (0.0, duration), [0.4, 0.0, 0.0, 0.0], "DOP853", times, rtol=1e-12, atol=1e-12).y
    return of_arrays(model, times, y[:1].T, y[1:2].T, torque(times)[:, None]), y[2:, -1]


def test_work_of_torques_and_dampers_is_that_of_an_independent_integration():
    run, (by_torque, by_damper) = damped_pendulum(501)
    found = balance(run)
    assert found.work["joints"] == pytest.approx(by_torque, abs=1e-7)
    assert found.work["dampers"] == pytest.approx(by_damper, abs=1e-7)
    assert np.abs(found.error).max() < 1e-7
    assert run.audit().well


def test_energy_that_comes_from_nowhere_is_found():
    run, _ = damped_pendulum(501)
    v = run.v.copy()
    v[250:] *= 1.0 + 1e-4
    audit = changed(run, v=v).audit()
    assert audit["energy"].verdict == "not well"
    assert audit.faults == ("energy",)
    assert "Not well: energy." in str(audit)


@pytest.mark.parametrize("samples", [8, 20, 40])
def test_coarse_samples_are_not_blamed_on_the_integrator(samples):
    run, _ = damped_pendulum(samples)
    energy = run.audit()["energy"]
    assert energy.verdict == "not judged"
    assert "The samples are too far apart to tell: the integral over them is uncertain by" in energy.sentence


def test_without_work_the_drift_itself_counts_however_coarse_the_samples():
    run = four_bar_run()[::60]
    assert run.audit()["energy"].verdict == "well"
    assert "Nothing does work; energy changes by up to" in run.audit()["energy"].sentence
    v = run.v.copy()
    v[-1] *= 1.0 + 1e-4
    energy = changed(run, v=v).audit()["energy"]
    assert energy.verdict == "not well"
    total = run.energy.sum(axis=-1)
    assert energy.value == pytest.approx(total[-1] - total[0] + 2e-4 * run.energy[-1, 0], rel=1e-3)


def jerky(t, q, v):
    """Torques that jump from step to step."""
    return np.round(40.0 * np.sin(900.0 * t)) / 20.0 * np.ones_like(v)


@pytest.mark.parametrize("kind", ["revolute", "spherical"])
def test_torques_that_jump_from_sample_to_sample_are_accounted_for(kind):
    model = sl.zoo.chain(2, kind, seed=5)
    model = replace(model, joints=tuple(replace(j, damping=(0.1,) * j.kind.nv) for j in model.joints))
    q, v = model.random_state(2)
    run = integrated(model, q, v, 0.2, 1e-3, jerky, held=True)
    assert run.audit()["energy"].verdict == "well"
    smooth = changed(run, held=False)
    assert smooth.audit()["energy"].value > 100.0 * run.audit()["energy"].value


def test_a_drive_does_the_work_that_the_loops_ask_for():
    """A four-bar linkage whose crank turns at constant speed: the drive lifts and accelerates the other bodies."""
    model = sl.zoo.four_bar().drive("crank_hinge")
    q = sl.zoo.four_bar_start()
    v = sl.Dynamics(model).complete_velocity(q, {"crank_hinge": 3.0})
    run = integrated(model, q, v, 0.3, 1e-3)
    np.testing.assert_allclose(run["crank_hinge"].v, 3.0, rtol=1e-12)
    assert np.ptp(run.energy.sum(axis=-1)) > 1.0
    assert run.audit()["energy"].verdict == "well"
    assert "Work of drives" in run.audit()["energy"].sentence


def test_work_within_a_segment_counts_from_its_start():
    """An impact between two segments changes the energy at once; neither segment is wrong for it."""
    run = four_bar_run()
    first, second = run.segments[0].samples(slice(0, 101)), run.segments[0].samples(slice(100, None))
    jumped = replace(run, segments=(first, replace(second, v=0.0 * second.v, q=0.0 * second.q + second.q[0])))
    assert jumped.audit()["energy"].verdict == "well"
    assert np.ptp(jumped.energy.sum(axis=-1)) > 1e-2


# ---- momentum


def thrown_ball(samples=101, spin=2.0):
    """A ball that spins about z under a force along x that grows in time: p = ½ k t², in closed form."""
    model = sl.Builder("ball").body("ball", 2.0, (0, 0, 0), (0.1, 0.1, 0.1)).free("root", "world", "ball").build()
    t = np.linspace(0.0, 1.0, samples)
    angle, zero = spin * t, np.zeros_like(t)
    x, z = 3.0 * t**3 / 12.0, -9.81 * t**2 / 2.0
    q = np.stack([np.cos(angle / 2), zero, zero, np.sin(angle / 2), x, zero, z], axis=-1)
    ux, uz = 3.0 * t**2 / 4.0, -9.81 * t
    v = np.stack([zero, zero, zero + spin, ux * np.cos(angle), -ux * np.sin(angle), uz], axis=-1)
    force = np.stack([zero, zero, zero, 3.0 * t, zero, zero], axis=-1)
    return of_arrays(model, t, q, v, np.zeros((samples, 6)), forces={"ball": force})


def test_forces_from_outside_account_for_momentum_and_energy():
    audit = thrown_ball().audit()
    assert audit.well
    assert audit["linear momentum"].value < 1e-9
    assert "Work of forces" in audit["energy"].sentence


def test_momentum_without_a_cause_is_found():
    run = thrown_ball()
    audit = replace(run, forces=None).audit()
    assert audit["linear momentum"].verdict == "not well"
    assert audit["linear momentum"].value == pytest.approx(1.5)
    assert audit["angular momentum"].verdict == "well"
    assert audit["energy"].verdict == "not well"


@pytest.mark.slow
def test_torques_at_a_free_root_act_from_outside():
    model = sl.zoo.quadruped().without_losses()
    q, v = model.random_state(3)
    push = np.zeros(model.nv)
    push[:6] = (3.0, -8.0, 5.0, 40.0, -20.0, 60.0)
    run = integrated(model, q, v, 0.2, 1e-3, lambda t, q, v: push * np.cos(9.0 * t))
    audit = run.audit()
    assert audit["angular momentum"].verdict == audit["linear momentum"].verdict == "well"
    assert np.abs(run.momentum[-1] - run.momentum[0]).max() > 1.0


def test_a_mechanism_that_stands_on_the_world_has_no_momentum_to_keep():
    assert [f.name for f in four_bar_run().audit().findings] == ["outcome", "energy", "closure", "closure velocity"]


# ---- closures, quaternions, limits, outcome


def test_open_loops_are_found_with_name_and_time():
    run = four_bar_run()
    q, v = run.q.copy(), run.v.copy()
    q[100, 0] += 1e-6
    v[200, 1] += 1e-6
    audit = changed(run, q=q, v=v).audit(energy=1.0)
    assert audit.faults == ("closure", "closure velocity")
    assert "in 'closing: force along" in audit["closure"].sentence
    assert ", at 0.1 s (bound 1.8e-09 m)." in audit["closure"].sentence
    assert ", at 0.2 s (bound 1.8e-08 m/s)." in audit["closure velocity"].sentence
    assert changed(run, q=q, v=v).audit(energy=1.0, closure=1e-5, velocity=1e-5).well


def test_what_the_kernel_measured_between_samples_counts():
    audit = replace(four_bar_run(), residual=np.array(1e-5)).audit()
    assert audit["closure"].value == 1e-5
    expected = "Loops open by up to 1e-05 (rad, or of the loop's length), between samples (bound 1e-09)."
    assert audit["closure"].sentence == expected


def test_quaternions_off_unit_length_are_found():
    run = flying_run()
    q = run.q.copy()
    q[7, :4] *= 1.0 + 1e-8
    audit = changed(run, q=q).audit()
    assert audit["quaternions"].verdict == "not well"
    assert audit["quaternions"].value == pytest.approx(1e-8, rel=1e-6)


def test_limits_are_named_with_the_worst_time():
    model = sl.zoo.pendulum(2)
    limits = ({"upper": (0.5,), "speed": (100.0,)}, {"lower": (-0.1,), "effort": (0.5,)})
    model = replace(model, joints=tuple(replace(j, **x) for j, x in zip(model.joints, limits, strict=True)))
    t = np.linspace(0.0, 1.0, 11)
    q = np.stack([0.6 * np.sin(np.pi * t), -0.3 * t], axis=-1)
    run = of_arrays(model, t, q, np.zeros((11, 2)), np.tile([3.0, -1.0], (11, 1)))
    found = run.audit()["limits"]
    assert found.verdict == "not well"
    assert found.sentence == (
        "'hinge2' is beyond its effort limit 0.5 N m by up to 0.5 N m, at 0 s; "
        "'hinge2' is beyond its lower limit -0.1 rad by up to 0.2 rad, at 1 s; "
        "'hinge1' is beyond its upper limit 0.5 rad by up to 0.1 rad, at 0.5 s (bound 0)."
    )
    assert of_arrays(model, t, 0 * q, 0 * q, 0 * q).audit()["limits"].sentence == "All joints stay within their limits."


def test_a_run_that_broke_off_is_not_well():
    run = replace(four_bar_run(), outcomes=Outcome("not_finite", "The state is not finite after 0.3 s.", 0.3))
    assert run.audit().faults == ("outcome",)


def test_a_batch_is_judged_by_its_worst_run():
    run = four_bar_run()
    batch = batch_of(run, [301, 120, 7, 301])
    assert batch.audit().well
    q = batch.q.copy()
    q[1, 100, 0] += 1e-6
    sentence = changed(batch, q=q).audit()["closure"].sentence
    assert ", at 0.1 s of run 1 (bound 1.8e-09 m)." in sentence


def test_a_batch_of_runs_that_end_early_is_balanced_up_to_their_ends():
    run, (by_torque, _) = damped_pendulum(501)
    batch = batch_of(run, [501, 400, 33, 1])
    found = balance(batch)
    assert found.work["joints"][0] == pytest.approx(by_torque, abs=1e-7)
    assert np.nanmax(np.abs(found.error[:3])) < 1e-7
    assert np.isnan(found.error[1, 400:]).all()
    assert batch.audit()["energy"].verdict == "well"


def test_the_audit_in_words():
    run = replace(four_bar_run()[:1], settings={"method": "rk4"}, residual=np.array(2e-11))
    run = changed(run, v=[[0.0, 0.0, 0.0]])
    assert str(run.audit(closure=1e-12)) == (
        "four_bar: 0 s in 1 sample, from 0 s.\n"
        "Made with method rk4.\n"
        "  well        outcome           The run finished at 0.3 s.\n"
        "  well        energy            "
        "Nothing does work; energy changes by up to 0 J, at 0 s (bound 2.5e-11 J, for rounding).\n"
        "  not well    closure           "
        "Loops open by up to 2e-11 (rad, or of the loop's length), between samples (bound 1e-12).\n"
        "  well        closure velocity  Loops open at a rate of up to 0 rad/s, at 0 s (bound 1e-08 rad/s).\n"
        "Not well: closure."
    )
    with says(InputError, "the audit has no finding 'enrgy'; did you mean 'energy'?"):
        run.audit()["enrgy"]


def test_bounds_follow_the_number_type_of_the_run():
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    run = sl.simulate(model, q, duration=0.2, step=1e-2, integrator=sl.Integrator("rk4", dtype="float32"))
    audit = run.audit()
    assert audit["closure"].verdict == audit["closure velocity"].verdict == "well", str(audit)
    assert (audit["closure"].bound, audit["closure velocity"].bound) == (1e-5, 1e-4)
    assert "closure" in run.audit(closure=1e-9).faults


# ---- runs that cannot begin


def test_a_run_of_what_has_no_mass_is_audited():
    model = sl.Builder("ring").body("ring").free("root", "world", "ring").build()
    found = sl.simulate(model, duration=0.05).audit()
    assert found.faults == ("outcome",)
    assert found["linear momentum"].verdict == "not judged"


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_run_without_numbers_is_audited_and_printed_in_silence():
    model = sl.zoo.four_bar()
    nothing = np.full((1, model.nv), np.nan)
    run = of_arrays(model, np.zeros(1), sl.zoo.four_bar_start()[None], nothing, nothing)
    found = run.audit()
    assert found["energy"].sentence == found["closure velocity"].sentence == "No sample has numbers to judge by."
    assert "speed up to nan" in str(run)


def test_the_bound_of_a_closure_has_the_unit_of_its_size():
    run = four_bar_run()
    v = run.v.copy()
    v[3, 0] += 1e-7
    found = changed(run, v=v).audit()["closure velocity"]
    size, bound = (
        float(part.split()[0]) for part in (found.sentence.split("up to ")[1], found.sentence.split("bound ")[1])
    )
    assert found.verdict == "not well"
    assert size > bound
    np.testing.assert_allclose(size / bound, found.value / found.bound, rtol=0.1)


@pytest.mark.parametrize("damping", [1e4, 1e5, 1e6, 1e8])
def test_energy_is_not_judged_where_samples_do_not_resolve_a_decay(damping):
    """All 0.5 J are gone within the first step, and its samples do not tell how."""
    body = sl.Builder("slide").body("block", 1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    model = body.prismatic("slider", "world", "block", "x", damping=damping).build()
    audit = sl.simulate(model, v=[1.0], duration=0.05).audit()
    assert audit["energy"].verdict == "not judged"
    assert "The samples are too far apart to tell" in audit["energy"].sentence


def test_energy_is_not_judged_where_friction_brings_a_joint_to_its_creep_within_a_step():
    body = sl.Builder("finger").body("tip", 0.01, (0.01, 0.0, 0.0), (1e-7, 1e-7, 1e-7))
    model = body.revolute("joint", "world", "tip", "y", friction=0.1).build()
    audit = sl.simulate(model, duration=0.05).audit()
    assert audit["energy"].verdict == "not judged"


def test_rounding_beside_a_fall_is_no_error_of_steps():
    """Joints of a falling mechanism hang at rest; what moves them is rounding."""
    run = sl.simulate(sl.zoo.quadruped(), duration=0.2, limits="ignore")
    assert 0.0 < np.abs(run.v[:, 6:]).max() < 1e-12
    assert run.settings["step_error"] == 0.0
