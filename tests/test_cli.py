"""The command line: what is printed, what is refused, and with which exit code."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

import pytest

import spanloop as sl
from spanloop.cli import demo as demo_room
from spanloop.cli.main import main

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


# ---- info


def test_info_prints_the_model(capsys):
    code, out, err = run(capsys, "info", "zoo:quadruped")
    assert (code, err) == (0, "")
    assert out == f"{sl.zoo.quadruped()}\n"


def test_info_takes_a_number_for_mechanisms_of_any_size(capsys):
    assert "bodies    5" in run(capsys, "info", "zoo:chain:5")[1]


def test_info_reads_a_file_and_says_warnings_as_notes(capsys, urdf):
    code, out, err = run(capsys, "info", str(urdf))
    assert code == 0
    assert "1 revolute" in out
    assert err == "note: r.urdf: 1 joints have Coulomb friction ('hinge' first); it acts in simulation only\n"


def test_info_with_a_free_base_has_six_more_freedoms(capsys, urdf):
    data = json.loads(run(capsys, "info", str(urdf), "--base", "free", "--json")[1])
    assert (data["nq"], data["nv"]) == (8, 7)


def test_info_as_json_holds_everything_the_text_says(capsys, urdf):
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
        (("info",), "the following arguments are required: FILE. Try 'spanloop info --help'"),
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
            "zoo:puma: --base is for URDF files; a mechanism of the zoo has its own",
        ),
        (("demo", "--duration", "-1"), "--duration is -1 s; must be from 0.01 to 20"),
        (("demo", "--duration", "nan"), "--duration is nan s; must be from 0.01 to 20"),
        (
            ("demo", "--duration", "x"),
            "argument --duration: invalid float value: 'x'. Try 'spanloop demo --help'",
        ),
    ],
)
def test_a_wrong_word_is_one_line_and_exit_code_2(capsys, words, sentence):
    assert run(capsys, *words) == (2, "", f"spanloop: error: {sentence}\n")


def test_a_missing_file_is_one_line(capsys, tmp_path):
    code, out, err = run(capsys, "info", str(tmp_path / "none.urdf"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"spanloop: error: {tmp_path / 'none.urdf'}: there is no such file")


def test_a_broken_file_is_one_line(capsys, tmp_path):
    (tmp_path / "bad.urdf").write_text("<robot")
    code, _, err = run(capsys, "info", str(tmp_path / "bad.urdf"))
    assert (code, err.count("\n")) == (2, 1)
    assert "bad.urdf:1" in err


def test_output_into_a_file_is_refused(capsys, urdf):
    expected = f"spanloop: error: --output {urdf}: is a file; expected a folder\n"
    assert run(capsys, "demo", "--output", str(urdf)) == (2, "", expected)


def test_an_error_of_the_disk_is_one_line(capsys, urdf):
    code, _, err = run(capsys, "demo", "--output", str(urdf / "below"))
    assert (code, err.count("\n")) == (2, 1)
    assert "Not a directory" in err


def test_an_interrupt_leaves_without_a_traceback(capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_room, "demo", interrupted)
    assert run(capsys, "demo") == (130, "", "spanloop: error: interrupted\n")


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
    """NumPy and llvmlite take most of a start; without them help comes in 50 ms (on a busy machine 0.4 s)."""
    code = "import sys; from spanloop.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "assert not {'numpy', 'llvmlite'} & set(sys.modules)"
    times = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    assert min(times) < 0.4


# ---- demo


def test_demo_reports_and_draws(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("SPANLOOP_CACHE", str(tmp_path / "cache"))
    code, out, err = run(capsys, "demo", "--output", str(tmp_path / "new"), "--duration", "0.3")
    assert (code, err) == (0, "")
    for word in (
        "nq = 19, nv = 18",
        "5 compiled",
        "300 steps",
        "energy",
        "momentum",
        "µs per",
        "within its bound",
    ):
        assert word in out
    again = run(capsys, "demo", "--output", str(tmp_path / "new"), "--duration", "0.3")[1]
    assert "all from the cache" in again


def test_the_picture_is_one_self_contained_file(capsys, tmp_path):
    run(capsys, "demo", "--output", str(tmp_path), "--duration", "2")
    (path,) = tmp_path.iterdir()
    assert path.name == "spanloop-demo.svg"
    tree = ET.parse(path)
    space = "{http://www.w3.org/2000/svg}"
    assert len(tree.findall(f".//{space}animate")) == 16  # 12 bones, a plate and its colour, a dot's x and y
    plates = tree.findall(f".//{space}polygon")
    assert len(plates) == 10  # nine snapshots and the one that moves
    outside = [v for e in tree.iter() for k, v in e.attrib.items() if "href" in k or "url(" in v]
    assert outside == []
    assert "nan" not in path.read_text()


def test_demo_ends_with_1_when_the_drift_is_beyond_its_bound(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(demo_room, "BOUND", 1e-20)
    code, out, _ = run(capsys, "demo", "--output", str(tmp_path), "--duration", "0.05")
    assert code == 1
    assert "beyond its bound of 1e-20" in out
