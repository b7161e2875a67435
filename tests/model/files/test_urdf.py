"""URDF files: read as Pinocchio reads them, refused with a sentence where they are broken."""

from __future__ import annotations

import importlib.metadata
import math
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from robots_table import BROKEN, LOADED

from spanloop.errors import FileError, InputError, ModelError, SpanloopError, SpanloopWarning, UnsupportedError
from spanloop.joints import Fixed, Free, Planar, Prismatic, Revolute
from spanloop.model import WORLD, Body, Inertia, Joint, Model, Placement
from spanloop.model.exact_rotations import rotation_of_angles, snap_axis, snap_rotation
from spanloop.model.files import load
from spanloop.model.files.mesh_paths import resolve_mesh
from spanloop.model.files.toml import reader as toml_reader
from spanloop.model.files.toml.writer import dumps
from spanloop.model.files.urdf.reader import loads
from spanloop.model.inertia_check import check_inertias


def robots_folder() -> Path | None:
    """The robots of the example-robot-data wheel."""
    try:
        wheel = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        return None
    return Path(str(wheel.locate_file("cmeel.prefix/share/example-robot-data/robots")))


ROBOTS = robots_folder()
needs_robots = pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")

INERTIAL = '<inertial><mass value="1"/><inertia ixx="2" ixy="0" ixz="0" iyy="2" iyz="0" izz="2"/></inertial>'


def robot(*parts: str) -> str:
    """A robot with links a and b and what is given, each part on a line of its own from line 2."""
    return "\n".join(['<robot name="r">', *parts, "</robot>"])


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(name: str, parent: str, child: str, kind: str = "revolute", inside: str = "") -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


def sentence(text: str | bytes, error=FileError, **options) -> str:
    """What the reader says about a text."""
    with pytest.raises(error) as caught:
        loads(text, "r.urdf", **options)
    return str(caught.value)


# ---- the same mechanism as Pinocchio's


def fused(model: Model) -> dict[str, tuple[np.ndarray, float, np.ndarray, np.ndarray]]:
    """Per moving joint: pose in the moving body before it; mass, centre, inertia of what moves with it."""
    carrier, pose = {WORLD: (None, np.eye(4))}, {}
    parts: dict[str, list] = {}
    for j in model.joints:
        above, here = carrier[j.parent]
        step = np.eye(4)
        step[:3, :3], step[:3, 3] = j.placement.rotation, j.placement.position
        here = here @ step
        if j.kind.nv:
            pose[j.name], above, here = here, j.name, np.eye(4)
            parts[above] = []
        carrier[j.child] = (above, here)
        if above is not None:
            i = model.body(j.child).inertia
            r = here[:3, :3]
            parts[above].append((i.mass, r @ i.center + here[:3, 3], r @ np.array(i.matrix()) @ r.T))
    out = {}
    for name, members in parts.items():
        mass = sum(m for m, _, _ in members)
        center = sum(m * c for m, c, _ in members) / (mass or 1.0)
        inertia = sum(
            i + m * ((c - center) @ (c - center) * np.eye(3) - np.outer(c - center, c - center)) for m, c, i in members
        )
        out[name] = (pose[name], mass, center, inertia)
    return out


@needs_robots
@pytest.mark.parametrize(
    "file",
    [
        "panda_description/urdf/panda.urdf",
        "ur_description/urdf/ur5_robot.urdf",
        "talos_data/robots/talos_reduced.urdf",
        "talos_data/robots/talos_full_v2.urdf",
        "anymal_b_simple_description/robots/anymal-kinova.urdf",
        "tiago_description/robots/tiago_dual.urdf",
        "human_description/robots/human.urdf",
        "pr2_description/urdf/pr2.urdf",
        "baxter_description/urdf/baxter.urdf",
        "centauro_description/urdf/centauro.urdf",
    ],
)
def test_placements_masses_and_inertias_are_those_of_pinocchio(file):
    pin = pytest.importorskip("pinocchio")
    theirs = pin.buildModelFromUrdf(str(ROBOTS / file))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpanloopWarning)
        ours = fused(load(ROBOTS / file))
    assert set(ours) == set(theirs.names) - {"universe"}
    for name, (pose, mass, center, inertia) in ours.items():
        i = theirs.getJointId(name)
        # we snap angles within 1e-9 of right angles, they do not; lengths here are below 2 m
        np.testing.assert_allclose(pose, theirs.jointPlacements[i].homogeneous, rtol=0, atol=2e-9)
        y = theirs.inertias[i]
        assert mass == pytest.approx(y.mass, rel=1e-12, abs=1e-300)
        np.testing.assert_allclose(mass * center, y.mass * y.lever, rtol=0, atol=4e-9 * (1.0 + mass))
        np.testing.assert_allclose(inertia, y.inertia, rtol=0, atol=4e-9 * (1.0 + mass))


