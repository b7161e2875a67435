"""Runs on an NVIDIA GPU: steps a second, agreement with the CPU, latency, and a million runs through sl.simulate.

    python benchmarks/gpu.py --save FOLDER               robots of other packages as TOML files
    python benchmarks/gpu_rollouts.py --models FOLDER [--quick | --chosen]

RK4, steps of 1 ms, 2^20 runs, no limits; loops are projected. Speed is in G steps/s of stretches of 50 steps, host time
from call to end (snapshot and status included), medians of 5, quartiles in brackets, for every way of rendering
(compiler/render/gpu/rollout.py); the default is marked *. Errors are those of q and v after 50 steps, over the largest
number, against the CPU in float64, and the largest closure error of any step. "local, compact": of a schedule with
shorter code (ScheduleBuilder.compact); "local, 2 blocks": with 2 blocks of 64 threads on a multiprocessor.
--chosen measures the default alone. Machine code is made first, in as many processes as there are cores.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from gpu import DTYPES, model_of, states

import spanloop as sl
from spanloop.compiler.render.gpu.rollout import WAYS, way_of
from spanloop.compiler.runtime.gpu import driver
from spanloop.compiler.runtime.gpu.device_runs import DeviceRuns
from spanloop.compiler.runtime.gpu.driver import Device
from spanloop.compiler.runtime.gpu.rollout import GpuRollout
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.simulation.integrators.integrator import Integrator, schedule, schedule_key
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import Problem
from spanloop.simulation.simulate import robot_of, with_stiffness

H, STEPS, DISTINCT = 1e-3, 50, 64


def rate(times: np.ndarray, n: int) -> str:
    """G runs a second, with quartiles."""
    low, middle, high = n / np.percentile(times, (75, 50, 25)) / 1e9
    return f"{middle:.3g} ({low:.3g}-{high:.3g})"


class Motion:
    """A model with 64 states, and its time loop on the CPU and on the GPU."""

    def __init__(self, model: sl.Model, start):
        q, v, tau = states(model, start, DISTINCT)
        given = {"tau": tau[:, None], "limits": "ignore", "contacts": "ignore"}
        problem = Problem.of(robot_of(model), q, 0.3 * v, step=H, **given)
        self.problem, self.integrator = with_stiffness(problem, Integrator("rk4"), H)

    def schedule(self, dtype: str, compact: bool = False):
        return schedule(self.problem.system, self.problem.events, "rk4", dtype, compact)

    def key(self, dtype: str) -> str:
        return schedule_key(self.problem.system, self.problem.events, "rk4", dtype)

    def layout(self, dtype: str) -> StateLayout:
        return StateLayout.of(self.problem.system, self.problem.events, dtype)

    def arrays(self, dtype: str, n: int):
        """State, constants and controls of n runs."""
        times = -(-n // DISTINCT)
        state = self.problem.state(self.layout(dtype)).astype(dtype)
        controls = self.problem.inputs.rows(self.problem.batch, STEPS, lambda s: []).astype(dtype)
        constants = np.ascontiguousarray(self.problem.constants, dtype)
        if len(constants) > 1:
            constants = np.tile(constants, (times, 1))[:n]
        return (
            np.ascontiguousarray(np.tile(state, (times, 1))[:n]),
            constants,
            np.ascontiguousarray(np.tile(controls, (times, 1, 1))[:n]),
        )

    def on_cpu(self) -> tuple[np.ndarray, np.ndarray, float]:
        """q and v of the 64 runs after all steps, and seconds a step of one run on one thread."""
        state, constants, controls = self.arrays("float64", DISTINCT)
        own = Rollout(self.key("float64"), lambda: self.schedule("float64"))
        why = np.zeros(DISTINCT, np.uint8)
        for _ in range(2):  # the first time it compiles
            moved, began = state.copy(), time.perf_counter()
            own.run(moved, constants, controls, why, Steps(0.0, H, 0, STEPS))
        took = (time.perf_counter() - began) / (DISTINCT * STEPS)
        assert not why.any()
        return *self.q_v(moved, "float64"), took

    def q_v(self, state: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray]:
        places = self.layout(dtype).places
        return state[:, places["q"]].astype(float), state[:, places["v"]].astype(float)


def measured(runs: DeviceRuns, controls: np.ndarray, repeats: int) -> np.ndarray:
    """Seconds of a stretch, sorted; each begins with the same states."""
    found = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        runs.advance(controls, Steps(0.0, H, 0, STEPS))  # not where the last one ended: it takes the place of that one
        found.append(time.perf_counter() - began)
    return np.sort(found[1:])


def variant(label: str, motion: Motion, dtype: str, name: str) -> GpuRollout:
    """The time loop in a way of rendering; ", compact" or ", 2 blocks" may follow its name."""
    way, _, more = name.partition(", ")
    compact, resident = more == "compact", int(more.split()[0]) if more.endswith("blocks") else None
    key = motion.key(dtype) + "compact" * compact
    return GpuRollout(key, lambda: motion.schedule(dtype, compact), dtype, label, way=way, resident=resident)


def prepared(label: str, folder: str | None, dtype: str, way: str | None) -> tuple[tuple, float]:
    """Make one time loop, which the cache keeps; the seconds it took. None: the CPU's."""
    motion = Motion(*model_of(label, folder))
    began = time.perf_counter()
    if way is None:
        motion.on_cpu()
    else:
        variant(label, motion, dtype, way).function  # noqa: B018
    return (label, dtype, way), time.perf_counter() - began


