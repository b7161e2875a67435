"""Controllers that are compiled into a motion: closed forms, exact tracking, stability, and sentences."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, UnsupportedError
from spanloop.math.symmetric import solve
from spanloop.simulation import control

START = np.array([0.1, -0.5, 0.4, 0.2, 0.6, -0.1])


def rod() -> sl.Model:
    """A pendulum without gravity: a rod of inertia 1/3 kg m² on a hinge."""
    return sl.zoo.pendulum().with_gravity((0.0, 0.0, 0.0))


# ---- functions of the catalog on scalars

QUESTIONS = [
    ("forward_dynamics", ("q", "v", "tau"), {}),
    ("inverse_dynamics", ("q", "v", "a"), {}),
    ("mass_matrix", ("q",), {}),
    ("mass_matrix_inverse", ("q",), {}),
    ("bias", ("q", "v"), {}),
    ("gravity_torques", ("q",), {}),
    ("energy", ("q", "v"), {}),
    ("center_of_mass", ("q",), {}),
    ("pose", ("q",), {"frame": "tip"}),
    ("jacobian", ("q",), {"frame": "tip", "expressed_in": "tip"}),
    ("jacobian_bias", ("q", "v"), {"frame": "tip"}),
]


@pytest.mark.parametrize(("name", "inputs", "options"), QUESTIONS, ids=[q[0] for q in QUESTIONS])
def test_a_function_on_scalars_is_its_kernel(name, inputs, options):
    model = sl.zoo.pendulum(3)
    q, v = model.random_state(1)
    given = {"q": q, "v": v, "a": v[::-1], "tau": 2.0 * v}
    found = sl.on_scalars(model, name, **options)(*(given[n].tolist() for n in inputs))
    np.testing.assert_allclose(found, sl.compile(model, name, **options)(*(given[n] for n in inputs)), atol=1e-12)


def test_a_function_of_closed_loops_on_scalars_is_its_kernel():
    model = sl.zoo.stewart()
    q = sl.zoo.stewart_start()
    zero = np.zeros(model.nv)
    for name, given in (("closure_error", (q,)), ("closure_jacobian", (q,)), ("forward_dynamics", (q, zero, zero))):
        found = sl.on_scalars(model, name)(*(x.tolist() for x in given))
        np.testing.assert_allclose(found, sl.compile(model, name)(*given), atol=1e-10)


def test_a_singular_position_on_scalars_is_nan():
    """A parallelogram that lies on one line."""
    model = sl.zoo.four_bar(ground=2.0, crank=1.0, coupler=2.0, rocker=1.0)
    found = sl.on_scalars(model, "forward_dynamics")([0.0] * 3, [0.0] * 3, [0.0] * 3)
    assert np.isnan(found).all()


def test_scalars_are_counted():
    with says(InputError, "mass_matrix on scalars: q has 2 numbers; expected 1"):
        sl.on_scalars(sl.zoo.pendulum(), "mass_matrix")([0.0, 0.0])
    with says(InputError, "bias on scalars: 1 arguments are given; expected (q, v)"):
        sl.on_scalars(sl.zoo.pendulum(), "bias")([0.0])
    with says(InputError, "there is no function 'bis'; did you mean 'bias'?"):
        sl.on_scalars(sl.zoo.pendulum(), "bis")


def test_small_systems_are_solved():
    rng = np.random.default_rng(3)
    for n in (1, 2, 6):
        x = rng.normal(size=(n, n))
        matrix, right = x @ x.T + np.eye(n), rng.normal(size=n)
        np.testing.assert_allclose(solve(matrix.tolist(), right.tolist()), np.linalg.solve(matrix, right), rtol=1e-10)


# ---- proportional and derivative


def test_pd_on_a_rod_is_the_damped_oscillator():
    """I q'' = kp (x − q) − kd q'; at 1 ms the method errs by 1e-12 of the swing."""
    kp, kd, aim, inertia = 20.0, 0.8, 0.4, 1.0 / 3.0
    run = sl.simulate(rod(), duration=2.0, controller=control.pd(rod(), kp, kd, {"hinge1": aim}))
    decay, frequency = kd / (2 * inertia), np.sqrt(kp / inertia - (kd / (2 * inertia)) ** 2)
    t = run.times
    swing = np.cos(frequency * t) + decay / frequency * np.sin(frequency * t)
    np.testing.assert_allclose(run["hinge1"].q, aim * (1.0 - np.exp(-decay * t) * swing), atol=1e-11)
    np.testing.assert_allclose(run["hinge1"].tau, kp * (aim - run["hinge1"].q) - kd * run["hinge1"].v, atol=1e-12)


