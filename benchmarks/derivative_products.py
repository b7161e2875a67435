"""JVP and VJP of functions beside the function itself: `python benchmarks/derivative_products.py [mechanism ...]`.

Operations as counted by the plan, nanoseconds a state in batches on one thread, medians (quartiles), interleaved in one
process; seconds to compile one state's kernel of the function, the JVP and the VJP. By q, v and tau or a, all of them.
With `--all` every function of the catalog on a six-joint arm and a four-bar, operations alone.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from timing import calls, compare
from trees import pair

import spanloop as sl
from spanloop.algorithms.catalog import FUNCTIONS
from spanloop.errors import InputError, UnsupportedError
from spanloop.kernels import KernelSpec
from spanloop.kernels.derivative_spec import DerivativeSpec

BATCH = 2048
TREES = ("panda", "anymal", "talos")
LOOPS = {"four_bar": (), "stewart": (), "arms_with_object": (8,)}
MODES = ("jvp", "vjp")


def mechanism(name: str) -> tuple[sl.Model, np.ndarray, np.ndarray]:
    """A model with a state: random, or closed and moving."""
    if name in TREES:
        model = pair(name)[0]
        return model, *model.random_state(7)
    model = getattr(sl.zoo, name)(*LOOPS[name])
    q, v = sl.Dynamics(model).project(
        getattr(sl.zoo, f"{name}_start")(*LOOPS[name]), np.random.default_rng(7).normal(size=model.nv)
    )
    return model, q, v


def row(name: str, function: str) -> str:
    """One line of the table."""
    model, q, v = mechanism(name)
    rng = np.random.default_rng(8)
    kernels, seconds = {}, []
    for mode in (None, *MODES):
        began = time.perf_counter()
        kernels[mode or "f"] = sl.compile(model, function, **({"derivative": mode} if mode else {}))
        seconds.append(time.perf_counter() - began)
    variants = {}
    for mode, kernel in kernels.items():
        given = [np.tile(q, (BATCH, 1)), np.tile(v, (BATCH, 1))]
        given += [rng.normal(size=(BATCH, size)) for _, size in kernel.inputs[2:]]
        out = np.empty((BATCH, *kernel.shape))
        names = {f"x{k}": x for k, x in enumerate(given)} | {"k": kernel, "out": out}
        variants[mode] = calls(f"k({', '.join(f'x{k}' for k in range(len(given)))}, out=out)", **names)
    timed = compare(variants, BATCH, samples=15)
    base = kernels["f"].operations.total
    more = [kernels[mode].operations.total / base for mode in MODES]
    longer = [timed[mode].median / timed["f"].median for mode in MODES]
    return (
        f"| {name} | {function} | {base} | {more[0]:.2f} / {more[1]:.2f} | {timed['f'].text()} | "
        f"{timed['jvp'].text()} / {timed['vjp'].text()} | {longer[0]:.2f} / {longer[1]:.2f} | "
        f"{' / '.join(f'{s:.2f}' for s in seconds)} |"
    )


def every_function() -> None:
    """Operations of all functions, by all their inputs."""
    print("| mechanism | function | operations | JVP, VJP: times |\n|---|---|---|---|")
    for model in (sl.zoo.puma(), sl.zoo.four_bar()):
        for name, entry in FUNCTIONS.items():
            options = {"frame": model.bodies[-1].name} if "frame" in entry.options else {}
            options |= {"frames": (model.bodies[-1].name,)} if "frames" in entry.options else {}
            try:
                base = KernelSpec.of(model, name, **options)
                counts = [DerivativeSpec.of(base, mode).plan.operations.total for mode in MODES]
            except (InputError, UnsupportedError):
                continue
            total = base.plan.operations.total
            if total:
                print(f"| {model.name} | {name} | {total} | {counts[0] / total:.2f} / {counts[1] / total:.2f} |")


def main(names: list[str]) -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")
    if "--all" in names:
        return every_function()
    print(f"Batches of {BATCH} states, one thread; ns a state, median (quartiles)\n")
    print("| | function | operations | JVP / VJP: times | batch | JVP / VJP | times | compiled [s] |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names or (*TREES, *LOOPS):
        for function in ("forward_dynamics", "tree_inverse_dynamics"):
            print(row(name, function), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
