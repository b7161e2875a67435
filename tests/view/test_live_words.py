"""What a live page says and draws while it is changed: lengths on their way, notes, keys, causes of refusals."""

from __future__ import annotations

import json
import os

import chromium
import numpy as np
import pytest

import spanloop as sl
from spanloop.view.page.live.live_motion import LiveMotion

NEEDED = os.environ.get("SPANLOOP_BROWSER") == "required"  # then a missing browser is a failure
in_browser = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(
        chromium.found() is None and not NEEDED,
        reason="there is no Chromium on this machine (apt install chromium)",
    ),
]
READY = "window.spanloop && spanloop.live && (spanloop.live.first || spanloop.live.trouble)"
SLIDE = "((s, x) => { s.input.value = x; s.input.dispatchEvent(new Event('input')); })"
ELBOW = "spanloop.live.controls.lengths[0]"
# the corner of a body's shapes that is farthest along x, in its frame
FARTHEST = """(() => { const { stage } = spanloop, { gl } = stage.drawing, object = stage.bodies[1];
    gl.bindBuffer(gl.ARRAY_BUFFER, object.buffer);
    const numbers = new Float32Array(gl.getBufferParameter(gl.ARRAY_BUFFER, gl.BUFFER_SIZE) / 4);
    gl.getBufferSubData(gl.ARRAY_BUFFER, 0, numbers);
    return Math.max(...numbers.filter((_, k) => k % 9 === 0)); })()"""


def crane() -> sl.Model:
    """A bar with a joint at its end and a loop in its middle."""
    bar = {"mass": 1.0, "center": (0.5, 0, 0), "inertia": (0.01, 0.1, 0.1)}
    b = sl.Builder("crane").body("lower", **bar).body("upper", **bar).body("tie", **bar)
    b = b.revolute("base", "world", "lower", "y").revolute("elbow", "lower", "upper", "y", position=(1, 0, 0))
    b = b.revolute("tie_hinge", "world", "tie", "y", position=(0.7, 0, 0))
    b = b.frame("pin", "lower", position=(0.5, 0, 0)).frame("tip", "tie", position=(0.5, 0, 0))
    return b.loop("pin", "tip", "spherical", name="tied").build()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    model = crane()
    q = sl.Dynamics(model).assemble({"base": -0.8})
    sliders = {"elbow.position.x": (0.5, 3.0), "tie_hinge.position.x": (0.5, 0.9), "elbow.damping": (0.0, 1.0)}
    path = tmp_path_factory.mktemp("words") / "crane.html"
    law = sl.control.callback(lambda t, q, v: np.zeros(model.nv))
    return model.page(path, q, controller=law, parameters=sliders)


@pytest.fixture(scope="module")
def browser():
    with chromium.Browser(900, 640) as b:
        yield b


@pytest.fixture
def opened(browser, page):
    browser.open(page, READY)
    browser.evaluate("spanloop.live.play(false); spanloop.live.reset()")
    return browser


def told(browser, expression):
    return json.loads(browser.evaluate(f"JSON.stringify({expression})"))


def marked(test):
    for mark in in_browser:
        test = mark(test)
    return test


def test_losses_have_units_of_their_joint():
    model = sl.zoo.stanford()  # a slide among hinges
    slide = next(j.name for j in model.joints if j.kind.units == ("m",))
    turn = next(j.name for j in model.joints if j.kind.units == ("rad",))
    names = [f"{j}.{loss}" for j in (turn, slide) for loss in ("damping", "stiffness", "armature")]
    found = LiveMotion.of(sl.Dynamics(model), parameters=names).data()["parameters"]
    assert [x["unit"] for x in found] == ["N m s/rad", "N m/rad", "kg m²", "N s/m", "N/m", "kg"]


