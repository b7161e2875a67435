"""Surfaces that bend, in a real browser: the vertex shader puts corners where NumPy does, in recorded and live runs."""

from __future__ import annotations

import base64
import json
import os

import chromium
import numpy as np
import pytest

pytest.importorskip("skfem")
from bending_bars import PageSurface, SoftBar, hinged, still_run, under_a_force

import spanloop as sl
from spanloop.view.beams.segments import surface_coordinates
from spanloop.view.page.live.live_page import write_live

NEEDED = os.environ.get("SPANLOOP_BROWSER") == "required"  # then a missing browser is a failure
pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(
        chromium.found() is None and not NEEDED,
        reason="there is no Chromium on this machine (apt install chromium)",
    ),
]
READY = "window.spanloop && window.spanloop.stage && window.spanloop.stage.drawing.canvas.width > 300"
LIVE = "window.spanloop && spanloop.live && (spanloop.live.first || spanloop.live.trouble)"
# what the page's own vertex shader makes of the corners of body k: positions and normals, six numbers a corner
SHADED = """((k) => {
    const {stage, camera} = spanloop, d = stage.drawing, gl = d.gl, own = d.programs['solid bent'];
    const program = gl.createProgram();
    for (const s of gl.getAttachedShaders(own.program)) gl.attachShader(program, s);
    gl.transformFeedbackVaryings(program, ['w', 'n'], gl.INTERLEAVED_ATTRIBS);
    gl.linkProgram(program);
    const places = {};
    for (const [name, {type}] of Object.entries(own.places))
        places[name] = {at: gl.getUniformLocation(program, name), type};
    [d.programs.feedback, d.used] = [{program, places}, null];
    const count = stage.bodies[k].count, buffer = gl.createBuffer(), feedback = gl.createTransformFeedback();
    gl.bindBuffer(gl.TRANSFORM_FEEDBACK_BUFFER, buffer);
    gl.bufferData(gl.TRANSFORM_FEEDBACK_BUFFER, 24 * count, gl.STREAM_READ);
    d.use('feedback', {seen: camera.seen(1), model: stage.at[k], ...stage.bendings[k].now});
    gl.bindTransformFeedback(gl.TRANSFORM_FEEDBACK, feedback);
    gl.bindBufferBase(gl.TRANSFORM_FEEDBACK_BUFFER, 0, buffer);
    gl.enable(gl.RASTERIZER_DISCARD);
    gl.beginTransformFeedback(gl.TRIANGLES);
    gl.bindVertexArray(stage.bodies[k].array);
    gl.drawArrays(gl.TRIANGLES, 0, count); // corners are those of one triangle after the other
    gl.endTransformFeedback();
    gl.disable(gl.RASTERIZER_DISCARD);
    const out = new Float32Array(6 * count);
    gl.getBufferSubData(gl.TRANSFORM_FEEDBACK_BUFFER, 0, out);
    gl.bindTransformFeedback(gl.TRANSFORM_FEEDBACK, null);
    gl.bindBuffer(gl.TRANSFORM_FEEDBACK_BUFFER, null);
    let text = '';
    for (const x of new Uint8Array(out.buffer)) text += String.fromCharCode(x);
    return btoa(text);
})"""
DATA = "document.getElementById('data').textContent"


@pytest.fixture(scope="module")
def soft():
    return SoftBar()


@pytest.fixture(scope="module")
def run(soft):
    """A soft bar on a hinge that is released, bent by an eighth of its length, and falls."""
    model = hinged(soft.body(stiffening=True, surface_energy=lambda shapes: _energies(soft, shapes)))
    part = next(j.kind.source for j in model.joints if j.kind.bends)
    q = model.neutral()
    q[model.q_slice("bar.modes")] = under_a_force(part, (0.0, 0.03, -0.06))
    found = sl.simulate(model, q, duration=0.4, step=2e-4, sample=5e-3, limits="ignore")
    assert found.outcome.reason.value == "finished"
    return found


def _energies(soft, shapes):
    """Any energies, one for each triangle, larger toward the root."""
    near = 1.0 - soft.solid.positions[soft.triangles].mean(axis=1)[:, 0]
    return near[:, None, None] * (shapes.T @ shapes)


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    return run.page(tmp_path_factory.mktemp("bending") / "run.html")


@pytest.fixture(scope="module")
def browser():
    with chromium.Browser(1000, 700) as b:
        yield b


@pytest.fixture
def opened(browser):
    """A page by its path and when it is ready, which must not complain."""

    def open_page(path, ready=READY):
        browser.console.clear()
        browser.asked.clear()
        browser.open(path, ready)
        return browser

    yield open_page
    assert [x for x in browser.console if "GPU stall due to ReadPixels" not in x] == []
    assert [x for x in browser.asked if not x.startswith(("file:", "blob:", "data:"))] == []


