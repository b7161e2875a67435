"""Pictures of contacts: planes that are touched, shapes that touch, arrows of their forces, and figures over time."""

from __future__ import annotations

import base64
import functools
from dataclasses import replace

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError
from spanloop.model.parts import Geometry
from spanloop.trajectory import Outcome, Segment, Trajectory
from spanloop.view import animation, page, palette
from spanloop.view.body_shapes import corners
from spanloop.view.contact_forces import (
    BOUNCES,
    LONGEST,
    OF_WEIGHT,
    OPEN,
    SLIPS,
    STICKS,
    ContactForces,
    contact_forces,
    peaks,
)
from spanloop.view.meshes.hull import hull_mesh
from spanloop.view.moving_scene import moving_scene
from spanloop.view.page.data import page_data
from spanloop.view.plots import contact_states
from spanloop.view.scene import scene
from spanloop.view.stand_ins import reach
from spanloop.view.video.video import frames
from spanloop.view.viewer.session import Session
from spanloop.view.window import window

G = 9.81


def body(name="box"):
    return (
        sl.Builder(name, gravity=(0, 0, -G)).body(name, 1.0, inertia=(0.002, 0.003, 0.004)).free("root", "world", name)
    )


@functools.cache
def sliding(slope=0.0, duration=0.4):
    """A box of 1 kg at 2 m/s that slides down a slope [rad] about y: forces of the lower corners as they must be."""
    plane = ("world", sl.contacts.Plane(rotation=(0.0, slope, 0.0)))
    model = body().build().with_contact("box", ("box", sl.contacts.Box(0.2, 0.15, 0.1)), plane, friction=0.3)
    times = np.linspace(0.0, duration, 41)
    along, up = np.array((np.cos(slope), 0.0, -np.sin(slope))), np.array((np.sin(slope), 0.0, np.cos(slope)))
    rate = G * (np.sin(slope) - 0.3 * np.cos(slope))
    place = 0.05 * up + (2.0 * times + 0.5 * rate * times**2)[:, None] * along
    turn = np.tile((np.cos(0.5 * slope), 0.0, np.sin(0.5 * slope), 0.0), (41, 1))
    v = np.zeros((41, 6))
    v[:, 3] = 2.0 + rate * times
    q = np.concatenate([turn, place], axis=1)
    found = sl.Dynamics(model).contact_geometry(q, v)
    touches = found.gap < 1e-9
    pressing = touches[..., None] * (up - 0.3 * along) * 0.25 * G * np.cos(slope)
    forces = np.einsum("npij,npj->npi", found.axes, pressing).reshape(41, -1)
    segment = Segment(times, q, v, np.zeros((41, 6)), contact_forces=forces)
    return Trajectory(model, (segment,), Outcome("finished", "It ended.", duration), {"step": duration / 40})


def batch_of(run, count=3):
    """The same run several times."""
    s = run.segments[0]
    arrays = {name: np.stack([x] * count) for name, x in s.arrays.items()}
    return run.changed(segments=(replace(s, **arrays),), outcomes=run.outcomes * count)


# ---- planes and shapes


def test_a_tilted_plane_covers_the_motion_of_what_touches_it():
    run = sliding(0.4)
    seen = moving_scene(run).scene
    (patch,) = seen.patches
    (checks,) = patch.shapes("0")
    turn, place = np.array(patch.placement.rotation), np.array(patch.placement.position)
    np.testing.assert_allclose(turn[:, 2], (np.sin(0.4), 0.0, np.cos(0.4)), atol=1e-15)
    assert turn[2, 0] == 0.0  # x is level
    touching = np.concatenate([x.point for x in run.contacts["box"]])
    flat = (touching - place) @ turn
    low, high = checks.mesh.box
    assert (flat[:, :2] > low[:2]).all()
    assert (flat[:, :2] < high[:2]).all()
    assert len(np.unique(checks.mesh.colors)) == 2
    shown = window(seen, moving_scene(run).corners())
    assert shown.ground <= corners(checks)[:, 2].min() + 1e-12  # the floor does not cut through it


def test_the_ground_is_the_floor_and_is_checkered():
    run = sliding()
    lifted = run.model.with_contact(
        "lid", ("box", sl.contacts.Point()), ("world", sl.contacts.Plane(position=(0, 0, 1)))
    )
    seen = scene(lifted, run.q[0])
    assert [p.is_floor for p in seen.patches] == [True, False]
    assert not seen.patches[0].shapes("0")
    assert window(seen, np.zeros((1, 1, 3))).ground == 0.0
    above = np.full((1, 1, 3), 0.3)
    assert window(seen, above).low[2] == 0.0  # in the picture, though nothing is there yet


