"""What a model keeps of a file's look: colours, scales and poses of meshes, and where their files are."""

import numpy as np
import pytest

import spanloop as sl
from spanloop.model.files.toml.reader import loads
from spanloop.model.files.toml.writer import dumps

TRIANGLE = "v 0 0 0\nv 1 0 0\nv 0 2 0\nv 0 0 3\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
RED, GREEN = (1.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 0.5)
INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def looks(path, **options):
    """The shapes of the only body."""
    (body,) = sl.load(path, **options).bodies
    return body.geometry


def urdf(tmp_path, *visuals):
    (tmp_path / "m.obj").write_text(TRIANGLE)
    shapes = "".join(f"<visual>{v}</visual>" for v in visuals)
    text = (
        f'<robot name="r"><material name="green"><color rgba="0 1 0 0.5"/></material><link name="a">{INERTIAL}{shapes}'
    )
    (tmp_path / "r.urdf").write_text(text + "</link></robot>")
    return tmp_path / "r.urdf"


def test_a_urdf_keeps_colours_by_name_and_meshes_by_path(tmp_path):
    mesh = '<geometry><mesh filename="m.obj" scale="1 2 3"/></geometry>'
    ball = '<geometry><sphere radius="1"/></geometry>'
    own = '<material name="red"><color rgba="1 0 0 1"/></material>'
    path = urdf(
        tmp_path, mesh + '<material name="green"/>', ball + own, ball + '<material name="red"/>', ball,
        ball + '<material name="lost"/>',
    )  # fmt: skip
    shapes = looks(path)
    assert [g.color for g in shapes] == [GREEN, RED, RED, None, None]
    assert (shapes[0].path, shapes[0].size) == (str(tmp_path / "m.obj"), (1.0, 2.0, 3.0))


def test_a_colour_that_is_none_is_a_note(tmp_path):
    ball = '<geometry><sphere radius="1"/></geometry><material name="x"><color rgba="pink"/></material>'
    model = sl.load(urdf(tmp_path, ball))
    assert model.bodies[0].geometry[0].color is None
    assert any(n.startswith("colours that are not 3 or 4 numbers") for n in model.notes)


def test_an_sdf_keeps_diffuse_colours_and_those_of_scripts(tmp_path):
    ball = '<visual name="{}"><geometry><sphere><radius>1</radius></sphere></geometry><material>{}</material></visual>'
    parts = ball.format("a", "<diffuse>0 1 0 0.5</diffuse>") + ball.format(
        "b", "<script><name>Gazebo/Red</name></script>"
    )
    parts += '<visual name="c"><geometry><ellipsoid><radii>1 2 3</radii></ellipsoid></geometry></visual>'
    (tmp_path / "m.sdf").write_text(
        f"<sdf version='1.7'><model name='m'><static>1</static><link name='a'>{parts}</link></model></sdf>"
    )
    shapes = looks(tmp_path / "m.sdf")
    assert [g.color for g in shapes] == [GREEN, RED, None]
    assert (shapes[2].shape, shapes[2].size) == ("ellipsoid", (1.0, 2.0, 3.0))


MESH = """<mujoco><asset><mesh name="t" file="m.obj" scale="{scale}" refpos="0.1 0.2 0.3" refquat="{turn}"/>
<material name="green" rgba="0 1 0 0.5" texture="gone"/></asset>
<worldbody><body>{inertial}<freejoint/><geom type="mesh" mesh="t" pos="1 2 3" quat="1 2 3 4" {color}/>
</body></worldbody></mujoco>"""


@pytest.mark.parametrize("inertial", ["", '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'])
@pytest.mark.parametrize(("scale", "turn"), [("2 2 2", "1 0.5 0.2 0.1"), ("1 -2 3", "1 0 0 0")])
def test_a_mesh_of_an_mjcf_is_drawn_where_mujoco_draws_it(tmp_path, inertial, scale, turn):
    mujoco = pytest.importorskip("mujoco")
    text = MESH.format(scale=scale, turn=turn, inertial=inertial, color='material="green"')
    (tmp_path / "m.obj").write_text(TRIANGLE)
    (tmp_path / "m.xml").write_text(text)
    (shape,) = looks(tmp_path / "m.xml")
    assert (shape.color, shape.path) == (GREEN, str(tmp_path / "m.obj"))
    corners = np.array([(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)]) * (shape.size or 1.0)
    ours = corners @ np.array(shape.placement.rotation).T + shape.placement.position
    m = mujoco.MjModel.from_xml_string(text.replace('texture="gone"', ""), {"m.obj": TRIANGLE.encode()})
    turned = np.zeros(9)
    mujoco.mju_quat2Mat(turned, m.geom_quat[0])
    theirs = m.mesh_vert @ turned.reshape(3, 3).T + m.geom_pos[0]
    for corner in ours:
        assert np.linalg.norm(theirs - corner, axis=1).min() < 1e-6  # MuJoCo's corners are of single precision


def test_a_geoms_own_colour_precedes_its_materials(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "m.obj").write_text(TRIANGLE)
    for color, expected in (('material="green" rgba="1 0 0 1"', RED), ("", None)):
        (tmp_path / "m.xml").write_text(MESH.format(scale="1 1 1", turn="1 0 0 0", inertial="", color=color))
        assert [g.color for g in looks(tmp_path / "m.xml")] == [expected]


@pytest.mark.parametrize("extension", ["urdf", "sdf", "xml", "toml"])
def test_colours_survive_every_format_that_has_them(tmp_path, extension):
    if extension == "xml":
        pytest.importorskip("mujoco")
    path = urdf(tmp_path, '<geometry><sphere radius="1"/></geometry><material name="green"/>')
    model = sl.load(path)
    model.save(tmp_path / f"again.{extension}", force=True)
    again = sl.load(tmp_path / f"again.{extension}")
    assert [g.color for g in again.bodies[0].geometry] == [GREEN]
    assert loads(dumps(model)) == model


def test_a_toml_file_finds_its_meshes(tmp_path):
    model = sl.load(urdf(tmp_path, '<geometry><mesh filename="m.obj"/></geometry>'))
    model.save(tmp_path / "r.toml")
    assert looks(tmp_path / "r.toml")[0].path == str(tmp_path / "m.obj")
