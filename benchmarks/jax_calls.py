"""Forward dynamics from JAX beside jax.pure_callback and the NumPy call: one state, batches, steps of a scan.

python benchmarks/jax_calls.py            medians and quartiles, CPU, variants in turn
python benchmarks/jax_calls.py cuda       the same on an NVIDIA GPU: batches of 65 536 states, float32
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import spanloop as sl
import spanloop.jax

SIZES = (1, 4096)
STEPS = 1000
MODELS = {"puma": sl.zoo.puma, "chain of 7": lambda: sl.zoo.chain(7)}
Calls = dict[str, tuple[Callable[[], object], int]]  # by name: the call, and by how many its time is divided


def callback(kernel) -> Callable:
    """The NumPy call inside jit, through Python."""

    def called(*inputs: jax.Array) -> jax.Array:
        out = jax.ShapeDtypeStruct(inputs[0].shape, inputs[0].dtype)
        return jax.pure_callback(lambda *x: kernel(*map(np.asarray, x)), out, *inputs, vmap_method="broadcast_all")

    return called


def scanned(f: Callable, steps: int) -> Callable:
    """Euler steps in a scan."""

    def run(q: jax.Array, v: jax.Array, tau: jax.Array) -> jax.Array:
        def advance(state, _):
            q, v = state
            v = v + 1e-4 * f(q, v, tau)
            return (q + 1e-4 * v, v), None

        return jax.lax.scan(advance, (q, v), None, length=steps)[0][0]

    return run


def waiting(f: Callable, *inputs: jax.Array) -> Callable[[], object]:
    """A call that returns when the answer is there."""
    compiled = jax.jit(f)
    if isinstance(compiled(*inputs), tuple):
        return lambda: jax.block_until_ready(compiled(*inputs))
    return lambda: compiled(*inputs).block_until_ready()


def gradient(f: Callable) -> Callable:
    """Of a sum of squares by all inputs."""
    return jax.grad(lambda *x: (f(*x) ** 2).sum(), argnums=(0, 1, 2))


def on_cpu(model: sl.Model, count: int) -> Calls:
    """The calls to compare, by name."""
    kernel, f = sl.compile(model, "forward_dynamics"), spanloop.jax.forward_dynamics(model)
    shape = (model.nv,) if count == 1 else (count, model.nv)
    arrays = [np.random.default_rng(k).normal(size=shape) for k in range(3)]
    x = [jnp.asarray(a) for a in arrays]
    assert np.array_equal(jax.jit(f)(*x), kernel(*arrays))
    calls: Calls = {
        "NumPy call": (lambda: kernel(*arrays), 1),
        "jit of q + v + tau": (waiting(lambda q, v, tau: q + v + tau, *x), 1),
        "jit": (waiting(f, *x), 1),
        "jit, pure_callback": (waiting(callback(kernel), *x), 1),
        "jit, gradient": (waiting(gradient(f), *x), 1),
    }
    if count == 1:
        calls |= {
            "a step in scan": (waiting(scanned(f, STEPS), *x), STEPS),
            "a step in scan, pure_callback": (waiting(scanned(callback(kernel), 50), *x), 50),
            "a step in scan, gradient": (waiting(gradient(scanned(f, STEPS)), *x), STEPS),
        }
    return calls


def on_gpu(model: sl.Model, count: int) -> Calls:
    """The calls on a GPU."""
    f, kernel = spanloop.jax.forward_dynamics(model), sl.compile(model, "forward_dynamics", dtype="float32")
    arrays = [np.random.default_rng(k).normal(size=(count, model.nv)).astype("float32") for k in range(3)]
    x = [jax.device_put(a, jax.devices("cuda")[0]) for a in arrays]
    found, expected = np.asarray(jax.jit(f)(*x)), kernel(*arrays)
    print(f"largest difference from the CPU: {np.abs(found - expected).max() / np.abs(expected).max():.1e}")
    return {
        "jit of q + v + tau": (waiting(lambda q, v, tau: q + v + tau, *x), 1),
        "jit": (waiting(f, *x), 1),
        "jit, gradient": (waiting(gradient(f), *x), 1),
        "a step in scan": (waiting(scanned(f, 100), *x), 100),
        "a step in scan, gradient": (waiting(gradient(scanned(f, 100)), *x), 100),
    }


def seconds(calls: Calls, rounds: int, repeats: int) -> dict[str, np.ndarray]:
    """Seconds of a call, or of a step of it, in every round; the calls take turns."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call, _ in calls.values():
        call()
    for _ in range(rounds):
        for name, (call, parts) in calls.items():
            times = max(1, repeats // parts)
            began = time.perf_counter()
            for _ in range(times):
                call()
            found[name].append((time.perf_counter() - began) / times / parts)
    return {name: np.array(x) for name, x in found.items()}


def main() -> None:
    """Print the table."""
    is_gpu = sys.argv[1:] == ["cuda"]
    jax.config.update("jax_enable_x64", not is_gpu)
    print("| model | states | call | median [µs] | quartiles |\n|---|---|---|---|---|")
    for name, make in MODELS.items():
        for count in (65536,) if is_gpu else SIZES:
            calls = (on_gpu if is_gpu else on_cpu)(make(), count)
            for call, x in seconds(calls, 15, max(1, 1000 // count)).items():
                low, middle, high = 1e6 * np.percentile(x, (25, 50, 75))
                print(f"| {name} | {count} | {call} | {middle:.2f} | {low:.2f} to {high:.2f} |")


if __name__ == "__main__":
    main()
