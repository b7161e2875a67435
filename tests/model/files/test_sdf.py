"""SDF files: frames, joints and cycles as the format says; Cassie against dense equations."""

from __future__ import annotations

import importlib.metadata
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from dense_closures import ClosedReference

import spanloop as sl
from spanloop.errors import FileError, InputError, ModelError, SpanloopError, SpanloopWarning, UnsupportedError
from spanloop.joints import Fixed, Free, Helical, Prismatic, Revolute, Spherical, Universal
from spanloop.model import Model
from spanloop.model.files import load
from spanloop.model.files.sdf.reader import loads
from spanloop.model.files.sdf.tree_and_loops import reversed_kind
from spanloop.model.files.toml import reader as toml_reader
from spanloop.model.files.toml.writer import dumps

INERTIAL = (
    "<inertial><mass>2</mass><inertia><ixx>.02</ixx><iyy>.03</iyy><izz>.04</izz>"
    "<ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial>"
)


def sdf(*parts: str, version: str = "1.7", attributes: str = "") -> str:
    """A file with one model; its parts stand from line 3 on, one a line."""
    return "\n".join([f'<sdf version="{version}">', f'<model name="m" {attributes}>', *parts, "</model>", "</sdf>"])


def link(name: str, pose: str = "", inside: str = INERTIAL, attributes: str = "") -> str:
    told = f"<pose {attributes}>{pose}</pose>" if pose else ""
    return f'<link name="{name}">{told}{inside}</link>'


def joint(name: str, parent: str, child: str, kind: str = "revolute", inside: str = "<axis><xyz>0 0 1</xyz></axis>"):
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{inside}</joint>'


def pose(model: Model, frame: str, q=None) -> np.ndarray:
    """Where a frame is, in the world."""
    return sl.Dynamics(model, target="python").pose(model.neutral() if q is None else q, frame)


def placed(x, y, z, roll=0.0, pitch=0.0, yaw=0.0) -> np.ndarray:
    """The 4x4 matrix of an SDF pose."""
    (sr, cr), (sp, cp), (sy, cy) = ((math.sin(a), math.cos(a)) for a in (roll, pitch, yaw))
    out = np.eye(4)
    rz = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    ry = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    rx = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    out[:3, :3], out[:3, 3] = rz @ ry @ rx, (x, y, z)
    return out


# ---- Cassie


def cassie(name: str) -> Path:
    try:
        wheel = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    folder = wheel.locate_file("cmeel.prefix/share/example-robot-data/robots/cassie_description/robots")
    return Path(str(folder)) / name


def quietly(path: Path) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpanloopWarning)
        return load(path)


def test_cassie_has_23_links_and_four_ball_closures():
    model = quietly(cassie("cassie_v2.sdf"))
    assert model.n_bodies == 23
    assert [(x.name, x.kind) for x in model.loops] == [
        (name, Spherical())
        for name in (
            "left-pitch-rod-joint",
            "right-pitch-rod-joint",
            "right-plantar-foot-joint",
            "left-plantar-foot-joint",
        )
    ]
    assert model.nv == 6 + 22
    assert toml_reader.loads(dumps(model)) == model


@pytest.mark.slow
def test_cassie_stands_closed_as_told_and_assembles_within_its_limits():
    model = quietly(cassie("cassie_v2.sdf"))
    robot = sl.Dynamics(model)
    assert np.abs(robot.closure_error(model.neutral())).max() < 1e-15
    # the file's limits exclude its own pose; the digits of its angles leave a few nm open elsewhere
    assert any(
        n.startswith("limits that exclude the position in the file: joint 'left-tarsus-crank-joint'")
        for n in model.notes
    )
    q = robot.assemble(model.neutral(), tolerance=1e-6)  # of the loops, some 5 cm
    assert np.abs(robot.closure_error(q)).max() < 1e-8
    crank = q[model.q_slice("left-tarsus-crank-joint")][0]
    assert -2.4435 <= crank <= -0.6109
    assert robot.mobility(q) == 18


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_cassies_accelerations_are_those_of_the_dense_equations(seed):
    model = quietly(cassie("cassie_v2.sdf"))
    robot = sl.Dynamics(model)
    rng = np.random.default_rng(seed)
    q = model.neutral()
    q[:4] = (e := rng.normal(size=4)) / np.linalg.norm(e)
    q[4:7] = rng.normal(size=3)
    v = ClosedReference(model, q).consistent(rng.normal(size=model.nv))
    tau = rng.normal(size=model.nv)
    expected, _ = ClosedReference(model, q, v).forward_dynamics(tau)
    # rounding of 1e-16 times a condition of the mass matrix of some 1e4
    error = np.abs(robot.forward_dynamics(q, v, tau) - expected).max() / np.abs(expected).max()
    assert error < 1e-11, f"seed {seed}"


