"""Handlers of XLA's foreign function interface around kernels: machine code that XLA calls (render/xla.py)."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass

from spanloop.compiler.render import xla
from spanloop.compiler.render.gpu.called_batch import scratch_bytes
from spanloop.compiler.render.xla import Launch
from spanloop.compiler.runtime import machine
from spanloop.compiler.runtime.gpu import driver
from spanloop.compiler.runtime.gpu.kernel import RESIDENT, Code, GpuKernel
from spanloop.compiler.runtime.kernel import REAL, Kernel
from spanloop.errors import UnsupportedError


@dataclass(frozen=True)
class Handler:
    """A handler that is loaded; it works as long as this object lives. launch: on GPUs."""

    code: machine.Code
    kernels: tuple[Kernel | GpuKernel, ...]  # that it calls
    launch: Launch | None = None

    @property
    def address(self) -> int:
        """Where it begins."""
        return self.code.address("handler")


def cpu_handler(kernel: Kernel, is_one: bool) -> Handler:
    """A handler that calls a kernel on the CPU, on XLA's thread; is_one: for one state, otherwise for many."""
    real = REAL[kernel.dtype.name]
    if is_one:
        text = xla.one_state(len(kernel.inputs), math.prod(kernel.shape), real)
        return Handler(_loaded(text, [kernel.single_address]), (kernel,))
    address, scratch = kernel.batch_address
    text = xla.many_states([k for _, k in kernel.inputs], real, scratch)
    return Handler(_loaded(text, [address]), (kernel,))


def gpu_handler(kernels: Sequence[GpuKernel], common: tuple[bool, ...], count: int) -> Handler:
    """A handler that launches a kernel for `count` states; kernels: the same one on every device.

    common: of each input, whether all states share one row.
    """
    codes, kernel = [k.code(common, count) for k in kernels], kernels[0]
    launches = {_launch_of(code, kernel.dtype.itemsize) for code in codes}
    if len(launches) > 1:
        raise UnsupportedError(
            f"{kernel.name}: the GPUs differ so much that they need different launches; choose some of one kind with "
            "CUDA_VISIBLE_DEVICES"
        )
    launch = launches.pop()
    text = xla.on_gpu([k for _, k in kernel.inputs], common, launch, len(kernels))
    table = [driver.address("cuLaunchKernel"), driver.address("cuCtxGetCurrent")]
    for code in codes:
        table += [code.function.module.device.context, code.function.handle]
    return Handler(_loaded(text, table), tuple(kernels), launch)


def _launch_of(code: Code, size: int) -> Launch:
    """size: bytes of a number."""
    scratch = None if code.scratch is None else scratch_bytes(code.scratch, size, code.threads)
    return Launch(code.threads, code.states, code.function.shared, scratch)


def scratch_size(handler: Handler, count: int) -> int:
    """Bytes of scratch memory, the third result, that a handler for GPUs needs for this many states; 0 for none."""
    launch = handler.launch
    if launch is None or launch.scratch is None:
        return 0
    most = max(k.device.multiprocessors for k in handler.kernels if isinstance(k, GpuKernel)) * RESIDENT
    return launch.scratch * min(-(-count // launch.threads), most // launch.threads)


def _loaded(text: str, table: Sequence[int]) -> machine.Code:
    code = machine.Code(machine.object_code(text), "handler", "table")
    entries = (ctypes.c_void_p * len(table)).from_address(code.address("table"))
    for k, value in enumerate(table):
        entries[k] = value
    return code
