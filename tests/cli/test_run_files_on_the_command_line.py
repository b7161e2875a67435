"""`spanloop simulate --run run.toml` and `--event`: the file's run, overridden by options; events in text and JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

import spanloop as sl
from spanloop.cli.main import main
from spanloop.cli.simulate import event_table

RUN = """
model = "zoo:pendulum:2"
duration = 0.05
limits = "ignore"
[q]
hinge1 = 1.0
[v]
hinge2 = 0.5
[tau]
hinge1 = 0.1
"""


def run(capsys, *words):
    """Exit code, standard output, standard error."""
    try:
        code = main(words)
    except SystemExit as end:
        code = end.code
    return code, *capsys.readouterr()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(RUN)
    return path


def test_a_file_is_the_run_of_its_options(capsys, tmp_path, file):
    one, two = str(tmp_path / "one.npz"), str(tmp_path / "two.npz")
    assert run(capsys, "simulate", "--run", str(file), "--output", one)[0] == 0
    words = ("--duration", "0.05", "--q", "hinge1=1", "--v", "hinge2=0.5", "--tau", "hinge1=0.1")
    assert run(capsys, "simulate", "zoo:pendulum:2", *words, "--output", two)[0] == 0
    assert np.array_equal(sl.load_run(one).q, sl.load_run(two).q)


def test_options_override_the_file(capsys, file):
    words = ("--duration", "0.02", "--q", "hinge1=0.3", "--json")
    data = json.loads(run(capsys, "simulate", "--run", str(file), *words)[1])
    assert (data["duration"], data["samples"], data["events"]) == (0.02, 21, [])
    assert data["end"]["hinge1"][0] == pytest.approx(0.3, abs=0.01)


def test_the_model_of_the_command_line_replaces_that_of_the_file(capsys, tmp_path, file):
    model = tmp_path / "other.toml"
    sl.zoo.pendulum(2).save(model)
    assert run(capsys, "simulate", str(model), "--run", str(file))[0] == 0
    file.write_text(RUN.replace("zoo:pendulum:2", "other.toml"))
    assert run(capsys, "simulate", "--run", str(file))[0] == 0  # beside the file, wherever it is called


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "simulate: no model is given; try spanloop simulate zoo:four_bar"),
        (
            ("zoo:pendulum", "--event", "end"),
            "--event 'end': expected kind, name and keys, such as 'attach grip at=1.0",
        ),
        (("zoo:pendulum", "--event", "halt x at=1"), "--event: event 1: kind is 'halt'; there are 'attach'"),
        (("zoo:pendulum", "--event", "end x when=q.hinge"), "there is no joint 'hinge' in 'pendulum"),
    ],
)
def test_what_is_missing_or_wrong_is_named(capsys, words, sentence):
    code, _, err = run(capsys, "simulate", *words)
    assert (code, sentence in err) == (2, True), err


def test_a_file_without_a_model_says_so(capsys, file):
    file.write_text("duration = 1.0")
    code, _, err = run(capsys, "simulate", "--run", str(file))
    assert (code, "has no model; name it there" in err) == (2, True), err


def test_words_of_an_event_are_its_table():
    assert event_table("attach grip at=1.0 capture=true") == {
        "kind": "attach", "loop": "grip", "at": 1.0, "capture": True,
    }  # fmt: skip
    assert event_table("release grip when=q.lift - 0.3 * (t - 1)") == {
        "kind": "release", "loop": "grip", "when": "q.lift - 0.3 * (t - 1)",
    }  # fmt: skip
    assert event_table("appear box at=2 position=0,0,1") == {
        "kind": "appear", "body": "box", "at": 2.0, "position": [0.0, 0.0, 1.0],
    }  # fmt: skip
    assert event_table("end half way when=t - 1") == {"kind": "end", "name": "half way", "when": "t - 1"}


@pytest.fixture
def gripper(tmp_path):
    """A slide above a free box, a loop that holds the box, and a run that attaches and releases it."""
    built = sl.Builder("gripper").body("hand", mass=1.0, inertia=(0.01, 0.01, 0.01))
    built = built.body("box", mass=0.5, inertia=(0.002, 0.002, 0.002)).prismatic("lift", "world", "hand")
    built = built.free("part", "world", "box").loop("hand", "box", "fixed", name="grip", switchable=True)
    built.build().save(tmp_path / "gripper.toml")
    path = tmp_path / "run.toml"
    path.write_text(
        """
model = "gripper.toml"
duration = 0.3
[q]
part = [1, 0, 0, 0, 0.05, 0, -0.1]
[v]
lift = 1.0
[[events]]
kind = "attach"
loop = "grip"
when = "0.1 - t"
capture = true
"""
    )
    return path


@pytest.mark.slow
def test_events_of_file_and_command_line_are_printed_and_listed(capsys, tmp_path, gripper):
    page = tmp_path / "run.html"
    words = ("simulate", "--run", str(gripper), "--event", "release grip at=0.2")
    code, out, _ = run(capsys, *words, "--output", str(page))
    assert code == 0
    assert [line.split()[1:3] for line in out.splitlines() if "grip  " in line] == [
        ["attach", "grip"],
        ["release", "grip"],
    ]
    assert "attach" in page.read_text()
    data = json.loads(run(capsys, *words, "--json")[1])
    attach, release = data["events"]
    assert (attach["kind"], attach["closed"]) == ("attach", ["grip"])
    assert attach["time"] == pytest.approx(0.1, abs=1e-9)
    assert attach["energy_lost"] == pytest.approx(0.5 * 1.0 * 0.5 / 1.5)  # two masses stick together
    assert attach["impulse"]["grip: force along z"] == pytest.approx(1.0 * 0.5 / 1.5)
    assert (release["kind"], release["closed"], release["energy_lost"]) == ("release", [], 0.0)


@pytest.mark.slow
def test_a_run_with_contacts_prints_them(capsys, tmp_path):
    ball = sl.Builder("ball").body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004)).free("root", "world", "ball")
    path = tmp_path / "ball.toml"
    ball.build().with_contact("bounce", ("ball", sl.contacts.Sphere(0.1)), "ground", friction=0.5).save(path)
    words = ("simulate", str(path), "--q", "root=1,0,0,0,0,0,0.1", "--duration", "0.05")
    code, out, _ = run(capsys, *words, "--audit")
    assert code == 0
    assert "1 contact; at the end bounce pushes." in out
    assert "complementarity" in out
    data = json.loads(run(capsys, *words, "--json")[1])
    assert data["contacts"]["bounce"]["state"] == "sticks"
    assert data["contacts"]["bounce"]["force"][2] == pytest.approx(9.81)
    data = json.loads(run(capsys, *words, "--contacts", "ignore", "--json")[1])
    assert data["end"]["root"][6] < 0.09
    deep = ("simulate", str(path), "--q", "root=1,0,0,0,0,0,0.099", "--duration", "0.05")
    code, _, err = run(capsys, *deep)
    assert (code, "overlap = ... under [contacts] in the file of --run; --q sets the start" in err) == (2, True)
    allowed = tmp_path / "run.toml"
    allowed.write_text("[contacts]\noverlap = 0.01\n")
    assert run(capsys, *deep, "--run", str(allowed))[0] == 0