def test_pd_on_a_hanging_rod_is_the_linear_solution_at_small_angles():
    """Gravity adds m g l/2 to the stiffness; what sin q leaves out of it is q³/6, below 2e-10 rad s⁻² at 1e-3 rad."""
    model, kp, inertia = sl.zoo.pendulum(), 3.0, 1.0 / 3.0
    run = sl.simulate(model, [1e-3], duration=3.0, controller=control.pd(model, kp, 0.0, {"hinge1": 0.0}))
    frequency = np.sqrt((kp + 9.81 / 2) / inertia)
    np.testing.assert_allclose(run["hinge1"].q, 1e-3 * np.cos(frequency * run.times), atol=3e-9)


def test_gravity_compensation_holds_an_arm_where_it_is():
    model = sl.zoo.puma()
    run = sl.simulate(model, START, duration=0.2, controller=control.gravity(model))
    assert np.abs(run.q - START).max() < 1e-12


def test_pd_holds_a_ball_joint_at_an_orientation():
    model = sl.zoo.chain(1, "spherical").with_gravity((0.0, 0.0, 0.0))
    aim, _ = model.random_state(4)
    run = sl.simulate(model, duration=3.0, controller=control.pd(model, 60.0, 6.0, aim, step=1e-3))
    turn = sl.Dynamics(model).difference(run.q[-1], aim)
    assert np.abs(turn).max() < 1e-6


def test_gains_and_targets_by_name_leave_other_joints_alone():
    model = sl.zoo.pendulum(2)
    run = sl.simulate(
        model, [0.3, 0.2], duration=0.1, controller=control.pd(model, {"hinge2": 5.0}, 0.5, {"hinge2": 0.1})
    )
    assert not run["hinge1"].tau.any()
    np.testing.assert_allclose(run["hinge2"].tau, 5.0 * (0.1 - run["hinge2"].q) - 0.5 * run["hinge2"].v, atol=1e-12)


def test_targets_from_inputs_are_those_of_each_step():
    model = sl.zoo.pendulum(2)
    aims = np.random.default_rng(0).normal(size=(100, 2))
    held = control.pd(model, 5.0, 0.5, control.given(2))
    run = sl.simulate(model, duration=0.1, controller=held, inputs=aims)
    np.testing.assert_allclose(run.tau[:-1], 5.0 * (aims - run.q[:-1]) - 0.5 * run.v[:-1], atol=1e-12)
    by_name = control.pd(model, 5.0, 0.5, {"hinge2": control.given(1), "hinge1": control.given(1)})
    np.testing.assert_array_equal(sl.simulate(model, duration=0.1, controller=by_name, inputs=aims).q, run.q)


def test_a_batch_is_its_runs():
    model = sl.zoo.puma()
    rng = np.random.default_rng(5)
    q = START + 0.1 * rng.normal(size=(5, 6))
    law = control.computed_torque(model, control.quintic(START, START + 0.3, 0.1), 100.0, 20.0)
    many = sl.simulate(model, q, duration=0.1, controller=law)
    for k in range(5):
        np.testing.assert_allclose(many.q[k], sl.simulate(model, q[k], duration=0.1, controller=law).q, atol=1e-12)


# ---- linearly implicit


@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_the_implicit_law_is_stable_where_the_explicit_one_is_lost(method):
    """kp = 1e6 N m/rad on a wrist of 1e-3 kg m²: a frequency of 3e4 rad/s, far beyond 2.8 a step of 1 ms."""
    model = sl.zoo.puma()
    aim = START + 0.3
    explicit = sl.simulate(model, START, duration=0.2, integrator=method, controller=control.pd(model, 1e6, 1e4, aim))
    assert explicit.outcome.reason == "not_finite"
    implicit = sl.simulate(
        model, START, duration=0.2, integrator=method, controller=control.pd(model, 1e6, 1e4, aim, step=1e-3)
    )
    assert implicit.outcome.reason == "finished"
    assert np.abs(implicit.q[-1] - aim).max() < 1e-3


def test_the_implicit_law_with_euler_is_the_linearly_implicit_method():
    """(I + h kd + h² kp) (v⁺ − v) = h (kp (x − q − h v) − kd v), on a rod where nothing else acts."""
    kp, kd, aim, inertia, h = 4e5, 30.0, 0.2, 1.0 / 3.0, 1e-3
    run = sl.simulate(
        rod(), [0.1], [1.0], duration=0.05, integrator="euler", controller=control.pd(rod(), kp, kd, [aim], step=h)
    )
    q, v = 0.1, 1.0
    for k in range(51):
        assert run.q[k, 0] == pytest.approx(q, abs=1e-12)
        v += h * (kp * (aim - q - h * v) - kd * v) / (inertia + h * kd + h * h * kp)
        q += h * v


