"""From plain arithmetic to machine code: the tracer, the tape, the sine, batches, calls from Python."""

from __future__ import annotations

import contextlib
import gc
import inspect
import math
import pickle
import subprocess
import sys
import warnings
import weakref

import mpmath
import numpy as np
import pytest
from definitions import PlanDefinition
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import EPS, RANDOM, ROBOTS, batch, frame_of, kernel, model_of, states
from sentences import says
from tape import interpreted

import spanloop as sl
from spanloop import zoo
from spanloop.algorithms.catalog import FUNCTIONS
from spanloop.compiler.lower import unrolled
from spanloop.compiler.render import segments
from spanloop.compiler.runtime import python_call
from spanloop.compiler.trace import NAMES, Graph, TraceError
from spanloop.errors import InputError, SpanloopWarning, StateError
from spanloop.kernels import KernelSpec, machine_kernel
from spanloop.math.scalar import absolute, arctan2, sincos, sqrt, where

ON_TREES = [name for name, entry in FUNCTIONS.items() if not (entry.needs_closures or entry.needs_contacts)]

EPS32 = float(np.finfo(np.float32).eps)


def traced(n=3):
    return Graph().inputs(n)


def computation(name, sizes, shape, compute, reference=None, **options):
    """A kernel of a plain computation: compute(inputs by name) -> outputs."""
    plan = unrolled(name, sizes, shape, lambda x: (compute(x), [], []))

    def on_floats(*arrays):
        return np.array(compute({n: x.tolist() for (n, _), x in zip(sizes, arrays, strict=True)}))

    key = f"{name}{sizes}{shape}{inspect.getsource(compute)}"
    return machine_kernel(PlanDefinition(name, key, plan, reference or on_floats), **options)


# ---- the tracer


def test_constants_fold_and_zero_and_one_vanish():
    x, y, _ = traced()
    assert x + 0.0 is x
    assert 0.0 + x is x
    assert x - 0.0 is x
    assert 1.0 * x is x
    assert x * 0.0 == 0.0
    assert type(0.0 * x) is float
    assert x / 1.0 is x
    assert 0.0 / x == 0.0
    assert repr(2.0 * (3.0 * x)) == f"%{(2.0 * (3.0 * x)).index} = multiply %{x.graph.constant(6.0).index}, %0"
    assert x - x == 0.0
    assert x / x == 1.0
    assert +x is x
    assert x**2 is x * x
    assert (x * 1.0) * y is x * y


def test_constants_whose_product_underflows_vanish_with_either_sign():
    x, _, _ = traced()
    for sign in (1.0, -1.0):
        assert (x * 1e-200) * (sign * 1e-200) == 0.0
        assert (-x * 1e-200) * (sign * 1e-200) == 0.0


def test_equal_expressions_are_one_node():
    x, y, z = traced()
    assert x + y is y + x
    assert x * y is y * x
    assert (x + y) * z is z * (y + x)
    assert x.sincos()[0] is x.sincos()[0]
    assert x.sqrt() is x.sqrt()
    n = len(x.graph.nodes)
    assert x + y is x + y
    assert len(x.graph.nodes) == n


def test_signs_move_outward():
    x, y, _ = traced()
    assert -(x * -1.0) is x
    assert (-x) * y is -(x * y)
    assert (-x) * (-y) is x * y
    assert x + (-y) is x - y
    assert (-x) + y is y - x
    assert x - (-y) is x + y
    assert (-x) - y is -(x + y)
    assert x * -2.0 is -(x * 2.0)
    assert -(x - y) is -(x - y)
    assert y - x is -(x - y)
    assert (-x) / y is -(x / y)
    assert x / (-y) is -(x / y)


def test_cancellations_of_elimination_are_seen():
    x, y, _ = traced()
    over = 1.0 / x
    assert x * over == 1.0
    assert over * x == 1.0
    assert x * (y * over) is y
    assert (over * y) * x is y
    assert x + (y - x) is y
    assert (y - x) + x is y
    assert x - (x - y) is y
    assert (x + y) - x is y
    assert (x + y) - y is x
    assert 2.0 * x + 3.0 * x is 5.0 * x
    assert 2.0 * x - 2.0 * x == 0.0


def test_what_is_not_equal_is_not_joined():
    x, y, z = traced()
    assert x - y is not y - x
    assert x / y is not y / x
    assert (x < y).node is not (y < x).node
    assert (x * y) * z is not x * y


def test_choices_are_nodes():
    x, y, _ = traced()
    less = x < y
    assert NAMES[less.node.op] == "less"
    assert where(less, x, x) is x
    assert where(less, 1.0, 1.0) == 1.0
    assert NAMES[where(less, x, y).op] == "select"
    assert where(~less, x, y) is where(less, y, x)
    assert (~~less).node is less.node
    assert (x > y).node is (y < x).node
    assert (x <= y).node is (~(x > y)).node
    assert NAMES[(less & (x > 0.0)).node.op] == "both"
    assert NAMES[(less | (x > 0.0)).node.op] == "either"


def test_asking_a_traced_value_for_its_number_is_a_sentence():
    x, y, _ = traced()
    with says(TraceError, "a traced value has no truth: it is a number yet to come. Use sl.where(condition, yes, no)"):
        bool(x)
    with says(TraceError, "`if` on a traced condition: both branches are compiled. Use sl.where(condition, yes, no)"):
        max(x, y)
    with says(TraceError, "a traced value has no number yet; keep to + - * / and to NumPy's functions, as np.sin"):
        math.sin(x)
    with says(TraceError, "traced values cannot be compared with ==; use < and sl.where"):
        x == 1.0  # noqa: B015
    with says(TraceError, "a traced value to the power 0.3; powers up to 64 that are whole or end in .5 can be traced"):
        x**0.3


