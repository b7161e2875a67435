"""Observations of joints of all kinds, by name and by default."""

from __future__ import annotations

import re

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError

pytest.importorskip("gymnasium")
COORDINATES = {
    "rev": [10.0],
    "uni": [20.0, 30.0],
    "pla": [40.0, 0.5, 0.6],
    "cyl": [50.0, 0.7],
    "hel": [60.0],
    "pri": [0.8],
    "ball": [0.6, 0.0, 0.8, 0.0],
}


def made(limits=None, **options):
    b = sl.Builder("kinds")
    for name in COORDINATES:
        b.body(f"{name}_body", 1.0, (0.1, 0.05, 0.0), (0.02, 0.03, 0.025))
    b.revolute("rev", "world", "rev_body", "y").universal("uni", "world", "uni_body", limits=limits)
    b.planar("pla", "world", "pla_body").cylindrical("cyl", "world", "cyl_body")
    b.helical("hel", "world", "hel_body", pitch=0.1).prismatic("pri", "world", "pri_body", "x")
    model = b.spherical("ball", "world", "ball_body").build()
    how = {"q": COORDINATES, "actions": {"rev": 1.0}, "reward": lambda s: s.time}
    return sl.envs.MechanismEnv(model, 2, **how | options)


def observed(**options):
    found = made(**options).reset(seed=0)[0]
    assert np.array_equal(found[0], found[1])
    return found[0]


def circle(*angles):
    return [*np.cos(angles), *np.sin(angles)]


def test_every_angle_without_limits_is_observed_as_cosine_and_sine_by_default():
    joints = [
        *circle(10.0),
        *circle(20.0, 30.0),
        *circle(40.0),
        *(0.5, 0.6),
        *circle(50.0),
        0.7,
        *(*circle(60.0), 60.0),  # a screw shifts as it turns
        0.8,
        *COORDINATES["ball"],
    ]
    assert np.abs(observed() - [*joints, *np.zeros(13)]).max() < 1e-5  # float32 of 60 rad


def test_angles_with_both_limits_are_observed_as_they_are_by_default():
    found = observed(limits=([-100.0, -np.inf], [100.0, 100.0]))
    assert np.abs(found[2:5] - [*circle(30.0), 20.0]).max() < 1e-6


def test_cosine_and_sine_of_a_joint_are_those_of_its_angles():
    names = ["uni.cos", "pla.cos", "pla.sin", "cyl.sin", "hel.cos"]
    expected = [*np.cos([20.0, 30.0]), np.cos(40.0), np.sin(40.0), np.sin(50.0), np.cos(60.0)]
    assert np.abs(observed(observation=names) - expected).max() < 1e-6
    assert np.abs(observed(observation=lambda s: s["uni"].cos) - np.cos([20.0, 30.0])).max() < 1e-6


@pytest.mark.parametrize(("joint", "kind"), [("pri", "prismatic"), ("ball", "spherical")])
def test_cosine_and_sine_of_a_joint_without_angles_are_refused(joint, kind):
    words = (
        f"is a joint of kind {kind!r}, of which no coordinate is an angle: it has q and v, but no cos and sin. Joints"
    )
    with pytest.raises(InputError, match=re.escape(f"observation '{joint}.cos': '{joint}' {words}")):
        made(observation=[f"{joint}.cos"])
    with pytest.raises(InputError, match=re.escape(f"state['{joint}'] {words}")):
        made(observation=lambda s: s[joint].sin[:, None])


def test_an_action_at_a_joint_of_several_degrees_of_freedom_names_all_of_them():
    words = "actions: 'ball' is no degree of freedom; those of joint 'ball' are 'ball[0]', 'ball[1]', 'ball[2]'"
    with pytest.raises(InputError, match=re.escape(words)):
        made(actions={"ball": 1.0})
