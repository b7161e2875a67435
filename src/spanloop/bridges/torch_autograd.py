"""What autograd, torch.func and vmap do with a function: its value, its pullback and its push forward.

Second derivatives are refused: the derivative kernels have no derivatives of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from spanloop.bridges.torch_kernels import Kernels, quietly
from spanloop.errors import UnsupportedError

_Tensors = Sequence[torch.Tensor]


class Value(torch.autograd.Function):
    """The answer of a function."""

    @staticmethod
    def forward(kernels: Kernels, quiet: bool, *inputs: torch.Tensor) -> torch.Tensor:
        return quietly(kernels.value, inputs) if quiet else kernels.value(inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.kernels, ctx.quiet, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *weights: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        inputs, names = ctx.saved_tensors, ctx.kernels.names
        needed = tuple(ctx.needs_input_grad[2:])
        wrt = tuple(n for n, is_needed in zip(names, needed, strict=True) if is_needed)
        found = dict(zip(wrt, Pullback.apply(ctx.kernels, ctx.quiet, wrt, weights[0], *inputs), strict=True))
        pairs = zip(names, inputs, strict=True)
        return None, None, *(found[n].sum_to_size(x.shape) if n in found else None for n, x in pairs)

    @staticmethod
    def jvp(ctx: Any, *directions: torch.Tensor | None) -> torch.Tensor:
        pairs = zip(ctx.kernels.names, directions[2:], strict=True)
        given = {n: d for n, d in pairs if d is not None}
        return PushForward.apply(ctx.kernels, ctx.quiet, tuple(given), *given.values(), *ctx.saved_tensors)

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], kernels: Kernels, quiet: bool, *inputs: torch.Tensor) -> Any:
        return Value.apply(kernels, quiet, *in_front(inputs, dims[2:], [1] * len(inputs))), 0


class Pullback(torch.autograd.Function):
    """Derivatives of Σ weights · answer by the inputs wrt, with the batch axes of the answer."""

    @staticmethod
    def forward(kernels: Kernels, quiet: bool, wrt: tuple[str, ...], weights: Any, *inputs: torch.Tensor) -> Any:
        if not quiet:
            return tuple(kernels.pulled_back(inputs, weights, wrt))
        found = quietly(kernels.pulled_back, inputs, weights, wrt)
        flat = weights.reshape(*weights.shape[: weights.ndim - len(kernels.shape)], -1)
        unused = (flat == 0).all(-1, keepdim=True)  # a row that the loss leaves out
        return tuple(torch.where(unused, 0.0, x) for x in found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.kernels = inputs[0]

    @staticmethod
    def backward(ctx: Any, *weights: torch.Tensor) -> Any:
        raise _second(ctx.kernels)

    @staticmethod
    def jvp(ctx: Any, *directions: Any) -> Any:
        raise _second(ctx.kernels)

    @staticmethod
    def vmap(info: Any, dims: Any, kernels: Kernels, quiet: bool, wrt: Any, *tensors: torch.Tensor) -> Any:
        trailing = [len(kernels.shape)] + [1] * (len(tensors) - 1)
        found = Pullback.apply(kernels, quiet, wrt, *in_front(tensors, dims[3:], trailing, info.batch_size))
        return found, (0,) * len(found)


class PushForward(torch.autograd.Function):
    """The derivative of the answer along directions of the inputs wrt."""

    @staticmethod
    def forward(kernels: Kernels, quiet: bool, wrt: tuple[str, ...], *tensors: torch.Tensor) -> torch.Tensor:
        directions, inputs = tensors[: len(wrt)], tensors[len(wrt) :]
        push = kernels.pushed_forward
        return quietly(push, inputs, directions, wrt) if quiet else push(inputs, directions, wrt)

    setup_context = Pullback.setup_context
    backward = Pullback.backward
    jvp = Pullback.jvp

    @staticmethod
    def vmap(info: Any, dims: Any, kernels: Kernels, quiet: bool, wrt: Any, *tensors: torch.Tensor) -> Any:
        return PushForward.apply(kernels, quiet, wrt, *in_front(tensors, dims[3:], [1] * len(tensors))), 0


def in_front(tensors: _Tensors, dims: Sequence[int | None], trailing: Sequence[int], size: int = 0) -> _Tensors:
    """The tensors with the axis of vmap as their first, so that all batch axes fit together.

    trailing: how many last axes of each are no batch axes. size: of the axis, if those without it shall have it too.
    """
    given = [x if d is None else x.movedim(d, 0) for x, d in zip(tensors, dims, strict=True)]
    if size:
        pairs = zip(given, dims, strict=True)
        given = [x.expand(size, *x.shape) if d is None else x for x, d in pairs]
        dims = [0] * len(dims)
    batch = [x.ndim - n - (d is not None) for x, n, d in zip(given, trailing, dims, strict=True)]
    most = max(batch)
    rows = zip(given, dims, batch, strict=True)
    return [x if d is None else x.reshape(x.shape[0], *(1,) * (most - b), *x.shape[1:]) for x, d, b in rows]


def _second(kernels: Kernels) -> UnsupportedError:
    return UnsupportedError(
        f"{kernels.name}: second derivatives are not supported; the derivative of this function has none of its own. "
        "Try torch.func.jvp or differences of first derivatives"
    )
