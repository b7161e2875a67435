"""Steps as WebAssembly in node, beside the compiled rollout of sl.simulate: `python benchmarks/portable.py [case ...]`.

RK4 with 1 ms, loops projected, one run from rest. Times are medians (quartiles) of this run, processor time, samples of
both in turn; node takes its steps through the ES module of sl.export. The time to compile is wall time of fresh
processes: unpacking, compilation and the first step of the module, beside LLVM's for the rollout.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from timing import Spread

import spanloop as sl
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.exports.portable_motion import PortableMotion
from spanloop.simulation.integrators.step_schedule import StateLayout

H, STEPS, SAMPLES, STARTS = 1e-3, 1000, 31, 7
CASES = {
    "four_bar": (sl.zoo.four_bar, sl.zoo.four_bar_start, ()),
    "stewart": (sl.zoo.stewart, sl.zoo.stewart_start, ()),
    "three_pumas": (sl.zoo.three_pumas, sl.zoo.three_pumas_start, ()),
    "8 arms": (sl.zoo.arms_with_object, sl.zoo.arms_with_object_start, (8,)),
}
SERVER = """
import { createInterface } from "node:readline";
const begin = performance.now();
const { load } = await import(process.argv[2]);
const { motion } = await load();
motion.step();
console.log(performance.now() - begin);
motion.reset();
for await (const line of createInterface({ input: process.stdin })) {
  const n = Number(line), start = process.cpuUsage();
  for (let k = 0; k < n; k++) { motion.reset(); motion.step(STEPS); }
  const used = process.cpuUsage(start);
  console.log(JSON.stringify([(used.user + used.system) * 1e-6 / (n * STEPS), Array.from(motion.q)]));
}
"""


class Node:
    """A node that has loaded a module and takes steps on request."""

    def __init__(self, script: Path, module: Path):
        line = ["node", str(script), module.as_uri()]
        self.process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.first_step = 1e-3 * float(self._read())

    def _read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def seconds(self, repeats: int) -> tuple[float, list[float]]:
        """Processor time of a step, and q after STEPS of them."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{repeats}\n")
        self.process.stdin.flush()
        return json.loads(self._read())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Compiled:
    """The compiled time loop of the same motion."""

    def __init__(self, motion: PortableMotion, name: str):
        p, s = motion.problem, motion.schedule
        layout = StateLayout.of(p.system, p.events, "float64")
        start = time.perf_counter()
        self.rollout = Rollout(f"benchmark {name}", lambda: s, "float64")
        self.start, self.q = p.state(layout), layout.places["q"]
        self.controls = np.zeros((1, 1, s.width(s.controls)))
        self.constants = np.zeros((1, max(1, s.width(s.constants))))
        self.state, self.why = self.start.copy(), np.zeros(1, np.uint8)
        self.go()
        self.first = time.perf_counter() - start

    def go(self) -> None:
        np.copyto(self.state, self.start)
        self.why[:] = 0
        self.rollout.run(self.state, self.constants, self.controls, self.why, Steps(0.0, H, 0, STEPS, STEPS))

    def seconds(self, repeats: int) -> float:
        start = time.thread_time()
        for _ in range(repeats):
            self.go()
        return (time.thread_time() - start) / (repeats * STEPS)


def measured(name: str, folder: Path) -> str:
    make, start, arguments = CASES[name]
    model, q = make(*arguments), start(*arguments)
    options = {"step": H, "integrator": "rk4", "limits": "ignore"}
    module = sl.export(model, folder / f"{name.replace(' ', '')}.mjs", q=q, **options)
    raw = sl.export(model, folder / f"{name.replace(' ', '')}.wasm", q=q, **options)
    script = folder / "server.mjs"
    script.write_text(SERVER.replace("STEPS", str(STEPS)))
    firsts = []
    for _ in range(STARTS):
        node = Node(script, module)
        firsts.append(node.first_step)
        node.close()
    ours, node = Compiled(PortableMotion.of(model, q, **options), name), Node(script, module)
    repeats = max(1, int(0.02 / (STEPS * ours.seconds(3))))
    node.seconds(3 * repeats)  # until the engine has optimized it
    seen: dict[str, list[float]] = {"wasm": [], "rollout": []}
    for _ in range(SAMPLES):
        took, found = node.seconds(repeats)
        seen["wasm"].append(took)
        seen["rollout"].append(ours.seconds(repeats))
    node.close()
    wasm, rollout = (Spread(*np.quantile(x, (0.5, 0.25, 0.75))) for x in seen.values())
    apart = float(np.abs(np.array(found) - ours.state[0, ours.q]).max())
    return (
        f"| {name} | {_text(wasm)} | {_text(rollout)} | {wasm.median / rollout.median:.1f} "
        f"| {1e3 * statistics.median(firsts):.0f} | {1e3 * ours.first:.0f} "
        f"| {raw.stat().st_size / 1e3:.0f} | {module.stat().st_size / 1e3:.0f} | {apart:.0e} |"
    )


def _text(x: Spread) -> str:
    return f"{1e6 * x.median:.2f} ({1e6 * x.low:.2f}-{1e6 * x.high:.2f})"


def main() -> None:
    if shutil.which("node") is None:
        sys.exit("node is not installed")
    os.environ["SPANLOOP_CACHE"] = "off"  # LLVM's time is measured
    version = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
    print(f"node {version}, {platform.processor() or platform.machine()}; µs a step, RK4 of {H * 1e3:g} ms\n")
    print("| | wasm | rollout | ratio | load and first step, ms | LLVM, ms | wasm kB | .mjs kB | max dq |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sys.argv[1:] or CASES:
            print(measured(name, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