@needs_robots
def test_limits_are_those_of_pinocchio():
    pin = pytest.importorskip("pinocchio")
    file = ROBOTS / "panda_description/urdf/panda.urdf"
    theirs, ours = pin.buildModelFromUrdf(str(file)), loads(file.read_bytes())
    for j in (j for j in ours.joints if j.kind.nv):
        i = theirs.joints[theirs.getJointId(j.name)].idx_v
        assert j.lower == (theirs.lowerPositionLimit[i],)
        assert j.upper == (theirs.upperPositionLimit[i],)
        assert j.effort == (theirs.effortLimit[i],)
        assert j.speed == (theirs.velocityLimit[i],)


@pytest.mark.slow
@needs_robots
def test_every_urdf_of_the_wheel_loads_and_saves_or_fails_with_the_true_reason():
    assert ROBOTS is not None
    loaded, failed = {}, {}
    for file in sorted(ROBOTS.rglob("*.urdf")):
        name = file.relative_to(ROBOTS).as_posix()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpanloopWarning)
            try:
                model = load(file)
            except SpanloopError as error:
                failed[name] = str(error)
                continue
        loaded[name] = (model.n_bodies, model.nv, len(model.couplings))
        assert toml_reader.loads(dumps(model)) == model
        assert all(j.where.startswith(file.name + ":") for j in model.joints)
    there = {*loaded, *failed}  # a later version of the wheel may have other robots
    assert len(there & {*LOADED, *BROKEN}) >= 60
    assert {k: v for k, v in loaded.items() if k in LOADED} == {k: v for k, v in LOADED.items() if k in there}
    assert {k: v for k, v in failed.items() if k in BROKEN} == {k: v for k, v in BROKEN.items() if k in there}
    assert len(LOADED) + len(BROKEN) == 77


@needs_robots
def test_every_robot_of_the_table_has_pinocchios_freedoms():
    pin = pytest.importorskip("pinocchio")
    assert ROBOTS is not None
    found = {name: pin.buildModelFromUrdf(str(ROBOTS / name)).nv for name in LOADED if (ROBOTS / name).is_file()}
    assert found == {name: LOADED[name][1] for name in found}


@pytest.mark.slow
def test_a_chain_of_ten_thousand_links_loads():
    n = 10_000
    links = [link(f"l{i}") for i in range(n + 1)]
    joints = [joint(f"j{i}", f"l{i}", f"l{i + 1}", inside='<origin xyz="0 0 1" rpy="0 0.5 0"/>') for i in range(n)]
    model = loads(robot(*links, *joints))
    assert (model.n_bodies, model.nv) == (n + 1, n)
    assert check_inertias(model, strict=True) == ()


# ---- what is read


def test_each_joint_type_becomes_its_kind():
    limit = '<limit lower="-1" upper="2" velocity="3" effort="4"/>'
    inside = '<axis xyz="0 0 2"/>' + limit + '<dynamics damping=".5" friction=".1"/>'
    types = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
    parts = [link("base"), *(link(t) for t in types), *(joint("j_" + t, "base", t, t, inside) for t in types)]
    model = loads(robot(*parts))
    kinds = {j.name: j.kind for j in model.joints}
    z = (0.0, 0.0, 1.0)
    assert kinds == {
        "root": Fixed(),
        "j_revolute": Revolute(z),
        "j_continuous": Revolute(z),
        "j_prismatic": Prismatic(z),
        "j_fixed": Fixed(),
        "j_floating": Free(),
        "j_planar": Planar(z),
    }
    hinge, wheel = model.joint("j_revolute"), model.joint("j_continuous")
    assert (hinge.lower, hinge.upper, hinge.speed, hinge.effort) == ((-1.0,), (2.0,), (3.0,), (4.0,))
    assert (hinge.damping, hinge.friction) == ((0.5,), (0.1,))
    assert (wheel.lower, wheel.upper, wheel.speed) == (None, None, (3.0,))
    assert "j_floating" not in model.actuated
    assert model.notes == (
        "lower and upper of a continuous joint left out: joint 'j_continuous' (text.urdf:10)",
        "<limit> and <dynamics> left out, one number for several DoF: joint 'j_floating' (text.urdf:13) and 1 more",
    )


