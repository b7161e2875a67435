"""`spanloop export`: what it writes and what it refuses."""

from __future__ import annotations

import pytest

from spanloop.cli.main import main


def run(capsys, *words):
    """Exit code, standard output, standard error."""
    try:
        code = main(words)
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    return code, out, err


def test_options_reach_the_files(capsys, tmp_path):
    path = tmp_path / "arm.c"
    words = ("bias", "--output", str(path), "--float", "--live", "--forces", "rod2", "--name", "leg", "--step", "2e-3")
    words += ("--integrator", "midpoint", "--q", "hinge1=30deg", "--limits", "stop", "--set", "rod1.mass=2")
    code, out, err = run(capsys, "export", "zoo:pendulum:2", *words)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith(f"written: {path}, ")
    header = path.with_suffix(".h").read_text()
    for text in (
        "int leg_bias(const float q[2], const float v[2], const float forces[6], const float parameters[",
        "integrator 'midpoint', steps of 0.002 s",
        "limits='stop'",
        "#define LEG_INPUTS 8 ",
    ):
        assert text in header, text
    assert "0.523598" in path.read_text()


WRONG = {
    "function": (("zoo:puma", "forwards", "--output", "a.c"), "there is no function 'forwards'"),
    "ending": (("zoo:puma", "bias", "--output", "a.txt"), "ends in '.txt'; expected .c"),
    "no ending": (("zoo:puma", "bias", "--output", "arm"), "ends in ''; expected .c"),
    "nothing": (("zoo:puma", "--output", "a.c"), "there is nothing to write"),
    "start": (("zoo:puma", "bias", "--output", "a.c", "--q", "joint1=1"), "give --step too"),
    "name": (("zoo:puma", "bias", "--output", "2.c"), "name='model_2'"),
    "no output": (("zoo:puma", "bias"), "the following arguments are required: --output"),
    "joint": (("zoo:puma", "--output", "a.c", "--step", "1e-3", "--q", "joint9=1"), "no joint 'joint9'"),
    "live": (("zoo:puma", "--output", "a.fmu", "--live"), "name numbers, such as --parameter link6.mass"),
    "parameter": (("zoo:puma", "bias", "--output", "a.c", "--parameter", "link6.mass"), "--live makes all numbers"),
    "float": (("zoo:puma", "bias", "--output", "a.mjs", "--float"), "a.mjs: --float is for .c files; this one"),
    "prefix": (("zoo:puma", "bias", "--output", "a.wasm", "--name", "arm"), "--name is for .c and .fmu files"),
    "float unit": (("zoo:puma", "--output", "a.fmu", "--float"), "a.fmu: --float is for .c files"),
    "unrolled": (("zoo:puma", "--output", "a.fmu", "--unrolled"), "an FMU is always unrolled. Leave it out"),
    "functions": (("zoo:puma", "energy", "--output", "a.fmu"), "it takes no functions (energy). Leave them out"),
    "integrator": (("zoo:puma", "bias", "--output", "a.c", "--integrator", "rk4"), "--integrator is of a motion; give"),
    "rate": (
        ("zoo:five_bar", "--output", "a.c", "--step", "1e-3", "--v", "drive1=2"),
        "--v names drive1; the loops leave 2 DoF, whose rates determine the others. Add --v drive2=0",
    ),
    "limit": (("zoo:puma", "--output", "a.c", "--step", "1e-3", "--limits", "wall"), "invalid choice: 'wall'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused_in_one_line(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, sentence = WRONG[name]
    code, out, err = run(capsys, "export", *words)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert sentence in err
    assert list(tmp_path.iterdir()) == []
