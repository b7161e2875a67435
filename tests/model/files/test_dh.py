"""Denavit-Hartenberg tables: the modified form, inertias in the papers' frames, CSV files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from frames import body_pose
from sentences import says

import spanloop as sl
from spanloop.errors import FileError, InputError, ModelError, SpanloopError
from spanloop.model import Placement
from spanloop.model.files.dh.reader import NUMBERS, SETTINGS, WORDS, loads
from spanloop.model.files.dh.table import DHRow, from_dh

# products of some ten rotations, lengths of order 1
ROUNDING = 1e-14


def about(axis: int, angle: float) -> np.ndarray:
    x, (i, j) = np.eye(4), [(1, 2), (2, 0), (0, 1)][axis]
    x[i, i] = x[j, j] = np.cos(angle)
    x[j, i], x[i, j] = np.sin(angle), -np.sin(angle)
    return x


def along(axis: int, length: float) -> np.ndarray:
    x = np.eye(4)
    x[axis, 3] = length
    return x


def step(row: DHRow, q: float, form: str) -> np.ndarray:
    """One row's matrix, factor by factor."""
    theta, b = row.theta + q * (row.joint == "r"), row.b + q * (row.joint == "p")
    joint = about(2, theta) @ along(2, b)
    link = (along(0, row.a) @ about(0, row.alpha)) if form == "standard" else (about(0, row.alpha) @ along(0, row.a))
    return joint @ link if form == "standard" else link @ joint


def random_table(seed: int, n: int = 6) -> list[DHRow]:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        half = rng.normal(size=(3, 3))
        second = half @ half.T
        numbers = [float(x) for x in rng.uniform(-1.0, 1.0, 4)]
        rows.append(
            DHRow(
                *numbers,
                joint=str(rng.choice(["r", "p"])),
                mass=float(rng.uniform(0.5, 2.0)),
                center=rng.uniform(-0.3, 0.3, 3),
                inertia=np.trace(second) * np.eye(3) - second,
            )
        )
    return rows


def in_pinocchio(table: list[DHRow], form: str) -> pin.Model:
    """The arm built by hand: joint i about or along z, its link's inertia in the link's frame."""
    model, joint, here = pin.Model(), 0, np.eye(4)
    for number, row in enumerate(table):
        constant = step(row, 0.0, form)
        at, link = (here, constant) if form == "standard" else (here @ constant, np.eye(4))
        kind = pin.JointModelRZ() if row.joint == "r" else pin.JointModelPZ()
        joint = model.addJoint(joint, kind, pin.SE3(at), f"j{number}")
        inertia = pin.Inertia(row.mass, np.asarray(row.center, float), np.asarray(row.inertia, float))
        model.appendBodyToJoint(joint, inertia, pin.SE3(link))
        here = link
    return model


@pytest.mark.parametrize("form", ["standard", "modified"])
@pytest.mark.parametrize("seed", range(4))
def test_an_arm_moves_and_weighs_as_pinocchio_s_built_from_the_same_table(seed, form):
    table = random_table(seed)
    model, peer = from_dh(table, convention=form), in_pinocchio(table, form)
    robot, data = sl.Dynamics(model), peer.createData()
    q, v = model.random_state(seed)
    expected = np.linalg.multi_dot([step(row, x, form) for row, x in zip(table, q, strict=True)])
    np.testing.assert_allclose(body_pose(model, q, "tool"), expected, rtol=0, atol=ROUNDING * 10)
    M = pin.crba(peer, data, q)
    np.testing.assert_allclose(robot.mass_matrix(q), np.triu(M) + np.triu(M, 1).T, rtol=0, atol=1e-11)
    np.testing.assert_allclose(robot.bias(q, v), pin.nle(peer, data, q, v), rtol=0, atol=1e-10)


