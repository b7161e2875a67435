"""Functions on JAX arrays: values of the NumPy call, derivatives by JAX's own checks."""

from __future__ import annotations

import ctypes
import os
import pickle
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import mechanisms
import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import DeviceError, InputError, UnsupportedError

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import spanloop.jax as bridge  # noqa: E402
from spanloop.bridges import jax_kernels  # noqa: E402
from spanloop.compiler.render import xla  # noqa: E402
from spanloop.compiler.runtime import machine  # noqa: E402
from spanloop.compiler.runtime.gpu import driver  # noqa: E402

_kept: list = []
STEP = 1e-6  # of central differences: their error is some 1e-9 of values, TOLERANCE is thirty times that
TOLERANCE = 3e-8


@pytest.fixture(autouse=True)
def _double_precision():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def states(model: sl.Model, count: int, seed: int = 1) -> list:
    """Random q, v, tau of a model as arrays (count, n)."""
    pairs = [model.random_state(seed=seed + k) for k in range(count)]
    tau = np.random.default_rng(seed).normal(size=(count, model.nv))
    return [jnp.asarray(np.array(x)) for x in (*zip(*pairs, strict=True), tau)]


def equal(a, b) -> bool:
    return np.array_equal(np.asarray(a), np.asarray(b))


# ---- values


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_have_the_bits_of_the_numpy_call(dtype):
    model = sl.zoo.puma()
    given = [x.astype(dtype) for x in states(model, 21)]
    kernel, f = sl.compile(model, "forward_dynamics", dtype=dtype), bridge.forward_dynamics(model)
    for rows in (slice(None), slice(0, 1), 0):  # a batch, a batch of one, one state
        some = [x[rows] for x in given]
        expected = kernel(*map(np.asarray, some))
        for g in (f, jax.jit(f)):
            assert g(*some).dtype == dtype
            assert equal(g(*some), expected)


@pytest.mark.parametrize(
    ("model", "name", "options"),
    [
        (sl.zoo.four_bar(), "forward_dynamics", {}),
        (sl.zoo.puma(), "inverse_dynamics", {}),
        (sl.zoo.puma(), "mass_matrix", {}),
        (sl.zoo.puma(), "bias", {}),
        (sl.zoo.puma(), "gravity_torques", {}),
        (sl.zoo.puma(), "energy", {}),
        (sl.zoo.puma(), "pose", {"frame": "link6"}),
        (sl.zoo.puma(), "jacobian", {"frame": "link6"}),
        (sl.zoo.chain(60), "forward_dynamics", {}),  # loops over links
    ],
    ids=lambda x: getattr(x, "name", x if isinstance(x, str) else ""),
)
def test_every_named_function_is_that_of_the_numpy_call(model, name, options):
    kernel = sl.compile(model, name, **options)
    given = [jnp.asarray(np.random.default_rng(k).normal(size=(5, n))) for k, (_, n) in enumerate(kernel.inputs)]
    if model.loops:
        given = [jnp.tile(x, (5, 1)) for x in closed(model, sl.zoo.four_bar_start())[1]]
    frame = options.pop("frame", None)
    f = getattr(bridge, name)(model, *([frame] if frame else []))
    assert f.inputs == tuple(n for n, _ in kernel.inputs)
    assert equal(jax.jit(f)(*given), kernel(*map(np.asarray, given)))


def test_batch_axes_broadcast_and_inputs_have_names():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 6)
    kernel = sl.compile(model, "forward_dynamics")
    assert equal(f(q, v[0], tau=tau), kernel(q, v[0], tau))
    given = (q.reshape(2, 3, 6), v[:3], tau[:2, None])
    assert equal(jax.jit(f)(*given), kernel(*map(np.asarray, given)))
    assert f(q[:0], v[:0], tau[:0]).shape == (0, 6)


def test_numpy_arrays_are_taken_in_the_precision_that_jax_has():
    model = sl.zoo.puma()
    q, v, tau = (np.asarray(x) for x in states(model, 2))
    f = bridge.forward_dynamics(model)
    assert f(q, v, tau).dtype == "float64"
    jax.config.update("jax_enable_x64", False)
    expected = sl.compile(model, "forward_dynamics", dtype="float32")(*(x.astype("float32") for x in (q, v, tau)))
    assert equal(f(q, v, tau), expected)


def test_numpy_arrays_in_another_order_of_bytes_are_taken_and_longer_floats_are_refused():
    model = sl.zoo.puma()
    f, given = bridge.forward_dynamics(model), [np.asarray(x) for x in states(model, 2)]
    for dtype in ("float64", "float32"):
        native = [x.astype(dtype) for x in given]
        swapped = [x.astype(x.dtype.newbyteorder()) for x in native]
        assert equal(f(*swapped), f(*native))
    with pytest.raises(InputError, match=f"tau holds {np.dtype(np.longdouble).name}; expected float64 or float32"):
        f(given[0], given[1], given[2].astype(np.longdouble))


