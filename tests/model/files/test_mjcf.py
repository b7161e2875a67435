"""MJCF files: the mechanism that MuJoCo sees, in exact arithmetic against MuJoCo itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from mjcf_files import ARM, CARRIED, CLOSED, FLOATING, FOUR_BAR, GEARED, TREES, impedance  # noqa: E402
from mujoco_peer import Peer  # noqa: E402
from sentences import says  # noqa: E402

import spanloop as sl  # noqa: E402
from spanloop.errors import FileError, InputError, SpanloopWarning, UnsupportedError  # noqa: E402
from spanloop.joints import Fixed, Free, Prismatic, Revolute, Spherical  # noqa: E402
from spanloop.model.files import load  # noqa: E402
from spanloop.model.files.mjcf.reader import loads  # noqa: E402
from spanloop.model.files.toml import reader as toml_reader  # noqa: E402
from spanloop.model.files.toml.writer import dumps  # noqa: E402

# products of some ten rotations, lengths, masses and speeds of order 1; MuJoCo 3 finds principal axes to 1e-9 only
ROUNDING = 1e-13 if mujoco.__version__ >= "4" else 1e-10


def body(inside: str, more: str = "") -> str:
    return f'<mujoco><worldbody><body name="b">{inside}</body></worldbody>{more}</mujoco>'


BALL = '<geom size="0.1"/>'

# ---- the same numbers as MuJoCo's


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", TREES)
def test_bodies_and_sites_are_where_mujoco_has_them(name, seed):
    peer = Peer(TREES[name])
    q, v = peer.model.random_state(seed)
    peer.set(q, v)
    for i in range(1, peer.theirs.nbody):
        X = peer.robot.pose(q, peer.frame(peer.theirs.body(i).name))
        np.testing.assert_allclose(X[:3, 3], peer.data.xpos[i], rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(X[:3, :3].ravel(), peer.data.xmat[i], rtol=0, atol=ROUNDING)
    for i in range(peer.theirs.nsite):
        X = peer.robot.pose(q, peer.theirs.site(i).name)
        np.testing.assert_allclose(X[:3, 3], peer.data.site_xpos[i], rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(X[:3, :3].ravel(), peer.data.site_xmat[i], rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", TREES)
def test_mass_matrix_and_bias_are_mujocos(name, seed):
    """Ours holds springs and dampers in the bias, MuJoCo's in qfrc_passive."""
    peer = Peer(TREES[name])
    q, v = peer.model.random_state(seed)
    peer.set(q, v)
    M = peer.mass_matrix()
    np.testing.assert_allclose(
        peer.order.mass_matrix_to(q, peer.robot.mass_matrix(q)), M, rtol=0, atol=ROUNDING * M.max()
    )
    a = np.random.default_rng(seed).normal(size=peer.model.nv)
    expected = M @ peer.order.a_to(q, v, a) + peer.data.qfrc_bias - peer.data.qfrc_passive
    found = peer.order.tau_to(q, peer.robot.inverse_dynamics(q, v, a))
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING * np.abs(expected).max())
    at_rest = peer.order.a_from(q, v, np.zeros(peer.model.nv))  # our a where MuJoCo's is zero
    bias = peer.order.tau_to(q, peer.robot.inverse_dynamics(q, v, at_rest))
    theirs = peer.data.qfrc_bias - peer.data.qfrc_passive
    np.testing.assert_allclose(bias, theirs, rtol=0, atol=ROUNDING * np.abs(expected).max())


def closed_state(peer: Peer, seed: int):
    """A closed position near the file's with a velocity that keeps it so."""
    rng = np.random.default_rng(seed)
    start = peer.robot.integrate(peer.model.neutral(), 0.3 * rng.normal(size=peer.model.nv))
    q = peer.robot.assemble(start)
    return q, peer.robot.project(q, rng.normal(size=peer.model.nv))[1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CLOSED)
