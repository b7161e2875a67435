"""Functions of users in NumPy's arithmetic: traced and compiled, they give what NumPy gives on floats."""

from __future__ import annotations

import numpy as np
import pytest
from sentences import says
from tape import interpreted

import spanloop as sl
from spanloop.compiler.lower import Plan, traced_inputs
from spanloop.compiler.traced_arrays import TracedArray
from spanloop.simulation.controllers import Controller

K = np.array([[3.0, -1.0, 0.0], [0.5, 2.0, 1.0], [0.0, 0.0, -4.0]])
X = np.array([0.3, -0.7, 0.9])
Y = np.array([-0.2, 0.4, 0.9])

EXPRESSIONS = {
    "arithmetic": lambda x, y: -3.0 * x + y / 2.0 - (1.0 - x) * y + x**3 - 2 / (y + 3.0) + (+x) - (-y),
    "numbers of NumPy": lambda x, y: np.float64(2.0) * x + np.float64(1.0) / (y + 2.0) - np.array(0.5) * x[0],
    "powers": lambda x, y: x**0 + x**-2 + np.power(y, 4) + (x * x) ** 0.5 + np.square(x),
    "matrix": lambda x, y: K @ x + y @ K + K.dot(x) * np.dot(x, y) + x.dot(y),
    "matrix of traced": lambda x, y: (np.outer(x, y) + K) @ x + np.diag(x) @ y + np.einsum("ij,j->i", K, y),
    "sines": lambda x, y: np.sin(x) + np.cos(y[0]) * np.tan(x) + np.sin(x[1]),
    "angles": lambda x, y: np.arcsin(x) + np.arccos(y) + np.arctan(3.0 * x) + np.arctan2(x, y) + np.hypot(x, y),
    "roots": lambda x, y: np.sqrt(x + 1.0) + np.linalg.norm(x) + np.linalg.norm(np.stack([x, y]), axis=0),
    "growth": lambda x, y: np.exp(x) + np.exp(-3.0 * y) + np.tanh(x) + np.tanh(4.0 * y),
    "where": lambda x, y: np.where(x > 0.0, np.sin(x), y) + np.where(x[0] < 0.5, 1.0, x) + sl.where(x >= y, 1.0, 2.0),
    "conditions": lambda x, y: np.where((x > 0.0) & (y > 0.0) | ~(x <= y), 1.0, np.where(np.any(x > 0.8), x, y)),
    "all": lambda x, y: np.where(np.all(x > -1.0) & np.logical_not(x[0] > 5.0) & True, x, y),
    "bounds": lambda x, y: np.clip(x, -0.5, 0.5) + np.minimum(x, y) + np.maximum(x, 0.1) + x.clip(-0.1, 0.2),
    "signs": lambda x, y: np.sign(x) + np.abs(y) + abs(x) + np.fabs(y[1]),
    "sums": lambda x, y: x.sum() + np.sum([x, y]) + np.prod(x) + np.mean(x) + np.max(x) * np.min(y) + y.max() + y,
    "sums of columns": lambda x, y: np.sum([x, y], axis=0) + np.max(np.stack([x, y]), axis=0) + np.cumsum(x),
    "parts": lambda x, y: np.concatenate([x[:1], y[1:]]) + np.stack([x[2], 1.0, y[0]]) + np.array([x[0], 1.0, y[1]]),
    "shapes": lambda x, y: np.reshape(np.tile(x, 2), (2, 3))[1] + y[::-1] + np.cross(x, y) + np.hstack([x[0], y[:2]]),
    "in place": lambda x, y: _in_place(x, y),
    "products of conditions": lambda x, y: x * (x > 0.0) + (y > 0.0) * 2.0 + x * ((x > 0.0) * (y > 0.0)) + (x > y) * y,
    "conditions as numbers": lambda x, y: (x > 0.0).astype(float) * 3.0 + x.astype(float),
    "remainders": lambda x, y: (7.0 * x) % 1.5 + np.mod(-9.0 * y, 2.0) + (5.0 * x + np.pi) % (-0.7) + 3.0 * x[0] % 0.9,
    "whole numbers": lambda x, y: np.floor(9.0 * x) + np.ceil(7.0 * y),
    "tables": lambda x, y: np.interp(x, [-0.5, 0.0, 0.9], [1.0, 3.0, 2.0]),
    "ends of tables": lambda x, y: np.interp(y[0], [0, 1], [5, 6], left=2.0) + np.interp(x, [0, 0.5], [1, 2], 3, 4),
    "polynomials": lambda x, y: np.polyval([2.0, -1.0, 0.5], x) + np.polyval([3.0, 1.0], y[1]),
    "half powers": lambda x, y: (x + 1.0) ** 1.5 + (y + 2.0) ** -2.5 + np.power(x + 1.0, 0.5),
    "scalar products": lambda x, y: x * np.vdot(x, y) + np.conj(y) + np.dot(x.conj(), y),
    "methods": lambda x, y: np.stack([x, y]).mean(axis=0) + x.mean() + x.std() + y.var(),
    "select": lambda x, y: np.select([x > 0.5, x > 0.0], [x, y], 7.0),
}  # fmt: skip


