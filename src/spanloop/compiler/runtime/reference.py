"""The `python` target: the interface of a Kernel, computed on Python floats, one state after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.compiler.lower import Operations
from spanloop.compiler.runtime import arrays
from spanloop.compiler.runtime.kernel import AnyPlan, Definition, Remade, checked_dtype
from spanloop.compiler.runtime.nan_rows import refuse_states
from spanloop.errors import InputError, StateError


class PythonKernel(Remade):
    """k(q, v, tau) → array (..., *shape), evaluated on Python floats."""

    def __init__(self, definition: Definition, dtype: str = "float64"):
        if checked_dtype(dtype) != "float64":
            raise InputError(f"target 'python' computes in float64; dtype is {dtype!r}. Use target 'cpu' for float32")
        self.name, self.definition = definition.name, definition
        self.inputs, self.shape = definition.signature()
        self.dtype = np.dtype(np.float64)

    @property
    def plan(self) -> AnyPlan:
        """The operations in order, as machine code would run them."""
        return self.definition.plan

    @property
    def operations(self) -> Operations:
        """How many operations a state takes."""
        return self.plan.operations

    @property
    def wasm(self) -> bytes:
        """A WebAssembly module of the function of one state (docs/wasm.md); UnsupportedError where there is none."""
        from spanloop.compiler.portable.wasm_kernel import wasm_kernel

        return wasm_kernel(self.name, self.plan)

    def __call__(self, *inputs: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        return self.evaluate(*inputs, out=out)

    def entry(self, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """The call for single states; here the fallback itself."""
        return fallback

    def evaluate(self, *inputs: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The same as a call."""
        given, leading = arrays.accepted(self.name, self.inputs, inputs, self.dtype)
        if out is not None:
            arrays.checked_out(self.name, out, leading + self.shape, self.dtype)
        wide = [np.broadcast_to(a, (*leading, a.shape[-1])) for a in given]
        answer = self._many(wide, leading) if leading else self._one(wide)
        if out is None:
            return answer
        out[...] = answer
        return out

    def _one(self, given: list[np.ndarray]) -> np.ndarray:
        answer = self.definition.reference(*given)
        if answer is None:
            raise StateError.of(self.name, self.definition.explain(*given))
        return answer

    def _many(self, given: list[np.ndarray], leading: tuple[int, ...]) -> np.ndarray:
        rows = [a.reshape(math.prod(leading), a.shape[-1]) for a in given]
        out = np.full((math.prod(leading), *self.shape), np.nan)
        refused = []
        for k in range(len(out)):
            answer = self.definition.reference(*(a[k] for a in rows))
            if answer is None:
                refused.append(k)
            else:
                out[k] = answer
        refuse_states(self.name, refused, lambda k: self.definition.explain(*(a[k] for a in rows)), leading, out)
        return out.reshape(leading + self.shape)
