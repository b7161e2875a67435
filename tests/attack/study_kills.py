"""Attack studies with SIGKILL: on Dask's workers, on its scheduler, on the process that runs the study.

A case is one store and one cluster. Each kill hits one of the three at a random moment. Then run() again must finish
all runs, compute no chunk that was stored before, and give the bits of a study that nobody disturbed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
from tally import Tally, until

import spanloop as sl
from spanloop.studies.storage import store as stores

KILLS = 2  # of a case
RUNS, CHUNK = 120_000, 250
PATIENCE = 120.0  # s in which a process must end that was not killed


def attack(seed: int, deadline: float) -> Tally:
    """Cases 0, 1, 2, ... of a seed until the deadline."""
    return until(case, seed, deadline)


def study(folder: Path | None, seed: int) -> sl.Study:
    st = sl.studies
    return sl.Study(
        sl.zoo.four_bar(),
        {"coupler.mass": st.LogNormal(1.0, 0.2, relative=True), "v.crank_hinge": st.Uniform(-2.0, 2.0)},
        runs=RUNS,
        seed=seed,
        q=sl.zoo.four_bar_start(),
        duration=1.0,
        keep={"fast": st.Largest("abs(v.crank_hinge)"), "end": st.Last("energy.total")},
        store=None if folder is None else folder / "study.zarr",
        chunk=CHUNK,
    )


class Cluster:
    """A scheduler and two workers, each a process of its own."""

    def __init__(self, folder: Path):
        self.file, self.count = folder / "scheduler.json", 0
        self.processes: dict[str, subprocess.Popen] = {}
        self.folder = folder
        self.renew()

    def renew(self) -> None:
        """Start what is not running; workers of a scheduler that is gone are gone, too."""
        if not self._runs("scheduler"):
            for name in ("worker1", "worker2"):
                self.kill(name)
            self.file.unlink(missing_ok=True)
            self._start("scheduler", "dask_scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1")
        for name in ("worker1", "worker2"):
            if not self._runs(name):
                self._start(name, "dask_worker", "--no-nanny", "--no-dashboard", "--nthreads", "1")

    def _runs(self, name: str) -> bool:
        return name in self.processes and self.processes[name].poll() is None

    def _start(self, name: str, module: str, *options: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(self.file), *options]
        if module == "dask_worker":
            command += ["--local-directory", str(self.folder)]
        quiet = subprocess.DEVNULL
        self.processes[name] = subprocess.Popen(command, stdout=quiet, stderr=quiet, cwd=self.folder)

    def kill(self, name: str) -> None:
        if name in self.processes:
            self.processes[name].kill()
            self.processes[name].wait()

    def close(self) -> None:
        for name in self.processes:
            self.kill(name)


def case(seed: int, k: int) -> Tally:
    """One store, on which several processes are killed one after the other."""
    rng, tally, name = np.random.default_rng([seed, k]), Tally(), f"study_kills.case({seed}, {k})"
    folder = Path(tempfile.mkdtemp(prefix="study-kills-"))
    number, cluster = int(rng.integers(10**6)), Cluster(folder)
    try:
        for _ in range(KILLS):
            cluster.renew()
            target = str(rng.choice(["study", "worker1", "worker2", "scheduler"]))
            trouble = _killed(folder, number, cluster, target, float(rng.uniform(0.0, 2.0)), tally)
            if trouble:
                tally.fail(f"{name}, {target}: {trouble}")
                return tally
            tally.count(right=1)
        trouble = _after(folder, number)
        if trouble:
            tally.fail(f"{name}: {trouble}")
        else:
            tally.count(right=1)
    finally:
        cluster.close()
        shutil.rmtree(folder, ignore_errors=True)
    return tally


def _killed(folder: Path, number: int, cluster: Cluster, target: str, pause: float, tally: Tally) -> str:
    """Run the study on the cluster and kill the target; what is wrong then, "" if nothing is."""
    victim = subprocess.Popen(
        [sys.executable, __file__, str(folder), str(number)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert victim.stdout is not None
    if victim.stdout.readline() != "begin\n":
        return f"the study does not begin: {victim.communicate()[1][-500:]}"
    time.sleep(pause)
    hit = victim.poll() is None
    if target == "study":
        victim.kill()
    else:
        cluster.kill(target)
    try:
        _, words = victim.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        victim.kill()
        return f"the study did not end within {PATIENCE:g} s"
    tally.notes[f"killed {target.rstrip('12')}"] += hit
    good = victim.returncode == 0 or target == "study" or "StudyError" in words
    return "" if good else f"the study ended with {words[-400:]}"


def _after(folder: Path, number: int) -> str:
    """What is wrong after the study has run again, "" if nothing is."""
    found = study(folder, number)
    with mock.patch.object(stores.Store, "write", _logging(folder)):
        found.run()
    chunks = [int(x) for x in (folder / "chunks.txt").read_text().split()]
    if len(set(chunks)) < len(chunks):
        return f"{len(chunks) - len(set(chunks))} chunks were computed twice"
    a, b = found.results(), study(None, number).run().results()
    for name in b.data_vars:
        if not np.array_equal(a[name].values, b[name].values):
            return f"{name} has other bits"
    return "" if a.sizes["run"] == RUNS else "runs are missing"


def _logging(folder: Path) -> Callable[..., None]:
    """Store.write, which also writes the number of every chunk that is stored to a file."""
    write = stores.Store.write

    def logged(self: stores.Store, k: int, arrays: dict) -> None:
        write(self, k, arrays)
        with open(folder / "chunks.txt", "a", encoding="ascii") as file:
            file.write(f"{k}\n")

    return logged


def _victim(folder: Path, number: int) -> None:
    from distributed import Client

    found = study(folder, number)
    with Client(scheduler_file=str(folder / "scheduler.json"), timeout=30) as client:
        client.wait_for_workers(1, timeout=30)
        print("begin", flush=True)
        with mock.patch.object(stores.Store, "write", _logging(folder)):
            found.run(client=client)


if __name__ == "__main__":
    _victim(Path(sys.argv[1]), int(sys.argv[2]))
