"""The live page as a file: what it holds, what it refuses, and that pages without it are as they were."""

from __future__ import annotations

import base64
import gzip
import json
import re

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError
from spanloop.view.page.html import LIVE_SCRIPTS, page_of
from spanloop.view.page.live.live_page import live_text, write_live

WASM = b"\0asm"


@pytest.fixture(scope="module")
def four_bar():
    return live_text(sl.zoo.four_bar(), sl.zoo.four_bar_start(), title="A four-bar & <its> page")


@pytest.fixture(scope="module")
def swing():
    return sl.simulate(sl.zoo.four_bar(), sl.zoo.four_bar_start(), duration=0.2)


def data_of(text):
    (found,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', text, flags=re.DOTALL)
    return json.loads(found)


def policy_of(text):
    return re.findall(r'Content-Security-Policy" content="(.*?)"', text)[0]


def test_the_page_of_a_model_holds_its_module_and_start(four_bar):
    data = data_of(four_bar)
    live = data["live"]
    assert gzip.decompress(base64.b64decode(live["wasm"]))[:4] == WASM
    np.testing.assert_allclose(live["start"]["q"], sl.zoo.four_bar_start(), atol=1e-12)
    assert len(live["boxes"]) == len(live["grab"]) == len(data["bodies"]) == 4
    assert data["recorded"] is False
    assert "<title>A four-bar &amp; &lt;its&gt; page</title>" in four_bar


def test_a_box_holds_the_shapes_of_its_body(four_bar):
    data = data_of(four_bar)
    crank = np.array(data["live"]["boxes"][1]).reshape(2, 3)
    assert np.all(crank[0] < crank[1])
    assert crank[1, 0] - crank[0, 0] > 0.9  # a crank of 1 m along x


def test_only_a_live_page_admits_webassembly_and_carries_its_scripts(four_bar, swing, tmp_path):
    dead = swing.page(tmp_path / "dead.html").read_text(encoding="utf-8")
    both = swing.page(tmp_path / "both.html", live=True).read_text(encoding="utf-8")
    for text in (four_bar, both):
        assert policy_of(text).endswith(" 'wasm-unsafe-eval'")
        assert "class WasmRun" in text
    for text in (four_bar, both, dead):
        assert "unsafe-inline" not in text
        assert "'unsafe-eval'" not in text
    assert "wasm-unsafe-eval" not in dead
    assert "class WasmRun" not in dead
    assert "live" not in data_of(dead)
    assert len(LIVE_SCRIPTS) == 8


def test_the_page_of_a_run_is_live_from_the_first_state_of_the_run(swing, tmp_path):
    data = data_of(swing.page(tmp_path / "x.html", live=True).read_text(encoding="utf-8"))
    np.testing.assert_allclose(data["live"]["start"]["q"], swing.q[0], atol=1e-12)
    assert "recorded" not in data
    assert data["audit"] is not None


def test_a_run_says_which_part_is_first(swing, tmp_path):
    chosen = {"first": "recorded", "parameters": ["crank.mass"]}
    live = data_of(swing.page(tmp_path / "x.html", live=chosen).read_text(encoding="utf-8"))["live"]
    assert live["first"] == "recorded"
    assert [p["name"] for p in live["parameters"]] == ["crank.mass"]
    with says(InputError, "first is 'dead'; expected 'live' or 'recorded'"):
        swing.page(tmp_path / "y.html", live={"first": "dead"})
    with says(InputError, "no option 'paramters' for the page of a run; did you mean 'parameters'?"):
        swing.page(tmp_path / "y.html", live={"paramters": ["crank.mass"]})
    assert not (tmp_path / "y.html").exists()


@pytest.mark.slow
def test_a_mechanism_that_floats_is_followed_and_one_that_hangs_has_its_floor_below():
    box = sl.Builder("box").body("box", 2.0, inertia=(0.03, 0.03, 0.04)).free("free", "world", "box").build()
    free = data_of(live_text(box))["live"]
    assert (free["travels"], free["hangs"]) == (True, False)
    hanging = data_of(live_text(sl.zoo.delta(), sl.zoo.delta_start()))["live"]
    assert (hanging["travels"], hanging["hangs"]) == (False, True)


def test_forces_with_inputs_ask_for_them(tmp_path):
    def push(t, q, v, u):
        return {"coupler": [0.0, 0.0, 0.0, u[0], 0.0, 0.0]}

    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    with says(InputError, "page: forces read inputs u, but none are given; pass inputs=array (steps or 1, n)"):
        model.page(tmp_path / "x.html", q, forces=push)
    with says(InputError, "the function of forces takes inputs u, but none are given; pass inputs="):
        model.page(tmp_path / "x.html", q, forces=push, controller=lambda t, q, v: -v)
    assert list(tmp_path.iterdir()) == []
    model.page(tmp_path / "x.html", q, forces=push, inputs=[3.0])
    (tmp_path / "x.html").unlink()


def test_options_in_the_wrong_place_name_the_right_one(swing, tmp_path):
    cases = (
        (swing, {"parameters": ["crank.mass"]}, "it belongs to the live part: live={'parameters': ...}"),
        (swing, {"titel": "x"}, "page: there is no option 'titel' for a run; did you mean 'title'?"),
        (swing, {"live": {"gravty": False}}, "live: there is no option 'gravty' for the page of a run"),
        (swing.model, {"contoller": None}, "page: there is no option 'contoller'; did you mean 'controller'?"),
    )
    for source, options, words in cases:
        with says(InputError, words):
            source.page(tmp_path / "x.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_another_extension_is_refused(tmp_path):
    with says(InputError, "a page ends in .html"):
        write_live(sl.zoo.four_bar(), tmp_path / "x.wasm")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_three_arms_that_run_are_less_than_200_kilobytes_more():
    text = live_text(sl.zoo.three_pumas(), sl.zoo.three_pumas_start())
    data = data_of(text)
    without = page_of({name: x for name, x in data.items() if name != "live"})
    assert 50_000 < len(text.encode()) - len(without.encode()) < 200_000
