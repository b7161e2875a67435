"""Pictures: numbers to pixels, figures to bones, and files that a browser can read."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import spanloop as sl
from spanloop.view.animation import Projection, animation
from spanloop.view.svg import document, element, moving, number, points, power_of_ten, text, ticks


def test_elements_are_escaped_and_nested():
    drawn = element("g", text("a < b & c", 1, 2), stroke_width=2, fill="none", opacity=None)
    root = ET.fromstring(drawn)
    assert root.attrib == {"stroke-width": "2", "fill": "none"}
    assert root[0].text == "a < b & c"


def test_a_document_is_well_formed_and_names_its_size():
    root = ET.fromstring(document(200, 100, "a & b", "#fff", [text("x", 0, 0)]).encode())
    assert root.attrib["viewBox"] == "0 0 200 100"
    assert root[0].text == "a & b"


def test_numbers_are_short():
    assert [number(x) for x in (1.0, -0.01, 2.25, 1e3)] == ["1", "0", "2.2", "1000"]
    assert points(np.array([[0.0, 1.5], [2.0, 3.0]])) == "0,1.5 2,3"


def test_a_moving_attribute_repeats():
    root = ET.fromstring(moving("cx", ["1", "2"], 2.0))
    assert (root.attrib["values"], root.attrib["dur"]) == ("1;2", "2s")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 2.0, [0, 0.5, 1, 1.5, 2]),
        (-2.7, 1.3, [-2, -1, 0, 1]),
        (0.0, 0.1, [0, 0.02, 0.04, 0.06, 0.08, 0.1]),
    ],
)
def test_ticks_are_round(low, high, expected):
    assert ticks(low, high, 5) == pytest.approx(expected)


def test_powers_of_ten_read_as_people_write_them():
    assert power_of_ten(np.array([-2.5e-9, 1e-10])) == (1e-9, "10⁻⁹")
    assert power_of_ten(np.zeros(3)) == (1.0, "10⁰")


def test_the_camera_sees_right_and_up():
    e = np.eye(3)
    np.testing.assert_allclose(Projection().project(e), [(1, 0), (0, 0), (0, 1)], atol=1e-15)
    np.testing.assert_allclose(Projection(np.pi / 2).project(e[1]), (1, 0), atol=1e-15)
    np.testing.assert_allclose(Projection(0.0, np.pi / 2).project(e[1]), (0, 1), atol=1e-15)


def test_a_run_of_one_sample_is_drawn():
    run = sl.simulate(sl.zoo.pendulum(1), [0.3], duration=0.01)[:1]
    ET.fromstring(animation(run))
