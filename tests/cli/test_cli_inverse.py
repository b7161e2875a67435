"""`spanloop inverse`: torques along paths in files, and what is refused."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import spanloop as sl
from spanloop.cli.main import main
from spanloop.trajectory.resampling import slopes


def run(capsys, *words):
    """Exit code, standard output, standard error."""
    code = main(("inverse", *map(str, words)))
    return code, *capsys.readouterr()


def table(path) -> dict[str, np.ndarray]:
    """Columns of a CSV file by name."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    head, *rows = csv.reader(lines)
    return dict(zip(head, np.array(rows, dtype=float).T, strict=True))


def write(path, **columns):
    rows = np.stack(list(columns.values()), axis=1)
    text = "\n".join(",".join(map(repr, row)) for row in rows.tolist())
    path.write_text(",".join(name.replace("__", ".") for name in columns) + "\n" + text + "\n")
    return path


# ---- splines


def test_slopes_of_cubics_are_exact_on_uneven_times():
    t = np.array([0.0, 0.1, 0.4, 0.5, 0.9, 1.0])
    values = np.stack([t**3 - 2 * t, 5 - t**2], axis=1)
    np.testing.assert_allclose(slopes(t, values), np.stack([3 * t**2 - 2, -2 * t], axis=1), atol=1e-13)
    np.testing.assert_allclose(slopes(t[:4], values[:4])[:, 0], 3 * t[:4] ** 2 - 2, atol=1e-13)


def test_slopes_are_those_of_another_spline():
    interpolate = pytest.importorskip("scipy.interpolate")
    rng = np.random.default_rng(3)
    t, x = np.cumsum(rng.uniform(0.1, 1.0, 40)), rng.normal(size=(40, 3))
    expected = interpolate.CubicSpline(t, x, bc_type="not-a-knot")(t, 1)
    np.testing.assert_allclose(slopes(t, x), expected, atol=1e-11 * np.abs(expected).max())


# ---- paths in files


@pytest.mark.parametrize("known", ["q", "qv", "qva"])
def test_the_torque_of_a_pendulum_in_closed_form(capsys, tmp_path, known):
    """(1/3) m l² a + m g l/2 sin q: missing rates cost what splines cost."""
    t = np.linspace(0.0, 3.0, 301)
    q, v, a = np.sin(t), np.cos(t), -np.sin(t)
    columns = {"time": t, "hinge1": q, "hinge1__v": v, "hinge1__a": a}
    path = write(tmp_path / "p.csv", **dict(list(columns.items())[: 1 + len(known)]))
    code, out, err = run(capsys, "zoo:pendulum", "--path", path, "--output", tmp_path / "t.csv")
    assert (code, err) == (0, "")
    assert "301 samples from 0 to 3 s" in out
    found = table(tmp_path / "t.csv")["hinge1.tau [N m]"]
    gravity = -sl.zoo.pendulum().gravity[2]
    error = np.abs(found - (a / 3 + gravity / 2 * np.sin(q))).max()
    assert error < {"q": 1e-4, "qv": 1e-6, "qva": 1e-13}[known]
    if known != "qva":
        assert error > 1e-14


def test_angles_may_be_in_degrees(capsys, tmp_path):
    t = np.linspace(0.0, 1.0, 11)
    for name, scale in (("hinge1", 1.0), ("hinge1 [deg]", 180 / np.pi)):
        path = write(tmp_path / "p.csv", **{"t": t, name: t * scale})
        run(capsys, "zoo:pendulum", "--path", path, "--output", tmp_path / f"{scale:.0f}.csv")
    radians, degrees = (table(tmp_path / f"{n}.csv")["hinge1.tau [N m]"] for n in ("1", "57"))
    np.testing.assert_allclose(radians, degrees, atol=1e-12)


