"""`sl.envs`: vector environments of Gymnasium around compiled time loops, for learning (docs/envs.md).

env = sl.envs.five_bar_swing_up(64)
observations, infos = env.reset(seed=0)
observations, rewards, terminations, truncations, infos = env.step(env.action_space.sample())
"""

from __future__ import annotations

import importlib
import importlib.util
from importlib import metadata
from typing import TYPE_CHECKING, Any

from spanloop.bridges.versions import too_old

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
    if fault := _fault():
        raise ImportError(f"sl.envs {fault}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def _fault() -> str | None:
    """Why Gymnasium cannot be used; it is not imported for this."""
    if importlib.util.find_spec("gymnasium") is None:
        return "needs Gymnasium, which is not installed; try: pip install 'spanloop[envs]'"
    try:
        return too_old("gymnasium", metadata.version("gymnasium"))
    except metadata.PackageNotFoundError:  # sources on the path
        return None


if not _fault():
    importlib.import_module("spanloop.envs.registration").register()
