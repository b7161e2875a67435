"""Learn to swing up a five-bar: PPO of Stable-Baselines3 on a vector environment of sl.envs, in minutes on two cores.

The five-bar hangs from two motors that are too weak to lift it in one go. All environments take a step in one compiled
call, with their loops closed to rounding. The motion that is learned is then simulated by sl.simulate alone.

Needs Stable-Baselines3: pip install 'spanloop[learn]'. Option: --steps N, of environments, to learn from.
"""

import importlib.util
import sys
import time

import numpy as np

import spanloop as sl

ENVIRONMENTS = 64
STEPS = int(sys.argv[sys.argv.index("--steps") + 1]) if "--steps" in sys.argv else 2_000_000


def adapter():
    """The class that shows a vector environment of Gymnasium to Stable-Baselines3, which has its own convention."""
    from stable_baselines3.common.vec_env import VecEnv

    class Adapter(VecEnv):
        def __init__(self, env):
            self.env = env  # with autoreset_mode="SameStep"
            super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

        def reset(self):
            return self.env.reset()[0]

        def step_async(self, actions):
            self.actions = actions

        def step_wait(self):
            observations, rewards, terminations, truncations, infos = self.env.step(self.actions)
            lists = [{} for _ in range(self.num_envs)]
            for k in np.flatnonzero(terminations | truncations):
                last = infos["final_obs"][k]
                lists[k] = {"terminal_observation": last, "TimeLimit.truncated": bool(truncations[k])}
            return observations, rewards.astype(np.float32), terminations | truncations, lists

        def close(self):
            self.env.close()

        def env_is_wrapped(self, wrapper_class, indices=None):
            return [False] * self.num_envs

        def env_method(self, name, *args, indices=None, **kwargs):
            raise NotImplementedError(name)

        def get_attr(self, name, indices=None):
            return [getattr(self.env, name, None)] * self.num_envs

        def set_attr(self, name, value, indices=None):
            raise NotImplementedError(name)

    return Adapter


def episodes(policy, count=32):
    """Actions (steps, count, 2), the returns (count,) and the first environment's start of episodes with a policy."""
    env = sl.envs.five_bar_swing_up(count, autoreset_mode="Disabled")
    observations, _ = env.reset(seed=1)
    start, actions, returns = env.q[0], [], np.zeros(count)
    while True:
        actions.append(policy(observations))
        observations, rewards, terminations, truncations, _ = env.step(actions[-1])
        returns += rewards
        if (terminations | truncations).any():
            return np.array(actions), returns, start, env


def learn():
    """Learn a policy; returns a function from observations to actions, and the seconds that it took."""
    import torch
    from stable_baselines3 import PPO

    torch.set_num_threads(1)
    env = adapter()(sl.envs.five_bar_swing_up(ENVIRONMENTS, autoreset_mode="SameStep", seed=0))
    settings = {
        "n_steps": 64,
        "batch_size": 1024,
        "n_epochs": 6,
        "learning_rate": 1e-3,
        "gamma": 0.98,
        "gae_lambda": 0.9,
    }
    ppo = PPO("MlpPolicy", env, **settings, use_sde=False, seed=0, device="cpu", verbose=int("--verbose" in sys.argv))
    began = time.perf_counter()
    ppo.learn(STEPS)
    return lambda observations: ppo.predict(observations, deterministic=True)[0], time.perf_counter() - began


def main():
    """Learn, compare with no torques and with random ones, and simulate what was learned."""
    random = np.random.default_rng(0)
    print(f"return of no torques {episodes(lambda o: np.zeros((len(o), 2)))[1].mean():.1f}", end=", ")
    print(f"of random ones {episodes(lambda o: random.uniform(-1.0, 1.0, (len(o), 2)))[1].mean():.1f}, of 100 at most")
    policy, seconds = learn()
    actions, returns, start, env = episodes(policy)
    print(f"after {STEPS} steps of environments, in {seconds:.0f} s: {returns.mean():.1f}")

    # the first episode once more, with the torques that were learned
    tau = np.repeat(env.torques(actions[:, 0]), env.control_steps, axis=0)
    run = sl.simulate(env.robot, start, tau=tau, duration=5.0, step=5e-3, limits="stop")
    height = env.robot.center_of_mass(run.q)[:, 1]
    print(f"the centre of mass rises from {height[0]:.2f} m to {height[-1]:.2f} m, {run.outcome}", end="; ")
    stands = height > 0.58
    if stands[-1]:
        print(f"it stands from t = {run.times[len(stands) - np.argmin(stands[::-1])]:.1f} s on", end="; ")
    print(f"the loop is closed to {run.residual:.0e} rad or of its length")
    run.page("swing_up.html")


if importlib.util.find_spec("stable_baselines3") is None:
    print("Stable-Baselines3 is not installed; try: pip install 'spanloop[learn]'")
else:
    main()
