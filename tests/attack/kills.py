"""Attack with SIGKILL: while kernels are compiled into a shared cache, while runs are saved, during checkpointed runs.

A case is a process that is killed at a random moment, and its successor. What the successor finds on disk must give the
same bits as without the kill, and after its next writing no part of a file is left.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from tally import Tally, until
from victims import Victim

import spanloop as sl
from spanloop.compiler.runtime import cache
from spanloop.simulation import checkpoint

ACTIONS = ("compiling", "saving", "simulating")
EXTENSIONS = ("npz", "nc", "h5", "csv", "html")
KILLS = 3  # of a case


def attack(seed: int, deadline: float) -> Tally:
    """Cases 0, 1, 2, ... of a seed until the deadline."""
    return until(case, seed, deadline)


def case(seed: int, k: int) -> Tally:
    """One folder, in which several processes are killed one after the other."""
    rng = np.random.default_rng([seed, k])
    action = str(rng.choice(ACTIONS))
    name, tally = f"kills.case({seed}, {k}), {action}", Tally()
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    number = int(rng.integers(10**6))
    try:
        for _ in range(KILLS):
            hit = _kill(action, folder, number, rng)
            _age(folder)
            found = any(folder.glob("run.*"))
            trouble = globals()[f"_after_{action}"](folder, number)
            if trouble:
                tally.fail(f"{name}: {trouble}")
                return tally
            tally.count(right=1)
            tally.notes[f"killed while {action}"] += hit
            tally.notes["with a file to go on from"] += found
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return tally


def _kill(action: str, folder: Path, number: int, rng: np.random.Generator) -> bool:
    """Start the action and kill it; False if it had ended before."""
    with Victim(__file__, action, folder, number, SPANLOOP_CACHE=str(folder / "cache")) as victim:
        if victim.line() != "begin":
            raise AssertionError(f"the victim does not begin: {victim.end()}")
        time.sleep(rng.uniform(0.0, 0.8))
        is_running = victim.process.poll() is None
        victim.process.kill()
        return is_running


def _age(folder: Path) -> None:
    """Make parts of files an hour older: those of a moment ago may be in the making."""
    for part in (*folder.glob(".*"), *folder.glob("cache/.*")):
        os.utime(part, (time.time() - 3600.0,) * 2)


# ---- compiling


def _model(number: int) -> sl.Model:
    return sl.zoo.chain(8, seed=number)


def _kernel_bits(number: int) -> bytes:
    model = _model(number)
    q, v = model.random_state(1)
    robot = sl.Dynamics(model)
    return robot.forward_dynamics(q, v, v).tobytes() + robot.mass_matrix(np.stack([q, q])).tobytes()


def _compiling(folder: Path, number: int) -> None:
    while True:
        _kernel_bits(number)
        shutil.rmtree(folder / "cache")


def _after_compiling(folder: Path, number: int) -> str:
    with mock.patch.dict(os.environ, SPANLOOP_CACHE="off"):
        expected = _kernel_bits(number)
    with mock.patch.dict(os.environ, SPANLOOP_CACHE=str(folder / "cache")), warnings.catch_warnings():
        warnings.simplefilter("error")
        if _kernel_bits(number) != expected:
            return "a kernel from the cache has other bits"
        with mock.patch.object(cache, "_unmeasured", np.inf):
            sl.compile(sl.zoo.chain(2, seed=time.time_ns() % 10**9), "bias")
        left = [f.path.name for f in cache.files() if not f.is_kernel]
    return f"parts are left: {left}" if left else ""


# ---- saving


def _runs() -> list[sl.Trajectory]:
    model = sl.zoo.four_bar()
    start = sl.zoo.four_bar_start()
    return [sl.simulate(model, start, tau=[x, 0.0, 0.0], duration=5.0) for x in (0.1, 0.2)]


def _saving(folder: Path, number: int) -> None:
    path = folder / f"run.{EXTENSIONS[number % len(EXTENSIONS)]}"
    runs = _runs()
    print("begin", flush=True)
    while True:
        for run in runs:
            _save(run, path)


def _save(run: sl.Trajectory, path: Path) -> None:
    if path.suffix == ".html":
        run.page(path)
    else:
        run.save(path)


def _after_saving(folder: Path, number: int) -> str:
    path = folder / f"run.{EXTENSIONS[number % len(EXTENSIONS)]}"
    with mock.patch.dict(os.environ, SPANLOOP_CACHE=str(folder / "cache")):
        runs = _runs()
    if path.exists():
        if path.suffix in (".csv", ".html"):
            whole = []
            for k, run in enumerate(runs):
                one = path.with_name(f"whole{k}{path.suffix}")
                _save(run, one)
                whole.append(one.read_bytes())
                one.unlink()
            if path.read_bytes() not in whole:
                return f"{path.name} is neither the one nor the other"
        else:
            found = sl.Trajectory.load(path)
            if (found.q.tobytes(), found.tau.tobytes()) not in [(r.q.tobytes(), r.tau.tobytes()) for r in runs]:
                return f"{path.name} holds other bits"
    _save(runs[0], path)
    left = [p.name for p in folder.iterdir() if p.name not in (path.name, "cache")]
    return f"parts are left: {left}" if left else ""


# ---- checkpointed runs


def _run(number: int, path: Path | None) -> sl.Trajectory:
    integrator = sl.Integrator(checkpoint=path, progress=False)
    model = sl.zoo.pendulum(3)
    q = np.linspace(0.1, 0.4, 24).reshape(8, 3) + 1e-6 * (number % 1000)
    callback = sl.control.callback(_torques) if number % 2 else None
    duration = 0.4 if number % 2 else 40.0
    return sl.simulate(model, q, duration=duration, sample=0.01, controller=callback, integrator=integrator)


def _simulating(folder: Path, number: int) -> None:
    with mock.patch.object(checkpoint, "SECONDS", 0.02):
        if not (folder / "cache").exists():
            _run(number, None)  # compiles
        print("begin", flush=True)
        while True:
            _run(number, folder / "run.checkpoint")


def _after_simulating(folder: Path, number: int) -> str:
    with mock.patch.dict(os.environ, SPANLOOP_CACHE=str(folder / "cache")), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = _run(number, None)
        with mock.patch.object(checkpoint, "SECONDS", 0.02):
            resumed = _run(number, folder / "run.checkpoint")
    if (resumed.q.tobytes(), resumed.v.tobytes()) != (expected.q.tobytes(), expected.v.tobytes()):
        return "the resumed run has other bits"
    if resumed.tau.tobytes() != expected.tau.tobytes():
        return "the resumed run has other torques"
    left = [p.name for p in folder.iterdir() if p.name != "cache"]
    return f"files are left: {left}" if left else ""


def _torques(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.sin(t + q)


if __name__ == "__main__":
    import kills  # the same names as in the process that resumes

    if sys.argv[1] == "compiling":
        print("begin", flush=True)
    getattr(kills, f"_{sys.argv[1]}")(Path(sys.argv[2]), int(sys.argv[3]))
