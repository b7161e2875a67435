"""frax, dynamics in JAX, on this machine's GPU: the peer of benchmarks/gpu.py for robots that are trees.

    python benchmarks/gpu_frax.py --save FOLDER     # on a machine with example-robot-data: URDF files and answers
    python benchmarks/gpu_frax.py --models FOLDER   # on a machine with a GPU, JAX and frax

Forward dynamics of a Panda (fingers locked) in float32, `jit` of `vmap`, 2^20 states; medians and quartiles of 7
samples of 10 calls each, and the largest error of 64 states. frax solves with the mass matrix and checks nothing.
"""

from __future__ import annotations

import argparse
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

STATES, REPEATS, CALLS = 2**20, 7, 10


def save(folder: Path) -> None:
    """A Panda as URDF, and the accelerations of 64 states."""
    from gpu import states
    from trees import pair

    import spanloop as sl

    model = pair("panda")[0].fuse()
    file = folder / "panda.urdf"
    model.save(str(file))
    text = file.read_text(encoding="utf-8")
    assert text.count('<link name="world" />') == 1
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    text = text.replace(
        '<link name="world" />', f'<link name="world">{inertia}</link>'
    )  # frax wants one of the fixed base
    file.write_text(text, encoding="utf-8")
    q, v, tau = states(model, None, 64)
    a = sl.Dynamics(model).forward_dynamics(q, v, tau)
    np.savez(folder / "panda_states.npz", q=q, v=v, tau=tau, a=a)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", type=Path)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--states", type=int, default=STATES)
    parser.add_argument("--after", type=Path, help="compile, and begin to measure when this file is there")
    options = parser.parse_args()
    if options.save:
        save(options.save)
        return
    import frax
    import jax
    import jax.numpy as jnp

    robot, given = frax.Robot(str(options.models / "panda.urdf")), np.load(options.models / "panda_states.npz")
    many = jax.jit(jax.vmap(lambda q, v, tau: robot.forward_dynamics(q, v, tau, None)))
    arrays = [jnp.asarray(np.tile(given[x], (options.states // 64, 1)), jnp.float32) for x in ("q", "v", "tau")]
    began = time.perf_counter()
    found = np.asarray(many(*arrays))[:64]
    first, times = time.perf_counter() - began, []
    error = np.abs(found - given["a"]).max() / np.abs(given["a"]).max()
    while options.after and not options.after.exists():
        time.sleep(0.2)
    for _ in range(REPEATS):
        began = time.perf_counter()
        for _ in range(CALLS):
            answer = many(*arrays)
        jax.block_until_ready(answer)
        times.append((time.perf_counter() - began) / CALLS)
    low, middle, high = options.states / np.percentile(times, (75, 50, 25)) / 1e9
    print(
        f"frax {version('frax')}, {jax.devices()[0].device_kind}: forward dynamics of a Panda, float32, "
        f"{middle:.3g} ({low:.3g}-{high:.3g}) G states/s, error {error:.0e}, first call {first:.0f} s"
    )


if __name__ == "__main__":
    main()
