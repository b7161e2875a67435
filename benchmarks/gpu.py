"""Kernels on an NVIDIA GPU: agreement with the CPU's kernels, speed, latency, and nvcc on the same tape beside them.

    python benchmarks/gpu.py --save FOLDER      robots of other packages as TOML files; codes by nvcc
    python benchmarks/gpu.py --models FOLDER [--quick] [--chosen]

Speed is in G states/s of 2^20 states (eight arms: 2^19, four-bar: 2^22), medians of 7 samples of 10 launches timed by
events, the largest distance of a quartile from its median at the end; status and NaN rows included. nvcc: the plan as
CUDA C, columns, the same checks of inputs, outputs and demands. Latency is that of 4096 states in rows from the start
of a launch to its end: "warm" after three other launches of the same kernel, "cold" after a copy that leaves neither
inputs nor instructions in the caches. A kernel is timed with 1 to 4 warps a state, where its plan divides; "*" is what
is chosen. Machine code of all of them, and nvcc's, is made first, in as many processes as there are cores.
--quick leaves out the agreement of all functions of the zoo; --chosen times only the code that a call of a user takes.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import spanloop as sl
from spanloop.algorithms import catalog
from spanloop.compiler.render.single import angles, input_places
from spanloop.compiler.runtime.gpu import driver
from spanloop.compiler.runtime.gpu.driver import Device, Memory
from spanloop.compiler.runtime.gpu.kernel import GpuKernel
from spanloop.compiler.trace import (
    ADD,
    BOTH,
    CONSTANT,
    COSINE,
    DIVIDE,
    EITHER,
    INPUT,
    LESS,
    MULTIPLY,
    NEGATE,
    NOT,
    ROOT,
    SELECT,
    SINE,
    SUBTRACT,
    Expression,
)  # fmt: skip

ROBOTS = ("panda", "anymal", "talos")
MECHANISMS = ("four_bar", "stewart", "8 arms")
REPEATS = 7
SIZES = {"chain": (12,), "tree": (12,), "star": (6,), "n_four_bar": (4,)}  # of families


def states(model: sl.Model, start, count: int, seed: int = 1) -> list[np.ndarray]:
    """q, v, tau of so many states, closed where the model has loops; 64 different ones, repeated."""
    rng, many = np.random.default_rng(seed), min(count, 64)
    robot = sl.Dynamics(model)
    if start is None:
        found = [model.random_state(seed=int(rng.integers(1 << 30))) for _ in range(many)]
        q, v = (np.array([x[k] for x in found]) for k in range(2))
    else:
        q = np.tile(np.array(start, float), (many, 1))
        v = robot.project(q, 0.3 * rng.standard_normal((many, model.nv)))[1]
        q = robot.assemble(robot.integrate(q, 0.02 * v)) if model.loops else q
        v = robot.project(q, v)[1]
    tau = rng.standard_normal((many, model.nv))
    times = -(-count // many)
    return [np.ascontiguousarray(np.tile(x, (times, 1))[:count]) for x in (q, v, tau)]


def agreement(label: str, model: sl.Model, start) -> tuple[dict[str, tuple[float, str]], int]:
    """The largest relative error by dtype, with its function, over all functions of the catalog; how many were seen."""
    q, v, tau = states(model, start, 257)
    worst, count = {"float64": (0.0, ""), "float32": (0.0, "")}, 0
    rng = np.random.default_rng(3)
    for function, entry in catalog.FUNCTIONS.items():
        if entry.needs_tree if model.loops or model.couplings else entry.needs_closures:
            continue
        frame = model.bodies[-1].name
        options = {}
        if "frame" in entry.options:
            options["frame"] = frame
        if "frames" in entry.options:
            options["frames"] = (frame,)
        if "points" in entry.options:
            options["points"] = (frame,)
        for dtype in worst:
            try:
                cpu = sl.compile(model, function, dtype=dtype, **options)
                gpu = sl.compile(model, function, dtype=dtype, target="cuda", **options)
            except sl.errors.SpanloopError as problem:
                if dtype == "float64":
                    print(f"  {label} {function}: not compiled: {str(problem)[:90]}")
                continue
            known = {"q": q, "v": v, "tau": tau, "start": q}
            given = [known[n] if n in known else rng.standard_normal((257, k)) for n, k in cpu.inputs]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                a, b = cpu(*given), gpu(*given)
            if a.size and np.isnan(a).all():
                print(f"  {label} {function} {dtype}: no state has an answer")
            if (np.isnan(a) != np.isnan(b)).any():
                print(f"  {label} {function} {dtype}: NaN rows differ ({np.isnan(a).sum()}, {np.isnan(b).sum()})")
            scale = max(np.nanmax(np.abs(a), initial=0.0), 1e-30)
            error = float(np.nanmax(np.abs(a - b), initial=0.0) / scale)
            count += 1
            if error > worst[dtype][0]:
                worst[dtype] = (error, function)
    return worst, count


class Arrays:
    """Inputs and room for the answer on the device."""

    def __init__(self, kernel: GpuKernel, given: list[np.ndarray]):
        device = self.device = Device.of()
        self.layout, self.dtype, self.inputs = kernel.layout, kernel.dtype, kernel.inputs
        self.n, self.width = len(given[0]), math.prod(kernel.shape)
        self.kept = []
        for x in given:
            a = np.ascontiguousarray(x.T if kernel.layout == "columns" else x, kernel.dtype)
            self.kept.append(Memory(device, a.nbytes))
            self.kept[-1].write(a.ctypes.data, a.nbytes)
            device.synchronize()
        self.out, self.status = Memory(device, self.n * self.width * kernel.dtype.itemsize), Memory(device, self.n)
        self.pointers = [(m.pointer, k) for m, (_, k) in zip(self.kept, kernel.inputs, strict=True)]

    def launcher(self, kernel: GpuKernel):
        """A function that starts the kernel on the first states; and the code that it starts."""
        code = kernel.code((False,) * len(kernel.inputs), self.n)
        return lambda: kernel._launch(code, self.pointers, self.out.pointer, self.status.pointer, self.n, 0), code

    def answer(self) -> np.ndarray:
        out = np.empty((self.width, self.n) if self.layout == "columns" else (self.n, self.width), self.dtype)
        self.out.read(out.ctypes.data, out.nbytes)
        self.device.synchronize()
        return out.T if self.layout == "columns" else out


def seconds(device: Device, launch, repeats: int = REPEATS, inner: int = 10) -> np.ndarray:
    """Seconds of one launch, of several samples, sorted."""
    launch()
    device.synchronize()
    begin, end, found = ctypes.c_void_p(), ctypes.c_void_p(), []
    driver.call("cuEventCreate", ctypes.byref(begin), 0)
    driver.call("cuEventCreate", ctypes.byref(end), 0)
    for _ in range(repeats):
        driver.call("cuEventRecord", begin, ctypes.c_void_p(0))
        for _ in range(inner):
            launch()
        driver.call("cuEventRecord", end, ctypes.c_void_p(0))
        device.synchronize()
        passed = ctypes.c_float()
        driver.call("cuEventElapsedTime", ctypes.byref(passed), begin, end)
        found.append(passed.value * 1e-3 / inner)
    return np.sort(found)


def latencies(device: Device, launch, warm: int, repeats: int = 15) -> np.ndarray:
    """Seconds from the start of one launch to its end, after `warm` other ones; a copy keeps the device busy until all
    is in the queue."""
    size = 2**30
    a, b = Memory(device, size), Memory(device, size)
    pair = ctypes.c_uint64(b.pointer), ctypes.c_uint64(a.pointer), ctypes.c_size_t(size), ctypes.c_void_p(0)

    def once() -> float:
        begin, end, passed = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
        driver.call("cuEventCreate", ctypes.byref(begin), 0)
        driver.call("cuEventCreate", ctypes.byref(end), 0)
        driver.call("cuMemcpyDtoDAsync_v2", *pair)
        for _ in range(warm):
            launch()
        driver.call("cuEventRecord", begin, ctypes.c_void_p(0))
        launch()
        driver.call("cuEventRecord", end, ctypes.c_void_p(0))
        device.synchronize()
        driver.call("cuEventElapsedTime", ctypes.byref(passed), begin, end)
        return passed.value * 1e-3

    return np.sort([once() for _ in range(repeats)])


def cuda_c(plan, real: str) -> str:
    """The plan as CUDA C: columns, the checks that our kernels make."""
    f = "f" if real == "float" else ""
    places, turning = input_places(plan), angles(plan)[0]
    name = {}
    lines = [f"long i = blockIdx.x * (long)blockDim.x + threadIdx.x; if (i >= n) return; {real} z = 0, m = 0;"]

    def value(x) -> str:
        if isinstance(x, Expression) and x.op != CONSTANT:
            return name[x.index]
        number = x.value if isinstance(x, Expression) else x
        return f'({real})nan("")' if math.isnan(number) else f"({real}){number!r}"

    for n in plan.arguments:
        k, j = places[int(n.value)]
        name[n.index] = f"v{n.index}"
        lines.append(f"{real} v{n.index} = a{k}[{j}L * n + i]; z = fma{f}(v{n.index}, ({real})0, z);")
        if int(n.value) in turning:
            lines.append(f"m = fmax{f}(fabs{f}(v{n.index}), m);")
    signs = {ADD: "+", SUBTRACT: "-", MULTIPLY: "*", DIVIDE: "/", LESS: "<", BOTH: "&&", EITHER: "||"}
    pairs: set[int] = set()
    seen = set()
    for n in (*plan.nodes, *plan.checks):
        if n.op in (INPUT, CONSTANT) or n.index in seen:
            continue
        seen.add(n.index)
        name[n.index] = f"v{n.index}"
        kind = "bool" if n.op in (LESS, BOTH, EITHER, NOT) else real
        if n.op in (SINE, COSINE):
            if n.a.index not in pairs:
                pairs.add(n.a.index)
                lines.append(
                    f"{real} s{n.a.index}, c{n.a.index}; sincos{f}({value(n.a)}, &s{n.a.index}, &c{n.a.index});"
                )
            text = f"{'s' if n.op == SINE else 'c'}{n.a.index}"
        elif n.op in signs:
            text = f"{value(n.a)} {signs[n.op]} {value(n.b)}"
        elif n.op == NEGATE:
            text = f"-{value(n.a)}"
        elif n.op == NOT:
            text = f"!{value(n.a)}"
        elif n.op == ROOT:
            text = f"sqrt{f}({value(n.a)})"
        else:
            assert n.op == SELECT
            text = f"{value(n.a)} ? {value(n.b)} : {value(n.c)}"
        lines.append(f"{kind} v{n.index} = {text};")
    for x in plan.outputs + plan.demand_flags:
        if isinstance(x, Expression):
            lines.append(f"z = fma{f}({value(x)}, ({real})0, z);")
    guards = "".join(f" | (v{g.index} ? 0 : 2)" for g in plan.guards)
    lines.append(
        f"unsigned char st = (z == 0 ? 0 : 1) | (m < {'1e6f' if f else '1e14'} ? 0 : 4){guards}; status[i] = st;"
    )
    lines += [f'out[{j}L * n + i] = st ? ({real})nan("") : {value(x)};' for j, x in enumerate(plan.outputs)]
    heads = "".join(f"const {real}* __restrict__ a{k}, " for k in range(len(plan.inputs)))
    body = "\n".join(lines)
    ends = f"{real}* __restrict__ out, unsigned char* status, long n"
    return f'extern "C" __global__ void peer({heads}{ends}) {{\n{body}\n}}\n'


def nvcc_cubin(plan, real: str) -> bytes | None:
    """Machine code of the plan by nvcc."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "k.cu", Path(folder) / "k.cubin"
        source.write_text(cuda_c(plan, real))
        command = ["nvcc", "-O3", "-arch=sm_90", "-cubin", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True)
        return None if done.returncode else target.read_bytes()


