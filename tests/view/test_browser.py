"""The page of a run in a real browser: it moves, it is quiet, it asks for nothing, it fits a phone."""

from __future__ import annotations

import base64
import json
import os

import chromium
import numpy as np
import pytest
from event_motions import coupled_carts
from motions import integrated

import spanloop as sl
from spanloop.simulation.control.periodic_motion import lead
from spanloop.trajectory import Outcome, Segment
from spanloop.view import page

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
BOX = "(({{x, y, width, height}}) => [x, y, width, height])(document.querySelector('{}').getBoundingClientRect())"
STILL = "spanloop.timeline.play(false)"
PHONE = (390, 844)


@pytest.fixture(scope="module")
def carrying(tmp_path_factory):
    """The page of three arms that carry a disc for a second."""
    robot = sl.Dynamics(sl.zoo.three_pumas())
    led = lead(robot, sl.zoo.three_pumas_start(), sl.zoo.three_pumas_path, 6.0)
    run = sl.simulate(robot, led.q, led.v, duration=1.0, sample=2e-3, controller=led.control)
    return run.page(tmp_path_factory.mktemp("page") / "carrying.html")


@pytest.fixture(scope="module")
def browser():
    with chromium.Browser(1200, 760) as b:
        yield b


@pytest.fixture
def opened(browser, carrying):
    """The page, at rest at its start, in a wide window."""
    browser.console.clear()
    browser.asked.clear()
    browser.resize(1200, 760)
    browser.open(carrying, READY)
    browser.evaluate(f"{STILL}; spanloop.timeline.seek(0)")
    yield browser
    assert quiet(browser) == []


def quiet(browser):
    """What the page complained of; not the driver's remark that this test took a screenshot."""
    return [line for line in browser.console if "GPU stall due to ReadPixels" not in line]


def picture(browser, id="scene"):
    """The pixels of a canvas (height, width, 4), as they are drawn."""
    found = browser.evaluate(
        f"""new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {{
        const stage = spanloop.stage;
        stage.draw(spanloop.camera, document.documentElement.classList.contains('dark'));
        const from = document.getElementById('{id}');
        const to = new OffscreenCanvas(from.width, from.height).getContext('2d');
        to.drawImage(from, 0, 0);
        const p = to.getImageData(0, 0, from.width, from.height);
        let text = '';
        for (let k = 0; k < p.data.length; k += 8192) text += String.fromCharCode(...p.data.subarray(k, k + 8192));
        done(JSON.stringify([p.height, p.width, btoa(text)]));
        }})))"""
    )
    height, width, data = json.loads(found)
    return np.frombuffer(base64.b64decode(data), np.uint8).reshape(height, width, 4).astype(int)


def differing(a, b):
    """The share of pixels that differ."""
    return float((np.abs(a - b).max(axis=-1) > 24).mean())


@pytest.mark.slow
def test_it_moves_with_the_timeline(opened):
    start = picture(opened)
    assert (start[..., 3] > 200).mean() > 0.02  # bodies are there
    opened.evaluate("spanloop.timeline.seek(0.8)")
    later = picture(opened)
    assert differing(start, later) > 0.005
    opened.evaluate("spanloop.timeline.seek(0)")
    assert differing(start, picture(opened)) < 1e-4


@pytest.mark.slow
def test_it_plays_by_itself_and_begins_again(opened):
    opened.evaluate("spanloop.timeline.seek(0.95); spanloop.timeline.play(true)")
    opened.until("spanloop.timeline.time < 0.5")
    opened.key(" ")
    opened.until("spanloop.timeline.playing === false")


def test_nothing_is_asked_from_outside(opened):
    opened.evaluate("spanloop.timeline.seek(0.5)")
    assert [a for a in opened.asked if not a.startswith(("file:", "blob:", "data:"))] == []
    assert len([a for a in opened.asked if a.startswith("file:")]) == 1


def test_the_slider_is_the_time(opened):
    box = opened.evaluate(BOX.format("#scrub"))
    opened.click(box[0] + 0.5 * box[2], box[1] + 0.5 * box[3])
    opened.until("Math.abs(spanloop.timeline.time - 0.5) < 0.03")
    opened.until("document.getElementById('clock').textContent.startsWith('0.5')")


