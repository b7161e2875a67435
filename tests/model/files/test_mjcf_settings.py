"""MJCF: settings that change inertias and gravity, and tendons that couple joints, beside MuJoCo at random states."""

import numpy as np
import pytest

pytest.importorskip("mujoco")
import mujoco
from mujoco_peer import Peer

import spanloop as sl
from spanloop.errors import FileError

ROUNDING = 1e-10  # of the largest number

WRITTEN = '<inertial pos="0.1 0 0" mass="{mass}" diaginertia="{moments}"/>'
BOX = '<geom type="box" size="0.1 0.2 0.3" pos="0.1 0.1 0" euler="10 20 30" group="{group}"/>'


def arm(settings: str = "", mass: float = 2.0, moments: str = "0.1 0.2 0.25", second: str = "", group: int = 0) -> str:
    """Two links: the first with an inertia in the file and a box, the second with boxes only."""
    box = BOX.format(group=group)
    return f"""<mujoco><compiler {settings}/><option gravity="0.3 -0.2 -9"/><worldbody>
    <body name="a" pos="0 0 1"><joint name="j" axis="0 1 0.2"/>{WRITTEN.format(mass=mass, moments=moments)}{box}
    <body name="b" pos="0.3 0 0" {second}><joint name="k" axis="1 0 0.1" type="ball"/>{BOX.format(group=0)}
    <geom type="capsule" size="0.05 0.1" pos="0.4 0 0" mass="0.7"/></body></body></worldbody></mujoco>"""


SETTINGS = {
    "as written": arm(),
    "inertiafromgeom true": arm('inertiafromgeom="true"'),
    "inertiagrouprange": arm('inertiafromgeom="true" inertiagrouprange="0 0"'),
    "balanceinertia": arm('balanceinertia="true"', moments="0.1 0.1 0.5"),
    "boundmass": arm('boundmass="5"'),
    "boundinertia": arm('boundinertia="0.3"'),
    "settotalmass": arm('settotalmass="11"'),
    "all of them": arm('settotalmass="7" boundinertia="0.15" boundmass="3" inertiafromgeom="true"'),
    "gravcomp": arm(second='gravcomp="0.75"').replace('name="a"', 'name="a" gravcomp="0.75"'),
    "full gravcomp": arm(second='gravcomp="1"').replace('name="a"', 'name="a" gravcomp="1"'),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("case", SETTINGS)
def test_the_equations_of_motion_are_mujocos(case, seed):
    peer = Peer(SETTINGS[case])
    q, v = peer.model.random_state(seed)
    peer.set(q, v)
    M = peer.mass_matrix()
    ours = peer.order.mass_matrix_to(q, peer.robot.mass_matrix(q))
    np.testing.assert_allclose(ours, M, rtol=0, atol=ROUNDING * np.abs(M).max())
    a = np.random.default_rng(seed).normal(size=peer.model.nv)
    expected = M @ peer.order.a_to(q, v, a) + peer.data.qfrc_bias - peer.data.qfrc_passive
    found = peer.order.tau_to(q, peer.robot.inverse_dynamics(q, v, a))
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING * np.abs(expected).max())


def test_gravcomp_of_all_that_moves_is_less_gravity():
    model = Peer(SETTINGS["gravcomp"]).model
    assert model.gravity == pytest.approx((0.075, -0.05, -2.25))
    assert any(n.startswith("gravcomp, alike for all that moves, read as less gravity: body 'a'") for n in model.notes)


# ---- tendons

COUPLED = """<mujoco><compiler angle="radian"/><worldbody>
<body name="a"><joint name="p" axis="0 0 1" ref="0.3"/><geom size="0.1"/>
<body name="b" pos="1 0 0"><joint name="r" axis="0 0 1"/><geom size="0.1"/>
<body name="c" pos="1 0 0"><joint name="s" type="slide" axis="1 0 0" ref="-0.2"/><geom size="0.1"/></body></body></body>
</worldbody><tendon><fixed name="one"><joint joint="p" coef="2"/><joint joint="r" coef="-3"/></fixed>
<fixed name="two"><joint joint="s" coef="0.5"/></fixed><fixed name="all"><joint joint="p" coef="1"/>
<joint joint="r" coef="1"/><joint joint="s" coef="1"/></fixed></tendon><equality>{}</equality></mujoco>"""


@pytest.mark.parametrize("seed", range(2))
def test_an_equality_of_a_tendon_over_two_joints_is_a_coupling(seed):
    peer = Peer(COUPLED.format('<tendon tendon1="one" polycoef="0.4 0 0 0 0"/>'))
    (c,) = peer.model.couplings
    q, v = peer.model.random_state(seed)
    q[peer.model.q_slice(c.joint)] = c.ratio * q[peer.model.q_slice(c.source)] + c.offset
    peer.set(q, v)
    row = peer.data.efc_J.reshape(-1, 3)[0]
    assert abs(peer.data.efc_pos[0]) < 1e-14
    assert row @ [c.ratio, 1.0, 0.0] == pytest.approx(0.0, abs=1e-15)  # of p and r


