"""Flexible bodies in pictures: segments lie where the body bends to, and plots have the numbers of the nodes."""

from __future__ import annotations

import base64
from dataclasses import replace

import chromium
import numpy as np
import pytest

import spanloop as sl
from spanloop.view import animation
from spanloop.view.beams.deflection import deflection, nodes
from spanloop.view.beams.segments import MOST, bent_bodies, segment_count, stations
from spanloop.view.moving_scene import moving_scene
from spanloop.view.page.data import page_data
from spanloop.view.page.modes_page import modes_data
from spanloop.view.scene import poses, scene
from spanloop.view.video.video import frames

F = sl.flexible
LENGTH = 2.0


def boom(section=None, pieces=1, modes=1, nodes=None, gravity=(0.0, 0.0, -9.81)) -> sl.Model:
    """A soft beam on a hinge, with a payload at its tip."""
    made = F.beam(
        LENGTH, 1e9, 1200.0, section or F.circle(0.012), modes=modes, nodes=nodes, pieces=pieces, damping=0.05
    )
    b = sl.Builder("boom", gravity=gravity).body("boom", flexible=made).body("load", mass=0.3, inertia=(1e-3,) * 3)
    b.revolute("hinge", "world", "boom", axis="y", position=(0.1, 0.2, 1.5))
    return b.fixed("grip", "boom.tip", "load").build()


def bent_state(model: sl.Model, seed: int = 5) -> np.ndarray:
    """A turned hinge and modal coordinates that bend sections by some tenths of a radian."""
    print(f"seed {seed}")
    q = np.random.default_rng(seed).uniform(-0.05, 0.05, model.nq)
    q[model.q_slice("hinge")] = 0.7
    return q


def drawn(model: sl.Model, q: np.ndarray) -> np.ndarray:
    """Poses (k, 4, 4) of the segments."""
    return poses(sl.Dynamics(model, target="python"), q)[model.n_bodies + 1 :]


@pytest.mark.parametrize("pieces", [1, 2])
def test_segments_lie_between_stations_that_are_where_the_dynamics_puts_them(pieces):
    model = boom(pieces=pieces, nodes={"half": 1.0})
    q = bent_state(model)
    robot, places = sl.Dynamics(model, target="python"), []
    for bent in bent_bodies(model):
        body = robot.pose(q, model.bodies[bent.body - 1].name)
        at, _ = stations(bent.source).placed(q[bent.q])
        places.append(at @ body[:3, :3].T + body[:3, 3])
    known = [stations(b.source).positions[:, 0] for b in bent_bodies(model)]
    half = (places[0][-1], known[0][-1]) if pieces == 2 else (places[0][8], known[0][8])
    assert half[1] == pytest.approx(1.0)
    for node, place in (("root", places[0][0]), ("half", half[0]), ("tip", places[-1][-1])):
        np.testing.assert_allclose(place, robot.pose(q, f"boom.{node}")[:3, 3], atol=1e-12)
    middles = np.concatenate([0.5 * (x[1:] + x[:-1]) for x in places])
    chords = np.concatenate([np.diff(x, axis=0) for x in places])
    at = drawn(model, q)
    np.testing.assert_allclose(at[:, :3, 3], middles, atol=1e-12)
    np.testing.assert_allclose(at[:, :3, 0], chords / np.linalg.norm(chords, axis=1)[:, None], atol=1e-12)
    np.testing.assert_allclose(
        at[:, :3, :3] @ np.swapaxes(at[:, :3, :3], 1, 2), np.tile(np.eye(3), (MOST, 1, 1)), atol=1e-12
    )


def test_drawn_shapes_meet_where_the_body_bends():
    model = boom(modes={"z": 1})
    q = model.neutral()
    q[model.q_slice("boom.modes").start] = 0.4  # a fifth of the length
    at = drawn(model, q)
    shapes = [b.shapes[0] for b in scene(model).bodies[model.n_bodies + 1 :]]
    ahead = np.array([0.5 * s.size[1] for s in shapes])[:, None] * at[:, :3, 0]
    gaps = (at[1:, :3, 3] - ahead[1:]) - (at[:-1, :3, 3] + ahead[:-1])
    assert np.linalg.norm(gaps, axis=1).max() < 0.5 * shapes[0].size[0]  # balls at the joints fill them
    tip = sl.Dynamics(model, target="python").pose(q, "boom.tip")[:3, 3]
    np.testing.assert_allclose(at[-1, :3, 3] + ahead[-1], tip, atol=0.5 * shapes[0].size[0])


