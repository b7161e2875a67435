"""Surfaces of collision shapes: read from files, kept by TOML, combined for a pair by the rule of their format."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import spanloop as sl
from spanloop.errors import FileError, InputError, ModelError
from spanloop.model.files.toml import reader as toml_reader
from spanloop.model.files.toml import writer as toml_writer
from spanloop.model.parts import Geometry, Surface


def _with_surface(surface: Surface | None) -> sl.Model:
    model = sl.Builder("m").body("b", mass=1.0, inertia=(0.1, 0.1, 0.1)).revolute("j", "world", "b", "x").build()
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
        (Surface(0.2, rule="harmonic"), Surface(0.6, rule="harmonic"), {"friction": 0.3}),
        (Surface(0.0, rule="harmonic"), Surface(0.0, rule="harmonic"), {"friction": 0.0}),
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


# ---- URDF and SDF


def _urdf(collision: str = "", link: str = "", robot: str = "") -> sl.Model:
    from spanloop.model.files.urdf.reader import loads

    shape = "<geometry><sphere radius='0.1'/></geometry>"
    return loads(
        f"<robot name='r'><link name='foot'>{link}<visual>{shape}</visual><collision>{shape}{collision}</collision>"
        f"</link>{robot}</robot>"
    )


def _surface(model: sl.Model) -> Surface | None:
    drawn, solid = model.body("foot").geometry
    assert drawn.surface is None
    return solid.surface


BOUNCE = "<bounce><restitution_coefficient>0.4</restitution_coefficient><threshold>0.01</threshold></bounce>"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, None),
        ({"robot": "<gazebo reference='foot'><mu1>0.9</mu1><mu2>0.9</mu2></gazebo>"}, Surface(0.9, rule="minimum")),
        ({"robot": "<gazebo reference='foot'><mu1 value='0.7'/></gazebo>"}, Surface(0.7, rule="minimum")),
        ({"robot": "<gazebo reference='leg'><mu1>0.9</mu1></gazebo>"}, None),
        ({"robot": "<gazebo reference='foot'><material>Gazebo/Red</material></gazebo>"}, None),
        ({"robot": "<gazebo reference='foot'><mu1>0.9</mu1></gazebo>"
                   f"<gazebo reference='foot'><collision><surface>{BOUNCE}</surface></collision></gazebo>"},
         Surface(0.9, restitution=0.4, rule="minimum")),
        ({"collision": "<surface><friction><ode><mu>0</mu><mu2>0</mu2></ode></friction></surface>"},
         Surface(0.0, 0.0, None, 0.0, "minimum")),
        ({"collision": "<drake:proximity_properties><drake:mu_static value='0.9'/><drake:mu_dynamic value='0.8'/>"
                       "</drake:proximity_properties>"}, Surface(0.8, rule="harmonic")),
        ({"link": "<contact><lateral_friction value='3.0'/><spinning_friction value='.3'/></contact>"},
         Surface(3.0, 0.3, rule="product")),
        ({"link": "<contact><rolling_friction value='0.03'/><restitution value='0.5'/></contact>"},
         Surface(0.5, None, 0.03, 0.5, "product")),
    ],
)  # fmt: skip
def test_a_urdf_has_the_surfaces_that_gazebo_and_pybullet_read(parts: dict, expected: Surface | None) -> None:
    assert _surface(_urdf(**parts)) == expected


@pytest.mark.parametrize(
    ("parts", "expected", "words"),
    [
        ({"robot": "<gazebo reference='foot'><mu1>0.9</mu1><mu2>0.5</mu2></gazebo>"}, Surface(0.5, rule="minimum"),
         "friction that differs between two directions, the smaller is read: link 'foot' (text.urdf:1)"),
        ({"robot": "<gazebo reference='foot'><mu1>-1</mu1></gazebo>"}, Surface(0.0, rule="minimum"),
         "not valid in this format: friction of a surface"),
        ({"robot": "<gazebo reference='foot'><mu1>a</mu1></gazebo>"}, None, "surfaces that cannot be read left out"),
        ({"link": "<contact><lateral_friction value='1'/><stiffness value='3e4'/><damping value='1e3'/></contact>"},
         Surface(1.0, rule="product"), "<stiffness> and <damping> of a <contact> left out; with_contact takes them"),
        ({"collision": f"<surface>{BOUNCE.replace('0.01', '1e5')}</surface>"},
         Surface(1.0, 0.0, None, 0.0, "minimum"), "restitution above a threshold of 100000 m/s only, read as 0"),
    ],
)  # fmt: skip
def test_what_a_surface_cannot_hold_is_noted(parts: dict, expected: Surface | None, words: str) -> None:
    model = _urdf(**parts)
    assert _surface(model) == expected
    assert any(words in note for note in model.notes)


@pytest.mark.parametrize(
    ("surface", "expected"),
    [
        ("", Surface(1.0, 0.0, None, 0.0, "minimum")),
        (f"<surface><friction><ode><mu>0.6</mu></ode></friction>{BOUNCE}</surface>",
         Surface(0.6, 0.0, None, 0.4, "minimum")),
        ("<surface><friction><torsional><coefficient>0.8</coefficient><patch_radius>0.05</patch_radius></torsional>"
         "</friction></surface>", Surface(1.0, 3 * 3.141592653589793 / 16 * 0.05 * 0.8, None, 0.0, "minimum")),
        ("<surface><friction><torsional><use_patch_radius>false</use_patch_radius><surface_radius>1</surface_radius>"
         "</torsional></friction></surface>", Surface(1.0, 0.0, None, 0.0, "minimum")),
    ],
)  # fmt: skip
def test_an_sdf_has_surfaces_with_the_defaults_of_the_format(surface: str, expected: Surface) -> None:
    from spanloop.model.files.sdf.reader import loads

    shape = "<geometry><sphere><radius>0.1</radius></sphere></geometry>"
    model = loads(
        f"<sdf version='1.9'><model name='m'><link name='foot'><visual name='v'>{shape}</visual>"
        f"<collision name='c'>{shape}{surface}</collision></link></model></sdf>"
    )
    found = _surface(model)
    assert found is not None
    assert found.torsion == pytest.approx(expected.torsion, rel=1e-15)
    assert replace(found, torsion=expected.torsion) == expected


# ---- writing

OTHER_RULE = "surfaces that combine by the rule of this format, no longer by their own"
WRITTEN = [
    (".xml", Surface(0.8, 0.01, 0.002, None, "maximum", 6, 2), ()),
    (".xml", Surface(0.8, rule="minimum"), (OTHER_RULE,)),
    (".xml", Surface(0.8, restitution=0.5), ("surfaces without restitution, which the format does not have",)),
    (".sdf", Surface(0.8, 0.01, None, 0.5, "minimum"), ()),
    (".sdf", Surface(0.8, 0.0, 0.1, 0.0, "minimum"), ("surfaces without rolling, which the format does not have",)),
    (".urdf", Surface(0.8, rule="minimum"), ()),
    (".urdf", Surface(0.8, 0.01, 0.02, 0.5, "product"), ()),
    (".urdf", Surface(0.8, 0.01), (OTHER_RULE, "surfaces without torsion, which the format does not have")),
]  # fmt: skip


@pytest.mark.parametrize(("extension", "surface", "remarks"), WRITTEN)
def test_a_surface_is_written_with_what_the_format_has(
    tmp_path: Path, extension: str, surface: Surface, remarks: tuple[str, ...]
) -> None:
    path = tmp_path / f"m{extension}"
    written = _with_surface(surface).without_losses().save(path)
    assert written.lost == ()
    assert tuple(r.partition(":")[0] for r in written.remarks if "surface" in r) == remarks
    (found,) = (g.surface for b in sl.load(path).bodies for g in b.geometry)
    assert found is not None
    if not remarks:
        assert found.torsion == pytest.approx(surface.torsion)
        assert replace(found, torsion=surface.torsion) == surface
    else:
        assert found.friction == surface.friction


# ---- contacts take what surfaces have


def test_contacts_have_the_friction_of_surfaces() -> None:
    model = _with_surface(Surface(0.8, 0.01, None, 0.3, "minimum"))
    (c,) = model.with_ground().contacts
    assert (c.friction, c.torsion, c.rolling, c.restitution) == (0.8, 0.01, 0.0, 0.3)
    (c,) = model.with_ground(friction=0.2).contacts
    assert (c.friction, c.torsion, c.restitution) == (0.2, 0.01, 0.3)


def test_friction_with_the_ground_is_needed_where_no_file_has_it() -> None:
    words = "with_ground: friction is not given, and shapes of 'b' have none from a file; give friction=0.8"
    for surface in (None, Surface(restitution=0.5)):
        with pytest.raises(InputError) as error:
            _with_surface(surface).with_ground()
        assert str(error.value).startswith(words)
    (c,) = _with_surface(None).with_ground(friction=0).contacts
    assert c.friction == 0.0
