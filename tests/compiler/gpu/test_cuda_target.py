"""target="cuda" on a machine without a GPU: PTX is made and complete; calls are refused with a sentence."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess

import pytest

import spanloop as sl
from spanloop.algorithms import catalog
from spanloop.compiler.lower.spilling import spills
from spanloop.compiler.runtime.gpu import driver
from spanloop.compiler.runtime.gpu.assembly import name, ptx
from spanloop.compiler.trace import CONDITIONS, Expression
from spanloop.errors import DeviceError, InputError, UnsupportedError

without_gpu = pytest.mark.skipif(driver.is_available(), reason="this machine has a GPU")


def kernels_of(model):
    frame = model.bodies[-1].name
    for function, entry in catalog.FUNCTIONS.items():
        if (entry.needs_tree if model.loops else entry.needs_closures) or "contacts" in entry.options:
            continue
        options = {"frame": frame} if "frame" in entry.options else {}
        options |= {n: (frame,) for n in ("frames", "points") if n in entry.options}
        for dtype in ("float32", "float64"):
            try:
                yield sl.compile(model, function, target="cuda", dtype=dtype, **options)
            except UnsupportedError:
                assert dtype == "float32"  # a method that needs double precision


@pytest.mark.slow
@pytest.mark.parametrize("model", [sl.zoo.puma(), sl.zoo.five_bar()], ids=lambda m: m.name)
def test_every_function_has_ptx(model, tmp_path):
    count = 0
    for kernel in kernels_of(model):
        text = kernel.ptx
        assert ".target sm_90" in text
        assert ".visible .entry" in text
        assert "call.uni" not in text or "called" in text  # nothing outside the kernel is called
        count += 1
        if count % 5 == 0 and shutil.which("ptxas"):
            source = tmp_path / "kernel.ptx"
            source.write_text(text)
            subprocess.run(["ptxas", "-arch=sm_90", str(source), "-o", str(tmp_path / "kernel.cubin")], check=True)
    assert count > 20


@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 0)])
def test_ptx_is_made_for_the_devices_capability(capability):
    kernel = sl.compile(sl.zoo.four_bar(), "forward_dynamics", target="cuda", dtype="float32")
    assert f".target {name(capability)}" in ptx(kernel.source, capability)


def test_a_device_that_is_newer_than_llvm_gets_code_of_the_newest_known():
    assert name((13, 5)) == "sm_121"
    assert name((5, 0)) == "sm_70"


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_and_columns_of_a_large_mechanism_have_ptx(layout, dtype):
    kernel = sl.compile(sl.zoo.stewart(), "forward_dynamics", target="cuda", dtype=dtype, layout=layout)
    text = kernel.ptx
    assert ("bar.sync" in text) == (layout == "rows")  # rows are turned by the warp together


@without_gpu
def test_a_call_without_a_gpu_is_refused_with_a_sentence():
    kernel = sl.compile(sl.zoo.pendulum(), "forward_dynamics", target="cuda")
    with pytest.raises(DeviceError, match=r"needs an NVIDIA GPU with its driver.*target='cpu'"):
        kernel([0.0], [0.0], [0.0])
    robot = sl.Dynamics(sl.zoo.pendulum(), target="cuda")
    with pytest.raises(DeviceError, match="needs an NVIDIA GPU"):
        robot.forward_dynamics([0.0], [0.0], [0.0])


def test_other_names_of_the_target_and_layouts_are_refused_with_advice():
    model = sl.zoo.pendulum()
    with pytest.raises(InputError, match="Try target='cuda'"):
        sl.compile(model, "bias", target="gpu")
    with pytest.raises(InputError, match="did you mean 'cuda'"):
        sl.compile(model, "bias", target="cude")
    with pytest.raises(InputError, match="layout is 'row'"):
        sl.compile(model, "bias", target="cuda", layout="row")
    with pytest.raises(InputError, match="layout, device and warps are for target='cuda'"):
        sl.compile(model, "bias", layout="columns")


@pytest.mark.parametrize("device", ["cuda:0", 1.5, -1, None, True, [0]])
def test_a_device_that_is_no_number_is_refused_when_it_is_given(device):
    words = f"device is {device!r}; expected the number of a GPU, a whole number from 0 on: device=0 is the first"
    with pytest.raises(InputError, match=re.escape(words)):
        sl.compile(sl.zoo.pendulum(), "bias", target="cuda", device=device)


def test_a_device_that_is_not_there_is_reported_by_a_call():
    kernel = sl.compile(sl.zoo.pendulum(), "bias", target="cuda", device=999)
    with pytest.raises(DeviceError, match=r"there is no GPU 999|needs an NVIDIA GPU"):
        kernel([0.0], [0.0])


def test_threads_of_the_cpu_are_refused():
    words = "threads is 2, for target 'cpu'; target is 'cuda', where each state has a thread"
    model = sl.zoo.pendulum()
    for make in (
        lambda: sl.compile(model, "bias", target="cuda", threads=2),
        lambda: sl.Dynamics(model, target="cuda", threads=2),
        lambda: sl.Integrator(target="cuda", threads=2),
    ):
        with pytest.raises(InputError, match=words):
            make()


def test_a_library_that_is_no_driver_is_a_sentence(monkeypatch):
    """Python's own functions stand in for a stub of the driver: cuInit is not among them."""
    driver._library.cache_clear()
    monkeypatch.setattr(driver.ctypes, "CDLL", lambda name: ctypes.pythonapi)
    try:
        with pytest.raises(
            DeviceError, match=r"libcuda\.so\.1 is not NVIDIA's driver: it has no cuInit .*target='cpu'"
        ):
            sl.compile(sl.zoo.pendulum(), "bias", target="cuda")([0.0], [0.0])
        assert not driver.is_available()
    finally:
        driver._library.cache_clear()


def test_long_kernels_refuse_columns():
    kernel = sl.compile(sl.zoo.chain(60), "forward_dynamics", target="cuda", layout="columns")
    with pytest.raises(UnsupportedError, match="use layout='rows'"):
        _ = kernel.ptx


@pytest.mark.parametrize("budget", [10, 60])
@pytest.mark.parametrize("most", [5, 1000])
def test_no_more_than_the_budget_is_held_while_slots_are_left(budget, most):
    plan = sl.compile(sl.zoo.quadruped(), "forward_dynamics").plan
    moves = spills(plan, budget, most)
    own = {n.index: n for n in moves.nodes if n.op not in CONDITIONS}
    last = {x.index: k for k, n in enumerate(moves.nodes) for x in (n.a, n.b, n.c) if x is not None}
    last |= {x.index: len(moves.nodes) for x in plan.outputs + plan.demand_flags if isinstance(x, Expression)}
    held, stored, largest = set(), set(), 0
    for k, (n, after) in enumerate(zip(moves.nodes, moves.after, strict=True)):
        read = {x.index for x in (n.a, n.b, n.c) if x is not None and x.index in own}
        assert read <= held | stored  # every operand is in a register or in its slot
        held = {i for i in held | read | ({n.index} & own.keys()) if last.get(i, -1) > k}
        assert not stored & set(after.stored)  # each is stored once
        assert set(after.stored) <= held
        stored |= set(after.stored)
        assert set(after.dropped) <= stored
        held -= set(after.dropped)
        largest = max(largest, len(held))
    assert stored == set(moves.slot)
    assert moves.n_slots <= most
    assert (largest <= budget) == (most == 1000)