@pytest.mark.parametrize("method", ["newton_euler", "decoupled_complement"])
def test_a_simulated_arm_gives_its_torques_back(capsys, tmp_path, method):
    tau = np.array([3.0, -20.0, 5.0, 0.2, 0.1, 0.05])
    run_ = sl.simulate(sl.zoo.puma(), np.full(6, 0.3), tau=tau, duration=0.3, step=0.001)
    run_.save(tmp_path / "run.csv")
    words = ("zoo:puma", "--path", tmp_path / "run.csv", "--method", method, "--output", tmp_path / "t.npz")
    assert run(capsys, *words)[0] == 0
    found = sl.load_run(tmp_path / "t.npz")
    np.testing.assert_allclose(found.tau, np.broadcast_to(tau, found.tau.shape), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--by-subsystems",)])
@pytest.mark.parametrize("all_joints", [True, False])
def test_a_closed_chain_gives_its_torque_back(capsys, tmp_path, options, all_joints):
    model = sl.zoo.four_bar()
    run_ = sl.simulate(model, sl.zoo.four_bar_start(), tau={"crank_hinge": 2.0}, duration=0.5)
    path = tmp_path / "run.csv"
    if all_joints:
        run_.save(path)
    else:
        crank = run_["crank_hinge"]
        write(path, time=run_.times, crank_hinge=crank.q, crank_hinge__v=crank.v)
    code, out, err = run(capsys, "zoo:four_bar", "--path", path, *options, "--json")
    assert (code, err) == (0, "")
    torques = json.loads(out)["torques"]
    assert abs(torques["crank_hinge"]["least"] - 2.0) < 1e-3
    assert abs(torques["crank_hinge"]["most"] - 2.0) < 1e-3
    assert torques["rocker_hinge"] == {"unit": "N m", "least": 0.0, "most": 0.0}


def test_a_free_body_needs_rates_and_falls_without_force(capsys, tmp_path):
    run_ = sl.simulate(sl.zoo.star(2), duration=0.2, q=sl.zoo.star(2).random_state(1)[0])
    run_.save(tmp_path / "run.csv")
    code, out, _ = run(capsys, "zoo:star:2", "--path", tmp_path / "run.csv", "--json")
    assert code == 0
    assert all(max(-x["least"], x["most"]) < 1e-3 for x in json.loads(out)["torques"].values())
    t = np.linspace(0.0, 1.0, 5)
    names = {"root__q__w": t, **{f"root__q__{k}": 0 * t for k in ("x", "y", "z", "px", "py", "pz")}}
    code, _, err = run(capsys, "zoo:star:1", "--path", write(tmp_path / "p.csv", time=t, **names))
    assert code == 2
    assert "the rates of joint 'root' (free) are not those of its coordinates; add root.v.wx" in err


# ---- the cycloid


def test_the_cycloid_of_a_dh_table_in_a_file(capsys, tmp_path):
    sl.zoo.puma().save(tmp_path / "puma.csv")
    words = ("--cycloidal", "0:180deg:10", "--samples", "21", "--output", tmp_path / "t.csv")
    assert run(capsys, tmp_path / "puma.csv", *words)[0] == 0
    q, v, a = sl.zoo.cycloidal_path(np.zeros(6), np.full(6, np.pi), 10.0, np.linspace(0, 10, 21))
    expected = sl.Dynamics(sl.zoo.puma()).inverse_dynamics(q, v, a)
    found = np.stack([x for name, x in table(tmp_path / "t.csv").items() if ".tau" in name], axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.slow
def test_a_figure(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    words = ("--cycloidal", "0:1:1", "--samples", "5", "--output", tmp_path / "t.png")
    assert run(capsys, "zoo:stanford", *words)[0] == 0
    assert (tmp_path / "t.png").read_bytes()[:4] == b"\x89PNG"


# ---- what is refused


@pytest.mark.parametrize(
    ("model", "text", "sentence"),
    [
        ("pendulum", "hinge1\n1\n", "there is no column 'time'; expected the times of the samples in seconds"),
        ("pendulum", "time,hing1\n", "column 'hing1' belongs to no joint; did you mean 'hinge1'?"),
        ("pendulum", "time,hinge1\n0,1\n1,2\n", "expected at least 4 samples at times that increase; there are 2"),
        ("pendulum", "time,hinge1\n0,1\n0,2\n1,1\n2,2\n", "expected at least 4 samples at times that increase"),
        ("pendulum", "time,hinge1\n0,1\n1,x\n", "p.csv:3: hinge1.q is 'x'; expected a finite number"),
        ("pendulum", "# n\ntime,hinge1\n0,1\n1\n", "p.csv:4: there are 1 numbers; the line of names has 2"),
        ("pendulum", "time,hinge1,hinge1.q\n", "column 'hinge1.q' occurs twice"),
        ("pendulum", "time,hinge1.v\n0,1\n1,1\n2,1\n3,1\n", "'hinge1' has rates and no coordinates; add hinge1.q"),
        ("pendulum:2", "time,hinge1\n0,1\n1,1\n2,1\n3,1\n", "there is no column of joint 'hinge2'; add hinge2.q"),
        (
            "pendulum",
            "time,hinge1 [grad]\n",
            "column 'hinge1': unknown unit 'grad'; expected one of deg, rad, m, mm, cm",
        ),
        ("pendulum", "time [min],hinge1\n", "column 'time': unknown unit 'min'; expected one of s, ms"),
        ("pendulum", "#\n", "there is no line of names; expected time, joint1, joint2, ..."),
    ],
)
def test_bad_files_get_a_sentence(capsys, tmp_path, model, text, sentence):
    (tmp_path / "p.csv").write_text(text)
    code, out, err = run(capsys, f"zoo:{model}", "--path", tmp_path / "p.csv", "--output", tmp_path / "t.csv")
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("zoo:puma", "--path", "nowhere.csv"), "nowhere.csv: there is no such file"),
        (("zoo:puma", "--cycloidal", "0:1"), "--cycloidal 0:1: expected START:END:SECONDS, for example 0:180deg:10"),
        (("zoo:puma", "--cycloidal", "0:1:0"), "--cycloidal 0:1:0: the duration is 0 s; must be > 0"),
        (("zoo:puma", "--cycloidal", "0:1:1", "--samples", "1"), "--samples is 1; must be at least 2"),
        (
            ("zoo:four_bar", "--cycloidal", "0:1:1"),
            "model 'four_bar': it has loops or couplings; it supports open chains",
        ),
        (("zoo:star:2", "--cycloidal", "0:1:1"), "joint 'root' has several coordinates"),
        (
            ("zoo:puma", "--cycloidal", "0:1:1", "--method", "whole"),
            "'puma' takes newton_euler or decoupled_complement",
        ),
        (("zoo:puma", "--cycloidal", "0:1:1", "--by-subsystems"), "--by-subsystems: model 'puma' has no loops"),
        (
            ("zoo:four_bar", "--path", "x.csv", "--method", "newton_euler"),
            "--method newton_euler: model 'four_bar' has loops; --method is for open chains",
        ),
        (
            ("zoo:puma", "--cycloidal", "0:1:1", "--output", "x.doc"),
            "--output x.doc: the extension is '.doc'; expected",
        ),
        (("zoo:puma", "--cycloidal", "0:1:1", "--output", "no/x.csv"), "there is no folder 'no'; make it first"),
    ],
)
def test_bad_words_get_a_sentence(capsys, words, sentence):
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert sentence in err