TERMS = st.recursive(
    st.sampled_from(["x", "y", "z", 0.0, 1.0, -1.0, 2.5, -0.75]),
    lambda inner: st.tuples(st.sampled_from("+-*/n?"), inner, inner),
    max_leaves=25,
)


def meaning(term, point):
    """The value of a random term: on floats, or traced."""
    if isinstance(term, str):
        return point[term]
    if isinstance(term, float):
        return term
    op, left, right = term
    a, b = meaning(left, point), meaning(right, point)
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    if op == "/":  # away from zero
        return a / (b * b + 1.0)
    if op == "n":
        return -a
    return where(a < b, a, b)


@settings(max_examples=300, deadline=None)
@given(TERMS, st.tuples(*[st.floats(-2.0, 2.0)] * 3))
def test_a_simplified_term_has_the_value_of_the_term(term, point):
    names = ("x", "y", "z")
    plan = unrolled(
        "term", [(n, 1) for n in names], (1,), lambda x: ([meaning(term, {n: x[n][0] for n in names})], [], [])
    )
    expected = meaning(term, dict(zip(names, point, strict=True)))
    found = interpreted(plan, *[[x] for x in point])[0]
    # where a choice sits on the edge, simplifying may turn it: both sides are equal there, to rounding
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


# ---- the tape: interpreted, on floats, and as machine code


def inputs_of(model, function, seed=0):
    """One state's inputs and the options of a function; forces where it takes them."""
    (q, v, x), (q2, _, _) = states(model, 2, seed)
    entry = FUNCTIONS[function]
    options = {"frame": frame_of(model)} if "frame" in entry.options else {}
    if "frames" in entry.options:
        options["frames"] = (frame_of(model), model.bodies[0].name)
    if "loaded" in entry.options:
        options["forces"] = (model.bodies[-1].name,)
    if "points" in entry.options:
        options["points"] = (model.bodies[-1].name,)
    known = {"push": np.linspace(-1.0, 2.0, 6), "error": np.zeros(0)}
    known |= {"q": q, "v": v, "a": x, "tau": x, "delta": 0.5 * v, "start": q2, "forces": np.linspace(-1.0, 1.0, 6)}
    sizes = dict(sl.compile(model, function, target="python", **options).inputs)
    known["impulse"] = np.linspace(-1.0, 2.0, sizes.get("impulse", 0))
    return [known[n] for n in sizes], options


def has_difference(model, function):
    return function != "difference" or not any(j.kind.name == "general" for j in model.joints)


def bound_of(model, function, q):
    """Rounding; for what solves with the mass matrix, its conditioning."""
    solving = ("forward_dynamics", "mass_matrix_inverse", "solution", "operational_inverse_inertia", "force_response",
               "impulse_response")  # fmt: skip
    if function not in (*solving, "free_response", "forced_response"):
        return 1e-12
    M = sl.compile(model, "mass_matrix", target="python")(q)
    return 100 * EPS * np.linalg.cond(M)


@pytest.mark.parametrize("function", ON_TREES)
@pytest.mark.parametrize("name", ["quadruped", "chain_universal", *RANDOM[:6]])
def test_tape_floats_and_machine_code_agree(name, function):
    """Three ways to one number: steps on floats, the tape interpreted, the tape compiled for one and for many."""
    model = model_of(name)
    if not has_difference(model, function):
        pytest.skip("a general joint has no difference")
    inputs, options = inputs_of(model, function, seed=3)
    compiled = kernel(name, function, **options)
    expected = kernel(name, function, target="python", **options)(*inputs)
    scale = np.abs(expected).max(initial=0.0) + 1.0
    atol = bound_of(model, function, model.random_state(3)[0]) * scale
    np.testing.assert_allclose(interpreted(compiled.plan, *inputs), expected, rtol=0, atol=atol)
    np.testing.assert_allclose(compiled(*inputs), expected, rtol=0, atol=atol)
    many = compiled(*(np.stack([x] * 3) for x in inputs))
    np.testing.assert_allclose(many, np.stack([expected] * 3), rtol=0, atol=atol)


@pytest.mark.parametrize("name", [*RANDOM[6:], *ROBOTS])
def test_the_tape_of_a_random_model_says_what_its_steps_say(name):
    model = model_of(name)
    for function in ("forward_dynamics", "inverse_dynamics", "mass_matrix", "energy"):
        inputs, options = inputs_of(model, function, seed=4)
        spec = KernelSpec.of(model, function, forces=options.get("forces", ()))
        expected = kernel(name, function, target="python", **options)(*inputs)
        scale = np.abs(expected).max() + 1.0
        atol = bound_of(model, function, inputs[0]) * scale
        np.testing.assert_allclose(interpreted(spec.plan, *inputs), expected, rtol=0, atol=atol)


def test_every_operation_can_be_rendered():
    def compute(x):
        a, b, c = x["x"]
        s, k = sincos(a)
        small = (a < b) & ~(b < c) | (c > 0.0)
        chosen = where(small, a / (1.0 + b * b), -c)
        return [s, k, sqrt(a * a + b * b), chosen, arctan2(a, b), absolute(c), 0.0, 3.5, b - a]

    k = computation("everything", (("x", 3),), (9,), compute)
    x = np.random.default_rng(5).uniform(-2.0, 2.0, (100, 3))
    expected = np.array([interpreted(k.plan, row) for row in x])
    np.testing.assert_allclose(expected[:, 4], np.arctan2(x[:, 0], x[:, 1]), rtol=0, atol=1e-15)
    np.testing.assert_allclose(k(x), expected, rtol=0, atol=4e-15)
    np.testing.assert_allclose([k(row) for row in x], expected, rtol=0, atol=4e-15)
    assert {NAMES[n.op] for n in k.plan.nodes} == set(NAMES)


