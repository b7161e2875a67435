"""Inverse kinematics: closed forms first, then identities, then what is refused."""

from __future__ import annotations

import importlib.metadata

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, Reason, StateError, StateWarning, UnsupportedError
from spanloop.math import rotation_vector
from spanloop.model.solid_inertia import rod

TIGHT = 1e-8  # the default tolerance is 1e-9


def two_links(limits=None, third=False) -> sl.Model:
    """A plane arm with links of 0.5 m and 0.4 m about y, along x."""
    b = sl.Builder("two links")
    b.body("upper", mass=2.0, center=(0.25, 0, 0), inertia=rod(2.0, 0.5))
    b.body("fore", mass=1.0, center=(0.2, 0, 0), inertia=rod(1.0, 0.4))
    b.revolute("shoulder", "world", "upper", axis="y")
    b.revolute("elbow", "upper", "fore", axis="y", position=(0.5, 0, 0), **(limits or {}))
    b.frame("tool", "fore", position=(0.4, 0, 0))
    return b.build()


def slide() -> sl.Model:
    b = sl.Builder("slide")
    b.body("cart", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.prismatic("rail", "world", "cart", axis="x")
    b.frame("front", "cart", position=(0.3, 0, 0))
    return b.build()


# ---- closed forms


@pytest.mark.parametrize(("radius", "distance"), [(1.2, 0.3), (0.05, 0.05)])
def test_a_target_out_of_reach_is_missed_by_the_difference_of_the_radii(radius, distance):
    """The tool of the arm reaches radii from 0.1 m to 0.9 m."""
    robot = sl.Dynamics(two_links())
    found = robot.inverse_kinematics({"tool": [radius * 0.6, 0.0, radius * 0.8]})
    assert not found.converged
    assert found.residual["tool"].distance == pytest.approx(distance, abs=1e-9)
    assert f"misses 'tool' by {distance:.3g} m" in str(found)


def test_a_joint_stands_at_the_limit_that_is_nearest_to_the_target():
    robot = sl.Dynamics(two_links({"limits": (0.3, 1.0)}))
    found = robot.inverse_kinematics({"tool": [0.9, 0.0, 0.0]})  # the elbow would have to be straight
    assert found.q[1] == 0.3
    reach = np.hypot(0.5 + 0.4 * np.cos(0.3), 0.4 * np.sin(0.3))
    assert found.residual["tool"].distance == pytest.approx(0.9 - reach, abs=1e-9)
    assert found.limits() == ("elbow",)
    assert "At limits: 'elbow'" in str(found)


def test_weights_share_what_cannot_be_met_twice():
    """The least of Σ w (x − x_i)² is the weighted mean."""
    robot = sl.Dynamics(slide())
    targets = [sl.targets.Position("cart", (0.0, 0, 0), weight=3.0), sl.targets.Position("front", (1.3, 0, 0))]
    found = robot.inverse_kinematics(targets)
    assert found.q[0] == pytest.approx(0.25, abs=1e-8)
    assert not found.converged


def test_a_hinge_without_limits_is_solved_on_the_turn_of_its_start():
    robot = sl.Dynamics(two_links())
    found = robot.inverse_kinematics({"tool": [0.6, 0.0, 0.4]}, [20.0, -15.0])
    assert found.converged
    assert np.abs(found.q - (20.0, -15.0)).max() <= np.pi


# ---- identities


def inside(model: sl.Model, count: int, seed: int = 0) -> np.ndarray:
    return np.array([model.random_state(seed + k)[0] for k in range(count)])


def test_poses_of_random_states_are_reached_and_batches_are_their_rows():
    robot = sl.Dynamics(sl.zoo.puma())
    there = robot.pose(inside(robot.model, 40), "tool")
    found = robot.inverse_kinematics({"tool": there.reshape(2, 20, 4, 4)})
    assert found.converged.shape == (2, 20)
    assert found.converged.all()
    assert np.abs(robot.pose(found.q, "tool").reshape(40, 4, 4) - there).max() < TIGHT
    for k in range(3):
        one = robot.inverse_kinematics({"tool": there[k]})
        assert one.converged is True
        assert np.abs(one.q - found.q[0, k]).max() < 1e-6


def test_a_point_a_direction_and_a_half_turn_are_reached():
    robot = sl.Dynamics(sl.zoo.puma())
    start = np.array([0.2, -0.7, 0.5, 0.1, 0.8, 0.3])
    here = robot.pose(start, "tool")
    opposite = sl.targets.Direction("tool", -here[:3, 2])
    found = robot.inverse_kinematics([sl.targets.Position("tool", here[:3, 3]), opposite], start)
    assert found.converged
    assert set(found.residual) == {"tool position", "tool direction"}
    assert np.abs(robot.pose(found.q, "tool")[:3, 2] + here[:3, 2]).max() < TIGHT
    flipped = here.copy()
    flipped[:3, :3] = here[:3, :3] @ np.diag([1.0, -1.0, -1.0])
    found = robot.inverse_kinematics({"tool": flipped}, start)
    assert found.converged
    assert np.abs(robot.pose(found.q, "tool") - flipped).max() < TIGHT


@pytest.mark.slow
def test_the_centre_of_mass_and_feet_are_reached_together():
    robot = sl.Dynamics(sl.zoo.quadruped())
    model = robot.model
    rng = np.random.default_rng(3)
    q = robot.integrate(robot.inverse_kinematics({"trunk": np.eye(4)}).q, 0.1 * rng.normal(size=model.nv))
    q = np.where(np.isfinite(q), q, 0.0)
    feet = [sl.targets.Position(b, robot.pose(q, b)[:3, 3]) for b in ("fl_shank", "fr_shank", "hl_shank", "hr_shank")]
    found = robot.inverse_kinematics([*feet, sl.targets.CenterOfMass(robot.center_of_mass(q))])
    assert found.converged, str(found)
    assert np.abs(robot.center_of_mass(found.q) - robot.center_of_mass(q)).max() < TIGHT


def test_fixed_joints_keep_their_coordinates():
    robot = sl.Dynamics(sl.zoo.puma())
    start = np.array([0.2, -0.7, 0.5, 0.1, 0.8, 0.3])
    point = robot.pose(start + [0, 0.2, -0.3, 0, 0, 0], "tool")[:3, 3]
    found = robot.inverse_kinematics({"tool": point}, start, fixed=["joint1", "joint4"])
    assert found.converged
    assert found.q[0] == start[0]
    assert found.q[3] == start[3]


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("four_bar", "coupler"),
        pytest.param("stewart", "platform", marks=pytest.mark.slow),
        pytest.param("delta", "platform", marks=pytest.mark.slow),
    ],
)
def test_loops_stay_closed_at_targets_in_reach_and_out_of_it(name, frame):
    robot, start = sl.Dynamics(getattr(sl.zoo, name)()), getattr(sl.zoo, f"{name}_start")()
    rng = np.random.default_rng(1)
    other = robot.assemble(robot.integrate(start, 0.1 * rng.normal(size=robot.model.nv)))
    there = robot.pose(other, frame)
    found = robot.inverse_kinematics({frame: there}, start)
    assert found.converged
    assert np.abs(robot.pose(found.q, frame) - there).max() < TIGHT
    assert np.abs(robot.closure_error(found.q)).max() < 1e-11
    away = robot.inverse_kinematics([sl.targets.Direction(frame, (0.3, 0.9, 0.1)), *_far(frame, there)], start)
    assert np.abs(robot.closure_error(away.q)).max() < 1e-11


