"""The live viewer without a browser: what is in the scene, what sliders do to loops, live motion, the server."""

from __future__ import annotations

import html
import re
import socket
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock
from urllib.request import urlopen

import numpy as np
import pytest
from motions import batch_of, four_bar_run
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, UnsupportedError
from spanloop.model.parts import Geometry
from spanloop.view.scene import scene
from spanloop.view.viewer import Viewer
from spanloop.view.viewer.camera import camera, upward
from spanloop.view.viewer.drag import drag
from spanloop.view.viewer.live import Live
from spanloop.view.viewer.panels import Panels
from spanloop.view.viewer.plain_text import plain
from spanloop.view.viewer.server import is_allowed
from spanloop.view.viewer.session import Session, Timeline, playback
from spanloop.view.viewer.viser_shapes import quaternions

CLOSED = {
    "four_bar": (),
    "five_bar": (),
    "slider_crank": (),
    "andrews": (),
    "bricard": (),
    "stewart": (),
    "delta": (),
    "arms_with_object": (2,),
    "linkage_leg": (),
}


def made(name, *arguments):
    """A closed mechanism of the zoo, and its start."""
    return getattr(sl.zoo, name)(*arguments), getattr(sl.zoo, f"{name}_start")(*arguments)


# ---- posing


@pytest.mark.parametrize("name", CLOSED)
def test_sliders_keep_the_loops_closed(name):
    model, q = made(name, *CLOSED[name])
    session = Session(sl.Dynamics(model), q)
    assert len(session.handles) == session.robot.mobility(q)
    for way in (0.07, -0.12, 0.3):
        for handle in session.handles:
            session.move(handle, session.value(handle) + way)
            assert np.abs(session.robot.closure_error(session.q)).max() <= 1e-10


def test_the_other_sliders_stay_where_they_are():
    model, q = made("stewart")
    session = Session(sl.Dynamics(model), q)
    before = [session.value(h) for h in session.handles]
    session.move(session.handles[2], before[2] + 0.2)
    before[2] += 0.2
    np.testing.assert_allclose([session.value(h) for h in session.handles], before, rtol=0.0, atol=1e-14)


def test_a_crank_can_be_dragged_through_a_full_turn():
    model, q = made("four_bar")
    robot = sl.Dynamics(model)
    chosen = robot.independent_coordinates(q)
    there = drag(robot, q, chosen, 0, 2.0 * np.pi)
    assert (there.distance, there.message) == (2.0 * np.pi, "")
    np.testing.assert_allclose(np.cos(there.q - q), 1.0, atol=1e-12)


def test_a_slider_that_cannot_move_further_gives_the_reason():
    model, q = made("stewart")
    robot = sl.Dynamics(model)
    chosen = robot.independent_coordinates(q)
    found = drag(robot, q, chosen, chosen.dofs[0], 10.0)
    assert 0.0 < found.distance < 10.0
    assert found.message.startswith("slide1 cannot go further: loop ")
    assert np.abs(robot.closure_error(found.q)).max() <= 1e-10


def test_a_slider_stops_at_limits_also_of_joints_that_follow():
    b = sl.Builder("limited")
    b.body("crank", 1.0).body("arm", 1.0)
    b.revolute("first", "world", "crank", "y", (0, 0, 0), lower=-0.5, upper=0.4)
    b.revolute("second", "crank", "arm", "y", (1, 0, 0))
    model = b.build()
    robot = sl.Dynamics(model)
    found = drag(robot, model.neutral(), robot.independent_coordinates(), 0, 2.0)
    assert found.message == "first cannot go further: joint 'first' is at its limit"
    np.testing.assert_allclose(found.distance, 0.4, atol=3e-5)


def test_dofs_without_a_coordinate_are_moved_from_where_they_are():
    model = sl.zoo.quadruped()
    session = Session(sl.Dynamics(model), model.neutral())
    turn = session.handles[2]
    assert (turn.name, turn.unit, turn.at) == ("root[2]", "rad", None)
    session.move(turn, 0.5)
    assert session.value(turn) == 0.5
    np.testing.assert_allclose(session.q[:4], (np.cos(0.25), 0.0, 0.0, np.sin(0.25)), atol=1e-14)


def test_open_loops_are_seen_closed_on_demand_and_not_simulated():
    model, q = made("five_bar")
    q = q.copy()
    q[1] += 0.3
    session = Session(sl.Dynamics(model), q)
    assert session.errors()[0] > 0.1
    session.start()
    assert session.mode == "posing"
    assert session.message.endswith("close the loops first")
    session.close()
    assert session.errors()[0] <= 1e-10


