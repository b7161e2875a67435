"""with_joint, with_coupling, with_parameters: what was loaded gets other numbers, and keeps the rest."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, ModelError

URDF = """<robot name="r"><link name="base"/>
  <link name="arm"><inertial><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="elbow" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="5" velocity="2"/><dynamics damping="0.2"/></joint></robot>"""


def test_settings_of_a_loaded_joint_change_and_the_others_stay(tmp_path):
    (tmp_path / "r.urdf").write_text(URDF)
    old = sl.load(tmp_path / "r.urdf")
    new = old.with_joint("elbow", damping=0.5, limits=(-2, 2), armature=0.1, friction=0.3, stiffness=4, rest=0.2)
    j = new.joint("elbow")
    assert (j.lower, j.upper, j.speed, j.effort) == ((-2.0,), (2.0,), (2.0,), (5.0,))
    assert (j.damping, j.armature, j.friction, j.stiffness, j.rest) == ((0.5,), (0.1,), (0.3,), (4.0,), (0.2,))
    assert old.joint("elbow").damping == (0.2,)
    new.save(tmp_path / "r.toml")
    assert sl.load(tmp_path / "r.toml") == new
    a = sl.Dynamics(new.with_gravity((0, 0, 0)), target="python").forward_dynamics([0.7], [0.0], [0.0])
    np.testing.assert_allclose(a, -4.0 * 0.5 / 0.2, rtol=1e-12)  # the spring on inertia and armature


def test_an_infinite_limit_is_none():
    dog = zoo.quadruped().with_joint("fl_roll", limits=(-math.inf, math.inf), effort=3.0)
    assert (dog.joint("fl_roll").lower, dog.joint("fl_roll").upper, dog.joint("fl_roll").effort) == (None, None, (3.0,))
    assert dog.with_joint("fl_roll", effort=math.inf, lower=-0.1).joint("fl_roll").effort is None


def test_none_is_no_limit_and_no_loss():
    dog = zoo.quadruped().with_joint("fl_roll", limits=(-1, 1), speed=2, effort=3)
    assert dog.with_joint("fl_roll", limits=None).joint("fl_roll").upper is None
    half = dog.with_joint("fl_roll", limits=(None, 2)).joint("fl_roll")
    assert (half.lower, half.upper) == (None, (2.0,))
    bare = dog.with_joint("fl_roll", lower=None, speed=None, effort=None).joint("fl_roll")
    assert (bare.lower, bare.upper, bare.speed, bare.effort) == (None, (1.0,), None, None)
    for setting in ("damping", "armature", "actuated"):
        with says(InputError, f"joint 'fl_roll': {setting} is None; expected"):
            dog.with_joint("fl_roll", **{setting: None})


def test_a_truth_value_is_no_number():
    with says(InputError, "joint 'joint2': damping is True; expected a number"):
        zoo.puma().with_joint("joint2", damping=True)
    with says(InputError, "body 'link6': mass is True; expected a finite number"):
        zoo.puma().with_inertia("link6", mass=True)


def test_a_second_coupling_of_a_joint_names_the_first():
    arm = zoo.puma().with_coupling("joint6", "joint5")
    with says(InputError, "coupling 'joint6': joint 'joint6' follows 'joint5' already (coupling 'joint6')"):
        arm.with_coupling("joint6", "joint4")


def test_remove_without_names_is_refused():
    with says(InputError, "remove: no part is named"):
        zoo.puma().remove()


def test_a_pattern_matches_joints_that_move_except_free_ones():
    dog = zoo.quadruped()
    free = dog.joints[0]
    every = dog.lock("fr_knee").with_joint("*", damping=0.7)
    moving = [j for j in every.joints if j.kind.nv and j is not every.joints[0]]
    assert {j.damping for j in moving} == {(0.7,)}
    assert every.joint(free.name).damping == free.damping
    knees = dog.with_joint("fl_*", "hr_knee", friction=0.1)
    assert {j.name for j in knees.joints if j.friction == (0.1,)} == {"fl_roll", "fl_pitch", "fl_knee", "hr_knee"}
    assert dog.with_joint(free.name, damping=range(6)).joints[0].damping == (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)


def test_driven_and_actuated_are_settings_too():
    arm = zoo.puma().with_actuator("motor", "joint2").drive("joint1")
    changed = arm.with_joint("joint2", actuated=False).with_joint("joint1", driven=False)
    assert ("joint2" in changed.actuated, changed.actuators, changed.driven) == (False, (), ())
    assert changed.with_joint("joint2", actuated=True).actuated == arm.actuated


WRONG = {
    "a name": (("jont2",), {"damping": 1}, "model 'puma' has no joint 'jont2'; did you mean 'joint2'?"),
    "a number": ((2,), {"damping": 1}, "with_joint: a name is 2; expected a name"),
    "no name": ((), {"damping": 1}, "with_joint: no joint is named"),
    "no setting": (("joint2",), {}, "with_joint: no setting is given; there are limits, lower"),
    "a setting": (
        ("joint2",),
        {"dampin": 1},
        "joint 'joint2': a joint has no setting 'dampin'; did you mean 'damping'?",
    ),
    "a text": (("joint2",), {"damping": "1"}, "joint 'joint2': damping is '1'; expected a number"),
    "not a number": (("joint2",), {"upper": math.nan}, "joint 'joint2': upper is nan; expected a number"),
    "negative": (("joint2",), {"damping": -1}, "joint 'joint2': damping is (-1.0,); must be >= 0"),
    "two numbers": (
        ("joint2",),
        {"damping": (1, 2)},
        "joint 'joint2': damping has 2 numbers; a revolute joint takes 1",
    ),
    "one limit": (("joint2",), {"limits": 3}, "joint 'joint2': limits is 3; expected (lower, upper)"),
    "swapped": (("joint2",), {"limits": (2, 1)}, "joint 'joint2': lower limit (2.0,) is above upper limit (1.0,)"),
    "twice": (("joint2",), {"limits": (1, 2), "lower": 0}, "joint 'joint2': limits and lower or upper are given"),
    "no boolean": (("joint2",), {"driven": 1}, "joint 'joint2': driven is 1; expected True or False"),
    "a rest of two": (("joint2",), {"rest": (1, 2)}, "joint 'joint2': 2 coordinates are given; a revolute joint has 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_with_joint_says_what_is_wrong(case):
    names, settings, sentence = WRONG[case]
    with says((InputError, ModelError), sentence):
        zoo.puma().with_joint(*names, **settings)


def test_fixed_joints_and_loops_hold_no_settings():
    with says(InputError, "joint 'joint2': a fixed joint has no DoF, hence no such settings"):
        zoo.puma().lock("joint2").with_joint("joint2", damping=1)
    with says(InputError, "with_joint: 'closing' is a loop of model 'four_bar', which holds no limits"):
        zoo.four_bar().with_joint("closing", damping=1)


def test_a_coupling_is_added_and_removed():
    model = zoo.puma().with_coupling("joint6", "joint5", ratio=-0.5, offset=0.1)
    q = sl.Dynamics(model).assemble([0, 0, 0, 0, 1.0, 0], fixed=["joint5"])
    np.testing.assert_allclose(q[5], -0.4, atol=1e-12)
    with says(
        InputError, "'joint6' is a joint and a coupling; choose one: kind='joint' lets its body float; kind='coupl"
    ):
        model.remove("joint6")
    assert model.remove("joint6", kind="coupling") == zoo.puma()
    with says(InputError, "has no joint 'jont5'; did you mean 'joint5'?"):
        model.with_coupling("joint6", "jont5")
    with says(InputError, "coupling 'joint4': ratio is nan; expected a finite number"):
        model.with_coupling("joint4", "joint5", ratio=math.nan)


@pytest.mark.parametrize("make", [zoo.puma, zoo.four_bar, zoo.quadruped])
def test_parameters_go_into_the_model_and_through_a_file(make, tmp_path):
    model = make()
    assert model.with_parameters(model.parameters()) == model
    rng = np.random.default_rng(3)
    values = model.parameters().values * rng.uniform(1.0, 1.001, len(model.parameters()))
    identified = model.with_parameters(values)
    assert (identified.parameters().values == values).all()
    identified.save(tmp_path / "m.toml")
    assert sl.load(tmp_path / "m.toml") == identified


def test_parameters_are_arrays_for_kernels():
    arm = zoo.puma()
    q, v = arm.random_state(1)
    heavier = arm.parameters().changed({"link6.mass": 2.0})
    live = sl.compile(arm, "inverse_dynamics", parameters="live", target="python")(q, v, v, heavier)
    baked = sl.Dynamics(arm.with_parameters(heavier), target="python").inverse_dynamics(q, v, v)
    np.testing.assert_allclose(live, baked, rtol=1e-12)


def test_parameters_by_name_say_what_is_wrong():
    arm = zoo.puma()
    assert arm.with_parameters({"link6.mass": 2, "joint2.damping": 0.5}).joint("joint2").damping == (0.5,)
    with says(InputError, "there is no parameter 'link6.mas'; did you mean 'link6.mass'?"):
        arm.with_parameters({"link6.mas": 2})
    with says(InputError, "parameter 'link6.mass' is 'heavy'; expected a finite number"):
        arm.with_parameters({"link6.mass": "heavy"})
    with says(InputError, "model 'puma': parameters holds something that is no number"):
        arm.with_parameters(["x"] * len(arm.parameters()))