def test_xla_calls_machine_code_of_that_name_and_nothing_else():
    model = sl.zoo.puma()
    f, given = bridge.forward_dynamics(model), [x[0] for x in states(model, 1)]
    text = jax.jit(f).lower(*given).as_text()
    assert text.count("stablehlo.custom_call @spanloop.forward_dynamics.") == 1
    assert "callback" not in text
    again = jax.jit(bridge.forward_dynamics(sl.zoo.puma())).lower(*given).as_text()
    assert text == again  # names depend on what is computed alone, so that JAX's cache on disk is right
    other = model.with_parameters({"link3.mass": 7.0})
    assert text != jax.jit(bridge.forward_dynamics(other)).lower(*given).as_text()


# ---- transforms


def test_vmap_over_any_axes():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 6)
    assert equal(jax.vmap(f)(q, v, tau), f(q, v, tau))
    assert equal(jax.vmap(f, in_axes=(1, None, 0))(q.T, v[0], tau), f(q, v[0], tau))
    twice = jax.vmap(jax.vmap(f, in_axes=(0, None, None)), in_axes=(None, 0, None))(q, v, tau[0])
    assert equal(twice, f(q[None], v[:, None], tau[0]))
    over_batch = jax.vmap(f, in_axes=(0, None, None))(q, v, tau)  # a row for each, beside a batch that all share
    assert equal(over_batch, f(q[:, None], v, tau))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics"])
@pytest.mark.parametrize("model", [sl.zoo.puma(), "panda"], ids=["puma", "panda"])
def test_check_grads_of_arms(model, name):
    model = mechanisms.robot(model) if isinstance(model, str) else model
    f, given = bridge.function(model, name), states(model, 2)
    check_grads(f, [x[0] for x in given], order=1)
    check_grads(jax.jit(f), [given[0], given[1][0], given[2]], order=1)  # a row that states share


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mass_matrix", "gravity_torques"])
def test_check_grads_of_functions_of_q(name):
    model = sl.zoo.puma()
    check_grads(bridge.function(model, name), states(model, 2)[:1], order=1)


def closed(model: sl.Model, start) -> tuple:
    robot = sl.Dynamics(model)
    rng = np.random.default_rng(3)
    v = robot.project(start, rng.normal(size=model.nv))[1]
    return robot, [jnp.asarray(np.asarray(x)) for x in (start, v, rng.normal(size=model.nv))]


LOOPS = [
    pytest.param(lambda: (sl.zoo.four_bar(), sl.zoo.four_bar_start()), id="four-bar"),
    pytest.param(lambda: (sl.zoo.stewart(), sl.zoo.stewart_start()), id="stewart", marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize("make", LOOPS)
def test_check_grads_of_closed_loops_by_torques_and_parameters(make):
    model, start = make()
    _, (q, v, tau) = closed(model, start)
    f = bridge.forward_dynamics(model)
    check_grads(lambda t: f(q, v, t), (tau,), order=1)
    live = bridge.forward_dynamics(model, parameters="live")
    names = [f"{b.name}.mass" for b in model.bodies[:2]]
    mass = {n: jnp.asarray(model.parameters().values[model.parameters().index(n)]) for n in names}
    check_grads(lambda m: live(q, v, tau, m), (mass,), order=1)


@pytest.mark.slow
@pytest.mark.parametrize("make", LOOPS)
def test_gradients_of_closed_loops_agree_with_robot_derivatives_along_closed_motions(make):
    model, start = make()
    robot, (q, v, tau) = closed(model, start)
    f, weights = bridge.forward_dynamics(model), jnp.linspace(1.0, 2.0, model.nv)
    along = robot.derivatives(*map(np.asarray, (q, v, tau)))
    by_q, by_v = jax.grad(lambda *x: f(*x, tau) @ weights, argnums=(0, 1))(q, v)
    n = np.eye(model.nv)
    if model.nq > model.nv:
        n = sl.compile(model, "integrate", derivative="jacobian", wrt="delta")(q, np.zeros(model.nv))
    found = by_q @ n @ along.dq + by_v @ along.dv
    expected = weights @ along.da_dq  # by kernels of another kind, themselves compared with differences
    assert np.allclose(found, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["free", "planar", "spherical", "general"])
def test_gradients_by_coordinates_that_do_not_add_agree_with_differences_along_tangents(kind):
    model = mechanisms.model_of(f"chain_{kind}")
    f, robot = bridge.energy(model), sl.Dynamics(model)
    q, v, _ = (x[0] for x in states(model, 1))
    weights = jnp.asarray([0.7, -1.3])
    by_q = jax.grad(lambda q: f(q, v) @ weights)(q)
    for k in range(model.nv):
        unit = np.eye(model.nv)[k]
        ends = [jnp.asarray(robot.integrate(np.asarray(q), s * STEP * unit)) for s in (1, -1)]
        slope = (f(ends[0], v) - f(ends[1], v)) @ weights / (2 * STEP)
        tangent = (ends[0] - ends[1]) / (2 * STEP)
        bound = TOLERANCE * (1.0 + abs(float(slope)))
        assert abs(float(by_q @ tangent - slope)) < bound
        forward = jax.jvp(lambda q: f(q, v) @ weights, (q,), (tangent,))[1]
        assert abs(float(forward - slope)) < bound
    if model.nq > model.nv:  # across, a quaternion that changes its length, it is 0
        assert abs(float(by_q[:4] @ q[:4])) < 1e-12 * float(jnp.abs(by_q).max() + 1.0)


@pytest.mark.slow
def test_jacobians_forward_and_back_agree_with_robot_derivatives():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 3)
    expected = sl.Dynamics(model).derivatives(*map(np.asarray, (q, v, tau))).da_dq
    for jacobian in (jax.jacrev, jax.jacfwd):
        found = jax.jit(jax.vmap(jacobian(f)))(q, v, tau)
        assert np.allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.slow
def test_push_forward_and_pullback_are_each_others_transpose():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 3)
    push = lambda d: jax.jvp(lambda q: f(q, v, tau), (q,), (d,))[1]  # noqa: E731
    pull = jax.vjp(lambda q: f(q, v, tau), q)[1]
    assert np.allclose(jax.linear_transpose(push, q)(tau)[0], pull(tau)[0], rtol=1e-12)
    assert np.allclose(jax.linear_transpose(pull, tau)((v,))[0], push(v), rtol=1e-10)
    assert np.allclose(jax.jvp(lambda w: pull(w)[0], (tau,), (v,))[1], pull(v)[0], rtol=1e-12)


