"""Timing variants side by side: interleaved, so that a busy machine slows all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of one variant [s per unit of work]."""

    median: float
    low: float
    high: float

    def text(self, unit: float = 1e-9) -> str:
        return f"{self.median / unit:.0f} ({self.low / unit:.0f}-{self.high / unit:.0f})"


def calls(statement: str, **names: object) -> Callable[[int], None]:
    """f(n) that runs a statement n times in a plain loop, so that no wrapper adds to what is timed."""
    space: dict = dict(names)
    exec(f"def loop(n):\n    for _ in range(n):\n        {statement}\n", space)
    return space["loop"]


def compare(
    variants: dict[str, Callable[[int], None]],
    work: int | Mapping[str, int] = 1,
    samples: int = 31,
    sample_s: float = 0.004,
    clock: Callable[[], float] = time.thread_time,
) -> dict[str, Spread]:
    """Seconds per unit of work of each variant, made by `calls`; one sample of each in turn, `samples` times.

    work: units of work in one call, of all or by variant. clock: thread_time counts this thread's processor time alone;
    use perf_counter for work on several threads.
    """
    repeats = {name: _repeats(f, sample_s) for name, f in variants.items()}
    units = work if isinstance(work, Mapping) else dict.fromkeys(variants, work)
    seen: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(samples):
        for name, f in variants.items():
            n = repeats[name]
            start = clock()
            f(n)
            seen[name].append((clock() - start) / (n * units[name]))
    return {name: Spread(*np.quantile(x, (0.5, 0.25, 0.75))) for name, x in seen.items()}


def _repeats(f: Callable[[int], None], sample_s: float) -> int:
    f(1)
    start = time.perf_counter()
    f(3)
    return max(1, int(sample_s / max((time.perf_counter() - start) / 3, 1e-8)))
