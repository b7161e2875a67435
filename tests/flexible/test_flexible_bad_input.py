"""Beams that cannot be: a message each, that says what was found and what is expected."""

from __future__ import annotations

import re

import numpy as np
import pytest
from flexible_arms import boom

import spanloop as sl
from spanloop.errors import InputError, ModelError
from spanloop.flexible import Section, beam, box, circle, rectangle, tube

GOOD = {"length": 1.0, "E": 7e10, "density": 2700.0, "section": circle(0.01)}
PLAIN = {"length": 1.0, "E": 7e10, "density": 2700.0, "area": 1e-4, "I": 1e-9}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"length": 0.0}, "beam: length is 0 m; must be > 0"),
        ({"length": "1 m"}, "beam: length is '1 m'; expected a number [m]"),
        ({"length": 1e300}, "beam: length is 1e+300 m; expected 1e-09 to 1e+09"),
        ({"length": 10**400}, "expected a number [m]"),
        ({"E": -7e10}, "beam: E is -7e+10 Pa; must be > 0"),
        ({"E": True}, "beam: E is True; expected a number [Pa]"),
        ({"density": float("nan")}, "beam: density is nan; expected a finite number [kg/m³]"),
        ({"density": 0.0}, "beam: density is 0 kg/m³; must be > 0"),
        ({"G": -1.0}, "beam: G is -1 Pa; must be > 0"),
        ({"poisson": 0.7}, "beam: poisson is 0.7; must be above -1 and below 0.5"),
        ({"poisson": None}, "beam: poisson is None; expected a number"),
        ({"section": None}, "beam: expected section=, or area= and I= (or Iy= and Iz=)"),
        ({"section": 0.01}, "beam: section is 0.01; expected one as sl.flexible.circle(0.01), or several"),
        ({"section": []}, "beam: section is []; expected one"),
        ({"section": [circle(0.01), rectangle(0.1, 0.1)]}, "round and rectangular sections are mixed"),
        ({"section": Section(-1e-4, 1e-9, 1e-9, 2e-9)}, "beam: section: area is -0.0001 m²; must be > 0"),
        ({"section": [circle(0.1), Section(1e-4, 1e-9, 0.0, 2e-9)]}, "beam: section 2: Iz is 0 m⁴; must be > 0"),
        ({"section": Section(1e-4, 1e-9, 1e-9, 2e-9, shear_y=1.5)}, "carries shear is 1.5; must be at most 1"),
        ({"area": 1.0}, "beam: section and area are given; give one of them"),
        ({"modes": 0, "basis": "cantilever"}, "beam: modes is 0; expected a whole number from 1 to 100"),
        ({"modes": 1.5}, "beam: modes is 1.5; expected a number, or one by direction"),
        ({"modes": {"x": 1}}, "beam: modes names the direction 'x'"),
        ({"modes": {"y": -1}}, "beam: modes['y'] is -1; expected a whole number from 0 to 100"),
        ({"modes": {}}, "beam: modes is {}; expected a number, or one by direction"),
        ({"modes": {"y": 0}, "basis": "cantilever"}, "no modes are left; a beam without modes is a rigid body"),
        ({"modes": 20, "elements": 5}, "beam: 20 modes in direction 'y'; a mesh of 5 elements has 8"),
        ({"modes": {"torsion": 11}, "elements": 5, "basis": "cantilever"}, "a mesh of 5 elements has 10"),
        ({"basis": "full", "elements": 100}, "some 600 modes of a piece; 120 at most"),
        ({"basis": "guyan"}, "beam: basis is 'guyan'"),
        ({"theory": "bernoulli"}, "beam: theory is 'bernoulli'; did you mean 'euler-bernoulli'?"),
        ({"elements": 0}, "beam: elements is 0; expected a whole number from 1 to 200"),
        ({"pieces": 2, "basis": "cantilever"}, "a piece carries the next one at its end, and modes with a free end"),
        ({"pieces": 2.0}, "beam: pieces is 2.0; expected a whole number from 1 to 64"),
        ({"nodes": {"a": 1.5}}, "beam: node 'a' is at 1.5 m; must be above 0 (the root) and below 1 m (the tip)"),
        ({"nodes": {"tip": 0.5}}, "every beam has a 'tip' of its own; give the node another name"),
        ({"nodes": {"a.b": 0.5}}, "a node is called 'a.b'; expected a name without a dot"),
        ({"nodes": {"a": 0.5, "b": 0.5}}, "two nodes are at one place"),
        ({"nodes": [0.5]}, "beam: nodes is [0.5]; expected positions by name"),
        ({"damping": -0.1}, "damping is -0.1; expected ratios of critical damping"),
        ({"damping": None}, "damping is None; expected ratios of critical damping"),
        ({"damping": (0.1, 0.2)}, "damping has 2 numbers; expected one, or"),
    ],
)  # fmt: skip
def test_a_beam_that_cannot_be_is_refused(change, said):
    with pytest.raises(InputError, match=re.escape(said)):
        beam(**(GOOD | change))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"area": -1e-4}, "beam: area is -0.0001 m²; must be > 0"),
        ({"I": 0.0}, "beam: Iy is 0 m⁴; must be > 0"),
        ({"Iy": 1e-9}, "beam: I and Iy are given; give I, or Iy and Iz"),
        ({"J": [1e-9, float("inf")]}, "beam: J is inf; expected a finite number [m⁴]"),
        ({"area": []}, "beam: area is empty; expected a number [m²]"),
        ({"area": [1e-4, 2e-4], "I": [1e-9, 2e-9, 3e-9]}, "area has 2 values along the beam, another property 3"),
        ({"area": b"x"}, "beam: area is b'x'; expected a number [m²]"),
    ],
)
def test_section_properties_that_cannot_be_are_refused(change, said):
    with pytest.raises(InputError, match=re.escape(said)):
        beam(**(PLAIN | change))


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (lambda: circle(0.0), "circle: radius is 0 m; must be > 0"),
        (lambda: circle("thin"), "circle: radius is 'thin'; expected a number [m]"),
        (lambda: circle(float("inf")), "circle: radius is inf m; expected 1e-09 to 1e+09 m"),
        (lambda: tube(0.01, 0.02), "tube: inner_radius is 0.02 m, outer_radius 0.01 m; the inner one must be smaller"),
        (lambda: rectangle(0.1, -0.1), "rectangle: height is -0.1 m; must be > 0"),
        (lambda: box(0.1, 0.05, 0.025), "box: thickness is 0.025 m; must be less than half"),
    ],
)
def test_a_section_that_cannot_be_is_refused(section, said):
    with pytest.raises(InputError, match=re.escape(said)):
        section()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"flexible": 3}, "body 'boom': flexible is 3; expected a beam, as sl.flexible.beam(...)"),
        ({"flexible": "beam"}, "body 'boom': flexible is 'beam'; expected a beam"),
        ({"flexible": boom().bodies[0]}, "expected a beam, as sl.flexible.beam(...)"),
        ({"flexible": boom(), "mass": 1.0}, "its beam gives mass and inertia; leave mass, center and inertia out"),
        ({"flexible": boom(), "inertia": (1, 1, 1)}, "its beam gives mass and inertia"),
        ({"flexible": boom(), "geometry": [sl.contacts.Sphere(0.1)]}, "a flexible body is drawn as its beam"),
    ],
)
def test_a_flexible_body_takes_a_beam_and_nothing_else(arguments, said):
    with pytest.raises(InputError, match=re.escape(said)):
        sl.Builder("x").body("boom", **arguments)


def test_two_bodies_of_one_name_and_nodes_with_names_of_others_are_refused():
    b = sl.Builder("x").body("boom", flexible=boom()).fixed("a", "world", "boom").body("boom.tip", 1.0)
    with pytest.raises(ModelError, match=r"boom\.tip"):
        b.fixed("b", "world", "boom.tip").build()


def test_damping_of_each_mode_belongs_to_the_piece_that_has_it():
    """Pieces have different numbers of modes where nodes are on some of them."""
    plain = boom(pieces=2, nodes={"mid": 0.7}, modes={"y": 0}, damping=0.0)
    counts = [len(b.stiffness) for b in plain.bodies]
    assert counts == [2, 4]
    ratios = 0.01 * np.arange(1.0, 7.0)
    beam = boom(pieces=2, nodes={"mid": 0.7}, modes={"y": 0}, damping=ratios)
    found = [
        d * w / (2.0 * k) for b in beam.bodies for d, w, k in zip(b.damping, b.frequencies, b.stiffness, strict=True)
    ]
    np.testing.assert_allclose(found, ratios, rtol=1e-12)