@pytest.mark.parametrize("y", [0.0, -0.0, 1e-300, 1.0, -3.0])
@pytest.mark.parametrize("x", [0.0, 1.0, -1.0, 1e-300, 1e300])
def test_the_traced_arctangent_is_that_of_the_library(y, x):
    k = computation("arctan2", (("yx", 2),), (1,), lambda p: [arctan2(*p["yx"])])
    expected = math.atan2(y + 0.0, x)
    assert k(np.array([y, x]))[0] == pytest.approx(expected, rel=1e-15, abs=1e-300)


# ---- sine and cosine


def angle_kernel(dtype):
    return computation("angle", (("x", 1),), (2,), lambda x: list(sincos(x["x"][0])), dtype=dtype)


def sincos_errors(dtype, x):
    """Errors of sine and cosine in units of the last place of 1, and of the result."""
    real = np.dtype(dtype).type
    out = angle_kernel(dtype)(np.asarray(x, dtype=dtype)[:, None])
    absolute_, relative = 0.0, 0.0
    with mpmath.workprec(300):
        for a, row in zip(np.asarray(x, dtype=dtype), out, strict=True):
            for f, found in zip((mpmath.sin, mpmath.cos), row, strict=True):
                exact = f(mpmath.mpf(float(a)))
                error = float(abs(mpmath.mpf(float(found)) - exact))
                absolute_ = max(absolute_, error / float(np.finfo(dtype).eps))
                relative = max(relative, error / float(np.spacing(real(abs(float(exact))))))
    return absolute_, relative


@pytest.mark.parametrize(
    ("dtype", "far"), [("float64", 1.0), ("float64", 1e4), ("float64", 9.9e13), ("float32", 1e2), ("float32", 9.9e5)]
)
def test_sine_and_cosine_are_right_to_one_and_a_half_units_in_the_last_place(dtype, far):
    """Measured: 1.46 units of the result's last place, 0.73 eps absolute."""
    x = np.random.default_rng(6).uniform(-far, far, 2000)
    absolute_, relative = sincos_errors(dtype, x)
    assert absolute_ <= 0.75
    assert relative <= 1.5


@pytest.mark.parametrize(("dtype", "far"), [("float64", 1e4), ("float64", 9.9e13), ("float32", 9.9e5)])
def test_next_to_multiples_of_a_right_angle_the_error_stays_below_rounding_of_one(dtype, far):
    """There the result itself is below 1e-7 and only its error against 1 is bounded."""
    n = np.rint(np.random.default_rng(7).uniform(-far, far, 1000) / (math.pi / 2))
    absolute_, _ = sincos_errors(dtype, [0.0, 45.553093477052, *(n * (math.pi / 2))])
    assert absolute_ <= 0.75


@pytest.mark.parametrize("angle", [2e14, -1e15, 1e22, -1e60, 1e300])
def test_far_angles_are_handed_to_the_reference_and_right(angle):
    k = angle_kernel("float64")
    expected = [math.sin(angle), math.cos(angle)]
    assert k(np.array([angle])).tolist() == expected
    many = k(np.array([[0.1], [angle], [0.2]]))
    assert many[1].tolist() == expected
    np.testing.assert_allclose(many[[0, 2], 0], np.sin([0.1, 0.2]), rtol=EPS)


