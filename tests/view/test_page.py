"""The page of a run as a file: whole, small, safe, and true to the run. What a browser makes of it: test_browser.py."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from motions import integrated
from sentences import says

import spanloop as sl
from spanloop.errors import InputError
from spanloop.math import quaternion
from spanloop.trajectory import Outcome, Segment, Trajectory
from spanloop.view import page
from spanloop.view.page.data import page_data, thinned
from spanloop.view.page.html import LIVE_SCRIPTS, SCRIPTS
from spanloop.view.scene import poses


@pytest.fixture(scope="module")
def swing():
    """A four-bar that swings for 0.5 s."""
    model = sl.zoo.four_bar()
    q = sl.zoo.four_bar_start()
    v = sl.Dynamics(model).complete_velocity(q, {"crank_hinge": 3.0})
    return sl.simulate(model, q, v, duration=0.5)


def data_of(text):
    (found,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', text, flags=re.DOTALL)
    return json.loads(found)


def floats(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


def test_the_page_holds_the_run(swing):
    data = data_of(page.text(swing))
    times = floats(data["times"])
    few = thinned(swing, 31)
    np.testing.assert_allclose(times, few.times, atol=1e-7)
    assert (times[0], times[-1]) == (0.0, 0.5)
    numbers = floats(data["poses"]).reshape(len(times), 4, 7)
    np.testing.assert_allclose(numbers[..., 4:], poses(few.robot, few.q)[..., :3, 3], atol=1e-6)
    groups = {g["key"]: floats(g["values"]).reshape(len(times), -1) for g in data["groups"]}
    np.testing.assert_allclose(groups["q"], few.q, atol=1e-6)
    np.testing.assert_allclose(groups["energy"][:, 0], few.energy[:, 0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(groups["closures"].max(), few.closure_residual.max(), rtol=1e-6)
    loop = swing.model.loops[0].name
    np.testing.assert_allclose(
        floats(data["arrows"][0]["values"]).reshape(-1, 6), few.reactions()[loop], rtol=1e-5, atol=1e-5
    )
    assert [f["name"] for f in data["audit"]["findings"]] == [f.name for f in swing.audit().findings]
    assert data["audit"]["verdict"] == "All is well."


@pytest.mark.parametrize("seed", range(3))
def test_quaternions_are_those_of_the_rotations(seed):
    rng = np.random.default_rng(seed)
    e = rng.normal(size=(200, 4))
    e[::5] *= (1e-9, 1.0, 1.0, 1.0)  # turns by half a circle
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    w, x, y, z = e.T
    at = np.zeros((200, 4, 4))
    at[:, :3, :3] = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    ).transpose(2, 0, 1)
    np.testing.assert_allclose(np.abs(np.sum(quaternion.of_rotations(at[:, :3, :3]) * e, axis=1)), 1.0, atol=1e-14)


def test_nothing_is_asked_of_the_network(swing):
    text = page.text(swing)
    assert not re.findall(
        r"""(?:src|href)\s*=|@import|url\(|https?://|fetch\(|XMLHttpRequest|WebSocket|import\(""", text
    )


def test_the_policy_names_exactly_the_script_and_style_that_are_there(swing):
    text = page.text(swing)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for pattern, directive in ((r"<style>(.*?)</style>", "style-src"), (r"<script>(.*?)</script>", "script-src")):
        (content,) = re.findall(pattern, text, flags=re.DOTALL)
        name = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{name}'" in policy


NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{SCRIPT}}"


def test_names_cannot_become_code():
    b = (
        sl.Builder(NASTY)
        .body(NASTY, 1.0, center=(0, 0, 1), inertia=(0.1, 0.1, 0.1))
        .revolute(NASTY + "!", "world", NASTY, "y")
    )
    model = b.build()
    run = integrated(model, np.array([0.3]), np.zeros(1), 0.01, 1e-3)
    text = page.text(run, title=NASTY)
    plain = page.text(integrated(sl.zoo.pendulum(1), np.array([0.3]), np.zeros(1), 0.01, 1e-3))
    for mark in ("<script", "</script"):
        assert text.count(mark) == plain.count(mark)
    assert "<img" not in text
    assert data_of(text)["bodies"][1]["name"] == NASTY
    assert data_of(text)["title"] == NASTY


