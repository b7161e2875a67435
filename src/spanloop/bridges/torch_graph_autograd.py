"""Derivatives of the operators in graphs: those of torch_autograd.py, for gradients and for forward mode.

torch.library.register_autograd has no rule for forward mode: tangents would be 0 without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd.forward_ad import _set_fwd_grad_enabled
from torch.autograd.function import _SingleLevelFunction

from spanloop.bridges.torch_autograd import Pullback, Value
from spanloop.bridges.torch_kernels import Kernels
from spanloop.bridges.torch_operators import function_of, has_subclass, library
from spanloop.errors import UnsupportedError

_Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True)
class _Call:
    """A call of an operator; arguments: those that it takes for its tensors one after the other."""

    kernels: Kernels
    operator: Any
    keys: Any  # of the dispatcher
    arguments: Callable[[list[torch.Tensor]], tuple[Any, ...]]

    def below(self, tensors: _Tensors) -> Any:
        """The operator without autograd of this level.

        A forward of autograd.Function runs without gradients; outer transforms of torch.func have theirs inside.
        """
        with ExitStack() as modes:
            modes.enter_context(torch._C._AutoDispatchBelowAutograd())
            if torch._C._are_functorch_transforms_active():
                modes.enter_context(torch.enable_grad())
                modes.enter_context(_set_fwd_grad_enabled(True))
            return self.operator.redispatch(self.keys & torch._C._after_autograd_keyset, *self.arguments(list(tensors)))


class _Evaluate(_SingleLevelFunction):
    """`evaluate`, with the derivatives of Value."""

    apply: ClassVar[Callable[..., Any]]

    @staticmethod
    def forward(call: _Call, quiet: bool, *inputs: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = call.below(inputs)
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        call, *rest = inputs
        Value.setup_context(ctx, (call.kernels, *rest), output)

    backward = Value.backward

    @staticmethod
    def jvp(ctx: Any, _call: None, _quiet: None, *directions: torch.Tensor | None) -> torch.Tensor:
        """Inside a transform the dispatcher takes operators only, so that this is not Value.jvp."""
        if not (torch._C._are_functorch_transforms_active() or has_subclass(ctx.saved_tensors)):
            raise UnsupportedError(  # code of inductor drops them, or writes over what they belong to
                f"{ctx.kernels.name}: tangents of forward_ad.make_dual cannot pass through a graph. "
                "Try torch.func.jvp, inside or around the graph"
            )
        wrt = [k for k, d in enumerate(directions) if d is not None]
        given = [d for d in directions if d is not None]
        inputs, key = list(ctx.saved_tensors), ctx.kernels.key
        found: torch.Tensor = torch.ops.spanloop.push_forward(inputs, given, key, ctx.quiet, wrt)
        return found


class _Derivative(_SingleLevelFunction):
    """`pull_back` and `push_forward`, whose derivatives are refused."""

    apply: ClassVar[Callable[..., Any]]

    @staticmethod
    def forward(call: _Call, *tensors: torch.Tensor) -> Any:
        found = call.below(tensors)
        return found if isinstance(found, torch.Tensor) else tuple(found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.kernels = inputs[0].kernels

    backward = Pullback.backward
    jvp = Pullback.jvp


def _evaluate(keys: Any, inputs: _Tensors, key: str, quiet: bool) -> Any:
    operator = torch.ops.spanloop.evaluate.default
    call = _Call(function_of(key), operator, keys, lambda x: (x, key, quiet))
    with enable_single_level_autograd_function():
        return _Evaluate.apply(call, quiet, *inputs)


def _pull_back(keys: Any, inputs: _Tensors, weights: torch.Tensor, key: str, *rest: Any) -> Any:
    operator = torch.ops.spanloop.pull_back.default
    call = _Call(function_of(key), operator, keys, lambda x: (x[:-1], x[-1], key, *rest))
    with enable_single_level_autograd_function():
        return list(_Derivative.apply(call, *inputs, weights))


def _push_forward(keys: Any, inputs: _Tensors, directions: _Tensors, key: str, *rest: Any) -> Any:
    operator, n = torch.ops.spanloop.push_forward.default, len(inputs)
    call = _Call(function_of(key), operator, keys, lambda x: (x[:n], x[n:], key, *rest))
    with enable_single_level_autograd_function():
        return _Derivative.apply(call, *inputs, *directions)


for _name, _rule in (("evaluate", _evaluate), ("pull_back", _pull_back), ("push_forward", _push_forward)):
    library.impl(_name, _rule, "Autograd", with_keyset=True)
