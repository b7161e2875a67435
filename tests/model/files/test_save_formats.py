"""Models written to URDF, MJCF, SDF and CSV: what other programs read there moves as ours."""

from __future__ import annotations

import importlib.metadata
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from frames import body_pose
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.errors import FileError, InputError, ModelError, UnsupportedError
from spanloop.joints import Cylindrical, Distance, Revolute, Universal
from spanloop.model import Coupling, Geometry, Model, Placement, Sensor
from spanloop.model.files.dh import writer as dh_writer
from spanloop.model.files.dh.reader import loads as csv_loads
from spanloop.model.files.mjcf import writer as mjcf_writer
from spanloop.model.files.sdf import writer as sdf_writer
from spanloop.model.files.urdf import writer as urdf_writer
from spanloop.model.files.urdf.reader import loads as urdf_loads
from spanloop.model.orders.pinocchio import PinocchioOrder

# a few hundred products of numbers of order 1 to 100
ROUNDING = 1e-10


def python(model: Model) -> sl.Dynamics:
    return sl.Dynamics(model, target="python")


def same(found, expected, tolerance=ROUNDING):
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * (1.0 + np.abs(expected).max(initial=0.0)))


def tree(seed: int, kinds=("revolute", "prismatic", "fixed"), free: bool = False) -> Model:
    """A random tree with limits, without armature and springs, with gravity downward."""
    model = zoo.random_model(seed, 6, kinds=kinds, free=free).with_gravity((0.0, 0.0, -9.81)).without_losses()
    limited = [
        replace(j, lower=(-4.0,), upper=(4.0,), speed=(3.0,), effort=(50.0,)) if j.kind.nv == 1 else j
        for j in model.joints
    ]
    return replace(model, joints=tuple(limited))


# ---- URDF


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("free", [False, True])
def test_pinocchio_reads_our_urdf_as_the_same_robot(seed, free):
    model = tree(seed, free=free)
    written = urdf_writer.dumps(model)
    assert written.lost == ()
    peer = pin.buildModelFromXML(written.text)
    data = peer.createData()
    order = PinocchioOrder(model, list(peer.names), list(peer.nqs))
    q, v = model.random_state(seed)
    there = order.q_to(q), order.v_to(v)
    same(order.v_from(pin.nle(peer, data, *there)), python(model).bias(q, v))
    M = pin.crba(peer, data, there[0])
    M = np.triu(M) + np.triu(M, 1).T
    index = order.v_to(np.arange(model.nv)).astype(int)
    same(M, python(model).mass_matrix(q)[np.ix_(index, index)])


@pytest.mark.parametrize("seed", range(6))
def test_what_we_write_as_urdf_we_read_as_the_same_model(seed):
    model = tree(seed, kinds=("revolute", "prismatic", "fixed", "planar"), free=bool(seed % 2))
    again = urdf_loads(urdf_writer.dumps(model).text)
    assert [(j.name, j.parent, j.child, j.kind.name) for j in again.joints] == [
        (j.name, j.parent, j.child, j.kind.name) for j in model.joints
    ]
    assert [(j.lower, j.upper, j.speed, j.effort) for j in again.joints] == [
        (j.lower, j.upper, j.speed, j.effort) for j in model.joints
    ]
    for a, b in zip(again.joints, model.joints, strict=True):
        same(a.placement.rotation, b.placement.rotation, 1e-15)
        assert a.placement.position == b.placement.position
    assert [b.inertia for b in again.bodies] == [b.inertia for b in model.bodies]
    q, v = model.random_state(seed)
    same(python(again).bias(q, v), python(model).bias(q, v))


