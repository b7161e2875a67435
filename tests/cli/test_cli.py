"""The command line: what is printed, what is refused, and with which exit code."""

from __future__ import annotations

import importlib
import io
import json
import re
import shlex
import subprocess
import sys
import types
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import spanloop as sl
from spanloop import kernels
from spanloop.cli import demo
from spanloop.cli.main import COMMANDS, FIRST_STEPS, main
from spanloop.cli.terminal import ProgressBar, in_options
from spanloop.compiler.runtime.gpu import driver
from spanloop.compiler.runtime.rollout import Rollout

RUBBING = """<robot name="r">
  <link name="base"/>
  <link name="arm"><inertial><mass value="1"/>
    <inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
    <dynamics friction="0.2"/></joint>
</robot>"""


def run(capsys, *words):
    """Exit code, standard output, standard error."""
    try:
        code = main(words)
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def urdf(tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(RUBBING)
    return path


# ---- convert


def test_convert_sets_settings_of_joints_and_parameters(capsys, tmp_path):
    target = tmp_path / "p.toml"
    words = ("*.damping=0.1", "joint2.limits=-90deg,90deg", "link6.mass=0.4", "gravity.z=0")
    assert run(capsys, "convert", "zoo:puma", str(target), *(x for word in words for x in ("--set", word)))[0] == 0
    model = sl.load(target)
    assert {j.damping for j in model.joints} == {(0.1,)}
    assert (model.joint("joint2").lower, model.body("link6").inertia.mass) == ((-np.pi / 2,), 0.4)
    assert model.gravity == (0.0, 0.0, 0.0)
    code, _, err = run(capsys, "convert", "zoo:puma", str(target), "--set", "joint2.dampin=0.1")
    assert (code, "has no setting 'dampin'; did you mean 'damping'?" in err) == (2, True)
    code, _, err = run(capsys, "convert", "zoo:puma", str(target), "--set", "damping=0.1")
    assert (code, "there is no parameter 'damping'" in err) == (2, True)


# ---- simulate


@pytest.mark.slow
def test_settings_of_joints_may_be_infinite_or_truth_values(capsys, tmp_path):
    target = str(tmp_path / "p.toml")
    words = ("--set", "joint2.limits=-inf,inf", "--set", "joint3.actuated=false", "--set", "joint4.effort=inf")
    assert run(capsys, "convert", "zoo:puma", target, *words)[0] == 0
    model = sl.load(target)
    assert (model.joint("joint2").upper, model.joint("joint4").effort) == (None, None)
    assert "joint3" not in model.actuated
    wrong = {
        "joint2.damping": "expected NAME=VALUE, for example --set elbow.damping=0.1",
        "joint2.damping=inf": "'inf' is not finite",
        "joint3.actuated=1": "'1' is no truth value; expected true or false",
        "foo.damping=1": "model 'puma' has no joint 'foo'; there are 'joint1'",
    }
    for word, sentence in wrong.items():
        code, _, err = run(capsys, "convert", "zoo:puma", target, "--set", word)
        assert (code, sentence in err) == (2, True), err


def test_advice_names_options_of_the_command_line(capsys, tmp_path):
    code, out, _ = run(capsys, "simulate", "zoo:puma", "--set", "joint2.limits=-0.1,0.1", "--v", "joint2=1")
    assert (code, "--limits stop puts a stop there, --limits ignore does not" in out) == (0, True)
    path = tmp_path / "r.urdf"
    path.write_text(RUBBING.replace('ixx="0.02"', 'ixx="2"'))
    code, _, err = run(capsys, "info", str(path))
    assert (code, "--repair replaces it" in err) == (0, True)
    assert in_options("load it with root='/a b' or root= here") == "load it with --root '/a b' or --root here"
    assert in_options("capture=True, on_break='release' lets go") == "capture=true, on_break=release lets go"
    assert in_options("model.with_joint('a.b', armature=...)") == "--set 'a.b.armature=...'"
    words = "contacts left out; sl.load(path, contacts=True) reads them, contacts='ground' reads 2"
    assert in_options(words) == "contacts left out; --load-contacts all reads them, --load-contacts ground reads 2"
    assert in_options("allow it: contacts=sl.contacts.Settings(overlap=...)") == (
        "allow it: overlap = ... under [contacts] in the file of --run; --q sets the start"
    )
    assert in_options("limits='stop' with base='free'; (repair=True, --repair)") == (
        "--limits stop with --base free; (--repair)"
    )


def test_simulate_continues_from_a_checkpoint_and_says_so(capsys, tmp_path, monkeypatch):
    words = ("simulate", "zoo:four_bar", "--duration", "0.5", "--checkpoint", str(tmp_path / "run.ckpt"))
    original, calls = Rollout.run, []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Rollout, "run", interrupted)
        code, out, _ = run(capsys, *words)
    assert code == 1
    assert f"{tmp_path / 'run.ckpt'} holds the progress: the same command continues from there" in out
    code, out, _ = run(capsys, *words, "--output", str(tmp_path / "run.npz"))
    assert code == 0
    assert f"continued from {tmp_path / 'run.ckpt'} at 0.0" in out
    run(capsys, *words[:-2], "--output", str(tmp_path / "whole.npz"))
    assert np.array_equal(sl.load_run(tmp_path / "run.npz").q, sl.load_run(tmp_path / "whole.npz").q)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.npz", "whole.npz"]