@pytest.mark.slow
def test_second_derivatives_are_refused():
    for model in (sl.zoo.puma(), mechanisms.model_of("chain_spherical")):
        f, (q, v, tau) = bridge.forward_dynamics(model), [x[0] for x in states(model, 1)]
        for second in (jax.hessian, lambda g: jax.jacfwd(jax.jacfwd(g)), lambda g: jax.jit(jax.jacrev(jax.jacrev(g)))):
            with pytest.raises(UnsupportedError, match="second derivatives are not supported"):
                second(lambda q, f=f, v=v, tau=tau: f(q, v, tau).sum())(q)


@pytest.mark.slow
def test_a_scan_and_its_gradient_agree_with_a_loop_in_numpy():
    model, step, count = sl.zoo.puma(), 1e-3, 20
    f, kernel = bridge.forward_dynamics(model), sl.compile(model, "forward_dynamics")
    q, v, tau = (x[0] for x in states(model, 1))

    def end(tau):
        def advance(state, _):
            q, v = state
            v = v + step * f(q, v, tau)
            return (q + step * v, v), None

        return jax.lax.scan(advance, (q, v), None, length=count)[0][0]

    p, w = np.asarray(q), np.asarray(v)
    for _ in range(count):
        w = w + step * kernel(p, w, np.asarray(tau))
        p = p + step * w
    assert np.allclose(jax.jit(end)(tau), p, rtol=1e-13)
    check_grads(jax.jit(end), (tau,), order=1)
    check_grads(jax.checkpoint(end), (tau,), order=1, modes=["rev"])


@pytest.mark.slow
def test_gradients_of_what_states_share_are_sums():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 3)
    one = jax.grad(lambda t: f(q, v, t).sum())(tau[0])
    many = jax.grad(lambda t: f(q, v, t).sum())(jnp.tile(tau[0], (3, 1)))
    assert np.allclose(one, many.sum(0), rtol=1e-13)


@pytest.mark.slow
def test_live_parameters_are_an_array_or_named():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model, parameters="live"), states(model, 2)
    whole = jnp.asarray(model.parameters().values)
    k = model.parameters().index("link3.mass")
    by_all = jax.grad(lambda p: f(q, v, tau, p).sum())(whole)
    by_name = jax.jit(jax.grad(lambda p: f(q, v, tau, parameters=p).sum()))({"link3.mass": whole[k]})
    assert np.allclose(by_name["link3.mass"], by_all[k], rtol=1e-12)
    each = f(q, v, tau, {"link3.mass": jnp.asarray([5.0, 6.0])})
    assert equal(each[1], f(q, v, tau, {"link3.mass": 6.0})[1])
    assert equal(f(q, v, tau, {}), f(q, v, tau, whole))