def test_shapes_mimics_frames_and_losses_stand_in_the_urdf():
    place = Placement(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)), (0.1, 0.2, 0.3))
    shapes = (
        Geometry("box", (1.0, 2.0, 3.0), "", place),
        Geometry("cylinder", (0.1, 0.5), "", Placement(), "collision"),
        Geometry("sphere", (0.2,)),
        Geometry("mesh", (1.0, -1.0, 1.0), "meshes/a.stl"),
    )
    b = sl.Builder("m & <n>").body("a", 1.0, inertia=(1, 1, 1), geometry=shapes).body("b", 1.0, inertia=(1, 1, 1))
    b.revolute("one", "world", "a", damping=0.5, friction=0.25).revolute("two", "a", "b", actuated=False)
    model = b.coupling("two_mimic", "two", "one", -2.0, 0.5).frame("tip", "b", (0.0, 0.0, 1.0)).build()
    written = urdf_writer.dumps(model)
    again = urdf_loads(written.text)
    assert (again.name, again.body("a").geometry, again.couplings) == (model.name, shapes, model.couplings)
    assert (again.joint("one").damping, again.joint("one").friction) == ((0.5,), (0.25,))
    assert again.joint("tip_joint").placement.position == (0.0, 0.0, 1.0)
    assert written.lost == ()
    assert written.remarks == ("frames, written as links without mass: frame 'tip'",)


def test_a_urdf_that_was_loaded_is_written_as_it_was():
    text = urdf_writer.dumps(urdf_loads(ARM, base="free")).text
    assert urdf_loads(text, base="free") == urdf_loads(ARM, base="free")
    assert "world" not in text


ARM = """<robot name="r"><link name="a"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link><link name="b"/>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint></robot>"""


def test_joints_of_two_freedoms_are_split():
    b = sl.Builder("two").body("a", 1.0, (0.1, 0, 0), (1, 1, 1)).body("b", 1.0, (0, 0.1, 0), (1, 1, 1))
    b.universal("u", "world", "a", "x", "z").cylindrical("c", "a", "b", "y", (0.1, 0.2, 0.3))
    model = b.build()
    written = urdf_writer.dumps(model)
    again = urdf_loads(written.text)
    q, v = model.random_state(1)
    assert [j.name for j in again.joints] == ["u_1", "u_2", "c_1", "c_2"]
    same(python(again).mass_matrix(q), python(model).mass_matrix(q))
    same(python(again).bias(q, v), python(model).bias(q, v))
    assert "joints with two DoF, written as two joints with a body without mass between: joint 'u', joint 'c'" in (
        written.remarks
    )


def test_what_urdf_cannot_hold_is_named(tmp_path):
    model = zoo.four_bar().with_gravity((0, 0, -1)).with_actuator("m", zoo.four_bar().joints[0].name)
    model = replace(model, joints=(replace(model.joints[0], armature=(1.0,), stiffness=(2.0,)), *model.joints[1:]))
    lost = " ".join(urdf_writer.dumps(model.with_sensor("s", "imu", "world")).lost)
    for word in ("loops (written as <loop>", "armatures", "springs", "actuators: 'm'", "sensors: 's'", "gravity"):
        assert word in lost
    with says(UnsupportedError, "x.urdf: URDF cannot hold loops (written as <loop>, which only spanloop reads"):
        model.save(tmp_path / "x.urdf")
    assert list(tmp_path.iterdir()) == []
    model.save(tmp_path / "x.urdf", force=True)
    assert "<loop " in (tmp_path / "x.urdf").read_text()
    with says(UnsupportedError, "x.urdf: joint 'j': URDF has no spherical joints, and the rest depends on it"):
        sl.Builder("b").body("a", 1.0).spherical("j", "world", "a").build().save(tmp_path / "x.urdf", force=True)
    with says(ModelError, "'a\\x07' has the character '\\x07', which XML cannot hold; rename it"):
        urdf_writer.dumps(sl.Builder("b").body("a\x07", 1.0).revolute("j", "world", "a\x07").build())
    with says(InputError, "the extension is '.udf'; did you mean '.urdf'?"):
        zoo.puma().save(tmp_path / "x.udf")


# ---- MJCF