def test_exact_closures_are_the_limit_of_mujocos_soft_ones(name, seed):
    """MuJoCo's constraints yield by (1 − d)/d of their inverse admittance, d ≤ 0.9999. The error falls in proportion;
    what is left after extrapolating from two d is of second order, (1e-3)²."""
    soft = {d: Peer(impedance(CLOSED[name], d)) for d in (0.999, 0.9999)}
    peer = soft[0.9999]
    q, v = closed_state(peer, seed)
    if int(mujoco.__version__.split(".")[0]) < 4:
        v = np.zeros_like(v)  # MuJoCo 3 leaves out the constraints' own acceleration
    tau = np.random.default_rng(seed).normal(size=peer.model.nv)
    ours = peer.robot.forward_dynamics(q, v, tau)
    theirs = {}
    for d, other in soft.items():
        other.set(q, v, tau)
        theirs[d] = other.order.a_from(q, v, other.data.qacc)
    size = np.abs(ours).max()
    near, far = (np.abs(theirs[d] - ours).max() / size for d in (0.9999, 0.999))
    assert near < 3e-3
    assert 8.0 < far / near < 12.0  # in proportion to (1 − d)/d
    e1, e2 = (1 - 0.999) / 0.999, (1 - 0.9999) / 0.9999
    limit = (theirs[0.9999] * e1 - theirs[0.999] * e2) / (e1 - e2)
    np.testing.assert_allclose(limit, ours, rtol=0, atol=1e-5 * size)


WELDED = """<mujoco><worldbody><body name="a"><freejoint/><geom size="0.1"/></body>
<body name="b" pos="1 0 0"><freejoint/><geom size="0.1"/></body></worldbody>
<equality><weld body1="a" body2="b" {}/></equality></mujoco>"""


@pytest.mark.parametrize(
    "told",
    ["", 'anchor="0.1 0.2 0.3"', 'relpose="0.5 0.1 0 0.8 0.6 0 0"', 'relpose="0.5 0 0 1 1 0 0" anchor="0 .3 .1"'],
)
def test_a_weld_holds_what_mujocos_weld_holds(told):
    """Where our closure is closed, MuJoCo's constraint has no error, and the other way round."""
    peer = Peer(WELDED.format(told))
    q = peer.robot.assemble(peer.model.random_state(1)[0])
    peer.set(q, np.zeros(peer.model.nv))
    np.testing.assert_allclose(peer.data.efc_pos[:6], 0.0, atol=1e-11)
    moved = peer.robot.integrate(q, 1e-3 * np.ones(peer.model.nv) * (np.arange(peer.model.nv) < 6))
    peer.set(moved, np.zeros(peer.model.nv))
    assert np.abs(peer.data.efc_pos[:6]).max() > 1e-5


def test_closures_stand_closed_as_the_file_says():
    for text in (FOUR_BAR, CARRIED):
        model = loads(impedance(text, 0.999))
        assert np.abs(sl.Dynamics(model, target="python").closure_error(model.neutral())).max() < 1e-15


@pytest.mark.parametrize("text", [*TREES.values(), *(impedance(t, 0.999) for t in CLOSED.values())])
def test_a_model_saves_and_comes_back(text):
    model = loads(text)
    assert toml_reader.loads(dumps(model)) == model


# ---- what is read


def test_each_joint_type_becomes_its_kind():
    model = loads(ARM)
    kinds = {j.name: j.kind for j in model.joints}
    diagonal = tuple(x / math.sqrt(2.0) for x in (1.0, 1.0, 0.0))
    assert kinds["shoulder"] == Revolute("y")
    assert kinds["lift"] == Prismatic("z")
    assert kinds["fore_ball"] == Spherical()
    np.testing.assert_allclose(kinds["grip"].axis, diagonal, atol=1e-15)
    floating = {j.name: j.kind for j in loads(FLOATING).joints}
    assert (floating["root"], floating["ball_free"], floating["post_fixed"]) == (Free(), Free(), Fixed())


def test_several_joints_on_a_body_are_a_chain_of_bodies_without_mass():
    model = loads(ARM)
    assert [(j.name, j.parent, j.child) for j in model.joints[:3]] == [
        ("shoulder", "world", "upper::shoulder"),
        ("twist", "upper::shoulder", "upper::twist"),
        ("lift", "upper::twist", "upper"),
    ]
    assert model.body("upper::twist").inertia.mass == 0.0


def test_limits_losses_and_springs_are_read():
    model = loads(ARM)
    j = model.joint("shoulder")
    assert (j.lower, j.upper) == ((-math.pi / 2,), (math.pi / 2,))
    assert (j.damping, j.armature) == ((0.1,), (0.01,))
    twist = model.joint("twist")
    assert (twist.stiffness, twist.lower) == ((3.0,), None)
    assert twist.rest == pytest.approx((math.radians(10),))