def test_the_implicit_law_of_a_short_step_is_the_explicit_one():
    model = sl.zoo.puma()
    law = (control.pd(model, 50.0, 5.0, START + 0.1, step=s) for s in (None, 1e-9))
    runs = [sl.simulate(model, START, duration=0.05, step=1e-4, controller=c) for c in law]
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-6)


def test_the_implicit_law_holds_a_closed_loop():
    model = sl.zoo.five_bar()
    q = sl.zoo.five_bar_start()
    aim = {name: float(q[model.q_slice(name)][0]) + 0.05 for name in model.actuated}
    run = sl.simulate(model, q, duration=0.3, limits="ignore", controller=control.pd(model, 1e5, 1e3, aim, step=1e-3))
    assert run.outcome.reason == "finished"
    assert max(abs(run[name].q[-1] - x) for name, x in aim.items()) < 1e-3
    assert run.closure_residual.max() < 1e-10


# ---- computed torque and operational space


@pytest.mark.parametrize("active", [None, [], ["second"]])
def test_the_implicit_law_knows_which_switchable_loops_are_closed(active):
    """Beside the model without the loops that are open."""
    model = two_switchable_loops()
    rest = sl.Dynamics(model).assemble([0.3, 0.2, 0.4])
    law = control.pd(model, 200.0, 20.0, {"hinge1": 0.4}, step=1e-3)
    run = sl.simulate(model, rest, duration=0.05, controller=law, closures=sl.Closures(active_loops=active))
    opened = model.remove([x.name for x in model.loops if active is not None and x.name not in active])
    law = control.pd(opened, 200.0, 20.0, {"hinge1": 0.4}, step=1e-3)
    alone = sl.simulate(opened, rest, duration=0.05, controller=law)
    np.testing.assert_allclose(run.q, alone.q, atol=1e-10)
    np.testing.assert_allclose(run.tau, alone.tau, atol=1e-7)


def two_switchable_loops() -> sl.Model:
    """A chain of three rods of which two can be tied to the world at given distances."""
    model = sl.zoo.pendulum(3).with_frame("peg", "world", (0.4, 0.0, -0.5))
    model = model.with_loop("peg", "rod3", sl.joints.Distance(1.2), name="first", switchable=True)
    return model.with_loop("world", "tip", sl.joints.Distance(2.6), name="second", switchable=True)


@pytest.mark.parametrize("shape", [control.cycloidal, control.quintic])
def test_computed_torque_tracks_a_path_to_the_integrators_error(shape):
    model = sl.zoo.puma()
    path = shape(START, START + 0.5, 0.8)
    run = sl.simulate(model, START, duration=1.0, controller=control.computed_torque(model, path, 400.0, 40.0))
    wanted = np.array([path(t)[0] for t in run.times])
    assert np.abs(run.q - wanted).max() < 1e-8
    assert np.abs(run.q[-1] - START - 0.5).max() < 1e-10


@pytest.mark.slow
def test_errors_under_computed_torque_decay_as_the_gains_say():
    """e'' + 20 e' + 100 e = 0 from e(0) = 0.1: e = 0.1 (1 + 10 t) exp(−10 t), at every joint alike."""
    model = sl.zoo.puma()
    run = sl.simulate(model, START - 0.1, duration=0.5, controller=control.computed_torque(model, START, 100.0, 20.0))
    decay = 0.1 * (1.0 + 10.0 * run.times) * np.exp(-10.0 * run.times)
    np.testing.assert_allclose(START - run.q, np.repeat(decay[:, None], 6, axis=1), atol=1e-8)


@pytest.mark.parametrize("make", [control.cycloidal, control.quintic])
def test_a_paths_rates_are_its_derivatives(make):
    path, h = make([0.0, 1.0], [2.0, -1.0], 0.7, begin=0.2), 1e-5
    for t in (-0.1, 0.3, 0.5, 0.8, 1.2):
        before, now, after = (np.array(path(t + s)) for s in (-h, 0.0, h))
        np.testing.assert_allclose(now[1:], (after - before)[:2] / (2 * h), atol=1e-6)


