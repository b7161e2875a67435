"""Chains of one state over threads: `python benchmarks/chain_threads.py [m,N ...]`.

One call of forward dynamics by simple_closed_chain, m generic arms of N hinges with point contacts on an object: the
undivided kernel beside chain_threads=2 and, with more cores, 4 (or as many as there are). Wall time, of calls one after
the other (helpers are awake) and of calls a millisecond apart (helpers have fallen asleep): medians (quartiles) of this
run, interleaved. A helper that has begun and has to wait for a core is waited for: run this on a quiet machine.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi

import numpy as np
from timing import Spread, calls, compare

import spanloop as sl
from spanloop import zoo
from spanloop.model.files.dh.table import DHRow, from_dh

SIZES = tuple((m, n) for m in (2, 4, 8, 16) for n in (6, 12, 24, 40))
REST = 0.001  # [s] between calls, long enough for helpers to fall asleep
PAYS = 1.05  # times as fast, to be called faster


@dataclass(frozen=True)
class Row:
    """Times of one system [s], the undivided kernel's first."""

    m: int
    n: int
    operations: int
    phases: int
    close: list[Spread]
    apart: list[Spread]

    @property
    def gain(self) -> float:
        return self.close[0].median / self.close[1].median

    def text(self) -> str:
        cells = [f"{self.m}", f"{self.n}", f"{self.operations}", f"{self.phases}"]
        cells += [_microseconds(x) for x in (*self.close, *self.apart)]
        return "| " + " | ".join((*cells, f"{self.gain:.2f}")) + " |"


def _microseconds(x: Spread) -> str:
    return f"{x.median * 1e6:.1f} ({x.low * 1e6:.1f}-{x.high * 1e6:.1f})"


def generic_arm(n: int, seed: int = 0):
    """A chain of n hinges with Denavit-Hartenberg numbers and inertias none of which is zero."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        A = rng.uniform(-0.2, 0.2, size=(3, 3))
        second = A @ A.T + 0.05 * np.eye(3)
        J = np.trace(second) * np.eye(3) - second
        moments = tuple(float(J[i, j]) for i in range(3) for j in range(i, 3))
        a, d, twist, mass = (float(rng.uniform(*x)) for x in ((0.1, 0.4), (0.1, 0.4), (0.3, 1.2), (1.0, 5.0)))
        rows.append(DHRow(a, d, twist * pi / 2, 0.0, "r", mass, tuple(rng.uniform(0.02, 0.2, 3)), moments))
    return from_dh(rows, "generic")


def rested(call: Callable, given: Sequence[np.ndarray], out: np.ndarray, samples: int = 101) -> list[float]:
    """Seconds of single calls, each after a rest."""
    seen = []
    for _ in range(samples):
        time.sleep(REST)
        start = time.perf_counter()
        call(*given, out=out)
        seen.append(time.perf_counter() - start)
    return seen


def measured(m: int, n: int, threads: Sequence[int]) -> Row:
    arm = generic_arm(n)
    model = zoo.arms_with_object(m, arm=arm, grasp="spherical")
    q = zoo.arms_with_object_start(m, arm=arm, grasp="spherical")
    tau = np.random.default_rng(0).normal(size=model.nv)
    given, out = (q, np.zeros(model.nv), tau), np.empty(model.nv)
    kernels = [
        sl.compile(model, "forward_dynamics", method="simple_closed_chain", chain_threads=k) for k in (1, *threads)
    ]
    variants = {
        str(k): calls("call(q, v, tau, out=out)", call=x.call, q=q, v=given[1], tau=tau, out=out)
        for k, x in enumerate(kernels)
    }
    close = compare(variants, samples=101, sample_s=0.002, clock=time.perf_counter)
    apart = [rested(x.call, given, out) for x in kernels]
    count = kernels[0].operations
    return Row(
        m,
        n,
        count.multiplications + count.additions + count.divisions,
        kernels[1].phases,
        list(close.values()),
        [Spread(*np.quantile(x, (0.5, 0.25, 0.75))) for x in apart],
    )


def verdict(rows: Sequence[Row]) -> str:
    """The least time of an undivided call from which on threads pay."""
    slow = sorted(rows, key=lambda r: r.close[0].median)
    first = next((k for k in range(len(slow)) if all(r.gain >= PAYS for r in slow[k:])), None)
    if first is None:
        return "Two threads pay at none of these sizes from which on they always do."
    r = slow[first]
    return f"Two threads pay from {r.close[0].median * 1e6:.1f} us a call on (m = {r.m}, N = {r.n})."


def main() -> None:
    sizes = [tuple(map(int, x.split(","))) for x in sys.argv[1:]] or SIZES
    cores = os.cpu_count() or 1
    threads = [2] + ([min(4, cores)] if cores > 2 else [])
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{cores} cores{load}; microseconds of wall time, median (quartiles)\n")
    names = ["1 thread", *(f"{k} threads" for k in threads)]
    head = ["m", "N", "operations", "phases", *names, *(f"{x}, rested" for x in names), "gain of 2"]
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    rows = []
    for m, n in sizes:
        rows.append(measured(m, n, threads))
        print(rows[-1].text(), flush=True)
    print("\n" + verdict(rows))


if __name__ == "__main__":
    main()