# ---- live


@pytest.mark.slow
def test_live_motion_keeps_energy_and_loops():
    model, q = made("four_bar")
    session = Session(sl.Dynamics(model), q)
    session.live.settings.hold = False
    before = sum(session.energy())
    session.start()
    for _ in range(60):
        assert session.tick(1.0 / 60.0)
    assert 0.99 < session.live.now.time < 1.0 + 1e-9
    assert session.energy()[0] > 1.0  # it moves
    # rk4 at 1 ms over a second of this linkage: 4e-12 J were measured
    assert abs(sum(session.energy()) - before) <= 1e-9
    assert max(session.errors()) <= 1e-10


def test_live_motion_is_that_of_simulate():
    model, q = made("four_bar")
    live = Live(sl.Dynamics(model), q)
    live.settings.hold = False
    for _ in range(20):
        live.advance(0.01)
    run = sl.simulate(model, q, duration=0.2)
    np.testing.assert_allclose(live.now.q, run.q[-1], rtol=0.0, atol=1e-11)


def test_gravity_can_be_taken_away_exactly():
    model, q = made("four_bar")
    robot = sl.Dynamics(model)
    live = Live(robot, q, robot.complete_velocity(q, {"crank_hinge": 3.0}))
    live.settings.gravity, live.settings.hold = 0.0, False
    live.advance(0.1)
    run = sl.simulate(model.with_gravity((0, 0, 0)), q, live_start(robot, q), duration=0.1)
    np.testing.assert_allclose(live.now.q, run.q[-1], rtol=0.0, atol=1e-11)


def live_start(robot, q):
    return robot.complete_velocity(q, {"crank_hinge": 3.0})


def test_damping_takes_energy_and_a_push_gives_some():
    model, q = made("four_bar")
    robot = sl.Dynamics(model)
    live = Live(robot, q)
    live.settings.damping, live.settings.hold = 1.0, False
    live.advance(0.1)
    damped = robot.energy(live.now.q, live.now.v).sum()
    assert damped < robot.energy(q, np.zeros(model.nv)).sum()
    live.restart(q)
    live.settings.damping, live.settings.gravity = 0.0, 0.0
    live.settings.body, live.settings.force = "coupler", np.array([10.0, 0.0, 0.0])
    assert np.abs(live.now.v).max() == 0.0
    live.advance(0.05)
    assert np.abs(live.now.v).max() > 1e-3


def test_actuated_joints_are_held_and_let_go():
    model, q = made("four_bar")
    live = Live(sl.Dynamics(model), q)
    assert live.held == ("crank_hinge",)
    live.settings.body, live.settings.force = "coupler", np.array([50.0, 0.0, 0.0])
    live.advance(0.1)
    np.testing.assert_allclose(live.now.q, q, atol=1e-9)
    live.settings.hold = False
    live.advance(0.1)
    assert np.abs(live.now.q - q).max() > 1e-3


def test_held_joints_carry_the_weight():
    """The hinge of a held pendulum bears the moment of gravity; let go, it bears none about its axis."""
    session = Session(sl.Dynamics(sl.zoo.pendulum(1)), np.array([np.pi / 2]))
    (hinge,) = session.robot.model.joints
    moment = abs(session.robot.gravity_torques(session.q)[0])
    assert abs(session.reactions()[hinge.name][:3] @ hinge.kind.axis) == pytest.approx(moment)
    session.live.settings.hold = False
    assert abs(session.reactions()[hinge.name][:3] @ hinge.kind.axis) < 1e-9 * moment


