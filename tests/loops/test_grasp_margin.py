"""Friction cones of grasps: margins in newtons of pressing force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spanloop.algorithms.papers.kreutz_rodriguez.grasp_margin import grasp_margin
from spanloop.errors import InputError, UnsupportedError
from spanloop.joints import Prismatic, Revolute, SoftFinger, Spherical

MU, GAMMA = 0.5, 0.01


def test_a_point_contact_spares_what_its_sliding_force_does_not_need():
    wrench = (0.0, 0.0, 0.0, 3.0, 4.0, 25.0)  # 5 N across, 25 N into body b
    assert grasp_margin(Spherical(), wrench, MU) == 25.0 - 5.0 / MU
    assert grasp_margin("spherical", (0, 0, 0, 0, 0, -2.0), MU) == -2.0  # it pulls


def test_a_soft_finger_shares_its_pressure_between_sliding_and_spinning():
    wrench = (9.0, 9.0, 0.12, 3.0, 4.0, 25.0)
    assert abs(grasp_margin(SoftFinger(), wrench, MU, GAMMA) - (25.0 - math.hypot(10.0, 12.0))) < 1e-14
    assert grasp_margin(SoftFinger(), wrench, MU, math.inf) == 15.0


def test_another_normal_is_the_same_cone_turned():
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    torque, force = np.array([0.1, 0.2, 0.03]), np.array([1.0, -2.0, 30.0])
    turned = (*(turn @ torque), *(turn @ force))
    expected = grasp_margin("fixed", (*torque, *force), MU, GAMMA)
    assert abs(grasp_margin("fixed", turned, MU, GAMMA, normal=7.0 * turn[:, 2]) - expected) < 1e-13


def test_margins_of_arrays_are_those_of_their_rows():
    wrenches = np.random.default_rng(1).normal(size=(4, 5, 6))
    together = grasp_margin("soft_finger", tuple(np.moveaxis(wrenches, -1, 0)), MU, GAMMA)
    one = grasp_margin("soft_finger", tuple(wrenches[2, 3].tolist()), MU, GAMMA)
    assert together.shape == (4, 5)
    assert abs(together[2, 3] - one) < 1e-13


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((Prismatic(), MU, GAMMA), UnsupportedError, "lets the contact slip"),
        (("spherical", 0.0), InputError, "friction is 0.0"),
        (("spherical", math.nan), InputError, "friction is nan"),
        (("spherical", "rough"), InputError, "friction is 'rough'"),
        (("spherical", np.array([0.5, -0.5])), InputError, "friction is array"),
        (("soft_finger", MU), InputError, "give its bound torsion="),
        (("fixed", MU, -1.0), InputError, "torsion is -1.0 m"),
        ((Revolute(), MU, GAMMA), InputError, "an edge lies across the normal"),
        (("fixed", MU, GAMMA, (0, 0, 0)), InputError, "normal is"),
    ],
)
def test_cones_that_cannot_be_are_refused(arguments, error, words):
    kind, *rest = arguments
    with pytest.raises(error, match=words):
        grasp_margin(kind, (0.0,) * 6, *rest)
