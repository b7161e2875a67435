"""Closure rows stand in the axes of the loop's child frame, and their names say in which direction each one acts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from frames import derivative, matrix

import spanloop as sl
from spanloop.loops.closure_errors import rows_of
from spanloop.math.rotation import Rotation, along_axes

AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
OBLIQUE = (1 / 3, 2 / 3, 2 / 3)
DIRECTIONS = ("x", "y", "z", "-x", "-y", "-z", OBLIQUE, (-0.48, 0.6, -0.64))


def direction(word: str) -> np.ndarray:
    """The unit vector of "y", "-x" or "(0.6, 0, 0.8)"; of four digits."""
    if word.startswith("("):
        return np.array([float(x) for x in word.strip("()").split(",")])
    return np.array(AXES[word.lstrip("-")], float) * (-1.0 if word.startswith("-") else 1.0)


def wrench(name: str) -> np.ndarray:
    """The six numbers that a row's name promises, in the axes of the child frame."""
    about = re.search(r"moment about (-?[xyz]|\(.*?\))", name)
    along = re.search(r"force along (-?[xyz]|\(.*?\))", name)
    beside = re.search(r"and moment (\(.*?\)) N m per N", name)
    six = np.zeros(6)
    if about:
        six[:3] = direction(about[1])
    if along:
        six[3:] = direction(along[1])
    if beside:
        six[:3] = direction(beside[1])
    return six


def rotation(rng) -> np.ndarray:
    r, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return r * np.linalg.det(r)


def tied(kind, seed=0, driven=False):
    """Two free bodies and a loop between frames on them, in a random state that closes it."""
    rng = np.random.default_rng(seed)
    b = sl.Builder("tied")
    for name in ("first", "second"):
        b.body(name, 1.0 + rng.random(), rng.normal(size=3), (1.0, 1.1, 1.2))
        b.free(f"{name}_root", "world", name)
        b.frame(f"{name}_end", name, rng.normal(size=3), rotation=rotation(rng))
    model = b.loop("first_end", "second_end", kind, name="tie", driven=driven).build()
    inside = matrix(kind.transform([*kind.neutral()]) if kind.carries else kind.closing_pose())
    if kind.carries and kind.nq == kind.nv:
        inside = matrix(kind.transform(rng.uniform(-1.0, 1.0, kind.nq).tolist()))
    first = np.eye(4)
    first[:3, :3], first[:3, 3] = rotation(rng), rng.normal(size=3)
    ends = [matrix(model.frame(f"{name}_end").placement) for name in ("first", "second")]
    second = first @ ends[0] @ inside @ np.linalg.inv(ends[1])
    return sl.Dynamics(model), np.concatenate([coordinates(first), coordinates(second)])


def coordinates(x) -> np.ndarray:
    """(w, x, y, z, px, py, pz) of a pose."""
    r = x[:3, :3]
    w, v = np.linalg.eigh(
        np.array(
            [
                [np.trace(r), r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]],
                [r[2, 1] - r[1, 2], 2 * r[0, 0] - np.trace(r), r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]],
                [r[0, 2] - r[2, 0], r[0, 1] + r[1, 0], 2 * r[1, 1] - np.trace(r), r[1, 2] + r[2, 1]],
                [r[1, 0] - r[0, 1], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], 2 * r[2, 2] - np.trace(r)],
            ]
        )
    )
    return np.concatenate([v[:, np.argmax(w)], x[:3, 3]])


def relative_twist(robot, q, v) -> np.ndarray:
    """Velocity of the child frame on the parent frame at its own origin in its own axes, by differences of poses."""

    def x(t):
        at = robot.integrate(q, t * v)
        return np.linalg.inv(robot.pose(at, "first_end")) @ robot.pose(at, "second_end")

    now, rate = x(0.0), derivative(x)
    w = now[:3, :3].T @ rate[:3, :3]
    return np.array((w[2, 1], w[0, 2], w[1, 0], *(now[:3, :3].T @ rate[:3, 3])))


def kinds(axis):
    yield sl.joints.Revolute(axis)
    yield sl.joints.Prismatic(axis)
    yield sl.joints.Cylindrical(axis)
    yield sl.joints.Helical(axis, pitch=0.25)
    yield sl.joints.Planar(axis)


