"""A function, its pullback and its push forward as operators of torch: what graphs of compile, export and fx hold.

torch.ops.spanloop.evaluate(inputs, key, quiet)                            → answer (*batch, *shape)
torch.ops.spanloop.pull_back(inputs, weights, key, quiet, wrt)             → one tensor (*batch, size) for each of wrt
torch.ops.spanloop.push_forward(inputs, directions, key, quiet, wrt)       → derivative of the answer along directions

key names the function by its content, because graphs are saved and loaded by other processes; wrt: numbers of inputs.
Their derivatives are in torch_autograd.py.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from spanloop.bridges.torch_kernels import Kernels, quietly
from spanloop.errors import InputError

_Tensors = Sequence[torch.Tensor]
_Names = tuple[str, ...]
_functions: dict[str, Kernels] = {}  # by key: those made in this process
_disabled: dict[Callable[..., Any], Callable[..., Any]] = {}  # by function: the same, not traced by Dynamo
library = torch.library.Library("spanloop", "DEF")
for _schema in (
    "evaluate(Tensor[] inputs, str key, bool quiet) -> Tensor",
    "pull_back(Tensor[] inputs, Tensor weights, str key, bool quiet, int[] wrt) -> Tensor[]",
    "push_forward(Tensor[] inputs, Tensor[] directions, str key, bool quiet, int[] wrt) -> Tensor",
):
    library.define(_schema, tags=(torch.Tag.pt2_compliant_tag,))


def register(kernels: Kernels) -> None:
    """Let graphs find a function."""
    _functions.setdefault(kernels.key, kernels)


def function_of(key: str) -> Kernels:
    """The function that a graph names; InputError if it was not made in this process."""
    if key not in _functions:
        made = ", ".join(sorted(_functions)) or "none"
        name = key.split(".")[0]
        raise InputError(
            f"this graph calls {key}, which was not made in this process; make it first: "
            f"spanloop.torch.function(model, {name!r}, ...) with the model, the options and the version of spanloop "
            f"that the graph was made with. Made here: {made}"
        )
    return _functions[key]


def is_traced(tensors: _Tensors) -> bool:
    """Whether a mode or a subclass of tensors must see the operator: what kernels write cannot be traced."""
    return is_in_torch_dispatch_mode() or has_subclass(tensors)


def has_subclass(tensors: _Tensors) -> bool:
    """Whether there are tensors without numbers, or with more than numbers."""
    plain = torch.Tensor.__torch_dispatch__
    return any(type(x).__torch_dispatch__ is not plain for x in tensors)


# ---- values


def evaluate(kernels: Kernels, quiet: bool, inputs: _Tensors) -> torch.Tensor:
    """The answer."""
    if is_traced(inputs):
        return torch.ops.spanloop.evaluate(list(inputs), kernels.key, quiet)
    return _value(kernels, quiet, inputs)


def pull_back(kernels: Kernels, quiet: bool, inputs: _Tensors, weights: torch.Tensor, wrt: _Names) -> _Tensors:
    """Derivatives of Σ weights · answer by the inputs wrt; quiet: 0 for rows that a loss leaves out."""
    if is_traced((weights, *inputs)):
        return torch.ops.spanloop.pull_back(list(inputs), weights, kernels.key, quiet, _numbers(kernels, wrt))
    return _pulled_back(kernels, quiet, inputs, weights, wrt)


def push_forward(kernels: Kernels, quiet: bool, inputs: _Tensors, directions: _Tensors, wrt: _Names) -> torch.Tensor:
    """The derivative of the answer along directions of the inputs wrt."""
    if is_traced((*directions, *inputs)):
        key, numbers = kernels.key, _numbers(kernels, wrt)
        return torch.ops.spanloop.push_forward(list(inputs), list(directions), key, quiet, numbers)
    return _pushed_forward(kernels, quiet, inputs, directions, wrt)


def _value(kernels: Kernels, quiet: bool, inputs: _Tensors) -> torch.Tensor:
    return _untraced(_compute)(kernels.value, quiet, inputs)


def _pulled_back(kernels: Kernels, quiet: bool, inputs: _Tensors, weights: torch.Tensor, wrt: _Names) -> _Tensors:
    found: _Tensors = _untraced(_compute)(kernels.pulled_back, quiet, inputs, weights, wrt)
    if not quiet:
        return found
    unused = (_flat(kernels, weights) == 0).all(-1, keepdim=True)
    return [torch.where(unused, 0.0, x) for x in found]


def _pushed_forward(kernels: Kernels, quiet: bool, inputs: _Tensors, directions: _Tensors, wrt: _Names) -> torch.Tensor:
    return _untraced(_compute)(kernels.pushed_forward, quiet, inputs, directions, wrt)


def _compute(by: Callable[..., Any], quiet: bool, *arguments: Any) -> Any:
    return quietly(by, *arguments) if quiet else by(*arguments)


def _untraced(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which Dynamo does not trace.

    Where torch.compile gives up a graph, as for duals in torch 2.15, it traces what the call calls instead: this
    package. Dynamo takes seconds to import, and is there if anything was compiled.
    """
    if "torch._dynamo" not in sys.modules:
        return compute
    if compute not in _disabled:  # no functools.cache, of which Dynamo warns
        _disabled[compute] = torch.compiler.disable(compute)
    return _disabled[compute]


