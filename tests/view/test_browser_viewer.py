"""The live viewer in a real browser: a slider is dragged, the picture changes, and nothing comes from outside."""

from __future__ import annotations

import time
from dataclasses import replace

import browser
import numpy as np
import pytest
from motions import four_bar_run

import spanloop as sl
from spanloop.model.parts import Geometry

pytest.importorskip("viser", reason="the live viewer needs viser")
pytest.importorskip("PIL", reason="pictures are read with Pillow")
pytestmark = [
    pytest.mark.slow,  # without a graphics card a picture takes most of a second
    pytest.mark.skipif(browser.why_none() is not None, reason=f"browser test: {browser.why_none()}"),
]

STILL = 0.002  # share of the pixels that may differ in a picture at rest
CHANGED = 0.01  # share that differs, at least, when a mechanism has moved


@pytest.fixture(scope="module")
def page():
    with browser.page() as shown:
        yield shown


def difference(a: np.ndarray, b: np.ndarray, levels: int = 24) -> float:
    """The share of pixels whose colour differs by more than so many of 255 levels."""
    return float((np.abs(a - b).max(axis=2) > levels).mean())


def scenery(page) -> np.ndarray:
    """The picture left of the panel when it has come to rest: three in a row are the same (it fades in at first)."""
    pictures, end = [_left(page.picture())], time.monotonic() + 90.0
    while time.monotonic() < end:
        time.sleep(0.3)
        pictures.append(_left(page.picture()))
        last = pictures[-1]
        if len(pictures) > 2 and _shown(last) and all(difference(p, last, 2) <= STILL for p in pictures[-3:-1]):
            return last
    raise TimeoutError("the picture never came to rest")


def _left(picture: np.ndarray) -> np.ndarray:
    return picture[:, : int(0.65 * picture.shape[1])]


def _shown(picture: np.ndarray) -> bool:
    """Is there something that is neither white nor grey, in full strength?"""
    return float((np.ptp(_left(picture), axis=2) > 60).mean()) > 0.002


def opened(page, url: str) -> np.ndarray:
    page.open(url)
    page.until("document.querySelectorAll('canvas').length > 0")
    return scenery(page)


def middle_of(page, expression: str) -> tuple[float, float]:
    """The middle of an element on the screen [pixels]."""
    page.until(f"!!({expression})")
    script = (
        f"(() => {{const b = ({expression}).getBoundingClientRect(); return [b.x + b.width/2, b.y + b.height/2]}})()"
    )
    x, y = page.evaluate(script)
    return x, y


def test_a_slider_moves_the_picture_and_keeps_the_loop_closed(page):
    from spanloop.view.viewer import show

    with show(sl.zoo.four_bar(), sl.zoo.four_bar_start(), block=False) as viewer:
        before = opened(page, viewer.url)
        assert difference(before, scenery(page)) <= STILL  # nothing moves of itself
        start = viewer.session.q.copy()
        x, y = middle_of(page, "document.querySelector('[role=slider]')")
        page.drag((x, y), (x - 30.0, y))
        end = time.monotonic() + 30.0
        while abs(viewer.session.q[0] - start[0]) <= 0.2 and time.monotonic() < end:
            time.sleep(0.1)
        viewer.settled()
        after = scenery(page)
        assert abs(viewer.session.q[0] - start[0]) > 0.2
        assert np.abs(viewer.session.robot.closure_error(viewer.session.q)).max() <= 1e-10
        assert difference(before, after) > CHANGED
        assert page.strangers() == []
        assert page.complaints == []


def test_start_makes_it_move_by_itself(page):
    from spanloop.view.viewer import show

    with show(sl.zoo.four_bar(), sl.zoo.four_bar_start(), block=False) as viewer:
        viewer.request("hold", False)  # else the crank stays where it is
        before = opened(page, viewer.url)
        button = "[...document.querySelectorAll('button')].find(b => b.textContent.trim() === %r)"
        page.click(*middle_of(page, button % "Start"))
        end = time.monotonic() + 60.0
        while viewer.session.live.now.time < 0.4 and time.monotonic() < end:
            time.sleep(0.05)
        page.click(*middle_of(page, button % "Pause"))
        while viewer.session.mode == "live" and time.monotonic() < end:
            time.sleep(0.05)
        assert viewer.session.mode == "posing"
        assert viewer.session.live.now.time >= 0.4
        assert difference(before, scenery(page)) > CHANGED
        assert page.strangers() == []
        assert page.complaints == []


def test_names_of_a_model_run_no_script(page, tmp_path):
    from spanloop.view.viewer import record, show

    names = "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe><img src=x onerror=pwned=1>"
    b = sl.Builder(names).body(names, 1.0, center=(0, 0, 1), inertia=(0.1, 0.1, 0.1))
    model = b.revolute(names, "world", names, "y", lower=-1.0, upper=1.0).build()
    mesh = Geometry("mesh", (), names + ".stl")
    model = replace(model, bodies=tuple(replace(x, geometry=(mesh,)) for x in model.bodies))
    with show(model, [0.5], block=False, folder=tmp_path) as viewer:
        page.open(viewer.url)
        page.until("document.querySelectorAll('canvas').length > 0")
        viewer.session.message = f"joint {names!r} is at its limit"
        viewer.request("arrows", 1.0)
        viewer.settled()
        page.until("document.body.innerText.split('srcdoc').length > 3")  # the note, the status, the slider
        assert page.evaluate("window.pwned") is None
        assert page.evaluate("document.querySelectorAll('iframe').length") == 0
    record(sl.simulate(model, [0.5], duration=0.05), tmp_path / "run.html", folder=tmp_path)
    page.open((tmp_path / "run.html").as_uri())
    page.until("document.querySelectorAll('canvas').length > 0")
    time.sleep(1.0)
    assert page.evaluate("window.pwned") is None


def test_a_recording_plays_from_one_file(page, tmp_path):
    from spanloop.view.viewer import record

    record(four_bar_run(duration=1.5), tmp_path / "run.html")
    page.open((tmp_path / "run.html").as_uri())
    page.until("document.querySelectorAll('canvas').length > 0")
    pictures = []
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        pictures.append(page.picture())
        shown = [p for p in pictures if _shown(p)]
        if shown and difference(shown[0][:500], shown[-1][:500]) > CHANGED:
            break
        time.sleep(0.2)
    assert difference(shown[0][:500], shown[-1][:500]) > CHANGED
    assert page.strangers() == []
    assert page.complaints == []