def _far(frame, pose):
    return [sl.targets.Position(frame, pose[:3, 3] + [0.0, 30.0, 0.0])]


def test_couplings_are_kept():
    b = sl.Builder("geared")
    b.body("upper", mass=2.0, center=(0.25, 0, 0), inertia=rod(2.0, 0.5))
    b.body("fore", mass=1.0, center=(0.2, 0, 0), inertia=rod(1.0, 0.4))
    b.revolute("shoulder", "world", "upper", axis="y").revolute("elbow", "upper", "fore", "y", (0.5, 0, 0))
    b.frame("tool", "fore", position=(0.4, 0, 0)).coupling("gear", "elbow", "shoulder", ratio=-2.0, offset=0.1)
    robot = sl.Dynamics(b.build())
    there = robot.pose([0.4, -0.7], "tool")
    found = robot.inverse_kinematics({"tool": there})
    assert found.converged
    assert found.q[1] == pytest.approx(-2.0 * found.q[0] + 0.1, abs=1e-12)


@pytest.mark.slow
def test_nearly_all_poses_of_panda_are_reached_where_pinocchio_puts_them():
    """Random states inside the limits, from random starts; poses are recomputed by Pinocchio."""
    pin = pytest.importorskip("pinocchio")
    try:
        wheel = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    folder = wheel.locate_file("cmeel.prefix/share/example-robot-data/robots/panda_description/urdf")
    robot = sl.Dynamics(sl.load(f"{folder}/panda.urdf"))
    peer = pin.buildModelFromUrdf(f"{folder}/panda.urdf")
    data, number = peer.createData(), peer.getFrameId("panda_hand_tcp")
    lower, upper = peer.lowerPositionLimit, peer.upperPositionLimit
    order = sl.PinocchioOrder(robot.model, list(peer.names), list(peer.nqs))
    rng = np.random.default_rng(5)
    there, start = rng.uniform(lower, upper, (2, 500, peer.nq))
    poses = []
    for q in there:
        pin.framesForwardKinematics(peer, data, q)
        poses.append(data.oMf[number].homogeneous)
    found = robot.inverse_kinematics({"panda_hand_tcp": np.array(poses)}, order.q_from(start))
    assert found.converged.mean() >= 0.99
    for k in np.flatnonzero(found.converged):
        q = order.q_to(found.q[k])
        assert (q >= lower).all()
        assert (q <= upper).all()
        pin.framesForwardKinematics(peer, data, q)
        assert np.linalg.norm(pin.log6(data.oMf[number].inverse() * pin.SE3(poses[k])).vector) < TIGHT


