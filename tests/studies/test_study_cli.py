"""`spanloop study`: files of studies, and the command on them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import spanloop as sl
from spanloop.cli.main import main
from spanloop.errors import FileError
from spanloop.studies.study_files import read_study

st = sl.studies
FILE = """
model = "zoo:pendulum:2"
duration = 0.3
step = 0.002
sample = 0.1
runs = 40
seed = 5
design = "sobol"

[q]
hinge2 = 0.2

[vary]
"rod1.mass" = {normal = [1.0, 0.1], relative = true}
"q.hinge1" = {uniform = [0.2, 0.9]}

[keep]
fast = {largest = "abs(v.hinge1)"}
path = {samples = "q.hinge1"}
end = "q.hinge2"

[[events]]
kind = "end"
name = "low"
when = "q.hinge1 + 0.05"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(FILE)
    return path


def test_a_file_is_the_study_of_the_same_arguments(file, tmp_path):
    model = sl.zoo.pendulum(2)
    found = read_study(file).study(model).run().results()
    vary = {"rod1.mass": st.Normal(1.0, 0.1, relative=True), "q.hinge1": st.Uniform(0.2, 0.9)}
    keep = {"fast": st.Largest("abs(v.hinge1)"), "path": st.Samples("q.hinge1"), "end": "q.hinge2"}
    low = sl.events.End("low", when=lambda t, q, v: q["hinge1"] + 0.05)
    given = {"duration": 0.3, "step": 0.002, "sample": 0.1, "q": {"hinge2": 0.2}, "events": [low]}
    same = sl.Study(model, vary, runs=40, seed=5, design="sobol", keep=keep, **given).run().results()
    for name in ("fast", "path", "end", "rod1.mass"):
        assert np.array_equal(found[name].values, same[name].values, equal_nan=True), name


def test_a_file_has_the_bounds_of_a_normal_distribution_and_the_weights_of_a_choice(file):
    more = '"q.hinge1" = {normal = [0.5, 0.3], low = 0.2, high = 0.9}\n"v.hinge1" = {choice = [1, 2], weights = [1, 3]}'
    file.write_text(FILE.replace('"q.hinge1" = {uniform = [0.2, 0.9]}', more))
    own = read_study(file).own["vary"]
    assert own["q.hinge1"] == st.Normal(0.5, 0.3, low=0.2, high=0.9)
    assert own["v.hinge1"] == st.Choice([1, 2], weights=[1, 3])


def test_a_path_that_is_no_study_is_named(file):
    with pytest.raises(FileError, match=r"^\.: the extension is ''; a study is read from a \.toml file"):
        read_study(".")
    file.write_text("")
    with pytest.raises(FileError, match="the file is empty; expected a study"):
        read_study(file)


def test_the_command_runs_shows_and_draws_a_study(file, tmp_path, capsys):
    assert main(["study", "status", str(file)]) == 0
    assert "0 of 40 runs are finished" in capsys.readouterr().out
    assert main(["study", "run", str(file)]) == 0
    out = capsys.readouterr().out
    assert "40 runs: " in out
    assert "fast [rad/s]" in out
    assert (tmp_path / "study.zarr").is_dir()
    assert main(["study", "status", str(file)]) == 0
    assert "40 of 40 runs are finished" in capsys.readouterr().out
    assert main(["study", "run", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 40


@pytest.mark.slow
def test_a_page_and_figures_are_written(file, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert main(["study", "run", str(file)]) == 0
    assert main(["study", "plot", str(file), "--output", str(tmp_path / "study.html")]) == 0
    page = (tmp_path / "study.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2 + 1 + 2 + 1  # histograms, fan, tornados, map
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )
    for words in (["histogram", "fast"], ["fan", "path"], ["tornado", "fast"], ["map", "rod1.mass", "q.hinge1"]):
        path = tmp_path / f"{words[0]}.png"
        assert main(["study", "plot", str(file), *words, "--output", str(path)]) == 0
        assert path.stat().st_size > 5000
    capsys.readouterr()
    assert main(["study", "plot", str(file), "histogram", "fst", "--output", str(tmp_path / "x.png")]) == 2
    assert "there is no number 'fst' in the results; did you mean 'fast'?" in capsys.readouterr().err


def test_an_address_of_no_scheduler_is_refused(file, capsys):
    pytest.importorskip("distributed")
    assert main(["study", "run", str(file), "--dask", "nonsense"]) == 2
    assert "--dask nonsense: expected the address of a Dask scheduler, as tcp://host:8786" in capsys.readouterr().err


def test_numbers_that_are_nan_in_all_runs_are_null_in_json(file, capsys):
    file.write_text(
        FILE.replace("[keep]", '[keep]\nnever = {first_event = "low"}').replace("hinge1 + 0.05", "hinge1 + 9")
    )
    assert main(["study", "run", str(file), "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["numbers"]["never"].values()) == {None}


WRONG = {
    '"q.hinge1" = {uniform = [0.2, 0.9]}': {
        '"q.hinge1" = {unifrom = [0.2, 0.9]}': "the distribution 'unifrom' is not known; did you mean 'uniform'?",
        '"q.hinge1" = {uniform = [0.2, 0.9], relativ = true}': "uniform has no key 'relativ'; did you mean 'relative'?",
        '"q.hinge1" = {uniform = [0.2, 0.9], relative = "no"}': "relative is 'no'; expected True or False",
        '"q.hinge1" = {uniform = [0.2, 0.9], low = 0.3}': "uniform has no key 'low'",
        '"q.hinge1" = {normal = [0.2, 0.9, 0.1], low = 0.3}': "normal has 3 numbers and low; see sl.studies.Normal",
        '"q.hinge1" = {uniform = [0.2, 0.9], normal = [0.2, 0.9]}': "has uniform, normal; expected one of",
        '"q.hinge1" = 0.3': "expected a distribution, as {uniform = [0.9, 1.1]}",
        '"q.hinge1" = {uniform = [0.2]}': "uniform has 1 numbers; see sl.studies.Uniform",
        '"q.hing1" = {uniform = [0.2, 0.9]}': "study.toml: study: nothing varies by the name 'q.hing1'; did you mean",
    },
    'fast = {largest = "abs(v.hinge1)"}': {
        'fast = {larges = "abs(v.hinge1)"}': "'larges' is not known; did you mean 'largest'?",
        'fast = {largest = "abs(v.hing1)"}': "there is no joint 'hing1'",
        'fast = {samples = "v.hinge1", times = "late"}': "'fast': Samples: times is 'late'; expected finite times",
    },
    "seed = 5": {"sed = 5": "the key 'sed' is not known; did you mean 'seed'?", "seed = 1.5": "seed is 1.5; expected"},
}


@pytest.mark.parametrize(("old", "new"), [(old, new) for old, cases in WRONG.items() for new in cases])
def test_a_wrong_line_of_a_file_is_refused(file, old, new):
    file.write_text(FILE.replace(old, new))
    with pytest.raises(FileError) as refused:
        read_study(file).study(sl.zoo.pendulum(2))
    assert WRONG[old][new] in str(refused.value)
