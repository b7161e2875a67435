"""Calls with CUDA tensors of PyTorch on their own memory, without DLPack in between: that takes longer than a launch.

PyTorch is not imported here: a caller that has a tensor has imported it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from spanloop.math.torch_duals import has_tangent

if TYPE_CHECKING:
    from spanloop.compiler.runtime.gpu.kernel import GpuKernel


def batch_axes(kernel: GpuKernel, inputs: Sequence[Any]) -> tuple[int, ...] | None:
    """The batch axes of tensors that a kernel can read as they are; None where there is anything else among them.

    Tensors are in rows, contiguous, of the kernel's dtype and device, with equal batch axes or one row for all states.
    Those that need gradients or have tangents are for spanloop.torch.
    """
    torch = sys.modules.get("torch")
    if torch is None or kernel.layout != "rows" or not inputs or not isinstance(inputs[0], torch.Tensor):
        return None
    dtype, device = getattr(torch, kernel.dtype.name), torch.device("cuda", kernel.codes.number)
    found = set()
    for x, (_, size) in zip(inputs, kernel.inputs, strict=True):
        if not isinstance(x, torch.Tensor) or x.device != device or x.dtype != dtype or x.shape[-1:] != (size,):
            return None
        if not x.is_contiguous() or (x.requires_grad and torch.is_grad_enabled()) or has_tangent(x):
            return None
        if x.numel() != size:
            found.add(tuple(x.shape[:-1]))
    if found:
        return found.pop() if len(found) == 1 else None
    longest: tuple[int, ...] = max((tuple(x.shape[:-1]) for x in inputs), key=len)
    return longest


def answered(
    kernel: GpuKernel, torch: Any, inputs: Sequence[Any], leading: tuple[int, ...], stream: int | None = None
) -> tuple[Any, Any]:
    """The answer (*leading, *shape) and the status of every state, written by the current stream when it comes to it.

    inputs: tensors that the kernel can read as they are, each with the batch axes `leading` or with one row for all.
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