def test_an_axis_is_x_unless_given():
    model = loads(robot(link("a"), link("b"), joint("j", "a", "b")))
    assert model.joint("j").kind == Revolute((1.0, 0.0, 0.0))


def test_the_base_is_fixed_or_free():
    text = robot(link("a"), link("b"), joint("root", "a", "b"))
    assert loads(text).joint("root_joint").kind == Fixed()
    free = loads(text, base="free").joint("root_joint")
    assert (free.kind, free.parent, free.child, free.actuated) == (Free(), WORLD, "a", False)
    with pytest.raises(InputError, match="base is 'floating'; expected 'fixed' or 'free'"):
        loads(text, base="floating")


def test_a_root_link_called_world_is_the_world():
    text = robot(link("world"), link("b"), joint("j", "world", "b"))
    model = loads(text)
    assert [(j.name, j.parent, j.child) for j in model.joints] == [("j", WORLD, "b")]
    assert sentence(text, InputError, base="free") == (
        "r.urdf:2: the root link is called 'world', so the base cannot be free; "
        "load with base='fixed' or rename the link"
    )


def test_a_mimic_joint_is_a_coupling_and_not_actuated():
    mimic = '<mimic joint="j" multiplier="-2" offset="0.5"/>'
    parts = [link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("k", "b", "c", inside=mimic)]
    model = loads(robot(*parts))
    c = model.couplings[0]
    assert (c.name, c.joint, c.source, c.ratio, c.offset) == ("k_mimic", "k", "j", -2.0, 0.5)
    assert model.actuated == ("j",)


def test_inertia_is_turned_to_the_axes_of_the_link():
    inside = (
        '<inertial><origin xyz="1 2 3" rpy="0 0 1.57079632679"/><mass value="2"/>'
        '<inertia ixx="1" ixy="0.1" ixz="0" iyy="2" iyz="0" izz="2.5"/></inertial>'
    )
    i = loads(robot(link("a", inside))).body("a").inertia
    assert (i.mass, i.center, i.moments) == (2.0, (1.0, 2.0, 3.0), (2.0, -0.1, 0.0, 1.0, 0.0, 2.5))


def test_geometry_is_kept():
    shapes = (
        '<visual><origin xyz="1 0 0"/><geometry><box size="1 2 3"/></geometry></visual>'
        '<collision><geometry><cylinder radius="1" length="2"/></geometry></collision>'
        '<visual><geometry><sphere radius="1"/></geometry></visual>'
        '<visual><geometry><mesh filename="package://p/m.stl" scale="1 1 2"/></geometry></visual>'
    )
    box, cylinder, sphere, mesh = loads(robot(link("a", shapes))).body("a").geometry
    assert (box.shape, box.size, box.use, box.placement.position) == (
        "box",
        (1.0, 2.0, 3.0),
        "visual",
        (1.0, 0.0, 0.0),
    )
    assert (cylinder.shape, cylinder.size, cylinder.use) == ("cylinder", (1.0, 2.0), "collision")
    assert (sphere.shape, sphere.size) == ("sphere", (1.0,))
    assert (mesh.shape, mesh.size, mesh.file) == ("mesh", (1.0, 1.0, 2.0), "package://p/m.stl")


def test_other_elements_are_ignored():
    text = robot(link("a"), "<gazebo><x/></gazebo>", "<transmission/>", "<material/>", "<sensor/>")
    assert loads(text).n_bodies == 1


# ---- snapping


