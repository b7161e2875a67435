"""Contact points of a mechanism: rates of gaps, rows of both sides, degenerate poses, compiled beside floats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import spanloop as sl
from spanloop.algorithms.contact import points as contact_points
from spanloop.algorithms.contact.pairs import PAIRS
from spanloop.joints import Fixed, Free
from spanloop.model.contacts import PAIRS as DECLARED
from spanloop.model.contacts import Contact, ContactSide
from spanloop.model.parts import Body, Frame, Geometry, Inertia, Joint, Placement
from spanloop.topology import mechanism

CUBE = tuple((x, y, z) for x in (0.1, -0.1) for y in (0.1, -0.1) for z in (0.1, -0.1))
SIZES = {"sphere": (0.1,), "capsule": (0.1, 0.3), "box": (0.1, 0.2, 0.3), "cylinder": (0.1, 0.5)}
AT_ORIGIN = Placement()
OBLIQUE = Placement(((0.8, -0.6, 0.0), (0.6, 0.8, 0.0), (0.0, 0.0, 1.0)), (0.01, 0.02, 0.03))


def side(at: str, shape: str, placement: Placement = AT_ORIGIN) -> ContactSide:
    vertices = CUBE if shape == "hull" else ()
    return ContactSide(at, Geometry(shape, SIZES.get(shape, ()), placement=placement, vertices=vertices))


def quadruped_with(*contacts: Contact) -> sl.Model:
    return replace(sl.zoo.quadruped(), contacts=contacts)


def on_floats(model: sl.Model) -> sl.Dynamics:
    """All pairs at once compile for seconds."""
    return sl.Dynamics(model, target="python")


def every_pair(a: str, b: str) -> tuple[Contact, ...]:
    """Each pair twice: once with its sides on two links, once with one on the world, and in both orders."""
    out = []
    for k, (one, other) in enumerate(PAIRS):
        out.append(Contact(f"{k}", side(a, one, OBLIQUE), side(b, other, OBLIQUE)))
        out.append(Contact(f"{k} on the world", side("world", other, OBLIQUE), side(b, one, OBLIQUE)))
    return tuple(out)


def test_the_pairs_with_formulas_are_those_that_a_model_accepts():
    assert {frozenset(pair) for pair in PAIRS} == {frozenset(pair) for pair in DECLARED}
    model = quadruped_with(*every_pair("fl_shank", "hr_thigh"))
    points = contact_points.contact_points(model, mechanism(model))
    gaps = contact_points.gaps(points, mechanism(model), model.neutral().tolist())
    assert len(gaps) == points.n == len(points.names)


def test_the_rate_of_a_gap_is_the_normal_velocity_of_the_point():
    """But for points that are chosen anew at every pose and are not nearest, as of two capsules."""
    model = quadruped_with(*every_pair("fl_shank", "hr_thigh"))
    robot = on_floats(model)
    rng = np.random.default_rng(4)
    q = np.array([model.random_state(seed=k)[0] for k in range(2)])
    v, h = rng.normal(size=(2, model.nv)), 1e-6
    ends = [robot.contact_geometry(robot.integrate(q, s * h * v)).gap for s in (1, -1)]
    found = robot.contact_geometry(q, v)
    chosen = [c.name + end for c in model.contacts for end in chosen_points(c)]
    exact = [k for k, name in enumerate(found.names) if name not in chosen]
    assert len(exact) == len(found.names) - 2
    rates = (ends[0] - ends[1]) / (2.0 * h)
    np.testing.assert_allclose(found.gap_rate[:, exact], rates[:, exact], atol=2e-9)  # rounding over h


def chosen_points(contact: Contact) -> tuple[str, ...]:
    return {("capsule", "capsule"): (".1",)}.get(contact.pair, ())


def test_the_rows_of_both_sides_push_with_opposite_forces_at_one_point():
    """Σ of the wrenches of the rows about the world's origin vanishes; rows times twists are contact_velocities."""
    contacts = every_pair("fl_shank", "hr_thigh")[::2]
    model = quadruped_with(*(replace(c, rolling=0.1) for c in contacts))
    m, robot = mechanism(model), on_floats(model)
    points = contact_points.contact_points(model, m)
    q, v = model.random_state(seed=8)
    gaps, numbers = contact_points.gaps_and_rows(points, m, q.tolist())
    assert points.B == 6
    rows = np.array(numbers).reshape(points.n, 2, points.B, 6)
    carriers = [m.anchors[name] for name in ("fl_shank", "hr_thigh")]
    wrenches, rates = np.zeros((points.n, points.B, 6)), np.zeros((points.n, points.B))
    for k, (name, anchor) in enumerate(zip(("fl_shank", "hr_thigh"), carriers, strict=True)):
        assert all(s[1] == points.links.index(anchor.link) for s in points.sides[k::2])
        T = robot.pose(q, name)
        R = T[:3, :3] @ np.array(anchor.rotation).T  # of the link
        p = T[:3, 3] - R @ np.array(anchor.position)
        force, moment = rows[:, k, :, 3:] @ R.T, rows[:, k, :, :3] @ R.T
        wrenches += np.concatenate([moment + np.cross(p, force), force], axis=-1)
        twist = robot.frame_velocity(q, v, name)
        linear = twist[3:] - np.cross(twist[:3], R @ np.array(anchor.position))
        rates += moment @ twist[:3] + force @ linear
    np.testing.assert_allclose(wrenches, 0.0, atol=1e-13)
    found = robot.contact_geometry(q, v)
    np.testing.assert_allclose(gaps, found.gap, atol=1e-15)
    np.testing.assert_allclose(rates[:, 0], found.gap_rate, atol=1e-13)
    for part, expected in ((rates[:, :3], found.slip), (rates[:, 3:], found.spin)):
        np.testing.assert_allclose(np.einsum("nk,nkx->nx", part, found.axes), expected, atol=1e-13)