@pytest.mark.slow
def test_the_gradient_by_a_length_in_a_loop_is_right_with_those_along_the_closing_motion():
    model, name = sl.zoo.four_bar(), "coupler_hinge.position.x"
    _, (q, v, tau) = closed(model, sl.zoo.four_bar_start())
    length = model.parameters().values[model.parameters().index(name)]
    live, weights = bridge.forward_dynamics(model, parameters="live"), np.array([1.0, 2.0, -0.5])

    def closed_with(length):
        robot = sl.Dynamics(model.with_parameters({name: length}))
        at = robot.assemble(np.asarray(q), fixed=["crank_hinge"])
        rates = robot.complete_velocity(at, {"crank_hinge": v[0]})
        return at, rates, robot.forward_dynamics(at, rates, np.asarray(tau)) @ weights

    ends = zip(closed_with(length + 1e-5), closed_with(length - 1e-5), strict=True)
    dq, dv, slope = ((a - b) / 2e-5 for a, b in ends)
    loss = lambda q, v, x: live(q, v, tau, {name: x}) @ weights  # noqa: E731
    by_q, by_v, alone = jax.grad(loss, argnums=(0, 1, 2))(q, v, length)
    assert np.isclose(alone + by_q @ dq + by_v @ dv, slope, rtol=1e-6)
    assert not np.isclose(alone, slope, rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("make", [sl.zoo.four_bar, sl.zoo.five_bar])
def test_gradients_by_parameters_do_not_need_the_second_computation_of_the_numpy_call(make):
    model, start = make(), getattr(sl.zoo, f"{make.__name__}_start")()
    _, (q, v, tau) = closed(model, start)
    body = model.bodies[1].name
    by_mass = [
        jax.grad(lambda *x, f=f: f(*x[:3], {f"{body}.mass": x[3]}).sum(), argnums=(0, 1, 2, 3))(q, v, tau, 1.0)
        for f in (bridge.forward_dynamics(model, parameters="live", method=m) for m in ("simple_closed_chain", None))
    ]
    assert all(jnp.isfinite(x).all() for x in by_mass[0])
    assert all(np.allclose(a, b, rtol=1e-8) for a, b in zip(by_mass[0][2:], by_mass[1][2:], strict=True))


def planar_chain_to_close() -> sl.Model:
    """Three links in a plane and a loop of five rows, three of which depend on others."""
    b = sl.Builder("chain")
    for k in range(3):
        b.body(f"link{k}", 0.5 + 0.2 * k, (0.25, 0, 0), (0.01, 0.02 + 0.01 * k, 0.02 + 0.01 * k))
    b.revolute("joint0", "world", "link0", "y").revolute("joint1", "link0", "link1", "y", (0.5, 0, 0))
    b.revolute("joint2", "link1", "link2", "y", (0.5, 0, 0))
    b.frame("end", "link2", position=(0.5, 0, 0)).frame("anchor", "world", position=(0.9, 0, 0))
    return b.loop("end", "anchor", sl.joints.Revolute("y"), name="grip", switchable=True).build()


def test_active_rows_are_the_input_active_and_have_no_derivative():
    model = planar_chain_to_close()
    robot, f = sl.Dynamics(model), bridge.forward_dynamics(model)
    q, z = robot.assemble([-1.0, 1.0, 1.0]), np.zeros(3)
    for names in (["grip"], []):
        answer, has_answer = f.with_status(q, z, z, robot.active_rows(names))
        assert has_answer
        assert equal(answer, robot.forward_dynamics(q, z, z, active_loops=names))
    with pytest.raises(
        InputError, match="active opens and closes loops, and nothing has a derivative by it; different"
    ):
        jax.grad(lambda x: f(q, z, z, x).sum())(robot.active_rows())


# ---- states without an answer


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_states_without_an_answer_are_nan_and_with_status_says_which():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 4)
    q = q.at[1, 0].set(jnp.nan).at[3, 2].set(3e14)
    for with_status in (f.with_status, jax.jit(f.with_status), jax.vmap(f.with_status)):
        answer, has_answer = with_status(q, v, tau)
        assert has_answer.dtype == bool
        assert has_answer.tolist() == [True, False, True, False]
        assert jnp.isnan(answer).all(-1).tolist() == [False, True, False, True]
    assert jnp.isnan(f(q[1], v[1], tau[1])).all()
    assert not f.with_status(q[1], v[1], tau[1])[1]
    assert np.isfinite(sl.compile(model, "forward_dynamics")(q[3], v[3], tau[3])).all()  # NumPy computes it anew


def test_open_loops_have_no_answer():
    model = sl.zoo.four_bar()
    _, (q, v, tau) = closed(model, sl.zoo.four_bar_start())
    f = bridge.forward_dynamics(model)
    assert f.with_status(q, v, tau)[1]
    assert not f.with_status(q.at[1].add(0.1), v, tau)[1]


@pytest.mark.parametrize("count", [1, 3])
def test_a_loss_that_leaves_refused_rows_out_has_gradients_of_zero_there(count):
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, count)
    q = q.at[-1, 0].set(jnp.nan)

    def loss(q):
        answer, has_answer = f.with_status(q, v, tau)
        return jnp.where(has_answer[:, None], answer, 0.0).sum()

    found = jax.jit(jax.grad(loss))(q)
    assert jnp.isfinite(found).all()
    assert (found[-1] == 0).all()
    assert (found[:-1] != 0).any(-1).all()


