"""Studies beside the bare kernel, beside Dask's processes, and beside a plain loop over mujoco.rollout.

    python benchmarks/studies.py [runs]

Four-bar, 1000 steps of 1 ms, two masses that vary, four numbers kept of each run, results in a Zarr store. Variants are
interleaved; the share of the bare kernel is one of processor time, which other programs on the machine change least.
MuJoCo's four-bar has its own soft closure; masses are set in a copy of the model for each run, extremes are taken from
its states, and every chunk is written as .npz by the process that computed it.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import spanloop as sl
from spanloop.compiler.runtime.rollout import Steps
from spanloop.simulation.integrators.integrator import rollout
from spanloop.simulation.simulate import steps_taken
from spanloop.studies.setup import starts_of

st = sl.studies
STEPS, H, REPEATS, PEER_RUNS, CHUNK = 1000, 1e-3, 3, 256, 4096
KEEP = {
    "fast": st.Largest("abs(v.crank_hinge)"),
    "low": st.Smallest("coupler_tip.position.z"),
    "energy": st.Last("energy.total"),
    "end": st.Last("q.crank_hinge"),
}


def study(runs: int, folder: Path | None) -> sl.Study:
    vary = {
        "coupler.mass": st.Normal(1.0, 0.1, relative=True, low=0.5),
        "crank.mass": st.Uniform(0.9, 1.1, relative=True),
    }
    return sl.Study(
        sl.zoo.four_bar(), vary, runs=runs, q=sl.zoo.four_bar_start(), duration=STEPS * H, step=H, keep=KEEP,
        store=folder, chunk=CHUNK,
    )  # fmt: skip


def bare(runs: int, threads: int):
    """A function that takes the same steps with the kernel alone: no statistics, no samples, no store."""
    made = study(runs, None)
    setup = made._prepared.setup
    problem = setup.problem(starts_of(setup, made._rows(0, CHUNK)))
    problem = replace(problem, system=replace(problem.system, tracked=None))
    loop, _, layout = steps_taken(problem, setup.grid, setup.integrator)
    kernel = rollout(problem.system, problem.events, setup.integrator.name, "float64", threads)
    times = -(-runs // CHUNK)
    start, constants = np.tile(problem.state(layout), (times, 1)), np.tile(loop.constants, (times, 1))
    controls = np.ascontiguousarray(loop.controls)

    def run() -> None:
        state, why = start[:runs].copy(), np.zeros(runs, np.uint8)
        kernel.run(state, np.ascontiguousarray(constants[:runs]), controls, why, Steps(0.0, H, 0, STEPS))
        assert not why.any()

    return run


def clocked(work) -> tuple[float, float]:
    """Processor time of all threads, and wall time [s]."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def spread(values: list[float], unit: str = "") -> str:
    return f"{np.median(values):.3g} ({min(values):.3g}-{max(values):.3g}){unit}"


