"""The compiled rollout of a simulation: its schedule, and the key under which it is kept on disk."""

from __future__ import annotations

import hashlib

from spanloop.compiler.lower import Schedule
from spanloop.compiling import source_hash
from spanloop.simulation.methods import method as chosen_method
from spanloop.simulation.stages import Stages
from spanloop.simulation.system import System
from spanloop.simulation.watching import Watch


def schedule(system: System, watch: Watch, method: str, dtype: str) -> Schedule:
    """The schedule of a simulation."""
    stages = Stages(system, watch, dtype)
    chosen_method(method)(stages)
    return stages.schedule()


def schedule_key(system: System, watch: Watch, method: str, dtype: str) -> str:
    parts = (system.key(), watch.key(), method, dtype, source_hash())
    return hashlib.sha256("|".join(parts).encode()).hexdigest()
