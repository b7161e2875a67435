"""States and forces converted to MuJoCo's order mean there what they mean here."""

from __future__ import annotations

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from mjcf_files import FLOATING, TREES  # noqa: E402
from mujoco_peer import Peer  # noqa: E402
from sentences import says  # noqa: E402

import spanloop as sl  # noqa: E402
from spanloop import zoo  # noqa: E402
from spanloop.errors import InputError, UnsupportedError  # noqa: E402

# products of some ten rotations, lengths of order 1
ROUNDING = 1e-13

SHUFFLED = """<mujoco><worldbody>
<body name="c"><joint name="third" axis="0 0 1"/><geom size="0.1"/></body>
<body name="a"><joint name="first" axis="1 0 0"/><geom size="0.1"/></body>
<body name="b"><joint name="second" type="ball"/><geom size="0.1"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("name", TREES)
def test_neutral_coordinates_are_those_of_the_file(name):
    """Except where a joint has a `ref`: its reading is MuJoCo's, and 0 is another position."""
    peer = Peer(TREES[name])
    rest = peer.order.q_from(peer.theirs.qpos0)
    read = {
        j.name: peer.theirs.joint(j.name).qpos0[0] for j in peer.model.joints if j.name in ("twist", "grip", "hinge")
    }
    expected = peer.model.neutral()
    for joint, value in read.items():
        expected[peer.model.q_slice(joint)] = value
    np.testing.assert_allclose(rest, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_converted_velocities_move_the_coordinates_alike(seed):
    """mj_integratePos over a short time is our integrate, to the second order by which their steps differ."""
    peer = Peer(FLOATING)
    q, v = peer.model.random_state(seed)
    h = 1e-5
    qpos = peer.order.q_to(q)
    mujoco.mj_integratePos(peer.theirs, qpos, peer.order.v_to(q, v), h)
    apart = peer.robot.difference(peer.robot.integrate(q, h * v), peer.order.q_from(qpos))
    # MuJoCo moves the origin along the world's velocity, we along the body's, which turns: v² h²/2
    assert np.abs(apart).max() < 10.0 * h * h


@pytest.mark.parametrize("seed", range(5))
def test_velocities_are_those_that_mujoco_sees(seed):
    peer = Peer(FLOATING)
    q, v = peer.model.random_state(seed)
    peer.set(q, v)
    for name in ("trunk", "foot", "tail", "ball", "door"):
        theirs = np.zeros(6)
        body = peer.theirs.body(name).id
        mujoco.mj_objectVelocity(peer.theirs, peer.data, mujoco.mjtObj.mjOBJ_XBODY, body, theirs, 0)
        ours = peer.robot.jacobian(q, peer.frame(name)) @ v  # both [angular; linear] in world axes
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=ROUNDING * 10)


@pytest.mark.parametrize("seed", range(5))
def test_accelerations_are_those_that_mujoco_finds(seed):
    peer = Peer(FLOATING)
    q, v = peer.model.random_state(seed)
    tau = np.random.default_rng(seed).normal(size=peer.model.nv)
    peer.theirs.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    peer.set(q, v, tau)
    ours = peer.robot.forward_dynamics(q, v, tau)
    size = np.abs(ours).max()
    # rounding times the condition of a mass matrix with a light foot
    np.testing.assert_allclose(peer.order.a_to(q, v, ours), peer.data.qacc, rtol=0, atol=1e-11 * size)
    np.testing.assert_allclose(peer.order.a_from(q, v, peer.data.qacc), ours, rtol=0, atol=1e-11 * size)


@pytest.mark.parametrize("seed", range(3))
def test_a_force_on_a_body_moves_it_alike(seed):
    peer = Peer(FLOATING)
    q, v = peer.model.random_state(seed)
    peer.theirs.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    push = np.random.default_rng(seed).normal(size=6)
    body = peer.theirs.body("foot").id
    peer.set(q, v)
    arm = peer.data.xipos[body] - peer.data.xpos[body]
    peer.data.xfrc_applied[body] = peer.order.force_to(push, arm)
    peer.set(q, v)
    ours = peer.robot.forward_dynamics(q, v, np.zeros(peer.model.nv), forces={"foot": push})
    np.testing.assert_allclose(peer.order.a_to(q, v, ours), peer.data.qacc, rtol=0, atol=1e-11 * np.abs(ours).max())
    np.testing.assert_allclose(peer.order.force_from(peer.order.force_to(push, arm), arm), push, atol=1e-15)