def nvcc_seconds(cubin: bytes, arrays: Arrays) -> np.ndarray:
    """Seconds of nvcc's kernel on columns, with the best of three sizes of blocks."""
    function = driver.Module(arrays.device, cubin).function("peer")
    values = [ctypes.c_uint64(p) for p, _ in arrays.pointers]
    values += [ctypes.c_uint64(arrays.out.pointer), ctypes.c_uint64(arrays.status.pointer), ctypes.c_int64(arrays.n)]
    found = [
        seconds(arrays.device, lambda: function.launch(-(-arrays.n // t), t, values))  # noqa: B023
        for t in (32, 64, 128)
    ]
    return min(found, key=lambda x: float(np.median(x)))


def copy_rate(device: Device) -> float:
    """Bytes a second of a copy on the device, read and written."""
    size = 2**31
    a, b = Memory(device, size), Memory(device, size)
    pair = ctypes.c_uint64(b.pointer), ctypes.c_uint64(a.pointer), ctypes.c_size_t(size), ctypes.c_void_p(0)
    return 2 * size / float(np.median(seconds(device, lambda: driver.call("cuMemcpyDtoDAsync_v2", *pair))))


# ---- kernels with 1 to 4 warps

DTYPES, LAYOUTS, WARPS = ("float32", "float64"), ("rows", "columns"), (1, 2, 3, 4)
CHOSEN = ((None, 1),)  # warps by the size of the batch
ALL = tuple((w, 1) for w in WARPS) + ((2, 4), (3, 4))  # warps, groups of 32 states that a block has
COUNTS = {"8 arms": 2**19, "four_bar": 2**22}  # states; 2^20 of the others
LATENCY = 4096  # states of a latency


def model_of(label: str, folder: str | None) -> tuple[sl.Model, list[float] | None]:
    """A model of the tables and its closed state."""
    zoo = sl.zoo
    if label == "8 arms":
        return zoo.arms_with_object(8), zoo.arms_with_object_start(8)
    if label in ROBOTS:
        return sl.load(str(Path(folder or ".") / f"{label}.toml")), None
    return getattr(zoo, label)(), getattr(zoo, f"{label}_start")()


def kernel_of(model: sl.Model, dtype: str, layout: str, warps: int | None, groups: int = 1) -> GpuKernel:
    kernel = sl.compile(model, "forward_dynamics", dtype=dtype, target="cuda", layout=layout, warps=warps)
    assert isinstance(kernel, GpuKernel)
    kernel.codes.groups = groups
    return kernel


def prepared(label: str, folder: str | None, dtype: str, what: tuple) -> tuple[tuple, bytes | float | None]:
    """Make one code, in a process of its own: nvcc's, or ours, which the cache keeps. Ours: the seconds it took."""
    key = (label, dtype, *what)
    model, _ = model_of(label, folder)
    if what[0] == "nvcc":
        saved = Path(folder or ".") / f"{label}_{dtype}.cubin"
        if saved.exists():
            return key, saved.read_bytes()
        plan = sl.compile(model, "forward_dynamics", dtype=dtype, target="cuda").plan
        return key, nvcc_cubin(plan, "float" if dtype == "float32" else "double")
    began = time.perf_counter()
    kernel = kernel_of(model, dtype, *what)
    try:
        for n in (2**20, LATENCY):
            kernel.code((False,) * len(kernel.inputs), n)
    except sl.errors.UnsupportedError:
        return key, None
    return key, time.perf_counter() - began


def prepare(
    labels: list[str], folder: str | None, with_nvcc: bool, kinds: tuple[tuple[int | None, int], ...]
) -> dict[tuple, Any]:
    """All codes; a division that is impossible is None. kinds: CHOSEN or ALL."""
    jobs = [(label, d, ("nvcc",)) for label in reversed(labels) for d in DTYPES if with_nvcc]
    for label in reversed(labels):  # the longest first
        own = [x for x in kinds if label not in ("panda", "four_bar") or x[0] in (None, 1)]
        jobs += [
            (label, d, (layout, *x)) for d in DTYPES for layout in LAYOUTS for x in own if layout == "rows" or x[1] == 1
        ]
    with ProcessPoolExecutor(max(2, (os.cpu_count() or 2) - 2), mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(prepared, label, folder, d, what) for label, d, what in jobs]
        return dict(x.result() for x in waiting)


def speed(label: str, folder: str | None, made: dict[tuple, Any], kinds: tuple[tuple[int | None, int], ...]) -> float:
    """Print the lines of one model; the largest relative distance of a quartile from its median."""
    model, start = model_of(label, folder)
    n = COUNTS.get(label, 2**20)
    given = states(model, start, n)
    spread = 0.0
    for dtype in DTYPES:
        expected = sl.compile(model, "forward_dynamics", dtype=dtype)(*(a[:64].astype(dtype) for a in given))
        for layout in LAYOUTS:
            arrays = small = None
            cells, warm, cold = [], [], []
            for warps, groups in kinds:
                if made.get((label, dtype, layout, warps, groups)) is None:
                    continue
                kernel = kernel_of(model, dtype, layout, warps, groups)
                large = warps or kernel.codes.choice.large
                few = warps or kernel.codes.choice.of_batch(LATENCY, Device.of().multiprocessors)
                name, few_name = (f"{w}" if groups == 1 else f"{w}x{groups}" for w in (large, few))
                if arrays is None or small is None:
                    choice = kernel.codes.choice
                    arrays, small = Arrays(kernel, given), Arrays(kernel, [a[:LATENCY] for a in given])
                launch, code = arrays.launcher(kernel)
                times = seconds(arrays.device, launch)
                low, middle, high = n / np.percentile(times, (75, 50, 25)) / 1e9
                spread = max(spread, high / middle - 1.0, 1.0 - low / middle)
                f = code.function
                chosen = "*" if (large, groups) == (choice.large, 1) else ""
                cells.append(
                    f"{name}{chosen}: {middle:.3g} ({f.fact('registers')} reg, {f.fact('local_bytes')} local, "
                    f"{f.shared // 1024} KB)"
                )
                launch, _ = small.launcher(kernel)
                launch()
                error = np.abs(small.answer()[:64] - expected).max() / np.abs(expected).max()
                if not error <= (1e-11 if dtype == "float64" else 1e-3):
                    print(f"WRONG: {label} {dtype} {layout} {name}: differs from the CPU by {error:.1e}", flush=True)
                if layout == "rows":
                    chosen = (
                        "*" if (few, groups) == (choice.of_batch(LATENCY, arrays.device.multiprocessors), 1) else ""
                    )
                    warm.append(f"{few_name}{chosen}: {1e6 * np.median(latencies(arrays.device, launch, 3)):.1f}")
                    cold.append(f"{few_name}{chosen}: {1e6 * np.median(latencies(arrays.device, launch, 0, 7)):.1f}")
            peer = made.get((label, dtype, "nvcc"))
            if layout == "columns" and peer is not None:
                assert arrays is not None
                ours = arrays.answer().copy()
                times = nvcc_seconds(peer, arrays)
                error = np.nanmax(np.abs(arrays.answer() - ours)) / np.nanmax(np.abs(ours))
                cells.append(f"nvcc: {n / np.median(times) / 1e9:.3g} (differs by {error:.0e})")
            print(f"{label:9s} {dtype[5:]} {layout:8s} " + ", ".join(cells), flush=True)
            if warm:
                print(
                    f"{label:9s} {dtype[5:]} 4096 [us] warm " + ", ".join(warm) + " | cold " + ", ".join(cold),
                    flush=True,
                )
    return spread


def launches_from_python() -> None:
    """Microseconds of the host for a call with tensors of PyTorch, which returns before the kernel has run."""
    try:
        import torch
    except ImportError:
        print("launch from Python: no PyTorch here")
        return
    if not torch.cuda.is_available():
        print("launch from Python: this PyTorch has no CUDA")
        return
    import spanloop.torch as bridge

    model = sl.zoo.puma()
    tensors = [torch.zeros(4096, 6, device="cuda") for _ in range(3)]
    kernel, function = kernel_of(model, "float32", "rows", None), bridge.forward_dynamics(model)
    tau = tensors[2].clone().requires_grad_()

    def gradient() -> None:
        torch.autograd.grad(function(*tensors[:2], tau), tau, tensors[2])

    calls = {
        "kernel(q, v, tau)": lambda: kernel(*tensors),
        "spanloop.torch": lambda: function(*tensors),
        "with gradient": gradient,
        "torch.add": lambda: torch.add(tensors[0], tensors[1]),
    }
    found = []
    for name, call in calls.items():
        call()
        torch.cuda.synchronize()
        samples = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            for _ in range(300):
                call()
            samples.append((time.perf_counter() - began) / 300)
            torch.cuda.synchronize()
        found.append(f"{name} {1e6 * float(np.median(samples)):.1f}")
    print("launch from Python, 4096 states [us]: " + ", ".join(found), flush=True)


def first_calls(folder: str | None, labels: list[str]) -> None:
    """Seconds of the first call of a kernel with an empty cache, and from the cache."""
    for label in labels:
        model, start = model_of(label, folder)
        given = states(model, start, 4096)
        with tempfile.TemporaryDirectory() as cache:
            before, os.environ["SPANLOOP_CACHE"] = os.environ.get("SPANLOOP_CACHE"), cache
            took = []
            for _ in range(2):
                began = time.perf_counter()
                sl.compile(model, "forward_dynamics", dtype="float32", target="cuda")(*given)
                took.append(time.perf_counter() - began)
            os.environ.pop("SPANLOOP_CACHE")
            if before is not None:
                os.environ["SPANLOOP_CACHE"] = before
        print(
            f"first call {label}: {took[0]:.2f} s, from the cache {1e3 * took[1]:.0f} ms (4096 states, NumPy)",
            flush=True,
        )


def save(folder: Path) -> None:
    """Robots of other packages, and nvcc's codes of all models."""
    from trees import pair

    for name in ROBOTS:
        pair(name)[0].save(str(folder / f"{name}.toml"))
    for label in (*ROBOTS, *MECHANISMS) if shutil.which("nvcc") else ():
        for dtype in DTYPES:
            _, code = prepared(label, str(folder), dtype, ("nvcc",))
            if isinstance(code, bytes):
                (folder / f"{label}_{dtype}.cubin").write_bytes(code)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--save")
    parser.add_argument("--models")
    parser.add_argument("--only", help="names of models, separated by commas")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--chosen", action="store_true", help="only the codes that calls take")
    parser.add_argument("--agreement", action="store_true", help="only that of all functions with the CPU")
    options = parser.parse_args()
    if options.agreement:
        agreements()
        return
    if options.save:
        save(Path(options.save))
        return
    began = time.perf_counter()
    device = Device.of()
    print(
        f"{device.name}, capability {device.capability}, driver CUDA {device.driver}, Python {sys.version.split()[0]}"
    )
    print(f"copy: {copy_rate(device) / 1e12:.2f} TB/s")
    labels = [*(ROBOTS if options.models else ()), *MECHANISMS]
    labels = [x for x in labels if not options.only or x in options.only.split(",")]
    kinds = CHOSEN if options.chosen else ALL
    made = prepare(labels, options.models, shutil.which("nvcc") is not None, kinds)
    print(f"{len(made)} codes made in {time.perf_counter() - began:.0f} s", flush=True)
    spread = max(speed(label, options.models, made, kinds) for label in labels)
    print(
        f"quartiles within {100 * spread:.1f} % of the medians; {time.perf_counter() - began:.0f} s so far", flush=True
    )
    launches_from_python()
    first_calls(options.models, [x for x in ("panda", "talos") if x in labels])
    print(f"{time.perf_counter() - began:.0f} s so far", flush=True)
    if not options.quick:
        agreements()


def agreement_of(name: str) -> tuple[str, dict[str, tuple[float, str]], int]:
    """The agreement of one model of the zoo."""
    model = getattr(sl.zoo, name)(*SIZES.get(name, ()))
    start = getattr(sl.zoo, f"{name}_start")(*SIZES.get(name, ())) if model.loops or model.couplings else None
    return name, *agreement(name, model, start)


def agreements() -> None:
    """All functions of the models of the zoo, on the GPU and on the CPU; a process a model."""
    total, worst = 0, {"float64": (0.0, ""), "float32": (0.0, "")}
    names = [x for x in sl.zoo.names() if x != "random_model"]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for name, found, count in pool.map(agreement_of, names):
            total += count
            parts = ", ".join(f"{d} {e:.1e} ({f})" for d, (e, f) in found.items())
            print(f"  {name}: {count} kernels, {parts}", flush=True)
            worst = {d: max(worst[d], (found[d][0], f"{name} {found[d][1]}")) for d in worst}
    print(f"agreement of {total} kernels with the CPU: {worst}")


if __name__ == "__main__":
    main()
