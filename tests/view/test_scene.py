"""Scenes: shapes that stand for their bodies, and poses that are those of the dynamics."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import spanloop as sl
from spanloop.model.parts import Body, Geometry, Inertia, Placement
from spanloop.model.solid_inertia import ball, box, cylinder
from spanloop.view import palette
from spanloop.view.body_shapes import Shape, ellipsoid, inertia_box, rod
from spanloop.view.page.meshes import packed_mesh, triangles
from spanloop.view.scene import matrix, poses, scene


def zoo_model(name):
    made, start = getattr(sl.zoo, name), getattr(sl.zoo, f"{name}_start", None)
    try:
        return made(), start() if start else None
    except TypeError:
        return made(4), start(4) if start else None


@pytest.mark.parametrize("name", sl.zoo.names())
def test_every_mechanism_of_the_zoo_can_be_seen(name):
    model, q = zoo_model(name)
    seen = scene(model, q)
    assert [b.name for b in seen.bodies] == ["world", *(b.name for b in model.bodies)]
    assert [j.name for j in seen.joints] == [j.name for j in model.joints]
    assert [c.name for c in seen.closures] == [x.name for x in model.loops]
    assert 0.0 < seen.size < 100.0
    for body in seen.bodies[1:]:
        assert body.shapes
        for shape in body.shapes:
            turn = np.array(shape.placement.rotation)
            np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-12)
            assert all(0.0 <= x < 3.0 * seen.size for x in shape.size)


@pytest.mark.parametrize("name", ["three_pumas", "stewart", "quadruped", "random_model"])
def test_poses_are_those_of_the_dynamics(name):
    model, q = zoo_model(name)
    q = model.random_state(3)[0] if q is None else q
    robot = sl.Dynamics(model)
    states = np.stack([q, np.full(model.nq, np.nan), robot.integrate(q, 0.1 * np.ones(model.nv))])
    found = poses(robot, states)
    assert found.shape == (3, model.n_bodies + 1, 4, 4)
    assert np.isnan(found[1]).all()
    slow = sl.Dynamics(model, target="python")
    for k, name in enumerate(model.body_number):
        for i in (0, 2):
            np.testing.assert_allclose(found[i, k], slow.pose(states[i], name), atol=1e-13)
    np.testing.assert_array_equal(poses(robot, states[0]), found[0])


def test_a_box_and_an_ellipsoid_have_the_inertia_they_stand_for():
    turn = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    xx, yy, zz = box(2.0, 0.3, 0.5, 0.7)
    seen = inertia_box(Inertia(2.0, (0.1, 0.2, 0.3), (yy, 0.0, 0.0, xx, 0.0, zz)))  # turned by a right angle
    assert seen.placement.position == (0.1, 0.2, 0.3)
    extent = np.abs(np.array(seen.placement.rotation)) @ seen.size
    np.testing.assert_allclose(extent, np.abs(np.array(turn)) @ (0.3, 0.5, 0.7), atol=1e-12)
    x, y, z = ball(2.0, 0.4)
    np.testing.assert_allclose(ellipsoid(Inertia(2.0, moments=(x, 0, 0, y, 0, z))).size, 0.4, atol=1e-12)


def test_a_body_without_extent_has_no_box():
    assert inertia_box(Inertia()) is None
    assert inertia_box(Inertia(1.0)) is None


def test_a_rod_joins_its_ends():
    seen = rod((0.1, 0.2, 0.3), (0.4, -0.2, 0.3), 0.02)
    own = matrix(seen.placement)
    ends = [(own @ (0, 0, s * 0.5 * seen.size[1], 1))[:3] for s in (-1, 1)]
    np.testing.assert_allclose(ends, [(0.1, 0.2, 0.3), (0.4, -0.2, 0.3)], atol=1e-15)


def test_what_the_model_shows_is_shown():
    xx, yy, zz = cylinder(6.0, 0.25, 0.1)
    (disc,) = [b for b in scene(sl.zoo.three_pumas()).bodies if b.name == "object"]
    assert disc.shapes == (Shape("cylinder", (0.25, 0.1)),)
    assert sl.zoo.three_pumas().body("object").inertia.moments == (xx, 0.0, 0.0, yy, 0.0, zz)


def test_links_of_an_arm_reach_from_joint_to_joint():
    """PUMA's upper arm: first 0.149 m along its axis, then 0.432 m across."""
    seen = scene(sl.zoo.puma())
    assert [round(s.size[1], 3) for s in seen.bodies[2].shapes] == [0.149, 0.432]