def test_the_bent_axis_is_the_curve_of_a_cantilever_with_a_force_at_its_tip():
    model = boom(modes={"z": 0})  # the static shapes of the tip: deflection and slope
    q, w = model.neutral(), 0.02
    eta = model.q_slice("boom.modes")
    q[eta.start] = w  # deflection of the tip with the slope of the mode
    at = drawn(model, q)
    x = at[:, 0, 3] - 0.1
    found = at[:, 2, 3] - 1.5
    basis = np.stack([x**2, x**3], axis=1)  # any static shape of a beam that is loaded at its tip only
    fitted, *_ = np.linalg.lstsq(basis, found, rcond=None)
    np.testing.assert_allclose(basis @ fitted, found, atol=2e-3 * w)  # chords: curvature · length²/8
    assert float(np.array([LENGTH**2, LENGTH**3]) @ fitted) == pytest.approx(w, rel=5e-3)


@pytest.mark.parametrize("pieces", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_straight_beam_is_drawn_straight(pieces):
    model = boom(pieces=pieces)
    at = drawn(model, model.neutral())
    assert len(at) == segment_count(model) == MOST
    np.testing.assert_allclose(at[:, :3, :3], np.tile(np.eye(3), (MOST, 1, 1)), atol=1e-15)
    np.testing.assert_allclose(at[:, 1:3, 3], np.tile((0.2, 1.5), (MOST, 1)), atol=1e-15)
    step = LENGTH / MOST
    np.testing.assert_allclose(at[:, 0, 3], 0.1 + step * (np.arange(MOST) + 0.5), atol=0.02 * LENGTH)
    assert (np.diff(at[:, 0, 3]) > 0.0).all()


def test_segments_have_the_size_of_the_section():
    seen = scene(boom(section=[F.circle(0.05), F.circle(0.02)]))
    radii = [b.shapes[0].size[0] for b in seen.bodies if b.segment_of is not None]
    expected = 0.05 - 0.03 * (np.arange(MOST) + 0.5) / MOST
    np.testing.assert_allclose(radii, expected, atol=0.001)  # stations are at the ends of elements
    boxes = [b.shapes[0] for b in scene(boom(section=F.rectangle(0.1, 0.04))).bodies if b.segment_of is not None]
    assert {s.kind for s in boxes} == {"box"}
    assert {s.size[1:] for s in boxes} == {(0.1, 0.04)}
    assert sum(s.size[0] for s in boxes) == pytest.approx(LENGTH, rel=0.15)  # they overlap a little


def test_roots_nodes_and_the_flexible_body_have_no_stand_in():
    model = boom(nodes={"half": 1.0})
    seen = scene(model)
    shapes = {b.name: b.shapes for b in seen.bodies if b.segment_of is None}
    assert shapes["boom"] == shapes["boom.root"] == shapes["boom.tip"] == shapes["boom.half"] == ()
    assert shapes["load"]
    assert [j.mark for j in seen.joints if j.kind in ("modal", "node")] == [0.0, 0.0, 0.0]
    assert next(j.mark for j in seen.joints if j.name == "hinge") > 0.0
    owner = next(k for k, b in enumerate(seen.bodies) if b.name == "boom")
    assert {b.segment_of for b in seen.bodies[model.n_bodies + 1 :]} == {owner}
    assert len({b.color for b in seen.bodies if b.name == "boom"}) == 1


def test_a_bracket_beside_a_node_is_drawn():
    made = F.beam(LENGTH, 1e9, 1200.0, F.circle(0.012), modes=1)
    b = sl.Builder("bracket").body("boom", flexible=made).body("load", mass=0.3, inertia=(1e-3,) * 3)
    model = b.fixed("wall", "world", "boom").fixed("grip", "boom.tip", "load", position=(0.0, 0.4, 0.0)).build()
    limb = next(x for x in scene(model).bodies if x.name == "boom.tip").shapes
    assert [s.kind for s in limb] == ["capsule"]
    assert limb[0].size[1] == pytest.approx(0.4)


@pytest.fixture(scope="module")
def run() -> sl.Trajectory:
    model = boom(modes={"z": 1}, nodes={"half": 1.0})
    return sl.simulate(model, model.neutral(), duration=0.4, step=1e-4)


def floats(packed: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed), "<f4")