def test_written_inertias_stay_as_written():
    i = loads(ARM).body("upper").inertia
    assert (i.mass, i.moments) == (3.0, (0.03, 0.001, 0.002, 0.04, -0.001, 0.05))
    assert loads(ARM).gravity == (0.0, 0.3, -9.5)


def test_an_inertia_that_mujoco_changes_is_said():
    text = body('<joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 5"/>')
    model = loads(text.replace("<worldbody>", '<compiler balanceinertia="true"/><worldbody>'))
    assert model.body("b").inertia.moments == pytest.approx((7 / 3, 0.0, 0.0, 7 / 3, 0.0, 7 / 3))
    (note,) = (n for n in model.notes if "inertias" in n)
    assert note == (
        "inertias that MuJoCo's compiler changed as the file's settings ask, read as changed: body 'b' (text.xml:1), "
        "mass 1 kg is now 1 kg, moments 1, 1, 5 are now 2.333, 2.333, 2.333 kg m²"
    )


def test_a_free_body_that_mujoco_aligns_is_mujocos():
    inside = '<freejoint align="true"/><inertial pos="0.1 0.2 0" mass="2" fullinertia="1 1.2 1.5 0.1 0.05 0.02"/>'
    peer = Peer(body(inside + '<geom size="0.1" pos="0.3 0 0"/>'))
    assert not any("inertias" in n for n in peer.model.notes)
    q, v = peer.model.random_state(1)
    peer.set(q, v)
    M = peer.mass_matrix()
    found = peer.order.mass_matrix_to(q, peer.robot.mass_matrix(q))
    np.testing.assert_allclose(found, M, rtol=0, atol=ROUNDING * M.max())
    balanced = body('<freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 5"/>')
    model = loads(balanced.replace("<worldbody>", '<compiler balanceinertia="true"/><worldbody>'))
    assert any("inertias that MuJoCo's compiler changed" in n for n in model.notes)


def test_a_body_may_be_connected_to_the_world():
    text = body("<freejoint/>" + BALL, "<equality><connect body1='b' anchor='0.1 0 0'/></equality>")
    (loop,) = loads(text.replace('name="b"', 'name="b" pos="0 0 1"')).loops
    assert (loop.a, loop.b, loop.placement_b.position) == ("b", "world", (0.1, 0.0, 1.0))


def test_a_height_field_opens_no_file(tmp_path):
    text = '<mujoco><asset><hfield name="h" file="/etc/passwd" size="1 1 1 1"/></asset><worldbody>'
    text += f'<geom type="hfield" hfield="h"/><body><joint/>{BALL}</body></worldbody></mujoco>'
    (tmp_path / "m.xml").write_text(text)
    assert any("shape hfield left out" in n for n in load(tmp_path / "m.xml").notes)


def test_actuators_are_read_with_their_settings():
    found = {a.name: (a.joint, dict(a.settings)) for a in loads(ARM).actuators}
    assert found == {
        "m1": ("shoulder", {"kind": "motor", "gear": 5.0, "gain": 1.0, "control_range": (-1.0, 1.0)}),
        "actuator1": ("twist", {"kind": "position", "gear": 1.0, "stiffness": 10.0, "damping": 1.0}),
        "actuator2": ("grip", {"kind": "velocity", "gear": 1.0, "damping": 2.0, "force_range": (-3.0, 3.0)}),
        "actuator3": ("lift", {"kind": "general", "gear": 1.0, "gain": 3.0, "bias": (1.0, 2.0, 3.0)}),
    }
    assert loads(ARM).actuated == ("shoulder", "twist", "lift", "grip")
    assert loads(body("<joint name='j'/>" + BALL)).actuated == ("j",)  # no actuator: all joints


def test_sensors_are_read_where_they_have_a_place():
    model = loads(ARM)
    assert [(s.kind, s.at, s.settings) for s in model.sensors] == [
        ("jointpos", "shoulder", ()),
        ("gyro", "elbow", (("noise", 0.01),)),
    ]
    assert "sensors of neither joint, body nor site left out: 'sensor2' (clock)" in model.notes