@pytest.mark.slow
def test_away_from_its_pose_cassie_moves_as_if_its_axes_were_parallel():
    """The digits of the file tilt the ankles' hinges by 1e-6; what that would block is found redundant."""
    model = quietly(cassie("cassie_v2.sdf"))
    robot = sl.Dynamics(model)
    q = robot.assemble(model.neutral(), tolerance=1e-6)  # of the loops, some 5 cm
    J, M, rng = robot.closure_jacobian(q), robot.mass_matrix(q), np.random.default_rng(0)
    U, s, Vt = np.linalg.svd(np.linalg.solve(np.linalg.cholesky(M), J.T).T, full_matrices=False)
    assert s[9] > 0.1
    assert s[10] < 1e-6
    v = rng.normal(size=model.nv)
    tau = rng.normal(size=model.nv)
    v -= np.linalg.pinv(J, rcond=1e-4) @ (J @ v)
    h, gamma = robot.bias(q, v), robot.closure_bias(q, v)
    free = np.linalg.solve(M, tau - h)
    step = -(U.T @ (J @ free + gamma))[:10] / s[:10]
    expected = free + np.linalg.solve(np.linalg.cholesky(M).T, Vt[:10].T @ step)
    # rows dropped that are tilted by 1e-6 against the others
    error = np.abs(robot.forward_dynamics(q, v, tau) - expected).max() / np.abs(expected).max()
    assert error < 1e-8


@pytest.mark.parametrize(
    ("file", "bodies", "loops", "couplings"),
    [
        ("cassie.sdf", 35, 6, 10),
        ("cassie_reduced.sdf", 23, 4, 0),
        ("cassie_simple.sdf", 23, 4, 0),
        ("cassie_wo_gearbox_spring.sdf", 23, 4, 0),
    ],
)
def test_the_other_cassies_load_closed(file, bodies, loops, couplings):
    model = quietly(cassie(file))
    assert (model.n_bodies, len(model.loops), len(model.couplings)) == (bodies, loops, couplings)
    assert np.abs(sl.Dynamics(model, target="python").closure_error(model.neutral())).max() < 1e-14


def test_a_joint_with_a_spring_stays_in_the_tree():
    model = quietly(cassie("cassie.sdf"))
    assert {j.name for j in model.joints if any(j.stiffness)} >= {
        "left-tarsus-spring-joint",
        "right-tarsus-spring-joint",
    }
    assert not any("acts on the motion" in n for n in model.notes)


# ---- frames and poses


