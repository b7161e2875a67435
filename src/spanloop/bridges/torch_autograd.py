"""What autograd, torch.func and vmap do with a function: its value, its pullback and its push forward.

Second derivatives are refused: the derivative kernels have no derivatives of their own.
"""

from __future__ import annotations

from typing import Any

import torch

from spanloop.bridges import torch_operators
from spanloop.bridges.legacy_vmap import mapped_one_axis
from spanloop.bridges.torch_kernels import Kernels
from spanloop.bridges.torch_operators import in_front
from spanloop.errors import UnsupportedError


class Value(torch.autograd.Function):
    """The answer of a function."""

    @staticmethod
    def forward(kernels: Kernels, quiet: bool, *inputs: torch.Tensor) -> torch.Tensor:
        return torch_operators.evaluate(kernels, quiet, inputs)

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
        def compute(weights: torch.Tensor, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return tuple(torch_operators.pull_back(kernels, quiet, inputs, weights, wrt))

        return mapped_one_axis(compute, (weights, *inputs), [len(kernels.shape)] + [1] * len(inputs))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.kernels = inputs[0]

    @staticmethod
    def backward(ctx: Any, *weights: torch.Tensor) -> Any:
        raise second_derivatives(ctx.kernels)

    @staticmethod
    def jvp(ctx: Any, *directions: Any) -> Any:
        raise second_derivatives(ctx.kernels)

    @staticmethod
    def vmap(info: Any, dims: Any, kernels: Kernels, quiet: bool, wrt: Any, *tensors: torch.Tensor) -> Any:
        trailing = [len(kernels.shape)] + [1] * (len(tensors) - 1)
        found = Pullback.apply(kernels, quiet, wrt, *in_front(tensors, dims[3:], trailing, info.batch_size))
        return found, (0,) * len(found)


class PushForward(torch.autograd.Function):
    """The derivative of the answer along directions of the inputs wrt."""

    @staticmethod
    def forward(kernels: Kernels, quiet: bool, wrt: tuple[str, ...], *tensors: torch.Tensor) -> torch.Tensor:
        def compute(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            directions, inputs = tensors[: len(wrt)], tensors[len(wrt) :]
            return (torch_operators.push_forward(kernels, quiet, inputs, directions, wrt),)

        return mapped_one_axis(compute, tensors, [1] * len(tensors))[0]

    setup_context = Pullback.setup_context
    backward = Pullback.backward
    jvp = Pullback.jvp

    @staticmethod
    def vmap(info: Any, dims: Any, kernels: Kernels, quiet: bool, wrt: Any, *tensors: torch.Tensor) -> Any:
        return PushForward.apply(kernels, quiet, wrt, *in_front(tensors, dims[3:], [1] * len(tensors))), 0


def second_derivatives(kernels: Kernels) -> UnsupportedError:
    """The refusal."""
    return UnsupportedError(
        f"{kernels.name}: second derivatives are not supported; the derivative of this function has none of its own. "
        "Try differences of first derivatives; for a derivative that a loss takes as a constant, detach its inputs"
    )
