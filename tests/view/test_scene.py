"""Scenes: shapes that stand for their bodies, and poses that are those of the dynamics."""

from __future__ import annotations

import base64
import contextlib
import re
import struct
from dataclasses import replace

import numpy as np
import pytest

import spanloop as sl
from spanloop.cli.check import findings
from spanloop.model.examine.messages import sentence
from spanloop.model.parts import Body, Geometry, Inertia, Placement
from spanloop.model.solid_inertia import ball, box, cylinder
from spanloop.view import palette
from spanloop.view.beams.segments import massless_parts
from spanloop.view.body_shapes import Shape, ellipsoid, inertia_box, rod
from spanloop.view.meshes.decimation import decimated
from spanloop.view.meshes.mesh import NO_COLOR, Mesh, read_mesh
from spanloop.view.noise import least_force
from spanloop.view.page.meshes import limit, packed_mesh
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
    segments = model.n_bodies + 1  # of flexible bodies, which have no other shapes
    assert [b.name for b in seen.bodies[:segments]] == ["world", *(b.name for b in model.bodies)]
    assert all(b.segment_of is not None for b in seen.bodies[segments:])
    bent = {b.segment_of for b in seen.bodies[segments:]}
    assert [j.name for j in seen.joints] == [j.name for j in model.joints]
    assert [c.name for c in seen.closures] == [x.name for x in model.loops]
    assert 0.0 < seen.size < 100.0
    for k, body in enumerate(seen.bodies[1:], 1):
        assert body.shapes or k in bent or body.name in massless_parts(model)
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
    mesh = read_mesh(tmp_path / name)
    np.testing.assert_allclose(mesh.vertices[mesh.faces], TETRAHEDRON[FACES])
    assert len(mesh.vertices) == 4


def test_an_obj_with_squares_is_cut_into_triangles(tmp_path):
    (tmp_path / "s.obj").write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n")
    assert len(read_mesh(tmp_path / "s.obj").faces) == 2


def test_an_obj_has_the_colours_of_its_materials(tmp_path):
    (tmp_path / "s.mtl").write_text("newmtl red\nKd 1 0 0\nnewmtl photo\nKd 0 1 0\nmap_Kd x.png\n")
    lines = ["mtllib s.mtl", *(f"v {x} {y} {z}" for x, y, z in TETRAHEDRON), "f 1 2 3", "usemtl red", "f 1 2 4"]
    (tmp_path / "s.obj").write_text("\n".join([*lines, "usemtl photo", "f 2 3 4"]))
    assert read_mesh(tmp_path / "s.obj").colors.tolist() == [NO_COLOR, 0xFF0000, NO_COLOR]


DAE = """<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="0.01" name="centimeter"/><up_axis>Y_UP</up_axis></asset>
<library_effects><effect id="e"><profile_COMMON><technique sid="c"><lambert><diffuse><color>0 0 1 1</color></diffuse>
</lambert></technique></profile_COMMON></effect></library_effects>
<library_materials><material id="blue"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="pa" count="12">0 0 0 1 0 0 1 1 0 0 1 0
</float_array><technique_common><accessor source="#pa" count="4" stride="3"/></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<polylist count="1" material="m"><input semantic="VERTEX" source="#v" offset="0"/>
<input semantic="NORMAL" source="#n" offset="1"/><vcount>4</vcount><p>0 0 1 0 2 0 3 0</p></polylist></mesh></geometry>
</library_geometries>
<library_visual_scenes><visual_scene id="s"><node><translate>100 0 0</translate><rotate>0 0 1 90</rotate>
<instance_geometry url="#g"><bind_material><technique_common><instance_material symbol="m" target="#blue"/>
</technique_common></bind_material></instance_geometry></node></visual_scene></library_visual_scenes></COLLADA>"""


def test_a_collada_scene_is_placed_scaled_and_coloured(tmp_path):
    (tmp_path / "s.dae").write_text(DAE)
    mesh = read_mesh(tmp_path / "s.dae")
    np.testing.assert_allclose(mesh.box, [(0.99, 0, 0), (1, 0.01, 0)], atol=1e-15)
    assert mesh.colors.tolist() == [0xFF] * 2