def test_links_stand_where_their_poses_say():
    """relative_to a link, a frame, a joint; nested models; degrees and quaternions."""
    half = math.sqrt(0.5)
    text = sdf(
        "<pose>0 0 1 0 0 0.2</pose>",
        link("a", "0.1 0 0 0.3 0 0"),
        link("b", "0 0.2 0 0 0.4 0", attributes='relative_to="a"'),
        '<frame name="f" attached_to="b"><pose>0 0 0.3 0 0 0.5</pose></frame>',
        link("c", "0 0 0.1 0 0 90", attributes='relative_to="f" degrees="true"'),
        link("d", f"1 0 0 0 0 {half} {half}", attributes='relative_to="j" rotation_format="quat_xyzw"'),
        joint("j", "a", "b", inside="<pose>0 0 0.05 0 0 0</pose><axis><xyz>0 0 1</xyz></axis>"),
        '<model name="n"><pose relative_to="c">0 1 0 0 0 0</pose>' + link("e", "0 0 0.2 0 0 0") + "</model>",
        version="1.9",
    )
    model = loads(text, base="fixed")
    m = placed(0, 0, 1, 0, 0, 0.2)
    a = m @ placed(0.1, 0, 0, 0.3)
    b = a @ placed(0, 0.2, 0, 0, 0.4)
    f = b @ placed(0, 0, 0.3, 0, 0, 0.5)
    c = f @ placed(0, 0, 0.1, 0, 0, math.pi / 2)
    d = b @ placed(0, 0, 0.05) @ placed(1, 0, 0, 0, 0, math.pi / 2)
    e = c @ placed(0, 1, 0) @ placed(0, 0, 0.2)
    for name, expected in {"a": a, "b::origin": b, "f": f, "c": c, "d": d, "n::e": e}.items():
        np.testing.assert_allclose(pose(model, name), expected, rtol=0, atol=1e-14, err_msg=name)
    np.testing.assert_allclose(pose(model, "b"), b @ placed(0, 0, 0.05), rtol=0, atol=1e-14)  # where its joint is


def test_a_placement_frame_stands_at_the_models_pose():
    inner = '<model name="n" placement_frame="tip"><pose>1 0 0 0 0 0</pose>' + link("e")
    inner += '<frame name="tip"><pose>0 0 0.5 0 0 0.3</pose></frame></model>'
    model = loads(sdf(link("a"), inner, version="1.8"), base="fixed")
    np.testing.assert_allclose(pose(model, "n::tip"), placed(1, 0, 0), atol=1e-15)


def test_a_joint_moves_its_child_about_its_own_axis():
    """Against 4x4 matrices: the hinge stands at its pose in the child and turns about its axis there."""
    inside = "<pose>0.1 0.2 0.3 0 0.4 0</pose><axis><xyz>0 1 0</xyz></axis>"
    model = loads(
        sdf(link("a", "0 0 1 0 0 0"), link("b", "0.5 0 1 0.3 0 0"), joint("j", "a", "b", inside=inside)), base="fixed"
    )
    b, at, angle = placed(0.5, 0, 1, 0.3), placed(0.1, 0.2, 0.3, 0, 0.4), 0.7
    expected = b @ at @ placed(0, 0, 0, 0, angle) @ np.linalg.inv(at)
    np.testing.assert_allclose(pose(model, "b::origin", [angle]), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("version", "inside", "expected"),
    [
        ("1.4", "<xyz>0 0 1</xyz>", "model"),
        ("1.6", "<xyz>0 0 1</xyz>", "joint"),
        ("1.6", "<xyz>0 0 1</xyz><use_parent_model_frame>1</use_parent_model_frame>", "model"),
        ("1.7", "<xyz>0 0 1</xyz>", "joint"),
        ("1.7", '<xyz expressed_in="__model__">0 0 1</xyz>', "model"),
        ("1.7", '<xyz expressed_in="a">0 0 1</xyz>', "a"),
    ],
)
def test_an_axis_is_told_in_the_frame_of_its_version(version, inside, expected):
    parts = [
        link("a", "0 0 0 0.3 0 0"),
        link("b", "0 0 0 0 0.4 0"),
        joint("j", "a", "b", inside=f"<axis>{inside}</axis>"),
    ]
    model = loads(sdf(*parts, version=version), base="fixed")
    frames = {"model": np.eye(4), "joint": placed(0, 0, 0, 0, 0.4), "a": placed(0, 0, 0, 0.3)}
    told = frames[expected][:3, 2]
    found = frames["joint"][:3, :3] @ model.joint("j").kind.axis
    np.testing.assert_allclose(found, told, atol=1e-15)


# ---- joints