def test_a_plane_hides_nothing_from_behind():
    run = sliding(0.4)
    patch = scene(run.model, run.q[0]).patches[0]
    assert patch.faces(np.array((0.0, 0.0, 1.0)), np.eye(4))
    assert not patch.faces(np.array((0.0, 0.0, -1.0)), np.eye(4))
    above, below = (next(frames(run, np.array([0.0]), (160, 90), (0.0, x))) for x in (1.0, -1.0))
    blue = [((x[..., 2].astype(int) - x[..., 0]) > 60).mean() for x in (above, below)]
    assert min(blue) > 0.05  # the box


def test_a_wall_ends_at_the_floor():
    model = sliding().model.with_contact(
        "wall",
        ("box", sl.contacts.Point()),
        ("world", sl.contacts.Plane(position=(1, 0, 0), rotation=(0, -np.pi / 2, 0))),
    )
    floor, wall = scene(model, sliding().q[0]).patches
    lowest = min(corners(s)[:, 2].min() for s in wall.shapes("1"))
    assert floor.is_floor
    assert lowest == pytest.approx(0.0, abs=1e-12)


def test_a_conveyor_has_arrows_along_its_velocity():
    model = (
        body()
        .build()
        .with_contact("belt", ("box", sl.contacts.Sphere(0.1)), "ground", surface_velocity=(0.0, 0.5, 0.0))
    )
    (patch,) = scene(model).patches
    (arrows,) = patch.shapes("0")
    points = arrows.mesh.vertices[arrows.mesh.faces[2]]  # the head of the first
    assert patch.velocity == (0.0, 0.5)
    assert points[1, 1] == points[:, 1].max()
    assert points[1, 0] == pytest.approx(points[[0, 2], 0].mean())


def test_bodies_without_geometry_show_what_they_touch_with():
    shapes = {
        "sphere": sl.contacts.Sphere(0.1),
        "capsule": sl.contacts.Capsule(0.05, 0.2),
        "box": sl.contacts.Box(0.1, 0.2, 0.3),
        "cylinder": sl.contacts.Cylinder(0.1, 0.2),
        "hull": sl.contacts.Hull([(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)]),
    }
    for kind, shape in shapes.items():
        (drawn,) = scene(body().build().with_contact("c", ("box", shape), "ground")).bodies[1].shapes
        assert drawn.kind == ("mesh" if kind == "hull" else kind)
        assert kind == "hull" or drawn.size == shape.size
    box, point = scene(body().build().with_contact("c", ("box", sl.contacts.Point()), "ground")).bodies[1].shapes
    assert (box.kind, point.kind) == ("box", "sphere")
    assert point.size[0] < 0.1 * max(box.size)


def test_visible_geometry_stays_and_the_shapes_of_contacts_are_beside_it():
    plain = body().build()
    look = Geometry("sphere", (0.1,))
    pictured = replace(plain, bodies=(replace(plain.bodies[0], geometry=(look,)),))
    seen = scene(pictured.with_contact("c", ("box", sl.contacts.Box(0.1, 0.1, 0.1)), "ground")).bodies[1]
    assert [s.kind for s in seen.shapes] == ["sphere"]
    assert [s.kind for s in seen.contacts] == ["box"]


def test_a_limb_leads_to_the_foot():
    b = sl.Builder("leg").body("thigh", 1.0, inertia=(0.01, 0.01, 0.001)).revolute("hip", "world", "thigh", "y")
    foot = sl.contacts.Sphere(0.03, position=(0.0, 0.0, -0.4))
    shapes = scene(b.build().with_contact("foot", ("thigh", foot), "ground")).bodies[1].shapes
    assert any(s.kind == "capsule" and s.size[1] == pytest.approx(0.4) for s in shapes)
    assert shapes[-1].kind == "sphere"


def test_shapes_on_the_world_are_seen():
    model = (
        body().build().with_contact("post", ("box", sl.contacts.Sphere(0.1)), ("world", sl.contacts.Capsule(0.05, 1.0)))
    )
    assert [s.kind for s in scene(model).bodies[0].shapes] == ["capsule"]


def test_a_hull_has_all_its_faces_and_the_volume_of_a_box():
    points = [(x, y, z) for x in (-1.0, 1.0) for y in (-2.0, 2.0) for z in (-3.0, 3.0)]
    mesh = hull_mesh(points)
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    assert (np.einsum("mi,mi->m", normals, a) > 0.0).all()  # outward
    # four triangles on each side, each counted with its area: twice the surface of the box
    assert 0.5 * np.linalg.norm(normals, axis=1).sum() == pytest.approx(2.0 * 2.0 * (8.0 + 12.0 + 24.0))


