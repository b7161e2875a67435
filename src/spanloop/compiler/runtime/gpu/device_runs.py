"""DeviceRuns: runs whose state stays on a GPU from stretch to stretch; samples are copied while the next one runs."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from spanloop.compiler.runtime import arrays
from spanloop.compiler.runtime.device_arrays import DeviceArray, checked
from spanloop.compiler.runtime.dlpack import CUDA
from spanloop.compiler.runtime.gpu import driver
from spanloop.compiler.runtime.gpu.driver import Memory
from spanloop.compiler.runtime.gpu.rollout import GpuRollout
from spanloop.compiler.runtime.gpu.streams import PinnedMemory, Stream
from spanloop.compiler.runtime.rollout import Addresses, Steps
from spanloop.errors import DeviceError, InputError

BUFFER = 2**28  # bytes of samples of a stretch, but for one sample, which is never divided
LAUNCH = 0.05  # s: a launch is no longer, so that Ctrl-C is handled in time
_GUESSED = 2e-9, 1e-12  # s an operation of one run, and of one more: until a launch has been timed
_NAN = 0xFF  # every byte of a NaN
_ALIGNED = 256


@dataclass
class _Samples:
    """A buffer of samples on the device, its copy here, and the rows that the copy goes to."""

    on_device: Memory
    here: PinnedMemory
    rows: np.ndarray | None = None  # (n, samples, width); None: nothing is on its way


class DeviceRuns:
    """State, counts and ends of runs on a device.

    done: steps that all runs have behind them, −1 during a stretch. What there was before the last stretch is kept on
    the device too, so that one that was interrupted can be undone.
    """

    def __init__(self, rollout: GpuRollout):
        self.rollout = rollout
        self.is_placed = False

    def place(
        self,
        state: np.ndarray,
        constants: np.ndarray,
        why: np.ndarray,
        counts: np.ndarray | None = None,
        done: int = 0,
    ) -> None:
        """Copy runs to the device; state, constants and why are those of Rollout.run, counts (n,) steps so far."""
        rollout, self.n = self.rollout, len(state)
        assert state.shape[1] == rollout.facts["state"], (state.shape, rollout.facts["state"])
        kinds = (
            ("state", state, rollout.dtype),
            ("counts", counts, np.dtype(np.int64)),
            ("why", why, np.dtype(np.uint8)),
        )
        self._places, at = {}, 0
        for name, x, kind in kinds:
            shape = (self.n,) if x is None else x.shape
            self._places[name] = at, shape, kind
            at += -(-int(np.prod(shape, dtype=np.int64)) * kind.itemsize // _ALIGNED) * _ALIGNED
        self._size, self._shared = at, len(constants) == 1
        constants = np.ascontiguousarray(constants, rollout.dtype)
        self._refuse_too_many(2 * at + constants.nbytes + rollout.memory(self.n))
        device = rollout.device
        self._stream, self._copying = Stream(device), Stream(device)
        self._now, self._before = Memory(device, at), Memory(device, at)
        self._constants, self._own = Memory(device, constants.nbytes), Memory(device, rollout.memory(self.n))
        self._constant_stride = 0 if self._shared else constants.shape[1]
        self._controls: tuple[np.ndarray, Memory] | None = None
        self._buffers: list[_Samples] = []
        self._log: tuple[Memory, Memory] | None = None
        device.synchronize()
        sent = [np.ascontiguousarray(np.zeros(self.n, k) if x is None else x, k) for _, x, k in kinds]
        for (offset, _, _), x in zip(self._places.values(), sent, strict=True):
            self._stream.write(self._now.pointer + offset, arrays.address(x), x.nbytes)
        self._stream.write(self._constants.pointer, arrays.address(constants), constants.nbytes)
        self._stream.copy(self._before.pointer, self._now.pointer, self._size)
        self._stream.synchronize()
        few, more = _GUESSED
        self._seconds = rollout.facts["operations"] * (few + more * self.n)  # of a step
        self.done, self.is_placed = done, True

    def samples(self, numbers: int) -> int:
        """How many samples of so many numbers, of all runs, a stretch may have; one at least."""
        return max(1, BUFFER // max(1, numbers * self.rollout.dtype.itemsize) - 1)

    def advance(
        self,
        controls: np.ndarray | DeviceArray,
        steps: Steps,
        record: np.ndarray | None = None,
        log: np.ndarray | None = None,
        logged: np.ndarray | None = None,
    ) -> None:
        """Take steps; controls, record, log and logged are those of Rollout.run. Samples arrive with `settle`.

        It returns when the steps are done. A stretch that does not begin at `done` takes the place of the last one.
        Controls on the device are read where they are, after what their stream has to do.
        """
        if steps.first == self.done:
            self._stream.copy(self._before.pointer, self._now.pointer, self._size)
        else:
            self._stream.copy(self._now.pointer, self._before.pointer, self._size)
        self.done = -1
        rows = self._sent(controls) if isinstance(controls, np.ndarray) else self._borrowed(controls)
        n, count, width = controls.shape
        samples = self._buffer(record, steps)
        logs = self._log_begun(log, logged)
        found = Addresses(
            state=self._place("state"),
            constants=self._constants.pointer,
            constant_stride=self._constant_stride,
            controls=rows,
            run_stride=count * width if n > 1 else 0,
            step_stride=width if count > 1 else 0,
            counts=self._place("counts"),
            why=self._place("why"),
            record=None if samples is None else samples.on_device.pointer,
            sample_stride=self.rollout.facts["record"],
            record_stride=0 if samples is None else _samples(steps) * self.rollout.facts["record"],
            log=logs[0].pointer if logs and logs[0] else None,
            log_stride=0 if log is None else log.shape[1] * log.shape[2],
            capacity=0 if log is None else log.shape[1],
            logged=logs[1].pointer if logs else None,
        )
        self._launched(found, steps)
        if samples is not None and record is not None:
            self._begin_copy(samples, record[:, : _samples(steps)])
        if logs and logged is not None:
            self._log_read(log, logged, *logs)
        self.done = steps.first + steps.count

    def settle(self) -> None:
        """Wait for all samples that are on their way, and put them where they belong."""
        for x in self._buffers:
            self._arrived(x)

    def why(self) -> np.ndarray:
        """The bits of what ended each run, (n,)."""
        return self._read("why", self._now)

    def fetched(self, done: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """State, why and counts of all runs after so many steps: all, or those before the last stretch.

        All samples have arrived then.
        """
        self.settle()
        source = self._now if done == self.done else self._before
        return self._read("state", source), self._read("why", source), self._read("counts", source)

    def lent(self, name: str) -> DeviceArray:
        """ "state" (n, width), "counts" or "why" (n,) on the device; other libraries read and write them in place.

        What they write on the default stream, or on one that it waits for, the next stretch begins with.
        """
        offset, shape, kind = self._places[name]
        device, stream = self.rollout.device, self._stream.handle

        def ready(consumer: int | None) -> None:
            driver.wait(device, 0 if consumer in (None, 0, 1) else consumer or 0, stream)

        return DeviceArray.of_rows(
            self._now.pointer + offset, shape, kind, device_type=CUDA, device_id=device.number, owner=self,
            stream=stream, ready=ready,
        )  # fmt: skip

    # ---- launches

    def _launched(self, found: Addresses, steps: Steps) -> None:
        """All launches of a stretch, each short enough; samples of the stretch before it arrive meanwhile."""
        for first, count in steps.stretches(lambda: max(1, int(LAUNCH / self._seconds))):
            is_timed, began = count > 0 and not any(x.rows is not None for x in self._buffers), time.perf_counter()
            self.rollout.launch(found, steps, first, count, self._own.pointer, self.n, self._stream.handle)
            self.settle()
            self._stream.synchronize()
            if is_timed:
                self._seconds = max((time.perf_counter() - began) / count, 1e-9)

    # ---- arrays

    def _place(self, name: str) -> int:
        return self._now.pointer + self._places[name][0]

    def _read(self, name: str, source: Memory) -> np.ndarray:
        offset, shape, kind = self._places[name]
        out = np.empty(shape, kind)
        self._stream.read(arrays.address(out), source.pointer + offset, out.nbytes)
        self._stream.synchronize()
        return out

    def _borrowed(self, controls: DeviceArray) -> int:
        """Where controls of another library are on the device."""
        device = self.rollout.device
        checked("advance", "controls", controls, dtype=self.rollout.dtype, device_type=CUDA, device_id=device.number)
        if not controls.is_contiguous:
            raise InputError("advance: controls have gaps between their rows; make them contiguous first")
        if controls.stream is not None:
            driver.wait(device, self._stream.handle, controls.stream)
        return controls.pointer

    def _sent(self, controls: np.ndarray) -> int:
        """Controls on the device; those of the last stretch are there already if they are the same array."""
        assert controls.flags.c_contiguous
        assert controls.dtype == self.rollout.dtype
        if self._controls is None or self._controls[0] is not controls:
            memory = self._controls[1] if self._controls is not None else None
            if memory is None or memory.size < controls.nbytes:
                self._controls = None  # frees its memory
                self._refuse_too_many(controls.nbytes)
                memory = Memory(self.rollout.device, controls.nbytes)
            self._stream.write(memory.pointer, arrays.address(controls), controls.nbytes)
            self._stream.synchronize()
            self._controls = controls, memory
        return self._controls[1].pointer

    def _refuse_too_many(self, size: int) -> None:
        """DeviceError unless so many bytes can be allocated."""
        device = self.rollout.device
        free = device.free_memory()
        if size > free:
            raise DeviceError(
                f"target 'cuda': {self.n} runs need {size / 1e9:.3g} GB more on {device.name}, which has "
                f"{free / 1e9:.3g} GB free. Simulate about {max(1, self.n * free // max(size, 1))} runs at a time, "
                "take dtype='float32' or samples further apart, or use target='cpu'"
            )

    # ---- samples

    def _buffer(self, record: np.ndarray | None, steps: Steps) -> _Samples | None:
        """A buffer for the samples of a stretch, filled with NaN: a run that has ended writes none."""
        if record is None:
            return None
        width = self.rollout.facts["record"]
        assert record.shape[2] == width, (record.shape, width)
        sample = self.n * width * self.rollout.dtype.itemsize
        size = sample * _samples(steps)
        free = [x for x in self._buffers if x.rows is None]
        if not free or free[0].on_device.size < size:
            self.settle()
            self._buffers.clear()
            device, whole = self.rollout.device, max(size, min(BUFFER, sample * record.shape[1]))
            self._refuse_too_many(2 * whole)
            self._buffers += [_Samples(Memory(device, whole), PinnedMemory(device, whole)) for _ in range(2)]
            free = self._buffers
        self._stream.fill(free[0].on_device.pointer, _NAN, size)
        return free[0]

    def _begin_copy(self, samples: _Samples, rows: np.ndarray) -> None:
        self._copying.wait_for(self._stream)
        self._copying.read(samples.here.address, samples.on_device.pointer, rows.size * rows.itemsize)
        samples.rows = rows

    def _arrived(self, samples: _Samples) -> None:
        """Put the samples where they belong, if any are on their way."""
        rows = samples.rows
        if rows is not None:
            self._copying.synchronize()
            rows[...] = samples.here.array(rows.shape, rows.dtype)
            samples.rows = None

    # ---- the log

    def _log_begun(self, log: np.ndarray | None, logged: np.ndarray | None) -> tuple[Memory | None, Memory] | None:
        """Memory of the log, and of the number of its rows."""
        if logged is None:
            return None
        device, size = self.rollout.device, 0 if log is None else log.nbytes
        if self._log is None or self._log[0].size < size:
            self._log = None  # frees its memory
            self._refuse_too_many(size + logged.nbytes)
            self._log = Memory(device, size), Memory(device, logged.nbytes)
        self._stream.write(self._log[1].pointer, arrays.address(logged), logged.nbytes)
        return (None if log is None else self._log[0]), self._log[1]

    def _log_read(self, log: np.ndarray | None, logged: np.ndarray, rows: Memory | None, numbers: Memory) -> None:
        """Copy what was logged; of the log only as many rows of each run as some run has."""
        self._stream.read(arrays.address(logged), numbers.pointer, logged.nbytes)
        self._stream.synchronize()
        if log is None or rows is None:
            return
        most = min(int(logged.max(initial=0)), log.shape[1])
        if most and log.size:
            self._stream.read_rows(arrays.address(log), rows.pointer, most * log.strides[1], log.strides[0], self.n)
            self._stream.synchronize()


def _samples(steps: Steps) -> int:
    """Samples of steps that begin at one."""
    return steps.count // steps.every + 1
