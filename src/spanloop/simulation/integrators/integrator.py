"""Integrators by name, and the compiled time loop of one with fixed steps."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from spanloop.compiler.lower import Schedule
from spanloop.compiler.runtime.gpu.rollout import GpuRollout
from spanloop.compiler.runtime.kernel import checked_threads
from spanloop.compiler.runtime.rollout import Rollout
from spanloop.errors import InputError, nearest
from spanloop.kernels import of_model, source_hash
from spanloop.kernels.spec import RUN_TARGETS, check_target, refuse_threads_of_gpu
from spanloop.simulation.events.endings import Events
from spanloop.simulation.events.switched_start import conditions_key
from spanloop.simulation.integrators import euler, implicit, midpoint, runge_kutta
from spanloop.simulation.integrators.step_schedule import ScheduleBuilder
from spanloop.simulation.system import System

FIXED_STEP: dict[str, Callable[[ScheduleBuilder], None]] = {
    "rk4": runge_kutta.step,
    "euler": euler.step,
    "midpoint": midpoint.step,
    "implicit": implicit.step,
}
ORDER = {"rk4": 4, "euler": 1, "midpoint": 2, "implicit": 2}
AUTO = "auto"  # rk4, or implicit where joints are stiff for the step
FINEST = {"float64": 1e-13, "float32": 1e-6}  # rad or m: an accuracy below it is rounding
ADAPTIVE = ("DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA")  # of SciPy


@dataclass(frozen=True)
class Integrator:
    """How a motion is integrated: sl.simulate(..., integrator=sl.Integrator("midpoint", dtype="float32")).

    Args:
        name: a step of fixed length, "rk4" (fourth order), "euler" (semi-implicit, first order), "midpoint" (implicit,
            second order) or "implicit" (second order; dampers, springs, friction and linear gains at joints are taken
            implicitly, stable at any step); an adaptive method of SciPy: "DOP853", "RK45", "RK23", "Radau", "BDF",
            "LSODA"; or "auto": "rk4", or "implicit" where a joint is too stiff for it.
        accuracy: the largest error of a coordinate [rad or m]. Fixed steps are halved until the estimated error is
            below it; adaptive methods take it as their tolerance (1e-9 by default). At least 1e-13, in float32 1e-6.
        dtype: "float64" or "float32", of fixed steps.
        threads: how many threads share a batch of runs; 0 for all cores.
        checkpoint: a file in which the progress of fixed steps is kept; the same call continues from it, and
            run.settings["resumed"] says so.
        progress: whether a bar is drawn; None draws one on a terminal and in notebooks.
        target: "cpu", or "cuda" for fixed steps on an NVIDIA GPU, one thread a run (docs/gpu.md).

    Raises:
        InputError: there is no integrator of this name, or an option does not fit it.

    Example:
        >>> precise = sl.Integrator("DOP853", accuracy=1e-10)
        >>> run = sl.simulate(sl.zoo.pendulum(), [1.0], duration=0.1, integrator=precise)
        >>> run.settings["accuracy"]
        1e-10
    """

    name: str = AUTO
    accuracy: float | None = None
    dtype: str = "float64"
    threads: int = 1
    checkpoint: str | os.PathLike[str] | None = None
    progress: bool | None = None
    target: str = "cpu"

    def __post_init__(self) -> None:
        names = (*FIXED_STEP, *ADAPTIVE, AUTO)
        if self.name not in names:
            raise InputError(f"integrator is {self.name!r}; {nearest(self.name, names)}")
        if self.dtype not in ("float64", "float32"):
            raise InputError(f"dtype is {self.dtype!r}; expected 'float64' or 'float32'")
        check_target(self.target, RUN_TARGETS)
        if self.accuracy is not None and not _is_positive(self.accuracy):
            raise InputError(f"accuracy is {self.accuracy!r}; must be positive (rad or m)")
        if self.accuracy is not None and self.accuracy < FINEST[self.dtype]:
            raise InputError(
                f"accuracy is {self.accuracy:g}, finer than the rounding of {self.dtype}; expected at least "
                f"{FINEST[self.dtype]:g} (rad or m). Ask for less"
                + (", or for dtype='float64'" if self.dtype == "float32" else "")
            )
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | os.PathLike):
            raise InputError(f"checkpoint is {self.checkpoint!r}; expected the name of a file, as 'run.ckpt'")
        checked_threads(self.threads)
        refuse_threads_of_gpu(self.threads, self.target)
        if self.adaptive and self.dtype != "float64":
            raise InputError(f"integrator {self.name!r} works in float64; dtype is {self.dtype!r}")
        if self.adaptive and self.target == "cuda":
            raise InputError(
                f"integrator {self.name!r} chooses its steps in SciPy, on the CPU; target is 'cuda'. Use 'rk4', "
                "'euler', 'midpoint' or 'implicit', or target='cpu'"
            )
        if self.accuracy is not None and self.checkpoint is not None and not self.adaptive:
            raise InputError("checkpoint is for steps of one length; with accuracy they are halved. Give step instead")
        if self.adaptive and self.checkpoint is not None:
            raise InputError(
                f"checkpoint is for fixed steps; integrator {self.name!r} chooses its own. Use 'rk4' or 'midpoint'"
            )

    @property
    def adaptive(self) -> bool:
        """Whether the integrator chooses the length of its steps."""
        return self.name in ADAPTIVE


def _is_positive(x: object) -> bool:
    if isinstance(x, bool) or not isinstance(x, int | float | np.integer | np.floating):
        return False
    return math.isfinite(x) and bool(x > 0.0)


def schedule(
    system: System, events: Events, name: str, dtype: str, compact: bool = False, unrolled: bool = False
) -> Schedule:
    """The schedule of one step of an integrator with fixed steps.

    compact: of shorter code that takes longer; unrolled: without loops over the links of long trees.
    """
    system = _taken_implicitly(system, name)
    if dtype == "float32":
        system = replace(system, single=True)
    builder = ScheduleBuilder(
        system, events, dtype, implicit.linearized if system.implicit else None, compact, unrolled
    )
    FIXED_STEP[name](builder)
    return builder.schedule()


def schedule_key(system: System, events: Events, name: str, dtype: str) -> str:
    """A hash of everything that the schedule depends on."""
    parts = (_taken_implicitly(system, name).key(), events.key(), name, dtype, source_hash())
    conditions = conditions_key(system.switching) if system.switching else ""
    return hashlib.sha256("|".join((*parts, conditions)).encode()).hexdigest()


def _taken_implicitly(system: System, name: str) -> System:
    """The system with the stages of the integrator."""
    return system if system.implicit == (name == "implicit") else replace(system, implicit=name == "implicit")


_rollouts: dict[tuple[str, str, int], Rollout] = {}  # by key, dtype and threads, the oldest first
_on_gpu: dict[tuple[str, str], GpuRollout] = {}  # by key and dtype, the oldest first
_MOST = 32


def rollout(system: System, events: Events, name: str, dtype: str = "float64", threads: int = 1) -> Rollout:
    """The compiled time loop of an integrator with fixed steps; a recent one is used again."""
    key = schedule_key(system, events, name, dtype)
    found = _rollouts.pop((key, dtype, threads), None)
    if found is None:
        label = of_model(system.model)
        found = Rollout(key, lambda: schedule(system, events, name, dtype), dtype, threads, label)
    for oldest in tuple(_rollouts)[: 1 - _MOST]:
        _rollouts.pop(oldest, None)  # another thread may have done so
    _rollouts[key, dtype, threads] = found
    return found


def gpu_rollout(system: System, events: Events, name: str, dtype: str = "float64") -> GpuRollout:
    """The same time loop for an NVIDIA GPU; a recent one is used again."""
    key = schedule_key(system, events, name, dtype)
    found = _on_gpu.pop((key, dtype), None)
    if found is None:
        found = GpuRollout(key, lambda: schedule(system, events, name, dtype), dtype, of_model(system.model))
    for oldest in tuple(_on_gpu)[: 1 - _MOST]:
        _on_gpu.pop(oldest, None)
    _on_gpu[key, dtype] = found
    return found
