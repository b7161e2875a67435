"""Starts by name: q and v of simulate, the guess of assemble."""

from __future__ import annotations

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError

TREE = sl.zoo.pendulum(2)
BAR = sl.zoo.four_bar()


def test_named_joints_of_a_tree_are_set_and_the_others_are_as_by_default():
    run = sl.simulate(TREE, {"hinge2": 0.3}, {"hinge1": 2.0}, duration=0.01)
    np.testing.assert_array_equal(run.q[0], (0.0, 0.3))
    np.testing.assert_array_equal(run.v[0], (2.0, 0.0))
    limited = TREE.with_joint("hinge1", limits=(0.5, 1.0))
    start = sl.simulate(limited, {"hinge2": 0.3}, duration=0.01).q[0]
    assert start[1] == 0.3
    assert 0.5 < start[0] < 0.6


def test_a_joint_by_name_may_have_rows_of_runs():
    run = sl.simulate(TREE, {"hinge2": [[0.1], [0.2]], "hinge1": 1.0}, duration=0.01)
    np.testing.assert_array_equal(run.q[:, 0], [(1.0, 0.1), (1.0, 0.2)])


def test_loops_are_closed_around_named_joints():
    run = sl.simulate(BAR, {"crank_hinge": 0.7}, {"crank_hinge": 2.0}, duration=0.01)
    assert run.q[0, 0] == pytest.approx(0.7, abs=1e-12)
    assert run.v[0, 0] == pytest.approx(2.0, abs=1e-12)
    robot = sl.Dynamics(BAR)
    np.testing.assert_allclose(robot.closure_error(run.q[0]), 0.0, atol=1e-11)
    np.testing.assert_allclose(robot.closure_jacobian(run.q[0]) @ run.v[0], 0.0, atol=1e-11)


def test_live_parameters_have_a_start_of_their_own():
    parameters = np.array([BAR.parameters().values] * 2)
    run = sl.simulate(BAR, {"crank_hinge": [[0.7], [0.8]]}, duration=0.01, parameters=parameters)
    np.testing.assert_allclose(run.q[:, 0, 0], (0.7, 0.8), atol=1e-12)
    with says(InputError, "simulate: v is given by name, for loops whose parameters are live"):
        sl.simulate(BAR, v={"crank_hinge": 1.0}, duration=0.01, parameters=parameters)


def test_assemble_takes_a_guess_by_name():
    robot = sl.Dynamics(BAR)
    q = robot.assemble({"crank_hinge": 0.7}, fixed=["crank_hinge"])
    assert q[0] == 0.7
    np.testing.assert_allclose(robot.closure_error(q), 0.0, atol=1e-11)


@pytest.mark.parametrize(
    ("q", "sentence"),
    [
        ({"hinge3": 0.3}, "has no joint 'hinge3'; did you mean 'hinge"),
        ({"hinge1": "0.3"}, "simulate: q['hinge1'] is '0.3'; expected a number, or an array (..., 1) of runs"),
        ({"hinge1": (1, 2)}, "simulate: q['hinge1'] is (1, 2); expected a number"),
        ({"hinge1": np.zeros((2, 1)), "hinge2": np.zeros((3, 1))}, "joints in q have different numbers of runs"),
        ({1.0, 2.0}, "simulate: q is a set; expected real numbers of shape (..., 2)"),
    ],
)
def test_a_wrong_start_is_named(q, sentence):
    with says(InputError, sentence):
        sl.simulate(TREE, q, duration=0.01)


def test_texts_truth_values_and_sets_are_no_numbers():
    for duration in ("1", True):
        with says(InputError, f"duration is {duration!r}; expected a number of seconds"):
            sl.simulate(TREE, duration=duration)
    with says(InputError, "a set was returned; expected 2 numbers"):
        sl.simulate(TREE, duration=0.01, controller=lambda t, q, v: {1.0, 2.0})
    with says(InputError, "accuracy is True; must be positive"):
        sl.Integrator(accuracy=True)
