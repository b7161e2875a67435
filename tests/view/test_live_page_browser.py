"""The live page in a real browser: it runs, it is pulled, loops stay closed, and it says what went wrong."""

from __future__ import annotations

import json
import os
import time

import chromium
import numpy as np
import pytest

import spanloop as sl
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
READY = "window.spanloop && spanloop.live && (spanloop.live.first || spanloop.live.trouble)"
CLOSED = 2e-15  # m or rad
LENGTH = "coupler_hinge.position.x"
# the pixel of a point of a body
PIXEL = """((k, p) => {
    const {stage, camera} = spanloop, canvas = stage.drawing.canvas, box = canvas.getBoundingClientRect();
    const at = (m, x) => [0, 1, 2, 3].map((i) => m[i] * x[0] + m[4 + i] * x[1] + m[8 + i] * x[2] + m[12 + i]);
    const seen = at(camera.seen(box.width / box.height), at(stage.at[k], p));
    return [box.left + (seen[0] / seen[3] + 1) / 2 * box.width, box.top + (1 - seen[1] / seen[3]) / 2 * box.height];
})"""

# a slider (its expression) moved by hand
SLIDE = """((s, x) => { s.input.value = x; s.input.dispatchEvent(new Event('input')); })"""


@pytest.fixture(scope="module")
def bar(tmp_path_factory):
    """A four-bar whose crank has a slider for its length."""
    path = tmp_path_factory.mktemp("live") / "bar.html"
    return write_live(sl.zoo.four_bar(), path, sl.zoo.four_bar_start(), parameters=[LENGTH])


@pytest.fixture(scope="module")
def browser():
    with chromium.Browser(900, 640) as b:
        yield b


@pytest.fixture
def opened(browser, bar):
    """The page, paused at its start."""
    browser.console.clear()
    browser.asked.clear()
    browser.resize(900, 640)
    browser.open(bar, READY)
    browser.evaluate("spanloop.live.play(false); spanloop.live.reset()")
    yield browser
    assert [x for x in browser.console if "GPU stall due to ReadPixels" not in x] == []
    assert [x for x in browser.asked if not x.startswith("file:")] == []


def told(browser, expression):
    return json.loads(browser.evaluate(f"JSON.stringify({expression})"))


def error_now(browser):
    return browser.evaluate("(spanloop.stage.move(0), spanloop.stage.worst)")


def pressed(browser, x, y):
    browser.mouse("mouseMoved", x, y)
    browser.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)


def released(browser, x, y):
    browser.mouse("mouseReleased", x, y, button="left", clickCount=1)


def middle_of(browser, body):
    return browser.evaluate(f"{PIXEL}({body}, spanloop.stage.data.live.boxes[{body}].slice(0, 3).map((x, i) => "
                            f"(x + spanloop.stage.data.live.boxes[{body}][3 + i]) / 2))")  # fmt: skip


def test_it_runs_by_itself_in_steps_of_one_millisecond_with_loops_closed(opened):
    opened.evaluate("spanloop.live.play(true)")
    opened.until("spanloop.live.run.time > 0.3")
    count, now = told(opened, "[spanloop.live.run.count, spanloop.live.run.time]")
    assert now == pytest.approx(1e-3 * count, abs=1e-12)
    assert error_now(opened) < CLOSED


def test_its_steps_are_those_of_simulate(opened):
    opened.evaluate("for (let k = 0; k < 400; k++) spanloop.live.run.step()")
    expected = sl.simulate(sl.zoo.four_bar(), sl.zoo.four_bar_start(), duration=0.4, step=1e-3, integrator="rk4")
    np.testing.assert_allclose(told(opened, "[...spanloop.live.run.view('q')]"), expected.q[-1], rtol=0, atol=1e-11)