def test_where_a_body_floats_does_not_make_it_large():
    model = body().build()
    at = np.tile(np.eye(4), (2, 1, 1))
    near = reach(model, at)
    at[1, 2, 3] = 50.0
    assert reach(model, at) == near


# ---- forces


def test_forces_are_those_of_the_run_and_arrows_scale_with_the_weight():
    found = contact_forces(sliding())
    assert found.names == tuple(f"box.{k}" for k in range(8))
    assert found.full == pytest.approx(G)
    assert (found.states != OPEN).sum(axis=1).tolist() == [4] * 41
    assert set(found.states[found.states != OPEN]) == {SLIPS}
    np.testing.assert_allclose(found.forces.sum(axis=1), np.tile((-0.3 * G, 0.0, G), (41, 1)), atol=1e-12)
    sizes = np.linalg.norm(found.arrows(2.0), axis=-1)
    np.testing.assert_allclose(sizes[found.states != OPEN], 2.0 * OF_WEIGHT * 0.25 * np.hypot(1.0, 0.3))
    assert not sizes[found.states == OPEN].any()


def test_an_impact_between_two_pictures_is_not_lost_and_no_longer_than_the_picture():
    forces = np.zeros((101, 1, 3))
    forces[:, 0, 2] = 10.0
    forces[43, 0, 2] = 5000.0
    points = np.linspace(0.0, 1.0, 101)[:, None, None] * np.ones(3)
    found = ContactForces(("c",), points, forces, np.full((101, 1), STICKS), 10.0)
    few = found.at(np.linspace(0.0, 1.0, 101), np.linspace(0.0, 1.0, 26))
    assert few.forces[:, 0, 2].tolist() == [10.0] * 11 + [5000.0] + [10.0] * 14
    np.testing.assert_allclose(few.points[[10, 12], 0, 0], [0.40, 0.48])  # where it is then, not before
    assert np.linalg.norm(few.arrows(1.0), axis=-1).max() == pytest.approx(LONGEST)
    shown = peaks(forces[:, 0, 2], np.linspace(0.0, 1.0, 101), np.linspace(0.0, 1.0, 6))
    assert shown.tolist() == [10.0, 10.0, 10.0, 5000.0, 10.0, 10.0]


def bouncing():
    """The box that slides, as if it came down and rebounded in the step before sample 20."""
    run = sliding()
    v = run.v.copy()
    v[19:21, 5] = -1.0, 1.0
    model = replace(run.model, contacts=tuple(replace(c, restitution=0.5) for c in run.model.contacts))
    return run.changed(model=model, segments=(replace(run.segments[0], v=v),))


def test_a_bounce_has_an_arrow_of_its_own_colour():
    found = contact_forces(bouncing())
    assert set(found.states[20]) == {OPEN, BOUNCES}
    assert set(found.states[21]) == {OPEN, SLIPS}
    assert (np.linalg.norm(found.arrows(1.0)[20], axis=-1) > 0.0).sum() == 4


def test_a_run_that_ignored_its_contacts_has_no_arrows():
    run = sliding()
    ignored = run.changed(segments=(replace(run.segments[0], contact_forces=None),))
    assert contact_forces(ignored) is None
    assert page_data(ignored, "")["touches"]["names"] == []


@pytest.mark.slow
def test_an_event_of_a_contact_is_where_it_touches():
    ball = body().build().with_contact("bounce", ("box", sl.contacts.Sphere(0.1)), "ground", restitution=0.5)
    run = sl.simulate(ball, [1, 0, 0, 0, 0, 0, 0.2], duration=0.2, contacts="events")
    (event,) = moving_scene(run).events
    assert (event.kind, event.name, event.body) == ("impact", "bounce", 1)
    np.testing.assert_allclose(event.placement.position, (0.0, 0.0, -0.1), atol=1e-6)
    data = page_data(run, "")
    assert [e["body"] for e in data["events"]] == [1]
    assert len(data["segments"]) == 2


# ---- pages, videos, animations, the viewer


