"""The vmap that autograd itself uses: is_grads_batched, functional.jacobian(vectorize=True), batched gradcheck.

It is older than torch.func.vmap and asks no rule of an autograd.Function: its batched tensors arrive as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch._C._functorch import is_legacy_batchedtensor

from spanloop.bridges.torch_operators import in_front

_Tensors = Sequence[torch.Tensor]


def mapped_one_axis(
    compute: Callable[..., tuple[torch.Tensor, ...]], tensors: _Tensors, trailing: Sequence[int]
) -> tuple[torch.Tensor, ...]:
    """compute(*tensors), with the axis of that vmap as the first batch axis of tensors that have it.

    trailing: how many last axes of each are no batch axes.
    """
    if torch.compiler.is_dynamo_compiling():  # which has no such tensors, and warns of what it cannot trace
        return compute(*tensors)
    batched = [is_legacy_batchedtensor(x) for x in tensors]
    if not any(batched):
        return compute(*tensors)
    level = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    plain = [torch._remove_batch_dim(x, level, 0, 0) if b else x for x, b in zip(tensors, batched, strict=True)]
    size = next(len(x) for x, b in zip(plain, batched, strict=True) if b)
    dims = [0 if b else None for b in batched]
    found = compute(*in_front(plain, dims, trailing, size))
    return tuple(torch._add_batch_dim(x, 0, level) for x in found)