def test_an_orientation_alone_is_reached_and_followed():
    robot = sl.Dynamics(sl.zoo.puma())
    q = np.linspace([0.3, -0.6, 0.7, 0.2, 0.8, -0.4], [0.5, -0.2, 0.3, 0.6, 1.2, 0.0], 12)
    there = robot.pose(q, "tool")[:, :3, :3]
    target = sl.targets.Orientation("tool", there)
    for found in (robot.inverse_kinematics(target), robot.inverse_kinematics_path(target, q[0])):
        assert found.converged.all()
        assert np.abs(robot.pose(found.q, "tool")[:, :3, :3] - there).max() < TIGHT
    with pytest.raises(StateError, match="no rotation"):
        robot.inverse_kinematics(sl.targets.Orientation("tool", 2.0 * np.eye(3)))


def test_where_no_joint_may_move_the_start_is_the_answer():
    robot = sl.Dynamics(two_links())
    found = robot.inverse_kinematics({"tool": (0.9, 0.0, 0.0)}, [0.1, 0.2], fixed=["shoulder", "elbow"])
    assert not found.converged
    assert found.q.tolist() == [0.1, 0.2]
    assert robot.inverse_kinematics({"tool": (0.9, 0.0, 0.0)}, [0.0, 0.0], fixed=["shoulder", "elbow"]).converged


# ---- paths


def test_a_path_keeps_its_branch_and_stops_at_the_edge_of_reach():
    robot = sl.Dynamics(two_links())
    x = np.linspace(0.5, 1.1, 61)
    points = np.stack([x, 0 * x, 0 * x], axis=1)
    start = robot.inverse_kinematics({"tool": points[0]}, [-0.9, 1.8]).q
    for elbow in (1.0, -1.0):  # the mirror image is the other branch
        found = robot.inverse_kinematics_path({"tool": points}, elbow * start)
        met = int(found.converged.sum())
        assert met in (40, 41)  # 0.9 m is sample 40
        assert (np.sign(found.q[: met - 1, 1]) == np.sign(elbow * start[1])).all()
        assert np.isnan(found.q[met:]).all()
        assert f"Between samples {met - 1} and {met}" in str(found)
    # radius² = a² + b² + 2ab cos(elbow)
    cosine = (x[:40] ** 2 - 0.41) / 0.4
    assert np.abs(np.cos(found.q[:40, 1]) - cosine).max() < TIGHT


def test_a_path_without_a_start_begins_anywhere_and_has_no_jumps():
    robot = sl.Dynamics(sl.zoo.puma())
    s = np.linspace(0.0, 2 * np.pi, 81)
    poses = np.repeat(robot.pose([0.3, -0.6, 0.7, 0.2, 0.8, -0.4], "tool")[None], 81, axis=0)
    poses[:, :3, 3] += 0.05 * np.stack([np.cos(s) - 1.0, np.sin(s), 0 * s], axis=1)
    found = robot.inverse_kinematics_path({"tool": poses})
    assert found.converged.all()
    assert not found.stopped
    assert np.abs(np.diff(found.q, axis=0)).max() < 0.1
    assert np.abs(found.q[0] - found.q[-1]).max() < TIGHT  # a closed path, six DoF: it comes back


def test_a_path_of_a_closed_mechanism_is_the_one_that_its_crank_takes():
    robot, start = sl.Dynamics(sl.zoo.four_bar()), sl.zoo.four_bar_start()
    turn = start[0] + np.linspace(0.0, 2 * np.pi, 121)
    q = robot.follow(start, {"crank_hinge": (turn, 0 * turn, 0 * turn)})[0]
    found = robot.inverse_kinematics_path({"coupler": robot.pose(q, "coupler")}, start)
    assert found.converged.all()
    assert np.abs(np.exp(1j * found.q) - np.exp(1j * q)).max() < TIGHT
    assert np.abs(robot.closure_error(found.q)).max() < 1e-11


def test_a_path_stops_at_a_limit_and_names_the_joint():
    robot = sl.Dynamics(two_links({"limits": (0.5, 2.5)}))
    points = robot.pose(np.stack([np.zeros(31), np.linspace(1.5, 0.0, 31)], axis=1), "tool")[:, :3, 3]
    found = robot.inverse_kinematics_path({"tool": points}, [0.0, 1.5])
    assert int(found.converged.sum()) == 21  # the samples up to 0.5 rad
    assert "at limits: 'elbow'" in found.stopped