def test_plots_show_curves_and_their_cursor_is_the_time(opened):
    keys = opened.evaluate("[...document.querySelectorAll('.plot')].map((p) => p.dataset.key)")
    assert keys == ["energy", "closures", "forces", "q", "v", "tau"]
    drawn = opened.evaluate(
        """[...document.querySelectorAll('.plot canvas:first-child')].map((c) =>
        new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size)"""
    )
    assert min(drawn) > 20
    x, y, width, height = opened.evaluate(BOX.format(".plot"))
    opened.click(x + 52 + 0.25 * (width - 60), y + height / 2)
    opened.until("Math.abs(spanloop.timeline.time - 0.25) < 0.01")
    opened.until("spanloop.plots.every((p) => Math.abs(p.time - 0.25) < 0.01)")


def test_a_curve_can_be_taken_away(opened):
    before = opened.evaluate("spanloop.plots[0].shown.size")
    opened.evaluate("document.querySelector('.chip').click()")
    opened.until(f"spanloop.plots[0].shown.size === {before - 1}")


@pytest.mark.slow
def test_dragging_turns_the_view_and_the_wheel_brings_it_nearer(opened):
    start = picture(opened)
    opened.drag((500, 400), (650, 430))
    turned = picture(opened)
    assert differing(start, turned) > 0.02
    distance = opened.evaluate("spanloop.camera.distance")
    opened.mouse("mouseWheel", 500, 400, deltaX=0, deltaY=-200)
    opened.until(f"spanloop.camera.distance < {0.9 * distance}")
    opened.key("r")
    opened.mouse("mouseMoved", 5, 5)
    opened.until("spanloop.stage.pointed === 0")
    assert differing(start, picture(opened)) < 1e-4


@pytest.mark.slow
def test_steps_begin_at_the_time_not_at_what_was_drawn(opened):
    """Time moves, and a key comes before the next picture."""
    key = "window.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }))"
    found = opened.evaluate(f"(spanloop.timeline.seek(0.5), {key}, spanloop.timeline.time)")
    assert found == pytest.approx(0.5 + 1 / 60, abs=1 / 120 + 1e-9)
    found = opened.evaluate(f"(spanloop.timeline.seek(1), {key}, spanloop.timeline.time)")
    assert found == pytest.approx(1.0)


@pytest.mark.slow
def test_keys_step_and_switch(opened):
    opened.evaluate("document.getElementById('scene').focus()")
    opened.key("ArrowRight")
    opened.until("Math.abs(spanloop.timeline.time - 1 / 60) < 0.01")
    opened.key("End")
    opened.until("Math.abs(spanloop.timeline.time - 1) < 1e-6")
    for letter, part in (("f", "forces"), ("j", "joints"), ("l", "loops"), ("i", "inertias"), ("a", "frames")):
        before, seen = opened.evaluate(f"spanloop.stage.shown.{part}"), picture(opened)
        opened.key(letter)
        opened.until(f"spanloop.stage.shown.{part} !== {str(before).lower()}")
        assert differing(seen, picture(opened)) > 1e-4, part
        opened.key(letter)


@pytest.mark.slow
def test_a_name_appears_under_the_pointer(opened):
    found = opened.evaluate(
        """(() => {
        const { stage, camera } = spanloop, canvas = stage.drawing.canvas;
        const m = camera.seen(canvas.width / canvas.height);
        const p = stage.at[stage.data.bodies.findIndex((b) => b.name === 'object')].slice(12, 15);
        const r = [0, 1, 2, 3].map((i) => m[i] * p[0] + m[4 + i] * p[1] + m[8 + i] * p[2] + m[12 + i]);
        const box = canvas.getBoundingClientRect();
        return [box.x + (r[0] / r[3] + 1) / 2 * box.width, box.y + (1 - r[1] / r[3]) / 2 * box.height];
        })()"""
    )
    opened.mouse("mouseMoved", *found)
    opened.until("!document.getElementById('label').hidden")
    assert "object" in opened.evaluate("document.getElementById('label').textContent")
    opened.mouse("mouseMoved", 5, 5)
    opened.until("document.getElementById('label').hidden")


def test_light_and_dark(opened):
    paper = "getComputedStyle(document.body).backgroundColor"
    before = opened.evaluate(paper)
    opened.evaluate("document.getElementById('theme').click()")
    opened.until(f"{paper} !== '{before}'")
    opened.evaluate("document.getElementById('theme').click()")


def test_the_audit_is_reported_in_words(opened):
    words = opened.evaluate("document.getElementById('audit').textContent")
    assert "All is well." in words
    assert "closure velocity: well" in words


