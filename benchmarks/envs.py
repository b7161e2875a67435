"""Steps of environments a second: the five-bar swing-up of sl.envs beside MuJoCo in three forms, in one run.

    python benchmarks/envs.py

An action lasts ten steps of RK4 of 5 ms. MuJoCo has the same five-bar, with its loop as a soft constraint: by
mujoco.rollout, which steps many states in one call of C and has no resets and no rewards, with RK4 and with the
integrator of first order that MuJoCo recommends; and as one gymnasium.Env
after the other in gymnasium.vector.SyncVectorEnv, with the same reward. Gymnasium's own InvertedDoublePendulum-v5
(an open chain of three joints, five steps of RK4 of 10 ms an action) is what its users know. Variants take turns.
Needs: pip install 'spanloop[envs]' mujoco.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import gymnasium
import mujoco
import numpy as np
from loop_peers import specification
from mujoco import rollout
from timing import Spread

import spanloop as sl
from spanloop.envs import five_bar

COUNTS = (1, 64, 4096)
TURNS, SECONDS = 7, 0.4  # samples of each variant, and how long each takes
STEP, HOLD = 5e-3, 10


def soft_model(integrator: str = "RK4") -> mujoco.MjModel:
    """The five-bar for MuJoCo, with motors at its drives."""
    spec = specification(five_bar.model())
    spec.option.integrator, spec.option.timestep = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}"), STEP
    for name in ("drive1", "drive2"):
        motor = spec.add_actuator(trntype=mujoco.mjtTrn.mjTRN_JOINT, target=f"{name}.0")
        motor.set_to_motor()
    return spec.compile()


class SoftFiveBar(gymnasium.Env):
    """One five-bar by MuJoCo, as its users write environments."""

    def __init__(self, model: mujoco.MjModel):
        self.model, self.data, self.steps = model, mujoco.MjData(model), 0
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (12,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = np.array(five_bar.HANGING) + self.np_random.uniform(-0.01, 0.01, 4)
        self.steps = 0
        return self._observed(), {}

    def step(self, action):
        self.data.ctrl[:] = five_bar.TORQUE * np.clip(action, -1.0, 1.0)
        mujoco.mj_step(self.model, self.data, HOLD)
        self.steps += 1
        height = 0.5 * (1.0 + self.data.subtree_com[0][1] / five_bar.TOP)
        return self._observed(), float(height), False, self.steps >= 100, {}

    def _observed(self):
        q, v = self.data.qpos, self.data.qvel
        angles = np.array([q[0], q[0] + q[1], q[2], q[2] + q[3]])
        rates = np.array([v[0], v[0] + v[1], v[2], v[2] + v[3]])
        return np.concatenate([np.cos(angles), np.sin(angles), 0.1 * rates]).astype(np.float32)


def stepped(env: gymnasium.vector.VectorEnv) -> Callable[[], None]:
    """A function that takes a step with random actions."""
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (97, *env.action_space.shape)).astype(np.float32)
    turn = iter(range(10**12))
    return lambda: env.step(actions[next(turn) % 97])


def rolled(model: mujoco.MjModel, n: int) -> Callable[[], None]:
    """A function that steps n states by mujoco.rollout, on this thread."""
    data, pool, models = mujoco.MjData(model), rollout.Rollout(nthread=0), [model] * n
    state = np.zeros((n, 1 + model.nq + model.nv))
    state[:, 1 : 1 + model.nq] = five_bar.HANGING
    out, sensors = np.zeros((n, HOLD, state.shape[1])), np.zeros((n, HOLD, 0))
    torques = np.random.default_rng(0).uniform(-five_bar.TORQUE, five_bar.TORQUE, (n, 1, model.nu))
    torques = np.ascontiguousarray(np.repeat(torques, HOLD, axis=1))

    def step() -> None:
        pool.rollout(models, [data], state, torques, skip_checks=True, nstep=HOLD, state=out, sensordata=sensors)
        state[:] = out[:, -1]

    return step


def variants(n: int) -> dict[str, Callable[[], None]]:
    """A function of one step of n environments for each variant; loops over single ones only up to 64."""
    soft = soft_model()
    found = {
        "spanloop": stepped(sl.envs.five_bar_swing_up(n)),
        "spanloop float32": stepped(sl.envs.five_bar_swing_up(n, integrator=sl.Integrator("rk4", dtype="float32"))),
        "mujoco.rollout": rolled(soft, n),
        "mujoco.rollout, implicitfast": rolled(soft_model("IMPLICITFAST"), n),
    }
    if n <= 64:
        found["SyncVectorEnv, MuJoCo"] = stepped(gymnasium.vector.SyncVectorEnv([lambda: SoftFiveBar(soft)] * n))
        try:
            found["InvertedDoublePendulum-v5"] = stepped(gymnasium.make_vec("InvertedDoublePendulum-v5", num_envs=n))
        except (gymnasium.error.Error, ImportError) as error:
            print(f"InvertedDoublePendulum-v5 is left out: {error}", file=sys.stderr)
    return found


def rates(n: int) -> dict[str, Spread]:
    """Steps of environments a second: median and quartiles."""
    functions, seen = variants(n), {}
    repeats = {}
    for name, f in functions.items():
        f()
        began = time.perf_counter()
        f()
        repeats[name] = max(1, int(SECONDS / TURNS / max(time.perf_counter() - began, 1e-6)))
    for _ in range(TURNS):
        for name, f in functions.items():
            began = time.thread_time()
            for _ in range(repeats[name]):
                f()
            seen.setdefault(name, []).append(n * repeats[name] / (time.thread_time() - began))
    return {name: Spread(*np.quantile(x, (0.5, 0.25, 0.75))) for name, x in seen.items()}


def main() -> None:
    """Print a table: variants down, numbers of environments across."""
    tables = {n: rates(n) for n in COUNTS}
    names = list(dict.fromkeys(name for table in tables.values() for name in table))
    print("thousands of environment steps a second of one core, median (quartiles)\n")
    print("| environments |", " | ".join(map(str, COUNTS)), "|")
    print("|---" * (1 + len(COUNTS)) + "|")
    for name in names:
        cells = [tables[n][name].text(1e3) if name in tables[n] else "–" for n in COUNTS]
        print(f"| {name} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