CASES = [*kinds("y"), *kinds(OBLIQUE), sl.joints.Spherical(), sl.joints.Fixed(), sl.joints.SoftFinger()]
CASES += [kind for axis in DIRECTIONS if axis not in ("y", OBLIQUE) for kind in kinds(axis)]


@pytest.mark.parametrize("kind", CASES, ids=lambda x: str(x)[:40])
def test_a_row_measures_the_velocity_along_its_name_and_the_error_grows_with_it(kind):
    robot, q = tied(kind)
    v = np.random.default_rng(1).normal(size=12)
    rates = robot.closure_jacobian(q) @ v
    np.testing.assert_allclose(rates, promised(robot) @ relative_twist(robot, q, v), atol=2e-3)  # of four digits
    grown = derivative(lambda t: robot.closure_error(robot.integrate(q, t * v)))
    held = [r.positional for r in rows_of(robot.model)]
    np.testing.assert_allclose(grown[held], rates[held], atol=1e-11)


def promised(robot) -> np.ndarray:
    """The rows (n_rows, 6) that the names promise, each of unit force or, without one, of unit moment."""
    rows = np.array([wrench(row.name) for row in rows_of(robot.model)])
    sizes = [np.linalg.norm(w[3:]) or np.linalg.norm(w[:3]) for w in rows]
    np.testing.assert_allclose(sizes, 1.0, atol=2e-4)
    return rows


@pytest.mark.parametrize("axis", ["-y", OBLIQUE])
def test_the_rows_of_a_driven_loop_have_names_as_well(axis):
    robot, q = tied(sl.joints.Cylindrical(axis), driven=True)
    v = np.random.default_rng(1).normal(size=12)
    np.testing.assert_allclose(robot.closure_jacobian(q) @ v, promised(robot) @ relative_twist(robot, q, v), atol=2e-3)


@pytest.mark.parametrize("axis", ["y", "-y", OBLIQUE])
def test_a_force_along_a_row_is_the_wrench_of_its_name(axis):
    """Applied to both bodies at the child frame, in world axes: it does the work that Jᵀ λ does."""
    robot, q = tied(sl.joints.Revolute(axis))
    at = robot.pose(q, "second_end")
    rest = robot.bias(q, np.zeros(12))
    for name, row in zip([r.name for r in rows_of(robot.model)], robot.closure_jacobian(q), strict=True):
        six = wrench(name)
        torque, force = at[:3, :3] @ six[:3], at[:3, :3] @ six[3:]
        loads = {}
        for body, sign in (("second", 1.0), ("first", -1.0)):
            lever = at[:3, 3] - robot.pose(q, body)[:3, 3]
            loads[body] = sign * np.concatenate([torque + np.cross(lever, force), force])
        np.testing.assert_allclose(rest - robot.bias(q, np.zeros(12), forces=loads), row, atol=2e-3)


@pytest.mark.slow
def test_the_multipliers_are_the_loop_force_in_the_axes_of_the_child_frame():
    """Solution.loop_forces is in world axes, Solution.rows along the names."""
    for axis in ("x", "-y", OBLIQUE):
        robot, q = tied(sl.joints.Revolute(axis))
        rng = np.random.default_rng(3)
        found = robot.solve(q, np.zeros(12), rng.normal(size=12))
        turn = robot.pose(q, "second_end")[:3, :3]
        local = np.concatenate([turn.T @ found.loop_forces["tie"][:3], turn.T @ found.loop_forces["tie"][3:]])
        np.testing.assert_allclose(promised(robot) @ local, found.rows, atol=1e-3 * np.abs(local).max())