BAD = {  # what no state of a joint is: entries of its coordinates
    "spherical": [{0: np.nan}, {2: np.inf}, {0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}, {0: 3.0}],
    "planar": [{0: np.nan}, {1: -np.inf}, {2: np.nan}, {0: np.inf}],
    "free": [{0: np.nan}, {4: np.inf}, {0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}, {6: np.nan}],
    "general": [{0: np.nan}],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(BAD))
def test_gradients_are_zero_where_weights_are_also_by_coordinates_that_do_not_add(kind):
    model = mechanisms.model_of(f"chain_{kind}")
    f, given = bridge.forward_dynamics(model), states(model, len(BAD[kind]) + 2)
    place = next(model.q_slice(j.name).start for j in model.joints if j.kind.name == kind)
    q = np.array(given[0])
    for row, change in zip(q, BAD[kind], strict=False):
        for k, x in change.items():
            row[place + k] = x
    bad, q = np.arange(len(q)) < len(BAD[kind]), jnp.asarray(q)

    def loss(q, v, tau):
        answer, has_answer = f.with_status(q, v, tau)
        return jnp.where(has_answer[..., None], answer, 0.0).sum()

    one = jax.grad(loss, argnums=(0, 1, 2))
    each = lambda *x: map(jnp.stack, zip(*map(one, *x), strict=True))  # noqa: E731  states without batch axes
    expected = [np.where(bad[:, None], 0.0, x) for x in one(*given)]  # of the states that are not bad
    assert f.with_status(q, *given[1:])[1].tolist() == (~bad).tolist()
    for gradient in (one, jax.jit(one), jax.vmap(one), each):
        for found, right in zip(gradient(q, *given[1:]), expected, strict=True):
            assert np.allclose(found, right, rtol=1e-9, atol=1e-12 * np.abs(right).max())
            assert (np.asarray(found)[bad] == 0).all()
    directions = states(model, len(q), seed=50)
    for push in (jax.jvp, jax.jit(jax.jvp, static_argnums=0)):
        slope = push(loss, (q, *given[1:]), tuple(directions))[1]
        assert np.isclose(slope, sum((x * d).sum() for x, d in zip(expected, directions, strict=True)), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["planar", "spherical"])
def test_a_gradient_with_weights_is_nan_where_the_state_has_no_answer(kind):
    model = mechanisms.model_of(f"chain_{kind}")
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 2)
    bad = q.at[1, 0].set(jnp.nan)
    assert jnp.isfinite(jax.grad(lambda q: f(q, v, tau).sum())(bad)).all(-1).tolist() == [True, False]
    assert jnp.isfinite(jax.jvp(lambda q: f(q, v, tau), (bad,), (q,))[1]).all(-1).tolist() == [True, False]


# ---- options of JAX for debugging


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("bad", ["q", "v", "tau"])
def test_debug_nans_names_the_function_whose_answer_is_nan(bad, count):
    model = sl.zoo.puma()
    f, given = bridge.forward_dynamics(model), states(model, count)
    given = [x[0] if count == 1 else x for x in given]
    f(*given)  # compiled before the option is set
    k = f.inputs.index(bad)
    given[k] = given[k].at[..., 0].set(jnp.inf)
    try:
        for switch in (lambda: jax.debug_nans(True), nullcontext):  # of a thread, of the process
            jax.config.update("jax_debug_nans", switch is nullcontext)
            for g in (f, jax.jit(f)):
                with switch(), pytest.raises(FloatingPointError, match=r"\(nan\) encountered in forward_dynamics"):
                    g(*given)
    finally:
        jax.config.update("jax_debug_nans", False)
    given[k] = np.full(given[k].shape, np.nan)  # an array of NumPy
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError, match=r"\(nan\) encountered in forward_dynamics"):
            f(*given)
        assert jnp.isfinite(jax.jit(f)(*states(model, count))).all()


def test_disable_jit_computes_the_same():
    model = sl.zoo.puma()
    f, given = bridge.forward_dynamics(model), states(model, 3)
    gradient = jax.grad(lambda *x: f(*x).sum(), argnums=(0, 2))
    expected = (f(*given), *gradient(*given))
    with jax.disable_jit():
        found = (jax.jit(f)(*given), *gradient(*given))
    assert all(np.allclose(a, b, rtol=1e-12) for a, b in zip(found, expected, strict=True))


# ---- devices