@pytest.mark.slow
def test_loops_that_open_are_red(browser, tmp_path):
    """A four-bar pulled apart by a centimetre."""
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    rows = np.linspace(q, q + (0.0, 0.02, 0.0), 5)
    segment = Segment(np.linspace(0.0, 1.0, 5), rows, 0.0 * rows, 0.0 * rows)
    run = sl.Trajectory(model, segment, Outcome("finished", "done", 1.0), {})
    path = page.write(run, tmp_path / "open.html")
    browser.console.clear()
    browser.open(path, READY)
    seen = {}
    for t in (0.0, 1.0):
        browser.evaluate(f"{STILL}; spanloop.timeline.seek({t})")
        p = picture(browser)
        red = (p[..., 0] > 1.6 * p[..., 1]) & (p[..., 0] > 1.6 * p[..., 2]) & (p[..., 3] > 200)
        green = (p[..., 1] > 1.4 * p[..., 0]) & (p[..., 1] > 1.2 * p[..., 2]) & (p[..., 3] > 200)
        seen[t] = (red.sum(), green.sum(), browser.evaluate("document.getElementById('status').textContent"))
    assert seen[0.0][1] > 40
    assert "closed" in seen[0.0][2]
    assert seen[1.0][0] > seen[0.0][0] + 40
    assert seen[1.0][1] == 0
    assert "open" in seen[1.0][2]
    assert quiet(browser) == []


@pytest.mark.slow
def test_a_phone_sees_all_of_it(opened):
    opened.resize(*PHONE, mobile=True)
    opened.until("spanloop.stage.drawing.canvas.clientWidth < 400")
    assert opened.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    wide = opened.evaluate(
        "[...document.querySelectorAll('.card, #timeline, header, .plot')].map((e) => e.getBoundingClientRect().right)"
    )
    assert max(wide) <= PHONE[0]
    assert (picture(opened)[..., 3] > 200).mean() > 0.01
    small = opened.evaluate("['play', 'speed'].map((id) => document.getElementById(id).getBoundingClientRect().height)")
    assert min(small) >= 32


def test_names_stay_text(browser, tmp_path):
    name = "</script><img src=x onerror='window.caught = 1'><b>bold"
    model = (
        sl.Builder(name)
        .body(name, 1.0, center=(0, 0, 1), inertia=(0.1, 0.1, 0.1))
        .revolute("j<i>", "world", name, "y")
        .build()
    )
    run = integrated(model, np.array([0.3]), np.zeros(1), 0.02, 1e-3)
    browser.console.clear()
    browser.open(page.write(run, tmp_path / "nasty.html", title=name), READY)
    assert browser.evaluate("window.caught") is None
    assert browser.evaluate("document.querySelectorAll('img, b.bold, main i i').length") == 0
    assert browser.evaluate("document.getElementById('title').textContent") == name
    assert browser.evaluate("document.title") == name
    assert quiet(browser) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pendulum", "stewart", "quadruped", "random_model"])
def test_other_mechanisms_are_drawn_without_a_word(name, browser, tmp_path):
    model = getattr(sl.zoo, name)(*((2,) if name in ("pendulum", "random_model") else ()))
    start = getattr(sl.zoo, f"{name}_start", None)
    q = start() if start else model.neutral()
    run = sl.simulate(model, q, np.zeros(model.nv), duration=0.1)
    browser.console.clear()
    browser.resize(1200, 760)
    browser.open(page.write(run, tmp_path / "run.html"), READY)
    browser.evaluate(f"{STILL}; spanloop.timeline.seek(0.05)")
    assert (picture(browser)[..., 3] > 200).mean() > 0.001
    assert quiet(browser) == []


# ---- events


@pytest.fixture(scope="module")
def coupling(tmp_path_factory):
    """The page of two carts that couple at 0.5 s and part at 0.8 s."""
    return coupled_carts().page(tmp_path_factory.mktemp("page") / "coupling.html")


@pytest.fixture
def events_opened(browser, coupling):
    browser.console.clear()
    browser.resize(1200, 760)
    browser.open(coupling, READY)
    browser.evaluate(f"{STILL}; spanloop.timeline.seek(0)")
    yield browser
    assert quiet(browser) == []