def test_a_joint_rebounds_at_its_limit():
    b = sl.Builder("m").body("a", 1.0, center=(1.0, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
    model = b.revolute("j", "world", "a", "y", limits=(-1.0, 0.1), actuated=False).build()
    live = Live(sl.Dynamics(model), np.zeros(1))
    farthest = 0.0
    for _ in range(80):
        live.advance(0.025)
        farthest = max(farthest, live.now.q[0])
    assert not live.ended
    assert 0.1 < farthest < 0.15  # 1.3 rad/s, stopped by a spring of 80 rad/s


def test_a_mechanism_that_leaves_the_picture_is_paused():
    model = sl.Builder("m").body("a", 1.0, inertia=(0.1, 0.1, 0.1)).free("j", "world", "a").build()
    session = Session(sl.Dynamics(model), model.neutral())
    session.start()
    for _ in range(200):
        session.tick(0.05)
    assert session.mode == "posing"
    assert session.message.startswith("it has left the picture")
    session.start()  # it goes on from there
    session.tick(0.05)
    assert session.mode == "live"


def test_reactions_of_what_acts_live_are_those_of_the_model_without_gravity():
    model, q = made("four_bar")
    session = Session(sl.Dynamics(model), q)
    session.live.settings.gravity, session.live.settings.hold = 0.0, False
    session.live.settings.body, session.live.settings.force = "coupler", np.array([3.0, 0.0, -2.0])
    found = session.reactions()
    push = {"coupler": session.live.forces()["coupler"]}
    weight = -model.body("coupler").inertia.mass * np.array(model.gravity)
    lever = session.robot.pose(q, "coupler")[:3, :3] @ model.body("coupler").inertia.center
    push["coupler"] = push["coupler"] - np.concatenate([np.cross(lever, weight), weight])
    free = sl.Dynamics(model.with_gravity((0, 0, 0))).reactions(q, np.zeros(3), np.zeros(3), forces=push)
    for name in free:
        np.testing.assert_allclose(found[name], free[name], atol=1e-10)


def test_a_driven_joint_keeps_its_speed_live():
    model, q = made("four_bar")
    driven = model.drive("crank_hinge")
    robot = sl.Dynamics(driven)
    live = Live(robot, q, robot.complete_velocity(q, {"crank_hinge": 2.0}))
    live.settings.damping, live.settings.hold = 1.0, False
    live.advance(0.1)
    np.testing.assert_allclose(live.now.v[0], 2.0, atol=1e-9)


# ---- a run


def test_a_timeline_plays_in_real_time_and_begins_again():
    line = Timeline(four_bar_run())
    line.advance(0.1)
    assert line.run.times[line.sample] == pytest.approx(0.1)
    line.speed = 0.5
    line.advance(0.1)
    assert line.now == pytest.approx(0.15)
    line.speed = 1.0
    line.advance(0.2)
    assert line.now == pytest.approx(0.05)
    line.repeat = False
    line.advance(1.0)
    assert (line.now, line.playing) == (line.last, False)


def test_samples_that_nobody_sees_are_left_out_but_not_the_last():
    run = four_bar_run()
    seen = playback(run)
    assert len(seen) < len(run)
    assert (seen.times[0], seen.times[-1]) == (run.times[0], run.times[-1])


def test_a_run_is_seen_as_it_was_and_its_trail_ends_where_it_is():
    run = four_bar_run()
    session = Session(run.robot, run.q[0], run)
    session.seek(0.2)
    k = session.timeline.sample
    np.testing.assert_array_equal(session.q, session.timeline.run.q[k])
    trail = session.trail("coupler")
    assert len(trail) == k + 1
    np.testing.assert_allclose(trail[-1], run.robot.pose(session.q, "coupler")[:3, 3], atol=1e-14)
    np.testing.assert_array_equal(session.reactions()["closing"], session.timeline.run["closing"].force[k])


def test_one_run_of_a_batch_is_chosen():
    one = four_bar_run()
    session = Session(one.robot, one.q[0], batch_of(one, (len(one), 100)))
    assert session.timeline.last == pytest.approx(one.times[-1])
    session.choose(1)
    assert session.timeline.last < 0.11


# ---- cameras and turns


def test_a_planar_mechanism_is_seen_from_in_front():
    up = np.array((0.0, 0.0, 1.0))
    points = np.array([(0, 0, 0), (1, 0, 0), (1, 0, 1), (0.2, 0, 0.8)], float)
    seen = camera(points, up)
    way = seen.target - seen.position
    assert abs(way[1]) > 0.9 * np.linalg.norm(way)
    lying = camera(points[:, [0, 2, 1]], up)
    assert (lying.position - lying.target)[2] > 0.7 * np.linalg.norm(lying.position - lying.target)
    np.testing.assert_allclose(upward((0.0, -9.81, 0.0)), (0, 1, 0))
    np.testing.assert_allclose(upward((0.0, 0.0, 0.0)), up)


def test_quaternions_turn_as_their_matrices_do():
    from spanloop.math.quaternion import matrix

    rng = np.random.default_rng(5)
    e = rng.normal(size=(20, 4))
    e /= np.linalg.norm(e, axis=1)[:, None]
    turns = np.array([matrix(tuple(x)) for x in e])
    again = np.array([matrix(tuple(x)) for x in quaternions(turns)])
    np.testing.assert_allclose(again, turns, atol=1e-12)


# ---- meshes


def with_mesh(folder, data):
    (folder / "part.stl").write_bytes(data)
    (folder / "arm.urdf").write_text(
        """<robot name="arm"><link name="base"/><link name="part"><inertial><mass value="1"/>
        <inertia ixx="0.02" iyy="0.03" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial><visual><origin xyz="0 0 1"/>
        <geometry><mesh filename="part.stl" scale="2 2 2"/></geometry></visual></link>
        <joint name="hinge" type="continuous"><parent link="base"/><child link="part"/><axis xyz="0 1 0"/></joint>
        </robot>"""
    )
    return sl.load(folder / "arm.urdf")


def test_a_mesh_is_drawn_with_its_scale(tmp_path):
    trimesh = pytest.importorskip("trimesh", reason="it makes the mesh")
    box = trimesh.creation.box((0.2, 0.4, 0.6))
    seen = scene(with_mesh(tmp_path, box.export(file_type="stl")))
    (shape,) = seen.bodies[-1].shapes
    assert (shape.kind, seen.notes) == ("mesh", ())
    np.testing.assert_allclose(np.ptp(shape.mesh.vertices, axis=0), (0.4, 0.8, 1.2), rtol=1e-6)


def test_a_mesh_that_cannot_be_read_is_replaced_with_a_note(tmp_path):
    seen = scene(with_mesh(tmp_path, b"no mesh at all"))
    assert all(s.kind != "mesh" for b in seen.bodies for s in b.shapes)
    assert seen.notes[-1].startswith("mesh 'part.stl' ")
    assert seen.notes[-1].endswith("a simple shape replaces it")


# ---- text from models

SCRIPT = "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>![x](/etc/passwd) [y](javascript:z) **b** `c` &lt;"


def test_text_from_a_model_holds_no_markup():
    sent = plain(SCRIPT + "\n\n# head\x1b[2J\u202e")
    assert re.sub(r"&#[0-9]+;", "", sent).isascii()
    assert not re.search(r"[^\w &#;]|&(?!#)", sent)
    assert html.unescape(sent) == SCRIPT + " # head\\u001b[2J\\u202e"


def test_every_text_that_viser_interprets_is_escaped():
    """Markdown is all that viser interprets; notes and messages hold names of bodies, joints, loops and files."""
    model = nasty_model()
    session = Session(sl.Dynamics(model), model.neutral())
    seen, sent = scene(model, session.q, "."), []
    gui = MagicMock()
    gui.add_markdown = lambda text: sent.append(text) or MagicMock(content=text)
    gui.add_slider = lambda *a, **k: MagicMock(min=a[1], max=a[2], step=a[3], value=a[4])
    panels = Panels(gui, seen, session, lambda *_: None)
    assert any("iframe" in html.unescape(text) for text in sent)
    assert all("<" not in text and "![" not in text for text in sent)
    session.message = f"joint {SCRIPT!r} is at its limit"
    viewer = MagicMock(session=session, _forces=False, nodes=MagicMock(open=[]))
    assert "iframe" in Viewer._status(viewer)
    assert "<" not in Viewer._status(viewer)
    assert panels.sliders[0][0].name.startswith("<iframe")


def nasty_model():
    """A mechanism whose every name is a script."""
    b = sl.Builder(SCRIPT)
    b.body(SCRIPT, 1.0, center=(0, 0, 1), inertia=(0.1, 0.1, 0.1))
    b.revolute(SCRIPT, "world", SCRIPT, "y", lower=-1.0, upper=1.0)
    model = b.build()
    mesh = Geometry("mesh", (), SCRIPT + ".stl")
    return replace(model, bodies=tuple(replace(x, geometry=(mesh,)) for x in model.bodies))


# ---- with viser, without a browser


@pytest.fixture(scope="module")
def viewer():
    pytest.importorskip("viser", reason="the live viewer needs viser")
    from spanloop.view.viewer import show

    model, q = made("four_bar")
    with show(model, q, block=False) as shown:
        yield shown


def test_the_scene_holds_every_body_joint_and_closure(viewer):
    nodes, model = viewer.nodes, viewer.session.robot.model
    assert len(nodes.body_nodes) == model.n_bodies + 1
    assert len(nodes.layers["joints"]) == len(model.joints)
    assert len(nodes.layers["closures"]) == 2 * len(model.loops)
    assert len(nodes.layers["bodies"]) >= model.n_bodies
    assert [handle.name for handle, _ in viewer.panels.sliders] == ["crank_hinge"]


def test_nodes_stand_where_the_bodies_are(viewer):
    from spanloop.math.quaternion import matrix

    session = viewer.session
    viewer.request("move", session.handles[0], session.value(session.handles[0]) + 0.4)
    viewer.settled()
    for node, body in zip(viewer.nodes.body_nodes[1:], session.robot.model.bodies, strict=True):
        pose = session.robot.pose(session.q, body.name)
        np.testing.assert_allclose(node.position, pose[:3, 3], atol=1e-6)
        np.testing.assert_allclose(matrix(tuple(node.wxyz)), pose[:3, :3], atol=1e-6)
    assert "all loops closed" in viewer.panels.status.content


def test_closures_turn_red_when_they_open(viewer):
    from spanloop.view import palette
    from spanloop.view.viewer.viser_shapes import rgb

    nodes, session = viewer.nodes, viewer.session
    nodes.place(session.poses(), [1e-3])
    assert {tuple(h.color) for h in nodes.layers["closures"]} == {rgb(palette.OPEN)}
    nodes.place(session.poses(), [1e-12])
    assert {tuple(h.color) for h in nodes.layers["closures"]} == {rgb(palette.CLOSED)}


def test_layers_forces_and_trails_come_and_go(viewer):
    viewer.request("show", "frames", True)
    viewer.request("forces", True)
    viewer.settled()
    assert all(h.visible for h in viewer.nodes.layers["frames"])
    assert "largest force" in viewer.panels.status.content
    assert all(h.opacity < 1.0 for h in viewer.nodes.layers["bodies"])
    viewer.request("show", "frames", False)
    viewer.request("forces", False)
    viewer.settled()
    assert not any(h.visible for h in viewer.nodes.layers["frames"])
    assert "largest force" not in viewer.panels.status.content
    assert all(h.opacity is None for h in viewer.nodes.layers["bodies"])


def test_start_pause_and_reset(viewer):
    viewer.request("reset")
    viewer.request("start")
    viewer.settled()
    end = time.monotonic() + 30.0
    while viewer.session.live.now.time < 0.05 and time.monotonic() < end:
        time.sleep(0.02)
    viewer.request("start")
    viewer.settled()
    assert viewer.session.mode == "posing"
    assert viewer.session.live.now.time >= 0.05
    assert np.abs(viewer.session.v).max() > 0.0
    viewer.request("reset")
    viewer.settled()
    np.testing.assert_array_equal(viewer.session.q, viewer.session.home)
    assert viewer.session.live.now.time == 0.0


def test_the_server_is_on_the_loopback_address_only(viewer):
    port = viewer.server.get_port()
    sockets = viewer.server.get_host(), viewer.url
    assert sockets == ("127.0.0.1", f"http://127.0.0.1:{port}")
    with urlopen(viewer.url, timeout=30) as answer:
        assert b"<html" in answer.read()
    listening = _listening(port)
    assert listening == {"0100007F"}, listening


@pytest.mark.parametrize(
    ("hosts", "origins", "allowed"),
    [
        (["127.0.0.1:8080"], [], True),
        (["localhost:8080"], ["http://localhost:8080"], True),
        (["LOCALHOST:8080"], ["http://localhost:8080"], True),
        (["127.0.0.1:8080"], ["http://127.0.0.1:8080"], True),
        (["127.0.0.1:8080"], ["http://localhost:8080"], False),
        (["127.0.0.1:8080"], ["https://evil.example"], False),
        (["127.0.0.1:8080"], ["http://127.0.0.1:3000"], False),
        (["127.0.0.1:8080"], ["null"], False),
        (["127.0.0.1:8080"], ["http://127.0.0.1:8080", "https://evil.example"], False),
        (["evil.example:8080"], [], False),
        (["evil.example:8080"], ["http://evil.example:8080"], False),
        (["127.0.0.1:8081"], [], False),
        (["127.0.0.1"], [], False),
        (["127.0.0.1:8080", "evil.example"], [], False),
        ([], [], False),
    ],
)
def test_only_the_viewers_own_page_may_ask(hosts, origins, allowed):
    assert is_allowed(hosts, origins, 8080) is allowed


@pytest.mark.parametrize("upgrade", [False, True], ids=["page", "websocket"])
def test_other_web_pages_are_refused(viewer, upgrade):
    port = viewer.server.get_port()
    good = f"127.0.0.1:{port}"
    assert answered(port, upgrade, f"Host: {good}") == (101 if upgrade else 200)
    assert answered(port, upgrade, f"Host: {good}", f"Origin: http://{good}") == (101 if upgrade else 200)
    assert answered(port, upgrade, f"Host: localhost:{port}") == (101 if upgrade else 200)
    assert answered(port, upgrade, f"Host: {good}", "Origin: https://evil.example") == 403
    assert answered(port, upgrade, f"Host: evil.example:{port}") == 403
    assert answered(port, upgrade, f"Host: evil.example:{port}", f"Origin: http://evil.example:{port}") == 403


def answered(port, upgrade, *headers):
    """The status with which the server answers a request with these headers."""
    if upgrade:
        key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
        headers = (*headers, "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", key)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        line.sendall("\r\n".join(["GET / HTTP/1.1", *headers, "", ""]).encode())
        return int(line.recv(64).split()[1])


def _listening(port):
    """Addresses on which this port is open, as the kernel writes them."""
    try:
        rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    except OSError:
        pytest.skip("no /proc/net/tcp to read the open ports from")
    return {a for a, p in (row[1].split(":") for row in rows if row[3] == "0A") if int(p, 16) == port}


def test_a_run_is_played_with_its_timeline():
    pytest.importorskip("viser", reason="the live viewer needs viser")
    with four_bar_run().view(block=False) as viewer:
        viewer.request("seek", 0.1)
        viewer.settled()
        assert viewer.session.timeline.now == 0.1
        assert viewer.panels.timeline.value == pytest.approx(0.1)
        viewer.request("play")
        viewer.settled()
        assert viewer.session.mode == "playing"
        end = time.monotonic() + 30.0
        while viewer.session.timeline.now == 0.1 and time.monotonic() < end:
            time.sleep(0.02)
        assert viewer.session.timeline.now != 0.1


def test_it_closes_cleanly_and_the_port_is_free_again():
    pytest.importorskip("viser", reason="the live viewer needs viser")
    from spanloop.view.viewer import show

    before = {t.name for t in threading.enumerate()}
    viewer = show(sl.zoo.pendulum(), block=False)
    port = viewer.server.get_port()
    viewer.close()
    viewer.close()  # twice does no harm
    assert "spanloop viewer" not in {t.name for t in threading.enumerate()} - before
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))


