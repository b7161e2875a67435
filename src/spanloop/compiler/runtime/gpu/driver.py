"""The driver of NVIDIA GPUs (libcuda), called by ctypes: devices, memory, modules, launches.

The driver is part of a GPU's installation; no toolkit is needed. Kernels run in the primary context of a device, which
CuPy, PyTorch and JAX use too. Every call sets the context: threads of other libraries have none, or another one.
Errors are DeviceErrors that name the call and what it means. Nothing here loads the driver when it is imported.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spanloop.errors import DeviceError, InputError

_LIBRARIES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")
_OLDEST_DRIVER = 11020  # CUDA 11.2: memory that is allocated and freed in the order of a stream
_LOG = 16384  # bytes of the assembler's messages
_MEANINGS = {  # what the driver's own words leave open
    2: "the GPU has too little free memory. Use smaller batches, or free arrays of other libraries",
    100: "no NVIDIA GPU is visible to this process. Is CUDA_VISIBLE_DEVICES set to an empty list?",
    101: "there is no GPU of this number",
    209: "the code is for another kind of GPU",
    218: "the driver cannot assemble this code: it is older than the code's version of PTX. Update the driver",
    222: "the driver is too old for this version of PTX. Update the driver",
    400: "a handle is not valid: has the stream been destroyed, or does it belong to another GPU?",
    700: "a kernel read or wrote memory that is not its own; the process must be started again",
    999: "the driver reports an unknown error; see the system's log",
}
_ATTRIBUTES = {"registers": 4, "local_bytes": 3, "shared_bytes": 1}
_MAJOR, _MINOR, _MULTIPROCESSORS, _SHARED, _POOLS = 75, 76, 16, 97, 115  # attributes of a device
_POOL_RESERVED, _POOL_USED = 5, 7  # attributes of a memory pool
_DYNAMIC_SHARED = 8  # attribute of a function
_BUFFER, _BUFFER_SIZE = 1, 2  # of a launch with its arguments in one piece
_JIT_ERROR_LOG, _JIT_ERROR_SIZE, _PTX, _CUBIN = 5, 6, 1, 0


@functools.cache
def _library() -> Any:
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        if not all(hasattr(library, x) for x in ("cuInit", "cuDriverGetVersion", "cuDeviceGetCount")):
            raise DeviceError(
                f"target 'cuda': {name} is not NVIDIA's driver: it has no cuInit or other functions of it (a stub?). "
                "Install the driver, or use target='cpu'"
            )
        status = library.cuInit(0)
        if status:
            raise DeviceError(f"target 'cuda': {_sentence(library, 'cuInit', status)}")
        version = ctypes.c_int()
        library.cuDriverGetVersion(ctypes.byref(version))
        if version.value < _OLDEST_DRIVER:
            raise DeviceError(
                f"target 'cuda': the driver supports CUDA {_version(version.value)}; expected "
                f"{_version(_OLDEST_DRIVER)} or later. Update the driver, or use target='cpu'"
            )
        return library
    raise DeviceError(
        "target 'cuda' needs an NVIDIA GPU with its driver; the driver's library (libcuda.so.1) was not found. "
        "Use target='cpu' on this machine"
    )


@functools.cache
def _launchers() -> tuple[Any, Any]:
    """cuLaunchKernel and cuCtxSetCurrent with the types of their arguments, which ctypes then need not guess."""
    library = _library()
    launch, enter = library["cuLaunchKernel"], library["cuCtxSetCurrent"]
    launch.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
    enter.argtypes = [ctypes.c_void_p]
    return launch, enter


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _sentence(library: Any, call: str, status: int) -> str:
    text = ctypes.c_char_p()
    library.cuGetErrorString(status, ctypes.byref(text))
    words = (text.value or b"unknown error").decode()
    meaning = _MEANINGS.get(status)
    return f"{call} failed ({status}: {words})" + (f"; {meaning}" if meaning else "")


def call(function: str, *arguments: Any) -> None:
    """Call the driver; DeviceError where it fails."""
    library = _library()
    entry = getattr(library, function, None)
    if entry is None:
        raise DeviceError(f"target 'cuda': the driver has no {function}. Update the driver, or use target='cpu'")
    status = entry(*arguments)
    if status:
        raise DeviceError(f"target 'cuda': {_sentence(library, function, status)}")


def address(function: str) -> int:
    """Where a function of the driver begins."""
    return ctypes.cast(getattr(_library(), function), ctypes.c_void_p).value or 0


def is_available() -> bool:
    """Whether this process can use an NVIDIA GPU."""
    try:
        return device_count() > 0
    except DeviceError:
        return False


def names() -> tuple[str, ...]:
    """The names of all GPUs, in order; none of them is taken into use."""
    found = []
    for number in range(device_count()):
        handle, name = ctypes.c_int(), ctypes.create_string_buffer(256)
        call("cuDeviceGet", ctypes.byref(handle), number)
        call("cuDeviceGetName", name, 256, handle)
        found.append(name.value.decode())
    return tuple(found)


def device_count() -> int:
    """How many GPUs there are."""
    count = ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(count))
    return count.value


def checked_number(device: Any) -> int:
    """The number of a GPU, checked to be a whole number; the GPU need not exist."""
    if isinstance(device, bool) or not isinstance(device, int | np.integer) or device < 0:
        raise InputError(
            f"device is {device!r}; expected the number of a GPU, a whole number from 0 on: device=0 is the first"
        )
    return int(device)


@dataclass(frozen=True)
class Device:
    """One GPU. capability: (major, minor); shared: bytes of shared memory that a block may have; memory: bytes."""

    number: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    shared: int
    memory: int
    driver: int
    context: int = field(repr=False)

    @staticmethod
    @functools.cache
    def of(number: int = 0) -> Device:
        """The GPU of this number, its primary context retained."""
        if not 0 <= number < max(device_count(), 1):
            raise DeviceError(f"target 'cuda': there is no GPU {number}; there are {device_count()}, counted from 0")
        handle, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t()
        call("cuDeviceGet", ctypes.byref(handle), number)
        name = ctypes.create_string_buffer(256)
        call("cuDeviceGetName", name, 256, handle)
        call("cuDeviceTotalMem_v2", ctypes.byref(memory), handle)
        facts = [_attribute(handle, k) for k in (_MAJOR, _MINOR, _MULTIPROCESSORS, _SHARED, _POOLS)]
        if not facts[4]:
            raise DeviceError(f"target 'cuda': GPU {number} ({name.value.decode()}) has no memory pools; use 'cpu'")
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
        version = ctypes.c_int()
        call("cuDriverGetVersion", ctypes.byref(version))
        found = Device(
            number, name.value.decode(), (facts[0], facts[1]), facts[2], facts[3], memory.value, version.value,
            context.value or 0,
        )  # fmt: skip
        found._keep_freed_memory(handle)
        return found

    def _keep_freed_memory(self, handle: ctypes.c_int) -> None:
        """Memory that was freed stays with the process: allocating it again takes a microsecond."""
        self.enter()
        pool, bound = ctypes.c_void_p(), ctypes.c_uint64(2**64 - 1)
        call("cuDeviceGetDefaultMemPool", ctypes.byref(pool), handle)
        call("cuMemPoolSetAttribute", pool, 4, ctypes.byref(bound))

    def enter(self) -> None:
        """Make this device that of the calling thread."""
        call("cuCtxSetCurrent", ctypes.c_void_p(self.context))

    def synchronize(self) -> None:
        """Wait for everything that was started on this device."""
        self.enter()
        call("cuCtxSynchronize")

    def free_memory(self) -> int:
        """Bytes that can be allocated now; memory that this process has freed and kept is among them."""
        self.enter()
        free, total, handle, pool = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_int(), ctypes.c_void_p()
        call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        call("cuDeviceGet", ctypes.byref(handle), self.number)
        call("cuDeviceGetDefaultMemPool", ctypes.byref(pool), handle)
        kept, used = ctypes.c_uint64(), ctypes.c_uint64()
        call("cuMemPoolGetAttribute", pool, _POOL_RESERVED, ctypes.byref(kept))
        call("cuMemPoolGetAttribute", pool, _POOL_USED, ctypes.byref(used))
        return free.value + kept.value - used.value


def _attribute(handle: ctypes.c_int, number: int) -> int:
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), number, handle)
    return value.value


class Memory:
    """Bytes on a device, freed with this object.

    Memory of the default stream is freed in the order of that stream. Another stream may have been destroyed by then:
    its memory is freed when the device has done all its work.
    """

    def __init__(self, device: Device, size: int, stream: int = 0):
        """size: bytes; stream: after whose work the memory may be used."""
        device.enter()
        self.device, self.size, self.stream = device, size, stream
        pointer = ctypes.c_uint64()
        try:
            call("cuMemAllocAsync", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)), ctypes.c_void_p(stream))
        except DeviceError as problem:
            raise DeviceError(f"{problem} ({size / 1e9:.3g} GB were asked for)") from None
        self.pointer = pointer.value

    def free(self) -> None:
        """Free it after the work that is on its stream now; the stream must exist."""
        pointer, self.pointer = self.pointer, 0
        if pointer:
            self.device.enter()
            call("cuMemFreeAsync", ctypes.c_uint64(pointer), ctypes.c_void_p(self.stream))

    def __del__(self) -> None:
        pointer, self.pointer = getattr(self, "pointer", 0), 0
        if pointer and _library is not None:
            library = _library()
            library.cuCtxSetCurrent(ctypes.c_void_p(self.device.context))
            if self.stream:
                library.cuMemFree_v2(ctypes.c_uint64(pointer))
            else:
                library.cuMemFreeAsync(ctypes.c_uint64(pointer), ctypes.c_void_p(0))

    def write(self, address: int, size: int, offset: int = 0) -> None:
        """Copy bytes from an address of this process."""
        self.device.enter()
        call(
            "cuMemcpyHtoDAsync_v2", ctypes.c_uint64(self.pointer + offset), ctypes.c_void_p(address),
            ctypes.c_size_t(size), ctypes.c_void_p(self.stream),
        )  # fmt: skip

    def read(self, address: int, size: int, offset: int = 0) -> None:
        """Copy bytes to an address of this process; they are there when the stream is synchronised."""
        self.device.enter()
        call(
            "cuMemcpyDtoHAsync_v2", ctypes.c_void_p(address), ctypes.c_uint64(self.pointer + offset),
            ctypes.c_size_t(size), ctypes.c_void_p(self.stream),
        )  # fmt: skip


def synchronize(device: Device, stream: int = 0) -> None:
    """Wait for everything that was started on a stream."""
    device.enter()
    call("cuStreamSynchronize", ctypes.c_void_p(stream))


def wait(device: Device, stream: int, other: int) -> None:
    """Let a stream wait for everything that was started on another one; the process goes on."""
    device.enter()
    event = ctypes.c_void_p()
    call("cuEventCreate", ctypes.byref(event), 2)  # without a time
    try:
        call("cuEventRecord", event, ctypes.c_void_p(other))
        call("cuStreamWaitEvent", ctypes.c_void_p(stream), event, 0)
    finally:
        _library().cuEventDestroy_v2(event)


def linked(device: Device, ptx: str) -> bytes:
    """Machine code (a cubin) of PTX, made by the driver's assembler."""
    device.enter()
    log = ctypes.create_string_buffer(_LOG)
    options = (ctypes.c_int * 2)(_JIT_ERROR_LOG, _JIT_ERROR_SIZE)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG)
    link, data, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    text = ptx.encode() + b"\0"
    call("cuLinkCreate_v2", 2, options, values, ctypes.byref(link))
    try:
        try:
            call("cuLinkAddData_v2", link, _PTX, text, ctypes.c_size_t(len(text)), b"kernel.ptx", 0, None, None)
            call("cuLinkComplete", link, ctypes.byref(data), ctypes.byref(size))
        except DeviceError as problem:
            said = log.value.decode(errors="replace").strip()
            raise DeviceError(f"{problem}; the assembler reports: {said[:500]}" if said else str(problem)) from None
        return ctypes.string_at(data.value or 0, size.value)
    finally:
        _library().cuLinkDestroy(link)


