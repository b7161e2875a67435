"""Functions of forces (t, q, v, u) that read the inputs of a step."""

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError

MODEL, START = sl.zoo.four_bar(), sl.zoo.four_bar_start()
STEPS = 30
ROWS = np.random.default_rng(7).normal(size=(STEPS, 2))


def push(t, q, v, u):
    return {"coupler": [0.0, 0.0, 0.0, 10.0 * u[0], 0.0, u[1] * q[0]]}


def simulated(**options):
    return sl.simulate(MODEL, START, duration=1e-3 * STEPS, **options)


def test_inputs_without_a_controller_are_those_of_the_forces_alone():
    run = simulated(inputs=ROWS, forces=push)
    assert run.tau.max() == 0.0
    np.testing.assert_array_equal(run.forces["coupler"][:-1, 3], 10.0 * ROWS[:, 0])
    np.testing.assert_allclose(run.forces["coupler"][:-1, 5], ROWS[:, 1] * run.q[:-1, 0], rtol=1e-14)


@pytest.mark.slow
def test_constant_inputs_are_a_constant_force():
    known = simulated(forces=lambda t, q, v: push(t, q, v, ROWS[0]))
    for way in ({}, {"integrator": "implicit"}, {"integrator": "DOP853"}):
        run = simulated(inputs=ROWS[0], forces=push, **way)
        assert np.abs(run.q[-1] - known.q[-1]).max() < (1e-16 if not way else 1e-7)


def test_a_controller_and_forces_read_the_same_inputs():
    both = simulated(inputs=ROWS, forces=push, controller=lambda t, q, v, u: {"crank_hinge": u[0]})
    tau = np.zeros((STEPS, MODEL.nv))
    tau[:, 0] = ROWS[:, 0]
    np.testing.assert_array_equal(both.tau[:-1, 0], tau[:, 0])
    alone = simulated(inputs=ROWS, forces=push, controller=lambda t, q, v: -v)
    np.testing.assert_array_equal(alone.forces["coupler"][:-1, 3], 10.0 * ROWS[:, 0])
    np.testing.assert_array_equal(alone.tau, -alone.v)


def test_without_inputs_u_are_the_torques():
    tau = np.c_[ROWS, np.zeros(STEPS)]
    run = simulated(tau=tau, forces=push)
    np.testing.assert_array_equal(run.forces["coupler"][:-1, 3], 10.0 * tau[:, 0])
    called = simulated(controller=sl.control.callback(lambda t, q, v: [2.0, 0.0, 0.0]), forces=push)
    np.testing.assert_array_equal(called.forces["coupler"][:-1, 3], 20.0)


@pytest.mark.slow
def test_sums_of_forces_and_forces_along_loops_read_inputs():
    spring = sl.forces.spring(MODEL, "coupler", "world", 5.0)
    summed = simulated(inputs=ROWS, forces=sl.forces.together(push, spring))
    known = simulated(inputs=ROWS, forces=lambda t, q, v, u: _added(push(t, q, v, u), spring(t, q, v)))
    np.testing.assert_array_equal(summed.q, known.q)

    def motor(t, q, v, u):
        return {"closing": [u[0]]}

    inside = simulated(inputs=ROWS, closures=sl.Closures(loop_forces=motor))
    np.testing.assert_array_equal(inside.q, simulated(inputs=ROWS, forces=sl.forces.along_loops(MODEL, motor)).q)
    assert np.abs(inside.q[-1] - simulated().q[-1]).max() > 1e-6


def _added(a, b):
    return {body: [x + y for x, y in zip(a[body], b[body], strict=True)] for body in a}


def test_runs_of_a_batch_have_inputs_of_their_own():
    batch = simulated(inputs=np.stack([ROWS, 2.0 * ROWS]), forces=push)
    for k in (0, 1):
        np.testing.assert_array_equal(batch[k].q, simulated(inputs=(k + 1) * ROWS, forces=push).q)


