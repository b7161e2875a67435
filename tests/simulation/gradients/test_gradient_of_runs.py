"""Gradients of runs: closed forms, differences in extended precision, segments, batches, refusals."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from extended import evaluate
from short_runs import sample, step

import spanloop as sl
from spanloop.compiler.lower import unrolled
from spanloop.errors import InputError, Reason, StateError, StateWarning, UnsupportedError
from spanloop.simulation.gradients.adjoint_run import AdjointRun
from spanloop.simulation.gradients.differentiated_run import DifferentiatedRun
from spanloop.simulation.gradients.objective import Objective

INTEGRATORS = ("rk4", "euler", "midpoint", "implicit")
BRICK = (0.1, 0.0, 0.0, 0.2, 0.0, 0.25)


def slider(stiffness: float = 0.0, damping: float = 0.0) -> sl.Model:
    b = sl.Builder("slider").body("mass", 2.0, inertia=BRICK)
    return b.prismatic("rail", "world", "mass", "z", stiffness=stiffness, damping=damping).build()


def ball() -> sl.Model:
    return sl.Builder("ball").body("stone", 2.0, inertia=BRICK).free("base", "world", "stone").build()


# ---- closed forms


def test_free_fall_by_initial_state_force_mass_and_gravity():
    T, force, m = 0.5, 3.0, 2.0
    model, options = slider(), {"duration": T, "step": 0.05, "tau": [force]}
    found = sl.gradient(model, lambda q, v: q[0], [0.3], [0.1], wrt=("q", "v", "tau", "parameters"), **options)
    a = force / m + model.gravity[2]
    assert found.value == pytest.approx(0.3 + 0.1 * T + 0.5 * a * T**2, abs=1e-14)
    assert found.q == pytest.approx([1.0], abs=1e-14)
    assert found.v == pytest.approx([T], abs=1e-14)
    assert found.tau == pytest.approx([T**2 / (2.0 * m)], abs=1e-14)
    assert found.parameter("gravity.z") == pytest.approx(T**2 / 2.0, abs=1e-14)
    assert found.parameter("mass.mass") == pytest.approx(-force * T**2 / (2.0 * m**2), abs=1e-14)


def test_force_of_each_step_in_free_fall():
    steps, T, m = 10, 0.5, 2.0
    h = T / steps
    found = sl.gradient(slider(), lambda q, v: q[0], [0.0], duration=T, step=h, tau=np.ones((steps, 1)), wrt="tau")
    left = T - h * (np.arange(steps) + 1.0)
    assert found.tau[:, 0] == pytest.approx((h**2 / 2.0 + h * left) / m, abs=1e-14)


def test_a_linear_system_against_the_exponential_of_its_matrix():
    k, d, m, T = 30.0, 1.5, 2.0, 0.4
    A = np.array([[0.0, 1.0], [-k / m, -d / m]])
    values, vectors = np.linalg.eig(A)
    exponential = (vectors @ np.diag(np.exp(values * T)) @ np.linalg.inv(vectors)).real
    for row, loss in enumerate((lambda q, v: q[0], lambda q, v: v[0])):
        found = sl.gradient(slider(k, d), loss, [0.3], [0.1], duration=T, step=1e-3, integrator="rk4")
        assert np.concatenate([found.q, found.v]) == pytest.approx(exponential[row], abs=1e-11)


def test_a_pendulum_at_small_angles():
    model, T = sl.zoo.pendulum(), 0.7
    robot = sl.Dynamics(model)
    square = -robot.forward_dynamics([1e-6], [0.0], [0.0])[0] / 1e-6
    w = np.sqrt(square)
    found = sl.gradient(model, lambda q, v: q[0], [0.0], duration=T, integrator="rk4")
    assert found.q == pytest.approx([np.cos(w * T)], abs=1e-9)
    assert found.v == pytest.approx([np.sin(w * T) / w], abs=1e-9)


def test_an_integral_is_the_trapezoidal_sum_over_the_steps():
    T, steps = 0.5, 10
    h = T / steps
    u = np.linspace(1.0, 2.0, steps)[:, None]

    def running(t, q, v, u):
        return t * q[0] + u[0] ** 2

    found = sl.gradient(slider(), None, [0.0], duration=T, step=h, tau=u, running=running, wrt=("q", "tau"))
    run = sl.simulate(slider(), [0.0], duration=T, step=h, tau=u)
    ends = run.times * run.q[:, 0]
    assert found.value == pytest.approx(h * (0.5 * (ends[:-1] + ends[1:]).sum() + (u**2).sum()), rel=1e-14)
    assert found.q == pytest.approx([0.5 * T**2], rel=1e-14)
    later = [sum(h * t * (h / 2.0 + (t - (k + 1) * h)) * h / 2.0 for t in run.times[k + 1 :]) for k in range(steps)]
    last = np.array([h / 2.0 * T * (h / 2.0 + T - (k + 1) * h) * h / 2.0 for k in range(steps)])  # half a weight
    assert found.tau[:, 0] == pytest.approx(2.0 * h * u[:, 0] + np.array(later) - last, rel=1e-12)


# ---- differences in extended precision


def gradient_in_differences(model, q, v, moves, *, times, step_inputs=None, **others):
    """Directional derivatives of 0.7 q·q + 0.3 v·v at the end along moves of {"q", "v", "u", "p"}, sixth order."""
    run = DifferentiatedRun.of("gradient", model, q, v, wrt=("q", "v"), sample=None, tau=step_inputs, **times, **others)
    schedule, problem = run.schedule(), run.problem
    e = 1e-5
    n = 6 * len(moves)
    given = {name: np.repeat(problem.state(run.layout)[:, place], n, 0) for name, place in run.layout.places.items()}
    given |= {
        name: np.repeat(x, n, axis=0) for name, x in problem.constant_rows().items() if name in schedule.constants
    }
    given["u"] = np.repeat(np.broadcast_to(run.inputs, (1, run.grid.steps, run.inputs.shape[2])), n, axis=0)
    given = {name: x.astype(np.longdouble) for name, x in given.items()}
    shares = np.tile([1, -1, 2, -2, 3, -3], len(moves)) * np.longdouble(e)
    rates = np.zeros((n, model.nv), np.longdouble)
    for i, share in enumerate(shares):
        for name, direction in moves[i // 6].items():
            (rates if name == "q" else given[name])[i] += share * direction
    sizes = (("q", model.nq), ("d", model.nv))
    plus = unrolled("plus", sizes, (0,), lambda x: (problem.system.moved(x["q"], x["d"]), (), ()))
    given["q"] = evaluate(plus, given["q"], rates)
    rows, given["h"] = given["u"], np.full((n, 1), run.grid.h, np.longdouble)
    end = given
    for k in range(run.grid.steps):
        end = step(schedule, {**end, "u": rows[:, k], "t": k * given["h"]})
    end = sample(schedule, {**end, "t": run.grid.steps * given["h"]})
    x, y = end["q"], end[run.velocity]
    values = 0.7 * (x * x).sum(axis=1) + 0.3 * (y * y).sum(axis=1)
    a, b, c = (values[2 * k :: 6] - values[2 * k + 1 :: 6] for k in range(3))
    return ((45 * a - 9 * b + c) / (60 * np.longdouble(e))).astype(float)


def loss(q, v):
    return 0.7 * (q @ q) + 0.3 * (v @ v)


OTHERS = dict.fromkeys(("method", "controller", "inputs", "forces", "events", "parameters")) | {
    "closures": "project", "limits": "ignore", "contacts": "steps", "start": 0.0,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_trees_and_quaternions_against_differences(integrator):
    rng = np.random.default_rng(3)
    model = ball()
    q = sl.Dynamics(model).integrate(model.neutral(), rng.normal(size=model.nv))
    v, u = rng.normal(size=model.nv), rng.normal(size=(5, model.nv))
    times = {"duration": 0.05, "step": 0.01}
    moves = [{name: rng.normal(size=shape)} for name, shape in (("q", 6), ("v", 6), ("u", (5, 6)))]
    expected = gradient_in_differences(model, q, v, moves, times=times, step_inputs=u, integrator=integrator, **OTHERS)
    found = sl.gradient(model, loss, q, v, tau=u, wrt=("q", "v", "tau"), integrator=integrator, **times)
    got = [found.q @ moves[0]["q"], found.v @ moves[1]["v"], (found.tau * moves[2]["u"]).sum()]
    assert got == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_closed_loops_against_differences_along_closed_motions(integrator):
    rng = np.random.default_rng(4)
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    robot = sl.Dynamics(model)
    v = robot.complete_velocity(q, {model.joints[0].name: 1.3})
    u = rng.normal(size=(5, model.nv))
    times = {"duration": 0.05, "step": 0.01}
    along = robot.complete_velocity(q, {model.joints[0].name: 1.0})
    e = 1e-5
    closed = []
    for s in (e, -e):
        there = robot.assemble(robot.integrate(q, s * along), fixed=[model.joints[0].name])
        closed.append(robot.complete_velocity(there, {model.joints[0].name: 1.3}))
    turned = (closed[0] - closed[1]) / (2.0 * e)  # how v moves with q, so that the loops stay closed
    moves = [{"q": along, "v": turned}, {"v": along}, {"u": rng.normal(size=(5, model.nv))}]
    expected = gradient_in_differences(model, q, v, moves, times=times, step_inputs=u, integrator=integrator, **OTHERS)
    found = sl.gradient(
        model, loss, q, v, tau=u, wrt=("q", "v", "tau"), limits="ignore", integrator=integrator, **times
    )
    got = [found.q @ along + found.v @ turned, found.v @ along, (found.tau * moves[2]["u"]).sum()]
    assert got == pytest.approx(expected, rel=1e-7)


@pytest.mark.slow
def test_what_would_open_loops_is_removed_as_the_start_of_a_run_removes_it():
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    v, e = np.zeros(3), 1e-6
    times = {"duration": 0.05, "step": 0.01, "limits": "ignore"}
    found = sl.gradient(model, loss, q, v, **times)
    for direction in np.eye(3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sl.SpanloopWarning)
            runs = [sl.simulate(model, q + s * direction, v, **times) for s in (e, -e)]
        ends = [loss(run.q[-1], run.v[-1]) for run in runs]
        assert found.q @ direction == pytest.approx((ends[0] - ends[1]) / (2.0 * e), abs=1e-8)


@pytest.mark.slow
def test_lengths_of_links_move_the_start_with_the_loops():
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    times = {"duration": 0.05, "step": 0.01, "limits": "ignore"}
    found = sl.gradient(model, loss, q, wrt="parameters", **times)
    values, e = model.parameters(), 1e-6
    name = next(n for n in values.names if n.endswith("position.x") and abs(values.values[values.index(n)]) > 0.1)
    ends = []
    for s in (e, -e):
        p = values.values.copy()
        p[values.index(name)] += s
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sl.SpanloopWarning)
            run = sl.simulate(model, q, parameters=p, **times)
        ends.append(loss(run.q[-1], run.v[-1]))
    assert found.parameter(name) == pytest.approx((ends[0] - ends[1]) / (2.0 * e), rel=1e-7)


def test_gains_of_a_controller_are_inputs_that_all_steps_share():
    model, gains, e = sl.zoo.pendulum(), np.array([3.0, 0.5]), 1e-5

    def control(t, q, v, u):
        return -u[0] * (q - 0.2) - u[1] * v

    def end(u):
        run = sl.simulate(model, [1.0], duration=0.2, step=0.01, controller=control, inputs=u)
        return loss(run.q[-1], run.v[-1])

    found = sl.gradient(model, loss, [1.0], duration=0.2, step=0.01, controller=control, inputs=gains, wrt="inputs")
    expected = [(end(gains + d) - end(gains - d)) / (2.0 * e) for d in e * np.eye(2)]
    assert found.inputs.shape == (2,)
    assert found.inputs == pytest.approx(expected, rel=1e-7)


class Integral(sl.control.Controller):
    inputs, memory = 0, 1

    def torques(self, t, q, v, u, z):
        return 5.0 * (0.3 - q) + 9.0 * z - v

    def update(self, t, h, q, v, u, z):
        return z + h * (0.3 - q)


def test_the_memory_of_a_controller_carries_derivatives():
    options, e = {"duration": 0.2, "step": 0.01, "controller": Integral()}, 1e-5
    found = sl.gradient(sl.zoo.pendulum(), loss, [1.0], **options)
    ends = [sl.simulate(sl.zoo.pendulum(), [1.0 + s], **options) for s in (e, -e)]
    values = [loss(run.q[-1], run.v[-1]) for run in ends]
    assert found.q == pytest.approx([(values[0] - values[1]) / (2.0 * e)], rel=1e-8)


# ---- weights of samples


def test_weights_of_samples_are_the_derivatives_of_another_library():
    model, options = sl.zoo.pendulum(), {"duration": 0.2, "step": 0.01}
    run = sl.simulate(model, [1.0], **options)
    weights = {"q": np.zeros_like(run.q), "v": np.zeros_like(run.v)}
    weights["q"][-1], weights["v"][-1] = 1.4 * run.q[-1], 0.6 * run.v[-1]
    found, expected = sl.gradient(model, weights, [1.0], **options), sl.gradient(model, loss, [1.0], **options)
    assert found.q == pytest.approx(expected.q, rel=1e-13)
    assert found.v == pytest.approx(expected.v, rel=1e-13)


def test_weights_of_samples_that_are_kept_less_often():
    model, options = slider(), {"duration": 0.4, "step": 0.01, "sample": 0.1}
    run = sl.simulate(model, [0.0], **options)
    found = sl.gradient(model, {"q": np.ones_like(run.q)}, [0.0], **options)
    assert found.value == pytest.approx(run.q.sum(), rel=1e-13)
    assert found.v == pytest.approx([run.times.sum()], rel=1e-13)


def test_weights_of_another_shape_are_refused():
    with pytest.raises(InputError, match=r"loss\['q'\] has shape \(3, 1\) of float64; expected \(11, 1\)"):
        sl.gradient(slider(), {"q": np.ones((3, 1))}, [0.0], duration=0.1, step=0.01)
    with pytest.raises(InputError, match="loss has weights of 'w'; there are 'q', 'v'"):
        sl.gradient(slider(), {"w": np.ones((11, 1))}, [0.0], duration=0.1, step=0.01)


# ---- segments, batches, dtypes


def of(model, q, most, **options):
    others = OTHERS | {"tau": None, "integrator": "rk4", "sample": None} | options
    run = DifferentiatedRun.of("gradient", model, q, None, **others)
    objective = Objective(run, loss, lambda t, q, v, u: t * (q @ q) + u @ u)
    return objective, AdjointRun(run, objective, most)


@pytest.mark.slow
@pytest.mark.parametrize("model", [sl.zoo.pendulum(), sl.zoo.four_bar()], ids=lambda m: m.name)
def test_a_run_in_segments_has_the_same_bits(model):
    q = [1.0] if model.nq == 1 else sl.zoo.four_bar_start()
    tau = np.random.default_rng(5).normal(size=(50, model.nv))
    options = {"duration": 0.1, "step": 0.002, "tau": tau, "wrt": ("q", "v", "tau", "parameters")}
    objectives, backs = zip(*(of(model, q, most, **options) for most in (10**9, 0)), strict=True)
    whole, parts = (back.cotangents() for back in backs)
    assert [back._length for back in backs] == [50, 8]
    assert whole.keys() == parts.keys()
    assert all(np.array_equal(whole[name], parts[name]) for name in whole)
    assert np.array_equal(objectives[0].value, objectives[1].value)
    assert np.array_equal(objectives[0].u, objectives[1].u)


@pytest.mark.slow
def test_a_long_run_needs_little_memory():
    options = {"duration": 100.0, "step": 1e-3, "wrt": ("q", "v")}
    _, back = of(sl.zoo.pendulum(), np.ones((4, 1)), 0, **options)
    of(sl.zoo.pendulum(), np.ones((4, 1)), 0, **{**options, "duration": 0.1})[1].cotangents()  # compiled
    tracemalloc.start()
    found = back.cotangents()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(found["q"]).all()
    assert peak < 3_000_000  # recorded whole, the run has 29 MB


def test_runs_of_a_batch_have_derivatives_of_their_own():
    model, tau = sl.zoo.pendulum(), np.linspace(0.0, 1.0, 10)[:, None]
    q = np.linspace(0.5, 1.0, 6).reshape(2, 3, 1)
    options = {"duration": 0.1, "step": 0.01, "tau": tau, "wrt": ("q", "tau", "parameters")}
    found = sl.gradient(model, loss, q, **options)
    one = sl.gradient(model, loss, q[1, 2], **options)
    assert found.value.shape == (2, 3)
    assert found.q.shape == (2, 3, 1)
    assert found.tau.shape == (2, 3, 10, 1)
    assert found.parameters.shape == (2, 3, len(model.parameters()))
    assert found.v is None
    for name in options["wrt"]:
        assert getattr(found, name)[1, 2] == pytest.approx(getattr(one, name), rel=1e-13)


@pytest.mark.slow
def test_single_precision_and_threads():
    model, q = sl.zoo.puma(), 0.3 * np.ones((8, 6))
    chosen = sl.Integrator("rk4", dtype="float32", threads=2)
    options = {"duration": 0.1, "step": 0.01, "limits": "ignore"}
    found = sl.gradient(model, loss, q, integrator=chosen, **options)
    expected = sl.gradient(model, loss, q, integrator="rk4", **options)
    assert found.q.dtype == np.float32
    assert np.abs(found.q - expected.q).max() < 1e-5 * np.abs(expected.q).max()


@pytest.mark.parametrize("shape", [(1,), (1, 1), (10, 1)])
def test_a_derivative_by_torques_has_their_shape(shape):
    found = sl.gradient(slider(), loss, [0.1], duration=0.1, step=0.01, tau=np.ones(shape), wrt="tau")
    assert found.tau.shape == shape


# ---- refusals


REFUSED = {
    "callback": ({"controller": sl.control.callback(lambda t, q, v: -v)}, "a callback is called by Python"),
    "adaptive": ({"integrator": "DOP853"}, "'DOP853' chooses its steps"),
    "accuracy": ({"integrator": sl.Integrator("rk4", accuracy=1e-6)}, "Give step="),
    "checkpoint": ({"integrator": sl.Integrator("rk4", checkpoint="x")}, "kept in memory"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_runs_without_derivatives_are_refused(case):
    options, words = REFUSED[case]
    with pytest.raises(UnsupportedError, match=words):
        sl.gradient(slider(), loss, [0.1], duration=0.1, **options)


def bounded() -> sl.Model:
    """A mass on a vertical rail that ends at z = -0.02."""
    b = sl.Builder("bounded").body("mass", 1.0, inertia=BRICK)
    return b.prismatic("rail", "world", "mass", "z", limits=(-0.02, 9.0)).build()


def test_a_run_that_ends_early_says_where():
    with pytest.raises(StateError, match=r"gradient: the run ended before .*lower limit, -0.02, at t = 0\.06"):
        sl.gradient(bounded(), loss, [0.0], duration=0.1)


def test_a_run_of_a_batch_that_ends_early_is_a_row_of_nan():
    with pytest.warns(StateWarning, match="the run ended before its duration"):
        found = sl.gradient(bounded(), loss, [[5.0], [0.0]], duration=0.1)
    assert np.isfinite(found.value[0])
    assert np.isnan(found.value[1])
    assert np.isnan(found.q[1]).all()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda q, v: np.sqrt(q[0]), "the loss is 0 at t = 0.1 s, but has no finite derivative there"),
        (lambda q, v: 1.0 / q[0], "the loss is not finite at t = 0.1 s. Keep what it divides by away from 0"),
        (lambda q, v: np.sqrt(q[0] - 1.0), r"and what is under a root positive, as with np.maximum\(x, 1e-9\)"),
    ],
)
@pytest.mark.filterwarnings("error")  # NumPy's: the error says it better
def test_a_loss_without_a_derivative_is_refused(function, words):
    b = sl.Builder("still", gravity=(0.0, 0.0, 0.0)).body("mass", 1.0, inertia=BRICK)
    still = b.prismatic("rail", "world", "mass", "z").build()
    with pytest.raises(StateError, match=words) as error:
        sl.gradient(still, function, [0.0], duration=0.1)
    assert error.value.reason is Reason.NOT_FINITE


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"wrt": "qq"}, "wrt holds 'qq'; did you mean"),
        ({"wrt": ("q", "mass.maas")}, "did you mean 'mass.mass'"),
        ({"wrt": "link1.mas"}, "wrt holds 'link1.mas'; did you mean 'mass.mass'"),
        ({"wrt": ("q", "q", "v")}, "wrt names 'q' twice"),
        ({"wrt": ("mass.mass", "v", "mass.mass")}, "wrt names 'mass.mass' twice"),
        ({"wrt": ("mass.mass", "parameters")}, "wrt names 'mass.mass' and 'parameters', which holds it"),
        ({"wrt": ()}, "wrt is empty"),
        ({"wrt": "inputs"}, "there is no controller; torques are 'tau'"),
        ({"wrt": "tau", "controller": lambda t, q, v: -v}, "a controller acts"),
        ({"loss": None}, "neither loss nor running"),
        ({"loss": 3.0}, "loss is a float; expected a function"),
        ({"loss": lambda q: q[0]}, r"the loss takes 1 arguments; expected \(t, q, v\) or \(q, v\)"),
        ({"loss": lambda q, v: q}, None),
        ({"loss": lambda q, v: "far"}, "the loss returned a str; expected one number"),
        ({"loss": lambda q, v: np.append(q, v)}, "the loss returned an array of 2 numbers; expected one number"),
        ({"loss": lambda q, v: [q[0], v[0]]}, "the loss returned a list of 2; expected one number"),
        ({"loss": lambda q, v: q[0] > 1.0}, "the loss returned a condition; expected one number"),
        ({"running": lambda t: t}, "running takes 1 arguments"),
        ({"tau": np.zeros((3, 1))}, "tau has 3 rows"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(given, words):
    options = {"loss": loss, "q": [0.1], "duration": 0.1, "step": 0.01} | given
    model, function = slider(), options.pop("loss")
    if words is None:
        assert sl.gradient(model, function, **options).q == pytest.approx([1.0])
        return
    with pytest.raises(InputError, match=words):
        sl.gradient(model, function, **options)


def test_contacts_are_refused():
    b = sl.Builder("drop").body("stone", 1.0, inertia=BRICK).free("base", "world", "stone")
    model = b.contact("touch", ("stone", sl.contacts.Sphere(0.1))).build()
    with pytest.raises(UnsupportedError, match="contacts='ignore' leaves them out"):
        sl.gradient(model, loss, duration=0.1)
