"""A GpuRollout: the time loop of a Schedule on an NVIDIA GPU, one thread a run. Making one needs no GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import llvmlite
import numpy as np

from spanloop.compiler.lower import Schedule
from spanloop.compiler.render.gpu.rollout import NAME, OPTIMISED, THREADS, gpu_rollout, way_of
from spanloop.compiler.runtime import cache, machine
from spanloop.compiler.runtime.gpu import assembly, driver
from spanloop.compiler.runtime.gpu.driver import Device
from spanloop.compiler.runtime.kernel import REAL, checked_dtype
from spanloop.compiler.runtime.rollout import KINDS, Addresses, Rollout, Steps, facts_of, places_in

RESIDENT = 2048  # threads of a multiprocessor, where each has memory of its own


@dataclass(frozen=True)
class _Loaded:
    """The kernel on the device, and the facts of its schedule."""

    function: driver.Function
    facts: Mapping[str, Any]


class GpuRollout:
    """Runs side by side on a GPU; rows of state, constants and controls are those of a Rollout.

    `run` advances NumPy arrays, as Rollout.run does; DeviceRuns keeps runs on the device.
    """

    def __init__(
        self,
        key: str,
        schedule: Callable[[], Schedule],
        dtype: str = "float64",
        label: str = "",
        device: int = 0,
        way: str | None = None,
        resident: int | None = None,
    ):
        """key, label: as of a Rollout; device: number of the GPU; way: one of render.gpu.rollout.WAYS, or by length.

        resident: blocks that a multiprocessor has at once, at most: fewer threads have more of its cache each.
        """
        self.key, self.label, self.way, self.resident = key, label, way, resident
        self.dtype, self._real = np.dtype(checked_dtype(dtype)), REAL[checked_dtype(dtype)]
        self._make, self._number = schedule, device

    @cached_property
    def schedule(self) -> Schedule:
        """The calls of one step."""
        return self._make()

    @property
    def device(self) -> Device:
        """The GPU; DeviceError if there is none."""
        return Device.of(self._number)

    @property
    def ptx(self) -> str:
        """PTX of the time loop, for this machine's GPU; without one, for compute capability 9.0."""
        return self._ptx(self.device.capability if driver.is_available() else assembly.HOPPER)

    @property
    def function(self) -> driver.Function:
        """The kernel, loaded on the device."""
        return self._loaded.function

    @property
    def facts(self) -> Mapping[str, Any]:
        """Operations of a step, bytes of memory of a thread, sizes of arrays."""
        return self._loaded.facts

    def places(self, part: str, runs: int) -> dict[str, slice]:
        """Where each array is in a row of "state", "constants", "controls" or "record"."""
        return places_in(self.facts["arrays"][part])

    def blocks(self, runs: int) -> int:
        """Blocks of a launch: a thread a run; where few are to be resident or have memory, as many as run at once."""
        wanted, most = -(-runs // THREADS), self.resident or (RESIDENT // THREADS if self.facts["memory"] else 0)
        return min(wanted, self.device.multiprocessors * most) if most else wanted

    def memory(self, runs: int) -> int:
        """Bytes of the threads' own memory."""
        return int(self.facts["memory"]) * self.blocks(runs) * THREADS

    def launch(
        self, arrays: Addresses, steps: Steps, first: int, count: int, memory: int, runs: int, stream: int
    ) -> None:
        """Start `count` of the steps, from number `first` of them on. memory: where the threads' own memory begins."""
        given = (*arrays.arguments(steps, first, count, self.dtype.itemsize), memory, runs)
        values = [kind(x) for kind, x in zip(KINDS[: len(given)], given, strict=True)]
        self.function.launch(self.blocks(runs), THREADS, values, stream)

    def run(
        self,
        state: np.ndarray,
        constants: np.ndarray,
        controls: np.ndarray,
        why: np.ndarray,
        steps: Steps,
        record: np.ndarray | None = None,
        log: np.ndarray | None = None,
        logged: np.ndarray | None = None,
    ) -> np.ndarray:
        """Advance NumPy arrays in place: all arguments and the result are those of Rollout.run."""
        from spanloop.compiler.runtime.gpu.device_runs import DeviceRuns

        runs = DeviceRuns(self)
        runs.place(state, constants, why, done=steps.first)
        longest = steps.count
        if record is not None and log is None:
            longest = runs.samples(len(record) * record.shape[2]) * steps.every
        for first in range(0, max(steps.count, 1), max(longest, 1)):
            part = Steps(steps.start, steps.h, steps.first + first, min(longest, steps.count - first), steps.every)
            rows = controls[:, first : first + part.count] if controls.shape[1] > 1 else controls
            own = None if record is None else record[:, first // steps.every :]
            runs.advance(np.ascontiguousarray(rows, self.dtype), part, own, log, logged)
        state[:], why[:], counts = runs.fetched(steps.first + steps.count)
        return counts

    @cached_property
    def _loaded(self) -> _Loaded:
        device = self.device
        identity = str((device.capability, device.driver, llvmlite.__version__))
        key = cache.key("rollout", self.key, "cuda", self._real, self.way or "", identity)
        artifact = cache.read(key)
        if artifact is None:
            with machine.reported(f"compiling the simulation {self.label} for {device.name}"):
                cubin = driver.linked(device, self._ptx(device.capability))
            artifact = cache.Artifact(cubin, facts_of(self.schedule, self._real, 1))
            cache.write(key, artifact)
        return _Loaded(driver.Module(device, artifact.code).function(NAME), artifact.facts)

    def _ptx(self, capability: tuple[int, int]) -> str:
        way = self.way or way_of(self.schedule)
        text = gpu_rollout(self.schedule, self._real, way=way)
        return assembly.ptx(text, capability, is_optimised=way in OPTIMISED)


AnyRollout = Rollout | GpuRollout