def test_shapes_are_kept():
    shapes = loads(ARM).body("fore").geometry
    assert [(g.shape, g.size, g.use) for g in shapes] == [("box", (0.2, 0.1, 0.04), "collision")]
    # the body's frame is at its joint, 2 cm above MuJoCo's
    assert shapes[0].placement.position == pytest.approx((0.0, 0.0, 0.03))


def test_a_linear_equality_between_joints_is_a_coupling():
    model = loads(impedance(GEARED, 0.99))
    c, held = model.couplings
    assert (c.joint, c.source, c.ratio) == ("wheel", "motor", -0.5)
    # q₁ + 0.1 = 0.1 − 0.5 (q₂ − 0.2)
    assert c.offset == pytest.approx(0.1 - 0.1 + 0.5 * 0.2)
    assert (held.name, model.joint(held.joint).child, held.source) == ("brake", "c", None)
    assert not model.loops


LEFT_OUT = {
    "tendon": (
        body(
            "<joint name='j'/>" + BALL,
            "<tendon><fixed name='t' stiffness='1'><joint joint='j' coef='1'/></fixed></tendon>",
        ),
        "left out, though it acts on the motion: stiffness of a <tendon>: 't' (text.xml:1)",
    ),
    "slack tendon": (
        body(
            "<joint name='j'/>" + BALL,
            "<tendon><fixed name='t'><joint joint='j' coef='1'/></fixed></tendon>",
        ),
        "<tendon> left out, it exerts no force by itself: 't' (text.xml:1)",
    ),
    "polynomial": (
        body(
            "<joint name='j'/><joint name='k' axis='1 0 0'/>" + BALL,
            "<equality><joint name='e' joint1='j' joint2='k' polycoef='0 1 2 0 0'/></equality>",
        ),
        "left out, though it acts on the motion: equality constraint between joints that is no straight line: "
        "'e' (text.xml:1)",
    ),
    "inactive": (
        body("<joint name='j'/>" + BALL, "<equality><joint name='e' joint1='j' active='false'/></equality>"),
        "equality constraints that are not active, left out: 'e' (text.xml:1)",
    ),
    "composite": (
        body("<joint/>" + BALL + "<composite type='cable' count='5 1 1' size='1'/>"),
        "left out, though it acts on the motion: <composite>, its bodies too: text.xml:1",
    ),
    "flex": (
        body("<joint/>" + BALL + "<flexcomp type='grid' count='3 3 1' name='f'/>"),
        "left out, though it acts on the motion: <flexcomp>, its bodies too: text.xml:1",
    ),
    "plugin": (
        body("<joint/>" + BALL + "<plugin plugin='mujoco.elasticity.cable'/>"),
        "left out, though it acts on the motion: plugins: text.xml:1",
    ),
    "gravcomp": (
        body("<joint/>" + BALL + f"<body><joint/>{BALL}</body>").replace('name="b"', 'name="b" gravcomp="1"'),
        "left out, though it acts on the motion: gravcomp that differs between bodies: body 'b' (text.xml:1)",
    ),
    "medium": (
        body("<joint/>" + BALL, "<option viscosity='1'/>"),
        "left out, though it acts on the motion: density and viscosity of the medium: text.xml:1",
    ),
    "flag": (
        body("<joint/>" + BALL, "<option><flag equality='disable'/></option>"),
        "left out, though it acts on the motion: <flag equality='disable'/>: text.xml:1",
    ),
    "keyframe": (body("<joint/>" + BALL, "<keyframe><key/></keyframe>"), "<keyframe> left out: text.xml:1"),
    "site actuator": (
        body("<joint/>" + BALL + "<site name='s'/>", "<actuator><motor name='m' site='s'/></actuator>"),
        "actuators through a site left out: 'm'",
    ),
    "ball range": (
        body("<joint name='j' type='ball' range='0 90'/>" + BALL),
        "range of a ball joint left out: joint 'j' (text.xml:1)",
    ),
    "mocap": (
        body(BALL).replace('name="b"', 'name="b" mocap="true"'),
        "mocap bodies, fixed to the world here: 'b'",
    ),
    "site called as a body": (
        body("<joint/>" + BALL + "<site name='b'/>"),
        "sites renamed, a body or site has their name: 'b' is 'b_site'",
    ),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_cannot_be_held_is_said(case):
    text, expected = LEFT_OUT[case]
    assert expected in loads(text).notes


def test_what_acts_and_is_left_out_also_warns(tmp_path):
    (tmp_path / "m.xml").write_text(LEFT_OUT["tendon"][0])
    with pytest.warns(
        SpanloopWarning,
        match=r"m.xml: left out, though it acts on the motion: stiffness of a <tendon>: 't' \(m.xml:1\)",
    ):
        load(tmp_path / "m.xml")
    with pytest.raises(InputError, match=r"m.xml: base='free' is for URDF files; "):
        load(tmp_path / "m.xml", base="free")


def test_gravity_may_be_switched_off():
    assert loads(body("<joint/>" + BALL, "<option><flag gravity='disable'/></option>")).gravity == (0.0, 0.0, 0.0)


# ---- files that name others


TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def folder(tmp_path, **files):
    for name, text in files.items():
        path = tmp_path / name.replace("__", "/").replace("_xml", ".xml").replace("_obj", ".obj")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_includes_are_read_from_the_folder_with_their_own_lines(tmp_path):
    main = '<mujoco><worldbody>\n<include file="parts/arm.xml"/></worldbody></mujoco>'
    arm = f'<mujocoinclude>\n<body name="arm"><joint name="j"/>{BALL}</body></mujocoinclude>'
    folder(tmp_path, main_xml=main, parts__arm_xml=arm)
    model = load(tmp_path / "main.xml")
    assert (model.body("arm").where, model.joint("j").where) == ("parts/arm.xml:2", "parts/arm.xml:2")
    folder(tmp_path, parts__arm_xml=arm.replace('name="j"', 'name="j" axis="0 0 0"'))
    with says(FileError, "parts/arm.xml:2: MuJoCo says: axis too small"):
        load(tmp_path / "main.xml")


@pytest.mark.parametrize("name", ["../secret.xml", "/etc/passwd", "file:///etc/passwd", "link.xml", "none.xml"])
def test_an_include_never_leads_out_of_the_folder(tmp_path, name):
    (tmp_path / "secret.xml").write_text("<mujocoinclude/>")
    inner = tmp_path / "in"
    inner.mkdir()
    (inner / "link.xml").symlink_to(tmp_path / "secret.xml")
    (inner / "m.xml").write_text(f'<mujoco><worldbody><include file="{name}"/></worldbody></mujoco>')
    with says(FileError, f"m.xml:1: <include> {name!r}: "):
        load(inner / "m.xml")


@pytest.mark.slow
def test_a_rope_of_three_hundred_bodies_loads():
    n = 300
    inside = '<body pos="0 0 1"><joint type="ball"/><geom type="capsule" size="0.1" fromto="0 0 0 0 0 1"/>'
    model = loads(f"<mujoco><worldbody>{inside * n}{'</body>' * n}</worldbody></mujoco>")
    assert (model.n_bodies, model.nv) == (n, 3 * n)
    with says(FileError, "text.xml:1: elements are nested more than 400 deep; none needs that"):
        loads(f"<mujoco><worldbody>{inside * 2 * n}{'</body>' * 2 * n}</worldbody></mujoco>")


def test_a_file_that_includes_itself_is_refused(tmp_path):
    folder(tmp_path, m_xml='<mujoco><include file="n.xml"/></mujoco>', n_xml='<mujoco><include file="n.xml"/></mujoco>')
    with says(FileError, "n.xml:1: <include> of 'n.xml' a second time; MuJoCo takes every file once"):
        load(tmp_path / "m.xml")


def meshed(inertial: str = "") -> str:
    return (
        '<mujoco><compiler meshdir="meshes"/><asset><mesh name="t" file="t.obj"/></asset><worldbody>'
        f'<body name="b"><joint/>{inertial}<geom type="mesh" mesh="t" pos="0 0 1" euler="0 90 0"/></body>'
        "</worldbody></mujoco>"
    )


INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'


def test_an_inertia_may_come_from_a_mesh_in_the_folder(tmp_path):
    folder(tmp_path, m_xml=meshed(), meshes__t_obj=TETRAHEDRON)
    i = load(tmp_path / "m.xml").body("b").inertia
    # a tetrahedron of 1/6 m³ with water's density, its centre a quarter along each edge, turned and moved
    assert i.mass == pytest.approx(1000.0 / 6.0)
    assert i.center == pytest.approx((0.25, 0.25, 0.75))


def test_a_mesh_may_have_no_name_but_must_be_there(tmp_path):
    folder(tmp_path, m_xml=meshed().replace('name="t" ', ""), meshes__t_obj=TETRAHEDRON)
    assert load(tmp_path / "m.xml").mass == pytest.approx(1000.0 / 6.0)
    folder(tmp_path, m_xml=meshed(INERTIAL).replace('mesh="t"', 'mesh="u"'))
    with says(FileError, "m.xml:1: MuJoCo says: mesh 'u' not found in geom"):
        load(tmp_path / "m.xml")


def test_a_mesh_is_not_needed_where_the_inertia_is_written(tmp_path):
    folder(tmp_path, m_xml=meshed(INERTIAL))
    model = load(tmp_path / "m.xml")
    (g,) = model.body("b").geometry
    assert (g.shape, g.file, g.placement.position) == ("mesh", "meshes/t.obj", (0.0, 0.0, 1.0))
    assert g.placement.rotation[0] == (0.0, 0.0, 1.0)
    assert any("meshes not found: mesh 'meshes/t.obj'" in n for n in model.notes)


@pytest.mark.parametrize("file", ["../t.obj", "/etc/passwd", "file:///etc/passwd", "t.obj"])
def test_a_mesh_outside_the_folder_is_never_read(tmp_path, file):
    (tmp_path / "t.obj").write_text(TETRAHEDRON)
    inner = tmp_path / "in"
    inner.mkdir()
    (inner / "m.xml").write_text(meshed().replace('meshdir="meshes"', "").replace("t.obj", file))
    with says(FileError, "m.xml:1: a body's inertia comes from a mesh. mesh "):
        load(inner / "m.xml")


# ---- bad files, each with its sentence

BAD = {
    "urdf": ("<robot/>", UnsupportedError, "m.xml:1: this is URDF, not MJCF; rename it to .urdf"),
    "other": ("<x/>", FileError, "m.xml:1: the outermost element is <x>; expected <mujoco>"),
    "bomb": (
        '<!DOCTYPE a [<!ENTITY b "ha">]><mujoco/>',
        FileError,
        "m.xml:1: declares a document type (<!DOCTYPE a ...>), which can define entities; "
        "these are not read. Remove the declaration",
    ),
    "truncated": (
        "<mujoco>\n<worldbody>",
        FileError,
        "m.xml:2: not readable as XML (no element found, the file ends too early); expected a complete XML file",
    ),
    "attach": (
        body("<attach model='x' body='y' prefix='z'/>"),
        UnsupportedError,
        "m.xml:1: <attach> is not followed; write the bodies into this file",
    ),
    "copies": (
        body(f"<joint/>{BALL}<replicate count='1000000000'><geom size='1'/></replicate>"),
        FileError,
        "m.xml:1: <replicate> makes 1e+09 copies; expected 1 to 2000 in all",
    ),
    "unknown element": (
        "<mujoco>\n<worldbody>\n<bodi/></worldbody></mujoco>",
        FileError,
        "m.xml:3: MuJoCo says: XML Error: Schema violation: unrecognized element Element 'bodi'; "
        "expected an MJCF that MuJoCo compiles",
    ),
    "include without folder": (
        "<mujoco><include file='x.xml'/></mujoco>",
        FileError,
        "m.xml:1: <include> of 'x.xml', but the text is in no folder; load it from a file",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_gives_its_sentence(case):
    text, error, expected = BAD[case]
    with pytest.raises(error) as caught:
        loads(text, "m.xml")
    assert str(caught.value) == expected


def test_an_older_mujoco_is_said(monkeypatch):
    monkeypatch.setattr(mujoco, "__version__", "3.2.3")
    with says(UnsupportedError, "MJCF files are read with MuJoCo 3.3 or later, here is 3.2.3; update it"):
        loads(ARM)


def test_without_mujoco_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mujoco", None)
    with says(UnsupportedError, "MJCF files are read with MuJoCo's own compiler, which is not installed; "):
        loads(ARM)


def test_a_part_that_other_files_include_is_named_as_one():
    with says(FileError, "m.xml:1: <mujocoinclude> is a part that other files include"):
        loads("<mujocoinclude><worldbody/></mujocoinclude>", "m.xml")