@pytest.mark.parametrize("angle", [1e10, 1e15])
def test_a_hinge_turned_far_is_answered(angle):
    robot = sl.Dynamics(model_of("puma"))
    q, v, tau = next(states(robot.model, 1, seed=8))
    q[2] = angle
    expected = kernel("puma", "forward_dynamics", target="python")(q, v, tau)
    np.testing.assert_allclose(robot.forward_dynamics(q, v, tau), expected, rtol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        many = robot.forward_dynamics(np.stack([q, 0 * q, q]), v, tau)
    np.testing.assert_allclose(many[[0, 2]], [expected] * 2, rtol=1e-12)


# ---- float32


@pytest.mark.slow
@pytest.mark.parametrize("name", ["puma", "quadruped", *ROBOTS])
def test_single_precision_is_as_good_as_its_digits_allow(name):
    """‖M a + h − tau‖ ≤ 1e-6 (‖M‖‖a‖ + ‖h‖ + ‖tau‖), forward errors ≤ eps₃₂ cond₂(M), the others 4e-6 of their size.

    Measured over 200 states each: 7e-8, 0.04 eps₃₂ cond₂(M), and 4e-7. eps₃₂ is 1.2e-7.
    """
    model = model_of(name)
    robot = sl.Dynamics(model, dtype="float32")
    exact = sl.Dynamics(model, target="python")
    for q, v, tau in states(model, 3, seed=9):
        q, v, tau = (x.astype(np.float32) for x in (q, v, tau))
        a = robot.forward_dynamics(q, v, tau)
        assert a.dtype == np.float32
        M, h = exact.mass_matrix(q), exact.bias(q, v)
        size = np.linalg.norm(M, 2) * np.linalg.norm(a) + np.linalg.norm(h) + np.linalg.norm(tau)
        assert np.linalg.norm(M @ a + h - tau) <= 1e-6 * size
        expected = np.linalg.solve(M, tau - h)
        assert np.linalg.norm(a - expected) <= EPS32 * np.linalg.cond(M) * np.linalg.norm(expected)
        found = robot.inverse_dynamics(q, v, tau)
        size = np.linalg.norm(M, 2) * np.linalg.norm(tau) + np.linalg.norm(h)
        assert np.linalg.norm(found - (M @ tau + h)) <= 4e-6 * size
        np.testing.assert_allclose(robot.mass_matrix(q), M, rtol=0, atol=4e-6 * np.abs(M).max())


def test_single_precision_takes_doubles_and_gives_floats():
    k = kernel("puma", "inverse_dynamics", dtype="float32")
    q, v, a = next(states(model_of("puma"), 1, seed=10))
    narrow = [x.astype(np.float32) for x in (q, v, a)]
    assert (k(q, v, a) == k(*narrow)).all()
    assert k(q, v, a).dtype == np.float32
    assert k(q[None], v, a).dtype == np.float32


# ---- long tapes in pieces


@pytest.mark.parametrize("length", [7, 100, 10_000_000])
@pytest.mark.parametrize("function", ["forward_dynamics", "mass_matrix_inverse", "integrate", "difference"])
def test_a_tape_cut_into_pieces_gives_the_same_numbers(monkeypatch, function, length):
    model = model_of("star")
    inputs, options = inputs_of(model, function, seed=11)
    spec = KernelSpec.of(model, function, forces=options.get("forces", ()))
    monkeypatch.setattr(segments.cut, "__defaults__", (length, length))
    k = machine_kernel(PlanDefinition(function, f"cut{length}", spec.plan, spec.reference))
    pieces = segments.cut(k.plan).pieces
    assert len(pieces) > 1 or length > 100
    expected = interpreted(k.plan, *inputs)
    atol = bound_of(model, function, model.random_state(11)[0]) * (np.abs(expected).max() + 1.0)
    np.testing.assert_allclose(k(*inputs), expected, rtol=0, atol=atol)
    many = k(*(np.stack([x] * 11) for x in inputs))
    np.testing.assert_allclose(many, np.stack([expected] * 11), rtol=0, atol=atol)


@pytest.mark.parametrize("length", [1, 10_000_000])
def test_a_refusal_known_beforehand_is_heard_from_pieces_too(monkeypatch, length):
    """A demand that folds to a constant NaN is in no piece."""
    monkeypatch.setattr(segments.cut, "__defaults__", (length, length))
    products = lambda x: [x["x"][0] * x["x"][1], x["x"][1] + x["x"][2]]  # noqa: E731
    plan = unrolled("never", [("x", 3)], (2,), lambda x: (products(x), [], [False]))
    k = machine_kernel(PlanDefinition("never", f"never{length}", plan, sentence="it is never answered"))
    assert len(segments.cut(plan).pieces) == (2 if length == 1 else 1)
    with pytest.raises(StateError, match="never answered"):
        k(np.ones(3))


@pytest.mark.slow
def test_no_piece_is_longer_than_asked_and_none_is_lost():
    plan = kernel("talos", "forward_dynamics").plan
    cut = segments.cut(plan)
    work = [n for n in plan.nodes if NAMES[n.op] not in ("input", "constant")]
    assert len(work) > segments.LENGTH
    own = [n for piece in cut.pieces for n in piece]
    assert {n.index for n in own} == {n.index for n in work}
    again = segments.cut(plan, 50, 50)
    assert max(map(len, again.pieces)) <= 60  # 50, and conditions that are computed once more


# ---- batches


def robot_and_batch(n, seed=12, name="puma"):
    robot = sl.Dynamics(model_of(name))
    return robot, batch(robot.model, n, seed) if n else tuple(np.zeros((0, k)) for k in sizes(robot.model))


def sizes(model):
    return model.nq, model.nv, model.nv


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 15, 16, 17, 4099])
@pytest.mark.parametrize("name", ["puma", "quadruped"])
def test_a_batch_is_its_states_one_by_one(name, n):
    robot, (q, v, tau) = robot_and_batch(n, name=name)
    a = robot.forward_dynamics(q, v, tau)
    assert a.shape == (n, robot.model.nv)
    for i in {0, 1, n // 2, n - 2, n - 1} & set(range(n)):
        np.testing.assert_allclose(a[i], robot.forward_dynamics(q[i], v[i], tau[i]), rtol=1e-9, atol=1e-9)
    M = robot.mass_matrix(q)
    assert M.shape == (n, robot.model.nv, robot.model.nv)


def test_the_whole_of_a_batch_is_right_not_only_its_ends():
    robot, (q, v, tau) = robot_and_batch(133)
    one_by_one = np.array([robot.inverse_dynamics(*row) for row in zip(q, v, tau, strict=True)])
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, tau), one_by_one, rtol=1e-12, atol=1e-12)


def test_any_number_of_leading_axes():
    robot, (q, v, tau) = robot_and_batch(6)
    flat = robot.forward_dynamics(q, v, tau)
    shaped = robot.forward_dynamics(q.reshape(2, 3, -1), v.reshape(2, 3, -1), tau.reshape(2, 3, -1))
    assert shaped.shape == (2, 3, 6)
    assert (shaped.reshape(6, 6) == flat).all()
    assert robot.mass_matrix(q.reshape(1, 2, 3, 1, -1)).shape == (1, 2, 3, 1, 6, 6)
    assert robot.pose(q.reshape(2, 3, -1), "tool").shape == (2, 3, 4, 4)
    assert robot.forward_dynamics(q[:, :][:0].reshape(0, 3, 6), v[:0].reshape(0, 3, 6), tau[0]).shape == (0, 3, 6)