def test_a_file_that_cannot_be_written_does_not_keep_the_others_from_being_written(capsys, tmp_path):
    (tmp_path / "a.npz").mkdir()
    files = [str(tmp_path / name) for name in ("a.npz", "b.npz")]
    words = ("simulate", "zoo:pendulum", "--duration", "0.01", "--output", files[0], "--output", files[1])
    code, out, err = run(capsys, *words)
    assert (code, "a.npz: cannot be written (Is a directory)" in err) == (2, True)
    assert f"written: {files[1]}" in out
    assert files[0] not in out
    assert len(sl.load_run(files[1])) == 11


# ---- info


def test_info_prints_the_model(capsys):
    code, out, err = run(capsys, "info", "zoo:quadruped")
    assert (code, err) == (0, "")
    assert out == f"{sl.zoo.quadruped()}\n"


def test_info_takes_a_number_for_mechanisms_of_any_size(capsys):
    assert "bodies    5" in run(capsys, "info", "zoo:chain:5")[1]


def test_info_prints_warnings_as_notes(capsys, urdf):
    code, out, err = run(capsys, "info", str(urdf))
    assert code == 0
    assert "1 revolute" in out
    assert err == "note: r.urdf: 1 joints have Coulomb friction ('hinge' first); it acts in simulation only\n"


def test_info_with_a_free_base_has_six_more_dofs(capsys, urdf):
    data = json.loads(run(capsys, "info", str(urdf), "--base", "free", "--json")[1])
    assert (data["nq"], data["nv"]) == (8, 7)


def test_info_as_json_contains_everything_in_the_text(capsys, urdf):
    code, out, err = run(capsys, "info", str(urdf), "--json")
    data = json.loads(out)
    assert (code, err) == (0, "")
    assert (data["name"], data["n_bodies"], data["nv"], data["mass"]) == ("r", 2, 1, 1.0)
    assert [j["name"] for j in data["joints"]] == ["root", "hinge"]
    assert len(data["warnings"]) == 1


def test_info_as_json_has_no_infinities(capsys, tmp_path):
    b = sl.Builder("x").body("a", 1.0, inertia=(1.0, 1.0, 1.0))
    b.revolute("j", "world", "a", lower=-float("inf"), upper=1.0).build().save(tmp_path / "x.toml")
    (joint,) = json.loads(run(capsys, "info", str(tmp_path / "x.toml"), "--json")[1])["joints"]
    assert (joint["lower"], joint["upper"]) == ([None], [1.0])


