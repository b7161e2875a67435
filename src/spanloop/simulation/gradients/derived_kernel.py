"""Kernels of traced derivatives; on floats, for angles too large for a compiled sine, their plans are evaluated."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from spanloop.compiler.lower import unrolled
from spanloop.compiler.lower.evaluation import evaluated
from spanloop.compiler.runtime.kernel import Kernel
from spanloop.errors import StateWarning
from spanloop.simulation.traced_kernels import kernel


def derived_kernel(
    name: str, sizes: Mapping[str, int], count: int, compute: Callable[..., list[Any]], key: str
) -> Kernel:
    """A kernel of compute({array: traced scalars}) -> count scalars, which may be derivatives on their graph."""
    inputs = tuple(sizes.items())

    def on_any_scalars(x: Mapping[str, Sequence[Any]]) -> tuple[list[Any], tuple[()]]:
        numbers = [y for n in sizes for y in x[n]]
        if any(not isinstance(y, float) for y in numbers):
            return compute(x), ()
        plan = unrolled(name, inputs, (0,), lambda x: (compute(x), (), ()))
        return evaluated(plan, numbers)[0], ()

    return kernel(name, sizes, count, on_any_scalars, key)


def rows_of(function: Kernel, *rows: np.ndarray) -> np.ndarray:
    """The answers (..., count) of a kernel at rows (..., size); NaN where there is none, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StateWarning)
        return function.evaluate(*(np.ascontiguousarray(x, float) for x in rows))