def test_marks_on_the_time_line_and_the_list_lead_to_events(events_opened):
    b = events_opened
    titles = b.evaluate("[...document.querySelectorAll('#marks button')].map((x) => x.title).join('|')")
    assert titles == "0.5 s: attach hook|0.8 s: release hook"
    box = b.evaluate(BOX.format("#marks button:nth-child(2)"))
    b.click(box[0] + 0.5 * box[2], box[1] + 0.5 * box[3])
    b.until("Math.abs(spanloop.timeline.time - 0.8) < 1e-6")
    box = b.evaluate(BOX.format("#events tr:nth-child(2)"))
    b.click(box[0] + 0.5 * box[2], box[1] + 0.5 * box[3])
    b.until("Math.abs(spanloop.timeline.time - 0.5) < 1e-6")
    b.until("document.querySelector('#events tr[aria-current]')?.textContent.includes('attach hook')")
    b.key("e")
    b.until("Math.abs(spanloop.timeline.time - 0.8) < 1e-6")


def test_an_event_without_impulse_is_listed_as_such(events_opened):
    cells = "[x.className, ...[...x.cells].slice(2).map((y) => y.textContent)].join(',')"
    rows = events_opened.evaluate(
        f"[...document.querySelectorAll('#events tr[tabindex]')].map((x) => {cells}).join('|')"
    )
    assert rows == ",1.5 N s,1.5|calm,\u2013,\u2013"


def test_loops_are_drawn_only_while_they_are_closed(events_opened):
    b = events_opened
    words = "document.getElementById('status').textContent"
    count = "(() => { let n = 0; spanloop.stage.eachLoop(() => (n += 1)); return n; })()"
    for time, drawn, status in ((0.2, 0, "no loop closed"), (0.5, 1, "1 loop closed"), (0.9, 0, "no loop closed")):
        b.evaluate(f"spanloop.timeline.seek({time})")
        b.until(f"{words}.startsWith('{status}')")
        assert b.evaluate(count) == drawn


@pytest.fixture(scope="module")
def resting(tmp_path_factory):
    """The page of a crate that slides on the ground and comes to rest."""
    b = sl.Builder("crate").body("crate", 1.0, inertia=(0.01, 0.01, 0.01), geometry=[sl.contacts.Box(0.2, 0.2, 0.1)])
    model = b.free("flight", "world", "crate").build().with_ground(friction=0.5)
    run = sl.simulate(model, [1, 0, 0, 0, 0, 0, 0.05], [0, 0, 0, 1, 0, 0], duration=0.4)
    return run.page(tmp_path_factory.mktemp("page") / "resting.html")


def test_arrows_at_contacts_have_a_switch_and_a_colour_for_what_they_do(browser, resting):
    browser.console.clear()
    browser.resize(1200, 760)
    browser.open(resting, READY)
    browser.evaluate(STILL)
    words = "document.getElementById('status').textContent"
    shades = []
    for time, status in ((0.1, "4 slipping"), (0.3, "4 sticking")):
        browser.evaluate(f"spanloop.timeline.seek({time})")
        browser.until(f"{words} === 'contact points: {status}'")
        shown = picture(browser)
        browser.key("c")
        browser.until("spanloop.stage.shown.contacts === false")
        arrows = np.abs(shown - picture(browser)).max(axis=-1) > 24
        assert arrows.mean() > 1e-3
        shades.append(shown[arrows].mean(axis=0))
        browser.key("c")
    slipping, sticking = shades
    assert slipping[0] > slipping[1]  # magenta
    assert sticking[1] > sticking[0]  # teal
    assert quiet(browser) == []


def test_the_page_of_modes_shows_the_mode_that_is_chosen(tmp_path):
    modes = sl.Dynamics(sl.zoo.pendulum(2)).modes([0.0, 0.0])
    where = modes.page(tmp_path / "modes.html")
    with chromium.Browser() as browser:
        browser.open(where, READY)
        assert browser.evaluate("document.querySelectorAll('#modes tr[tabindex]').length") == 2
        browser.evaluate("document.querySelectorAll('#modes tr[tabindex]')[1].click()")
        assert browser.evaluate("document.getElementById('clock').textContent") == "mode 1: 1.144 Hz"
        start, end = browser.evaluate("[spanloop.timeline.start, spanloop.timeline.end]")
        browser.until(f"spanloop.timeline.time > {start} && spanloop.timeline.time < {end}")
        assert browser.evaluate("document.querySelectorAll('#shape .bar').length") == 2
        assert not [x for x in browser.console if "GL Driver" not in x]