def test_a_body_that_is_dragged_follows_the_pointer_and_the_loop_stays_closed(opened):
    x, y = middle_of(opened, 1)  # the crank, which turns about the world's y axis
    turned = """((m, c, s) => [0, 1, 2].map((i) => [c * m[0] + s * m[2], m[1], c * m[2] - s * m[0]][i]))(
        spanloop.stage.at[2].slice(12, 15).map((x) => x / 2), Math.cos(0.5), Math.sin(0.5))"""  # fmt: skip
    goal = opened.evaluate(f"{PIXEL}(0, {turned})")
    pressed(opened, x, y)
    assert told(opened, "[...spanloop.live.grabs.held.values()].map((g) => g.body)") == [1]
    opened.mouse("mouseMoved", *goal, button="left", buttons=1)
    opened.evaluate("spanloop.live.pointer.aim()")
    worst = opened.evaluate("""(() => { let worst = 0;
        for (let k = 0; k < 1500; k++) {
            spanloop.live.advance();
            spanloop.stage.move(0);
            worst = Math.max(worst, spanloop.stage.worst);
        }
        return worst; })()""")
    now = opened.evaluate(f"{PIXEL}(0, [...spanloop.live.grabs.held.values()][0].place)")
    away = np.linalg.norm(np.subtract(goal, (x, y)))
    assert away > 20.0
    assert np.linalg.norm(np.subtract(goal, now)) < 0.35 * away
    assert worst < CLOSED
    opened.until("document.querySelector('.pull').textContent.includes(' N')")
    released(opened, *goal)
    assert told(opened, "[spanloop.live.grabs.any, document.querySelectorAll('.pull').length]") == [False, 0]
    assert told(opened, "[...spanloop.live.run.inputs].every((x) => x === 0)")


def test_a_pull_is_its_force_and_its_moment_about_the_origin_of_the_body(opened):
    place, force, inputs, origin = told(opened, """(() => { const live = spanloop.live, run = live.run;
        for (let k = 0; k < 100; k++) run.step();
        const at = live.spec.grab[2], g = live.grabs.add(7, 2, at, [1.1, 0.2, 0.7]);
        const poses = run.kernel('poses'), F = [3, -1, 5];
        g.push(poses, F);
        const found = [...run.inputs.slice(at.place, at.place + 6)];
        live.grabs.release(7);
        return [g.place, F, found, run.origin(poses, at.about)]; })()""")  # fmt: skip
    arm = np.subtract(place, origin)
    np.testing.assert_allclose(inputs, [*np.cross(arm, force), *force], atol=1e-12)
    assert told(opened, "[...spanloop.live.run.inputs].every((x) => x === 0)")


def test_what_a_point_feels_like_is_measured_and_nothing_is_changed_by_it(opened):
    """The crank alone carries a force across it as a body on a hinge does; the state stays to the last bit."""
    before, after, rows = told(opened, """(() => { const live = spanloop.live, run = live.run;
        for (let k = 0; k < 100; k++) run.step();
        spanloop.stage.placeAll();
        const g = live.grabs.add(7, 1, live.spec.grab[1], [...spanloop.stage.at[2].slice(12, 15)]);
        const poses = run.kernel('poses'), before = [...run.view('q'), ...run.view('v'), run.count];
        g.follow(poses, false);
        g.measure(poses);
        live.grabs.release(7);
        return [before, [...run.view('q'), ...run.view('v'), run.count], g.spring]; })()""")  # fmt: skip
    assert before == after
    q, model = np.array(before[:3]), sl.zoo.four_bar()
    # the motion of the point along the only direction that it has
    robot = sl.Dynamics(model)
    rates = robot.complete_velocity(q, {"crank_hinge": 1.0})
    inertia = rates @ robot.mass_matrix(q) @ rates  # of the mechanism, for the crank's angle
    stiffest = max(rows, key=lambda x: x["stiffness"])
    tip = np.array(told(opened, "[...spanloop.stage.at[2].slice(12, 15)]"))
    assert abs(np.dot(stiffest["axis"], tip / np.linalg.norm(tip))) < 1e-3  # across the crank
    compliance = np.dot(tip, tip) / inertia
    shut = max(0.12 * compliance, 1.0 / (2.5 * 3.0))
    rate = 2.0 * np.pi * 2.5
    expected = rate**2 * (compliance / (compliance**2 + shut**2) + 0.2 / compliance)
    assert stiffest["stiffness"] == pytest.approx(expected, rel=2e-2)


