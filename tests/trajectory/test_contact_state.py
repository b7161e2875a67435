"""The contact state of grasps: how a body is turned on the one that holds it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError
from spanloop.joints import Revolute
from spanloop.math import quaternion
from support.two_fingers import two_fingers

INERTIA, ROLL, TURN = 0.02, 1.7, 2.4  # kg m²; rates of the axis of rolling and of its direction [rad/s]
PERIOD = 2.0 * math.pi / math.hypot(ROLL, TURN)


def ball(kind) -> sl.Model:
    """A body that turns about a point of the world, where its centre is."""
    b = sl.Builder("ball").body("ball", 1.0, inertia=(INERTIA,) * 3).free("floating", "world", "ball")
    return b.build().with_gravity((0, 0, 0)).actuate(["floating"]).with_loop("world", "ball", kind, name="holding")


def rolled(kind, duration: float, steps: int) -> sl.Trajectory:
    """ω = ROLL (cos, sin, 0)(TURN t) in body axes, by its torque I dω/dt; a soft finger also resists a spin."""

    def torque(t, q, v):
        k = INERTIA * ROLL * TURN
        return [-k * np.sin(TURN * t), k * np.cos(TURN * t), 0.3 if kind == "soft_finger" else 0.0, 0.0, 0.0, 0.0]

    model = ball(kind)
    start = {"duration": duration, "step": duration / steps, "controller": torque}
    return sl.simulate(model, model.neutral(), [ROLL, 0, 0, 0, 0, 0], **start)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["soft_finger", "spherical"])
def test_a_closed_path_of_the_normal_turns_the_contact_by_the_angle_of_its_holonomy(kind):
    """R = exp(t (ROLL x + TURN z)) Rz(−TURN t): after a period the normal is back, turned by −TURN PERIOD."""
    run = rolled(kind, PERIOD, 400)
    half = -0.5 * TURN * PERIOD
    expected = np.array([math.cos(half), 0.0, 0.0, math.sin(half)])
    found = run["holding"].contact[-1]
    assert np.abs(found * np.sign(found @ expected) - expected).max() < 1e-9
    assert abs(math.sin(half)) > 0.1


def test_rates_of_the_contact_are_those_that_roll_it():
    run = rolled("soft_finger", 0.1, 40)
    expected = ROLL * np.stack([np.cos(TURN * run.times), np.sin(TURN * run.times)], axis=-1)
    np.testing.assert_allclose(run["holding"].contact_rate, expected, atol=1e-10)
    assert rolled("spherical", 0.01, 4)["holding"].contact_rate.shape[-1] == 3


def test_contacts_do_not_jump_and_count_turns():
    """Several turns about one axis: a quaternion passes −1, an angle goes on."""
    for kind in ("spherical", Revolute("y")):
        model = ball(kind)
        run = sl.simulate(model, model.neutral(), [0, 5.0, 0, 0, 0, 0], duration=4.0, sample=0.02)
        angle, contact = 5.0 * run.times, run["holding"].contact
        if kind == "spherical":
            expected = np.stack([np.cos(0.5 * angle), 0.0 * angle, np.sin(0.5 * angle), 0.0 * angle], axis=-1)
            np.testing.assert_allclose(contact, expected, atol=1e-9)
        else:
            np.testing.assert_allclose(contact, angle, atol=1e-9)


def test_the_contact_is_that_of_the_two_frames():
    model = two_fingers()
    run = sl.simulate(model, duration=0.01)
    a, b = (run[name].pose[-1, :3, :3] for name in ("left_pad", "left_face"))
    np.testing.assert_allclose(quaternion.matrix(tuple(run["hold_left"].contact[-1])), a.T @ b, atol=1e-12)
    assert run["hold_left"].contact_rate.shape == (len(run.times), 2)


def test_a_rigid_grasp_has_no_contact_state_and_other_loops_are_refused():
    model = ball("fixed")
    run = sl.simulate(model, duration=0.01)
    assert run["holding"].contact.shape == (len(run.times), 0)
    assert run["holding"].contact_rate.shape == (len(run.times), 0)
    run = sl.simulate(ball("planar"), duration=0.01)
    with pytest.raises(InputError, match="'holding' is a planar loop; contact is of grasps"):
        _ = run["holding"].contact


def test_margins_of_a_run_are_those_of_its_samples():
    model = two_fingers()
    lift = [2.0 * 9.81, 20.0, 20.0, *np.zeros(6)]
    run = sl.simulate(model, duration=0.01, controller=lambda t, q, v: [lift[0], 20.0 + t, 20.0 + t, *lift[3:]])
    margins = run.grasp_margin({"hold_left": 0.5}, math.inf)
    np.testing.assert_allclose(margins["hold_left"], 20.0 + run.times - 0.8 * 9.81, atol=1e-9)
    assert margins.unique == {"hold_left": True}
    assert margins.wrenches["hold_left"].shape == (len(run), 6)
