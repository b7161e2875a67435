"""`spanloop convert`, and the page about files."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import spanloop as sl
from spanloop.cli.main import main
from spanloop.joints import CLOSURE_KINDS
from spanloop.model import Actuator, Body, Contact, Coupling, Frame, Geometry, Inertia, Joint, Loop, Model, Sensor
from spanloop.model.files.toml.reader import loads
from spanloop.model.files.toml.writer import dumps
from spanloop.model.parts import Surface

PAGE = (Path(__file__).parents[3] / "docs" / "toml.md").read_text(encoding="utf-8")
EXAMPLE, *_ = re.findall(r"```toml\n(.*?)```", PAGE, re.S)


def run(capsys, *words):
    code = main(words)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def leg(tmp_path) -> Path:
    (tmp_path / "leg.toml").write_text(EXAMPLE)
    return tmp_path / "leg.toml"


# ---- the page


def test_the_example_of_the_page_is_a_mechanism_that_moves(leg):
    model = sl.load(leg)
    robot = sl.Dynamics(model)
    q = robot.assemble(model.neutral())
    assert (model.nv, robot.mobility(q)) == (5, 2)
    a = robot.forward_dynamics(q, np.zeros(5), np.zeros(5))
    assert a[0] == pytest.approx(-9.81, abs=1.0)  # it falls along the rail, nearly free


def test_the_example_uses_every_table_and_reads_back_bit_for_bit():
    model = loads(EXAMPLE)
    assert set(tomllib.loads(EXAMPLE)) == {
        "format", "name", "gravity", "notes", "body", "joint", "frame", "loop", "coupling", "actuator", "sensor",
    }  # fmt: skip
    assert loads(dumps(model)) == model
    assert model.actuators == (
        Actuator("hip_motor", "thigh_hinge", (("kind", "position"), ("stiffness", 40.0), ("damping", 2.0))),
    )
    assert model.sensors[1] == Sensor("foot_force", "force", "foot", (("rate", 1000),))


def test_the_page_names_every_key_and_every_kind():
    structure = {"where", "placement", "inertia", "placement_a", "placement_b", "bodies", "joints", "frames", "loops",
                 "couplings", "actuators", "sensors", "path", "missing", "surface", "contacts"}  # fmt: skip
    for part in (Model, Body, Inertia, Geometry, Surface, Joint, Frame, Loop, Coupling, Actuator, Sensor, Contact):
        for f in fields(part):
            if f.name not in structure and (part, f.name) != (Body, "geometry"):
                assert f"`{f.name}`" in PAGE, (part, f.name)
    for name, kind in CLOSURE_KINDS.items():
        assert f"`{name}`" in PAGE
        for f in fields(kind):
            assert f"`{f.name}`" in PAGE, (name, f.name)


# ---- convert


def test_a_tree_goes_through_every_format(capsys, tmp_path):
    names = [str(tmp_path / f"puma.{x}") for x in ("toml", "urdf", "csv", "sdf", "xml")]
    assert run(capsys, "convert", "zoo:puma", names[0])[0] == 0
    for name in names[1:]:
        code, out, _ = run(capsys, "convert", names[0], name)
        assert (code, out) == (0, f"{name}: bodies 6, DoF 6, loops 0\n")
    q, v = sl.zoo.puma().random_state(3)
    expected = sl.Dynamics(sl.zoo.puma()).bias(q, v)
    peer = pin.buildModelFromUrdf(names[1])
    order = sl.PinocchioOrder(sl.zoo.puma(), list(peer.names), list(peer.nqs))
    found = pin.nle(peer, peer.createData(), order.q_to(q), order.v_to(v))
    np.testing.assert_allclose(order.v_from(found), expected, rtol=0, atol=1e-9)
    model = mujoco.MjModel.from_xml_path(names[4])
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.qfrc_bias, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(sl.Dynamics(sl.load(names[2])).bias(q, v), expected, rtol=0, atol=1e-9)


def test_what_the_target_cannot_hold_is_said_and_nothing_is_written(capsys, leg):
    target = leg.with_suffix(".urdf")
    code, out, err = run(capsys, "convert", str(leg), str(target))
    assert (code, out, target.exists()) == (1, "", False)
    said = [
        line.removeprefix("not stored: ").split(":")[0] for line in err.splitlines() if line.startswith("not stored")
    ]
    assert said == [
        "loops (written as <loop>, which only spanloop reads; other programs leave them open)",
        "armatures", "springs", "that the joint has no motor", "actuators", "sensors",
    ]  # fmt: skip
    assert err.splitlines()[-1] == (
        f"{target}: not written, because URDF cannot store all of 'parallelogram leg'; "
        "use .toml, which can, or add --force"
    )
    code, out, _ = run(capsys, "convert", str(leg), str(target), "--force")
    assert (code, out) == (0, f"{target}: bodies 5, DoF 5, loops 1\n")
    assert pin.buildModelFromUrdf(str(target)).nv == 5


def test_a_closed_state_can_become_the_zero(capsys, tmp_path):
    target = tmp_path / "bar.sdf"
    assert "open at neutral" in run(capsys, "convert", "zoo:four_bar", str(target))[2]
    code, _, err = run(capsys, "convert", "zoo:four_bar", str(target), "--closed", "--force")
    assert (code, "open at neutral" in err) == (0, False)
    assert "note: the new zero is the closed configuration" in err


def test_a_bad_word_is_one_line(capsys, leg):
    code, _, err = run(capsys, "convert", str(leg), str(leg))
    assert (code, err) == (2, f"spanloop: error: {leg}: is the input file; choose another name\n")
    code, _, err = run(capsys, "convert", str(leg), "x.step")
    assert (code, err.startswith("spanloop: error: x.step: the extension is '.step'; ")) == (2, True)
    code, _, err = run(capsys, "convert", "zoo:hexapod", str(leg.with_name("x.csv")))
    assert (code, "Denavit-Hartenberg table has no" in err) == (1, True)
