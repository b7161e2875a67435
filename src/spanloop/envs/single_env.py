"""One environment of a vector environment as a gymnasium.Env, for libraries that take no vectors."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike

from spanloop.compiler.runtime.foreign_arrays import as_numpy
from spanloop.envs.mechanism_env import MechanismEnv
from spanloop.errors import InputError


class SingleEnv(gymnasium.Env):
    """A MechanismEnv of one environment, with autoreset_mode="Disabled", without its batch axis.

    >>> env = sl.envs.SingleEnv(sl.envs.five_bar_swing_up(1, autoreset_mode="Disabled"))
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    """

    def __init__(self, env: MechanismEnv):
        if not isinstance(env, MechanismEnv):
            raise InputError(f"SingleEnv: env is a {type(env).__name__}; expected a MechanismEnv")
        mode = env.metadata["autoreset_mode"]
        if env.num_envs != 1 or mode is not AutoresetMode.DISABLED:
            raise InputError(
                f"SingleEnv: env has num_envs={env.num_envs} and autoreset_mode={mode.value!r}; expected one and "
                "autoreset_mode='Disabled'"
            )
        self.env = env
        self.observation_space, self.action_space = env.single_observation_space, env.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Start an episode; options: those of MechanismEnv."""
        super().reset(seed=seed)
        observations, infos = self.env.reset(seed=seed, options=options)
        return observations[0], infos

    def step(self, action: ArrayLike) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Apply an action (k,)."""
        given = as_numpy("step", "action", action, f"({len(self.env.actions)},)")
        found, rewards, ends, late, infos = self.env.step(given[None])
        info = {name: x[0] for name, x in infos.items() if not name.startswith("_")}
        return found[0], float(rewards[0]), bool(ends[0]), bool(late[0]), info

    def close(self) -> None:
        """Close the environment."""
        self.env.close()
