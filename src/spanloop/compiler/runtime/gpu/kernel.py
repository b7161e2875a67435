"""A GpuKernel: one compiled function on an NVIDIA GPU, called with NumPy arrays or with arrays on the device.

NumPy in, NumPy out: the call copies, waits, and treats states without an answer as the CPU's kernel does. Arrays of
CuPy, PyTorch and JAX in, the same kind out: nothing is copied, the call returns before the kernel has run, rows
without an answer are NaN and `status` says which; check=True waits and warns. Making a kernel needs no GPU.
"""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.compiler.lower import Operations, Part
from spanloop.compiler.render.gpu.called_batch import scratch_bytes
from spanloop.compiler.render.gpu.entry import WARP
from spanloop.compiler.runtime import arrays, cache, machine
from spanloop.compiler.runtime.device_arrays import DeviceArray, borrowed, checked, returned
from spanloop.compiler.runtime.dlpack import CUDA, CUDA_MANAGED
from spanloop.compiler.runtime.foreign_arrays import as_numpy
from spanloop.compiler.runtime.gpu import assembly, driver, tensors
from spanloop.compiler.runtime.gpu.device_code import Code, DeviceCode, copied
from spanloop.compiler.runtime.gpu.driver import Device, Memory, checked_number
from spanloop.compiler.runtime.kernel import (
    REAL,
    AnyPlan,
    Definition,
    Kernel,
    Remade,
    checked_dtype,
)
from spanloop.compiler.runtime.nan_rows import kept_refusals, refuse_states
from spanloop.errors import DeviceError, InputError, StateError

LAYOUTS = ("rows", "columns")
MOST = 2**30  # states of one launch
RESIDENT = 4096  # threads of a multiprocessor and its queue, for kernels with scratch memory
SHARE = 0.7  # of the free memory that a call with NumPy arrays takes