def test_a_collada_file_with_entities_is_not_read(tmp_path):
    (tmp_path / "s.dae").write_text(DAE.replace("<COLLADA", "<!DOCTYPE x [<!ENTITY a 'b'>]><COLLADA", 1))
    with pytest.raises(ValueError, match="document type"):
        read_mesh(tmp_path / "s.dae")


def sphere(rings):
    """A unit sphere of about 4 rings² triangles, its upper half red."""
    a, b = np.meshgrid(np.linspace(0, np.pi, rings + 1), np.linspace(0, 2 * np.pi, 2 * rings + 1), indexing="ij")
    points = np.stack([np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)], axis=-1).reshape(-1, 3)
    k = np.arange(rings * (2 * rings + 1)).reshape(rings, -1)[:, :-1].ravel()
    faces = np.concatenate(
        [np.stack([k, k + 2 * rings + 1, k + 1], 1), np.stack([k + 1, k + 2 * rings + 1, k + 2 * rings + 2], 1)]
    )
    return Mesh.of(points, faces, np.where(points[faces].mean(axis=1)[:, 2] > 0, 0xFF0000, NO_COLOR))


def test_fewer_triangles_keep_shape_and_colours():
    few = decimated(sphere(100), 2000)
    assert 1000 < len(few.faces) <= 2000
    radii = np.linalg.norm(few.vertices[np.unique(few.faces)], axis=1)
    assert 0.97 < radii.min() <= radii.max() < 1.03
    top = few.vertices[few.faces].mean(axis=1)[:, 2] > 0.1
    assert set(few.colors[top].tolist()) == {0xFF0000}


def test_triangles_without_a_surface_become_an_even_choice_of_them():
    corners = np.random.default_rng(0).uniform(-1.0, 1.0, (3 * 20_000, 3))
    soup = Mesh.of(corners, np.arange(len(corners)).reshape(-1, 3))
    few = decimated(soup, 5000)
    assert 200 <= len(few.faces) <= 5000
    assert np.isin(few.vertices, soup.vertices).all()
    assert np.bincount(few.faces.ravel()).max() < 9  # no corner with hundreds of triangles
    np.testing.assert_allclose(np.ptp(few.vertices, axis=0), 2.0, atol=0.1)


def test_a_budget_is_shared_by_the_large_meshes():
    assert limit([10, 20, 1000, 2000], 1000) == 485
    assert limit([10, 20], 1000) == 20


def test_a_packed_mesh_is_within_a_step_of_its_grid():
    data = packed_mesh(sphere(10))
    grid = np.frombuffer(base64.b64decode(data["corners"]), "<u2").reshape(-1, 3)
    faces = np.frombuffer(base64.b64decode(data["faces"]), "<u2").reshape(-1, 3)
    points = np.array(data["low"]) + grid / 65535.0 * (np.array(data["high"]) - data["low"])
    assert [color for _, color in data["colors"]] == ["", "#ff0000"]
    half = data["colors"][0][0]
    assert points[faces[half:]].mean(axis=1)[:, 2].min() > 0.0
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1.0, atol=1e-4)


@pytest.mark.parametrize("text", ["", "solid\nvertex 1 2", "v 1 2 x\nf 1 1 1", "v 0 0 0\nf 1 2 9"])
@pytest.mark.parametrize("ending", [".stl", ".obj", ".dae"])
def test_a_damaged_mesh_becomes_a_note(text, ending, tmp_path):
    path = tmp_path / f"bad{ending}"
    path.write_text(text)
    seen = scene(with_geometry(Geometry("mesh", (), path.name)), folder=tmp_path)
    assert [s.derived for s in seen.bodies[1].shapes] == [True]
    assert seen.notes[0].startswith(f"mesh 'bad{ending}' cannot be shown (")
    assert seen.notes[0].endswith("; a simple shape replaces it")


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nf a b c\n", "line 5: 'a b c' is no face"),
        ("a.obj", b"v 0 0 0\nv 1 0\n", "line 2: '1 0' is no point; expected three numbers"),
        ("a.obj", b"v 0 0 0\nf 1 1 9\n", "a triangle names corner 9, but it has 1 corners"),
        (
            "a.stl",
            b"\0" * 80 + struct.pack("<I", 5000) + b"\1" * 100,
            "truncated or damaged: 5000 triangles need 250084",
        ),
    ],
)
def test_a_damaged_mesh_says_where(name, data, why, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=re.escape(why)):
        read_mesh(tmp_path / name)