@marked
def test_a_length_shows_where_it_is_and_the_limb_ends_at_its_joint(opened):
    before = opened.evaluate(FARTHEST)
    opened.evaluate(f"{SLIDE}({ELBOW}, 2)")
    assert opened.evaluate(f"{ELBOW}.value.textContent").endswith(" → 2 m")
    opened.until(f"!spanloop.live.controls.onTheWay && {ELBOW}.value.textContent === '2 m'")
    opened.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert opened.evaluate(FARTHEST) - before == pytest.approx(1.0, abs=1e-6)  # its cap is as thick as before
    tip = told(opened, "[...spanloop.stage.at[2].slice(12, 15)]")
    assert np.linalg.norm(tip) == pytest.approx(2.0, abs=1e-6)
    rods = told(opened, "(() => { let n = 0; spanloop.stage.eachSlide(() => (n += 1)); return n; })()")
    assert rods == 0
    # the energy at rest is that of the longer arm: the plot's only sample is of now
    assert told(opened, "[spanloop.live.plots.energy.ring.count, spanloop.live.run.count]") == [1, 0]


@marked
def test_a_joint_that_moves_on_a_body_without_a_limb_to_it_gets_a_rod(opened):
    opened.evaluate(f"{SLIDE}(spanloop.live.controls.lengths[1], 0.8)")
    opened.until("!spanloop.live.controls.onTheWay && spanloop.live.controls.arrived")
    opened.evaluate("spanloop.stage.move(0)")
    length = opened.evaluate("""(() => { let found = 0;
        spanloop.stage.eachSlide((m, k) => { if (k === 0) found = Math.hypot(m[8], m[9], m[10]); });
        return found; })()""")
    assert length == pytest.approx(0.1, abs=1e-6)


@marked
def test_a_reset_lets_lengths_arrive_before_time_runs_and_takes_notes_away(opened):
    opened.evaluate(f"{SLIDE}({ELBOW}, 3)")
    opened.until("!spanloop.live.controls.onTheWay")
    opened.evaluate(f"{ELBOW}.refuse(3, 'a note'); spanloop.live.reset(); spanloop.live.play(true)")
    assert opened.evaluate(f"{ELBOW}.note.hidden") is True
    first = opened.evaluate("""new Promise((done) => { const look = () => spanloop.live.run.count
        ? done(spanloop.live.run.view('p')[1]) : requestAnimationFrame(look); look(); })""")
    assert first == 3


@marked
def test_notes_are_above_the_picture_until_they_are_closed(opened):
    assert "no torques act in its place" in opened.evaluate("document.querySelector('.differs p').textContent")
    low, high = told(
        opened,
        """['.differs', 'main'].map((x, k) =>
        document.querySelector(x).getBoundingClientRect()[k ? 'top' : 'bottom'])""",
    )
    assert 0 < low <= high
    opened.evaluate("document.querySelector('.differs button').click()")
    assert opened.evaluate("document.querySelector('.differs')") is None


@marked
def test_help_lists_each_key_once_and_only_those_that_act(opened):
    rows = told(opened, "[...document.querySelectorAll('#keys div b')].map((x) => x.textContent)")
    assert len(set(rows)) == len(rows)
    assert not {"home, end", "← →", "e, shift e", "double click, r"} & set(rows)
    assert ". or →" in rows


@marked
def test_the_hint_goes_away(browser, page):
    browser.before("window.setTimeout = ((later) => (act, ms) => later(act, ms / 20))(window.setTimeout)")
    browser.open(page, READY)
    browser.until("document.querySelector('.hint').hidden", 5.0)


@marked
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("run.view('v').fill(1e300)", "A number is no longer finite; the motion is too fast for the step."),
        (
            "run.view('p')[2] = 1, run.view('q').set([0, 0, Math.PI])",
            "The position is singular: the loops lose rank",
        ),
        ("run.view('p')[2] = 5", "A loop cannot be closed after this step: it stays open by "),
    ],
)
def test_a_refused_step_says_which_cause_it_has(opened, change, words):
    opened.evaluate(f"((run) => ({change}))(spanloop.live.run); spanloop.live.advance()")
    assert opened.evaluate("spanloop.live.ended").startswith(words)