def test_inputs_broadcast_against_each_other():
    robot, (q, v, tau) = robot_and_batch(6)
    expected = np.array([robot.forward_dynamics(q[0], v[i], tau[0]) for i in range(6)])
    np.testing.assert_allclose(robot.forward_dynamics(q[0], v, tau[0]), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(robot.forward_dynamics(q[:1], v, tau[0]), expected, rtol=1e-9, atol=1e-9)
    grid = robot.inverse_dynamics(q[:2, None], v[None, :3], tau[0])
    assert grid.shape == (2, 3, 6)
    for i in range(2):
        for j in range(3):
            expected = robot.inverse_dynamics(q[i], v[j], tau[0])
            np.testing.assert_allclose(grid[i, j], expected, rtol=1e-12, atol=1e-12)


LAYOUTS = {
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "reversed": lambda x: x[..., ::-1].copy()[..., ::-1],
    "column order": np.asfortranarray,
    "offset by a byte": lambda x: shifted(x),
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "long double": lambda x: x.astype(np.longdouble),
    "list": lambda x: x.tolist(),
    "tuple": lambda x: tuple(map(tuple, x.tolist())) if x.ndim > 1 else tuple(x.tolist()),
    "subclass": lambda x: x.view(type("Odd", (np.ndarray,), {})),
    "read-only": lambda x: frozen(x),
    "matrix of rows": lambda x: x[None][0],
}


def shifted(x):
    raw = np.zeros(x.nbytes + 1, np.uint8)
    y = raw[1:].view(x.dtype).reshape(x.shape)
    y[...] = x
    assert not y.flags.aligned
    return y


def frozen(x):
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_any_layout_of_an_input_gives_the_same_answer(kind, many):
    robot, (q, v, tau) = robot_and_batch(9)
    if not many:
        q, v, tau = q[0], v[0], tau[0]
    expected = robot.forward_dynamics(q, v, tau)
    change = LAYOUTS[kind]
    for _ in range(2):  # the first call and those after it go different ways
        assert (robot.forward_dynamics(change(q), change(v), change(tau)) == expected).all()
        assert (robot.forward_dynamics(q, v, change(tau)) == expected).all()


def test_integers_and_short_floats_are_converted():
    robot, _ = robot_and_batch(1)
    q, v, tau = np.arange(6), np.ones(6, bool), np.arange(6, dtype=np.float16)
    expected = robot.forward_dynamics(q * 1.0, v * 1.0, tau.astype(float))
    assert (robot.forward_dynamics(q, v, tau) == expected).all()
    assert (robot.forward_dynamics(q.astype(np.int8), v, tau) == expected).all()
    assert (robot.forward_dynamics([0, 1, 2, 3, 4, 5], v.tolist(), tau) == expected).all()


# ---- out=


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_out_is_filled_and_returned(many):
    robot, (q, v, tau) = robot_and_batch(9)
    if not many:
        q, v, tau = q[0], v[0], tau[0]
    expected = robot.forward_dynamics(q, v, tau)
    for out in (np.full(expected.shape, 7.0), np.full((*expected.shape, 2), 7.0)[..., 1]):  # plain, and strided
        assert robot.forward_dynamics(q, v, tau, out=out) is out
        assert (out == expected).all()
    M = robot.mass_matrix(q)
    out = np.full(M.shape, 7.0)
    assert robot.mass_matrix(q, out=out) is out
    assert (out == M).all()
    out = np.asfortranarray(np.full(M.shape, 7.0))
    assert (robot.mass_matrix(q, out=out) == M).all()


@pytest.mark.parametrize("name", ["star", "tree"])
def test_zeros_of_the_answer_are_written_over_what_was_there(name):
    """A branched mechanism's mass matrix has entries that no state changes."""
    robot, (q, _, _) = robot_and_batch(9, name=name)
    M = robot.mass_matrix(q)
    assert (M == 0.0).any()
    assert (robot.mass_matrix(q, out=np.full(M.shape, 7.0)) == M).all()
    assert (robot.mass_matrix(q[0], out=np.full(M.shape[1:], 7.0)) == robot.mass_matrix(q[0])).all()


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_out_may_be_an_input(which, many):
    robot, inputs = robot_and_batch(9)
    inputs = [x if many else x[0] for x in inputs]
    expected = robot.forward_dynamics(*inputs)
    for _ in range(2):
        given = [x.copy() for x in inputs]
        assert robot.forward_dynamics(*given, out=given[which]) is given[which]
        assert (given[which] == expected).all()


def test_out_may_overlap_an_input_in_part():
    robot, (q, v, tau) = robot_and_batch(1)
    room = np.zeros(9)
    room[:6] = tau[0]
    expected = robot.forward_dynamics(q[0], v[0], tau[0])
    for start in (1, 3):
        room[:6] = tau[0]
        out = room[start : start + 6]
        assert (robot.forward_dynamics(q[0], v[0], room[:6], out=out) == expected).all()


def test_out_holds_as_many_references_as_before():
    robot, (q, v, tau) = robot_and_batch(2)
    out, many = np.zeros(6), np.zeros((2, 6))
    args = (q[0], v[0], tau[0])
    robot.forward_dynamics(*args, out=out)
    counts = [sys.getrefcount(x) for x in (out, many, *args, q)]
    for _ in range(100):
        robot.forward_dynamics(*args, out=out)
        robot.forward_dynamics(q, v, tau, out=many)
        with pytest.raises(StateError):
            robot.forward_dynamics(np.full(6, np.nan), v[0], tau[0], out=out)
        with pytest.raises(InputError):
            robot.forward_dynamics(*args, out=many)
    assert [sys.getrefcount(x) for x in (out, many, *args, q)] == counts
    assert sys.getrefcount(robot.forward_dynamics(*args)) == sys.getrefcount(np.zeros(6))


@pytest.mark.slow
def test_many_calls_leak_nothing():
    import tracemalloc

    ours = [tracemalloc.Filter(True, "*spanloop*"), tracemalloc.Filter(True, __file__)]  # other threads allocate, too

    def held() -> int:
        gc.collect()
        return sum(s.size for s in tracemalloc.take_snapshot().filter_traces(ours).statistics("filename"))

    robot, (q, v, tau) = robot_and_batch(1)
    args, out = (q[0], v[0], tau[0]), np.zeros(6)
    call = robot.forward_dynamics
    call(*args)
    call = robot.forward_dynamics  # the compiled one
    tracemalloc.start()
    for _ in range(1000):
        call(*args)
    before = held()
    for _ in range(100_000):
        call(*args)
        call(*args, out=out)
    after = held()
    where = tracemalloc.take_snapshot().filter_traces(ours).statistics("lineno")[:3]
    tracemalloc.stop()
    assert after - before < 20_000, where  # bytes; one array a call would be 10 MB


@pytest.mark.slow
def test_a_refused_call_gives_back_the_references_it_took():
    robot, (q, v, tau) = robot_and_batch(1)
    args, out = (q[0].copy(), v[0].copy(), tau[0] * np.inf), np.zeros(6)
    robot.forward_dynamics(q[0], v[0], tau[0])  # from now on the compiled one
    counts = [sys.getrefcount(x) for x in (*args, out)]
    for _ in range(50):
        with contextlib.suppress(StateError):
            robot.forward_dynamics(*args, out=out)
            raise AssertionError("not refused")
    gc.collect()
    assert [sys.getrefcount(x) for x in (*args, out)] == counts


# ---- threads, bad states


@pytest.mark.parametrize("n", [1, 9, 1001])
def test_threads_change_nothing(n):
    model = model_of("quadruped")
    q, v, tau = batch(model, n, 13)
    one, two, all_ = (sl.Dynamics(model, threads=t) for t in (1, 2, 0))
    a = one.forward_dynamics(q, v, tau)
    assert (two.forward_dynamics(q, v, tau) == a).all()
    assert (all_.forward_dynamics(q, v, tau) == a).all()
    q[n // 2, 8] = np.nan
    with pytest.warns(SpanloopWarning, match=f"1 of {n} states has no answer; .* It is state {n // 2}: "):
        b = two.forward_dynamics(q, v, tau)
    assert np.isnan(b[n // 2]).all()
    rest = np.arange(n) != n // 2
    assert (b[rest] == a[rest]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("name", ["puma", "star", "talos"])
def test_a_bad_state_harms_no_other(name, which, value):
    robot, inputs = robot_and_batch(21, name=name)
    expected = robot.forward_dynamics(*inputs)
    for i in (4, 20):
        inputs[which][i, 3] = value
    with pytest.warns(SpanloopWarning) as caught:
        a = robot.forward_dynamics(*inputs)
    assert len(caught) == 1
    letter = ("q", "v", "tau")[which]
    sentence = str(caught[0].message)
    start = "forward_dynamics: 2 of 21 states have no answer; their rows are NaN. The first is state 4: "
    assert sentence.startswith(f"{start}{letter}[3] (joint ")
    assert sentence.endswith(f"is {value}; every number must be finite")
    assert np.isnan(a[[4, 20]]).all()
    rest = np.ones(21, bool)
    rest[[4, 20]] = False
    assert (a[rest] == expected[rest]).all()


def test_the_warning_points_to_the_callers_line():
    robot, (q, v, tau) = robot_and_batch(3)
    q[1, 0] = np.nan
    for _ in range(2):  # through Python, then through the compiled call
        with pytest.warns(SpanloopWarning) as caught:
            robot.forward_dynamics(q, v, tau)
        assert caught[0].filename == __file__
    k = kernel("puma", "forward_dynamics")
    with pytest.warns(SpanloopWarning) as caught:
        k(q, v, tau)
    assert caught[0].filename == __file__


def test_a_bad_state_in_a_shaped_batch_is_named_by_its_index():
    robot, (q, v, tau) = robot_and_batch(6)
    q = q.reshape(2, 3, 6)
    q[1, 2, 0] = np.nan
    with pytest.warns(SpanloopWarning, match=r"1 of 6 states has no answer; .* It is state \(1, 2\): q\[0\]"):
        robot.forward_dynamics(q, v.reshape(2, 3, 6), tau[0])


def test_a_quaternion_off_unit_is_a_bad_state():
    robot, (q, v, tau) = robot_and_batch(3, name="star")
    expected = robot.forward_dynamics(q, v, tau)
    q[1, :4] *= 1.00001
    sentence = "is a quaternion of length 1.00001; expected 1 to within 1e-06. Divide it by its length"
    with pytest.warns(SpanloopWarning, match=sentence):
        a = robot.forward_dynamics(q, v, tau)
    assert np.isnan(a[1]).all()
    assert (a[[0, 2]] == expected[[0, 2]]).all()
    with says(StateError, sentence):
        robot.forward_dynamics(q[1], v[1], tau[1])
    q[1, :4] /= np.linalg.norm(q[1, :4]) * (1.0 + 5e-7)
    robot.forward_dynamics(q[1], v[1], tau[1])  # within


def test_numbers_that_overflow_are_said():
    robot, (q, v, tau) = robot_and_batch(2)
    with says(StateError, "forward_dynamics: the answer is not finite at this state"):
        robot.forward_dynamics(q[0], 1e200 * v[0], tau[0])
    with pytest.warns(SpanloopWarning, match="1 of .* states has no answer"):
        a = robot.forward_dynamics(q, np.stack([v[0], 1e200 * v[1]]), tau)
    assert np.isfinite(a[0]).all()
    assert np.isnan(a[1]).all()


def test_a_body_without_inertia_on_a_free_end_is_said():
    b = sl.Builder("massless").body("arm", 1.0, (0.1, 0.0, 0.0), (0.01, 0.01, 0.01)).body("ghost")
    b.revolute("a", "world", "arm", "z").revolute("b", "arm", "ghost", "z", (0.2, 0.0, 0.0))
    for robot in (sl.Dynamics(b.build()), sl.Dynamics(b.build(), target="python")):
        with says(StateError, "joint 'b' (body 'ghost'): the mass matrix is singular at this position"):
            robot.forward_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))


# ---- lives and copies


@pytest.mark.slow
def test_a_kernel_outlives_its_robot():
    robot, (q, v, tau) = robot_and_batch(2)
    expected = robot.forward_dynamics(q[0], v[0], tau[0])
    call, k = robot.forward_dynamics, robot.kernel("forward_dynamics")
    del robot
    gc.collect()
    assert (call(q[0], v[0], tau[0]) == expected).all()
    assert (k(q[0], v[0], tau[0]) == expected).all()
    call = k.call
    del k
    gc.collect()
    assert (call(q[0], v[0], tau[0]) == expected).all()
    assert (call(q, v, tau)[0] == expected).all()


@pytest.mark.slow
def test_a_dropped_robot_is_freed():
    robot, (q, v, tau) = robot_and_batch(1)
    robot.forward_dynamics(q[0], v[0], tau[0])
    watched = weakref.ref(robot), weakref.ref(robot.kernel("forward_dynamics"))
    del robot
    gc.collect()
    assert [w() for w in watched] == [None, None]


def test_a_robot_can_be_pickled():
    robot = sl.Dynamics(model_of("quadruped"), method="composite_body", threads=2)
    q, v, tau = batch(robot.model, 3, 14)
    a = robot.forward_dynamics(q, v, tau)
    again = pickle.loads(pickle.dumps(robot))
    assert (again.forward_dynamics(q, v, tau) == a).all()
    assert again.model == robot.model
    assert repr(again) == "Dynamics('quadruped', nq=19, nv=18)"


def test_arguments_may_be_named():
    robot, (q, v, tau) = robot_and_batch(1)
    q, v, tau, out = q[0], v[0], tau[0], np.zeros(6)
    expected = robot.forward_dynamics(q, v, tau)
    for _ in range(2):
        assert (robot.forward_dynamics(q=q, v=v, tau=tau) == expected).all()
        assert (robot.forward_dynamics(q, v, tau=tau) == expected).all()
        assert robot.forward_dynamics(q, tau=tau, v=v, out=out) is out
        assert robot.forward_dynamics(q, v, tau, **{"".join(("o", "ut")): out}) is out
        assert robot.forward_dynamics(q, v, tau, out=None).shape == (6,)
        assert robot.forward_dynamics(q, v, tau, forces=None, out=None).shape == (6,)
    with pytest.raises(TypeError):
        robot.forward_dynamics(q, v, tau, outt=out)
    with pytest.raises(TypeError):
        robot.forward_dynamics(q, v)


def test_without_the_fast_call_everything_still_works(monkeypatch):
    monkeypatch.setattr(python_call, "abi_fits", lambda: False)
    robot, (q, v, tau) = robot_and_batch(3)
    assert not inspect.isbuiltin(robot.kernel("forward_dynamics").call)
    expected = kernel("puma", "forward_dynamics", target="python")(q, v, tau)
    np.testing.assert_allclose(robot.forward_dynamics(q, v, tau), expected, rtol=1e-9)
    one = robot.forward_dynamics(q[0], v[0], tau[0])
    np.testing.assert_allclose(one, expected[0], rtol=1e-9)
    out = np.zeros(6)
    assert robot.forward_dynamics(q[0], v[0], tau[0], out=out) is out
    with pytest.raises(StateError):
        robot.forward_dynamics(q[0] * np.nan, v[0], tau[0])


def test_the_fast_call_is_used_here():
    assert python_call.abi_fits()
    assert inspect.isbuiltin(kernel("puma", "forward_dynamics").call)


def test_a_robot_may_be_used_from_several_threads():
    from concurrent.futures import ThreadPoolExecutor

    robot, (q, v, tau) = robot_and_batch(64, name="quadruped")
    expected = [robot.forward_dynamics(*row) for row in zip(q, v, tau, strict=True)]
    fresh = sl.Dynamics(robot.model)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: fresh.forward_dynamics(q[i], v[i], tau[i]), range(64)))
    assert (np.array(found) == expected).all()


@pytest.mark.slow
def test_kernels_come_and_go_without_a_crash():
    code = (
        "import gc, numpy as np, spanloop as sl\n"
        "model = sl.zoo.pendulum(2)\n"
        "for i in range(400):\n"
        "    robot = sl.Dynamics(model)\n"
        "    robot.forward_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))\n"
        "    robot.mass_matrix(np.zeros((3, 2)))\n"
        "    if i % 7 == 0:\n"
        "        gc.collect()\n"
    )
    subprocess.run([sys.executable, "-X", "dev", "-c", code], check=True, timeout=300)


# ---- every stage prints


def test_every_stage_prints():
    k = kernel("puma", "forward_dynamics")
    assert "define i32 @kernel" in k.source
    assert "define i64 @batch" in k.batch_source
    text = str(k.plan)
    assert text.startswith("forward_dynamics(q[6], v[6], tau[6]) -> (6,)\n")
    assert "  return %" in text
    assert repr(k).startswith("<kernel forward_dynamics(q[6], v[6], tau[6]) -> (6,) float64: ")
    assert "multiplications" in str(k.operations)
    program = KernelSpec.of(model_of("puma"), "forward_dynamics").program[1]
    lines = str(program).splitlines()
    assert lines[0] == "forward_dynamics(q, v, tau) -> (6,)"
    assert [line.split()[:2] for line in lines[1:]] == [
        ["outward", "place"],
        ["outward", "bias_acceleration"],
        ["inward", "filtered"],
        ["outward", "smooth"],
    ]


@pytest.mark.parametrize("function", ON_TREES)
def test_the_python_target_has_the_interface_of_a_kernel(function):
    model = model_of("quadruped")
    inputs, options = inputs_of(model, function)
    slow, fast = (kernel("quadruped", function, target=t, **options) for t in ("python", "cpu"))
    assert slow.inputs == fast.inputs
    assert slow.shape == fast.shape
    wide = [np.stack([x] * 4).reshape(2, 2, -1) for x in inputs]
    found = slow(*wide)
    assert found.shape == (2, 2, *slow.shape)
    np.testing.assert_allclose(found[1, 1], slow(*inputs))
    out = np.zeros(slow.shape)
    assert slow(*inputs, out=out) is out


@pytest.mark.parametrize("target", ["cpu", "python"])
def test_a_model_without_freedoms_has_empty_answers(target):
    b = (
        sl.Builder("statue")
        .body("block", 1.0, inertia=(1.0, 1.0, 1.0))
        .fixed("glue", "world", "block", (1.0, 0.0, 0.0))
    )
    robot = sl.Dynamics(b.build(), target=target)
    q = np.zeros(0)
    assert robot.forward_dynamics(q, q, q).shape == (0,)
    assert robot.mass_matrix(q).shape == (0, 0)
    assert robot.pose(q, "block")[0, 3] == 1.0
    assert robot.jacobian(q, "block").shape == (6, 0)
    assert robot.energy(q, q).tolist() == [0.0, 0.0]
    assert robot.forward_dynamics(np.zeros((3, 0)), q, q).shape == (3, 0)


def test_zoo_of_one_body_needs_no_batch_of_eight():
    robot = sl.Dynamics(zoo.pendulum(1))
    assert robot.forward_dynamics(np.zeros((1, 1)), np.zeros(1), np.ones(1)).shape == (1, 1)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(sys, "getdlopenflags"), reason="there is no fork here")
