"""Derivatives of kernels: the three modes agree, and agree with differences in extended precision."""

from __future__ import annotations

import numpy as np
import pytest
from extended import EXTENDED, central, evaluate
from singular_cases import folded_four_bar

import spanloop as sl
from spanloop.compiler.derivative import pullback
from spanloop.compiler.lower import Plan, traced_inputs
from spanloop.compiler.lower.evaluation import evaluated
from spanloop.errors import InputError, Reason, StateError, UnsupportedError
from spanloop.math.scalar import sqrt, where

MECHANISMS = ("puma", "four_bar", "quadruped")


def question(name: str):
    model = getattr(sl.zoo, name)()
    q, v = model.random_state(seed=3)
    if model.loops:
        robot = sl.Dynamics(model)
        q, v = robot.project(sl.zoo.four_bar_start(), v)
    return model, q, v, np.random.default_rng(4).normal(size=model.nv)


@pytest.mark.parametrize("name", MECHANISMS)
def test_jvp_vjp_and_jacobian_agree(name):
    model, q, v, tau = question(name)
    rng = np.random.default_rng(5)
    directions, weights = rng.normal(size=(3, model.nv)), rng.normal(size=model.nv)
    whole, along, weighted = (
        sl.compile(model, "tree_inverse_dynamics", derivative=mode) for mode in ("jacobian", "jvp", "vjp")
    )
    J = whole(q, v, tau)
    size = np.abs(J).max()
    assert np.abs(along(q, v, tau, *directions) - J @ directions.ravel()).max() < 1e-13 * size * model.nv
    assert np.abs(weighted(q, v, tau, weights) - weights @ J).max() < 1e-13 * size * model.nv


@pytest.mark.parametrize("name", MECHANISMS)
def test_jvp_of_forward_dynamics_is_that_of_extended_precision(name):
    model, q, v, tau = question(name)
    dq, dv, dtau = np.random.default_rng(6).normal(size=(3, model.nv))
    plan = sl.compile(model, "forward_dynamics").plan
    moved = sl.compile(model, "integrate").plan

    def at(s):
        return evaluate(plan, evaluate(moved, q, s * dq), v + s * dv, tau + s * dtau)

    expected = central(at, 1e-4)
    found = sl.Dynamics(model).jvp("forward_dynamics", {"q": q, "v": v, "tau": tau}, {"q": dq, "v": dv, "tau": dtau})
    assert np.abs(found - expected).max() < 1e-11 * np.abs(expected).max()


def test_the_python_target_differentiates_too():
    model, q, v, tau = question("puma")
    given = (q, v, tau, np.ones(6))
    found, expected = (
        sl.compile(model, "forward_dynamics", derivative="vjp", target=target)(*given) for target in ("cpu", "python")
    )
    assert np.abs(found - expected).max() < 1e-13 * np.abs(expected).max()


def test_rows_of_a_batch_are_those_of_single_states():
    model, _, _, _ = question("puma")
    rng = np.random.default_rng(7)
    given = [rng.normal(size=(9, 6)) for _ in range(4)]
    kernel = sl.compile(model, "forward_dynamics", derivative="vjp")
    rows = kernel(*given)
    assert np.abs(rows - [kernel(*(x[k] for x in given)) for k in range(9)]).max() < 1e-12 * np.abs(rows).max()


def test_what_is_not_selected_contributes_nothing_even_if_its_derivative_is_infinite():
    x = traced_inputs([("x", 1)])
    root = sqrt(x["x"][0])
    y = where(x["x"][0] > 0.0, root, 3.0 * x["x"][0])
    plan = Plan.of("f", x, (1,), pullback([y], [2.0], x["x"]))
    with np.errstate(all="ignore"):
        at_zero, _ = evaluated(plan, [np.float64(0.0)], EXTENDED)
        at_four, _ = evaluated(plan, [np.float64(4.0)], EXTENDED)
    assert (at_zero[0], at_four[0]) == (6.0, 0.5)


def test_a_singular_state_is_refused_as_by_the_function_itself():
    model = sl.zoo.four_bar()
    kernel = sl.compile(model, "forward_dynamics", derivative="jvp")
    open_loop = sl.zoo.four_bar_start() + [0.3, 0.0, 0.0]
    with pytest.raises(StateError) as error:
        kernel(open_loop, *np.zeros((2, 3)), *np.zeros((3, 3)))
    assert error.value.reason is Reason.OPEN_LOOP


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"derivative": "gradient"}, "derivative is 'gradient'"),
        ({"derivative": "jvp", "wrt": "speed"}, "wrt has 'speed'"),
        ({"wrt": "q"}, "of no derivative"),
        ({"derivative": "jvp", "lowering": "looped"}, "not looped"),
    ],
)
def test_a_derivative_that_does_not_exist_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        sl.compile(sl.zoo.puma(), "inverse_dynamics", **options)


def test_near_a_singular_position_a_derivative_without_digits_is_refused():
    """The folded parallelogram moves as one; the derivative loses its digits as 1 / δ³."""
    far, near = folded_four_bar(0.1), folded_four_bar(1e-6)
    robot = sl.Dynamics(far.model)
    directions = {"q": np.ones(3), "v": np.zeros(3), "tau": np.zeros(3)}
    for case, refused in ((far, False), (near, True)):
        inputs = {"q": case.q, "v": case.v, "tau": np.zeros(3)}
        assert np.isfinite(robot.forward_dynamics(*inputs.values())).all()
        if refused:
            with pytest.raises(StateError) as error:
                robot.jvp("forward_dynamics", inputs, directions)
            assert error.value.reason is Reason.SINGULAR_CLOSURE
        else:
            assert np.isfinite(robot.jvp("forward_dynamics", inputs, directions)).all()


@pytest.mark.slow
def test_forces_are_by_body_in_whatever_order_they_are_given():
    model, q, v, tau = question("puma")
    robot = sl.Dynamics(model)
    loads = {"link6": np.arange(6.0), "link2": np.ones(6)}
    inputs = {"q": q, "v": v, "tau": tau, "forces": loads}
    by = robot.derivative("forward_dynamics", inputs, wrt="forces")["forces"]
    for body in loads:
        more = robot.forward_dynamics(q, v, tau, forces=loads | {body: loads[body] + np.eye(6)})
        np.testing.assert_allclose(by[body].T, more - robot.forward_dynamics(q, v, tau, forces=loads), atol=1e-9)
        along = robot.jvp("forward_dynamics", inputs, {"forces": {body: np.ones(6)}})
        np.testing.assert_allclose(along, by[body].sum(axis=1), atol=1e-9)


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        ("reactions", {}, "without the forces of the loops"),
        ("inverse_dynamics", {}, "inverse_dynamics_derivatives"),
        ("mass_matrix", {"coordinates": "independent"}, "take no option 'coordinates'"),
    ],
)
def test_what_is_another_function_with_loops_is_refused(function, options, words):
    robot, q = sl.Dynamics(sl.zoo.four_bar()), sl.zoo.four_bar_start()
    with pytest.raises((InputError, UnsupportedError), match=words):
        robot.derivative(function, {"q": q, "v": np.zeros(3), "a": np.zeros(3)}, **options)
