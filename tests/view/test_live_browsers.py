"""Live pages in Chromium and in Firefox, from file://: they start, move, can be grabbed and stay closed."""

from __future__ import annotations

import io
import time
from pathlib import Path

import chromium
import firefox
import numpy as np
import pytest

import spanloop as sl
from spanloop.view.page.inline import InlinePage
from spanloop.view.page.live.live_page import live_text

pytestmark = [pytest.mark.slow, pytest.mark.browser]

BROWSERS = {
    "chromium": (chromium.Browser, None if chromium.found() else "no Chromium on PATH"),
    "firefox": (firefox.Firefox, firefox.why_none()),
}
BEFORE = """
  if (location.search === '?without') delete window.WebAssembly;
  const look = () => {
    const time = document.querySelector('.livebar .time');
    if (time && parseFloat(time.textContent) > 0) window.firstMove = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
"""
FRAMES = """new Promise((done) => {
  const begun = performance.now();
  let count = 0;
  const next = () => {
    const passed = performance.now() - begun;
    count += 1;
    if (passed > 500) done(1000 * count / passed); else requestAnimationFrame(next);
  };
  next();
})"""
PIXEL = """(() => {
  const { camera, stage, live } = window.spanloop;
  const { canvas } = stage.drawing;
  const body = 1 + live.data.bodies.slice(1).findIndex((b) => b.name === BODY);
  const p = live.run.pointOf(live.run.kernel('poses'), body, POINT);
  const m = camera.seen(canvas.width / canvas.height);
  const [x, y, , w] = [0, 1, 2, 3].map((r) => m[r] * p[0] + m[4 + r] * p[1] + m[8 + r] * p[2] + m[12 + r]);
  const box = canvas.getBoundingClientRect();
  return [box.left + box.width * (0.5 + x / w / 2), box.top + box.height * (0.5 - y / w / 2)];
})()"""
STEPS = """(() => {
  const { live } = window.spanloop;
  live.play(false);
  live.reset();
  let worst = 0;
  for (let k = 0; k < 500; k++) {
    if (live.run.step()) return null;
    worst = Math.max(worst, ...Array.from(live.run.kernel('closure'), Math.abs));
  }
  return [worst, ...live.run.view('q')];
})()"""
TIME = "window.spanloop.live.run.time"
ENERGY = "Array.from(window.spanloop.live.run.kernel('energy')).reduce((a, b) => a + b, 0)"
CLOSURE = "Math.max(...Array.from(window.spanloop.live.run.kernel('closure'), Math.abs))"


@pytest.fixture(scope="module", params=BROWSERS)
def browser(request):
    kind, why_none = BROWSERS[request.param]
    if why_none:
        pytest.skip(why_none)
    with kind(900, 600) as found:
        found.before(BEFORE)
        if not found.evaluate("Boolean(document.createElement('canvas').getContext('webgl2'))"):
            pytest.skip(f"{request.param} has no WebGL here; Xvfb gives it one")
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """A four-bar that turns."""
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    v = sl.Dynamics(model).complete_velocity(q, {"crank_hinge": 2.0})
    return model.page(tmp_path_factory.mktemp("live") / "four_bar.html", q, v, title="A four-bar that runs")


def complaints(browser) -> list[str]:
    """What the page has complained of; drivers of graphics that comment on speed do not count."""
    browser.evaluate("1")
    return [x for x in browser.console if "GL Driver Message" not in x]


def test_a_live_page_moves_can_be_grabbed_and_keeps_its_loops_closed(browser, page):
    browser.console.clear()
    browser.asked.clear()
    browser.open(page, "window.firstMove")
    first, frames = browser.evaluate("window.firstMove"), browser.evaluate(FRAMES)
    print(f"{type(browser).__name__}: first moving picture after {first:.0f} ms, {frames:.0f} frames a second")
    browser.key(" ")
    stopped, energy = browser.evaluate(TIME), browser.evaluate(ENERGY)
    assert stopped > 0.0
    assert browser.evaluate(TIME) == stopped
    x, y = browser.evaluate(PIXEL.replace("BODY", "'coupler'").replace("POINT", "[1.1, 0, 0]"))
    browser.press(x, y)
    browser.move(x + 20, y - 20)
    browser.move(x + 40, y - 40)
    browser.key(" ")
    browser.until(f"{TIME} > {stopped} + 0.3")
    assert browser.evaluate("document.querySelector('.pull').textContent").endswith(" N")
    pulled = browser.evaluate("window.spanloop.live.grabs.any")
    browser.release()
    browser.key(" ")
    assert (pulled, browser.evaluate("window.spanloop.live.grabs.any")) == (True, False)
    assert abs(browser.evaluate(ENERGY) - energy) > 1e-3  # the hand has done work
    assert browser.evaluate(CLOSURE) < 1e-14
    assert complaints(browser) == []
    assert [x for x in browser.asked if not x.startswith(("file:", "data:"))] == []


def test_steps_in_the_page_are_those_of_simulate(browser, page):
    """To rounding after half a second; closure errors at every step are those of rounding."""
    browser.open(page, "window.spanloop && window.spanloop.live && window.spanloop.live.ready")
    worst, *q = browser.evaluate(STEPS)
    model, start = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    v = sl.Dynamics(model).complete_velocity(start, {"crank_hinge": 2.0})
    assert q == pytest.approx(sl.simulate(model, start, v, duration=0.5).q[-1], abs=1e-12)
    assert worst < 2e-15


def test_a_browser_without_webassembly_says_so(browser, page):
    browser.console.clear()
    browser.open(page.resolve().as_uri() + "?without", "window.spanloop")
    assert "This browser has no WebAssembly" in browser.evaluate("document.body.innerText")
    assert complaints(browser) == []


def test_a_live_page_runs_inside_the_frame_of_a_notebook(browser, tmp_path):
    html = live_text(sl.zoo.pendulum(2), [1.2, 0.4])
    frame = InlinePage("pendulum", html, 500)._repr_html_()
    assert 'sandbox="allow-scripts"' in frame
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><body>{frame}</body>")
    browser.open(notebook)
    seen = [_settled(browser)]
    end = time.monotonic() + 20.0
    while len(seen) < 2 and time.monotonic() < end:
        later = _settled(browser)
        if np.abs(later - seen[0])[:400, :500].max() > 40:
            seen.append(later)
    assert len(seen) == 2, "the picture in the frame stands still"


def _settled(browser) -> np.ndarray:
    """A picture of the window after a moment, (height, width, 3)."""
    from PIL import Image

    time.sleep(1.0)
    return np.asarray(Image.open(io.BytesIO(browser.screenshot())).convert("RGB")).astype(int)
