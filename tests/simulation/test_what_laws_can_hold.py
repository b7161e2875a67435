"""Control laws say which degrees of freedom they cannot hold, and control position and yaw of plane robots."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop import control
from spanloop.errors import InputError, SpanloopWarning


def three_rrr(gravity=(0.0, 0.0, -9.81)) -> tuple[sl.Model, np.ndarray]:
    """A plate on three legs with two hinges each in the x-y plane, driven at the base; and a closed state."""
    b = sl.Builder("three_rrr", gravity=gravity).body("plate", 1.0, (0, 0, 0), (0.01, 0.01, 0.02))
    b.planar("slide", "world", "plate", actuated=False)
    for k, (c, s) in enumerate((np.cos(a), np.sin(a)) for a in 2.0 * np.pi / 3.0 * np.arange(3)):
        b.body(f"upper{k}", 0.3, (0.15, 0, 0), (1e-3,) * 3).body(f"fore{k}", 0.2, (0.15, 0, 0), (1e-3,) * 3)
        b.revolute(f"drive{k}", "world", f"upper{k}", "z", (0.5 * c, 0.5 * s, 0))
        b.revolute(f"elbow{k}", f"upper{k}", f"fore{k}", "z", (0.3, 0, 0), actuated=False)
        b.frame(f"tip{k}", f"fore{k}", (0.3, 0, 0)).frame(f"corner{k}", "plate", (0.1 * c, 0.1 * s, 0))
        b.loop(f"corner{k}", f"tip{k}", "revolute", name=f"loop{k}")
    model = b.build()
    q = np.zeros(model.nq)
    for k in range(3):
        q[model.q_slice(f"drive{k}")], q[model.q_slice(f"elbow{k}")] = 2.0 * np.pi / 3.0 * k + np.pi - 0.8, 1.7
    return model, sl.Dynamics(model).assemble(q, fixed=("slide",))


@pytest.mark.slow
def test_the_plate_of_a_plane_robot_follows_a_line_and_turns():
    model, start = three_rrr()
    robot = sl.Dynamics(model)
    line = control.quintic([0.0, 0.0], [0.03, -0.02], duration=0.4)
    turn = control.turning(np.eye(3), (0, 0, 1), control.quintic(0.0, 0.2, duration=0.4))
    law = control.operational_space(
        model, "plate", line, 400.0, 40.0, axes="xy", orientation=turn, rotation_axes="z", near=start
    )
    run = sl.simulate(model, start, duration=0.5, controller=law)
    T = robot.pose(run.q[-1], "plate")
    np.testing.assert_allclose([*T[:2, 3], np.arctan2(T[1, 0], T[0, 0])], [0.03, -0.02, 0.2], atol=1e-9)


@pytest.mark.slow
def test_too_many_rotations_are_told_of_their_names():
    model, start = three_rrr()
    with says(InputError, "5 directions of 'plate' are to be controlled with 3 degrees of freedom"):
        control.operational_space(model, "plate", [0.0, 0.0], 1.0, 1.0, axes="xy", orientation=np.eye(3), near=start)
    with says(InputError, "operational_space: rotation_axes is 'rz'; expected some of 'xyz'"):
        control.operational_space(
            model, "plate", [0.0, 0.0], 1.0, 1.0, axes="xy", orientation=np.eye(3), rotation_axes="rz", near=start
        )


@pytest.mark.parametrize(
    "law",
    [
        lambda model, q: control.gravity(model, near=q),
        lambda model, q: control.computed_torque(model, {"drive0": 2.0}, 1.0, 1.0, near=q),
        lambda model, q: control.operational_space(model, "plate", [0.0], 1.0, 1.0, axes="x", near=q),
    ],
)
def test_a_law_with_too_few_actuators_says_what_falls(law):
    model, start = three_rrr(gravity=(0.0, -9.81, 0.0))
    with pytest.warns(
        SpanloopWarning, match="no actuator holds 'slide.0.', 'elbow1' of model 'three_rrr' against grav"
    ):
        law(model.unactuate("drive1", "drive2"), start)


def test_gravity_of_a_tree_names_the_joint_without_a_motor():
    with pytest.warns(SpanloopWarning, match="gravity: no actuator holds 'joint2' of model 'puma' against gravity"):
        control.gravity(sl.zoo.puma().unactuate("joint2"))


@pytest.mark.slow
def test_what_gravity_does_not_move_is_no_matter():
    level, start = three_rrr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        control.gravity(level.unactuate("drive1"), near=start)  # it moves in a level plane
        control.gravity(sl.zoo.puma().unactuate("joint1"))  # about a vertical axis
        control.gravity(sl.zoo.quadruped())  # a free base
        control.gravity(_spinning_rod())


def _spinning_rod() -> sl.Model:
    """A crank and a rocker with a rod between two balls, which spins about itself."""
    b = sl.Builder("rod").body("crank", 0.2, (0.1, 0, 0), (1e-3,) * 3).body("rocker", 0.3, (0, 0, 0.2), (1e-3,) * 3)
    b.body("rod", 0.4, (0.3, 0, 0), (1e-4, 1e-2, 1e-2)).revolute("drive", "world", "crank", "z")
    b.spherical("ball", "crank", "rod", (0.2, 0, 0), actuated=False)
    b.revolute("hinge", "world", "rocker", "y", (0.8, 0, -0.4), actuated=False)
    b.frame("end", "rod", (0.6, 0, 0)).frame("top", "rocker", (0, 0, 0.4))
    return b.loop("end", "top", "spherical").build()