def resting(model, q, duration, samples):
    """A run in which nothing moves: as many numbers as in any other."""
    q, zeros = np.tile(q, (samples, 1)), np.zeros((samples, model.nv))
    segment = Segment(np.linspace(0.0, duration, samples), q, zeros, zeros)
    return Trajectory(model, segment, Outcome("finished", "done", duration), {})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["three_pumas", "hexapod"])
def test_ten_seconds_are_less_than_six_megabytes(name):
    run = resting(getattr(sl.zoo, name)(), getattr(sl.zoo, f"{name}_start")(), 10.0, 10_001)
    assert len(page.text(run)) < 2e6


@pytest.mark.slow
def test_many_bodies_have_fewer_frames():
    text = page.text(resting(sl.zoo.chain(60), np.zeros(60), 60.0, 6001))
    assert len(text) < 6e6
    assert len(floats(data_of(text)["times"])) > 500


def test_thinning_keeps_the_first_and_last_sample(swing):
    few = thinned(swing, 50)
    assert len(few) <= 52
    assert (few.times[0], few.times[-1]) == (swing.times[0], swing.times[-1])
    assert thinned(swing, 10_000) is swing


def test_a_run_that_ended_early_says_so(swing):
    model = sl.zoo.pendulum(1)
    run = sl.simulate(model, [1.0], [0.0], duration=2.0, events={"down": lambda t, q, v: q[0] - 0.2})
    assert page_data(run, "x")["outcome"] == run.outcome.sentence


def test_a_batch_is_refused_with_a_hint(tmp_path):
    run = sl.simulate(sl.zoo.pendulum(1), np.ones((3, 1)), np.zeros((3, 1)), duration=0.01)
    with says(InputError, "this is a batch of 3 runs; a page shows one of them: run[0].page(...)"):
        run.page(tmp_path / "x.html")
    assert run[1].page(tmp_path / "x.html").exists()


def test_another_extension_is_refused(swing, tmp_path):
    with says(InputError, "a page ends in .html"):
        swing.page(tmp_path / "x.nc")
    assert not list(tmp_path.iterdir())


def test_every_script_of_the_folder_is_in_the_page():
    assets = Path(page.__file__).parent / "assets"
    assert {p.name for p in assets.glob("*.js")} == {*SCRIPTS, *LIVE_SCRIPTS}


def with_balls(folder, rings):
    """Two bodies that show one mesh, of about 4 rings² triangles."""
    a, b = np.meshgrid(np.linspace(0, np.pi, rings + 1), np.linspace(0, 2 * np.pi, 2 * rings + 1), indexing="ij")
    points = np.stack([np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)], axis=-1).reshape(-1, 3)
    k = 1 + np.arange(rings * (2 * rings + 1)).reshape(rings, -1)[:, :-1].ravel()
    lines = [f"v {x:f} {y:f} {z:f}" for x, y, z in points.tolist()]
    lines += [f"f {i} {i + 2 * rings + 1} {i + 2 * rings + 2} {i + 1}" for i in k.tolist()]
    (folder / "ball.obj").write_text("\n".join(lines))
    link = """<link name="{0}"><inertial><mass value="2"/>
      <inertia ixx="0.8" iyy="0.8" izz="0.8" ixy="0" ixz="0" iyz="0"/></inertial>
      <visual><geometry><mesh filename="ball.obj"/></geometry></visual></link>"""
    joint = '<joint name="j" type="continuous"><origin xyz="0 0 3"/><parent link="a"/><child link="b"/></joint>'
    (folder / "m.urdf").write_text(f"<robot name='m'>{link.format('a')}{link.format('b')}{joint}</robot>")
    return sl.load(folder / "m.urdf")


def test_a_mesh_is_in_the_page_once(tmp_path):
    model = with_balls(tmp_path, 10)
    data = data_of(page.text(resting(model, np.zeros(1), 1.0, 3)))
    assert [[s["mesh"] for s in b["shapes"]] for b in data["bodies"]] == [[], [0], [0]]
    assert len(data["meshes"]) == 1
    assert (data["low"][2], data["high"][2]) == pytest.approx((-1.0, 4.0))


@pytest.mark.slow
def test_a_large_mesh_leaves_the_page_below_three_megabytes(tmp_path):
    model = with_balls(tmp_path, 220)
    text = page.text(resting(model, np.zeros(1), 1.0, 3))
    (mesh,) = data_of(text)["meshes"]
    assert 100_000 < sum(n for n, _ in mesh["colors"]) <= 160_000
    assert len(text) < 3e6