def test_right_angles_become_exact_and_are_noted():
    origin = '<origin rpy="1.57079632679 0 3.14159265359"/>'
    axis = '<axis xyz="0 1e-11 -1"/>'
    model = loads(robot(link("a"), link("b"), joint("j", "a", "b", inside=origin + axis)))
    j = model.joint("j")
    assert j.placement.rotation == ((-1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
    assert j.kind == Revolute((0.0, 0.0, -1.0))
    assert model.notes == ("snapped to exact zeros and right angles within 1e-9: 1 rotation, 1 axis",)


def test_rounding_alone_gives_no_note():
    origin = f'<origin rpy="{math.pi / 2!r} 0 {-math.pi!r}"/>'
    model = loads(robot(link("a"), link("b"), joint("j", "a", "b", inside=origin)))
    assert model.joint("j").placement.rotation == ((-1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
    assert model.notes == ()


@pytest.mark.parametrize("seed", range(20))
def test_a_snapped_rotation_is_near_orthonormal_and_stays(seed):
    rng = np.random.default_rng(seed)
    angles = rng.uniform(-4.0, 4.0, 3)
    square = rng.random(3) < 0.5
    angles[square] = np.round(angles[square] / (np.pi / 2)) * (np.pi / 2) + 1e-12 * rng.normal(size=square.sum())
    given = rotation_of_angles(*angles)
    r, _ = snap_rotation(given)
    np.testing.assert_allclose(r, given, rtol=0, atol=2e-9)
    np.testing.assert_allclose(np.array(r) @ np.transpose(r), np.eye(3), rtol=0, atol=1e-15)
    assert not any(x == 0.0 and math.copysign(1.0, x) < 0.0 for row in r for x in row)
    assert np.abs(np.array(snap_rotation(r)[0]) - r).max() < 5e-16
    assert not snap_rotation(r)[1]


def test_what_is_no_rotation_or_axis_is_left_for_the_check():
    double = ((2.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 2.0))
    mirror = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0))
    assert snap_rotation(double) == (double, False)
    assert snap_rotation(mirror) == (mirror, False)
    assert snap_axis((0.0, 0.0, 0.0)) == ((0.0, 0.0, 0.0), False)


# ---- bad files, each with its sentence


def test_entity_bombs_are_refused_before_they_grow():
    entities = '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">'
    bomb = f'<?xml version="1.0"?>\n<!DOCTYPE lolz [{entities}]>\n<robot name="&c;"/>'
    assert sentence(bomb) == (
        "r.urdf:2: declares a document type (<!DOCTYPE lolz ...>), which can define entities; "
        "these are not read. Remove the declaration"
    )


def test_external_entities_are_refused():
    text = '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="r">&x;</robot>'
    assert "declares a document type" in sentence(text)


BAD_TEXTS = {
    "truncated": (
        '<robot name="r">\n<link name="a">\n',
        "r.urdf:3: not readable as XML (no element found, the file ends too early); expected a complete XML file",
    ),
    "not XML": ("hello", "r.urdf:1: not readable as XML (syntax error); expected a complete XML file"),
    "other root": ("<model/>", "r.urdf:1: the outermost element is <model>; expected <robot>"),
    "no link": ("<robot/>", "r.urdf:1: <robot> has no <link>; expected one at least"),
    "no name": (robot("<link/>"), 'r.urdf:2: <link> has no name; expected name="..."'),
    "not a number": (
        robot(link("a", INERTIAL.replace('value="1"', 'value="heavy"'))),
        "r.urdf:2: <mass> value is 'heavy'; expected a number",
    ),
    "wrong count": (
        robot(link("a"), link("b"), joint("j", "a", "b", inside='<origin xyz="1 2"/>')),
        "r.urdf:4: <origin> xyz is '1 2'; expected 3 numbers separated by blanks",
    ),
    "commas": (
        robot(link("a"), link("b"), joint("j", "a", "b", inside='<origin xyz="1, 2, 3"/>')),
        "r.urdf:4: <origin> xyz is '1, 2, 3'; expected 3 numbers separated by blanks, without commas",
    ),
    "xacro": (
        robot(link("a"), link("b"), joint("j", "a", "b", inside='<origin xyz="${x} 0 0"/>')),
        "r.urdf:4: <origin> xyz is '${x} 0 0'; expected 3 numbers separated by blanks. "
        "This is xacro: expand it first (xacro robot.xacro > robot.urdf)",
    ),
    "not finite": (
        robot(link("a"), link("b"), joint("j", "a", "b", inside='<origin xyz="nan 0 0"/>')),
        "r.urdf:4: <origin> xyz is 'nan 0 0'; expected 3 numbers separated by blanks",
    ),
    "unknown type": (
        robot(link("a"), link("b"), joint("j", "a", "b", "revolut")),
        "r.urdf:4: joint 'j' has the type 'revolut'; did you mean 'revolute'?",
    ),
    "unknown parent": (
        robot(link("forearm"), link("hand"), joint("j", "forarm", "hand")),
        "r.urdf:4: joint 'j': its parent 'forarm' is not a link; did you mean 'forearm'?",
    ),
    "missing child": (
        robot(link("a"), '<joint name="j" type="fixed">\n<parent link="a"/></joint>'),
        "r.urdf:3: <joint> has no <child>; expected one",
    ),
    "duplicate link": (
        robot(link("a"), link("a")),
        "r.urdf:3: a second link is called 'a', the first is at r.urdf:2; names must be unique",
    ),
    "duplicate joint": (
        robot(link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("j", "b", "c")),
        "r.urdf:6: a second joint is called 'j', the first is at r.urdf:5; names must be unique",
    ),
    "zero axis": (
        robot(link("a"), link("b"), joint("j", "a", "b", inside='\n<axis xyz="0 0 0"/>')),
        "r.urdf:5: <axis> xyz is '0 0 0', which has no direction; expected for example '0 0 1'",
    ),
    "several roots": (
        robot(link("a"), link("b")),
        "r.urdf: 2 links are no joint's child: 'a' (r.urdf:2), 'b' (r.urdf:3); expected one root. Join them",
    ),
    "cycle": (
        robot(link("a"), link("b"), joint("j", "a", "b"), joint("k", "b", "a")),
        "r.urdf: every link is the child of a joint, so the joints form a cycle; expected one root. "
        "Leave out a joint and close the loop with model.with_loop(...)",
    ),
    "world inside": (
        robot(link("a"), link("world"), joint("j", "a", "world")),
        "r.urdf:4: link 'world' is a joint's child, but that is the ground's name; rename it",
    ),
}


@pytest.mark.parametrize("case", BAD_TEXTS)
def test_a_bad_file_gives_its_sentence(case):
    text, expected = BAD_TEXTS[case]
    assert sentence(text) == expected


def test_a_link_with_two_parents_points_to_close():
    text = robot(link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("k", "a", "c"), joint("m", "b", "c"))
    assert sentence(text, ModelError) == (
        "joint 'm' (r.urdf:7): body 'c' has two parents, 'a' (joint 'k') and 'b'; a tree gives it one. "
        "Close the loop with model.with_loop(...) instead of the second joint"
    )


def test_a_negative_mass_is_named():
    text = robot(link("a", INERTIAL.replace('value="1"', 'value="-0.3"')))
    assert sentence(text, ModelError) == (
        "link 'a' (r.urdf:2): mass is -0.3 kg; must be >= 0. Was the sign lost in the export? "
        "repair=True drops the sign"
    )


def test_deep_nesting_is_refused():
    assert "more than 100 deep" in sentence("<robot>" + "<a>" * 100_000)


# ---- files


@pytest.mark.parametrize(
    ("name", "error", "expected"),
    [
        (
            "r.xacro",
            UnsupportedError,
            "r.xacro: xacro is not read; expand it first (xacro robot.xacro > robot.urdf)",
        ),
        (
            "r.mjb",
            UnsupportedError,
            "r.mjb: a compiled MuJoCo model is not read; save it as MJCF first (mujoco.mj_saveLastXML)",
        ),
        ("r.udrf", InputError, "r.udrf: the extension is '.udrf'; did you mean '.urdf'?"),
    ],
)
def test_other_formats_give_a_sentence(name, error, expected):
    with pytest.raises(error) as caught:
        load(name)
    assert str(caught.value) == expected


def test_files_that_cannot_be_read_give_a_sentence(tmp_path):
    (tmp_path / "arm.urdf").write_text(" \n")
    (tmp_path / "folder.urdf").mkdir()
    with open(tmp_path / "huge.urdf", "wb") as huge:
        huge.truncate(100 * 2**20)
    expected = {
        "arm.urdf": "arm.urdf: the file is empty; expected a mechanism",
        "amr.urdf": f"amr.urdf: there is no such file; in {str(tmp_path)!r} did you mean 'arm.urdf'?",
        "folder.urdf": "folder.urdf: is a folder; expected a file",
        "huge.urdf": "huge.urdf: has 100 MB; a mechanism's file may have 64 MB at most",
        "no/arm.urdf": f"no/arm.urdf: there is no such file; nor is there a folder {str(tmp_path / 'no')!r}",
    }
    for name, text in expected.items():
        with pytest.raises(FileError) as caught:
            load(tmp_path / name)
        assert str(caught.value) == f"{tmp_path}{os.sep}{text}"
    with pytest.raises(InputError, match="path is a int"):
        load(3)


def test_a_missing_mesh_is_a_note(tmp_path):
    mesh = '<visual><geometry><mesh filename="hand.stl"/></geometry></visual>'
    (tmp_path / "r.urdf").write_text(robot(link("a", INERTIAL + mesh)))
    assert load(tmp_path / "r.urdf").notes == (
        f"meshes not found: mesh 'hand.stl': there is no such file in the folder {tmp_path.name!r}",
    )
    (tmp_path / "hand.stl").write_text("")
    assert load(tmp_path / "r.urdf").notes == ()


def test_a_mesh_never_leads_out_of_its_package(tmp_path):
    package, other = tmp_path / "pack", tmp_path / "other"
    for folder in (package / "urdf", package / "meshes", other):
        folder.mkdir(parents=True)
    for file in (
        package / "meshes" / "m.stl",
        package / "urdf" / "n.stl",
        other / "o.stl",
        tmp_path / "secret",
    ):
        file.write_text("")
    (package / "meshes" / "link.stl").symlink_to(tmp_path / "secret")
    urdf = package / "urdf"
    assert resolve_mesh("package://pack/meshes/m.stl", urdf) == (package / "meshes" / "m.stl", "")
    assert resolve_mesh("n.stl", urdf) == (urdf / "n.stl", "")
    for name in (
        "package://pack/../secret",
        "package://pack/meshes/link.stl",
        "package://../secret",
        "package://other/o.stl",  # not a package: it has no package.xml
        "package://etc/passwd",
        "../../secret",
        "/etc/passwd",
        "file:///etc/passwd",
        "package://pack//etc/passwd",
        "http://somewhere/m.stl",
        "a\0b",
    ):
        path, note = resolve_mesh(name, urdf)
        assert path is None
        assert note.startswith(f"mesh {name!r}: ")
    (other / "package.xml").write_text("")
    assert resolve_mesh("package://other/o.stl", urdf) == (other / "o.stl", "")


# ---- inertias


def pendulum(moments, mass=1.0, kind=None, tip: Inertia | None = None) -> Model:
    """An arm on a hinge, with a tip fixed to it at 1 m along x."""
    bodies = [Body("arm", Inertia(mass, (0.0, 0.0, 0.0), moments), where="arm.urdf:41")]
    joints = [Joint("j", kind or Revolute("x"), WORLD, "arm")]
    if tip is not None:
        bodies.append(Body("tip", tip))
        joints.append(Joint("t", Fixed(), "arm", "tip", Placement(position=(1.0, 0.0, 0.0))))
    return Model("m", tuple(bodies), tuple(joints))


def test_an_inertia_that_no_body_can_have_is_an_error():
    with pytest.raises(ModelError) as caught:
        check_inertias(pendulum((1.0, 0.0, 0.0, 2.0, 0.0, -0.1)), strict=True)
    assert str(caught.value) == (
        "body 'arm' (arm.urdf:41): its principal moments of inertia are -0.1, 1, 2 kg m²; "
        "no body can have a negative one. Was a sign, a unit or the order of axes lost?"
    )


def test_a_broken_triangle_is_a_note_for_files_and_an_error_for_hands():
    model = pendulum((1.0, 0.0, 0.0, 2.0, 0.0, 4.0))
    expected = (
        "body 'arm' (arm.urdf:41): its principal moments of inertia are 1, 2, 4 kg m²; "
        "no body has one that exceeds the sum of the others. Was a sign, a unit or the order of axes lost?"
    )
    assert check_inertias(model, strict=False) == (f"{expected} sl.load(..., repair=True) replaces it",)
    with pytest.raises(ModelError) as caught:
        check_inertias(model, strict=True)
    assert str(caught.value) == expected


def test_inertias_are_judged_after_fixed_joints_are_fused():
    alone = (1.0, 0.0, 0.0, 2.0, 0.0, 4.0)  # 1 + 2 < 4
    assert len(check_inertias(pendulum(alone), strict=False)) == 1
    assert check_inertias(pendulum(alone, tip=Inertia(0.0, moments=(2.0, 0.0, 0.0, 2.0, 0.0, 2.0))), strict=True) == ()


def test_a_length_whose_square_is_no_number_is_an_error():
    with pytest.raises(ModelError) as caught:
        pendulum((1.0, 0.0, 0.0, 1.0, 0.0, 1.0), tip=Inertia(1.0, (1e300, 0.0, 0.0)))
    assert str(caught.value) == (
        "body 'tip': mass, centre or inertia is (1.0, 1e+300, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0); "
        "every number must be at most 1e+100 in SI units"
    )


def test_what_is_fixed_to_the_world_is_not_judged():
    assert check_inertias(pendulum((1.0, 0.0, 0.0, 2.0, 0.0, -0.1), kind=Fixed()), strict=True) == ()


def test_a_plate_and_a_point_mass_are_possible():
    assert check_inertias(pendulum((1.0, 0.0, 0.0, 2.0, 0.0, 3.0)), strict=True) == ()
    assert check_inertias(pendulum((0.0,) * 6), strict=True) == ()


def test_a_massless_end_is_a_note():
    (note,) = check_inertias(pendulum((0.0,) * 6, mass=0.0), strict=True)
    assert note == (
        "body 'arm' (arm.urdf:41): it moves and ends a chain but has no mass; "
        "forward dynamics will be singular. Give it an inertia or its joint an armature, or fix the joint"
    )


def test_a_placeholder_gives_one_note_and_one_warning(tmp_path):
    unit = INERTIAL.replace('"2"', '"1"')
    parts = [link("a", unit), link("b", unit), link("c", unit), joint("j", "a", "b"), joint("k", "b", "c")]
    (tmp_path / "r.urdf").write_text(robot(*parts))
    place = "body 'b' (r.urdf:3)"
    note = f"{place}: its inertia looks like a placeholder (mass 1 kg, moments 1 kg m²) (and 1 more like it)"
    with pytest.warns(SpanloopWarning) as caught:
        model = load(tmp_path / "r.urdf")
    assert model.notes == (note,)
    assert [str(w.message) for w in caught] == ["r.urdf: " + note]
    assert caught[0].filename == __file__


def test_friction_gives_one_warning(tmp_path):
    rub = '<dynamics friction="0.1"/>'
    parts = [
        link("a"),
        link("b"),
        link("c"),
        joint("j", "a", "b", inside=rub),
        joint("k", "b", "c", inside=rub),
    ]
    (tmp_path / "r.urdf").write_text(robot(*parts))
    with pytest.warns(SpanloopWarning) as caught:
        load(tmp_path / "r.urdf")
    assert [str(w.message) for w in caught] == [
        "r.urdf: 2 joints have Coulomb friction ('j' first); it acts in simulation only"
    ]


def test_a_negative_speed_or_effort_means_none_and_is_noted():
    limit = '<limit lower="-1" upper="2" velocity="-1" effort="-1"/>'
    model = loads(robot(link("a"), link("b"), joint("j", "a", "b", inside=limit)))
    assert (model.joint("j").speed, model.joint("j").effort) == (None, None)
    assert "negative velocity of a <limit>, read as without limit: joint 'j' (text.urdf:4)" in model.notes


@pytest.mark.parametrize("text", ["٣", "1_0", "１"])
def test_only_plain_digits_are_numbers(text):
    """Python reads more as a number than other programs do."""
    inertial = INERTIAL.replace('"1"', f'"{text}"')
    assert f"r.urdf:2: <mass> value is {text!r}; expected a number" in sentence(robot(link("a", inertial)))
