"""The own format: what is written reads back bit for bit, what is wrong is named."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from spanloop.errors import FileError, InputError, ModelError, SpanloopWarning
from spanloop.joints import (
    KINDS,
    Cylindrical,
    Fixed,
    Free,
    General,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from spanloop.model import (
    WORLD,
    Actuator,
    Body,
    Coupling,
    Frame,
    Geometry,
    Inertia,
    Joint,
    Loop,
    Model,
    Placement,
    Sensor,
)
from spanloop.model.exact_rotations import rotation_of_angles, snap_rotation
from spanloop.model.files import load, save
from spanloop.model.files.toml.reader import loads
from spanloop.model.files.toml.writer import dumps
from spanloop.model.files.urdf import reader as urdf_reader

TILTED = Placement(snap_rotation(rotation_of_angles(0.3, -1.1, 2.0))[0], (0.1, -0.0, 1e-300))

EVERY_KIND = (
    Revolute((1.0, 2.0, -3.0)),
    Revolute("y", offset=0.25),
    Prismatic("-z"),
    Helical((0.0, 0.6, 0.8), pitch=1 / 3, offset=0.1),
    Cylindrical("x"),
    Universal("x", (0.1, 1.0, 0.0)),
    Spherical(),
    Planar((1.0, 1.0, 1.0)),
    Free(),
    Fixed(),
    General(motion=((0.0, 0.0, 1.0, 0.1, 0.2, 0.3), (1.0, 0.0, 0.0, 0.0, 0.0, 0.7))),
    General(motion=tuple(tuple(float(i == j) for j in range(6)) for i in range(6))),
)


def full_model() -> Model:
    """Every kind of joint and every sort of part, with values that are not defaults."""
    bodies, joints, parent = [], [], WORLD
    for i, kind in enumerate(EVERY_KIND):
        n = kind.nv
        shapes = (
            Geometry("box", (1.0, 2.0, 3.0), "", TILTED, "collision"),
            Geometry("mesh", (), 'a\\b "c".stl'),
        )
        bodies.append(
            Body(
                f"body {i}",
                Inertia(1.0 / (i + 3), (0.1, -0.0, i / 7), (3.0, 0.1, 0.2, 3.1, 0.3, 3.2)),
                shapes[: i % 3],
            )
        )
        limits = {"lower": (-float("inf"),) * n, "upper": (1.5,) * n, "speed": (float("inf"),) * n} if i % 2 else {}
        spring = {} if kind.name == "general" else {"stiffness": tuple(0.1 * k for k in range(n))}
        placement = TILTED if i % 2 else Placement()
        joints.append(
            Joint(
                f"j.{i}",
                kind,
                parent,
                f"body {i}",
                placement,
                damping=0.1 * i,
                armature=1e-5,
                driven=i == 3,
                actuated=i != 4,
                **limits,
                **spring,
            )
        )
        parent = f"body {i}" if i % 4 else parent
    return Model(
        'the "full" one\nin two lines \u00e9 \u0007 \U0001f916',
        tuple(bodies),
        tuple(joints),
        frames=(Frame("tool", "body 3", TILTED), Frame("ground", WORLD)),
        loops=(
            Loop("loop", Spherical(), "body 1", WORLD, TILTED, Placement(), True, True),
            Loop("screw", Helical("x", 0.1), "body 2", "body 5"),
        ),
        couplings=(Coupling("gear", "j.0", "j.1", -2.5, 1 / 3), Coupling("plain", "j.2", "j.1")),
        actuators=(
            Actuator("motor", "j.0", (("gain", 1e-7), ("on", True), ("odd key", ("x", 1, (2.0, -0.0))))),
            Actuator("bare", "j.1"),
        ),
        sensors=(Sensor("eye", "camera", "tool", (("pixels", 640),)),),
        gravity=(0.0, -0.0, -1.62),
        notes=("first", "second # not a comment"),
    )


def parts(model):
    """All fields as text, in which 0.0 and -0.0 differ."""
    return repr([getattr(model, f.name) for f in dataclasses.fields(model)])


def test_every_kind_is_tried():
    assert {k.name for k in EVERY_KIND} == set(KINDS)


def test_a_model_with_everything_reads_back_bit_for_bit():
    model = full_model()
    text = dumps(model)
    again = loads(text)
    assert again == model
    assert parts(again) == parts(model)  # -0.0 too
    assert dumps(again) == text


def test_a_model_from_a_urdf_reads_back_bit_for_bit():
    text = """<robot name="r"><link name="a"/><link name="b"><inertial>
      <origin xyz="0 0 0.1" rpy="0.1 0.2 0.3"/><mass value="0.1"/>
      <inertia ixx="0.3" ixy="0.01" ixz="0" iyy="0.3" iyz="0" izz="0.3"/></inertial></link>
      <joint name="j" type="revolute"><parent link="a"/><child link="b"/><origin rpy="0.7 1.5707963267949 0"/>
      <limit lower="-1" upper="1" effort="3" velocity="inf"/></joint></robot>"""
    model = urdf_reader.loads(text, base="free")
    again = loads(dumps(model))
    assert again == model
    assert parts(again) == parts(model)


def test_defaults_are_left_out():
    model = Model("m", (Body("b"),), (Joint("j", Revolute("z"), WORLD, "b"),))
    assert dumps(model) == (
        'format = 1\nname = "m"\n\n'
        '[[joint]]\nname = "j"\nkind = "revolute"\nparent = "world"\nchild = "b"\naxis = [0.0, 0.0, 1.0]\n\n'
        '[[body]]\nname = "b"\n'
    )


@pytest.mark.slow
@given(
    numbers=some.lists(some.floats(-1e100, 1e100), min_size=9, max_size=9),
    limit=some.floats(max_value=1e308),
    texts=some.lists(some.text(some.characters(exclude_categories=["Cs"]), min_size=1), min_size=3, max_size=3),
)
@settings(max_examples=200, deadline=None)
def test_any_number_and_any_text_reads_back(numbers, limit, texts):
    if texts[0] == WORLD:
        return
    inertia = Inertia(abs(numbers[0]), tuple(numbers[1:4]), tuple(numbers[3:9]))
    j = Joint(texts[1], Prismatic(), WORLD, texts[0], Placement(position=tuple(numbers[:3])), lower=(limit,))
    model = Model(texts[2], (Body(texts[0], inertia),), (j,), notes=tuple(texts))
    again = loads(dumps(model))
    assert again == model
    assert parts(again) == parts(model)


# ---- files


def test_save_and_load_are_inverse(tmp_path):
    model = full_model()
    model.save(tmp_path / "arm.toml")
    assert load(tmp_path / "arm.toml") == model
    assert os.listdir(tmp_path) == ["arm.toml"]


def test_a_failed_save_changes_nothing(tmp_path, monkeypatch):
    path = tmp_path / "arm.toml"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError) as caught:
        save(full_model(), path)
    assert str(caught.value) == f"{path}: cannot be written (No space left on device); nothing was changed"
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["arm.toml"]


def test_a_link_to_a_file_stays_a_link(tmp_path):
    (tmp_path / "real.toml").write_text("old")
    (tmp_path / "link.toml").symlink_to(tmp_path / "real.toml")
    save(full_model(), tmp_path / "link.toml")
    assert (tmp_path / "link.toml").is_symlink()
    assert load(tmp_path / "real.toml") == full_model()


def test_a_path_that_is_no_model_s_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"the extension is '\.tom'; did you mean '\.toml'"):
        save(full_model(), tmp_path / "arm.tom")
    with pytest.raises(FileError, match="cannot be written"):
        save(full_model(), tmp_path / "no" / "arm.toml")


def test_what_no_file_can_hold_is_named():
    model = replace(full_model(), actuators=(Actuator("a", full_model().joints[-1].name, (("f", None),)),))
    with pytest.raises(ModelError) as caught:
        dumps(model)
    assert str(caught.value) == (
        "actuator 'a': setting 'f' is a NoneType; a file holds numbers, strings, booleans and lists of these"
    )
    with pytest.raises(ModelError, match="half a character"):
        dumps(Model("\ud800", (), ()))


def test_a_free_base_is_for_urdf_files(tmp_path):
    save(full_model(), tmp_path / "arm.toml")
    with pytest.raises(InputError, match=r"^arm\.toml: base='free' is for URDF files"):
        load(tmp_path / "arm.toml", base="free")


def test_an_impossible_inertia_warns_on_load(tmp_path):
    body = Body("b", Inertia(1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, -1.0, 0.0, 1.0)))
    save(Model("m", (body,), (Joint("j", Revolute(), WORLD, "b"),)), tmp_path / "arm.toml")
    with pytest.warns(SpanloopWarning, match=r"body 'b' \(arm\.toml\): its principal moments"):
        load(tmp_path / "arm.toml")


# ---- bad files, each with its sentence

HEAD = 'format = 1\nname = "m"\n'
BODY = '[[body]]\nname = "b"\n'
JOINT = '[[joint]]\nname = "elbow"\nparent = "world"\nchild = "b"\n'
HINGE = HEAD + BODY + JOINT + 'kind = "revolute"\n'

BAD = {
    "syntax": (
        "format = 1\nname =\n",
        "arm.toml:2: not readable as TOML (Invalid value); expected key = value",
    ),
    "no format": ('name = "m"', "arm.toml: model 'm': has no format; expected format = ..."),
    "later format": (
        'format = 2\nname = "m"',
        "arm.toml: model 'm': format is 2; this version of spanloop reads format 1",
    ),
    "no name": ("format = 1", "arm.toml: model: has no name; expected name = ..."),
    "axis": (
        HINGE + 'axis = "q"',
        "arm.toml: joint 'elbow': axis is 'q'; expected 'x', 'y', 'z', '-x', ... or three numbers",
    ),
    "axis count": (
        HINGE + "axis = [1, 2]",
        "arm.toml: joint 'elbow': axis is [1, 2]; expected three finite numbers",
    ),
    "offset": (HINGE + 'offset = "q"', "arm.toml: joint 'elbow': offset is 'q'; expected a number"),
    "no kind": (HEAD + BODY + JOINT, "arm.toml: joint 'elbow': has no kind; expected kind = ..."),
    "unknown kind": (
        HEAD + BODY + JOINT + 'kind = "revolut"',
        "arm.toml: joint 'elbow': kind is 'revolut'; did you mean 'revolute'?",
    ),
    "unknown key": (
        HINGE + "dampping = 0.1",
        "arm.toml: joint 'elbow': the key 'dampping' is not known; did you mean 'damping'?",
    ),
    "unknown top key": (
        HEAD + "gravit = [0, 0, 0]",
        "arm.toml: model 'm': the key 'gravit' is not known; did you mean 'gravity'?",
    ),
    "mass": (HEAD + BODY + 'mass = "2"', "arm.toml: body 'b': mass is '2'; expected a number"),
    "center": (
        HEAD + BODY + "center = [1, 2]",
        "arm.toml: body 'b': center is [1, 2]; expected three numbers",
    ),
    "rotation": (
        HINGE + "rotation = [1, 2, 3]",
        "arm.toml: joint 'elbow': rotation is [1, 2, 3]; expected a matrix of three rows of three numbers",
    ),
    "driven": (HINGE + "driven = 1", "arm.toml: joint 'elbow': driven is 1; expected true or false"),
    "damping": (
        HINGE + 'damping = "x"',
        "arm.toml: joint 'elbow': damping is 'x'; expected a list of numbers",
    ),
    "geometry": (
        HEAD + BODY + "[[body.geometry]]\nshape = 1",
        "arm.toml: body 'b': geometry: shape is 1; expected a text in quotes",
    ),
    "body is no table": (HEAD + "body = 3", "arm.toml: model 'm': body is 3; expected tables [[body]]"),
    "body is no tables": (HEAD + "body = [3]", "arm.toml: body is 3; expected a table"),
    "deep": (
        HEAD + "x = " + "[" * 100_000,
        "arm.toml: lists are nested too deep; no mechanism needs that",
    ),
    "huge number": (
        HEAD + BODY + "mass = 1" + "0" * 400,
        "arm.toml: body 'b': mass is 1"
        + "0" * 59
        + "; expected a number, whole ones below 2^63; write larger ones with an exponent, as 1e38",
    ),
    "huge numbers": (
        HEAD + BODY + "center = [0, 0, 9999999999999999999]",
        "arm.toml: body 'b': center is [0, 0, 9999999999999999999]; "
        "expected three numbers, whole ones below 2^63; write larger ones with an exponent, as 1e38",
    ),
    "encoding": (b'name = "\xe9"', "arm.toml:1: byte 0xe9 is not UTF-8 text; save the file as UTF-8"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_gives_its_sentence(case):
    text, expected = BAD[case]
    with pytest.raises(FileError) as caught:
        loads(text, "arm.toml")
    assert str(caught.value) == expected


def test_numbers_that_do_not_fit_the_joint_are_named():
    with pytest.raises(ModelError) as caught:
        loads(HINGE + "damping = [1, 2]", "arm.toml")
    assert str(caught.value) == "joint 'elbow' (arm.toml): damping has 2 numbers; a revolute joint takes 1"


def test_a_path_may_be_text(tmp_path):
    save(full_model(), str(tmp_path / "arm.toml"))
    assert load(str(tmp_path / "arm.toml")) == full_model()
    assert Path(tmp_path / "arm.toml").stat().st_mode & 0o400
