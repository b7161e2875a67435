"""What a program of JAX calls of ours, for programs that are exported and run by other processes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax

_CALL = re.compile(r'custom_call @"?(spanloop\.[^"()\s]+)')


def call_names(function: Callable[..., Any], *inputs: Any, **named: Any) -> list[str]:
    """Return the names under which XLA calls kernels in function(*inputs, **named), and register the kernels.

    Inputs are arrays, or jax.ShapeDtypeStruct with the shapes and dtypes of the export; nothing is computed. jax.export
    refuses custom calls that it does not know, unless it is given their names. A process that loads an exported program
    calls this first with the same function and inputs, because XLA finds only kernels that are registered.

    >>> import jax, spanloop.jax
    >>> energy = spanloop.jax.energy(sl.zoo.pendulum())
    >>> [name] = spanloop.jax.call_names(energy, *2 * [jax.ShapeDtypeStruct((1,), "float32")])
    >>> name.startswith("spanloop.energy.")
    True
    """
    return sorted(set(_CALL.findall(jax.jit(function).lower(*inputs, **named).as_text())))
