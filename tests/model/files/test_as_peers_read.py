"""Files that break a rule of their format and that other programs read all the same: read, with a note or a warning."""

import warnings

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import ModelError, SpanloopWarning
from spanloop.model.files.inertia_repair import repaired
from spanloop.model.files.urdf.reader import loads

MOMENTS = '<inertia ixx="2" ixy="0" ixz="0" iyy="2" iyz="0" izz="2"/>'
INERTIAL = f'<inertial><mass value="1"/>{MOMENTS}</inertial>'
AXIS = '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="9" velocity="9"/>'


def urdf(inside: str = INERTIAL, joint: str = AXIS, kind: str = "revolute") -> str:
    """Link b on link a."""
    ends = '<parent link="a"/><child link="b"/>'
    return (
        f'<robot name="r">\n<link name="a">{INERTIAL}</link>\n<link name="b">{inside}</link>\n'
        f'<joint name="j" type="{kind}">{ends}{joint}</joint>\n</robot>'
    )


def ball(inside: str) -> str:
    return INERTIAL + f"<visual>{inside}</visual>"


# what breaks the rule: the text, words of the warning, the mass of link b
CASES = {
    "no mass": (urdf(f"<inertial>{MOMENTS}</inertial>"), "<inertial> without <mass>", 0.0),
    "no inertia": (urdf('<inertial><mass value="2"/></inertial>'), "<inertial> without <inertia>", 2.0),
    "five moments": (urdf(INERTIAL.replace(' ixz="0"', "")), "<inertia> without all six moments", 1.0),
    "two inertials": (urdf(INERTIAL + INERTIAL.replace('"1"', '"5"')), "a second <inertial> in <link>", 1.0),
    "two masses": (urdf(INERTIAL.replace("<mass", '<mass value="3"/><mass')), "a second <mass>", 3.0),
    "two axes": (urdf(joint=AXIS + '<axis xyz="0 1 0"/>'), "a second <axis> in <joint>", 1.0),
    "limits swapped": (urdf(joint=AXIS.replace('"-1"', '"2"')), "lower limit above the upper one", 1.0),
    "negative damping": (urdf(joint=AXIS + '<dynamics damping="-1"/>'), "negative damping, read as 0", 1.0),
    "mimic of nothing": (urdf(joint=AXIS + '<mimic joint="gone"/>'), "<mimic> of 'gone'", 1.0),
    "mimic of itself": (urdf(joint=AXIS + '<mimic joint="j"/>'), "<mimic> of 'j'", 1.0),
}
QUIET = {
    "dashes in a comment": (urdf().replace("<link", "<!-- -- -->\n<link", 1), "comments or attributes that are not"),
    "attributes joined": (urdf().replace('" type', '"type'), "comments or attributes that are not"),
    "comment first": (f"<!-- a -->\n<?xml version='1.0'?>\n{urdf()}", "comments or attributes that are not"),
    "blank line first": (f"\n \n<?xml version='1.0'?>\n{urdf()}", "blank lines before"),
    "text behind": (urdf() + "\n \0", "text behind the outermost element"),
    "Latin-1": (urdf().replace("<link", "<!-- \xe9 --><link", 1).encode("latin-1"), "read as Latin-1"),
    "four scales": (urdf(ball('<geometry><mesh filename="x" scale="1 1 1 1"/></geometry>')), "shapes that cannot"),
    "plane": (urdf(ball("<geometry><plane normal='0 0 1'/></geometry>")), "shapes that cannot"),
    "no shape": (urdf(ball("")), "shapes that cannot"),
    "negative size": (urdf(ball('<geometry><sphere radius="-1"/></geometry>')), "shapes that cannot"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_other_programs_read_is_read_with_a_warning(case, tmp_path):
    text, note, mass = CASES[case]
    (tmp_path / "r.urdf").write_text(text)
    with pytest.warns(SpanloopWarning, match=note.replace("<", ".")):
        model = sl.load(tmp_path / "r.urdf")
    assert model.body("b").inertia.mass == mass
    assert model.joint("j").kind.axis == (0.0, 0.0, 1.0)
    assert model.couplings == ()
    assert model.joint("j").actuated


@pytest.mark.parametrize("case", QUIET)
def test_what_changes_no_motion_is_a_note(case):
    text, note = QUIET[case]
    model = loads(text)
    assert any(note in n for n in model.notes)
    assert model.bodies[1].geometry == ()


@pytest.mark.parametrize("case", {**CASES, **QUIET})
def test_pinocchio_reads_the_same_masses(case):
    pin = pytest.importorskip("pinocchio")
    text = {**CASES, **QUIET}[case][0]
    if case in ("five moments", "text behind", "Latin-1", "comment first"):
        pytest.skip("Pinocchio leaves out all six moments or refuses, or its interface takes no such text")
    theirs, ours = pin.buildModelFromXML(text), loads(text)
    assert theirs.inertias[1].mass == ours.body("b").inertia.mass
    np.testing.assert_array_equal(theirs.inertias[1].inertia, np.array(ours.body("b").inertia.matrix()))


def test_a_line_behind_blank_ones_keeps_its_number():
    text = "\n\n<?xml version='1.0'?>\n" + urdf().replace("revolute", "helical")
    with pytest.raises(sl.SpanloopError, match=r"^text\.urdf:7: joint 'j' has the type 'helical'"):
        loads(text)


def test_two_shapes_in_one_geometry_are_the_known_one():
    inside = ball('<geometry><material name="m"/><sphere radius="1"/></geometry>')
    assert [g.shape for g in loads(urdf(inside)).body("b").geometry] == ["sphere"]


def test_the_world_may_be_left_out_of_the_links():
    text = urdf().replace(
        "</robot>", '<joint name="k" type="fixed"><parent link="world"/><child link="a"/></joint></robot>'
    )
    model = loads(text)
    assert [(j.name, j.parent) for j in model.joints] == [("k", "world"), ("j", "a")]


def test_a_spherical_joint_is_a_ball_joint():
    assert loads(urdf(kind="spherical", joint="")).joint("j").kind.name == "spherical"


def test_a_document_type_without_entities_is_harmless():
    assert loads("<!DOCTYPE robot SYSTEM 'robot.dtd'>" + urdf()).nv == 1


# ---- repair


def with_inertia(mass: float, *diagonal: float) -> str:
    names = zip(("ixx", "iyy", "izz"), diagonal, strict=True)
    inertia = "".join(f'{name}="{x}" ' for name, x in names) + 'ixy="0" ixz="0" iyz="0"'
    return urdf(f'<inertial><mass value="{mass}"/><inertia {inertia}/></inertial>')


def moments(model) -> np.ndarray:
    return np.diag(np.array(model.body("b").inertia.matrix()))


IMPOSSIBLE = {  # mass and moments as written, and as made
    "negative": ((1.0, -0.1, 1.0, 2.0), (0.45, 1.55, 2.0)),
    "triangle": ((1.0, 1.0, 1.0, 4.0), (2.0, 2.0, 4.0)),
    "rod": ((1.0, 1.0, 1.0, 0.0), (1.001, 1.001, 0.002)),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_repair_makes_the_nearest_inertia_of_a_body(case, tmp_path):
    written, made = IMPOSSIBLE[case]
    (tmp_path / "r.urdf").write_text(with_inertia(*written))
    with pytest.warns(SpanloopWarning, match=r"repaired: body 'b' \(r\.urdf:3\): mass 1 kg, principal moments"):
        model = sl.load(tmp_path / "r.urdf", repair=True)
    np.testing.assert_allclose(moments(model), made, rtol=1e-12)
    again, changes = repaired(model)
    assert (again, changes) == (model, ())  # nothing is left to repair
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpanloopWarning)
        np.testing.assert_array_equal(moments(sl.load(tmp_path / "r.urdf")), written[1:])  # as written without it


@pytest.mark.parametrize(("mass", "moment"), [(1.0, 0.0), (0.0, 2.0), (0.0, 0.0)])
@pytest.mark.filterwarnings("ignore::spanloop.errors.SpanloopWarning")
def test_repair_gives_mass_to_moments_and_moments_to_mass(mass, moment, tmp_path):
    (tmp_path / "r.urdf").write_text(with_inertia(mass, moment, moment, moment).replace("revolute", "floating"))
    inertia = sl.load(tmp_path / "r.urdf", repair=True).body("b").inertia
    radius = (3.0 * inertia.mass / (4.0 * np.pi * 1000.0)) ** (1.0 / 3.0)
    assert inertia.mass == (mass or inertia.mass) > 0.0
    assert inertia.moments[0] == pytest.approx(0.4 * inertia.mass * radius**2)
    if moment:
        assert inertia.moments[0] == moment


@pytest.mark.filterwarnings("ignore::spanloop.errors.SpanloopWarning")
def test_a_negative_mass_is_refused_or_loses_its_sign(tmp_path):
    (tmp_path / "r.urdf").write_text(with_inertia(-2.0, 1.0, 1.0, 1.0))
    with pytest.raises(ModelError, match=r"^link 'b' \(r\.urdf:3\): mass is -2 kg; .* repair=True drops the sign$"):
        sl.load(tmp_path / "r.urdf")
    model = sl.load(tmp_path / "r.urdf", repair=True)
    assert model.body("b").inertia.mass == 2.0
    assert any("mass -2 kg is now 2 kg" in n for n in model.notes)