@pytest.mark.slow
def test_page_data_has_the_segments_and_the_deflection(run):
    data = page_data(run, "boom")
    own = [k for k, b in enumerate(data["bodies"]) if b["segment_of"] is not None]
    assert len(own) == MOST
    assert {data["bodies"][b["segment_of"]]["name"] for b in (data["bodies"][k] for k in own)} == {"boom"}
    times = floats(data["times"])
    at = floats(data["poses"]).reshape(len(times), len(data["bodies"]), 7)
    few = run.at(np.minimum(times, run.times[-1]))
    expected = poses(run.robot, few.q)[:, own][..., :3, 3]
    np.testing.assert_allclose(at[:, own, 4:], expected, atol=1e-5)
    group = next(g for g in data["groups"] if g["key"] == "deflection")
    assert group["names"] == ["boom.half.x", "boom.half.z", "boom.tip.x", "boom.tip.z"]
    values = floats(group["values"]).reshape(len(times), 4)
    tip = np.array([_in_root(run.robot, q, "boom.tip") for q in few.q]) - (LENGTH, 0.0, 0.0)
    np.testing.assert_allclose(values[:, 2:], tip[:, [0, 2]], atol=1e-5)


def _in_root(robot: sl.Dynamics, q: np.ndarray, node: str) -> np.ndarray:
    root, place = robot.pose(q, "boom.root"), robot.pose(q, node)
    return root[:3, :3].T @ (place[:3, 3] - root[:3, 3])


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_deflection_is_the_nodes_displacement_in_the_roots_axes(pieces):
    model = boom(pieces=pieces, nodes={"half": 1.1})
    robot, q = sl.Dynamics(model, target="python"), bent_state(model)
    assert sorted(nodes(model)) == ["boom.half", "boom.tip"]
    for node, x in (("boom.half", 1.1), ("boom.tip", LENGTH)):
        expected = _in_root(robot, q, node) - (x, 0.0, 0.0)
        np.testing.assert_allclose(deflection(model, node, q), expected, atol=1e-12)
        many = deflection(model, node, np.stack([[q, q], [model.neutral(), q]]))
        np.testing.assert_allclose(many[0, 1], expected, atol=1e-12)
        np.testing.assert_allclose(many[1, 0], 0.0, atol=1e-15)


@pytest.mark.slow
def test_plots_have_the_deflection_and_the_modal_amplitudes(run):
    pytest.importorskip("matplotlib")
    ax = run.plot("deflection", "boom.tip")
    drawn = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    assert list(drawn) == ["boom.tip.x", "boom.tip.z"]
    assert ax.get_ylabel() == "deflection [m]"
    assert drawn["boom.tip.z"][-1] == pytest.approx(_in_root(run.robot, run.q[-1], "boom.tip")[2], abs=1e-12)
    ax = run.plot("modes")
    drawn = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    named = [f"boom.modes.{name}" for name in run.model.joint("boom.modes").kind.mode_names]
    assert list(drawn) == named
    np.testing.assert_array_equal(drawn[named[0]], run.q[:, run.model.q_slice("boom.modes")][:, 0])


@pytest.mark.slow
def test_plots_of_what_does_not_bend_are_refused(run):
    with pytest.raises(sl.SpanloopError, match=r"there is no node 'boom.tap'.*boom.tip"):
        run.plot("deflection", "boom.tap")
    rigid = sl.simulate(sl.zoo.pendulum(1), duration=0.01)
    for what in ("deflection", "modes"):
        with pytest.raises(sl.SpanloopError, match="no flexible body"):
            rigid.plot(what)


@pytest.mark.slow
def test_the_animation_draws_a_flexible_body_as_one_outline(run):
    moved = moving_scene(run[::1000])
    color = next(b.color for b in moved.scene.bodies if b.segment_of is not None)
    outline = [s for s in animation._strokes(moved) if s.closed and s.points.shape[1] == 2 * (MOST + 1)]
    assert [s.color for s in outline] == [color]
    tips = 0.5 * (outline[0].points[:, MOST] + outline[0].points[:, MOST + 1])
    expected = [run.robot.pose(q, "boom.tip")[:3, 3] for q in run[::1000].q]
    np.testing.assert_allclose(tips, expected, atol=2e-3 * LENGTH)