@pytest.mark.parametrize("file", ["missing.stl", "http://a.b/c.stl", "package://none/a.stl"])
def test_a_missing_mesh_has_one_reason_on_the_page_and_in_the_models_notes(file, tmp_path):
    path = tmp_path / "m.urdf"
    path.write_text(
        '<robot name="m"><link name="base"/><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
        f'ixy="0" ixz="0" iyz="0"/></inertial><visual><geometry><mesh filename="{file}"/></geometry></visual></link>'
        '<joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint></robot>'
    )
    model = sl.load(path)
    why = model.notes[0].removeprefix("meshes not found: ")
    assert scene(model).lost == (f"{why}; a simple shape replaces it",)


def test_a_mesh_in_millimetres_is_noted_and_not_drawn(tmp_path):
    rows = ["v 0 0 0", "v 100 0 0", "v 0 100 0", "v 0 0 100", "f 1 2 3", "f 1 2 4"]
    (tmp_path / "mm.obj").write_text("\n".join(rows))
    model = with_geometry(Geometry("mesh", (), "mm.obj"), Geometry("box", (0.2, 0.2, 0.1)))
    seen = scene(model, folder=tmp_path)
    assert [s.kind for s in seen.bodies[1].shapes] == ["box"]
    assert seen.size < 2.0
    assert "body 'a': mesh 'mm.obj' is 173 m across" in seen.lost[0]
    advice = [f for f in findings(model, str(tmp_path / "m.urdf")) if f.topic == "mesh_size"]
    assert "mesh 'mm.obj' is 173 m across" in sentence(advice[0])
    small = scene(with_geometry(Geometry("mesh", (0.001,) * 3, "mm.obj")), folder=tmp_path)
    assert small.lost == ()
    assert small.bodies[1].shapes[0].kind == "mesh"


def test_a_transparent_body_is_not_drawn():
    seen, none = Geometry("box", (0.2, 0.2, 0.1)), Geometry("sphere", (0.3,), color=(1.0, 0.0, 0.0, 0.0))
    model = with_geometry(seen, none)
    second = replace(model.bodies[0], name="b", geometry=(none,))
    joint = replace(model.joints[0], name="k", child="b")
    drawn = scene(type(model)("m", (*model.bodies, second), (*model.joints, joint))).bodies
    assert [[s.kind for s in b.shapes] for b in drawn[1:]] == [["box"], []]


def test_forces_far_below_the_weight_get_no_large_arrow():
    model = sl.zoo.four_bar()
    assert least_force(model) == pytest.approx(1e-3 * model.mass * 9.81, rel=1e-3)


def with_geometry(*look):
    body = Body("a", Inertia(1.0, moments=(0.1, 0, 0, 0.1, 0, 0.1)), look)
    model = sl.Builder("m").body("a", 1.0, inertia=(0.1, 0.1, 0.1)).revolute("j", "world", "a").build()
    return type(model)("m", (body,), model.joints)


