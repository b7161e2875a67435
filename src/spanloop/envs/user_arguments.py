"""Functions and starts that users give to environments, checked when an environment is made."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from spanloop.compiler.runtime.arrays import converted
from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.model.user_input import by_name
from spanloop.simulation.traced_kernels import arguments

_OWNER = "MechanismEnv"
_TIMES = ("t", "time")


def of_state(given: Any, name: str) -> Callable[..., Any]:
    """A function of the state of all environments."""
    if not callable(given):
        raise InputError(f"{name} is {given!r}; expected a function of the state")
    arguments(given, name, (1,), ("state",))
    return given


def of_draws(given: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function of a generator of random numbers, and of how many rows to draw."""
    arguments(given, name, (2,), ("random", "n"))
    return given


def timeless(given: Any, name: str, counts: tuple[int, ...]) -> tuple[Callable[..., Any], int]:
    """A function of q, v and perhaps u, and how many of them it takes; one of the time is refused.

    A function (t, q, v) of sl.simulate would fit (q, v, u) by its number of arguments.
    """
    if not callable(given):
        raise InputError(f"{name} is {given!r}; expected a function {_choices(counts)}")
    first = _first_argument(given)
    if first in _TIMES:
        raise InputError(
            f"{name}: the first argument of the function is {first!r}; expected {_choices(counts)}, as environments "
            f"differ in age and nothing that acts on them reads the time. Try it without {first!r}"
        )
    return given, arguments(given, name, counts, "qvu")


def one_start(model: Model, q: Any) -> Any:
    """The coordinates of a start, or those of some joints by name; refused where they have rows."""
    if q is None:
        return None
    if isinstance(q, Mapping):
        found = by_name(model, q, np.zeros(model.nq), "q", _OWNER)
    else:
        found = converted(_OWNER, "q", model.nq, q, np.dtype(float))
    if math.prod(found.shape[:-1]) != 1:
        raise InputError(
            f"{_OWNER}: q has shape {found.shape}; expected ({model.nq},), one start for all environments. For "
            "different ones try reset=, a function (random, n) -> q (n, nq), or env.reset(options={'q': q})"
        )
    return q


def _choices(counts: tuple[int, ...]) -> str:
    return " or ".join(f"({', '.join('qvu'[:n])})" for n in counts)


def _first_argument(function: Callable[..., Any]) -> str:
    """The name of a function's first argument, "" where Python does not tell."""
    try:
        return next(iter(inspect.signature(function).parameters), "")
    except (TypeError, ValueError):
        return ""