# ---- errors: one line, exit code 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "the following arguments are required: COMMAND. Try 'spanloop --help'"),
        (("info",), "the following arguments are required: MODEL. Try 'spanloop info --help'"),
        (("info", "zoo:pum"), "the zoo has no 'pum'; did you mean 'puma'?"),
        (("info", "zoo:chain"), "zoo:chain needs a number (n); try zoo:chain:6"),
        (
            ("info", "zoo:chain:x"),
            "zoo:chain:x: 'x' is not a whole number of at most six digits; try zoo:chain:6",
        ),
        (("info", "zoo:chain:0"), "zoo: chain: 0 is asked for; expected at least 1"),
        (("info", "zoo:puma:3"), "zoo:puma takes no number; try zoo:puma"),
        (
            ("info", "zoo:puma", "--base", "free"),
            "zoo:puma: --base applies to URDF files only",
        ),
        (("demo", "--seconds", "-1"), "--seconds is -1; must be from 0.1 to 120"),
        (("demo", "--seconds", "nan"), "--seconds is nan; must be from 0.1 to 120"),
        (
            ("demo", "--seconds", "x"),
            "argument --seconds: invalid float value: 'x'. Try 'spanloop demo --help'",
        ),
        (
            ("demo", "--output", "nowhere/x.html"),
            "--output nowhere/x.html: there is no folder 'nowhere'; make it first",
        ),
        (
            ("demo", "--output", "x.svg"),
            "--output x.svg: expected an existing folder, or a file that ends in .html",
        ),
        (("simulate", "zoo:puma", "--q", "joint1"), "--q joint1: expected NAME=VALUE, for example --q elbow=0.3"),
        (
            ("simulate", "zoo:puma", "--q", "joint7=1"),
            "model 'puma' has no joint 'joint7'; did you mean 'joint6'?",
        ),
        (("simulate", "zoo:puma", "--q", "joint1=1,2"), "--q joint1: found 2 numbers; the joint has 1"),
        (
            ("simulate", "zoo:puma", "--v", "joint1=fast"),
            "--v joint1=fast: 'fast' is not a number; expected one such as 0.3 or 30deg",
        ),
        (
            ("simulate", "zoo:puma", "--v", "joint1=3furlong"),
            "--v joint1=3furlong: unknown unit 'furlong'; expected one of deg, rad, m, mm, cm",
        ),
        (("simulate", "zoo:puma", "--v", "joint1=nan"), "--v joint1=nan: 'nan' is not finite"),
        (
            ("simulate", "zoo:puma", "--output", "run.doc"),
            "--output run.doc: the extension is '.doc'; expected .nc, .h5, .npz, .csv, .svg, .mp4, .gif, .html",
        ),
        (("simulate", "zoo:puma", "--integrator", "rk5"), "integrator is 'rk5'; did you mean 'rk4'?"),
        (("simulate", "zoo:puma", "--duration", "-1"), "duration is -1 s; must be positive"),
        (
            ("simulate", "zoo:puma", "--set", "link1.mas=3"),
            "there is no parameter 'link1.mas'; did you mean 'link1.mass'?",
        ),
        (
            ("plot", "x.toml", "q"),
            "x.toml: expected the file of a run (.nc, .h5, .npz); make one with: "
            "spanloop simulate zoo:four_bar --output run.npz",
        ),
        (
            ("view", "zoo:puma", "--html", "x.html"),
            "--html needs a run; make a page of a mechanism with: spanloop simulate MODEL --output run.html",
        ),
        (
            ("view", "zoo:puma", "--run", "5"),
            "zoo:puma: --run 5 is for a batch of runs; this is a model. Leave it out",
        ),
        (("zoo", "show"), "zoo show needs a name; see: spanloop zoo list"),
        (("zoo", "show", "pumma"), "the zoo has no 'pumma'; did you mean 'puma'?"),
        (
            ("zoo", "export", "chain:3"),
            "zoo export needs a file; try: spanloop zoo export chain:3 chain.toml",
        ),
        (("bench", "zoo:puma", "--seconds", "0"), "--seconds is 0; must be above 0 and at most 60"),
    ],
)
def test_a_wrong_word_is_one_line_and_exit_code_2(capsys, words, sentence):
    assert run(capsys, *words) == (2, "", f"spanloop: error: {sentence}\n")


