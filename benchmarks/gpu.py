"""Kernels on an NVIDIA GPU: agreement with the CPU's kernels, speed, latency, and nvcc on the same tape beside them.

    python benchmarks/gpu.py --save FOLDER      robots of other packages as TOML files
    python benchmarks/gpu.py --models FOLDER [--quick]

Speed is in G states/s of 2^20 states (eight arms: 2^19, four-bar: 2^22), medians of 7 launches timed by events,
quartiles in brackets; status and NaN rows included. nvcc: the plan as CUDA C, columns, the same checks of inputs,
outputs and demands.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

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
            if (np.isnan(a) != np.isnan(b)).any():
                print(f"  {label} {function} {dtype}: NaN rows differ ({np.isnan(a).sum()}, {np.isnan(b).sum()})")
            scale = max(np.nanmax(np.abs(a), initial=0.0), 1e-30)
            error = float(np.nanmax(np.abs(a - b), initial=0.0) / scale)
            count += 1
            if error > worst[dtype][0]:
                worst[dtype] = (error, function)
    return worst, count


class Timed:
    """A kernel with arrays on the device, timed by events."""

    def __init__(self, kernel: GpuKernel, given: list[np.ndarray]):
        device = self.device = Device.of()
        laid = [np.ascontiguousarray(a.T if kernel.layout == "columns" else a, kernel.dtype) for a in given]
        self.n, self.kernel = len(given[0]), kernel
        self.kept = [Memory(device, a.nbytes) for a in laid]
        for m, a in zip(self.kept, laid, strict=True):
            m.write(a.ctypes.data, a.nbytes)
        self.width = math.prod(kernel.shape)
        self.out, self.status = Memory(device, self.n * self.width * kernel.dtype.itemsize), Memory(device, self.n)
        self.code = kernel.code(kernel._common(), self.n)
        self.pointers = [(m.pointer, k) for m, (_, k) in zip(self.kept, kernel.inputs, strict=True)]
        device.synchronize()

    def launch(self) -> None:
        self.kernel._launch(self.code, self.pointers, self.out.pointer, self.status.pointer, self.n, 0)

    def answer(self) -> np.ndarray:
        shape = (self.width, self.n) if self.kernel.layout == "columns" else (self.n, self.width)
        out = np.empty(shape, self.kernel.dtype)
        self.out.read(out.ctypes.data, out.nbytes)
        self.device.synchronize()
        return out.T if self.kernel.layout == "columns" else out


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


def latencies(device: Device, launch, repeats: int = 15) -> np.ndarray:
    """Seconds from the start of one launch to its end; a copy keeps the device busy until all is in the queue."""
    size = 2**30
    a, b = Memory(device, size), Memory(device, size)
    pair = ctypes.c_uint64(b.pointer), ctypes.c_uint64(a.pointer), ctypes.c_size_t(size), ctypes.c_void_p(0)

    def once() -> float:
        begin, end, passed = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
        driver.call("cuEventCreate", ctypes.byref(begin), 0)
        driver.call("cuEventCreate", ctypes.byref(end), 0)
        driver.call("cuMemcpyDtoDAsync_v2", *pair)
        driver.call("cuEventRecord", begin, ctypes.c_void_p(0))
        launch()
        driver.call("cuEventRecord", end, ctypes.c_void_p(0))
        device.synchronize()
        driver.call("cuEventElapsedTime", ctypes.byref(passed), begin, end)
        return passed.value * 1e-3

    return np.sort([once() for _ in range(repeats)])


def rate(times: np.ndarray, n: int) -> str:
    low, middle, high = n / np.percentile(times, (75, 50, 25)) / 1e9
    return f"{middle:.3g} ({low:.3g}-{high:.3g})"


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


def nvcc_seconds(plan, real: str, timed: Timed) -> tuple[np.ndarray | None, float, float]:
    """Seconds of nvcc's kernel on the same columns; its compile time; its largest relative difference from ours."""
    if shutil.which("nvcc") is None:
        return None, 0.0, 0.0
    timed.launch()
    ours = timed.answer().copy()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "k.cu", Path(folder) / "k.cubin"
        source.write_text(cuda_c(plan, real))
        began = time.perf_counter()
        done = subprocess.run(
            ["nvcc", "-O3", "-arch=sm_90", "-cubin", str(source), "-o", str(target)], capture_output=True, text=True
        )
        took = time.perf_counter() - began
        if done.returncode:
            print(done.stderr[:500])
            return None, took, 0.0
        function = driver.Module(timed.device, target.read_bytes()).function("peer")
    best = None
    for threads in (32, 64, 128):
        values = [ctypes.c_uint64(p) for p, _ in timed.pointers]
        values += [ctypes.c_uint64(timed.out.pointer), ctypes.c_uint64(timed.status.pointer), ctypes.c_int64(timed.n)]
        found = seconds(timed.device, lambda: function.launch(-(-timed.n // threads), threads, values))  # noqa: B023
        best = found if best is None or np.median(found) < np.median(best) else best
    theirs = timed.answer()
    return best, took, float(np.nanmax(np.abs(theirs - ours)) / np.nanmax(np.abs(ours)))


def copy_rate(device: Device) -> float:
    """Bytes a second of a copy on the device, read and written."""
    size = 2**31
    a, b = Memory(device, size), Memory(device, size)
    pair = ctypes.c_uint64(b.pointer), ctypes.c_uint64(a.pointer), ctypes.c_size_t(size), ctypes.c_void_p(0)
    return 2 * size / float(np.median(seconds(device, lambda: driver.call("cuMemcpyDtoDAsync_v2", *pair))))


def speed(label: str, model: sl.Model, start, n: int, quick: bool) -> None:
    given = states(model, start, n)
    for dtype in ("float32", "float64"):
        line = f"{label:9s} {dtype[5:]}"
        for layout in ("rows", "columns"):
            few, took = [a[:2] for a in given], []
            for _ in range(2):  # the second time from the cache
                began = time.perf_counter()
                kernel = sl.compile(model, "forward_dynamics", dtype=dtype, target="cuda", layout=layout)
                kernel(*([a.T for a in few] if layout == "columns" else few))
                took.append(time.perf_counter() - began)
            timed = Timed(kernel, given)
            times = seconds(timed.device, timed.launch)
            f = timed.code.function
            facts = f"{f.fact('registers')} reg, {f.fact('local_bytes')} local, {f.shared} shared"
            line += f" | {layout} {rate(times, n)}, first {took[0]:.2f} s, again {1e3 * took[1]:.0f} ms, {facts}"
            if layout == "rows":
                moved = n * (sum(k for _, k in kernel.inputs) + timed.width) * kernel.dtype.itemsize
                line += f", {moved / np.median(times) / 1e12:.2f} TB/s"
                small = Timed(kernel, [a[:4096] for a in given])
                line += f", 4096 states {1e6 * np.median(latencies(timed.device, small.launch)):.1f} us"
        if not quick:
            peer, seconds_of_nvcc, error = nvcc_seconds(kernel.plan, "float" if dtype == "float32" else "double", timed)
            line += (
                ""
                if peer is None
                else f" | nvcc {rate(peer, n)}, compiled in {seconds_of_nvcc:.1f} s, differs by {error:.0e}"
            )
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--save")
    parser.add_argument("--models")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.save:
        from trees import pair

        for name in ROBOTS:
            pair(name)[0].save(str(Path(options.save) / f"{name}.toml"))
        return
    device, zoo = Device.of(), sl.zoo
    print(
        f"{device.name}, capability {device.capability}, driver CUDA {device.driver}, Python {sys.version.split()[0]}"
    )
    print(f"copy: {copy_rate(device) / 1e12:.2f} TB/s")
    robots = [(x, sl.load(str(Path(options.models) / f"{x}.toml")), None) for x in ROBOTS] if options.models else []
    closed = [("four_bar", zoo.four_bar(), zoo.four_bar_start()), ("stewart", zoo.stewart(), zoo.stewart_start())]
    arms = [("8 arms", zoo.arms_with_object(8), zoo.arms_with_object_start(8))]
    for label, model, start in robots + closed + arms:
        speed(label, model, start, {"8 arms": 2**19, "four_bar": 2**22}.get(label, 2**20), options.quick)
    worst = {"float64": (0.0, ""), "float32": (0.0, "")}
    total = 0
    for name in zoo.names():
        if name in ("random_model",):
            continue
        model = getattr(zoo, name)(*SIZES.get(name, ()))
        start = getattr(zoo, f"{name}_start")(*SIZES.get(name, ())) if model.loops or model.couplings else None
        if options.quick and model.nv > 24:
            continue
        found, count = agreement(name, model, start)
        total += count
        print(
            f"  {name}: {count} kernels, " + ", ".join(f"{d} {e:.1e} ({f})" for d, (e, f) in found.items()), flush=True
        )
        worst = {d: max(worst[d], (found[d][0], f"{name} {found[d][1]}")) for d in worst}
    print(f"agreement of {total} kernels with the CPU: {worst}")


if __name__ == "__main__":
    main()