def test_each_joint_type_becomes_its_kind():
    axis = "<axis><xyz>0 0 1</xyz></axis>"
    two = "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>"
    kinds = {
        "revolute": (axis, Revolute("z")),
        "continuous": (axis, Revolute("z")),
        "prismatic": (axis, Prismatic("z")),
        "screw": (axis + "<screw_thread_pitch>0.01</screw_thread_pitch>", Helical("z", 0.01 / math.tau)),
        "universal": (two, Universal()),
        "revolute2": (two, Universal()),
        "ball": ("", Spherical()),
        "fixed": ("", Fixed()),
    }
    parts = [link("base")]
    for kind, (inside, _) in kinds.items():
        parts += [link(kind), joint(f"j_{kind}", "base", kind, kind, inside)]
    model = loads(sdf(*parts, version="1.10"))
    assert {k: model.joint(f"j_{k}").kind for k in kinds} == {k: expected for k, (_, expected) in kinds.items()}
    assert model.joint("root").kind == Free()
    assert "root" not in model.actuated


def test_the_older_thread_pitch_is_left_handed_in_radians_per_metre():
    inside = "<axis><xyz>0 0 1</xyz></axis><thread_pitch>-100</thread_pitch>"
    model = loads(sdf(link("a"), link("b"), joint("j", "a", "b", "screw", inside), version="1.6"))
    assert model.joint("j").kind == Helical("z", 0.01)


def test_limits_losses_and_springs_are_read():
    inside = (
        "<axis><xyz>0 0 1</xyz><limit><lower>-1</lower><upper>2</upper><velocity>3</velocity>"
        "<effort>-1</effort></limit>"
        "<dynamics><damping>.1</damping><friction>.2</friction><spring_stiffness>5</spring_stiffness>"
        "<spring_reference>.3</spring_reference></dynamics></axis>"
    )
    j = loads(sdf(link("a"), link("b"), joint("j", "a", "b", inside=inside))).joint("j")
    assert (j.lower, j.upper, j.speed, j.effort) == ((-1.0,), (2.0,), (3.0,), None)
    assert (j.damping, j.friction, j.stiffness, j.rest) == ((0.1,), (0.2,), (5.0,), (0.3,))


def test_a_mimic_is_a_coupling():
    inside = (
        '<axis><xyz>0 0 1</xyz><mimic joint="j"><multiplier>2</multiplier><offset>.5</offset>'
        "<reference>.1</reference></mimic></axis>"
    )
    parts = [link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("k", "b", "c", inside=inside)]
    (c,) = loads(sdf(*parts, version="1.11")).couplings
    assert (c.joint, c.source, c.ratio, c.offset) == ("k", "j", 2.0, 0.5 - 2.0 * 0.1)


@pytest.mark.parametrize("sense", [1, -1])
def test_a_gearbox_couples_two_hinges_whatever_their_senses(sense):
    """θ₂ = −ratio θ₁, both from the reference body about the gearbox's axes."""
    turned = f"<axis><xyz>0 0 {sense}</xyz></axis>"
    gear = "<gearbox_ratio>3</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body>"
    gear += "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2>"
    parts = [
        link("base"),
        link("in"),
        link("out"),
        joint("j1", "base", "in"),
        joint("j2", "base", "out", inside=turned),
    ]
    (c,) = loads(sdf(*parts, joint("gear", "in", "out", "gearbox", gear), version="1.6")).couplings
    assert (c.joint, c.source, c.ratio) == ("j2", "j1", -3.0 * sense)


# ---- how links stand on the world


def test_a_model_floats_unless_told_otherwise():
    parts = [link("a", "0 0 1 0 0 0"), link("b"), joint("j", "a", "b")]
    assert loads(sdf(*parts)).joint("root").kind == Free()
    assert loads(sdf(*parts), base="fixed").joint("root").kind == Fixed()
    held = loads(sdf(*parts, joint("hold", "world", "a", "fixed", "")))
    assert (held.joint("hold").kind, held.nv) == (Fixed(), 1)
    still = loads(sdf("<static>true</static>", *parts))
    assert (still.n_bodies, still.nv) == (2, 0)
    with pytest.raises(InputError, match="base is 'floating'; expected 'fixed' or 'free'"):
        loads(sdf(*parts), base="floating")


