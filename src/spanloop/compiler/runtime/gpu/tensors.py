"""Calls with CUDA tensors of PyTorch on their own memory, without DLPack in between: that takes longer than a launch.

PyTorch is not imported: whoever has a tensor has it loaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanloop.compiler.runtime.gpu.kernel import GpuKernel


def are_tensors_at_all(inputs: Sequence[Any], torch: Any) -> bool:
    """Whether the first input is a CUDA tensor of PyTorch."""
    first = inputs[0] if inputs else None
    return isinstance(first, getattr(torch, "Tensor", ())) and bool(first.is_cuda)  # type: ignore[union-attr]


def are_tensors(kernel: GpuKernel, inputs: Sequence[Any], torch: Any) -> bool:
    """Whether a kernel can read all inputs as they are: CUDA tensors in rows, contiguous, of its dtype and device."""
    dtype, number = getattr(torch, kernel.dtype.name), kernel.device.number
    return kernel.layout == "rows" and all(
        isinstance(x, torch.Tensor)
        and x.is_cuda
        and x.device.index == number
        and x.dtype == dtype
        and x.ndim > 0
        and x.shape[-1] == size
        and x.is_contiguous()
        and not (x.requires_grad and torch.is_grad_enabled())  # spanloop.torch has gradients; DLPack refuses these
        for x, (_, size) in zip(inputs, kernel.inputs, strict=True)
    )


def answered(
    kernel: GpuKernel, torch: Any, inputs: Sequence[Any], leading: tuple[int, ...], stream: int | None = None
) -> tuple[Any, Any]:
    """The answer (*leading, *shape) and the status of every state, written by the current stream when it comes to it.

    inputs: tensors that `are_tensors`, each with the batch axes `leading` or with one row for all states.
    """
    like, n = inputs[0], math.prod(leading)
    out = like.new_empty((*leading, *kernel.shape))
    status = torch.empty(leading, dtype=torch.uint8, device=like.device)
    if n:
        common = tuple(n > 1 and x.numel() == size for x, (_, size) in zip(inputs, kernel.inputs, strict=True))
        used = torch.cuda.current_stream(like.device).cuda_stream if stream is None else stream
        pointers = [x.data_ptr() for x in inputs]
        is_current = torch.cuda.current_device() == like.device.index
        with nullcontext() if is_current else torch.cuda.device(like.device):  # a launch changes the thread's device
            kernel.start(pointers, common, out.data_ptr(), status.data_ptr(), n, used)
    return out, status


def batch_axes(kernel: GpuKernel, inputs: Sequence[Any]) -> tuple[int, ...] | None:
    """The batch axes that tensors share, but for those with one row; None where they differ."""
    found = {tuple(x.shape[:-1]) for x, (_, size) in zip(inputs, kernel.inputs, strict=True) if x.numel() != size}
    if found:
        return found.pop() if len(found) == 1 else None
    longest: tuple[int, ...] = max((tuple(x.shape[:-1]) for x in inputs), key=len)
    return longest
