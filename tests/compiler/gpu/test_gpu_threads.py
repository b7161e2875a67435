"""Kernels for GPUs, run on the CPU thread by thread, against the CPU's own kernels: what they compute needs no GPU."""

from __future__ import annotations

import ctypes
import math
import warnings

import numpy as np
import pytest

import spanloop as sl
from spanloop.algorithms import catalog
from spanloop.compiler.render.gpu.called_batch import THREADS, called_batch
from spanloop.compiler.render.gpu.threads import Layout, thread_kernel
from spanloop.compiler.runtime.kernel import batch_scratch, batch_source
from spanloop.errors import UnsupportedError
from support.gpu_threads import pointer, run_threads

REAL = {"float64": "double", "float32": "float"}
MODELS = {
    "puma": (sl.zoo.puma, None),
    "four_bar": (sl.zoo.four_bar, sl.zoo.four_bar_start),
    "stewart": (sl.zoo.stewart, sl.zoo.stewart_start),
}
COUNT = 5


def options_of(model, function: str) -> dict:
    takes, frame = catalog.FUNCTIONS[function].options, model.bodies[-1].name
    one = {"frame": frame} if "frame" in takes else {}
    return one | {name: (frame,) for name in ("frames", "points") if name in takes}


def states(model, start, kernel, seed: int = 4) -> list[np.ndarray]:
    rng, robot = np.random.default_rng(seed), sl.Dynamics(model)
    if start is None:
        q = np.array([model.random_state(seed=k)[0] for k in range(COUNT)])
        v = rng.standard_normal((COUNT, model.nv))
    else:
        q = np.tile(np.array(start(), float), (COUNT, 1))
        v = robot.project(q, rng.standard_normal((COUNT, model.nv)))[1]
    known = {"q": q, "v": v, "start": q}
    return [known[n] if n in known else rng.standard_normal((COUNT, k)) for n, k in kernel.inputs]


def answers(kernel, given, layout: Layout, budget=None, warps=None) -> tuple[np.ndarray, np.ndarray]:
    """The answer and the status of every state."""
    real, n = REAL[kernel.dtype.name], max(len(a) for a in given if a.ndim == 2)
    made = thread_kernel(kernel.plan, real, layout, budget, warps)
    is_columns, width = layout.kind == "columns", math.prod(kernel.shape)
    laid = [np.ascontiguousarray(a.T if is_columns and a.ndim == 2 else a, kernel.dtype) for a in given]
    out = np.zeros((width, n) if is_columns else (n, width), kernel.dtype)
    status = np.full(n, 9, np.uint8)
    arguments = [*map(pointer, (*laid, out, status)), ctypes.c_uint32(n)]
    run_threads(made.source, real, "batch", arguments, n + 3, made.threads)  # three threads beyond the last state
    return (out.T if is_columns else out).reshape(n, *kernel.shape), status


FUNCTIONS = [
    (name, function)
    for name, (_, start) in MODELS.items()
    for function, entry in catalog.FUNCTIONS.items()
    if not (entry.needs_tree if start else entry.needs_closures) and "contacts" not in entry.options
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "function", "dtype"), [(*x, d) for x in FUNCTIONS for d in REAL if d == "float64" or x[0] == "puma"]
)
def test_every_function_agrees_with_the_cpu(name, function, dtype):
    make, start = MODELS[name]
    model = make()
    try:
        kernel = sl.compile(model, function, dtype=dtype, lowering="unrolled", **options_of(model, function))
    except UnsupportedError as reason:
        pytest.skip(str(reason))
    given = states(model, start, kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = kernel(*given)
    kind = "columns" if len(function) % 2 else "direct"
    found, status = answers(kernel, given, Layout(kind), budget=24)  # so small that values are spilled
    bound = 1e-12 if dtype == "float64" else 1e-4  # products are fused in other places
    answered = status == 0
    assert answered.any() or np.isnan(expected).all()
    assert np.isnan(found[~answered]).all()
    scale = np.abs(expected[answered]).max(initial=1e-30)
    assert np.abs(found[answered] - expected[answered]).max(initial=0.0) <= bound * scale


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["direct", "columns"])
@pytest.mark.parametrize("budget", [12, 40, None])
def test_spilled_values_come_back_whatever_the_budget(kind, budget):
    kernel = sl.compile(sl.zoo.quadruped(), "forward_dynamics")
    given = states(sl.zoo.quadruped(), None, kernel)
    found, status = answers(kernel, given, Layout(kind), budget)
    assert not status.any()
    assert np.abs(found - kernel(*given)).max() <= 1e-12 * np.abs(found).max()