# ---- degenerate poses


def two_bodies(a: str, b: str) -> sl.Model:
    """Two free bodies with one contact."""
    inertia = Inertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    bodies = tuple(Body(name, inertia) for name in "ab")
    free = Free()
    joints = tuple(Joint(f"j{name}", free, "world", name) for name in "ab")
    contact = Contact("pair", side("a", a), side("b", b))
    return sl.Model("two", bodies=bodies, joints=joints, contacts=(contact,))


def degenerate_states() -> np.ndarray:
    """States (n, 14) with coinciding centres, parallel and crossing axes, points on axes, faces, edges and corners."""
    half = np.sqrt(0.5)
    turns = [(1, 0, 0, 0), (0, 1, 0, 0), (half, half, 0, 0), (half, 0, half, 0), (half, 0, 0, half), (0.5,) * 4]
    steps = [0.0, 0.05, 0.1, 0.15, 0.25, 1e-20, 1e-160]
    places = [(0, 0, 0)] + [tuple(x if k == i else 0.0 for k in range(3)) for x in steps[1:] for i in range(3)]
    places += [(0.05, 0.1, 0.15), (0.05, 0.1, 0.0), (0.0, 0.1, 0.25), (0.06, 0.08, 0.25), (1e-18, 1e-18, 0.25)]
    b = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return np.array([(*t, *p, *b) for t in turns for p in places], dtype=float)


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_degenerate_poses_have_finite_gaps_and_unit_axes_on_floats_and_compiled(a, b):
    model, q = two_bodies(a, b), degenerate_states()
    v = np.ones((len(q), model.nv))
    compiled = sl.Dynamics(model).contact_geometry(q, v)
    floats = sl.Dynamics(model, target="python").contact_geometry(q, v)
    for found in (compiled, floats):
        numbers = [found.gap, found.point, found.axes, found.gap_rate, found.slip]
        assert all(np.isfinite(x).all() for x in numbers)
        squares = found.axes @ np.swapaxes(found.axes, -1, -2)
        np.testing.assert_allclose(squares, np.broadcast_to(np.eye(3), squares.shape), atol=1e-13)
    np.testing.assert_allclose(compiled.gap, floats.gap, atol=1e-15)


