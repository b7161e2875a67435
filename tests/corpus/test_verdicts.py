"""The corpus's verdicts are right where the answer is known: of small files, and of a peer that is wrong on purpose."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("pinocchio")
pytest.importorskip("mujoco")

from examine import examined
from model_files import model_files
from peers import PinocchioPeer

ARM = """<robot name="arm"><link name="base"/>
<link name="a"><inertial><origin xyz="0.1 0 0.2"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/></joint></robot>"""
BALL = """<mujoco><worldbody><body name="a" gravcomp="{gravcomp}"><joint name="j" axis="0 1 0" damping="0.1"/>
<geom size="0.1" pos="0.2 0 0"/></body></worldbody></mujoco>"""
pytestmark = pytest.mark.slow


def result(folder: Path, name: str, text: str, sort: str) -> dict:
    (folder / name).write_text(text)
    return examined(folder / name, folder, sort, lambda stage, known: None)


def test_a_plain_arm_agrees_and_simulates(tmp_path):
    found = result(tmp_path, "arm.urdf", ARM, "URDF")
    assert (found["peer"], found["ours"], found["with"]) == ("reads", "reads", [])
    assert found["compared"]["verdict"] == "agrees"
    assert found["simulated"]["outcome"] == "finished"


def test_a_peer_with_another_mass_differs(tmp_path, monkeypatch):
    plain = PinocchioPeer.answers

    def heavier(self, q, v):
        M, h = plain(self, q, v)
        return M * (1.0 + 1e-6), h

    monkeypatch.setattr(PinocchioPeer, "answers", heavier)
    assert result(tmp_path, "arm.urdf", ARM, "URDF")["compared"]["verdict"] == "differs"


def test_a_link_without_mass_is_refused_by_name(tmp_path):
    found = result(
        tmp_path, "arm.urdf", ARM.replace('mass value="1"', 'mass value="0"').replace('"0.1"', '"0"'), "URDF"
    )
    assert found["compared"]["verdict"] == "agrees"
    assert found["compared"]["singular"] == 3
    assert found["simulated"]["named"]


def test_a_feature_of_mujoco_that_is_left_out_or_held_does_not_differ(tmp_path):
    assert result(tmp_path, "ball.xml", BALL.format(gravcomp=0), "MJCF")["compared"]["verdict"] == "agrees"
    assert result(tmp_path, "ball.xml", BALL.format(gravcomp=1), "MJCF")["compared"]["verdict"].startswith("agrees")


def test_files_are_found_by_their_outermost_element_and_copies_counted(tmp_path):
    for name, text in (
        ("p/a.urdf", ARM),
        ("p/b.urdf", ARM),
        ("p/package.xml", "<package/>"),
        ("p/part.xml", "<mujocoinclude/>"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [(f.path, f.format, f.copies) for f in model_files(tmp_path)] == [("p/a.urdf", "URDF", 2)]