def speed(label: str, motion: Motion, dtype: str, n: int, ways: tuple[str, ...], made: dict[tuple, float]) -> None:
    q, v, cpu = motion.on_cpu()
    chosen = way_of(motion.schedule(dtype))
    for way in ways:
        rollout = variant(label, motion, dtype, way)
        function, took = rollout.function, made[label, dtype, way]
        facts = f"{function.fact('registers')} reg, {function.fact('local_bytes')} local, made in {took:.1f} s"
        line = f"{label:9s} {dtype[5:]} {way + '*' * (way == chosen):15s}"
        for runs_at_once in (n, 4096):
            runs = DeviceRuns(rollout)
            state, constants, controls = motion.arrays(dtype, runs_at_once)
            runs.place(state, constants, np.zeros(runs_at_once, np.uint8))
            times = measured(runs, controls, 5)
            if runs_at_once == 4096:
                line += f" | 4096 runs: {1e6 * np.median(times) / STEPS:.2f} us a step"
                continue
            line += f" {rate(times / STEPS, n)} G steps/s"
            state, why, counts = runs.fetched(STEPS)
            found = motion.q_v(state[:DISTINCT], dtype)
            error = max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(found, (q, v), strict=True))
            last = state[(n // DISTINCT - 1) * DISTINCT :][:DISTINCT]
            same = np.array_equal(last, state[:DISTINCT])
            line += f" | error {error:.1e}"
            if "loops" in motion.layout(dtype):
                line += f", closure {state[:, motion.layout(dtype).places['loops']][:, 0].max():.1e}"
            if why.any() or (counts != STEPS).any() or not same:
                line += f" | {int((why != 0).sum())} RUNS ENDED, counts {counts.min()}-{counts.max()}, same: {same}"
            del runs
        print(f"{line} | {facts} | CPU, one thread: {1e9 * cpu:.0f} ns a step", flush=True)


def most_memory() -> int:
    """Bytes of the device that were allocated at once, since the last time."""
    Device.of().enter()
    handle, pool, most = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    driver.call("cuDeviceGet", ctypes.byref(handle), 0)
    driver.call("cuDeviceGetDefaultMemPool", ctypes.byref(pool), handle)
    driver.call("cuMemPoolGetAttribute", pool, 8, ctypes.byref(most))
    driver.call("cuMemPoolSetAttribute", pool, 8, ctypes.byref(ctypes.c_uint64(0)))
    return most.value


def million(n: int, dtype: str) -> None:
    """A million runs of a four-bar, end to end."""
    model, start = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    q, v, _ = (np.tile(x, (-(-n // DISTINCT), 1))[:n] for x in states(model, start, DISTINCT))
    single = sl.Integrator("rk4", dtype=dtype, progress=False)
    sl.simulate(model, q[:64], v[:64], duration=0.002, integrator=single, target="cuda")  # compiled
    for duration in (0.1, 1.0):
        most_memory()
        began = time.perf_counter()
        run = sl.simulate(model, q, v, duration=duration, sample=duration / 2, integrator=single, target="cuda")
        took = time.perf_counter() - began
        alone = sl.simulate(model, q[:8], v[:8], duration=duration, sample=duration / 2)
        ends = dict(Counter(str(x.reason) for x in run.outcomes))
        print(
            f"{n} four-bars, {duration:g} s, {dtype}: {took:.2f} s ({n * duration / H / took / 1e9:.3g} G steps/s in "
            f"all), differs by {np.abs(run.q[:8] - alone.q).max():.1e} from the CPU, closure {run.residual.max():.1e}, "
            f"ends {ends}, {most_memory() / 1e9:.2f} GB of the device",
            flush=True,
        )


def ways_of(label: str, folder: str | None, dtype: str, options: argparse.Namespace) -> tuple[str, ...]:
    """The ways of rendering that are measured."""
    if options.chosen:
        return (way_of(Motion(*model_of(label, folder)).schedule(dtype)),)
    more: tuple[str, ...] = () if label == "four_bar" else ("local, 2 blocks", "local, 3 blocks")
    if label == "stewart":
        more = ("local, compact", "merged, compact", *more)
    if options.quick and dtype == "float64":
        return ("local", *more[:1])
    return (*(WAYS[1:] if options.quick else WAYS), *more)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", help="folder with panda.toml and anymal.toml")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--chosen", action="store_true", help="only the default way of rendering")
    parser.add_argument("--runs", type=int, default=2**20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    labels = [*(("panda", "anymal") if options.models else ()), "stewart", "four_bar"]
    jobs = [(x, d, w) for x in labels for d in DTYPES for w in ways_of(x, options.models, d, options)]
    jobs[:0] = [(x, "float64", None) for x in labels]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        made = dict(pool.map(prepared, *zip(*((x, options.models, d, w) for x, d, w in jobs), strict=True)))
    device = Device.of()
    print(f"{device.name}, driver CUDA {device.driver}, Python {sys.version.split()[0]}, {options.runs} runs")
    for label in labels:
        motion = Motion(*model_of(label, options.models))
        for dtype in DTYPES:
            speed(
                label, motion, dtype, options.runs, tuple(w for x, d, w in jobs if (x, d) == (label, dtype) and w), made
            )
    for dtype in ("float32",) if options.quick or options.chosen else DTYPES:
        million(10**6, dtype)


if __name__ == "__main__":
    main()
