"""Attack with threads: many that call, compile and simulate at once, on kernels of their own and of all.

A case is a process or two with a shared cache, which may be far too small, in which threads do random things for a
second; every number must have the bits that one thread alone gets. Free-threaded CPython, where one is found with
everything that spanloop needs, is attacked as well.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from tally import Tally, until
from victims import Victim

SECONDS = 1.0
FREE_THREADED = ("python3.13t", "python3.14t", "python3.15t")


def attack(seed: int, deadline: float) -> Tally:
    """Cases 0, 1, 2, ... of a seed until the deadline."""
    return until(case, seed, deadline)


def case(seed: int, k: int) -> Tally:
    """Processes with one cache."""
    rng = np.random.default_rng([seed, k])
    name, tally = f"threads.case({seed}, {k})", Tally()
    free = free_threaded()
    interpreters = [sys.executable] * int(rng.integers(1, 3)) if free is None or rng.random() < 0.5 else [free]
    folder = Path(tempfile.mkdtemp(prefix="threads-"))
    environment = {"SPANLOOP_CACHE": str(folder), "SPANLOOP_CACHE_MB": str(rng.choice(["0.1", "64"]))}
    try:
        crew = [Victim(__file__, int(rng.integers(2**31)), interpreter=x, **environment) for x in interpreters]
        for interpreter, victim in zip(interpreters, crew, strict=True):
            words = (victim.line() or "").split()
            how = victim.end()
            if words[:1] == ["right"]:
                tally.count(right=int(words[1]))
                tally.notes["free-threaded" if interpreter == free else "with the lock"] += int(words[1])
            else:
                tally.fail(f"{name}: {' '.join(words)!r}, {how}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return tally


@functools.cache
def free_threaded() -> str | None:
    """A free-threaded Python that can import what spanloop needs; None if there is none."""
    for name in FREE_THREADED:
        found = shutil.which(name)
        if found and subprocess.run([found, "-c", "import numpy, llvmlite"], capture_output=True).returncode == 0:
            return found
    return None


# ---- the process with the threads


class Work:
    """Robots, states, and the answers that one thread alone gets."""

    def __init__(self, seed: int):
        import spanloop as sl

        rng = np.random.default_rng(seed)
        self.sl, self.models = sl, [sl.zoo.chain(int(rng.integers(2, 9)), seed=int(rng.integers(10**6))) for _ in "abc"]
        self.states = [m.random_state(int(rng.integers(1000))) for m in self.models]
        self.expected = [self._answers(k, sl.Dynamics(m)) for k, m in enumerate(self.models)]
        self.robots = [sl.Dynamics(m, threads=2) for m in self.models]  # not compiled yet: all threads meet there
        self.calls, self.wrong = [], []

    def _answers(self, k: int, robot) -> dict[str, bytes]:
        return {name: getattr(self, f"_{name}")(k, robot) for name in ("one", "many", "matrix", "motion")}

    def _one(self, k: int, robot) -> bytes:
        q, v = self.states[k]
        return robot.forward_dynamics(q, v, v).tobytes()

    def _many(self, k: int, robot) -> bytes:
        q, v = self.states[k]
        return robot.forward_dynamics(q + np.linspace(0.0, 1.0, 3000)[:, None], v, v).tobytes()

    def _matrix(self, k: int, robot) -> bytes:
        return robot.mass_matrix(self.states[k][0]).tobytes()

    def _motion(self, k: int, robot) -> bytes:
        q, v = self.states[k]
        many = q + np.linspace(0.0, 0.1, 9)[:, None]
        how = {"duration": 0.01, "limits": "ignore", "integrator": self.sl.Integrator(threads=2)}
        return self.sl.simulate(robot, many, v, **how).q.tobytes()

    def thread(self, seed: int) -> None:
        """Random calls for a while."""
        rng, calls, end = np.random.default_rng(seed), 0, time.monotonic() + SECONDS
        try:
            while time.monotonic() < end:
                k = int(rng.integers(len(self.models)))
                robot = self.robots[k] if rng.random() < 0.95 else self.sl.Dynamics(self.models[k])
                name = str(rng.choice(("one", "many", "matrix", "motion"), p=(0.5, 0.2, 0.28, 0.02)))
                if getattr(self, f"_{name}")(k, robot) != self.expected[k][name]:
                    self.wrong.append(f"other bits of {name}")
                calls += 1
        except BaseException as error:
            self.wrong.append(repr(error))
        self.calls.append(calls)


def live(seed: int) -> None:
    """Start the threads, wait for them, and report."""
    work = Work(seed)
    count = 2 + seed % 7
    crew = [threading.Thread(target=work.thread, args=(seed + k,)) for k in range(count)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    print(f"wrong {work.wrong[0]}" if work.wrong else f"right {sum(work.calls)}", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    live(int(sys.argv[1]))
