"""Events that read constraint forces: grasps that break, conditions on loops and couplings, what is not unique."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import SpanloopError
from support.held_by_arms import held_by_arms
from support.two_fingers import MASS, lifting, two_fingers

G, MU, FORCE, JERK = 9.81, 0.5, 12.0, 8.0
HAND = two_fingers(switchable=True)


def rising(t, q, v):
    """The hand rises with an acceleration JERK t, as long as it holds the box."""
    tau = lifting(HAND, FORCE, 0.0, G)
    total = sum(x.inertia.mass for x in HAND.bodies)
    return [tau[0] + total * JERK * t, *tau[1:]]


@pytest.mark.slow
def test_fingers_slip_where_m_g_plus_a_is_two_mu_f():
    events = [sl.events.Grasp("hold_left", MU, math.inf), sl.events.Grasp("hold_right", 0.8, math.inf)]
    run = sl.simulate(HAND, duration=1.0, controller=rising, events=events)
    slip = (2.0 * MU * FORCE / MASS - G) / JERK
    assert abs(run.outcome.time - slip) < 1e-8
    assert "'hold_left' leaves its friction cone" in str(run.outcome)
    last = sl.Dynamics(HAND).grasp_margin(run.q[-1], run.v[-1], run.tau[-1], MU, math.inf)
    assert abs(last["hold_left"]) < 1e-7


@pytest.mark.slow
def test_a_grasp_that_breaks_lets_go_and_the_margin_of_open_loops_is_not_a_number():
    events = [sl.events.Grasp("hold_left", MU, math.inf, on_break="release"), sl.events.Release("hold_right", at=0.7)]
    run = sl.simulate(HAND, duration=0.8, controller=rising, events=events)
    assert list(run.events.kind) == ["break", "release"]
    margins = run.grasp_margin(MU, math.inf)["hold_left"]
    held = run["hold_left"].active
    assert np.isfinite(margins[held]).all()
    assert margins[held].min() > -1e-7
    assert np.isnan(margins[~held]).all()
    assert np.isnan(run["hold_left"].contact[~held]).all()
    assert np.isfinite(run["hold_left"].contact[held]).all()


@pytest.mark.slow
def test_a_grasp_that_cannot_hold_from_the_start_is_named_with_the_force_that_is_missing():
    """Three arms on soft fingers that squeeze too little; the kernel's forces are those of robot.grasp_margin."""
    robot, q = held_by_arms("soft_finger")
    tau = robot.static_torques(q)
    events = [sl.events.Grasp(f"holding{k}", 0.3, torsion=0.05) for k in (1, 2, 3)]
    run = sl.simulate(robot.model, q, duration=0.01, controller=lambda t, q, v: tau.tolist(), events=events)
    margins = robot.grasp_margin(q, np.zeros(24), tau, 0.3, 0.05)
    assert run.outcome.time == 0.0
    name = run.outcome.sentence.split("'")[1]
    assert margins[name] < -1.0
    assert "friction 0.3 and torsion 0.05 m need" in run.outcome.sentence
    assert f"{-margins[name]:.3g} N are missing" in run.outcome.sentence


@pytest.mark.slow
def test_an_end_may_read_forces():
    end = sl.events.End("pressed", when=lambda t, q, v, f: 13.0 - 10.0 * t - f["hold_left"][5])
    run = sl.simulate(HAND, duration=0.2, controller=lambda t, q, v: list(lifting(HAND, FORCE, 0.0, G)), events=[end])
    assert abs(run.outcome.time - 0.1) < 1e-8


@pytest.mark.slow
def test_the_force_of_a_coupling_is_a_number():
    b = sl.Builder("clutch").body("a", 1.0, inertia=(0.1,) * 3).revolute("ja", "world", "a", "z")
    b.body("b", 1.0, inertia=(0.1,) * 3).revolute("jb", "world", "b", "z")
    model = b.build().with_coupling("jb", "ja", switchable=True, name="clutch")
    release = sl.events.Release("clutch", when=lambda t, q, v, f: 0.5 - np.abs(f["clutch"]))
    run = sl.simulate(model, duration=0.5, controller=lambda t, q, v: [4.0 * t, 0.0], events=[release])
    assert abs(run.events.time[0] - 0.25) < 1e-8  # half of the torque reaches the other disc


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            sl.events.Grasp("hold_left", MU, torsion=0.01),
            r"grasp 'hold_left' depends on forces that are not determined \(hold_left: moment about z\)",
        ),
        (
            sl.events.End("spun", when=lambda t, q, v, f: 1.0 - f["hold_left"][2]),
            r"end 'spun' depends on forces that are not determined \(hold_left: moment about z\)",
        ),
        (sl.events.Grasp("hold_left", MU), "give its bound torsion="),
        (sl.events.End("odd", when=lambda t: 1.0), r"'odd' takes 1 arguments; expected \(t, q, v\) or \(t, q, v, f\)"),
    ],
)
def test_events_that_read_what_is_not_determined_are_refused(event, words):
    with pytest.raises(SpanloopError, match=words):
        sl.simulate(HAND, duration=0.1, controller=rising, events=[event])
