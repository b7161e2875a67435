"""A compiled time loop: many steps of one run or of many, without Python in between."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.compiler.lower import Schedule
from spanloop.compiler.render.rollout import distant, rollout
from spanloop.compiler.runtime import arrays, cache, machine
from spanloop.compiler.runtime.kernel import REAL, checked_dtype, checked_threads

_POINTER, _WORD, _DOUBLE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
KINDS: list[Any] = [_POINTER, _POINTER, _WORD, _POINTER, _WORD, _WORD, _POINTER, _WORD, _POINTER, _POINTER]
KINDS += [_DOUBLE, _DOUBLE, _WORD, _WORD, _WORD, _POINTER, _WORD, _WORD, _POINTER, _POINTER, _WORD, _WORD]
_PARTS = ("state", "constants", "controls", "record")
_Function = tuple[Callable[..., None], int, Mapping[str, Any], machine.Code]


@dataclass(frozen=True)
class Steps:
    """Which steps: numbers first .. first + count − 1 of length h [s]; time is start + number·h."""

    start: float
    h: float
    first: int
    count: int
    every: int = 1  # a sample is recorded at the start of each `every`-th step, and after the last

    def stretches(self, longest: int | Callable[[], int]) -> Iterator[tuple[int, int]]:
        """All steps in parts of at most `longest`: the first of each, how many. No sample is inside a part.

        An empty part at the end records the sample there, if no part before it does. longest: a number, or a function
        that is asked before each part.
        """
        first = 0
        while first < self.count:
            most = longest() if callable(longest) else longest
            most = most - most % self.every or most
            is_recorded = first % self.every == 0
            is_whole = most >= self.every and is_recorded
            sample = self.count if is_whole else first - first % self.every + self.every
            last = min(first + most, sample, self.count)
            yield first, last - first
            first = last
        if self.count == 0 or (not is_recorded and self.count % self.every == 0):
            yield self.count, 0


class Rollout:
    """Runs side by side, advanced together.

    key: names everything that the schedule depends on. Rows of state, constants and controls hold the arrays of the
    schedule, one after the other.
    """

    def __init__(
        self, key: str, schedule: Callable[[], Schedule], dtype: str = "float64", threads: int = 1, label: str = ""
    ):
        """label: of what moves, for reports."""
        dtype = checked_dtype(dtype)
        self.label = label
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
        log: np.ndarray | None = None,
        logged: np.ndarray | None = None,
    ) -> np.ndarray:
        """Advance state (n, width) in place; the number of steps that ended well, (n,).

        constants (n or 1, width); controls (n or 1, steps or 1, width); why (n,) uint8 is 0 for runs that go on, and
        gets the bits of what ended the others; record (n, samples, width) is filled from its beginning.
        log (n, capacity, width), plain C order; logged (n,) int64: rows that each run has logged so far, which it goes
        on counting beyond the capacity. Without `logged` nothing is logged.
        """
        runs, counts = len(state), np.zeros(len(state), np.int64)
        function, effort, facts, _ = self._single if runs == 1 else self._batch
        found = {"state": state.shape[1]} | ({"record": record.shape[2]} if record is not None else {})
        assert all(facts[name] == size for name, size in found.items()), (facts, found)
        width = 1 if runs == 1 else machine.lanes(self._real)

        def memory() -> np.ndarray:
            """Of one thread, for arrays that are too large for its stack."""
            return arrays.aligned(facts["memory"])

        parts = _Parts(self, state, constants, controls, why, counts, steps, record, log, logged)
        if runs * steps.count * effort < machine.SLICE // 50:
            own = memory()  # which must outlive the call
            function(*parts.arguments(0, steps.count), arrays.address(own), 0, runs)
            return counts
        slices = machine.Slices(runs, width, effort * max(1, steps.count), self.threads)
        groups = -(-min(runs, slices.size) // width)
        longest = max(1, machine.SLICE // (effort * groups))

        def work(slices: machine.Slices) -> None:
            own = memory()
            for begin, end in slices:
                done = np.zeros(end - begin, np.int64)
                for first, count in steps.stretches(longest):
                    if slices.stopped:
                        return
                    function(*parts.arguments(first, count), arrays.address(own), begin, end)
                    done += counts[begin:end]
                counts[begin:end] = done

        slices.share(work)
        return counts

    def places(self, part: str, runs: int) -> dict[str, slice]:
        """Where each array is in a row of "state", "constants", "controls" or "record"; runs: how many there are."""
        _, _, facts, _ = self._single if runs == 1 else self._batch
        return places_in(facts["arrays"][part])

    def bound_step(self, state: np.ndarray, constants: np.ndarray) -> Callable[[], bool]:
        """A function that takes one step from state (1, width), in place, with constants (1, width) as they are then.

        Both arrays are in plain C order and stay where they are. The function returns whether the step ended well.
        """
        assert all(x.flags.c_contiguous and x.dtype == self.dtype for x in (state, constants))
        why, counts = np.zeros(1, np.uint8), np.zeros(1, np.int64)
        none, once = np.zeros((1, 1, 0), self.dtype), Steps(0.0, 1.0, 0, 1)
        parts = _Parts(self, state, constants, none, why, counts, once, None, None, None)
        _, _, facts, code = self._single
        memory = arrays.aligned(facts["memory"])
        given = (*parts.arguments(0, 1), arrays.address(memory), 0, 1)
        arguments = tuple(kind(x) for kind, x in zip(KINDS, given, strict=True))
        function = ctypes.CFUNCTYPE(None)(code.address("rollout"))  # converts no arguments: half the time
        kept = parts, memory  # the function's arrays

        def step() -> bool:
            function(*arguments)
            why = kept[0].why
            if why[0]:
                why[0] = 0
                return False
            return True

        return step

    @cached_property
    def _single(self) -> _Function:
        return self._function(1)

    @cached_property
    def _batch(self) -> _Function:
        return self._function(machine.lanes(self._real))

    def _function(self, width: int) -> _Function:
        """The time loop, the operations of one step, sizes of its arrays, and the code that must stay loaded."""
        key = cache.key("rollout", self.key, str(width), self._real, machine.identity())
        artifact = cache.read(key)
        self.from_cache = self.from_cache and artifact is not None
        if artifact is None:
            with machine.reported(f"compiling the simulation {self.label}" + " in batches" * (width > 1)):
                artifact = cache.Artifact(
                    machine.object_code(self.source(width)), facts_of(self.schedule, self._real, width)
                )
            cache.write(key, artifact)
        code = machine.Code(artifact.code, "rollout")
        function = ctypes.CFUNCTYPE(None, *KINDS)(code.address("rollout"))
        return function, artifact.facts["operations"], artifact.facts, code


@dataclass
class _Parts:
    """The arrays of a call of Rollout.run, and where they begin for some of its steps."""

    owner: Rollout  # whose machine code stays loaded
    state: np.ndarray
    constants: np.ndarray
    controls: np.ndarray
    why: np.ndarray
    counts: np.ndarray
    steps: Steps
    record: np.ndarray | None
    log: np.ndarray | None
    logged: np.ndarray | None

    def __post_init__(self) -> None:
        log, logged = self.log, self.logged
        assert log is None or (log.flags.c_contiguous and log.dtype == self.owner.dtype and logged is not None)
        assert logged is None or (logged.flags.c_contiguous and logged.dtype == np.int64)

    def arguments(self, first: int, count: int) -> tuple:
        """Of the native function, for `count` steps from number `first` on; with none, only the sample there."""
        constants, controls, record = self.constants, self.controls, self.record
        size, log, logged = self.owner.dtype.itemsize, self.log, self.logged
        found = Addresses(
            state=arrays.address(self.state),
            constants=arrays.address(constants),
            constant_stride=constants.shape[1] if len(constants) > 1 else 0,
            controls=arrays.address(controls),
            run_stride=controls.shape[1] * controls.shape[2] if len(controls) > 1 else 0,
            step_stride=controls.shape[2] if controls.shape[1] > 1 else 0,
            counts=arrays.address(self.counts),
            why=arrays.address(self.why),
            record=None if record is None else arrays.address(record),
            sample_stride=0 if record is None else record.strides[1] // size,
            record_stride=0 if record is None else record.strides[0] // size,
            log=None if log is None else arrays.address(log),
            log_stride=0 if log is None else log.shape[1] * log.shape[2],
            capacity=0 if log is None else log.shape[1],
            logged=None if logged is None else arrays.address(logged),
        )
        return found.arguments(self.steps, first, count, size)


@dataclass(frozen=True)
class Addresses:
    """Where the arrays of a time loop begin; strides are in numbers, 0 where all runs, or all steps, share a row."""

    state: int
    constants: int
    constant_stride: int
    controls: int
    run_stride: int
    step_stride: int
    counts: int
    why: int
    record: int | None = None  # None: nothing is recorded
    sample_stride: int = 0
    record_stride: int = 0
    log: int | None = None
    log_stride: int = 0
    capacity: int = 0
    logged: int | None = None  # None: nothing is logged

    def arguments(self, steps: Steps, first: int, count: int, itemsize: int) -> tuple:
        """Of the native function, but for memory and runs: `count` of the steps from number `first` of them on."""
        sample, phase = divmod(first, steps.every)
        is_recorded = self.record is not None and phase == 0
        return (
            self.state,
            self.constants,
            self.constant_stride,
            self.controls + first * self.step_stride * itemsize,
            self.run_stride,
            self.step_stride,
            (self.record or 0) + sample * self.sample_stride * itemsize if is_recorded else None,
            self.record_stride if is_recorded else 0,
            self.counts,
            self.why,
            steps.start,
            steps.h,
            steps.first + first,
            count,
            steps.every,
            self.log,
            self.log_stride,
            self.capacity,
            self.logged,
        )


def facts_of(schedule: Schedule, real: str, width: int) -> dict[str, Any]:
    """What is known of a compiled schedule: operations of a step, bytes of memory of a thread, sizes of its arrays."""
    s = schedule
    return {
        "operations": s.operations,
        "memory": distant(s, real, width)[1],
        "state": s.width(s.state),
        "record": s.width(s.record),
        "arrays": {p: {n: s.sizes[n] for n in getattr(s, p)} for p in _PARTS},
    }


def places_in(sizes: Mapping[str, int]) -> dict[str, slice]:
    """Where each array is in a row of all of them, one after the other."""
    ends = itertools.accumulate(sizes.values())
    return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}