@pytest.mark.slow
def test_a_video_shows_the_bend(run):
    straight = run.changed(segments=tuple(replace(s, q=_without_modes(run.model, s.q)) for s in run.segments))
    times = np.array([0.0, 0.12])
    bent, rigid = (list(frames(x, times, (320, 180))) for x in (run, straight))
    first, second = ((np.abs(a.astype(int) - b).max(axis=2) > 60).sum() for a, b in zip(bent, rigid, strict=True))
    assert first == 0  # both start straight
    assert second > 50


def _without_modes(model: sl.Model, q: np.ndarray) -> np.ndarray:
    out = q.copy()
    out[:, model.q_slice("boom.modes")] = 0.0
    return out


@pytest.mark.slow
def test_shapes_of_modes_turn_sections_by_three_tenths_of_a_radian_at_most():
    model = boom(modes={"y": 2}, gravity=(0.0, 0.0, 0.0))
    found = sl.Dynamics(model).modes(model.neutral())
    data = modes_data(found, "modes", None, None, None)
    assert sum(b["segment_of"] is not None for b in data["bodies"]) == MOST
    own = model.q_slice("boom.modes")
    shapes = model.joint("boom.modes").kind.source.stations(30).rotations
    turns = []
    for k in range(len(found)):
        eta = found.motion(k, samples=25)[1][:, own]
        turns.append(np.linalg.norm(np.einsum("kna,tn->tka", shapes, eta), axis=-1).max())
    assert max(turns) < 0.31  # stations of the page are fewer
    assert max(turns) > 0.25
    names = {name for mode in data["modes"] for name, *_ in mode["parts"]}
    assert "boom.modes[y1]" in names


@pytest.mark.slow
def test_a_body_that_vanishes_takes_its_segments_along():
    viser = pytest.importorskip("viser")
    from spanloop.view.viewer.scene_nodes import SceneNodes

    model = boom()
    server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    try:
        nodes_ = SceneNodes(server.scene, scene(model), np.array((0.0, 0.0, 1.0)))
        at = poses(sl.Dynamics(model, target="python"), model.neutral())
        nodes_.place(at, absent={model.body_number["boom"]})
        hidden = [not node.visible for node in nodes_.body_nodes]
        assert sum(hidden) == 1 + MOST
        nodes_.place(at)
        assert all(node.visible for node in nodes_.body_nodes)
    finally:
        server.stop()


@pytest.mark.slow
def test_sliders_of_modes_start_where_the_body_is_bent_and_bend_it_moderately():
    pytest.importorskip("viser")
    from spanloop.view.viewer.panels import BEND, span
    from spanloop.view.viewer.session import Session

    model = boom(modes={"z": 1})
    q = bent_state(model)
    session = Session(sl.Dynamics(model), q)
    shapes = model.joint("boom.modes").kind.source.stations(30).rotations
    of_modes = [h for h in session.handles if h.name != "hinge"]
    assert [session.value(h) for h in of_modes] == q[model.q_slice("boom.modes")].tolist()
    for k, handle in enumerate(of_modes):
        low, high = span(session, handle, LENGTH)
        turn = np.linalg.norm(shapes[:, k], axis=-1).max()
        assert 0.5 * (high - low) * turn == pytest.approx(BEND, rel=0.05)
        assert low < session.value(handle) < high


@pytest.mark.slow
@pytest.mark.skipif(chromium.found() is None, reason="there is no Chromium on this machine (apt install chromium)")
def test_the_page_draws_the_bend_and_names_the_flexible_body_under_the_pointer(run, tmp_path):
    page = run.page(tmp_path / "boom.html")
    under = """(() => {
        const {stage, camera} = spanloop, canvas = stage.drawing.canvas;
        stage.move(%g);
        const found = new Set();
        for (let y = 0; y < canvas.height; y += 2)
            for (let x = 0; x < canvas.width; x += 60) found.add(stage.numberAt(x, y, camera));
        const names = [...found].filter((n) => n).map((n) => stage.describe(n).split('\\n')[0]);
        return [names, [...stage.at.at(-1).slice(12, 15)]];
    })()"""
    with chromium.Browser(500, 400) as browser:
        browser.open(page, "!!window.spanloop")
        found, last = browser.evaluate(under % run.times[-1])
        assert len(found) == len(set(found))  # all segments are one body
        assert {"boom"} <= set(found) <= {"boom", "boom.root", "load", "world"}
        assert not [line for line in browser.console if "GPU stall" not in line]
    np.testing.assert_allclose(last, poses(run.robot, run.q[-1])[-1, :3, 3], atol=1e-5)
