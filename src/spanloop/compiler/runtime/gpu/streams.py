"""Streams of an NVIDIA GPU, copies on them, and host memory that copies use without a detour (pinned memory)."""

from __future__ import annotations

import ctypes

import numpy as np

from spanloop.compiler.runtime.gpu import driver
from spanloop.compiler.runtime.gpu.driver import Device

_HOST, _DEVICE = 1, 2  # kinds of memory


class Stream:
    """Work on a device in order; other streams run beside it. It waits for the default stream, and that for it."""

    def __init__(self, device: Device):
        device.enter()
        self.device, self._handle = device, ctypes.c_void_p()
        driver.call("cuStreamCreate", ctypes.byref(self._handle), 0)

    @property
    def handle(self) -> int:
        """As the driver knows it."""
        return self._handle.value or 0

    def synchronize(self) -> None:
        """Wait for all work on it."""
        driver.synchronize(self.device, self.handle)

    def wait_for(self, other: Stream) -> None:
        """Begin what follows only when the work that is on another stream now is done."""
        driver.wait(self.device, self.handle, other.handle)

    def write(self, to: int, address: int, size: int) -> None:
        """Copy bytes of this process to the device; they must stay until the stream is synchronised."""
        self._call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(to), ctypes.c_void_p(address), ctypes.c_size_t(size))

    def read(self, address: int, source: int, size: int) -> None:
        """Copy bytes of the device to this process; they are there when the stream is synchronised."""
        self._call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(address), ctypes.c_uint64(source), ctypes.c_size_t(size))

    def copy(self, to: int, source: int, size: int) -> None:
        """Copy bytes on the device."""
        self._call("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(size))

    def fill(self, to: int, byte: int, size: int) -> None:
        """Set bytes on the device."""
        self._call("cuMemsetD8Async", ctypes.c_uint64(to), ctypes.c_ubyte(byte), ctypes.c_size_t(size))

    def read_rows(self, address: int, source: int, size: int, pitch: int, rows: int) -> None:
        """Copy the first `size` bytes of rows that are `pitch` bytes apart, here and there."""
        shape = _Rows(0, 0, _DEVICE, None, source, None, pitch, 0, 0, _HOST, address, 0, None, pitch, size, rows)
        self._call("cuMemcpy2DAsync_v2", ctypes.byref(shape))

    def _call(self, function: str, *arguments: object) -> None:
        self.device.enter()
        driver.call(function, *arguments, self._handle)

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), ctypes.c_void_p()
        if handle and driver._library is not None:
            library = driver._library()
            library.cuCtxSetCurrent(ctypes.c_void_p(self.device.context))
            library.cuStreamDestroy_v2(handle)


class _Rows(ctypes.Structure):
    """CUDA_MEMCPY2D of the driver."""

    _fields_ = [
        ("source_x", ctypes.c_size_t),
        ("source_y", ctypes.c_size_t),
        ("source_kind", ctypes.c_uint),
        ("source_host", ctypes.c_void_p),
        ("source_device", ctypes.c_uint64),
        ("source_array", ctypes.c_void_p),
        ("source_pitch", ctypes.c_size_t),
        ("to_x", ctypes.c_size_t),
        ("to_y", ctypes.c_size_t),
        ("to_kind", ctypes.c_uint),
        ("to_host", ctypes.c_void_p),
        ("to_device", ctypes.c_uint64),
        ("to_array", ctypes.c_void_p),
        ("to_pitch", ctypes.c_size_t),
        ("size", ctypes.c_size_t),
        ("rows", ctypes.c_size_t),
    ]


class PinnedMemory:
    """Bytes of this process that stay where they are: copies from a device run beside everything else."""

    def __init__(self, device: Device, size: int):
        device.enter()
        self.device, self.size, self._pointer = device, size, ctypes.c_void_p()
        driver.call("cuMemHostAlloc", ctypes.byref(self._pointer), ctypes.c_size_t(max(size, 1)), 0)

    @property
    def address(self) -> int:
        """Where they begin."""
        return self._pointer.value or 0

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The first of these bytes as an array, which must not outlive this object."""
        count = int(np.prod(shape, dtype=np.int64))
        assert count * dtype.itemsize <= self.size
        raw = (ctypes.c_ubyte * (count * dtype.itemsize)).from_address(self.address)
        return np.ctypeslib.as_array(raw).view(dtype).reshape(shape)

    def __del__(self) -> None:
        pointer, self._pointer = getattr(self, "_pointer", None), ctypes.c_void_p()
        if pointer and driver._library is not None:
            library = driver._library()
            library.cuCtxSetCurrent(ctypes.c_void_p(self.device.context))
            library.cuMemFreeHost(pointer)
