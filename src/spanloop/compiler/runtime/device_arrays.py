"""Arrays of other libraries, on any device, without a copy: DLPack and the CUDA array interface, in and out.

borrowed(x)   x of CuPy, PyTorch, JAX, NumPy, Numba, ... → DeviceArray: where its numbers are
returned(d)   a DeviceArray that we own → an array of the library that x is of
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.compiler.runtime import dlpack
from spanloop.compiler.runtime.dlpack import CPU, CUDA, CUDA_HOST, CUDA_MANAGED
from spanloop.errors import InputError
from spanloop.math.torch_duals import refuse_tangents

_DEVICES = {CPU: "the CPU", CUDA: "a CUDA device", CUDA_HOST: "pinned host memory", CUDA_MANAGED: "CUDA managed memory"}


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """Numbers somewhere: address, layout and device. Another library reads it with its from_dlpack, without a copy.

    pointer: address of the first number, 0 of an empty array. strides: bytes from one entry to the next, along each
    axis. device_type: as DLPack numbers them, 1 CPU, 2 CUDA. device_id: None where the source does not report it.
    owner: keeps the memory alive. stream: on which the numbers are written, 0 the default one; None where there is
    nothing to wait for. ready: called with a consumer's stream before it gets the array.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    device_type: int = CPU
    device_id: int | None = 0
    read_only: bool = False
    owner: Any = None
    stream: int | None = None
    ready: Callable[[int | None], None] | None = None

    @staticmethod
    def of_rows(pointer: int, shape: tuple[int, ...], dtype: np.dtype, **more: Any) -> DeviceArray:
        """An array whose rows follow one another without gaps."""
        dtype = np.dtype(dtype)
        return DeviceArray(pointer, tuple(shape), _row_strides(shape, dtype.itemsize), dtype, **more)

    @property
    def size(self) -> int:
        """How many numbers."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes of all numbers."""
        return self.size * self.dtype.itemsize

    @property
    def is_contiguous(self) -> bool:
        """True if rows follow one another without gaps."""
        expected = _row_strides(self.shape, self.dtype.itemsize)
        entries = zip(self.shape, self.strides, expected, strict=True)
        return self.size == 0 or all(n == 1 or given == wanted for n, given, wanted in entries)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device_type, self.device_id or 0

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        versioned = max_version is not None and max_version[0] >= dlpack.VERSION[0]
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError(f"this array lends its memory on {device_name(self)}; it makes no copies")
        if self.read_only and not versioned:
            raise BufferError("this array is read-only, which DLPack before version 1 cannot say")
        if self.ready is not None and stream != -1:
            self.ready(stream)
        flags = dlpack.READ_ONLY if self.read_only else 0
        return dlpack.made(self._tensor(), self, flags=flags, versioned=versioned)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.device_type not in (CUDA, CUDA_MANAGED):
            raise AttributeError(f"the array is on {device_name(self)}")
        return {
            "version": 3,
            "shape": self.shape,
            "strides": None if self.is_contiguous else self.strides,
            "typestr": self.dtype.str,
            "data": (self.pointer, self.read_only),
            "stream": 1 if self.stream == 0 else self.stream,  # the interface calls the default stream 1
        }

    def _tensor(self) -> dlpack.Tensor:
        n, itemsize = len(self.shape), self.dtype.itemsize
        code = next(code for code, kind in dlpack.KINDS.items() if kind == self.dtype.kind)
        numbers = ctypes.c_int64 * max(n, 1)
        strides = numbers(*(s // itemsize for s in self.strides))
        device = self.__dlpack_device__()
        return dlpack.Tensor(self.pointer, *device, n, code, 8 * itemsize, 1, numbers(*self.shape), strides, 0)


def borrowed(where: str, name: str, x: Any, *, stream: int | None = None) -> DeviceArray:
    """Where the numbers of x are; x is any object with DLPack or the CUDA array interface. Nothing is copied.

    where, name: begin the sentence of an error. stream: handle of the CUDA stream on which the numbers will be read;
    a DLPack source makes them ready for it, of other sources the answer's `stream` is to be waited for.
    """
    refuse_tangents(where, name, x)
    try:
        if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
            return _of_dlpack(x, stream)
        found = getattr(x, "__cuda_array_interface__", None)
        if found is not None:
            return _of_cuda_interface(found, x)
    except (ValueError, BufferError, RuntimeError, TypeError) as error:
        raise InputError(f"{where}: {name} is a {type(x).__name__} that lends no numbers: {error}") from None
    raise InputError(
        f"{where}: {name} is a {type(x).__name__}; expected an array with __dlpack__ or __cuda_array_interface__, "
        "as NumPy, CuPy, PyTorch and JAX have them"
    )


def returned(result: DeviceArray, like: Any) -> Any:
    """The result as an array of the library that `like` is of, in the same memory; the DeviceArray itself where that
    library is not known."""
    if hasattr(like, "__array_namespace__"):
        return like.__array_namespace__().from_dlpack(result)
    library = sys.modules.get(type(like).__module__.partition(".")[0])
    reader = getattr(library, "from_dlpack", None)
    return result if reader is None else reader(result)


def checked(
    where: str, name: str, array: DeviceArray, *, dtype: np.dtype, device_type: int, device_id: int = 0
) -> DeviceArray:
    """The array, if it has this dtype and is on this device; InputError otherwise."""
    if array.dtype != dtype:
        raise InputError(
            f"{where}: {name} holds {array.dtype}; expected {np.dtype(dtype)}. Arrays on a device are not converted"
        )
    wanted = DeviceArray(0, (), (), array.dtype, device_type, device_id)
    same_kind = array.device_type == device_type or {array.device_type, device_type} == {CUDA, CUDA_MANAGED}
    if not same_kind or (array.device_id is not None and array.device_id != device_id):
        raise InputError(f"{where}: {name} is on {device_name(array)}; expected it on {device_name(wanted)}")
    return array


def device_name(array: DeviceArray) -> str:
    """The device in words, for messages."""
    name = _DEVICES.get(array.device_type, f"a device of DLPack type {array.device_type}")
    return name if array.device_type == CPU or array.device_id is None else f"{name} (number {array.device_id})"


def _of_dlpack(x: Any, stream: int | None) -> DeviceArray:
    on_cuda = x.__dlpack_device__()[0] in (CUDA, CUDA_MANAGED)
    wanted = (stream or 1) if on_cuda and stream is not None else None  # DLPack calls the default stream 1
    try:
        capsule = x.__dlpack__(stream=wanted, max_version=dlpack.VERSION)
    except TypeError:  # a library that knows no versions
        capsule = x.__dlpack__(stream=wanted)
    tensor, flags = dlpack.read(capsule)
    dtype = _dtype(tensor)
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(s * dtype.itemsize for s in tensor.strides[: tensor.ndim]) if tensor.strides else None
    return DeviceArray(
        (tensor.data or 0) + tensor.byte_offset,
        shape,
        _row_strides(shape, dtype.itemsize) if strides is None else strides,
        dtype,
        tensor.device_type,
        tensor.device_id,
        read_only=bool(flags & dlpack.READ_ONLY),
        owner=(capsule, x),
    )


def _of_cuda_interface(found: dict[str, Any], x: Any) -> DeviceArray:
    if found.get("mask") is not None:
        raise ValueError("it has a mask")
    dtype, shape = np.dtype(found["typestr"]), tuple(found["shape"])
    pointer, read_only = found["data"]
    strides = found.get("strides")
    strides = _row_strides(shape, dtype.itemsize) if strides is None else tuple(strides)
    stream = found.get("stream")
    return DeviceArray(pointer or 0, shape, strides, dtype, CUDA, None, read_only=read_only, owner=x, stream=stream)


def _dtype(tensor: dlpack.Tensor) -> np.dtype:
    kind = dlpack.KINDS.get(tensor.code)
    if kind is None or tensor.lanes != 1 or tensor.bits % 8:
        what = "bfloat16" if tensor.code == dlpack.BFLOAT else f"DLPack type {tensor.code}"
        raise ValueError(f"it holds numbers that NumPy has no dtype for ({what}, {tensor.bits} bits × {tensor.lanes})")
    return np.dtype(f"{kind}{tensor.bits // 8}")


def _row_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Bytes between entries along each axis where rows follow one another."""
    sizes = itertools.accumulate((max(n, 1) for n in shape[:0:-1]), lambda a, b: a * b, initial=itemsize)
    return tuple(sizes)[::-1] if shape else ()
