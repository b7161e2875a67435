"""Forward dynamics of long chains, looped beside unrolled: `python benchmarks/long_chains.py [links ...]`.

Chains of hinges with random axes, placements and inertias. Times are processor time of one thread, for each link:
medians (quartiles) of this run; a batch holds some million links in all. What it takes to compile, with an empty cache,
is split into tracing with code generation, which looped code pays once whatever the length, and the rest: preparing the
model's data and loading.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator

import numpy as np
from timing import calls, compare

import spanloop as sl
from spanloop import kernels as compiling
from spanloop.compiler.lower.rolled import lower
from spanloop.compiler.runtime import kernel as kernel_module
from spanloop.compiler.runtime import machine
from spanloop.compiler.runtime.kernel import Kernel
from spanloop.kernels import LOOP_THRESHOLD

LENGTHS = (7, 16, 32, 48, 64, 128, 256, 1000, 3000, 10_000)
LONGEST_UNROLLED = 256  # beyond, compiling takes too long
NUMBERS = 2**20  # links times states of a batch
STATES = (16, 4096)  # fewest and most of a batch

# what is clocked by itself while a kernel is made
CLOCKED = (
    (lower, "settled", "tracing"),
    (compiling.lowering, "unrolled_plan", "tracing"),
    (compiling.lowering, "looped_plan", "data"),
    (kernel_module, "single_source", "code"),
    (machine, "object_code", "code"),
)


@contextlib.contextmanager
def clocks() -> Iterator[dict[str, float]]:
    """Seconds by what is done, each without what is clocked inside it."""
    spent, inside = dict.fromkeys(("tracing", "data", "code"), 0.0), [0.0]

    def clocked(function, what):
        @functools.wraps(function)
        def timed(*given, **options):
            inside.append(0.0)
            start = time.perf_counter()
            try:
                return function(*given, **options)
            finally:
                took = time.perf_counter() - start
                spent[what] += took - inside.pop()
                inside[-1] += took

        return timed

    before = [(owner, name, getattr(owner, name)) for owner, name, _ in CLOCKED]
    for owner, name, what in CLOCKED:
        setattr(owner, name, clocked(getattr(owner, name), what))
    try:
        yield spent
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def compiled(model: sl.Model, lowering: str) -> tuple[Kernel, float, float]:
    """A kernel that is in no cache yet, seconds of tracing and code generation, and all other seconds."""
    with clocks() as spent:
        start = time.perf_counter()
        kernel = sl.compile(model, "forward_dynamics", lowering=lowering)
        total = time.perf_counter() - start
    assert not kernel.from_cache
    code = spent["tracing"] + spent["code"]
    return kernel, code, total - code


def measured(n: int) -> dict[str, dict]:
    """By lowering: nanoseconds a link for one call and in batches, and seconds of compiling."""
    model = sl.zoo.chain(n, seed=1)
    q, v = model.random_state(7)
    x = np.random.default_rng(8).normal(size=n)
    count = int(np.clip(NUMBERS // n, *STATES))
    lowerings = ("looped", "unrolled") if n <= LONGEST_UNROLLED else ("looped",)
    made = {name: compiled(model, name) for name in lowerings}
    kernels = {name: kernel for name, (kernel, _, _) in made.items()}
    _agree(kernels, q, v, x)
    states = {"q": q, "v": v, "x": x, "out": np.zeros(n)}
    rows = {name: np.tile(value, (count, 1)) for name, value in states.items()}
    one = {k: calls("f(q, v, x, out=out)", f=f.call, **states) for k, f in kernels.items()}
    many = {k: calls("f(q, v, x, out=out)", f=f, **rows) for k, f in kernels.items()}
    timed, batch = compare(one, n), compare(many, n * count, samples=9)
    return {k: {"one": timed[k], "batch": batch[k], "code": made[k][1], "data": made[k][2]} for k in kernels}


def _agree(kernels: dict[str, Kernel], *state: np.ndarray) -> None:
    """Both kernels give the same accelerations."""
    answers = [kernel(*state) for kernel in kernels.values()]
    size = np.abs(answers[0]).max()
    assert all(np.abs(a - answers[0]).max() <= 1e-6 * size for a in answers), "the kernels disagree"


def slope(lengths: list[int], values: list[float]) -> float:
    """Of the logarithm of the time of a call over that of the length, by least squares."""
    return float(np.polyfit(np.log(lengths), np.log(np.array(values) * lengths), 1)[0])


def main(words: list[str]) -> None:
    warnings.simplefilter("ignore")
    lengths = [int(w) for w in words] or list(LENGTHS)
    compiled(sl.zoo.chain(3, seed=1), "looped")  # LLVM itself is loaded once
    print(f"spanloop {sl.__version__}; looped beyond {LOOP_THRESHOLD} links by default\n")
    print("| links | lowering | one call [ns a link] | batch [ns a link] | tracing and code [s] | data [s] |")
    print("|---|---|---|---|---|---|")
    found = {}
    for n in lengths:
        for lowering, row in measured(n).items():
            print(
                f"| {n} | {lowering} | {row['one'].text()} | {row['batch'].text()} | "
                f"{row['code']:.3f} | {row['data']:.3f} |",
                flush=True,
            )
            if lowering == "looped" and n >= 64:
                found[n] = row
    if len(found) > 1:
        for what in ("one", "batch"):
            grows = slope(list(found), [row[what].median for row in found.values()])
            print(f"\nlooped, {what}: time grows as links to the power {grows:.3f}, from {min(found)} to {max(found)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SPANLOOP_CACHE"] = folder
        main(sys.argv[1:])
