"""Loops over blocks of arrays: sizes are data, the code does not grow with them."""

from __future__ import annotations

import numpy as np
import pytest

from spanloop.compiler.lower import Block, For, Repeat, Schedule, Stage, When
from spanloop.compiler.render.rollout import rollout
from spanloop.compiler.runtime.rollout import Rollout, Steps


def product(A, x, y):
    """y + A x of two numbers."""
    return ([y[0] + A[0] * x[0] + A[1] * x[1], y[1] + A[2] * x[0] + A[3] * x[1]],)


def upper_product(n: int, order: tuple[int, ...]) -> Schedule:
    """y = U x[order], block by block, where U is the upper triangle of A."""
    stage = Stage({"A": 4 * n * n, "x": 2 * n, "y": 2 * n, "y.next": 2 * n, "t": 1, "h": 1})
    x, y = Block("x", 2, (("j", tuple(2 * k for k in order)),)), Block("y.next", 2, (("i", 2),))
    zero = stage.call("zero", [y], [y], lambda y: ([0.0, 0.0],))
    add = stage.call("product", [Block("A", 4, (("i", 4 * n), ("j", 4))), x, y], [y], product)
    calls = (For("i", 0, n, (zero, For("j", ("i", 0), n, (add,)))),)
    return Schedule("upper_product", stage.sizes, ("y",), ("A", "x"), (), (), (), calls)


@pytest.mark.parametrize("runs", [1, 11])
def test_blocks_follow_counters_bounds_and_tables(runs):
    n, order = 5, (3, 0, 4, 1, 2)
    rng = np.random.default_rng(1)
    A, x, y = rng.normal(size=(runs, n, n, 2, 2)), rng.normal(size=(runs, n, 2)), np.zeros((runs, 2 * n))
    constants = np.concatenate([A.reshape(runs, -1), x.reshape(runs, -1)], axis=1)
    made = Rollout("test blocks", lambda: upper_product(n, order))
    made.run(y, constants, np.zeros((1, 1, 0)), np.zeros(runs, np.uint8), Steps(0.0, 1e-3, 0, 1))
    upper = A * np.triu(np.ones((n, n)))[None, :, :, None, None]
    expected = np.einsum("rijab,rjb->ria", upper, x[:, order])
    assert np.abs(y.reshape(runs, n, 2) - expected).max() < 1e-14


def test_code_does_not_grow_with_sizes():
    small, large = (len(rollout(upper_product(n, tuple(range(n))), "double", 1)) for n in (4, 64))
    assert large < 3 * small  # A has 256 times as many numbers, the state 16 times


def test_operations_count_turns_of_loops():
    assert upper_product(5, (0, 1, 2, 3, 4)).operations == 8 * 15


def test_repetitions_stand_inside_loops_and_conditions():
    """Halve each number that is flagged until it is below 1."""
    stage = Stage({"x": 3, "flag": 3, "x.next": 3, "left": 1, "t": 1, "h": 1})
    x, to = Block("x", 1, (("i", 1),)), Block("x.next", 1, (("i", 1),))
    start = stage.call("start", [x], [to, "left"], lambda x: (list(x), [x[0] - 1.0]))

    def halve(y, left):
        half = (left[0] > 0.0).select(y[0] * 0.5, y[0])
        return [half], [half - 1.0]

    again = Repeat((stage.call("halve", [to, "left"], [to, "left"], halve),), "left", 60)
    calls = (For("i", 0, 3, (start, When((again,), Block("flag", 1, (("i", 1),))))),)
    schedule = Schedule("halves", stage.sizes, ("x",), ("flag",), (), (), (), calls)
    state = np.array([[10.0, 0.5, 7.0]])
    Rollout("test halves", lambda: schedule).run(
        state, np.array([[1.0, 1.0, 0.0]]), np.zeros((1, 1, 0)), np.zeros(1, np.uint8), Steps(0.0, 1e-3, 0, 1)
    )
    assert state.tolist() == [[0.625, 0.5, 7.0]]
