"""Functions of users that a gradient is taken of: traced, with their derivatives by the state, as kernels."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from spanloop.compiler.derivative.reverse import pullback
from spanloop.compiler.lower import Plan, unrolled
from spanloop.compiler.runtime.kernel import Kernel
from spanloop.compiler.trace import Condition, Expression
from spanloop.compiler.traced_arrays import TracedArray
from spanloop.errors import InputError, Reason, Refusal
from spanloop.model import Model
from spanloop.simulation.controllers import Named, traced
from spanloop.simulation.gradients.derived_kernel import derived_kernel, rows_of
from spanloop.simulation.traced_kernels import arguments, must_repeat, noted


@dataclass(frozen=True)
class TracedLoss:
    """A function of time, state and inputs that returns one number.

    name: for messages; takes: the letters of its arguments, of t, q, v, u.
    """

    name: str
    function: Callable[..., Any]
    takes: str
    model: Model
    inputs: int = 0

    @staticmethod
    def final(function: Any, model: Model) -> TracedLoss:
        """The loss of the state at the end of a run, (q, v) or (t, q, v)."""
        _must_be_callable(function, "loss", "(q, v)")
        with contextlib.suppress(InputError):
            arguments(function, "the loss", (2,), "qv")
            return TracedLoss("the loss", function, "qv", model)
        try:
            arguments(function, "the loss", (3,), "tqv")
        except InputError as error:
            raise InputError(f"{error} or (q, v)") from None
        return TracedLoss("the loss", function, "tqv", model)

    @staticmethod
    def running(function: Any, model: Model, inputs: int) -> TracedLoss:
        """A loss that is integrated over a run, (t, q, v) or (t, q, v, u)."""
        _must_be_callable(function, "running", "(t, q, v)")
        return TracedLoss("running", function, "tqvu"[: arguments(function, "running", (3, 4))], model, inputs)

    @property
    def takes_inputs(self) -> bool:
        """Whether it depends on the inputs of a step."""
        return "u" in self.takes

    def __call__(self, t: np.ndarray, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> dict[str, np.ndarray]:
        """Values (n,) and derivatives t (n, 1), q (n, nq), v (n, nv), u (n, inputs); NaN where they are not finite."""
        rows = {"t": t[:, None], "q": q, "v": v, "u": u}
        found = rows_of(self._kernel, *(rows[n] for n in self._sizes))
        ends = np.cumsum([1, *self._sizes.values()])
        parts = np.split(found, ends[:-1], axis=-1)
        return {"value": parts[0][:, 0]} | dict(zip(self._sizes, parts[1:], strict=True))

    def refusal(self, t: float, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> Refusal:
        """Why it has no value or no derivative at one state."""
        rows: dict[str, Any] = {"t": [t], "q": q, "v": v, "u": u}
        try:
            with noted(self.name), np.errstate(all="ignore"):
                x = {n: [float(y) for y in rows[n]] for n in self._sizes}
                value = float(self._value(x))
        except (ArithmeticError, ValueError, TypeError):
            value = np.nan
        if not np.isfinite(value):
            words = (
                f"{self.name} is not finite at t = {t:.6g} s. Keep what it divides by away from 0 and what is under a "
                "root positive, as with np.maximum(x, 1e-9)"
            )
            return Refusal(Reason.NOT_FINITE, words)
        words = (
            f"{self.name} is {value:.6g} at t = {t:.6g} s, but has no finite derivative there, as a root at 0. "
            "Add a small number inside the root, or square it"
        )
        return Refusal(Reason.NOT_FINITE, words)

    @property
    def _sizes(self) -> dict[str, int]:
        sizes = {"t": 1, "q": self.model.nq, "v": self.model.nv}
        return sizes | ({"u": self.inputs} if self.takes_inputs else {})

    @cached_property
    def _kernel(self) -> Kernel:
        key = hashlib.sha256(f"{self._plan}".encode()).hexdigest()
        return derived_kernel("loss", self._sizes, len(self._plan.outputs), self._with_derivatives, key)

    @cached_property
    def _plan(self) -> Plan:
        def compute(x: Any) -> Any:
            found = self._with_derivatives(x)
            must_repeat(found[:1], [self._value(x)])
            return found, (), ()

        return traced(self.name, lambda: unrolled("loss", tuple(self._sizes.items()), (0,), compute), [self.function])

    def _with_derivatives(self, x: Mapping[str, Sequence[Any]]) -> list[Any]:
        value = self._value(x)
        wanted = [y for n in self._sizes for y in x[n]]
        return [value, *pullback([value], [1.0], wanted)]

    def _value(self, x: Mapping[str, Sequence[Any]]) -> Any:
        named = {"t": x["t"][0], "q": Named.by_joint(x["q"], self.model, False)}
        named |= {"v": Named.by_joint(x["v"], self.model, True), "u": TracedArray.of(x.get("u", ()))}
        with noted(self.name):
            found = self.function(*(named[n] for n in self.takes))
        if hasattr(found, "shape") and hasattr(found, "ravel"):
            found = found.ravel()[0] if found.size == 1 else found
        if isinstance(found, Expression):
            return found
        if isinstance(found, Real) and not isinstance(found, bool):
            return float(found)
        raise InputError(f"{self.name} returned {_described(found)}; expected one number")


def _must_be_callable(function: Any, name: str, expected: str) -> None:
    if not callable(function):
        raise InputError(f"{name} is a {type(function).__name__}; expected a function {expected} -> number")


def _described(found: Any) -> str:
    """What a function returned, in words."""
    if hasattr(found, "shape") and hasattr(found, "size"):
        return f"an array of {found.size} numbers"
    if isinstance(found, list | tuple):
        return f"a {type(found).__name__} of {len(found)}"
    if isinstance(found, bool | Condition):
        return "a condition"
    return "nothing" if found is None else f"a {type(found).__name__}"
