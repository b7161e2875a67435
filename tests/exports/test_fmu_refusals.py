"""Units whose steps fail, calls that do not fit, names, files and options."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from xml.etree import ElementTree

import numpy as np
import pytest
from fmu_instances import fmpy, instances, moved, needs_compiler, problems

import spanloop as sl
from spanloop.errors import InputError, SpanloopError, SpanloopWarning, UnsupportedError
from spanloop.exports.export import export
from spanloop.exports.fmu import binary

pytestmark = needs_compiler
STEP = 1e-3


@pytest.mark.slow
def test_a_step_that_fails_is_discarded_and_leaves_the_state(tmp_path):
    path = export(sl.zoo.puma(), tmp_path / "arm.fmu")
    with instances(path) as (a,):
        a.initialize()
        a.step(0.0, 0.01)
        before = a.all_of("q.")
        a.set_named({"tau.joint6": 1e14})
        with pytest.raises(Exception, match="fmi3DoStep"):
            a.step(0.01, 0.01)
        assert a.messages[-1][0] == 2
        assert "the step of 0.001 s at t = 0.0" in a.said
        assert (a.all_of("q.") == before).all()
        assert a.get("time")[0] == pytest.approx(0.01, abs=1e-15)
        a.set_named({"tau.joint6": 0.0})
        a.step(0.01, 0.01)


@pytest.mark.slow
def test_a_singular_position_is_reported(tmp_path):
    """A four-bar with equal bars folds into a line, where it could go on in two ways."""
    model = sl.zoo.four_bar(crank=1.0, coupler=1.0, rocker=1.0, ground=1.0)
    robot = sl.Dynamics(model)
    q = robot.assemble([1.2, -1.2, 1.2])
    path = export(model, tmp_path / "rhombus.fmu", q=q)
    with instances(path) as (a,):
        a.set_named({"q.crank_hinge": 0.0, "q.coupler_hinge": 0.0, "q.rocker_hinge": 0.0})
        a.initialize()
        with pytest.raises(Exception, match="fmi3DoStep"):
            a.step(0.0, 0.01)
        assert a.messages[-1][0] == 2
        assert "a singular position" in a.said


def test_calls_that_do_not_fit_are_refused(tmp_path):
    path = export(sl.zoo.pendulum(), tmp_path / "pendulum.fmu")
    with instances(path) as (a,):
        with pytest.raises(Exception, match="fmi3DoStep"):
            a.step(0.0, 0.01)
        a.initialize()
        for t, h in ((0.5, 0.01), (0.0, -0.01), (0.0, np.nan)):
            with pytest.raises(Exception, match="fmi3DoStep"):
                a.step(t, h)
        with pytest.raises(Exception, match="fmi3SetFloat64"):
            a.set_named({"energy.kinetic": 1.0})
        with pytest.raises(Exception, match="fmi3GetFloat64"):
            a.fmu.getFloat64([10_000])
        with pytest.raises(Exception, match="fmi3GetInt32"):
            a.fmu.getInt32([0])
    for words in ("not allowed in this mode", "the state is that of t = 0", "must be positive", "it cannot be set"):
        assert words in a.said, words


def test_a_limit_ends_the_simulation(tmp_path):
    b = sl.Builder("gate")
    b.body("leaf", mass=1.0, center=(0.5, 0.0, 0.0), inertia=(0.01, 0.01, 0.01))
    b.revolute("hinge", "world", "leaf", axis="y", lower=-0.2, upper=0.2)
    model = b.build()
    path = export(model, tmp_path / "gate.fmu", limits="end")
    assert problems(path) == []
    with instances(path) as (a,):
        a.initialize()
        _, ends, _, reached = a.step(0.0, 2.0)
        assert ends
        run = sl.simulate(model, duration=2.0, step=STEP)
        assert reached <= run.outcome.time < reached + STEP
        assert "ends the simulation" in a.said
    with pytest.raises(UnsupportedError, match="parameters cannot be changed"):
        export(model, tmp_path / "gate.fmu", limits="end", parameters=["leaf.mass"])


# ---- names, files


@pytest.mark.slow
def test_hostile_names_are_legal_and_distinct(tmp_path):
    b = sl.Builder('ro"bot <&> */ \\ ??/')
    parent = "world"
    for joint, body in [("a\"<b>&'", "x\\n"), ("q.é–ü", "日本"), ("%s%n", "*/"), ("mass", "q")]:
        b.body(body, mass=1.0, center=(0.1, 0.0, 0.0), inertia=(0.01, 0.01, 0.01))
        b.revolute(joint, parent, body, axis="y")
        parent = body
    model = b.build()
    path = export(model, tmp_path / "my robot-2.fmu", frames=["日本"], parameters=["q.mass"])
    assert problems(path) == []
    found = fmpy.read_model_description(str(path))
    assert found.modelName == model.name
    assert found.coSimulation.modelIdentifier == "my_robot_2"
    names = [v.name for v in found.modelVariables]
    assert "q.a\"<b>&'" in names
    assert "q.mass#2" in names  # the joint's position, beside the mass of the body q
    assert np.isfinite(moved(path)[0]).all()


@pytest.mark.slow
def test_the_same_content_gives_the_same_bytes(tmp_path):
    first = export(sl.zoo.four_bar(), tmp_path / "a.fmu", q=sl.zoo.four_bar_start(), name="linkage").read_bytes()
    program = (
        "import spanloop as sl; from spanloop.exports.export import export; "
        f"export(sl.zoo.four_bar(), {str(tmp_path / 'b.fmu')!r}, q=sl.zoo.four_bar_start(), name='linkage')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert (tmp_path / "b.fmu").read_bytes() == first
    third = export(sl.zoo.four_bar(), tmp_path / "c.fmu", q=sl.zoo.four_bar_start(), name="linkage", step=2e-3)
    tokens = [fmpy.read_model_description(str(tmp_path / f"{x}.fmu")).guid for x in "ac"]
    assert tokens[0] != tokens[1]
    assert third.read_bytes() != first


@pytest.mark.slow
def test_without_a_compiler_there_are_sources_that_compile_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(binary, "COMPILERS", ("no-such-compiler",))
    with pytest.warns(SpanloopWarning, match="the unit has sources only"):
        path = export(sl.zoo.pendulum(), tmp_path / "pendulum.fmu", q=[0.5])
    assert not [n for n in zipfile.ZipFile(path).namelist() if n.startswith("binaries")]
    library = f"binaries/{binary.platform_tuple()}/{binary.library_name('pendulum')}"
    with zipfile.ZipFile(path, "a") as unit:
        unit.extractall(tmp_path)
        sources = ElementTree.parse(tmp_path / "sources" / "buildDescription.xml").find(".//SourceFileSet")
        files = [str(tmp_path / "sources" / x.get("name")) for x in sources]
        words = [
            "cc",
            *sources.get("compilerOptions").split(),
            "-fPIC",
            "-shared",
            *files,
            "-o",
            str(tmp_path / "x.so"),
        ]
        subprocess.run([*words, "-lm"], check=True)
        unit.write(tmp_path / "x.so", library)
    run = sl.simulate(sl.zoo.pendulum(), [0.5], duration=0.05, step=STEP)
    assert np.abs(moved(path)[0] - run.q[-1]).max() < 1e-14


def test_files_of_the_compiler_are_in_a_folder_that_is_removed(tmp_path, monkeypatch):
    """A compiler that is interrupted leaves its own temporary files behind."""
    compiler, room = tmp_path / "halting", tmp_path / "room"
    compiler.write_text('#!/bin/sh\necho assembly > "$TMPDIR/ccX.s" && ls "$TMPDIR" >&2\nexit 1\n')
    compiler.chmod(0o755)
    room.mkdir()
    monkeypatch.setattr(binary, "COMPILERS", (str(compiler),))
    monkeypatch.setattr(binary.tempfile, "tempdir", str(room))
    monkeypatch.setenv("TMPDIR", str(room))
    with pytest.raises(SpanloopError, match=r"did not compile the unit: ccX\.s\s+unit\.c"):
        export(sl.zoo.pendulum(), tmp_path / "pendulum.fmu")
    assert list(room.iterdir()) == []


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_source_is_clean_under_strict_warnings(tmp_path, compiler):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    path = export(sl.zoo.four_bar(), tmp_path / "linkage.fmu", binary=False, parameters=["gravity"])
    zipfile.ZipFile(path).extractall(tmp_path)
    words = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fsyntax-only"]
    done = subprocess.run([compiler, *words, str(tmp_path / "sources/linkage.c")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "my arm"}, "not a C identifier; try name='my_arm'"),
        ({"frames": ["hnad"]}, "there is no frame or body 'hnad'"),
        ({"parameters": ["gravity.w"]}, "there is no parameter 'gravity.w'"),
        ({"forces": ["nobody"]}, "which is not a body"),
        ({"torques": ["joint9"]}, "joint9"),
        ({"kinds": ["CoSimulate"]}, "kinds has 'CoSimulate'"),
        ({"kinds": []}, "kinds is []; expected a list of"),
        ({"kinds": 3}, "kinds is 3; expected a list of"),
        ({"energy": "no"}, "energy is 'no'; expected True or False"),
        ({"binary": 0}, "binary is 0; expected True or False"),
        ({"integrator": "DOP853"}, "chooses its own steps"),
        ({"framse": []}, "takes no option 'framse'"),
        ({"inputs": ["a"]}, "no controller is given"),
        ({"controller": sl.control.callback(lambda t, q, v: v)}, "a callback is Python code"),
        ({"step": -1.0}, "step"),
    ],
)
def test_bad_options_are_refused_and_nothing_is_written(tmp_path, options, words):
    with pytest.raises(InputError, match=re.escape(words)):
        export(sl.zoo.puma(), tmp_path / "arm.fmu", **options)
    assert list(tmp_path.iterdir()) == []


def test_functions_are_not_part_of_a_unit(tmp_path):
    with pytest.raises(InputError, match="an FMU has no functions"):
        export(sl.zoo.puma(), ["forward_dynamics"], tmp_path / "arm.fmu")
