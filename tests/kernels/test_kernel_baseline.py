"""Kernels are those of the baseline: no operation more, the same numbers, the same motions.

`kernel_baseline.json` lies beside this file; `make_kernel_baseline.py` wrote it. It holds everything a replay needs:

| section | entry |
|---|---|
| models | how to make a model: `make` names something under `spanloop`, `then` lists methods to call on the result |
| states | two states a model: arrays by name, with the loops closed where the model has some |
| kernels | model, function, method and options of `sl.compile`; names of the arrays to call it with; counts; results |
| rollouts | model and options of `sl.simulate`; start and end |

A refactoring leaves this test as it is. A change that makes kernels cheaper passes, too:
write the file anew then, so that the gain is kept.
"""

from __future__ import annotations

import functools
import json
import operator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spanloop as sl

FILE = Path(__file__).parent / "kernel_baseline.json"

# Relative to the largest number of a result. Sums in another order, or fused otherwise by another compiler or machine,
# move these well-conditioned results by some 1e-14 (the maker refuses a state at which machine code and the same steps
# on plain floats differ by 1e-13, the worst is 8e-14); a changed formula moves them by far more than 1e-12.
SAME_RESULT = 1e-12
# The same for the end of a motion of 50 steps, each of which hands its rounding on to the next.
SAME_MOTION = 1e-10


def section(name: str) -> dict[str, Any]:
    """One section of the file; nothing where the file is still to be written."""
    return json.loads(FILE.read_text(encoding="utf-8"))[name] if FILE.exists() else {}


MODELS, STATES, KERNELS, ROLLOUTS = map(section, ("models", "states", "kernels", "rollouts"))


# ---- from entries to models and kernels


def made(recipe: Any) -> Any:
    """The object that a recipe describes; anything that is no recipe is itself."""
    if not (isinstance(recipe, dict) and "make" in recipe):
        return recipe
    make = operator.attrgetter(recipe["make"])(sl)
    value = make(*map(made, recipe.get("arguments", ())), **_options(recipe.get("options", {})))
    for method, arguments, options in recipe.get("then", ()):
        value = getattr(value, method)(*map(made, arguments), **_options(options))
    return value


def _options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: made(value) for name, value in options.items()}


@functools.cache
def model_of(name: str) -> sl.Model:
    """The model of this name, made once."""
    return made(MODELS[name])


def compiled(model: sl.Model, function: str, method: str | None, options: dict[str, Any], **more):
    """The kernel of an entry; function 'operators' is the product of the spatial operators that its options name."""
    if function == "operators":
        return sl.compile(model, operator_product(model, **options), **more)
    return sl.compile(model, function, method=method, **options, **more)


def operator_product(model: sl.Model, product: list[str], frames: list[str] = ()):
    """The product of spatial operators, such as ["H", "phi", "Mb", "phi.T", "H.T"]."""
    operators = sl.operators(model, frames=frames)
    return functools.reduce(operator.matmul, (operator.attrgetter(name)(operators) for name in product))


def counts(kernel) -> dict[str, int]:
    """The number of operations of each kind, and of all."""
    fields = asdict(kernel.operations)
    return fields | {"total": sum(fields.values())}


def results(kernel, model_name: str, inputs: list[str], states: dict[str, Any] = STATES) -> list[np.ndarray]:
    """The kernel's result at each of the model's states; inputs: the names of its arguments among a state's arrays."""
    return [kernel(*(np.array(state[name]) for name in inputs)) for state in states[model_name]]


def end_of(rollout: dict[str, Any], model: sl.Model) -> tuple[np.ndarray, np.ndarray]:
    """The last q and v of a motion."""
    options = dict(rollout["options"])
    options["integrator"] = sl.Integrator(options["integrator"], progress=False)
    if "gains" in options:
        options["closures"] = sl.Closures(options["closures"], gains=options.pop("gains"))
    run = sl.simulate(model, np.array(rollout["q"]), np.array(rollout["v"]), **options)
    assert run.outcome.finished
    return run.q[-1], run.v[-1]


def difference(found, expected) -> float:
    """The largest difference relative to the largest number expected; of zeros: the largest difference."""
    found, expected = np.asarray(found), np.asarray(expected, dtype=float)
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max() / (np.abs(expected).max() or 1.0))


# ---- the tests


@pytest.fixture(scope="module", params=KERNELS)
def entry(request) -> dict[str, Any]:
    """A kernel of the baseline; both tests of one kernel follow each other, so that it is compiled once."""
    return KERNELS[request.param]


@pytest.fixture(scope="module")
def kernel(entry):
    return compiled(model_of(entry["model"]), entry["function"], entry["method"], entry["options"])


def test_no_count_of_operations_has_grown(entry, kernel):
    now, before = counts(kernel), entry["operations"]
    grown = {name: f"{n} -> {now[name]}" for name, n in before.items() if now[name] > n}
    assert not grown


def test_results_are_unchanged(entry, kernel):
    found = results(kernel, entry["model"], entry["inputs"])
    for now, before in zip(found, entry["results"], strict=True):
        assert difference(now, before) <= SAME_RESULT


@pytest.mark.parametrize("name", ROLLOUTS)
def test_motions_end_where_they_ended(name):
    rollout = ROLLOUTS[name]
    q, v = end_of(rollout, model_of(rollout["model"]))
    assert difference(q, rollout["end"]["q"]) <= SAME_MOTION
    assert difference(v, rollout["end"]["v"]) <= SAME_MOTION


def test_the_baseline_is_there():
    """A file that is lost, or cut, would pass all tests above."""
    assert len(KERNELS) >= 64
    assert len(ROLLOUTS) >= 4
    assert all(len(entry["results"]) == 2 for entry in KERNELS.values())