def test_two_tendons_of_one_joint_each_are_a_coupling_too():
    text = COUPLED.format('<tendon tendon1="two" tendon2="alone" polycoef="0.1 0.7 0 0 0"/>')
    text = text.replace("<tendon>", '<tendon><fixed name="alone"><joint joint="r" coef="-2"/></fixed>', 1)
    peer = Peer(text)
    (c,) = peer.model.couplings
    assert (c.joint, c.source) == ("s", "r")
    q, v = peer.model.random_state(1)
    q[peer.model.q_slice("s")] = c.ratio * q[peer.model.q_slice("r")] + c.offset
    peer.set(q, v)
    assert abs(peer.data.efc_pos[0]) < 1e-14


def test_a_tendon_of_one_joint_holds_it():
    peer = Peer(COUPLED.format('<tendon tendon1="two" polycoef="0.1 0 0 0 0"/>'))
    (c,) = peer.model.couplings
    q = peer.robot.assemble(peer.model.neutral())
    assert c.joints == ("s",)
    assert q[peer.model.q_slice("s")] == pytest.approx(0.0)  # 0.5 (q + 0.2) = 0.1
    peer.set(q, np.zeros(3))
    assert abs(peer.data.efc_pos[0]) < 1e-10


def test_a_tendon_over_three_joints_is_left_out_with_a_warning():
    model = Peer(COUPLED.format('<tendon tendon1="all"/>')).model
    assert model.couplings == ()
    what = "left out, though it acts on the motion: equality constraint of a tendon that is no sum of two joints"
    assert any(n.startswith(what) for n in model.notes)


# ---- meshes that are missing, broken or huge

MESHED = """<mujoco><asset><mesh name="m" file="m.stl"/></asset><worldbody><body name="b"><joint/>
<geom type="mesh" mesh="m" {}/><geom size="0.1" mass="1"/></body></worldbody></mujoco>"""


def _missing(path):
    pass


def _broken(path):
    path.write_bytes(b"solid nothing of the kind")


def _huge(path):
    with open(path, "wb") as file:
        file.truncate(65 * 2**20)


@pytest.mark.parametrize("make", [_missing, _broken, _huge])
@pytest.mark.parametrize("drawn_only", ['mass="0"', 'density="0"'])
def test_a_mesh_that_is_only_drawn_never_keeps_a_file_from_loading(tmp_path, make, drawn_only):
    make(tmp_path / "m.stl")
    (tmp_path / "m.xml").write_text(MESHED.format(drawn_only))
    model = sl.load(tmp_path / "m.xml")
    assert model.mass == pytest.approx(1.0)
    assert any(n.startswith("meshes not found: mesh 'm.stl'") for n in model.notes) == (make is _missing)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_missing, "m.xml:1: a body's inertia comes from a mesh. mesh 'm.stl': there is no such file in the folder"),
        (_broken, "m.xml:1: MuJoCo says: "),
        (_huge, "m.xml:1: a body's inertia comes from a mesh. mesh 'm.stl': has 65 MB; a mechanism's file may have 64"),
    ],
)
def test_a_mesh_that_gives_an_inertia_must_be_readable(tmp_path, make, words):
    make(tmp_path / "m.stl")
    (tmp_path / "m.xml").write_text(MESHED.format(""))
    with pytest.raises(FileError) as caught:
        sl.load(tmp_path / "m.xml")
    assert str(caught.value).startswith(words)


def test_a_group_outside_the_range_of_inertias_needs_no_mesh(tmp_path):
    text = MESHED.format('group="4"').replace("<asset>", '<compiler inertiagrouprange="0 3"/><asset>')
    (tmp_path / "m.xml").write_text(text)
    assert sl.load(tmp_path / "m.xml").mass == pytest.approx(1.0)


def test_a_sensor_of_a_mesh_is_left_out_with_the_mesh(tmp_path):
    text = MESHED.format('mass="0" name="g"').replace(
        "</mujoco>", '<sensor><tactile geom="g" mesh="m"/></sensor></mujoco>'
    )
    if not hasattr(mujoco.mjtSensor, "mjSENS_TACTILE"):
        pytest.skip("this MuJoCo has no sensors of meshes")
    (tmp_path / "m.xml").write_text(text)
    model = sl.load(tmp_path / "m.xml")
    assert model.sensors == ()
    assert any(n.startswith("sensors of neither joint, body nor site left out") for n in model.notes)
