"""The conventions, one test a line: whoever changes one changes this file."""

from __future__ import annotations

import inspect
import math
import warnings

import numpy as np
import pytest
from mechanisms import kernel, model_of, states
from sentences import says

import spanloop as sl
from spanloop import joints, zoo
from spanloop.errors import ModelError, SpanloopWarning, UnsupportedError
from spanloop.math.spatial import Force, Motion, Transform
from spanloop.model.parts import Placement

BRICK = (0.02, 0.05, 0.06)


def brick(**options):
    """A brick of 2 kg that floats."""
    return sl.Builder("brick", **options).body("brick", 2.0, inertia=BRICK).free("root", "world", "brick").build()


def turned(axis, angle):
    """Quaternion (w, x, y, z) of a rotation about x, y or z."""
    e = [math.cos(angle / 2), 0.0, 0.0, 0.0]
    e["xyz".index(axis) + 1] = math.sin(angle / 2)
    return e


# ---- letters and orders


def test_state_letters_are_q_v_a_tau():
    calls = {"forward_dynamics": "q v tau", "inverse_dynamics": "q v a", "bias": "q v", "mass_matrix": "q"}
    for name, letters in calls.items():
        parameters = inspect.signature(getattr(sl.Dynamics, name)).parameters
        taken = [p for p in parameters if parameters[p].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        assert taken == ["self", *letters.split()]
    model = brick()
    assert (model.nq, model.nv) == (7, 6)


def test_a_spatial_vector_is_angular_then_linear():
    assert list(Motion((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert list(Force.of(range(6)).angular) == [0, 1, 2]
    robot = sl.Dynamics(brick(), target="python")
    v = np.array([0.0, 0.0, 2.0, 0.0, 0.0, 0.0])
    assert robot.jacobian(robot.model.neutral(), "brick") @ v == pytest.approx([0, 0, 2, 0, 0, 0])


def test_a_free_joint_has_quaternion_then_position_scalar_first():
    robot = sl.Dynamics(brick(), target="python")
    q = np.array([*turned("z", math.pi / 2), 1.0, 2.0, 3.0])
    X = robot.pose(q, "brick")
    assert robot.model.neutral().tolist() == [1, 0, 0, 0, 0, 0, 0]
    np.testing.assert_allclose(X[:3, 3], (1.0, 2.0, 3.0))
    np.testing.assert_allclose(X[:3, 0], (0.0, 1.0, 0.0), atol=1e-15)  # its x axis points along the world's y


def test_a_free_joints_velocity_is_in_the_bodys_axes():
    robot = sl.Dynamics(brick(), target="python")
    q = np.array([*turned("z", math.pi / 2), 1.0, 2.0, 3.0])
    v = np.array([1.0, 0.0, 0.0, 5.0, 0.0, 0.0])  # about and along its own x, which is the world's y
    np.testing.assert_allclose(robot.jacobian(q, "brick") @ v, (0, 1, 0, 0, 5, 0), atol=1e-14)


def test_orders_of_other_libraries_are_converted():
    """Pinocchio: position first, scalar last, linear first. (MuJoCo's order comes with its files.)"""
    order = sl.PinocchioOrder(brick(), ["universe", "root_joint"])
    assert order.q_to([10, 11, 12, 13, 14, 15, 16]).tolist() == [14, 15, 16, 11, 12, 13, 10]
    assert order.v_to([0, 1, 2, 3, 4, 5]).tolist() == [3, 4, 5, 0, 1, 2]


# ---- units, gravity, numbering


def test_angles_are_radians_and_lengths_metres():
    robot = sl.Dynamics(zoo.pendulum(1, length=2.0), target="python")
    np.testing.assert_allclose(robot.pose([math.pi / 2], "tip")[:3, 3], (-2.0, 0.0, 0.0), atol=1e-15)


def test_a_positive_angle_turns_counter_clockwise_about_the_axis():
    b = sl.Builder("arm").body("arm", 1.0, inertia=BRICK).revolute("hinge", "world", "arm", "z")
    X = sl.Dynamics(b.frame("tip", "arm", (1.0, 0.0, 0.0)).build(), target="python").pose([0.3], "tip")
    np.testing.assert_allclose(X[:2, 3], (math.cos(0.3), math.sin(0.3)))


def test_gravity_is_a_vector_of_the_world_downward_by_default():
    model = brick()
    assert model.gravity == (0.0, 0.0, -9.81)
    robot = sl.Dynamics(model, target="python")
    q = np.array([*turned("x", 1.0), 0.0, 0.0, 0.0])
    R = robot.pose(q, "brick")[:3, :3]
    a = robot.forward_dynamics(q, np.zeros(6), np.zeros(6))
    np.testing.assert_allclose(R @ a[3:], (0.0, 0.0, -9.81), atol=1e-14)
    sideways = sl.Dynamics(model.with_gravity((1.0, 0.0, 0.0)), target="python")
    np.testing.assert_allclose(R @ sideways.forward_dynamics(q, np.zeros(6), np.zeros(6))[3:], (1, 0, 0), atol=1e-14)
    # gravity() is the torque that holds against it
    np.testing.assert_allclose(R @ robot.gravity_torques(q)[3:], (0.0, 0.0, 2.0 * 9.81), atol=1e-14)


def test_bodies_are_numbered_depth_first_after_the_world_children_in_the_order_given():
    b = sl.Builder("tree")
    for name in ("a", "b", "c", "d"):
        b.body(name, 1.0, inertia=BRICK)
    b.revolute("ja", "world", "a").revolute("jb", "a", "b").revolute("jd", "world", "d").revolute("jc", "a", "c")
    model = b.build()
    assert model.body_number == {"world": 0, "a": 1, "b": 2, "c": 3, "d": 4}
    assert all(parent < i + 1 for i, parent in enumerate(model.parents))
    assert [model.v_slice(j).start for j in ("ja", "jb", "jc", "jd")] == [0, 1, 2, 3]


LINK = """<link name="{}"><inertial><mass value="1"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>"""
JOINT = """<joint name="{}" type="revolute"><parent link="{}"/><child link="{}"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/>{}</joint>"""


def urdf(tmp_path, roll="0", more="", mimic="", extra=""):
    """A file of three links in a row."""
    links = "".join(LINK.format(name) for name in ("base", "arm", "hand"))
    first = JOINT.format("one", "base", "arm", f'<origin rpy="{roll} 0 0"/>{more}')
    path = tmp_path / "r.urdf"
    path.write_text(f'<robot name="r">{links}{first}{JOINT.format("two", "arm", "hand", mimic)}{extra}</robot>')
    return path


def test_a_floating_base_is_a_free_joint(tmp_path):
    path = urdf(tmp_path)
    fixed, free = sl.load(path), sl.load(path, base="free")
    assert (fixed.nq, fixed.nv) == (2, 2)
    assert (free.nq, free.nv) == (9, 8)
    assert free.joints[0].kind == joints.Free()
    assert sl.load(path, base="fixed").nv == 2


def test_a_link_with_two_parents_is_an_error_that_points_to_close(tmp_path):
    second = '<joint name="three" type="fixed"><parent link="base"/><child link="hand"/></joint>'
    with says(ModelError, "Close the loop with model.with_loop(...) instead of the second joint"):
        sl.load(urdf(tmp_path, extra=second))


def test_a_mimic_joint_is_a_coupling(tmp_path):
    model = sl.load(urdf(tmp_path, mimic='<mimic joint="one" multiplier="2" offset="0.1"/>'))
    (coupling,) = model.couplings
    assert (coupling.joint, coupling.source, coupling.ratio, coupling.offset) == ("two", "one", 2.0, 0.1)
    assert model.nv == 2


def test_a_joint_that_closes_a_cycle_is_a_loop():
    model = zoo.pendulum(3).with_loop("tip", "world", joint="revolute")
    assert [loop.kind.name for loop in model.loops] == ["revolute"]
    assert model.nv == 3  # of the spanning tree


# ---- what the dynamics speak of


def test_torques_and_the_mass_matrix_are_those_of_the_tree():
    model = model_of("quadruped")
    q, v, tau = next(states(model, 1))
    assert kernel("quadruped", "mass_matrix", target="python")(q).shape == (18, 18)
    assert kernel("quadruped", "forward_dynamics", target="python")(q, v, tau).shape == (18,)
    assert model.actuated == tuple(j.name for j in model.joints if j.actuated)


def test_a_driven_joint_takes_its_acceleration_from_tau():
    """A pendulum on a cart that is moved: (m l²/3) α = −m (l/2) (g sin q + a cos q) for a cart pushed along x."""
    b = sl.Builder("cart").body("cart", 5.0, inertia=BRICK).body("rod", 1.0, (0.0, 0.0, -0.5), (1 / 12, 1 / 12, 0.0))
    b.prismatic("rail", "world", "cart", "x").revolute("hinge", "cart", "rod", "y")
    robot = sl.Dynamics(b.build().drive("rail"), target="python")
    a = robot.forward_dynamics([0.2, 0.3], [1.0, 0.0], [4.0, 0.0])
    assert a[0] == 4.0
    # a turn about y by q takes −z to −x sin q: the push along +x swings the rod toward +q
    assert a[1] == pytest.approx(-1.5 * (9.81 * math.sin(0.3) - 4.0 * math.cos(0.3)))


def test_armature_is_in_the_mass_matrix_damping_and_springs_in_the_bias():
    b = sl.Builder("one", gravity=(0, 0, 0)).body("arm", 1.0, inertia=(0.5, 0.5, 0.5))
    b.revolute("hinge", "world", "arm", "z", armature=0.25, damping=3.0, stiffness=7.0, friction=100.0)
    robot = sl.Dynamics(b.build(), target="python")
    assert robot.mass_matrix([0.1])[0, 0] == 0.75
    assert robot.bias([0.1], [2.0])[0] == pytest.approx(3.0 * 2.0 + 7.0 * 0.1)  # no friction
    assert robot.inverse_dynamics([0.1], [2.0], [1.0])[0] == pytest.approx(6.7 + 0.75)
    assert robot.forward_dynamics([0.1], [2.0], [0.0])[0] == pytest.approx(-6.7 / 0.75)
    bare = sl.Dynamics(robot.model.without_losses(), target="python")
    assert bare.mass_matrix([0.1])[0, 0] == 0.5
    assert bare.bias([0.1], [2.0])[0] == 0.0


def test_coulomb_friction_is_one_warning_at_load(tmp_path):
    path = urdf(tmp_path, more='<dynamics damping="0.5" friction="0.2"/>')
    with pytest.warns(SpanloopWarning, match="Coulomb friction") as caught:
        model = sl.load(path)
    assert len([w for w in caught if "Coulomb" in str(w.message)]) == 1
    assert model.joint("one").friction == (0.2,)
    assert model.joint("one").damping == (0.5,)
    assert not any(any(j.friction) for j in model.without_losses().joints)


# ---- kinematics and quantities


def lever():
    """A hinge about z at the world's origin; the frame `tip` 2 m out along x, turned by a right angle about z."""
    b = sl.Builder("lever").body("arm", 3.0, (1.0, 0.0, 0.0), BRICK).revolute("hinge", "world", "arm", "z")
    b.frame("tip", "arm", (2.0, 0.0, 0.0), (0.0, 0.0, math.pi / 2))
    return sl.Dynamics(b.build(), target="python")


def test_a_pose_is_a_matrix_of_four_by_four():
    X = lever().pose([0.0], "tip")
    np.testing.assert_allclose(X, [[0, -1, 0, 2], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], atol=1e-15)


def test_a_jacobian_is_at_the_frames_origin_in_world_axes_unless_asked():
    robot = lever()
    np.testing.assert_allclose(robot.jacobian([0.0], "tip")[:, 0], (0, 0, 1, 0, 2, 0), atol=1e-15)
    own = robot.jacobian([0.0], "tip", expressed_in="tip")[:, 0]
    np.testing.assert_allclose(own, (0, 0, 1, 2, 0, 0), atol=1e-15)
    np.testing.assert_allclose(robot.jacobian([0.0], "world")[:, 0], 0.0)


def test_a_jacobian_bias_is_the_classical_acceleration():
    """A point on a turning lever is pulled inward by ω² r; the spatial acceleration would be zero."""
    np.testing.assert_allclose(lever().jacobian_bias([0.0], [3.0], "tip"), (0, 0, 0, -18.0, 0, 0), atol=1e-14)


def test_momentum_is_about_the_mass_centre():
    robot = lever()
    # 3 kg at 1 m with 2 rad/s: 6 kg m/s along y, and about the mass centre the body's own inertia alone
    np.testing.assert_allclose(robot.momentum([0.0], [2.0]), (0, 0, 0.06 * 2.0, 0, 6.0, 0), atol=1e-14)


def test_energy_is_kinetic_then_potential_zero_at_the_worlds_origin():
    b = sl.Builder("lift").body("cage", 2.0, inertia=BRICK).prismatic("rope", "world", "cage", "z")
    np.testing.assert_allclose(sl.Dynamics(b.build(), target="python").energy([3.0], [4.0]), (16.0, 2 * 9.81 * 3.0))


def test_a_force_is_torque_then_force_at_the_bodys_origin_in_world_axes():
    robot = lever()
    q, zero = [math.pi / 2], [0.0]  # the arm points along the world's y

    def torque(six):
        return robot.inverse_dynamics(q, zero, zero, forces={"arm": six})[0] - robot.inverse_dynamics(q, zero, zero)[0]

    assert torque([0, 0, 5.0, 0, 0, 0]) == pytest.approx(-5.0)  # helps, so less is needed
    assert torque([0, 0, 0, 7.0, 0, 0]) == pytest.approx(0.0, abs=1e-14)  # through the body's origin, which is the axis
    b = sl.Builder("two").body("arm", 1.0, inertia=BRICK).body("hand", 1.0, inertia=BRICK)
    b.revolute("hinge", "world", "arm", "z").fixed("wrist", "arm", "hand", (2.0, 0.0, 0.0))
    robot = sl.Dynamics(b.build(), target="python")
    push = robot.inverse_dynamics(q, zero, zero, forces={"hand": [0, 0, 0, 7.0, 0, 0]})[0]
    assert push == pytest.approx(14.0)  # along the world's x at y = 2: turns it by −14 N m


def test_a_general_joint_has_a_pose_and_any_number_of_rates_and_no_difference():
    kind = joints.General(((0, 0, 1, 0, 0, 0.1), (0, 0, 0, 1, 0, 0)))
    assert (kind.nq, kind.nv) == (7, 2)
    assert kind.neutral() == (1, 0, 0, 0, 0, 0, 0)
    b = sl.Builder("g").body("slab", 1.0, inertia=BRICK).joint("g", kind, "world", "slab")
    robot = sl.Dynamics(b.build(), target="python")
    q = robot.integrate(robot.model.neutral(), [0.0, 2.0])
    np.testing.assert_allclose(q, (1, 0, 0, 0, 2, 0, 0), atol=1e-15)
    with says(UnsupportedError, "general joint: two poses have no difference in its rates"):
        robot.difference(q, q)


def test_frames_cancel():
    """X_AC = X_AB @ X_BC, for transforms and placements."""
    quarter = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    P_AB, P_BC = Placement(quarter, (1.0, 0.0, 0.0)), Placement(quarter, (1.0, 0.0, 0.0))
    P_AC = P_AB @ P_BC
    np.testing.assert_allclose(P_AC.position, (1.0, 1.0, 0.0))
    X_AC = P_AB.transform() @ P_BC.transform()
    assert isinstance(X_AC, Transform)
    np.testing.assert_allclose(X_AC.translation, P_AC.position)
    np.testing.assert_allclose(X_AC.rotation.matrix(), P_AC.rotation)


# ---- arrays


def test_batch_axes_come_first_and_answers_are_c_ordered_doubles():
    robot = sl.Dynamics(model_of("puma"))
    q = np.asfortranarray(np.zeros((2, 3, 6)))
    for answer, shape in (
        (robot.mass_matrix(q), (6, 6)),
        (robot.gravity_torques(q), (6,)),
        (robot.pose(q, "tool"), (4, 4)),
    ):
        assert answer.shape == (2, 3, *shape)
        assert answer.flags.c_contiguous
        assert answer.dtype == np.float64


def test_public_names_are_words_in_ascii():
    for owner in (sl, sl.Dynamics, sl.Model):
        for name in dir(owner):
            assert name.isascii()
    assert {"forward_dynamics", "mass_matrix", "inverse_dynamics"} <= set(dir(sl.Dynamics))
    assert not {"qd", "dq", "fd", "rnea", "aba"} & set(dir(sl.Dynamics))
    assert len(sl.__all__) <= 34


# ---- snapping


@pytest.mark.parametrize(("roll", "snapped"), [("1.5707963268", True), ("1.5708", False), ("0.3", False)])
def test_right_angles_of_a_file_are_made_exact_to_1e_9(tmp_path, roll, snapped):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sl.load(urdf(tmp_path, roll=roll))
    rotation = model.joint("one").placement.rotation
    assert (rotation == ((1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0))) is snapped
    assert any("snapped" in note for note in model.notes) is snapped


def test_our_own_file_is_read_as_written(tmp_path):
    off = 1e-12
    rotation = ((1.0, 0.0, 0.0), (0.0, off, -1.0), (0.0, 1.0, off))
    b = sl.Builder("r").body("arm", 1.0, inertia=BRICK).revolute("hinge", "world", "arm", "z").build()
    from dataclasses import replace

    model = replace(b, joints=(replace(b.joints[0], placement=Placement(rotation)),))
    model.save(tmp_path / "r.toml")
    assert sl.load(tmp_path / "r.toml").joints[0].placement.rotation == rotation