def _flat(kernels: Kernels, weights: torch.Tensor) -> torch.Tensor:
    return weights.reshape(*weights.shape[: weights.ndim - len(kernels.shape)], math.prod(kernels.shape))


def _numbers(kernels: Kernels, wrt: _Names) -> list[int]:
    return [kernels.names.index(n) for n in wrt]


def _names(kernels: Kernels, wrt: Sequence[int]) -> _Names:
    return tuple(kernels.names[k] for k in wrt)


@torch.library.impl(library, "evaluate", "CompositeExplicitAutograd")
def _(inputs: _Tensors, key: str, quiet: bool) -> torch.Tensor:
    return _value(function_of(key), quiet, inputs)


@torch.library.impl(library, "pull_back", "CompositeExplicitAutograd")
def _(inputs: _Tensors, weights: torch.Tensor, key: str, quiet: bool, wrt: Sequence[int]) -> list[torch.Tensor]:
    kernels = function_of(key)
    found = _pulled_back(kernels, quiet, inputs, weights, _names(kernels, wrt))
    return [x.clone() for x in found]  # parts of one tensor, but answers of an operator share no memory


@torch.library.impl(library, "push_forward", "CompositeExplicitAutograd")
def _(inputs: _Tensors, directions: _Tensors, key: str, quiet: bool, wrt: Sequence[int]) -> torch.Tensor:
    kernels = function_of(key)
    return _pushed_forward(kernels, quiet, inputs, directions, _names(kernels, wrt))


# ---- shapes


@torch.library.register_fake("spanloop::evaluate", lib=library)
def _(inputs: _Tensors, key: str, quiet: bool) -> torch.Tensor:
    return inputs[0].new_empty((*_batch_axes(inputs), *function_of(key).shape))


@torch.library.register_fake("spanloop::pull_back", lib=library)
def _(inputs: _Tensors, weights: torch.Tensor, key: str, quiet: bool, wrt: Sequence[int]) -> list[torch.Tensor]:
    kernels = function_of(key)
    axes = _batch_axes((*inputs, _flat(kernels, weights)))
    return [inputs[k].new_empty((*axes, kernels.sizes[k])) for k in wrt]


@torch.library.register_fake("spanloop::push_forward", lib=library)
def _(inputs: _Tensors, directions: _Tensors, key: str, quiet: bool, wrt: Sequence[int]) -> torch.Tensor:
    return inputs[0].new_empty((*_batch_axes((*inputs, *directions)), *function_of(key).shape))


def _batch_axes(tensors: _Tensors) -> tuple[int, ...]:
    return tuple(torch.broadcast_shapes(*(x.shape[:-1] for x in tensors)))


# ---- vmap


@torch.library.register_vmap("spanloop::evaluate", lib=library)
def _(info: Any, dims: Any, inputs: _Tensors, key: str, quiet: bool) -> Any:
    return torch.ops.spanloop.evaluate(in_front(inputs, dims[0], [1] * len(inputs)), key, quiet), 0


@torch.library.register_vmap("spanloop::pull_back", lib=library)
def _(info: Any, dims: Any, inputs: _Tensors, weights: Any, key: str, quiet: bool, wrt: Sequence[int]) -> Any:
    trailing = [len(function_of(key).shape)] + [1] * len(inputs)
    weights, *inputs = in_front((weights, *inputs), (dims[1], *dims[0]), trailing, info.batch_size)
    return torch.ops.spanloop.pull_back(inputs, weights, key, quiet, wrt), [0] * len(wrt)


@torch.library.register_vmap("spanloop::push_forward", lib=library)
def _(info: Any, dims: Any, inputs: _Tensors, directions: _Tensors, key: str, quiet: bool, wrt: Sequence[int]) -> Any:
    tensors = (*inputs, *directions)
    moved = in_front(tensors, (*dims[0], *dims[1]), [1] * len(tensors))
    inputs, directions = moved[: len(inputs)], moved[len(inputs) :]
    return torch.ops.spanloop.push_forward(inputs, directions, key, quiet, wrt), 0


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