class Mujoco:
    """A model in MuJoCo with conversions of states; free joints only as the first."""

    def __init__(self, model: Model, text: str | None = None):
        self.ours = model
        self.model = mujoco.MjModel.from_xml_string(text or mjcf_writer.dumps(model).text)
        self.data = mujoco.MjData(self.model)

    def state(self, q, v):
        """Our state in MuJoCo's order, and the matrix that takes our rates to its rates."""
        m = self.model
        there, change = np.zeros(m.nq), np.zeros((m.nv, m.nv))
        for j in self.ours.joints:
            x, n = q[self.ours.q_slice(j.name)], self.ours.v_slice(j.name)
            if j.kind.nv == 0:
                continue
            number = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_JOINT, j.name)
            first = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_JOINT, f"{j.name}_1") if number < 0 else number
            a, d = m.jnt_qposadr[first], m.jnt_dofadr[first]
            if j.kind.name == "free":
                r = np.zeros(9)
                mujoco.mju_quat2Mat(r, x[:4])
                there[a : a + 7] = (*x[4:], *x[:4])
                change[d : d + 3, n.start + 3 : n.stop] = r.reshape(3, 3)
                change[d + 3 : d + 6, n.start : n.start + 3] = np.eye(3)
            elif j.kind.name == "planar":
                there[a : a + 3] = (x[1], x[2], x[0])
                c, s = np.cos(x[0]), np.sin(x[0])
                change[d : d + 3, n] = ((0, c, -s), (0, s, c), (1, 0, 0))
            else:
                there[a : a + len(x)] = x
                change[d : d + j.kind.nv, n] = np.eye(j.kind.nv)
        self.data.qpos[:], self.data.qvel[:] = there, change @ v
        mujoco.mj_forward(m, self.data)
        return change

    def mass_matrix(self, change):
        M = np.zeros((self.model.nv, self.model.nv))
        try:
            mujoco.mj_fullM(self.model, self.data, M)
        except TypeError:  # before MuJoCo 3.4
            mujoco.mj_fullM(self.model, M, self.data.qM)
        return change.T @ M @ change


MUJOCO = ("revolute", "prismatic", "fixed", "spherical", "universal", "cylindrical", "planar")


@pytest.mark.parametrize("seed", range(8))
def test_mujoco_reads_our_mjcf_as_the_same_robot(seed):
    """Mass matrix with armature, and bias: gravity and Coriolis forces, less what springs and dampers do."""
    model = _without_mixed(zoo.random_model(seed, 6, kinds=MUJOCO, free=bool(seed % 2)))
    model = replace(
        model, joints=tuple(replace(j, placement=Placement()) if j.kind.name == "free" else j for j in model.joints)
    )
    q, v = model.random_state(seed)
    peer = Mujoco(model)
    assert peer.model.nv == model.nv
    change = peer.state(q, v)
    same(peer.mass_matrix(change), python(model).mass_matrix(q), 1e-9)
    if all(j.kind.name not in ("free", "planar") for j in model.joints):  # there rates differ, and so does the bias
        force = peer.data.qfrc_bias - peer.data.qfrc_passive
        same(change.T @ force, python(model).bias(q, v), 1e-9)
    else:
        still = peer.state(q, 0.0 * v)
        same(still.T @ (peer.data.qfrc_bias - peer.data.qfrc_passive), python(model).bias(q, 0.0 * v), 1e-9)


def _without_mixed(model: Model) -> Model:
    """Losses as MuJoCo has them: equal for all axes of a ball or free joint, whose springs are left out."""

    def one(j):
        if j.kind.name in ("spherical", "free", "planar"):
            losses = {k: (getattr(j, k)[0],) * j.kind.nv for k in ("damping", "armature")}
            if j.kind.name != "spherical":
                losses = dict.fromkeys(losses, ())
            return replace(j, stiffness=(), rest=(), **losses)
        return j

    return replace(model, joints=tuple(map(one, model.joints)))