@pytest.mark.parametrize("seed", range(3))
def test_there_and_back_is_the_identity_on_batches(seed):
    peer = Peer(FLOATING)
    states = [peer.model.random_state(k + 10 * seed) for k in range(6)]
    q = np.array([s[0] for s in states]).reshape(2, 3, -1)
    v = np.array([s[1] for s in states]).reshape(2, 3, -1)
    o = peer.order
    np.testing.assert_allclose(o.q_from(o.q_to(q)), q, rtol=0, atol=1e-15 * 10)
    for there, back in ((o.v_to, o.v_from), (o.tau_to, o.tau_from)):
        np.testing.assert_allclose(back(q, there(q, v)), v, rtol=0, atol=1e-15 * 10)
    np.testing.assert_allclose(o.a_from(q, v, o.a_to(q, v, 2.0 * v)), 2.0 * v, rtol=0, atol=1e-14)
    np.testing.assert_allclose(o.q_to(q)[1, 2], o.q_to(q[1, 2]), rtol=0, atol=1e-15)
    np.testing.assert_allclose(o.v_to(q[0, 0], v)[1, 2], o.v_to(q[0, 0], v[1, 2]), rtol=0, atol=1e-15)  # one q, many v


@pytest.mark.parametrize("seed", range(3))
def test_power_is_the_same_number(seed):
    peer = Peer(FLOATING)
    q, v = peer.model.random_state(seed)
    tau = np.random.default_rng(seed).normal(size=peer.model.nv)
    assert peer.order.tau_to(q, tau) @ peer.order.v_to(q, v) == pytest.approx(tau @ v, abs=1e-13)


def test_the_order_of_joints_may_differ():
    builder = sl.Builder("three")
    for name, kind in (("first", "revolute"), ("second", "spherical"), ("third", "revolute")):
        builder.body(f"of_{name}", 1.0, inertia=(1.0, 1.0, 1.0)).joint(name, kind, "world", f"of_{name}")
    model = builder.build()
    order = sl.MujocoOrder(model, mujoco.MjModel.from_xml_string(SHUFFLED))
    q = np.array([0.1, 1.0, 0.0, 0.0, 0.0, 0.3])
    assert order.q_to(q).tolist() == [0.3, 0.1, 1.0, 0.0, 0.0, 0.0]
    assert order.v_to(q, [1.0, 2.0, 3.0, 4.0, 5.0]).tolist() == [5.0, 1.0, 2.0, 3.0, 4.0]


def test_missing_and_extra_names_are_said():
    model = zoo.pendulum(2)
    with says(InputError, "MuJoCo's joint 'hinge3' is no moving joint of model 'pendulum2'; did you mean"):
        sl.MujocoOrder(model, ["hinge1", "hinge2", "hinge3"])
    with says(InputError, "joint 'hinge2' of model 'pendulum2' is not among MuJoCo's; did you mean 'hinge1'?"):
        sl.MujocoOrder(model, ["hinge1"])
    with says(InputError, "MuJoCo's joint names repeat; expected each once"):
        sl.MujocoOrder(model, ["hinge1", "hinge2", "hinge2"])
    order = sl.MujocoOrder(model, ["hinge1", "hinge2"])
    with says(InputError, "q has shape (3,); expected (..., 2)"):
        order.q_to(np.zeros(3))
    with says(InputError, "v has shape (3,); expected (..., 2)"):
        order.v_to(np.zeros(2), np.zeros(3))


def test_kinds_that_mujoco_does_not_have_are_refused():
    builder = sl.Builder("screw").body("a", 1.0, inertia=(1.0, 1.0, 1.0))
    model = builder.helical("j", "world", "a", pitch=0.1).build()
    with says(UnsupportedError, "joint 'j': MuJoCo has no helical joint"):
        sl.MujocoOrder(model, ["j"])
