"""Steps of long chains, as loops over links beside unrolled: `python benchmarks/long_runs.py [links ...]`.

RK4 with 1 ms, no torques. Right-angled chains (zoo.chain) and chains with random axes, placements and inertias. First
step: processor time of the process from the model to the end of one step, nothing in a cache. Steps: processor time of
one thread for each run and step, medians (quartiles), variants interleaved. PTX: bytes of the time loop for a GPU in
float32, and processor time of `ptxas -arch=sm_90`, where that is installed.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["SPANLOOP_CACHE"] = "off"

import numpy as np
from timing import calls, compare

import spanloop as sl
from spanloop.compiler.runtime.gpu.rollout import GpuRollout
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.simulation.integrators.integrator import schedule
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import Problem
from spanloop.simulation.simulate import robot_of

LENGTHS = (101, 200, 1000)
BATCH, STEPS, H = 64, 20, 1e-3
LONGEST_PTX = 200


class Motion:
    """The time loop of a chain, looped or unrolled, made and compiled; `seconds`: until its first step was taken."""

    def __init__(self, links: int, seed: int | None, unrolled: bool):
        start = time.process_time()
        model = sl.zoo.chain(links, seed=seed)
        problem = Problem.of(robot_of(model), None, None, step=H)
        taken = problem.system, problem.events, "rk4"
        self.rollout = Rollout(f"{links} {seed} {unrolled}", lambda: schedule(*taken, "float64", unrolled=unrolled))
        self.row = problem.state(StateLayout.of(problem.system, problem.events, "float64"))
        self.constants = np.ascontiguousarray(problem.constants)
        self.controls = np.zeros((1, 1, self.rollout.schedule.width(self.rollout.schedule.controls)))
        self.state, self.why = self.row.copy(), np.zeros(1, np.uint8)
        self.step(1)
        self.seconds = time.process_time() - start
        self.on_gpu = GpuRollout("", lambda: schedule(*taken, "float32", unrolled=unrolled), "float32")

    def of(self, runs: int) -> None:
        """Start again with so many runs."""
        self.state, self.why = np.repeat(self.row, runs, axis=0), np.zeros(runs, np.uint8)
        self.step(1)

    def step(self, count: int) -> None:
        self.rollout.run(self.state, self.constants, self.controls, self.why, Steps(0.0, H, 0, count))
        assert not self.why.any()


def assembled(ptx: str) -> float:
    """Processor time of ptxas [s]; NaN where there is none."""
    if shutil.which("ptxas") is None:
        return float("nan")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.ptx"
        file.write_text(ptx)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(["ptxas", "-arch=sm_90", str(file), "-o", str(file.with_suffix(".cubin"))], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main() -> None:
    sl.simulate(sl.zoo.pendulum(), duration=H, step=H)  # so that imports are not timed
    for links in map(int, sys.argv[1:]) if len(sys.argv) > 1 else LENGTHS:
        for kind, seed in (("right-angled", None), ("random", 1)):
            motions = {name: Motion(links, seed, name == "unrolled") for name in ("looped", "unrolled")}
            first = ", ".join(f"{name} {m.seconds:.1f} s" for name, m in motions.items())
            print(f"{kind} chain of {links} links: first step {first}", flush=True)
            for runs in (1, BATCH):
                for m in motions.values():
                    m.of(runs)
                variants = {name: calls(f"step({STEPS})", step=m.step) for name, m in motions.items()}
                found = compare(variants, work=runs * STEPS, samples=15)
                words = ", ".join(f"{name} {x.text()} ns" for name, x in found.items())
                print(f"  a step of {'one run' if runs == 1 else f'each of {runs} runs'}: {words}", flush=True)
            for name, m in motions.items() if links <= LONGEST_PTX and seed is not None else ():
                start = time.process_time()
                ptx = m.on_gpu.ptx
                took = time.process_time() - start
                print(f"  {name}: {len(ptx)} bytes of PTX in {took:.1f} s, ptxas {assembled(ptx):.1f} s", flush=True)


if __name__ == "__main__":
    main()