def test_arms_have_colours_of_their_own():
    colors = palette.of_bodies(sl.zoo.three_pumas())
    assert len({*colors[:1], *colors[1::6]}) == 4
    assert len(set(palette.of_bodies(sl.zoo.quadruped()))) > 4


# ---- meshes


TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]


def binary_stl(path):
    data = b"\0" * 80 + struct.pack("<I", 4)
    for face in FACES:
        data += struct.pack("<12fH", 0, 0, 0, *TETRAHEDRON[list(face)].ravel(), 0)
    path.write_bytes(data)


def text_stl(path):
    lines = ["solid t"]
    for face in FACES:
        lines += ["facet normal 0 0 0", "outer loop", *(f"vertex {x} {y} {z}" for x, y, z in TETRAHEDRON[list(face)])]
        lines += ["endloop", "endfacet"]
    path.write_text("\n".join([*lines, "endsolid t"]))


def obj(path):
    lines = [f"v {x} {y} {z}" for x, y, z in TETRAHEDRON] + [f"f {a + 1}//1 {b + 1}//1 {c - 4}" for a, b, c in FACES]
    path.write_text("\n".join(lines))


@pytest.mark.parametrize(("name", "write"), [("t.stl", binary_stl), ("t2.STL", text_stl), ("t.obj", obj)])
def test_meshes_are_read(name, write, tmp_path):
    write(tmp_path / name)
    np.testing.assert_allclose(triangles(tmp_path / name), TETRAHEDRON[FACES])


def test_an_obj_with_squares_is_cut_into_triangles(tmp_path):
    (tmp_path / "s.obj").write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n")
    assert len(triangles(tmp_path / "s.obj")) == 2


@pytest.mark.parametrize("text", ["", "solid\nvertex 1 2", "v 1 2 x\nf 1 1 1", "v 0 0 0\nf 1 2 9"])
@pytest.mark.parametrize("ending", [".stl", ".obj", ".dae"])
def test_a_damaged_mesh_becomes_a_note(text, ending, tmp_path):
    path = tmp_path / f"bad{ending}"
    path.write_text(text)
    notes = []
    assert packed_mesh(Shape("mesh", (1.0, 1.0, 1.0), file=str(path)), notes) is None
    assert notes[0].startswith(f"mesh 'bad{ending}' cannot be shown")


def test_meshes_are_searched_beside_the_model_only(tmp_path):
    binary_stl(tmp_path / "t.stl")
    look = (Geometry("mesh", (2.0, 2.0, 2.0), "t.stl"), Geometry("mesh", (), "../secret.stl"))
    body = Body("a", Inertia(1.0, moments=(0.1, 0, 0, 0.1, 0, 0.1)), look)
    model = sl.Builder("m").body("a", 1.0, inertia=(0.1, 0.1, 0.1)).revolute("j", "world", "a").build()
    model = type(model)("m", (body,), model.joints)
    seen = scene(model, folder=tmp_path)
    assert [(s.kind, s.size) for s in seen.bodies[1].shapes] == [("mesh", (2.0, 2.0, 2.0))]
    assert "leads out of the folder" in seen.notes[0]
    assert [s.kind for s in scene(model).bodies[1].shapes] != ["mesh"]
    assert matrix(Placement(position=(1, 2, 3)))[2, 3] == 3.0