def _in_place(x, y):
    out = np.zeros_like(x)
    out[0] = x[1] * 2.0
    out[1:] += y[:2]
    out *= 2.0
    return out


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_of_numpy_on_floats_in_traced_arrays_is_numpys(name):
    expression = EXPRESSIONS[name]
    found = expression(TracedArray.of(X.tolist()), TracedArray.of(Y.tolist()))
    np.testing.assert_allclose(np.asarray(found, dtype=float), expression(X, Y), atol=1e-15, rtol=1e-15)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_of_numpy_on_traced_values_is_numpys(name):
    inputs = traced_inputs((("x", 3), ("y", 3)))
    found = EXPRESSIONS[name](TracedArray.of(inputs["x"]), TracedArray.of(inputs["y"]))
    plan = Plan.of("test", inputs, (3,), list(found))
    for x, y in ((X, Y), (Y, X), (-X, 0.5 * Y)):
        np.testing.assert_allclose(interpreted(plan, x, y), EXPRESSIONS[name](x, y), atol=1e-14, rtol=1e-14)


def law(t, q, v):
    """Everything that a user may write, in one law."""
    gains = np.diag([40.0, 40.0, 40.0, 5.0, 5.0, 5.0])
    error = q - np.array([0.1, 0.2, 0.3, 0.0, 0.0, 0.0])
    tau = -gains @ error - 3.0 * v + np.clip(np.sin(q) * np.cos(q[0]), -0.5, 0.5)
    tau[1] += np.where(t > 0.02, 1.0, np.tan(q[1]))
    tau += np.where((q > 0.05) & (v < 1.0), np.minimum(v, 0.5), -q) + np.concatenate([q[:3], v[3:]])
    return tau * np.linalg.norm(q + 1.0)


def test_a_law_in_numpy_gives_the_torques_that_it_gives_on_floats():
    run = sl.simulate(sl.zoo.puma(), duration=0.05, step=1e-3, controller=law)
    expected = [law(t, q.copy(), v.copy()) for t, q, v in zip(run.times, run.q, run.v, strict=True)]
    np.testing.assert_allclose(run.tau, expected, rtol=1e-13, atol=1e-13)


def test_a_law_in_numpy_and_its_callback_make_one_run():
    arm = sl.zoo.pendulum(2)

    def brake(t, q, v):
        return -3.0 * v - np.where(q > 0.2, 2.0 * np.sin(q), 0.0)

    settings = {"duration": 0.2, "step": 1e-3, "integrator": "euler"}
    traced = sl.simulate(arm, [0.5, 1.0], controller=brake, **settings)
    called = sl.simulate(arm, [0.5, 1.0], controller=sl.control.callback(brake), **settings)
    np.testing.assert_allclose(traced.q, called.q, atol=1e-13)


def test_every_function_of_a_run_takes_numpy():
    arm = sl.zoo.pendulum(2)
    way = sl.control.path(
        lambda t: (0.1 * np.sin(t) * np.ones(2), 0.1 * np.cos(t) * np.ones(2), -0.1 * np.sin(t) * np.ones(2))
    )

    class Integral(Controller):
        inputs, memory = 2, 2

        def torques(self, t, q, v, u, z):
            return -5.0 * (q - u) - np.array([2.0, 1.0]) * z - v

        def update(self, t, h, q, v, u, z):
            return z + h * (q - u)

    run = sl.simulate(
        arm,
        duration=0.1,
        controller=Integral(),
        inputs=np.ones((100, 2)),
        forces=lambda t, q, v: {"rod2": np.concatenate([np.zeros(3), -0.1 * np.stack([v[0], 0.0, np.sin(t)])])},
        events={"far": lambda t, q, v: 100.0 - np.sum(q * q)},
    )
    plain = sl.simulate(
        arm,
        duration=0.1,
        controller=Plain(),
        inputs=np.ones((100, 2)),
        forces=lambda t, q, v: {"rod2": [0.0, 0.0, 0.0, -0.1 * v[0], 0.0, -0.1 * sl.math.scalar.sincos(t)[0]]},
    )
    np.testing.assert_allclose(run.q, plain.q, atol=1e-14)
    assert sl.simulate(arm, duration=0.1, controller=sl.control.pd(arm, 10.0, 1.0, way)).outcome.finished


