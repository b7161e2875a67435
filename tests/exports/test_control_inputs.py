"""`inputs=` of exports: numbers, names, or both, the same for every kind of file."""

from __future__ import annotations

import numpy as np
import pytest
from fmu_instances import fmpy, instances, needs_compiler

import spanloop as sl
from spanloop.errors import InputError

STEP = 1e-3
FORMS = (".c", ".mjs", ".wasm", ".fmu")


def spring(t, q, v, u):
    return [u[0] - q[0], u[1] - q[1]]


def one(t, q, v, u):
    return [u[0], 0.0]


def written(tmp_path, ending, **options):
    options = {"step": STEP, "controller": spring, **options}
    return sl.export(sl.zoo.pendulum(2), tmp_path / f"arm{ending}", **options, **_sources(ending))


def _sources(ending):
    return {"binary": False} if ending == ".fmu" else {}


@pytest.mark.parametrize("ending", FORMS)
def test_numbers_and_names_are_the_same_inputs_in_every_file(tmp_path, ending):
    given = {"a": [0.0, 0.0], "b": np.zeros(2), "c": ["bend", "lift"], "d": {"bend": 0.0, "lift": 0.0}}
    files = {n: written(tmp_path, ending, inputs=x).read_bytes() for n, x in given.items()}
    assert files["a"] == files["b"]
    assert files["c"] == files["d"]
    assert (files["a"] == files["c"]) == (ending != ".fmu")  # whose variables have these names
    assert files["a"] != written(tmp_path, ending, controller=one, inputs=[0.0]).read_bytes()


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    ("inputs", "names"), [([0.4, -0.3], ["u.1", "u.2"]), ({"bend": 0.4, "lift": -0.3}, ["bend", "lift"])]
)
def test_a_unit_begins_with_the_inputs_that_are_given(tmp_path, inputs, names):
    model = sl.zoo.pendulum(2)
    path = sl.export(model, tmp_path / "arm.fmu", step=STEP, controller=spring, inputs=inputs)
    described = [x for x in fmpy.read_model_description(str(path)).modelVariables if x.causality == "input"]
    assert [(x.name, float(x.start)) for x in described] == list(zip(names, [0.4, -0.3], strict=True))
    run = sl.simulate(model, duration=0.05, step=STEP, controller=spring, inputs=[0.4, -0.3], limits="ignore")
    with instances(path) as (a,):
        a.initialize()
        a.step(0.0, 0.05)
        assert np.abs(a.all_of("q.") - run.q[-1]).max() < 1e-14


WRONG = {
    "too few numbers": ({"inputs": [1.0]}, r"the controller reads u\[1\], but inputs= has 1; give 2 numbers or names"),
    "too few names": ({"inputs": ["bend"]}, r"the controller reads u\[1\], but inputs= has 1"),
    "none": ({}, r"takes inputs u, but none are given; give inputs=\[numbers\], or their names, inputs=\['target'\]"),
    "a number": ({"inputs": 1.0}, "inputs is 1.0; expected numbers"),
    "mixed": ({"inputs": ["bend", 1.0]}, "inputs has 1.0 among names"),
    "rows": ({"inputs": np.zeros((5, 2))}, "sets those of each step"),
    "not finite": ({"inputs": [0.0, np.nan]}, r"inputs\[1\] is nan; expected a finite number"),
    "truth": ({"inputs": {"bend": True, "lift": 0.0}}, r"inputs\['bend'\] is True"),
    "joint": ({"inputs": {"hinge2": 1.0}}, "has a number for the joint 'hinge2'"),
    "no controller": ({"inputs": [0.0], "controller": None}, "inputs= are those of a controller"),
}


@pytest.mark.parametrize("ending", FORMS)
@pytest.mark.parametrize("name", WRONG)
def test_inputs_that_do_not_fit_are_refused_and_nothing_is_written(tmp_path, ending, name):
    options, words = WRONG[name]
    with pytest.raises(InputError, match=words):
        written(tmp_path, ending, **options)
    assert list(tmp_path.iterdir()) == []


def test_an_index_error_of_the_law_itself_stays_one(tmp_path):
    with pytest.raises(IndexError):
        written(tmp_path, ".c", controller=lambda t, q, v, u: [q[7] - u[0], 0.0], inputs=[0.0])


@pytest.mark.parametrize("name", ["q.hinge1", "time", "energy.kinetic", "der(v.hinge2)"])
def test_an_input_with_the_name_of_another_variable_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="is the name of another variable; choose another"):
        written(tmp_path, ".fmu", inputs=[name, "lift"])
    with pytest.raises(InputError, match="is the name of another variable"):
        written(tmp_path, ".fmu", inputs=["lift", "lift"])
    assert list(tmp_path.iterdir()) == []