def test_a_cylinder_lies_on_two_points_and_stands_on_eight():
    model = two_bodies("cylinder", "plane")
    robot, half = sl.Dynamics(model), np.sqrt(0.5)
    ground = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    lying = robot.contact_geometry([half, half, 0.0, 0.0, 0.0, 0.0, 0.1, *ground])
    np.testing.assert_allclose(lying.gap[:2], 0.0, atol=1e-15)
    np.testing.assert_allclose(lying.point[:2], [(0, -0.25, 0), (0, 0.25, 0)], atol=1e-15)
    turns = np.arange(8) * np.pi / 4.0
    for tilt in (0.0, 1e-12, -1e-12):
        standing = robot.contact_geometry([1.0, tilt, 0.3 * tilt, 0.0, 0.0, 0.0, 0.25, *ground])
        np.testing.assert_allclose(standing.gap[2:], 0.0, atol=1e-12)
        around = 0.1 * np.column_stack([np.cos(turns), np.sin(turns)])  # the points stay where they are on the cylinder
        np.testing.assert_allclose(standing.point[2:, :2], around, atol=1e-12)
    q = np.array([1.0, 0.05, 0.02, 0.0, 0.0, 0.0, 0.25, *ground])
    q[:4] /= np.linalg.norm(q[:4])
    tilted = robot.contact_geometry(q)
    assert tilted.gap.argmin() in (0, 1)  # the lowest point of the lower rim


def test_parallel_capsules_touch_at_both_ends_of_the_line_along_which_they_run():
    model = two_bodies("capsule", "capsule")
    robot = sl.Dynamics(model)
    b = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for tilt in (0.0, 1e-8, -1e-8, 1e-5):  # about y: one end a little nearer
        found = robot.contact_geometry([1.0, 0.0, tilt, 0.0, 0.2, 0.0, 0.1, *b])
        np.testing.assert_allclose(found.gap, 0.0, atol=1e-5)
        np.testing.assert_allclose(sorted(found.point[:, 2]), (-0.05, 0.15), atol=1e-4)
    half = np.sqrt(0.5)
    crossed = robot.contact_geometry([half, half, 0.0, 0.0, 0.19, 0.0, 0.0, *b])
    np.testing.assert_allclose(crossed.gap, [-0.01, 0.39], atol=1e-15)  # one point: the second carries nothing


def test_a_conveyor_drags_along_its_surface():
    contact = Contact("belt", side("a", "box"), side("b", "plane"), surface_velocity=(0.5, 0.0, 0.0))
    model = replace(two_bodies("box", "plane"), contacts=(contact,))
    turned = [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5), 0.0, 0.0, 0.0]  # the belt runs along y of the world
    found = sl.Dynamics(model).contact_geometry([1, 0, 0, 0, 0, 0, 0.15, *turned], np.zeros(12))
    np.testing.assert_allclose(found.slip, np.tile((0.0, -0.5, 0.0), (8, 1)), atol=1e-15)
    np.testing.assert_allclose(found.gap_rate, 0.0, atol=1e-15)


def test_a_side_may_be_at_a_frame_of_a_body_on_a_fixed_joint():
    model = sl.zoo.quadruped()
    frame = Frame("toe", "fl_shank", Placement(position=(0.0, 0.0, -0.2)))
    contact = Contact("toe", side("toe", "point"), side("world", "plane"))
    model = replace(model, frames=(*model.frames, frame), contacts=(contact,))
    q, _ = model.random_state(seed=2)
    robot = sl.Dynamics(model)
    found = robot.contact_geometry(q)
    assert found.gap[0] == pytest.approx(robot.pose(q, "toe")[2, 3], abs=1e-15)
    assert found.names == ("toe",)


def test_live_parameters_move_the_shapes_of_bodies_on_fixed_joints():
    inertia = Inertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    free, fixed = Free(), Fixed()
    joints = (Joint("j", free, "world", "base"), Joint("k", fixed, "base", "foot", Placement(position=(0, 0, -0.5))))
    contact = Contact("foot", side("foot", "sphere"), side("world", "plane"))
    model = sl.Model("m", bodies=(Body("base", inertia), Body("foot", inertia)), joints=joints, contacts=(contact,))
    q, parameters = np.array([1.0, 0, 0, 0, 0, 0, 1.0]), model.parameters()
    kernel = sl.compile(model, "contact_geometry", parameters="live")
    assert kernel(q, parameters.values)[0, 0] == pytest.approx(0.4)
    moved = parameters.changed({"k.position.z": -0.7})
    assert kernel(q, moved.values)[0, 0] == pytest.approx(0.2)
