"""The kernels behind a function on tensors: compiled when first needed, called on the memory of the tensors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from spanloop.bridges.call_inputs import moves_freely, refuse_switches
from spanloop.compiler.runtime.gpu.tensors import answered
from spanloop.errors import InputError, StateWarning, UnsupportedError
from spanloop.kernels.compile import compile
from spanloop.kernels.lowering import POSITIONS
from spanloop.model import Model

DTYPES = {torch.float64: "float64", torch.float32: "float32"}


class Kernels:
    """One function of one model and its derivatives, for every dtype and device that it is called with."""

    def __init__(self, model: Model, name: str, options: dict[str, Any]):
        self.model, self.name, self.options = model, name, options
        first = compile(model, name, **options)  # also checks the options
        self.names = tuple(n for n, _ in first.inputs)
        self.sizes = tuple(k for _, k in first.inputs)
        self.shape: tuple[int, ...] = first.shape
        self.key = f"{name}.{first.definition.key}"  # the same in every process, for what computes the same
        self.moves_freely = moves_freely(model)
        self._known: dict[Any, Any] = {}

    def value(self, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        """The answer (..., *shape)."""
        kernel = self._kernel(inputs[0], self.name, self.options)
        return called(kernel, inputs, self.shape)

    def pulled_back(
        self, inputs: Sequence[torch.Tensor], weights: torch.Tensor, wrt: tuple[str, ...]
    ) -> list[torch.Tensor]:
        """Derivatives of Σ weights · answer by the numbers of each input of wrt, with the batch axes of the answer."""
        refuse_switches(self.name, wrt, self.names)
        kernel = self._derivative(inputs[0], "vjp", wrt)
        flat = weights.reshape(*weights.shape[: weights.ndim - len(self.shape)], math.prod(self.shape))
        places = kernel.definition.places
        found = called(kernel, (*inputs, flat), (sum(s.stop - s.start for s in places.values()),))
        return [self._lifted(n, inputs[self.names.index(n)], found[..., places[n]]) for n in wrt]

    def pushed_forward(
        self, inputs: Sequence[torch.Tensor], directions: Sequence[torch.Tensor], wrt: tuple[str, ...]
    ) -> torch.Tensor:
        """The derivative of the answer along directions of the numbers of wrt."""
        refuse_switches(self.name, wrt, self.names)
        kernel = self._derivative(inputs[0], "jvp", wrt)
        pairs = zip(wrt, directions, strict=True)
        rates = [self._lowered(n, inputs[self.names.index(n)], d) for n, d in pairs]
        return called(kernel, (*inputs, *rates), self.shape)

    def _lifted(self, name: str, q: torch.Tensor, by_rates: torch.Tensor) -> torch.Tensor:
        """N (NᵀN)⁻¹ g: of joint rates (nv) the derivative by coordinates (nq), with q̇ = N(q) v."""
        if name not in POSITIONS or not self.moves_freely:
            return by_rates
        n = self._rate_matrix(q)
        return (n @ _solved(n.mT @ n, by_rates[..., None]))[..., 0]

    def _lowered(self, name: str, q: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
        """(NᵀN)⁻¹ Nᵀ d: the joint rates (nv) nearest to a direction of coordinates (nq)."""
        if name not in POSITIONS or not self.moves_freely:
            return direction
        n = self._rate_matrix(q)
        return _solved(n.mT @ n, n.mT @ direction[..., None])[..., 0]

    def _rate_matrix(self, q: torch.Tensor) -> torch.Tensor:
        """N (..., nq, nv)."""
        kernel = self._kernel(q, "integrate", {"derivative": "jacobian", "wrt": ("delta",)})
        return called(kernel, (q, q.new_zeros(self.model.nv)), kernel.shape)

    def _derivative(self, like: torch.Tensor, mode: str, wrt: tuple[str, ...]) -> Any:
        """A derivative by the inputs wrt; those of chains are not divided over threads, as in sl.Dynamics."""
        options = {**self.options, "chain_threads": 1, "derivative": mode, "wrt": wrt}
        return self._kernel(like, self.name, options)

    def _kernel(self, like: torch.Tensor, name: str, options: dict[str, Any]) -> Any:
        key = (like.dtype, like.device, name, options.get("derivative"), options.get("wrt"))
        if key not in self._known:
            self._known[key] = kernel_for(self.model, name, options, like.dtype, like.device)
        return self._known[key]


def _solved(matrix: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """matrix⁻¹ right, without the check for singular ones, for which a GPU would have to wait."""
    return torch.linalg.solve_ex(matrix, right)[0]


def kernel_for(model: Model, name: str, options: dict[str, Any], dtype: torch.dtype, device: torch.device) -> Any:
    """The kernel for tensors of this dtype on this device."""
    if device.type == "cpu":
        return compile(model, name, **options, dtype=DTYPES[dtype])
    if device.type == "cuda":
        return compile(model, name, **options, dtype=DTYPES[dtype], target="cuda", device=device.index or 0)
    raise UnsupportedError(f"{name}: tensors on {device} are not supported; try tensor.cpu()")


def called(kernel: Any, inputs: Sequence[torch.Tensor], shape: tuple[int, ...]) -> torch.Tensor:
    """The kernel's answer in a new tensor; it reads and writes the memory of tensors through views.

    On a GPU the current stream computes it, and the call does not wait.
    """
    leading = _leading(kernel, inputs)
    if inputs[0].is_cuda:
        rows = [_rows(x.detach(), leading) for x in inputs]
        return answered(kernel, torch, rows, leading)[0].reshape(*leading, *shape)
    out = inputs[0].new_empty((*leading, *shape))
    kernel(*(x.detach().resolve_neg().numpy() for x in inputs), out=out.numpy())
    return out


def _rows(x: torch.Tensor, leading: tuple[int, ...]) -> torch.Tensor:
    """The tensor with a row for every state, one after the other in memory; or with one row, which serves all."""
    x = x.resolve_neg()
    return x.contiguous() if x.numel() == x.shape[-1] else x.expand(*leading, x.shape[-1]).contiguous()


def quietly(compute: Any, *arguments: Any) -> Any:
    """The answer without the warning about states that have none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StateWarning)
        return compute(*arguments)


def _leading(kernel: Any, inputs: Sequence[torch.Tensor]) -> tuple[int, ...]:
    first = inputs[0].shape[:-1]
    if all(x.shape[:-1] == first for x in inputs):
        return tuple(first)
    try:
        return tuple(torch.broadcast_shapes(*(x.shape[:-1] for x in inputs)))
    except RuntimeError:
        shapes = ", ".join(f"{n} {tuple(x.shape)}" for (n, _), x in zip(kernel.inputs, inputs, strict=True))
        raise InputError(f"{kernel.name}: batch axes do not fit together: {shapes}; they must be equal or 1") from None