def test_axes_of_the_user_keep_their_names():
    """The two axes square to the joint's in cyclic order, then its own."""
    expected = {
        "x": ("y", "z", "y", "z", "x"),
        "y": ("z", "x", "z", "x", "y"),
        "z": ("x", "y", "x", "y", "z"),
        "-x": ("z", "y", "z", "y", "-x"),
        "-y": ("x", "z", "x", "z", "-y"),
        "-z": ("y", "x", "y", "x", "-z"),
    }
    for axis, words in expected.items():
        robot, _ = tied(sl.joints.Revolute(axis))
        names = [f"tie: {what}" for what in ("moment about",) * 2 + ("force along",) * 3]
        assert [r.name for r in rows_of(robot.model)] == [f"{n} {w}" for n, w in zip(names, words, strict=True)]


def test_rows_that_turn_with_the_state_are_named_by_what_they_hold():
    assert [r.name for r in rows_of(tied(sl.joints.Distance(0.5))[0].model)] == ["tie: force along the rod"]
    names = [r.name for r in rows_of(tied(sl.joints.Universal("x", "y"), driven=True)[0].model)]
    assert names[0] == "tie: moment square to both axes"
    assert names[1:4] == ["tie: force along z", "tie: force along x", "tie: force along y"]
    assert names[4:] == ["tie: drive of DoF 0", "tie: drive of DoF 1"]


