"""`spanloop page` and `spanloop gallery`: files, what is printed, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import spanloop as sl
from spanloop.cli.main import main
from spanloop.errors import InputError, UnsupportedError
from spanloop.view.gallery import gallery as gallery_of_zoo
from spanloop.view.gallery.exhibits import EXHIBITS


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Exit code, standard output and standard error of a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def command(*words):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return command


def live_data(path: str) -> dict:
    """What the page at a path has in it."""
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', Path(path).read_text(), re.S)
    assert found is not None
    return json.loads(found[1])


def start_of(data: dict, name: str) -> list[float]:
    return data["live"]["start"][name]


# ---- page


@pytest.mark.slow
def test_a_model_becomes_a_live_page_with_its_name_and_state(run):
    code, out, err = run("page", "zoo:pendulum:2", "--q", "hinge1=30deg", "--v", "hinge2=2", "--step", "5e-4")
    assert (code, err) == (0, "")
    assert re.fullmatch(r"written: pendulum2.html \(\d+ kB\): grab a body and pull; it needs no network\n", out)
    data = live_data("pendulum2.html")
    assert start_of(data, "q") == pytest.approx([0.5235987756, 0.0])
    assert start_of(data, "v") == [0.0, 2.0]
    assert data["live"]["step"] == 5e-4


@pytest.mark.slow
def test_loops_are_closed_around_the_given_joints(run):
    assert run("page", "zoo:four_bar", "--q", "crank_hinge=1.3", "--v", "crank_hinge=2", "--output", "x.html")[0] == 0
    data = live_data("x.html")
    robot = sl.Dynamics(sl.zoo.four_bar())
    q, v = start_of(data, "q"), start_of(data, "v")
    assert (q[0], v[0]) == pytest.approx((1.3, 2.0))
    assert abs(robot.closure_error(q)).max() < 1e-12
    assert abs(robot.closure_jacobian(q) @ v).max() < 1e-12


@pytest.mark.slow
def test_the_page_of_a_run_is_live_if_asked_for(run):
    words = ("simulate", "zoo:pendulum", "--q", "hinge1=1", "--duration", "0.1", "--output", "run.npz")
    assert run(*words)[0] == 0
    assert "a recorded run" in run("page", "run.npz")[1]
    assert "live" not in live_data("run.html")
    assert "grab a body" in run("page", "run.npz", "--live", "--output", "live.html")[1]
    assert start_of(live_data("live.html"), "q") == [1.0]
    for option in (("--q", "hinge1=1"), ("--parameter", "rod1.mass"), ("--step", "0.01")):
        code, _, err = run("page", "run.npz", *option)
        assert (code, f"{option[0]} is for models; this is a run" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("zoo:stewar",), "the zoo has no 'stewar'; did you mean 'stewart'?"),
        (("zoo:pendulum", "--recorded"), "try: spanloop simulate zoo:pendulum --output pendulum.html"),
        (("zoo:pendulum", "--run", "1"), "--run 1 is for a batch of runs; this is a model"),
        (("zoo:pendulum", "--output", "x.svg"), "x.svg: a page ends in .html or .htm"),
        (("zoo:pendulum", "--output", "no/x.html"), "no/x.html: there is no folder 'no'; make it first"),
        (("zoo:pendulum", "--q", "elbow=1"), "has no joint 'elbow'"),
        (("zoo:pendulum", "--step", "-1"), "step is -1"),
        (("zoo:pendulum", "--parameter", "rod.mass"), "'rod.mass'"),
        (("zoo:pendulum", "--live", "--recorded"), "not allowed with argument"),
    ],
)
def test_what_cannot_be_a_page_is_one_line_and_leaves_no_file(run, tmp_path, words, sentence):
    code, out, err = run("page", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_option_of_a_page_gets_the_nearest_name(tmp_path):
    with pytest.raises(InputError, match="page: there is no option 'controler'; did you mean 'controller'"):
        sl.Dynamics(sl.zoo.pendulum()).page(tmp_path / "x.html", controler=None)
    with pytest.raises(InputError, match="page: view is 3; expected azimuth and elevation of the camera"):
        sl.zoo.pendulum().page(tmp_path / "x.html", view=3)
    assert list(tmp_path.iterdir()) == []


# ---- gallery


def test_the_gallery_shows_every_mechanism_of_the_zoo():
    assert sorted(e.name for e in EXHIBITS) == sorted(sl.zoo.names())


@pytest.mark.slow
def test_every_mechanism_of_the_gallery_runs_live_in_less_than_ten_megabytes(run):
    code, out, err = run("gallery", "pages")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == len(EXHIBITS) + 2
    index = Path("pages/index.html").read_text()
    assert "default-src 'none'; img-src data:; style-src 'sha256-" in index
    assert re.findall(r'href="(.*?)"', index) == [f"{e.name}.html" for e in EXHIBITS]
    assert all(live_data(f"pages/{e.name}.html")["live"]["wasm"] for e in EXHIBITS)
    assert sum(p.stat().st_size for p in Path("pages").iterdir()) < 10e6


@pytest.mark.slow
def test_a_mechanism_that_cannot_run_live_is_listed_with_its_reason(run, monkeypatch):
    written = gallery_of_zoo.write_live

    def refusing(model, *arguments, **options):
        if model.name == "pendulum3":
            raise UnsupportedError("its kernel <needs> loops")
        return written(model, *arguments, **options)

    monkeypatch.setattr(gallery_of_zoo, "write_live", refusing)
    code, out, _ = run("gallery", "pages", "--only", "pendulum", "slider_crank")
    assert code == 1
    assert re.search(r"^pendulum +not live: its kernel <needs> loops$", out, re.M)
    index = Path("pages/index.html").read_text()
    assert "It does not run live: its kernel &lt;needs&gt; loops" in index
    assert re.findall(r'href="(.*?)"', index) == ["slider_crank.html"]
    assert sorted(p.name for p in Path("pages").iterdir()) == ["index.html", "slider_crank.html"]


def test_an_interrupted_gallery_leaves_nothing_half_written(run, monkeypatch):
    written, calls = gallery_of_zoo.write_live, []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return written(*arguments, **options)

    monkeypatch.setattr(gallery_of_zoo, "write_live", interrupted)
    assert run("gallery", "pages", "--only", "pendulum", "slider_crank")[0] == 130
    assert [p.name for p in Path("pages").iterdir()] == ["pendulum.html"]


@pytest.mark.parametrize("name", ["index.html", "pendulum.html"])
def test_a_file_of_someone_else_is_never_replaced(run, name):
    Path("pages").mkdir()
    Path("pages", name).write_text("mine")
    Path("pages", "notes.txt").write_text("mine")
    code, _, err = run("gallery", "pages", "--only", "pendulum")
    assert (code, "spanloop did not write this file and does not replace it" in err) == (2, True)
    assert {p.name: p.read_text() for p in Path("pages").iterdir()} == {name: "mine", "notes.txt": "mine"}


def test_a_gallery_is_written_over_itself_and_other_files_stay(run):
    Path("pages").mkdir()
    Path("pages", "notes.txt").write_text("mine")
    for _ in range(2):
        code, out, _ = run("gallery", "pages", "--only", "pendulum", "--json")
        assert (code, [p["name"] for p in json.loads(out)["pages"]]) == (0, ["pendulum"])
    assert Path("pages", "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("pages", "--only", "pendulun"), "gallery: the zoo has no 'pendulun'; did you mean 'pendulum'?"),
        (("no/pages",), "no/pages: there is no folder 'no'; make it first"),
        (("file",), "file: this is a file; a gallery is a folder of pages"),
    ],
)
def test_what_cannot_be_a_gallery_is_one_line(run, words, sentence):
    Path("file").write_text("mine")
    code, out, err = run("gallery", *words)
    assert (code, out, err) == (2, "", f"spanloop: error: {sentence}\n")
    assert [p.name for p in Path().iterdir()] == ["file"]
