"""Surfaces of collision shapes: read from files, kept by TOML, combined for a pair by the rule of their format."""

from __future__ import annotations

from dataclasses import replace

import pytest

import spanloop as sl
from spanloop.errors import FileError, ModelError
from spanloop.model.files.toml import reader as toml_reader
from spanloop.model.files.toml import writer as toml_writer
from spanloop.model.parts import Geometry, Surface


def _with_surface(surface: Surface | None) -> sl.Model:
    model = sl.zoo.pendulum(1)
    shape = Geometry("sphere", (0.1,), use="collision", surface=surface)
    return replace(model, bodies=(replace(model.bodies[0], geometry=(shape,)),))


def _read(text: str) -> Surface | None:
    return toml_reader.loads(text).bodies[0].geometry[0].surface


SURFACES = [
    None,
    Surface(0.8),
    Surface(0.8, 0.005, 1e-4, 0.3, "minimum"),
    Surface(1.0, 0.005, 1e-4, None, "maximum", 6, 2),
    Surface(rule="product"),
]


@pytest.mark.parametrize("surface", SURFACES)
def test_toml_keeps_a_surface(surface: Surface | None) -> None:
    model = _with_surface(surface)
    assert toml_reader.loads(toml_writer.dumps(model)) == model


def test_a_surface_written_by_hand_needs_its_friction_only() -> None:
    text = toml_writer.dumps(_with_surface(None)).replace('shape = "sphere"', 'shape = "sphere"\nfriction = 0.4')
    assert _read(text) == Surface(0.4)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("friction = -0.1", "friction is -0.1; expected >= 0"),
        ("restitution = 1.5", "restitution is 1.5; expected 0 to 1"),
        ("friction = 1.0\ncondim = 2", "condim is 2; expected 1, 3, 4 or 6"),
        ("friction = 1.0\ncondim = 3.5", "condim is 3.5; expected a whole number"),
        ('friction = 1.0\nrule = "maximun"', "there is no rule 'maximun'; did you mean 'maximum'?"),
    ],
)
def test_a_surface_that_no_shape_has_is_refused(line: str, words: str) -> None:
    text = toml_writer.dumps(_with_surface(None)).replace('shape = "sphere"', f'shape = "sphere"\n{line}')
    with pytest.raises((FileError, ModelError)) as error:
        _read(text)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (Surface(0.5, 0.1), None, {"friction": 0.5, "torsion": 0.1}),
        (Surface(0.5, 0.01, condim=3), Surface(0.8, 0.02, condim=3), {"friction": 0.8, "torsion": 0, "rolling": 0}),
        (Surface(1.0, condim=1), Surface(0.5, condim=3), {"friction": 1.0, "torsion": 0, "rolling": 0}),
        (Surface(1.0, 0.1, condim=1), Surface(0.5, 0.2, condim=4), {"friction": 1.0, "torsion": 0.2, "rolling": 0}),
        (Surface(0.2, priority=1), Surface(0.9), {"friction": 0.2}),
        (Surface(0.2, rule="minimum"), Surface(0.9, rule="minimum"), {"friction": 0.2}),
        (Surface(0.2, rolling=0.01, rule="product"), Surface(0.5, rolling=0.02, rule="product"),
         {"friction": 0.1, "rolling": 0.009}),
        (Surface(0.2, rule="product"), Surface(0.5), {"friction": 0.2}),
        (Surface(0.2, restitution=0.3), Surface(0.5), {"friction": 0.5, "restitution": 0.3}),
    ],
)  # fmt: skip
def test_two_surfaces_combine_by_their_rule(a: Surface, b: Surface | None, expected: dict[str, float]) -> None:
    assert a.touching(b) == pytest.approx(expected)
    if b is not None:
        assert b.touching(a) == pytest.approx(expected)


def test_scaling_lengths_scales_torsion_and_rolling() -> None:
    scaled = _with_surface(Surface(0.8, 0.01, None, 0.3)).scale(length=2.0)
    assert scaled.bodies[0].geometry[0].surface == Surface(0.8, 0.02, None, 0.3)