def shaded(browser, body):
    """Positions and normals (triangles, 3, 3) of the corners of a body's triangles."""
    found = np.frombuffer(base64.b64decode(browser.evaluate(f"{SHADED}({body})")), "<f4").astype(float)
    corners = found.reshape(-1, 3, 6)
    return corners[..., :3], corners[..., 3:]


def at_sample(browser, k):
    browser.evaluate(
        f"(spanloop.timeline.play(false), spanloop.timeline.seek(spanloop.stage.times[{k}]),"
        f" spanloop.stage.move(spanloop.stage.times[{k}]))"
    )


def angles(a, b):
    """Angles between vectors [rad]."""
    a, b = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (a, b))
    return np.arcsin(np.clip(np.linalg.norm(np.cross(a, b), axis=-1), 0.0, 1.0))


def test_the_shader_puts_corners_where_numpy_does_and_leaves_no_gap(opened, page):
    browser = opened(page)
    drawn = PageSurface(json.loads(browser.evaluate(DATA)))
    last = len(drawn.eta) - 1
    most = int(
        np.argmax([np.abs(drawn.vertices(k) - drawn.vertices(k, 0.0 * drawn.eta[k])).max() for k in range(last)])
    )
    for sample in (0, most, last):
        at_sample(browser, sample)
        corners, normals = shaded(browser, drawn.k)
        bent, straight = drawn.vertices(sample), drawn.vertices(sample, 0.0 * drawn.eta[sample])
        np.testing.assert_allclose(corners, bent[drawn.faces], atol=2e-6)  # of half a metre, in float32
        same = np.zeros((len(bent), 3))
        same[drawn.faces] = corners
        assert np.array_equal(same[drawn.faces], corners)  # triangles share their corners to the bit
        a, b, c = np.moveaxis(corners, 1, 0)
        flat = np.cross(b - a, c - a)
        if sample == most:
            assert np.abs(bent - straight).max() > 0.05  # m, of 0.5
            a, b, c = np.moveaxis(straight[drawn.faces], 1, 0)
            turned = angles(flat, np.cross(b - a, c - a))
            off = angles(normals, flat[:, None])
            far = turned > 0.1
            assert far.sum() > 50
            assert off[far].max() < 0.3 * turned[far].min()  # the bar has sharp edges: its sides are nearly flat


def test_between_samples_surfaces_go_on_evenly(opened, page):
    browser = opened(page)
    drawn = PageSurface(json.loads(browser.evaluate(DATA)))
    k = len(drawn.eta) // 2
    browser.evaluate(
        f"((t) => (spanloop.timeline.play(false), spanloop.stage.move(0.25 * t[{k + 1}] + 0.75 * t[{k}])))"
        "(spanloop.stage.times)"
    )
    eta = np.array(json.loads(browser.evaluate(f"JSON.stringify([...spanloop.stage.bendings[{drawn.k}].now.eta])")))
    expected = drawn.mix @ (0.75 * drawn.eta[k] + 0.25 * drawn.eta[k + 1])
    np.testing.assert_allclose(eta[: drawn.count], expected, rtol=1e-3, atol=1e-7)


def pixels(browser):
    """The picture (height, width, 4) of the stage as it is now."""
    found = browser.evaluate(
        """(() => {
        const {stage, camera} = spanloop;
        stage.draw(camera, false);
        const {gl, canvas} = stage.drawing, out = new Uint8Array(4 * canvas.width * canvas.height);
        gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, out);
        let text = '';
        for (let k = 0; k < out.length; k += 8192) text += String.fromCharCode(...out.subarray(k, k + 8192));
        return JSON.stringify([canvas.height, canvas.width, btoa(text)]);
        })()"""
    )
    height, width, data = json.loads(found)
    return np.frombuffer(base64.b64decode(data), np.uint8).reshape(height, width, 4).astype(int)


def test_the_picture_bends_and_the_pointer_finds_what_is_bent(opened, page):
    browser = opened(page)
    drawn = PageSurface(json.loads(browser.evaluate(DATA)))
    sizes = [np.abs(drawn.vertices(k) - drawn.vertices(k, 0.0 * drawn.eta[k])).max() for k in range(len(drawn.eta))]
    at_sample(browser, int(np.argmax(sizes)))
    bent = pixels(browser)
    found = browser.evaluate(
        """(() => {
        const {stage, camera} = spanloop, {width, height} = stage.drawing.canvas, seen = camera.seen(width / height);
        return JSON.stringify({width, height, seen: [...seen]});
        })()"""
    )
    view = json.loads(found)
    seen = np.array(view["seen"]).reshape(4, 4).T
    places = drawn.vertices(int(np.argmax(sizes)))[drawn.faces].mean(axis=1)
    flat = np.c_[places, np.ones(len(places))] @ seen.T
    x, y = (flat[:, 0] / flat[:, 3] + 1) / 2 * view["width"], (1 - flat[:, 1] / flat[:, 3]) / 2 * view["height"]
    expected = browser.evaluate(f"spanloop.stage.owner({drawn.k}) + 1")
    hits = [
        browser.evaluate(f"spanloop.stage.numberAt({a}, {b}, spanloop.camera)")
        for a, b in zip(x[::9], y[::9], strict=True)
    ]
    assert hits.count(expected) > 0.8 * len(hits)  # the load and the hinge hide some
    browser.evaluate(f"spanloop.stage.bendings[{drawn.k}].now.eta.fill(0)")
    straight = pixels(browser)
    assert (np.abs(bent - straight).max(axis=-1) > 24).mean() > 0.005