def test_a_world_has_gravity_and_several_models():
    models = "".join(
        f'<model name="{n}"><pose>{x} 0 0 0 0 0</pose>{link("a")}</model>' for n, x in (("p", 1), ("q", 2))
    )
    text = f'<sdf version="1.8"><world name="w"><gravity>0 0 -1.6</gravity>{models}</world></sdf>'
    model = loads(text)
    assert model.gravity == (0.0, 0.0, -1.6)
    assert [(j.name, j.child) for j in model.joints] == [("p::a_root", "p::a"), ("q::a_root", "q::a")]
    np.testing.assert_allclose(pose(model, "q::a"), placed(2, 0, 0))


@pytest.mark.parametrize("kind", [Revolute((0.6, 0.0, 0.8)), Prismatic("y"), Helical("z", 0.1), Universal("z", "x")])
def test_a_kind_turned_round_undoes_it(kind):
    q = (0.7,) if kind.nv == 1 else (0.7, -0.4)
    there, back = kind.transform(q), reversed_kind(kind, "j").transform(q[::-1])
    x = np.array(there.rotation.matrix()) @ back.rotation.matrix()
    np.testing.assert_allclose(x, np.eye(3), atol=1e-15)
    p = np.array(there.rotation.matrix()) @ back.translation + there.translation
    np.testing.assert_allclose(p, 0.0, atol=1e-15)


def test_a_joint_against_the_direction_of_the_tree_moves_alike():
    """The same mechanism told with parent and child swapped and the axis reversed."""
    at = "<pose>0.1 0 0 0 0.2 0</pose>"
    parts = [link("a", "0 0 1 0 0 0"), link("b", "0.5 0 1 0 0 0"), joint("hold", "world", "a", "fixed", "")]
    told = loads(sdf(*parts, joint("j", "a", "b", inside=at + "<axis><xyz>0 1 0</xyz></axis>")))
    other = '<pose relative_to="b">0.1 0 0 0 0.2 0</pose><axis><xyz>0 -1 0</xyz></axis>'
    swapped = loads(sdf(*parts, joint("j", "b", "a", inside=other)))
    assert swapped.joint("j").child == "b"
    np.testing.assert_allclose(pose(swapped, "b::origin", [0.4]), pose(told, "b::origin", [0.4]), atol=1e-15)
    assert "joints turned round, parent for child, so that the world is at the tree's root: 'j'" in swapped.notes


# ---- cycles


def test_a_cycle_of_hinges_is_a_four_bar():
    parts = [
        link("crank", "0 0 0 0 0 0.5"),
        link("rocker", "1 0 0 0 0 0.5"),
        link("coupler", f"{0.5 * math.cos(0.5)} {0.5 * math.sin(0.5)} 0 0 0 0"),
        joint("j1", "world", "crank"),
        joint("j2", "world", "rocker"),
        joint("j3", "crank", "coupler"),
        joint("j4", "coupler", "rocker", inside="<pose>0.5 0 0 0 0 0</pose><axis><xyz>0 0 1</xyz></axis>"),
    ]
    model = loads(sdf(*parts))
    assert [(x.name, x.kind, x.a, x.b) for x in model.loops] == [("j4", Revolute("z"), "coupler", "rocker")]
    robot = sl.Dynamics(model)
    q = robot.assemble(model.neutral())
    assert robot.mobility(q) == 1
    v = ClosedReference(model, q).consistent(np.array([1.0, -0.5, 0.3]))
    tau = np.array([1.0, 2.0, -1.0])
    expected, _ = ClosedReference(model, q, v).forward_dynamics(tau)
    np.testing.assert_allclose(robot.forward_dynamics(q, v, tau), expected, atol=1e-12 * np.abs(expected).max())


def test_what_a_loop_cannot_hold_is_said_and_warned_of(tmp_path):
    spring = "<axis><xyz>0 0 1</xyz><dynamics><damping>1</damping></dynamics></axis>"
    parts = [link("a"), link("b"), link("c"), joint("g", "world", "a", inside=spring)]
    parts += [
        joint("h", "a", "b", inside=spring),
        joint("i", "b", "c", inside=spring),
        joint("k", "a", "c", inside=spring),
    ]
    (tmp_path / "m.sdf").write_text(sdf(*parts))
    expected = (
        "left out, though it acts on the motion: damping, friction or spring of a joint that closes a loop: "
        "'k' (m.sdf:9)"
    )
    with pytest.warns(SpanloopWarning, match="acts on the motion"):
        model = load(tmp_path / "m.sdf")
    assert expected in model.notes