def test_sines_and_turnings_have_their_derivatives():
    path, h = control.sine([0.5], [2.0], 1.5, 0.3), 1e-5
    turn = control.turning((0.1, 0.2, 0.3), (1.0, 2.0, 2.0), path)
    for t in (0.0, 0.4):
        before, now, after = (np.array(path(t + s)) for s in (-h, 0.0, h))
        np.testing.assert_allclose(now[1:], (after - before)[:2] / (2 * h), atol=1e-4)
        (a, *_), (r, omega, alpha), (b, w, _) = turn(t - h), turn(t), turn(t + h)
        spin = (np.array(b) - np.array(a)) / (2 * h) @ np.array(r).T
        np.testing.assert_allclose((spin[2, 1], spin[0, 2], spin[1, 0]), omega, atol=1e-4)
        np.testing.assert_allclose((np.array(w) - np.array(turn(t - h)[1])) / (2 * h), alpha, atol=1e-3)


@pytest.mark.slow
def test_a_tool_follows_a_line_and_keeps_its_orientation():
    model = sl.zoo.puma()
    pose = sl.Dynamics(model).pose(START, "tool")
    path = control.quintic(pose[:3, 3], pose[:3, 3] + [0.05, -0.05, 0.05], 0.5)
    law = control.operational_space(model, "tool", path, 400.0, 40.0, orientation=pose[:3, :3])
    run = sl.simulate(model, START, duration=0.6, controller=law)
    wanted = np.array([path(t)[0] for t in run.times])
    assert np.abs(run["tool"].position - wanted).max() < 1e-9
    assert np.abs(run["tool"].pose[:, :3, :3] - pose[:3, :3]).max() < 1e-9


@pytest.mark.slow
def test_a_tool_turns_as_it_is_told():
    model = sl.zoo.puma()
    pose = sl.Dynamics(model).pose(START, "tool")
    turn = control.turning(pose[:3, :3], (0.0, 0.0, 1.0), control.quintic([0.0], [0.3], 0.4))
    law = control.operational_space(model, "tool", pose[:3, 3], 400.0, 40.0, orientation=turn)
    run = sl.simulate(model, START, duration=0.5, controller=law)
    np.testing.assert_allclose(run["tool"].pose[-1, :3, :3], np.array(turn(0.5)[0]), atol=1e-9)


def test_a_redundant_arm_moves_its_tool_by_the_path_and_the_rest_to_the_posture():
    """Three directions of a six-joint arm: errors of the tool decay as the gains say, whatever the posture does."""
    model = sl.zoo.puma()
    start = sl.Dynamics(model).pose(START, "tool")[:3, 3]
    law = control.operational_space(
        model, "tool", start + [0.02, 0.0, 0.0], 100.0, 20.0, posture=START + 0.2, posture_gains=(25.0, 10.0)
    )
    run = sl.simulate(model, START, duration=0.6, controller=law)
    decay = 0.02 * (1.0 + 10.0 * run.times) * np.exp(-10.0 * run.times)
    np.testing.assert_allclose(start[0] + 0.02 - run["tool"].position[:, 0], decay, atol=1e-8)
    np.testing.assert_allclose(run["tool"].position[:, 1:], np.tile(start[1:], (601, 1)), atol=1e-8)
    assert np.linalg.norm(run.q[-1] - START) > 0.05


def test_a_planar_arm_is_controlled_in_its_plane():
    model = sl.zoo.pendulum(2)
    q = np.array([0.5, 1.0])
    x, _, z = sl.Dynamics(model).pose(q, "tip")[:3, 3]
    law = control.operational_space(model, "tip", control.sine([x, z], [0.1, 0.1], 1.0), 400.0, 40.0, axes="xz")
    run = sl.simulate(model, q, duration=1.5, controller=law)
    wanted = 0.1 * np.sin(2 * np.pi * run.times[-1])
    np.testing.assert_allclose(run["tip"].position[-1, [0, 2]], [x + wanted, z + wanted], atol=1e-6)


@pytest.mark.slow
def test_controllers_add_up():
    model = sl.zoo.puma()
    both = control.together(
        model, control.gravity(model), control.pd(model, 9.0, 3.0, START), lambda t, q, v: {"joint1": 1.0}
    )
    one = control.pd(model, 9.0, 3.0, START, gravity=True)
    runs = [sl.simulate(model, START + 0.1, duration=0.01, controller=c) for c in (both, one)]
    np.testing.assert_allclose(runs[0].tau[0] - runs[1].tau[0], [1.0, 0, 0, 0, 0, 0], atol=1e-12)


def test_other_gains_are_another_kernel():
    """A rollout is kept under what it computes, its constants included."""
    ends = [
        sl.simulate(rod(), duration=0.1, controller=control.pd(rod(), kp, 1.0, [0.5])).q[-1, 0] for kp in (1.0, 2.0)
    ]
    assert ends[1] > 1.5 * ends[0]