class Plain(Controller):
    """The integral law without NumPy."""

    inputs, memory = 2, 2

    def torques(self, t, q, v, u, z):
        return [-5.0 * (q[k] - u[k]) - (2.0, 1.0)[k] * z[k] - v[k] for k in range(2)]

    def update(self, t, h, q, v, u, z):
        return [z[k] + h * (q[k] - u[k]) for k in range(2)]


def test_joints_by_name_are_numbers_or_arrays():
    model = sl.zoo.pendulum(2)
    run = sl.simulate(model, [0.3, 0.1], duration=0.01, controller=lambda t, q, v: {"hinge1": -np.sin(q["hinge1"])})
    np.testing.assert_allclose(run.tau[:, 0], -np.sin(run.q[:, 0]), atol=1e-15)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda x: np.linalg.inv(np.outer(x, x)), "np.linalg.inv of traced values"),
        (lambda x: np.rint(x), "np.rint of traced values"),
        (lambda x: pytest.importorskip("scipy.special").expit(x), "scipy.special.expit of traced values"),
        (lambda x: x % x, "the second number is a constant"),
        (lambda x: np.interp(0.3, x, [1.0, 2.0, 3.0]), "np.interp with traced points"),
        (lambda x: np.add.accumulate(x), "np.add.accumulate of traced values"),
        (lambda x: 2.0**x, "a number to a traced power"),
        (lambda x: x ** 0.3, "powers up to 64 that are whole or end in .5 can be traced"),
        (lambda x: np.sin(x, where=[True, False, True]), "np.sin of traced values with where="),
        (lambda x: x == 0.0, "np.equal of traced values"),
        (lambda x: 1.0 if (x > 0.0) else 0.0, "traced values have no truth"),
        (lambda x: x & True, "a traced number has no truth"),
        (lambda x: np.where(x > 0.0), "without the two choices"),
        (lambda x: x.astype(int), "traced values as whole numbers"),
        (lambda x: np.linalg.norm(x, ord=1), "np.linalg.norm of traced values with ord=1"),
    ],
)  # fmt: skip
def test_what_cannot_be_traced_is_a_sentence(wrong, sentence):
    with says(TypeError, sentence):
        wrong(TracedArray.of(traced_inputs((("x", 3),))["x"]))


def test_traced_exp_and_tanh_have_all_digits():
    inputs = traced_inputs((("x", 1),))
    for function in (np.exp, np.tanh):
        plan = Plan.of("test", inputs, (1,), list(function(TracedArray.of(inputs["x"]))))
        numbers = [
            *np.linspace(-40.0, 40.0, 161),
            *np.linspace(-0.7, 0.7, 57),
            1e-9,
            -1e-300,
            0.0,
            350.0,
            -350.0,
            709.7,
        ]
        found = [interpreted(plan, [x])[0] for x in numbers]
        np.testing.assert_allclose(found, function(numbers), rtol=7e-16, atol=0.0)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(
                [interpreted(plan, [x])[0] for x in (800.0, -800.0)], function([800.0, -800.0])
            )


FLOAT32 = {
    "exp": lambda x: np.exp(x) + np.exp(-x * x),
    "exp of what is small": lambda x: np.exp(-200.0 * x * x),
    "tanh": lambda x: np.tanh(x) + np.tanh(500.0 * x),
    "arctan2 of nothing": lambda x: np.arctan2(x - x, x - x) + x,
}


@pytest.mark.parametrize("name", FLOAT32)
def test_a_controller_in_float32_has_numpys_functions(name):
    law = lambda t, q, v: FLOAT32[name](q)  # noqa: E731
    steps = sl.Integrator("euler", dtype="float32")
    given = {"duration": 0.02, "step": 0.01, "controller": law}
    run = sl.simulate(sl.zoo.pendulum(), [[1.0], [-3.0], [0.01]], **given, integrator=steps)
    np.testing.assert_allclose(run.tau, law(0.0, run.q, run.v), rtol=2e-6, atol=1e-7)
    one, other = (
        sl.gradient(sl.zoo.pendulum(), lambda q, v: q @ q, [1.0], **given, integrator=i) for i in (steps, "euler")
    )
    np.testing.assert_allclose(one.q, other.q, rtol=1e-5)
