"""The environments under names of Gymnasium: gymnasium.make_vec("spanloop/FiveBarSwingUp-v0", num_envs=64)."""

from __future__ import annotations

from typing import Any

import gymnasium

from spanloop.envs.mechanism_env import MechanismEnv
from spanloop.envs.single_env import SingleEnv
from spanloop.envs.tasks.ball_platform import stewart_balance
from spanloop.envs.tasks.five_bar import five_bar_swing_up
from spanloop.envs.tasks.walker import linkage_walker
from spanloop.errors import InputError, UnsupportedError

NAMES = {
    "spanloop/FiveBarSwingUp-v0": five_bar_swing_up,
    "spanloop/StewartBalance-v0": stewart_balance,
    "spanloop/LinkageWalker-v0": linkage_walker,
}


def register() -> None:
    """Register all environments that are not yet."""
    here = "spanloop.envs.registration"
    for name in NAMES:
        if name not in gymnasium.registry:
            gymnasium.register(
                name, entry_point=f"{here}:single", vector_entry_point=f"{here}:vector", kwargs={"name": name}
            )


def single(name: str, **options: Any) -> SingleEnv:
    """One environment, for gymnasium.make; options: those of its function."""
    _refuse_pictures(name, options)
    if "num_envs" in options:
        raise InputError(
            f"{name}: gymnasium.make makes one environment; num_envs is {options['num_envs']!r}. Several: "
            f"gymnasium.make_vec({name!r}, num_envs={options['num_envs']!r})"
        )
    return SingleEnv(NAMES[name](1, **{"autoreset_mode": "Disabled"} | options))


def vector(name: str, num_envs: int, max_episode_steps: int | None = None, **options: Any) -> MechanismEnv:
    """Many environments, for gymnasium.make_vec; max_episode_steps: in place of duration, as Gymnasium counts.

    options: those of their function.
    """
    _refuse_pictures(name, options)
    if max_episode_steps is not None and "duration" in options:
        raise InputError(f"{name}: duration and max_episode_steps are both lengths of an episode; give one of them")
    env = NAMES[name](num_envs, **options)
    if max_episode_steps is not None:
        env.truncate_after(max_episode_steps)
    return env


def _refuse_pictures(name: str, options: dict[str, Any]) -> None:
    """Take render_mode, which Gymnasium gives, out of the options."""
    mode = options.pop("render_mode", None)
    if mode is not None:
        raise UnsupportedError(
            f"{name}: render_mode is {mode!r}; environments draw no pictures. Leave it out, and see an episode as a "
            "run: sl.simulate(env.robot, q, tau=env.torques(actions), ...).page('episode.html')"
        )
