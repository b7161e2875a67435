"""A compiled time loop: many steps of one run or of many, without Python in between."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from spanloop.compiler.lower import Schedule
from spanloop.compiler.render.rollout import rollout
from spanloop.compiler.runtime import arrays, cache, machine
from spanloop.compiler.runtime.kernel import REAL, checked_dtype, checked_threads, pool

_POINTER, _WORD, _DOUBLE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
_KINDS = [_POINTER, _POINTER, _WORD, _POINTER, _WORD, _WORD, _POINTER, _WORD, _POINTER, _POINTER]
_KINDS += [_DOUBLE, _DOUBLE] + [_WORD] * 5


@dataclass(frozen=True)
class Steps:
    """Which steps: numbers first .. first + count − 1 of length h [s]; time is start + number·h."""

    start: float
    h: float
    first: int
    count: int
    every: int = 1  # a sample is recorded at the start of each `every`-th step, and after the last


class Rollout:
    """Runs side by side, advanced together.

    key: names everything that the schedule depends on. Rows of state, constants and controls hold the arrays of the
    schedule, one after the other.
    """

    def __init__(self, key: str, schedule: Callable[[], Schedule], dtype: str = "float64", threads: int = 1):
        dtype = checked_dtype(dtype)
        self.dtype, self.threads = np.dtype(dtype), checked_threads(threads)
        self.key, self._make, self._real = key, schedule, REAL[dtype]
        self.from_cache = True

    @cached_property
    def schedule(self) -> Schedule:
        """The calls of one step."""
        return self._make()

    def source(self, width: int) -> str:
        """LLVM source of the time loop with `width` runs to a vector."""
        return rollout(self.schedule, self._real, width)

    def run(
        self,
        state: np.ndarray,
        constants: np.ndarray,
        controls: np.ndarray,
        why: np.ndarray,
        steps: Steps,
        record: np.ndarray | None = None,
    ) -> np.ndarray:
        """Advance state (n, width) in place; the number of steps that ended well, (n,).

        constants (n or 1, width); controls (n or 1, steps or 1, width); why (n,) uint8 is 0 for runs that go on, and
        gets the bits of what ended the others; record (n, samples, width) is filled from its beginning.
        """
        count = len(state)
        counts = np.zeros(count, np.int64)
        fixed = (
            arrays.address(state),
            arrays.address(constants),
            constants.shape[1] if len(constants) > 1 else 0,
            arrays.address(controls),
            controls.shape[1] * controls.shape[2] if len(controls) > 1 else 0,
            controls.shape[2] if controls.shape[1] > 1 else 0,
            arrays.address(record) if record is not None else None,
            record.strides[0] // self.dtype.itemsize if record is not None else 0,
            arrays.address(counts),
            arrays.address(why),
            steps.start,
            steps.h,
            steps.first,
            steps.count,
            steps.every,
        )
        if count == 1:
            self._single(*fixed, 0, 1)
            return counts
        width = machine.lanes(self._real)
        groups = -(-count // width)
        parts = min(self.threads, groups)
        edges = [min(count, width * (groups * k // parts)) for k in range(parts + 1)]
        batch = self._batch

        def part(begin: int, end: int) -> None:
            batch(*fixed, begin, end)

        others = [pool(parts).submit(part, a, b) for a, b in pairwise(edges[1:])] if parts > 1 else []
        part(edges[0], edges[1])  # this thread works too
        for f in others:
            f.result()
        return counts

    @cached_property
    def _single(self):
        return self._function(1)

    @cached_property
    def _batch(self):
        return self._function(machine.lanes(self._real))

    def _function(self, width: int):
        key = cache.key("rollout", self.key, str(width), self._real, machine.identity())
        artifact = cache.read(key)
        self.from_cache = self.from_cache and artifact is not None
        if artifact is None:
            artifact = cache.Artifact(machine.object_code(self.source(width)))
            cache.write(key, artifact)
        code = machine.Code(artifact.code)
        self._codes = (*getattr(self, "_codes", ()), code)  # lives as long as this object
        return ctypes.CFUNCTYPE(None, *_KINDS)(code.function("rollout"))