def test_the_planar_arm_of_point_masses_has_its_closed_form():
    """Two links with their masses at the ends, modified form. [Craig, section 6.7]"""
    l1, l2, m1, m2 = 0.7, 0.4, 2.0, 1.5
    rows = [{"mass": m1, "center": (l1, 0, 0)}, {"a": l1, "mass": m2, "center": (l2, 0, 0)}]
    robot = sl.Dynamics(from_dh(rows, convention="modified", gravity=(0, -9.81, 0)))
    q, v, g = np.array([0.3, 0.8]), np.array([-0.6, 1.1]), 9.81
    c1, c12, c2, s2 = np.cos(q[0]), np.cos(q.sum()), np.cos(q[1]), np.sin(q[1])
    m12 = l2**2 * m2 + l1 * l2 * m2 * c2
    M = [[l2**2 * m2 + 2 * l1 * l2 * m2 * c2 + l1**2 * (m1 + m2), m12], [m12, l2**2 * m2]]
    V = [-m2 * l1 * l2 * s2 * (v[1] ** 2 + 2 * v[0] * v[1]), m2 * l1 * l2 * s2 * v[0] ** 2]
    G = [m2 * l2 * g * c12 + (m1 + m2) * l1 * g * c1, m2 * l2 * g * c12]
    np.testing.assert_allclose(robot.mass_matrix(q), M, rtol=1e-13)
    np.testing.assert_allclose(robot.bias(q, v), np.add(V, G), rtol=1e-12)


def test_r_is_the_opposite_of_center_and_inertias_may_be_about_the_origin():
    (row,) = random_table(5, 1)
    c, m = np.array(row.center), row.mass
    other = {f: getattr(row, f) for f in ("a", "b", "alpha", "theta", "joint", "mass")}
    by_r = from_dh([{**other, "r": -c, "inertia": row.inertia}])
    at_origin = np.asarray(row.inertia) + m * (c @ c * np.eye(3) - np.outer(c, c))
    by_origin = from_dh([{**other, "center": c, "inertia": at_origin}], about="origin")
    expected = from_dh([row]).bodies[0].inertia
    assert by_r.bodies[0].inertia == expected
    np.testing.assert_allclose(by_origin.bodies[0].inertia.moments, expected.moments, rtol=0, atol=1e-14)