# ---- what is refused


def test_bad_targets_are_refused_with_sentences():
    robot = sl.Dynamics(two_links())
    pose = np.eye(4)
    stretched, mirrored, transposed, nan = pose.copy(), np.diag([1.0, 1.0, -1.0, 1.0]), pose.copy(), pose.copy()
    stretched[:3, :3] *= 1.01
    transposed[3, 0] = 0.5
    nan[0, 3] = np.nan
    for bad, reason, words in (
        (stretched, Reason.OTHER, "holds no rotation"),
        (mirrored, Reason.OTHER, "reflection"),
        (transposed, Reason.OTHER, "Is the matrix transposed"),
        (nan, Reason.NOT_FINITE, "target 'tool' holds nan"),
    ):
        with pytest.raises(StateError, match=words) as caught:
            robot.inverse_kinematics({"tool": bad})
        assert caught.value.reason is reason
        assert str(caught.value).startswith("inverse_kinematics: target 'tool'")
    with pytest.warns(StateWarning, match="1 of 2 states has no answer"):
        found = robot.inverse_kinematics({"tool": np.array([[0.5, 0, 0.2], [np.nan, 0, 0]])})
    assert found.converged.tolist() == [True, False]
    assert np.isnan(found.q[1]).all()
    assert np.isfinite(found.q[0]).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (({"tol": np.eye(4)},), "did you mean 'tool'"),
        (({"tool": np.eye(3)[:2, :2]},), "expected a pose"),
        (({"tool": np.eye(3)},), "is a rotation"),
        (({},), "targets is empty"),
        (("tool",), "targets is a str"),
        (([np.eye(4)],), "a target is a ndarray"),
        (([sl.targets.Position("tool", (0, 0, 0)), sl.targets.Position("tool", (1, 0, 0))],), "two targets are called"),
        ((sl.targets.Position("tool", (0, 0, 0), weight=-1.0),), "weight of 'tool' is -1.0"),
        (({"tool": np.zeros((3, 3))}, np.zeros((2, 2))), "batch axes do not fit together"),
        (({"tool": np.zeros(3)}, np.zeros(3)), "start has shape"),
    ],
)
def test_wrong_arguments_are_refused_with_sentences(arguments, words):
    with pytest.raises(InputError, match=words):
        sl.Dynamics(two_links()).inverse_kinematics(*arguments)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"restarts": -1}, "restarts is -1"),
        ({"fixed": ["elbo"]}, "did you mean 'elbow'"),
        ({"seed": 0.5}, "seed is 0.5"),
    ],
)
def test_wrong_options_are_refused_with_sentences(options, words):
    with pytest.raises(InputError, match=words):
        sl.Dynamics(two_links()).inverse_kinematics({"tool": np.zeros(3)}, **options)


def test_a_direction_without_length_and_a_start_that_is_no_state_are_refused():
    robot = sl.Dynamics(two_links())
    with pytest.raises(StateError, match="length 0"):
        robot.inverse_kinematics(sl.targets.Direction("tool", (0, 0, 0)))
    with pytest.raises(StateError, match="start"):
        robot.inverse_kinematics({"tool": np.zeros(3)}, [np.nan, 0.0])


def test_a_path_needs_samples_and_one_start():
    robot = sl.Dynamics(two_links())
    with pytest.raises(InputError, match="expected one, the samples"):
        robot.inverse_kinematics_path({"tool": np.zeros(3)})
    with pytest.raises(InputError, match="expected one state"):
        robot.inverse_kinematics_path({"tool": np.zeros((4, 3))}, np.zeros((4, 2)))
    with pytest.raises(StateError, match="sample 2"):
        robot.inverse_kinematics_path({"tool": [[0.5, 0, 0], [0.5, 0, 0.1], [np.nan, 0, 0]]})


def test_loops_that_constrain_velocities_alone_are_refused():
    model = two_links().with_loop("world", "fore", sl.joints.Revolute("y"), name="drive", driven=True)
    with pytest.raises(UnsupportedError, match="drive"):
        sl.Dynamics(model).inverse_kinematics({"tool": np.zeros(3)})


# ---- rotation vectors


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 1.0, 2.5, np.pi - 1e-6, np.pi])
def test_the_rotation_vector_of_a_matrix_has_its_axis_and_angle(angle):
    axis = np.array([0.36, -0.48, 0.8])
    K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    r = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
    found = np.array(rotation_vector.of_matrix(tuple(map(tuple, r.tolist()))))
    if angle == np.pi:
        found *= np.sign(found @ axis)
    assert np.abs(found - angle * axis).max() < 1e-9 * max(angle, 1e-7) + 1e-15