def test_the_number_of_a_run_is_refused_where_there_is_one(capsys, tmp_path):
    file = str(tmp_path / "run.npz")
    sl.simulate(sl.zoo.pendulum(), duration=0.01).save(file)
    for words in (("plot", file, "q", "--run", "7"), ("view", file, "--run", "0", "--html", "x.html")):
        code, out, err = run(capsys, *words)
        number = words[words.index("--run") + 1]
        assert (code, out) == (2, "")
        assert f"--run {number} is for a batch; this is one run. Leave --run out" in err


def test_a_missing_file_is_one_line(capsys, tmp_path):
    code, out, err = run(capsys, "info", str(tmp_path / "none.urdf"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"spanloop: error: {tmp_path / 'none.urdf'}: there is no such file")


def test_a_broken_file_is_one_line(capsys, tmp_path):
    (tmp_path / "bad.urdf").write_text("<robot")
    code, _, err = run(capsys, "info", str(tmp_path / "bad.urdf"))
    assert (code, err.count("\n")) == (2, 1)
    assert "bad.urdf:1" in err


def test_an_error_of_the_disk_is_one_line(capsys, tmp_path):
    code, _, err = run(capsys, "zoo", "export", "puma", str(tmp_path / "none" / "x.toml"))
    assert (code, err.count("\n")) == (2, 1)
    assert "cannot be written" in err


def test_an_interrupt_leaves_without_a_traceback(capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "carry_disc", interrupted)
    assert run(capsys, "demo") == (130, "", "spanloop: error: interrupted\n")


def test_a_fault_of_our_own_is_one_line_and_says_how_to_report_it(capsys, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr(demo, "carry_disc", broken)
    code, out, err = run(capsys, "demo")
    assert (code, out, err.count("\n")) == (70, "", 1)
    assert "a fault of spanloop" in err
    assert "ZeroDivisionError: float division by zero" in err
    monkeypatch.setenv("SPANLOOP_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["demo"])


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error():
    listing = subprocess.Popen(
        [sys.executable, "-m", "spanloop.cli.main", "info", "zoo:chain:3000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    listing.stdout.readline()
    listing.stdout.close()
    assert (listing.stderr.read(), listing.wait()) == (b"", 0)
    listing.stderr.close()


# ---- help and version


def test_version(capsys):
    assert run(capsys, "--version") == (0, f"spanloop {sl.__version__}\n", "")


def test_help_imports_nothing_heavy():
    """NumPy and llvmlite take most of a start; without them help comes in 50 ms."""
    code = "import sys; from spanloop.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "assert not {'numpy', 'llvmlite'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


# ---- examples: every line of every --help works as pasted


@pytest.fixture
def shown(monkeypatch):
    """What the viewer and the plots are asked for; they themselves are tested elsewhere."""
    asked = []

    class Figure:
        def savefig(self, path):
            Path(path).write_text("figure")

    def show(what, q=None, **options):
        asked.append((what, q, options))

    def plot(motion, what, names=None):
        asked.append((motion, what, names))
        return types.SimpleNamespace(figure=Figure())

    monkeypatch.setitem(sys.modules, "spanloop.view.viewer", types.SimpleNamespace(show=show))
    monkeypatch.setitem(sys.modules, "spanloop.view.plots", types.SimpleNamespace(plot=plot))
    return asked


SLOW = ("demo", "bench", "reach", "view", "page", "gallery")  # they compile large mechanisms


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in COMMANDS])
def test_examples_work_as_pasted(name, capsys, tmp_path, monkeypatch, shown):
    """In their order, in an empty folder: a later one may use what an earlier one wrote.

    Those of studies have the file of their page.
    """
    monkeypatch.chdir(tmp_path)
    if name == "study":
        (tmp_path / "study.toml").write_text(_file_of_the_page_of_studies())
        monkeypatch.delitem(sys.modules, "spanloop.view.plots")  # its own figures
    for line in importlib.import_module(f"spanloop.cli.{name}").EXAMPLES:
        program, *words = shlex.split(line)
        assert program == "spanloop"
        code, _, err = run(capsys, *words)
        assert (code, err) == (0, ""), line


def _file_of_the_page_of_studies() -> str:
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"^```toml\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_shows_its_examples(name, capsys):
    code, out, _ = run(capsys, name, "--help")
    assert code == 0
    for line in importlib.import_module(f"spanloop.cli.{name}").EXAMPLES:
        assert f"  {line}\n" in out


@pytest.mark.slow
def test_first_steps_of_the_help_are_commands_that_work(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [line.split() for line in FIRST_STEPS.splitlines()[1:] if "COMMAND" not in line and "demo" not in line]
    assert len(lines) == 3
    for _, *words in lines:
        assert run(capsys, *words)[0] == 0


# ---- demo


@pytest.mark.slow
def test_demo_reports_and_writes_a_page(capsys, tmp_path):
    code, out, err = run(capsys, "demo", "--output", str(tmp_path), "--seconds", "0.3")
    assert (code, err) == (0, "")
    words = ("24 DoF", "kernels: ", "300 steps", "times real time", "loops", "grasps", "All is well.", "grab the disc")
    for word in words:
        assert word in out
    page = (tmp_path / "spanloop-demo.html").read_text()
    assert len(page) < 1e6
    assert "'wasm-unsafe-eval'" in page
    data = json.loads(run(capsys, "demo", "--output", str(tmp_path), "--seconds", "0.3", "--json")[1])
    assert data["well"]
    assert (data["compiled"], data["from_cache"] > 10) == (0, True)
    assert data["closure_residual"] < 1e-12
    low, high = data["grasp_forces"]["holding1"]
    assert 0.0 < low < high


@pytest.mark.slow
def test_the_lines_of_python_do_the_same(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = run(capsys, "demo", "--seconds", "0.3", "--no-browser")[1]
    lines = out[out.index("import spanloop") : out.index("Next:")]
    Path("spanloop-demo.html").unlink()
    space = {}
    exec(compile(lines, "demo", "exec"), space)
    assert "All is well." in capsys.readouterr().out
    assert Path("spanloop-demo.html").read_text().startswith("<!doctype html>")
    assert space["run"].duration == pytest.approx(0.3)


@pytest.mark.slow
def test_demo_ends_with_1_when_the_motion_is_not_to_be_trusted(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "STEP", 0.1)
    monkeypatch.setattr(demo, "SAMPLE", 0.1)
    code, out, _ = run(capsys, "demo", "--output", str(tmp_path), "--seconds", "2")
    assert code == 1
    assert "Not well" in out


@pytest.mark.slow
def test_demo_opens_nothing_where_nobody_looks(capsys, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run(capsys, "demo", "--output", str(tmp_path), "--seconds", "0.1")
    assert opened == []
    run(capsys, "demo", "--output", str(tmp_path), "--seconds", "0.1", "--open")
    assert opened == [(tmp_path / "spanloop-demo.html").as_uri()]


# ---- simulate


def test_simulate_starts_at_the_given_state(capsys, tmp_path):
    path = tmp_path / "run.npz"
    words = ("--q", "hinge1=30deg", "--v", "hinge2=2", "--tau", "hinge1=0.5", "--set", "rod2.mass=0.25")
    code, out, err = run(capsys, "simulate", "zoo:pendulum:2", "--duration", "0.1", *words, "--output", str(path))
    assert (code, err) == (0, "")
    assert f"written: {path}" in out
    found = sl.load_run(path)
    np.testing.assert_allclose(found.q[0], (np.pi / 6, 0.0), atol=1e-15)
    np.testing.assert_allclose(found.v[0], (0.0, 2.0), atol=1e-15)
    np.testing.assert_allclose(found.tau[0], (0.5, 0.0), atol=1e-15)
    assert found.model.body("rod2").inertia.mass == 0.25


def test_simulate_closes_loops_around_the_given_joints(capsys, tmp_path):
    path = tmp_path / "run.npz"
    words = ("--q", "crank_hinge=1.4", "--v", "crank_hinge=2", "--duration", "0.2", "--output", str(path))
    assert run(capsys, "simulate", "zoo:four_bar", *words)[0] == 0
    found = sl.load_run(path)
    assert found["crank_hinge"].q[0] == pytest.approx(1.4, abs=1e-12)
    assert found["crank_hinge"].v[0] == pytest.approx(2.0, abs=1e-12)
    assert found.closure_residual.max() < 1e-12
    assert found.velocity_residual.max() < 1e-11


def test_simulate_with_audit_ends_with_1_if_the_motion_is_not_well(capsys):
    wild = ("--q", "hinge1=2", "--v", "hinge2=15", "--duration", "2", "--audit")
    assert run(capsys, "simulate", "zoo:pendulum:2", *wild)[0] == 0
    code, out, _ = run(capsys, "simulate", "zoo:pendulum:2", *wild, "--integrator", "euler", "--step", "0.01")
    assert code == 1
    assert "Not well: steps, energy" in out


def test_simulate_as_json(capsys):
    data = json.loads(run(capsys, "simulate", "zoo:puma", "--duration", "0.05", "--audit", "--json")[1])
    assert (data["model"], data["samples"], data["outcome"]["reason"]) == ("puma", 51, "finished")
    assert {f["verdict"] for f in data["audit"]} == {"well"}
    assert len(data["end"]["joint1"]) == 1


@pytest.mark.slow
def test_a_run_becomes_an_animated_svg(capsys, tmp_path):
    path = tmp_path / "run.svg"
    assert run(capsys, "simulate", "zoo:delta", "--duration", "0.2", "--output", str(path))[0] == 0
    tree = ET.parse(path)
    space = "{http://www.w3.org/2000/svg}"
    assert len(tree.findall(f".//{space}animate")) > 20
    outside = [v for e in tree.iter() for k, v in e.attrib.items() if "href" in k or "url(" in v]
    assert outside == []
    assert "nan" not in path.read_text()


# ---- view and plot call what others provide


def test_view_hands_over_a_closed_mechanism(capsys, shown):
    assert run(capsys, "view", "zoo:stewart", "--port", "0")[0] == 0
    ((robot, q, options),) = shown
    np.testing.assert_allclose(q, sl.zoo.stewart_start(), atol=1e-12)
    assert (robot.model.name, options["open_browser"], options["folder"]) == ("stewart", False, None)


@pytest.mark.parametrize(("room", "words"), [("viewer", ("view", "zoo:puma")), ("plots", ("plot", "run.npz", "q"))])
def test_a_missing_package_is_one_line(room, words, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    run(capsys, "simulate", "zoo:puma", "--duration", "0.01", "--output", "run.npz")
    monkeypatch.setitem(sys.modules, f"spanloop.view.{room}", None)  # as if it could not be imported
    code, out, err = run(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "pip install" in err


# ---- zoo, bench, doctor


def test_zoo_lists_all_mechanisms(capsys):
    out = run(capsys, "zoo", "list")[1]
    assert all(f"  {name}" in out for name in sl.zoo.names())
    data = json.loads(run(capsys, "zoo", "list", "--json")[1])
    assert {row["name"] for row in data if row["closed"]} == set(sl.zoo.names(closed=True))
    assert all(row["about"] for row in data)


def test_zoo_exports_what_loads_again(capsys, tmp_path):
    assert run(capsys, "zoo", "export", "stewart", str(tmp_path / "x.toml"))[0] == 0
    assert sl.load(tmp_path / "x.toml") == sl.zoo.stewart()


@pytest.mark.slow
def test_bench_measures_and_gives_reasons_for_what_it_cannot(capsys):
    data = json.loads(run(capsys, "bench", "zoo:four_bar", "--seconds", "0.01", "--json")[1])
    costs = {c["what"]: c for c in data["costs"]}
    assert all(c["why_not"] or 0.0 < c["low"] <= c["median"] <= c["high"] for c in costs.values())
    assert costs["forward dynamics, a call"]["median"] > costs["forward dynamics, a state of a batch"]["median"]
    assert data["operations"]["multiplications"] > 0


def test_cache_shows_and_empties_the_folder_of_kernels(capsys, tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("SPANLOOP_CACHE", str(folder))
    sl.compile(sl.zoo.pendulum(1), "bias")
    (folder / "letter.txt").write_text("not a kernel")
    code, out, _ = run(capsys, "cache")
    assert code == 0
    assert f"folder   {folder}" in out
    assert "kernels  1\n" in out
    assert " of at most 512 MB" in out
    found = json.loads(run(capsys, "cache", "--clear", "--json")[1])
    assert (found["kernels"], found["bytes"], found["removed"]) == (0, 0, 1)
    assert [p.name for p in folder.iterdir()] == ["letter.txt"]
    monkeypatch.setenv("SPANLOOP_CACHE", "off")
    assert run(capsys, "cache", "--clear")[:2] == (
        0,
        "The cache is off (SPANLOOP_CACHE); every process compiles its kernels again.\n",
    )


def test_doctor_is_well_here(capsys):
    code, out, _ = run(capsys, "doctor")
    assert code == 0
    assert "spanloop works here." in out
    for word in ("numpy", "llvmlite", "vectors", "cache", "compiler"):
        assert word in out


def test_doctor_lists_what_is_optional_and_what_is_set(capsys, monkeypatch):
    monkeypatch.setenv("SPANLOOP_PROGRESS", "off")
    checks = {c["name"]: c for c in json.loads(run(capsys, "doctor", "--json")[1])["checks"]}
    optional = {"mujoco", "pin", "viser", "scipy", "matplotlib", "h5py", "trimesh", "pillow", "imageio-ffmpeg"}
    optional |= {"gymnasium", "torch", "jax", "gpu"}
    assert checks["gpu"]["verdict"] == ("ok" if driver.is_available() else "advice")
    assert checks["gpu"]["message"]
    assert optional | {"vectors", "cores", "cache", "compiler", "SPANLOOP_PROGRESS"} <= set(checks)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "mujoco" else types.SimpleNamespace(origin="x")
    )
    code, out, _ = run(capsys, "doctor")
    assert code == 0
    assert "not installed; reading MJCF files: pip install mujoco" in out


def test_the_package_is_a_command_too():
    done = subprocess.run([sys.executable, "-m", "spanloop", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"spanloop {sl.__version__}\n"


@pytest.mark.parametrize(
    ("name", "sentence"), [("arm.stl", "a mesh is the shape of one body"), ("arm.STEP", "CAD files")]
)
def test_shapes_are_no_mechanisms(capsys, tmp_path, name, sentence):
    (tmp_path / name).write_text("solid")
    code, _, err = run(capsys, "info", str(tmp_path / name))
    assert (code, f"{name}: {sentence}" in err) == (2, True)


def test_doctor_reports_a_cache_that_others_may_write(capsys, tmp_path, monkeypatch):
    tmp_path.chmod(0o777)
    monkeypatch.setenv("SPANLOOP_CACHE", str(tmp_path))
    checks = {c["name"]: c for c in json.loads(run(capsys, "doctor", "--json")[1])["checks"]}
    assert checks["cache"]["verdict"] == "advice"
    assert "other users may write there" in checks["cache"]["message"]


def test_doctor_ends_with_1_when_kernels_are_wrong(capsys, monkeypatch):
    true = kernels.compile

    def wrong(model, function, target="cpu", **options):
        kernel = true(model, function, target=target, **options)
        return (lambda *x: 1.001 * kernel(*x)) if target == "cpu" else kernel

    monkeypatch.setattr(kernels, "compile", wrong)
    code, out, _ = run(capsys, "doctor")
    assert code == 1
    assert "result is wrong by" in out


# ---- control characters of names

STEERING = "a\x1b]0;title\x07\x1b[2J\x9b31m\u202e\u2066\r\x7f"
ESCAPED = r"a\u001b]0;title\u0007\u001b[2J\u009b31m\u202e\u2066\u000d\u007f"


@pytest.fixture
def steering(tmp_path):
    """A file whose names hold escape codes."""
    b = sl.Builder(STEERING).body(STEERING, 1.0, center=(0, 0, 1), inertia=(0.1, 0.1, 0.1))
    b.revolute(STEERING, "world", STEERING, "y", friction=0.1, lower=-1.0, upper=1.0)
    path = tmp_path / "steering.toml"
    b.build().save(path)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("info",),
        ("info", "--json"),
        ("check",),
        ("check", "--json"),
        ("simulate", "--duration", "0.01"),
        ("simulate", "--duration", "0.01", "--q", "b=1"),
        ("count",),
        ("convert", "x.urdf"),
    ],
    ids=" ".join,
)
def test_names_cannot_steer_the_terminal(words, steering, capsys, monkeypatch):
    monkeypatch.chdir(steering.parent)
    code, out, err = run(capsys, words[0], str(steering), *words[1:])
    assert code in (0, 1, 2)
    shown = out + err
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    if "--json" in words:
        assert json.loads(out)["name"] == STEERING
    else:
        assert ESCAPED in shown or repr(STEERING)[1:-1] in shown


def test_names_cannot_forge_lines(capsys, tmp_path):
    name = "a\nforged\x1b[2J"
    b = sl.Builder(name).body(name, 1.0, center=(0, 0, 1), inertia=(0.1, 0.1, 0.1))
    model = b.revolute(name, "world", name, "y").build()
    model.save(tmp_path / "a.toml")
    at = sl.simulate(model, [0.1], duration=0.002)
    shown = [str(model), str(at), str(sl.Dynamics(model).diagnose([0.0])), str(at.audit())]
    shown += [run(capsys, word, str(tmp_path / "a.toml"))[1] for word in ("info", "check")]
    for text in shown:
        assert "\x1b" not in text
        assert "a\\nforged" in text
        assert not any(line.startswith("forged") for line in text.splitlines())
    assert "\x1b" not in at.page(tmp_path / "a.html").read_text(encoding="utf-8")


def test_on_a_terminal_our_colours_pass_and_names_do_not(steering, monkeypatch):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    main(["check", str(steering)])
    assert "\033[1m" in screen.getvalue()
    assert "\033[2J" not in screen.getvalue()


# ---- colours


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("variables", "colors"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colours_are_for_terminals(variables, colors, monkeypatch):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["doctor"]) == 0
    assert ("\033[" in screen.getvalue()) == colors


def test_a_bar_is_shown_on_terminals_only(monkeypatch):
    for stream, expected in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with ProgressBar(2) as progress:
            progress.begin("compiling")
            progress.begin("simulating")
        assert ("simulating" in stream.getvalue()) == expected


def test_reach_prints_coordinates_and_its_exit_code_tells_whether_it_arrived(capsys):
    assert main(["reach", "zoo:pendulum", "--position", "world=0,0,0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["converged"] is True
    assert main(["reach", "zoo:pendulum", "--position", "world=0,0,1"]) == 1
    assert "not reached" in capsys.readouterr().out
    assert main(["reach", "zoo:pendulum"]) == 2
    assert "nothing to reach" in capsys.readouterr().err
    assert main(["reach", "zoo:pendulum", "--position", "0.5,0,0"]) == 2
    assert "for example --position tool=0.5,0.2,0.1" in capsys.readouterr().err


def test_modes_prints_a_table_and_writes_a_page(capsys, tmp_path):
    assert main(["modes", "zoo:pendulum:2", "--output", str(tmp_path / "modes.html")]) == 0
    assert "2 modes of 2 DoF (hinge1, hinge2)" in capsys.readouterr().out
    assert (tmp_path / "modes.html").stat().st_size > 10_000
    assert main(["modes", "zoo:pendulum", "--q", "hinge1=180deg", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kinds"] == ["unstable"]
    assert main(["modes", "zoo:pendulum", "--q", "hinge1=0.3", "--tau", "hinge1=0"]) == 2
    assert "no equilibrium" in capsys.readouterr().err
