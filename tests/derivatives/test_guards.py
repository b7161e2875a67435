"""Selections: what is not taken has no part in a derivative, even where its own value or derivative is not finite."""

from __future__ import annotations

import numpy as np
import pytest
from extended import EXTENDED

from spanloop.compiler.derivative import pullback, tangents
from spanloop.compiler.lower import Plan, traced_inputs
from spanloop.compiler.lower.evaluation import evaluated
from spanloop.math.scalar import absolute, arctan2, exp, sincos, sqrt, tanh, where

# functions of x and y that are finite at (0, 2) though a side that is not taken is not, and their derivatives there
CASES = {
    "product with a quotient": (lambda x, y: where(x > 0.0, 3.0 / x * y, x * y), (2.0, 0.0)),
    "product of products": (lambda x, y: where(x > 0.0, 1.0 / x * y * y * x, y), (0.0, 1.0)),
    "root": (lambda x, y: where(x > 0.0, sqrt(x) * y, x + y), (1.0, 1.0)),
    "sine of a quotient": (lambda x, y: where(x > 0.0, sincos(1.0 / x)[0] * x, y), (0.0, 1.0)),
    "inside another": (lambda x, y: where(y > 0.0, where(x > 0.0, y / x, x), 1.0 / x), (1.0, 0.0)),
    "quotient of a quotient": (lambda x, y: where(x > 0.0, y / (1.0 / x), x - y), (1.0, -1.0)),
    "root of what is negative": (lambda x, y: where(x > 0.0, sqrt(x - y) * y, 2.0 * x), (2.0, 0.0)),
    "a length at 0": (lambda x, y: where(x * x > 0.0, sqrt(where(x * x > 0.0, x * x, 1.0)), 0.0) + y, (0.0, 1.0)),
    "angle": (lambda x, y: arctan2(x, y), (0.5, 0.0)),
    "angle of nothing": (lambda x, y: arctan2(x, x) + y, (1.0, 1.0)),
    "hyperbolic tangent": (lambda x, y: tanh(x) * y, (2.0, 0.0)),
    "exponential": (lambda x, y: exp(x) * y, (2.0, 1.0)),
    "absolute value": (lambda x, y: absolute(x) + y, (1.0, 1.0)),  # of the side that is taken
}


@pytest.mark.parametrize("case", CASES)
def test_a_side_that_is_not_taken_contributes_nothing(case):
    function, expected = CASES[case]
    inputs = traced_inputs([("x", 1), ("y", 1)])
    x, y = inputs["x"][0], inputs["y"][0]
    answer = function(x, y)
    reverse = pullback([answer], [1.0], [x, y])
    column = tangents([answer], {x.index: {0: 1.0}, y.index: {1: 1.0}})[0]
    for found in (reverse, [column.get(0, 0.0), column.get(1, 0.0)]):
        plan = Plan.of("f", inputs, (2,), found)
        with np.errstate(all="ignore"):
            numbers, _ = evaluated(plan, [np.float64(0.0), np.float64(2.0)], EXTENDED)
        np.testing.assert_allclose(np.asarray(numbers, float), expected, atol=1e-15)


def test_what_is_needed_in_any_case_has_no_guard():
    """A division outside of selections costs nothing more, although a selection needs it too."""
    inputs = traced_inputs([("x", 1), ("y", 1)])
    x, y = inputs["x"][0], inputs["y"][0]
    share = y / x
    plan = Plan.of("f", inputs, (2,), pullback([share + where(share > 1.0, share, 2.0 * share)], [1.0], [x, y]))
    assert plan.operations.selections == 2
