"""The `python` target: a kernel's interface over a computation on floats, one state after the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spanloop.compiler.runtime import arrays
from spanloop.errors import InputError


class PythonKernel:
    """k(q, v, tau) → array (..., *shape), evaluated on Python floats."""

    def __init__(self, name: str, signature, answer: Callable[..., np.ndarray]):
        self.name, self._answer = name, answer
        self.inputs, self.shape = signature
        self.dtype = np.dtype(np.float64)

    def __call__(self, *inputs, out: np.ndarray | None = None) -> np.ndarray:
        return self.evaluate(*inputs, out=out)

    def entry(self, fallback: Callable) -> Callable:
        return fallback

    def evaluate(self, *inputs, out: np.ndarray | None = None) -> np.ndarray:
        names = [n for n, _ in self.inputs]
        if len(inputs) != len(names):
            raise InputError(f"{self.name} takes {', '.join(names)}; {len(inputs)} arrays were given")
        given = [
            arrays.converted(self.name, n, k, x, self.dtype) for (n, k), x in zip(self.inputs, inputs, strict=True)
        ]
        leading = arrays.leading_shape(self.name, names, given)
        if out is not None:
            arrays.checked_out(self.name, out, leading + self.shape, self.dtype)
        wide = [np.broadcast_to(a, (*leading, a.shape[-1])) for a in given]
        answer = np.empty(leading + self.shape)
        for index in np.ndindex(*leading):
            answer[index] = self._answer(*(a[index] for a in wide))
        if out is None:
            return answer
        out[...] = answer
        return out