def beside_the_kernel(runs: int) -> None:
    threads, folder = os.cpu_count() or 1, Path(tempfile.mkdtemp(prefix="study-"))
    kernel = bare(runs, threads)
    kernel()
    study(CHUNK, None).run()
    rows = []
    for k in range(REPEATS):
        rows.append((*clocked(kernel), *clocked(lambda k=k: study(runs, folder / f"{k}.zarr").run(threads=threads))))
    shutil.rmtree(folder)
    a, b, c, d = (list(x) for x in zip(*rows, strict=True))
    print(f"{runs} runs of {STEPS} steps on {threads} threads:")
    print(f"  bare kernel: {spread([1e6 * x / runs for x in a])} µs of processor time a run, wall {spread(b, ' s')}")
    print(f"  study:       {spread([1e6 * x / runs for x in c])} µs of processor time a run, wall {spread(d, ' s')}")
    print(f"  study / kernel: {spread([y / x for x, y in zip(a, c, strict=True)])} of processor time")
    print(f"  largest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


def beside_dask(runs: int) -> None:
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        study(2 * CHUNK, None).run(client=client)
        shares, same = [], True
        for _ in range(REPEATS):
            a, b = study(runs, None), study(runs, None)
            here = clocked(lambda a=a: a.run(threads=2))[1]
            there = clocked(lambda b=b: b.run(client=client))[1]
            shares.append(here / there)
            same &= all(np.array_equal(a.results()[n].values, b.results()[n].values) for n in KEEP)
    print(
        f"two processes of Dask beside two threads, {runs} runs: {spread(shares)} of the throughput; bits equal: {same}"
    )


def first_chunk() -> None:
    """The start of a study of a million draws, in a new process, with kernels in the cache."""
    code = (
        "import time; began = time.perf_counter()\n"
        "import sys; sys.path.insert(0, {folder!r})\n"
        "import studies\n"
        "from spanloop.studies.storage.store import Store\n"
        "write = Store.write\n"
        "def first(self, k, arrays):\n"
        "    write(self, k, arrays)\n"
        "    print(time.process_time(), time.perf_counter() - began, flush=True)\n"
        "    import os; os._exit(0)\n"
        "Store.write = first\n"
        "import tempfile, pathlib\n"
        "studies.study(10**6, pathlib.Path(tempfile.mkdtemp()) / 's.zarr').run()\n"
    )
    import subprocess

    command = [sys.executable, "-c", code.format(folder=str(Path(__file__).parent))]
    found = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(REPEATS)]
    cpu, wall = ([float(x) for x in column] for column in zip(*found, strict=True))
    words = "from the start of Python to the first chunk in the store"
    print(f"10⁶ draws, {words}: {spread(wall, ' s')}, processor time {spread(cpu, ' s')}")


# ---- the peer


def _peer_chunk(job: tuple[str, int, np.ndarray]) -> int:
    """Runs of a chunk with mujoco.rollout, their extremes, and a file of them."""
    import mujoco
    from loop_peers import specification, to_mujoco
    from mujoco import rollout as peer
    from rollout_peers import STIFF

    path, number, masses = job
    ours = sl.zoo.four_bar()
    spec = specification(ours)
    spec.option.integrator, spec.option.timestep = mujoco.mjtIntegrator.mjINT_RK4, H
    for equality in spec.equalities:
        for name, value in STIFF.items():
            setattr(equality, name, value)
    first = spec.compile()
    models = []
    for coupler, crank in masses:
        m = copy.copy(first)
        m.body("coupler").mass[:], m.body("crank").mass[:] = coupler, crank
        models.append(m)
    q, v = to_mujoco(ours, sl.zoo.four_bar_start(), np.zeros(3))
    start = np.tile(np.concatenate([[0.0], q, v]), (len(masses), 1))
    data = mujoco.MjData(first)
    states, _ = peer.rollout(models, data, initial_state=start, nstep=STEPS)
    speed = np.abs(states[:, :, 1 + first.nq]).max(axis=1)
    np.savez(f"{path}/{number}.npz", fast=speed, end=states[:, -1, 1], masses=masses)
    return len(masses)


def beside_mujoco(runs: int) -> None:
    folder = tempfile.mkdtemp(prefix="peer-")
    rng = np.random.default_rng(0)
    masses = np.column_stack([rng.normal(1.0, 0.1, PEER_RUNS), rng.uniform(0.9, 1.1, PEER_RUNS)])
    jobs = [(folder, k, part) for k, part in enumerate(np.array_split(masses, 8))]
    study(CHUNK, None).run()
    ratios, rates = [], []
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(_peer_chunk, [(folder, k, masses[:2]) for k in range(2)])
        for _ in range(REPEATS):
            theirs = clocked(lambda: pool.map(_peer_chunk, jobs))[1] / PEER_RUNS
            ours = clocked(lambda: study(runs, Path(tempfile.mkdtemp()) / "s.zarr").run(threads=2))[1] / runs
            ratios.append(theirs / ours)
            rates.append((1.0 / ours, 1.0 / theirs))
    shutil.rmtree(folder)
    ours, theirs = (list(x) for x in zip(*rates, strict=True))
    print(f"beside mujoco.rollout in two processes with .npz files: {spread(ratios)} times as many runs a second")
    print(f"  spanloop {spread(ours)}, MuJoCo {spread(theirs)} runs/s (RK4, closure as stiff as its solver allows)")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 65_536
    first_chunk()
    beside_the_kernel(count)
    beside_dask(count)
    beside_mujoco(count)
