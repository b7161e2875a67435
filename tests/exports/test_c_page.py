"""docs/c_export.md: its Python writes the files, its C program compiles and moves as sl.simulate does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_code import compile_c, needs_compiler

import spanloop as sl
from spanloop.exports.c_function import STATUS
from spanloop.exports.c_source import OF_FUNCTIONS, OF_MOTIONS, OTHERS

PAGE = (Path(__file__).parents[2] / "docs" / "c_export.md").read_text(encoding="utf-8")


@needs_compiler
@pytest.mark.slow
def test_the_program_of_the_page_moves_the_arm_as_simulate_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (script,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    (program,) = re.findall(r"```c\n(.*?)```", PAGE, re.S)
    found: dict = {}
    exec(compile(script, "c_export.md", "exec"), found)
    Path("main.c").write_text(program)
    compile_c(["main.c", "arm.c"], tmp_path / "main")
    said = subprocess.run(["./main"], capture_output=True, text=True, check=True).stdout
    model, push = found["model"], np.eye(6)[0]
    gravity = sl.control.gravity(model)

    def damper(t, q, v):
        return push - 2.0 * v

    law = sl.control.together(model, gravity, damper)
    run = sl.simulate(model, found["start"], duration=1.0, step=1e-3, integrator="rk4", controller=law)
    moved = float(re.fullmatch(r"after 1 s joint1 is at (\S+) rad\n", said)[1])
    assert abs(moved) > 0.05
    assert moved == pytest.approx(run.q[-1, 0], abs=1e-4)  # torques are constant for a step there


def test_the_page_has_every_option_and_every_bit():
    for name in (*OF_FUNCTIONS, *OF_MOTIONS, *OTHERS):
        assert f"`{name}`" in PAGE or f"`{name}=" in PAGE, name
    for name, (bit, _) in STATUS.items():
        assert f"| {bit} | `ARM_{name}` |" in PAGE