def test_accelerations_of_a_floating_robot_agree_with_mujoco():
    model = zoo.quadruped().without_losses()
    q, v = model.random_state(3)
    peer = Mujoco(model)
    change = peer.state(q, v)
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, q[:4])
    a = python(model).forward_dynamics(q, v, np.zeros(model.nv))
    expected = change @ a  # the world's acceleration of the base: ours is classical, in its axes
    expected[:3] = R.reshape(3, 3) @ (a[3:6] + np.cross(v[:3], v[3:6]))
    np.testing.assert_allclose(peer.data.qacc_smooth, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


CLOSED = ("four_bar", "stewart", "delta", "five_bar")


@pytest.mark.parametrize("name", CLOSED)
def test_mujoco_s_constraints_are_our_loops(name):
    """At a closed state its constraints are met, and their Jacobian spans our closure rows."""
    model = getattr(zoo, name)()
    if any(x.kind.name not in ("spherical", "revolute", "fixed", "distance") for x in model.loops):
        pytest.skip("a loop that MuJoCo cannot hold")
    q = getattr(zoo, f"{name}_start")()
    peer = Mujoco(model, mjcf_writer.dumps(model).text)
    change = peer.state(q, np.zeros(model.nv))
    rows = peer.data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    assert np.abs(peer.data.efc_pos[rows]).max() < 1e-9
    J = np.zeros((peer.data.nefc, peer.model.nv))
    J[:] = _dense(peer)
    theirs, ours = J[rows] @ change, python(model).closure_jacobian(q)
    together = np.linalg.matrix_rank(np.vstack((theirs, ours)), tol=1e-8)
    assert np.linalg.matrix_rank(theirs, tol=1e-8) == np.linalg.matrix_rank(ours, tol=1e-8) == together


def _dense(peer):
    if mujoco.mj_isSparse(peer.model):
        out = np.zeros((peer.data.nefc, peer.model.nv))
        for r in range(peer.data.nefc):
            start, count = peer.data.efc_J_rowadr[r], peer.data.efc_J_rownnz[r]
            out[r, peer.data.efc_J_colind[start : start + count]] = peer.data.efc_J[start : start + count]
        return out
    return np.reshape(peer.data.efc_J, (peer.data.nefc, peer.model.nv))


def test_rods_and_gears_are_constraints_of_mujoco_too():
    b = sl.Builder("rod").body("a", 1.0, (0.1, 0, 0), (1, 1, 1)).body("b", 1.0, (0.1, 0, 0), (1, 1, 1))
    b.revolute("one", "world", "a", "y").revolute("two", "world", "b", "y", (1.0, 0, 0)).revolute(
        "three", "b", "c", "y"
    )
    b.body("c", 0.5, inertia=(0.1, 0.1, 0.1)).frame("tip_a", "a", (0, 0, 0.5)).frame("tip_b", "b", (0, 0, 0.4))
    model = b.loop("tip_a", "tip_b", Distance(0.9), name="rod").coupling("gear", "three", "one", 0.5, 0.1).build()
    q = sl.Dynamics(model).assemble([0.2, 0.1, 0.2])
    peer = Mujoco(model)
    peer.state(q, np.zeros(3))
    rows = peer.data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    assert rows.sum() == 2
    assert np.abs(peer.data.efc_pos[rows]).max() < 1e-8
    both = np.vstack((_dense(peer)[rows], python(model).closure_jacobian(q)))
    assert np.linalg.matrix_rank(both, tol=1e-8) == 2


def test_actuators_sensors_limits_and_sites_stand_in_the_mjcf():
    model = zoo.puma().with_actuator(
        "servo", "joint1", kind="position", stiffness=20.0, damping=1.0, gear=2.0, control_range=(-1.0, 1.0)
    )
    model = model.with_sensor("angle", "encoder", "joint2").with_sensor("turn", "gyro", "tool")
    model = replace(
        model, joints=(replace(model.joints[0], lower=(-1.0,), upper=None, effort=(5.0,)), *model.joints[1:])
    )
    written = mjcf_writer.dumps(model)
    assert written.lost == ()
    m = mujoco.MjModel.from_xml_string(written.text)
    assert (m.nu, m.nsensor) == (6, 2)
    servo = m.actuator("servo")
    assert (servo.gear[0], servo.gainprm[0], servo.biasprm[2]) == (2.0, 20.0, -1.0)
    assert m.actuator("joint2").trnid[0] == m.joint("joint2").id
    assert m.joint("joint1").range[0] == -1.0
    data = mujoco.MjData(m)
    data.qpos[:] = q = np.linspace(-1.0, 1.0, 6)
    mujoco.mj_forward(m, data)
    same(data.site("tool").xpos, body_pose(model, q, "tool")[:3, 3])
    assert data.sensor("angle").data[0] == q[1]


def test_what_mjcf_cannot_hold_is_named(tmp_path):
    b = sl.Builder("m").body("a", 1.0, inertia=(0, 1, 1), geometry=(Geometry("mesh", (), "a.stl"),))
    b.body("b", 1.0, inertia=(1, 1, 1)).revolute("j", "world", "a", speed=2.0).revolute("k", "a", "b", driven=True)
    model = b.loop("b", "world", Cylindrical(), name="tube").build()
    model = replace(model.with_actuator("x", "j", kind="muscle"), sensors=(Sensor("cam", "camera", "b"),))
    lost = " ".join(mjcf_writer.dumps(model).lost)
    for word in ("meshes: 'a.stl' of body 'a'", "no moment about an axis", "limits of speed", "driven: joint 'k'",
                 "loops of a kind that MuJoCo cannot hold: 'tube' (cylindrical)", "'x' (muscle)", "'cam'"):  # fmt: skip
        assert word in lost, word
    written = model.save(tmp_path / "m.xml", force=True)
    assert mujoco.MjModel.from_xml_string(written.text).nv == 2
    helical = sl.Builder("h").body("a", 1.0, inertia=(1, 1, 1)).helical("j", "world", "a", pitch=0.1).build()
    with says(UnsupportedError, "h.xml: joint 'j': MuJoCo has no helical joints, and the rest depends on it"):
        helical.save(tmp_path / "h.xml", force=True)


# ---- SDF, by a reading of its poses of our own


def sdf_poses(text: str) -> dict[str, np.ndarray]:
    """Poses of the links in the model, by their <pose relative_to>."""
    model = ET.fromstring(text.split("?>", 1)[1]).find("model")
    links = {e.get("name"): e for e in model.findall("link")}

    def pose(name):
        element = links[name].find("pose")
        if element is None:
            return np.eye(4)
        x = _of_six(element.text)
        above = element.get("relative_to")
        return pose(above) @ x if above else x

    return {name: pose(name) for name in links}


def _of_six(text: str) -> np.ndarray:
    p = np.array(text.split(), dtype=float)
    x = np.eye(4)
    x[:3, :3], x[:3, 3] = pin.rpy.rpyToMatrix(*p[3:]), p[:3]
    return x


@pytest.mark.parametrize("seed", range(4))
def test_links_stand_in_the_sdf_where_they_are(seed):
    model = zoo.random_model(seed, 6, kinds=("revolute", "prismatic", "spherical", "universal", "helical", "fixed"))
    model = model.without_losses()
    for name, x in sdf_poses(sdf_writer.dumps(model).text).items():
        same(x, body_pose(model, model.neutral(), name), 1e-13)


def test_loops_of_an_sdf_are_joints():
    model = zoo.four_bar().rezero(zoo.four_bar_start())
    written = sdf_writer.dumps(model)
    assert written.lost == ("that the joint has no motor: joint 'coupler_hinge', joint 'rocker_hinge'",)
    inside = ET.fromstring(written.text.split("?>", 1)[1]).find("model")
    joints = {j.get("name"): j for j in inside.findall("joint")}
    loop = model.loops[0]
    assert set(joints) == {*(j.name for j in model.joints), loop.name}
    found = joints[loop.name]
    assert (found.get("type"), found.find("child").text) == ("revolute", loop.b)
    np.testing.assert_allclose(_of_six(found.find("pose").text)[:3, 3], loop.placement_b.position)
    assert any("open at neutral" in x for x in sdf_writer.dumps(zoo.four_bar()).lost)


def test_what_sdf_cannot_hold_is_named():
    model = zoo.chain(2).with_actuator("m", "joint1").with_gravity((0, 0, -1)).with_loop("tool", "world", "spherical")
    model = replace(model, joints=(replace(model.joints[0], armature=(1.0,), driven=True), model.joints[1]))
    lost = " ".join(sdf_writer.dumps(model).lost)
    for word in ("armatures", "driven", "actuators", "gravity", "open at neutral coordinates"):
        assert word in lost
    with says(UnsupportedError, "joint 'joint1': SDF has no planar joints"):
        sdf_writer.dumps(zoo.chain(2, "planar"))
    shared = zoo.chain(2).rename({"joint1": "link1"})
    assert sdf_writer.dumps(shared).remarks == (
        "joints that share their name with a body or frame, called ..._joint: 'link1'",
    )


# ---- Denavit-Hartenberg tables


@pytest.mark.parametrize("seed", range(12))
def test_any_serial_arm_is_a_table(seed):
    model = zoo.chain(5, seed=seed)
    rng = np.random.default_rng(seed)
    kinds = [
        type(sl.joints.Revolute())(rng.normal(size=3))
        if rng.uniform() < 0.6
        else sl.joints.Prismatic(rng.normal(size=3))
        for _ in range(5)
    ]
    joints = (replace(j, kind=k, damping=(0.1,)) for j, k in zip(model.joints, kinds, strict=True))
    model = replace(model, joints=tuple(joints), gravity=(1.0, 2.0, 3.0), frames=())
    written = dh_writer.dumps(model)
    assert written.lost == ()
    again = csv_loads(written.text, "x.csv")
    q, v = model.random_state(seed)
    assert [j.name for j in again.joints] == [j.name for j in model.joints]
    same(python(again).mass_matrix(q), python(model).mass_matrix(q), 1e-9)
    same(python(again).bias(q, v), python(model).bias(q, v), 1e-9)


@pytest.mark.parametrize("model", [zoo.puma(), zoo.stanford()], ids=["puma", "stanford"])
def test_a_table_reads_back_as_itself(model):
    again = csv_loads(dh_writer.dumps(model).text, "x.csv")
    assert dh_writer.dumps(model).lost == ()
    for a, b in zip(again.joints, model.joints, strict=True):
        same(a.placement.rotation, b.placement.rotation, 1e-15)
        same(a.placement.position, b.placement.position, 1e-15)
    for a, b in zip(again.bodies, model.bodies, strict=True):
        same(
            (a.inertia.mass, *a.inertia.center, *a.inertia.moments),
            (b.inertia.mass, *b.inertia.center, *b.inertia.moments),
            1e-14,
        )
    same(body_pose(again, np.ones(6), "tool"), body_pose(model, np.ones(6), "tool"), 1e-14)


@pytest.mark.parametrize("second", [(0, 0, 1), (0, 0, -1), (1, 0, 0), (0, 1, 0), (-1, 0, 0), (0, 1, 1)])
@pytest.mark.parametrize("at", [(0, 0, 0), (0, 0, 0.5), (0.5, 0, 0), (0.1, -0.2, 0.3)])
def test_parallel_meeting_and_skew_axes_all_have_rows(second, at):
    b = sl.Builder("x").body("a", 1.0, (0.1, 0.2, 0.3), (1, 1.2, 1.1)).body("b", 2.0, (0.3, 0.1, 0), (1, 1.5, 1.2))
    model = b.revolute("one", "world", "a").revolute("two", "a", "b", second, at).build()
    again = csv_loads(dh_writer.dumps(model).text, "x.csv")
    q, v = model.random_state(1)
    same(python(again).mass_matrix(q), python(model).mass_matrix(q), 1e-13)
    same(python(again).bias(q, v), python(model).bias(q, v), 1e-13)
    assert again.joint("one").placement == Placement()


def test_what_a_table_cannot_hold_is_named(tmp_path):
    with says(UnsupportedError, "x.csv: joint 'root': a Denavit-Hartenberg table has no free joints"):
        zoo.quadruped().save(tmp_path / "x.csv")
    with says(ModelError, "'a\\nb': a cell of a table cannot hold such spaces; rename it"):
        zoo.puma().rename({"joint1": "a\nb"}).save(tmp_path / "x.csv")
    with says(UnsupportedError, "it branches off at"):
        zoo.tree(4).save(tmp_path / "x.csv")
    model = zoo.puma().with_loop("tool", "world", "spherical").with_sensor("s", "imu", "tool").with_frame("f", "link2")
    model = replace(model, couplings=(Coupling("gear", "joint2", "joint1"),))
    with says(
        UnsupportedError, "x.csv: CSV cannot hold loops: 'tool_world'; couplings: 'gear'; sensors: 's'; frames: 'f'."
    ):
        model.save(tmp_path / "x.csv")
    assert list(tmp_path.iterdir()) == []


def test_kinds_with_an_offset_are_written_where_they_stand():
    b = (
        sl.Builder("x")
        .body("a", 1.0, inertia=(1, 1, 1))
        .body("b", 1.0, inertia=(1, 1, 1))
        .frame("tool", "b", (1, 2, 3))
    )
    b.joint("one", Revolute("z", offset=0.3), "world", "a", (0.1, 0, 0))
    model = b.joint("two", Universal("x", "y", offset=0.2), "a", "b", (0, 0.2, 0), (0.1, 0.2, 0.3)).build()
    again = urdf_loads(urdf_writer.dumps(model).text)
    q = np.array((0.1, 0.2, 0.3))
    same(body_pose(again, q, "tool"), body_pose(model, q, "tool"), 1e-13)


# ---- robots that people have

ROBOTS = (
    "talos_data/robots/talos_full_v2.urdf",
    "tiago_description/robots/tiago_no_hand.urdf",
    "anymal_b_simple_description/robots/anymal.urdf",
    "pr2_description/urdf/pr2.urdf",
)


@pytest.mark.filterwarnings("ignore::spanloop.SpanloopWarning")
@pytest.mark.parametrize("name", ROBOTS)
def test_a_real_robot_is_the_same_in_pinocchio_and_mujoco(name):
    try:
        wheel = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    file = Path(str(wheel.locate_file("cmeel.prefix/share/example-robot-data/robots"))) / name
    model = replace(sl.load(file).without_losses(), couplings=())
    q, v = model.random_state(1)
    expected = python(model).bias(q, v)
    peer = pin.buildModelFromXML(urdf_writer.dumps(model).text)
    order = PinocchioOrder(model, list(peer.names), list(peer.nqs))
    same(order.v_from(pin.nle(peer, peer.createData(), order.q_to(q), order.v_to(v))), expected, 1e-12)
    other = mujoco.MjModel.from_xml_string(mjcf_writer.dumps(model).text)
    data = mujoco.MjData(other)
    names = [other.joint(k).name for k in range(other.njnt)]
    data.qpos[:] = [q[model.q_slice(n)][0] for n in names]
    data.qvel[:] = [v[model.v_slice(n)][0] for n in names]
    mujoco.mj_forward(other, data)
    same(data.qfrc_bias, [expected[model.v_slice(n)][0] for n in names], 1e-12)


def test_another_extension_lists_the_formats_and_a_folder_its_files(tmp_path):
    with says(InputError, "a.yaml: the extension is '.yaml'; expected .toml, .urdf, .xml"):
        sl.zoo.puma().save(tmp_path / "a.yaml")
    with says(InputError, "a.yaml: the extension is '.yaml'; expected .urdf, .xml"):
        sl.load("a.yaml")
    sl.zoo.puma().save(tmp_path / "arm.toml")
    with says(FileError, "is a folder; expected a file. Files in it that can be read: arm.toml"):
        sl.load(tmp_path)