class Module:
    """Machine code that is loaded on a device; it stays loaded for the life of the process."""

    def __init__(self, device: Device, cubin: bytes):
        device.enter()
        self.device, self._cubin = device, cubin + b"\0"
        self._handle = ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(self._handle), self._cubin)

    def function(self, name: str, shared: int = 0) -> Function:
        """A kernel of the module; shared: bytes of shared memory that a block will have."""
        self.device.enter()
        if shared > self.device.shared:
            raise DeviceError(
                f"target 'cuda': a block needs {shared} bytes of shared memory; {self.device.name} has "
                f"{self.device.shared}. Use layout='columns' or dtype='float32', or target='cpu'"
            )
        handle = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(handle), self._handle, name.encode())
        if shared > 48 * 1024:
            call("cuFuncSetAttribute", handle, _DYNAMIC_SHARED, shared)
        return Function(self, handle.value or 0, shared)

    def write_global(self, name: str, data: bytes) -> None:
        """Write the bytes of a global variable."""
        self.device.enter()
        pointer, size = ctypes.c_uint64(), ctypes.c_size_t()
        call("cuModuleGetGlobal_v2", ctypes.byref(pointer), ctypes.byref(size), self._handle, name.encode())
        call("cuMemcpyHtoD_v2", pointer, data, ctypes.c_size_t(min(len(data), size.value)))