def test_meshes_are_searched_beside_the_model_only(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    binary_stl(folder / "t.stl")
    binary_stl(tmp_path / "secret.stl")
    model = with_geometry(Geometry("mesh", (2.0, 2.0, 2.0), "t.stl"), Geometry("mesh", (), "../secret.stl"))
    seen = scene(model, folder=folder)
    assert [(s.kind, s.size) for s in seen.bodies[1].shapes] == [("mesh", (2.0, 2.0, 2.0))]
    assert "leads out of the folder" in seen.notes[0]
    assert [s.kind for s in scene(model).bodies[1].shapes] != ["mesh"]
    assert matrix(Placement(position=(1, 2, 3)))[2, 3] == 3.0


def test_the_files_colours_are_shown():
    seen = scene(
        with_geometry(Geometry("box", (1.0, 1.0, 1.0), color=(1.0, 0.5, 0.0, 1.0)), Geometry("sphere", (0.1,)))
    )
    assert [s.color for s in seen.bodies[1].shapes] == ["#ff8000", ""]


def test_collision_shapes_are_shown_where_there_are_no_others():
    both = scene(with_geometry(Geometry("box", (1.0, 1.0, 1.0), use="collision"), Geometry("sphere", (0.1,))))
    one = scene(with_geometry(Geometry("box", (1.0, 1.0, 1.0), use="collision")))
    assert [s.kind for s in both.bodies[1].shapes] == ["sphere"]
    assert [s.kind for s in one.bodies[1].shapes] == ["box"]


@pytest.mark.parametrize("name", ["delta", "stewart"])
def test_marks_of_closures_leave_the_platform_visible(name):
    model, q = zoo_model(name)
    seen = scene(model, q)
    (platform,) = [b for b in seen.bodies if b.name == "platform"]
    (plate,) = platform.shapes
    assert plate.kind == "cylinder"
    assert all(c.mark < 0.25 * plate.size[0] for c in seen.closures)
    assert len(seen.bodies[0].shapes) == 1  # one base plate, not a stand for each leg


@pytest.mark.parametrize(("name", "count"), [("three_pumas", 3), ("hexapod", 6)])
def test_arms_and_feet_apart_have_stands_of_their_own(name, count):
    model, q = zoo_model(name)
    assert len(scene(model, q).bodies[0].shapes) == count


def test_no_ellipsoid_of_an_inertia_is_larger_than_the_mechanism():
    """Saha's data of the PUMA have inertias of bodies of several metres."""
    seen = scene(sl.zoo.puma())
    assert all(max(b.inertia.size) < 0.5 * seen.size for b in seen.bodies if b.inertia)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_meshes_are_refused_with_a_reason(seed, tmp_path):
    """A byte changed, pieces cut out, doubled or swapped: read, or refused by a ValueError, never anything else."""
    rng = np.random.default_rng(seed)
    binary_stl(tmp_path / "a.stl")
    text_stl(tmp_path / "b.stl")
    obj(tmp_path / "c.obj")
    (tmp_path / "d.dae").write_text(DAE)
    for path in sorted(tmp_path.iterdir()):
        data = bytearray(path.read_bytes())
        for _ in range(rng.integers(1, 4)):
            i, j = sorted(rng.integers(0, len(data), 2))
            change = rng.integers(4)
            if change == 0:
                data[i] = rng.integers(256)
            elif change == 1:
                del data[i : min(j, i + 40)]
            elif change == 2:
                data[i:i] = data[i : min(j, i + 200)]
            else:
                data[i : i + 1] = rng.choice([b"9" * 30, b"-", b"nan", b"1e999", b"\xff"])
        broken = path.with_name(f"x{path.name}")
        broken.write_bytes(bytes(data))
        with contextlib.suppress(ValueError):
            few = decimated(read_mesh(broken).scaled(()), 2)
            assert np.isfinite(few.vertices[few.faces]).all()


def test_a_collada_scene_that_holds_itself_is_refused(tmp_path):
    node = '<node id="n"><instance_node url="#n"/><instance_node url="#n"/></node>'
    (tmp_path / "s.dae").write_text(re.sub("<node>.*</node>", node, DAE, flags=re.DOTALL))
    with pytest.raises(ValueError, match="nested more than"):
        read_mesh(tmp_path / "s.dae")


@pytest.mark.parametrize("scale", [1e9, float("inf"), float("nan")])
def test_a_mesh_larger_than_any_mechanism_is_refused(scale):
    with pytest.raises(ValueError, match="it reaches to"):
        sphere(4).scaled((scale, 1.0, 1.0))