@pytest.mark.slow
def test_a_page_has_the_planes_the_arrows_and_the_plots():
    data = page_data(sliding(0.4), "")
    assert not data["checkered"]
    assert [(p["body"], len(p["shapes"])) for p in data["patches"]] == [(0, 1)]
    values = np.frombuffer(base64.b64decode(data["touches"]["values"]), "<f4")
    count = len(np.frombuffer(base64.b64decode(data["times"]), "<f4"))
    points = values.reshape(count, 8, 8)
    np.testing.assert_allclose(points[:, :, 6].sum(axis=1), G * np.cos(0.4) * np.hypot(1.0, 0.3), rtol=1e-6)
    assert set(points[..., 7].ravel()) == {OPEN, SLIPS}
    assert [g["key"] for g in data["groups"]][1:4] == ["normal_forces", "gaps", "slip"]
    assert page_data(sliding(), "")["checkered"]
    assert "class Contacts" in page.text(sliding())


def test_a_page_without_contacts_has_none():
    data = page_data(sl.simulate(sl.zoo.pendulum(1), [0.5], duration=0.01), "")
    assert (data["touches"]["names"], data["patches"], data["checkered"]) == ([], [], False)
    assert not any(b["contacts"] for b in data["bodies"])


def test_a_video_shows_the_arrows_and_the_checks():
    run = sliding(0.4)
    pictures = [next(frames(x, np.array([0.0]), (240, 136))) for x in (run, _without_forces(run))]
    differs = np.abs(pictures[0].astype(int) - pictures[1]).max(axis=-1) > 40
    assert differs.sum() > 20
    red = pictures[0][differs].astype(int)
    assert (red[:, 0] > red[:, 1]).mean() > 0.9  # slipping


def _without_forces(run):
    return run.changed(segments=(replace(run.segments[0], contact_forces=None),))


def test_an_animation_shows_arrows_while_they_act():
    text = animation.animation(sliding())
    assert text.count(palette.SLIPS) == 4
    assert palette.STICKS not in text
    assert "1 contact;" in text


def test_the_viewer_has_the_forces_of_each_time():
    run = sliding()
    session = Session(run.robot, run.q[0], run)
    session.seek(0.2)
    assert session.contacts().words() == "contact points: 4 slipping"
    assert session.contacts().points.shape == (1, 8, 3)
    session.start()
    assert session.contacts() is None  # the state is no longer that of the run


@pytest.mark.slow
def test_the_live_simulation_lands_on_the_ground_and_shows_its_forces():
    model = body().build().with_contact("box", ("box", sl.contacts.Box(0.2, 0.15, 0.1)), "ground", friction=0.5)
    q = model.neutral()
    q[6] = 0.1
    session = Session(sl.Dynamics(model), q)
    assert session.contacts() is None
    session.start()
    for _ in range(8):
        session.tick(0.05)
    assert session.q[6] == pytest.approx(0.05, abs=1e-9)
    assert session.contacts().words() == "contact points: 4 sticking"
    np.testing.assert_allclose(session.contacts().forces[0].sum(axis=0), (0.0, 0.0, G), atol=1e-9)


# ---- figures


def test_the_figure_of_contacts_has_forces_gaps_slip_and_states():
    run = sliding()
    force, gap, slip, states = run.plot("contacts")
    assert [x.get_ylabel() for x in (force, gap, slip)] == ["normal force [N]", "gap [m]", "speed of slip [m/s]"]
    np.testing.assert_allclose(force.lines[0].get_ydata(), G)
    np.testing.assert_allclose(slip.lines[0].get_ydata(), run.v[:, 3])
    assert [x.get_text() for x in states.get_yticklabels()] == ["box"]
    points = run.plot("contacts", ["box.0", "box.1"])
    assert [x.get_label() for x in points[0].lines] == ["box.0", "box.1"]


def test_bounces_are_ticks_among_the_states():
    run = bouncing()
    states = contact_states(run)
    (ticks,) = states.lines
    np.testing.assert_array_equal(ticks.get_xdata(), run.times[[20]])


def test_a_batch_is_a_band_and_its_states_are_shares():
    axes = batch_of(sliding()).plot("contacts")
    assert len(axes) == 4
    assert "share of 3 runs" in axes[3].get_legend().get_title().get_text()
    heights = [p.vertices[:, 1].max() for c in axes[3].collections for p in c.get_paths()]
    assert max(heights) == pytest.approx(0.35)  # all of them slip


def test_figures_of_contacts_refuse_what_is_not_there():
    swing = sl.simulate(sl.zoo.pendulum(1), [0.5], duration=0.01)
    with says(InputError, "plot: model 'pendulum1' has no contacts; model.with_contact(...) adds one"):
        swing.plot("contacts")
    with says(InputError, "has no contact 'bix'"):
        sliding().plot("contacts", "bix")
