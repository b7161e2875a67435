"""Files with chosen parameters as inputs: sizes, names and values agree in functions and motions, in C and in node."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from c_code import Exported, Motion, compile_c, needs_compiler, pointer
from es_runtime import evaluated, needs_node

import spanloop as sl
from spanloop.errors import InputError

CHOSEN = ["rod2.mass", "gravity.z"]
NUMBERS = np.array([2.5, -1.6])
OPTIONS = {"parameters": CHOSEN, "step": 1e-3, "q": [0.4, -0.2], "integrator": "rk4"}


def changed() -> sl.Model:
    return sl.zoo.pendulum(2).with_parameters(dict(zip(CHOSEN, NUMBERS.tolist(), strict=True)))


def expected_end() -> np.ndarray:
    return sl.simulate(changed(), [0.4, -0.2], duration=0.1, step=1e-3, integrator="rk4").q[-1]


@pytest.mark.slow
@needs_compiler
def test_c_functions_and_motions_take_the_parameters_that_are_named(tmp_path):
    model, q, v = sl.zoo.pendulum(2), np.array([0.3, 0.5]), np.array([0.1, -0.7])
    code = Exported(model, ["energy"], tmp_path, **OPTIONS)
    header = code.path.with_suffix(".h").read_text()
    assert "#define ARM_N_PARAMETERS 2\n" in header
    assert "ARM_PARAMETER_ROD2_MASS = 0," in header
    own = np.full(4, 7.0)
    code.library.arm_parameters(pointer(own))
    named = dict(zip(model.parameters().names, model.parameters().values, strict=True))
    assert own.tolist() == [named["rod2.mass"], named["gravity.z"], 7.0, 7.0]  # no more than two are written
    status, energy = code.call("energy", q, v, NUMBERS, size=2)
    assert status == 0
    assert energy == pytest.approx(sl.compile(changed(), "energy")(q, v), rel=1e-13)
    motion = Motion(code, model)
    assert motion.call("set_parameters", [-1.0, -1.6]) == 2
    assert motion.call("set_parameters", NUMBERS) == 0
    assert [motion.step(np.zeros(2)) for _ in range(100)] == [0] * 100
    assert np.abs(motion.state()[0] - expected_end()).max() < 1e-13


@needs_compiler
@pytest.mark.parametrize("real", ["double", "float"])
def test_the_self_test_has_the_parameters(real, tmp_path):
    path = sl.export(sl.zoo.pendulum(2), ["forward_dynamics"], tmp_path / "two.c", real=real, **OPTIONS)
    program = compile_c([path], tmp_path / "test", "-DTWO_TEST")
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "all tests passed" in done.stdout


@needs_node
def test_modules_take_the_parameters_that_are_named(tmp_path):
    path = sl.export(sl.zoo.pendulum(2), ["energy"], tmp_path / "two.mjs", **OPTIONS)
    script = """{
        m.motion.parameters = p;
        m.motion.step(100);
        return [api.model.parameters.names, m.energy([0.3, 0.5], [0.1, -0.7], p), m.motion.q,
                caught(() => { m.motion.parameters = [-1, 0]; }), m.motion.parameters];
    }"""
    names, energy, q, refused, kept = evaluated(path, script, p=NUMBERS.tolist())
    assert names == CHOSEN
    assert energy == pytest.approx(sl.compile(changed(), "energy")([0.3, 0.5], [0.1, -0.7]).tolist(), rel=1e-13)
    assert np.abs(np.array(q) - expected_end()).max() < 1e-13
    assert "negative" in refused[1]
    assert kept == NUMBERS.tolist()


@pytest.mark.parametrize("ending", [".c", ".mjs", ".wasm"])
@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (sl.zoo.pendulum(2).parameters(), "parameters is Parameters; expected 'live'"),
        (sl.zoo.pendulum(2).parameters().values, "parameters is ndarray; expected 'live'"),
        (5, "parameters is 5"),
        ([1], r"parameters is \[1\]"),
        ("Live", "parameters is 'Live'"),
        (["rod2.mas"], "did you mean 'rod2.mass'"),
        (["rod2.mass", "rod2.mass"], "named twice"),
    ],
)
def test_other_values_are_refused_with_a_sentence(parameters, words, ending, tmp_path):
    with pytest.raises(InputError, match=words):
        sl.export(sl.zoo.pendulum(2), ["energy"], tmp_path / f"two{ending}", parameters=parameters)
    assert not list(tmp_path.iterdir())


def test_functions_of_a_file_share_their_parameters(tmp_path):
    both = {n: {"function": "energy", "parameters": [p]} for n, p in (("a", "rod1.mass"), ("b", "rod2.mass"))}
    with pytest.raises(InputError, match="the function 'b' takes other parameters than the function 'a'"):
        sl.export(sl.zoo.pendulum(2), both, tmp_path / "two.c")
