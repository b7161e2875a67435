"""What a notebook shows: short tables of models, audits, diagnoses and runs, and pages inside a frame."""

from __future__ import annotations

import html
import re

import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError
from spanloop.view import page

NASTY = "<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def swing():
    return sl.simulate(sl.zoo.four_bar(), sl.zoo.four_bar_start(), duration=0.02)


def test_a_model_is_one_line_in_a_terminal_and_a_table_in_a_notebook():
    model = sl.zoo.four_bar()
    assert repr(model) == "Model('four_bar', 3 bodies, 3 DoF, 1 loop)"
    shown = model._repr_html_()
    assert shown.count("<tr>") == 4
    assert "closing: revolute between coupler and rocker" in shown
    assert len(sl.zoo.chain(300)._repr_html_()) < 20_000


def test_audits_diagnoses_and_runs_are_short_and_whole(swing):
    audit, found = swing.audit(), swing.robot.diagnose(swing.q[0])
    assert repr(audit) == "Audit(All is well.)"
    assert audit._repr_html_().count("<tr>") == len(audit.findings) + 1
    assert len(repr(found)) < 150
    assert all(line.strip() in html.unescape(found._repr_html_()) for line in str(found).splitlines())
    assert swing.outcome.sentence in swing._repr_html_()


def test_names_cannot_become_markup():
    model = sl.Builder(NASTY).body(NASTY, 1.0, inertia=(1, 1, 1)).revolute(NASTY, "world", NASTY).build()
    run = sl.simulate(model, duration=0.01)
    for shown in (model, run, run.audit()):
        assert "<script" not in shown._repr_html_()


def test_a_page_is_shown_in_a_frame(swing):
    shown = swing.show(height=480)
    frame = shown._repr_html_()
    (inside,) = re.findall(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(inside) == page.text(swing)
    assert 'height="480"' in frame
    assert 'sandbox="allow-scripts"' in frame
    assert len(repr(shown)) < 120


@pytest.mark.parametrize("height", [0, 10.5, True, "640"])
def test_a_height_that_is_none_is_refused(swing, height):
    with says(InputError, "expected a whole number of pixels"):
        swing.show(height=height)
