"""sl.simulate: what it computes, what it takes, what it says."""

from __future__ import annotations

import inspect
import math
import warnings

import numpy as np
import pytest
from mechanisms import model_of
from plain_steps import steps
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.compiler.runtime.rollout import Rollout
from spanloop.errors import FileError, InputError, Reason, Refusal, SpanloopWarning, StateError
from spanloop.simulation.controllers import Controller
from spanloop.simulation.simulate import AccuracyError
from spanloop.simulation.termination import end_reason
from spanloop.topology import mechanism
from spanloop.trajectory import EndReason

KINDS = ["puma", "quadruped", "star", "chain_planar", "chain_general", "chain_helical", "chain_universal"]
LOOPS = {
    "four_bar": (zoo.four_bar, zoo.four_bar_start),
    "slider_crank": (zoo.slider_crank, zoo.slider_crank_start),
    "stewart": (zoo.stewart, zoo.stewart_start),
    "delta": (zoo.delta, zoo.delta_start),
    "bricard": (zoo.bricard, zoo.bricard_start),
    "linkage_leg": (zoo.linkage_leg, zoo.linkage_leg_start),
}


def loop(name):
    make, start = LOOPS[name]
    model = make()
    robot = sl.Dynamics(model)
    rng = np.random.default_rng(5)
    q, v = robot.project(start(), 0.3 * rng.normal(size=model.nv))
    return model, robot, q, v


def energy_change(run):
    energy = run.energy.sum(axis=-1)
    return np.abs(energy - energy[..., :1]).max()


# ---- what it computes


