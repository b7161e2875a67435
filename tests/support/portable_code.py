"""Plans and schedules as WebAssembly (run by wasmtime) and as C (gcc), on memories that NumPy sees."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from spanloop.compiler.lower import Plan, Schedule
from spanloop.compiler.portable.c_plan import plan_function, sincos_function
from spanloop.compiler.portable.c_schedule import CSchedule
from spanloop.compiler.portable.memory import Memory
from spanloop.compiler.portable.pieces import PortablePlan
from spanloop.compiler.portable.wasm_program import Program

QUICK = 100_000  # bytes of a module beyond which it is compiled as fast as can be
GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="gcc is not installed")
HEAD = "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-Wno-unused-function")


class Wasm:
    """An instance of a module: its memory as numbers, and its functions."""

    def __init__(self, binary: bytes):
        wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is not installed")
        settings = wasmtime.Config()
        settings.cranelift_opt_level = "none" if len(binary) > QUICK else "speed"
        self._store = wasmtime.Store(wasmtime.Engine(settings))
        module = wasmtime.Module(self._store.engine, binary)
        self._exports = wasmtime.Instance(self._store, module, []).exports(self._store)
        found = self._exports["memory"]
        size, address = found.data_len(self._store), ctypes.addressof(found.data_ptr(self._store).contents)
        self.memory = np.frombuffer((ctypes.c_char * size).from_address(address), np.float64)

    def call(self, name: str) -> int:
        return self._exports[name](self._store) or 0


def compiled(source: str, *options: str) -> ctypes.CDLL:
    """A library of C source; warnings are errors."""
    assert GCC is not None
    with tempfile.TemporaryDirectory() as folder:
        file, library = Path(folder) / "code.c", Path(folder) / "code.so"
        file.write_text(HEAD + source)
        line = [
            GCC,
            "-std=c99",
            "-O1",
            "-ffp-contract=off",
            "-DSPANLOOP_NO_FMA",
            *WARNINGS,
            *options,
            "-shared",
            "-fPIC",
        ]
        done = subprocess.run([*line, str(file), "-o", str(library), "-lm"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]
        return ctypes.CDLL(str(library))


class CSteps:
    """A schedule in C, with a memory of its own."""

    def __init__(self, schedule: Schedule, *options: str):
        code = CSchedule(schedule, "x")
        begin = "void begin(double *m);\nvoid begin(double *m) { x_begin(m); }\n" if schedule.begin else ""
        text = sincos_function("double") + code.source() + begin
        self._library = compiled(text + "int step(double *m);\nint step(double *m) { return x_step(m); }\n", *options)
        self.places = code.memory
        self.memory = np.zeros(code.memory.size)
        self._pointer = ctypes.c_void_p(self.memory.ctypes.data)

    def call(self, name: str) -> int:
        return getattr(self._library, name)(self._pointer)


class WasmSteps(Wasm):
    """A schedule in WebAssembly."""

    def __init__(self, schedule: Schedule):
        program = Program()
        program.add_schedule(schedule)
        super().__init__(program.binary())
        self.places = program.memory


def view(steps: CSteps | WasmSteps, name: str) -> np.ndarray:
    """An array of a schedule, in its memory."""
    return array(steps.memory, steps.places, name)


def array(memory: np.ndarray, places: Memory, name: str) -> np.ndarray:
    return memory[places.places[name] : places.places[name] + places.sizes[name]]


def plan_in_wasm(plan: Plan, sizes: Sequence[int], length: int, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arrays that a plan fills."""
    from spanloop.compiler.portable import wasm_binary as w
    from spanloop.compiler.portable.wasm_plan import add_plan, add_sincos

    p, module = PortablePlan(plan, tuple(sizes), length, length), w.Module()
    counts = [*(n for _, n in plan.inputs), *sizes]
    places = np.concatenate([[0], np.cumsum(counts)]).astype(int)
    number = add_plan(module, add_sincos(module), p, int(places[-1]))
    code = b"".join(w.i32(8 * int(x)) for x in places[:-1]) + w.call(number)
    exports = {"run": module.add([], [], [], code)}
    ran = Wasm(module.binary(exports, 8 * (int(places[-1]) + p.segments.n_slots) or 8))
    parts = [ran.memory[a:b] for a, b in pairwise(places)]
    for part, x in zip(parts, inputs, strict=False):
        part[:] = x
    ran.call("run")
    return [x.copy() for x in parts[len(plan.inputs) :]]


def plan_in_c(
    plan: Plan, sizes: Sequence[int], length: int, inputs: Sequence[np.ndarray], real: str = "double"
) -> list[np.ndarray]:
    """The arrays that a plan fills, by C."""
    p, dtype = PortablePlan(plan, tuple(sizes), length, length), np.dtype("f8" if real == "double" else "f4")
    n = len(plan.inputs) + len(sizes)
    head = f"void run({real} **x)"
    call = f"{head};\n{head} {{ {'(void)x; ' * (not n)}x_plan({', '.join(f'x[{k}]' for k in range(n))}); }}\n"
    library = compiled(sincos_function(real) + plan_function(p, "x_plan", real) + call)
    arrays = [np.ascontiguousarray(x, dtype) for x in inputs] + [np.zeros(k, dtype) for k in sizes]
    library.run((ctypes.c_void_p * max(n, 1))(*(x.ctypes.data for x in arrays)))
    return arrays[len(plan.inputs) :]


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal to the bit; one NaN is as another, as WebAssembly leaves their bits open."""
    a, b = np.atleast_1d(a), np.atleast_1d(b)
    both = np.isnan(a) & np.isnan(b)
    return a.shape == b.shape and bool(np.all(both | (a.view(np.uint64) == b.view(np.uint64))))


def begin_with(steps: CSteps | WasmSteps, start: Mapping[str, np.ndarray], h: float) -> None:
    """Write what a motion begins with."""
    for name, x in start.items():
        view(steps, name)[:] = x
    view(steps, "t")[:], view(steps, "h")[:] = 0.0, h


def run_together(
    motion, steps: int, controls=None, options: Sequence[str] = ()
) -> tuple[np.ndarray, list[int], WasmSteps]:
    """States (q, v projected where closures are) before each step and at the end, by wasm and C, asserted equal to
    the bit; with the status of the step that ended the run, if one did."""
    s, start = motion.schedule, motion.start
    both = [WasmSteps(s), CSteps(s, *options)]
    for x in both:
        begin_with(x, start, motion.step)
    names = [*s.state, *s.record]
    rows, ended = [], 0

    def state(x):
        return np.concatenate([view(x, n) for n in names])

    for k in range(steps + 1):
        found = []
        for x in both:
            view(x, "t")[:], view(x, "h")[:] = k * motion.step, motion.step
            if controls is not None:
                view(x, "u")[:] = controls(k)
            if s.begin:
                x.call("begin")
            found.append(state(x))
        assert same_bits(*found), (k, np.abs(found[0] - found[1]).max())
        rows.append(found[0])
        if k < steps:
            status = [x.call("step") for x in both]
            assert status[0] == status[1], (k, status)
            if status[0]:
                ended = status[0]
                break
    if s.log is not None:
        logs = [np.concatenate([view(x, "logged"), view(x, "log")]) for x in both]
        assert same_bits(*logs)
    return np.array(rows), ended, both[0]
