"""Runs as TOML files: the same run as by arguments, and messages with file, table and a way out."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import FileError, InputError
from spanloop.simulation.run_files import read_run
from spanloop.simulation.run_files.conditions import condition
from spanloop.simulation.run_files.reader import _READERS, KINDS

RUN = """
format = 1
model = "gripper.toml"
duration = 0.3
step = 1e-3
sample = 0.01
integrator = "rk4"
limits = "ignore"
active_loops = []
[q]
lift = 0.2
part = [1, 0, 0, 0, 0.4, 0, 0.1]
[v]
lift = [-0.1]
[tau]
lift = 9.81
[forces]
box = [0, 0, 0, 0, 0, 1]
"""
EVENTS = """
[[events]]
kind = "attach"
loop = "grip"
when = "q.lift - 0.1"
capture = true
speed = 0.5
[[events]]
kind = "release"
loop = "grip"
at = 0.2
[[events]]
kind = "one_sided"
loop = "grip"
row = 2
sign = -1
restitution = 0.5
resting = 1e-4
[[events]]
kind = "grasp"
loop = "grip"
friction = 0.6
torsion = 0.01
normal = [1, 0, 0]
on_break = "release"
[[events]]
kind = "appear"
body = "box"
at = 0.1
position = [0, 0, 1]
velocity = [0, 0, 0, 1, 0, 0]
[[events]]
kind = "vanish"
body = "box"
when = "min(0.25 - t, 2.0)"
[[events]]
kind = "end"
name = "high"
when = "30.0 - abs(f.grip[5])"
"""


def gripper():
    """A slide above a free box, and a loop that holds the box."""
    built = sl.Builder("gripper").body("hand", mass=1.0, inertia=(0.01, 0.01, 0.01))
    built = built.body("box", mass=0.5, inertia=(0.01, 0.01, 0.01)).prismatic("lift", "world", "hand")
    built = built.free("part", "world", "box").loop("hand", "box", "fixed", name="grip", switchable=True)
    return built.build()


@pytest.fixture(scope="module")
def model():
    return gripper()


def written(tmp_path, text):
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def test_a_file_has_the_arguments_of_simulate(tmp_path, model):
    file = read_run(written(tmp_path, RUN))
    found = file.arguments(model)
    assert file.model == str(tmp_path / "gripper.toml")
    assert found.pop("closures").active_loops == ()
    assert found == {
        "duration": 0.3,
        "step": 1e-3,
        "sample": 0.01,
        "integrator": "rk4",
        "limits": "ignore",
        "q": {"lift": 0.2, "part": [1.0, 0.0, 0.0, 0.0, 0.4, 0.0, 0.1]},
        "v": {"lift": -0.1},
        "tau": {"lift": 9.81},
        "forces": {"box": [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]},
    }


def test_a_file_treats_contacts_by_a_word_or_a_table(tmp_path, model):
    table = "[contacts]\nimpacts = 'events'\nfriction = {crate = 0.2}\n"
    expected = sl.contacts.Settings("events", friction={"crate": 0.2})
    assert read_run(written(tmp_path, "contacts = 'events'")).arguments(model) == {"contacts": "events"}
    assert read_run(written(tmp_path, table)).arguments(model) == {"contacts": expected}
    with says(FileError, "run.toml: run: contacts is 'stps'; expected 'steps', 'events', 'ignore'"):
        read_run(written(tmp_path, "contacts = 'stps'"))
    with says(FileError, "run.toml: [contacts]: the key 'frction' is not known; did you mean 'friction'?"):
        read_run(written(tmp_path, "[contacts]\nfrction = {crate = 0.2}\n"))


@pytest.mark.slow
def test_the_run_of_a_file_is_that_of_its_arguments(tmp_path, model):
    file = read_run(written(tmp_path, RUN))
    a = sl.simulate(model, **file.arguments(model))
    q = {"lift": 0.2, "part": [1, 0, 0, 0, 0.4, 0, 0.1]}
    b = sl.simulate(
        model, q, {"lift": -0.1}, duration=0.3, sample=0.01, limits="ignore", tau={"lift": 9.81},
        forces={"box": [0, 0, 0, 0, 0, 1]}, closures=sl.Closures(active_loops=[]),
    )  # fmt: skip
    assert np.array_equal(a.q, b.q)


def test_every_kind_of_event_is_read(tmp_path, model):
    attach, release, stop, grasp, appear, vanish, end = sl.events.from_file(written(tmp_path, RUN + EVENTS), model)
    assert (attach.loop, attach.capture, attach.speed, attach.at) == ("grip", True, 0.5, None)
    assert (release.loop, release.at, release.when) == ("grip", 0.2, None)
    assert stop == sl.events.OneSided("grip", row=2, sign=-1, restitution=0.5, resting=1e-4)
    assert grasp == sl.events.Grasp("grip", friction=0.6, torsion=0.01, on_break="release", normal=(1.0, 0.0, 0.0))
    assert (appear.body, appear.at, appear.pose[:3, 3].tolist()) == ("box", 0.1, [0.0, 0.0, 1.0])
    assert appear.velocity.tolist() == [0, 0, 0, 1, 0, 0]
    assert vanish.when(0.1, None, None) == pytest.approx(0.15)
    assert end.name == "high"
    assert end.when(0.0, None, None, {"grip": [0, 0, 0, 0, 0, -31.0]}) == -1.0


def test_every_argument_of_an_event_can_be_a_key():
    for kind in KINDS.values():
        assert {f.name for f in fields(kind)[1:]} <= set(_READERS)


CASES = {
    "q.lift - 0.3": -0.1,
    "-q.lift + 2*t**2 - (1 - v.lift)/4": -0.2 + 0.5 - 0.2,
    "q['lift']**0.5": math.sqrt(0.2),
    "sin(q.part[0]) + cos(pi) + sqrt(t)": math.sin(1.0) - 1.0 + math.sqrt(0.5),
    "min(t, q.lift, 3) - max(1, 2, t)": 0.2 - 2.0,
    "abs(v.part[5])": 0.7,
    "2**-1 * 4": 2.0,
    "q.lift[0]": 0.2,
}


@pytest.mark.parametrize("text", CASES)
def test_a_condition_is_what_its_text_says(text, model):
    q, v = {"lift": 0.2, "part": [1, 0, 0, 0, 0.4, 0, 0.1]}, {"lift": 0.2, "part": [0, 0, 0, 0, 0, -0.7]}
    assert condition(text, model, "here")(0.5, q, v) == pytest.approx(CASES[text], abs=1e-15)


def test_conditions_are_compiled_into_the_run(model):
    when = condition("q.lift + 0.5*9.81*min(t, 1)**2 - 0.2 + max(0.1 - t, -1)", model, "here")
    run = sl.simulate(model, {"lift": 0.2}, duration=0.5, closures=sl.Closures(active_loops=[]), events=when)
    assert run.outcome.time == pytest.approx(0.1, abs=1e-9)


WRONG = {
    "q.lift - ": "'q.lift - ' is no condition (invalid syntax); expected arithmetic such as 'q.elbow - 0.3'",
    "q.lft": "there is no joint 'lft' in 'gripper'; did you mean 'lift'?",
    "lift - 1": "'lift' is not known; expected q.lift or v.lift",
    "q - 1": "'q' is all of them; expected one, such as q.JOINT",
    "q.part": "q.part has 7 numbers; expected one of them, such as q.part[0]",
    "v.part[6]": "v.part has the numbers 0 to 5; found [6]",
    "f.grap[5]": "there is no loop or coupling 'grap' in 'gripper'; did you mean 'grip'?",
    "f.grip": "f.grip has 6 numbers; expected one of them, such as f.grip[0]",
    "q.lift < 0.3": "'q.lift < 0.3' is a comparison; expected a number that is positive until the event. "
    "Try 'q.lift - (0.3)'",
    "t > 2": "Try '2 - (t)'",
    "exp(t)": "'exp' is no function of conditions; there are 'sin', 'cos', 'sqrt', 'abs', 'min', 'max'",
    "min(t)": "min has 1 arguments; expected two or more",
    "1/0": "'1 / 0' is no finite number",
    "9**9**9**9": "'9 ** 9 ** 9' is no finite number",
    "2**t": "the power is 't'; expected a number up to 64 that is whole or ends in .5",
    "t**0.3": "the power is '0.3'",
    "t if t else 1": "is not understood; expected numbers, t, q.JOINT, v.JOINT, f.LOOP[k]",
    "__import__('os').system('true')": "is no function of conditions",
    "q.__class__": "there is no joint '__class__'",
    "(lambda: 1)()": "is no function of conditions",
    "'a'": "is not understood",
    "True": "is not understood",
    "1j": "is not understood",
    "(" * 1500 + "t" + ")" * 400: "is no condition",
    "-" * 1990 + "t": "nested too deep",
    "t" * 2001: "the condition has 2001 characters; at most 2000 are read",
    "t[0]": "is not understood",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_condition_is_refused_with_the_reason(text, model):
    with says(InputError, WRONG[text]) as found:
        condition(text, model, "run.toml: event 1: when")
    assert str(found.value).startswith("run.toml: event 1: when: ")


FILES = {
    "[q]\nlft = 1": "run.toml: [q]: 'gripper' has no joint 'lft'; did you mean 'lift'?",
    "[q]\npart = 1": "run.toml: [q]: 'part' has 1 values; 7 numbers are expected",
    "[v]\nlift = [1, 2]": "run.toml: [v]: 'lift' has 2 values; 1 number is expected",
    "[q]\nlift = 'up'": "run.toml: [q]: lift is 'up'; expected a number",
    "[forces]\nbox = [1]": "run.toml: [forces]: 'box' has 1 values; 6 numbers are expected",
    "durtion = 1": "run.toml: run: the key 'durtion' is not known; did you mean 'duration'?",
    "duration = 'long'": "run.toml: run: duration is 'long'; expected a number",
    "active_loops = 'grip'": "run.toml: run: active_loops is 'grip'; expected a list of texts",
    "[[body]]\nname = 'x'": 'run.toml: [[body]] belongs to the file of a model; a run names it: model = "arm.toml"',
    "format = 2": "run.toml: run: format is 2; this version of spanloop reads format 1",
    "duration = ": "run.toml:1: not readable as TOML",
    "[[events]]\nloop = 'grip'": "run.toml: event 1: has no kind; expected kind = ...",
    "[[events]]\nkind = 'atach'": "run.toml: event 1: kind is 'atach'; did you mean 'attach'?",
    "[[events]]\nkind = 'attach'": "run.toml: event 1: has no loop; expected loop = ...",
    "[[events]]\nkind = 'attach'\nloop = 'grp'\nat = 1": (
        "run.toml: event 1 (attach 'grp'): 'gripper' has no loop or coupling 'grp'; did you mean 'grip'?"
    ),
    "[[events]]\nkind = 'attach'\nloop = 'grip'\nat = 'noon'": (
        "run.toml: event 1 (attach 'grip'): at is 'noon'; expected a number"
    ),
    "[[events]]\nkind = 'attach'\nloop = 'grip'\nat = 1\ncaptur = true": (
        "run.toml: event 1 (attach 'grip'): the key 'captur' is not known; did you mean 'capture'?"
    ),
    "[[events]]\nkind = 'attach'\nloop = 'grip'": (
        "run.toml: event 1 (attach 'grip'): neither of at= and when= are given; expected one of them"
    ),
    "[[events]]\nkind = 'grasp'\nloop = 'grip'": "run.toml: event 1 (grasp 'grip'): has no friction; expected friction",
    "[[events]]\nkind = 'one_sided'\nloop = 'grip'\nsign = 2": (
        "run.toml: event 1 (one_sided 'grip'): sign is 2; expected 1 or -1"
    ),
    "[[events]]\nkind = 'one_sided'\nloop = 'grip'\nrow = 0.5": "row is 0.5; expected a whole number",
    "[[events]]\nkind = 'vanish'\nbody = 'bx'\nat = 1": "'gripper' has no body 'bx'; did you mean 'box'?",
    "[[events]]\nkind = 'appear'\nbody = 'box'\nat = 1\npose = [1]": "expected a matrix of four rows of four numbers",
    "[[events]]\nkind = 'end'\nname = 'x'\nwhen = 'q.lft'": (
        "run.toml: event 1 (end 'x'): when: 'q.lft': there is no joint 'lft'"
    ),
    "[[events]]\nkind = 'end'\nname = 'x'": "run.toml: event 1 (end 'x'): has no when; expected when = ...",
}


@pytest.mark.parametrize("text", FILES)
def test_a_wrong_file_is_refused_with_table_and_advice(text, tmp_path, model):
    with says(FileError, FILES[text]):
        read_run(written(tmp_path, text)).arguments(model)


def test_a_run_is_read_from_toml_alone(tmp_path):
    with says(FileError, "run.json: the extension is '.json'; a run is read from a .toml file"):
        read_run(tmp_path / "run.json")
    with says(FileError, "there is no such file"):
        read_run(tmp_path / "run.toml")


def test_the_example_of_the_page_is_read(tmp_path, model):
    page = (Path(__file__).parents[2] / "docs" / "toml.md").read_text(encoding="utf-8")
    (text,) = [b for b in re.findall(r"```toml\n(.*?)```", page, re.S) if "duration" in b]
    found = read_run(written(tmp_path, text)).arguments(model)
    assert [type(e).__name__ for e in found["events"]] == ["Attach", "Release", "End"]
    assert found["duration"] == 3.0