@pytest.mark.parametrize("method", ["rk4", "euler", "midpoint"])
@pytest.mark.parametrize("name", KINDS)
def test_steps_are_those_of_the_method(name, method):
    model = model_of(name)
    robot = sl.Dynamics(model)
    q, v = model.random_state(3)
    tau = 0.1 * np.random.default_rng(1).normal(size=model.nv)
    run = sl.simulate(robot, q, v, duration=0.02, step=1e-3, integrator=method, tau=tau, limits="ignore")
    expected = steps(method, robot, q, v, 1e-3, 20, lambda t, q, v: tau)
    bound = 1e-12 if method != "midpoint" else 1e-9  # the repetition ends at 1e-12 of the velocity in each step
    for found, exact in zip((run.q[-1], run.v[-1]), expected, strict=True):
        assert np.abs(found - exact).max() <= bound * max(1.0, np.abs(exact).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_loops_stay_closed_and_motion_is_that_of_projected_steps(name):
    _, robot, q, v = loop(name)
    run = sl.simulate(robot, q, v, duration=0.02, step=1e-3, limits="ignore")
    expected_q, expected_v = steps("rk4", robot, q, v, 1e-3, 20, project=True)
    assert np.abs(robot.difference(expected_q, run.q[-1])).max() <= 1e-10
    assert np.abs(run.v[-1] - expected_v).max() <= 1e-8 * max(1.0, np.abs(expected_v).max())
    assert np.abs(run.closure_error).max() <= 1e-12
    assert run.residual <= 1e-12
    assert np.abs(robot.closure_jacobian(run.q[-1]) @ run.v[-1]).max() <= 1e-10


def test_one_sample_is_the_start_and_one_the_end():
    _, robot, q, v = loop("four_bar")
    run = sl.simulate(robot, q, v, duration=0.5, sample=0.1)
    assert len(run) == 6
    np.testing.assert_allclose(run.times, np.linspace(0.0, 0.5, 6), atol=1e-12)
    np.testing.assert_allclose(run.q[0], q, atol=1e-14)
    fine = sl.simulate(robot, q, v, duration=0.5)
    assert np.array_equal(run.q, fine.q[::100])
    assert run.outcome.reason == "finished"


@pytest.mark.parametrize("closures", ["feedback", "none"])
def test_other_ways_with_loops_agree_and_drift_more(closures):
    _, robot, q, v = loop("four_bar")
    held = sl.simulate(robot, q, v, duration=1.0)
    other = sl.simulate(robot, q, v, duration=1.0, closures=closures)
    assert np.abs(held.q - other.q).max() <= 1e-6
    assert np.abs(held.closure_error).max() < 1e-13 < np.abs(other.closure_error).max() < 1e-6


def test_loops_that_nothing_keeps_closed_are_said_to_have_drifted():
    model, robot, q, _ = loop("four_bar")
    outcome = sl.simulate(robot, q, 5.0 * np.ones(model.nv), duration=0.1, closures="none").outcome
    assert outcome.reason == "open"
    assert outcome.sentence.endswith("nothing keeps the loops closed, and they drifted apart. Try closures='project'")
    apart = sl.simulate(robot, q + 0.1, duration=0.1, closures="none").outcome
    assert apart.sentence.endswith("Close it first: q = robot.assemble(q)")


def test_feedback_pulls_an_open_loop_closed_where_nothing_does_without():
    model, robot, q, v = loop("four_bar")
    off = robot.integrate(q, 1e-6 * np.ones(model.nv))
    drifting = sl.simulate(robot, off, v, duration=0.5, closures="none")
    with pytest.warns(sl.SpanloopWarning, match="brought to the closed loops"):
        sl.simulate(robot, robot.integrate(q, 1e-5 * np.ones(model.nv)), v, duration=0.01)
    pulled = sl.simulate(robot, off, v, duration=0.5, closures=sl.Closures("feedback", gains=40.0))
    last = np.abs(pulled.closure_error[-1]).max()
    assert last < 1e-8
    assert np.abs(drifting.closure_error[-1]).max() > 10 * last


def geared():
    b = sl.Builder("geared", gravity=(0.0, -9.81, 0.0))
    for k, mass in enumerate((1.0, 2.0, 0.5)):
        b.body(f"rod{k}", mass, (0.25, 0.0, 0.0), (0.01, 0.02, 0.02))
        b.revolute(f"hinge{k}", f"rod{k - 1}" if k else "world", f"rod{k}", "z", (0.5 if k else 0.0, 0.0, 0.0))
    return b.coupling("gear", "hinge2", "hinge1", ratio=-2.0, offset=0.1).build()


@pytest.mark.parametrize("closures", ["project", "feedback"])
def test_gears_stay_in_mesh(closures):
    model = geared()
    robot = sl.Dynamics(model)
    run = sl.simulate(robot, robot.assemble([0.3, 0.2, 0.0]), duration=1.0, closures=closures)
    assert np.abs(run.closure_error).max() < (1e-13 if closures == "project" else 1e-6)
    assert energy_change(run) < 1e-6 * np.abs(run.energy).max()


def test_energy_of_a_four_bar_over_ten_seconds():
    run = sl.simulate(zoo.four_bar(), zoo.four_bar_start(), duration=10.0)
    assert run.residual <= 1e-10
    assert energy_change(run) <= 1e-8


def switchable_four_bar():
    """The zoo's, with a closure that can be opened."""
    import dataclasses

    model = zoo.four_bar()
    return dataclasses.replace(model, loops=(dataclasses.replace(model.loops[0], switchable=True),))


def test_switchable_loops_are_open_or_closed_as_is_said():
    model, q = switchable_four_bar(), zoo.four_bar_start()
    name = model.loops[0].name
    shut, loose = (sl.simulate(model, q, duration=0.3, closures=sl.Closures(active_loops=x)) for x in ([name], []))
    np.testing.assert_allclose(shut.q, sl.simulate(zoo.four_bar(), q, duration=0.3).q, atol=1e-11)
    tree = zoo.four_bar().remove(name)
    np.testing.assert_allclose(loose.q, sl.simulate(tree, q, duration=0.3).q, atol=1e-11)
    apart = np.array([0.4, 0.1, -0.3])
    assert sl.simulate(model, apart, duration=0.1, closures=sl.Closures(active_loops=[])).outcome.finished


def test_a_driven_joint_follows_the_acceleration_that_is_given():
    model = zoo.four_bar().drive("crank_hinge")
    run = sl.simulate(model, zoo.four_bar_start(), duration=1.0, tau={"crank_hinge": 0.5})
    t = run.times
    np.testing.assert_allclose(run["crank_hinge"].v, 0.5 * t, atol=1e-11)
    np.testing.assert_allclose(run["crank_hinge"].q, run.q[0, 0] + 0.25 * t * t, atol=1e-11)


@pytest.mark.slow
def test_friction_slows_and_takes_its_energy():
    model = zoo.pendulum().without_losses()
    import dataclasses

    joint = dataclasses.replace(model.joints[0], friction=(0.2,))
    rough = dataclasses.replace(model, joints=(joint, *model.joints[1:]))
    free, slowed = (sl.simulate(m, [1.0], duration=1.0) for m in (model, rough))
    lost = np.diff(slowed.energy.sum(axis=-1)[[0, -1]])[0]
    work = np.trapezoid(slowed.tau[:, 0] * slowed.v[:, 0], slowed.times)
    assert lost < -0.01
    assert abs(lost - work) < 1e-5
    assert energy_change(free) < 1e-8


# ---- batches


@pytest.mark.parametrize("name", ["puma", "quadruped"])
def test_runs_of_a_batch_are_single_runs_to_the_bit(name):
    model = model_of(name)
    states = [model.random_state(k) for k in range(11)]
    q, v = (np.array(x) for x in zip(*states, strict=True))
    tau = 0.1 * np.random.default_rng(2).normal(size=(11, 30, model.nv))
    many = sl.simulate(model, q, v, duration=0.03, tau=tau, limits="ignore")
    threaded = sl.simulate(model, q, v, duration=0.03, tau=tau, limits="ignore", integrator=sl.Integrator(threads=2))
    assert np.array_equal(many.q, threaded.q)
    for k in (0, 7, 10):
        one = sl.simulate(model, q[k], v[k], duration=0.03, tau=tau[k], limits="ignore")
        assert np.array_equal(many.q[k], one.q)
        assert np.array_equal(many.v[k], one.v)


def test_batch_axes_are_kept_and_broadcast():
    model = zoo.pendulum()
    run = sl.simulate(model, np.zeros((3, 1, 1)), duration=0.01, tau=np.linspace(-1, 1, 5)[:, None, None])
    assert run.q.shape == (3, 5, 11, 1)
    assert run.batch == (3, 5)
    assert len(run.outcomes) == 15


def test_live_parameters_are_those_of_a_model_made_with_them():
    model = zoo.four_bar()
    base = model.parameters()
    rows = np.array([base.values, base.values])
    rows[1][[k for k, n in enumerate(base.names) if n.endswith("mass")]] *= 1.5
    runs = sl.simulate(model, zoo.four_bar_start(), duration=0.2, parameters=rows)
    plain = sl.simulate(model, zoo.four_bar_start(), duration=0.2)
    np.testing.assert_allclose(runs.q[0], plain.q, atol=1e-11)
    assert np.abs(runs.q[1] - plain.q).max() > 1e-4


# ---- what acts


def test_a_traced_controller_acts_inside_the_step():
    model = zoo.puma()
    robot = sl.Dynamics(model)

    def control(t, q, v):
        return [30.0 * (0.3 * t - x) - 4.0 * y for x, y in zip(q, v, strict=True)]

    run = sl.simulate(robot, duration=0.05, controller=control)
    expected = steps("rk4", robot, np.zeros(6), np.zeros(6), 1e-3, 50, lambda t, q, v: np.array(control(t, q, v)))
    np.testing.assert_allclose(run.q[-1], expected[0], atol=1e-13)
    np.testing.assert_allclose(run.tau[-1], control(run.times[-1], run.q[-1], run.v[-1]), atol=1e-12)


def test_a_controller_by_name_and_with_inputs():
    model = zoo.puma()

    def by_name(t, q, v):
        return {"joint2": 5.0 - q["joint2"], "joint3": -v["joint3"]}

    def with_inputs(t, q, v, u):
        return [0.0, u[0] - q[1], u[1] * v[2], 0.0, 0.0, 0.0]

    one = sl.simulate(model, duration=0.1, controller=by_name)
    two = sl.simulate(model, duration=0.1, controller=with_inputs, inputs=[5.0, -1.0])
    np.testing.assert_allclose(one.q, two.q, atol=1e-14)
    rows = np.tile([5.0, -1.0], (100, 1))
    rows[50:] = 0.0
    three = sl.simulate(model, duration=0.1, controller=with_inputs, inputs=rows)
    assert np.array_equal(two.q[:51], three.q[:51])
    assert not np.array_equal(two.q[-1], three.q[-1])


class Counting(Controller):
    """Torque grows by 1 with every step."""

    memory = 1

    def torques(self, t, q, v, u, z):
        return [z[0]]

    def update(self, t, h, q, v, u, z):
        return [z[0] + 1.0]

    inputs = 0


def test_a_memory_is_constant_in_a_step_and_updated_after_it():
    model = zoo.pendulum()
    run = sl.simulate(model, duration=0.01, controller=Counting(), limits="ignore")
    np.testing.assert_array_equal(run.memory[:, 0], np.arange(11.0))
    held = sl.simulate(model, duration=0.01, tau=np.arange(10.0)[:, None], limits="ignore")
    assert np.array_equal(run.q, held.q)


def test_a_callback_is_asked_once_a_step_and_gives_what_arrays_give():
    model = zoo.puma()
    asked = []

    def callback(t, q, v):
        asked.append(t)
        return -3.0 * v + np.sin(q)

    run = sl.simulate(model, 0.2 * np.ones(6), duration=0.05, controller=sl.control.callback(callback), sample=0.01)
    np.testing.assert_allclose(asked, 1e-3 * np.arange(50), atol=1e-12)
    again = sl.simulate(model, 0.2 * np.ones(6), duration=0.05, tau=run_inputs(model, callback))
    assert np.array_equal(run.q, again.q[::10])
    assert np.isfinite(run.tau).all()


def run_inputs(model, callback):
    robot, q, v, rows = sl.Dynamics(model), 0.2 * np.ones(6), np.zeros(6), []
    for k in range(50):
        rows.append(callback(1e-3 * k, q, v))
        run = sl.simulate(robot, q, v, duration=1e-3, tau=rows[-1])
        q, v = run.q[-1], run.v[-1]
    return np.array(rows)


def test_forces_on_bodies_are_those_of_forward_dynamics():
    model = zoo.four_bar()
    body = model.bodies[0].name
    robot = sl.Dynamics(model)
    six = np.array([0.0, 0.0, 0.0, 3.0, -1.0, 2.0])
    given = sl.simulate(robot, zoo.four_bar_start(), duration=0.1, forces={body: six})
    traced = sl.simulate(robot, zoo.four_bar_start(), duration=0.1, forces=lambda t, q, v: {body: list(six)})
    assert np.array_equal(given.q, traced.q)
    slope = (given.v[1] - given.v[0]) / 1e-3
    a = robot.forward_dynamics(given.q[0], given.v[0], np.zeros(3), forces={body: six})
    np.testing.assert_allclose(slope, a, rtol=2e-2, atol=1e-2)
    np.testing.assert_allclose(given.forces[body][5], six)


# ---- ends


def test_a_limit_stops_a_run_where_it_is():
    model = model_of("panda")
    start = np.array([j.lower[0] + 0.4 * (j.upper[0] - j.lower[0]) for j in model.joints if j.kind.nv])
    run = sl.simulate(model, start, duration=3.0)
    assert run.outcome.reason == "limit"
    name = str(run.outcome).split("'")[1]
    joint = model.joint(name)
    at = run[name].q[-1]
    assert min(abs(at - joint.lower[0]), abs(at - joint.upper[0])) < 1e-9
    assert run.times[-1] == run.outcome.time
    on = sl.simulate(model, start, duration=3.0, limits="ignore")
    assert on.outcome.reason == "finished"
    n = len(run) - 1
    assert np.array_equal(on.q[:n], run.q[:n])


def test_conditions_stop_each_run_of_a_batch_by_itself():
    model = zoo.pendulum()
    start = np.array([[1.0], [0.1], [1.4]])
    run = sl.simulate(model, start, duration=2.0, events={"low": lambda t, q, v: q[0] - 0.5}, limits="ignore")
    assert [o.reason for o in run.outcomes] == ["event", "event", "event"]
    assert run.outcomes[1].time == 0.0  # starts where the condition is met
    for k in (0, 2):
        one = sl.simulate(model, start[k], duration=2.0, events={"low": lambda t, q, v: q[0] - 0.5}, limits="ignore")
        assert abs(one.q[-1, 0] - 0.5) < 1e-9
        assert run[k].times[-1] == one.times[-1]
        assert np.array_equal(run[k].q, one.q)


def test_starting_beyond_a_limit_is_told():
    model = model_of("panda")
    with pytest.warns(sl.SpanloopWarning, match="beyond its upper limit"):
        sl.simulate(model, model.neutral(), duration=0.002)


def test_starting_exactly_at_a_limit_is_worded_so():
    b = sl.Builder("arm").body("link", 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
    model = b.revolute("hinge", "world", "link", "y", lower=-1.0, upper=1.0).build()
    with pytest.warns(sl.SpanloopWarning, match="joint 'hinge' starts at 1, exactly at its upper limit 1;"):
        sl.simulate(model, [1.0], duration=0.002)
    near = np.nextafter(1.0, 2.0)
    with pytest.warns(sl.SpanloopWarning, match=r"starts at 1, 2.2e-16 beyond its upper limit 1;"):
        sl.simulate(model, [near], duration=0.002)


def test_a_default_start_with_loops_keeps_room_to_limits():
    for joint in ("crank_hinge", "coupler_hinge"):
        model = sl.zoo.four_bar().with_joint(joint, lower=0.5, upper=2.5)
        run = sl.simulate(model, duration=0.002)
        assert run[joint].q[0] == pytest.approx(0.51, abs=1e-9)
        assert run.residual < 1e-12


def test_joints_beside_a_loop_stay_where_they_start():
    """Also where the loop closes after the guess was moved at random."""
    finger = sl.Builder("finger").body("tip", 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
    slide = finger.prismatic("grip", "world", "tip", "x", lower=0.0, upper=0.04).build()
    run = sl.simulate(sl.zoo.four_bar().attach(slide), duration=0.002)
    assert run["grip"].q[0] == 0.0004


def test_a_torque_that_is_not_finite_has_its_reason():
    with pytest.raises(StateError) as refused:
        sl.simulate(zoo.pendulum(), duration=0.1, tau=[math.nan])
    assert refused.value.reason is Reason.NOT_FINITE


@pytest.mark.filterwarnings("ignore:simulate. steps of")
@pytest.mark.parametrize("closures", ["project", "feedback", "none"])
@pytest.mark.parametrize("integrator", ["euler", "DOP853"])
def test_the_residual_is_the_largest_closure_error_of_any_step(closures, integrator):
    start = zoo.four_bar_start()
    run = sl.simulate(zoo.four_bar(), start, duration=0.1, step=1e-2, closures=closures, integrator=integrator)
    shares = np.abs(run.closure_error) / mechanism(run.model).row_lengths
    assert run.residual >= 0.999 * shares.max() > 0.0
    if integrator == "euler" and closures != "project":
        assert run.residual == pytest.approx(shares.max(), rel=1e-9)
        assert run.residual > 1e-6
    assert sl.simulate(zoo.pendulum(), duration=0.01, closures=closures).residual is None


def test_step_and_sample_are_adjusted_to_the_duration_with_a_warning():
    with pytest.warns(SpanloopWarning, match="step is 0.3 s, which does not divide the duration of 1 s; 0.333333 s is"):
        run = sl.simulate(zoo.pendulum(), duration=1.0, step=0.3)
    assert run.settings["step"] == 1.0 / 3.0
    with pytest.warns(SpanloopWarning) as found:
        run = sl.simulate(zoo.pendulum(), duration=1.0, step=3e-3, sample=0.3)
    assert [str(w.message).split(";")[0] for w in found] == [
        "simulate: sample is 0.3 s, which does not divide the duration of 1 s",
        "simulate: step is 0.003 s, which does not divide the time between samples of 0.333333 s",
    ]
    assert np.allclose(run.times, [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0])
    assert math.isclose(run.settings["step"], 1.0 / 3.0 / 111)
    with pytest.warns(SpanloopWarning, match="sample is 0.3 s, which does not divide the duration of 1 s"):
        assert len(sl.simulate(zoo.pendulum(), duration=1.0, sample=0.3, integrator="DOP853")) == 4


@pytest.mark.parametrize(("duration", "step"), [(1.0, 0.1), (0.7, 0.007), (0.3, 1e-3), (1e-3, 1e-3), (2.1, 0.3)])
def test_a_step_that_divides_the_duration_but_for_rounding_is_taken_as_it_is(duration, step):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sl.simulate(zoo.pendulum(), duration=duration, step=step).settings["step"] == pytest.approx(step)


# ---- arrays with two readings


@pytest.mark.parametrize(("batch", "shape", "for_steps", "for_runs"), [
    ((5,), (5, 2), (1, 5, 2), (5, 1, 2)),
    ((3, 5), (5, 2), (1, 1, 5, 2), (5, 1, 2)),
    ((5, 5), (5, 5, 2), (1, 5, 5, 2), (5, 5, 1, 2)),
])  # fmt: skip
@pytest.mark.parametrize("name", ["tau", "inputs"])
def test_rows_that_may_be_of_steps_or_of_runs_are_refused(name, batch, shape, for_steps, for_runs):
    model, rows = zoo.pendulum(2), np.random.default_rng(1).uniform(-1.0, 1.0, shape)
    how = {"duration": 5e-3, "controller": (lambda t, q, v, u: [u[0], u[1]]) if name == "inputs" else None}
    start = np.zeros((*batch, 2))
    with says(InputError, f"{name} has shape {shape}: a row for each of the 5 steps, or one for each run") as error:
        sl.simulate(model, start, **how, **{name: rows})
    assert f"Give it the shape {for_steps} for steps, {for_runs} for runs" in str(error.value)
    of_steps = sl.simulate(model, start, **how, **{name: rows.reshape(for_steps)})
    of_runs = sl.simulate(model, start, **how, **{name: rows.reshape(for_runs)})
    last = (0,) * len(batch)
    np.testing.assert_array_equal(of_steps[last].tau[:5], rows[(0,) * (len(shape) - 2)])
    np.testing.assert_array_equal(of_runs[last].tau[:5], np.tile(rows[(0,) * (len(shape) - 1)], (5, 1)))


def test_rows_with_one_reading_are_taken():
    rows = np.random.default_rng(2).uniform(-1.0, 1.0, (5, 2))
    assert sl.simulate(zoo.pendulum(2), duration=5e-3, tau=rows).q.shape == (6, 2)  # one run
    assert sl.simulate(zoo.pendulum(2), np.zeros((4, 2)), duration=5e-3, tau=rows).q.shape == (4, 6, 2)  # four runs


def test_a_torque_by_name_has_one_number_for_each_degree_of_freedom():
    ball = zoo.chain(1, "spherical")
    name = ball.joints[0].name
    run = sl.simulate(zoo.pendulum(2), duration=0.002, tau={"hinge2": 0.5})
    assert run.tau[0].tolist() == [0.0, 0.5]
    assert sl.simulate(ball, duration=0.002, tau={name: [1, 2, 3]}).tau[0].tolist() == [1.0, 2.0, 3.0]
    with says(InputError, f"tau[{name!r}] has shape (); expected 3 numbers"):
        sl.simulate(ball, duration=0.05, tau={name: 1.0})
    with says(InputError, "tau['hinge2'] has entries of type <U3; expected one number"):
        sl.simulate(zoo.pendulum(2), duration=0.05, tau={"hinge2": "two"})


def test_a_force_that_is_not_finite_is_refused():
    with says(StateError, "forces['rod1'][5] is nan; every number must be finite"):
        sl.simulate(zoo.pendulum(1), duration=0.05, forces={"rod1": [0, 0, 0, 0, 0, np.nan]})


def parallelogram():
    b = sl.Builder("parallelogram", gravity=(0.0, -9.81, 0.0))
    for name, length in (("crank", 0.5), ("coupler", 1.0), ("rocker", 0.5)):
        moment = length**2 / 12
        b.body(name, 1.0, (0.5 * length, 0.0, 0.0), (1e-3, moment, moment))
    b.revolute("left", "world", "crank", "z").revolute("top", "crank", "coupler", "z", (0.5, 0.0, 0.0))
    b.revolute("right", "world", "rocker", "z", (1.0, 0.0, 0.0))
    b.frame("tip", "coupler", (1.0, 0.0, 0.0)).frame("end", "rocker", (0.5, 0.0, 0.0))
    return b.loop("tip", "end", "revolute").build()


def test_a_singular_position_ends_a_run_or_is_told():
    """All links in a line: the loop loses rank, and two ways lead on."""
    robot = sl.Dynamics(parallelogram())
    q = robot.assemble([0.3, -0.3, 0.3])
    v = robot.complete_velocity(q, {"left": -3.0})
    run = sl.simulate(robot, q, v, duration=0.2, step=1e-5)
    assert run.outcome.reason == "singular"
    assert "singular configuration" in run.outcome.sentence
    assert abs(run.q[-1, 0]) < 2e-3
    assert np.isfinite(run.q).all()
    with pytest.warns(sl.SpanloopWarning, match="passed close to a singular configuration"):
        through = sl.simulate(robot, q, v, duration=0.2, step=1e-3)
    assert through.outcome.finished
    assert through.settings["margin"] < 1e-4


def test_motions_that_are_lost_end_with_a_sentence():
    model = zoo.pendulum()
    run = sl.simulate(model, [0.5], duration=1.0, controller=lambda t, q, v: [1e6 * v[0]], limits="ignore")
    assert run.outcome.reason == "not_finite"
    assert "shorter step" in run.outcome.sentence
    assert len(run) > 1
    assert np.isfinite(run.q).all()


def test_an_implicit_step_that_does_not_converge_says_so():
    stiff = lambda t, q, v: [-1e8 * q[0]]  # noqa: E731
    run = sl.simulate(zoo.pendulum(), [0.5], duration=1.0, integrator="midpoint", controller=stiff, limits="ignore")
    assert run.outcome.reason == "not_converged"
    assert "did not converge" in run.outcome.sentence


def test_an_interrupt_returns_what_there_is(monkeypatch):
    original, calls = Rollout.run, []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(self, *args)

    monkeypatch.setattr(Rollout, "run", interrupted)
    run = sl.simulate(zoo.puma(), duration=5.0)
    assert run.outcome.reason == "interrupted"
    assert 1 < len(run) < 5001
    monkeypatch.undo()
    whole = sl.simulate(zoo.puma(), duration=5.0)
    assert np.array_equal(run.q, whole.q[: len(run)])


# ---- accuracy


@pytest.mark.slow
def test_accuracy_is_reached_and_told():
    _, robot, q, v = loop("four_bar")
    run = sl.simulate(robot, q, v, duration=1.0, step=0.01, sample=0.1, integrator=sl.Integrator(accuracy=1e-8))
    fine = sl.simulate(robot, q, v, duration=1.0, step=1e-4, sample=0.1)
    assert run.settings["step"] < 0.01
    assert run.settings["estimated_error"] <= 1e-8
    assert np.abs(run.q - fine.q).max() <= 2e-8


def test_accuracy_that_cannot_be_reached_is_refused():
    with says(AccuracyError, "cannot be reached"):
        sl.simulate(
            zoo.pendulum(5),
            0.5 * np.arange(5),
            duration=2.0,
            step=0.02,
            integrator=sl.Integrator(accuracy=1e-13),
            limits="ignore",
        )


@pytest.mark.parametrize("method", ["DOP853", "RK45", "Radau", "LSODA"])
@pytest.mark.parametrize("name", ["four_bar", "stewart"])
def test_adaptive_methods_agree_with_fixed_steps(name, method):
    if name == "stewart" and method != "DOP853":
        pytest.skip("one adaptive method is enough for the large one")
    _, robot, q, v = loop(name)
    run = sl.simulate(
        robot, q, v, duration=0.3, sample=0.1, integrator=sl.Integrator(method, accuracy=1e-9), limits="ignore"
    )
    fixed = sl.simulate(robot, q, v, duration=0.3, sample=0.1, step=2e-4, limits="ignore")
    assert np.abs(run.q - fixed.q).max() <= 1e-6
    assert np.abs(run.closure_error).max() <= 1e-12


def test_adaptive_steps_locate_events_too():
    stop = {"half": lambda t, q, v: q[0] - 0.5}
    fixed = sl.simulate(zoo.pendulum(), [1.0], duration=2.0, events=stop, limits="ignore")
    other = sl.simulate(zoo.pendulum(), [1.0], duration=2.0, events=stop, limits="ignore", integrator="DOP853")
    assert other.outcome.reason == "event"
    assert abs(fixed.outcome.time - other.outcome.time) < 1e-8


# ---- checkpoints


def test_a_simulation_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    from spanloop.simulation import checkpoint

    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "_SHARE", np.inf)
    file = tmp_path / "run.ckpt"
    original, calls = Rollout.run, []

    def killed(self, *args):
        calls.append(1)
        if len(calls) == 4:
            raise MemoryError("killed")
        return original(self, *args)

    _, robot, q, v = loop("four_bar")
    monkeypatch.setattr(Rollout, "run", killed)
    with pytest.raises(MemoryError):
        sl.simulate(robot, q, v, duration=3.0, integrator=sl.Integrator(checkpoint=file))
    assert file.exists()
    monkeypatch.undo()
    with says(InputError, "belongs to another simulation"):
        sl.simulate(robot, q, v, duration=4.0, integrator=sl.Integrator(checkpoint=file))
    run = sl.simulate(robot, q, v, duration=3.0, integrator=sl.Integrator(checkpoint=file))
    assert run.settings["resumed"]
    whole = sl.simulate(robot, q, v, duration=3.0)
    assert np.array_equal(run.q, whole.q)
    assert np.array_equal(run.v, whole.v)
    assert not file.exists()


def test_a_broken_checkpoint_is_said_so(tmp_path):
    file = tmp_path / "run.ckpt"
    file.write_bytes(b"no checkpoint")
    with says(FileError, "run.ckpt: is not a checkpoint, or not all of one"):
        sl.simulate(zoo.pendulum(), duration=0.01, integrator=sl.Integrator(checkpoint=file))
    assert file.read_bytes() == b"no checkpoint"


# ---- what it says


def _into_floats(v):
    tau = np.zeros(len(v))
    tau += v
    return tau


WRONG = {
    "negative step": ({"step": -1e-3}, "step is -0.001 s; must be positive"),
    "step not a number": ({"step": "fast"}, "step is 'fast'; expected a number of seconds"),
    "step too long": ({"step": 5.0}, "step is 5 s, longer than the duration of 1 s"),
    "too many steps": ({"step": 1e-12}, "at most 2e+09"),
    "no duration": ({"duration": 0.0}, "duration is 0 s; must be positive"),
    "endless": ({"duration": math.inf}, "duration is inf s; must be positive"),
    "sample too short": (
        {"sample": 1e-5},
        "sample is 1e-05 s, shorter than the step of 0.001 s; must be at least that",
    ),
    "integrator": ({"integrator": "rk5"}, "integrator is 'rk5'; did you mean"),
    "closures": (
        {"closures": "springs"},
        "closures is 'springs'; expected one of 'project', 'feedback', 'minimal', 'none'",
    ),
    "limits": ({"limits": "bounce"}, "limits is 'bounce'; expected 'end', 'stop' or 'ignore'"),
    "gains": (
        {"closures": sl.Closures(gains=3.0)},
        "gains are for closures='feedback' of a model with loops; closures is 'project'",
    ),
    "gains of a tree": (
        {"closures": sl.Closures("feedback", gains=3.0)},
        "gains are for closures='feedback' of a model with loops; model 'pendulum1' has none. Leave gains out",
    ),
    "q": ({"q": [0.0, 1.0]}, "q has shape (2,); expected (..., 1)"),
    "empty batch": ({"q": np.zeros((0, 1))}, "the batch has the shape (0,); there is nothing to simulate"),
    "v": ({"v": [math.nan]}, "v[0] is nan; every number must be finite"),
    "tau shape": ({"tau": [1.0, 2.0]}, "tau has shape (2,); expected (..., 1)"),
    "tau nan": ({"tau": [math.inf]}, "tau[0] is inf; every number must be finite"),
    "tau steps": ({"tau": np.zeros((7, 1))}, "tau has 7 rows, one for each step; the simulation has 1000 steps"),
    "tau name": ({"tau": {"elbow": 1.0}}, "elbow"),
    "two drives": ({"tau": [1.0], "controller": lambda t, q, v: [0.0]}, "tau and controller are both given"),
    "inputs alone": ({"inputs": [1.0]}, "inputs are for a controller"),
    "controller": ({"controller": 3.0}, "controller is a float; expected a function"),
    "controller shape": ({"controller": lambda t, q, v: [1.0, 2.0]}, "2 numbers were returned; expected 1"),
    "controller of conditions": ({"controller": lambda t, q, v: q > 0.0}, "number 0 is a Condition"),
    "controller of a matrix": ({"controller": lambda t, q, v: np.outer(q, v)}, "number 0 is a TracedArray"),
    "controller of a choice": ({"controller": lambda t, q, v: q[q > 0.0]}, "a traced value cannot be an index"),
    "controller in floats": ({"controller": lambda t, q, v: _into_floats(v)}, "begin with np.zeros_like(v)"),
    "controller array": ({"controller": lambda t, q, v: np.array([q[0]]) > 0.0}, "np.stack([...]), not np.array"),
    "controller nan": ({"controller": lambda t, q, v: [math.nan]}, "number 0 is nan"),
    "controller arguments": ({"controller": lambda q: [0.0]}, "takes 1 arguments; expected (t, q, v)"),
    "controller needs u": ({"controller": lambda t, q, v, u: [u[0]]}, "takes inputs u, but none are given"),
    "controller branches": (
        {"controller": lambda t, q, v: [1.0 if q[0] > 0 else 0.0]},
        "cannot be traced: ",
    ),
    "controller numpy": ({"controller": lambda t, q, v: np.linalg.inv(q[None])}, "np.linalg.inv of traced values"),
    "events": ({"events": 3.0}, "events is a float; expected a function (t, q, v)"),
    "event value": ({"events": lambda t, q, v: q[0] < 1.0}, "expected one number that is positive"),
    "forces": ({"forces": {"nobody": np.zeros(6)}}, "forces names 'nobody', which is not a body"),
    "force": ({"forces": {"rod1": np.zeros(3)}}, "has shape (3,); expected six numbers"),
    "parameters": ({"parameters": np.zeros(3)}, "parameters has shape (3,)"),
    "adaptive inputs": ({"integrator": "DOP853", "tau": np.zeros((1000, 1))}, "has no steps to give inputs for"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_words_get_a_sentence(name):
    options, text = WRONG[name]
    with says(sl.SpanloopError, text), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sl.simulate(zoo.pendulum(), **{"duration": 1.0, **options})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"name": "rk5"}, "integrator is 'rk5'; did you mean 'rk4'?"),
        ({"accuracy": -1.0}, "accuracy is -1.0; must be positive (rad or m)"),
        (
            {"name": "DOP853", "accuracy": 1e-30},
            "accuracy is 1e-30, finer than the rounding of float64; expected at least 1e-13 (rad or m). Ask for less",
        ),
        ({"accuracy": 1e-9, "dtype": "float32"}, "at least 1e-06 (rad or m). Ask for less, or for dtype='float64'"),
        ({"checkpoint": 3}, "checkpoint is 3; expected the name of a file, as 'run.ckpt'"),
        ({"name": "DOP853", "checkpoint": "x"}, "checkpoint is for fixed steps; integrator 'DOP853' chooses its own"),
        ({"dtype": "float16"}, "dtype is 'float16'; expected 'float64' or 'float32'"),
        ({"name": "Radau", "dtype": "float32"}, "integrator 'Radau' works in float64; dtype is 'float32'"),
    ],
)
def test_wrong_integrators_get_a_sentence(options, text):
    with says(InputError, text):
        sl.Integrator(**options)


