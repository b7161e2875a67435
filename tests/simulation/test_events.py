"""Events of sl.simulate: where they are met at the start, and where they are constants."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, Reason, StateError

INTEGRATORS = ["rk4", "euler", "midpoint", "DOP853"]


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_run_that_starts_where_an_event_is_met_ends_at_once(integrator):
    low = {"low": lambda t, q, v: q[0] - 0.5}
    run = sl.simulate(zoo.pendulum(), [0.2], duration=0.1, events=low, integrator=integrator)
    assert run.outcome.reason == "event"
    assert run.outcome.time == 0.0
    assert run.outcome.sentence == (
        "condition 'low' was met at t = 0 s: it is -0.3 at the start, and a run goes on only while it is positive"
    )
    assert np.array_equal(run.times, [0.0])
    assert np.array_equal(run.q, [[0.2]])


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_other_runs_of_the_batch_go_on(integrator):
    low = {"low": lambda t, q, v: q[0] - 0.5}
    start = np.array([[0.2], [1.0], [0.5]])
    runs = sl.simulate(zoo.pendulum(), start, duration=0.02, events=low, integrator=integrator)
    assert [x.reason for x in runs.outcomes] == ["event", "finished", "event"]
    alone = sl.simulate(zoo.pendulum(), start[1], duration=0.02, events=low, integrator=integrator)
    assert np.array_equal(runs[1].q, alone.q)
    assert np.array_equal(runs[0].q, [[0.2]])
    assert np.array_equal(runs[2].times, [0.0])


def test_torques_of_every_step_and_callbacks_end_at_the_start_too():
    met = {"never": lambda t, q, v: -1.0 - q[0] * q[0]}
    given = {"tau": np.ones((20, 1))}, {"controller": sl.control.callback(lambda t, q, v: -v)}
    for how in given:
        run = sl.simulate(zoo.pendulum(), [0.2], duration=0.02, events=met, **how)
        assert (run.outcome.reason, run.outcome.time, len(run)) == ("event", 0.0, 1)


def test_a_loop_ends_at_the_start_too():
    met = {"slow": lambda t, q, v: v[0] - 1.0}
    run = sl.simulate(zoo.four_bar(), zoo.four_bar_start(), duration=0.02, events=met)
    assert (run.outcome.reason, run.outcome.time, len(run)) == ("event", 0.0, 1)
    assert np.array_equal(run.q[0], zoo.four_bar_start())


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize(("constant", "reason"), [(1.0, "finished"), (1, "finished"), (0.0, "event"), (-2, "event")])
def test_an_event_may_be_a_constant(integrator, constant, reason):
    events = {"constant": lambda t, q, v: constant}
    run = sl.simulate(zoo.pendulum(), [0.2], duration=0.01, events=events, integrator=integrator)
    assert run.outcome.reason == reason


def test_a_start_that_is_refused_has_its_reason():
    model, open_start = zoo.four_bar(), zoo.four_bar_start() + 0.3
    for closures in ("project", "feedback", "minimal"):
        with pytest.raises(StateError) as refused:
            sl.simulate(model, open_start, duration=0.1, closures=closures)
        assert refused.value.reason is Reason.OPEN_LOOP
        assert refused.value.where == "simulate"


def test_the_model_of_a_dynamics_cannot_be_exchanged():
    robot = sl.Dynamics(zoo.puma())
    with pytest.raises(AttributeError):
        robot.model = zoo.pendulum()
    assert robot.model.name == zoo.puma().name


@pytest.mark.parametrize("value", [-1, -1.0, np.float64(-1.0), np.float32(-1.0), np.int64(-1), 0])
def test_an_event_may_be_a_constant_of_any_kind(value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = sl.simulate(sl.zoo.pendulum(), [0.1], duration=0.01, events={"never": lambda t, q, v: value})
        assert (run.outcome.reason, run.outcome.time) == ("event", 0.0)
        on = sl.simulate(sl.zoo.pendulum(), [0.1], duration=0.01, events=lambda t, q, v: 3 - value)
        assert on.outcome.finished


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_event_that_is_not_finite_is_refused(value):
    with says(InputError, f"the event 'odd' returned {value}; expected a finite number"):
        sl.simulate(sl.zoo.pendulum(), [0.1], duration=0.01, events={"odd": lambda t, q, v: value})
