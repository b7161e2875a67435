"""MJX, MuJoCo's steps in JAX, on this machine's GPU: the peer of benchmarks/gpu_rollouts.py.

    python benchmarks/gpu_peers.py --save FOLDER     # on a machine with MuJoCo: the models as MJCF
    python benchmarks/gpu_peers.py --models FOLDER   # on a machine with a GPU, JAX and mujoco-mjx

The same mechanisms in float32 with steps of 1 ms, contacts off; trees by RK4, closed loops by MJX's own (soft) equality
constraints and its default solver. Compiled once; medians and quartiles of 5 calls of 100 steps each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

TREES = ("panda", "anymal")
CLOSED = ("four_bar", "stewart")
SIZES = (4096, 65536)
STEPS, REPEATS = 100, 5


def save(folder: Path) -> None:
    """The models as MJCF without geometry."""
    import mujoco
    from loop_peers import specification, to_mujoco
    from trees import pair

    import spanloop as sl

    for name in TREES + CLOSED:
        model = pair(name)[0].fuse() if name in TREES else getattr(sl.zoo, name)()
        spec = specification(model)
        spec.option.timestep = 1e-3
        spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        if name in TREES:
            spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
        spec.compile()
        (folder / f"{name}.xml").write_text(spec.to_xml(), encoding="utf-8")
        start = getattr(sl.zoo, f"{name}_start")() if name in CLOSED else model.neutral()
        np.save(folder / f"{name}_start.npy", to_mujoco(model, start[None], np.zeros((1, model.nv)))[0][0])


def compiled(path: Path, start: np.ndarray, runs: int) -> tuple[Callable[[], object], float]:
    """A call that takes 100 steps of all runs and waits; and the seconds of the first one."""
    import jax
    import jax.numpy as jnp
    import mujoco
    from mujoco import mjx

    model = mujoco.MjModel.from_xml_string(path.read_text(encoding="utf-8"))
    device_model, data = mjx.put_model(model), mjx.make_data(model)

    def steps(q, v):
        def one(d, _):
            return mjx.step(device_model, d), None

        d, _ = jax.lax.scan(one, data.replace(qpos=q, qvel=v), None, STEPS)
        return d.qpos, d.qvel

    many = jax.jit(jax.vmap(steps))
    rng = np.random.default_rng(1)
    q = jnp.asarray(np.tile(start, (runs, 1)), jnp.float32)
    v = jnp.asarray(0.01 * rng.standard_normal((runs, model.nv)), jnp.float32)
    began = time.perf_counter()
    jax.block_until_ready(many(q, v))
    return lambda: jax.block_until_ready(many(q, v)), time.perf_counter() - began


def seconds(call: Callable[[], object]) -> np.ndarray:
    """Seconds of five calls, sorted."""
    found = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return np.sort(found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", type=Path)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--only", help="names of models, separated by commas")
    parser.add_argument("--runs", type=int, nargs="*", default=SIZES)
    parser.add_argument("--after", type=Path, help="compile, and begin to measure when this file is there")
    options = parser.parse_args()
    if options.save:
        save(options.save)
        return
    import jax
    import mujoco

    print(f"MJX of MuJoCo {mujoco.__version__}, JAX {jax.__version__}, {jax.devices()[0].device_kind}")
    calls = {}
    for name in options.only.split(",") if options.only else TREES + CLOSED:
        start = np.load(options.models / f"{name}_start.npy")
        for runs in options.runs:
            try:
                calls[name, runs] = compiled(options.models / f"{name}.xml", start, runs)
                print(f"{name} {runs}: first call {calls[name, runs][1]:.0f} s", flush=True)
            except Exception as problem:
                print(f"{name} {runs}: {type(problem).__name__}: {str(problem)[:150]}", flush=True)
    while options.after and not options.after.exists():
        time.sleep(0.2)
    for (name, runs), (call, _) in calls.items():
        low, middle, high = runs * STEPS / np.percentile(seconds(call), (75, 50, 25)) / 1e9
        print(f"{name} {runs} runs: {middle:.4g} ({low:.4g}-{high:.4g}) G steps/s", flush=True)


if __name__ == "__main__":
    main()
