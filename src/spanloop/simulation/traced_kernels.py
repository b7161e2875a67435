"""The functions of users that a simulation traces: checks and refusals, and their kernels for many samples.

What is compiled is a function of its arguments alone. A function that keeps state between calls is found by calling it
twice in one graph: equal expressions are one node there, so that both calls must return the same nodes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.compiler.lower import Plan, traced_inputs
from spanloop.compiler.runtime.kernel import Kernel
from spanloop.compiler.trace import Expression, StateKeptError
from spanloop.errors import InputError, Reason, Refusal, SpanloopError
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


# ---- functions of users


@contextlib.contextmanager
def noted(function: str, t: float | None = None) -> Iterator[None]:
    """Add a note to what a user's function raises: which function, and at which time t [s]."""
    try:
        yield
    except SpanloopError:
        raise
    except Exception as error:
        when = f" at t = {t:g} s; sl.Integrator(checkpoint=file) keeps fixed steps until then" if t is not None else ""
        error.add_note(f"raised by {function}{when}")
        raise


def has_code_of_users(*parts: Any) -> bool:
    """Whether functions or objects contain code that is not of this library: laws of control alone do not."""
    left, seen = list(parts), set()
    while left:
        x = left.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        module = str(getattr(x, "__module__", ""))
        if not module.startswith("spanloop."):
            if callable(x) or hasattr(x, "torques"):
                return True
            left += x if isinstance(x, list | tuple) else x.values() if isinstance(x, Mapping) else ()
        elif module.startswith("spanloop.simulation.") and not isinstance(x, type):
            cells = getattr(x, "__closure__", None) or ()
            left += [*(c.cell_contents for c in cells), *getattr(x, "__dict__", {}).values()]
    return False


def must_repeat(first: Sequence[Any], again: Sequence[Any]) -> None:
    """Refuse a function whose second call with the same traced arguments gave other numbers than its first."""
    for x, y in zip(first, again, strict=True):
        if x is not y and (type(x) is Expression or type(y) is Expression or not (x == y or x != x)):
            raise StateKeptError("called twice with the same arguments, it returned different values")


def read_from_outside(functions: Sequence[Any]) -> str:
    """The clocks and generators of random numbers that functions read, in parentheses; "" where none is found."""
    from spanloop.simulation.callback_identity import NotIdentifiable, outside_sources

    found: set[str] = set()
    for function in functions:
        with contextlib.suppress(NotIdentifiable):
            found |= set(outside_sources(function))
    return f" ({', '.join(sorted(found))})" if found else ""


def takes_inputs(forces: Callable[..., Any]) -> bool:
    """Whether a function of forces reads the inputs of a step, (t, q, v, u)."""
    return arguments(forces, "the function of forces", (3, 4)) == 4


def hint_of_inputs(function: Callable[..., Any]) -> str:
    """A hint for a function of *arguments, or with a default for u, which is called as (t, q, v); "" for others."""
    try:
        inspect.signature(function).bind(*range(4))
    except (TypeError, ValueError):
        return ""
    return ". The function is called as (t, q, v); to read u it takes four arguments by name, without defaults"


def arguments(
    function: Callable[..., Any], what: str, counts: tuple[int, ...] = (3,), names: Sequence[str] = "tqvu"
) -> int:
    """How many of these numbers of arguments a function takes, the first that fits; names: of the arguments.

    A function whose arguments Python does not tell, as of some compiled ones, takes the first of the numbers.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return counts[0]
    for count in counts:
        with contextlib.suppress(TypeError):
            signature.bind(*range(count))
            return count
    needed = [p for p in signature.parameters.values() if p.default is p.empty and p.kind in (0, 1, 3)]
    expected = " or ".join(f"({', '.join(names[:n])})" for n in counts)
    raise InputError(f"{what} takes {len(needed)} arguments; expected {expected}")