def test_a_forked_process_may_use_threads_too():
    """Its copy of the pool has no threads of its own."""
    code = (
        "import multiprocessing, warnings, numpy as np, spanloop as sl\n"
        "warnings.simplefilter('ignore')\n"
        "robot = sl.Dynamics(sl.zoo.pendulum(2), threads=2)\n"
        "z = np.zeros((64, 2))\n"
        "expected = robot.forward_dynamics(z, z, z)\n"
        "def work(): assert (robot.forward_dynamics(z, z, z) == expected).all()\n"
        "child = multiprocessing.get_context('fork').Process(target=work)\n"
        "child.start()\n"
        "child.join(10)\n"
        "stuck = child.is_alive()\n"
        "child.kill()\n"
        "assert not stuck and child.exitcode == 0, (stuck, child.exitcode)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("function", ["center_of_mass", "momentum"])
def test_a_mechanism_without_moving_mass_has_no_mass_centre(function):
    b = sl.Builder("statue").body("block", 1.0, inertia=(1.0, 1.0, 1.0)).fixed("glue", "world", "block")
    robot = sl.Dynamics(b.build())
    none = [np.zeros(0)] * (1 if function == "center_of_mass" else 2)
    with pytest.raises(sl.SpanloopError):
        getattr(robot, function)(*none)


@pytest.mark.parametrize("function", ["pose", "jacobian"])
def test_a_bad_state_is_bad_even_where_the_answer_does_not_depend_on_it(function):
    """The world's pose: one state raises, and in a batch it is marked."""
    robot, (q, _, _) = robot_and_batch(9)
    q[4, 2] = np.nan
    with says(StateError, "q[2] (joint 'joint3') is nan"):
        getattr(robot, function)(q[4], "world")
    with pytest.warns(SpanloopWarning, match="1 of 9 states has no answer; .* state 4: "):
        answer = getattr(robot, function)(q, "world")
    assert np.isnan(answer[4]).all()
    assert np.isfinite(np.delete(answer, 4, axis=0)).all()


def test_many_outputs_that_are_zero_are_cleared_by_a_loop_also_where_old_numbers_stand():
    model = sl.zoo.hexapod()
    kernel, reference = (sl.compile(model, "closure_jacobian", target=target) for target in ("cpu", "python"))
    q = model.random_state(seed=3)[0]
    out = np.full(kernel.shape, 7.0)
    assert "@clear" in kernel.source
    np.testing.assert_allclose(kernel(q, out=out), reference(q), atol=1e-13)
    assert out.size - np.count_nonzero(out) > 256