@pytest.mark.slow
def test_the_gradient_by_inputs_goes_through_the_forces():
    found = sl.gradient(
        MODEL, lambda t, q, v: q[0], START, duration=1e-3 * STEPS, inputs=ROWS, forces=push, wrt="inputs"
    )
    step = 1e-5
    for row, column in ((3, 0), (11, 1)):
        ends = []
        for sign in (1.0, -1.0):
            rows = ROWS.copy()
            rows[row, column] += sign * step
            ends.append(simulated(inputs=rows, forces=push).q[-1, 0])
        difference = (ends[0] - ends[1]) / (2.0 * step)
        assert abs(found.inputs[row, column] - difference) < 1e-5 * abs(difference) + 1e-11


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"inputs": ROWS}, "inputs are for a controller, or for forces (t, q, v, u); for torques use tau="),
        ({"inputs": ROWS, "forces": {"coupler": [0.0] * 6}}, "inputs are for a controller, or for forces"),
        ({"inputs": ROWS, "tau": [0.0] * 3, "forces": push}, "tau and inputs are both given"),
        (
            {"inputs": ROWS, "forces": lambda t, q, v, u: {"coupler": [0, 0, 0, 0, 0, u[5]]}},
            "the function of forces reads an entry that is not there (index 5 is out of bounds for axis 0 with size "
            "2): u has 2 numbers a step",
        ),
        (
            {"inputs": ROWS, "controller": lambda t, q, v, u: {"crank_hinge": u[5]}},
            "the controller reads an entry that is not there (index 5 is out of bounds for axis 0 with size 2): u has "
            "2 numbers a step, those of inputs=",
        ),
        (
            {"forces": lambda t, q: {}},
            "the function of forces takes 2 arguments; expected (t, q, v) or (t, q, v, u)",
        ),
        (
            {"forces": push, "controller": lambda t, q, v: -v},
            "the function of forces takes inputs u, but none are given",
        ),
        (
            {"forces": push, "inputs": ROWS, "controller": sl.control.callback(lambda t, q, v: -v)},
            "inputs are for a traced controller; a callback has none",
        ),
        (
            {"forces": push, "inputs": ROWS[:, 0]},
            "inputs has shape (30,): one number for each of the 30 steps, or 30 numbers that are the same at every "
            "step? Give it the shape (30, 1) for steps, (1, 30) for the same",
        ),
        (
            {"controller": lambda t, q, v, u: {"crank_hinge": u[0]}, "inputs": ROWS[:, 0]},
            "inputs has shape (30,): one number for each of the 30 steps",
        ),
        (
            {"forces": lambda *a: push(*a), "inputs": ROWS},
            "for torques use tau=. The function is called as (t, q, v); to read u it takes four arguments by name, "
            "without defaults",
        ),
        (
            {"controller": lambda t, q, v, u=None: -v, "inputs": ROWS},
            "the inputs have 2 numbers a step; the controller takes 0. The function is called as (t, q, v)",
        ),
        (
            {"forces": lambda t, q, v: {"coupler": [0.0, 0.0, 0.0, 1.0 if q[0] > 0.0 else 0.0, 0.0, 0.0]}},
            "Forces are always compiled; what Python must compute acts as torques of sl.control.callback",
        ),
    ],
    ids=[
        "nobody reads",
        "constant forces",
        "tau too",
        "beyond",
        "a controller beyond",
        "arguments",
        "none given",
        "callback",
        "one axis",
        "one axis of a controller",
        "any arguments",
        "a default",
        "not traced",
    ],
)
def test_what_does_not_fit_is_refused(options, words):
    with says(InputError, words):
        simulated(**options)


def test_inputs_of_one_axis_have_one_reading_elsewhere():
    """A row in its own shape, a row of another length than the run, and a controller that says how many it takes."""

    def first(t, q, v, u):
        return {"coupler": [0.0, 0.0, 0.0, u[0], 0.0, 0.0]}

    steps = simulated(inputs=ROWS[:, :1], forces=first)
    np.testing.assert_array_equal(steps.forces["coupler"][:-1, 3], ROWS[:, 0])
    same = simulated(inputs=ROWS[None, :, 0], forces=first)
    np.testing.assert_array_equal(same.forces["coupler"][:, 3], ROWS[0, 0])
    np.testing.assert_array_equal(simulated(inputs=ROWS[:-1, 0], forces=first).q, same.q)
    law = sl.control.pd(MODEL, 5.0, 1.0, sl.control.given(MODEL.nv))
    inputs = np.zeros(law.inputs)
    run = sl.simulate(MODEL, START, duration=1e-3 * law.inputs, controller=law, inputs=inputs)
    assert run.outcome.finished


def test_a_gradient_by_inputs_of_one_axis_is_refused():
    with says(InputError, "inputs has shape (30,): one number for each of the 30 steps"):
        sl.gradient(MODEL, lambda t, q, v: q[0], START, duration=0.03, inputs=ROWS[:, 0], forces=push, wrt="inputs")


def test_a_gradient_by_torques_that_do_not_act_is_refused():
    with says(InputError, "wrt holds 'tau', but inputs of forces are given"):
        sl.gradient(MODEL, lambda t, q, v: q[0], START, duration=0.01, inputs=ROWS[0], forces=push, wrt="tau")