PARTS = """
import numpy as np, jax, jax.numpy as jnp, spanloop as sl, spanloop.jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

jax.config.update("jax_enable_x64", True)
assert len(jax.devices()) == 2
mesh = Mesh(np.array(jax.devices()), ("i",))
f = spanloop.jax.forward_dynamics(sl.zoo.puma())
q, v, tau = (jnp.asarray(np.random.default_rng(k).normal(size=(8, 6))) for k in range(3))
tau = tau[0]
parted = jax.shard_map(f, mesh=mesh, in_specs=(P("i"), P("i"), P()), out_specs=P("i"))
assert np.array_equal(jax.jit(parted)(q, v, tau), f(q, v, tau))
assert np.array_equal(parted(q, v, tau), f(q, v, tau))

loss = lambda f: lambda q, v, tau: (f(q, v, tau) ** 2).sum()
expected = jax.grad(loss(f), argnums=(0, 1, 2))(q, v, tau)
close = lambda found, expected: all(np.allclose(a, b, rtol=1e-12) for a, b in zip(found, expected, strict=True))
assert close(jax.jit(jax.grad(loss(parted), argnums=(0, 1, 2)))(q, v, tau), expected)
both = jax.grad(loss(f), argnums=(0, 2))
within = jax.shard_map(both, mesh=mesh, in_specs=(P("i"), P("i"), P()), out_specs=(P("i"), P()))
assert close(within(q, v, tau), (expected[0], expected[2]))

spread = [jax.device_put(x, NamedSharding(mesh, P("i"))) for x in (q, v)]
assert np.array_equal(jax.jit(f)(*spread, tau), f(q, v, tau))
print("parted")
"""


EXPLICIT = """
import numpy as np, jax, jax.numpy as jnp, spanloop as sl, spanloop.jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

jax.config.update("jax_enable_x64", True)
mesh = jax.make_mesh((2,), ("i",), axis_types=(AxisType.Explicit,))
f = spanloop.jax.forward_dynamics(sl.zoo.puma())
numbers = [np.random.default_rng(k).normal(size=(8, 6)) for k in range(3)]
numbers[2] = numbers[2][0]
loss = lambda q, v, tau: ((f(q, v, tau) - v) ** 2).sum()
by_all = jax.grad(loss, argnums=(0, 1, 2))
expected = by_all(*numbers)
with (getattr(jax, "set_mesh", None) or jax.sharding.use_mesh)(mesh):
    given = [jax.device_put(x, NamedSharding(mesh, P(*spec))) for x, spec in zip(numbers, ("i", "i", ()), strict=True)]
    for found in (by_all(*given), jax.jit(by_all)(*given)):
        for a, b, x in zip(found, expected, given, strict=True):
            assert np.allclose(a, b, rtol=1e-12)
            assert jax.typeof(a).sharding.spec == jax.typeof(x).sharding.spec
    push = lambda d: jax.jvp(lambda q: f(q, *given[1:]), (given[0],), (d,))[1]
    back = jax.linear_transpose(push, given[0])(jnp.ones((8, 6)))[0]
    assert jax.typeof(back).sharding.spec == P("i", None)
print("spread")
"""


