"""Forward dynamics from PyTorch beside the NumPy call: one state and batches, forward, forward and backward.

python benchmarks/torch_calls.py      medians and quartiles [µs a call], CPU, one thread, variants in turn
"""

from __future__ import annotations

import time

import numpy as np
import torch

import spanloop as sl
import spanloop.torch

SIZES = (1, 4096, 65536)
MODELS = {"puma": sl.zoo.puma, "chain of 7": lambda: sl.zoo.chain(7)}


def variants(model: sl.Model, count: int) -> dict:
    """The calls to compare, by name."""
    kernel, f = sl.compile(model, "forward_dynamics"), spanloop.torch.forward_dynamics(model)
    shape = (model.nv,) if count == 1 else (count, model.nv)
    arrays = [np.random.default_rng(k).normal(size=shape) for k in range(3)]
    tensors = [torch.from_numpy(x) for x in arrays]
    inputs = [x.clone().requires_grad_() for x in tensors]
    return {
        "NumPy": lambda: kernel(*arrays),
        "torch": lambda: f(*tensors),
        "torch, backward too": lambda: torch.autograd.grad(f(*inputs).sum(), inputs),
    }


def seconds(calls: dict, rounds: int, repeats: int) -> dict[str, np.ndarray]:
    """Seconds a call in every round; the calls take turns."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            for _ in range(repeats):
                call()
            found[name].append((time.perf_counter() - began) / repeats)
    return {name: np.array(x) for name, x in found.items()}


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print("| model | states | call | median [µs] | quartiles |\n|---|---|---|---|---|")
    for name, make in MODELS.items():
        for count in SIZES:
            for call, x in seconds(variants(make(), count), 15, max(1, 200 // count)).items():
                low, middle, high = 1e6 * np.percentile(x, (25, 50, 75))
                print(f"| {name} | {count} | {call} | {middle:.1f} | {low:.1f} to {high:.1f} |")


if __name__ == "__main__":
    main()