@dataclass(frozen=True)
class Function:
    """A kernel that can be launched."""

    module: Module
    handle: int
    shared: int

    def fact(self, name: str) -> int:
        """ "registers", "local_bytes" or "shared_bytes" that it takes."""
        value = ctypes.c_int()
        call("cuFuncGetAttribute", ctypes.byref(value), _ATTRIBUTES[name], ctypes.c_void_p(self.handle))
        return value.value

    def launch_packed(self, blocks: int, threads: int, packed: bytes, stream: int = 0) -> None:
        """The same with arguments as bytes, each aligned to its size: takes some microseconds less."""
        launch, enter = _launchers()
        enter(self.module.device.context)
        size, buffer = ctypes.c_size_t(len(packed)), ctypes.create_string_buffer(packed, len(packed))
        extra = (ctypes.c_void_p * 5)(_BUFFER, ctypes.addressof(buffer), _BUFFER_SIZE, ctypes.addressof(size), 0)
        status = launch(self.handle, blocks, 1, 1, threads, 1, 1, self.shared, stream, None, extra)
        if status:
            raise DeviceError(f"target 'cuda': {_sentence(_library(), 'cuLaunchKernel', status)}")

    def launch(self, blocks: int, threads: int, arguments: Sequence[Any], stream: int = 0) -> None:
        """Start it; arguments: ctypes values. The call returns before the kernel has run."""
        self.module.device.enter()
        table = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(x) for x in arguments))
        call(
            "cuLaunchKernel", ctypes.c_void_p(self.handle), blocks, 1, 1, threads, 1, 1, self.shared,
            ctypes.c_void_p(stream), table, None,
        )  # fmt: skip