def printed_on_two_devices(script: str) -> str:
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    environment = {**os.environ, **flags, "PYTHONPATH": str(Path(sl.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    return done.stdout or done.stderr


@pytest.mark.slow
def test_shard_map_divides_a_batch_among_devices_and_gradients_are_right():
    assert printed_on_two_devices(PARTS) == "parted\n"


@pytest.mark.slow
def test_gradients_are_spread_over_an_explicit_mesh_as_their_inputs_are():
    assert printed_on_two_devices(EXPLICIT) == "spread\n"


@pytest.mark.skipif(not hasattr(jax, "set_mesh"), reason="early versions of JAX scatter nothing on such meshes")
def test_live_parameters_may_be_spread_over_an_explicit_mesh():
    model = sl.zoo.pendulum()
    f, q = bridge.function(model, "gravity_torques", parameters="live"), states(model, 4)[0]
    name = next(n for n in model.parameters().names if n.endswith(".mass"))
    torque = lambda mass: f(q, {name: mass, "gravity.x": 0.5})  # noqa: E731
    both = jax.jit(lambda mass: (torque(mass), jax.grad(lambda mass: torque(mass).sum())(mass)))
    masses = jnp.linspace(1.0, 2.0, 4)
    expected = both(masses)
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        spread = jax.device_put(masses, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i")))
        found = both(spread)
    assert all(equal(a, b) for a, b in zip(found, expected, strict=True))
    assert found[1].sharding.spec == spread.sharding.spec


def lowered(f, given, platform: str) -> str:
    return jax.jit(f).trace(*given).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.skipif(driver.is_available(), reason="this machine has a GPU")
def test_lowering_for_a_gpu_without_a_driver_is_refused_with_a_sentence():
    model = sl.zoo.puma()
    with pytest.raises(DeviceError, match="needs an NVIDIA GPU with its driver"):
        lowered(bridge.forward_dynamics(model), states(model, 3), "cuda")
    with pytest.raises(UnsupportedError, match="arrays on 'tpu' are not supported"):
        lowered(bridge.forward_dynamics(model), states(model, 3), "tpu")


def test_lowering_for_a_gpu_names_the_handler_and_its_scratch_memory(monkeypatch):
    model, given = sl.zoo.puma(), states(sl.zoo.puma(), 3)
    asked = []

    def target(self, platform, dtype, count, common):
        asked.append((platform, dtype, count, common))
        return "handler", SimpleNamespace()

    monkeypatch.setattr(jax_kernels.Call, "target", target)
    for scratch, results in ((0, "tensor<3x6xf64>, tensor<3xui8>)"), (640, "tensor<3xui8>, tensor<640xui8>)")):
        monkeypatch.setattr("spanloop.bridges.jax_primitive.scratch_size", lambda *_, scratch=scratch: scratch)
        text = lowered(bridge.forward_dynamics(model), (given[0], given[1][0], given[2]), "cuda")
        assert results in next(line for line in text.splitlines() if "custom_call @handler" in line)
    assert set(asked) == {("cuda", "float64", 3, (False, True, False))}
    both = jax.value_and_grad(lambda *x: bridge.forward_dynamics(model)(*x).sum())
    assert lowered(both, given, "cuda").count("custom_call @handler") == 2  # the function and its pullback


def test_errors_of_handlers_are_errors_of_xla():
    kernel = sl.compile(sl.zoo.puma(), "forward_dynamics")
    address, _ = kernel.batch_address
    texts = {
        "too little memory for a batch": xla.many_states([6, 6, 6], "double", 2**58),
        "GPU|stream": xla.on_gpu([6, 6, 6], (False,) * 3, xla.Launch(32, 32, 0), 1),  # XLA's own: a CPU has no stream
    }
    out = (jax.ShapeDtypeStruct((3, 6), "float64"), jax.ShapeDtypeStruct((3,), "uint8"))
    for k, (sentence, text) in enumerate(texts.items()):
        code = machine.Code(machine.object_code(text), "handler", "table")
        ctypes.c_void_p.from_address(code.address("table")).value = address
        _kept.append(code)  # XLA may call what is registered for the life of the process
        jax.ffi.register_ffi_target(f"spanloop.fails{k}", jax.ffi.pycapsule(code.address("handler")), platform="cpu")
        with pytest.raises(jax.errors.JaxRuntimeError, match=sentence):
            jax.block_until_ready(jax.ffi.ffi_call(f"spanloop.fails{k}", out)(*states(sl.zoo.puma(), 3)))


# ---- export

EXPORTED = """
import sys
import numpy as np, jax, spanloop as sl, spanloop.jax
from jax import export

jax.config.update("jax_enable_x64", True)
f = spanloop.jax.forward_dynamics(sl.zoo.puma())
gradient = jax.grad(lambda q, v, tau: f(q, v, tau).sum(), argnums=(0, 2))
(n,) = export.symbolic_shape("n")
shapes = 3 * [jax.ShapeDtypeStruct((n, 6), "float64")]
names = spanloop.jax.call_names(gradient, *shapes)
if sys.argv[1] == "write":
    checks = [export.DisabledSafetyCheck.custom_call(name) for name in names]
    program = export.export(jax.jit(gradient), disabled_checks=checks)(*shapes)
    sys.stdout.buffer.write(program.serialize())
else:
    program = export.deserialize(bytearray(sys.stdin.buffer.read()))
    given = [np.random.default_rng(k).normal(size=(3, 6)) for k in range(3)]
    found = program.call(*given)
    assert all(np.array_equal(a, b) for a, b in zip(found, jax.jit(gradient)(*given), strict=True))
    print("the same")
"""


@pytest.mark.parametrize("count", [(), (1,), (3,), "n"])
def test_export_takes_the_names_of_calls_and_its_answers_are_the_same(count):
    from jax import export

    f, given = bridge.forward_dynamics(sl.zoo.puma()), states(sl.zoo.puma(), 3)
    axes = export.symbolic_shape(count) if isinstance(count, str) else count
    given = given if isinstance(count, str) else [x[: axes[0]] if axes else x[0] for x in given]
    shapes = 3 * [jax.ShapeDtypeStruct((*axes, 6), "float64")]
    names = bridge.call_names(f, *shapes)
    assert [name.rpartition(".")[0] for name in names] == ["spanloop.forward_dynamics"]
    with pytest.raises(ValueError, match=names[0]):
        export.export(jax.jit(f))(*shapes)
    checks = [export.DisabledSafetyCheck.custom_call(name) for name in names]
    assert equal(export.export(jax.jit(f), disabled_checks=checks)(*shapes).call(*given), f(*given))


def test_functions_mapped_over_batches_of_symbolic_size_are_exported():
    from jax import export

    f, given = bridge.forward_dynamics(sl.zoo.pendulum()), [x.reshape(2, 3, 1) for x in states(sl.zoo.pendulum(), 6)]
    axes = export.symbolic_shape("m, n")
    shapes = 3 * [jax.ShapeDtypeStruct((*axes, 1), "float64")]
    for mapped in (jax.vmap(f), jax.vmap(jax.grad(lambda *x: f(*x).sum(), argnums=(0, 2)))):
        checks = [export.DisabledSafetyCheck.custom_call(name) for name in bridge.call_names(mapped, *shapes)]
        found = export.export(jax.jit(mapped), disabled_checks=checks)(*shapes).call(*given)
        assert all(equal(a, b) for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(mapped(*given)), strict=True))


@pytest.mark.slow
def test_another_process_runs_an_exported_program_once_its_calls_are_registered():
    pytest.importorskip("flatbuffers")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(sys.path)}
    data = b""
    for what, expected in (("write", None), ("read", b"the same\n")):
        command = [sys.executable, "-c", EXPORTED, what]
        done = subprocess.run(command, env=environment, input=data, capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr.decode()
        data = done.stdout
        assert expected in (None, data)


# ---- what does not fit


def test_what_does_not_fit_is_refused_with_a_sentence():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 1)
    for given, sentence in (
        ((q, v), "forward_dynamics takes q, v, tau; 2 were given"),
        ((q, v, [0.0] * 6), "tau is a list; expected an array"),
        ((q, v.astype("float32"), tau), "v holds float32, q float64; expected one dtype"),
        ((q.astype("float16"), v, tau), "q holds float16; expected float64 or float32"),
        ((q, v, np.zeros(6, int)), "tau holds int64; expected float64 or float32"),
        ((q, v, np.zeros(6, np.float16)), "tau holds float16; expected float64 or float32"),
        ((q[:, :3], v, tau), r"q has shape \(1, 3\); expected \(..., 6\)"),
        ((jnp.tile(q, (2, 1)), jnp.tile(v, (3, 1)), tau), "batch axes do not fit together"),
    ):
        for g in (f, jax.jit(f)) if not isinstance(given[-1], list) else (f,):
            with pytest.raises(InputError, match=sentence):
                g(*given)
    with pytest.raises(InputError, match="there is no input 'torque'"):
        f(q, v, torque=tau)
    with pytest.raises(InputError, match="function is None; expected a name, as 'forward_dynamics'"):
        bridge.function(model, None)
    with pytest.raises(InputError, match="dtype follows from the arrays"):
        bridge.forward_dynamics(model, dtype="float32")
    with pytest.raises(InputError, match="threads is not for JAX: XLA calls a kernel on one thread"):
        bridge.forward_dynamics(model, threads=2)
    with pytest.raises(
        InputError, match=r"^forward_dynamics: there is no option 'paramters'; did you mean 'parameters'"
    ):
        bridge.forward_dynamics(model, paramters="live")
    with pytest.raises(
        InputError, match=r"^forward_dynamics: warps is not for JAX: it is chosen by the size of a batch"
    ):
        bridge.forward_dynamics(model, warps=2)
    with pytest.raises(InputError, match="did you mean"):
        bridge.forward_dynamics(model, parameters="live")(q, v, tau, {"link3.mas": 1.0})


@pytest.mark.slow
def test_parameters_of_a_model_are_live_parameters():
    model = sl.zoo.puma()
    f, given = bridge.forward_dynamics(model, parameters="live"), states(model, 2)
    changed = model.parameters().changed({"link3.mass": 7.0})
    assert equal(f(*given, changed), f(*given, {"link3.mass": 7.0}))
    for parameters, sentence in (
        (sl.zoo.four_bar().parameters(), "parameters are those of another model: there is no parameter"),
        ({"link3.mass": "x"}, "parameter 'link3.mass' is a str; expected a number or an array"),
        ({"link3.mass": jnp.zeros(2), "link2.mass": jnp.zeros(3)}, "batch axes of parameters do not fit together"),
    ):
        with pytest.raises(InputError, match=sentence):
            f(*given, parameters)


def test_functions_can_be_pickled():
    model = sl.zoo.puma()
    f, given = bridge.forward_dynamics(model), states(model, 2)
    again = pickle.loads(pickle.dumps(f))
    assert equal(again(*given), f(*given))
    assert again.kernels.call() == f.kernels.call()


def test_an_inner_gradient_in_a_loss_is_a_constant_by_stop_gradient_of_its_input():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), [x[0] for x in states(model, 1)]
    inner = jax.grad(lambda t: f(q, v, t).sum())
    stop = jax.lax.stop_gradient
    assert equal(jax.grad(lambda t: (inner(stop(t)) * t).sum())(tau), inner(tau))
    with pytest.raises(UnsupportedError, match="stop_gradient of its inputs"):
        jax.grad(lambda t: (stop(inner(t)) * t).sum())(tau)


def test_without_jax_the_import_says_what_to_install():
    code = "import sys; sys.modules['jax'] = None\ntry: import spanloop.jax\nexcept ImportError as error: print(error)"
    environment = {**os.environ, "PYTHONPATH": str(Path(sl.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith("spanloop.jax needs JAX")
    assert "pip install 'spanloop[jax]'" in done.stdout