@pytest.mark.parametrize("axis", DIRECTIONS)
def test_the_frame_of_an_axis_is_a_rotation_with_exact_zeros(axis):
    a = sl.joints.Revolute(axis).axis
    r = along_axes(a)
    m = np.array(r.matrix())
    np.testing.assert_allclose(m @ m.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(m) > 0.0
    assert tuple(r @ (0.0, 0.0, 1.0)) == tuple(a)
    assert isinstance(r, Rotation)
    if isinstance(axis, str):
        assert set(np.abs(m).ravel()) == {0.0, 1.0}
        assert (m[:, :2] >= 0.0).all()


@pytest.mark.parametrize("axis", ["y", OBLIQUE])
def test_the_dof_of_a_planar_loop_stay_along_the_axes_of_the_planar_joint(axis):
    """Driven at a rate, a planar loop moves as the tree joint of the same kind does."""
    kind = sl.joints.Planar(axis)
    robot, q = tied(kind, driven=True)
    v = np.random.default_rng(4).normal(size=12)
    motion = np.array([tuple(s) for s in kind.motion_space(kind.neutral())]).T
    rates = np.linalg.lstsq(motion, relative_twist(robot, q, v), rcond=None)[0]
    np.testing.assert_allclose((robot.closure_jacobian(q) @ v)[3:], rates, atol=1e-11)


# ---- redundant directions


def tilted_four_bar(turn, closure, base=None, tip=None):
    """A four-bar in the plane of the first two columns of `turn`, hinges along the third.

    base: rotation of its world frame, given in the placements of joints; tip: rotation of the closure's child frame.
    """
    base, axis = np.eye(3) if base is None else base, tuple(turn[:, 2])
    b = sl.Builder("tilted")
    for name, length in (("crank", 1.0), ("coupler", 2.2), ("rocker", 1.8)):
        b.body(name, 1.0, turn @ (0.5 * length, 0, 0), turn @ np.diag([0.01, 0.3, 0.3]) @ turn.T)
        b.frame(f"{name}_tip", name, turn @ (length, 0, 0), rotation=np.eye(3) if tip is None else tip)
    b.revolute("crank_hinge", "world", "crank", axis, rotation=base)
    b.revolute("coupler_hinge", "crank", "coupler", axis, turn @ (1.0, 0, 0))
    b.revolute("rocker_hinge", "world", "rocker", axis, base @ turn @ (2.0, 0, 0), rotation=base)
    robot = sl.Dynamics(b.loop("coupler_tip", "rocker_tip", closure, name="closing").build())
    return robot, robot.assemble(sl.zoo.four_bar_start())


def turn_of(axis) -> np.ndarray:
    return np.array(along_axes(sl.joints.Revolute(axis).axis).matrix())


PLANES = {
    "x": ("moment about y", "moment about z", "force along x"),
    "y": ("moment about x", "moment about z", "force along y"),
    "z": ("moment about x", "moment about y", "force along z"),
    "-y": ("moment about x", "moment about z", "force along y"),
    OBLIQUE: (
        "moment about (0.9428, -0.2357, -0.2357)",
        "moment about (0, 0.7071, -0.7071)",
        "force along (0.3333, 0.6667, 0.6667)",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("axis", PLANES)
def test_a_plane_loop_reports_what_is_square_to_its_plane_in_the_axes_of_the_child_frame(axis):
    """In `diagnose`, `solve` and `check`; the same where placements turn the whole, turned where axes do."""
    names = tuple(f"closing: {name}" for name in PLANES[axis])
    for base in (None, rotation(np.random.default_rng(5))):
        robot, q = tilted_four_bar(turn_of(axis), sl.joints.Revolute(axis), base)
        found = robot.diagnose(q)
        assert (found.redundant, found.redundant_here) == (names, ())
        assert f"Redundant in this assembly: {', '.join(names)}." in str(found)
        solved = robot.solve(q, np.zeros(3), np.zeros(3))
        assert solved.undetermined == names
        assert f"not unique: {', '.join(names)}" in str(solved)
    rows = [name for name in found.rows if name.replace("-", "") in [n.replace("-", "") for n in names]]
    assert [found.rows[k] for k in np.flatnonzero(~solved.unique_rows)] == rows


@pytest.mark.slow
@pytest.mark.parametrize("axis", PLANES)
def test_a_direction_that_is_no_row_is_a_vector_in_the_axes_of_the_child_frame(axis):
    """A ball has rows along the frame's axes; what it cannot transmit in a plane loop is along the hinges."""
    rng = np.random.default_rng(6)
    turn, tip = turn_of(axis), rotation(rng)
    robot, q = tilted_four_bar(turn, sl.joints.Spherical(), rotation(rng), tip)
    (name,) = robot.diagnose(q).redundant
    expected = tip.T @ turn[:, 2]
    found = wrench(name)[3:]
    np.testing.assert_allclose(found * np.sign(found @ expected), expected, atol=1e-4)
    assert robot.solve(q, np.zeros(3), np.zeros(3)).undetermined == (name,)


def test_directions_of_one_state_stand_beside_those_of_all():
    lengths = {"ground": 2.0, "crank": 1.0, "coupler": 2.0, "rocker": 1.0}
    found = sl.Dynamics(sl.zoo.four_bar(**lengths)).diagnose(np.zeros(3))
    assert found.redundant == tuple(f"closing: {name}" for name in PLANES["y"])
    assert found.redundant_here == ("closing: force along x",)
    assert "Redundant at this state: closing: force along x." in str(found)


def test_a_direction_in_several_loops_has_a_share_in_each():
    """Three parallel rods hold a plate in its plane: their forces balance without moving it."""
    b = sl.Builder("rods").body("plate", 1.0, (0.1, 0.2, 0.0), (0.1, 0.1, 0.2)).planar("plane", "world", "plate", "z")
    for k, y in enumerate((0.0, 1.0, 2.0)):
        b.frame(f"w{k}", "world", (0.0, y, 0.0)).frame(f"p{k}", "plate", (0.0, y, 0.0))
        b.loop(f"w{k}", f"p{k}", sl.joints.Distance(0.5), name=f"rod{k}")
    found = sl.Dynamics(b.build()).diagnose([0.0, 0.5, 0.0])
    (name,) = found.redundant + found.redundant_here
    rods = [f"rod{k}: force along the rod" for k in range(3)]
    assert name == f"0.5 {rods[0]} with -1 {rods[1]} with 0.5 {rods[2]}"


@pytest.mark.parametrize("axis", ["y", OBLIQUE])
def test_a_loop_that_holds_nothing_leaves_the_accelerations_of_the_tree(axis):
    """A planar closure in a mechanism of that plane: its one row of lengths is rounding, and was taken for a row."""
    robot, q = tilted_four_bar(turn_of(axis), sl.joints.Planar(axis), rotation(np.random.default_rng(5)))
    found = robot.diagnose(q)
    assert (found.rank, found.redundant) == (0, tuple(f"closing: {name}" for name in PLANES[axis]))
    tree = sl.Dynamics(robot.model.remove("closing")).forward_dynamics(q, np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(robot.forward_dynamics(q, np.zeros(3), np.zeros(3)), tree, rtol=1e-12)
