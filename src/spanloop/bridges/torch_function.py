"""A function of a model as a callable on tensors, with its checks; as an operator inside torch.compile."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import torch

from spanloop.bridges.call_inputs import in_order
from spanloop.bridges.torch_autograd import Value, in_front
from spanloop.bridges.torch_kernels import DTYPES, Kernels
from spanloop.errors import InputError
from spanloop.model import Model

_numbers = itertools.count()
_functions: dict[int, Kernels] = {}  # graphs of torch.compile name their functions by number


class TorchFunction:
    """f(q, v, tau) → tensor (..., *shape), differentiable; inputs by position or by name, batch axes first."""

    def __init__(self, model: Model, name: str, options: dict[str, Any]):
        self.kernels = Kernels(model, name, options)
        self.model, self.name, self.inputs = model, name, self.kernels.names
        self.number = next(_numbers)
        _functions[self.number] = self.kernels

    def __call__(self, *inputs: Any, **named: Any) -> torch.Tensor:
        """The answer. One state without an answer raises StateError; in a batch its row is NaN, with a warning."""
        return self._evaluated(self._checked(inputs, named), False)

    def with_status(self, *inputs: Any, **named: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """The answer and, for each state, whether it has one; rows without are NaN. Nothing is raised or warned.

        A loss that leaves such rows out, torch.where(has_answer[..., None], answer, 0.0), has gradients of 0 there.
        """
        given = self._checked(inputs, named)
        single = all(x.ndim == 1 for x in given)
        answer = self._evaluated([x[None] for x in given] if single else given, True)
        answer = answer[0] if single else answer
        axes = tuple(range(-len(self.kernels.shape), 0))
        return answer, ~torch.isnan(answer.detach()).any(dim=axes) if axes else ~torch.isnan(answer.detach())

    def _evaluated(self, inputs: list[torch.Tensor], quiet: bool) -> torch.Tensor:
        if torch.compiler.is_compiling():
            return evaluate(inputs, self.number, quiet)
        return Value.apply(self.kernels, quiet, *inputs)

    def _checked(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> list[torch.Tensor]:
        given = in_order(self.name, self.inputs, inputs, named)
        like = next((x for x in given if isinstance(x, torch.Tensor)), None)
        tensors = [self._packed(n, x, like) for n, x in zip(self.inputs, given, strict=True)]
        for name, size, x in zip(self.inputs, self.kernels.sizes, tensors, strict=True):
            self._check(name, size, x, tensors[0])
        return tensors

    def _packed(self, name: str, x: Any, like: torch.Tensor | None) -> torch.Tensor:
        """A dict of parameters {"forearm.mass": tensor} as one tensor; the others are the model's own."""
        if not isinstance(x, Mapping) or name != "parameters" or like is None:
            return x
        known = self.model.parameters()
        own = torch.as_tensor(known.values).to(like)
        if not x:
            return own
        places = torch.tensor([known.index(n) for n in x], device=like.device)
        values = torch.stack(torch.broadcast_tensors(*(torch.as_tensor(y).to(like) for y in x.values())), -1)
        return own.expand(*values.shape[:-1], -1).index_copy(-1, places, values)

    def _check(self, name: str, size: int, x: Any, first: torch.Tensor) -> None:
        if not isinstance(x, torch.Tensor):
            raise InputError(f"{self.name}: {name} is a {type(x).__name__}; expected a tensor (..., {size})")
        if x.dtype not in DTYPES:
            raise InputError(f"{self.name}: {name} holds {x.dtype}; expected torch.float64 or torch.float32")
        if x.ndim == 0 or x.shape[-1] != size:
            raise InputError(f"{self.name}: {name} has shape {tuple(x.shape)}; expected (..., {size})")
        if x.dtype != first.dtype or x.device != first.device:
            raise InputError(
                f"{self.name}: {name} is {x.dtype} on {x.device}, {self.inputs[0]} {first.dtype} on {first.device}; "
                "expected one dtype and one device"
            )


# ---- operators of torch.compile


@torch.library.custom_op("spanloop::evaluate", mutates_args=())
def evaluate(inputs: list[torch.Tensor], number: int, quiet: bool) -> torch.Tensor:
    """The answer of function `number`."""
    return Value.forward(_functions[number], quiet, *inputs)


@torch.library.custom_op("spanloop::pull_back", mutates_args=())
def pull_back(
    inputs: list[torch.Tensor], weights: torch.Tensor, number: int, quiet: bool, wrt: list[int]
) -> list[torch.Tensor]:
    """Derivatives of Σ weights · answer by the inputs of these numbers, in the shapes of the inputs."""
    from spanloop.bridges.torch_autograd import Pullback

    kernels = _functions[number]
    found = Pullback.forward(kernels, quiet, tuple(kernels.names[k] for k in wrt), weights, *inputs)
    return [x.sum_to_size(inputs[k].shape).clone() for k, x in zip(wrt, found, strict=True)]


@evaluate.register_fake
def _(inputs: list[torch.Tensor], number: int, quiet: bool) -> torch.Tensor:
    leading = torch.broadcast_shapes(*(x.shape[:-1] for x in inputs))
    return inputs[0].new_empty((*leading, *_functions[number].shape))


@pull_back.register_fake
def _(inputs: list[torch.Tensor], weights: Any, number: int, quiet: bool, wrt: list[int]) -> list[torch.Tensor]:
    return [inputs[k].new_empty(inputs[k].shape) for k in wrt]


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    tensors, ctx.number, ctx.quiet = inputs
    ctx.wrt = [k for k, x in enumerate(tensors) if x.requires_grad]
    ctx.save_for_backward(*tensors)


def _gradients(ctx: Any, weights: torch.Tensor) -> tuple[Any, ...]:
    inputs = list(ctx.saved_tensors)
    found = dict(zip(ctx.wrt, pull_back(inputs, weights, ctx.number, ctx.quiet, ctx.wrt), strict=True))
    return [found.get(k) for k in range(len(inputs))], None, None


evaluate.register_autograd(_gradients, setup_context=_save)


@evaluate.register_vmap
def _(info: Any, dims: Any, inputs: list[torch.Tensor], number: int, quiet: bool) -> Any:
    return evaluate(list(in_front(inputs, dims[0], [1] * len(inputs))), number, quiet), 0