def test_the_ground_cannot_be_grabbed_and_says_so(opened):
    x, y = opened.evaluate(f"{PIXEL}(0, [2, 0, -0.02])")  # the stand of the rocker
    azimuth = opened.evaluate("spanloop.camera.azimuth")
    for dx, dy in ((0, 12), (10, 8), (-10, 8), (14, 4)):
        pressed(opened, x + dx, y + dy)
        notes = told(opened, "[...document.querySelectorAll('.pull')].map((x) => x.textContent)")
        released(opened, x + dx, y + dy)
        if notes:
            break
    assert notes == ["the world does not move"]
    assert opened.evaluate("spanloop.live.grabs.any") is False
    assert opened.evaluate("spanloop.camera.azimuth") == azimuth


def test_a_drag_beside_the_bodies_turns_the_camera(opened):
    azimuth = opened.evaluate("spanloop.camera.azimuth")
    opened.drag((60, 300), (120, 300))
    assert opened.evaluate("spanloop.camera.azimuth") != azimuth


def test_keys_play_pause_step_and_reset(opened):
    opened.evaluate("document.getElementById('scene').focus()")
    opened.key(".")
    assert told(opened, "[spanloop.live.run.count, spanloop.live.clock.playing]") == [1, False]
    opened.key(" ")
    opened.until("spanloop.live.run.count > 20")
    opened.key(" ")
    assert opened.evaluate("spanloop.live.clock.playing") is False
    opened.key("-")
    assert opened.evaluate("spanloop.live.clock.speed") == 0.5
    opened.key("+")
    opened.key("r")
    assert told(opened, "[spanloop.live.run.count, spanloop.live.clock.speed]") == [0, 1]
    np.testing.assert_allclose(told(opened, "[...spanloop.live.run.view('q')]"), sl.zoo.four_bar_start(), atol=1e-12)


def test_slow_motion_takes_a_tenth_of_the_steps(opened):
    opened.evaluate("spanloop.live.clock.speed = 0.1; spanloop.live.play(true); window.begun = performance.now()")
    time.sleep(1.0)
    share = opened.evaluate("spanloop.live.run.time / ((performance.now() - window.begun) / 1000)")
    assert 0.03 < share < 0.15


def test_a_slider_of_a_length_reassembles_the_mechanism(opened):
    place = "spanloop.live.run.numbers[spanloop.live.controls.at(spanloop.live.controls.lengths[0])]"
    opened.evaluate(f"{SLIDE}(spanloop.live.controls.lengths[0], 1.2)")
    opened.until(f"{place} === 1.2 && spanloop.live.controls.arrived")
    assert error_now(opened) < CLOSED
    tip = told(opened, "[...spanloop.stage.at[2].slice(12, 15)]")  # where the coupler begins
    assert np.linalg.norm(tip) == pytest.approx(1.2, abs=1e-6)
    opened.evaluate("spanloop.live.single()")
    opened.evaluate("spanloop.live.reset()")
    opened.until(f"{place} === 1.2 && spanloop.live.controls.arrived")
    assert error_now(opened) < CLOSED


def test_a_length_that_cannot_be_is_left_at_the_last_that_can(opened):
    opened.evaluate("spanloop.live.controls.lengths[0].input.max = 9")
    opened.evaluate(f"{SLIDE}(spanloop.live.controls.lengths[0], 9)")
    opened.until("!spanloop.live.controls.lengths[0].note.hidden")
    words = opened.evaluate("spanloop.live.controls.lengths[0].note.textContent")
    assert words.startswith("The loops cannot be closed beyond ")
    shown = opened.evaluate("Number(spanloop.live.controls.lengths[0].input.value)")
    there = opened.evaluate("spanloop.live.run.view('p')[1]")  # after gravity
    assert shown == pytest.approx(there)
    assert there == pytest.approx(6.0, abs=0.01)  # the three others are 2 m each, in one line
    assert error_now(opened) < 1e-9


