"""Plans as WebAssembly and as C: every operation gives the bits that Python's floats give."""

from __future__ import annotations

import math

import numpy as np
import pytest
from portable_code import CSteps, WasmSteps, needs_gcc, plan_in_c, plan_in_wasm, same_bits, view
from random_plans import awkward_inputs, random_plan

from spanloop.compiler.lower import Call, Plan, Schedule, traced_inputs
from spanloop.compiler.lower.evaluation import ARRAY_FUNCTIONS, evaluated
from spanloop.compiler.lower.schedule import Block, For
from spanloop.compiler.trace import NAMES

CASES = [(1, 40, 800), (2, 400, 800), (3, 400, 90), (4, 1500, 200)]  # seed, operations, length of a piece


def by_numpy(plan: Plan, inputs) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array(evaluated(plan, [np.float64(x) for part in inputs for x in part], ARRAY_FUNCTIONS)[0], float)


def test_the_random_plans_have_every_operation():
    plans = [random_plan(seed, n, 12, sines=seed == 2) for seed, n, _ in CASES]
    assert {NAMES[n.op] for p in plans for n in p.nodes} == set(NAMES)


@pytest.mark.parametrize(("seed", "operations", "length"), CASES)
def test_wasm_computes_what_numpy_computes(seed, operations, length):
    plan = random_plan(seed, operations, 12)
    for k in range(12):
        inputs = awkward_inputs(100 * seed + k)
        (found,) = plan_in_wasm(plan, (12,), length, inputs)
        assert same_bits(found, by_numpy(plan, inputs)), (seed, k)


@needs_gcc
@pytest.mark.parametrize(("seed", "operations", "length"), CASES[1:])
def test_c_computes_what_numpy_computes(seed, operations, length):
    plan = random_plan(seed, operations, 12)
    inputs = awkward_inputs(seed)
    assert same_bits(np.concatenate(plan_in_c(plan, (5, 0, 7), length, inputs)), by_numpy(plan, inputs))


@needs_gcc
def test_c_and_wasm_agree_to_the_bit_with_sines():
    plan = random_plan(11, 500, 30, sines=True)
    for k in range(3):
        inputs = awkward_inputs(k)
        c, wasm = (run(plan, (30,), 120, inputs)[0] for run in (plan_in_c, plan_in_wasm))
        assert same_bits(c, wasm)
        assert k or np.isfinite(c).any()


def narrow(f):
    """An operation whose numbers are float32."""

    def operation(*x):
        given = [a if isinstance(a, bool | np.bool_) else np.float32(a) for a in x]
        with np.errstate(all="ignore"):
            found = f(*given)
        return found if isinstance(found, bool | np.bool_) else np.float32(found)

    return operation


@needs_gcc
def test_c_in_float_computes_what_numpy_computes_in_float32():
    plan = random_plan(21, 300, 12, large=False)
    inputs = [np.float32(x) for x in awkward_inputs(21)]
    (found,) = plan_in_c(plan, (12,), 100, inputs, "float")
    functions = {op: narrow(f) for op, f in ARRAY_FUNCTIONS.items()}
    expected = np.array(evaluated(plan, [x for part in inputs for x in part], functions)[0], np.float32)
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.isfinite(found).any()


def small_plan(sizes, outputs):
    traced = traced_inputs(sizes)
    found = outputs(*traced.values())
    return Plan.of("small", traced, (len(found),), found)


@needs_gcc
@pytest.mark.parametrize("run", [plan_in_wasm, plan_in_c])
def test_a_plan_may_have_no_outputs_no_inputs_or_arrays_of_size_zero(run):
    assert [len(x) for x in run(small_plan([("a", 2)], lambda a: []), (), 800, [np.ones(2)])] == []
    assert [len(x) for x in run(small_plan([("a", 0)], lambda a: []), (0,), 800, [np.ones(0)])] == [0]
    (found,) = run(small_plan([], lambda: [2.5, -math.inf]), (2,), 800, [])
    assert found.tolist() == [2.5, -math.inf]
    empty, full = run(small_plan([("a", 1), ("b", 0)], lambda a, b: [a[0]]), (0, 1), 800, [np.ones(1), np.ones(0)])
    assert len(empty) == 0
    assert full.tolist() == [1.0]


# ---- arrays that a call reads and writes


def shuffled(x):
    """Every output depends on inputs that earlier outputs would overwrite."""
    total = x[0]
    for k in range(1, 900):
        total = total * x[k % len(x)] + 0.001 * k
    return [x[1], x[2], x[3], x[0], total]


@needs_gcc
@pytest.mark.parametrize("blocks", [False, True])
def test_an_array_may_be_input_and_output_at_once_in_one_piece_and_in_several(blocks):
    sizes = {"x": 5, "long": 10, "x.next": 5}
    plan = small_plan([("x", 5)], shuffled)
    one = Block("long", 5, (("i", 5),)) if blocks else "x"
    item = For("i", 0, 2, (Call(plan, (one,), (one,)),)) if blocks else Call(plan, (one,), (one,))
    keep = Call(small_plan([("x", 5)], lambda x: list(x)), ("x",), ("x.next",))
    s = Schedule("both", sizes, ("x",), (), (), ("x",), (), (item, keep))
    start = np.array([0.3, -0.2, 0.7, 0.9, 0.1])
    name, copies = ("long", 2) if blocks else ("x", 1)
    for steps in (WasmSteps(s), CSteps(s)):
        view(steps, name)[:] = np.tile(start, copies)
        assert steps.call("step") == 0
        assert same_bits(view(steps, name), np.tile(by_numpy(plan, [start]), copies))