def test_a_run_is_recorded_to_one_file_that_asks_for_nothing(tmp_path):
    pytest.importorskip("viser", reason="the live viewer needs viser")
    from spanloop.view.viewer import record

    record(four_bar_run(), tmp_path / "run.html", frames=10.0)
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "__VISER_EMBED_DATA__" in text
    assert [p.name for p in tmp_path.iterdir()] == ["run.html"]
    assert len(text) < 3_000_000
    with says(InputError, "record: 'run.mp4' does not end in .html"):
        record(four_bar_run(), tmp_path / "run.mp4")
    with says(InputError, "record: this is a batch of 2 runs; record one of them, for example run[0]"):
        record(batch_of(four_bar_run(), (10, 20)), tmp_path / "batch.html")


def test_what_cannot_be_shown_is_refused():
    from spanloop.view.viewer import show

    with says(InputError, "show: a str cannot be shown; expected a Model, a Dynamics or a Trajectory"):
        show("robot.urdf", block=False)
    with says(InputError, "show: q has shape (2,); expected (3,)"):
        show(sl.zoo.four_bar(), [0.0, 0.0], block=False)


@pytest.mark.parametrize("port", [-1, 65536, 8080.0])
def test_a_port_that_there_is_not_is_refused(port):
    from spanloop.view.viewer import show

    with pytest.raises(InputError, match="expected a whole number from 0"):
        show(sl.zoo.pendulum(), block=False, port=port)


def test_without_viser_the_error_names_the_package(monkeypatch):
    from spanloop.view.viewer import show

    monkeypatch.setitem(sys.modules, "viser", None)
    with says(UnsupportedError, "the live viewer needs viser, which is not installed; try: pip install viser"):
        show(sl.zoo.four_bar(), block=False)