def test_a_step_that_is_refused_pauses_says_why_and_offers_a_reset(opened):
    opened.evaluate("spanloop.live.run.view('v').fill(1e300); spanloop.live.play(true)")
    opened.until("spanloop.live.ended")
    words = opened.evaluate("document.querySelector('.ended').textContent")
    assert "The run stopped at" in words
    assert words.endswith("Reset")
    assert opened.evaluate("spanloop.live.clock.playing") is False
    q = told(opened, "[...spanloop.live.run.view('q')]")
    assert np.isfinite(q).all()
    opened.evaluate("document.querySelector('.ended button').click()")
    opened.until("spanloop.live.run.count > 5")
    assert opened.evaluate("document.querySelector('.ended').hidden") is True


def test_every_control_has_a_name_and_a_value_in_words(opened):
    rows = told(opened, """[...document.querySelectorAll('#controls input')].map((x) =>
        [x.labels[0].textContent, x.getAttribute('aria-valuetext')])""")  # fmt: skip
    assert [name for name, _ in rows] == ["gravity", "damping", "crank_hinge", LENGTH]
    assert [value for _, value in rows] == ["9.81 m/s²", "0 1/s", "0 N m", "1 m"]
    named = told(opened, "[...document.querySelectorAll('.livebar button')].map((x) => x.getAttribute('aria-label'))")
    assert named == ["play or pause", "one step", "reset"]


def test_gravity_and_damping_act_and_a_double_click_takes_them_back(opened):
    opened.evaluate(
        f"{SLIDE}(spanloop.live.controls.sliders[0], 0); for (let k = 0; k < 100; k++) spanloop.live.run.step()"
    )
    assert np.abs(told(opened, "[...spanloop.live.run.view('v')]")).max() < 1e-12  # nothing falls
    opened.evaluate("spanloop.live.controls.sliders[0].row.dispatchEvent(new Event('dblclick'))")
    assert opened.evaluate("spanloop.live.run.view('p')[0]") == pytest.approx(-9.81)
    opened.evaluate(f"spanloop.live.reset(); {SLIDE}(spanloop.live.controls.sliders[1], 20)")
    opened.evaluate("for (let k = 0; k < 4000; k++) spanloop.live.run.step()")
    assert np.abs(told(opened, "[...spanloop.live.run.view('v')]")).max() < 1.0


def test_plots_show_the_last_seconds(opened):
    opened.evaluate("spanloop.live.play(true)")
    opened.until("spanloop.live.run.time > 0.4")
    drawn = told(opened, "spanloop.live.plots.all.map((p) => [p.group.key, p.ring.count])")
    assert [key for key, _ in drawn] == ["energy", "closures", "forces", "pulls", "tau"]
    assert all(count > 1 for _, count in drawn)
    kinetic, potential, total = told(opened, "[...spanloop.live.plots.energy.values.slice(-3)]")
    assert total == pytest.approx(kinetic + potential)
    assert abs(total) < 1e-6 * max(kinetic, 1.0)  # nothing is lost


def test_it_fits_a_phone(opened):
    opened.resize(390, 844, mobile=True)
    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    wide, low = told(opened, "((b) => [b.width, b.bottom])(document.querySelector('.livebar').getBoundingClientRect())")
    assert wide <= 390
    assert low < 844


def test_a_page_of_a_run_switches_between_recorded_and_live(browser, tmp_path):
    run = sl.simulate(sl.zoo.four_bar(), sl.zoo.four_bar_start(), duration=0.2)
    browser.open(run.page(tmp_path / "run.html", live=True), READY)
    assert browser.evaluate("spanloop.live.on") is True
    assert browser.evaluate("document.getElementById('timeline').hidden") is True
    browser.evaluate("document.querySelector('.switch button').click()")  # recorded
    assert told(browser, "[spanloop.live.on, document.getElementById('timeline').hidden]") == [False, False]
    browser.evaluate("spanloop.timeline.play(false); spanloop.timeline.seek(0.1)")
    browser.until("Math.abs(spanloop.stage.time - 0.1) < 1e-6")
    assert browser.evaluate("document.querySelectorAll('#audit').length") == 1
    browser.evaluate("document.querySelectorAll('.switch button')[1].click()")
    browser.until("spanloop.live.on && !document.querySelector('.livebar').hidden")