def test_controllers_that_cannot_be_added_are_said():
    model = sl.zoo.puma()
    with says(InputError, "controller is a int; expected a function (t, q, v) that returns torques"):
        control.together(model, 3)
    with says(InputError, "together: a function (t, q, v, u) does not say how many inputs it takes"):
        control.together(model, lambda t, q, v, u: u)


# ---- sentences


def test_what_cannot_be_controlled_is_said():
    four_bar, puma, dog = sl.zoo.four_bar(), sl.zoo.puma(), sl.zoo.quadruped().actuate("root")
    with says(InputError, "pd: joint 'rocker_hinge' is not actuated; only actuated joints take targets"):
        control.pd(four_bar, 1.0, 1.0, {"rocker_hinge": 0.0})
    with says(InputError, "kp: joint 'rocker_hinge' is not actuated; only actuated joints take gains"):
        control.pd(four_bar, {"rocker_hinge": 1.0}, 1.0, {"crank_hinge": 0.0})
    with says(UnsupportedError, "computed_torque: joint 'joint1' is driven; computed_torque needs a torque at every"):
        control.computed_torque(puma.drive("joint1"), START, 1.0, 1.0)
    with says(InputError, "computed_torque: joint 'joint2' has no target; every joint needs one"):
        control.computed_torque(puma, {"joint1": 0.0}, 1.0, 1.0)
    with says(InputError, "has no joint 'jont1'; did you mean 'joint1'?"):
        control.pd(puma, 1.0, 1.0, {"jont1": 0.0})
    with says(InputError, "kp is -1.0; must be >= 0"):
        control.pd(puma, -1.0, 1.0, START)
    with says(InputError, "kd is [1.0, 2.0]; expected 6 finite numbers"):
        control.pd(puma, 1.0, [1.0, 2.0], START)
    with says(InputError, "pd: target has 2 numbers; expected nq = 6, or {'joint': target}"):
        control.pd(puma, 1.0, 1.0, [0.0, 0.0])
    with says(InputError, "pd: step is 0 s; must be > 0"):
        control.pd(puma, 1.0, 1.0, START, step=0.0)
    with says(InputError, "operational_space: 6 directions of 'tip' are to be controlled with 2 degrees of freedom"):
        control.operational_space(sl.zoo.pendulum(2), "tip", [0, 0, 0], 1.0, 1.0, orientation=(0, 0, 0))
    with says(InputError, "operational_space: the target has 2 numbers; expected 3, for the axes 'xyz'"):
        control.operational_space(puma, "tool", [0.0, 0.0], 1.0, 1.0)
    with says(InputError, "has no frame or body 'tol'; did you mean 'tool'?"):
        control.operational_space(puma, "tol", [0.0, 0.0, 0.0], 1.0, 1.0)
    with says(InputError, "cycloidal: duration is -1 s; must be > 0"):
        control.cycloidal(0.0, 1.0, -1.0)
    with says(InputError, "quintic: start has 1 numbers and end 2; expected as many"):
        control.quintic(0.0, [1.0, 2.0], 1.0)
    with says(
        UnsupportedError, "joint 'root' is free; a path of its 7 coordinates has no rates of its 6 degrees of freedom"
    ):
        control.pd(dog, 1.0, 1.0, {"root": control.sine(np.zeros(7), np.zeros(7), 1.0)})


def test_a_controller_that_returns_nonsense_is_said():
    model = sl.zoo.pendulum(2)
    with says(InputError, "torques of the controller: 1 numbers were returned; expected 2"):
        sl.simulate(model, duration=0.1, controller=lambda t, q, v: [0.0])
    with says(InputError, "torques of the controller: number 1 is nan; every number must be finite"):
        sl.simulate(model, duration=0.1, controller=lambda t, q, v: [0.0, float("nan")])
    with says(InputError, "the controller takes inputs u, but none are given; pass inputs=array (..., steps, 2)"):
        sl.simulate(model, duration=0.1, controller=control.pd(model, 1.0, 1.0, control.given(2)))
    late = sl.simulate(model, [0.1, 0.0], duration=0.1, controller=lambda t, q, v: [1.0 / (0.05 - t), 0.0])
    assert late.outcome.reason == "not_finite"
    assert late.times[-1] == pytest.approx(0.05, abs=2e-3)


PAGE = Path(__file__).parents[2] / "docs" / "control.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_pages_examples_run(number, capsys):
    exec(compile(BLOCKS[number], f"control.md block {number}", "exec"), {"__name__": "example"})
    assert "nan" not in capsys.readouterr().out