def test_what_a_users_function_raises_says_which_function_and_when():
    def divides(t, q, v):
        return [1 / 0]

    def opened(t, q, v):
        return {}["a"]

    for options, error, note in (
        ({"controller": sl.control.callback(lambda t, q, v: [1 // int(t < 0.0085)])}, ZeroDivisionError,
         "raised by the controller's callback at t = 0.009 s; "
         "sl.Integrator(checkpoint=file) keeps fixed steps until then"),
        ({"controller": divides}, ZeroDivisionError, "raised by the controller"),
        ({"events": {"far": opened}}, KeyError, "raised by the event 'far'"),
        ({"forces": opened}, KeyError, "raised by the function of forces, called with the neutral position"),
    ):  # fmt: skip
        with pytest.raises(error) as found:
            sl.simulate(zoo.pendulum(), duration=0.02, **options)
        assert found.value.__notes__ == [note]


def test_adaptive_steps_do_not_hide_what_a_callback_does():
    def simulated(function):
        return sl.simulate(zoo.pendulum(), [1.0], duration=0.1, step=0.01, controller=sl.control.callback(function),
                           integrator="DOP853")  # fmt: skip

    with pytest.raises(ValueError, match="could not convert") as found:
        simulated(lambda t, q, v: [float("x" if t > 0.05 else "0")])
    assert "raised by the controller's callback at t = 0.05" in found.value.__notes__[0]
    run = simulated(lambda t, q, v: [np.nan if t > 0.05 else 0.0])
    assert run.outcome.reason is EndReason.CONTROLLER
    assert 0.03 < run.outcome.time <= 0.05
    assert "the callback returned nan as torque 0 at t = 0.05" in str(run.outcome)


def test_callbacks_are_checked():
    with says(InputError, "callback: a float is given; expected a function (t, q, v) -> torques"):
        sl.control.callback(3.0)
    with says(InputError, "inputs are for a traced controller; a callback has none"):
        sl.simulate(zoo.pendulum(), duration=0.1, controller=sl.control.callback(lambda t, q, v: -v), inputs=[1.0])


def test_the_signature_is_short_and_every_argument_is_documented():
    names = list(inspect.signature(sl.simulate).parameters)
    assert len(names) <= 19
    for name in names:
        assert f"        {name}: " in sl.simulate.__doc__, name


def test_the_reason_of_an_outcome_is_data_that_equals_its_word():
    run = sl.simulate(zoo.pendulum(), [1.0], duration=3.0, events=lambda t, q, v: q[0] - 0.5)
    assert run.outcome.reason is EndReason.EVENT
    assert run.outcome.reason == "event"
    assert f"{run.outcome.reason}" == "event"


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        (Reason.SINGULAR_CLOSURE, EndReason.SINGULAR),
        (Reason.OPEN_LOOP, EndReason.OPEN),
        (Reason.SINGULAR_MASS, EndReason.NOT_FINITE),
        (Reason.ROUNDING, EndReason.NOT_FINITE),
    ],
)
def test_why_a_run_ended_follows_from_the_reason_whatever_the_sentence(reason, end):
    assert end_reason(Refusal(reason, "loop 'a' is in a singular configuration")) is end


@pytest.mark.parametrize("count", [1, 9])
def test_a_start_far_from_closed_is_refused_alone_and_in_a_batch(count):
    with says(StateError, "is open by 0.28"):
        sl.simulate(zoo.four_bar(), np.tile(zoo.four_bar_start() + (0.0, 0.1, 0.2), (count, 1)), duration=0.02)


def test_a_closed_start_at_rest_stays_as_it_is_beside_one_that_is_projected():
    model, q = zoo.four_bar(), zoo.four_bar_start()
    with pytest.warns(sl.SpanloopWarning, match="loops were open by up to"):
        runs = sl.simulate(model, np.array([q, q + (0.0, 1e-5, 0.0)]), duration=0.01)
    np.testing.assert_array_equal(runs.q[0, 0], q)
    assert np.abs(runs.q[1, 0] - q).max() > 1e-6
    assert runs.closure_residual.max() < 1e-13


def test_a_robot_made_with_a_method_is_simulated_with_it():
    robot = sl.Dynamics(zoo.four_bar(), method="dense")
    assert sl.simulate(robot, zoo.four_bar_start(), duration=0.01).settings["method"] == "dense"
    assert sl.simulate(zoo.four_bar(), zoo.four_bar_start(), duration=0.01).settings["method"] == "elimination"


def test_a_method_without_feedback_says_so():
    with says(InputError, "method 'dense' has no feedback of closure errors; use closures='project'"):
        sl.simulate(zoo.four_bar(), zoo.four_bar_start(), duration=0.1, closures="feedback", method="dense")


def test_an_open_loop_is_refused_and_named():
    with says(StateError, "is open by"):
        sl.simulate(zoo.four_bar(), np.zeros(3), duration=1.0)


def test_a_callback_that_goes_wrong_later_loses_nothing():
    def callback(t, q, v):
        return [math.nan if t > 0.0205 else 0.0]

    run = sl.simulate(zoo.pendulum(), [0.5], duration=1.0, controller=sl.control.callback(callback))
    assert run.outcome.reason == "controller"
    assert "the callback returned nan as torque 0 at t = 0.021 s" in run.outcome.sentence
    assert len(run) == 22
    with says(InputError, "the callback returned an array with shape (2,) at t = 0 s; expected shape (1,)"):
        sl.simulate(zoo.pendulum(), duration=1.0, controller=sl.control.callback(lambda t, q, v: [1.0, 2.0]))


def test_torques_of_the_motors_alone_get_a_hint():
    with pytest.raises(InputError, match=r"tau has shape \(12,\); expected \(..., 18\): with zeros .* \('root'\)"):
        sl.simulate(zoo.quadruped(), duration=0.01, tau=np.zeros(12))


def test_a_progress_bar_is_drawn_and_wiped(monkeypatch, capsys):
    from spanloop.simulation import time_loop

    monkeypatch.setattr(time_loop, "_SILENCE", 0.0)
    monkeypatch.setattr(time_loop, "_PAUSE", 0.0)
    sl.simulate(zoo.puma(), duration=1.0, integrator=sl.Integrator(progress=True))
    text = capsys.readouterr().err
    assert "100 %" in text
    assert "real time" in text
    assert text.endswith("\r")
    sl.simulate(zoo.puma(), duration=1.0)
    assert capsys.readouterr().err == ""


def test_the_start_of_a_closed_mechanism_is_found():
    run = sl.simulate(zoo.four_bar(), duration=0.1)
    assert np.abs(run.closure_error).max() < 1e-11


@pytest.mark.parametrize(
    ("limits", "start"),
    [
        ({"lower": 0.0, "upper": 2.0}, 0.01),  # the range is longer than a radian: a hundredth of one
        ({"lower": -0.3, "upper": -0.1}, -0.102),
        ({"lower": 0.5}, 0.51),
        ({"lower": -1.0, "upper": 1.0}, 0.0),
        ({}, 0.0),
    ],
)
def test_a_run_starts_inside_the_limits_by_default(limits, start):
    """Where it can: a position that is given stays as it is, with the warning that there was."""
    body = sl.Builder("rod").body("link", 1.0, (0.5, 0.0, 0.0), (0.1, 0.1, 0.1))
    model = body.revolute("hinge", "world", "link", "y", **limits).build()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sl.simulate(model, duration=0.002).q[0, 0] == pytest.approx(start, abs=1e-15)
    if "lower" in limits and start:
        with pytest.warns(sl.SpanloopWarning, match="starts at"):
            assert sl.simulate(model, [0.0], duration=0.002).q[0, 0] == 0.0


def test_fingers_that_are_coupled_start_inside_their_limits_and_coupled():
    hand = sl.Builder("hand").body("left", 0.1, (0.0, 0.0, 0.0), (1e-4,) * 3)
    hand = hand.body("right", 0.1, (0.0, 0.0, 0.0), (1e-4,) * 3)
    hand = hand.prismatic("left_finger", "world", "left", "y", lower=0.0, upper=0.04)
    hand = hand.prismatic("right_finger", "world", "right", "y", lower=0.0, upper=0.04)
    model = hand.coupling("together", "right_finger", "left_finger").build()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = sl.simulate(model, duration=0.01)
    np.testing.assert_allclose(run.q[0], 4e-4, rtol=1e-9)


@pytest.mark.slow
def test_torques_by_name_may_differ_from_run_to_run_and_step_to_step():
    """The others, as a free base, have none."""
    model = zoo.quadruped()
    q, nv, rng = np.tile(model.neutral(), (3, 1)), model.nv, np.random.default_rng(2)
    knees, place = rng.normal(size=(3, 1)), model.v_slice("fl_knee")
    full = np.zeros((3, 1, nv))
    full[..., place] = knees[..., None]
    how = {"duration": 0.005, "limits": "ignore"}
    named = sl.simulate(model, q, tau={"fl_knee": knees}, **how)
    np.testing.assert_array_equal(named.q, sl.simulate(model, q, tau=full, **how).q)
    steps = rng.normal(size=5)
    full = np.zeros((5, nv))
    full[:, place] = steps[:, None]
    np.testing.assert_array_equal(sl.simulate(model, tau={"fl_knee": steps}, **how).tau[:5], full)


@pytest.mark.parametrize(
    ("tau", "message"),
    [
        ({"joint1": np.ones(7)}, "tau has 7 rows, one for each step; the simulation has 5 steps"),
        ({"joint1": "much"}, "tau['joint1'] has entries of type <U4; expected one number for all steps, an array "
                             "(steps,) for each step, or (runs, 1) for each run"),
        ({"joint1": np.ones(5), "joint2": np.ones(4)},
         "tau: the joints have torques for different steps or runs: 'joint1' (5,), 'joint2' (4,). Give each one"),
    ],
)  # fmt: skip
def test_torques_by_name_that_do_not_fit_are_refused(tau, message):
    with says(InputError, message):
        sl.simulate(zoo.puma(), duration=0.005, tau=tau)


def test_torques_of_a_ball_joint_are_three_numbers():
    model = zoo.star(2)
    name = next(j.name for j in model.joints if j.kind.nv == 3)
    with says(InputError, f"tau[{name!r}] has shape (2,); expected 3 numbers for all steps, an array (steps, 3)"):
        sl.simulate(model, duration=0.005, tau={name: [1.0, 2.0]})


def test_a_model_in_which_nothing_moves_simulates_and_has_all_quantities():
    model = sl.Builder("table").body("top", mass=1.0, inertia=(1.0, 1.0, 1.0)).fixed("legs", "world", "top").build()
    run = sl.simulate(model, duration=0.01)
    assert run.outcome.reason == "finished"
    assert run.q.shape == (11, 0)
    assert run["top"].position.shape == (11, 3)
    assert run.audit().well


@pytest.mark.slow
def test_a_run_starts_beyond_limits_where_loops_close_nowhere_within_them():
    """With the warning of a start beyond a limit; the limits exclude each other by the model's own numbers."""
    model = zoo.four_bar().with_joint("coupler_hinge", limits=(3.0, 3.1)).with_joint("rocker_hinge", limits=(3.0, 3.1))
    with pytest.warns(sl.SpanloopWarning, match="its lower limit 3"):
        run = sl.simulate(model, duration=0.01)
    assert run.outcome.finished
    assert run.residual < 1e-12
