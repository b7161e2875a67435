"""Kernels for GPUs with several warps to 32 states, run on the CPU with all threads of a block at once."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
import warnings

import numpy as np
import pytest

import spanloop as sl
from spanloop.algorithms import catalog
from spanloop.compiler.lower.exchange import exchange
from spanloop.compiler.render.gpu.threads import Layout, ThreadKernel, thread_kernel
from spanloop.compiler.render.gpu.warps import fits, warp_kernel
from spanloop.compiler.runtime.gpu.assembly import ptx
from spanloop.compiler.runtime.gpu.warp_choice import WarpChoice, warp_choice
from spanloop.compiler.trace import CONDITIONS, CONSTANT, INPUT
from spanloop.errors import InputError, UnsupportedError
from spanloop.kernels.lowering import chain_parts
from support.gpu_threads import pointer, run_blocks

REAL = {"float64": "double", "float32": "float"}
BOUND = {"float64": 1e-12, "float32": 1e-4}  # products are fused in other places than in the CPU's kernel
MODELS = {
    "quadruped": (sl.zoo.quadruped, None),
    "star": (lambda: sl.zoo.star(6), None),
    "stewart": (sl.zoo.stewart, sl.zoo.stewart_start),
    "arms": (lambda: sl.zoo.arms_with_object(3), lambda: sl.zoo.arms_with_object_start(3)),
}
COUNT = 37  # one group of 32 states and a part of one


def states(name: str, kernel, count: int = COUNT, seed: int = 3) -> list[np.ndarray]:
    make, start = MODELS[name]
    model, rng = make(), np.random.default_rng(seed)
    if start is None:
        q = np.array([model.random_state(seed=k)[0] for k in range(count)])
        v = rng.standard_normal((count, model.nv))
    else:
        q = np.tile(np.array(start(), float), (count, 1))
        v = sl.Dynamics(model).project(q, rng.standard_normal((count, model.nv)))[1]
    known = {"q": q, "v": v}
    return [known[n] if n in known else rng.standard_normal((count, k)) for n, k in kernel.inputs]


def answers(kernel, made: ThreadKernel, given, groups: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The answer and the status of every state."""
    real, n = REAL[kernel.dtype.name], max(len(a) for a in given if a.ndim == 2)
    columns, width = made.layout == "columns", math.prod(kernel.shape)
    laid = [np.ascontiguousarray(a.T if columns and a.ndim == 2 else a, kernel.dtype) for a in given]
    out = np.zeros((width, n) if columns else (n, width), kernel.dtype)
    status = np.full(n, 9, np.uint8)
    arguments = [*map(pointer, (*laid, out, status)), ctypes.c_uint32(n)]
    run_blocks(made.source, real, "batch", arguments, -(-n // made.states), made.threads, groups)
    return (out.T if columns else out).reshape(n, *kernel.shape), status


def divided(kernel, warps: int):
    return exchange(kernel.plan, chain_parts(kernel.definition), warps)


def check(kernel, given, found, status) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = kernel(*given)
    assert np.array_equal(status != 0, np.isnan(expected).any(axis=1))
    assert np.isnan(found[status != 0]).all()
    scale = np.abs(expected[status == 0]).max()
    assert np.abs(found - expected)[status == 0].max() <= BOUND[kernel.dtype.name] * scale


FUNCTIONS = [
    (name, function)
    for name, (_, start) in MODELS.items()
    for function in ("forward_dynamics", "inverse_dynamics", "bias", "gravity_torques", "friction_torques")
    if function in catalog.FUNCTIONS
    if not (catalog.FUNCTIONS[function].needs_tree if start else catalog.FUNCTIONS[function].needs_closures)
]


@pytest.mark.slow
@pytest.mark.parametrize("warps", [2, 3])
@pytest.mark.parametrize(("name", "function"), FUNCTIONS)
def test_every_function_of_all_joints_agrees_with_the_cpu(name, function, warps):
    kernel = sl.compile(MODELS[name][0](), function)
    plan = divided(kernel, warps)
    if plan is None:
        pytest.skip("too small to divide")
    kind = ("rows", "columns", "direct")[(len(function) + warps) % 3]
    budget = 24 if warps == 2 else None  # so small that values are spilled
    given = states(name, kernel)
    check(kernel, given, *answers(kernel, warp_kernel(plan, "double", Layout(kind), budget=budget), given))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize(
    ("kind", "warps", "groups"), [("rows", 3, 1), ("rows", 2, 2), ("columns", 2, 2), ("direct", 4, 1)]
)
def test_a_quadruped_agrees_with_the_cpu_in_every_layout(kind, warps, groups, dtype):
    kernel = sl.compile(sl.zoo.quadruped(), "forward_dynamics", dtype=dtype)
    given = [x.astype(dtype) for x in states("quadruped", kernel)]
    made = warp_kernel(divided(kernel, warps), REAL[dtype], Layout(kind), groups)
    assert made.threads == 32 * warps * groups
    assert made.states == 32 * groups
    check(kernel, given, *answers(kernel, made, given, groups))


@pytest.mark.parametrize("kind", ["rows", "columns", "direct"])
def test_refused_states_have_a_status_and_rows_of_nan_whichever_warp_finds_out(kind):
    kernel = sl.compile(sl.zoo.quadruped(), "forward_dynamics")
    plan, given = divided(kernel, 3), states("quadruped", kernel)
    for state, (which, place, value) in enumerate(
        [(0, 0, 7.0), *((k, j, np.nan) for k in range(3) for j in (0, 8, 11, 14, 17)), (0, 7, 3e14), (0, 18, 3e14)]
    ):
        given[which][2 * state, place] = value  # a quaternion that is none, numbers that are none, angles too far away
    found, status = answers(kernel, warp_kernel(plan, "double", Layout(kind)), given)
    refused = np.zeros(COUNT, bool)
    refused[: 2 * state + 1 : 2] = True
    assert np.array_equal(status != 0, refused)
    assert status[0] & 2
    assert status[2 * state] & 4
    assert np.isnan(found[refused]).all()
    assert np.isfinite(found[~refused]).all()


@pytest.mark.slow
def test_open_loops_are_refused_by_all_warps():
    kernel = sl.compile(sl.zoo.stewart(), "forward_dynamics")
    given = states("stewart", kernel)
    given[0][5, 3] += 0.1
    made = warp_kernel(divided(kernel, 2), "double", Layout("columns"))
    found, status = answers(kernel, made, given)
    assert status.nonzero()[0].tolist() == [5]
    check(kernel, given, found, status)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_an_input_with_one_row_serves_all_states(kind):
    model = sl.zoo.quadruped()
    kernel = sl.compile(model, "forward_dynamics", parameters="live")
    given = states("quadruped", kernel)
    given[-1] = model.parameters().values
    made = warp_kernel(divided(kernel, 2), "double", Layout(kind, (False, False, False, True)))
    found, status = answers(kernel, made, given)
    assert not status.any()
    expected = sl.compile(model, "forward_dynamics")(*given[:3])
    assert np.abs(found - expected).max() <= 1e-11 * np.abs(expected).max()


@pytest.mark.slow
@pytest.mark.parametrize("count", [32, 33, 64, 70])
@pytest.mark.parametrize(("name", "function"), [("stewart", "forward_dynamics"), ("quadruped", "mass_matrix")])
def test_rows_that_one_warp_turns_in_shared_memory_agree_with_the_cpu(name, function, count):
    kernel = sl.compile(MODELS[name][0](), function)  # rows of 25, 24, 19 and 324 numbers
    given = states(name, kernel, count)
    found, status = answers(kernel, thread_kernel(kernel.plan, "double", Layout("rows")), given)
    expected = kernel(*given)
    assert not status.any()
    assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", MODELS)
def test_all_kernels_assemble(name, dtype, tmp_path):
    kernel = sl.compile(MODELS[name][0](), "forward_dynamics", dtype=dtype)
    for warps, kind, groups in ((2, "columns", 2), (3, "rows", 1)):
        plan = divided(kernel, warps)
        if plan is None or not fits(plan, REAL[dtype], Layout(kind), groups):
            continue
        source = tmp_path / "kernel.ptx"
        source.write_text(ptx(warp_kernel(plan, REAL[dtype], Layout(kind), groups).source))
        subprocess.run(["ptxas", "-arch=sm_90", str(source), "-o", str(tmp_path / "kernel.cubin")], check=True)


# ---- division and choice


@pytest.mark.parametrize("warps", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_what_a_worker_reads_is_its_own_or_in_a_slot_since_an_earlier_stage(name, warps):
    kernel = sl.compile(MODELS[name][0](), "forward_dynamics")
    plan = divided(kernel, warps)
    whole = {n.index for n in kernel.plan.nodes if n.op not in (INPUT, CONSTANT)}
    assert set(plan.home) == whole
    slots: dict[int, int] = {}  # what is in each slot
    own: list[set[int]] = [set() for _ in range(warps)]
    for k in range(len(plan.stages[0])):
        written: dict[int, int] = {}
        read: set[int] = set()
        for w in range(warps):
            for n in plan.stages[w][k]:
                for x in (n.a, n.b, n.c):
                    if x is None or x.op in (INPUT, CONSTANT) or x.index in own[w]:
                        continue
                    assert x.op not in CONDITIONS
                    assert slots.get(plan.slot[x.index]) == x.index
                    read.add(plan.slot[x.index])
                own[w].add(n.index)
                if plan.home[n.index] == w and n.index in plan.slot:
                    assert plan.slot[n.index] not in written
                    written[plan.slot[n.index]] = n.index
        assert not read & set(written)  # nothing is written over while others read it
        slots |= written


def choice(model, function="forward_dynamics", dtype="float32", **options) -> WarpChoice:
    kernel = sl.compile(model, function, target="cuda", dtype=dtype, **options)
    return kernel.codes.choice


def test_warps_are_chosen_by_the_mechanism_and_the_size_of_the_batch():
    assert choice(sl.zoo.puma()) == WarpChoice(1, 1)  # one chain
    assert choice(sl.zoo.chain(60)) == WarpChoice(1, 1, is_straight=False)  # a loop over links
    assert choice(sl.zoo.quadruped(), "mass_matrix") == WarpChoice(1, 1)
    found = choice(sl.zoo.quadruped())
    assert found.small == 4
    assert found.of_batch(4096, 132) == 4
    assert found.of_batch(1 << 20, 132) == found.large


def test_a_division_whose_values_do_not_fit_the_memory_is_not_chosen():
    kernel = sl.compile(sl.zoo.quadruped(), "forward_dynamics")
    parts = chain_parts(kernel.definition)
    assert warp_choice(kernel.plan, parts, "double", Layout("rows"), shared=1000) == WarpChoice(1, 1)


def test_wishes_that_cannot_be_met_are_refused_with_the_reason():
    with pytest.raises(InputError, match="warps is 5; expected 1 to 4"):
        sl.compile(sl.zoo.quadruped(), "forward_dynamics", target="cuda", warps=5)
    with pytest.raises(InputError, match="warps is True"):
        sl.compile(sl.zoo.quadruped(), "forward_dynamics", target="cuda", warps=True)
    with pytest.raises(InputError, match=r"warps are for target='cuda'"):
        sl.compile(sl.zoo.quadruped(), "forward_dynamics", warps=2)
    with pytest.raises(UnsupportedError, match="too few chains"):
        _ = sl.compile(sl.zoo.puma(), "forward_dynamics", target="cuda", warps=2).ptx
    with pytest.raises(UnsupportedError, match="warps=2 is for kernels of up to"):
        _ = sl.compile(sl.zoo.chain(60), "forward_dynamics", target="cuda", warps=2).ptx


def test_the_number_of_warps_is_that_of_the_blocks_threads():
    text = sl.compile(sl.zoo.quadruped(), "forward_dynamics", target="cuda", warps=3).ptx
    assert ".maxntid 96" in text
