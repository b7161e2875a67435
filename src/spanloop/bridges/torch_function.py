"""A function of a model as a callable on tensors, with its checks; as an operator inside torch.compile."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

import spanloop.bridges.torch_graph_autograd  # noqa: F401  derivatives of the operators
from spanloop.bridges import torch_operators
from spanloop.bridges.call_inputs import check_parameters, in_order, named_values, unequal_shapes
from spanloop.bridges.torch_autograd import Value
from spanloop.bridges.torch_kernels import DTYPES, Kernels
from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.model.parameters import Parameters


class TorchFunction:
    """f(q, v, tau) → tensor (..., *shape), differentiable; inputs by position or by name, batch axes first."""

    def __init__(self, model: Model, name: str, options: dict[str, Any]):
        self.kernels = Kernels(model, name, options)
        self.model, self.name, self.inputs = model, name, self.kernels.names
        torch_operators.register(self.kernels)

    def __reduce__(self) -> Any:
        return TorchFunction, (self.model, self.name, self.kernels.options)

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
        if torch.compiler.is_compiling() or torch.jit.is_tracing():
            return torch.ops.spanloop.evaluate(inputs, self.kernels.key, quiet)
        return Value.apply(self.kernels, quiet, *inputs)

    def _checked(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> list[torch.Tensor]:
        given = in_order(self.name, self.inputs, inputs, named)
        like = next((x for x in given if isinstance(x, torch.Tensor)), None)
        with _without_tracer_warnings() if torch.jit.is_tracing() else nullcontext():
            tensors = [self._packed(n, x, like) for n, x in zip(self.inputs, given, strict=True)]
            for name, size, x in zip(self.inputs, self.kernels.sizes, tensors, strict=True):
                self._check(name, size, x, tensors[0])
        return tensors

    def _packed(self, name: str, x: Any, like: torch.Tensor | None) -> torch.Tensor:
        """Parameters as one tensor; those that a dict {"forearm.mass": tensor} leaves out are the model's own."""
        if not isinstance(x, Mapping | Parameters) or name != "parameters" or like is None:
            return x
        known = self.model.parameters()
        if isinstance(x, Parameters):
            return _like(like, check_parameters(self.name, x, known))
        own = _like(like, known.values)
        if not x:
            return own
        places = torch.tensor([known.index(n) for n in x], device=like.device)
        given = named_values(self.name, x, lambda y: _like(like, y))
        try:
            values = torch.stack(torch.broadcast_tensors(*given), -1)
        except RuntimeError:
            raise unequal_shapes(self.name, x, [tuple(y.shape) for y in given]) from None
        return own.expand(*values.shape[:-1], -1).index_copy(-1, places, values)

    def _check(self, name: str, size: int, x: Any, first: torch.Tensor) -> None:
        if not isinstance(x, torch.Tensor):
            raise InputError(f"{self.name}: {name} is a {type(x).__name__}; expected a tensor (..., {size})")
        if x.is_nested:
            raise InputError(
                f"{self.name}: {name} is a nested tensor; expected a tensor (..., {size}). "
                f"Try torch.cat({name}.unbind()), with a row for every state"
            )
        if x.layout != torch.strided:
            raise InputError(
                f"{self.name}: {name} has layout {x.layout}; expected torch.strided. Try {name}.to_dense()"
            )
        if x.dtype not in DTYPES:
            raise InputError(f"{self.name}: {name} holds {x.dtype}; expected torch.float64 or torch.float32")
        if x.ndim == 0 or x.shape[-1] != size:
            raise InputError(f"{self.name}: {name} has shape {tuple(x.shape)}; expected (..., {size})")
        if x.dtype != first.dtype or x.device != first.device:
            raise InputError(
                f"{self.name}: {name} is {x.dtype} on {x.device}, {self.inputs[0]} {first.dtype} on {first.device}; "
                "expected one dtype and one device"
            )


@contextmanager
def _without_tracer_warnings() -> Iterator[None]:
    """torch.jit.trace warns of checks of sizes and of the model's own numbers, which are right as constants."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        yield


def _like(like: torch.Tensor, x: Any) -> torch.Tensor:
    """Numbers as a tensor of the dtype and on the device of another, whatever torch.set_default_device says."""
    return x.to(like) if isinstance(x, torch.Tensor) else torch.as_tensor(x, dtype=like.dtype, device=like.device)
