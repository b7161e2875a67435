"""`sl.envs`: vector environments of Gymnasium around compiled time loops, for learning (docs/envs.md).

env = sl.envs.five_bar_swing_up(64)
observations, infos = env.reset(seed=0)
observations, rewards, terminations, truncations, infos = env.step(env.action_space.sample())
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "MechanismEnv": "spanloop.envs.mechanism_env",
    "SingleEnv": "spanloop.envs.single_env",
    "State": "spanloop.envs.state",
    "five_bar_swing_up": "spanloop.envs.tasks.five_bar",
    "linkage_walker": "spanloop.envs.tasks.walker",
    "stewart_balance": "spanloop.envs.tasks.ball_platform",
}

__all__ = ["MechanismEnv", "SingleEnv", "State", "five_bar_swing_up", "linkage_walker", "stewart_balance"]

if TYPE_CHECKING:
    from spanloop.envs.mechanism_env import MechanismEnv
    from spanloop.envs.single_env import SingleEnv
    from spanloop.envs.state import State
    from spanloop.envs.tasks.ball_platform import stewart_balance
    from spanloop.envs.tasks.five_bar import five_bar_swing_up
    from spanloop.envs.tasks.walker import linkage_walker


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not _is_there():
        raise ImportError("sl.envs needs Gymnasium, which is not installed; try: pip install 'spanloop[envs]'")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def _is_there() -> bool:
    return importlib.util.find_spec("gymnasium") is not None


if _is_there():
    importlib.import_module("spanloop.envs.registration").register()