def test_a_browser_without_webassembly_says_so_and_shows_the_recorded_run(browser, tmp_path):
    run = sl.simulate(sl.zoo.four_bar(), sl.zoo.four_bar_start(), duration=0.2)
    without = browser.call("Page.addScriptToEvaluateOnNewDocument", source="delete window.WebAssembly")["identifier"]
    try:
        browser.open(run.page(tmp_path / "run.html", live=True), READY)
        assert browser.evaluate("spanloop.live.trouble") == (
            "This browser has no WebAssembly, which a live mechanism needs."
        )
        assert told(browser, "[spanloop.live.on, document.querySelectorAll('.switch button')[1].disabled]") == [
            False,
            True,
        ]
        browser.until("spanloop.timeline.playing")
        browser.open(write_live(sl.zoo.four_bar(), tmp_path / "model.html"), READY)
        assert "no WebAssembly" in browser.evaluate("document.querySelector('.ended').textContent")
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=without)


def test_two_fingers_pull_two_bodies(opened):
    points = [dict(zip("xy", middle_of(opened, body), strict=True), id=body) for body in (1, 3)]
    opened.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=points[:1])
    opened.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=points)
    assert sorted(told(opened, "[...spanloop.live.grabs.held.values()].map((g) => g.body)")) == [1, 3]
    moved = [{**p, "y": p["y"] - 30} for p in points]
    opened.call("Input.dispatchTouchEvent", type="touchMove", touchPoints=moved)
    opened.evaluate("spanloop.live.pointer.aim(); for (let k = 0; k < 300; k++) spanloop.live.advance()")
    assert min(told(opened, "[...spanloop.live.grabs.held.values()].map((g) => Math.hypot(...g.force))")) > 0.1
    assert error_now(opened) < CLOSED
    opened.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    opened.until("!spanloop.live.grabs.any")


def test_a_finger_beside_the_bodies_turns_the_camera(opened):
    azimuth = opened.evaluate("spanloop.camera.azimuth")
    opened.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": 60, "y": 300}])
    opened.call("Input.dispatchTouchEvent", type="touchMove", touchPoints=[{"x": 130, "y": 300}])
    opened.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    opened.until(f"spanloop.camera.azimuth !== {azimuth}")
    assert opened.evaluate("spanloop.live.grabs.any") is False


def test_who_wants_less_motion_presses_play_first(browser, bar):
    less = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    browser.call("Emulation.setEmulatedMedia", features=less)
    try:
        browser.open(bar, "window.spanloop && spanloop.live && spanloop.live.ready")
        assert told(browser, "[spanloop.live.clock.playing, spanloop.live.run.count]") == [False, 0]
        browser.evaluate("document.querySelector('.livebar .play').click()")
        browser.until("spanloop.live.run.count > 5")
    finally:
        browser.call("Emulation.setEmulatedMedia", features=[])


def test_a_pull_moves_a_platform_as_a_critically_damped_spring_of_two_and_a_half_hertz_does(browser, tmp_path):
    """Without gravity, over 4 cm: x(t) = 1 − (1 + w t) e^{−w t}, to what the axes that move less take from it."""
    browser.open(write_live(sl.zoo.stewart(), tmp_path / "stewart.html", sl.zoo.stewart_start()), READY)
    found = told(browser, """(() => { const { live } = spanloop, { run } = live, out = [];
        live.play(false);
        live.reset();
        run.view('p')[0] = 0;
        const place = run.origin(run.kernel('poses'), 1);
        const g = live.grabs.add(7, 1, live.spec.grab[1], place);
        g.target = [place[0], place[1], place[2] + 0.04];
        for (let k = 0; k < 1000; k++) { live.advance(); out.push((g.place[2] - place[2]) / 0.04); }
        live.grabs.release(7);
        return out; })()""")  # fmt: skip
    t = 1e-3 * np.arange(1000)
    expected = 1.0 - (1.0 + 5.0 * np.pi * t) * np.exp(-5.0 * np.pi * t)
    np.testing.assert_allclose(found, expected, atol=0.1)
    assert max(found) < 1.01
    assert found[-1] == pytest.approx(1.0, abs=0.01)
