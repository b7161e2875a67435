"""Margins to friction cones at states, squeeze torques, and the least squeeze that holds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, Reason, StateError, StateWarning
from spanloop.joints import Revolute
from support.held_by_arms import held_by_arms
from support.two_fingers import MASS, lifting, two_fingers

G, MU = 9.81, 0.5
HAND = two_fingers()
ROBOT = sl.Dynamics(HAND, target="python")
Q, STILL = HAND.neutral(), np.zeros(HAND.nv)


def test_two_fingers_that_lift_slip_where_m_g_plus_a_is_two_mu_f():
    force = MASS * (G + 2.0) / (2.0 * MU)  # presses just enough
    at = ROBOT.grasp_margin(Q, STILL, lifting(HAND, force, 2.0, G), MU, math.inf)
    assert max(abs(x) for x in at.values()) < 1e-13
    more = ROBOT.grasp_margin(Q, STILL, lifting(HAND, force + 3.0, 2.0, G), MU, math.inf)
    assert abs(more["hold_left"] - 3.0) < 1e-13
    assert more.unique == {"hold_left": True, "hold_right": True}


def test_the_least_squeeze_of_two_fingers_is_that_of_the_closed_form():
    pull = lifting(HAND, 0.0, 2.0, G)
    found = ROBOT.least_squeeze(Q, STILL, pull, {"hold_left": 1.0}, MU, math.inf, margin=1.5)
    assert abs(found - (MASS * (G + 2.0) / (2.0 * MU) + 1.5)) < 1e-12


def test_moments_that_two_soft_fingers_share_are_said_to_be_undetermined():
    found = ROBOT.grasp_margin(Q, STILL, lifting(HAND, 20.0, 2.0, G), MU, torsion=0.01)
    assert found.unique == {"hold_left": False, "hold_right": False}
    assert "not unique" in str(found)


def test_margins_of_a_batch_are_those_of_its_states():
    forces = np.array([5.0, 10.0, 20.0])
    tau = np.stack([lifting(HAND, f, 2.0, G) for f in forces])
    found = ROBOT.grasp_margin(Q, STILL, tau, {"hold_left": MU}, math.inf)
    assert list(found) == ["hold_left"]
    np.testing.assert_allclose(found["hold_left"], forces - MASS * (G + 2.0), atol=1e-12)
    assert str(found) == "hold_left: 4.448 N of pressing force missing, least of 3 states"


# ---- arms with every grasp

KINDS = ("fixed", Revolute("x"), "spherical", "soft_finger")


@pytest.mark.parametrize("kind", KINDS)
def test_a_squeeze_changes_the_forces_by_an_internal_force_and_no_acceleration(kind):
    robot, q = held_by_arms(kind)
    v = robot.project(q, np.random.default_rng(2).normal(size=24) * 0.1)[1]
    tau = robot.static_torques(q)
    squeeze = robot.squeeze_torques(q, {f"holding{k}": 20.0 for k in (1, 2, 3)})
    assert not squeeze[:6].any()  # of the object
    before, after = (robot.solve(q, v, x) for x in (tau, tau + squeeze))
    assert np.abs(after.a - before.a).max() < 1e-10
    change = {name: after.loop_forces[name] - before.loop_forces[name] for name in after.loop_forces}
    for k in (1, 2, 3):  # three forces at 120°: balanced without friction
        normal = robot.pose(q, f"normal{k}")[:3, 2]
        np.testing.assert_allclose(change[f"holding{k}"], [0.0, 0.0, 0.0, *(20.0 * normal)], atol=1e-8)


@pytest.mark.slow
def test_the_least_squeeze_brings_the_worst_grasp_to_the_margin_asked_for():
    robot, q = held_by_arms("soft_finger")
    tau, still, press = robot.static_torques(q), np.zeros(24), {f"holding{k}": 1.0 for k in (1, 2, 3)}
    s = robot.least_squeeze(q, still, tau, press, 0.5, 0.02, margin=70.0)
    held = robot.grasp_margin(q, still, tau + s * robot.squeeze_torques(q, press), 0.5, 0.02)
    assert s > 0.0
    assert abs(min(held.values()) - 70.0) < 1e-9
    assert robot.least_squeeze(q, still, tau, press, 0.5, 0.02, margin=-1e3) == 0.0


def test_what_cannot_be_squeezed_is_refused_with_the_nearest_that_can():
    with pytest.raises(StateError, match=r"'hold_left' with 20 N, 'hold_right' with 30 N: .* is 'hold_left' with 25 N"):
        ROBOT.squeeze_torques(Q, {"hold_left": 20.0, "hold_right": 30.0})
    with pytest.raises(StateError) as caught:
        ROBOT.squeeze_torques(Q, {"hold_left": 20.0}, actuated=["lift"])
    assert caught.value.reason is Reason.UNDERACTUATED
    with pytest.raises(StateError, match="no multiple of this squeeze"):
        ROBOT.least_squeeze(Q, STILL, lifting(HAND, 0.0, 0.0), {"hold_left": -1.0}, MU, math.inf)
    with pytest.warns(StateWarning, match="1 of 2"):
        some = ROBOT.squeeze_torques(Q, {"hold_left": [20.0, 20.0], "hold_right": [20.0, 30.0]})
    assert np.isfinite(some[0]).all()
    assert np.isnan(some[1]).all()


def test_a_pressing_force_that_no_torque_changes_is_refused():
    model = sl.zoo.arms_with_object(1, grasp="fixed").with_frame("bench", "world", (0.0, 0.0, 1.0))
    for name in ("clamp", "second_clamp"):
        model = model.with_loop("bench", "object", "fixed", name=name)
    with pytest.raises(StateError) as caught:
        sl.Dynamics(model, target="python").squeeze_torques(sl.zoo.arms_with_object_start(1), {"clamp": 5.0})
    assert caught.value.reason is Reason.UNDETERMINED


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ROBOT.grasp_margin(Q, STILL, STILL, MU), "loop 'hold_left': a soft_finger loop carries a moment"),
        (lambda: ROBOT.grasp_margin(Q, STILL, STILL, {"hold_lef": MU}), "did you mean 'hold_left'"),
        (lambda: ROBOT.grasp_margin(Q, STILL, STILL, MU, {"no": 1.0}), "torsion names 'no', which is no loop"),
        (lambda: ROBOT.squeeze_torques(Q, {}), "the squeeze is {}; expected"),
        (lambda: ROBOT.squeeze_torques(Q, {"lift": 1.0}), "the squeeze names 'lift', which is no closed loop"),
    ],
)
def test_names_and_numbers_that_do_not_fit_are_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_open_grasps_are_left_out():
    robot = sl.Dynamics(two_fingers(switchable=True), target="python")
    q = Q.copy()
    found = robot.grasp_margin(q, STILL, STILL, MU, math.inf, active_loops=["hold_left"])
    assert list(found) == ["hold_left"]
    with pytest.raises(InputError, match="'hold_right', which is no closed loop"):
        robot.squeeze_torques(q, {"hold_right": 1.0}, active_loops=["hold_left"])
