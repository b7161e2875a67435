"""A double of NVIDIA's driver on this processor, for the bookkeeping around kernels.

Work on a stream waits in a queue until somebody synchronises, as late as a device may do it; new and freed memory is
filled with noise; copies outside an allocation and allocations beyond the memory fail. A kernel of rollouts is the same
LLVM text, compiled for the processor (host_rollout). `story` lists what was asked for, in order.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from spanloop.compiler.render.gpu.rollout import NAME, host_rollout
from spanloop.compiler.runtime import machine
from spanloop.compiler.runtime.gpu import assembly, driver
from spanloop.compiler.runtime.gpu import rollout as gpu_rollouts
from spanloop.compiler.runtime.gpu.driver import Device
from spanloop.compiler.runtime.rollout import KINDS
from spanloop.simulation.integrators import integrator

_OUT_OF_MEMORY, _ILLEGAL_ADDRESS = 2, 700
_ATTRIBUTES = {75: 9, 76: 0, 16: 4, 97: 227 * 1024, 115: 1}
_NOISE = 0xA5
_loaded: dict[int, machine.Code] = {}  # stays loaded for the life of the process, as code of the driver does
_numbers = itertools.count(100)


def _value(x):
    return getattr(x, "value", x)


@dataclass
class DriverDouble:
    """The functions of libcuda that the library calls; memory: bytes of the device."""

    memory: int = 2**28
    story: list[str] = field(default_factory=list)
    interrupt: Callable[[str], None] = lambda what: None  # is called before everything that is in the story

    def __post_init__(self):
        self.used = self.most = 0
        self._blocks: dict[int, ctypes.Array] = {}
        self._pinned: dict[int, ctypes.Array] = {}
        self._queues: dict[int, list[Callable[[], None]]] = {}
        self._reached: set[int] = set()
        self._objects: list[object] = []
        self.failed = 0

    # ---- queues

    def _new(self) -> int:
        return next(_numbers)

    def _put(self, stream, what: str, work: Callable[[], None]) -> int:
        self._tell(what)
        stream = _value(stream) or 0
        if stream == 0:  # waits for all others
            self._run_all()
            work()
        else:
            self._queues[stream].append(work)
        return self.failed

    def _tell(self, what: str) -> None:
        self.interrupt(what)
        self.story.append(what)

    def _run(self, stream: int) -> None:
        queue = self._queues[stream]
        while queue:
            queue.pop(0)()

    def _run_all(self) -> None:
        for stream in self._queues:
            self._run(stream)

    def cuStreamCreate(self, out, flags):
        assert flags == 0
        out._obj.value = self._new()
        self._queues[out._obj.value] = []
        return 0

    def cuStreamDestroy_v2(self, stream):
        self._run(_value(stream))
        return 0

    def cuStreamSynchronize(self, stream):
        stream = _value(stream) or 0
        self._tell("synchronize")
        self._run_all() if stream == 0 else self._run(stream)
        return self.failed

    def cuCtxSynchronize(self):
        self._run_all()
        return self.failed

    def cuEventCreate(self, out, flags):
        out._obj.value = self._new()
        return 0

    def cuEventRecord(self, event, stream):
        number = _value(event)
        return self._put(stream, "event", lambda: self._reached.add(number))

    def cuStreamWaitEvent(self, stream, event, flags):
        number = _value(event)

        def wait() -> None:
            for other, queue in self._queues.items():
                while number not in self._reached and queue and other != _value(stream):
                    queue.pop(0)()
            assert number in self._reached

        return self._put(stream, "wait", wait)

    def cuEventDestroy_v2(self, event):
        return 0

    # ---- memory

    def cuMemAllocAsync(self, out, size, stream):
        if self.used + _value(size) > self.memory:
            return _OUT_OF_MEMORY
        block = (ctypes.c_ubyte * _value(size))()
        ctypes.memset(block, _NOISE, _value(size))
        out._obj.value = ctypes.addressof(block)
        self._blocks[out._obj.value] = block
        self.used += _value(size)
        self.most = max(self.most, self.used)
        return 0

    def cuMemFreeAsync(self, pointer, stream):
        self._run_all()
        block = self._blocks.pop(_value(pointer))
        ctypes.memset(block, _NOISE, len(block))
        self.used -= len(block)
        self._objects.append(block)  # late readers find noise
        return 0

    def cuMemHostAlloc(self, out, size, flags):
        block = (ctypes.c_ubyte * _value(size))()
        ctypes.memset(block, _NOISE, _value(size))
        out._obj.value = ctypes.addressof(block)
        self._pinned[out._obj.value] = block
        return 0

    def cuMemFreeHost(self, pointer):
        self._run_all()
        self._objects.append(self._pinned.pop(_value(pointer)))
        return 0

    def _checked(self, pointer: int, size: int) -> bool:
        inside = any(a <= pointer and pointer + size <= a + len(b) for a, b in self._blocks.items())
        if not inside and size:
            self.failed = _ILLEGAL_ADDRESS
        return inside

    def _copy(self, stream, what: str, to, source, size, *on_device) -> int:
        to, source, size = _value(to), _value(source), _value(size)

        def copy() -> None:
            if all(self._checked(p, size) for p in (to if d == "to" else source for d in on_device)):
                ctypes.memmove(to, source, size)

        return self._put(stream, what, copy)

    def cuMemcpyHtoDAsync_v2(self, to, source, size, stream):
        return self._copy(stream, "write", to, source, size, "to")

    def cuMemcpyDtoHAsync_v2(self, to, source, size, stream):
        pinned = any(a <= _value(to) < a + len(b) for a, b in self._pinned.items())
        return self._copy(stream, "read samples" if pinned else "read", to, source, size, "source")

    def cuMemcpyDtoDAsync_v2(self, to, source, size, stream):
        return self._copy(stream, "copy", to, source, size, "to", "source")

    def cuMemsetD8Async(self, to, byte, size, stream):
        to, byte, size = _value(to), _value(byte), _value(size)

        def fill() -> None:
            if self._checked(to, size):
                ctypes.memset(to, byte, size)

        return self._put(stream, "fill", fill)

    def cuMemcpy2DAsync_v2(self, shape, stream):
        x = type(shape._obj).from_buffer_copy(shape._obj)

        def copy() -> None:
            if self._checked(x.source_device, (x.rows - 1) * x.source_pitch + x.size):
                for k in range(x.rows):
                    ctypes.memmove(x.to_host + k * x.to_pitch, x.source_device + k * x.source_pitch, x.size)

        return self._put(stream, "read rows", copy)

    def cuMemGetInfo_v2(self, free, total):
        free._obj.value, total._obj.value = self.memory - self.used, self.memory
        return 0

    # ---- the device

    def cuInit(self, flags):
        return 0

    def cuDriverGetVersion(self, out):
        out._obj.value = 99990  # of no real driver: what the disk cache keeps is the double's
        return 0

    def cuGetErrorString(self, status, out):
        out._obj.value = {_OUT_OF_MEMORY: b"out of memory"}.get(status, b"an illegal address was encountered")
        return 0

    def cuDeviceGetCount(self, out):
        out._obj.value = 1
        return 0

    def cuDeviceGet(self, out, number):
        return 0

    def cuDeviceGetName(self, name, size, handle):
        name.value = b"Double"
        return 0

    def cuDeviceTotalMem_v2(self, out, handle):
        out._obj.value = self.memory
        return 0

    def cuDeviceGetAttribute(self, out, number, handle):
        out._obj.value = _ATTRIBUTES[number]
        return 0

    def cuDevicePrimaryCtxRetain(self, out, handle):
        out._obj.value = 1
        return 0

    def cuCtxSetCurrent(self, context):
        return 0

    def cuDeviceGetDefaultMemPool(self, out, handle):
        return 0

    def cuMemPoolSetAttribute(self, pool, number, value):
        return 0

    def cuMemPoolGetAttribute(self, pool, number, value):
        return 0

    # ---- code

    def cuLinkCreate_v2(self, *arguments):
        return 0

    def cuLinkAddData_v2(self, link, kind, text, size, *more):
        self._code = machine.object_code(text[:-1].decode())
        return 0

    def cuLinkComplete(self, link, data, size):
        self._kept = ctypes.create_string_buffer(self._code, len(self._code))
        data._obj.value, size._obj.value = ctypes.addressof(self._kept), len(self._code)
        return 0

    def cuLinkDestroy(self, link):
        return 0

    def cuModuleLoadData(self, out, data):
        out._obj.value = self._new()
        _loaded[out._obj.value] = machine.Code(data[:-1], NAME)
        return 0

    def cuModuleGetFunction(self, out, module, name):
        out._obj.value = _loaded[_value(module)].address(name.decode())
        return 0

    def cuLaunchKernel(self, function, *arguments):
        blocks, threads, stream, table = arguments[0], arguments[3], arguments[7], arguments[8]
        assert blocks * threads > 0
        kinds = KINDS[:-1]
        given = [ctypes.cast(table[k], ctypes.POINTER(kind))[0] for k, kind in enumerate(kinds)]
        code = ctypes.CFUNCTYPE(None, *kinds)(_value(function))
        return self._put(stream, "launch", lambda: code(*given))


@contextlib.contextmanager
def doubled_driver(monkeypatch, **options) -> Iterator[DriverDouble]:
    """The driver's double in the place of the driver."""
    double = DriverDouble(**options)
    Device.of.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(driver, "_library", lambda: double)
        patch.setattr(integrator, "_on_gpu", {})  # rollouts keep the device that they were loaded on
        patch.setattr(gpu_rollouts, "gpu_rollout", lambda schedule, real, way: host_rollout(schedule, real, way))
        patch.setattr(assembly, "ptx", lambda text, capability=None, is_optimised=False: text)
        yield double
    Device.of.cache_clear()
