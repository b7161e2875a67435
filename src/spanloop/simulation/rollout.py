"""The compiled rollout of a simulation: its schedule, and the key under which it is kept on disk."""

from __future__ import annotations

import functools
import hashlib

from spanloop.compiler.lower import Schedule
from spanloop.compiler.runtime.rollout import Rollout
from spanloop.kernels import source_hash
from spanloop.simulation.events import Watch
from spanloop.simulation.integrators import FIXED_STEP
from spanloop.simulation.integrators.step_schedule import Stages
from spanloop.simulation.system import System


def schedule(system: System, watch: Watch, method: str, dtype: str) -> Schedule:
    """The schedule of a simulation."""
    stages = Stages(system, watch, dtype)
    FIXED_STEP[method](stages)
    return stages.schedule()


@functools.lru_cache(maxsize=32)
def _loaded(key: str, dtype: str, threads: int) -> list[Rollout]:
    """A place for the rollout with this key: one that was used a moment ago need not be loaded again."""
    return []


def rollout(system: System, watch: Watch, method: str, dtype: str, threads: int) -> Rollout:
    """The compiled rollout of a simulation."""
    key = schedule_key(system, watch, method, dtype)
    place = _loaded(key, dtype, threads)
    if not place:
        place.append(Rollout(key, lambda: schedule(system, watch, method, dtype), dtype, threads))
    return place[0]


def schedule_key(system: System, watch: Watch, method: str, dtype: str) -> str:
    parts = (system.key(), watch.key(), method, dtype, source_hash())
    return hashlib.sha256("|".join(parts).encode()).hexdigest()
