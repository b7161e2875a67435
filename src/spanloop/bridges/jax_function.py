"""A function of a model as a callable on JAX arrays, with its checks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spanloop.bridges.call_inputs import check_parameters, in_order, named_values, unequal_shapes
from spanloop.bridges.jax_kernels import Kernels
from spanloop.bridges.jax_primitive import evaluate, gathered, option
from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.model.parameters import Parameters

_DTYPES = ("float64", "float32")


class JaxFunction:
    """f(q, v, tau) → array (..., *shape), for jit, vmap, grad, jvp and scan; inputs by position or name, batch first.

    Rows of states without an answer are NaN; nothing is raised or warned, inside jit and outside.
    """

    def __init__(self, model: Model, name: str, options: dict[str, Any]):
        self.kernels = Kernels(model, name, options)
        self.model, self.name, self.inputs = model, name, self.kernels.names

    def __reduce__(self) -> Any:
        return JaxFunction, (self.model, self.name, self.kernels.options)

    def __call__(self, *inputs: Any, **named: Any) -> jax.Array:
        """The answer; NaN for states that have none."""
        return self._evaluated(inputs, named)[0]

    def with_status(self, *inputs: Any, **named: Any) -> tuple[jax.Array, jax.Array]:
        """The answer and, for each state, whether it has one.

        A loss that leaves the others out, jnp.where(has_answer[..., None], answer, 0.0), has gradients of 0 there.
        """
        answer, status = self._evaluated(inputs, named)
        return answer, status == 0

    def __repr__(self) -> str:
        return f"<JAX function {self.name}({', '.join(self.inputs)}) of {self.model.name!r}>"

    def _evaluated(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[jax.Array, jax.Array]:
        with jax.debug_nans(False) if option("jax_debug_nans") else nullcontext():  # NaN is reported by evaluate
            given = self._checked(inputs, named)
            axes = self._batch_axes(given)
            rows = [x if x.ndim == 1 else jnp.broadcast_to(x, (*axes, x.shape[-1])) for x in given]
        answer, status = evaluate(self.kernels.call(), *rows)
        return answer.reshape(*axes, *self.kernels.shape), status

    def _batch_axes(self, given: list[jax.Array]) -> tuple[int, ...]:
        try:
            return jnp.broadcast_shapes(*(x.shape[:-1] for x in given))
        except ValueError:
            shapes = ", ".join(f"{n} {x.shape}" for n, x in zip(self.inputs, given, strict=True))
            raise InputError(
                f"{self.name}: batch axes do not fit together: {shapes}; they must be equal or 1"
            ) from None

    def _checked(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> list[jax.Array]:
        given = in_order(self.name, self.inputs, inputs, named)
        given = [_converted(x) if isinstance(x, np.ndarray) else x for x in given]
        dtype = next((x.dtype for x in given if isinstance(x, jax.Array)), None)
        arrays = [self._packed(n, x, dtype) for n, x in zip(self.inputs, given, strict=True)]
        for name, size, x in zip(self.inputs, self.kernels.sizes, arrays, strict=True):
            self._check(name, size, x, arrays[0])
        return arrays

    def _packed(self, name: str, x: Any, dtype: Any) -> Any:
        """Parameters as one array; those that a dict {"forearm.mass": array} leaves out are the model's own."""
        if not isinstance(x, Mapping | Parameters) or name != "parameters" or dtype is None:
            return x
        known = self.model.parameters()
        if isinstance(x, Parameters):
            return jnp.asarray(check_parameters(self.name, x, known), dtype)
        own = jnp.asarray(known.values, dtype)
        if not x:
            return own
        places = np.array([known.index(n) for n in x])
        given = [gathered(y) for y in named_values(self.name, x, lambda y: jnp.asarray(y, dtype))]
        try:
            values = jnp.stack(jnp.broadcast_arrays(*given), -1)
        except ValueError:
            raise unequal_shapes(self.name, x, [y.shape for y in given]) from None
        return jnp.broadcast_to(own, (*values.shape[:-1], len(own))).at[..., places].set(values)

    def _check(self, name: str, size: int, x: Any, first: Any) -> None:
        if not isinstance(x, jax.Array | np.ndarray):
            raise InputError(f"{self.name}: {name} is a {type(x).__name__}; expected an array (..., {size})")
        if x.dtype.name not in _DTYPES:
            raise InputError(f"{self.name}: {name} holds {x.dtype.name}; expected float64 or float32")
        if x.ndim == 0 or x.shape[-1] != size:
            raise InputError(f"{self.name}: {name} has shape {x.shape}; expected (..., {size})")
        if x.dtype != first.dtype:
            raise InputError(
                f"{self.name}: {name} holds {x.dtype.name}, {self.inputs[0]} {first.dtype.name}; expected one dtype"
            )


def _converted(x: np.ndarray) -> Any:
    """An array of NumPy in the order of bytes and the precision of JAX; those that are refused stay as they are."""
    return jnp.asarray(x.astype(x.dtype.newbyteorder("="), copy=False)) if x.dtype.name in _DTYPES else x