@pytest.mark.slow
def test_values_without_a_slot_stay_where_they_are():
    kernel = sl.compile(sl.zoo.stewart(), "forward_dynamics")
    given = states(sl.zoo.stewart(), sl.zoo.stewart_start, kernel)
    found, status = answers(kernel, given, Layout("columns"), budget=20, warps=64)
    assert not status.any()
    assert np.abs(found - kernel(*given)).max() <= 1e-12 * np.abs(found).max()


@pytest.mark.parametrize("kind", ["direct", "columns"])
def test_an_input_with_one_row_serves_all_states(kind):
    model = sl.zoo.puma()
    kernel = sl.compile(model, "forward_dynamics", parameters="live")
    given = states(model, None, kernel)
    given[-1] = model.parameters().values
    found, status = answers(kernel, given, Layout(kind, (False, False, False, True)))
    assert not status.any()
    expected = sl.compile(model, "forward_dynamics")(*given[:3])
    assert np.abs(found - expected).max() <= 1e-11 * np.abs(expected).max()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["direct", "columns"])
def test_refused_states_have_a_status_and_rows_of_nan(kind):
    kernel = sl.compile(sl.zoo.four_bar(), "forward_dynamics")
    q = np.tile(np.array(sl.zoo.four_bar_start()), (4, 1))
    v, tau = np.zeros((4, 3)), np.zeros((4, 3))
    q[1, 1] += 0.1  # the loop is open
    tau[2, 0] = np.inf
    q[3, 0] += 2e14  # beyond the fast sine
    found, status = answers(kernel, [q, v, tau], Layout(kind))
    assert status[0] == 0
    assert (status[1:] != 0).all()
    assert status[3] & 4
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1:]).all()


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", ["looped chain", "pairs", "pieces"])
def test_long_kernels_call_the_text_of_batches_for_one_state_after_the_other(name, dtype):
    if name == "looped chain":
        kernel = sl.compile(sl.zoo.chain(60), "inverse_dynamics", dtype=dtype)
    elif name == "pairs":
        from spanloop.derivatives.tree_dynamics import FORWARD, tree_kernel

        kernel = tree_kernel(sl.zoo.puma(), FORWARD, dtype=dtype)
    else:
        kernel = sl.compile(sl.zoo.quadruped(), "mass_matrix", derivative="jacobian", dtype=dtype)
    model_nv = kernel.inputs[-1][1]
    rng, real, n = np.random.default_rng(5), REAL[dtype], 3
    quaternion = name == "pieces"
    given = [rng.uniform(-1, 1, (n, k)).astype(dtype) for _, k in kernel.inputs]
    if quaternion:
        given[0][:, :4] /= np.linalg.norm(given[0][:, :4], axis=1, keepdims=True)
    assert model_nv
    scratch = batch_scratch(kernel.plan, real, 1)
    text = called_batch(batch_source(kernel.plan, real, 1), len(given), real, scratch)
    if "@data = global" in text:
        pytest.skip("loops over links read tables, which only a launch on the device fills")
    out, status = np.zeros((n, math.prod(kernel.shape)), dtype), np.zeros(n, np.uint8)
    memory = np.zeros((scratch + 8) * THREADS, dtype)
    arguments = [x for a in given for x in (pointer(a), ctypes.c_int64(a.shape[1]))]
    arguments += [*map(pointer, (out, status, memory)), ctypes.c_int64(n)]
    run_threads(text, real, "called", arguments, THREADS, THREADS)
    expected = kernel(*given).reshape(n, -1)
    assert not status.any()
    bound = 1e-11 if dtype == "float64" else 1e-3
    assert np.abs(out - expected).max() <= bound * np.abs(expected).max()