def test_a_base_moves_the_whole_table():
    base = Placement(((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), (1.0, 2.0, 3.0))
    table = random_table(6)
    q = np.linspace(-1.0, 1.0, 6)
    x = np.eye(4)
    x[:3, :3], x[:3, 3] = base.rotation, base.position
    expected = x @ body_pose(from_dh(table), q, "tool")
    np.testing.assert_allclose(body_pose(from_dh(table, base=base), q, "tool"), expected, rtol=0, atol=ROUNDING)


# ---- CSV

PUMA = """\
# Saha's PUMA, Table 3
# name: puma
joint, a [mm], d [mm], alpha [deg], mass [kg], rx [mm], ry [mm], rz [mm], ixx, iyy, izz [kg mm^2]
r,       0,      0, -90, 10.521,   0,   0,   54, 1.612,  1.612,  509100
r,     432,    149,   0, 15.761, 292,   0,    0, 0.4898, 8.0783, 8267200
r,      20,      0, -90,  8.767,  20,   0, -197, 3.3768, 3.3768, 300900
r,       0,    432, -90,  1.052,   0, -57,    0, 0.181,  0.1273, 181000
r,       0,      0, -90,  1.052,   0,   0,   -7, 0.0735, 0.1273, 73500
r,       0,     50,   0,  0.351,   0,   0,   19, 0.0071, 0.0071, 14100
"""


def test_the_puma_in_millimetres_and_degrees_is_that_of_the_zoo(tmp_path):
    (tmp_path / "arm.csv").write_text(PUMA)
    model = sl.load(tmp_path / "arm.csv")
    assert model == sl.zoo.puma()
    assert sl.from_dh(str(tmp_path / "arm.csv")) == model
    assert model.bodies[3].where == "arm.csv:7"


def test_every_column_and_setting_arrives():
    text = """\
# convention: modified
# about: origin
# gravity: 0 0 -1.62
# base position: 1 2 3
# base rotation [deg]: 0 90 0
joint; name; body; a; b; alpha; theta [deg]; mass [g]; cx [cm]; ixx [g cm2]; iyy; izz; \
lower [deg or mm]; upper [deg or mm]; speed [deg/s or mm/s]; effort; damping; friction; armature; stiffness; \
rest [deg or mm]; driven; actuated
revolute; turn; arm; 0.5; 0; 0; 90; 2000; 10; 200000; 0.04; 0.04; -90; 180; 360; 5; 0.1; 0.2; 0.3; 0.4; 45; true; false
P; slide; rod; 0; 0; 0; 0; 1000; 0; 0; 0; 0; ; 500; 250; inf; ; ; ; ; ; ;
"""
    model = loads(text, "x.csv")
    turn, slide = model.joints
    assert (turn.name, turn.child, slide.name, slide.child) == ("turn", "arm", "slide", "rod")
    assert model.gravity == (0.0, 0.0, -1.62)
    assert turn.placement.position == (1.0, 2.0, 2.5)  # the base's x axis points down
    i = model.body("arm").inertia
    assert (i.mass, i.center) == (2.0, (0.1, 0.0, 0.0))
    np.testing.assert_allclose(i.moments, (0.02, 0, 0, 0.02, 0, 0.02), atol=1e-15)
    assert (turn.lower, turn.upper, turn.speed) == ((-np.pi / 2,), (np.pi,), (2 * np.pi,))
    numbers = (turn.effort, turn.damping, turn.friction, turn.armature, turn.stiffness, turn.rest)
    assert numbers == ((5.0,), (0.1,), (0.2,), (0.3,), (0.4,), (np.pi / 4,))
    assert (turn.driven, turn.actuated, slide.driven, slide.actuated) == (True, False, False, True)
    assert (slide.lower, slide.upper, slide.speed, slide.effort) == (None, (0.5,), (0.25,), (np.inf,))


HEAD = "joint, a, alpha [deg], mass\n"
BAD = {
    "no number": (HEAD + "r, 1, x, 1", "x.csv:2: alpha [deg] is 'x'; expected a number"),
    "decimal comma": ('a\n"0,5"', "x.csv:2: a is '0,5'; expected a number; write a point, not a comma"),
    "not finite": (HEAD + "r, nan, 0, 1", "x.csv:2: a is 'nan'; expected a finite number"),
    "cells": (HEAD + "\nr, 1, 0", "x.csv:3: there are 3 cells; expected 4, as in the header"),
    "column": ("joint, alfa\nr, 1", "x.csv:1: there is no column 'alfa'; did you mean 'alpha'?"),
    "twice": ("b, d\n1, 1", "x.csv:1: two columns give 'b' ('b' is one); expected one"),
    "unit": ("a [deg]\n1", "x.csv:1: the unit of 'a [deg]' is not known; expected m, cm, mm"),
    "unit of none": ("damping [kg]\n1", "x.csv:1: the unit of 'damping [kg]' is not known; expected none (SI)"),
    "kind": ("joint\nx", "x.csv:2: joint is 'x'; expected r (revolute) or p (prismatic)"),
    "one unit": (
        "joint, lower [deg]\np, 1",
        "x.csv:2: 'lower [deg]' has no unit for the prismatic joint; name both, as in lower [deg or mm]",
    ),
    "both": ("rx, cx\n1, 1", "x.csv:2: rx, ry, rz and cx, cy, cz are opposite vectors; give one of them"),
    "nothing": ("# only this", "x.csv: there is no row; expected a header (joint, a, b, alpha, theta, ...) and a row"),
    "convention": ("# convention: craig\na\n1", "x.csv:1: convention is 'craig'; there are 'standard', 'modified'"),
    "misspelt": (
        "# conventions: modified\na\n1",
        "x.csv:1: 'conventions' is not a setting; did you mean 'convention'?",
    ),
    "gravity": ("# gravity: 9.81\na\n1", "x.csv:1: gravity is '9.81'; expected three numbers"),
    "base": (
        "# base rotation [grad]: 0 0 0\na\n1",
        "x.csv:1: the unit of base rotation is 'grad'; expected deg or rad",
    ),
    "flag": ("driven\nyes", "x.csv:2: driven is 'yes'; expected true or false"),
    "quotes": ('a\n"1', "x.csv:2: not readable as CSV (unexpected end of data)"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_gives_its_sentence(case):
    text, sentence = BAD[case]
    with says(FileError, sentence):
        loads(text, "x.csv")


def test_a_bad_inertia_gives_file_and_line():
    with says(ModelError, "body 'link1' (x.csv:2): its principal moments of inertia are 0.1, 0.1, 0.5 kg m²"):
        loads("mass, ixx, iyy, izz\n1, 0.1, 0.1, 0.5", "x.csv")
    with says(ModelError, "body 'link1' (x.csv:2): mass is -1 kg"):
        loads("mass\n-1", "x.csv")
    with says(ModelError, "joint 'joint1' (x.csv:2): lower limit (2.0,) is above upper limit (1.0,)"):
        loads("lower, upper\n2, 1", "x.csv")


def test_file_and_caller_must_agree(tmp_path):
    (tmp_path / "x.csv").write_text("# convention: modified\na, mass\n1, 1")
    with says(InputError, "convention is 'standard', but the file says 'modified'; leave one of them out"):
        from_dh(tmp_path / "x.csv", convention="standard")
    assert from_dh(tmp_path / "x.csv", convention="modified", name="y").name == "y"
    with says(InputError, "convention is 'craigs'; there are 'standard', 'modified'"):
        from_dh([{}], convention="craigs")
    with says(InputError, "the Denavit-Hartenberg table has no rows"):
        from_dh([])
    with says(InputError, "row 1: r and center are both given"):
        from_dh([{"r": (0, 0, 1), "center": (0, 0, -1)}])
    with says(InputError, "x.csv: base='free' is for URDF files; a .csv file describes itself"):
        sl.load(tmp_path / "x.csv", base="free")


def test_the_examples_of_the_page_load():
    page = (Path(__file__).parents[3] / "docs" / "dh.md").read_text(encoding="utf-8")
    (python,) = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(python, {})
    (table,) = re.findall(r"```csv\n(.*?)```", page, re.S)
    model = loads(table, "two.csv")
    assert (model.name, model.nv, model.joints[1].upper) == ("two links", 2, (0.4,))


def test_the_page_has_every_column_and_setting():
    page = (Path(__file__).parents[3] / "docs" / "dh.md").read_text(encoding="utf-8")
    for name in (*NUMBERS, *WORDS):
        assert f"`{name}`" in page, name
    for name in SETTINGS:
        assert f"`# {name}" in page, name


@pytest.mark.parametrize("seed", range(4))
def test_mutated_files_give_a_model_or_a_sentence(seed):
    """Bytes changed, cut, doubled and moved; values, units and names exchanged. Seeds are the parameters."""
    rng = np.random.default_rng(seed)
    words = [
        "nan",
        "1e999",
        "-1",
        '"',
        ";",
        "\t",
        "[deg]",
        "[kg]",
        "joint",
        "p",
        "#",
        "# base rotation: 1 2",
        "é",
        "\x00",
        "",
    ]
    told = {"model": 0, "sentence": 0}
    for _ in range(250):
        cells = re.split(r"([,\n])", PUMA)
        for _ in range(int(rng.integers(1, 4))):
            k, other = rng.integers(0, len(cells), 2)
            cells[k] = str(rng.choice(words)) if rng.uniform() < 0.6 else cells[other]
        text = "".join(cells)[: None if rng.uniform() < 0.8 else int(rng.integers(0, len(PUMA)))]
        try:
            loads(text.encode(), "x.csv")
            told["model"] += 1
        except SpanloopError:
            told["sentence"] += 1
    assert min(told.values()) > 10