# ---- the rest of a link


def test_inertia_is_turned_to_the_axes_of_the_link_and_has_defaults():
    turned = "<inertial><pose>1 2 3 0 0 1.57079632679</pose><mass>2</mass><inertia><ixx>1</ixx><ixy>.1</ixy>"
    turned += "<ixz>0</ixz><iyy>2</iyy><iyz>0</iyz><izz>2.5</izz></inertia></inertial>"
    model = loads(sdf(link("a", inside=turned), link("b", inside="")))
    i = model.body("a").inertia
    assert (i.mass, i.center, i.moments) == (2.0, (1.0, 2.0, 3.0), (2.0, -0.1, 0.0, 1.0, 0.0, 2.5))
    assert model.body("b").inertia.moments == (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
    assert "without <inertial>, read as 1 kg with unit moments as SDF specifies: link 'b' (text.sdf:4)" in model.notes


def test_geometry_is_kept_and_moves_with_a_link_described_from_its_joint():
    box = '<visual name="v"><pose>0.1 0 0 0 0 0</pose><geometry><box><size>1 2 3</size></box></geometry></visual>'
    cone = '<collision name="c"><geometry><polyline/></geometry></collision>'
    inside = "<pose>0.5 0 0 0 0 0</pose><axis><xyz>0 0 1</xyz></axis>"
    model = loads(sdf(link("a"), link("b", inside=INERTIAL + box + cone), joint("j", "a", "b", inside=inside)))
    (g,) = model.body("b").geometry
    assert (g.shape, g.size, g.use, g.placement.position) == ("box", (1.0, 2.0, 3.0), "visual", (-0.4, 0.0, 0.0))
    assert "shape <polyline> left out: link 'b' (text.sdf:4)" in model.notes


# ---- bad files, each with its sentence

BAD = {
    "include": (
        sdf("<include><uri>model://sun</uri></include>", link("a")),
        FileError,
        "m.sdf:3: <include> of 'model://sun', but the text is in no folder; load it from a file",
    ),
    "no version": ("<sdf><model name='m'/></sdf>", FileError, 'm.sdf:1: <sdf> has no version; expected version="..."'),
    "odd version": (
        '<sdf version="new"/>',
        FileError,
        "m.sdf:1: <sdf> version is 'new'; expected for example 1.7",
    ),
    "old": (
        '<sdf version="1.2"/>',
        UnsupportedError,
        "m.sdf:1: SDF 1.2 is too old; 1.3 to 1.11 are read. Convert it with gz sdf -p",
    ),
    "urdf": ("<robot/>", UnsupportedError, "m.sdf:1: this is URDF, not SDF; rename it to .urdf"),
    "other": ("<x/>", FileError, "m.sdf:1: the outermost element is <x>; expected <sdf version='...'>"),
    "no model": ('<sdf version="1.7"/>', FileError, "m.sdf:1: <sdf> has no <model>; expected one at least"),
    "no link": (sdf(), FileError, "m.sdf:2: model 'm' has no <link>; expected one"),
    "no name": (sdf("<link/>"), FileError, 'm.sdf:3: <link> has no name; expected name="..."'),
    "duplicate": (
        sdf(link("a"), link("a")),
        FileError,
        "m.sdf:4: a second link or frame is called 'a', the first is a link at m.sdf:3; names must be unique",
    ),
    "reserved": (
        sdf(link("world")),
        FileError,
        "m.sdf:3: a link is called 'world'; 'world', __name__ and names with '::' have a meaning of their own. "
        "Rename it",
    ),
    "number": (
        sdf(link("a", "0 0 x 0 0 0")),
        FileError,
        "m.sdf:3: <pose> is '0 0 x 0 0 0'; expected 6 numbers separated by blanks",
    ),
    "nan": (
        sdf(link("a", "0 0 nan 0 0 0")),
        FileError,
        "m.sdf:3: <pose> is '0 0 nan 0 0 0'; expected 6 numbers separated by blanks",
    ),
    "unknown frame": (
        sdf(link("arm"), link("b", "0 0 0 0 0 0", attributes='relative_to="amr"')),
        FileError,
        "m.sdf:4: <link> names 'amr', which does not exist; did you mean 'arm'?",
    ),
    "circle of poses": (
        sdf(
            link("a", "0 0 0 0 0 0", attributes='relative_to="b"'),
            link("b", "0 0 0 0 0 0", attributes='relative_to="a"'),
        ),
        FileError,
        "m.sdf:4: 'a' is placed relative to itself (a -> b -> a)",
    ),
    "circle of frames": (
        sdf(link("a"), '<frame name="f" attached_to="g"/>', '<frame name="g" attached_to="f"/>'),
        FileError,
        "m.sdf:5: 'f' is attached to itself (f -> g -> f)",
    ),
    "unknown child": (
        sdf(link("arm"), joint("j", "arm", "hand")),
        FileError,
        "m.sdf:4: <child> names 'hand', which does not exist; there are 'arm', 'j'",
    ),
    "unknown type": (
        sdf(link("a"), link("b"), joint("j", "a", "b", "revolut")),
        FileError,
        "m.sdf:5: joint 'j' has the type 'revolut'; did you mean 'revolute'?",
    ),
    "no axis": (
        sdf(link("a"), link("b"), joint("j", "a", "b", inside="")),
        FileError,
        "m.sdf:5: <joint> has no <axis>; expected one",
    ),
    "zero axis": (
        sdf(link("a"), link("b"), joint("j", "a", "b", inside="<axis><xyz>0 0 0</xyz></axis>")),
        FileError,
        "m.sdf:5: <xyz> is '0 0 0', which has no direction; expected for example 0 0 1",
    ),
    "itself": (
        sdf(link("a"), joint("j", "a", "a")),
        FileError,
        "m.sdf:4: joint 'j' has 'a' as parent and as child; expected two links",
    ),
    "negative mass": (
        sdf(link("a", inside="<inertial><mass>-1</mass></inertial>")),
        ModelError,
        "link 'a' (m.sdf:3): mass is -1 kg; must be >= 0. Was the sign lost in the export? repair=True drops the sign",
    ),
    "automatic inertia": (
        sdf(link("a", inside="<inertial auto='true'/>"), version="1.11"),
        UnsupportedError,
        "m.sdf:3: <inertial auto='true'> is not read; write mass and inertia",
    ),
    "bomb": (
        '<!DOCTYPE lolz [<!ENTITY a "ha">]><sdf version="1.7"/>',
        FileError,
        "m.sdf:1: declares a document type (<!DOCTYPE lolz ...>), which can define entities; "
        "these are not read. Remove the declaration",
    ),
    "truncated": (
        sdf(link("a"))[:-12],
        FileError,
        "m.sdf:4: not readable as XML (unclosed token, the file ends too early); expected a complete XML file",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_gives_its_sentence(case):
    text, error, expected = BAD[case]
    with pytest.raises(SpanloopError) as caught:
        loads(text, "m.sdf")
    assert (type(caught.value), str(caught.value)) == (error, expected)


@pytest.mark.slow
def test_a_long_chain_of_poses_is_no_deep_recursion():
    n = 3000
    chain = [link("l0"), *(link(f"l{i}", "0 0 1 0 0 0", "", f'relative_to="l{i - 1}"') for i in range(1, n))]
    joints = [joint(f"j{i}", f"l{i - 1}", f"l{i}") for i in range(1, n)]
    model = loads(sdf(*reversed(chain), *joints))
    assert (model.n_bodies, model.nv) == (n, 6 + n - 1)


def test_a_mesh_outside_the_folder_is_never_looked_at(tmp_path):
    mesh = '<visual name="v"><geometry><mesh><uri>file:///etc/passwd</uri></mesh></geometry></visual>'
    (tmp_path / "m.sdf").write_text(sdf(link("a", inside=INERTIAL + mesh)))
    assert any("mesh 'file:///etc/passwd': refused, it leads out of" in n for n in load(tmp_path / "m.sdf").notes)
