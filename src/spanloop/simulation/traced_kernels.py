"""Kernels of the functions that a simulation traces: torques, forces and events at many samples."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from spanloop.compiler.lower import Plan, traced_inputs
from spanloop.compiler.runtime.kernel import Kernel
from spanloop.errors import Reason, Refusal
from spanloop.kernels import machine_kernel, source_hash


def kernel(name: str, sizes: Mapping[str, int], count: int, compute: Callable, key: str) -> Kernel:
    """A kernel of compute({array: scalars}) -> count scalars, and pairs of which the first must be less."""
    inputs = tuple(sizes.items())
    text = f"{key}|{name}|{inputs}|{source_hash()}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    found = _kernels.pop(digest, None)
    if found is None:
        found = machine_kernel(TracedFunction(name, digest, inputs, count, compute))
    for oldest in tuple(_kernels)[: 1 - _MOST]:
        _kernels.pop(oldest, None)  # another thread may have done so
    _kernels[digest] = found
    return found


_kernels: dict[str, Kernel] = {}  # by key, the oldest first
_MOST = 64


@dataclass(frozen=True)
class TracedFunction:
    """What the kernel of a user's function computes."""

    name: str
    key: str
    inputs: tuple[tuple[str, int], ...]
    count: int
    compute: Callable

    @property
    def label(self) -> str:
        """What it computes, for reports."""
        return self.name.replace("_", " ")

    def signature(self) -> tuple[tuple[tuple[str, int], ...], tuple[int, ...]]:
        """Names and sizes of the inputs, shape of the answer."""
        return self.inputs, (self.count,)

    @functools.cached_property
    def plan(self) -> Plan:
        """The operations in order."""
        traced = traced_inputs(self.inputs)
        numbers, pairs = self.compute(traced)
        return Plan.of(self.name, traced, (self.count,), numbers, demands=[a < b for a, b in pairs])

    def reference(self, *rows: np.ndarray) -> np.ndarray | None:
        """One state on floats; None if it has no answer."""
        x = {n: [float(y) for y in row] for (n, _), row in zip(self.inputs, rows, strict=True)}
        try:
            numbers, pairs = self.compute(x)
            found = np.array(numbers, dtype=float)
        except (ZeroDivisionError, OverflowError):
            return None
        return found if np.isfinite(found).all() and all(a < b for a, b in pairs) else None

    def other_kernels(self, dtype: str, *rows: np.ndarray) -> Iterator[Kernel]:
        """None of them: the assembly is chosen when the kernel is made."""
        return iter(())

    def explain(self, *rows: np.ndarray) -> Refusal:
        """Why this state has no answer."""
        return Refusal(Reason.NOT_FINITE, f"{self.name} has no finite value at this state")