def test_a_live_page_bends_as_its_state_says_and_is_pulled_at_its_interface(opened, run, tmp_path):
    path = write_live(run.model, tmp_path / "live.html", run.q[0])
    browser = opened(path, LIVE)
    assert not browser.evaluate("spanloop.live.trouble || ''")
    browser.evaluate(
        "spanloop.live.play(false); spanloop.live.reset(); for (let k = 0; k < 5; k++) spanloop.live.single()"
    )
    model = run.model
    q = np.array(json.loads(browser.evaluate("JSON.stringify([...spanloop.live.run.view('q')])")))
    browser.evaluate("spanloop.stage.move(0)")
    data = json.loads(browser.evaluate(DATA))
    drawn = PageSurface(data)
    corners, _ = shaded(browser, drawn.k)
    (eta,) = surface_coordinates(model, q).values()
    pose = sl.Dynamics(model).pose(q, "bar")
    local = drawn.rest + np.einsum("vka,k->va", drawn.shapes, eta)
    expected = local @ pose[:3, :3].T + pose[:3, 3]
    assert np.linalg.norm(np.einsum("vka,k->va", drawn.shapes, eta), axis=1).max() > 0.02
    np.testing.assert_allclose(corners, expected[drawn.faces], atol=2e-6)
    # a finger near the tip takes the tip, one near the hinge the root
    number = model.body_number
    for corner, body in ((np.argmax(drawn.rest[:, 0]), "bar.tip"), (np.argmin(drawn.rest[:, 0]), "bar.root")):
        place = json.dumps(expected[corner].tolist())
        taken = browser.evaluate(f"spanloop.live.pointer.taken({drawn.k}, {place})[0]")
        assert taken == number[body]


def test_more_modes_than_shapes_are_drawn_with_what_the_note_says(opened, soft, tmp_path):
    model = hinged(soft.body(modes=12))
    part = next(j.kind.source for j in model.joints if j.kind.bends)
    rng = np.random.default_rng(11)  # seed 11
    rows = np.tile(model.neutral(), (3, 1))
    eta = 0.02 * rng.normal(size=(3, part.n)) * np.sqrt(part.stiffness.min() / part.stiffness)
    rows[:, model.q_slice("bar.modes")] = eta
    path = still_run(model, rows).page(tmp_path / "many.html", live={"first": "recorded"})
    browser = opened(path, READY + " && spanloop.live && spanloop.live.ready")
    drawn = PageSurface(json.loads(browser.evaluate(DATA)))
    assert (part.n, drawn.count) == (18, 16)
    assert "has 18 modes and is drawn with 16 combinations" in browser.evaluate("document.body.textContent")
    at_sample(browser, 1)
    corners, _ = shaded(browser, drawn.k)
    np.testing.assert_allclose(corners, drawn.vertices(1)[drawn.faces], atol=2e-6)
    # the same surface, live
    browser.evaluate("spanloop.live.choose(true); spanloop.live.play(false); spanloop.live.reset()")
    browser.evaluate("for (let k = 0; k < 5; k++) spanloop.live.single(); spanloop.stage.move(0)")
    q = np.array(json.loads(browser.evaluate("JSON.stringify([...spanloop.live.run.view('q')])")))
    pose = sl.Dynamics(model).pose(q, "bar")
    eta = q[model.q_slice("bar.modes")]
    local = drawn.rest + np.einsum("vka,k->va", drawn.shapes, drawn.mix @ eta)
    corners, _ = shaded(browser, drawn.k)
    np.testing.assert_allclose(corners, (local @ pose[:3, :3].T + pose[:3, 3])[drawn.faces], atol=2e-6)
    assert np.abs(eta - rows[0, model.q_slice("bar.modes")]).max() > 1e-4  # it has moved on
    assert np.abs(local - drawn.rest).max() > 1e-3


def test_the_page_of_modes_bends(opened, run, tmp_path):
    robot = sl.Dynamics(run.model.with_gravity((0.0, 0.0, 0.0)))
    browser = opened(robot.modes(robot.model.neutral()).page(tmp_path / "modes.html", numbers=[1, 2]))
    drawn = PageSurface(json.loads(browser.evaluate(DATA)))
    quarter = len(drawn.eta) // 8
    at_sample(browser, quarter)
    corners, _ = shaded(browser, drawn.k)
    np.testing.assert_allclose(corners, drawn.vertices(quarter)[drawn.faces], atol=5e-6)
    assert np.abs(drawn.eta).max() > 1e-3