class GpuKernel(Remade):
    """k(q, v, tau) → array (..., *shape); inputs have leading batch axes. layout "columns": (size, n) → (*shape, n)."""

    def __init__(
        self,
        definition: Definition,
        dtype: str = "float64",
        layout: str = "rows",
        device: int = 0,
        warps: int | None = None,
        parts: Callable[[], Sequence[Part]] = tuple,
    ):
        """device: number of the GPU; warps: of a state; parts: of the mechanism, that several warps can divide."""
        checked_number(device)
        if layout not in LAYOUTS:
            raise InputError(f"layout is {layout!r}; expected 'rows' (n, size) or 'columns' (size, n)")
        self.name, self.definition, self.layout = definition.name, definition, layout
        self.dtype, self._real = np.dtype(checked_dtype(dtype)), REAL[checked_dtype(dtype)]
        self.inputs, self.shape = definition.signature()
        self.status: Any = None  # one byte a state of the last call: 0 where it has an answer
        self.codes = DeviceCode(definition, self.dtype, self._real, layout, device, warps, parts)

    # ---- what it is

    @property
    def plan(self) -> AnyPlan:
        """The operations in order."""
        return self.definition.plan

    @property
    def operations(self) -> Operations:
        """How many operations a state takes."""
        return self.plan.operations

    @property
    def source(self) -> str:
        """LLVM source of the kernel for large batches, for arrays with a row for every state."""
        return self.codes.text(self.codes.large())[0]

    @property
    def ptx(self) -> str:
        """PTX of the kernel, for this machine's GPU; without one, for compute capability 9.0."""
        capability = self.device.capability if driver.is_available() else assembly.HOPPER
        return assembly.ptx(self.source, capability)

    @property
    def device(self) -> Device:
        """The GPU; DeviceError if there is none."""
        return self.codes.device

    def __repr__(self) -> str:
        inputs = ", ".join(f"{n}[{k}]" for n, k in self.inputs)
        return f"<cuda kernel {self.name}({inputs}) -> {self.shape} {self.dtype}>"

    def _common(self) -> tuple[bool, ...]:
        return (False,) * len(self.inputs)

    # ---- calling

    def entry(self, fallback: Callable[..., Any], documentation: str | None = None) -> Callable[..., Any]:
        """The call for single states; here the fallback itself."""
        return fallback

    @property
    def call(self) -> Callable[..., Any]:
        """The kernel as a function."""
        return self.evaluate

    def __call__(self, *inputs: Any, out: Any = None, stream: int | None = None, check: bool = False) -> Any:
        """The answer (..., *shape), in the kind of array that came in.

        stream: handle of a CUDA stream, by default the current one of the inputs' library. check: wait for the answer
        and warn of states without one, as calls with NumPy arrays do.
        """
        return self.evaluate(*inputs, out=out, stream=stream, check=check)

    def evaluate(self, *inputs: Any, out: Any = None, stream: int | None = None, check: bool = False) -> Any:
        """The same as a call."""
        if len(inputs) != len(self.inputs):
            names = ", ".join(n for n, _ in self.inputs)
            raise InputError(f"{self.name} takes {names}; {len(inputs)} arrays were given")
        leading = tensors.batch_axes(self, inputs) if out is None and not check else None
        if leading is not None:
            result, self.status = tensors.answered(self, sys.modules["torch"], inputs, leading, stream)
            return result
        like = next((x for x in inputs if is_on_device(x)), None)
        if like is not None:
            return self._on_device(inputs, like, out, stream, check)
        if stream is not None:
            raise InputError(f"{self.name}: stream is for arrays on a device; these are NumPy arrays")
        if self.layout == "columns":
            return self._columns_on_host(inputs, out)
        return self._on_host(inputs, out)

    def code(self, common: tuple[bool, ...], n: int) -> Code:
        """The code for n states, loaded; common: which inputs have one row for all states."""
        return self.codes.loaded(self.codes.variant(common, n))

    def start(
        self, pointers: Sequence[int], common: tuple[bool, ...], out: int, status: int, n: int, stream: int
    ) -> None:
        """Start the kernel on arrays in rows at these addresses of the device; nothing is checked.

        common: which inputs have one row for all of the n states.
        """
        strides = [0 if c else k for c, (_, k) in zip(common, self.inputs, strict=True)]
        self._launch(self.code(common, n), list(zip(pointers, strides, strict=True)), out, status, n, stream)

    def _launch(self, code: Code, pointers: Sequence[tuple[int, int]], out: int, status: int, n: int, stream: int):
        """Start the kernel; pointers: of each input, and how many numbers apart its rows are."""
        if code.scratch is None:
            packed = struct.pack(f"{len(pointers) + 2}QI", *(p for p, _ in pointers), out, status, n)
            code.function.launch_packed(-(-n // code.states), code.threads, packed, stream)
            return
        blocks = min(-(-n // code.threads), self.device.multiprocessors * RESIDENT // code.threads)
        size = scratch_bytes(code.scratch, self.dtype.itemsize, blocks * code.threads)
        scratch = Memory(self.device, size, stream)
        packed = struct.pack(
            f"{2 * len(pointers) + 4}Q", *(x for p in pointers for x in p), out, status, scratch.pointer, n
        )
        code.function.launch_packed(blocks, code.threads, packed, stream)
        scratch.free()

    # ---- NumPy

    def _on_host(self, inputs: Sequence[Any], out: np.ndarray | None) -> np.ndarray:
        given, leading = arrays.accepted(self.name, self.inputs, inputs, self.dtype)
        shape = leading + self.shape
        if out is not None:
            arrays.checked_out(self.name, out, shape, self.dtype)
        count, width = math.prod(leading), math.prod(self.shape)
        laid = [arrays.rows(a, leading) for a in given]
        answer, status = np.empty((count, width), self.dtype), np.zeros(count, np.uint8)
        common = tuple(stride == 0 and count > 1 for _, stride in laid)
        if count:
            step = self._fitting(count)
            for begin in range(0, count, step):
                left = count - begin
                code = self.code(common, step if left >= WARP else left)
                self._rows(code, laid, common, answer[begin : begin + step], status[begin : begin + step], begin)
        self.status = status.reshape(leading)
        self._answer_elsewhere(laid, leading, answer, status)
        result = answer.reshape(shape)
        return result if out is None else arrays.written(self.name, out, result)

    def _rows(self, code: Code, laid, common, answer: np.ndarray, status: np.ndarray, begin: int) -> None:
        """Some of the states of a batch: copied, computed, copied back."""
        n, device = len(answer), self.device
        if n == 0:
            return
        here = [
            a if c else a.reshape(-1, a.shape[-1])[begin : begin + n] for (a, _), c in zip(laid, common, strict=True)
        ]
        sent = [copied(device, a, 0) for a in here]
        kept, marks = Memory(device, answer.nbytes), Memory(device, n)
        strides = [0 if c else a.shape[-1] for a, c in zip(here, common, strict=True)]
        pointers = [(m.pointer, s) for m, s in zip(sent, strides, strict=True)]
        self._launch(code, pointers, kept.pointer, marks.pointer, n, 0)
        kept.read(arrays.address(answer), answer.nbytes)
        marks.read(arrays.address(status), n)
        driver.synchronize(device)

    def _fitting(self, count: int) -> int:
        """How many states fit into the device's free memory."""
        numbers = sum(k for _, k in self.inputs) + math.prod(self.shape)
        if count * numbers * self.dtype.itemsize < 2**28:
            return count
        fits = int(SHARE * self.device.free_memory() / (numbers * self.dtype.itemsize + 1))
        if fits < 1:
            raise DeviceError(f"{self.name}: the free memory of {self.device.name} does not hold one state")
        return min(count, fits, MOST)

    def _columns_on_host(self, inputs: Sequence[Any], out: np.ndarray | None) -> np.ndarray:
        """Inputs (size, n), or (size,) or (size, 1) for all states; the answer (*shape, n)."""
        given = [_column(self.name, n, k, x, self.dtype) for (n, k), x in zip(self.inputs, inputs, strict=True)]
        count = _one_count(self.name, given, self.inputs)
        given = [a[:, 0] if count > 1 and a.shape[1:] == (1,) else a for a in given]
        answer, status = np.empty((math.prod(self.shape), count), self.dtype), np.zeros(count, np.uint8)
        step = self._fitting(count)
        for begin in range(0, count, max(step, 1)):
            part = slice(begin, begin + step)
            here = [a if a.ndim == 1 else a[:, part] for a in given]
            answer[:, part], status[part] = self._columns(here, len(status[part]))
        self.status = status
        rows = np.ascontiguousarray(answer.T)
        laid = [(a, 0) if a.ndim == 1 else (np.ascontiguousarray(a.T), a.shape[0]) for a in given]
        self._answer_elsewhere(laid, (count,), rows, status)
        result = rows.T.reshape(*self.shape, count)
        return result if out is None else arrays.written(self.name, out, np.ascontiguousarray(result))

    def _columns(self, given: Sequence[np.ndarray], n: int) -> tuple[np.ndarray, np.ndarray]:
        """Some of the states of a batch, copied, computed, copied back: the answer (numbers, n), the status (n,)."""
        answer, status = np.empty((math.prod(self.shape), n), self.dtype), np.zeros(n, np.uint8)
        sent = [copied(self.device, np.ascontiguousarray(a), 0) for a in given]
        kept, marks = Memory(self.device, answer.nbytes), Memory(self.device, n)
        code = self.code(tuple(a.ndim == 1 for a in given), n)
        self._launch(code, [(m.pointer, 0) for m in sent], kept.pointer, marks.pointer, n, 0)
        kept.read(arrays.address(answer), answer.nbytes)
        marks.read(arrays.address(status), n)
        driver.synchronize(self.device)
        return answer, status

    @cached_property
    def _on_cpu(self) -> Kernel:
        """The same function on the CPU, for states that the device hands back."""
        from spanloop.compiler.runtime.kernel import artifact_of, single_source

        key = cache.key(self.name, self.definition.key, "single", self._real, machine.identity())
        artifact = cache.read(key)
        if artifact is None:
            artifact = artifact_of(self.plan, single_source(self.plan, self._real), self._real)
            cache.write(key, artifact)
        return Kernel(artifact, self.definition, self.dtype.name)

    def _answer_elsewhere(self, laid, leading: tuple[int, ...], answer: np.ndarray, status: np.ndarray) -> None:
        """States that the device hands back: the CPU answers them (angles beyond the fast sine, lost digits) or not."""
        numbers = np.flatnonzero(status)
        if not len(numbers):
            return
        rows = [a[numbers] if s else a.reshape(-1) for a, s in laid]
        if not leading:
            answer[0] = self._on_cpu.evaluate(*(r.reshape(-1) for r in rows)).ravel()
            status[0] = 0
            return
        with kept_refusals() as found:
            again = self._on_cpu.evaluate(*(np.atleast_2d(r) for r in rows))
        answer[numbers] = again.reshape(len(numbers), -1)
        refused = sorted({k for x in found for k in x.numbers})
        answered = np.ones(len(numbers), bool)
        answered[refused] = False
        status[numbers[answered]] = 0
        by_number = {int(numbers[k]): k for k in refused}

        def explain(number: int):
            return next(x.explain(by_number[number]) for x in found if by_number[number] in x.numbers)

        refuse_states(self.name, numbers[refused], explain, leading, answer)

    # ---- arrays on the device

    def _on_device(self, inputs: Sequence[Any], like: Any, out: Any, stream: int | None, check: bool) -> Any:
        device = self.device
        used = current_stream(like) if stream is None else stream
        given = [self._borrowed(n, k, x, used or 0) for (n, k), x in zip(self.inputs, inputs, strict=True)]
        leading = self._leading([a for a, _ in given])
        count = math.prod(leading)
        common = (
            tuple(a.size == k for (a, _), (_, k) in zip(given, self.inputs, strict=True))
            if count > 1
            else self._common()
        )
        shape = (*self.shape, count) if self.layout == "columns" else leading + self.shape
        result = self._result(out, shape, used or 0)
        for (a, _), (name, _) in zip(given, self.inputs, strict=True):
            if out is not None and a.pointer < result.pointer + result.nbytes and result.pointer < a.pointer + a.nbytes:
                raise InputError(f"{self.name}: out shares memory with {name}; give it memory of its own")
        marks = Memory(device, max(count, 1), used or 0)
        if count:
            strides = [0 if c else k for c, (_, k) in zip(common, self.inputs, strict=True)]
            pointers = [(a.pointer, s) for (a, _), s in zip(given, strides, strict=True)]
            self._launch(self.code(common, count), pointers, result.pointer, marks.pointer, count, used or 0)
        self.status = self._lent(marks, leading, np.dtype(np.uint8), used or 0)
        if used is None or check:  # a library whose stream is not known may use its inputs' memory again
            driver.synchronize(device, used or 0)
        if check:
            self._warn(given, leading, marks, count)
        return out if out is not None else returned(result, like)

    def _borrowed(self, name: str, size: int, x: Any, stream: int) -> tuple[DeviceArray, Any]:
        """An input on the device; NumPy arrays and lists are copied there."""
        if not is_on_device(x):
            a = np.ascontiguousarray(arrays.converted(self.name, name, size, x, self.dtype))
            copy = copied(self.device, a, stream)
            driver.synchronize(self.device, stream)
            return DeviceArray.of_rows(copy.pointer, a.shape, self.dtype, device_type=CUDA, owner=copy), copy
        found = borrowed(self.name, name, x, stream=stream)
        checked(self.name, name, found, dtype=self.dtype, device_type=CUDA, device_id=self.device.number)
        if not found.is_contiguous:
            raise InputError(f"{self.name}: {name} has gaps between its rows; make it contiguous first")
        axis = 0 if self.layout == "columns" else -1
        if not found.shape or found.shape[axis] != size:
            expected = f"({size}, n)" if self.layout == "columns" else f"(..., {size})"
            raise InputError(f"{self.name}: {name} has shape {found.shape}; expected {expected}")
        if found.stream is not None and found.stream != stream:
            driver.wait(self.device, stream, found.stream)
        return found, x

    def _leading(self, given: Sequence[DeviceArray]) -> tuple[int, ...]:
        """The batch axes that inputs share; one that has a single row serves all states."""
        found = {
            (a.shape[1:] if self.layout == "columns" else a.shape[:-1])
            for a, (_, k) in zip(given, self.inputs, strict=True)
            if a.size != k
        }
        if len(found) > 1:
            shapes = ", ".join(f"{n} {a.shape}" for a, (n, _) in zip(given, self.inputs, strict=True))
            raise InputError(
                f"{self.name}: batch axes do not fit together: {shapes}; on a device they are equal, or an input has "
                "one row for all states"
            )
        if found:
            return found.pop()
        longest = max((a.shape[1:] if self.layout == "columns" else a.shape[:-1] for a in given), key=len)
        return tuple(longest)

    def _result(self, out: Any, shape: tuple[int, ...], stream: int) -> DeviceArray:
        if out is None:
            memory = Memory(self.device, max(math.prod(shape), 1) * self.dtype.itemsize, stream)
            return self._lent(memory, shape, self.dtype, stream)
        found = borrowed(self.name, "out", out, stream=stream)
        checked(self.name, "out", found, dtype=self.dtype, device_type=CUDA, device_id=self.device.number)
        if found.shape != shape or not found.is_contiguous or found.read_only:
            raise InputError(
                f"{self.name}: out has shape {found.shape}; expected {shape}, contiguous and not read-only"
            )
        return found

    def _lent(self, memory: Memory, shape: tuple[int, ...], dtype: np.dtype, stream: int) -> DeviceArray:
        """Our memory as an array that other libraries take over when the stream has written it."""

        def ready(consumer: int | None) -> None:
            if consumer is None or consumer in (0, 1):
                consumer = 0
            if consumer != stream:
                driver.wait(self.device, consumer, stream)

        return DeviceArray.of_rows(
            memory.pointer, shape, dtype, device_type=CUDA, device_id=self.device.number, owner=memory, stream=stream,
            ready=ready,
        )  # fmt: skip

    def _warn(self, given, leading: tuple[int, ...], marks: Memory, count: int) -> None:
        """Warn of the states without an answer, or raise for a single one; the device's rows stay NaN."""
        status = np.zeros(count, np.uint8)
        marks.read(arrays.address(status), count)
        driver.synchronize(self.device, marks.stream)
        refused = np.flatnonzero(status)
        if not len(refused):
            return
        host = [_fetched(self.device, a) for a, _ in given]

        def explain(number: int):
            columns = self.layout == "columns"
            rows = [
                h.reshape(-1)
                if h.size == k
                else np.ascontiguousarray(h[:, number] if columns else h.reshape(-1, k)[number])
                for h, (_, k) in zip(host, self.inputs, strict=True)
            ]
            return self.definition.explain(*rows)

        if not leading:
            raise StateError.of(self.name, explain(0))
        refuse_states(self.name, refused, explain, (count,), np.empty((count, 0)))


def is_on_device(x: Any) -> bool:
    """Whether an array is on a GPU."""
    if isinstance(x, np.ndarray):
        return False
    if getattr(x, "__dlpack_device__", None) is not None:
        try:
            return x.__dlpack_device__()[0] in (CUDA, CUDA_MANAGED)
        except Exception:  # a library that cannot say: its own interface decides
            return False
    return hasattr(x, "__cuda_array_interface__")


def current_stream(x: Any) -> int | None:
    """The stream on which the array's library works now; None where it does not say."""
    library = sys.modules.get(type(x).__module__.partition(".")[0])
    if library is None:
        return None
    if library.__name__ == "torch":
        return int(library.cuda.current_stream(x.device).cuda_stream)
    if library.__name__ == "cupy":
        return int(library.cuda.get_current_stream().ptr)
    return 0 if library.__name__ == "spanloop" else None


def _fetched(device: Device, a: DeviceArray) -> np.ndarray:
    """A contiguous array on the device, copied to NumPy."""
    out = np.empty(a.shape, a.dtype)
    device.enter()
    if out.nbytes:
        pointer, to = ctypes.c_uint64(a.pointer), ctypes.c_void_p(arrays.address(out))
        driver.call("cuMemcpyDtoH_v2", to, pointer, ctypes.c_size_t(out.nbytes))
    return out


def _column(function: str, name: str, size: int, x: Any, dtype: np.dtype) -> np.ndarray:
    a = as_numpy(function, name, x, f"({size}, n)")
    if a.dtype.kind not in "fiub" or a.ndim not in (1, 2) or a.shape[0] != size:
        raise InputError(f"{function}: {name} has shape {a.shape} of {a.dtype}; expected real numbers ({size}, n)")
    with np.errstate(over="ignore"):
        return a.astype(dtype, copy=False)


def _one_count(function: str, given: Sequence[np.ndarray], inputs: Sequence[tuple[str, int]]) -> int:
    counts = {a.shape[1] for a in given if a.ndim == 2 and a.shape[1] != 1}
    if len(counts) > 1:
        shapes = ", ".join(f"{n} {a.shape}" for a, (n, _) in zip(given, inputs, strict=True))
        raise InputError(f"{function}: inputs have different numbers of states: {shapes}")
    return counts.pop() if counts else 1
